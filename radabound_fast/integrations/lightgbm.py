"""LightGBM: boosting that is watched on a guarded holdout and ends at its halt."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lightgbm.callback import EarlyStopException

from radabound_fast.holdout import Holdout
from radabound_fast.integrations._rounds import Rounds


def guarded_rounds(
    holdout: Holdout, X_holdout: Any, *, every: int = 10, classes: Any = None
) -> Callable[[Any], None]:
    """A callback for ``lightgbm.train`` and ``LGBMClassifier.fit``.

    After every `every` rounds it asks the holdout about the ensemble so far. At the halt, or
    after the last round, training ends with the best answered round as ``best_iteration``.
    `classes` says which label each class code of the booster is; None: the holdout's, in order.
    """
    rounds = Rounds(holdout, every, classes)

    def callback(env: Any) -> None:
        if rounds.is_due(env.iteration):
            answered = rounds.ask(env.iteration, env.model.predict(X_holdout))
        else:
            answered = True
        if rounds.best_round is not None and not (
            answered and env.iteration + 1 < env.end_iteration
        ):
            best = ("holdout", "error", rounds.best_error, False)
            raise EarlyStopException(rounds.best_round, [best])

    return callback
