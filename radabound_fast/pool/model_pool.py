"""ModelPool: many models, fixed beforehand, judged at once."""

from __future__ import annotations

import math
import os
from collections.abc import Hashable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from radabound_fast._checks import (
    certainty,
    check_count,
    check_delta,
    check_n_vectors,
    counted,
)
from radabound_fast._kernels.rows import PackedLosses
from radabound_fast._kernels.support import sealed
from radabound_fast.bounds.bootstrap import one_sided_level, two_sided_level, vectors_needed
from radabound_fast.holdout import Holdout, Losses, as_judged
from radabound_fast.pool.best import Comparisons
from radabound_fast.pool.better import StepDown
from radabound_fast.pool.exact import holm
from radabound_fast.pool.front import Front
from radabound_fast.pool.judging import Judge
from radabound_fast.pool.parts import Blocks, Part, is_mapped
from radabound_fast.pool.results import BestSet, BetterModels, PoolIntervals
from radabound_fast.rows.moments import Moments, moments_of, moments_of_gains
from radabound_fast.rows.packing import as_array
from radabound_fast.rows.signs import SignMatrix
from radabound_fast.rows.studentised import StudentisedExtremes, StudentisedSums, signed_sums

if TYPE_CHECKING:
    from radabound_fast.pool.report import PoolReport

Array = NDArray[Any]
Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

GUARANTEE = (
    "asymptotic, for models that were all fixed before any holdout score was seen, and all of them "
    "in the pool: with probability about {certainty}, as rows grow many, each of these statements "
    "holds by itself: every interval holds its model's value; every model that is found better is; "
    "every gain is above its limit; the best model is among those that may be it (multiplier "
    "bootstrap with Rademacher signs, Chernozhukov, Chetverikov and Kato 2013 and 2019, turned "
    "into a level for exact limits). The statements beside them, by Bonferroni and Holm, hold with "
    "probability at least {certainty} at any number of rows, which is proved. Both assume "
    "independent held-out examples."
)


class ModelPool:
    """Many models on one holdout: which are truly better than a baseline, which may be the best.

    All models must have been fixed before any holdout score was seen, and all that were judged
    belong in the pool.  What it states is asymptotic: a bootstrap with random signs finds how
    alike the models are, and so at which level exact limits hold for all of them at once.  Models
    that are alike have narrower intervals than Bonferroni's, which stand beside them and are
    proved.

    Parameters
    ----------
    judged : array_like, Holdout, int or Losses
        Labels stand for ``Holdout(labels)``, an int for ``Losses(int)``.  The metric must be a mean
        of losses (`metrics.MEANS`), without weights or groups.
    delta : float, default 0.1
        The probability that a statement fails.
    baseline : array_like, shape (n_samples,), optional
        Predictions, or losses, of a model that was fixed beforehand as well: for `better`.
    n_vectors : int, default 1000
        l, the sign vectors; at least 1000, and at least ``10 / delta``.
    seed : int, optional
        Of the signs, 0 to 2**64 - 1.  None draws one from the operating system.

    Raises
    ------
    TypeError, ValueError
        An argument is of the wrong type or out of its range; the message says which and why.

    Notes
    -----
    Models are added in blocks of any size.  Some hundred bytes are kept of each, and beside them
    its losses, a bit for each held-out row (4 bytes where losses are real), unless they lie in a
    file or a memory map, which is read again where a step needs it.  docs/explanation/theory.md,
    "Simultaneous statements about a pool of models".

    Examples
    --------
    >>> import numpy as np
    >>> from radabound_fast import ModelPool
    >>> rng = np.random.default_rng(0)
    >>> y_true = rng.integers(0, 2, 4000)
    >>> error_rates = np.linspace(0.1, 0.3, 100)
    >>> Y_pred = np.where(rng.random((100, 4000)) < error_rates[:, None], 1 - y_true, y_true)
    >>> pool = ModelPool(y_true, baseline=Y_pred[60], seed=0)
    >>> pool.add(Y_pred)
    >>> pool.better()
    BetterModels(45 of 100 models)
    >>> pool.best_set().best_names
    [0, 1, 2, 3, 4, 5, 6, 8, 9, 11, 12]
    """

    @sealed
    def __init__(
        self,
        judged: Any,
        *,
        delta: float = 0.1,
        baseline: Any = None,
        n_vectors: int = 1000,
        seed: int | None = None,
    ) -> None:
        self._delta = check_delta(delta)
        n_vectors = check_n_vectors(n_vectors)
        least = vectors_needed(self._delta)
        if n_vectors < least:
            raise ValueError(
                f"n_vectors must be at least {least} with delta = {self._delta:g}, got {n_vectors}"
            )
        self._judge = Judge(as_judged(judged), baseline)
        self._signs = SignMatrix(self.n_samples, n_vectors, seed=seed)
        self._parts: list[Part] = []
        self._names: list[Any] | None = None
        self._losses: list[Moments] = []
        self._gains: list[Moments] = []
        self._sums = StudentisedSums(self._signs)
        self._scores = self._sums.extremes()
        self._paired: StudentisedExtremes | None = None
        if self._judge.baseline is not None:
            base = self._judge.baseline[np.newaxis]
            self._base_sums = signed_sums(self._signs, base)[0]
            self._paired = self._sums.extremes(self._base_sums)
        self._front = Front(self._judge, self._delta)
        self._n_models = 0

    # ---- what it is ------------------------------------------------------------------------

    @property
    def judged(self) -> Holdout | Losses:
        """What the pool was made on."""
        return self._judge.judged

    @property
    def n_samples(self) -> int:
        """Held-out rows, m."""
        return self._judge.n_samples

    @property
    def n_models(self) -> int:
        """Models in the pool, k."""
        return self._n_models

    @property
    def delta(self) -> float:
        """The probability that a statement fails."""
        return self._delta

    @property
    def n_vectors(self) -> int:
        """Sign vectors, l."""
        return self._signs.n_vectors

    @property
    def seed(self) -> int:
        """The seed of the signs, given or drawn."""
        return self._signs.seed

    @property
    def has_baseline(self) -> bool:
        """Whether the pool was made with a baseline."""
        return self._judge.baseline is not None

    @property
    def baseline_value(self) -> float | None:
        """The baseline's metric on the holdout; None without one."""
        if self._judge.baseline is None:
            return None
        mean = moments_of(self._judge.baseline[np.newaxis], self.n_samples).means[0]
        return float(self._judge.metric_of(mean))

    @property
    def names(self) -> Sequence[Any]:
        """Names of the models, in the order in which they were added; numbers by default."""
        return range(self._n_models) if self._names is None else self._names

    @property
    def guarantee(self) -> str:
        """What is guaranteed, when, and proved by what."""
        return GUARANTEE.format(certainty=certainty(self._delta))

    # ---- models ----------------------------------------------------------------------------

    @sealed
    def add(self, Y_pred: Any, names: Sequence[Any] | None = None, *, n_threads: int = 1) -> None:
        """Add models.

        Parameters
        ----------
        Y_pred : array_like, shape (k, n_samples) or (n_samples,), PackedLosses, path or Blocks
            Predictions, a row a model, as the metric takes them; losses where the pool was made on
            losses.  `PackedLosses` say which predictions are wrong.  A path names a file of such
            rows (.npy, .npz, .csv or .parquet), of numbers.  `pool.parts.Blocks` are any rows that
            can be read again.  Files, and arrays that are memory maps, are not
            copied: they must stay as they are while the pool is used.
        names : sequence of hashable, optional
            One a model, each used once in the pool.  By default its number, from 0.
        n_threads : int, default 1
            Threads at most, where there is work for them.

        Raises
        ------
        TypeError, ValueError
            Not such rows or names; nothing has changed.
        """
        n_threads = check_count(n_threads=n_threads)
        part = self._part_of(Y_pred)
        into = [each.copy() for each in (self._scores, self._paired) if each is not None]
        front, losses, gains, n_new = self._front.copy(), [], [], 0
        for rows in part:
            if len(rows) == 0:
                continue
            moments, gain = self._take_in(rows, into, n_threads)
            losses.append(moments)
            gains += [] if gain is None else [gain]
            front.add(rows, moments, self._n_models + n_new)
            n_new += len(rows)
        self._names = self._names_with(names, n_new)
        self._parts.append(part)
        self._losses += losses
        self._gains += gains
        self._scores, *paired = into
        self._paired = paired[0] if paired else None
        self._front = front
        self._n_models += n_new

    def _part_of(self, given: Any) -> Part:
        if isinstance(given, Blocks):
            return Part(self._judge, given, keep=False)
        if isinstance(given, (str, bytes, os.PathLike)):
            from radabound_fast.files.reading import open_losses

            return Part(self._judge, open_losses(given, n_samples=self.n_samples), keep=False)
        if isinstance(given, PackedLosses):
            if given.ndim == 1:
                given = PackedLosses(given.words[np.newaxis], given.n_samples)
            return Part(self._judge, [given], keep=not is_mapped(given.words))
        ndim = np.ndim(given) if isinstance(given, np.ndarray) else as_array(given, "Y_pred").ndim
        if ndim == 1:
            return Part(self._judge, [np.asarray(given)[np.newaxis]], keep=True)
        return Part(self._judge, [given], keep=not is_mapped(given))

    def _names_with(self, names: Sequence[Any] | None, n_new: int) -> list[Any] | None:
        if names is None and self._names is None:
            return None
        if isinstance(names, (str, bytes)):
            raise TypeError(f"names must be a sequence, one a model, got {names!r:.100}")
        new = list(range(self._n_models, self._n_models + n_new)) if names is None else list(names)
        for name in new:
            if not isinstance(name, Hashable):
                raise TypeError(f"names must be hashable, got {name!r:.100}")
        if len(new) != n_new:
            raise ValueError(f"names must be one a model, {n_new}, got {len(new)}")
        whole = [*self.names, *new]
        if len(set(whole)) < len(whole):
            seen: set[Any] = set()
            twice = next(name for name in whole if name in seen or seen.add(name))  # type: ignore[func-returns-value]
            raise ValueError(f"names must be different ones, got {twice!r:.100} twice")
        return whole

    def _take_in(
        self, rows: Array, into: list[StudentisedExtremes], n_threads: int
    ) -> tuple[Moments, Moments | None]:
        m = self.n_samples
        moments, gain = moments_of(rows, m), None
        ways = [(into[0], moments.means, moments.scales_of_enough(m))]
        if self._judge.baseline is not None:
            gain = moments_of_gains(rows, self._judge.baseline, m)
            # T is of the model's loss less the baseline's
            ways.append((into[1], -gain.means, gain.scales_of_enough(m)))
        self._sums.update(rows, ways, n_threads)
        return moments, gain

    def _blocks(self) -> Iterator[tuple[int, Array]]:
        """All rows again, each block with the number of its first."""
        first = 0
        for part in self._parts:
            for rows in part:
                yield first, rows
                first += len(rows)

    def _check_not_empty(self) -> None:
        if self._n_models == 0:
            raise ValueError("there is nothing to say: no model was added")

    # ---- what it states --------------------------------------------------------------------

    def intervals(self) -> PoolIntervals:
        """Return simultaneous intervals of all models.

        Limits are exact ones (Clopper and Pearson, or by betting where losses are real) at the
        bootstrap's level; for models with fewer than 40 errors or 40 right rows at Bonferroni's.

        Raises
        ------
        ValueError
            No model was added.
        """
        self._check_not_empty()
        moments, k = Moments.joined(self._losses), self._n_models
        enough = moments.enough(self.n_samples)
        n, delta = int(enough.sum()), self._delta * float(enough.mean())
        level = two_sided_level(self._scores, delta, n) if n else self._delta / k
        bonferroni = math.log(2.0 * k / self._delta)
        lows, highs = self._limits(moments, np.where(enough, -math.log(level / 2.0), bonferroni))
        proved = self._limits(moments, np.full(k, bonferroni))
        return PoolIntervals(
            names=self.names,
            values=np.asarray(self._judge.metric_of(moments.means)),
            lows=lows,
            highs=highs,
            bonferroni_lows=proved[0],
            bonferroni_highs=proved[1],
            by_bootstrap=enough,
            level=level,
            as_if=delta / level if n else float(k),
        )

    def _limits(self, moments: Moments, nats: Floats) -> tuple[Floats, Floats]:
        if (moments.plus >= 0).all():
            lows, highs = self._judge.limits_of_counts(moments.plus, nats)
        else:
            found = [
                self._judge.limits(rows, moments.of(part), nats[part])
                for part, rows in self._numbered_blocks()
            ]
            lows, highs = (np.concatenate(side) for side in zip(*found, strict=True))
        ends = self._judge.metric_of(lows), self._judge.metric_of(highs)
        return np.minimum(*ends), np.maximum(*ends)

    def _numbered_blocks(self) -> Iterator[tuple[slice, Array]]:
        return ((slice(first, first + len(rows)), rows) for first, rows in self._blocks())

    def better(self) -> BetterModels:
        """Return which models are better than the baseline, by a step-down, with limits of gains.

        A model is found better where the exact test of its gain (the sign test of the discordant
        rows; by betting where losses are real) is below the level; those found are taken out, the
        level is found anew for the others, and so on until none is found [1]_.

        Raises
        ------
        ValueError
            The pool has no baseline, or no model was added.

        References
        ----------
        .. [1] Romano, Wolf (2005). Stepwise multiple testing as formalized data snooping.
           Econometrica 73.
        """
        steps = self._step_down()
        self._read_again(steps)
        return self._better(steps)

    def _p_values_of_gains(self, gains: Moments) -> Floats:
        base, nats = self._judge.baseline, -math.log(self._delta)
        assert base is not None
        if (gains.plus >= 0).all():
            return self._judge.p_values(np.empty((0, 0), np.uint64), gains, base, nats)
        found = [
            self._judge.p_values(rows, gains.of(part), base, nats)
            for part, rows in self._numbered_blocks()
        ]
        return np.concatenate(found)

    def _step_down(self) -> StepDown:
        """The first step of `better`."""
        self._check_not_empty()
        if self._paired is None:
            raise ValueError("baseline must be given to the pool for better(), got none")
        gains = Moments.joined(self._gains)
        enough = gains.enough(self.n_samples)
        return StepDown(
            self._sums,
            self._sums.extremes(self._base_sums),
            gains,
            self._p_values_of_gains(gains),
            enough,
            delta=self._delta * float(enough.mean()),
            level=self._level_of_gains(enough),
        )

    def _level_of_gains(self, enough: Mask) -> float:
        n, delta = int(enough.sum()), self._delta * float(enough.mean())
        assert self._paired is not None
        return one_sided_level(-self._paired.lowest, delta, n) if n else self._delta / len(enough)

    def _better(self, steps: StepDown) -> BetterModels:
        """All steps, and limits of gains at the level of the first."""
        gains, p_values, enough, k = steps.gains, steps.p_values, steps.enough, self._n_models
        base, level = self._judge.baseline, self._level_of_gains(enough)
        assert base is not None
        is_better, few = steps.outcome(), ~enough
        is_better[few] = holm(p_values[few], self._delta * float(few.mean()))
        nats = np.where(enough, -math.log(level), math.log(k / self._delta))
        lows = np.full(k, np.nan)
        if (gains.plus >= 0).all():
            none = np.empty((int(is_better.sum()), 0), np.uint64)  # counts are all it takes
            lows[is_better] = self._judge.least_gains(
                none, gains.of(is_better), nats[is_better], base
            )
        else:
            for part, rows in self._numbered_blocks():
                found = part.start + np.flatnonzero(is_better[part])
                lows[found] = self._judge.least_gains(
                    rows[found - part.start], gains.of(found), nats[found], base
                )
        span = abs(self._judge.slope)
        return BetterModels(
            names=self.names,
            gains=span * gains.means,
            gain_lows=span * lows,
            is_better=is_better,
            bonferroni_is_better=holm(p_values, self._delta),
            level=level,
            as_if=self._delta * float(enough.mean()) / level if enough.any() else float(k),
        )

    def _read_again(self, *readers: StepDown | Comparisons) -> None:
        """All rows once more, for what needs them."""
        if any(reader.is_open for reader in readers):
            for first, rows in self._blocks():
                for reader in readers:
                    if reader.is_open:
                        reader.take(first, rows)

    def best_set(self) -> BestSet:
        """Return which models may be the best.

        A model is left out where the exact test says that the best one on the holdout is better
        than it, at a level that is the model's own: by the bootstrap of the largest studentised
        difference between it and any model, those left aside that are clearly worse than it [1]_.

        Raises
        ------
        ValueError
            No model was added.

        References
        ----------
        .. [1] Chernozhukov, Chetverikov, Kato (2019). Inference on causal and structural parameters
           using many moment inequalities. Review of Economic Studies 86.
        """
        comparisons = self._comparisons()
        self._read_again(comparisons)
        return self._best_set(comparisons)

    def _comparisons(self) -> Comparisons:
        self._check_not_empty()
        self._front.prune()
        return Comparisons(self._judge, self._signs, self._front, self._n_models, self._delta)

    def _best_set(self, comparisons: Comparisons) -> BestSet:
        may_be, proved = comparisons.outcome()
        return BestSet(
            names=self.names,
            may_be_best=may_be,
            bonferroni_may_be_best=proved,
            best=self._front.best,
            n_by_bonferroni=comparisons.n_by_bonferroni,
        )

    def better_and_best(self) -> tuple[BetterModels | None, BestSet]:
        """Return `better()`, or None without a baseline, and `best_set()`.

        Rows are read once for both.

        Raises
        ------
        ValueError
            No model was added.
        """
        comparisons = self._comparisons()
        if not self.has_baseline:
            self._read_again(comparisons)
            return None, self._best_set(comparisons)
        steps = self._step_down()
        self._read_again(steps, comparisons)
        return self._better(steps), self._best_set(comparisons)

    def report(self) -> PoolReport:
        """Return what all of it comes to: sentences, a table and a picture.

        Raises
        ------
        ValueError
            No model was added.
        """
        from radabound_fast.pool.report import PoolReport

        return PoolReport.of(self)

    def __repr__(self) -> str:
        return (
            f"ModelPool({self.judged!r}, {counted(self._n_models, 'model')}, delta={self._delta!r}"
            f"{', with a baseline' if self.has_baseline else ''})"
        )
