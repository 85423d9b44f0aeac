"""The price of a batch of finalists that are confirmed on rows kept for the end."""

from __future__ import annotations

import math

from .._checks import check_count, check_delta
from ._arguments import check_not_negative


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
    were told of them.  With probability at least ``1 - delta`` all intervals of all batches hold,
    if those of each are taken at these nats.

    Parameters
    ----------
    n_finalists : int
        Finalists of this batch, or claims about them.
    delta : float
        The probability that any interval misses, in (0, 1).
    batch : int, default 1
        Its place among the batches, from 1.
    n_batches : int or None, default 1
        How many batches were declared, each of which has ``delta / n_batches``; None: any number,
        and batch t has ``delta / (t (t + 1))``.
    log_outcomes : float, default 0
        ``ln M`` summed over earlier batches: each was told one of at most M possible outcomes.
    n_families : int, default 1
        Kinds of claims that share delta equally: values, gains over a baseline, gains of pairs.

    Returns
    -------
    float
        ``ln(2 n_families n_finalists / (u delta)) + log_outcomes``, u the share of the batch.

    Notes
    -----
    Result 31 of docs/explanation/theory.md: a union bound over the tree of what may be told.

    Examples
    --------
    >>> round(confirmation_nats(10, 0.1), 4)
    5.2983
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
