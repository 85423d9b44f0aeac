"""Tools that score models themselves: ``metric(y_true, y_pred)``, and scikit-learn's scorer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Protocol, Self, TypeGuard

from radabound_fast._checks import check_choice
from radabound_fast._kernels.support import sealed
from radabound_fast.guards.answers import HoldoutExhausted
from radabound_fast.guards.declared.improvements import BestSoFar
from radabound_fast.guards.declared.search import DeclaredSearch
from radabound_fast.integrations._estimators import Response, as_score
from radabound_fast.integrations._owner import AnyGuard, ask, check_guard, is_search_here
from radabound_fast.spaces import Choice, Grid, Improvements, Space

if TYPE_CHECKING:
    from radabound_fast.guards.confirmed.search import ConfirmedSearch
    from radabound_fast.holdout import Holdout
    from radabound_fast.store import Ledger
    from radabound_fast.store.record import SearchRecord

__all__ = ["HoldoutMetric", "HoldoutScorer"]

# parameters that no model depends on; values that are compared
_NO_CHOICE, _PLAIN = ("n_jobs", "verbose"), (str, int, float, bool, type(None))

OtherRows = Literal["refuse", "plain"]
Withheld = Literal["raise", "worst", "stop"]


class _GuardHere(AnyGuard, Protocol):
    """A guard whose labels are in this process."""

    @property
    def holdout(self) -> Holdout: ...
    @property
    def database(self) -> Ledger | SearchRecord | None: ...


def _scores(guard: Any) -> TypeGuard[ConfirmedSearch]:
    """Whether it scores as often as asked, and confirms finalists in place of queries."""
    return hasattr(type(guard), "score")


class HoldoutMetric:
    """``metric(y_true, y_pred)``: the guard's answer, if these are the holdout's rows.

    Parameters
    ----------
    guard : guard made on labels
        With a `DeclaredSearch` every call brings ``key=``, unless its space is
        `spaces.Improvements`; with a `GuessAndCheck`, ``guess=``.  A `ConfirmedSearch` scores on
        its search rows, as often as the tool likes: `y_true` are the labels of all rows, or of the
        search rows.
    other_rows : {"refuse", "plain"}, default "refuse"
        A call whose `y_true` are not the holdout's labels, sample by sample, as training rows are:
        a ValueError, or the plain metric of those rows, which is not counted.  With "plain" it is
        for you to see that the tool scores no part of the holdout, in another order or number.
    withheld : {"raise", "worst", "stop"}, default "raise"
        A call whose answer is withheld: `HoldoutExhausted`; the worst value that the metric can
        have; or KeyboardInterrupt, which ends a tool that lives on after errors as Ctrl-C does.

    Raises
    ------
    TypeError, ValueError
        Not a guard made on labels, or another word.
    HoldoutExhausted
        The guard has halted, or can answer no query.

    Notes
    -----
    The guard's guarantee rests on two things that no code can see: that the tool uses the holdout's
    rows for this metric alone (nothing is fitted, stopped, weighted or chosen by them otherwise),
    and that a key says all that was chosen.

    Over `spaces.Improvements` a search needs no keys and may be any program: it returns the best
    value so far, rounded, while ``search.report()`` has every model's own value and interval.

    *The same key again* is another training with ``allow_reruns=True``.  Else its answer is the
    first one's, whatever the predictions: a second model of a learner that tosses coins is not
    judged.

    *Other processes.*  A pickled metric holds the labels: send it to workers that you trust.  With
    a `DeclaredSearch` each worker has a copy that answers alike; a guard or a search that was
    opened from a database (``open``) each opens again, so that together they are one.  Any other
    guard has one owner, and its metric cannot be pickled.  A copy in the same process is the metric
    itself.

    Examples
    --------
    >>> import numpy as np
    >>> from radabound_fast import DeclaredSearch, Holdout
    >>> y_true = np.arange(1000) % 2
    >>> search = DeclaredSearch(Holdout(y_true, metric="accuracy"), 50, delta=0.1)
    >>> metric = HoldoutMetric(search, other_rows="plain")
    >>> metric(y_true, np.zeros(1000, int), key=7)
    0.5
    >>> metric([0, 1, 1, 1], [0, 1, 1, 0])  # other rows: not counted
    0.75
    >>> search.n_answered
    1
    """

    @sealed
    def __init__(
        self,
        guard: AnyGuard | ConfirmedSearch,
        *,
        other_rows: OtherRows = "refuse",
        withheld: Withheld = "raise",
    ) -> None:
        here: Any = guard if _scores(guard) else check_guard(guard)
        if here.holdout.labels is None:
            raise TypeError(
                "guard must have its labels in this process, by which the metric knows its rows, "
                f"got a {type(here).__name__}"
            )
        check_choice(("refuse", "plain"), other_rows=other_rows)
        check_choice(("raise", "worst", "stop"), withheld=withheld)
        self.__setstate__((here, other_rows, withheld))

    def __setstate__(self, state: tuple[Any, OtherRows, Withheld]) -> None:
        guard, self.other_rows, self.withheld = state
        # one that is opened again may have halted: that is said at the next call
        self.guard: _GuardHere = guard() if isinstance(guard, partial) else guard
        self._best_so_far: BestSoFar | None = None
        if is_search_here(self.guard) and isinstance(self.guard.space, Improvements):
            self._best_so_far = BestSoFar(self.guard, self.guard.space.n_levels)

    @property
    def __name__(self) -> str:
        """The name of the metric as a function: tools name their columns by it."""
        return f"holdout_{self.guard.holdout.metric}"

    @property
    def greater_is_better(self) -> bool:
        """Whether more of the metric is better, as ``sklearn.metrics.make_scorer`` asks."""
        return self.guard.holdout.greater_is_better

    @property
    def needs(self) -> Literal["key", "guess"] | None:
        """What a call brings beside predictions; None too for a search over Improvements."""
        return None if self._best_so_far else self.guard.needs

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
        """Return the metric of these predictions, in its own units.

        Parameters
        ----------
        y_true : array_like, shape (n_samples,)
            The holdout's labels, in order; others as `other_rows` says.
        y_pred, key, guess
            As ``guard.query`` takes them.
        sample_weight : None
            For tools that pass it: the holdout says how rows count.

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
        guard = self.guard
        part: Any = guard.search_part if _scores(guard) else None
        of_part = part is not None and part.labels.are(y_true)
        if not of_part and not guard.holdout.labels.are(y_true):
            return self._of_other_rows(y_true, y_pred)
        self._check_beside(key, guess)
        if _scores(guard):
            return guard.score(y_pred)
        if self._best_so_far is not None:
            return self._best_so_far.query(y_pred)
        try:
            return float(ask(guard, y_pred, key=key, guess=guess)[0].value)
        except HoldoutExhausted as spent:
            if self.withheld == "worst":
                least, most = guard.holdout.limits_of_metric
                return least if self.greater_is_better else most
            if self.withheld == "stop":
                raise KeyboardInterrupt(str(spent)) from None
            raise

    def _check_beside(self, key: Any, guess: Any) -> None:
        """TypeError unless the call brings what it needs, and nothing else."""
        if self.needs == "key" and key is None:
            raise TypeError(
                "key must say which model of the declared space this is: pass key=, use "
                "metric.scorer() where the tool hands over its estimator, or declare "
                "spaces.Improvements(n_levels), which needs none"
            )
        if self.needs == "guess" and guess is None:
            raise TypeError(f"guess must be given with a {self.guard.kind}")
        over = "spaces.Improvements" if self._best_so_far else f"a {self.guard.kind}"
        for name, value in (("key", key), ("guess", guess)):
            if name != self.needs and value is not None:
                raise TypeError(f"{name} must be left out with {over}, got {value!r:.100}")

    def scorer(self, *, key: Callable[[Any], Any] | None = None) -> HoldoutScorer:
        """Return scikit-learn's ``scorer(estimator, X, y)``, of which more is better.

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
        plain = DeclaredSearch(self.guard.holdout.of_other_rows(y_true), 1, delta=0.5)
        return plain.query(y_pred, key=0).value

    # it has no count of its own: a copy in this process asks the same guard
    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: Any) -> Self:
        return self

    def __getstate__(self) -> tuple[Any, OtherRows, Withheld]:
        guard: Any = self.guard
        database = guard.database
        if database is None and self._best_so_far is not None:
            raise TypeError(
                "a HoldoutMetric over spaces.Improvements cannot be pickled: what its search was "
                "shown has one owner; DeclaredSearch.open stores it for several processes"
            )
        if database is None and guard.allow_reruns:
            raise TypeError(
                "a HoldoutMetric over a search with allow_reruns cannot be pickled: the trainings "
                "of a key are counted in one place; DeclaredSearch.open counts them for several "
                "processes"
            )
        # a search is sent with the path of its own
        if database is not None and not is_search_here(guard) and not _scores(guard):
            opens = type(guard).open
            guard = partial(opens, database.path, guard.holdout, durability=database.durability)
        return guard, self.other_rows, self.withheld

    def __repr__(self) -> str:
        options = f"other_rows={self.other_rows!r}, withheld={self.withheld!r}"
        return f"HoldoutMetric({self.guard!r}, {options})"


class HoldoutScorer:
    """What `HoldoutMetric.scorer` returns: ``scorer(estimator, X, y)``.

    The estimator predicts what the metric takes: classes, numbers, probabilities, or scores
    (``decision_function``, or the probability of the positive class).  An error rate becomes an
    accuracy, and other metrics of which less is better are negated.

    Where the space's names make the key, models may differ in nothing else: a tuned parameter that
    the space lacks is an error, as far as this object sees both models.
    """

    def __init__(self, metric: HoldoutMetric, key: Callable[[Any], Any] | None) -> None:
        self.metric = metric
        if key is not None and metric.needs != "key":
            raise TypeError("key must be left out: this guard is asked without keys")
        if metric.needs == "guess":
            raise TypeError(f"guard must need no guesses in a scorer, got a {metric.guard.kind}")
        self._key = key
        self._space: Space | None = None  # the one whose names make the key
        if metric.needs == "key" and key is None and is_search_here(metric.guard):
            self._space = metric.guard.space
            self._names = _names_of(self._space)
        # by the names of a key: what else the first such model was
        self._beside: dict[tuple[str, ...], dict[str, Any]] = {}

    @property
    def __name__(self) -> str:
        return self.metric.__name__

    @sealed
    def __call__(self, estimator: Any, X: Any, y: Any, *, sample_weight: None = None) -> float:
        metric, holdout = self.metric, self.metric.guard.holdout
        predictions = Response.for_holdout(holdout).predict(estimator, X)
        key = None if self._key is None else self._key(estimator)
        if self._space is not None:
            key = self._key_by_names(self._space, estimator)
        value = metric(y, predictions, key=key, sample_weight=sample_weight)
        return float(as_score(holdout, value))

    def _key_by_names(self, space: Space, estimator: Any) -> dict[str, Any]:
        params = estimator.get_params()
        keys = [{name: params[name] for name in names if name in params} for names in self._names]
        inside = [key for key in keys if key in space]
        if len(inside) == 1:
            self._check_says_all(inside[0], params | {"class": type(estimator).__name__})
            return inside[0]
        if len(keys) == 1:
            return keys[0]  # whose fault the search will name
        raise ValueError(
            f"the estimator's parameters must be one key of the space, they are {len(inside)}: "
            "pass key= to metric.scorer"
        )

    def _check_says_all(self, key: dict[str, Any], params: dict[str, Any]) -> None:
        """ValueError if two models with keys of these names differ in something else."""
        beside = {
            name: value
            for name, value in params.items()
            if name not in key and name not in _NO_CHOICE and isinstance(value, _PLAIN)
        }
        first = self._beside.setdefault(tuple(sorted(key)), beside)
        for name in sorted(beside.keys() & first.keys()):
            if beside[name] != first[name]:
                raise ValueError(
                    f"key must say all that is tuned, got models with {name}={first[name]!r:.100} "
                    f"and {beside[name]!r:.100}, and the space has no {name}"
                )

    def __repr__(self) -> str:
        return f"HoldoutScorer({self.metric!r})"


def _names_of(space: Space) -> list[tuple[str, ...]]:
    """The names of a key's parameters, of each kind of key that the space has."""
    keys: Any = space.grids if isinstance(space, Grid) else getattr(space, "values", ())
    if isinstance(space, Grid | Choice) and all(isinstance(key, Mapping) for key in keys):
        return list(dict.fromkeys(tuple(sorted(key)) for key in keys))
    raise TypeError(
        "key must be a function of the estimator where the space is no grid and no list of "
        f"parameters, got a {type(space).__name__}"
    )
