"""Checks that only the bounds need."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._checks import check_choice, check_real, shown

# c per estimator: one flipped sign moves the estimate by at most sqrt(c) / (l m).
SENSITIVITY = {"half-range": 1.0, "plain": 4.0}


def check_log_delta(log_delta: Any) -> float:
    """The natural logarithm of a probability: a finite number below 0."""
    value = check_real(log_delta=log_delta)
    if value >= 0.0:
        raise ValueError(f"log_delta must be negative, got {shown(value)}")
    return value


def check_sensitivity(estimator: Any) -> float:
    """The constant c of an estimator: 1 for half-range, 4 for plain."""
    return SENSITIVITY[check_choice(SENSITIVITY, estimator=estimator)]


def check_not_negative(**named: Any) -> float:
    """A finite real number of at least 0."""
    ((name, _),) = named.items()
    value = check_real(**named)
    if value < 0.0:
        raise ValueError(f"{name} must not be negative, got {shown(value)}")
    return value


def check_fractions(**named: Any) -> Any:
    """Real numbers in [0, 1], of any shape; a float for a float."""
    ((name, value),) = named.items()
    if type(value) is float and 0.0 <= value <= 1.0:
        return value
    values = _reals(name, value)
    return _all_in(values, (values >= 0.0) & (values <= 1.0), name, "be in [0, 1]")


def check_counts(n_samples: int, **named: Any) -> Any:
    """Integers from 0 to m, of any shape, as floats; these are exact up to 2^53."""
    ((name, value),) = named.items()
    if type(value) is int and 0 <= value <= n_samples:
        return float(value)
    values = _integers(name, value)
    rule = f"be in [0, {n_samples}]"
    return _all_in(values, (values >= 0) & (values <= n_samples), name, rule)


def check_numbers(**named: Any) -> Any:
    """Integers of at least 1, of any shape, as floats; these are exact up to 2^53."""
    ((name, value),) = named.items()
    if type(value) is int and value >= 1:
        return float(value)
    values = _integers(name, value)
    return _all_in(values, values >= 1, name, "be at least 1")


def check_sizes(**named: Any) -> NDArray[Any]:
    """Integers of at least 0, of any shape."""
    ((name, value),) = named.items()
    values = _integers(name, value)
    _all_in(values, values >= 0, name, "be at least 0")
    return values


def check_nats(nats: Any) -> Any:
    """Finite logarithms of at least 0, of any shape; a float for a float."""
    if type(nats) is float and 0.0 <= nats < math.inf:
        return nats
    values = _reals("nats", nats)
    good = (values >= 0.0) & (values < math.inf)
    return _all_in(values, good, "nats", "be finite and at least 0")


def _reals(name: str, value: Any, kinds: str = "fiu", what: str = "real numbers") -> NDArray[Any]:
    values = np.asarray(value)
    if values.dtype.kind not in kinds:
        raise TypeError(f"{name} must be {what}, got {shown(value)}")
    return values


def _integers(name: str, value: Any) -> NDArray[Any]:
    return _reals(name, value, "iu", "integers")


def _all_in(values: NDArray[Any], good: NDArray[np.bool_], name: str, rule: str) -> Any:
    if not good.all():
        raise ValueError(f"{name} must {rule}, got {values[~good].flat[0]!s}")
    return values.astype(np.float64, copy=False) if values.shape else float(values)
