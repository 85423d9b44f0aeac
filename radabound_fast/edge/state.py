"""What a guard on a small machine needs of the desktop: its state, and tables of integers.

The guard itself is C (``src/edge``), and knows no float: what needs one is worked out here.
"""

from __future__ import annotations

import contextlib
import math
import struct
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Self

import numpy as np

from radabound_fast._checks import check_count, check_delta
from radabound_fast.bounds import binomial_interval
from radabound_fast.bounds.union import MOST_QUERIES
from radabound_fast.edge import cubics as _pieces
from radabound_fast.edge.cubics import Piece
from radabound_fast.guards.by_bound import guard_by_bound
from radabound_fast.guards.halting import HaltingRule

FORMAT = b"radedge1"
N_PIECES, N_STAGES = 22, 32  # as in src/edge/radabound_edge.h
MOST_SAMPLES, MOST_ANSWERS = 2**31 - 1, 2**32 - 1
LONGEST_TABLE = 2**20
_MASK = 2**64 - 1
_MOST_BASE = 2**63 - 1

# what rows do not change, and what they do, up to the extremes
_PIECE = np.dtype([("base", "<i8"), ("slopes", "<i4", 3), ("first", "<u4")])
_SLOT = np.dtype(
    [
        *(("format", "S8"), ("checksum", "<u8")),
        *(("epsilon", "<f8"), ("delta", "<f8"), ("bound", "S16")),
        *(("max_queries", "<u8"), ("seed", "<u8"), ("pieces", _PIECE, N_PIECES)),
        *(("free", "<u4", N_STAGES), ("n_flat", "<u4"), ("free_flat", "<u4")),
        *(("n_vectors", "<u4"), ("n_samples", "<u4"), ("half_range", "<u4")),
        *(("n_answered", "<u4"), ("halted", "<u4"), ("largest", "<u4")),
    ]
)
_BODY_AT = 16  # after format and checksum
# fields of a state that a slot has as they are
_CHANGED = {"format", "checksum", "bound", "max_queries", "pieces", "free"}
_NUMBERS = [name for name in _SLOT.names or () if name not in _CHANGED]


@dataclass(frozen=True)
class EdgeState:
    """The state of a guard in C, ``struct radabound_edge_state``.

    Everything is an integer in units of one loss: a budget and a complexity are sums over all
    vectors, which Python divides by ``cells``.

    Attributes
    ----------
    n_samples, n_vectors : int
        m, below 2^31, and l.
    epsilon, delta, bound, max_queries
        As of `RadaBound`; the guard in C does not look at them.
    seed : int
        Of the signs.  Whoever reads it knows them: it is in no repr.
    half_range : bool
        Which estimate the bound goes with.
    pieces : tuple of Piece
        The budget as a function of the largest count of a row.
    free : tuple of int, length 32
        Counts below a number, or as near n_samples, need no signs: the number for the k-th row, by
        the dyadic weights, at place log2 k, rounded down.
    n_flat, free_flat : int
        Among the first n_flat rows, the larger of that number and this.
    n_answered : int
        Answers given.
    halted : bool
        Whether a row has been withheld.
    largest : int
        The largest count of an answered row so far.
    maxima, minima : tuple of int, length n_vectors
        Of the signed sums of all rows so far; zeros before the first.

    >>> state = EdgeState.new(4000, epsilon=0.05, delta=0.1, bound="fixed-sequence", seed=0)
    >>> state.budget, state.budget / state.cells
    (3259, 0.01273046875)
    >>> EdgeState.from_bytes(state.to_bytes()) == state
    True
    """

    n_samples: int
    n_vectors: int
    epsilon: float
    delta: float
    bound: str
    max_queries: int | None
    seed: int = field(repr=False)
    half_range: bool
    pieces: tuple[Piece, ...] = field(repr=False)
    free: tuple[int, ...] = field(repr=False)
    n_flat: int = field(repr=False)
    free_flat: int = field(repr=False)
    maxima: tuple[int, ...] = field(repr=False)
    minima: tuple[int, ...] = field(repr=False)
    n_answered: int = 0
    halted: bool = False
    largest: int = 0

    @classmethod
    def new(
        cls,
        n_samples: int,
        *,
        epsilon: float,
        delta: float,
        n_vectors: int = 32,
        bound: str = "bernstein",
        max_queries: int | None = None,
        seed: int | None = None,
    ) -> Self:
        """Make the state of a guard that has answered nothing yet.

        Parameters
        ----------
        n_samples : int
            m, the size of the holdout; below 2^31.
        epsilon, delta, n_vectors, bound, max_queries, seed
            As of `RadaBound`.  A seed is for reproduction only.

        Returns
        -------
        EdgeState

        Raises
        ------
        TypeError, ValueError
            As of `RadaBound`; more samples than a small machine counts; a budget that does not
            fit the state: of "fixed-sequence" where it falls for too long, of any bound where m
            and l together are too large.
        """
        # which checks the arguments, and draws the seed
        guard = guard_by_bound(
            bound,
            n_samples,
            epsilon=epsilon,
            delta=delta,
            n_vectors=n_vectors,
            max_queries=max_queries,
            seed=seed,
            signs="generated",
        )
        m, n_vectors = guard.n_samples, guard.n_vectors
        if m > MOST_SAMPLES:
            raise ValueError(f"n_samples must be below 2**31 on a small machine, got {m}")
        if max_queries is not None:
            check_count(max_queries=max_queries, at_most=MOST_QUERIES)
        rule = HaltingRule(m, n_vectors, epsilon, delta, bound, None, None, max_queries)
        pieces = _pieces.fitted(lambda largest: rule.price(largest, 0, 0)[0], m + 1, N_PIECES)
        if pieces is None:
            raise ValueError(
                f"n_samples must be lower on a small machine with bound={bound!r}, whose state "
                f"has no room for the budget at epsilon={guard.epsilon!r}, got {m}"
            )
        if pieces[0].base > _MOST_BASE:  # pieces only fall
            raise ValueError(
                f"n_vectors must be lower on a small machine with n_samples={m}, whose state has "
                f"no room for the budget, got {n_vectors}"
            )
        return cls(
            n_samples=m,
            n_vectors=n_vectors,
            epsilon=guard.epsilon,
            delta=guard.delta,
            bound=bound,
            max_queries=rule.max_queries,
            seed=guard.seed,
            half_range=guard.estimator == "half-range",
            pieces=pieces,
            **_free(rule),
            maxima=(0,) * n_vectors,
            minima=(0,) * n_vectors,
        )

    @property
    def cells(self) -> int:
        """What a budget or a complexity is divided by to be in units of loss."""
        return (2 if self.half_range else 1) * self.n_vectors * self.n_samples

    @property
    def budget(self) -> int:
        """The largest complexity that passes, at the largest count answered; -1 if none."""
        return max(-1, _pieces.value(self.pieces, self.n_samples + 1, self.largest))

    @property
    def free_below(self) -> int:
        """Counts below it, and as near n_samples, are answered next whatever the complexity."""
        below = self.free[(self.n_answered + 1).bit_length() - 1]
        return max(below, self.free_flat) if self.n_answered < self.n_flat else below

    @property
    def complexity(self) -> int:
        """The complexity of all rows so far, a withheld one included."""
        if self.half_range:
            return sum(self.maxima) - sum(self.minima)
        return sum(high for high in self.maxima if high > 0)

    @property
    def _age(self) -> int:
        """It grows with every row."""
        return self.n_answered + self.halted

    @property
    def _constant(self) -> Self:
        """What no row changes."""
        return replace(self, n_answered=0, halted=False, largest=0, maxima=(), minima=())

    @property
    def guarantee(self) -> str:
        """What `RadaBound` says of this configuration."""
        numbers = self.n_samples, self.n_vectors, self.epsilon, self.delta
        return HaltingRule(*numbers, self.bound, None, None, self.max_queries).guarantee

    def to_bytes(self) -> bytes:
        """One slot, as the guard in C stores it: little-endian, 752 + 8 n_vectors bytes."""
        slot = np.zeros((), _SLOT)
        for name in _NUMBERS:
            slot[name] = getattr(self, name)
        unused = [Piece(self.n_samples + 1, 0, (0, 0, 0))] * (N_PIECES - len(self.pieces))
        slot["pieces"] = [(base, slopes, first) for first, base, slopes in (*self.pieces, *unused)]
        slot["bound"], slot["free"] = self.bound.encode(), self.free
        slot["max_queries"] = self.max_queries or 0
        extremes = np.array([self.maxima, self.minima], "<i4").tobytes()
        slot["format"] = FORMAT
        slot["checksum"] = _checksum(slot.tobytes()[_BODY_AT:] + extremes)
        return slot.tobytes() + extremes

    @classmethod
    def from_bytes(cls, slot: bytes) -> Self:
        """One slot, whatever follows it; ValueError: it is no state, or not whole."""
        if len(slot) < _SLOT.itemsize or not slot.startswith(FORMAT):
            raise ValueError("this is no state of a guard in C")
        stored = np.frombuffer(slot, _SLOT, 1)[0]
        known: dict[str, Any] = {name: stored[name].item() for name in _NUMBERS}
        n_vectors, n_samples = known["n_vectors"], known["n_samples"]
        end = _SLOT.itemsize + 8 * n_vectors
        if len(slot) < end or stored["checksum"] != _checksum(slot[_BODY_AT:end]):
            raise ValueError("this state is not whole")
        if not (
            n_vectors > 0
            and 0 < n_samples <= MOST_SAMPLES
            and known["largest"] <= n_samples
            and known["halted"] <= 1
            and known["n_answered"] < MOST_ANSWERS
            and stored["pieces"]["first"][0] == 0
        ):
            raise ValueError("this state was not made by `EdgeState.new`")
        pieces = (
            Piece(first, base, tuple(slopes.tolist()))
            for base, slopes, first in stored["pieces"].tolist()
        )
        maxima, minima = np.frombuffer(slot[_SLOT.itemsize : end], "<i4").reshape(2, -1).tolist()
        known |= {
            "bound": stored["bound"].decode("ascii", "replace"),
            "max_queries": stored["max_queries"].item() or None,
            "half_range": bool(known["half_range"]),
            "halted": bool(known["halted"]),
            "pieces": tuple(piece for piece in pieces if piece.first <= n_samples),
            "free": tuple(stored["free"].tolist()),
            "maxima": tuple(maxima),
            "minima": tuple(minima),
        }
        return cls(**known)

    @classmethod
    def whole_slots(cls, content: bytes) -> list[Self]:
        """Find the slots that are whole, each at the start of a half."""
        half, slots = len(content) // 2, []
        for slot in (content[:half], content[half:]):
            with contextlib.suppress(ValueError):
                slots.append(cls.from_bytes(slot))
        return slots

    @classmethod
    def from_file(cls, content: bytes) -> Self:
        """The newer of the slots that are whole, of two: each at the start of a half.

        ValueError: neither is, or they are of two guards, or of copies of one that went apart.
        """
        slots = cls.whole_slots(content)
        if not slots:
            raise ValueError("neither half begins with the whole state of a guard in C")
        older, newer = sorted((slots[0], slots[-1]), key=lambda state: state._age)
        if newer._constant != older._constant or (newer._age == older._age and newer != older):
            raise ValueError("the slots are of two guards: which of them is in use?")
        return newer

    def to_header(self) -> str:
        """One slot as an array in C, to be programmed into both slots at the factory."""
        return (
            "/* The state of a guard, one slot of it; made by `radabound edge header`.\n"
            " * Whoever reads it knows the signs. */\n"
            "#ifndef RADABOUND_EDGE_NEW_STATE_H\n#define RADABOUND_EDGE_NEW_STATE_H\n\n"
            '#include "radabound_edge.h"\n\n'
            f"#if RADABOUND_EDGE_VECTORS != {self.n_vectors}\n"
            f'#error "this state is for RADABOUND_EDGE_VECTORS {self.n_vectors}"\n#endif\n\n'
            "static const uint8_t radabound_edge_new_state[RADABOUND_EDGE_STATE_BYTES] = {\n"
            f"{_array(self.to_bytes(), '0x{:02x}')}\n}};\n\n#endif\n"
        )


def margins(n_samples: int, space_size: int, delta: float) -> list[int]:
    """How far the truth is from a count at most, below and above, in units of one loss.

    Of any of `space_size` models that were declared beforehand, whatever the search: with
    probability 1 - delta the true mean of each, times m, lies in

        [c - margins[c], c + margins[m - c]]     for its count c,

    of all of them at once.  That is the interval of `DeclaredSearch` (Theorem S) for a
    space without weights, rounded outwards to whole losses.

    Parameters
    ----------
    n_samples : int
        m, the size of the holdout; at most 2^20, for the table has m + 1 entries.
    space_size : int
        How many models were declared before any score was seen.
    delta : float
        The probability that any interval misses, in (0, 1).

    Returns
    -------
    list of int, length n_samples + 1

    >>> table = margins(4000, space_size=80, delta=0.1)
    >>> table[833], table[4000 - 833]
    (82, 86)
    """
    m = check_count(n_samples=n_samples, at_most=LONGEST_TABLE)
    size = check_count(space_size=space_size)
    nats = math.log(2.0 / check_delta(delta)) + math.log(size)
    lows, highs = binomial_interval(np.arange(m + 1), m, nats)
    below = [c - math.floor(Fraction(low) * m) for c, low in enumerate(lows.tolist())]
    above = [math.ceil(Fraction(high) * m) - c for c, high in enumerate(highs.tolist())]
    # one is the other in mirror image, but for rounding
    return [max(pair) for pair in zip(below, reversed(above), strict=True)]


def margins_header(n_samples: int, space_size: int, delta: float) -> str:
    """`margins` as a table in C, and the function that looks an interval up.

    Parameters and errors are those of `margins`.
    """
    table = margins(n_samples, space_size, delta)
    kind = "uint8_t" if max(table) < 2**8 else "uint16_t" if max(table) < 2**16 else "uint32_t"
    return (
        "/* With probability at least 1 - delta the true mean loss of each of the declared models\n"
        " * lies in [low, high] / n_samples for its count of losses that are 1, of all at once\n"
        " * (`DeclaredSearch`).  Made by `radabound edge intervals`:\n"
        f" * {n_samples} samples, {space_size} models, delta {delta!r}. */\n"
        "#ifndef RADABOUND_EDGE_INTERVALS_H\n#define RADABOUND_EDGE_INTERVALS_H\n\n"
        "#include <stdint.h>\n\n"
        f"enum {{ RADABOUND_EDGE_INTERVAL_SAMPLES = {n_samples} }};\n\n"
        f"static const {kind} radabound_edge_margins[RADABOUND_EDGE_INTERVAL_SAMPLES + 1] = {{\n"
        f"{_array(table, '{}')}\n}};\n\n"
        "/* For a count of at most RADABOUND_EDGE_INTERVAL_SAMPLES. */\n"
        "static inline void radabound_edge_interval(uint32_t count, uint32_t *low,\n"
        "                                           uint32_t *high)\n"
        "{\n"
        "    *low = count - radabound_edge_margins[count];\n"
        "    *high = count + radabound_edge_margins[RADABOUND_EDGE_INTERVAL_SAMPLES - count];\n"
        "}\n\n#endif\n"
    )


def _array(numbers: Iterable[int], form: str) -> str:
    """Numbers in lines, with commas."""
    lines = ["   "]
    for number in numbers:
        item = f" {form.format(number)},"
        if len(lines[-1]) + len(item) > 96:
            lines.append("   ")
        lines[-1] += item
    return "\n".join(lines)


def _free(rule: HaltingRule) -> dict[str, Any]:
    """The union part: its two halves apart, of which the wider passes."""
    if rule.free is None:
        return {"free": (0,) * N_STAGES, "n_flat": 0, "free_flat": 0}
    n_flat, dyadic = rule.free.n_flat, replace(rule.free, n_flat=0)
    below = tuple(dyadic.stage(2**place - 1).low_count + 1 for place in range(N_STAGES))
    below_flat = rule.free.stage(n_flat - 1).low_count + 1 if n_flat else 0
    return {"free": below, "n_flat": min(n_flat, MOST_ANSWERS), "free_flat": below_flat}


def _checksum(body: bytes) -> int:
    """SplitMix64's output function along the words: it finds accidents, not forgers."""
    total = 0
    for (word,) in struct.iter_unpack("<Q", body):
        total ^= word
        total = (total ^ total >> 30) * 0xBF58476D1CE4E5B9 & _MASK
        total = (total ^ total >> 27) * 0x94D049BB133111EB & _MASK
        total ^= total >> 31
    return total
