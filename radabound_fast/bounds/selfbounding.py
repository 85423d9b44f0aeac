"""Half-widths for a class fixed in advance that need no factor 2 R, and gain at low error.

Proved for the half-range estimator.  Both hold at a halting time that depends on the data
too: with one epsilon fixed in advance and the same signs throughout, every answer given
while the half-width is at most epsilon is within epsilon of its truth, with probability
1 - delta.  It is no band over the queries: quote epsilon, not the half-width reached.
Proofs are in ``docs/explanation/theory.md``.
"""

from __future__ import annotations

import math

from .._checks import (
    check_fraction,
    check_n_samples,
    check_n_vectors,
    check_probability,
)
from ._arguments import check_not_negative, check_sides
from .kl import kl_plus

# Shares of delta.  The first covers the deviation of the means, d1 for each side; the second
# the lower tail of the estimate, d2, one event for both sides; the third the largest mean, d3.
# 3 : 1 is within 1.3 % of the best split for m from 500 to 1e6.
SPLIT = (0.75, 0.25)
LOW_ERROR_SPLIT = (0.75, 0.23, 0.02)


def self_bounding_half_width(
    complexity: float, n_samples: int, n_vectors: int, delta: float, *, two_sided: bool = True
) -> float:
    """Simultaneous half-width for a class fixed in advance: the self-bounding split.

    With ``a = ln(1/d2) / m`` and ``r = 2 R~ + a + sqrt(a^2 + 2 a (2 R~ + 1/l))``,
    ``Psi <= r + sqrt(ln(1/d1) / (2m))`` with probability ``1 - d1 - d2`` for one side and
    ``1 - 2 d1 - d2`` for both; the two terms share delta 3 : 1.

    Parameters
    ----------
    complexity : float
        The half-range Monte-Carlo Rademacher average R~, at least 0, in units of loss.
    n_samples, n_vectors : int
        m held-out samples (1 to 2^40) and l sign vectors (1 to 2^23).
    delta : float
        Probability of failure, in (0, 1).
    two_sided : bool
        Whether means may err on both sides or on one named beforehand.

    Returns
    -------
    float
        In units of loss; not clipped at 1.

    Notes
    -----
    Twice the Rademacher sum of centred losses is self-bounding [1]_, so its lower tail has the
    proxy 2 m R; the signs add m / l.  Result 7 of ``docs/explanation/theory.md``.

    References
    ----------
    .. [1] Boucheron, Lugosi, Massart (2000). A sharp concentration inequality with applications.
       Random Structures & Algorithms 16.

    Examples
    --------
    >>> round(self_bounding_half_width(0.005, n_samples=4000, n_vectors=256, delta=0.1), 10)
    0.0363290016
    """
    m, n, complexity, log_d1, a = _checked(
        complexity, n_samples, n_vectors, delta, two_sided, SPLIT
    )
    return _complexity_limit(complexity, n, a) + math.sqrt(log_d1 / (2.0 * m))


def self_bounding_budget(
    epsilon: float, n_samples: int, n_vectors: int, delta: float, *, two_sided: bool = True
) -> float:
    """The complexity at which `self_bounding_half_width` equals epsilon.

    Parameters
    ----------
    epsilon : float
        The half-width wanted, in (0, 1).
    n_samples, n_vectors : int
        m held-out samples (1 to 2^40) and l sign vectors (1 to 2^23).
    delta : float
        Probability of failure, in (0, 1).
    two_sided : bool
        Whether means may err on both sides or on one named beforehand.

    Returns
    -------
    float
        In units of loss.  Negative if the half-width at complexity 0 is above epsilon: then
        minus half of what it is too wide.
    """
    epsilon = check_probability(epsilon=epsilon)
    m, n, _, log_d1, a = _checked(0.0, n_samples, n_vectors, delta, two_sided, SPLIT)
    spare = epsilon - math.sqrt(log_d1 / (2.0 * m))
    return _complexity_within(spare, n, a)


def low_error_half_width(
    complexity: float,
    largest_mean: float,
    n_samples: int,
    n_vectors: int,
    delta: float,
    *,
    two_sided: bool = True,
) -> float:
    """Simultaneous half-width for a class fixed in advance whose means are all small.

    The last term of `self_bounding_half_width` becomes
    ``min{sqrt(L/(2m)), sqrt(2 L (s2 + 2 r) / m) + L / (3m)}`` with ``L = ln(1/d1)``,
    ``U = kl_plus(largest mean, ln(1/d3)/m)`` and ``s2 = U (1 - U)`` for U < 1/2, else 1/4.  It
    fails with probability ``2 d1 + d2 + d3`` (``d1 + d2 + d3`` for one side), shared .75, .23, .02.

    Parameters
    ----------
    complexity : float
        The half-range Monte-Carlo Rademacher average R~, at least 0, in units of loss.
    largest_mean : float
        The largest mean loss in the class, in [0, 1].
    n_samples, n_vectors : int
        m held-out samples (1 to 2^40) and l sign vectors (1 to 2^23).
    delta : float
        Probability of failure, in (0, 1).
    two_sided : bool
        Whether means may err on both sides or on one named beforehand.

    Returns
    -------
    float
        In units of loss; not clipped at 1.  Grows with the complexity and the largest mean.

    Notes
    -----
    The second form is that of [1]_, with the variance bounded through the function of largest
    expectation: Result 9 of ``docs/explanation/theory.md``.  Use l = 256: at l = 32 the noise of
    the signs dominates.

    References
    ----------
    .. [1] Bousquet (2002). A Bennett concentration inequality and its application to suprema of
       empirical processes. C. R. Acad. Sci. Paris 334.

    Examples
    --------
    >>> round(low_error_half_width(0.005, 0.02, n_samples=4000, n_vectors=256, delta=0.1), 10)
    0.026373174
    """
    m, n, complexity, log_d1, a = _checked(
        complexity, n_samples, n_vectors, delta, two_sided, LOW_ERROR_SPLIT
    )
    s2 = _largest_variance(largest_mean, m, delta)
    r = _complexity_limit(complexity, n, a)
    return r + min(
        math.sqrt(log_d1 / (2.0 * m)),
        math.sqrt(2.0 * log_d1 * (s2 + 2.0 * r) / m) + log_d1 / (3.0 * m),
    )


def low_error_budget(
    epsilon: float,
    largest_mean: float,
    n_samples: int,
    n_vectors: int,
    delta: float,
    *,
    two_sided: bool = True,
) -> float:
    """The complexity at which `low_error_half_width` equals epsilon.

    Parameters
    ----------
    epsilon : float
        The half-width wanted, in (0, 1).
    largest_mean : float
        The largest mean loss in the class, in [0, 1].
    n_samples, n_vectors : int
        m held-out samples (1 to 2^40) and l sign vectors (1 to 2^23).
    delta : float
        Probability of failure, in (0, 1).
    two_sided : bool
        Whether means may err on both sides or on one named beforehand.

    Returns
    -------
    float
        In units of loss.  Negative if the half-width at complexity 0 is above epsilon.

    Notes
    -----
    The half-width is the smaller of two increasing functions of r, so the largest r is the
    larger of two roots.
    """
    epsilon = check_probability(epsilon=epsilon)
    m, n, _, log_d1, a = _checked(0.0, n_samples, n_vectors, delta, two_sided, LOW_ERROR_SPLIT)
    s2 = _largest_variance(largest_mean, m, delta)
    spare = epsilon - math.sqrt(log_d1 / (2.0 * m))
    # r + sqrt(q (s2 + 2 r)) = rest, q = 2 L / m: the smaller root of a quadratic in r
    q, rest = 2.0 * log_d1 / m, epsilon - log_d1 / (3.0 * m)
    if rest > math.sqrt(q * s2):
        spare = max(spare, (rest * rest - q * s2) / (rest + q + math.sqrt(q * (q + 2 * rest + s2))))
    return _complexity_within(spare, n, a)


def _checked(
    complexity: float,
    n_samples: int,
    n_vectors: int,
    delta: float,
    two_sided: bool,
    split: tuple[float, ...],
) -> tuple[int, int, float, float, float]:
    """m, l, the complexity, ln(1/d1) and a = ln(1/d2) / m."""
    m, n = check_n_samples(n_samples), check_n_vectors(n_vectors)
    complexity = check_not_negative(complexity=complexity)
    delta, sides = check_probability(delta=delta), check_sides(two_sided)
    return m, n, complexity, -math.log(split[0] * delta / sides), -math.log(split[1] * delta) / m


def _complexity_limit(complexity: float, n_vectors: int, a: float) -> float:
    """r: the limit that 2 R exceeds with probability at most d2."""
    doubled = 2.0 * complexity
    return doubled + a + math.sqrt(a * a + 2.0 * a * (doubled + 1.0 / n_vectors))


def _complexity_within(r: float, n_vectors: int, a: float) -> float:
    """The complexity at which `_complexity_limit` is r; below 0, half of what r lacks."""
    least = _complexity_limit(0.0, n_vectors, a)
    if r < least:
        return 0.5 * (r - least)
    return max(0.0, 0.5 * (r - math.sqrt(2.0 * a * (r + 1.0 / n_vectors))))


def _largest_variance(largest_mean: float, n_samples: int, delta: float) -> float:
    """s2: a limit of every variance in the class, with probability 1 - d3."""
    largest_mean = check_fraction(largest_mean=largest_mean)
    limit = kl_plus(largest_mean, -math.log(LOW_ERROR_SPLIT[2] * delta) / n_samples)
    return limit * (1.0 - limit) if limit < 0.5 else 0.25
