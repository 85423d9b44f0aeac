"""The union bound over queries fixed in advance: no signs, no complexity.

Query k has a weight w_k, the weights sum to at most 1, and query k then fails with
probability at most ``w_k delta``, on both sides together.  Flat weights serve one epsilon
fixed in advance best; weights 1/(k (k+1)), and the dyadic ones, need no number of queries.
"""

from __future__ import annotations

import math
from typing import Any

from .._checks import check_count, check_n_samples, check_probability
from ._arguments import check_numbers
from ._limits import functions_for

MOST_QUERIES = 2**62


def union_half_width(
    query: int, n_samples: int, delta: float, *, max_queries: int | None = None
) -> float:
    """Simultaneous half-width of the k-th query, for all k at once.

    ``sqrt(ln(2 / (w_k delta)) / (2m))`` (Hoeffding), two-sided.

    Parameters
    ----------
    query, n_samples : int
        k, from 1 on, and m held-out samples (1 to 2^40).
    delta : float
        Probability that any query fails, in (0, 1).
    max_queries : int, optional
        Weights 1/max_queries for as many queries; by default 1/(k (k+1)) without end.

    Returns
    -------
    float, in units of loss, not clipped at 1
    """
    m = check_n_samples(n_samples)
    k, delta = check_count(query=query), check_probability(delta=delta)
    if max_queries is None:
        code = math.log(k) + math.log(k + 1)
    elif k > check_count(max_queries=max_queries):
        raise ValueError(f"query must be at most max_queries = {max_queries}, got {k}")
    else:
        code = math.log(max_queries)
    return math.sqrt((code + math.log(2.0 / delta)) / (2.0 * m))


def union_queries(n_samples: int, epsilon: float, delta: float, *, flat: bool = True) -> int:
    """Number of queries that are within epsilon by Hoeffding and the union bound.

    ``floor((delta / 2) exp(2 m epsilon^2))`` with flat weights; else, with weights 1/(k (k+1)), the
    largest k for which ``k (k+1)`` is at most that.

    >>> union_queries(4000, 0.04, 0.1), union_queries(4000, 0.04, 0.1, flat=False)
    (18110, 134)

    Parameters
    ----------
    n_samples : int
        m held-out samples, 1 to 2^40.
    epsilon, delta : float
        The error tolerated and the probability of failure, in (0, 1).
    flat : bool
        Flat weights, or 1/(k (k+1)).

    Returns
    -------
    int, from 0 to 2^62
    """
    m = check_n_samples(n_samples)
    epsilon, delta = check_probability(epsilon=epsilon), check_probability(delta=delta)
    log_failures = math.log(0.5 * delta) + 2.0 * m * epsilon * epsilon
    if log_failures >= (1.0 if flat else 2.0) * math.log(MOST_QUERIES):
        return MOST_QUERIES
    if flat:
        return math.floor(math.exp(log_failures))
    return math.floor(math.sqrt(0.25 + math.exp(log_failures)) - 0.5)


def dyadic_code(queries: Any) -> Any:
    """``ln(1/w_k)`` of the weights ``w_k = 1 / (2^j (j+1) (j+2))``, where ``2^j <= k < 2^(j+1)``.

    Constant over each power of two, so that what passes changes log2 k times; they sum to 1.

    >>> round(dyadic_code(1000), 4)
    10.9388

    Parameters
    ----------
    queries : int or array_like of int
        k, from 1 on.

    Returns
    -------
    float or ndarray of float64, in nats
    """
    k = check_numbers(queries=queries)
    f = functions_for(k)
    j = f.frexp(k)[1] - 1
    return j * math.log(2.0) + f.log((j + 1.0) * (j + 2.0))
