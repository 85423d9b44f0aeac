"""What claims cost after others were decided in view of the same rows."""

from __future__ import annotations

import bisect
import math
from collections.abc import Sequence

from .._checks import (
    check_count,
    check_delta,
    check_fraction,
    check_integer,
    check_n_samples,
    check_real,
)
from ._arguments import check_not_negative
from .paired import paired_interval


def history_nats(counts: Sequence[int], *, n_candidates: int | None = None) -> float:
    """Nats of the next candidate of a release gate, by the verdicts that were released before it.

    If every claim is made at ``ln(1/delta)`` and so many nats more, one-sided, then with
    probability at least 1 - delta no claim is ever wrong, however each candidate was chosen in the
    light of the verdicts before it (Result 30).  What costs is the rarer verdict: a candidate that
    fails, as nearly all do, costs next to nothing.

    >>> round(history_nats([0, 0], n_candidates=32), 4)
    3.4657
    >>> [round(history_nats([b, 31 - b], n_candidates=32), 4) for b in (0, 1, 4)]
    [6.9315, 10.3655, 17.2881]

    Parameters
    ----------
    counts : sequence of int
        How often each of the k possible verdicts was released: (passes, failures), or three.
    n_candidates : int, optional
        H, how many candidates were declared beforehand; by default there is no end.

    Returns
    -------
    float
        ``ln(1/u) + ln(1/w)``: u is 1/H, or ``1/(t(t+1))`` for candidate t without H; and
        ``w = (k-1)! prod(counts!) / (sum(counts) + k - 1)!``, 1 in sum over such histories.
    """
    numbers = [check_integer(counts=count) for count in counts]
    if not numbers or min(numbers) < 0:
        raise ValueError(f"counts must be one number a verdict, at least 0, got {counts!r}")
    candidate, k = sum(numbers) + 1, len(numbers)
    if n_candidates is None:
        nats = math.log(candidate) + math.log(candidate + 1)
    elif candidate > check_count(n_candidates=n_candidates):
        raise ValueError(f"counts must sum to less than n_candidates = {n_candidates}")
    else:
        nats = math.log(n_candidates)
    history = math.lgamma(candidate + k - 1) - math.lgamma(k)
    return nats + history - sum(math.lgamma(count + 1) for count in numbers)


def gain_needed(n_samples: int, disagreement: float, nats: float, *, margin: float = 0.0) -> float:
    """Return the least observed gain whose lower limit, by `paired_interval`, exceeds a margin.

    >>> gain_needed(4000, 0.1, math.log(20) + history_nats([0, 0], n_candidates=32))
    0.015

    Parameters
    ----------
    n_samples : int
        m independent samples, 1 to 2^40.
    disagreement : float
        The share of samples on which the losses of the two models, 0 or 1, differ; in [0, 1].
    nats : float
        The limit is wrong with probability at most exp(-nats); at least 0.
    margin : float
        The gain that the limit is to exceed.

    Returns
    -------
    float, a multiple of 1/m, at most `disagreement` rounded to one; inf where that will not do
    """
    m = check_n_samples(n_samples)
    n_differ = round(check_fraction(disagreement=disagreement) * m)
    nats, margin = check_not_negative(nats=nats), check_real(margin=margin)

    def passes(n_plus: int) -> bool:
        return bool(paired_interval(n_plus, n_differ - n_plus, m, nats)[0] > margin)

    n_plus = bisect.bisect_left(range(n_differ + 1), True, key=passes)
    return math.inf if n_plus > n_differ else (2 * n_plus - n_differ) / m


def confirmation_nats(
    n_finalists: int,
    delta: float,
    *,
    batch: int = 1,
    n_batches: int | None = 1,
    log_outcomes: float = 0.0,
    n_families: int = 1,
) -> float:
    """Nats at which the limits of a batch of finalists hold, with those of all other batches.

    Finalists are models fixed before the confirmation rows were seen, but for what earlier batches
    released of them.  With probability at least ``1 - delta`` all intervals of all batches hold,
    if those of each are taken at these nats.

    >>> round(confirmation_nats(10, 0.1), 4)
    5.2983

    Parameters
    ----------
    n_finalists : int
        Finalists of this batch, or claims about them.
    delta : float
        The probability that any interval misses, in (0, 1).
    batch, n_batches : int, int or None
        The place of this batch, from 1, and how many were declared, each of which has
        ``delta / n_batches``; None: any number, and batch t has ``delta / (t (t + 1))``.
    log_outcomes : float
        ``ln M`` summed over earlier batches: each released one of at most M possible outcomes.
    n_families : int
        Kinds of claims that share delta equally: values, gains over a baseline, gains of pairs.

    Returns
    -------
    float
        ``ln(2 n_families n_finalists / (u delta)) + log_outcomes``, u the share of the batch:
        Result 31, a union bound over the tree of what may be released.
    """
    check_delta(delta)
    n_finalists = check_count(n_finalists=n_finalists)
    batch, n_families = check_count(batch=batch), check_count(n_families=n_families)
    if n_batches is None:
        share = batch * (batch + 1)
    else:
        share = check_count(n_batches=n_batches)
        if batch > share:
            raise ValueError(f"batch must be at most n_batches = {share}, got {batch}")
    price = math.log(2 / delta) + math.log(n_families) + math.log(share) + math.log(n_finalists)
    return price + check_not_negative(log_outcomes=log_outcomes)
