"""Which models of a pool may be its best: each is tested against the best one on the holdout."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from radabound_fast._kernels.studentised import raise_maxima
from radabound_fast.pool.judging import Judge
from radabound_fast.pool.results import BestSet
from radabound_fast.rows.moments import Moments, moments_of, moments_of_gains
from radabound_fast.rows.signs import SignMatrix
from radabound_fast.rows.studentised import signed_sums, sums_of_signs

Array = NDArray[Any]
Floats = NDArray[np.float64]

NO_POOL_HAS = 1e12  # so many models: what is left out here is out by Bonferroni's level in any pool
FRONT_BYTES = 1 << 28  # of rows that are kept at most
SELECTION = 0.01  # share of delta that leaving out comparators takes, twice
MOST_PAIRS = 1 << 25  # of a model and another that are tried; beyond, Bonferroni's level is taken
MOST_CANDIDATES = 4096
_FIRST = 1024  # of the best models, that candidates are compared with before all others
_ROWS = 256  # other models that are worked on at a time


class Front:
    """Models that are not proved worse than the best one so far, whatever else is in the pool."""

    def __init__(self, judge: Judge, delta: float) -> None:
        self._judge, self._nats = judge, math.log(NO_POOL_HAS / delta)
        # the first model with the lowest mean loss, and its losses
        self.best, self.mean = -1, math.inf
        self.row: Array = np.empty(0)
        # numbers and rows of the models, the best among them
        self.parts: list[tuple[NDArray[np.int64], Array]] = []
        # for want of room models with this mean loss, or more, are not among them
        self.capped = math.inf
        self._bytes_when_pruned = 0

    def copy(self) -> Front:
        other = Front.__new__(Front)
        vars(other).update(vars(self), parts=list(self.parts))
        return other

    def add(self, rows: Array, moments: Moments, first: int) -> None:
        """Take in rows, numbered from `first` on."""
        best = int(moments.means.argmin())
        if moments.means[best] < self.mean:
            self.best, self.mean = first + best, float(moments.means[best])
            self.row = rows[best].copy()
        may_be = self._may_be_best(rows) & (moments.means < self.capped)
        if may_be.any():
            self.parts.append((first + np.flatnonzero(may_be), rows[may_be].copy()))
        if self._n_bytes > 2 * self._bytes_when_pruned + (1 << 20):
            self.prune()

    def prune(self) -> None:
        """Leave out what is worse than the best one by now, and the worst of what is too much."""
        parts = []
        for numbers, rows in self.parts:
            may_be = self._may_be_best(rows)
            if may_be.any():
                parts.append((numbers[may_be], rows[may_be]))
        self.parts = parts
        if self._n_bytes > FRONT_BYTES:
            means = self._means()
            room = int(np.concatenate(means).size * FRONT_BYTES / self._n_bytes)
            self.capped = float(np.partition(np.concatenate(means), room)[room])
            self.parts = [
                (numbers[mean < self.capped], rows[mean < self.capped])
                for (numbers, rows), mean in zip(parts, means, strict=True)
            ]
        self._bytes_when_pruned = self._n_bytes

    def best_rows(self, n: int) -> list[Array]:
        """Rows of about n models with the lowest mean losses, by kinds of rows."""
        means = self._means()
        if not means:
            return []
        lowest = np.sort(np.concatenate(means))[:n]
        return [
            rows[mean <= lowest[-1]][:n] for (_, rows), mean in zip(self.parts, means, strict=True)
        ]

    def _means(self) -> list[NDArray[np.float64]]:
        return [moments_of(rows, self._judge.n_units).means for _, rows in self.parts]

    @property
    def _n_bytes(self) -> int:
        return sum(rows.nbytes for _, rows in self.parts)

    def _may_be_best(self, rows: Array) -> NDArray[np.bool_]:
        """Whether Hoeffding's bound leaves it open that a row is the best model's.

        Of N rows on which two models disagree one is right on n and the other on N - n; the sign
        test's p-value is at most ``exp(-(2 n - N)^2 / (2 N))``.
        """
        m = self._judge.n_units
        gains = moments_of_gains(rows, self.row, m)
        spread = gains.plus + gains.minus if rows.dtype == self.row.dtype == np.uint64 else m
        return np.asarray((m * gains.means) ** 2 <= 2.0 * spread * self._nats)


class _Candidate:
    """A model whose place in the set the bootstrap has to decide."""

    def __init__(self, number: int, row: Array, z: float, apart: float) -> None:
        self.number, self.row, self.z, self.apart = number, row, z, apart
        self.sums: Floats | None = None  # made when they are needed, as are the maxima
        self.maxima = np.empty(0)


class Comparisons:
    """Tests of every model against the best one on the holdout.

    The true best model is left out wrongly only if some model, the best on the holdout, seems
    significantly better than it.  So its level comes from its own largest studentised difference
    over all models: ``max_g (Z_f - Z_g) / sd(f - g)`` for each sign vector.  Models g that are
    clearly worse than f, by twice the width of simultaneous limits at a hundredth of delta, cannot
    be it and are left aside; twice that hundredth is paid for them.
    """

    def __init__(
        self, judge: Judge, signs: SignMatrix, front: Front, n_models: int, delta: float
    ) -> None:
        from scipy.special import ndtri

        self._judge, self._signs = judge, signs
        self._sign_sums = sums_of_signs(signs)
        self._front, self._best, self._capped = front, front.row, front.capped
        self._delta, self._lowest_p = delta, delta / max(n_models - 1, 1)
        self._proved = np.zeros(n_models, np.bool_)  # which Bonferroni's level leaves in
        self._apart = 2.0 * float(ndtri(SELECTION * delta / n_models))
        self._rank = math.ceil((1.0 - delta * (1.0 - 2.0 * SELECTION)) * (signs.n_vectors + 1))
        self._n_by_bonferroni = 0
        self._open: list[_Candidate] = []
        for numbers, rows in front.parts:
            self._open += self._candidates(numbers, rows)
        self._keep_best(MOST_CANDIDATES)
        for rows in front.best_rows(_FIRST):
            self._compare(rows)
        self._keep_best(max(16, MOST_PAIRS // n_models))

    def _candidates(self, numbers: NDArray[np.int64], rows: Array) -> Iterator[_Candidate]:
        """Make candidates of the rows that the bootstrap may leave out, unlike Bonferroni."""
        from scipy.special import ndtri

        gains, p_values = self._test(numbers, rows)
        is_open = self._proved[numbers] & (p_values < self._delta)
        is_open &= gains.enough(self._judge.n_units)
        for place in np.flatnonzero(is_open).tolist():
            z = -float(ndtri(p_values[place]))
            yield _Candidate(int(numbers[place]), rows[place], z, -float(gains.means[place]))

    def _keep_best(self, n: int) -> None:
        """Decide all but the n best candidates by Bonferroni's level, which leaves them in."""
        self._open.sort(key=lambda one: (one.apart, one.number))
        self._n_by_bonferroni += len(self._open[n:])
        del self._open[n:]

    def _test(self, numbers: NDArray[np.int64], rows: Array) -> tuple[Moments, Floats]:
        """Test rows against the best one, and note what Bonferroni's level leaves in."""
        gains = moments_of_gains(rows, self._best, self._judge.n_units)
        nats = -math.log(self._delta)
        p_values = self._judge.p_values(rows, gains, self._best, nats, of_losses=True)
        self._proved[numbers] = p_values >= self._lowest_p
        return gains, p_values

    @property
    def is_open(self) -> bool:
        """Whether more rows may change anything."""
        return bool(self._open) or math.isfinite(self._capped)

    def take(self, first: int, rows: Array) -> None:
        """Take in rows of the pool, numbered from `first` on."""
        if math.isfinite(self._capped):
            means = moments_of(rows, self._judge.n_units).means
            beyond = np.flatnonzero(means >= self._capped)
            if beyond.size:
                self._test(first + beyond, rows[beyond])
                self._n_by_bonferroni += int(self._proved[first + beyond].sum())
        self._compare(rows)

    def _compare(self, rows: Array) -> None:
        for start in range(0, len(rows) if self._open else 0, _ROWS):
            others = rows[start : start + _ROWS]
            sums = signed_sums(self._signs, others)
            self._open = [one for one in self._open if not self._may_stay(one, others, sums)]

    def _may_stay(self, one: _Candidate, others: Array, sums: Floats) -> bool:
        """Compare a candidate with other models; whether it is in the set, whatever comes."""
        if one.sums is None:
            one.sums = signed_sums(self._signs, one.row[np.newaxis])[0]
            one.maxima = np.zeros_like(one.sums)
        m = self._judge.n_units
        gains = moments_of_gains(others, one.row, m)
        scales = gains.scales
        scales[m * gains.means * scales <= self._apart] = 0.0
        raise_maxima(one.maxima, one.sums, sums, gains.means, scales, self._sign_sums)
        return int((one.maxima[: self._signs.n_vectors] < one.z).sum()) < self._rank

    def result(self, names: Sequence[Any]) -> BestSet:
        """What holds of the models with these names, after all rows."""
        may_be = self._proved.copy()
        may_be[[one.number for one in self._open]] = False
        return BestSet(names, may_be, self._proved, self._front.best, self._n_by_bonferroni)
