"""LightGBM: boosting that is watched on a guarded holdout and ends at its halt."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from radabound_fast._extras import needs
from radabound_fast.integrations._rounds import Rounds

if TYPE_CHECKING:
    from radabound_fast.integrations._owner import AnyGuard

with needs("lightgbm"):
    from lightgbm import Booster
    from lightgbm.callback import EarlyStopException

BINARY = ("binary", "cross_entropy")
# what the scores of each objective are
OUTPUTS = dict.fromkeys((*BINARY, "multiclass", "multiclassova"), "chances")
_REGRESSION = ("regression", "regression_l1", "huber", "fair", "poisson", "quantile", "mape")
OUTPUTS |= dict.fromkeys((*_REGRESSION, "gamma", "tweedie"), "numbers")


class GuardedRounds(Rounds):
    """What `guarded_rounds` returns."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        # after LightGBM's own, early stopping among them, which has 30; it looks in __dict__
        self.order = 40
        self._n_threads = 0

    def __call__(self, env: Any) -> None:
        if env.iteration == env.begin_iteration:
            objective, n_classes, self._n_threads = _checked(env.model)
            self._start(objective, OUTPUTS, n_classes)
        # without a number of threads it takes all cores, and training goes on with them
        predict = partial(env.model.predict, self._X_holdout, num_threads=self._n_threads)
        answered = self._goes_on(env.iteration + 1, predict)
        ends = not answered or env.iteration + 1 == env.end_iteration
        if ends and self._best is not None:
            (best, value), holdout = self._best, self._holdout
            score = "holdout", holdout.metric, value, holdout.greater_is_better
            raise EarlyStopException(best - 1, [score])


def guarded_rounds(
    guard: AnyGuard,
    X_holdout: Any,
    *,
    every: int = 10,
    classes: Any = None,
    key: Callable[[int], Any] | None = None,
) -> GuardedRounds:
    """A callback for ``lightgbm.train`` and ``LGBMClassifier.fit``.

    It queries the ensemble whenever its rounds, those of an `init_model` among them, are a multiple
    of `every`.  Training ends at the halt, or after the last round, with the best answered one, the
    first of equals, as ``best_iteration``.  Beside early stopping, the round that is best for that
    stands, unless the guard halts first.  The attribute ``answers`` lists (rounds, answer) of the
    last training, also after an error.

    Parameters
    ----------
    guard : guard made on labels, or RemoteGuard
        With any metric; it needs no guesses.
    X_holdout : array_like or dataframe, shape (guard.holdout.n_samples, n_features)
        What ``Booster.predict`` takes.
    every : int, default 10
        Rounds from one query to the next.
    classes : array_like, optional
        The label that each class number of the booster stands for: ``np.unique(y_train)`` of an
        ``LGBMClassifier``, which numbers its classes.  None: the numbers are the labels.
    key : callable, optional
        For a `DeclaredSearch`: ``key(n_rounds)`` is the key of the query, as
        ``lambda n_rounds: (parameters, n_rounds - 1)`` in a grid times `spaces.epoch_of`.

    Raises
    ------
    HoldoutExhausted
        The guard has halted, can answer no query, or (in training) withholds the first answer.
    TypeError, ValueError
        No guard made on labels, another length, or in training, before any query: ``lightgbm.cv``,
        an objective of the user's own or one that gives nothing that the metric takes, boosting
        "dart", whose rounds change the trees before them, or classes that do not fit the booster's.
    """
    return GuardedRounds(guard, X_holdout, every=every, classes=classes, key=key)


def _checked(model: Any) -> tuple[str, int, int]:
    """Objective, number of classes and of threads of a booster that can be queried."""
    if not isinstance(model, Booster):
        raise TypeError(
            "guarded_rounds is for lightgbm.train and LGBMClassifier, got lightgbm.cv: its folds "
            "are cut from the training part, so leave the callback out there, and ask about the "
            "model that is trained at last"
        )
    # the model's text is where every alias of a parameter has one name
    text = model.model_to_string(num_iteration=1)
    objective, boosting, n_threads = (
        next(iter(re.findall(pattern, text, re.MULTILINE)), None)
        for pattern in (r"^objective=(\w+)", r"^\[boosting: (\w+)\]", r"^\[num_threads: (-?\d+)\]")
    )
    if boosting == "dart":
        raise ValueError(
            "boosting must not be dart: its later rounds change the earlier trees, so that the "
            "model of the best round would not be the one that was asked about"
        )
    n_classes = 2 if objective in BINARY else model.num_model_per_iteration()
    return objective or "a function", n_classes, int(n_threads or 0)
