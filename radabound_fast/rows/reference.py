"""Algorithm 1 in plain NumPy: start reading here.  The oracle of the tests, not for use.

De Stefani and Upfal (2019), with the misprints corrected that docs/explanation/theory.md lists.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def mix64(z: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """SplitMix64's output function on uint64 arrays."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def signs(seed: int, n_vectors: int, n_samples: int) -> NDArray[np.int64]:
    """The l sign vectors: int64 +-1, shape (n_vectors, n_samples)."""
    # not in the default integer, which has 32 bits on some systems
    j, w = (axis.astype(np.uint64) for axis in np.ogrid[:n_vectors, : -(-n_samples // 64)])
    base = mix64(np.atleast_1d(np.uint64(seed)) + GOLDEN)
    words = mix64(base + GOLDEN * ((j << np.uint64(40)) + w + np.uint64(1)))
    bits = np.unpackbits(words.astype("<u8").view(np.uint8), axis=1, bitorder="little")
    return 2 * bits[:, :n_samples].astype(np.int64) - 1


def signed_sums(signs: NDArray[np.int64], losses: NDArray[np.generic]) -> NDArray[np.int64]:
    """S_j(f) = sum_i sigma_ji f(x_i) for every loss vector f: shape (n_queries, n_vectors)."""
    return np.asarray(losses).astype(np.int64) @ signs.T


def radabound(
    signs: NDArray[np.int64],
    losses: NDArray[np.generic],
    rule: Callable[[float], bool],
    half_range: bool = False,
    weights: NDArray[np.int64] | None = None,
    groups: NDArray[np.int64] | None = None,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Answer losses (k, m) in order while the rule admits the complexity, this query's included.

    Rows may have integer weights (m,), and belong to groups (m,) 0, 1, ..., one sign a group.
    Returns the means answered, and the complexity after each query and the withheld one.
    """
    n_vectors, n_samples = len(signs), losses.shape[1]
    weights = np.ones(n_samples, np.int64) if weights is None else weights
    groups = np.arange(n_samples) if groups is None else groups
    cells = n_vectors * np.sum(weights)
    maxima, minima = np.full(n_vectors, -np.inf), np.full(n_vectors, np.inf)
    answers, complexities = [], []
    for f in losses:
        weighted = np.bincount(groups, weights * f)
        sums = signed_sums(signs, weighted[np.newaxis])[0]
        maxima, minima = np.maximum(maxima, sums), np.minimum(minima, sums)
        if half_range:
            complexity = np.sum(maxima - minima) / (2 * cells)
        else:
            complexity = np.sum(np.maximum(maxima, 0)) / cells
        complexities.append(complexity)
        if not rule(complexity):
            break
        answers.append(np.sum(weighted) / np.sum(weights))
    return np.array(answers), np.array(complexities)


def studentised(
    signs: NDArray[np.int64], losses: NDArray[np.generic], baseline: NDArray[np.generic] | None
) -> NDArray[np.float64]:
    """Centred signed sums over their standard deviations: shape (n_queries, n_vectors).

    Of the losses (k, m), or of their differences to a baseline's losses (m,); 0 without spread.
    """
    differences = np.asarray(losses).astype(np.float64)
    if baseline is not None:
        differences -= np.asarray(baseline).astype(np.float64)
    centred = differences - differences.mean(axis=1, keepdims=True)
    spread = np.sqrt((centred**2).sum(axis=1))
    sums: NDArray[np.float64] = centred @ signs.T
    sums[spread < 1e-9] = 0.0
    sums /= np.where(spread < 1e-9, 1.0, spread)[:, np.newaxis]
    return sums
