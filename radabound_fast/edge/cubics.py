"""A function of whole numbers to whole numbers as a few cubics, right at every place.

A small machine has neither the bound nor floats nor room for a table.  A linear program finds each
cubic, in fixed point: its integer part must be the function's at every place of its piece.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

FRACTION_BITS = 16
_MOST_SLOPE = 2**31 - 1
_MASK = 2**32 - 1


class Piece(NamedTuple):
    """A cubic from the place `first` on, up to where the next one begins, in units of 2^-16."""

    first: int
    base: int  # its value there
    # what the first, second and third power of (place - first) / 2^b are multiplied with, in 32
    # bits; b is the number of bits of the largest place - first
    slopes: tuple[int, int, int]


def value(pieces: Sequence[Piece], n_places: int, place: int) -> int:
    """The function at a place in 0, ..., n_places - 1: as src/edge/radabound_edge.c has it."""
    i = 0
    while i + 1 < len(pieces) and pieces[i + 1].first <= place:
        i += 1
    first, base, slopes = pieces[i]
    end = pieces[i + 1].first if i + 1 < len(pieces) else n_places
    n_bits = (end - first - 1 & _MASK).bit_length()
    total = 0
    for slope in reversed(slopes):
        total = (total + slope) * (place - first) >> n_bits
    return base + total >> FRACTION_BITS


def fitted(
    function: Callable[[int], int], n_places: int, at_most: int, falling_to: int = 2**17
) -> tuple[Piece, ...] | None:
    """Pieces of a function from int to int that never rises, on 0, ..., n_places - 1.

    None: more than `at_most` pieces are needed, or it falls too long: it must not fall any more
    from the place `falling_to` on, else it would be evaluated for minutes.
    """
    level = function(n_places - 1)
    if function(min(falling_to, n_places - 1)) != level:
        return None
    low, end = -1, min(falling_to, n_places - 1)  # where it has come to its last level
    while end - low > 1:
        middle = (low + end) // 2
        low, end = (low, middle) if function(middle) == level else (middle, end)
    values = [function(place) for place in range(end)]
    pieces: list[Piece] = []
    first = 0
    while first < end:
        if len(pieces) + 1 >= at_most:
            return None
        piece, length = _longest(values, first)
        pieces.append(piece)
        first += length
    return *pieces, Piece(end, level << FRACTION_BITS, (0, 0, 0))


def _longest(values: Sequence[int], first: int) -> tuple[Piece, int]:
    """The longest piece that is found from a place on: doubled, then bisected."""
    best, length = _cubic(values, first, 1), 1
    assert best is not None  # a constant
    too_long = len(values) - first + 1
    while too_long - length > 1:
        tried = min(2 * length, (length + too_long) // 2)
        piece = _cubic(values, first, tried)
        if piece is None:
            too_long = tried
        else:
            best, length = piece, tried
    return best, length


def _cubic(values: Sequence[int], first: int, length: int) -> Piece | None:
    """The cubic with the most room between each value and the next integer, if there is any."""
    from scipy.optimize import linprog  # takes a while to import

    start = values[first]
    if length == 1:
        return Piece(first, start << FRACTION_BITS, (0, 0, 0))
    wanted = np.array(values[first : first + length], float) - start
    terms = np.polynomial.chebyshev.chebvander(np.linspace(-1.0, 1.0, length), 3)
    room = np.ones((length, 1))
    solution: Any = linprog(
        [0, 0, 0, 0, -1],
        A_ub=np.block([[-terms, room], [terms, room]]),
        b_ub=np.concatenate([-wanted, wanted + 1.0]),
        bounds=[(None, None)] * 4 + [(0.0, 0.5)],
        method="highs-ds",
    )
    if solution.status != 0:
        return None
    powers = np.polynomial.Chebyshev(solution.x[:4], domain=[0, length - 1]).convert(
        kind=np.polynomial.Polynomial, domain=[0, 2 ** (length - 1).bit_length()], window=[0, 1]
    )
    base, *slopes = (round(float(c) * 2**FRACTION_BITS) for c in [*powers.coef, 0, 0, 0][:4])
    if max(map(abs, slopes)) > _MOST_SLOPE:
        return None
    # half a unit for each floor on the way
    piece = Piece(first, base + (start << FRACTION_BITS) + 1, (slopes[0], slopes[1], slopes[2]))
    nothing = Piece(first + length, 0, (0, 0, 0))
    pair = (piece, nothing)
    right = all(
        value(pair, 0, place) == values[place] for place in range(first, first + length)
    )  # what rounding spoils is no piece
    return piece if right else None
