"""What a pool states: intervals, models better than a baseline, and models that may be best."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from radabound_fast._extras import needs

if TYPE_CHECKING:
    from pandas import DataFrame

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


def frame_of(names: Sequence[Any], columns: dict[str, Any]) -> DataFrame:
    with needs("pandas"):
        import pandas as pd
    return pd.DataFrame(columns, index=pd.Index(names, name="model"))


@dataclass(frozen=True, eq=False, repr=False)
class _Columns:
    """Results with a row for each model, in the order in which the models were added."""

    names: Sequence[Any]
    of_columns: ClassVar[dict[str, str]]  # the attribute of each column

    def __len__(self) -> int:
        return len(self.names)

    def columns(self) -> dict[str, Any]:
        """Return the columns by name, arrays of length k."""
        return {name: getattr(self, attribute) for name, attribute in self.of_columns.items()}

    def to_frame(self) -> DataFrame:
        """Return a row for each model by name, a DataFrame; needs the extra ``pandas``."""
        return frame_of(self.names, self.columns())

    def _names_where(self, chosen: Mask) -> list[Any]:
        return [self.names[place] for place in np.flatnonzero(chosen).tolist()]


@dataclass(frozen=True, eq=False, repr=False)
class PoolIntervals(_Columns):
    """Intervals for all models of a pool at once.

    Attributes
    ----------
    names : sequence of length k
    values : ndarray of float64, shape (k,)
        The metric on the holdout.
    lows, highs : ndarray of float64, shape (k,)
        With probability about ``1 - delta`` every model's metric in the population lies between
        them.  Asymptotic.
    bonferroni_lows, bonferroni_highs : ndarray of float64, shape (k,)
        The same with probability at least ``1 - delta``, proved at any number of rows.
    by_bootstrap : ndarray of bool, shape (k,)
        Whether `lows` and `highs` are at the bootstrap's level, and not at Bonferroni's: the model
        has 40 errors and 40 right rows or more.
    level, as_if : float
        The error of one model's interval at the bootstrap's level, both sides together; as many
        independent models would have it by Bonferroni.
    """

    values: Floats
    lows: Floats
    highs: Floats
    bonferroni_lows: Floats
    bonferroni_highs: Floats
    by_bootstrap: Mask
    level: float
    as_if: float

    of_columns: ClassVar[dict[str, str]] = {
        "value": "values",
        "low": "lows",
        "high": "highs",
        "bonferroni_low": "bonferroni_lows",
        "bonferroni_high": "bonferroni_highs",
    }

    def __repr__(self) -> str:
        return f"PoolIntervals({len(self)} models, as if {self.as_if:.4g} independent ones)"


@dataclass(frozen=True, eq=False, repr=False)
class BetterModels(_Columns):
    """The models of a pool that are better than its baseline.

    Attributes
    ----------
    names : sequence of length k
    gains : ndarray of float64, shape (k,)
        How much less each loses than the baseline on the holdout.
    gain_lows : ndarray of float64, shape (k,)
        With probability about ``1 - delta`` every model's gain in the population is at least so
        large.  nan where the model is not found better.
    is_better : ndarray of bool, shape (k,)
        With probability about ``1 - delta`` all models that are True here are better than the
        baseline in the population.  A statement of its own: `gain_lows` is a second one.
    bonferroni_is_better : ndarray of bool, shape (k,)
        The same with probability at least ``1 - delta``, proved at any number of rows (Holm).
    level, as_if : float
        The error of one model's lower limit; as many independent models would have it by
        Bonferroni.
    """

    gains: Floats
    gain_lows: Floats
    is_better: Mask
    bonferroni_is_better: Mask
    level: float
    as_if: float

    of_columns: ClassVar[dict[str, str]] = {
        "gain": "gains",
        "gain_low": "gain_lows",
        "better": "is_better",
        "bonferroni_better": "bonferroni_is_better",
    }

    @property
    def better_names(self) -> list[Any]:
        """Names of the models that are better than the baseline."""
        return self._names_where(self.is_better)

    def __repr__(self) -> str:
        return f"BetterModels({int(self.is_better.sum())} of {len(self)} models)"


@dataclass(frozen=True, eq=False, repr=False)
class BestSet(_Columns):
    """The models of a pool that may be its best.

    Attributes
    ----------
    names : sequence of length k
    may_be_best : ndarray of bool, shape (k,)
        With probability about ``1 - delta`` the model that is best in the population is True here.
        Of several that are equally good each one is, with that probability.
    bonferroni_may_be_best : ndarray of bool, shape (k,)
        The same with probability at least ``1 - delta``, proved at any number of rows.
    best : int
        The place of the model that is best on the holdout.
    n_by_bonferroni : int
        How many models were judged at Bonferroni's level although the bootstrap's might have left
        them out: pairs of models were too many to try.
    """

    may_be_best: Mask
    bonferroni_may_be_best: Mask
    best: int
    n_by_bonferroni: int

    of_columns: ClassVar[dict[str, str]] = {
        "may_be_best": "may_be_best",
        "bonferroni_may_be_best": "bonferroni_may_be_best",
    }

    @property
    def best_names(self) -> list[Any]:
        """Names of the models that may be the best."""
        return self._names_where(self.may_be_best)

    def __repr__(self) -> str:
        return f"BestSet({int(self.may_be_best.sum())} of {len(self)} models)"
