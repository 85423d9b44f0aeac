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

    It holds with probability at least ``1 - 2 exp(-nats)``, at any m.  `losses` is an array_like
    of shape (n_samples,) in [0, 1], else a ValueError is raised.

    Against the claim that the expectation is at most mu, a capital of 1 is bet on the samples one
    after another: ``prod_i (1 + b_i (x_i - mu))``, 0 <= b_i < 1/mu, has an expectation of at most 1
    if the claim is true, for any bets that depend on earlier samples alone.  So has the mean of
    several strategies, which therefore reaches exp(nats) with probability at most exp(-nats)
    (Markov), and it falls in mu: the lower limit is where it reaches that.  The upper limit is that
    of 1 - x, in mirror image (Result 24).

    Nine tenths of the capital take bets of about ``sqrt(2 nats / m)`` over the standard deviation
    of the samples before, as in Waudby-Smith and Ramdas (2024).  A tenth is shared by bets that are
    fixed, for standard deviations from 1/2 down by square roots of 2, so that a start that looks
    unlike the rest costs little.  For these, values are put into bins by sharing each between the
    two nearest edges; the logarithm is concave, and the capital never overstated.  Samples are
    taken in steps of about .618 m, since files are often sorted; another order of the samples has
    slightly other limits.

    >>> losses = np.arange(4000) % 5 / 40
    >>> low, high = betting_interval(losses, nats=math.log(20))
    >>> round(low, 4), round(float(losses.mean()), 4), round(high, 4)
    (0.0486, 0.05, 0.0514)
    """
    outside, low, high = betting_limits(_checked(losses), check_not_negative(nats=nats))
    _check_inside(outside)
    return low, high


def betting_p_value(losses: Any, expectation: float, nats: float) -> float:
    """How surprising losses are if their expectation is no larger than this.

    For one loss function fixed in advance whose expectation is at most `expectation`, in (0, 1),
    the result is at most a with probability at most a, for every a in (0, 1), at any m: it is one
    over the capital of `betting_interval`, which says what `losses` are.  nats, above 0, are fixed
    beforehand: the bets are the best ones for a result of ``exp(-nats)``.

    >>> losses = np.arange(4000) % 5 / 40
    >>> f"{betting_p_value(losses, 0.048, nats=3.0):.0e}"
    '5e-03'
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
