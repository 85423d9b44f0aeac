"""Which models of a pool are better than its baseline, by a step-down."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from radabound_fast.bounds.bootstrap import one_sided_level
from radabound_fast.rows.moments import Moments
from radabound_fast.rows.studentised import StudentisedExtremes, StudentisedSums

Array = NDArray[Any]
Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


class StepDown:
    """The step-down among the models that the bootstrap speaks for.

    Those that no step can find go by once; of the others the rows stay at hand.

    Parameters
    ----------
    sums : StudentisedSums
    none_yet : StudentisedExtremes
        Extremes of no rows, beside the baseline.
    gains : Moments
        Of the models' gains.
    p_values : ndarray of float64, shape (k,)
        Of the exact tests.
    enough : ndarray of bool, shape (k,)
        The models that the bootstrap speaks for.
    delta, level : float
        Their part of the error, and the level of the first step.

    Attributes
    ----------
    gains, p_values, enough
        As given.
    found : ndarray of bool, shape (k,)
        The models that the first step finds.
    """

    def __init__(
        self,
        sums: StudentisedSums,
        none_yet: StudentisedExtremes,
        gains: Moments,
        p_values: Floats,
        enough: Mask,
        *,
        delta: float,
        level: float,
    ) -> None:
        self._sums, self.gains, self.p_values, self.enough = sums, gains, p_values, enough
        self._delta, self._rest = delta, none_yet
        self._at_hand: list[tuple[NDArray[np.int64], Array]] = []
        self.found = enough & (p_values <= level)

    @property
    def is_open(self) -> bool:
        """Whether rows are needed: the first step has found models, and may not have found all."""
        return bool(self.found.any())

    def take(self, first: int, rows: Array) -> None:
        """Take in rows of the pool, numbered from `first` on."""
        numbers = np.arange(first, first + len(rows))
        left = self.enough[numbers] & ~self.found[numbers]
        may_be = left & (self.p_values[numbers] <= self._delta)
        never = left & ~may_be
        self._widen(self._rest, numbers[never], rows[never])
        if may_be.any():
            self._at_hand.append((numbers[may_be], rows[may_be]))

    def outcome(self) -> Mask:
        """Which models are found by all steps; call it last."""
        found = self.found.copy()
        while self.is_open and (left := self.enough & ~found).any():
            extremes = self._rest.copy()
            for numbers, rows in self._at_hand:
                self._widen(extremes, numbers[left[numbers]], rows[left[numbers]])
            level = one_sided_level(-extremes.lowest, self._delta, int(left.sum()))
            new = left & (self.p_values <= level)
            if not new.any():
                break
            found |= new
        return found

    def _widen(
        self, extremes: StudentisedExtremes, numbers: NDArray[np.int64], rows: Array
    ) -> None:
        # T is of the model's loss less the baseline's
        gains = self.gains.of(numbers)
        self._sums.update(rows, [(extremes, -gains.means, gains.scales)])
