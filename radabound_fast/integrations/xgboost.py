"""XGBoost: boosting that is watched on a guarded holdout and ends at its halt."""

from __future__ import annotations

from typing import Any

from xgboost.callback import TrainingCallback

from radabound_fast.holdout import Holdout
from radabound_fast.integrations._rounds import Rounds


class GuardedRounds(TrainingCallback):
    """A callback for ``xgboost.train`` and ``XGBClassifier``, objectives that give probabilities.

    After every `every` rounds it asks the holdout about the ensemble so far. At the halt
    training ends; the best answered round is the booster's ``best_iteration``.
    `classes` says which label each class code of the booster is; None: the holdout's, in order.
    """

    def __init__(
        self, holdout: Holdout, X_holdout: Any, *, every: int = 10, classes: Any = None
    ) -> None:
        super().__init__()
        self.rounds, self.X_holdout = Rounds(holdout, every, classes), X_holdout

    def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
        """True, which ends the training, once an answer is withheld."""
        if not self.rounds.is_due(epoch):
            return False
        answered = self.rounds.ask(epoch, model.inplace_predict(self.X_holdout))
        best = self.rounds.best_round, self.rounds.best_error
        model.set_attr(best_iteration=str(best[0]), best_score=str(best[1]))
        return not answered
