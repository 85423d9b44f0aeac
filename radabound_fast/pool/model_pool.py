"""ModelPool: many models, fixed beforehand, judged at once."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from radabound_fast._checks import certainty, check_count, check_delta, check_n_vectors, counted
from radabound_fast._kernels.rows import PackedLosses
from radabound_fast._kernels.support import sealed
from radabound_fast._ownership import SetOnce
from radabound_fast.bounds.bootstrap import vectors_needed
from radabound_fast.holdout import as_judged
from radabound_fast.pool.best import Comparisons, Front
from radabound_fast.pool.judging import Judge, Part, is_mapped
from radabound_fast.pool.limits import Intervals, StepDown
from radabound_fast.rows.moments import Moments, moments_of, moments_of_gains
from radabound_fast.rows.packing import as_array
from radabound_fast.rows.signs import SignMatrix
from radabound_fast.rows.studentised import StudentisedSums, signed_sums

if TYPE_CHECKING:
    from radabound_fast.pool.report import PoolReport
    from radabound_fast.pool.results import BestSet, BetterModels, PoolIntervals

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


class ModelPool(SetOnce):
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

    Attributes
    ----------
    judged : Holdout or Losses
    n_samples, n_units : int
        m held-out rows, and how many of them, or of groups of them, are independent.
    n_models : int
        Models in the pool, k.
    delta, n_vectors, seed
        As passed; `seed` may have been drawn.

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
    labels, and losses that lie in no file.

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

    _set_once = frozenset({"judged", "n_samples", "n_units", "delta", "n_vectors", "seed"})

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
        self.delta, self.n_vectors = check_delta(delta), check_n_vectors(n_vectors)
        least = vectors_needed(self.delta)
        if self.n_vectors < least:
            raise ValueError(
                f"n_vectors must be at least {least} with delta = {self.delta:g}, got "
                f"{self.n_vectors}"
            )
        self.judged = as_judged(judged)
        self._judge = Judge(self.judged, baseline)
        self.n_samples, self.n_units, self.n_models = self._judge.n_rows, self._judge.n_units, 0
        self._signs = SignMatrix(self.n_units, self.n_vectors, seed=seed)
        self.seed = self._signs.seed
        self._parts: list[Iterable[NDArray[Any]]] = []  # rows of losses, in memory or read again
        self._names: list[Any] | None = None
        self._losses: list[Moments] = []
        self._gains: list[Moments] = []
        self._p_values: list[NDArray[np.float64]] = []
        self._sums = StudentisedSums(self._signs)
        self._extremes = [self._sums.extremes()]  # of losses, and beside the baseline
        if self._judge.baseline is not None:
            self._base_sums = signed_sums(self._signs, self._judge.baseline[np.newaxis])[0]
            self._extremes.append(self._sums.extremes(self._base_sums))
        self._front = Front(self._judge, self.delta)

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
        return range(self.n_models) if self._names is None else self._names

    @property
    def guarantee(self) -> str:
        """What is guaranteed, when, and proved by what."""
        grouped = self.n_units < self.n_samples
        units = "groups of held-out examples, of one population" if grouped else "held-out examples"
        return GUARANTEE.format(certainty=certainty(self.delta), units=units)

    @sealed
    def add(self, Y_pred: Any, names: Sequence[Any] | None = None, *, n_threads: int = 1) -> None:
        """Add models.

        Parameters
        ----------
        Y_pred : array_like, shape (k, n_samples) or (n_samples,), PackedLosses, path or callable
            Predictions, a row a model, as the metric takes them; losses where the pool was made on
            losses.  `PackedLosses` say which predictions are wrong.  A path names a file of such
            rows (.npy, .npz, .csv or .parquet), of numbers.  A callable returns blocks of rows, the
            same ones each time.  Files, and arrays that are memory maps, are not copied: they must
            stay as they are while the pool is used.
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
        part, extremes = self._part_of(Y_pred), [each.copy() for each in self._extremes]
        front, base, m, n_models = self._front.copy(), self._judge.baseline, self.n_units, 0
        losses, gains, p_values = [], [], []
        for rows in part:
            if len(rows) == 0:
                continue
            loss = moments_of(rows, m)
            losses.append(loss)
            ways = [(extremes[0], loss.means, loss.scales_of_enough(m))]
            if base is not None:
                gain = moments_of_gains(rows, base, m)
                gains.append(gain)
                # T is of the model's loss less the baseline's
                ways.append((extremes[1], -gain.means, gain.scales_of_enough(m)))
                p_values.append(self._judge.p_values(rows, gain, base, -math.log(self.delta)))
            self._sums.update(rows, ways, n_threads)
            front.add(rows, loss, self.n_models + n_models)
            n_models += len(rows)
        self._names = self._names_with(names, n_models)
        self._parts.append(part)
        self._losses += losses
        self._gains += gains
        self._p_values += p_values
        self._extremes, self._front = extremes, front
        self.n_models += n_models

    def _part_of(self, Y_pred: Any) -> Iterable[NDArray[Any]]:
        """Rows of losses: in memory, but for those that can be read again."""
        if isinstance(Y_pred, (str, bytes, os.PathLike)):
            from radabound_fast.files.reading import open_losses

            return Part(self._judge, partial(open_losses, Y_pred, n_samples=self.n_samples))
        if callable(Y_pred):
            return Part(self._judge, Y_pred)
        is_packed = isinstance(Y_pred, PackedLosses)
        array = Y_pred.words if is_packed else Y_pred
        ndim = array.ndim if isinstance(array, np.ndarray) else as_array(array, "Y_pred").ndim
        if ndim == 1:
            row = np.asarray(array)[np.newaxis]
            Y_pred = PackedLosses(row, Y_pred.n_samples) if is_packed else row
        part = Part(self._judge, partial(iter, [Y_pred]))
        return part if is_mapped(array) else list(part)

    def _names_with(self, names: Sequence[Any] | None, n_new: int) -> list[Any] | None:
        if names is None and self._names is None:
            return None
        if isinstance(names, (str, bytes)):
            raise TypeError(f"names must be a sequence, one a model, got {names!r:.100}")
        new = list(range(self.n_models, self.n_models + n_new)) if names is None else list(names)
        for name in new:
            if not isinstance(name, Hashable):
                raise TypeError(f"names must be hashable, got {name!r:.100}")
        if len(new) != n_new:
            raise ValueError(f"names must be one a model, {n_new}, got {len(new)}")
        whole, seen = [*self.names, *new], set()
        for name in whole:
            if name in seen:
                raise ValueError(f"names must be different ones, got {name!r:.100} twice")
            seen.add(name)
        return whole

    def intervals(self) -> PoolIntervals:
        """Return simultaneous intervals of all models; ValueError without any.

        Limits are exact ones (Clopper and Pearson, or by betting where losses are real) at the
        bootstrap's level; for models with fewer than 40 errors or 40 right rows at Bonferroni's.
        """
        result: PoolIntervals = self._results(self._intervals)[0]
        return result

    def better(self) -> BetterModels:
        """Return which models are better than the baseline, by a step-down, with limits of gains.

        A model is found better where the exact test of its gain (the sign test of the discordant
        rows; by betting where losses are real) is below the level; those found are taken out, the
        level is found anew for the others, and so on until none is found [1]_.  ValueError without
        a baseline, or without models.

        References
        ----------
        .. [1] Romano, Wolf (2005). Stepwise multiple testing as formalized data snooping.
           Econometrica 73.
        """
        result: BetterModels = self._results(self._steps)[0]
        return result

    def best_set(self) -> BestSet:
        """Return which models may be the best; ValueError without any.

        A model is left out where the exact test says that the best one on the holdout is better
        than it, at a level that is the model's own: by the bootstrap of the largest studentised
        difference between it and any model, those left aside that are clearly worse than it [1]_.

        References
        ----------
        .. [1] Chernozhukov, Chetverikov, Kato (2019). Inference on causal and structural parameters
           using many moment inequalities. Review of Economic Studies 86.
        """
        result: BestSet = self._results(self._comparisons)[0]
        return result

    def _results(self, *steps: Callable[[], Intervals | StepDown | Comparisons]) -> list[Any]:
        """What each step states, after all rows once more where it needs them."""
        if self.n_models == 0:
            raise ValueError("there is nothing to say: no model was added")
        every, first = [step() for step in steps], 0
        needs_rows = any(step.is_open for step in every)
        for part in self._parts if needs_rows else ():
            for rows in part:
                for step in every:
                    if step.is_open:
                        step.take(first, rows)
                first += len(rows)
        if needs_rows and first != self.n_models:
            raise ValueError(
                f"Y_pred must have the same rows each time it is read, {self.n_models:,} in all, "
                f"got {first:,}"
            )
        return [step.result(self.names) for step in every]

    def _intervals(self) -> Intervals:
        return Intervals(self._judge, self._extremes[0], Moments.joined(self._losses), self.delta)

    def _steps(self) -> StepDown:
        if self._judge.baseline is None:
            raise ValueError("baseline must be given to the pool for better(), got none")
        beside = self._extremes[1], self._sums.extremes(self._base_sums)
        gains, p_values = Moments.joined(self._gains), np.concatenate(self._p_values)
        return StepDown(self._judge, self._sums, *beside, gains, p_values, self.delta)

    def _comparisons(self) -> Comparisons:
        self._front.prune()
        return Comparisons(self._judge, self._signs, self._front, self.n_models, self.delta)

    def report(self) -> PoolReport:
        """Return what all of it comes to: sentences, a table, a picture; ValueError without any."""
        from radabound_fast.pool.report import PoolReport

        steps = [] if self._judge.baseline is None else [self._steps]
        intervals, best_set, *better = self._results(self._intervals, self._comparisons, *steps)
        names = ("n_samples", "n_units", "n_models", "delta", "guarantee")
        return PoolReport(
            metric=self.judged.metric,
            greater_is_better=self.judged.greater_is_better,
            intervals=intervals,
            best_set=best_set,
            better=better[0] if better else None,
            baseline=self.baseline_value,
            **{name: getattr(self, name) for name in names},
        )

    def __getstate__(self) -> dict[str, Any]:
        lists = {name: list(part) for name, part in vars(self).items() if type(part) is list}
        return vars(self) | lists | {"_front": self._front.copy(), "_signs": None, "_sums": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        signs = SignMatrix(state["n_units"], state["n_vectors"], seed=state["seed"])
        vars(self).update(state, _signs=signs, _sums=StudentisedSums(signs))

    def __repr__(self) -> str:
        return (
            f"ModelPool({self.judged!r}, {counted(self.n_models, 'model')}, delta={self.delta!r}"
            f"{', with a baseline' if self._judge.baseline is not None else ''})"
        )
