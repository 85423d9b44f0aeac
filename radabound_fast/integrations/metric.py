"""Tools that score models themselves: a metric and a scorer that ask a holdout.

``metric(y_true, y_pred)`` is for whatever takes such a function, `HoldoutMetric.scorer` for
whatever takes scikit-learn's ``scorer(estimator, X, y)``.  It needs no tool to be installed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any, Literal, Self

from radabound_fast._checks import check_choice
from radabound_fast._kernel import sealed
from radabound_fast.guards.declared_search import DeclaredSearch
from radabound_fast.guards.exhausted import HoldoutExhausted
from radabound_fast.holdout import Holdout
from radabound_fast.integrations._estimators import Response, as_score
from radabound_fast.integrations._owner import check_holdout, needs_guess, takes_keys
from radabound_fast.metrics import METRICS
from radabound_fast.rows.labels import Labels
from radabound_fast.spaces import Choice, Grid, Improvements

__all__ = ["HoldoutMetric", "HoldoutScorer"]

OtherRows = Literal["refuse", "plain"]
Withheld = Literal["raise", "worst", "stop"]


class HoldoutMetric:
    """``metric(y_true, y_pred)``: the holdout's answer, if these are the holdout's rows.

    Parameters
    ----------
    holdout : Holdout
        What is asked.  Over a `DeclaredSearch` every call brings ``key=``, unless the space is
        `spaces.Improvements`; over a guard that needs guesses, ``guess=``.
    other_rows : {"refuse", "plain"}, default "refuse"
        What becomes of a call whose `y_true` are not the holdout's labels, sample by sample, such
        as one with training rows: a ValueError, or the same metric of those rows, each of which
        weighs the same, which is not counted.  With "plain" it is for you to see that the tool
        scores no part of the holdout in another order or number: such rows are "other rows" too.
    withheld : {"raise", "worst", "stop"}, default "raise"
        What becomes of a call whose answer is withheld: `HoldoutExhausted`; the worst value that
        the metric can have; or KeyboardInterrupt, which ends a tool that lives on after errors as
        Ctrl-C does.  A `DeclaredSearch` withholds nothing.

    Raises
    ------
    TypeError, ValueError
        Not a `Holdout`, or another word.
    HoldoutExhausted
        The holdout has halted, or can answer no query.

    Notes
    -----
    What is guaranteed is what the holdout's guard guarantees, and rests on two things that no
    code can see: that the tool uses the holdout's rows for this metric alone (nothing is fitted,
    stopped, weighted or chosen by them otherwise), and that a key says all that was chosen.

    Over `spaces.Improvements` a search needs no keys and may be any program: the value that is
    returned is then the best so far, rounded, while ``holdout.report()`` has every model's own
    value and interval.

    *Other processes.*  Labels are needed wherever a metric is computed, so a pickled metric holds
    them: send it to workers that you trust.  Over a `DeclaredSearch` each worker has a copy that
    answers alike; over a guard from ``Holdout.open`` each opens the database again, so that
    together they are one guard, and so does a search from ``Holdout.open``.  Any other holdout
    has one owner, and its metric cannot be pickled.  A copy in the same process is the same.

    Examples
    --------
    >>> import numpy as np
    >>> from radabound_fast import Holdout
    >>> from radabound_fast.guards import DeclaredSearch
    >>> y_true = np.arange(1000) % 2
    >>> holdout = Holdout(y_true, DeclaredSearch(1000, 50, delta=0.1), metric="accuracy")
    >>> metric = HoldoutMetric(holdout, other_rows="plain")
    >>> metric(y_true, np.zeros(1000, int), key=7)
    0.5
    >>> metric([0, 1, 1, 1], [0, 1, 1, 0])  # other rows: not counted
    0.75
    >>> holdout.n_queries
    1
    """

    @sealed
    def __init__(
        self, holdout: Holdout, *, other_rows: OtherRows = "refuse", withheld: Withheld = "raise"
    ) -> None:
        if isinstance(holdout, Holdout):
            check_holdout(holdout=holdout)
        else:  # one in another process has its labels there
            raise TypeError(
                "holdout must be a Holdout, whose labels are here, got " + type(holdout).__name__
            )
        self.holdout = holdout
        self.other_rows = check_choice(("refuse", "plain"), other_rows=other_rows)
        self.withheld = check_choice(("raise", "worst", "stop"), withheld=withheld)
        self._shown = _Shown(holdout) if takes_no_key(holdout) else None

    @property
    def __name__(self) -> str:
        """As of a function: tools name their columns by it."""
        return f"holdout_{self.holdout.metric}"

    @property
    def greater_is_better(self) -> bool:
        """Whether more of the metric is better, as ``sklearn.metrics.make_scorer`` asks."""
        return METRICS[self.holdout.metric].greater_is_better

    @property
    def _worst(self) -> float:
        """The worst value that the metric can have."""
        measure = getattr(self.holdout.guard, "_metric", None)  # None: error rates
        least, most = (0.0, 1.0) if measure is None else measure.ends
        return float(least if self.greater_is_better else most)

    @sealed
    def __call__(
        self,
        y_true: Any,
        y_pred: Any,
        *,
        key: Any = None,
        guess: float | None = None,
        sample_weight: None = None,
    ) -> float:
        """The metric of these predictions.

        Parameters
        ----------
        y_true : array_like, shape (n_samples,)
            The holdout's labels, in order; others as `other_rows` says.
        y_pred : array_like, shape (n_samples,)
            What ``holdout.query`` takes.
        key, guess : optional
            As of ``holdout.query``.
        sample_weight : None
            For tools that pass it: rows count as the holdout was made to count them, which is
            fixed before any score is seen.

        Returns
        -------
        float
            In the metric's own units.

        Raises
        ------
        HoldoutExhausted, KeyboardInterrupt
            The answer is withheld, as `withheld` says.
        TypeError, ValueError
            Other rows, a key that is missing or of another space, or not predictions; nothing has
            changed then.
        """
        if sample_weight is not None:
            raise TypeError(
                "sample_weight must be left out: rows count as Holdout(..., sample_weight=) says"
            )
        if not self.holdout._labels.are(y_true):
            return self._of_other_rows(y_true, y_pred)
        if self._shown is not None:
            if key is not None:
                raise TypeError(f"key must be left out with spaces.Improvements, got {key!r:.100}")
            return self._shown.ask(y_pred)
        if takes_keys(self.holdout):
            if key is None:
                raise TypeError(
                    "key must say which model of the declared space this is: pass key=, use "
                    "metric.scorer() where the tool hands over its estimator, or declare "
                    "spaces.Improvements(n_levels), which needs none"
                )
            return float(self.holdout.query(y_pred, key=key).value)
        if needs_guess(self.holdout) and guess is None:
            raise TypeError(f"guess must be given with a {type(self.holdout.guard).__name__}")
        try:
            return float(self.holdout.query(y_pred, guess=guess, key=key).value)
        except HoldoutExhausted as spent:
            if self.withheld == "worst":
                return self._worst
            if self.withheld == "stop":
                raise KeyboardInterrupt(str(spent)) from None
            raise

    def scorer(self, *, key: Callable[[Any], Any] | None = None) -> HoldoutScorer:
        """scikit-learn's ``scorer(estimator, X, y)``, of which more is better.

        Parameters
        ----------
        key : callable, optional
            ``key(estimator)`` is the key of a fitted estimator.  By default the parameters that
            the space names, for a grid or a list of dicts; for a pipeline they have its names.
        """
        return HoldoutScorer(self, key)

    def _of_other_rows(self, y_true: Any, y_pred: Any) -> float:
        if self.other_rows == "refuse":
            raise ValueError(
                "y_true must be the holdout's labels, sample by sample, got others: a tool that "
                "scores training rows too needs other_rows='plain'; one that shuffles, cuts or "
                "encodes the holdout must not"
            )
        holdout, truth = self.holdout, self.holdout._truth
        options = {} if truth is None else dict(truth.options)
        if "pos_label" in options:
            options["pos_label"] = holdout.pos_label
        rows = Labels(y_true, holdout.classes)
        one = DeclaredSearch(rows.n_samples, 1, delta=0.5)
        plain = Holdout(rows, one, metric=holdout.metric, **options)
        return float(plain.query(y_pred, key=0).value)

    # it has no count of its own: a copy in this process asks the same holdout
    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: Any) -> Self:
        return self

    def __reduce__(self) -> Any:
        options = {"other_rows": self.other_rows, "withheld": self.withheld}
        holdout, guard = self.holdout, self.holdout.guard
        if self._shown is not None and guard._record is None:
            raise TypeError(
                "a HoldoutMetric over spaces.Improvements cannot be pickled: what its search was "
                "shown has one owner; Holdout.open keeps it for several processes"
            )
        ledger = None if isinstance(guard, DeclaredSearch) else guard._ledger
        if ledger is None:
            return _metric_of, (type(self), holdout, options)
        opened = (type(holdout), ledger.path, holdout._labels, type(guard), ledger.durability)
        return _opened_again, (type(self), *opened, holdout._given.weights(), options)

    def __repr__(self) -> str:
        options = f"other_rows={self.other_rows!r}, withheld={self.withheld!r}"
        return f"HoldoutMetric({self.holdout!r}, {options})"


def _metric_of(kind: type[HoldoutMetric], holdout: Holdout, options: Any) -> HoldoutMetric:
    return kind(holdout, **options)


def _opened_again(
    kind: type[HoldoutMetric],
    holdout: type[Holdout],
    path: str,
    labels: Labels,
    guard: Any,
    durability: Any,
    weights: Any,
    options: Any,
) -> HoldoutMetric:
    made = kind.__new__(kind)  # a guard that has halted is one to hear so from at the next call
    made.holdout = holdout.open(path, labels, guard, durability=durability, **weights)
    made.other_rows, made.withheld, made._shown = options["other_rows"], options["withheld"], None
    return made


class HoldoutScorer:
    """What `HoldoutMetric.scorer` returns: ``scorer(estimator, X, y)``.

    The estimator is asked for what the metric takes: classes, numbers, probabilities, or scores
    (``decision_function``, or the probability of the positive class).  An error rate becomes an
    accuracy, and other metrics of which less is better are negated.
    """

    def __init__(self, metric: HoldoutMetric, key: Callable[[Any], Any] | None) -> None:
        self.metric = metric
        keyed = takes_keys(metric.holdout) and metric._shown is None
        if key is not None and not keyed:
            raise TypeError("key must be left out: this holdout is asked without keys")
        if needs_guess(metric.holdout):
            kind = type(metric.holdout.guard).__name__
            raise TypeError(f"holdout must need no guesses in a scorer, got a {kind}")
        self._key = key
        self._names = _names_of(metric.holdout.guard.space) if keyed and key is None else None

    @property
    def __name__(self) -> str:
        return self.metric.__name__

    @sealed
    def __call__(self, estimator: Any, X: Any, y: Any, *, sample_weight: None = None) -> float:
        metric, holdout = self.metric, self.metric.holdout
        predictions = Response.to(holdout).of(estimator, X)
        key = None
        if self._key is not None:
            key = self._key(estimator)
        elif self._names is not None:
            key = self._key_by_names(estimator)
        value = metric(y, predictions, key=key, sample_weight=sample_weight)
        return float(as_score(holdout.metric, value))

    def _key_by_names(self, estimator: Any) -> dict[str, Any]:
        given, space = estimator.get_params(), self.metric.holdout.guard.space
        assert self._names is not None
        keys = [{name: given[name] for name in names if name in given} for names in self._names]
        inside = [key for key in keys if key in space]
        if len(inside) == 1:
            return inside[0]
        if len(keys) == 1:
            return keys[0]  # whose fault the search will name
        raise ValueError(
            f"the estimator's parameters must be one key of the space, they are {len(inside)}: "
            "pass key= to metric.scorer"
        )

    def __repr__(self) -> str:
        return f"HoldoutScorer({self.metric!r})"


def _names_of(space: Any) -> list[tuple[str, ...]]:
    """The names of a key's parameters, of each kind of key that the space has."""
    if isinstance(space, Grid):
        return list(dict.fromkeys(tuple(sorted(grid)) for grid in space.grids))
    if isinstance(space, Choice) and all(isinstance(value, Mapping) for value in space.values):
        return list(dict.fromkeys(tuple(sorted(value)) for value in space.values))
    raise TypeError(
        "key must be a function of the estimator where the space is no grid and no list of "
        f"parameters, got a {type(space).__name__}"
    )


# ---- a search that is shown the best so far -------------------------------------------------


def takes_no_key(holdout: Holdout) -> bool:
    """Whether the holdout's keys are what was shown before."""
    return takes_keys(holdout) and isinstance(holdout.guard.space, Improvements)


class _Shown:
    """What a search over `Improvements` was shown: the best level so far."""

    def __init__(self, holdout: Holdout) -> None:
        if holdout.guard.n_folds is not None:
            raise ValueError(
                "holdout must be one without n_folds for spaces.Improvements: scores of folds are "
                "not what is shown"
            )
        self._holdout, self._lock = holdout, threading.Lock()
        measure = holdout.guard._terms.measure
        self._least: float = measure.ends[0]
        self._most: float = measure.ends[1]
        self._greater: bool = measure.greater_is_better
        self._n_steps: int = holdout.guard.space.n_levels - 1
        self._key: tuple[int, tuple[tuple[int, int], ...]] = (0, ())

    def ask(self, y_pred: Any) -> float:
        with self._lock:
            while True:
                self._catch_up()
                n = self._key[0]
                try:
                    value = self._holdout.query(y_pred, key=self._key).value
                except ValueError:
                    if self._holdout.n_queries == n:
                        raise
                    continue  # another process had asked with this key
                self._key = self._after(self._key, value)
                return self._value_of(self._key[1][-1][1])

    def _catch_up(self) -> None:
        """With other processes, which write to the same record."""
        n_asked = self._holdout.n_queries
        if n_asked == self._key[0]:
            return
        last = self._holdout.guard.answers[-1]
        if last.key[0] + 1 != last.n_queries:
            raise ValueError("holdout must be asked by its metric alone, it was asked otherwise")
        self._key = self._after(last.key, last.value)

    def _after(self, key: Any, value: float) -> Any:
        n, falls = key
        level = self._level_of(value)
        if n == 0 or level < falls[-1][1]:
            falls = (*falls, (n + 1, level))
        return n + 1, falls

    def _level_of(self, value: float) -> int:
        worse = self._most - value if self._greater else value - self._least
        level = round(worse / (self._most - self._least) * self._n_steps)
        return min(max(level, 0), self._n_steps)  # a mean may be beyond its range by rounding

    def _value_of(self, level: int) -> float:
        worse = (self._most - self._least) * (level / self._n_steps if self._n_steps else 0.0)
        return self._most - worse if self._greater else self._least + worse
