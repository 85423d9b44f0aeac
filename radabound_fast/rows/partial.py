"""Rows that are counted anywhere, and taken in by the guard that they are for::

    task = guard.task()                            # small; send it to the workers
    partial = task.reduce(losses)                  # there: totals, and extremes of signed sums
    answers = guard.take([partial, ...])           # here: bit for bit query_many of all the rows

Partials of parts of the samples add up, in any order.
"""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import pairwise, starmap
from typing import Any, Literal, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from radabound_fast._checks import check_count, check_integer, check_n_samples, counted
from radabound_fast._kernels.guard import extremes_of_rows
from radabound_fast._kernels.rows import (
    UNIT_SHIFT,
    PackedLosses,
    SignStore,
    pack_rows,
    signed_sums_of_rows,
)
from radabound_fast._kernels.support import sealed
from radabound_fast.rows.labels import Labels
from radabound_fast.rows.packing import as_values, as_words
from radabound_fast.rows.signs import MAX_CELLS, WORD_BITS, check_memory

T = TypeVar("T")
Ids = Any  # ndarray of int64, or a list
Span = tuple[int, int]

# the signs of a part of the samples are stored by a worker if they are no more than this
MOST_STORED_BYTES = 1 << 26
# what a thread reads at least: a millisecond or so
THREAD_BYTES = 1 << 24

_MAGIC = b"\x89RADP\r\n\x1a"
_VERSION = 1
_LENGTH = struct.Struct("<I")
_ID_BYTES = 16
_DIGEST_BYTES = 32
# what a head has beside them: fields as they are, and the arrays that it may have, by type
_NUMBERS = ("n_samples", "spans", "unit_shift", "binary")
_ARRAYS = {
    "totals": ("<i8", "<f8"),
    "sums": ("<i4", "<i8"),
    "nats": ("<f8",),
    "fingerprints": ("<u8",),
    "ids": ("<i8",),
}


@dataclass(frozen=True)
class Task:
    """What a worker needs to count rows for a guard: the part that all tasks share.

    Neither seed nor labels are in a repr, so that it may be logged.
    """

    n_samples: int
    labels: Labels | None = field(repr=False)  # of a Holdout: `reduce` takes predictions

    @property
    def identity(self) -> bytes:
        """A hash of what partials have in common that one guard takes."""
        raise NotImplementedError

    @sealed
    def pack(self, y_pred: Any, *, start: int = 0) -> PackedLosses:
        """Pack where predictions are wrong: an eighth of the memory, and no predictions any more.

        `y_pred`, shape (k, n), and `start` are those of `reduce`.
        """
        if self.labels is None:
            raise TypeError("only the task of a guard that has labels packs predictions")
        shape = np.shape(y_pred)
        start, stop = self.span(start, shape[1] if len(shape) == 2 else 0)
        whole = stop - start == self.n_samples
        labels = self.labels if whole else self.labels[start:stop]
        return PackedLosses(pack_rows(*labels.match(y_pred, ndim=2)), stop - start)

    def span(self, start: int, n: int) -> Span:
        """Return the samples that n columns from `start` on are, or say why there are none such."""
        start = check_integer(start=start)
        stop = start + n
        if start < 0 or start % WORD_BITS:
            raise ValueError(f"start must be a multiple of {WORD_BITS}, got {start}")
        if n < 1 or stop > self.n_samples or stop < self.n_samples and stop % WORD_BITS:
            raise ValueError(
                f"samples must be up to the last of {self.n_samples}, or a multiple of "
                f"{WORD_BITS} of them, got {counted(n, 'sample')} from {start} on"
            )
        return start, stop


@dataclass(frozen=True)
class SignedTask(Task):
    """What a worker needs to count losses for a guard that counts signed sums.

    ``guard.task()`` makes one.  Small, and can be pickled.  **It holds the seed of the signs**, and
    that of a `Holdout` the labels: it is for workers that are trusted with both
    (docs/explanation/trust.md).
    """

    seed: int = field(repr=False)  # of the signs
    n_vectors: int
    signs: Literal["stored", "generated"] = field(repr=False)  # "stored": a worker may keep them

    @sealed
    def reduce(
        self, y_pred: Any, *, ids: Any = None, start: int = 0, n_threads: int = 1
    ) -> Partial:
        """Count rows, or some samples of them.

        Parameters
        ----------
        y_pred : array_like, shape (k, n), or PackedLosses
            Rows as the guard's `query_many` takes them: losses in [0, 1], or predictions where the
            guard was made on labels.  `PackedLosses` are losses of 0 and 1.
        ids : array_like of int, shape (k,), optional
            The place of each row in the order that was fixed beforehand, from 0 on: where rows or
            partials may arrive in another order.
        start : int, default 0
            The sample that the first column is, a multiple of 64.  The last one must be the
            guard's last, or n a multiple of 64.
        n_threads : int, default 1
            Threads to use at most: one for about every millisecond of work.

        Returns
        -------
        Partial

        Raises
        ------
        TypeError, ValueError
            Not such rows: the places in the message are places in `y_pred`.
        """

        def count(rows: Any, _: slice) -> Partial:
            packed = isinstance(rows, PackedLosses)
            if self.labels is not None and not packed:
                rows, packed = self.pack(rows, start=start), True
            values = as_words(rows.words, rows.n_samples, 2) if packed else as_values(rows, ndim=2)
            span = self.span(start, rows.n_samples if packed else values.shape[1])
            store = _store(self.seed, self.n_samples, self.n_vectors, self.signs, *span)
            kernel = extremes_of_rows if span == (0, self.n_samples) else signed_sums_of_rows
            sums, totals, shift = kernel(store, values, packed=packed)
            binary = packed or values.dtype.kind != "f"
            return Partial(self.identity, self.n_samples, (span,), totals, sums, shift, binary)

        partial = stacked(in_threads(count, y_pred, n_threads))
        return partial if ids is None else replace(partial, ids=_as_ids(ids, len(partial)))

    @property
    def identity(self) -> bytes:
        """A hash of seed and sizes: partials of other signs have another."""
        import hashlib  # here: it loads megabytes, and most guards have no workers

        signs = struct.pack("<QQQ", self.seed, self.n_samples, self.n_vectors)
        return hashlib.blake2b(signs, digest_size=_ID_BYTES).digest()


@lru_cache(maxsize=8)
def _store(
    seed: int, n_samples: int, n_vectors: int, signs: str, start: int, stop: int
) -> SignStore:
    """The signs of some samples: a worker counts many blocks under them."""
    n = stop - start
    stored = signs == "stored" and (n == n_samples or n * n_vectors // 8 <= MOST_STORED_BYTES)
    if stored:
        check_memory(n, n_vectors)
    return SignStore(seed, n, n_vectors, stored=stored, first_word=start // WORD_BITS)


def in_threads(count: Callable[[Any, slice], T], rows: Any, n_threads: int) -> list[T]:
    """Return what `count` makes of blocks of rows and their places, a thread each, in order.

    Arrays and packed losses are cut; anything else, and few rows, are one block.
    """
    n_blocks = check_count(n_threads=n_threads)
    words = rows.words if isinstance(rows, PackedLosses) else rows
    is_cut = isinstance(words, np.ndarray) and words.ndim > 1
    n_blocks = min(n_blocks, len(words), 1 + words.nbytes // THREAD_BYTES) if is_cut else 1
    if n_blocks > 1:
        from concurrent.futures import ThreadPoolExecutor

        edges = np.linspace(0, len(words), n_blocks + 1).astype(int).tolist()
        parts = list(starmap(slice, pairwise(edges)))
        # a value that does not fit is looked for again below, where its place is one in all rows
        with ThreadPoolExecutor(n_blocks) as pool, contextlib.suppress(TypeError, ValueError):
            return list(pool.map(count, [rows[part] for part in parts], parts))
    return [count(rows, slice(None))]


def _as_ids(ids: Any, n_rows: int) -> NDArray[np.int64]:
    array = np.asarray(ids)
    if array.ndim != 1 or array.dtype.kind not in "iu" and array.size:
        raise TypeError(f"ids must be integers, one a row, got {ids!r:.100}")
    if len(array) != n_rows:
        raise ValueError(f"ids must be one a row, {n_rows}, got {len(array)}")
    for end in (array.min(initial=0), array.max(initial=0)):
        if not 0 <= end < 2**63:
            raise ValueError(f"ids must be in [0, 2**63), got {end}")
    return array.astype(np.int64)


@dataclass(frozen=True, eq=False, repr=False)
class Partial:
    """What some rows come to at some samples: a few numbers a row, made by a task's `reduce`.

    ``a + b`` are the same rows at the samples of both, which must not overlap; so is `sum` of
    several.  Once all samples are there the partial `is_whole`, and the guard may `take` it in.  It
    can be pickled; `to_bytes` and `from_bytes` are for what outlives a program, and check what they
    read.  ``len(partial)`` is its number of rows, k.

    Attributes
    ----------
    identity : bytes
        A hash of what the guard's partials have in common.
    n_samples : int
        Of the guard.
    spans : tuple of (start, stop)
        The samples that are in it, in order.
    totals : ndarray of int64, shape (k,) or (k, c); or float64, shape (k, c)
        The sum of each row's losses at these samples.  For a `DeclaredSearch` its c numbers: sums
        of losses, or of errors in each class and in common with the baseline; or value and limits.
    sums : ndarray of int64 or int32, shape (k, n_vectors), or (2, n_vectors) if it is whole
        Signed sums; if it is whole their maxima, then their minima.  n_vectors is 0 for a
        `DeclaredSearch`.
    unit_shift : {0, 24}
        Totals and sums are in units of 2**-unit_shift.
    binary : bool
        Whether the losses are 0 or 1 by their type.
    ids : ndarray of int64, shape (k,), list or None
        What each row is: its place in the order fixed beforehand, or for a `DeclaredSearch` the
        code of its key in the space (with `allow_reruns`, of key and rerun).
    nats : ndarray of float64, shape (k,) or (1,), or None
        For a `DeclaredSearch`: the prices of the keys, or of each of them.
    fingerprints : ndarray of uint64, shape (k,), or None
        For a `DeclaredSearch` that stores all answers: keyed hashes of whole rows.
    """

    identity: bytes
    n_samples: int
    spans: tuple[Span, ...]
    totals: NDArray[Any]
    sums: NDArray[Any]
    unit_shift: int
    binary: bool
    ids: Ids = None
    nats: Any = None
    fingerprints: Any = None

    @property
    def is_whole(self) -> bool:
        """Whether all samples are in it."""
        return self.spans == ((0, self.n_samples),)

    @property
    def n_vectors(self) -> int:
        """The guard's number of sign vectors; 0 for a `DeclaredSearch`."""
        return int(self.sums.shape[1])

    def __len__(self) -> int:
        return len(self.totals)

    def __add__(self, other: object) -> Partial:
        if not isinstance(other, Partial):
            return NotImplemented
        if self.identity != other.identity:
            raise ValueError(
                "partials of guards with other signs, or of other searches, do not add up"
            )
        if len(self) != len(other):
            raise ValueError(f"partials of {len(self)} and of {len(other)} rows do not add up")
        spans = _joined(self.spans, other.spans)
        other = other._in_order_of(self.ids)
        shift = max(self.unit_shift, other.unit_shift)
        dtype = _dtype_of(spans, shift)
        sums = self._sums_in(dtype, shift) + other._sums_in(dtype, shift)
        return replace(
            self,
            spans=spans,
            totals=self._totals_in(shift) + other._totals_in(shift),
            sums=_extremes(sums) if spans == ((0, self.n_samples),) else sums,
            unit_shift=shift,
            binary=self.binary and other.binary,
            fingerprints=None,  # which are of whole rows
        )

    def __radd__(self, other: object) -> Partial:
        return self if other == 0 else NotImplemented  # where `sum` begins

    def _in_order_of(self, ids: Ids) -> Partial:
        """Return these rows in the order of ids, which must be theirs."""
        if (ids is None) != (self.ids is None):
            raise ValueError("partials with ids and without do not add up")
        if ids is None or np.array_equal(ids, self.ids):
            return self
        wanted, own = listed(ids), listed(self.ids)
        place_of = {one: place for place, one in enumerate(own)}
        lacking = next((one for one in wanted if one not in place_of), None)
        if lacking is not None or len(place_of) < len(own):
            why = f"one lacks the row {lacking!r:.100}" if lacking is not None else "a row is twice"
            raise ValueError(f"partials of other rows do not add up: {why}")
        rows = [place_of[one] for one in wanted]
        return replace(self, ids=ids, totals=self.totals[rows], sums=self.sums[rows])

    def _sums_in(self, dtype: Any, shift: int) -> NDArray[Any]:
        return self.sums.astype(dtype, copy=False) << (shift - self.unit_shift)

    def _totals_in(self, shift: int) -> NDArray[Any]:
        more = shift - self.unit_shift
        return self.totals << more if more else self.totals

    def to_bytes(self) -> bytes:
        """The partial in a format of its own, for `from_bytes` of this version or a later one.

        The magic ``89 52 41 44 50 0d 0a 1a``; the length of a head, uint32; the head, JSON; the
        arrays that it names with dtype and shape, one after the other; SHA-256 of everything
        before.  Numbers are little-endian.  The checksum finds accidents, not forgers.
        """
        import json  # here and below: most guards have no workers

        head: dict[str, Any] = {"version": _VERSION, "identity": self.identity.hex()}
        head |= {name: getattr(self, name) for name in _NUMBERS} | {"arrays": {}}
        body = b""
        for name in _ARRAYS:
            array = getattr(self, name)
            if isinstance(array, list):
                head["codes"] = array
            elif array is not None:
                little = array.astype(array.dtype.newbyteorder("<"), copy=False)
                head["arrays"][name] = [little.dtype.str, little.shape]
                body += little.tobytes()
        text = json.dumps(head, separators=(",", ":")).encode()
        content = _MAGIC + _LENGTH.pack(len(text)) + text + body
        return content + _digest(content)

    @classmethod
    def from_bytes(cls, blob: bytes) -> Self:
        """The partial that `to_bytes` wrote.

        TypeError: no bytes.  ValueError: something else, of a later version, cut short or altered;
        or numbers that no losses lead to.
        """
        import json

        try:
            blob = bytes(memoryview(blob))
        except TypeError:
            raise TypeError(f"blob must be bytes, got {type(blob).__name__}") from None
        if not blob.startswith(_MAGIC):
            raise ValueError("no partial: the first 8 bytes are not the magic")
        content, digest = blob[:-_DIGEST_BYTES], blob[-_DIGEST_BYTES:]
        if _digest(content) != digest:
            raise ValueError("partial is truncated or altered: its checksum does not match")
        # from here on only a forger can have been at work
        start = len(_MAGIC) + _LENGTH.size
        try:
            (length,) = _LENGTH.unpack_from(content, len(_MAGIC))
            head = json.loads(content[start : start + length])
            version = head["version"]
            if version == _VERSION:
                return cls._of(head, content[start + length :])
        except (struct.error, LookupError, TypeError, ValueError, ArithmeticError, AttributeError,
                RecursionError):  # fmt: skip
            raise ValueError("partial has numbers that no losses lead to") from None
        raise ValueError(f"partial is of format {version!r:.20}, this program reads {_VERSION}")

    @classmethod
    def _of(cls, head: dict[str, Any], body: bytes) -> Self:
        """The partial of a head and its arrays; one of several errors if there is none such."""
        arrays: dict[str, Any] = dict.fromkeys(_ARRAYS)
        place = 0
        for name, (dtype, shape) in head["arrays"].items():
            n = int(np.prod(shape, dtype=object))
            if dtype not in _ARRAYS[name] or min(shape) < 0:
                raise ValueError
            array = np.frombuffer(body, dtype, n, place) if n else np.empty(0, dtype)
            array = array.reshape(shape)
            arrays[name], place = array.astype(array.dtype.newbyteorder("=")), place + array.nbytes
        if "codes" in head:
            arrays["ids"] = [_as_code(code) for code in head["codes"]]
        spans = tuple((check_integer(a=a), check_integer(b=b)) for a, b in head["spans"])
        partial = cls(
            bytes.fromhex(head["identity"]),
            check_n_samples(head["n_samples"]),
            spans,
            unit_shift=check_integer(shift=head["unit_shift"]),
            binary=bool(head["binary"]),
            **arrays,
        )
        if place != len(body) or not partial._may_be():
            raise ValueError
        return partial

    def _may_be(self) -> bool:
        """Whether some losses might lead to it."""
        m, shift, k, n_vectors = self.n_samples, self.unit_shift, len(self), self.n_vectors
        last = -1
        for start, stop in self.spans:
            if not last < start < stop <= m or start % WORD_BITS or stop < m and stop % WORD_BITS:
                return False
            last = stop
        fits = (
            self.spans
            and shift in (0, UNIT_SHIFT)
            and m * max(n_vectors, 1) < MAX_CELLS >> shift
            and self.sums.shape == (2 if self.is_whole and n_vectors else k, n_vectors)
            and self.totals.ndim == (1 if n_vectors else 2)
            and all(one is None or len(one) == k for one in (self.ids, self.fingerprints))
            and (self.nats is None or self.nats.shape in ((1,), (k,)))
        )
        if not fits:
            return False
        if self.totals.dtype.kind == "f":
            return self.is_whole and n_vectors == 0
        if ((self.totals < 0) | (self.totals > _length(self.spans) << shift)).any():
            return False
        wide = self.sums.astype(np.int64)
        if n_vectors == 0 or not k:
            return not wide.any()
        largest = self.totals.max() if self.is_whole else self.totals[:, np.newaxis]
        good = (wide <= largest) & (wide >= -largest)
        return bool(good.all() and not (self.is_whole and (wide[0] < wide[1]).any()))

    def __repr__(self) -> str:
        # no total: it may be that of a query which is to be withheld
        rows = counted(len(self), "row")
        return f"Partial({rows} at {_length(self.spans)} of {self.n_samples} samples)"


def stacked(blocks: Sequence[Partial]) -> Partial:
    """Several partials of one task and one span, without ids, as one: their rows in order."""
    first = blocks[0]
    if len(blocks) == 1:
        return first
    shift = max(block.unit_shift for block in blocks)
    dtype = first.sums.dtype if first.is_whole else _dtype_of(first.spans, shift)
    sums = np.concatenate([block._sums_in(dtype, shift) for block in blocks])
    hashes = [block.fingerprints for block in blocks if block.fingerprints is not None]
    return replace(
        first,
        totals=np.concatenate([block._totals_in(shift) for block in blocks]),
        sums=_extremes(sums) if first.is_whole else sums,
        unit_shift=shift,
        fingerprints=np.concatenate(hashes) if hashes else None,
    )


def each_of(partials: Any, identity: bytes, whose: str) -> Iterator[Partial]:
    """Whole partials of one identity, one by one; `whose` says what one of another is of."""

    def checked(number: int, partial: Any) -> Partial:
        if not isinstance(partial, Partial):
            raise TypeError(f"partial {number} must be a Partial, got {type(partial).__name__}")
        if partial.identity != identity:
            raise ValueError(f"partial {number} is of {whose}")
        if not partial.is_whole:
            raise ValueError(f"partial {number} must have all samples, got {partial!r}")
        return partial

    if not np.iterable(partials):
        kind = type(partials).__name__
        raise TypeError(f"partials must be an iterable of Partial, got {kind}")
    return (checked(number, partial) for number, partial in enumerate(partials))


def in_order(each: Iterator[Partial], first: int) -> Iterator[tuple[int, Partial]]:
    """Partials and their numbers, one after the other; those with ids in the order of these.

    ValueError if some have ids and some have none, if the rows of one are not side by side in the
    order, or if a row from `first` on comes twice or is missing.
    """
    with_ids: list[Partial] = []
    for number, partial in enumerate(each):
        if number and (partial.ids is not None) != bool(with_ids):
            raise ValueError(f"partials must all have ids, or none: partial {number} is unlike 0")
        if partial.ids is None:
            yield number, partial
        else:
            with_ids.append(partial)
    spans = []
    for number, partial in enumerate(with_ids):
        ids = np.sort(partial.ids)
        if (twice := ids[1:][ids[1:] == ids[:-1]]).size:
            raise ValueError(f"row {twice[0]} comes twice in partial {number}")
        start, stop = (int(ids[0]), int(ids[-1]) + 1) if len(ids) else (first, first)
        if stop - start != len(ids):
            raise ValueError(
                f"partial {number} must have rows that are side by side in the order, got "
                f"{len(ids)} of {start} to {stop - 1}: cut blocks by ranges of ids"
            )
        spans.append((start, stop, number))
    for start, stop, number in sorted(spans):
        if start < first:
            raise ValueError(f"row {start} of partial {number} comes twice, or was answered before")
        if start > first:
            raise ValueError(f"row {first} is missing: no partial before partial {number} has it")
        first = stop
    yield from [(number, with_ids[number]) for _, _, number in sorted(spans)]


def listed(ids: Ids) -> list[Any]:
    """Ids as Python's own objects."""
    return list(ids.tolist() if isinstance(ids, np.ndarray) else ids)


def _as_code(code: Any) -> Any:
    return tuple(map(_as_code, code)) if isinstance(code, list) else code


def _digest(content: bytes) -> bytes:
    import hashlib

    return hashlib.sha256(content).digest()


def _joined(one: tuple[Span, ...], other: tuple[Span, ...]) -> tuple[Span, ...]:
    """The samples of both, in order; ValueError if some are in either."""
    joined: list[Span] = []
    for start, stop in sorted(one + other):
        if joined and start < joined[-1][1]:
            raise ValueError(f"partials overlap: both have sample {start}")
        if joined and start == joined[-1][1]:
            start = joined.pop()[0]
        joined.append((start, stop))
    return tuple(joined)


def _length(spans: tuple[Span, ...]) -> int:
    """How many samples there are."""
    return sum(stop - start for start, stop in spans)


def _dtype_of(spans: tuple[Span, ...], shift: int) -> Any:
    """What signed sums of these samples fit."""
    return np.int32 if _length(spans) << shift < 2**31 else np.int64


def _extremes(sums: NDArray[Any]) -> NDArray[Any]:
    """Maxima and minima; of no vectors nothing."""
    if not sums.shape[1]:
        return sums
    if not len(sums):
        return np.zeros((2, sums.shape[1]), np.int64)
    return np.array([sums.max(axis=0), sums.min(axis=0)], np.int64)
