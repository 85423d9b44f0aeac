"""The half-widths for a class fixed in advance that need no factor 2 R.

Proved for the half-range estimator.  They hold at a halting time that depends on the data
too: with one epsilon fixed in advance and the same signs throughout, every answer given
while the half-width is at most epsilon is within epsilon of its truth, with probability
1 - delta.  They are no band over the queries: quote epsilon, not the half-width reached.
Proofs are in ``docs/explanation/theory.md``.
"""

from __future__ import annotations

import math

from .._checks import (
    check_fraction,
    check_n_samples,
    check_n_vectors,
    check_positive,
    check_probability,
)
from ._arguments import check_not_negative
from ._limits import high
from .kl import kl_drop

# Shares of delta.  The first covers the deviation of the means, d1 for each side; the second
# the lower tail of the estimate, d2, one event for both sides; the third the largest mean, d3.
_SPLIT = (0.75, 0.23, 0.02)


def weighted_half_width(
    complexity: float, largest_weight: float, squares: float, n_vectors: int, delta: float
) -> float:
    """Simultaneous half-width of weighted means, by the self-bounding split; for a fixed class.

    With ``b = A ln(1/d2)`` and ``r = 2 R~ + b + sqrt(b^2 + 2 (2 R~ b + ln(1/d2) S / l))``,
    ``Psi <= r + sqrt(S ln(1/d1) / 2)`` with probability ``1 - 2 d1 - d2``; the two terms share
    delta 3 : 1, within 1.3 % of the best split for m from 500 to 1e6.  Use l = 256: at l = 32 the
    noise of the signs dominates.  Result 28; at equal weights, A = S = 1/m, it is Result 7.

    >>> round(weighted_half_width(0.005, 1 / 4000, 1 / 4000, n_vectors=256, delta=0.1), 10)
    0.0363290016

    Parameters
    ----------
    complexity : float
        The half-range Monte-Carlo Rademacher average R~ of losses times their weights, at least 0,
        in units of loss.
    largest_weight, squares : float
        A, the largest of the weights, and S, the sum of their squares: fixed weights, of sum 1, of
        independent rows or groups.
    n_vectors : int
        l sign vectors (1 to 2^23), with one sign a group.
    delta : float
        Probability of failure, in (0, 1).

    Returns
    -------
    float, in units of loss, not clipped at 1
    """
    complexity, n = check_not_negative(complexity=complexity), check_n_vectors(n_vectors)
    largest = check_positive(largest_weight=largest_weight)
    squares = check_positive(squares=squares)
    log_d1, log_d2 = _weighted_logs(check_probability(delta=delta))
    doubled, b = 2.0 * complexity, largest * log_d2
    r = doubled + b + math.sqrt(b * b + 2.0 * (doubled * b + log_d2 * squares / n))
    return r + math.sqrt(0.5 * squares * log_d1)


def weighted_budget(
    epsilon: float, largest_weight: float, squares: float, n_vectors: int, delta: float
) -> float:
    """The complexity at which `weighted_half_width` equals epsilon; negative if there is none."""
    log_d1, log_d2 = _weighted_logs(check_probability(delta=delta))
    r = check_probability(epsilon=epsilon) - math.sqrt(0.5 * squares * log_d1)
    if r < 0.0:
        return r
    return 0.5 * (r - math.sqrt(2.0 * log_d2 * (largest_weight * r + squares / n_vectors)))


def _weighted_logs(delta: float) -> tuple[float, float]:
    """ln(1/d1), of each side's deviation, and ln(1/d2), of the estimate's lower tail."""
    return -math.log(0.5 * 0.75 * delta), -math.log(0.25 * delta)


def low_error_half_width(
    complexity: float, largest_mean: float, n_samples: int, n_vectors: int, delta: float
) -> float:
    """Simultaneous half-width for a class fixed in advance whose means are all small.

    The last term of `weighted_half_width` at equal weights, sqrt(L/(2m)), becomes
    ``min{sqrt(L/(2m)), sqrt(2 L (s2 + 2 r) / m) + L / (3m)}`` with ``L = ln(1/d1)``, U the upper
    limit of `kl_interval` of the largest mean at ln(1/d3) nats, and ``s2 = U (1 - U)`` for U < 1/2,
    else 1/4.  It fails with probability ``2 d1 + d2 + d3``, shared .75, .23, .02.  Use l = 256: at
    l = 32 the noise of the signs dominates.

    Results 7 and 9, after Boucheron, Lugosi and Massart (2000) and Bousquet (2002).

    >>> round(low_error_half_width(0.005, 0.02, n_samples=4000, n_vectors=256, delta=0.1), 10)
    0.026373174

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

    Returns
    -------
    float
        In units of loss, not clipped at 1.  Grows with the complexity and the largest mean.
    """
    m, n, log_d1, a, s2 = _terms(largest_mean, n_samples, n_vectors, delta)
    r = _complexity_limit(check_not_negative(complexity=complexity), n, a)
    return r + min(
        math.sqrt(log_d1 / (2.0 * m)),
        math.sqrt(2.0 * log_d1 * (s2 + 2.0 * r) / m) + log_d1 / (3.0 * m),
    )


def low_error_budget(
    epsilon: float, largest_mean: float, n_samples: int, n_vectors: int, delta: float
) -> float:
    """The complexity at which `low_error_half_width` equals epsilon.

    Parameters
    ----------
    epsilon : float
        The half-width, in (0, 1).
    largest_mean, n_samples, n_vectors, delta
        Those of `low_error_half_width`.

    Returns
    -------
    float
        In units of loss.  Negative if the half-width at complexity 0 is above epsilon.
    """
    epsilon = check_probability(epsilon=epsilon)
    m, n, log_d1, a, s2 = _terms(largest_mean, n_samples, n_vectors, delta)
    r = epsilon - math.sqrt(log_d1 / (2.0 * m))
    # r + sqrt(q (s2 + 2 r)) = rest, q = 2 L / m: the smaller root of a quadratic in r
    q, rest = 2.0 * log_d1 / m, epsilon - log_d1 / (3.0 * m)
    if rest > math.sqrt(q * s2):
        r = max(r, (rest * rest - q * s2) / (rest + q + math.sqrt(q * (q + 2 * rest + s2))))
    least = _complexity_limit(0.0, n, a)
    if r < least:
        return 0.5 * (r - least)
    return max(0.0, 0.5 * (r - math.sqrt(2.0 * a * (r + 1.0 / n))))


def _terms(
    largest_mean: float, n_samples: int, n_vectors: int, delta: float
) -> tuple[int, int, float, float, float]:
    """m, l, ln(1/d1), a = ln(1/d2) / m, and s2, which limits every variance but for d3."""
    m, n = check_n_samples(n_samples), check_n_vectors(n_vectors)
    delta, mean = check_probability(delta=delta), check_fraction(largest_mean=largest_mean)
    limit = float(high(mean, kl_drop(1.0 - mean, mean, -math.log(_SPLIT[2] * delta) / m)))
    s2 = limit * (1.0 - limit) if limit < 0.5 else 0.25
    return m, n, -math.log(0.5 * _SPLIT[0] * delta), -math.log(_SPLIT[1] * delta) / m, s2


def _complexity_limit(complexity: float, n_vectors: int, a: float) -> float:
    """r: the limit that 2 R exceeds with probability at most d2."""
    doubled = 2.0 * complexity
    return doubled + a + math.sqrt(a * a + 2.0 * a * (doubled + 1.0 / n_vectors))
