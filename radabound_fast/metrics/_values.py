"""Values and counts that come from elsewhere: read, and which values are counts."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from radabound_fast._checks import check_integer, check_real

_ULPS = 4.0  # between a count over n in floating point and what other code has computed


def read_values(value: Any, least: float, most: float) -> Any:
    """A float, or an ndarray of shape (k,), in this range."""
    if np.ndim(value) == 0:
        number = check_real(value=value)
        if not least <= number <= most:
            raise ValueError(f"value must be in [{least:g}, {most:g}], got {number!r}")
        return value if isinstance(value, np.floating) else number
    values = np.asarray(value)
    if values.ndim != 1 or values.dtype.kind not in "fiu":
        raise TypeError(f"value must be a number or one number a key, got {value!r:.100}")
    good = (values >= least) & (values <= most)
    if not good.all():
        raise ValueError(f"value must be in [{least:g}, {most:g}], got {values[~good][0]!s}")
    return values


def read_counts(count: Any, n_rows: int) -> Any:
    """An int, or an ndarray of int64 of shape (k,), from 0 to n."""
    if np.ndim(count) == 0:
        number = check_integer(count=count)
        if not 0 <= number <= n_rows:
            raise ValueError(f"count must be in [0, {n_rows}], got {number}")
        return number
    counts = np.asarray(count)
    if counts.ndim != 1 or counts.dtype.kind not in "iu":
        raise TypeError(f"count must be an integer or one integer a key, got {count!r:.100}")
    good = (counts >= 0) & (counts <= n_rows)
    if not good.all():
        raise ValueError(f"count must be in [0, {n_rows}], got {counts[~good][0]}")
    return counts.astype(np.int64)


def counts_of(values: NDArray[Any], n_rows: int) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The count that is nearest to each value, and whether the value is it within its digits.

    A value that was printed with so many digits is any number that rounds to it: .2004 of 3,997
    rows is 801, which is .20040030.  A value of full precision is a count if it is that over n up
    to rounding.
    """
    floats = values.astype(np.float64)
    counts = np.rint(floats * n_rows)
    apart = np.abs(floats - counts / n_rows)
    precision = float(np.finfo(values.dtype if values.dtype.kind == "f" else np.float64).eps)
    is_count = apart <= _ULPS * precision * np.maximum(counts, 1) / n_rows
    # what has more than 15 digits is no count of rows within them
    printed = ~is_count & (floats.round(15) == floats) if values.dtype == np.float64 else ~is_count
    for place in np.flatnonzero(printed):
        is_count[place] = apart[place] <= 0.5 * (1 + 1e-9) * _last_digit(values[place])
    return counts.astype(np.int64), is_count


def _last_digit(value: Any) -> float:
    """What a unit is worth in the last digit of a number as it prints: of float32 in its own."""
    mantissa, _, exponent = str(value).partition("e")
    return float(10.0 ** (int(exponent or 0) - len(mantissa.partition(".")[2])))
