"""The part of a `DeclaredSearch` that has no state: keys are found, and rows are read."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import log
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from radabound_fast._checks import check_count, counted, read_as, shown
from radabound_fast._kernels.rows import PackedLosses
from radabound_fast._kernels.support import sealed
from radabound_fast.guards.declared.answers import Floats, Terms, codes_at, joined_codes
from radabound_fast.guards.declared.rows import LossRows, Rows
from radabound_fast.metrics import COUNTED, MeanLoss, Measure, Truth, fingerprints_of, read_counts
from radabound_fast.rows.partial import Ids, Partial, Task, in_threads, listed, stacked
from radabound_fast.spaces.messages import quoted
from radabound_fast.spaces.space import Codes

if TYPE_CHECKING:
    from radabound_fast.store.record import Query

_BLOCK_KEYS = 1 << 20  # keys that are found at a time


@dataclass(frozen=True, repr=False)
class SearchTask(Task):
    """What a worker needs to count rows for a `DeclaredSearch`; ``search.task()`` returns it.

    It can be pickled.  **It holds the labels** of a `Holdout`, baseline, weights and groups, and
    the space: it is for workers that are trusted with them (docs/explanation/trust.md).  The task
    of a search of losses has no labels.
    """

    terms: Terms  # what the answers of the search share: space, metric, delta and sides
    truth: Truth | None  # the labels as the metric wants them, with baseline and weights
    secret: bytes  # the key of the fingerprints
    allow_reruns: bool
    with_fingerprints: bool  # whether the search compares rows of a key that comes again

    @sealed
    def reduce(
        self, y_pred: Any, *, keys: Any, reruns: Any = None, start: int = 0, n_threads: int = 1
    ) -> Partial:
        """Count rows, or some samples of them.

        Parameters
        ----------
        y_pred : array_like, shape (k, n), or PackedLosses
            Rows as the search's `query_many` takes them.
        keys : sequence or ndarray, length k
            The model of each row, in the space.
        reruns : array_like of int, shape (k,), optional
            As in `query_many`.
        start : int, default 0
            The sample that the first column is, a multiple of 64; n must be one too, unless they
            are the last.  All samples at once are needed where a metric's limits take whole rows:
            AUC, means of real numbers, weights and groups.
        n_threads : int, default 1
            Threads to use at most: one for about every millisecond of work.

        Returns
        -------
        Partial
            8 bytes a row for each number that the search stores, and 8 for its key.

        Raises
        ------
        TypeError, ValueError
            A key is not in the space, or not such rows: places in the message are places in
            `y_pred`.
        """
        codes, numbers, nats = self.find_many(keys, reruns)
        paid = np.broadcast_to(nats, len(codes))
        blocks = in_threads(
            lambda rows, part: self._counted(rows, paid[part], start), y_pred, n_threads
        )
        return self._with_keys(stacked(blocks), codes, numbers, nats)

    @sealed
    def from_counts(self, counts: Any, *, keys: Any, reruns: Any = None) -> Partial:
        """Return the partial of models whose errors another program has counted.

        Parameters
        ----------
        counts : array_like of int, shape (k,)
            How many of each model's predictions are wrong, or of its losses are 1.
        keys, reruns
            As in `reduce`.

        Raises
        ------
        TypeError, ValueError
            The metric is none of error, accuracy and mean loss, or the search has a baseline,
            weights or groups; a count cannot be; or a key is not in the space.
        """
        measure = self.terms.measure
        is_counted = isinstance(measure, MeanLoss) or measure.name in COUNTED
        if not is_counted or measure.is_paired or measure.is_weighted:
            raise TypeError(
                f"counts are enough for error, accuracy and mean loss, without baseline, weights "
                f"and groups; reduce the predictions for {measure.name!r}"
            )
        codes, numbers, nats = self.find_many(keys, reruns)
        with read_as(count="counts"):
            totals = np.atleast_1d(read_counts(counts, self.n_samples))[:, np.newaxis]
        if len(totals) == len(nats) and isinstance(measure, Measure):
            totals = measure.released(totals, self.terms.nats + nats)
        return self._with_keys(self._partial((0, self.n_samples), totals), codes, numbers, nats)

    def _counted(self, y_pred: Any, nats: Floats, start: int) -> Partial:
        measure, task, span = self.terms.measure, self, (0, self.n_samples)
        n = _n_columns(y_pred, self.n_samples)
        if start or n != self.n_samples:
            span = self.span(start, n)
            if measure.stores == "limits":
                raise ValueError(
                    f"start must be 0, with all {self.n_samples} samples, for the metric "
                    f"{measure.name!r}: its limits take whole rows"
                )
            truth = None if self.truth is None else self.truth.part(*span)
            task = replace(self, n_samples=n, truth=truth, with_fingerprints=False)
        rows = task.read(y_pred, 2, nats)
        shift = rows.shift if isinstance(rows, LossRows) else 0
        partial = self._partial(span, rows.stored, shift)
        return replace(partial, fingerprints=rows.fingerprints)

    def _partial(self, span: tuple[int, int], totals: NDArray[Any], shift: int = 0) -> Partial:
        no_sums = np.zeros((len(totals), 0), np.int32)
        binary = shift == 0 and totals.dtype.kind != "f"
        return Partial(self.identity, self.n_samples, (span,), totals, no_sums, shift, binary)

    def _with_keys(
        self, partial: Partial, codes: Codes, reruns: NDArray[np.int64], nats: Floats
    ) -> Partial:
        if len(codes) != len(partial):
            raise not_one_a_row(len(codes), len(partial))
        if nats.strides == (0,) or len(nats) and (nats == nats[0]).all():
            nats = nats[:1]
        return replace(partial, ids=self.ids_of(codes, reruns), nats=nats.copy())

    @property
    def identity(self) -> bytes:
        """A hash of what a search shares with its copies, and with all who open its database."""
        import hashlib  # here: it loads megabytes, and most searches have no workers

        return hashlib.blake2b(self.secret, digest_size=16).digest()

    def find(self, key: Any, rerun: Any) -> tuple[Query, float]:
        """The code of a key and the rerun, and their nats."""
        code, nats = self.terms.space.find(key)
        nats = float(nats)
        if not self.allow_reruns:
            if rerun != 1:
                raise ValueError(
                    f"rerun must be 1 unless the search has allow_reruns=True, got {shown(rerun)}"
                )
            return (code, 1), nats
        rerun = check_count(rerun=rerun, at_most=2**63 - 1)
        return (code, rerun), nats + log(rerun) + log(rerun + 1)

    def find_many(self, keys: Any, reruns: Any) -> tuple[Codes, NDArray[np.int64], Floats]:
        """Codes, reruns and nats of keys."""
        for name, values in (("keys", keys), ("reruns", [] if reruns is None else reruns)):
            if not np.iterable(values):
                raise TypeError(f"{name} must be a sequence, one a row, got {shown(values)}")
        if reruns is None and not self.allow_reruns:
            codes, nats = self.terms.space.find_many(keys)
            return codes, np.broadcast_to(np.int64(1), len(codes)), nats
        keys = list(keys)
        which = [1] * len(keys) if reruns is None else list(reruns)
        if len(which) != len(keys):
            raise ValueError(f"reruns must be one a key, {len(keys)}, got {len(which)}")
        queries = [self.find(key, rerun) for key, rerun in zip(keys, which, strict=True)]
        return (
            [code for (code, _), _ in queries],
            np.array([rerun for (_, rerun), _ in queries], np.int64),
            np.array([nats for _, nats in queries], np.float64),
        )

    def read(self, y_pred: Any, ndim: int, nats: Floats) -> Rows:
        """Rows of predictions or losses, as many as nats, and what is stored of them."""
        if self.truth is None:
            if isinstance(self.terms.measure, Measure):
                raise TypeError("a query needs the labels: open the search with them")
            return LossRows.read(y_pred, self.n_samples, ndim, self._fingerprint_key)
        rows = self.truth.read(y_pred, ndim)
        if len(rows) != len(nats):
            raise not_one_a_row(len(nats), len(rows))
        return self.measured(rows, nats)

    def measured(self, rows: NDArray[Any], nats: Floats) -> Rows:
        """What is stored of predictions that were read."""
        truth, measure, key = self.truth, self.terms.measure, self._fingerprint_key
        assert truth is not None and isinstance(measure, Measure)
        paid = self.terms.nats + nats
        if truth.counts_errors:
            counts, hashes = truth.stored_errors(rows, key)
            return Rows(measure.released(counts, paid), hashes)
        stored = truth.stored(measure, rows, paid)
        return Rows(stored, None if key is None else fingerprints_of(rows, key))

    @property
    def _fingerprint_key(self) -> bytes | None:
        return self.secret if self.with_fingerprints else None

    def ids_of(self, codes: Codes, reruns: NDArray[np.int64]) -> Ids:
        """What tells rows apart: codes, with `allow_reruns` of key and rerun."""
        packed = self.terms.space.pack_codes(codes)
        if self.allow_reruns:
            return list(zip(listed(packed), reruns.tolist(), strict=True))
        if isinstance(packed, list) and packed and set(map(type, packed)) == {int}:
            with contextlib.suppress(OverflowError):
                return np.array(packed, np.int64)
        return packed

    def rows_of(
        self, partials: Sequence[Partial], places: Sequence[NDArray[np.int64]] = ()
    ) -> KeyedRows:
        """The rows of whole partials, with their keys; in the order of their places, if given."""
        measure = self.terms.measure
        is_loss = isinstance(measure, MeanLoss)
        order = np.concatenate(places).argsort() if places else None

        def joined(nothing: NDArray[Any], column: Callable[[Partial], Any]) -> NDArray[Any]:
            arrays = [column(one) for one in partials] or [nothing]
            whole: NDArray[Any] = arrays[0] if len(arrays) == 1 else np.concatenate(arrays)
            return whole if order is None else whole[order]

        def stored(one: Partial) -> Any:
            shifts = np.full(len(one), one.unit_shift)
            return np.column_stack([one.totals, shifts]) if is_loss else one.totals

        def hashes(one: Partial) -> Any:
            return np.zeros(len(one), np.uint64) if one.fingerprints is None else one.fingerprints

        rows = Rows(
            joined(np.empty((0, measure.n_stored), self.terms.dtype), stored),
            joined(np.empty(0, np.uint64), hashes),
            "losses" if is_loss else "predictions",
        )
        nats = joined(np.empty(0), lambda one: np.broadcast_to(one.nats, len(one)))
        codes: Any = joined_codes([partial.ids for partial in partials])
        if order is not None:
            codes = codes_at(codes, order)
        reruns = np.broadcast_to(np.int64(1), len(rows))
        if self.allow_reruns:
            reruns = np.array([rerun for _, rerun in codes], np.int64)
            codes = [code for code, _ in codes]
        return KeyedRows(self.terms.space.unpack_codes(codes), reruns, nats, rows)


class KeyedRows(NamedTuple):
    """Rows with their keys."""

    codes: Codes
    reruns: NDArray[np.int64]
    nats: Floats
    rows: Rows

    @property
    def values(self) -> list[NDArray[Any]]:
        """What a search stores of each, a column each."""
        return [*self.rows.columns, self.nats, self.rows.fingerprints]


class Expected:
    """The keys that partials are to bring, each once; a range of keys is never written out.

    They are those of `SearchTask.reduce`; a key that comes twice is a ValueError.
    """

    def __init__(self, task: SearchTask, keys: Any, reruns: Any) -> None:
        if not np.iterable(keys):
            raise TypeError(f"keys must be a sequence, one a row, got {shown(keys)}")
        self._keys = keys if isinstance(keys, (range, np.ndarray)) else list(keys)
        n = len(self._keys)
        self._came = np.zeros(n, np.bool_)
        self._ids = _range_of(task, self._keys, reruns)
        if self._ids is None:
            ids = listed(_ids_of(task, self._keys, reruns))
            self._places = {one: place for place, one in enumerate(ids)}
            if len(self._places) < n:
                twice = next(place for place, one in enumerate(ids) if self._places[one] != place)
                raise ValueError(f"keys must be different, got {self._name(twice)} twice")

    def of(self, partials: Iterator[Partial], places: list[NDArray[np.int64]]) -> Iterator[Partial]:
        """Each partial, after its rows' places among the keys were appended; at last all came."""
        for number, partial in enumerate(partials):
            places.append(self._places_of(number, partial))
            yield partial
        if not self._came.all():
            lacking = self._came.size - int(self._came.sum())
            raise ValueError(
                f"partials must have every key, {counted(lacking, 'row')} of "
                f"{len(self._keys):,} missing: {self._name(self._came.argmin())} is the first"
            )

    def _places_of(self, number: int, partial: Partial) -> NDArray[np.int64]:
        """Places of a partial's rows; ValueError if a row has none, or came before."""
        places = self._find(partial.ids)
        if (places < 0).any():
            code = listed(partial.ids)[int(places.argmin())]
            raise ValueError(
                f"keys must have every row, partial {number} has another: {quoted(code)}"
            )
        ordered = np.sort(places)
        twice = np.append(places[self._came[places]], ordered[1:][ordered[1:] == ordered[:-1]])
        if len(twice):
            raise ValueError(
                f"each key must come once, got {self._name(twice[0])} a second time in partial "
                f"{number}"
            )
        self._came[places] = True
        return places

    def _find(self, ids: Ids) -> NDArray[np.int64]:
        """Places of ids among those of the keys; -1: none."""
        known = self._ids
        if known is None:
            return np.array([self._places.get(one, -1) for one in listed(ids)], np.int64)
        if isinstance(ids, list):  # of none, or of a number that is no int64
            return np.array([known.index(one) if one in known else -1 for one in ids], np.int64)
        return np.where((ids >= known.start) & (ids < known.stop), ids - known.start, -1)

    def _name(self, place: Any) -> str:
        return quoted(self._keys[int(place)])


def _ids_of(task: SearchTask, keys: Any, reruns: Any = None) -> Ids:
    if isinstance(keys, range):
        keys = np.arange(keys.start, keys.stop, keys.step)
    codes, numbers, _ = task.find_many(keys, reruns)
    return task.ids_of(codes, numbers)


def _range_of(task: SearchTask, keys: Any, reruns: Any) -> range | None:
    """The ids of a range of keys, if they are a range too: each number one more than the last."""
    n = len(keys)
    if not isinstance(keys, range) or not n or reruns is not None or task.allow_reruns:
        return None
    first = listed(_ids_of(task, keys[:1]))[0]
    known = range(first, first + n)
    edges = pairwise([*range(0, n, _BLOCK_KEYS), n])
    same = known.stop < 2**63 and all(
        np.array_equal(_ids_of(task, keys[a:b]), np.arange(first + a, first + b)) for a, b in edges
    )
    return known if same else None


def _n_columns(y_pred: Any, n_samples: int) -> int:
    """Samples that rows have; n_samples where they are no such rows, which `read` then says."""
    if isinstance(y_pred, PackedLosses):
        return y_pred.n_samples
    with contextlib.suppress(ValueError):  # it is ragged
        shape = np.shape(y_pred)
        n_samples = shape[1] if len(shape) > 1 else n_samples
    return n_samples


def not_one_a_row(n_keys: int, n_rows: int) -> ValueError:
    return ValueError(f"keys must be one a row, {n_rows}, got {n_keys}")
