"""Theorem 3: the paper's bound by two applications, minimised over how the excess is shared."""

from __future__ import annotations

import math

from .._checks import check_n_samples, check_n_vectors
from ._arguments import check_log_delta
from ._roots import root, root_near
from .paper import checked


def bernstein_split_log_tail(excess: float, n_samples: int, n_vectors: int) -> float:
    """Theorem 3: the excess is shared between the sample and the estimate.

    ``P(Psi > 2 R~ + e) < inf_{0 < a < e} exp(-2 m (e - a)^2) + exp(-3 m l a^2 / (30 + 8 l a))``;
    not clipped: up to log 2 for a small excess.

    The printed proof rests on Theorem 2, which is false.  One-sided and for a class fixed in
    advance the statement follows from `symmetrised_log_tail` for l <= 87 (plain) and
    l <= 109 (half-range).

    Each end of the interval is a local infimum, and at a small excess the best.  Between them there
    is at most one local minimum: `_balance` gives the argument.

    >>> round(bernstein_split_log_tail(0.05, n_samples=4000, n_vectors=32), 4)
    -5.0557
    """
    e, m, n = checked(excess, n_samples, n_vectors)
    if e == 0.0:
        return 0.0
    shares = _Shares(2.0 * m * e * e, 3.0 * m * n * e * e, 8.0 * n * e)
    ends = math.log1p(math.exp(-max(shares.sampling, shares.estimate(1.0))))
    u = _balance(shares)
    return ends if u is None else min(ends, shares.log_sum(u))


def bernstein_split_excess(log_delta: float, n_samples: int, n_vectors: int) -> float:
    """The excess at which Theorem 3 equals ``exp(log_delta)``.

    >>> round(bernstein_split_excess(math.log(0.09), n_samples=4000, n_vectors=32), 4)
    0.0363
    """
    t = -check_log_delta(log_delta)
    m, n = check_n_samples(n_samples), check_n_vectors(n_vectors)

    def shared(t: float) -> float:
        """The excess of which each term's share makes that term ``exp(-t)``."""
        b = 8.0 * t / (6.0 * m)
        return math.sqrt(t / (2.0 * m)) + b + math.sqrt(b * b + 10.0 * t / (m * n))

    # Where the sum is delta each term is below delta, and two terms of delta / 2 make it.
    low, high = shared(t), shared(t + math.log(2.0))
    return root_near(lambda e: bernstein_split_log_tail(e, m, n) + t, low, high)


class _Shares:
    """The two exponents when a share u = a / e of the excess goes to the estimate.

    sampling (1 - u)^2 for the sample, and G(u) = k u^2 / (30 + d u) for the estimate.
    """

    def __init__(self, sampling: float, k: float, d: float) -> None:
        self.sampling, self.k, self.d = sampling, k, d

    def estimate(self, u: float) -> float:
        return self.k * u * u / (30.0 + self.d * u)

    def slope(self, u: float) -> float:
        """G'(u)."""
        v = 30.0 + self.d * u
        return self.k * (60.0 + self.d * u) * u / (v * v)

    def cubic(self, u: float) -> float:
        """p(u) such that G' = k p / (30 + d u)^3 and G'' / G' = 1800 / p."""
        return (30.0 + self.d * u) * (60.0 + self.d * u) * u

    def log_sum(self, u: float) -> float:
        x, y = self.sampling * (1.0 - u) ** 2, self.estimate(u)
        return -min(x, y) + math.log1p(math.exp(-abs(x - y)))

    def log_ratio(self, u: float) -> float:
        """Logarithm of the rise of the first term over the fall of the second, both as u grows."""
        s, x = self.sampling, 1.0 - u
        return math.log(2.0 * s * x / self.slope(u)) - s * x * x + self.estimate(u)

    def log_ratio_slope(self, u: float) -> float:
        x = 1.0 - u
        return 2.0 * self.sampling * x - 1.0 / x + self.slope(u) - 1800.0 / self.cubic(u)

    def log_ratio_bend(self, u: float) -> float:
        x, v, p = 1.0 - u, 30.0 + self.d * u, self.cubic(u)
        cubic_slope = 1800.0 + self.d * u * (180.0 + 3.0 * self.d * u)
        bend = 1800.0 * self.k / v**3
        return -2.0 * self.sampling - 1.0 / (x * x) + bend + 1800.0 * (cubic_slope / p) / p


def _balance(shares: _Shares) -> float | None:
    """The one local minimum of the sum strictly between its ends, or None.

    There the rise of one term equals the fall of the other: `log_ratio` D is 0 and
    increasing.  Its slope is (2 s x - 1/x) + (G' - 1800/p), x = 1 - u.  The first bracket
    is concave; so is the second, for G''' < 0, and 1/p is convex since log p is concave.
    A concave slope is positive on one interval at most, D increases only there, and so
    crosses 0 upwards once at most.  Each root below is bracketed by hand.
    """
    s, k, d = shares.sampling, shares.k, shares.d
    knee = min(0.25, 30.0 / d)
    # u below the knee: p <= 5400 u, hence 1800 p'/p^2 >= 1/(3 u^2).  u above 1/2: it is <= 12.
    left = min(knee, 1.0 / (3.0 * math.sqrt(s + 1.0)))
    right = 1.0 - 0.5 / math.sqrt(12.0 + k / 15.0)
    peak = root(shares.log_ratio_bend, left, right)
    if shares.log_ratio_slope(peak) <= 0.0:
        return None
    if shares.log_ratio(peak) > 0.0:
        # 1800/p >= 1/(3u), against which 2s and G' <= k u / 15 are at most 1/(6u) each
        left = 0.5 * min(peak, knee, 1.0 / (12.0 * s), math.sqrt(2.5 / k))
        left, right = root(shares.log_ratio_slope, left, peak), peak
        if shares.log_ratio(left) >= 0.0:
            return None
    else:
        right = 1.0 - 0.5 * min(1.0 - peak, 0.5 / math.sqrt(s), max(0.5 * d, 7.5) / k)
        left, right = peak, root(shares.log_ratio_slope, peak, right)
        if shares.log_ratio(right) <= 0.0:
            return None
    return root(shares.log_ratio, left, right)
