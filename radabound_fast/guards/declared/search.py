"""A search over a space that was declared beforehand: an interval for every score, and no halt."""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from math import log
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from radabound_fast._checks import (
    certainty,
    check_bool,
    check_count,
    check_delta,
    check_n_folds,
    counted,
    read_as,
)
from radabound_fast._kernels.search import QueryTable
from radabound_fast._kernels.support import sealed
from radabound_fast.guards.base import Guard, Outlook
from radabound_fast.guards.candidates import gain_in_errors
from radabound_fast.guards.declared.answers import (
    Comparison,
    DeclaredSearchAnswer,
    DeclaredSearchAnswers,
    Floats,
    Stored,
    Terms,
)
from radabound_fast.guards.declared.best import BestAnswers
from radabound_fast.guards.declared.rows import Rows
from radabound_fast.guards.declared.task import Expected, KeyedRows, SearchTask, not_one_a_row
from radabound_fast.guards.log import hears_queries, note_answer, note_answers
from radabound_fast.guards.opening import Opening, check_same
from radabound_fast.guards.release import (
    Release,
    described,
    release_from,
    rounding,
    rounding_sentence,
)
from radabound_fast.holdout import Holdout, as_judged
from radabound_fast.metrics import COUNTED, MEANS, MeanLoss, Measure, RocBand, Truth, roc_band
from radabound_fast.rows.partial import Partial, each_of, listed
from radabound_fast.rows.rounded import Rounded
from radabound_fast.spaces import Space, as_space
from radabound_fast.spaces.messages import quoted, shown_key
from radabound_fast.spaces.reading import from_description

if TYPE_CHECKING:
    from radabound_fast.guards.report import Report
    from radabound_fast.store import Description, Durability, Path
    from radabound_fast.store.record import Entry, Query, SearchRecord

# answers whose limits are computed one by one
_FEW = 3


class DeclaredSearch(Guard):
    """Judges any search inside a space that was declared beforehand: every score has an interval.

    All intervals hold at once, with probability 1 - delta, however the search goes about it: TPE,
    evolution, by hand, with every score in view.  What counts is the size of the space, not the
    number of queries.  So nothing halts and nothing is secret, and any worker may copy, pickle or
    fork it and use it as a scorer, if a key stands for one model in all copies: copies do not know
    of each other, so that nobody notices where it does not.  A search that is opened from a
    database (`open`) knows of all.

    Parameters
    ----------
    judged : array_like, Holdout, int or Losses
        Labels, or a `Holdout` with any metric: then queries bring predictions.  Or the number of
        held-out rows, m, from 1 to 2**40: then queries bring losses.
    space : int, mapping, sequence of mappings, `spaces.Space`, or object with ``nats(key)``
        What may be asked about.  An int N has the keys 0 to N - 1, a mapping of names to values
        all combinations of them, as scikit-learn's `ParameterGrid`; `radabound_fast.spaces` has
        lists in a fixed order, products, ensembles, and priors of your own.
    delta : float
        The probability that any answer's interval misses, in (0, 1).
    baseline : array_like, shape (n_samples,), optional
        For metrics that are means: predictions of a model that was fixed before any holdout score
        was seen.  Answers then have the gain over it; values and gains have half of delta each.
    allow_reruns : bool, default False
        Whether a key may be trained again with new coins and queried again: rerun r has the weight
        w/(r(r+1)), so the first costs ln 2 more.  With False a key has one model, and may be
        queried again as often as you like.
    two_sided : bool, default True
        False: only the upper side ("is it really this good?"), for ln 2 less; ``low`` is 0.
    n_folds : int, optional
        Queries bring the out-of-fold predictions, or losses, of a cross-validation of so many
        folds: every row's by the model that was trained without its fold; m counts all rows.
    release : "interval" or Rounded, default "interval"
        How much leaves: values and intervals as they are, or on labels values rounded to multiples
        of a step, and intervals that are widened by what that hides.
    n_best : int, optional
        Store the n best answers alone, for 10^8 models: all would take about 40 bytes a query.

    Raises
    ------
    TypeError, ValueError
        An argument is of the wrong type or out of its range; the message says which and why.

    Notes
    -----
    Given all that the training rests on (data, seeds, noise), independent of the holdout, every
    model f_key is fixed.  So by the union bound, with weights w(key) that sum to at most 1,

        kl(P_m f_key, P f_key) <= (ln(2/delta) + ln(1/w(key))) / m

    for all keys at once (Chernoff), and for *binary* losses the limits of Clopper and Pearson hold
    at ``delta w(key) / 2`` a side.  Binary are bits, bools, integers and predictions of classes;
    floats that happen to be 0 and 1 are not.  (Theorem S, Result 20 of
    docs/explanation/theory.md; the Occam bound of Blumer et al., 1987, and Langford, 2005.)

    With `n_folds` intervals cover the mean over the rows of the truth of each row's model, not a
    refitted model, and are about as wide as for m / n_folds rows (Result 27).  With
    ``release=Rounded(step)`` limits that are a function of the value are those of all values that
    are rounded alike (Result 35); others, and those of gains, are rounded outward, and nothing else
    of the scores is stored or released.

    Whatever in training reads the holdout joins the key: an epoch or a threshold chosen by its
    score, a subset, an ensemble, the lineage of a warm start, rows that a fold is judged by
    (docs/how-to/complete-the-key.md).  Not covered: a space that is changed after scores were seen,
    data or features that are changed after a look at the rows that fail, and whatever else was
    fitted to the holdout.  Fresh coins (Result 32) and holdouts that were stratified (Result 33)
    are covered as docs/explanation/assumptions.md says.

    A search stores keys, counts, and keyed fingerprints of the losses to notice when a key stands
    for two models; intervals never rest on those.  With `n_best` nobody notices, a key that comes
    again counts as another query, and `rerun` cannot be "next".

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> search = DeclaredSearch(4000, {"depth": range(1, 21), "leaf": [1, 3, 10, 30]}, delta=0.1)
    >>> answer = search.query(rng.random(4000) < 0.2, key={"depth": 5, "leaf": 10})
    >>> answer.value, round(answer.low, 4), round(answer.high, 4)
    (0.20825, 0.188, 0.2296)
    >>> search.size, round(answer.nats, 4)
    (80, 4.382)
    """

    needs: ClassVar[Literal["key", "guess"] | None] = "key"
    halted = False  # nothing is ever withheld
    _record: SearchRecord | None = None
    _record_kind = "SearchRecord"

    @sealed
    def __init__(
        self,
        judged: Any,
        space: Any,
        *,
        delta: float,
        baseline: Any = None,
        allow_reruns: bool = False,
        two_sided: bool = True,
        n_folds: int | None = None,
        release: Release = "interval",
        n_best: int | None = None,
    ) -> None:
        self._holdout = as_judged(judged)
        rounding(release, self._holdout)
        self.release: Release = release
        self.space: Space = as_space(space)
        self.delta = check_delta(delta)
        self._allow_reruns = check_bool(allow_reruns=allow_reruns)
        self.two_sided = check_bool(two_sided=two_sided)
        self.n_folds = None if n_folds is None else check_n_folds(n_folds)
        if self.n_folds is not None and self.n_folds > self.n_samples:
            raise ValueError(
                f"n_folds must be at most the number of rows, {self.n_samples}, got {n_folds}"
            )
        self.n_best = None if n_best is None else check_count(n_best=n_best)
        self._set_task(self._truth_beside(baseline), os.urandom(16))
        self._logs = hears_queries()
        # a query changes this and nothing else, in one step, so that an interrupt leaves nothing
        # half done; nats and the fingerprint are stored too
        self._queries = QueryTable(self._terms.measure.n_stored + 2)
        self._last_reruns: dict[Hashable, int] = {}  # of each key, which "next" has come to
        self._best: BestAnswers | None = None
        if self.n_best is not None:
            self._best = BestAnswers(self._terms, self.n_best)
            if self.space.shows is not None:
                raise ValueError("n_best must be left out where keys are what was shown before")
        self._holdout.note_guard(None)

    def _truth_beside(self, baseline: Any) -> Truth | None:
        if isinstance(self._holdout, Holdout):
            return self._holdout.truth.beside(baseline, self.n_folds)
        if baseline is not None:
            raise ValueError("baseline must be left out where losses are judged: give labels")
        if self._holdout.weighting is not None:
            raise ValueError(
                "sample_weight and groups must be left out where losses are judged: give labels"
            )
        return None

    def _set_task(self, truth: Truth | None, secret: bytes, metric: Any = None) -> None:
        """Judge by these labels from now on, or read what a description of a metric is of."""
        measure: MeanLoss | Measure = MeanLoss(self.n_samples, self.n_folds)
        if truth is not None:
            measure = truth.measure(secret)._replace(rounded=self._rounded)
        elif metric is not None:
            measure = Measure.from_description(metric, self.n_folds, self._rounded)
        nats = log((1 + self.two_sided) / self.delta)
        # scores and gains have half of delta each
        nats += log(2) if measure.is_paired else 0.0
        self._task = SearchTask(
            self.n_samples,
            self._holdout.labels,
            Terms(self.space, measure, nats, self.two_sided),
            truth,
            secret,
            self.allow_reruns,
            with_fingerprints=self.n_best is None,
        )

    @property
    def _terms(self) -> Terms:
        return self._task.terms

    @property
    def _rounded(self) -> Rounded | None:
        return self.release if isinstance(self.release, Rounded) else None

    @property
    def size(self) -> int | None:
        """Keys in the space; None: without end, or unknown."""
        return self.space.size

    @property
    def allow_reruns(self) -> bool:
        return self._allow_reruns

    @property
    def n_answered(self) -> int:
        """Different keys and reruns answered so far; with `n_best` all queries."""
        if self._best is not None:
            return self._best.n_answered
        return len(self._queries) if self._record is None else len(self._record)

    @property
    def n_queries(self) -> int | None:
        """How often the search was asked, repeated queries counted too; None with a database."""
        if self._record is not None:
            return None
        return self._queries.n_added if self._best is None else self._best.n_answered

    def n_left(self) -> int | None:
        """Return None: there is no end to the queries that will be answered."""
        return None

    @property
    def greater_is_better(self) -> bool:
        """Whether a larger value is better."""
        return self._terms.measure.greater_is_better

    @property
    def is_paired(self) -> bool:
        """Whether answers have gains over a baseline."""
        return self._terms.measure.is_paired

    @property
    def limits_of_metric(self) -> tuple[float, float]:
        """The least and the largest value that the metric can have."""
        return self._terms.measure.ends

    @property
    def guarantee(self) -> str:
        """What is guaranteed in this configuration, when, and proved by what."""
        measure, whose = self._terms.measure, "of every answer"
        what, limits = measure.in_words
        upper = "at or above its low" if measure.greater_is_better else "at or below its high"
        claim = "between its low and high" if self.two_sided else upper
        size = "" if self.size is None else f" of {self.size:,} keys"
        seen = (
            f"looks at every score, as long as it stays in the space{size} that was declared "
            "before any score was seen"
        )
        assumed = (
            f"models trained from their key and from data independent of the "
            f"holdout, one a key{' and rerun' if self.allow_reruns else ''}, so that whatever else "
            "of a model was chosen by holdout scores, or after a look at holdout rows, is part of "
            "its key."
        )
        if measure.is_paired:
            of_gain = "between its own two limits" if self.two_sided else "at or above gain_low"
            claim += f", and the true gain over the baseline {of_gain}"
            assumed += (
                " The baseline was fixed before any holdout score was seen; for gains, the holdout "
                "was not stratified."
            )
        if self.space.shows is not None:
            seen = f"sees of the holdout {self.space.shows}, and nothing else"
        if self.n_folds is not None:
            whose = f"of the {self.n_folds} fold models of every answer, averaged over the rows,"
            assumed = (
                "fold models trained from their key and from the rows of the "
                "other folds, so that whatever else of them was chosen by scores is part of the "
                "key; folds made by chance (by the labels: then the truth is given the labels). "
                "Of a model trained again on all rows nothing is said."
            )
        return (
            f"With probability at least {certainty(self.delta)} the {what} {whose} {measure.where} "
            f"is {claim}, of all answers at once. Finite-sample, valid for any search that {seen}; "
            f"proved by the union bound over its keys, with {limits}."
            f"{rounding_sentence(self._rounded)} Assumed: {measure.assumed}; {assumed}"
        )

    @sealed
    def query(
        self, y_pred: Any, *, key: Any, rerun: int | Literal["next"] = 1
    ) -> DeclaredSearchAnswer:
        """Return the metric of the model of a key, and limits of its population value.

        They are in a `DeclaredSearchAnswer`, with a baseline the gain and its limits as well.

        Parameters
        ----------
        y_pred : array_like, shape (n_samples,)
            Predictions in the order of the holdout's rows, as its metric takes them (probabilities
            of every class have shape (n_samples, n_classes)).  A search of losses takes losses in
            [0, 1]: those of a bool or integer dtype are binary, floats are rounded to the nearest
            multiple of 2**-24.  `PackedLosses` are binary losses, or say which predictions are
            wrong.
        key : object
            The model, in the space.
        rerun : int or "next", default 1
            With `allow_reruns`: which training of this key it is; "next": the first that was not
            queried yet, by anyone who opened the same database.

        Raises
        ------
        TypeError, ValueError
            The key is not in the space, was queried with other predictions (whose answer is then
            the error's attribute `answer`), or they are not such an array; nothing has changed
            then.
        """
        if isinstance(rerun, str) and rerun == "next" and self.allow_reruns:
            return self._next(y_pred, key)
        query, nats = self._task.find(key, rerun)
        rows = self._task.read(y_pred, 1, np.array([nats]))
        (code, rerun), stored = query, (*rows.stored_of(0), nats)
        if self._best is None and self._record is None:
            (packed,) = self.space.pack_codes([code])
            fingerprint = rows.fingerprints.item(0)
            n_answered, before = self._queries.add_one(packed, rerun, *stored, fingerprint)
            if before is None:
                return self._noted(query, stored, n_answered)
        n_answered, _ = self._add(KeyedRows([code], np.array([rerun]), np.array([nats]), rows))
        return self._noted(query, stored, n_answered)

    @sealed
    def query_many(
        self, Y_pred: Any, *, keys: Any, reruns: Any = None, n_threads: int = 1
    ) -> DeclaredSearchAnswers:
        """Return `DeclaredSearchAnswers` to several queries, as `query` gives each.

        Parameters
        ----------
        Y_pred : array_like, shape (k, n_samples), or PackedLosses
            Rows as `query` takes them.
        keys : sequence or ndarray, length k
            One key a row.
        reruns : array_like of int, shape (k,), optional
            None: all 1.
        n_threads : int, default 1
            Threads that read rows at most, one for about every millisecond of work.  The result is
            the same.

        Raises
        ------
        TypeError, ValueError
            As in `query`, for any row; nothing has changed then.
        """
        task = self._task
        if check_count(n_threads=n_threads) > 1:
            options = {"keys": keys, "reruns": reruns, "n_threads": n_threads}
            return self._many(task.rows_of([task.reduce(Y_pred, **options)]))
        codes, numbers, nats = task.find_many(keys, reruns)
        return self._many(KeyedRows(codes, numbers, nats, task.read(Y_pred, 2, nats)))

    def task(self) -> SearchTask:
        """Return what workers need to count rows for this search: it can be pickled.

        It holds the space and the labels, if there are any:
        docs/how-to/count-losses-elsewhere.md says what workers are trusted with.
        """
        return self._task

    @sealed
    def take(
        self, partials: Iterable[Partial], *, keys: Any = None, reruns: Any = None
    ) -> DeclaredSearchAnswers:
        """Answer rows that were counted elsewhere (docs/how-to/count-losses-elsewhere.md).

        Parameters
        ----------
        partials : iterable of Partial
            Each of some whole rows, made by the `task` of this search, of a copy of it, or of one
            that was opened from the same database; in any order.
        keys : sequence or ndarray, optional
            The keys that must come, each once, in the order of the answers.  None: whatever comes,
            in the order in which it does, and a key that comes twice is the same query again.
        reruns : array_like of int, optional
            With `keys`, as in `query_many`.

        Returns
        -------
        DeclaredSearchAnswers
            Those of `query_many` of all the rows, and the same state.  With `n_best` the best
            answers that there are now, so that memory does not grow with the rows.

        Raises
        ------
        TypeError, ValueError
            Something is no partial, of another search, or of some samples only; a key is missing,
            comes twice, or is none of `keys`; or as in `query`.  Nothing has changed then.

        Notes
        -----
        Rows that were added up from parts of the samples, or counted by another program, have no
        fingerprints: where such a key comes again, its counts alone are compared.
        """
        if keys is None and reruns is not None:
            raise ValueError("reruns must be left out without keys")
        each = each_of(partials, self._task.identity, "another search")
        places: list[NDArray[np.int64]] = []
        if keys is not None:
            each = Expected(self._task, keys, reruns).of(each, places)
        if self._best is None:
            return self._many(self._task.rows_of(list(each), places))

        def numbered() -> Iterator[DeclaredSearchAnswers]:
            n = 0
            for partial in each:
                n += len(partial)
                numbers = places.pop() + 1 if places else None
                yield self._block(self._task.rows_of([partial]), numbers, n)

        self._best.add(numbered())
        return self.answers

    def interval_of_value(
        self, value: Any, key: Any, *, rerun: Any = 1
    ) -> tuple[Floats, Floats] | tuple[float, float]:
        """Return the low and high that an answer of this value would have; nothing is queried.

        Parameters
        ----------
        value : float, or array_like of float, shape (k,)
            The metric's value, or the mean loss.
        key, rerun : object, int, or sequences of length k
            As in `query`, one a value.

        Returns
        -------
        low, high : float, or ndarray of float64, shape (k,)

        Raises
        ------
        TypeError, ValueError
            The interval of the metric rests on more than its value (F1, AUC, precision, log loss),
            the value cannot be, or the key is not in the space.

        Notes
        -----
        For error, accuracy, recall, specificity and mean losses, and with `n_folds` all metrics.
        **A value that is a count within its printed digits is taken as that count**: of 4,000 rows
        .2 is 800 errors and .213 is 852, and their limits are exact.  Any other value is on labels
        an error; of losses it is a mean of real numbers, with the wider limits of Chernoff, so give
        such a mean in full precision.

        Examples
        --------
        >>> million = DeclaredSearch(4000, 10**6, delta=0.1)
        >>> [round(limit, 4) for limit in million.interval_of_value(0.02, key=0)]
        [0.0103, 0.0343]
        """
        return self._interval_of(self._terms.measure.interval_of_value, value, key, rerun)

    def interval_of_count(
        self, count: Any, key: Any, *, rerun: Any = 1
    ) -> tuple[Floats, Floats] | tuple[float, float]:
        """Return `interval_of_value` of a count, or of each of several.

        Parameters
        ----------
        count : int, or array_like of int, shape (k,)
            How many of the losses are 1, or rows are wrong; of the metrics accuracy, recall and
            specificity, how many rows are right.  TypeError, ValueError: the metric is no share of
            rows, or the count cannot be.
        key, rerun
            As in `interval_of_value`.
        """
        return self._interval_of(self._terms.measure.interval_of_count, count, key, rerun)

    def _interval_of(self, limits: Any, number: Any, key: Any, rerun: Any) -> tuple[Any, Any]:
        terms = self._terms
        if np.ndim(number) == 0:
            paid = terms.nats + self._task.find(key, rerun)[1]
            low, high = terms.sides(*limits(number, paid))
            return float(low), float(high)
        n = len(number)
        if isinstance(key, (str, Mapping)) or not np.iterable(key):
            raise TypeError(f"key must be a sequence of {n}, one a number, got {key!r:.100}")
        reruns = rerun
        if np.ndim(rerun) == 0:
            reruns = None if rerun == 1 else [rerun] * n
        with read_as(reruns="rerun"):
            _, _, nats = self._task.find_many(key, reruns)
        if len(nats) != n:
            raise ValueError(f"key must be one a number, {n}, got {len(nats)}")
        return terms.sides(*limits(number, terms.nats + nats))

    @property
    def answers(self) -> DeclaredSearchAnswers:
        """All answers so far, each query once, in order; with `n_best` the best alone."""
        if self._best is not None:
            return self._best.answers
        if self._record is not None:
            return self.answers_from(self._record.after(0))
        packed, reruns, values = self._queries.columns()
        codes, (*columns, nats, _) = self.space.unpack_codes(packed), self._as_stored(values)
        return DeclaredSearchAnswers(self._terms, codes, reruns, columns, nats, None, len(codes))

    def answers_from(
        self, entries: Mapping[Query, Entry], numbers: NDArray[np.int64] | None = None
    ) -> DeclaredSearchAnswers:
        """Return the answers of what the database holds of queries; numbered from 1 by default."""
        codes = [code for code, _ in entries]
        reruns = np.array([rerun for _, rerun in entries], np.int64)
        table = np.array([entry[:-2] for entry in entries.values()], self._terms.dtype)
        columns = list(table.reshape(-1, self._terms.measure.n_stored).T)
        nats = np.array([entry[-2] for entry in entries.values()], np.float64)
        return DeclaredSearchAnswers(self._terms, codes, reruns, columns, nats, numbers, len(codes))

    @property
    def best(self) -> DeclaredSearchAnswer | None:
        """The answer with the lowest high, the first of equals; None before the first query.

        The highest low, where a larger metric is better.  With probability 1 - delta the best
        population value among all models that were queried is at least as good as that limit.
        """
        answers = self.answers
        return answers.best if len(answers) else None

    def report(self) -> Report:
        """Return the result so far: a sentence to paste, a table, JSON, a picture.

        ValueError if nothing was queried yet.
        """
        return self.report_on(self.answers, n_queries=self.n_queries)

    def report_on(
        self,
        answers: DeclaredSearchAnswers,
        *,
        n_models: int | None = None,
        n_queries: int | None = None,
        name_of_best: str | None = None,
    ) -> Report:
        """Return the report on answers of this search; ValueError if there are none.

        They are, or are the best of, `n_models` models, by default as many as the search has
        counted, in `n_queries` queries.  `name_of_best` is what the sentence calls the best.
        """
        from radabound_fast.guards.report import Report

        if not len(answers):
            raise ValueError(
                "there is nothing to report: no model was asked about by this search; answers of "
                "its copies, as in other processes, stay with them: DeclaredSearch.open(path, ...) "
                "has those of all"
            )
        measure = answers.terms.measure
        return Report(
            metric=measure.name,
            n_samples=self.n_samples,
            n_models=answers.n_answered if n_models is None else n_models,
            n_queries=n_queries,
            space_size=self.size,
            delta=self.delta,
            guarantee=self.guarantee,
            answers=answers,
            baseline=measure.baseline_value(answers.stored),
            n_folds=self.n_folds,
            name_of_best=name_of_best,
        )

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
        """Return how much better the first of two models of the space is, chosen however you like.

        A `Comparison`, of which docs/how-to/compare-models.md has examples.

        Parameters
        ----------
        y_pred_a, y_pred_b : array_like, shape (n_samples,)
            Predictions of each, for a search made on labels.  They are needed again, since a search
            stores counts and limits alone.
        key_a, key_b, rerun_a, rerun_b : object, int
            As in `query`.

        Raises
        ------
        TypeError, ValueError
            The metric is not a mean, both are one model, or as in `query`; nothing has changed
            then.

        Notes
        -----
        Both are queried, if they were not yet.  The limits of all comparisons hold at once, with
        probability 1 - delta: an event of their own, so that answers and comparisons hold together
        with probability 1 - 2 delta (and with ROC bands as well, 1 - 3 delta).  Each pays for both
        keys, two-sided ln 2 less, since a pair then has no order (Result 25 of
        docs/explanation/theory.md).  They are the narrower, the fewer the rows on which the models
        differ.
        """
        truth = self._task.truth
        if truth is None:
            raise TypeError("compare needs a search that was made on labels")
        if self.n_folds is not None:
            raise ValueError("compare needs a search without n_folds")
        if self._holdout.metric not in MEANS or truth.weighting is not None:
            raise ValueError(
                f"compare is of means, {', '.join(MEANS)}, without weights and groups; this "
                f"holdout's metric is {self._holdout.metric!r}"
            )
        rows, queries, prices = [], [], []
        models = ("a", y_pred_a, key_a, rerun_a), ("b", y_pred_b, key_b, rerun_b)
        for which, y_pred, key, rerun in models:
            with read_as(**{name: f"{name}_{which}" for name in ("y_pred", "key", "rerun")}):
                rows.append(truth.read(y_pred, 1))
                query, price = self._task.find(key, rerun)
            queries.append(query)
            prices.append(price)
        if queries[0] == queries[1]:
            raise ValueError(f"key_a and key_b must be two models, got {quoted(key_a)} twice")
        (codes, reruns), nats = zip(*queries, strict=True), np.array(prices)
        both = np.concatenate(rows)
        measured = self._task.measured(both, nats)
        answers = self._many(KeyedRows(list(codes), np.array(reruns, np.int64), nats, measured))
        paid = log((1 + self.two_sided) / self.delta) + float(nats.sum())
        # both sides of a pair are those of the pair the other way round: of two ordered pairs one
        # is paid for
        paid -= log(2) if self.two_sided else 0.0
        if truth.row.name in COUNTED:
            gain, low, high = gain_in_errors(both[1], both[0], self.n_samples, paid)
        else:
            losses, others = truth.row.summary(truth, both)
            gain, low, high = truth.gain(others, losses, paid)
        if self._rounded is not None:
            # the gain follows from the values, so that it tells no more than they do
            value, other = answers.values
            gain = self._rounded.of(value - other if self.greater_is_better else other - value)
            low, high = min(self._rounded.below(low), gain), max(self._rounded.above(high), gain)
        return Comparison(gain, low, high if self.two_sided else self._terms.most_gain, paid)

    @sealed
    def roc_band(self, y_score: Any, *, key: Any, rerun: int = 1) -> RocBand:
        """Return the ROC curve of a model, and a band for the population's: a `RocBand`.

        It holds at all thresholds at once, so that one may be tuned on the holdout for nothing.

        Parameters
        ----------
        y_score : array_like, shape (n_samples,)
            Scores, as `query` takes them, with `key` and `rerun`.  The key is queried, if it was
            not yet.

        Raises
        ------
        TypeError, ValueError
            The metric is not "roc_auc", or as in `query`; nothing has changed then.

        Notes
        -----
        All bands hold at once with probability 1 - delta, an event of their own, as that of
        comparisons is (`compare`).  Result 26 of docs/explanation/theory.md.
        """
        truth = self._task.truth
        if truth is None or truth.row.name != "roc_auc":
            raise ValueError(f"roc_band needs metric='roc_auc', got {self._holdout.metric!r}")
        if self._rounded is not None:
            raise ValueError(
                f"roc_band needs release='interval', got {self.release!r}: a curve tells more than "
                "a rounded score"
            )
        with read_as(y_pred="y_score"):
            answer = self.query(y_score, key=key, rerun=rerun)
        nats = log(2 / self.delta) + answer.nats
        return roc_band(truth, truth.read(y_score, 1)[0], nats)

    @classmethod
    @sealed
    def open(
        cls,
        path: Path,
        judged: Any = None,
        space: Any = None,
        *,
        delta: float | None = None,
        baseline: Any = None,
        allow_reruns: bool = False,
        two_sided: bool = True,
        n_folds: int | None = None,
        release: Release = "interval",
        holdout_id: str | None = None,
        durability: Durability = "power",
    ) -> Self:
        """Open the search whose queries are in a database, made now if there is none.

        Any number of processes and threads on one machine may open it: each sees the `answers` of
        all, and a key that one queried with other predictions is an error for every other.  The
        file is open for the length of a query, so that a copy, in another process too, writes to
        the same.

        Parameters
        ----------
        path, holdout_id, durability
            As for `RadaBound.open`, and its errors.
        judged : array_like, Holdout, int or Losses, optional
            As for the constructor.  The database holds the metric, its options, how many labels
            each class has, a salted hash of the labels and keyed hashes of baseline, weights and
            groups, and opens only for these.  Labels without a metric are measured as the database
            says.  May be left out where the database exists: a search on labels has its answers and
            its report without them, and takes no query.
        space, delta, allow_reruns, two_sided, n_folds, release
            As for the constructor; they must be those that the database was made with.  Without
            space and delta all are those of the database, which must exist; a space that only its
            own code can make has to be passed each time, and so has `baseline`.
        """
        return cls._open(locals())

    def _description(self) -> Description:
        return {
            "kind": self.kind,
            "parameters": self.parameters,
            "secret": self._task.secret.hex(),
            "metric": self._terms.measure.describe(),
        }

    @classmethod
    def _of_file(cls, stored: Description, opening: Opening) -> Self:
        parameters = dict(stored["parameters"])
        n_samples, arguments = parameters.pop("n_samples"), opening.arguments
        if opening.has_needed:
            opening.apart()  # raises where there is nothing to judge
        else:
            arguments = parameters | {"baseline": arguments["baseline"]}
            arguments["space"] = from_description(arguments["space"])
            arguments["release"] = release_from(arguments["release"])
        to_read = opening.holdout is None  # a search that was made on labels, without them
        release = "interval" if to_read else arguments["release"]
        search = cls(
            opening.as_stored(stored["metric"], n_samples), **arguments | {"release": release}
        )
        secret = bytes.fromhex(stored["secret"])
        vars(search)["release"] = arguments["release"]  # which losses, to read with, have none of
        search._set_task(search._task.truth, secret, stored["metric"] if to_read else None)
        check_same(opening.name, search._description(), stored)
        return search

    @property
    def parameters(self) -> dict[str, Any]:
        """The search's parameters as JSON values."""
        import json  # which many queries need not

        space = json.loads(json.dumps(self.space.describe(), allow_nan=False))
        names = ("delta", "allow_reruns", "two_sided", "n_folds")
        own = {name: getattr(self, name) for name in names} | {"release": described(self.release)}
        return {"n_samples": self.n_samples, "space": space} | own

    def outlook(self) -> Outlook:
        """Return in words what is left, for people."""
        # with n_best a key that came before is counted again
        if self.size is None or self.allow_reruns or self._best is not None:
            return Outlook("no limit: every configuration may be asked about", None)
        left = self.size - self.n_answered
        text = f"{left:,} of {counted(self.size, 'configuration')} were not asked about; no halt"
        return Outlook(text, left / self.size)

    def intervals_of(
        self, answers: Sequence[DeclaredSearchAnswer]
    ) -> Iterable[tuple[float, float, float]]:
        """Return low, high and half-width of answers: many cost little more than one."""
        if len(answers) <= _FEW:
            return super().intervals_of(answers)
        stored = [answer.stored for answer in answers]
        table = np.array([row[:-1] for row in stored])
        lows, highs = self._terms.intervals(table, np.array([row[-1] for row in stored]))
        widths = self._terms.half_width(self._terms.measure.values(table), lows, highs)
        return zip(lows.tolist(), highs.tolist(), np.asarray(widths).tolist(), strict=True)

    def __getstate__(self) -> dict[str, Any]:
        # a copy goes its own way
        own = {"_queries": self._queries.copy(), "_last_reruns": dict(self._last_reruns)}
        return vars(self) | own | {"_best": copy(self._best)}

    def __repr__(self) -> str:
        usual: dict[str, Any] = {"allow_reruns": False, "two_sided": True, "n_folds": None}
        usual |= {"release": "interval", "n_best": None}
        own = {name: getattr(self, name) for name in usual}
        options = "".join(f", {name}={one}" for name, one in own.items() if one != usual[name])
        return (
            f"DeclaredSearch({self.holdout!r}, {self.space!r}, delta={self.delta!r}{options}, "
            f"n_answered={self.n_answered})"
        )

    def _as_stored(self, values: Iterable[NDArray[np.int64]]) -> list[NDArray[Any]]:
        """The columns that a `QueryTable` has of queries, as they were added."""
        *columns, nats, fingerprints = values
        columns = [column.view(self._terms.dtype) for column in columns]
        return [*columns, nats.view(np.float64), fingerprints.view(np.uint64)]

    def _next(self, y_pred: Any, key: Any) -> DeclaredSearchAnswer:
        """Query the first training of a key that nobody has queried, however many ask at once."""
        if self._best is not None:
            raise ValueError("rerun must be a number in a search with n_best, got 'next'")
        code, _ = self.space.find(key)
        rerun = self._last_reruns.get(code, 0)
        while True:
            rerun = rerun + 1 if self._record is None else self._record.first_free_rerun(code)
            query, nats = self._task.find(key, rerun)
            rows = self._task.read(y_pred, 1, np.array([nats]))
            if self._record is None:
                self._last_reruns[code] = rerun
            keyed = KeyedRows([code], np.array([rerun]), np.array([nats]), rows)
            n_answered, numbers, _ = self._store(keyed, keyed.values)
            if numbers is None:
                return self._noted(query, (*rows.stored_of(0), nats), n_answered)

    def _noted(self, query: Query, stored: Stored, n_answered: int) -> DeclaredSearchAnswer:
        answer = DeclaredSearchAnswer(self._terms, query, stored, n_answered)
        if self._logs:
            key = f", key {shown_key(answer.key)}"
            value = answer.value if self.space.shows is None else None
            note_answer(self.kind, n_answered, value, key)
        return answer

    def _many(self, keyed: KeyedRows) -> DeclaredSearchAnswers:
        if len(keyed.codes) != len(keyed.rows):
            raise not_one_a_row(len(keyed.codes), len(keyed.rows))
        n_answered, numbers = self._add(keyed)
        if self._logs:
            note_answers(self.kind, len(keyed.rows), n_answered)
        return self._block(keyed, numbers, n_answered)

    def _block(
        self, keyed: KeyedRows, numbers: NDArray[np.int64] | None, n_answered: int
    ) -> DeclaredSearchAnswers:
        codes, reruns, nats, rows = keyed
        return DeclaredSearchAnswers(
            self._terms, codes, reruns, rows.columns, nats, numbers, n_answered
        )

    def _add(self, keyed: KeyedRows) -> tuple[int, NDArray[np.int64] | None]:
        """Add queries, all or none: how many there are then, and after each; None: all are new."""
        codes, reruns, _, rows = keyed
        if self._best is not None:
            return self._best.add([self._block(keyed, None, len(rows))]), None
        values = keyed.values
        while True:
            n_answered, numbers, odd = self._store(keyed, values)
            if not odd:
                return n_answered, numbers
            for row, before in odd.items():
                self._check_same((codes[row], int(reruns[row])), before, rows, row)
            # as they were queried before
            values = [np.array(column) for column in values]
            for column, before in zip(values, zip(*odd.values(), strict=True), strict=True):
                column[list(odd)] = before

    def _store(
        self, keyed: KeyedRows, values: list[NDArray[Any]]
    ) -> tuple[int, NDArray[np.int64] | None, dict[int, Entry]]:
        """Add queries with these values: how many there are then, and after each, or None.

        Nothing is added if some are there, or come earlier, with the other entries returned.
        """
        codes, reruns, _, _ = keyed
        if self._record is None:
            n_answered, numbers, odd = self._queries.add(
                self.space.pack_codes(codes), reruns, values
            )
            if odd is None:
                return n_answered, numbers, {}
            entries = _entries(self._as_stored(odd[1]))
            return n_answered, numbers, dict(zip(odd[0].tolist(), entries, strict=True))
        queries = list(zip(listed(codes), reruns.tolist(), strict=True))
        n_answered, after_each, differing = self._record.add(queries, _entries(values))
        return n_answered, None if after_each is None else np.array(after_each), differing

    def _check_same(self, query: Query, before: Entry, rows: Rows, row: int) -> None:
        """ValueError unless the row has the losses that were asked about before."""
        if rows.agrees(row, before, self._task.secret):
            return
        code, rerun = query
        again = (
            "a second training with other coins is another rerun"
            if self.allow_reruns
            else "if its training tosses coins, make the search with allow_reruns=True, pass rerun="
        )
        error = ValueError(
            f"key must stand for one model, got {quoted(self.space.key_of(code))} (rerun {rerun}) "
            f"a second time with other {rows.of}: {again}"
        )
        if self.space.shows is None:
            first = DeclaredSearchAnswer(self._terms, query, before[:-1], self.n_answered)
            error.answer = first  # type: ignore[attr-defined]
        raise error


def _entries(columns: list[NDArray[Any]]) -> list[Entry]:
    return list(zip(*(column.tolist() for column in columns), strict=True))
