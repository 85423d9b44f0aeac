"""How much of a number leaves a guard, where that is a choice."""

from __future__ import annotations

import math
from dataclasses import dataclass

from radabound_fast._checks import check_positive


@dataclass(frozen=True)
class Rounded:
    """Releases a number rounded to the nearest multiple of a step.

    Parameters
    ----------
    step : float
        Distance of the values that may be released, in units of the number, fixed beforehand.

    Raises
    ------
    TypeError, ValueError
        The step is not a positive number.
    """

    step: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "step", check_positive(step=self.step))

    def n_values(self, least: float, most: float) -> int:
        """Return how many different values may be released of numbers in [least, most]."""
        return math.floor(most / self.step + 0.5) - math.floor(least / self.step + 0.5) + 1

    def of(self, value: float) -> float:
        """Return the multiple of the step that is released for a value."""
        return math.floor(value / self.step + 0.5) * self.step
