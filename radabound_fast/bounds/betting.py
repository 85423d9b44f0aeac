"""Confidence limits of a mean of real-valued losses by betting: narrow where they vary little."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._kernels.limits import betting_limits
from ._arguments import check_not_negative


def betting_interval(losses: Any, nats: float) -> tuple[float, float]:
    """Confidence interval for the expectation of a loss, from its values on independent samples.

    For one loss function fixed in advance, its expectation lies between the limits with
    probability at least ``1 - 2 exp(-nats)``, at any m.

    Parameters
    ----------
    losses : array_like, shape (n_samples,)
        Losses in [0, 1], one a sample.
    nats : float
        ``ln(2 / (w delta))``, at least 0, where w is the weight of this function in a union
        bound, 1 for a single one.

    Returns
    -------
    tuple of float
        In [0, 1], the mean between them.

    Raises
    ------
    ValueError
        No losses, or one outside [0, 1].

    Notes
    -----
    Against the claim that the expectation is at most mu, a capital of 1 is bet on the samples:
    ``prod_i (1 + b (x_i - mu))``, 0 <= b < 1/mu, has an expectation of at most 1 if the claim is
    true.  The same holds for its mean over several bets b, which therefore reaches exp(nats) with
    probability at most exp(-nats) (Markov), and it falls in mu: the lower limit is where it
    reaches that.  The upper limit is that of 1 - x, in mirror image.  The bets depend on mu, m
    and nats alone; each is about the best, ``sqrt(2 nats / m) / s``, for losses of one standard
    deviation s.

    Losses are put into bins by sharing each between the two nearest edges, which keeps its mean.
    The logarithm is concave, so that the capital is never overstated.

    After [1]_, with a mixture over stakes in place of their predictable ones.

    References
    ----------
    .. [1] Waudby-Smith, Ramdas (2024). Estimating means of bounded random variables by betting.
       Journal of the Royal Statistical Society B 86.

    Examples
    --------
    >>> import math
    >>> losses = np.arange(4000) % 5 / 40
    >>> low, high = betting_interval(losses, nats=math.log(20))
    >>> round(low, 4), round(float(losses.mean()), 4), round(high, 4)
    (0.0483, 0.05, 0.0515)
    """
    values = np.asarray(losses, np.float64)
    nats = check_not_negative(nats=nats)
    if values.ndim != 1 or values.size == 0:
        raise ValueError(f"losses must be one number per sample, got shape {values.shape}")
    outside, low, high = betting_limits(values, nats)
    if outside >= 0:
        raise ValueError(f"losses must be in [0, 1], got one outside at sample {outside}")
    return low, high
