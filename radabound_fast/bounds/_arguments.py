"""Checks that only the bounds need."""

from __future__ import annotations

from typing import Any

from .._checks import check_choice, check_real

# c per estimator: one flipped sign moves the estimate by at most sqrt(c) / (l m).
SENSITIVITY = {"half-range": 1.0, "plain": 4.0}


def check_log_delta(log_delta: Any) -> float:
    """The natural logarithm of a probability: a finite number below 0."""
    value = check_real(log_delta=log_delta)
    if value >= 0.0:
        raise ValueError(f"log_delta must be negative, got {value!r}")
    return value


def check_sensitivity(estimator: Any) -> float:
    """The constant c of an estimator: 1 for half-range, 4 for plain."""
    return SENSITIVITY[check_choice(SENSITIVITY, estimator=estimator)]


def check_sides(two_sided: Any) -> int:
    """How many one-sided events a guarantee covers: 2 if `two_sided`, else 1."""
    if not isinstance(two_sided, bool):
        raise TypeError(f"two_sided must be True or False, got {two_sided!r}")
    return 2 if two_sided else 1


def check_not_negative(**named: Any) -> float:
    """A finite real number of at least 0."""
    ((name, _),) = named.items()
    value = check_real(**named)
    if value < 0.0:
        raise ValueError(f"{name} must not be negative, got {value!r}")
    return value
