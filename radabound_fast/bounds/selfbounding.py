"""The half-width for a class fixed in advance that needs no factor 2 R, and gains at low error.

Proved for the half-range estimator.  It holds at a halting time that depends on the data
too: with one epsilon fixed in advance and the same signs throughout, every answer given
while the half-width is at most epsilon is within epsilon of its truth, with probability
1 - delta.  It is no band over the queries: quote epsilon, not the half-width reached.
Proofs are in ``docs/explanation/theory.md``.
"""

from __future__ import annotations

import math

from .._checks import check_fraction, check_n_samples, check_n_vectors, check_probability
from ._arguments import check_not_negative
from ._limits import high
from .kl import kl_drop

# Shares of delta.  The first covers the deviation of the means, d1 for each side; the second
# the lower tail of the estimate, d2, one event for both sides; the third the largest mean, d3.
_SPLIT = (0.75, 0.23, 0.02)


def low_error_half_width(
    complexity: float, largest_mean: float, n_samples: int, n_vectors: int, delta: float
) -> float:
    """Simultaneous half-width for a class fixed in advance whose means are all small.

    The last term of `weighted_half_width` at equal weights, sqrt(L/(2m)), becomes
    ``min{sqrt(L/(2m)), sqrt(2 L (s2 + 2 r) / m) + L / (3m)}`` with ``L = ln(1/d1)``, U the upper
    limit of `kl_interval` of the largest mean at ln(1/d3) nats, and ``s2 = U (1 - U)`` for U < 1/2,
    else 1/4.  It fails with probability ``2 d1 + d2 + d3``, shared .75, .23, .02.

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
        In units of loss; not clipped at 1.  Grows with the complexity and the largest mean.

    Notes
    -----
    Twice the Rademacher sum of centred losses is self-bounding [1]_, so its lower tail has the
    proxy 2 m R; the signs add m / l.  The second form is that of [2]_, with the variance bounded
    through the function of largest expectation: Results 7 and 9 of ``docs/explanation/theory.md``.
    Use l = 256: at l = 32 the noise of the signs dominates.

    References
    ----------
    .. [1] Boucheron, Lugosi, Massart (2000). A sharp concentration inequality with applications.
       Random Structures & Algorithms 16.
    .. [2] Bousquet (2002). A Bennett concentration inequality and its application to suprema of
       empirical processes. C. R. Acad. Sci. Paris 334.

    Examples
    --------
    >>> round(low_error_half_width(0.005, 0.02, n_samples=4000, n_vectors=256, delta=0.1), 10)
    0.026373174
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
        The half-width wanted, in (0, 1).
    largest_mean : float
        The largest mean loss in the class, in [0, 1].
    n_samples, n_vectors : int
        m held-out samples (1 to 2^40) and l sign vectors (1 to 2^23).
    delta : float
        Probability of failure, in (0, 1).

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
