"""Holdout: labels inside, predictions in, 0-1 losses to a guard."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from math import log
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self, SupportsIndex

import numpy as np

from radabound_fast import _kernel
from radabound_fast._checks import check_choice, read_as
from radabound_fast._kernel import sealed
from radabound_fast._ownership import Owned
from radabound_fast.guards.answers import Answers, AnswerStream
from radabound_fast.guards.declared_search import Comparison, DeclaredSearch
from radabound_fast.guards.fixed_sequence import FixedSequence
from radabound_fast.guards.radabound import RadaBound
from radabound_fast.guards.saving import Saved
from radabound_fast.metrics import (
    MEANS,
    METRICS,
    OPTIONS,
    Measure,
    RocBand,
    Truth,
    roc_band,
)
from radabound_fast.rows.labels import Labels
from radabound_fast.rows.packing import as_rows
from radabound_fast.rows.partial import Partial, Task, each_of
from radabound_fast.rows.weighting import Weighting

if TYPE_CHECKING:
    from radabound_fast.guards.report import Report
    from radabound_fast.store import Durability, Path


class Holdout(Owned, _kernel.PredictionQueries):
    """A holdout's labels, behind a guard: ask it how good predictions are.

    Parameters
    ----------
    y_true : array_like, shape (n_samples,)
        The labels: bool, integer or float (one kind, compared by value), or strings, or other
        hashable objects.
    guard : RadaBound or mechanism, optional
        What answers.  None builds ``RadaBound(n_samples, **parameters)``.
    classes : array_like, optional
        What a prediction may be; by default the values in `y_true`.
    metric : str, optional
        For a `DeclaredSearch` or a `FixedSequence`: what is measured, a name in
        `radabound_fast.metrics.METRICS`.  By default "error", the share of wrong predictions,
        which is all that other guards answer.
    baseline : array_like, shape (n_samples,), optional
        For a `DeclaredSearch` and metrics that are means: predictions of a model that was fixed
        before any holdout score was seen.  Every answer then has `gain`, `gain_low` and
        `gain_high` against it.
    pos_label : object, optional
        The positive class, of metrics of two; 1 by default if the classes are 0 and 1, or -1 and 1.
    clip : float, optional
        For "neg_log_loss", in (0, 0.5): smaller probabilities of the true class count as this.
    y_range : (float, float), optional
        For "neg_mean_absolute_error" and "neg_mean_squared_error": the range in which all labels
        and predictions lie, those of the population too.
    costs : array_like, shape (n_classes, n_classes), optional
        For "mean_cost": what predicting class j costs where class i is true, in order of
        `classes`.
    sample_weight : array_like of float, shape (n_samples,), optional
        For these two and metrics that are means, and for ``bound="fixed-sequence"``: how much each
        row counts, positive, and fixed before any score was seen.
    groups : array_like, shape (n_samples,), optional
        The same: rows of one group (patient, video) may depend on each other.
    **parameters
        Of `RadaBound`: epsilon, delta, n_vectors, bound, ...; not beside a guard.

    Raises
    ------
    TypeError, ValueError
        An argument is of the wrong type or out of its range; the message says which and why.

    Notes
    -----
    Without a metric the loss of a prediction is 1 where it differs from the label and 0 where it
    does not; they are compared exactly.  With one the value is scikit-learn's, and the
    population's lies in the interval with probability 1 - delta, for all keys of the search at
    once (docs/reference/metrics.md).  With a baseline the intervals of values and of gains hold
    together: each kind has half of delta.  A search answers one metric.  `halted`, `n_queries`,
    `complexity`, `budget`, `threshold`, `guarantee` and `seed` are the guard's.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y_true = rng.choice(["cat", "dog"], size=4000)
    >>> holdout = Holdout(y_true, epsilon=0.05, delta=0.1, bound="mclt", seed=0)
    >>> answer = holdout.query(np.where(rng.random(4000) < 0.1, "cat", y_true))
    >>> 0.04 < answer.value < 0.06
    True

    >>> from radabound_fast.guards import DeclaredSearch
    >>> search = DeclaredSearch(4000, {"depth": range(1, 11)}, delta=0.1)
    >>> holdout = Holdout(y_true, search, metric="roc_auc", pos_label="dog")
    >>> scores = (y_true == "dog") + rng.normal(size=4000)
    >>> answer = holdout.query(scores, key={"depth": 3})
    >>> round(answer.value, 4), round(answer.low, 4), round(answer.high, 4)
    (0.7589, 0.7266, 0.7893)
    """

    _instead: ClassVar[str] = (
        "send predictions to the process that owns it, as integrations.joblib.guarded_map does "
        "(in scikit-learn use integrations.sklearn.HoldoutSearchCV)"
    )
    _forwarded: ClassVar[frozenset[str]] = frozenset(
        [
            "halted",
            "n_queries",
            "complexity",
            "budget",
            "threshold",
            "guarantee",
            "seed",
        ]
    )

    @sealed
    def __init__(
        self,
        y_true: Any,
        guard: Any = None,
        *,
        classes: Any = None,
        metric: str | None = None,
        baseline: Any = None,
        pos_label: Any = None,
        clip: float | None = None,
        y_range: tuple[float, float] | None = None,
        costs: Any = None,
        sample_weight: Any = None,
        groups: Any = None,
        **parameters: Any,
    ) -> None:
        super().__init__()
        self._labels = y_true if isinstance(y_true, Labels) else Labels(y_true, classes)
        given = _Measured(metric, baseline, sample_weight, groups, pos_label, clip, y_range, costs)
        if guard is None:
            given.check_error_rates(RadaBound)
            guard = RadaBound(self._labels.n_samples, **given.weights(), **parameters)
        elif parameters:
            raise TypeError(
                f"parameters are those of a new guard, got a guard and {sorted(parameters)}"
            )
        elif isinstance(guard, RadaBound) and given.weights():
            raise TypeError(
                f"{' and '.join(given.weights())} must be given to the guard itself, a RadaBound"
            )
        if isinstance(guard, type) or not hasattr(guard, "query_packed"):
            raise TypeError(f"guard must be a RadaBound or a mechanism, got {guard!r}")
        if guard.n_samples != self._labels.n_samples:
            raise ValueError(
                f"guard must be for the {self._labels.n_samples} samples of y_true, "
                f"got one for {guard.n_samples}"
            )
        self._truth: Truth | None = None
        if isinstance(guard, DeclaredSearch):
            self._truth = given.truth(self._labels, guard._metric, guard.n_folds)
            if self._truth is not None:
                guard._measure_by(self._truth.measure(guard._secret))
        elif isinstance(guard, FixedSequence):
            given.check_no_baseline(FixedSequence)
            self._truth = given.truth(self._labels, guard._metric)
            if self._truth is not None:
                guard._measure_by(self._truth)
        else:
            given.check_error_rates(type(guard))
        self._given = given
        self._guard = guard
        self._rows = self._labels.rows
        self._asked = guard if type(guard) is RadaBound else None  # a subclass may see each query

    @classmethod
    @sealed
    def open(
        cls,
        path: Path,
        y_true: Any,
        guard: type[Saved | DeclaredSearch] = RadaBound,
        *,
        classes: Any = None,
        durability: Durability = "power",
        metric: str | None = None,
        baseline: Any = None,
        pos_label: Any = None,
        clip: float | None = None,
        y_range: tuple[float, float] | None = None,
        costs: Any = None,
        sample_weight: Any = None,
        groups: Any = None,
        **parameters: Any,
    ) -> Self:
        """A holdout whose guard lives in a database, made now if there is none.

        Parameters
        ----------
        path, durability
            As for `RadaBound.open`.
        y_true, classes
            As for `Holdout`.  The database holds a salted hash of the labels, which shows
            whether a complete guess of them is right and nothing else, and opens only for the
            labels that it was made for.
        metric, baseline, pos_label, clip, y_range, costs, sample_weight, groups
            As for `Holdout`.  The database holds the metric, its options, how many labels each of
            its classes has, and keyed hashes of the baseline, weights and groups; without a metric
            here, the one in the file is taken.
        guard : type, default RadaBound
            `RadaBound` or a mechanism.
        **parameters
            Of the guard; none, to take those in the file.

        Returns
        -------
        Holdout
            Close it with `close` or a ``with`` block; a dropped one closes itself.

        Raises
        ------
        FileNotFoundError, ValueError, OSError
            As `RadaBound.open` does.
        """
        labels = y_true if isinstance(y_true, Labels) else Labels(y_true, classes)
        given = _Measured(metric, baseline, sample_weight, groups, pos_label, clip, y_range, costs)

        def same(stored: str | None) -> bool:
            return stored is not None and stored == labels.fingerprint(stored.partition("$")[0])

        def measure_of(search: DeclaredSearch) -> Measure | None:
            truth = given.truth(labels, search._metric, search.n_folds)
            return None if truth is None else truth.measure(search._secret)

        wanted = {"n_samples": labels.n_samples} | parameters if parameters else {}
        fingerprint = labels.fingerprint(os.urandom(16).hex())
        if issubclass(guard, DeclaredSearch):
            made = guard._open(path, wanted or None, durability, fingerprint, same, measure_of)
            return cls(labels, made, **given.data())
        if issubclass(guard, FixedSequence):
            given.check_no_baseline(guard)
            truth = given.truth(labels, None)
            if wanted and truth is not None:
                wanted["metric"] = truth.measure(FixedSequence._key).describe()
            sequence = guard._open(path, wanted, durability, fingerprint, same)
            return cls(labels, sequence, **given.asked())
        given.check_error_rates(guard)
        wanted |= given.weights()
        holdout = cls(labels, guard._open(path, wanted, durability, fingerprint, same))
        holdout._given = given
        return holdout

    def __reduce_ex__(self, protocol: SupportsIndex) -> Any:
        if isinstance(self._guard, DeclaredSearch):  # the labels go along
            return functools.partial(type(self), **self._given.data()), (self._labels, self._guard)
        return super().__reduce_ex__(protocol)

    def close(self) -> None:
        """Let go of the database and answer nothing more; closing twice does nothing."""
        self.guard.close()

    def __enter__(self) -> Self:
        self.guard.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def guard(self) -> Any:
        """What answers."""
        return self._guard

    @property
    def n_samples(self) -> int:
        """m, how many labels there are."""
        return self._labels.n_samples

    @property
    def classes(self) -> Any:
        """What a prediction may be, sorted; None where predictions are numbers in a range."""
        numbers = self._truth is not None and self._truth.row.takes == "numbers"
        return None if numbers else self._labels.classes

    @property
    def metric(self) -> str:
        """What is measured, a name in `radabound_fast.metrics.METRICS`."""
        return "error" if self._truth is None else self._truth.row.name

    @property
    def pos_label(self) -> Any:
        """The positive class; None where the metric has none."""
        if self._truth is None or not self._truth.has_positive:
            return None
        return self._labels.classes[self._truth.options["pos_label"]]

    # `query` is compiled; what it cannot answer comes here
    def _query(self, y_pred: Any, guess: float | None, key: Any, rerun: int) -> Any:
        if isinstance(self._guard, DeclaredSearch):
            if self._truth is not None:
                return self._guard._query_predictions(self._truth, y_pred, key, rerun)
            words = _kernel.pack_rows(*self._labels.match(y_pred, ndim=1))
            return self._guard.query_packed(words, key=key, rerun=rerun)
        self._check_no_keys(key)
        if rerun != 1:
            guard = type(self._guard).__name__
            raise TypeError(f"only a DeclaredSearch has reruns, this guard is a {guard}")
        self._check_owner()
        if self._truth is not None:
            return self._guard._query_predictions(self._truth, y_pred)
        values, labels = self._labels.match(y_pred, ndim=1)
        if isinstance(self.guard, RadaBound):
            return self.guard._query_predictions(values, labels)
        return self.guard.query_packed(_kernel.pack_rows(values, labels), guess=guess)

    def _check_options(self, options: dict[str, Any]) -> None:
        if options.keys() <= {"trace", "n_threads"} and isinstance(self._guard, RadaBound):
            return
        if options.keys() <= {"reruns"} and isinstance(self._guard, DeclaredSearch):
            return
        if options:
            raise TypeError(
                "options of query_many are trace and n_threads of a RadaBound and reruns of a "
                f"DeclaredSearch, got {', '.join(options)} for a {type(self._guard).__name__}"
            )

    def _check_no_keys(self, keys: Any) -> None:
        if keys is not None:
            guard = type(self._guard).__name__
            raise TypeError(f"only a DeclaredSearch is asked by key, this guard is a {guard}")

    @sealed
    def query_many(
        self, Y_pred: Any, *, guesses: Any = None, keys: Any = None, **options: Any
    ) -> Any:
        """`query` for each row of predictions in order, up to the first that is withheld.

        Parameters
        ----------
        Y_pred : array_like, shape (k, n_samples)
            Predicted classes, one row per query; with a metric what that takes, and probabilities
            of every class have shape (k, n_samples, n_classes).
        guesses : array_like of float, shape (k,), optional
            For mechanisms that need them.
        keys : sequence, length k, optional
            For a `DeclaredSearch`: which model each row is of.
        **options
            ``trace`` and ``n_threads`` of `RadaBound.query_many`, ``reruns`` of a `DeclaredSearch`;
            other mechanisms take none.

        Returns
        -------
        Answers
            The guard's.

        Raises
        ------
        HoldoutExhausted
            The guard had halted before this call.
        TypeError, ValueError
            Not predictions of these classes, or another option; nothing has changed.
        """
        self._check_options(options)
        if isinstance(self._guard, DeclaredSearch):
            if self._truth is not None:
                return self._guard._query_many_predictions(
                    self._truth, Y_pred, keys=keys, **options
                )
            words = _kernel.pack_rows(*self._labels.match(Y_pred, ndim=2))
            return self._guard.query_many_packed(words, keys=keys, **options)
        self._check_no_keys(keys)
        self._check_owner()
        if self._truth is not None:
            return self._guard._query_many_predictions(self._truth, Y_pred, **options)
        values, labels = self._labels.match(Y_pred, ndim=2)
        if isinstance(self.guard, RadaBound):
            return self.guard._query_many_predictions(values, labels, **options)
        words = _kernel.pack_rows(values, labels)
        return self.guard.query_many_packed(words, guesses=guesses, **options)

    @sealed
    def compare(
        self,
        y_pred_a: Any,
        y_pred_b: Any,
        *,
        key_a: Any,
        key_b: Any,
        rerun_a: int = 1,
        rerun_b: int = 1,
    ) -> Comparison:
        """Is model a better than model b?  Both are of the declared space, chosen however you like.

        Parameters
        ----------
        y_pred_a, y_pred_b : array_like, shape (n_samples,)
            Predictions of each, as `query` takes them.  They are needed again, since a search keeps
            counts and limits alone: what a worker sends or a file holds tells no losses.
        key_a, key_b : object
            Of each, in the space.
        rerun_a, rerun_b : int, default 1
            As in `query`.

        Returns
        -------
        Comparison

        Raises
        ------
        TypeError, ValueError
            The guard is no `DeclaredSearch`, the metric is not a mean, it is one model twice, or
            as in `query`; nothing has changed then.

        Notes
        -----
        Both are asked about, if they were not.  The limits of all comparisons hold at once, with
        probability 1 - delta: an event of their own, beside that of the answers.  Each pays for
        both keys, two-sided ln 2 less, since a pair then has no order (Result 25 of
        docs/explanation/theory.md).  The fewer the rows on which the models differ, the narrower
        they are.

        Examples
        --------
        >>> import numpy as np
        >>> from radabound_fast.guards import DeclaredSearch
        >>> rng = np.random.default_rng(0)
        >>> y_true = rng.integers(0, 2, 4000)
        >>> holdout = Holdout(y_true, DeclaredSearch(4000, 1000, delta=0.1))
        >>> a = y_true ^ (rng.random(4000) < 0.2)
        >>> b = a ^ (rng.random(4000) < 0.06)  # spoilt a little: it errs in .236
        >>> told = holdout.compare(a, b, key_a=17, key_b=503)
        >>> round(told.gain, 4), round(told.gain_low, 4), round(told.gain_high, 4)
        (0.0328, 0.0063, 0.0578)
        """
        guard = self._guard
        if not isinstance(guard, DeclaredSearch):
            raise TypeError(
                f"compare needs a DeclaredSearch, this guard is a {type(guard).__name__}"
            )
        truth = self._truth
        if guard.n_folds is not None:
            raise ValueError("compare needs a search without n_folds")
        if self.metric not in MEANS or truth is not None and truth.weighting is not None:
            raise ValueError(
                f"compare is of means, {', '.join(MEANS)}, without weights and groups; this "
                f"holdout's metric is {self.metric!r}"
            )
        rows = []
        for name, y_pred in (("y_pred_a", y_pred_a), ("y_pred_b", y_pred_b)):
            with read_as(y_pred=name):
                if truth is None:
                    row = np.atleast_2d(_kernel.pack_rows(*self._labels.match(y_pred, ndim=1)))
                else:
                    row = truth.read(y_pred, 1)
            rows.append(row)
        return guard._compare(truth, rows, [key_a, key_b], [rerun_a, rerun_b])

    @sealed
    def roc_band(self, y_score: Any, *, key: Any, rerun: int = 1) -> RocBand:
        """The ROC curve of a model, and a band for the population's at all thresholds at once.

        So a threshold may be tuned on the holdout for nothing: the rates at the one that was
        chosen are within the band, like those at every other.

        Parameters
        ----------
        y_score : array_like, shape (n_samples,)
            Scores, as `query` takes them.
        key : object
            Of the model, in the space.
        rerun : int, default 1
            As in `query`.

        Returns
        -------
        RocBand

        Raises
        ------
        TypeError, ValueError
            The metric is not "roc_auc", or as in `query`; nothing has changed then.

        Notes
        -----
        The key is asked about, if it was not.  All bands hold at once with probability 1 - delta,
        an event of their own, beside that of the answers (Result 26 of docs/explanation/theory.md).
        """
        if not isinstance(self._guard, DeclaredSearch):
            raise TypeError(
                f"roc_band needs a DeclaredSearch, this guard is a {type(self._guard).__name__}"
            )
        if self.metric != "roc_auc" or self._truth is None:
            raise ValueError(f"roc_band needs metric='roc_auc', this holdout has {self.metric!r}")
        with read_as(y_pred="y_score"):
            answer = self._guard._query_predictions(self._truth, y_score, key, rerun)
        nats = log(2 / self._guard.delta) + answer.nats
        return roc_band(self._truth, self._truth.read(y_score, 1)[0], nats)

    def iter_query_many(
        self, Y_pred: Any, *, block: int, guesses: Any = None, keys: Any = None, **options: Any
    ) -> Iterator[Any]:
        """`query_many`, a block of rows at a time: for more answers than should be held at once.

        Parameters
        ----------
        Y_pred : array_like, shape (k, n_samples)
            Whatever has a shape and slices of rows is read a block at a time: arrays on disk too.
        block : int
            Rows of a block.
        guesses, keys, **options
            As for `query_many`.

        Yields
        ------
        Answers
            Of each block.  A halt ends the stream with the answers before it and `halted`; so
            does another process's between two blocks.

        Raises
        ------
        HoldoutExhausted
            The guard had halted before the first block.
        TypeError, ValueError
            At once: guesses or keys are not one a row.  Later: not predictions of these classes;
            the blocks before have been counted.
        """
        rows = as_rows(Y_pred, "Y_pred", may_have_three=self._truth is not None)
        given = {"guesses": guesses, "keys": keys, "reruns": options.pop("reruns", None)}
        along = {
            name: _one_a_row(name, values, len(rows))
            for name, values in given.items()
            if values is not None
        }

        def ask(part: slice) -> Any:
            here = {name: values[part] for name, values in along.items()}
            return self.query_many(rows[part], **here, **options)

        return AnswerStream(ask, self._answered_nothing, len(rows), block)

    def _answered_nothing(self) -> Any:
        if isinstance(self.guard, RadaBound):
            return self.guard._answered_nothing(halted=True)
        return Answers([], halted=True, n_queries=self.guard.n_queries)

    def task(self) -> Task:
        """`RadaBound.task`, with the labels: its `reduce` takes predictions.

        Raises
        ------
        TypeError
            The guard is a mechanism: it needs each loss's mean alone.
        """
        return replace(self._radabound().task(), labels=self._labels)

    @sealed
    def take(
        self, partials: Iterable[Partial], *, fetch: Callable[[int], Any] | None = None
    ) -> Any:
        """`RadaBound.take`; ``fetch(i)`` returns predictions, or the words of a packed partial.

        Parameters, results and errors are those of `RadaBound.take`; TypeError as well if the
        guard is a mechanism.
        """
        packed: list[bool] = []
        each = each_of(partials)

        def as_packed() -> Iterator[Partial]:
            for partial in each:
                if isinstance(partial, Partial):
                    packed.append(partial.packed)
                    partial = replace(partial, packed=True)
                yield partial

        def words(number: int) -> Any:
            assert fetch is not None
            rows = fetch(number)
            if packed[number]:
                return rows
            return _kernel.pack_rows(*self._labels.match(rows, ndim=2))

        return self._radabound().take(as_packed(), fetch=None if fetch is None else words)

    def _radabound(self) -> RadaBound:
        if not isinstance(self._guard, RadaBound):
            raise TypeError(
                f"only a RadaBound takes partials, this guard is a {type(self._guard).__name__}"
            )
        return self._guard

    def report(self) -> Report:
        """What a `DeclaredSearch` came to so far: a sentence to paste, a table, a picture.

        Returns
        -------
        Report

        Raises
        ------
        TypeError
            The guard is another one: those keep no scores.
        ValueError
            Nothing was asked yet.
        """
        from radabound_fast.guards.report import Report

        if not isinstance(self._guard, DeclaredSearch):
            raise TypeError(
                f"report needs a DeclaredSearch, this guard is a {type(self._guard).__name__}, "
                "which keeps no scores: those are in its answers"
            )
        return Report.of(self._guard, self.metric)

    def n_left(self, mean: float | None = None) -> int:
        """How many queries more will be answered for certain: see `RadaBound.n_left`.

        Raises
        ------
        AttributeError
            The guard is a mechanism other than `FixedSequence`; `GuessAndCheck` has `affordable`.
        """
        self._check_owner()
        left: int = self.guard.n_left(mean, declared=True)
        return left

    def __getattr__(self, name: str) -> Any:
        if name in self._forwarded and "_guard" in self.__dict__:
            return getattr(self.guard, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __repr__(self) -> str:
        metric = "" if self.metric == "error" else f", metric={self.metric!r}"
        return f"Holdout(n_samples={self.n_samples}{metric}, guard={self.guard!r})"


def _one_a_row(name: str, values: Any, n_rows: int) -> Any:
    """What goes along with rows, to be sliced as they are."""
    if not np.iterable(values):
        raise TypeError(f"{name} must be a sequence, one a row, got {values!r:.50}")
    if not isinstance(values, np.ndarray | Sequence):
        values = list(values)
    if len(values) != n_rows:
        raise ValueError(f"{name} must be one a row, {n_rows}, got {len(values)}")
    return values


class _Measured(NamedTuple):
    """What a caller says of what is to be measured; None: nothing."""

    metric: str | None
    baseline: Any
    sample_weight: Any
    groups: Any
    pos_label: Any
    clip: Any
    y_range: Any
    costs: Any

    def data(self) -> dict[str, Any]:
        """What no `Measure` has, and a copy of the holdout needs."""
        return {name: getattr(self, name) for name in ("baseline", "sample_weight", "groups")}

    def weights(self) -> dict[str, Any]:
        """Those of `sample_weight` and `groups` that are given."""
        named = {"sample_weight": self.sample_weight, "groups": self.groups}
        return {name: value for name, value in named.items() if value is not None}

    def asked(self) -> dict[str, Any]:
        """All of it, by name."""
        return {name: value for name, value in self._asdict().items() if value is not None}

    def truth(
        self, labels: Labels, there: Measure | None, n_folds: int | None = None
    ) -> Truth | None:
        """What a search measures of these labels, by default what it does already.

        None: error rates, which need nothing but the losses.
        """
        metric = self.metric
        options = {name: getattr(self, name) for name in OPTIONS}
        if metric is None and there is not None:
            metric, stored = there.name, dict(there.options)
            if "pos_label" in stored:
                stored["pos_label"] = labels.classes[stored["pos_label"]]
            given = {name: value for name, value in options.items() if value is not None}
            options = stored | given
        if there is None and metric in (None, "error") and not self._others():
            return None
        weighting = Weighting.of(labels.n_samples, self.sample_weight, self.groups)
        metric = "error" if metric is None else metric
        return Truth(labels, metric, options, self.baseline, weighting, n_folds)

    def check_error_rates(self, guard: type) -> None:
        """ValueError if a guard that counts is to answer anything but error rates."""
        if self.metric is not None:
            check_choice(METRICS, metric=self.metric)
        asked = [] if self.metric in (None, "error") else [f"metric={self.metric!r}"]
        asked += self._others()
        weighted = ""
        if issubclass(guard, RadaBound):
            asked = [name for name in asked if name not in self.weights()]
            weighted = " (with bound='fixed-sequence' also of rows with weights and groups)"
        if asked:
            needed = "a DeclaredSearch"
            if asked[0] != "baseline":
                needed += ", or in a fixed order a FixedSequence"
            raise ValueError(
                f"{asked[0]} needs {needed}, got a {guard.__name__}: that answers error rates, "
                f"of which accuracy is 1 less{weighted}; and, without a Holdout, the mean of any "
                "losses in [0, 1]"
            )

    def check_no_baseline(self, guard: type) -> None:
        """ValueError if a guard without gains is to answer them."""
        if self.baseline is not None:
            raise ValueError(f"baseline needs a DeclaredSearch, got a {guard.__name__}")

    def _others(self) -> list[str]:
        """What is given beside the metric."""
        return [name for name, value in self._asdict().items()
                if name != "metric" and value is not None]  # fmt: skip
