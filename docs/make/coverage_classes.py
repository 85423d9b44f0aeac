"""The classes of losses on which docs/make/coverage_table.py tries every bound.

Each class grows: F_1 in F_2 in ... in F_K, as queries are asked one after another or, for the
uncountable ones, as a parameter moves.  One draw is a sample with its sign vectors, and all that
a guard would see of it; suprema over uncountable classes are exact, in closed form.  What does
not change from draw to draw (search paths, trained models) is made once, from a fixed seed, and
without the sample: the sequences are fixed in advance.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

N_QUERIES = 300
N_STEPS = 60  # K of the classes that shatter
Floats = NDArray[np.floating[Any]]
Random = np.random.Generator


class Path(NamedTuple):
    """What one sample and its L sign vectors say about F_1, ..., F_K.

    The running extremes of the signed sums, the running suprema of P_m f - P f and of
    P f - P_m f, and the largest count of losses (m times the largest mean).  Means and truths
    of the queries themselves where the class is a sequence of queries, else None.
    """

    maxima: NDArray[Any]  # (K, L)
    minima: NDArray[Any]  # (K, L)
    above: Floats  # (K,)
    below: Floats  # (K,)
    largest: NDArray[np.int64]  # (K,)
    means: Floats | None = None  # (K,)
    truths: Floats | None = None  # (K,)


Draw = Callable[[Random, int], Path]  # of a sample; the number of sign vectors


def bits(rng: Random, *shape: int, rarity: int = 1) -> NDArray[np.uint8]:
    """Independent 0s and 1s, 1 with probability 2**-rarity."""
    size = int(np.prod(shape))
    packed = np.frombuffer(rng.bytes(rarity * -(-size // 8)), np.uint8).reshape(rarity, -1)
    return np.unpackbits(np.bitwise_and.reduce(packed), count=size).reshape(shape)


def signs(rng: Random, *shape: int) -> NDArray[np.int8]:
    return 2 * bits(rng, *shape).view(np.int8) - 1


def path_of_queries(sums: Floats, counts: Floats, truths: Floats, m: int) -> Path:
    """A sequence of queries, from their signed sums (K, L), counts and truths (K,)."""
    means = counts / m
    return Path(
        np.maximum.accumulate(sums),
        np.minimum.accumulate(sums),
        np.maximum.accumulate(means - truths),
        np.maximum.accumulate(truths - means),
        np.maximum.accumulate(counts).astype(np.int64),
        means,
        truths,
    )


def path_of_losses(rng: Random, losses: NDArray[Any], truths: Floats, n_vectors: int) -> Path:
    """A sequence of queries, from their losses (K, m)."""
    m = losses.shape[1]
    # sums of at most 2^24 ones are exact in float32
    values = losses.astype(np.float32)
    sums = values @ signs(rng, m, n_vectors).astype(np.float32)
    return path_of_queries(sums, values.sum(1).astype(np.float64), truths, m)


# ---- sequences of queries --------------------------------------------------------------------


def fair_coins(m: int) -> Draw:
    """300 unrelated classifiers of random labels."""
    truths = np.full(N_QUERIES, 0.5)
    return lambda rng, n: path_of_losses(rng, bits(rng, N_QUERIES, m), truths, n)


def rare_coins(m: int) -> Draw:
    """300 unrelated classifiers that err on one sample in 64."""
    truths = np.full(N_QUERIES, 2.0**-6)
    return lambda rng, n: path_of_losses(rng, bits(rng, N_QUERIES, m, rarity=6), truths, n)


def mutations(m: int) -> Draw:
    """One classifier of error 1/4, and 300 copies, each wrong about itself on one sample in 64."""
    truths = np.full(N_QUERIES, (1 / 4) * (63 / 64) + (3 / 4) * (1 / 64))

    def draw(rng: Random, n_vectors: int) -> Path:
        losses = bits(rng, m, rarity=2) ^ bits(rng, N_QUERIES, m, rarity=6)
        return path_of_losses(rng, losses, truths, n_vectors)

    return draw


def best_so_far(m: int) -> Draw:
    """A climb on other data: each candidate is the best so far, flipped in one of 60 cells.

    The losses of a draw depend on its (cell, label) pairs alone, and so do the signed sums on
    those of each pair.
    """
    n_cells = 60
    rng = np.random.default_rng([2019, m])
    positive = rng.uniform(0.3, 0.7, n_cells)
    pairs = np.concatenate([1 - positive, positive]) / n_cells  # label 0 in each cell, label 1
    training = rng.multinomial(m, pairs)
    best, candidates = bits(rng, n_cells), []
    lowest = m + 1.0
    candidate = best
    for flipped in rng.integers(n_cells, size=N_QUERIES):
        losses = np.concatenate([candidate, 1 - candidate])  # wrong where the label differs
        candidates.append(losses)
        if losses @ training < lowest:
            best, lowest = candidate, float(losses @ training)
        candidate = best.copy()
        candidate[flipped] ^= 1
    matrix = np.array(candidates, np.float64)

    def draw(rng: Random, n_vectors: int) -> Path:
        counts = rng.multinomial(m, pairs)
        plus = rng.binomial(counts[:, None], 0.5, (2 * n_cells, n_vectors))
        sums = matrix @ (2.0 * plus - counts[:, None])
        return path_of_queries(sums, matrix @ counts, matrix @ pairs, m)

    return draw


def digits(m: int) -> Draw:
    """100 classifiers of handwritten digits (scikit-learn's), resampled from 898 of them."""
    losses = digit_losses()
    by_image = np.ascontiguousarray(losses.T)  # a draw takes whole rows

    def draw(rng: Random, n_vectors: int) -> Path:
        drawn = by_image[rng.integers(len(by_image), size=m)]
        return path_of_losses(rng, drawn.T, losses.mean(1), n_vectors)

    return draw


@cache
def digit_losses() -> NDArray[np.uint8]:
    """(100, 898): trees and nearest neighbours, each on some of the pixels and half the images."""
    from sklearn.datasets import load_digits
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.tree import DecisionTreeClassifier

    rng = np.random.default_rng(2019)
    images, labels = load_digits(return_X_y=True)
    order = rng.permutation(len(labels))
    train, test = np.array_split(order, 2)
    losses = []
    for k in range(50):
        models = (
            DecisionTreeClassifier(max_depth=1 + k % 12, random_state=k),
            KNeighborsClassifier(n_neighbors=1 + k),
        )
        for model in models:
            pixels = rng.choice(64, size=rng.integers(8, 65), replace=False)
            model.fit(images[train][:, pixels], labels[train])
            losses.append(model.predict(images[test][:, pixels]) != labels[test])
    return np.array(losses, np.uint8)


# ---- uncountable classes ---------------------------------------------------------------------


def thresholds(m: int) -> Draw:
    """1[x <= t] for all t up to u, x uniform on [0, 1]; u grows to 1."""
    reached = np.arange(1, N_QUERIES + 1) / N_QUERIES
    ranks = np.arange(1, m + 1)

    def draw(rng: Random, n_vectors: int) -> Path:
        x = np.sort(rng.random(m))
        inside = np.searchsorted(x, reached, side="right")  # samples up to u
        prefix = np.zeros((m + 1, n_vectors), np.int16)
        np.cumsum(signs(rng, m, n_vectors), axis=0, out=prefix[1:])
        high = np.maximum.accumulate(np.append(0.0, ranks / m - x))
        low = np.maximum.accumulate(np.append(0.0, x - (ranks - 1) / m))
        return Path(
            np.maximum.accumulate(prefix)[inside],
            np.minimum.accumulate(prefix)[inside],
            high[inside],
            np.maximum.accumulate(np.maximum(low[inside], reached - inside / m)),
            inside,
        )

    return draw


def half_planes(m: int) -> Draw:
    """Linear classifiers sign(w.x) of random labels, w turning once round the circle.

    In the first half turn each sample's loss changes once; the second half is the complement.
    """
    half = N_QUERIES // 2
    turned = np.arange(1, half + 1) / half

    def running(start: Any, changes: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        values = np.cumsum(np.concatenate([start[None], changes]), axis=0, dtype=np.int16)
        return np.maximum.accumulate(values), np.minimum.accumulate(values)

    def both_halves(
        high: NDArray[Any], low: NDArray[Any], total: Any, passed: NDArray[Any]
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """Running extremes at the steps of a full turn."""
        second_high = np.maximum(high[-1], total - low[passed])
        second_low = np.minimum(low[-1], total - high[passed])
        return (
            np.concatenate([high[passed], second_high]),
            np.concatenate([low[passed], second_low]),
        )

    def draw(rng: Random, n_vectors: int) -> Path:
        passed = np.searchsorted(np.sort(rng.random(m)), turned, side="right")
        loss = bits(rng, m).astype(np.int16)  # at the start, samples in order of their change
        sigma = signs(rng, m, n_vectors)
        change = 1 - 2 * loss
        sums = running((loss @ sigma.astype(np.float32)).astype(np.int16), change[:, None] * sigma)
        maxima, minima = both_halves(*sums, sigma.sum(0, dtype=np.int16), passed)
        most, least = both_halves(*running(loss.sum(dtype=np.int16), change), m, passed)
        return Path(maxima, minima, most / m - 0.5, 0.5 - least / m, most.astype(np.int64))

    return draw


def shattering(m: int, atoms: int) -> Draw:
    """Finite sets: A in [0, u], u growing to 1, x uniform on [0, 1] or at an atom.

    One atom of mass 1/2: the losses 1_A.  Two of mass .4: 1_a + 1_A for one of them, where A
    or its complement in [0, u'], u' <= u, is finite.  Every subset of the samples in [0, u] is
    cut out, so all that counts is how many there are and how many of them have which sign.
    """
    masses = [0.5] if atoms == 1 else [0.4, 0.4]
    spread = 1 - sum(masses)
    cells = np.array([*masses, *[spread / N_STEPS] * N_STEPS])
    reached = np.arange(1, N_STEPS + 1) / N_STEPS

    def draw(rng: Random, n_vectors: int) -> Path:
        counts = rng.multinomial(m, cells)
        steps = counts[atoms:]
        inside = np.cumsum(steps)
        plus = np.cumsum(rng.binomial(steps[:, None], 0.5, (N_STEPS, n_vectors)), axis=0)
        if atoms == 1:
            at_atom, sums = 0, np.zeros(n_vectors, np.int64)
            above, below = inside / m, np.zeros(N_STEPS)
        else:
            at_atom = int(counts[0])
            sums = 2 * rng.binomial(at_atom, 0.5, n_vectors) - at_atom
            above = (at_atom + inside) / m - masses[0]
            below = masses[0] + spread * reached - at_atom / m
        return Path(sums + plus, sums + plus - inside[:, None], above, below, at_atom + inside)

    return draw


CLASSES: dict[str, Callable[[int], Draw]] = {
    "300 fair coins": fair_coins,
    "300 rare coins": rare_coins,
    "mutations of one classifier": mutations,
    "best-so-far path": best_so_far,
    "digits, real classifiers": digits,
    "thresholds on a line": thresholds,
    "half-planes": half_planes,
    "shattering, one atom": lambda m: shattering(m, 1),
    "shattering, two atoms": lambda m: shattering(m, 2),
}
