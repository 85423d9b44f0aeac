"""The part of "fixed-sequence" without signs: two halves of a union bound, in stages."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._checks import check_count, check_n_samples, check_probability
from ._arguments import check_fractions
from ._limits import at_most
from .binomial import binomial_free, binomial_interval, binomial_queries
from .conditional import weighted_interval
from .kl import kl_free, kl_interval
from .union import MOST_QUERIES, dyadic_code

NO_END = 2**63 - 1


class Stage(NamedTuple):
    """The means that are answered whatever the signs say, while fewer than `n_queries` were.

    Attributes
    ----------
    n_queries : int
        After so many answers another stage begins; 2^63 - 1 if none does.
    low_count : int
        For losses that are 0 or 1: at most so many errors pass, and at most so many correct rows;
        all pass if it is m, none if it is -1.
    low_mean : float
        For other losses: means in [0, low_mean] and in [1 - low_mean, 1] pass; all if it is 0.5,
        none if it is -1.
    """

    n_queries: int
    low_count: int
    low_mean: float


@dataclass(frozen=True)
class Free:
    """The union bound over the queries of a sequence fixed in advance, in two halves.

    Half of delta is shared alike among the first `n_flat` queries, the other half by the dyadic
    weights (`dyadic_code`).  At query k either half has an interval that fails with its share of
    delta: `binomial_interval` for losses declared 0 or 1, `kl_interval` for others.  All of them
    hold at once with probability 1 - delta, so that a query may be answered as soon as one of its
    two lies within epsilon of its mean, and both may be quoted.

    Attributes
    ----------
    n_samples, epsilon, delta
        The arguments of `union_free`.
    n_flat : int
        The queries that share half of delta alike; 0 for none.
    """

    n_samples: int
    epsilon: float
    delta: float
    n_flat: int

    @property
    def n_queries(self) -> int:
        """Number of queries answered whatever their means, where losses are declared 0 or 1."""
        return self.end_of(lambda stage: stage.low_count == self.n_samples)

    @property
    def answers_any(self) -> bool:
        """Whether there is a mean at which the first query is answered."""
        stage = self.stage(0)
        return stage.low_count >= 0 or stage.low_mean >= 0.0

    def nats(self, queries: Any) -> Any:
        """``ln(4 / (w_k delta))`` by the larger weight of each query k of `queries`, from 1 on."""
        code = dyadic_code(queries)
        if self.n_flat:
            flat = at_most(code, math.log(self.n_flat))
            if isinstance(code, float):
                code = flat if queries <= self.n_flat else code
            else:
                code = np.where(np.asarray(queries) <= self.n_flat, flat, code)
        return code + math.log(4.0 / self.delta)

    def stage(self, n_queries: int) -> Stage:
        """The means that pass after so many answers; `n_queries` is at least 0."""
        k = check_count(n_queries=n_queries + 1)
        end = self.last_alike(k)
        low_count, low_mean = _free(self.n_samples, self.epsilon, self.nats(k))
        # weights only fall, so that what does not pass never will
        return Stage(NO_END if low_count < 0 and low_mean < 0.0 else end, low_count, low_mean)

    def last_alike(self, query: int) -> int:
        """The last from a `query` on whose nats are the same."""
        end: int = 2 ** query.bit_length() - 1
        return min(end, self.n_flat) if query <= self.n_flat else end

    def interval(self, means: Any, queries: Any, declared: bool) -> tuple[Any, Any]:
        """Simultaneous confidence intervals of some queries: all hold with probability 1 - delta.

        Parameters
        ----------
        means : float or array_like of float
            Mean losses, in [0, 1]; multiples of 1/m if declared 0 or 1.
        queries : int or array_like of int
            Their places k in the sequence, from 1 on.  Broadcast with `means`.
        declared : bool
            Whether the losses are declared 0 or 1: labels, bits, booleans, integers.

        Returns
        -------
        lows, highs : float or ndarray of float64, in [0, 1]
        """
        means = check_fractions(means=means)
        if not declared:
            return kl_interval(means, self.n_samples, self.nats(queries))
        sums = means * self.n_samples
        counts = round(sums) if isinstance(sums, float) else np.rint(sums)
        between = abs(sums - counts) > 2.0**-10
        if between if isinstance(between, bool) else between.any():
            raise ValueError(
                f"a mean of losses declared 0 or 1 must be a multiple of 1/{self.n_samples}, "
                f"got {np.asarray(means)[between].flat[0]!s}"
            )
        counts = counts if isinstance(counts, int) else counts.astype(np.int64)
        return binomial_interval(counts, self.n_samples, self.nats(queries))

    def end_of(self, passes: Callable[[Stage], bool], n_queries: int = 0) -> int:
        """Number of answers after which the first stage begins that fails the test `passes`.

        Stages are tried from that of `n_queries` answers on.
        """
        while n_queries < MOST_QUERIES and passes(stage := self.stage(n_queries)):
            n_queries = stage.n_queries
        return min(n_queries, MOST_QUERIES)


@dataclass(frozen=True, eq=False)
class WeightedFree(Free):
    """`Free` for weighted means: what passes is by Hoeffding, intervals are those of Result 23."""

    weights: NDArray[Any]  # of the groups, in any unit
    counts: NDArray[Any]  # how many groups have each
    squares: float  # S, the sum of the squares of the weights of sum 1

    @property
    def n_queries(self) -> int:
        """Number of queries answered whatever their means."""
        return self.end_of(lambda stage: stage.low_mean >= 0.0)

    def stage(self, n_queries: int) -> Stage:
        """The means that pass after so many answers: all of them, or none any more."""
        k = check_count(n_queries=n_queries + 1)
        if math.sqrt(0.5 * self.squares * self.nats(k)) > self.epsilon:
            return Stage(NO_END, -1, -1.0)
        return Stage(self.last_alike(k), -1, 0.5)

    def interval(self, means: Any, queries: Any, declared: bool) -> tuple[Any, Any]:
        """Simultaneous confidence intervals of weighted means; `declared` makes no difference."""
        means, nats = check_fractions(means=means), self.nats(queries)
        if isinstance(means, float) and isinstance(nats, float):
            return weighted_interval(means, self.weights, self.counts, nats)
        means, nats = np.broadcast_arrays(means, nats)
        pairs = zip(means.ravel().tolist(), nats.ravel().tolist(), strict=True)
        limits = [weighted_interval(mean, self.weights, self.counts, each) for mean, each in pairs]
        lows, highs = np.array(limits, np.float64).reshape(-1, 2).T
        return lows.reshape(means.shape), highs.reshape(means.shape)


def union_free(
    n_samples: int, epsilon: float, delta: float, max_queries: int | None = None
) -> Free:
    """The union bound's answers within epsilon, two-sided, for queries fixed in advance.

    >>> union_free(4000, 0.04, 0.04).n_queries
    44043
    >>> union_free(4000, 0.02, 0.04).stage(399).low_count
    227

    Parameters
    ----------
    n_samples : int
        m held-out samples, 1 to 2^40.
    epsilon, delta : float
        The error tolerated and the probability of failure, in (0, 1).
    max_queries : int, optional
        How many queries share the flat half.  By default the most that it affords whatever their
        means where losses are declared 0 or 1, `binomial_queries` at half of delta.

    Returns
    -------
    Free
    """
    m = check_n_samples(n_samples)
    epsilon, delta = check_probability(epsilon=epsilon), check_probability(delta=delta)
    if max_queries is None:
        return Free(m, epsilon, delta, binomial_queries(m, epsilon, 0.5 * delta))
    return Free(m, epsilon, delta, check_count(max_queries=max_queries))


@lru_cache(maxsize=256)
def _free(n_samples: int, epsilon: float, nats: float) -> tuple[int, float]:
    return binomial_free(n_samples, epsilon, nats), kl_free(epsilon, nats / n_samples)
