"""Confidence limits of a mean by the relative entropy of two coins."""

from __future__ import annotations

import math

from .._checks import check_fraction, check_probability, check_real
from ._arguments import check_not_negative
from ._roots import root


def kl_plus(mean: float, budget: float) -> float:
    """The largest truth that a mean still allows: ``max{q >= p : kl(p, q) <= b}``.

    ``kl(p, q) = p ln(p/q) + (1-p) ln((1-p)/(1-q))``.  With ``b = ln(1/delta) / m`` the
    expectation of one function with losses in [0, 1] lies above ``kl_plus(mean, b)`` with
    probability at most delta over m independent samples, at any m (Chernoff).

    Parameters
    ----------
    mean : float
        The p of the formula, in [0, 1].
    budget : float
        The b of the formula, at least 0, in nats a sample.

    Returns
    -------
    float
        In ``[mean, 1]``.  Never above ``mean + sqrt(b / 2)``, which is Hoeffding's limit.

    Raises
    ------
    TypeError, ValueError
        An argument of the wrong type or out of its range.

    >>> round(kl_plus(0.02, 0.004), 10)
    0.0351713082
    """
    p, b = check_fraction(mean=mean), check_not_negative(budget=budget)
    if b == 0.0 or p == 1.0:
        return p
    if p == 0.0:
        return -math.expm1(-b)
    # kl >= 2 (q-p)^2, and kl >= p ln p + (1-p) ln((1-p)/(1-q)): two limits from above
    most = -math.expm1(math.log1p(-p) - (b - p * math.log(p)) / (1.0 - p))
    high = max(p, min(p + math.sqrt(0.5 * b), most))
    if high >= 1.0:
        return 1.0
    if divergence(p, high) <= b:  # only rounding brings this about
        return high
    return root(lambda q: divergence(p, q) / b - 1.0, p, high)


def kl_minus(mean: float, budget: float) -> float:
    """The smallest truth that a mean still allows: ``min{q <= p : kl(p, q) <= b}``.

    Parameters
    ----------
    mean : float
        The p of the formula, in [0, 1].
    budget : float
        The b of the formula, at least 0, in nats a sample; see `kl_plus`.

    Returns
    -------
    float
        In ``[0, mean]``.  Never below ``mean - sqrt(b / 2)``.

    Raises
    ------
    TypeError, ValueError
        An argument of the wrong type or out of its range.

    >>> round(kl_minus(0.02, 0.004), 10)
    0.0099152029
    """
    p, b = check_fraction(mean=mean), check_not_negative(budget=budget)
    if b == 0.0 or p == 0.0:
        return p
    if p == 1.0:
        return math.exp(-b)
    least = p * math.exp(-(b - (1.0 - p) * math.log1p(-p)) / p)
    low = max(p - math.sqrt(0.5 * b), least)
    if low <= 0.0:
        return 0.0
    if divergence(p, low) <= b:
        return low
    return root(lambda q: divergence(p, q) / b - 1.0, low, p)


def kl_tolerance(answer: float, budget: float, epsilon: float) -> float:
    """How far the mean may lie from an answer that is still within epsilon of the truth.

    The largest tau such that every mean in [0, 1] within tau of the answer v has its whole
    interval ``[kl_minus(mean, b), kl_plus(mean, b)]`` in ``[v - epsilon, v + epsilon]``.

    Parameters
    ----------
    answer : float
        The v of the formula: a guess, or an answer, which may lie outside [0, 1].
    budget : float
        The b of the formula, at least 0, in nats a sample; see `kl_plus`.
    epsilon : float
        The error tolerated, in (0, 1).

    Returns
    -------
    float
        In [0, 1], or -1 where even a mean equal to the answer will not do.

    Raises
    ------
    TypeError, ValueError
        An argument of the wrong type or out of its range.

    Notes
    -----
    Both limits grow with the mean, so only the two outermost means need to be tried.

    >>> round(kl_tolerance(0.02, budget=0.004, epsilon=0.03), 4)
    0.0118
    """
    v, b = check_real(answer=answer), check_not_negative(budget=budget)
    epsilon = check_probability(epsilon=epsilon)
    tau = min(1.0, _room_below(v, v + epsilon, b), _room_below(1.0 - v, 1.0 - v + epsilon, b))
    return tau if tau >= 0.0 else -1.0


def _room_below(v: float, q: float, b: float) -> float:
    """The largest tau with ``kl_plus(v + tau, b) <= q``, infinite where every mean will do."""
    if q >= 1.0:
        return math.inf
    if q <= 0.0 or -math.log1p(-q) < b:
        return -math.inf
    return root(lambda p: divergence(p, q) - b, 0.0, q) - v


def divergence(p: float, q: float) -> float:
    """``p ln(p/q) + (1-p) ln((1-p)/(1-q))`` for 0 < q < 1, precise where q is near p."""
    return _term(p, q, q - p) + _term(1.0 - p, 1.0 - q, p - q)


def _term(p: float, q: float, step: float) -> float:
    """``p ln(p / q)`` for q = p + step, the step rounded less than the difference would be."""
    if p == 0.0:
        return 0.0
    return -p * math.log1p(step / p) if abs(step) < 0.5 * p else p * math.log(p / q)
