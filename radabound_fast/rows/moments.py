"""Means and spreads of rows of losses, and of differences of rows: what studentised sums need.

Rows are uint64 words where losses are 0 or 1, else float32 multiples of 2**-24 in [0, 1].
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from radabound_fast._kernels.rows import UNIT_SHIFT, rows_in_units, sums_of_rows
from radabound_fast.rows.packing import bits_of

Array = NDArray[Any]
Floats = NDArray[np.float64]

LEAST_ROWS = 40  # errors, and right rows, below which no bootstrap speaks for a model
_AT_ONCE = 512  # rows whose bits stay in the second cache


class Moments(NamedTuple):
    """What is stored of each of k rows of losses, or of differences of losses; (k,) each."""

    means: Floats
    squares: Floats  # sums of squared deviations from the mean
    largest: Floats  # of these deviations
    plus: NDArray[np.int64]  # rows with 1; -1 where the values are real
    minus: NDArray[np.int64]  # rows with -1, or -1 as well

    @property
    def are_counts(self) -> NDArray[np.bool_]:
        """Whether values are 1, -1 or 0, as `plus` and `minus` count them."""
        return self.plus >= 0

    @property
    def scales(self) -> Floats:
        """One over the root of the squares; 0 without spread."""
        spread = np.sqrt(self.squares)
        return np.divide(1.0, spread, out=np.zeros(len(spread)), where=spread > 0.0)

    def enough(self, n_samples: int) -> NDArray[np.bool_]:
        """Whether the bootstrap may speak for a model.

        Of losses that are 0 or 1 it is: at least 40 errors and at least 40 right rows.
        """
        needed = LEAST_ROWS * n_samples * self.largest * self.largest
        has_rows = self.squares * (n_samples - LEAST_ROWS) >= needed * (1.0 - 1e-9)
        return np.asarray((self.squares > 0.0) & has_rows)

    def scales_of_enough(self, n_samples: int) -> Floats:
        """Scales, 0 for models for which the bootstrap may not speak."""
        return np.where(self.enough(n_samples), self.scales, 0.0)

    def of(self, models: Any) -> Moments:
        """Return the moments of some of the models."""
        return Moments(*(column[models] for column in self))

    @classmethod
    def joined(cls, parts: list[Moments]) -> Moments:
        return cls(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))

    @classmethod
    def counted(cls, plus: Array, minus: Array, n_samples: int) -> Moments:
        """Make the moments of values that are 1, -1 or 0 so many times."""
        means = (plus - minus) / n_samples
        squares = plus + minus - means * (plus - minus)
        apart = [
            np.where(plus > 0, 1.0 - means, 0.0),
            np.where(plus + minus < n_samples, np.abs(means), 0.0),
            np.where(minus > 0, 1.0 + means, 0.0),
        ]
        return cls(means, squares, np.max(apart, axis=0), plus, minus)

    @classmethod
    def of_reals(cls, values: Array) -> Moments:
        """Make the moments of rows of multiples of 2**-24 in [-1, 1].

        Their sums are exact below 2**29 samples, and so are the means of rows without spread.
        """
        exact = values.astype(np.float64)
        means = exact.sum(axis=1) / exact.shape[1]
        exact -= means[:, np.newaxis]
        squares, none = np.einsum("ij,ij->i", exact, exact), np.full(len(means), -1)
        return cls(means, squares, np.abs(exact).max(axis=1), none, none)


def moments_of(rows: Array, n_samples: int) -> Moments:
    """Return the moments of rows of losses."""
    if rows.dtype == np.uint64:
        errors = sums_of_rows(rows, n_samples, packed=True)[0]
        return Moments.counted(errors, np.zeros_like(errors), n_samples)
    return Moments.of_reals(rows)


def moments_of_gains(rows: Array, base: Array, n_samples: int) -> Moments:
    """Return the moments of how much less each row loses than a base row."""
    if rows.dtype == base.dtype == np.uint64:
        return Moments.counted(*_alone(rows, base, n_samples), n_samples)
    return Moments.of_reals(as_reals(base[np.newaxis], n_samples) - as_reals(rows, n_samples))


def _alone(rows: Array, base: Array, n_samples: int) -> tuple[Array, Array]:
    """How many errors the base row has alone beside each row, and each row beside it."""
    base_alone, alone = np.empty((2, len(rows)), np.int64)
    buffer = np.empty((min(_AT_ONCE, len(rows)), rows.shape[1]), np.uint64)
    of_base = int(sums_of_rows(base[np.newaxis], n_samples, packed=True)[0][0])
    for start in range(0, len(rows), _AT_ONCE):
        part = slice(start, start + _AT_ONCE)
        both = np.bitwise_and(rows[part], base, out=buffer[: len(rows[part])])
        n_both = sums_of_rows(both, n_samples, packed=True)[0]
        base_alone[part] = of_base - n_both
        alone[part] = sums_of_rows(rows[part], n_samples, packed=True)[0] - n_both
    return base_alone, alone


def as_reals(rows: Array, n_samples: int) -> NDArray[np.float32]:
    """Rows of losses as float32, whatever they are."""
    return rows if rows.dtype != np.uint64 else bits_of(rows, n_samples).astype(np.float32)


def in_units(values: Array) -> NDArray[np.float32]:
    """Rows of losses in [0, 1], rounded to multiples of 2**-24."""
    units = rows_in_units(values)[:, : values.shape[1]]
    return np.ldexp(units.astype(np.float32), -UNIT_SHIFT)
