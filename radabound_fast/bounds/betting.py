"""Confidence limits of a mean of real-valued losses by betting: narrow where they vary little."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._checks import check_probability
from .._kernels.limits import betting_capital, betting_limits
from ._arguments import check_not_negative


def betting_interval(losses: Any, nats: float) -> tuple[float, float]:
    """Confidence interval for the expectation of a loss, from its values on independent samples.

    For one loss function fixed in advance, it holds with probability at least ``1 - 2 exp(-nats)``,
    at any m.  Against the claim that the expectation is at most mu, a capital of 1 is bet on the
    samples one after another, by several strategies; it reaches exp(nats) with probability at most
    exp(-nats) if the claim is true, and the lower limit is the mu at which it does (Result 24,
    after Waudby-Smith and Ramdas 2024).  The upper limit is that of 1 - x, in mirror image.
    Samples are taken in steps of about .618 m, since files are often sorted; another order of the
    samples has slightly other limits.

    >>> losses = np.arange(4000) % 5 / 40
    >>> low, high = betting_interval(losses, nats=math.log(20))
    >>> round(low, 4), round(float(losses.mean()), 4), round(high, 4)
    (0.0486, 0.05, 0.0514)

    Parameters
    ----------
    losses : array_like, shape (n_samples,)
        In [0, 1].
    nats : float
        ``ln(1/a)`` for an error of a on each side, at least 0.

    Returns
    -------
    low, high : float, in [0, 1], around the mean
    """
    outside, low, high = betting_limits(_checked(losses), check_not_negative(nats=nats))
    _check_inside(outside)
    return low, high


def betting_p_value(losses: Any, expectation: float, nats: float) -> float:
    """How surprising losses are if their expectation is no larger than this.

    For one loss function fixed in advance whose expectation is at most `expectation`, the result is
    at most a with probability at most a, for every a in (0, 1), at any m: it is one over the
    capital of `betting_interval` (Result 24).

    >>> losses = np.arange(4000) % 5 / 40
    >>> f"{betting_p_value(losses, 0.048, nats=3.0):.0e}"
    '5e-03'

    Parameters
    ----------
    losses : array_like, shape (n_samples,)
        In [0, 1].
    expectation : float
        In (0, 1).
    nats : float
        Above 0, fixed beforehand: the bets are the best ones for a result of ``exp(-nats)``.

    Returns
    -------
    float, in [0, 1]
    """
    nats, expectation = check_not_negative(nats=nats), check_probability(expectation=expectation)
    outside, capital = betting_capital(_checked(losses), expectation, nats)
    _check_inside(outside)
    return math.exp(-max(capital, 0.0))


def _checked(losses: Any) -> NDArray[np.float64]:
    values = np.asarray(losses, np.float64)
    if values.ndim != 1 or values.size == 0:
        raise ValueError(f"losses must be one number per sample, got shape {values.shape}")
    return values


def _check_inside(outside: int) -> None:
    if outside >= 0:
        raise ValueError(f"losses must be in [0, 1], got one outside at sample {outside}")
