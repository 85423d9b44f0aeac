"""Rows of losses that are counted anywhere, and taken in by the guard that they are for.

Whoever has the losses reduces them to integers; the owner of the guard decides, in order::

    task = guard.task()                        # small; send it to the workers
    partial = task.reduce(losses)              # there: extremes of signed sums, and totals
    answers = guard.take([partial, ...])       # here: bit for bit query_many of all the rows

Partials of parts of the samples add up: ``task.reduce(losses[:, :6400]) +
task.reduce(losses[:, 6400:], start=6400)``, in any order.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from radabound_fast._checks import check_integer, check_n_samples, check_n_vectors, counted
from radabound_fast._kernels.guard import extremes_of_rows, signed_sums_of_rows
from radabound_fast._kernels.rows import UNIT_SHIFT, PackedLosses, SignStore, pack_rows
from radabound_fast._kernels.support import sealed
from radabound_fast.rows.labels import Labels
from radabound_fast.rows.packing import as_values, as_words
from radabound_fast.rows.signs import MAX_CELLS, WORD_BITS, check_memory

# the signs of a part of the samples are kept by a worker if they are no more than this
MOST_KEPT_BYTES = 1 << 26

_MAGIC = b"\x89RADP\r\n\x1a"
_VERSION = 1
# magic, version, n_vectors, length; n_samples, n_rows, n_spans; unit_shift, binary, bytes of a sum
_HEAD = struct.Struct("<8sIIQQQQBBB")
_ID_BYTES = 16
_DIGEST_BYTES = 32


@dataclass(frozen=True, repr=False)
class Task:
    """What a worker needs to count losses for a guard; made by ``guard.task()``.

    Small, and can be pickled.  **It holds the seed of the signs**, and that of a `Holdout` the
    labels: it is for workers that are trusted with both (docs/explanation/trust.md).

    Attributes
    ----------
    seed : int
        Of the signs.
    n_samples, n_vectors : int
        The guard's.
    signs : {"stored", "generated"}
        Whether a worker may keep the signs in memory.
    labels : Labels, optional
        Those of a `Holdout`: with them `reduce` takes predictions.
    """

    seed: int
    n_samples: int
    n_vectors: int
    signs: Literal["stored", "generated"]
    labels: Labels | None = None

    @sealed
    def reduce(self, y_pred: Any, *, start: int = 0) -> Partial:
        """Count rows, or some samples of them.

        Parameters
        ----------
        y_pred : array_like, shape (k, n), or PackedLosses
            Rows as the guard's `query_many` takes them: losses in [0, 1], or predictions where the
            guard was made on labels.  `PackedLosses` are losses of 0 and 1.
        start : int, default 0
            The sample that the first column is, a multiple of 64.  The last one must be the
            guard's last, or n a multiple of 64.

        Returns
        -------
        Partial

        Raises
        ------
        TypeError, ValueError
            Not such rows: the places in the message are places in `y_pred`.
        """
        if isinstance(y_pred, PackedLosses):
            span = self._span(start, y_pred.n_samples)
            return self._partial(span, as_words(y_pred.words, y_pred.n_samples, 2), packed=True)
        if self.labels is not None:
            return self.reduce(self.pack(y_pred, start=start), start=start)
        values = as_values(y_pred, ndim=2)
        return self._partial(self._span(start, values.shape[1]), values, packed=False)

    @sealed
    def pack(self, y_pred: Any, *, start: int = 0) -> PackedLosses:
        """Pack where predictions are wrong: an eighth of the memory, and no predictions any more.

        Parameters
        ----------
        y_pred : array_like, shape (k, n)
            Predictions, as `reduce` takes them.
        start : int, default 0
            As in `reduce`.
        """
        if self.labels is None:
            raise TypeError("only the task of a guard that has labels packs predictions")
        shape = np.shape(y_pred)
        start, stop = self._span(start, shape[1] if len(shape) == 2 else 0)
        whole = stop - start == self.n_samples
        labels = self.labels if whole else self.labels[start:stop]
        return PackedLosses(pack_rows(*labels.match(y_pred, ndim=2)), stop - start)

    def _span(self, start: int, n: int) -> tuple[int, int]:
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

    def _partial(self, span: tuple[int, int], rows: NDArray[Any], *, packed: bool) -> Partial:
        store = _store(self.seed, self.n_samples, self.n_vectors, self.signs, *span)
        whole = span == (0, self.n_samples)
        count = extremes_of_rows if whole else signed_sums_of_rows
        sums, totals, shift = count(store, rows, packed=packed)
        return Partial(
            self.identity, self.n_samples, self.n_vectors, (span,), totals, sums, shift,
            packed or rows.dtype.kind != "f",
        )  # fmt: skip

    @property
    def identity(self) -> bytes:
        """A hash of seed and sizes: partials of other signs have another."""
        import hashlib  # here: it loads megabytes, and most guards have no workers

        signs = struct.pack("<QQQ", self.seed, self.n_samples, self.n_vectors)
        return hashlib.blake2b(signs, digest_size=_ID_BYTES).digest()

    def __repr__(self) -> str:
        # neither the seed nor the labels, so that it may be logged
        return f"Task(n_samples={self.n_samples}, n_vectors={self.n_vectors})"


@lru_cache(maxsize=8)
def _store(
    seed: int, n_samples: int, n_vectors: int, signs: str, start: int, stop: int
) -> SignStore:
    """The signs of some samples: a worker counts many blocks under them."""
    n = stop - start
    stored = signs == "stored" and (n == n_samples or n * n_vectors // 8 <= MOST_KEPT_BYTES)
    if stored:
        check_memory(n, n_vectors)
    return SignStore(seed, n, n_vectors, stored=stored, first_word=start // WORD_BITS)


@dataclass(frozen=True, eq=False, repr=False)
class Partial:
    """What some rows of losses come to at some samples: exact integers, made by `Task.reduce`.

    ``a + b`` are the same rows at the samples of both, which must not overlap; `sum` of several
    does too.  Once all samples are there the partial `is_whole`, has extremes alone, and may be
    taken in by the guard (`RadaBound.take`).  It can be pickled; `to_bytes` and `from_bytes` are
    for what outlives a program, and check what they read.

    ``len(partial)`` is its number of rows, k.

    Attributes
    ----------
    n_samples, n_vectors : int
        The guard's.
    spans : tuple of (start, stop)
        The samples that are in it, in order.
    totals : ndarray of int64, shape (k,)
        The sum of each row's losses at these samples.
    sums : ndarray of int64 or int32, shape (k, n_vectors), or (2, n_vectors) if it is whole
        Signed sums; if it is whole their maxima, then their minima.
    unit_shift : {0, 24}
        Totals and sums are in units of 2**-unit_shift.
    binary : bool
        Whether the losses are 0 or 1 by their type.

    Notes
    -----
    Of k rows under l vectors a whole partial has ``8 k + 16 l`` bytes, any other
    ``(8 + 4 l) k``, or with real-valued losses ``(8 + 8 l) k``.
    """

    identity: bytes
    n_samples: int
    n_vectors: int
    spans: tuple[tuple[int, int], ...]
    totals: NDArray[np.int64]
    sums: NDArray[np.int32 | np.int64]
    unit_shift: int
    binary: bool

    @property
    def is_whole(self) -> bool:
        """Whether all samples are in it."""
        return self.spans == ((0, self.n_samples),)

    def __len__(self) -> int:
        return len(self.totals)

    def __add__(self, other: object) -> Partial:
        if not isinstance(other, Partial):
            return NotImplemented
        if self.identity != other.identity:
            raise ValueError("partials of tasks with other signs, or other sizes, do not add up")
        if len(self) != len(other):
            raise ValueError(f"partials of {len(self)} and of {len(other)} rows do not add up")
        spans = _joined(self.spans, other.spans)
        shift = max(self.unit_shift, other.unit_shift)
        n = sum(stop - start for start, stop in spans)
        dtype = _dtype_of(n, shift)
        sums = self._sums_in(dtype, shift) + other._sums_in(dtype, shift)
        totals = self._totals_in(shift) + other._totals_in(shift)
        if spans == ((0, self.n_samples),):
            sums = _extremes(sums)
        return replace(
            self,
            spans=spans,
            totals=totals,
            sums=sums,
            unit_shift=shift,
            binary=self.binary and other.binary,
        )

    def __radd__(self, other: object) -> Partial:
        return self if other == 0 else NotImplemented  # where `sum` begins

    def _sums_in(self, dtype: type, shift: int) -> NDArray[Any]:
        return self.sums.astype(dtype, copy=False) << (shift - self.unit_shift)

    def _totals_in(self, shift: int) -> NDArray[np.int64]:
        return self.totals << (shift - self.unit_shift)

    # ---- bytes ---------------------------------------------------------------------------

    def to_bytes(self) -> bytes:
        """The partial in a format of its own, for `from_bytes` of this version or a later one.

        Little-endian: the magic ``89 52 41 44 50 0d 0a 1a``; uint32 version, 1; uint32 n_vectors;
        uint64 length in bytes, n_samples, number of rows, number of spans; a byte each for
        unit_shift, binary, and how many bytes a sum has; 16 bytes that tell other signs
        apart; the spans and totals as int64, the sums; SHA-256 of everything before.  The checksum
        finds accidents, not forgers.
        """
        sums = self.sums.astype(self.sums.dtype.newbyteorder("<"), copy=False)
        spans = np.array(self.spans, "<i8")
        body = self.identity + spans.tobytes() + self.totals.astype("<i8").tobytes()
        body += sums.tobytes()
        head = _HEAD.pack(
            _MAGIC, _VERSION, self.n_vectors, _HEAD.size + len(body) + _DIGEST_BYTES,
            self.n_samples, len(self), len(self.spans), self.unit_shift, self.binary,
            sums.itemsize,
        )  # fmt: skip
        return head + body + _digest(head + body)

    @classmethod
    def from_bytes(cls, blob: bytes) -> Self:
        """The partial that `to_bytes` wrote.

        Raises
        ------
        TypeError
            It is no bytes.
        ValueError
            It is something else, of a later version, cut short or altered; or has numbers that no
            losses lead to.
        """
        try:
            blob = bytes(memoryview(blob))
        except TypeError:
            raise TypeError(f"blob must be bytes, got {type(blob).__name__}") from None
        if not blob.startswith(_MAGIC):
            raise ValueError("no partial: the first 8 bytes are not the magic")
        if len(blob) < _HEAD.size + _DIGEST_BYTES:
            raise ValueError(f"partial is truncated: {len(blob)} bytes")
        _, version, n_vectors, length, n_samples, k, n_spans, shift, binary, size = (
            _HEAD.unpack_from(blob)
        )
        if version != _VERSION:
            raise ValueError(f"partial is of format {version}, this program reads {_VERSION}")
        content, digest = blob[:-_DIGEST_BYTES], blob[-_DIGEST_BYTES:]
        if length != len(blob) or _digest(content) != digest:
            raise ValueError("partial is truncated or altered: its checksum does not match")
        # from here on only a forger can have been at work
        n_samples, n_vectors = check_n_samples(n_samples), check_n_vectors(n_vectors)
        rest = memoryview(content)[_HEAD.size :]
        n_sums, odd = divmod(len(rest) - _ID_BYTES - 8 * (2 * n_spans + k), max(size, 1))
        if odd or size not in (4, 8) or n_sums not in (2 * n_vectors, k * n_vectors):
            raise ValueError("partial is altered: its head is not of what follows")
        identity, rest = bytes(rest[:_ID_BYTES]), rest[_ID_BYTES:]
        spans = np.frombuffer(rest, "<i8", 2 * n_spans).reshape(-1, 2).tolist()
        rest = rest[16 * n_spans :]
        totals = np.frombuffer(rest, "<i8", k).astype(np.int64)
        sums = np.frombuffer(rest[8 * k :], f"<i{size}").astype(f"=i{size}")
        found = cls(
            identity, n_samples, n_vectors, tuple((a, b) for a, b in spans), totals,
            sums.reshape(-1, n_vectors), shift, bool(binary),
        )  # fmt: skip
        found._check()
        return found

    def _check(self) -> None:
        """ValueError unless some losses might lead to it."""
        m, shift, ends = self.n_samples, self.unit_shift, [0]
        for start, stop in self.spans:
            if not (ends[-1] < start or len(ends) == 1 and start == 0) or start % WORD_BITS:
                break
            if not start < stop <= m or stop < m and stop % WORD_BITS:
                break
            ends += [start, stop]
        n = sum(stop - start for start, stop in self.spans)
        limit = MAX_CELLS if shift == 0 else MAX_CELLS >> shift
        wide = self.sums.astype(np.int64)
        largest = self.totals.max(initial=0) if self.is_whole else self.totals[:, np.newaxis]
        if (
            not self.spans
            or len(ends) != 2 * len(self.spans) + 1
            or shift not in (0, UNIT_SHIFT)
            or m * self.n_vectors >= limit
            or len(wide) != (2 if self.is_whole else len(self))
            or ((self.totals < 0) | (self.totals > n << shift)).any()
            or ((wide > largest) | (wide < -largest)).any()
            or (self.is_whole and (wide[0] < wide[1]).any())
        ):
            raise ValueError("partial has numbers that no losses lead to")

    def __repr__(self) -> str:
        # no total: it may be that of a query which is to be withheld
        n = sum(stop - start for start, stop in self.spans)
        return f"Partial({counted(len(self), 'row')} at {n} of {self.n_samples} samples)"


def each_of(partials: Any) -> Iterator[Partial]:
    """One after the other, of what `take` is given."""
    try:
        return iter(partials)
    except TypeError:
        kind = type(partials).__name__
        raise TypeError(f"partials must be an iterable of Partial, got {kind}") from None


def _digest(content: bytes) -> bytes:
    import hashlib

    return hashlib.sha256(content).digest()


def _joined(
    one: tuple[tuple[int, int], ...], other: tuple[tuple[int, int], ...]
) -> tuple[tuple[int, int], ...]:
    """The samples of both, in order; ValueError if some are in either."""
    joined: list[tuple[int, int]] = []
    for start, stop in sorted(one + other):
        if joined and start < joined[-1][1]:
            raise ValueError(f"partials overlap: both have sample {start}")
        if joined and start == joined[-1][1]:
            start = joined.pop()[0]
        joined.append((start, stop))
    return tuple(joined)


def _dtype_of(n_samples: int, shift: int) -> type:
    """What signed sums of so many samples fit."""
    return np.int32 if n_samples << shift < 2**31 else np.int64


def _extremes(sums: NDArray[Any]) -> NDArray[np.int64]:
    if not len(sums):
        return np.zeros((2, sums.shape[1]), np.int64)
    return np.array([sums.max(axis=0), sums.min(axis=0)], np.int64)
