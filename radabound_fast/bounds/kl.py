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
    # With x = ln((1-p)/(1-q)), kl lies between p ln p + (1-p) x and (1-p) x; and Hoeffding.
    log_rest = math.log1p(-p)
    far = min(p + math.sqrt(0.5 * b), -math.expm1(log_rest - (b - p * math.log(p)) / (1.0 - p)))
    near = min(-math.expm1(log_rest - b / (1.0 - p)), far)
    return _limit(p, b, max(p, near), max(p, far)) if far < 1.0 else 1.0


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
    # With x = ln(p/q), kl lies between p x + (1-p) ln(1-p) and p x; and Hoeffding.
    far = max(p - math.sqrt(0.5 * b), p * math.exp(-(b - (1.0 - p) * math.log1p(-p)) / p))
    near = max(p * math.exp(-b / p), far)
    return _limit(p, b, near, far) if far > 0.0 else 0.0


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


def _limit(p: float, b: float, near: float, far: float) -> float:
    """The q between two limits with ``kl(p, q) = b``; a limit itself if rounding says so."""
    if divergence(p, far) <= b:
        return far
    if divergence(p, near) >= b:
        return near
    return root(lambda q: divergence(p, q) / b - 1.0, min(near, far), max(near, far))


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
