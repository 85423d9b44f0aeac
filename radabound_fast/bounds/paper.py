"""The paper's tail bounds: Theorems 2, 4 and 6 of De Stefani and Upfal (2019).  3 is in split.py.

Each theorem bounds the probability that a quantity exceeds its Monte-Carlo estimate by an
excess e: ``epsilon - 2 R~`` in the halting rule.  A ``log_tail`` of e, m and l is the natural
logarithm of the bound, which never underflows; an ``excess`` is its inverse, the e at which the
bound equals a given probability (nobody needs that of Theorem 2).  The bound is the formula as
printed for a positive excess, never clipped (the split of Theorem 3 may exceed log 1), and
log 1 = 0 at or below 0, where nothing is claimed (Theorem 6: log 1/2, its value at 0).  `BOUNDS`
has them by name.

``docs/explanation/theory.md`` says which of these theorems are proved; in short, Theorem 2 is false
as stated, Theorem 6 is a heuristic, and for Theorems 3 and 4, one-sided and for a class fixed in
advance, no violation is known but the printed proofs have a gap; for few sign vectors they
follow from the symmetrised bound.
"""

from __future__ import annotations

import math

from .._checks import check_n_samples, check_n_vectors, check_real
from ._arguments import check_log_delta


def rademacher_log_tail(excess: float, n_samples: int, n_vectors: int) -> float:
    """Theorem 2 of De Stefani and Upfal (2019): how far R may lie above its estimate R~.

    ``P(R - R~ > e) <= exp(-6 m l e^2 / (15 + 8 l e))`` for the Rademacher average R, as printed.
    False as stated: the sample's part of the variance does not shrink with l
    (``docs/explanation/theory.md``).  With a step of at most 1/m the denominator would end in
    ``4 l e``; the printed 8 is conservative, and used here.

    >>> round(rademacher_log_tail(0.05, n_samples=4000, n_vectors=32), 3)
    -69.065

    Parameters
    ----------
    excess : float
        e, in units of loss.
    n_samples, n_vectors : int
        m held-out samples (1 to 2^40) and l sign vectors (1 to 2^23).

    Returns
    -------
    float, the natural logarithm of the bound; 0 for an excess at or below 0
    """
    e, m, n = checked(excess, n_samples, n_vectors)
    return -6.0 * m * n * e * e / (15.0 + 8.0 * n * e)


def bernstein_log_tail(excess: float, n_samples: int, n_vectors: int) -> float:
    """Theorem 4, the bound of Algorithm 1, line 11.

    ``P(Psi > 2 R~ + e) < exp(-e^2 / (V + 4 e / (3 m)))`` with
    ``V = (l + 4 sqrt(l) + 20) / (2 m l)``.  The printed proof has a gap.  One-sided and for a
    class fixed in advance the statement follows from `symmetrised_log_tail` for l <= 23 (plain)
    and l <= 41 (half-range).

    >>> round(bernstein_log_tail(0.05, n_samples=4000, n_vectors=32), 4)
    -8.1121
    """
    e, m, n = checked(excess, n_samples, n_vectors)
    return -e * e / (_spread(n) / (2.0 * m * n) + 4.0 * e / (3.0 * m))


def bernstein_excess(log_delta: float, n_samples: int, n_vectors: int) -> float:
    """The excess at which Theorem 4 equals ``exp(log_delta)``.

    >>> round(bernstein_excess(math.log(0.09), n_samples=4000, n_vectors=32), 4)
    0.0269
    """
    t = -check_log_delta(log_delta)
    m, n = check_n_samples(n_samples), check_n_vectors(n_vectors)
    # the positive solution of e^2 = b e + c
    b, c = 4.0 * t / (3.0 * m), t * _spread(n) / (2.0 * m * n)
    return 0.5 * b + math.sqrt(0.25 * b * b + c)


def mclt_log_tail(excess: float, n_samples: int, n_vectors: int) -> float:
    """Theorem 6, the bound of Algorithm 1, line 12: a heuristic.

    ``P(Psi > 2 R~ + e) < 1 - Phi(e sqrt(4 l m / (l + 4 sqrt(l) + 20)))`` as m grows; at a
    finite m nothing is promised.

    >>> round(mclt_log_tail(0.05, n_samples=4000, n_vectors=32), 4)
    -10.9675
    """
    from scipy.special import log_ndtr

    e, m, n = checked(excess, n_samples, n_vectors)
    return float(log_ndtr(-e * math.sqrt(4.0 * n * m / _spread(n))))


def mclt_excess(log_delta: float, n_samples: int, n_vectors: int) -> float:
    """The excess at which Theorem 6 equals ``exp(log_delta)``.

    0 where ``log_delta >= log 1/2``, which the tail never exceeds.

    >>> round(mclt_excess(math.log(0.09), n_samples=4000, n_vectors=32), 4)
    0.0162
    """
    from scipy.special import ndtri_exp

    log_delta = check_log_delta(log_delta)
    m, n = check_n_samples(n_samples), check_n_vectors(n_vectors)
    return max(0.0, -float(ndtri_exp(log_delta))) / math.sqrt(4.0 * n * m / _spread(n))


def checked(excess: float, n_samples: int, n_vectors: int) -> tuple[float, int, int]:
    """e, m and l; an excess below 0 is 0, where each of these tails is that of "no claim"."""
    e = max(0.0, check_real(excess=excess))
    return e, check_n_samples(n_samples), check_n_vectors(n_vectors)


def _spread(n_vectors: int) -> float:
    return n_vectors + 4.0 * math.sqrt(n_vectors) + 20.0
