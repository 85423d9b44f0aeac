"""One rule, one message: the checks that every layer shares.

Each takes its argument by name, which the message quotes, and returns it in one type.
"""

from __future__ import annotations

import math
import numbers
import operator
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

Align = Callable[[str, int], str]  # str.ljust or str.rjust

MAX_VECTORS = 2**23
MAX_SAMPLES = 2**40
_MOST_LISTED = 8  # values of a message
LEAST_DELTA = 1e-300  # half of it, and its logarithm, are still numbers


def _only(named: dict[str, Any]) -> tuple[str, Any]:
    ((name, value),) = named.items()
    return name, value


def shown(value: Any) -> str:
    """A value as a message shows it; many values at once, which may be labels, by their number."""
    try:
        n = len(value)
    except TypeError:
        n = 0
    if n > _MOST_LISTED and not isinstance(value, (str, bytes)):
        return f"{type(value).__name__} of length {n:,}"
    return f"{value!r:.100}"


@contextmanager
def read_as(**names: str) -> Iterator[None]:
    """Errors of what reads `y_pred`, or `key`, say the name of the argument that it reads here."""
    try:
        yield
    except (TypeError, ValueError) as error:
        first, space, rest = str(error).partition(" ")
        if first in names:
            error.args = (names[first] + space + rest,)
        raise


def check_real(**named: Any) -> float:
    """A finite real number, as a float; bools and strings are not numbers here."""
    name, value = _only(named)
    if type(value) is not float:
        if isinstance(value, bool) or not isinstance(value, numbers.Real):
            raise TypeError(f"{name} must be a real number, got {shown(value)}")
        try:
            value = float(value)
        except OverflowError:
            raise ValueError(f"{name} must be finite in float64, got {shown(value)}") from None
    if not math.isfinite(value):
        raise ValueError(f"{name} must be finite, got {shown(value)}")
    return value


def _refused(named: dict[str, Any], rule: str, value: Any) -> ValueError:
    return ValueError(f"{_only(named)[0]} must be {rule}, got {shown(value)}")


def check_probability(**named: Any) -> float:
    """A real number strictly between 0 and 1."""
    value = check_real(**named)
    if not 0.0 < value < 1.0:
        raise _refused(named, "in (0, 1)", value)
    return value


def check_delta(delta: Any) -> float:
    """The delta of a guard or a plan: `LEAST_DELTA` or more, and below 1."""
    value = check_probability(delta=delta)
    if value < LEAST_DELTA:
        raise _refused({"delta": delta}, f"at least {LEAST_DELTA:g}", value)
    return value


def check_fraction(**named: Any) -> float:
    """A real number in the closed interval [0, 1]: a mean loss, a guess."""
    value = check_real(**named)
    if not 0.0 <= value <= 1.0:
        raise _refused(named, "in [0, 1]", value)
    return value


def check_positive(**named: Any) -> float:
    """A finite real number above 0."""
    value = check_real(**named)
    if value <= 0.0:
        raise _refused(named, "positive", value)
    return value


def check_integer(**named: Any) -> int:
    """An integer of any integer type; bools and floats are refused."""
    name, value = _only(named)
    if type(value) is int:
        return value
    # numpy.bool_ has no __index__; Python's bool has one, and is refused by name
    if isinstance(value, bool) or not hasattr(type(value), "__index__"):
        raise TypeError(f"{name} must be an integer, got {shown(value)}")
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be an integer, got {shown(value)}") from None


def check_count(*, at_most: int | None = None, **named: Any) -> int:
    """An integer of at least 1 and, where a limit is given, at most that."""
    name, _ = _only(named)
    value = check_integer(**named)
    if value < 1:
        raise ValueError(f"{name} must be at least 1, got {value}")
    if at_most is not None and value > at_most:
        raise ValueError(f"{name} must be at most {at_most}, got {value}")
    return value


def check_n_samples(n_samples: Any) -> int:
    """The paper's m: 1 to 2^40."""
    return check_count(n_samples=n_samples, at_most=MAX_SAMPLES)


def check_n_vectors(n_vectors: Any) -> int:
    """The paper's l: 1 to 2^23."""
    return check_count(n_vectors=n_vectors, at_most=MAX_VECTORS)


def check_n_folds(n_folds: Any) -> int:
    """The k of a cross-validation: at least 2."""
    value = check_integer(n_folds=n_folds)
    if value < 2:
        raise ValueError(f"n_folds must be at least 2, got {value}")
    return value


def check_seed(seed: Any) -> int:
    """An integer from 0 to 2^64 - 1; for None one is drawn from the operating system."""
    if seed is None:
        return int.from_bytes(os.urandom(8))
    value = check_integer(seed=seed)
    if not 0 <= value < 2**64:
        raise ValueError(f"seed must be in [0, 2**64), got {value}")
    return value


def check_bool(**named: Any) -> bool:
    """True or False, and nothing that counts as one."""
    name, value = _only(named)
    if not isinstance(value, bool):
        raise TypeError(f"{name} must be True or False, got {shown(value)}")
    return value


def check_choice(choices: Iterable[str], **named: Any) -> str:
    """One of the known names; the message lists them."""
    name, value = _only(named)
    known = list(choices)
    if not isinstance(value, str) or value not in known:
        listed = ", ".join(repr(choice) for choice in known)
        raise ValueError(f"{name} must be one of {listed}, got {shown(value)}")
    return value


def counted(n: int, one: str, many: str | None = None) -> str:
    """A number and what is counted: ``1 query``, ``2,000 queries``."""
    return f"{n:,} {one if n == 1 else many or f'{one}s'}"


def certainty(delta: float) -> str:
    """``1 - delta`` in words that claim no more: 0.9, or "1 - 1e-12" where digits run out."""
    short = f"{1 - delta:g}"
    is_it = float(short) < 1 and abs(1 - float(short) - delta) <= 1e-9 * delta
    return short if is_it else f"1 - {delta}"


def table_lines(rows: Sequence[Sequence[str]], align: Sequence[Align] | None = None) -> list[str]:
    """Rows of cells as lines with columns side by side; `align` has a side for each column."""
    sides = align or [str.ljust] * len(rows[0])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            side(cell, width) for side, cell, width in zip(sides, row, widths, strict=True)
        ).rstrip()
        for row in rows
    ]
