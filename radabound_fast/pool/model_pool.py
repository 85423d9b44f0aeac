"""ModelPool: many models, fixed beforehand, judged at once."""

from __future__ import annotations

import math
import os
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

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
from radabound_fast.bounds.bootstrap import vectors_needed
from radabound_fast.holdout import Holdout, Losses, as_judged
from radabound_fast.pool.best import Comparisons
from radabound_fast.pool.better import StepDown
from radabound_fast.pool.exact import holm
from radabound_fast.pool.front import Front
from radabound_fast.pool.intervals import Intervals
from radabound_fast.pool.judging import Judge
from radabound_fast.pool.parts import Blocks, File, Part, is_mapped
from radabound_fast.pool.results import BestSet, BetterModels, PoolIntervals
from radabound_fast.rows.moments import Moments, moments_of, moments_of_gains
from radabound_fast.rows.packing import as_array
from radabound_fast.rows.signs import SignMatrix
from radabound_fast.rows.studentised import StudentisedExtremes, StudentisedSums, signed_sums

if TYPE_CHECKING:
    from radabound_fast.pool.report import PoolReport

Array = NDArray[Any]
Floats = NDArray[np.float64]
_Reader = TypeVar("_Reader", Intervals, StepDown, Comparisons)

GUARANTEE = (
    "asymptotic, for models that were all fixed before any holdout score was seen, and all of them "
    "in the pool: with probability about {certainty}, as rows grow many, each of these statements "
    "holds by itself: every interval holds its model's value; every model that is found better is; "
    "every gain is above its limit; the best model is among those that may be it (multiplier "
    "bootstrap with Rademacher signs, Chernozhukov, Chetverikov and Kato 2013 and 2019, turned "
    "into a level for exact limits). The statements beside them, by Bonferroni and Holm, hold with "
    "probability at least {certainty} at any number of rows, which is proved. Both assume "
    "independent {units}."
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
        of losses (`metrics.MEANS`).  Rows may belong to groups (patient, video) if all groups have
        the same weight: then a group is a unit, and its mean loss is its loss.
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
    file or a memory map, which is read again once by `intervals`, `better`, `best_set` or `report`
    where they need it.  docs/explanation/theory.md, "Simultaneous statements about a pool of
    models".

    A copy (copy, pickle) is a pool of its own, with the same signs and files; a pickle holds the
    labels, and losses that lie in no file.  A pool that was given `pool.parts.Blocks` can be
    pickled if they can.

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
        self._signs = SignMatrix(self._judge.n_units, n_vectors, seed=seed)
        self._parts: list[Part] = []
        self._names: list[Any] | None = None
        self._losses: list[Moments] = []
        self._gains: list[Moments] = []
        self._p_values: list[Floats] = []
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
        return self._judge.n_rows

    @property
    def n_units(self) -> int:
        """Independent units: groups of held-out rows, or the rows themselves."""
        return self._judge.n_units

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
        mean = moments_of(self._judge.baseline[np.newaxis], self.n_units).means[0]
        return float(self._judge.metric_of(mean))

    @property
    def names(self) -> Sequence[Any]:
        """Names of the models, in the order in which they were added; numbers by default."""
        return range(self._n_models) if self._names is None else self._names

    @property
    def guarantee(self) -> str:
        """What is guaranteed, when, and proved by what."""
        grouped = self.n_units < self.n_samples
        units = "groups of held-out examples, of one population" if grouped else "held-out examples"
        return GUARANTEE.format(certainty=certainty(self._delta), units=units)

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
        front, base, m, n_new = self._front.copy(), self._judge.baseline, self.n_units, 0
        losses, gains, p_values = [], [], []
        for rows in part:
            if len(rows) == 0:
                continue
            moments = moments_of(rows, m)
            ways = [(into[0], moments.means, moments.scales_of_enough(m))]
            losses.append(moments)
            if base is not None:
                gain = moments_of_gains(rows, base, m)
                # T is of the model's loss less the baseline's
                ways.append((into[1], -gain.means, gain.scales_of_enough(m)))
                gains.append(gain)
                p_values.append(self._judge.p_values(rows, gain, base, -math.log(self._delta)))
            self._sums.update(rows, ways, n_threads)
            front.add(rows, moments, self._n_models + n_new)
            n_new += len(rows)
        self._names = self._names_with(names, n_new)
        self._parts.append(part)
        self._losses += losses
        self._gains += gains
        self._p_values += p_values
        self._scores, *paired = into
        self._paired = paired[0] if paired else None
        self._front = front
        self._n_models += n_new

    def _part_of(self, given: Any) -> Part:
        if isinstance(given, Blocks):
            return Part(self._judge, given, keep=False)
        if isinstance(given, (str, bytes, os.PathLike)):
            return Part(self._judge, File(given, self.n_samples), keep=False)
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
        return self._intervals(self._read_again(self._new_intervals()))

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
        self._check_not_empty()
        return self._better(self._read_again(self._new_steps()))

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
        self._check_not_empty()
        return self._best_set(self._read_again(self._new_comparisons()))

    def statements(self) -> tuple[PoolIntervals, BetterModels | None, BestSet]:
        """Return `intervals()`, `better()`, or None without a baseline, and `best_set()`.

        Rows are read once for all of them.

        Raises
        ------
        ValueError
            No model was added.
        """
        self._check_not_empty()
        intervals, comparisons = self._new_intervals(), self._new_comparisons()
        steps = self._new_steps() if self.has_baseline else None
        self._read_again(intervals, comparisons, *([] if steps is None else [steps]))
        better = None if steps is None else self._better(steps)
        return self._intervals(intervals), better, self._best_set(comparisons)

    def _check_not_empty(self) -> None:
        if self._n_models == 0:
            raise ValueError("there is nothing to say: no model was added")

    def _read_again(self, first: _Reader, *others: Intervals | StepDown | Comparisons) -> _Reader:
        """All rows once more, for what needs them; returns the first."""
        readers = [reader for reader in (first, *others) if reader.is_open]
        start = 0
        for part in self._parts if readers else ():
            for rows in part:
                for reader in readers:
                    if reader.is_open:
                        reader.take(start, rows)
                start += len(rows)
        return first

    def _new_intervals(self) -> Intervals:
        return Intervals(self._judge, self._scores, Moments.joined(self._losses), self._delta)

    def _intervals(self, intervals: Intervals) -> PoolIntervals:
        (lows, highs), proved = intervals.outcome()
        means = np.concatenate([moments.means for moments in self._losses])
        return PoolIntervals(
            names=self.names,
            values=np.asarray(self._judge.metric_of(means)),
            lows=lows,
            highs=highs,
            bonferroni_lows=proved[0],
            bonferroni_highs=proved[1],
            by_bootstrap=intervals.enough,
            level=intervals.level,
            as_if=intervals.as_if,
        )

    def _new_steps(self) -> StepDown:
        if self._paired is None:
            raise ValueError("baseline must be given to the pool for better(), got none")
        return StepDown(
            self._judge,
            self._sums,
            self._paired,
            self._sums.extremes(self._base_sums),
            Moments.joined(self._gains),
            np.concatenate(self._p_values),
            self._delta,
        )

    def _better(self, steps: StepDown) -> BetterModels:
        is_better, lows = steps.outcome()
        span = abs(self._judge.slope)
        return BetterModels(
            names=self.names,
            gains=span * steps.gains.means,
            gain_lows=span * lows,
            is_better=is_better,
            bonferroni_is_better=holm(steps.p_values, self._delta),
            level=steps.level,
            as_if=steps.as_if,
        )

    def _new_comparisons(self) -> Comparisons:
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

    def report(self) -> PoolReport:
        """Return what all of it comes to: sentences, a table and a picture.

        Raises
        ------
        ValueError
            No model was added.
        """
        from radabound_fast.pool.report import PoolReport

        return PoolReport.of(self)

    def __getstate__(self) -> dict[str, Any]:
        lists = {name: list(part) for name, part in vars(self).items() if type(part) is list}
        signs = {"_signs": (self.n_units, self.n_vectors), "_seed": self.seed, "_sums": None}
        return vars(self) | lists | {"_front": self._front.copy()} | signs

    def __setstate__(self, state: dict[str, Any]) -> None:
        signs = SignMatrix(*state.pop("_signs"), seed=state.pop("_seed"))
        vars(self).update(state, _signs=signs, _sums=StudentisedSums(signs))

    def __repr__(self) -> str:
        return (
            f"ModelPool({self.judged!r}, {counted(self._n_models, 'model')}, delta={self._delta!r}"
            f"{', with a baseline' if self.has_baseline else ''})"
        )
