"""Widths that hold whatever the analyst does: transcript codes, and Thresholdout's sample size.

A sub-probability q over answer prefixes is fixed before the sample is seen.  Given the
prefix, the next query is fixed; so with probability 1 - delta every answered query obeys
``|mean - truth| <= sqrt((ln(2/delta) + ln(1/q(prefix))) / (2m))``, by Kraft's inequality,
the union bound and Hoeffding.  ``ln(1/q)`` is the length of the code, in nats.
"""

from __future__ import annotations

import math

from .._checks import check_count, check_integer, check_n_samples, check_probability
from ._arguments import check_not_negative


def code_width(code_length: float, n_samples: int, delta: float) -> float:
    """Half-width of the next answer's confidence interval for an adaptive analyst.

    ``sqrt((ln(2/delta) + ln(1/q)) / (2m))``, two-sided, where q is the weight of the transcript.
    Result 12, after Rogers et al. (2020).

    Parameters
    ----------
    code_length : float
        ``ln(1/q)``, in nats, at least 0.
    n_samples : int
        m held-out samples, 1 to 2^40.
    delta : float
        Probability that any answer ever fails, in (0, 1).

    Returns
    -------
    float, in units of loss, not clipped at 1
    """
    code_length = check_not_negative(code_length=code_length)
    m, delta = check_n_samples(n_samples), check_probability(delta=delta)
    return math.sqrt((math.log(2.0 / delta) + code_length) / (2.0 * m))


def failure_code(shift: int) -> float:
    """What a failed guess adds to the code: ``ln 2 + ln(|j| (|j|+1))``, its sign and its size.

    Parameters
    ----------
    shift : int
        The j of the answer ``g + 2 tau j``; not 0, which is a pass.

    Returns
    -------
    float
        In nats.  The weights ``1 / (2 |j| (|j|+1))`` sum to 1 over all shifts but 0.
    """
    size = abs(check_integer(shift=shift))
    if size == 0:
        raise ValueError("shift must not be 0, got 0")
    return math.log(2.0) + math.log(size) + math.log(size + 1)


def guess_and_check_code(query: int, n_failures: int, failures: float) -> float:
    """Length of the transcript's code before query t of guess and check, after b failed guesses.

    ``ln(t (t+1)) + ln((b+1) (b+2)) + ln C(t-1, b)`` and the sum of `failure_code` over the
    failures.

    Parameters
    ----------
    query, n_failures : int
        t, from 1 on, and b, from 0 to t - 1.
    failures : float
        The sum of `failure_code` over the failures, at least 0.

    Returns
    -------
    float, in nats
    """
    t, b = check_count(query=query), check_integer(n_failures=n_failures)
    if not 0 <= b < t:
        raise ValueError(f"n_failures must be in [0, {t - 1}] before query {t}, got {b}")
    failures = check_not_negative(failures=failures)
    return _log_pair(t) + _log_pair(b + 1) + _log_choose(t - 1, b) + failures


def ladder_levels(eta: float) -> int:
    """How many answers a Ladder of step eta can give: ``floor(1/eta + 1/2) + 1``.

    Parameters
    ----------
    eta : float
        The step, in (0, 1).

    Returns
    -------
    int, as many as there are multiples of eta to which a mean in [0, 1] can be rounded
    """
    return math.floor(1.0 / check_probability(eta=eta) + 0.5) + 1


def ladder_half_width(n_queries: int, n_samples: int, eta: float, delta: float) -> float:
    """Half-width of a Ladder's answers around the best population value so far, over k queries.

    ``e + eta`` where ``2 C(k+G-1, G) exp(-2 m e^2) = delta``: the exact count of the
    transcripts, which never increase, for G = `ladder_levels`.  With probability 1 - delta every
    answer among the first k is at most this much above the smallest population value so far, and
    at most ``eta / 2`` less than this below it.

    The Ladder is that of Blum and Hardt (2015), who count at most
    ``exp((1/eta + 2) ln(4k/eta) + 1)`` transcripts.

    Parameters
    ----------
    n_queries, n_samples : int
        k queries, a number fixed beforehand, and m held-out samples (1 to 2^40).
    eta, delta : float
        The step of the Ladder and the probability of failure, in (0, 1).

    Returns
    -------
    float, in units of loss, not clipped at 1
    """
    k, levels = check_count(n_queries=n_queries), ladder_levels(eta)
    return eta + code_width(_log_choose(k + levels - 1, levels), n_samples, delta)


def ladder_transcript_half_width(
    query: int, n_updates: int, n_samples: int, eta: float, delta: float
) -> float:
    """Half-width of a Ladder's answers for any number of queries, by its number of improvements.

    ``eta`` and `code_width` at ``ln(t (t+1)) + ln(u (u+1)) + ln C(t-2, u-1) + ln C(G, u)``, the
    length of the transcript's code before query t after u improvements; at t = 1, ln 2.  It can
    fall as t grows, and an answer rests on every query up to its own: the half-width that holds at
    t is the largest of these over 1 .. t.

    Parameters
    ----------
    query : int
        t, from 1 on.
    n_updates : int
        u, the improvements among the t - 1 answers before it, the first answer counted: 0 before
        the first query, else from 1 to min(t - 1, G), for G = `ladder_levels`.
    n_samples : int
        m held-out samples, 1 to 2^40.
    eta, delta : float
        The step of the Ladder and the probability that any answer ever fails, in (0, 1).

    Returns
    -------
    float, in units of loss, not clipped at 1
    """
    t, u = check_count(query=query), check_integer(n_updates=n_updates)
    levels = ladder_levels(eta)
    least, most = min(1, t - 1), min(t - 1, levels)
    if not least <= u <= most:
        raise ValueError(f"n_updates must be in [{least}, {most}] before query {t}, got {u}")
    code = math.log(2.0)
    if t > 1:
        code = _log_pair(t) + _log_pair(u) + _log_choose(t - 2, u - 1) + _log_choose(levels, u)
    return eta + code_width(code, n_samples, delta)


def thresholdout_sample_size(
    n_queries: int, budget: int, epsilon: float, delta: float, *, as_printed: bool = False
) -> float:
    """Size of the holdout that Thresholdout needs: Theorem 25 of Dwork et al. (2015).

    ``n >= 96 epsilon^-2 ln(4k/delta) min{640 sqrt(B ln(16k/(epsilon delta))), 16 B}``.

    >>> round(thresholdout_sample_size(10, 1, epsilon=0.05, delta=0.1))
    3681156

    Parameters
    ----------
    n_queries, budget : int
        k queries, a number fixed beforehand, of which B may be answered from the holdout; at
        least 1.
    epsilon, delta : float
        The error tolerated and the probability of failure, in (0, 1).
    as_printed : bool
        Section VI of the RadaBound paper instead: ``80 sqrt(B ln(1/(epsilon delta)))``, which is
        8.7 times too small at B = k = 10,000 and epsilon = .05.

    Returns
    -------
    float, a number of samples, not rounded
    """
    k, b = check_count(n_queries=n_queries), check_count(budget=budget)
    epsilon, delta = check_probability(epsilon=epsilon), check_probability(delta=delta)
    if as_printed:
        noise = 80.0 * math.sqrt(b * math.log(1.0 / (epsilon * delta)))
    else:
        noise = 640.0 * math.sqrt(b * math.log(16.0 * k / (epsilon * delta)))
    return 96.0 / epsilon / epsilon * math.log(4.0 * k / delta) * min(noise, 16.0 * b)


def _log_pair(k: int) -> float:
    """``ln(k (k+1))``: the weights 1/(k (k+1)) sum to 1."""
    return math.log(k) + math.log(k + 1)


def _log_choose(n: int, k: int) -> float:
    """``ln C(n, k)``, by the beta function: a difference of log-gammas loses digits at large n."""
    from scipy.special import betaln

    return max(0.0, -math.log(n + 1) - float(betaln(n - k + 1, k + 1)))
