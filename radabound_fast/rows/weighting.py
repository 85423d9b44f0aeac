"""How much each row counts, and which rows belong together."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from radabound_fast._kernels.rows import UNIT_SHIFT, fingerprints, pack_rows, rows_in_units
from radabound_fast.rows.labels import distinct
from radabound_fast.rows.packing import (
    as_array,
    as_numbers,
    as_values,
    as_words,
    bits_of,
    check_shape,
)

_BLOCK_VALUES = 2**20  # losses that are multiplied at a time


class Weighting:
    """How much each row counts, and which rows belong together.

    `sample_weight`, float (n_samples,), is positive, and was fixed before any score was seen. Rows
    with one value of `groups` are dependent, and those with different ones are not.
    """

    def __init__(self, n_samples: int, sample_weight: Any, groups: Any) -> None:
        self.weights: NDArray[np.float64] | None = None  # (n_samples,), for `numpy.average`
        self.codes: NDArray[np.int64] = np.arange(n_samples)  # the group of each row, from 0
        if sample_weight is not None:
            weights = as_array(sample_weight, "sample_weight")
            check_shape(weights, n_samples, 1, "sample_weight")
            self.weights = as_numbers(weights, "sample_weight").astype(np.float64)
            good = (self.weights > 0.0) & (self.weights < math.inf)
            if not good.all():
                place = int(good.argmin())
                raise ValueError(
                    f"sample_weight must be positive and finite, got {weights[place]!s} at sample "
                    f"{place}"
                )
        if groups is not None:
            self.codes = distinct(groups, "groups")[2].astype(np.int64)
            check_shape(self.codes, n_samples, 1, "groups")
        sums = np.bincount(self.codes, self.weights, minlength=1)
        with np.errstate(over="ignore"):
            total = float(sums.sum())
        if not math.isfinite(total):
            raise ValueError("sample_weight must have a sum that is finite")
        # the groups' weights, and how many groups have each
        self.of_groups, self.counts = np.unique(sums, return_counts=True)
        shares = self.of_groups / float(self.counts @ self.of_groups)
        # how many rows without weights would be worth as much
        self.n_effective = 1.0 / float(self.counts @ (shares * shares))

    @property
    def is_of_rows(self) -> bool:
        """Whether each row is a group of its own."""
        return self.n_groups == len(self.codes)

    @classmethod
    def of(cls, n_samples: int, sample_weight: Any, groups: Any) -> Weighting | None:
        """None where all rows are independent and count alike: equal weights are no weights."""
        if sample_weight is None and groups is None:
            return None
        weighting = cls(n_samples, sample_weight, groups)
        counts_alike = weighting.is_of_rows and len(weighting.of_groups) == 1
        return None if counts_alike else weighting

    @property
    def n_groups(self) -> int:
        """How many groups there are; rows, where there are none."""
        return int(self.counts.sum())

    def group_means(self, rows: NDArray[Any]) -> NDArray[np.float64]:
        """Return the weighted mean of each group: shape (k, n_groups), of rows of shape (k, m)."""
        order = np.argsort(self.codes, kind="stable")
        weights = np.ones(len(order)) if self.weights is None else self.weights[order]
        starts = np.searchsorted(self.codes[order], np.arange(self.n_groups))
        sums = np.add.reduceat(rows[:, order] * weights, starts, axis=1)
        return np.clip(sums / np.add.reduceat(weights, starts), 0.0, 1.0)

    def fingerprint(self, secret: bytes) -> int:
        """A hash of the weights and groups, keyed with a secret."""
        weights = np.ones(len(self.codes)) if self.weights is None else self.weights
        both = np.concatenate([weights, self.codes.astype(np.float64)]).astype("<f8", copy=False)
        return int(fingerprints(both[np.newaxis], both.nbytes, secret)[0])


class Units:
    """Losses of rows that weigh differently, or in groups, as the losses of one row a group.

    Weights are integers here: multiplied by a power of 2 so that the heaviest group has about
    2**24, and rounded.  So a group's loss, its row's losses times their weights, is a multiple of
    2**-24 of what the heaviest group can have: what the kernels add up.  A row that weighs nothing
    beside the heaviest group is a ValueError.
    """

    def __init__(self, weighting: Weighting) -> None:
        codes = weighting.codes
        # independent groups; rows, where there are none
        self.n_samples, self.n_groups = len(codes), int(codes.max()) + 1
        exact = np.ones(len(codes)) if weighting.weights is None else weighting.weights
        exponent = UNIT_SHIFT - math.frexp(float(np.bincount(codes, exact).max()))[1]
        while True:
            rounded = np.rint(np.ldexp(exact, exponent))
            sums = np.bincount(codes, rounded)
            if sums.max() <= 1 << UNIT_SHIFT:
                break
            exponent -= 1
        if not rounded.all():
            place = int(rounded.argmin())
            raise ValueError(
                "sample_weight must be at least 2**-24 of the weight of the heaviest row or "
                f"group, got {exact[place]!s} at sample {place}"
            )
        self.weights, self.codes = rounded.astype(np.int64), codes  # (n_samples,) each
        # the sum, in units and in units of loss, of a row of losses that are all 1
        self.total = int(self.weights.sum())
        self.whole = self.total / (1 << UNIT_SHIFT)
        # the largest of the groups' weights of sum 1, and the sum of their squares
        shares = sums / self.total
        self.largest, self.squares = float(shares.max()), float(shares @ shares)
        self.of_groups, self.counts = np.unique(sums, return_counts=True)
        self._order: NDArray[np.intp] = np.argsort(codes, kind="stable")
        self._starts = np.searchsorted(codes[self._order], np.arange(self.n_groups))

    @classmethod
    def of(cls, weighting: Weighting | None) -> Units | None:
        """None without weights and groups."""
        return None if weighting is None else cls(weighting)

    def fingerprint(self) -> str:
        """A hash of the weights and groups, equal for equal ones."""
        import hashlib  # here: it loads megabytes, and most guards have no weights

        digest = hashlib.blake2b(digest_size=16)
        for part in (self.weights, self.codes):
            digest.update(part.astype("<i8").tobytes())
        return digest.hexdigest()

    def rows(self, values: Any, labels: Any, packed: bool, ndim: int) -> NDArray[np.float32]:
        """The losses of groups, of losses, packed losses, or predictions and their labels.

        Shape (n_groups,) or (k, n_groups); as the kernels have them, multiples of 2**-24.
        """
        m, in_units = self.n_samples, False
        if packed:
            read = as_words(values, m, ndim)
        elif labels is not None:
            read = pack_rows(values, labels)
        else:
            read = as_values(values, m, ndim)
            in_units = read.dtype.kind == "f"
            if not in_units:
                read = pack_rows(read)
        read = np.atleast_2d(read)
        losses = np.empty((len(read), self.n_groups), np.float32)
        step = max(1, _BLOCK_VALUES // m)
        for start in range(0, len(read), step):
            block = slice(start, start + step)
            if in_units:
                units = rows_in_units(read[block])[..., :m]
                sums = self._sums(units) + (1 << UNIT_SHIFT - 1) >> UNIT_SHIFT
            else:
                sums = self._sums(bits_of(read[block], m))
            losses[block] = np.ldexp(sums.astype(np.float32), -UNIT_SHIFT)
        return losses if ndim == 2 else losses[0]

    def _sums(self, losses: NDArray[Any]) -> NDArray[np.int64]:
        """The sum of each group's losses times their weights."""
        if self.n_groups == self.n_samples:
            return losses * self.weights
        weighted = losses[:, self._order] * self.weights[self._order]
        sums: NDArray[np.int64] = np.add.reduceat(weighted, self._starts, axis=1)
        return sums
