"""Deviation beyond 2 R~ for a class fixed in advance: McDiarmid, and the symmetrised bound.

Proved, with no conditions beyond independent samples, losses in [0, 1] and a class of
functions fixed before the sample was seen.  Psi is one one-sided deviation, the supremum
of ``truth - mean`` or that of ``mean - truth``; both together hold at ``delta / 2`` each.
The constant c is 1 for the half-range estimator and 4 for the plain one.  Proofs are in
``docs/explanation/theory.md``.
"""

from __future__ import annotations

import math

from .._checks import check_n_samples, check_n_vectors, check_real
from ._arguments import check_log_delta, check_sensitivity
from ._roots import root_near


def mcdiarmid_excess(
    log_delta: float, n_samples: int, n_vectors: int, *, estimator: str = "half-range"
) -> float:
    """The excess that Psi - 2 R~ reaches with probability at most ``exp(log_delta)``: McDiarmid.

    The e at which ``exp(-2 m e^2 / (4 + 4 c / l))`` equals that probability: Lemma 1.2 of McDiarmid
    (1989), with ``E Psi <= 2 R``, for a class fixed in advance.

    >>> round(mcdiarmid_excess(math.log(0.09), n_samples=4000, n_vectors=32), 4)
    0.0352

    Parameters
    ----------
    log_delta : float
        Natural logarithm of a probability, below 0.
    n_samples, n_vectors : int
        m held-out samples (1 to 2^40) and l sign vectors (1 to 2^23).
    estimator : {"half-range", "plain"}
        Which Monte-Carlo Rademacher average R~ is: c is 1 for half-range, 4 for plain.

    Returns
    -------
    float, in units of loss, not clipped at 1
    """
    t = -check_log_delta(log_delta)
    m, n = check_n_samples(n_samples), check_n_vectors(n_vectors)
    return math.sqrt((4.0 + 4.0 * check_sensitivity(estimator) / n) * t / (2.0 * m))


def symmetrised_log_tail(
    excess: float, n_samples: int, n_vectors: int, *, estimator: str = "half-range"
) -> float:
    """Logarithm of a bound on ``P(Psi - 2 R~ >= e)``, by ghost signs: Result 5.

    ``inf_{x > 0} exp(-x m e) ((1 + exp(x^2 / 2)) / 2)^m exp(x^2 m c / (2 l))``, the exact
    infimum; to first order ``exp(-m e^2 / (1 + 2 c / l))``.  For a class fixed in advance.

    Parameters
    ----------
    excess : float
        e, in units of loss.
    n_samples, n_vectors : int
        m held-out samples (1 to 2^40) and l sign vectors (1 to 2^23).
    estimator : {"half-range", "plain"}
        Which Monte-Carlo Rademacher average R~ is: c is 1 for half-range, 4 for plain.

    Returns
    -------
    float, the natural logarithm of the bound; 0 for an excess at or below 0
    """
    e = check_real(excess=excess)
    m, n = check_n_samples(n_samples), check_n_vectors(n_vectors)
    ratio = check_sensitivity(estimator) / n
    if e <= 0.0:
        return 0.0
    e = max(e, 1e-300)  # below, brackets lose their digits, and e^2 underflows anyway
    # the exponent is convex, and the logistic weight in its slope lies between 1/2 and 1
    x = root_near(
        lambda x: _cumulant_slope(x, ratio) / e - 1.0, e / (1.0 + ratio), e / (0.5 + ratio)
    )
    return m * (_cumulant(x, ratio) - x * e)


def symmetrised_excess(
    log_delta: float, n_samples: int, n_vectors: int, *, estimator: str = "half-range"
) -> float:
    """The excess at which `symmetrised_log_tail` equals ``log_delta``.

    >>> round(symmetrised_excess(math.log(0.09), n_samples=4000, n_vectors=32), 4)
    0.0253

    Parameters
    ----------
    log_delta : float
        Natural logarithm of a probability, below 0.
    n_samples, n_vectors, estimator
        Those of `symmetrised_log_tail`.

    Returns
    -------
    float, in units of loss, not clipped at 1
    """
    log_delta = check_log_delta(log_delta)
    m, n = check_n_samples(n_samples), check_n_vectors(n_vectors)
    ratio = check_sensitivity(estimator) / n
    t = max(-log_delta, 1e-280) / m  # less than this, and squares underflow
    # the least (t + K(x)) / x is where x K'(x) - K(x) = t; between two squares
    x = root_near(
        lambda x: (x * _cumulant_slope(x, ratio) - _cumulant(x, ratio)) / t - 1.0,
        math.sqrt(t / (0.75 + 0.5 * ratio)),
        math.sqrt(t / (0.25 + 0.5 * ratio)),
    )
    return _cumulant_slope(x, ratio)


def _cumulant(x: float, ratio: float) -> float:
    """``ln((1 + exp(x^2 / 2)) / 2) + x^2 c / (2 l)``, in a form that cannot overflow."""
    y = 0.5 * x * x
    return y + math.log1p(0.5 * math.expm1(-y)) + y * ratio


def _cumulant_slope(x: float, ratio: float) -> float:
    return x / (1.0 + math.exp(-0.5 * x * x)) + x * ratio
