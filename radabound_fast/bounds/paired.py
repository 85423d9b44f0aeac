"""Confidence limits of a difference of two error rates, from the samples on which they disagree."""

from __future__ import annotations

import math

from .._checks import check_integer, check_n_samples
from ._arguments import check_not_negative
from .kl import kl_plus


def paired_interval(n_plus: int, n_minus: int, n_samples: int, nats: float) -> tuple[float, float]:
    """Confidence interval for the difference of two error rates, from a paired comparison.

    The difference d is 1 on `n_plus` samples, -1 on `n_minus` and 0 on the others: where only the
    first of two models errs, where only the second does, and where both or neither do.  For one
    function d fixed in advance, its expectation lies between the limits with probability at least
    ``1 - 2 exp(-nats)``, at any m.

    Parameters
    ----------
    n_plus, n_minus : int
        Samples with d = 1 and d = -1; at least 0, together at most m.
    n_samples : int
        m independent samples.
    nats : float
        ``ln(2 / (w delta))``, at least 0, where w is the weight of this comparison in a union
        bound, 1 for a single one.

    Returns
    -------
    tuple of float
        Limits in [-1, 1], the mean of d between them.

    Notes
    -----
    ``s = P(d != 0)`` is at most ``s+ = kl_plus(mean |d|, L / m)`` with ``L = nats + ln(3/2)``,
    and ``E exp(lambda d) = 1 - s + s cosh(lambda) + E d sinh(lambda)`` grows with s.  So by
    Chernoff's bound the lower limit is the least D in ``[-s+, mean]`` at which
    ``sup_{lambda >= 0} [lambda mean - ln(1 - s+ + s+ cosh(lambda) + D sinh(lambda))] <= L / m``,
    and the upper one is its mirror image: three events, each of probability at most exp(-L).
    The smaller the share of samples on which the models disagree, the narrower.
    docs/explanation/theory.md, "Is B better than A?".

    Examples
    --------
    >>> low, high = paired_interval(n_plus=30, n_minus=50, n_samples=4000, nats=math.log(20))
    >>> round(low, 4), round(high, 4)
    (-0.0116, 0.0017)
    """
    m = check_n_samples(n_samples)
    counts = check_integer(n_plus=n_plus), check_integer(n_minus=n_minus)
    for name, count in zip(("n_plus", "n_minus"), counts, strict=True):
        if count < 0:
            raise ValueError(f"{name} must not be negative, got {count}")
    if sum(counts) > m:
        raise ValueError(f"n_plus + n_minus must be at most n_samples = {m}, got {sum(counts)}")
    budget = (check_not_negative(nats=nats) + math.log(1.5)) / m
    spread = kl_plus(sum(counts) / m, budget)
    mean = (counts[0] - counts[1]) / m
    return _lower(mean, spread, budget), -_lower(-mean, spread, budget)


def _lower(mean: float, spread: float, budget: float) -> float:
    """The least D in [-spread, mean] that the Chernoff bound does not rule out."""
    if mean <= -spread or _rate(mean, spread, -spread) <= budget:
        return -spread
    # by halves, down to neighbouring floats: the rate is a small difference, no smooth function
    low, high = -spread, mean
    while low < (middle := (low + high) / 2.0) < high:
        low, high = (low, middle) if _rate(mean, spread, middle) <= budget else (middle, high)
    return low


def _rate(mean: float, spread: float, expectation: float) -> float:
    """``sup_{lambda >= 0} [lambda mean - ln E exp(lambda d)]``; at x = exp(lambda) it is a root.

    d is 1, -1 and 0 with probabilities p, q and 1 - spread, and p - q is its expectation.
    """
    p, q = max(0.0, spread + expectation) / 2.0, max(0.0, spread - expectation) / 2.0
    rest = 1.0 - spread
    # p (1 - mean) x^2 - mean rest x - q (1 + mean) = 0, in the form that does not cancel
    square, linear, constant = p * (1.0 - mean), mean * rest, q * (1.0 + mean)
    discriminant = math.sqrt(linear * linear + 4.0 * square * constant)
    if linear >= 0.0:
        above, below = linear + discriminant, 2.0 * square
    else:
        above, below = 2.0 * constant, discriminant - linear
    if below <= 0.0:  # the larger lambda the better
        limit = p if mean == 1.0 else rest if mean == 0.0 else 0.0
        return math.inf if limit <= 0.0 else -math.log(limit)
    x = max(1.0, above / below)
    return mean * math.log(x) - math.log1p(p * (x - 1.0) + q * (1.0 / x - 1.0))
