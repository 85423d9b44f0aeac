"""Deviation beyond 2 R~ for a class fixed in advance: McDiarmid, and the symmetrised bound.

Proved, with no conditions beyond independent samples, losses in [0, 1] and a class of
functions fixed before the sample was seen.  Psi is one one-sided deviation, the supremum
of ``truth - mean`` or that of ``mean - truth``; both together hold at ``delta / 2`` each.
The constant c is 1 for the half-range estimator and 4 for the plain one.  Proofs are in
``docs/explanation/theory.md``.
"""

from __future__ import annotations

import math

from .._checks import check_n_samples, check_n_vectors, check_probability, check_real
from ._arguments import check_log_delta, check_not_negative, check_sensitivity, check_sides
from ._roots import root_near


def mcdiarmid_log_tail(
    excess: float, n_samples: int, n_vectors: int, *, estimator: str = "half-range"
) -> float:
    """``P(Psi >= 2 R~ + e) <= exp(-2 m e^2 / (4 + 4 c / l))``.

    Parameters
    ----------
    excess : float
        The e of the formula, in units of loss.
    n_samples, n_vectors : int
        m held-out samples (1 to 2^40) and l sign vectors (1 to 2^23).
    estimator : {"half-range", "plain"}
        Which Monte-Carlo estimate R~ is.

    Returns
    -------
    float
        Natural logarithm of the bound; 0 for an excess at or below 0.

    Notes
    -----
    Reveal the samples, then the signs.  One sample moves Psi by at most 1/m, and so it does
    twice the average over all signs; one sign moves 2 R~ by at most ``2 sqrt(c) / (l m)``.
    McDiarmid (1989), Lemma 1.2, with ``E Psi <= 2 R``.
    """
    e = check_real(excess=excess)
    m, n = check_n_samples(n_samples), check_n_vectors(n_vectors)
    c = check_sensitivity(estimator)
    return -2.0 * m * e * e / (4.0 + 4.0 * c / n) if e > 0.0 else 0.0


def mcdiarmid_tail(
    excess: float, n_samples: int, n_vectors: int, *, estimator: str = "half-range"
) -> float:
    """McDiarmid's bound as a probability; see `mcdiarmid_log_tail`."""
    return math.exp(mcdiarmid_log_tail(excess, n_samples, n_vectors, estimator=estimator))


def mcdiarmid_excess(
    log_delta: float, n_samples: int, n_vectors: int, *, estimator: str = "half-range"
) -> float:
    """The excess at which McDiarmid's bound equals ``exp(log_delta)``.

    Parameters
    ----------
    log_delta : float
        Natural logarithm of a probability; below 0.
    n_samples, n_vectors : int
        m held-out samples (1 to 2^40) and l sign vectors (1 to 2^23).
    estimator : {"half-range", "plain"}
        Which Monte-Carlo estimate R~ is.

    Returns
    -------
    float
        In units of loss; not clipped at 1.

    >>> round(mcdiarmid_excess(math.log(0.09), n_samples=4000, n_vectors=32), 4)
    0.0352
    """
    t = -check_log_delta(log_delta)
    m, n = check_n_samples(n_samples), check_n_vectors(n_vectors)
    return math.sqrt((4.0 + 4.0 * check_sensitivity(estimator) / n) * t / (2.0 * m))


def mcdiarmid_half_width(
    complexity: float,
    n_samples: int,
    n_vectors: int,
    delta: float,
    *,
    estimator: str = "half-range",
    two_sided: bool = True,
) -> float:
    """Every mean of a fixed class is this close to its truth, with probability 1 - delta.

    ``2 R~ + mcdiarmid_excess``, at delta for one side and at delta / 2 for both.

    Parameters
    ----------
    complexity : float
        The Monte-Carlo Rademacher average R~, at least 0, in units of loss.
    n_samples, n_vectors : int
        m held-out samples (1 to 2^40) and l sign vectors (1 to 2^23).
    delta : float
        Probability of failure, in (0, 1).
    estimator : {"half-range", "plain"}
        Which Monte-Carlo estimate R~ is.
    two_sided : bool
        Whether means may err on both sides or on one named beforehand.

    Returns
    -------
    float
        In units of loss; not clipped at 1.
    """
    complexity = check_not_negative(complexity=complexity)
    log_delta = math.log(check_probability(delta=delta) / check_sides(two_sided))
    return 2.0 * complexity + mcdiarmid_excess(log_delta, n_samples, n_vectors, estimator=estimator)


def symmetrised_log_tail(
    excess: float, n_samples: int, n_vectors: int, *, estimator: str = "half-range"
) -> float:
    """``P(Psi - 2 R~ >= e)`` by ghost signs ("cs"), the exact infimum over lambda.

    ``inf_{x > 0} exp(-x m e) ((1 + exp(x^2 / 2)) / 2)^m exp(x^2 m c / (2 l))``; to first
    order ``exp(-m e^2 / (1 + 2 c / l))``.

    Parameters
    ----------
    excess : float
        The e of the formula, in units of loss.
    n_samples, n_vectors : int
        m held-out samples (1 to 2^40) and l sign vectors (1 to 2^23).
    estimator : {"half-range", "plain"}
        Which Monte-Carlo estimate R~ is.

    Returns
    -------
    float
        Natural logarithm of the bound; 0 for an excess at or below 0.

    Notes
    -----
    The exponent is convex in lambda.  The logistic weight in its slope lies between 1/2
    and 1, so that the one root lies between ``e / (1 + c/l)`` and ``e / (1/2 + c/l)``.
    """
    e = check_real(excess=excess)
    m, n = check_n_samples(n_samples), check_n_vectors(n_vectors)
    ratio = check_sensitivity(estimator) / n
    if e <= 0.0:
        return 0.0
    e = max(e, 1e-300)  # below, brackets lose their digits, and e^2 underflows anyway
    x = root_near(
        lambda x: _cumulant_slope(x, ratio) / e - 1.0, e / (1.0 + ratio), e / (0.5 + ratio)
    )
    return m * (_cumulant(x, ratio) - x * e)


def symmetrised_tail(
    excess: float, n_samples: int, n_vectors: int, *, estimator: str = "half-range"
) -> float:
    """The symmetrised bound as a probability; see `symmetrised_log_tail`."""
    return math.exp(symmetrised_log_tail(excess, n_samples, n_vectors, estimator=estimator))


def symmetrised_excess(
    log_delta: float, n_samples: int, n_vectors: int, *, estimator: str = "half-range"
) -> float:
    """The excess at which the symmetrised bound equals ``exp(log_delta)``.

    Parameters
    ----------
    log_delta : float
        Natural logarithm of a probability; below 0.
    n_samples, n_vectors : int
        m held-out samples (1 to 2^40) and l sign vectors (1 to 2^23).
    estimator : {"half-range", "plain"}
        Which Monte-Carlo estimate R~ is.

    Returns
    -------
    float
        In units of loss; not clipped at 1.

    Notes
    -----
    With K the cumulant, the excess is the least ``(t/m + K(x)) / x``, reached where
    ``x K'(x) - K(x) = t/m``; the left side lies between ``(1/4 + c/(2l)) x^2`` and
    ``(3/4 + c/(2l)) x^2``.

    >>> round(symmetrised_excess(math.log(0.09), n_samples=4000, n_vectors=32), 4)
    0.0253
    """
    log_delta = check_log_delta(log_delta)
    m, n = check_n_samples(n_samples), check_n_vectors(n_vectors)
    ratio = check_sensitivity(estimator) / n
    t = max(-log_delta, 1e-280) / m  # less than this, and squares underflow
    x = root_near(
        lambda x: (x * _cumulant_slope(x, ratio) - _cumulant(x, ratio)) / t - 1.0,
        math.sqrt(t / (0.75 + 0.5 * ratio)),
        math.sqrt(t / (0.25 + 0.5 * ratio)),
    )
    return _cumulant_slope(x, ratio)


def symmetrised_half_width(
    complexity: float,
    n_samples: int,
    n_vectors: int,
    delta: float,
    *,
    estimator: str = "half-range",
    two_sided: bool = True,
) -> float:
    """Every mean of a fixed class is this close to its truth, with probability 1 - delta.

    ``2 R~ + symmetrised_excess``, at delta for one side and at delta / 2 for both.

    Parameters
    ----------
    complexity : float
        The Monte-Carlo Rademacher average R~, at least 0, in units of loss.
    n_samples, n_vectors : int
        m held-out samples (1 to 2^40) and l sign vectors (1 to 2^23).
    delta : float
        Probability of failure, in (0, 1).
    estimator : {"half-range", "plain"}
        Which Monte-Carlo estimate R~ is.
    two_sided : bool
        Whether means may err on both sides or on one named beforehand.

    Returns
    -------
    float
        In units of loss; not clipped at 1.
    """
    complexity = check_not_negative(complexity=complexity)
    log_delta = math.log(check_probability(delta=delta) / check_sides(two_sided))
    return 2.0 * complexity + symmetrised_excess(
        log_delta, n_samples, n_vectors, estimator=estimator
    )


def _cumulant(x: float, ratio: float) -> float:
    """``ln((1 + exp(x^2 / 2)) / 2) + x^2 c / (2 l)``, in a form that cannot overflow."""
    y = 0.5 * x * x
    return y + math.log1p(0.5 * math.expm1(-y)) + y * ratio


def _cumulant_slope(x: float, ratio: float) -> float:
    return x / (1.0 + math.exp(-0.5 * x * x)) + x * ratio
