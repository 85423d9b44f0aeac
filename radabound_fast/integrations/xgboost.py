"""XGBoost: boosting that is watched on a guarded holdout and ends at its halt."""

from __future__ import annotations

import json
from typing import Any

from radabound_fast._extras import needs
from radabound_fast.integrations._rounds import Rounds

with needs("xgboost"):
    from xgboost import Booster, DMatrix
    from xgboost.callback import TrainingCallback

# what the scores of each objective are
OUTPUTS = {
    "binary:logistic": "chances",
    "reg:logistic": "chances",
    "binary:logitraw": "logits",
    "binary:hinge": "codes",
    "multi:softprob": "chances",
    "multi:softmax": "codes",
    "count:poisson": "numbers",
}
_ERRORS = ("squarederror", "squaredlogerror", "pseudohubererror", "absoluteerror", "quantileerror")
OUTPUTS |= {f"reg:{name}": "numbers" for name in (*_ERRORS, "gamma", "tweedie")}


class GuardedRounds(Rounds, TrainingCallback):
    """A callback for ``xgboost.train`` and ``XGBClassifier``.

    It queries the ensemble whenever its rounds, those of an `xgb_model` among them, are a multiple
    of `every`.  Training ends at the halt, and the booster is cut after the best answered round,
    the first of equals, its ``best_iteration``: so it is the model that was judged.  Beside early
    stopping, the round that is best for that stands, uncut, unless the guard halts first.

    Parameters
    ----------
    guard : guard made on labels, or RemoteGuard
        With any metric; it needs no guesses.
    X_holdout : array_like, dataframe or DMatrix, shape (guard.holdout.n_samples, n_features)
        What ``Booster.inplace_predict`` takes, or a DMatrix.
    every : int, default 10
        Rounds from one query to the next.
    classes : array_like, optional
        The label that each class number of the booster stands for: ``encoder.classes_`` of a
        ``LabelEncoder``.  None: the numbers are the labels.
    key : callable, optional
        For a `DeclaredSearch`: ``key(n_rounds)`` is the key of the query, as
        ``lambda n_rounds: (parameters, n_rounds - 1)`` in a grid times `spaces.epoch_of`.

    Attributes
    ----------
    answers : list of (int, Answer)
        Rounds and answers of the last training, also after an error.

    Raises
    ------
    HoldoutExhausted
        The guard has halted, can answer no query, or (in training) withholds the first answer.
    TypeError, ValueError
        No guard made on labels, another length, or before training: ``xgboost.cv``, an objective
        that gives nothing that the metric takes (one of the user's own gives no classes, unless
        the booster is told one of `OUTPUTS` as well), boosters "dart" and "gblinear", whose rounds
        change what came before them, or classes that do not fit the booster's.
    """

    _n_before, _halted = 0, False

    def before_training(self, model: Any) -> Any:
        """Checks the booster."""
        objective, n_classes = _checked(model)
        hint = " (the default, where an objective is a function)"
        self._start(objective, OUTPUTS, n_classes, hint)
        self._n_before, self._halted = model.num_boosted_rounds(), False
        # of the model that is continued
        model.set_attr(best_iteration=None, best_score=None)
        return model

    def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
        """True, which ends the training, once an answer is withheld."""
        X = self._X_holdout
        predict = model.predict if isinstance(X, DMatrix) else model.inplace_predict
        self._halted = not self._goes_on(self._n_before + epoch + 1, lambda: predict(X))
        return self._halted

    def after_training(self, model: Any) -> Any:
        """Returns the model of the best round, unless early stopping has named another."""
        best = self._best
        if best is None or not self._halted and model.attr("best_iteration") is not None:
            return model
        n_rounds, value = best
        judged = model[:n_rounds]
        judged.set_attr(best_iteration=str(n_rounds - 1), best_score=str(value))
        return judged


def _checked(model: Any) -> tuple[str, int]:
    """Objective and number of classes of a booster that can be asked about."""
    if not isinstance(model, Booster):
        raise TypeError(
            "GuardedRounds is for xgboost.train and XGBClassifier, got xgboost.cv: its folds are "
            "cut from the training part, so leave the callback out there, and ask about the "
            "model that is trained at last"
        )
    learner = json.loads(model.save_config())["learner"]
    objective, booster = learner["objective"]["name"], learner["gradient_booster"]["name"]
    if booster in ("dart", "gblinear"):
        raise ValueError(
            f"booster must not be {booster}: its later rounds change the earlier ones, so that "
            "the model of the best round would not be the one that was asked about"
        )
    n_classes = int(learner["learner_model_param"]["num_class"])
    return objective, n_classes if objective.startswith("multi:") else 2
