"""Target: `RadaBound.query` and `query_many`, with losses and `PackedLosses` of any kind.

What is accepted is answered as `reference.py` says, in the same order; what is refused changes
nothing; rows of numbers in [0, 1] are never refused.
"""

import itertools

import numpy as np
from draw import REFUSALS, Draw, array_like, in_units, plain_rows, shape_of

from radabound_fast import HoldoutExhausted, PackedLosses, RadaBound, pack_losses
from radabound_fast.rows import reference

CALLS = ("query", "query_many")


class Twin:
    """A guard, and what plain NumPy says its state must be; sums in units of 2^-24."""

    def __init__(self, draw):
        self.guard = RadaBound(
            draw.choice([1, 2, 63, 64, 65, 130, 200]),
            epsilon=draw.choice([0.9, 0.5, 0.3, 0.05]),
            delta=draw.choice([0.1, 0.9]),
            n_vectors=draw.choice([1, 3, 8, 9, 16, 33]),
            bound=draw.choice(["mclt", "bernstein", "bernstein-split"]),
            estimator=draw.choice([None, "half-range"]),
            seed=draw.integer(0, 2**64 - 1),
            signs=draw.choice(["stored", "generated"]),
        )
        self.half_range = self.guard.estimator == "half-range"
        shape = self.guard.n_vectors, self.guard.n_samples
        self.signs = reference.signs(self.guard.seed, *shape)
        self.highest = self.lowest = None
        self.n_answered, self.halted = 0, False

    @property
    def complexity(self):
        if self.highest is None:
            return 0.0
        largest = self.highest - self.lowest if self.half_range else np.maximum(self.highest, 0)
        ranges = 2 if self.half_range else 1
        return int(largest.sum()) / (ranges * self.signs.size * 2**24)

    def judge(self, units):
        """Means of the rows that are answered, up to one that is not."""
        means = []
        for row in units:
            sums = reference.signed_sums(self.signs, row[np.newaxis])[0]
            self.highest = sums if self.highest is None else np.maximum(self.highest, sums)
            self.lowest = sums if self.lowest is None else np.minimum(self.lowest, sums)
            if self.complexity > self.guard.budget:
                self.halted = True
                break
            self.n_answered += 1
            means.append(int(row.sum()) / (len(row) * 2**24))
        return means

    def compare(self):
        guard = self.guard
        assert guard.n_answered == self.n_answered
        assert guard.halted == self.halted
        assert guard.complexity == self.complexity
        if self.highest is not None:
            shift = 24 - guard._core.unit_shift
            maxima, minima = guard._core.extremes()
            assert ((maxima << shift) == self.highest).all()
            assert ((minima << shift) == self.lowest).all()


def packed_like(draw, losses):
    """Words, mostly good ones, of an array of losses."""
    words = pack_losses(losses).words
    way = draw.integer(0, 7)
    if way == 1:
        words = np.packbits(losses != 0, axis=-1)
    elif way == 2:
        words = words.astype(words.dtype.newbyteorder("S"))
    elif way == 3:
        words = np.repeat(words, 2, axis=-1)[..., ::2]
    elif way == 4 and words.size:
        words.flat[draw.integer(0, words.size - 1)] |= np.uint64(1 << draw.integer(0, 63))
    elif way == 5:
        words = words.astype(draw.choice(["u4", "i8", "f8", "O"]))
    elif way == 6:
        words = words.tolist()
    elif way == 7:
        words = words[..., :-1]
    return words


def plain_bits(words, n_samples, ndim):
    """As `plain_rows`; a row with a bit set past the last sample is none."""
    array = np.asarray(words)
    if array.ndim != ndim or array.dtype.newbyteorder("=") != "u8":
        return None
    if array.shape[-1] != -(-n_samples // 64):
        return None
    rows = array.tolist() if ndim == 2 else [array.tolist()]
    bits = [[word >> b & 1 for word in row for b in range(64)] for row in rows]
    return [None if any(row[n_samples:]) else row[:n_samples] for row in bits]


def ask(twin, call, argument, options, rows, packed):
    """One call, and the same rows through the twin; `rows` as `plain_rows` found them.

    A row that is none may be refused at once, or never be looked at: one before it is withheld.
    """
    good = list(itertools.takewhile(lambda row: row is not None, rows or []))
    all_good = rows is not None and len(good) == len(rows)
    many = "many" in call
    try:
        if packed:
            argument = PackedLosses(argument, twin.guard.n_samples)
        got = getattr(twin.guard, call)(argument, **options)
    except HoldoutExhausted:
        if not twin.halted:
            assert not many and all_good
            twin.judge(in_units(good))
        assert twin.halted
        return
    except REFUSALS as error:
        assert not all_good, f"good rows were refused: {error}"
        return
    assert not twin.halted, "a halted guard answered"
    means = twin.judge(in_units(good))
    assert all_good or twin.halted, f"{call} took what is no row of losses: {argument!r}"
    assert [got.value] == means if not many else got.values.tolist() == means
    assert got.complexity == twin.complexity
    if many:
        assert (got.halted, got.n_answered) == (twin.halted, twin.n_answered)
    else:
        assert got.number == twin.n_answered


def fuzz_one(data):
    draw = Draw(data)
    twin = Twin(draw)
    m = twin.guard.n_samples
    for _ in range(draw.integer(1, 4)):
        call = draw.choice(CALLS)
        ndim = 2 if "many" in call else 1
        options = {"trace": draw.one_in(2)} if ndim == 2 else {}
        packed = draw.one_in(2)
        if packed:
            shape = (m,) if ndim == 1 else (draw.integer(0, 5), m)
            argument = packed_like(draw, draw.seeded().random(shape) < 0.3)
            rows = plain_bits(argument, m, ndim)
        else:
            argument = array_like(draw, shape_of(draw, m, ndim))
            rows = plain_rows(argument, ndim, m)
        ask(twin, call, argument, options, rows, packed)
        twin.compare()
