"""Confidence limits of a mean by the relative entropy of two coins.

``kl(p, q) = p ln(p/q) + (1-p) ln((1-p)/(1-q))``.  The expectation of one function with losses in
[0, 1] lies above ``kl+(p, b) = max{q >= p : kl(p, q) <= b}`` of the mean p of m independent samples
with probability at most ``exp(-m b)``, at any m, and so it does below ``kl-(p, b)``, the least such
q (Chernoff; Fact D of ``docs/explanation/theory.md``).  Limits are rounded outwards, never nearer
to the mean than the exact ones.
"""

from __future__ import annotations

import math
from typing import Any

from .._checks import check_n_samples, check_probability, check_real
from ._arguments import check_fractions, check_nats, check_not_negative
from ._limits import OUT, TINY, at_least, between, functions_for, limits
from ._roots import bisect, root


def kl_interval(means: Any, n_samples: int, nats: Any) -> tuple[Any, Any]:
    """Confidence intervals ``[kl-(mean, nats / m), kl+(mean, nats / m)]`` for many means.

    Chernoff's bound for the expectation of one function fixed in advance, with values in [0, 1].

    >>> low, high = kl_interval(0.02, n_samples=4000, nats=16.0)
    >>> round(low, 10), round(high, 10)
    (0.0099152029, 0.0351713082)

    Parameters
    ----------
    means : float or array_like of float
        Mean losses, in [0, 1].
    n_samples : int
        m held-out samples, 1 to 2^40.
    nats : float or array_like of float
        ``ln(1/a)`` for an error of a on each side, at least 0.  Broadcast with `means`.

    Returns
    -------
    lows, highs : float or ndarray of float64
        In [0, 1], around the means; but for rounding no further from them than Hoeffding's
        ``sqrt(nats / (2 m))``.
    """
    m = check_n_samples(n_samples)
    return limits(
        lambda p, nats, _: (kl_drop(p, 1.0 - p, nats / m), kl_drop(1.0 - p, p, nats / m)),
        check_fractions(means=means),
        check_nats(nats),
    )


def kl_tolerance(answer: float, budget: float, epsilon: float) -> float:
    """How far a mean may lie from an answer so that its whole interval is within epsilon of it.

    The largest tau such that every mean in [0, 1] within tau of the answer v has its whole
    interval ``[kl-(mean, b), kl+(mean, b)]`` in ``[v - epsilon, v + epsilon]``.

    >>> round(kl_tolerance(0.02, budget=0.004, epsilon=0.03), 4)
    0.0118

    Parameters
    ----------
    answer : float
        v, a guess or an answer, which may lie outside [0, 1].
    budget : float
        b, in nats a sample, at least 0.
    epsilon : float
        The error tolerated, in (0, 1).

    Returns
    -------
    float, in [0, 1], or -1 where even a mean equal to the answer will not do
    """
    v, b = check_real(answer=answer), check_not_negative(budget=budget)
    epsilon = check_probability(epsilon=epsilon)
    # both limits grow with the mean: the two outermost means are enough
    tau = min(1.0, _room_below(v, v + epsilon, b), _room_below(1.0 - v, 1.0 - v + epsilon, b))
    return tau if tau >= 0.0 else -1.0


def kl_free(epsilon: float, budget: float) -> float:
    """The means whose whole interval is within epsilon: ``[0, low]`` and ``[1 - low, 1]``.

    Returns low: in [0, 0.5), 0.5 where every mean will do, or -1 where none will.  `budget` is the
    b of the interval ``[kl-(mean, b), kl+(mean, b)]``, at least 0, in nats a sample.

    Below 1/2 the upper limit binds, and a mean p passes iff ``kl(p, p + epsilon) >= b``, a convex
    function of p with its minimum below 1/2; above 1/2, in mirror image.  If that minimum is below
    b, the few means around 1/2 that may still pass are left out.

    >>> round(kl_free(0.02, 0.004), 4), kl_free(0.05, 0.004)
    (0.0399, 0.5)
    """
    epsilon, b = check_probability(epsilon=epsilon), check_not_negative(budget=budget)
    b += OUT * (b + epsilon)  # more than rounding takes from the divergence
    if -math.log1p(-epsilon) < b:
        return -1.0

    def slope(p: float) -> float:
        q = p + epsilon
        if q >= 1.0:  # rounded to it, where epsilon is next to 1
            return math.inf
        return epsilon / (q * (1.0 - q)) - math.log1p(epsilon / p) + math.log1p(-epsilon / (1 - p))

    worst = bisect(lambda p: slope(p) > 0.0, 0.0, min(0.5, 1.0 - epsilon))
    if divergence(worst, worst + epsilon, epsilon) >= b:
        return 0.5
    return bisect(lambda p: divergence(p, p + epsilon, epsilon) < b, 0.0, worst)


def divergence(p: float, q: float, step: float | None = None) -> float:
    """``kl(p, q)`` for 0 < q < 1, precise where q = p + step is near p."""
    step = q - p if step is None else step
    return _term(p, q, step) + _term(1.0 - p, 1.0 - q, -step)


def _term(p: float, q: float, step: float) -> float:
    """``p ln(p / q)`` for q = p + step, the step rounded less than the difference would be."""
    if p == 0.0:
        return 0.0
    return -p * math.log1p(step / p) if abs(step) < 0.5 * p else p * math.log(p / q)


def _room_below(v: float, q: float, b: float) -> float:
    """The largest tau with ``kl+(v + tau, b) <= q``, infinite where every mean will do."""
    if q >= 1.0:
        return math.inf
    if q <= 0.0 or -math.log1p(-q) < b:
        return -math.inf
    return root(lambda p: divergence(p, q) - b, 0.0, q) - v


def kl_drop(p: Any, r: Any, b: Any) -> Any:
    """``y = ln(p / q)`` for the least q with ``kl(p, q) <= b``, where r = 1 - p; rounded up.

    ``kl(p, q) = p y - r ln(1 + (p/r)(1 - e^-y))`` is convex in y >= 0.
    """
    f = functions_for(p)
    p, r = at_least(p, TINY), at_least(r, TINY)
    y = kl_drop_nearly(p, r, b)
    for _ in range(3):
        e = p * -f.expm1(-y)
        y = between(y - (p * y - r * f.log1p(e / r) - b) * (r + e) / e)
    return y + OUT * (r + y)


def kl_drop_nearly(p: Any, r: Any, b: Any) -> Any:
    """A start for `kl_drop`: the root of the first terms of its series; p, r > 0."""
    return between(functions_for(p).sqrt(2.0 * b * r / p) + b * (1.0 + p) / (3.0 * p))
