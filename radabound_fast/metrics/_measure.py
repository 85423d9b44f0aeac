"""What may leave a holdout: which metric, how many labels, and what is stored made a value of."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from radabound_fast._kernels.rows import UNIT_SHIFT
from radabound_fast.bounds import (
    binomial_interval,
    cross_validation_interval,
    kl_interval,
    paired_interval,
    weighted_cross_validation_interval,
)
from radabound_fast.rows.rounded import Rounded

from ._classes import Array, Limits, around
from ._table import METRICS, Metric
from ._values import counts_of, read_counts, read_values

Floats = NDArray[np.float64]

INDEPENDENT = "independent held-out examples"
OF_FOLDS = "Result 27: capital that is bet on the rows of one fold"
OF_WEIGHTED_FOLDS = "Result 27 (a): Hoeffding's bound for one fold"


def as_floats(values: Any) -> Any:
    """A float for a number, an ndarray of float64 for an array."""
    return np.asarray(values, np.float64) if np.ndim(values) else float(values)


def in_range(values: Any, least: float, most: float, lows: Any, highs: Any) -> Limits:
    """Limits in [least, most], around the values, from those of the shares of that range."""
    span = most - least
    return around(values, least + span * lows, least + span * highs)


@dataclass(frozen=True)
class MeanLoss:
    """What is measured unless a `Holdout` has another metric: sums of losses are stored."""

    n_samples: int
    n_folds: int | None = None  # of a cross-validation, whose out-of-fold losses these are

    name: ClassVar[str] = "mean loss"
    n_stored: ClassVar[int] = 2  # the sum in units of 2**-shift, and shift
    stores: ClassVar[str] = "sums"
    greater_is_better: ClassVar[bool] = False
    ends: ClassVar[tuple[float, float]] = (0.0, 1.0)
    is_paired: ClassVar[bool] = False
    is_weighted: ClassVar[bool] = False
    rounded: ClassVar[None] = None
    assumed: ClassVar[str] = INDEPENDENT
    where: ClassVar[str] = "in the population"

    @property
    def in_words(self) -> tuple[str, str]:
        exact = "exact binomial limits for losses declared 0 or 1 and the Chernoff bound for others"
        return self.name, exact if self.n_folds is None else OF_FOLDS

    def values(self, stored: NDArray[Any]) -> Floats:
        return np.asarray(stored[:, 0] / np.left_shift(self.n_samples, stored[:, 1]))

    def intervals(self, stored: NDArray[Any], nats: Any) -> tuple[Floats, Floats]:
        """Limits of the truths, given sums of losses and the nats that are paid for each."""
        lows, highs = np.empty(len(stored)), np.empty(len(stored))
        for shift in (0, UNIT_SHIFT):
            rows = stored[:, 1] == shift
            if rows.any():
                lows[rows], highs[rows] = self.interval(stored[rows, 0], shift, nats[rows])
        return lows, highs

    def interval(self, totals: Any, shift: int, nats: Any) -> tuple[Any, Any]:
        if self.n_folds is not None:
            means = totals / (self.n_samples << shift)
            return cross_validation_interval(means, self.n_samples, self.n_folds, nats)
        if shift == 0:
            return binomial_interval(totals, self.n_samples, nats)
        return kl_interval(totals / (self.n_samples << shift), self.n_samples, nats)

    def interval_of_value(self, value: Any, nats: Any) -> Limits:
        """Limits of the truth, given the mean loss, or one a nats."""
        values = read_values(value, 0.0, 1.0)
        if self.n_folds is not None:
            return cross_validation_interval(as_floats(values), self.n_samples, self.n_folds, nats)
        counts, is_count = counts_of(np.atleast_1d(values), self.n_samples)
        if np.ndim(values) == 0:
            if is_count[0]:
                return binomial_interval(int(counts[0]), self.n_samples, nats)
            return kl_interval(float(values), self.n_samples, nats)
        lows, highs = kl_interval(as_floats(values), self.n_samples, nats)
        lows[is_count], highs[is_count] = binomial_interval(
            counts[is_count], self.n_samples, nats[is_count]
        )
        return lows, highs

    def interval_of_count(self, count: Any, nats: Any) -> Limits:
        """Limits of the truth, given how many of the losses are 1, or one number a nats."""
        return self.interval(read_counts(count, self.n_samples), 0, nats)

    def baseline_value(self, stored: NDArray[Any]) -> None:
        """None: there is no baseline."""

    def describe(self) -> None:
        return None


class Measure(NamedTuple):
    """A metric, and what its values and intervals need to know of a holdout."""

    name: str  # of a row of `METRICS`
    sizes: tuple[int, ...]  # labels of each class that the metric tells apart; (m,): none
    least: float  # of a loss of one row, where the metric is a mean of losses; else of the metric
    most: float
    # as the holdout was made with, JSON values, and pos_label as a place among the classes
    options: tuple[tuple[str, Any], ...] = ()
    # how often the baseline errs, if errors are counted, and a keyed fingerprint of it
    baseline: tuple[int, int] | None = None
    weighting: int | None = None  # a keyed fingerprint of the rows' weights and groups
    n_folds: int | None = None  # of the cross-validation that the predictions come from
    rounded: Rounded | None = None  # the grid on which values leave

    @property
    def row(self) -> Metric:
        return METRICS[self.name]

    @property
    def stores(self) -> str:
        """What is stored of a query: see `Metric`."""
        return self.row.stores if self.weighting is None and self.rounded is None else "limits"

    @property
    def greater_is_better(self) -> bool:
        return self.row.greater_is_better

    @property
    def n_stored(self) -> int:
        """How many numbers are stored of a query."""
        if self.stores == "limits":
            return 6 if self.is_paired else 3
        return len(self.sizes) + self.is_paired

    @property
    def is_paired(self) -> bool:
        return self.baseline is not None

    @property
    def is_weighted(self) -> bool:
        """Whether rows have weights or groups."""
        return self.weighting is not None

    @property
    def ends(self) -> tuple[float, float]:
        """The least and the largest value of the metric."""
        return self.row.signed(self.least, self.most)

    @property
    def in_words(self) -> tuple[str, str]:
        """What is measured, and by which limits, as `guarantee` says it."""
        row, weighted = self.row, "weighted " if self.is_weighted else ""
        condition = f" given {row.conditional_on}" if row.conditional_on else ""
        if self.n_folds is not None:
            limits = OF_WEIGHTED_FOLDS if weighted or row.n_effective else OF_FOLDS
        elif weighted:
            return f"weighted {self.name}", "the limits of Result 23: Chernoff"
        else:
            limits = f"the limits of {row.theorem}"
        return f"{weighted}{self.name}", limits + condition

    @property
    def where(self) -> str:
        """Where the value is that the limits are limits of."""
        over = self.row.over
        if self.is_weighted:
            over = "given the weights and the groups' sizes"
        return f"in the population ({over})" if over else "in the population"

    @property
    def assumed(self) -> str:
        """What is assumed of the rows, as `guarantee` says it."""
        if not self.is_weighted:
            return INDEPENDENT
        where = "" if self.n_folds is None else ", each in one fold"
        return (
            f"{INDEPENDENT}, or groups of them where groups are given{where}, and weights that "
            f"were fixed before any holdout score was seen (where they depend on the rows, as "
            f"importance weights do, E[w loss]/E[w] is another number, and is not covered)"
        )

    def value(self, summary: Array) -> Array:
        """The metric, given what its value rests on."""
        values = self.row.value(self.sizes, summary)
        return -values if self.row.is_negative else values

    def values(self, stored: Array) -> Array:
        """The metric, given rows of what is stored."""
        return stored[:, 0] if self.stores == "limits" else self.value(stored)

    def baseline_value(self, stored: Array) -> float | None:
        """The metric of the baseline, given rows of what is stored."""
        if self.baseline is None:
            return None
        if self.stores == "limits":
            value, gain = float(stored[0, 0]), float(stored[0, 3])
            value += -gain if self.greater_is_better else gain
            return value if self.rounded is None else float(self.rounded.of(value))
        return float(self.value(np.array([[self.baseline[0], 0]]))[0])

    def intervals(self, stored: Array, nats: Any) -> Limits:
        """Limits of the population's metric, given rows of what is stored."""
        if self.stores == "limits":
            return stored[:, 1], stored[:, 2]
        return self.limits(stored, nats)

    def limits(self, summary: Array, nats: Any) -> Limits:
        """Limits of the population's metric, given what its value rests on."""
        row, least, most = self.row, self.least, self.most
        if self.n_folds is not None:
            return self.fold_limits(self.value(summary), nats)
        if row.stores == "errors" or not row.is_mean:
            return row.interval(self.sizes, summary, nats)
        shares = np.clip((summary - least) / (most - least), 0.0, 1.0)
        limits = row.interval(self.sizes, shares, nats)
        return row.signed(*in_range(row.value(self.sizes, summary), least, most, *limits))

    def interval_of_value(self, value: Any, nats: Any) -> Limits:
        """Limits of the population's metric, given its value on the rows, or one a nats."""
        values = read_values(value, *self.ends)
        if self.rounded is not None:
            return self._limits_of_rounded(as_floats(values), nats)
        if self.n_folds is not None and not self.is_weighted:
            return self.fold_limits(as_floats(values), nats)
        n_rows = self._n_counted
        counts, is_count = counts_of(np.atleast_1d(values), n_rows)
        if not is_count.all():
            raise ValueError(
                f"value must be a number of rows over {n_rows}, within its printed digits, got "
                f"{np.atleast_1d(values)[~is_count][0]!s}"
            )
        return self.interval_of_count(counts if np.ndim(values) else int(counts[0]), nats)

    def interval_of_count(self, count: Any, nats: Any) -> Limits:
        """Limits of the population's metric, given the count that it is the share of."""
        n_rows = self._n_counted
        counts = read_counts(count, n_rows)
        if self.rounded is not None:
            return self._limits_of_rounded(counts / n_rows, nats)
        if self.n_folds is not None:
            return self.fold_limits(counts / n_rows, nats)
        return binomial_interval(counts, n_rows, nats)

    @property
    def _n_counted(self) -> int:
        """Rows of which the metric is a share."""
        if self.row.column is None:
            raise ValueError(
                f"metric must be a share of rows that the labels fix (error, accuracy, recall, "
                f"specificity), got {self.name!r}, whose interval takes more than its value"
            )
        if self.is_weighted:
            raise ValueError(
                "sample_weight and groups must be left out where an interval is asked for by its "
                "value: it takes more"
            )
        return self.sizes[self.row.column]

    def fold_limits(self, values: Any, nats: Any, n_weighted: float | None = None) -> Limits:
        """Limits of the metric of fold models, given that of a cross-validation.

        `n_weighted`: how many rows those that have weights are worth.
        """
        assert self.n_folds is not None
        row, (least, most) = self.row, self.ends
        shares = np.clip((values - least) / (most - least), 0.0, 1.0)
        if n_weighted is None and row.n_effective is not None:
            n_weighted = row.n_effective(self.sizes)
        if n_weighted is None:
            n_rows = self.sizes[row.column or 0]
            limits = cross_validation_interval(shares, n_rows, self.n_folds, nats)
        else:
            limits = weighted_cross_validation_interval(shares, n_weighted, self.n_folds, nats)
        return in_range(values, least, most, *limits)

    def gains(self, stored: Array) -> Floats:
        """How much less than the baseline each model loses."""
        if self.stores == "limits":
            return stored[:, 3]
        plus, minus = self._disagreements(stored)
        return np.asarray((plus - minus) / self.sizes[0])

    def gain_intervals(self, stored: Array, nats: Any) -> tuple[Floats, Floats]:
        """Limits of the true gains."""
        if self.stores == "limits":
            return stored[:, 4], stored[:, 5]
        plus, minus = self._disagreements(stored)
        return paired_interval(plus, minus, self.sizes[0], nats)

    def _disagreements(self, stored: Array) -> tuple[Array, Array]:
        """Rows where only the baseline errs, and where only the model does."""
        if self.baseline is None:
            raise ValueError("there is no baseline")
        return self.baseline[0] - stored[:, -1], stored[:, 0] - stored[:, -1]

    def released(self, stored: Array, nats: Array) -> Array:
        """What leaves of what was counted: that, or values and limits on the grid."""
        if self.rounded is None:
            return stored
        exact, grid, (least, most) = self._replace(rounded=None), self.rounded, self.ends
        values = exact.values(stored)
        cells = grid.cell(values)
        if len(values) == 1 and self.row.column is not None:
            # one after the other, most are of few cells and prices
            limits = _hull_of_one(exact, *map(float, (*cells[0], *cells[1], nats[0])))
        else:
            limits = exact.hull(*cells, nats)
        if limits is None:
            lows, highs = exact.intervals(stored, nats)
            limits = grid.below(lows), grid.above(highs)
        values = grid.of(values)
        columns: Array = np.clip(np.stack([values, *limits], axis=1), least, most)
        if self.baseline is None:
            return columns
        # the gain follows from the value, so that both tell no more than one
        gains = grid.of(values - grid.of(exact.baseline_value(stored)))
        gains = gains if self.greater_is_better else -gains
        lows, highs = exact.gain_intervals(stored, nats)
        lows, highs = np.minimum(grid.below(lows), gains), np.maximum(grid.above(highs), gains)
        return np.column_stack([columns, gains, lows, highs])

    def _limits_of_rounded(self, values: Any, nats: Any) -> Limits:
        """Limits of values that are released rounded."""
        assert self.rounded is not None
        exact, (least, most) = self._replace(rounded=None), self.rounded.cell(np.atleast_1d(values))
        exact._n_counted  # noqa: B018 raises where limits are no function of the value
        hull = exact.hull(least, most, np.atleast_1d(nats))
        assert hull is not None
        lows, highs = hull
        return (lows, highs) if np.ndim(values) else (lows[0], highs[0])

    @property
    def n_outcomes(self) -> int | None:
        """How many values, with their limits, a model may have; None: they are real numbers."""
        row = self.row
        if self.stores != "errors":
            return None
        if row.column is not None:
            return self.sizes[row.column] + 1
        return None if row.n_outcomes is None else row.n_outcomes(self.sizes)

    def hull(self, least: Floats, most: Floats, nats: Floats) -> tuple[Floats, Floats] | None:
        """Limits that hold those of every value in [least, most], for each of several.

        None where limits are no function of the value.
        """
        column = self.row.column
        if column is None or self.stores == "limits":
            return None
        largest = self.sizes[column]
        if self.greater_is_better:  # less the errors are counted
            least, most = 1.0 - most, 1.0 - least
        slack = largest * 2.0**-50  # more than rounding moves a count
        ends = np.zeros((2, len(least), len(self.sizes)), np.int64)
        ends[0, :, column] = np.clip(np.ceil(least * largest - slack), 0, largest)
        ends[1, :, column] = np.clip(np.floor(most * largest + slack), 0, largest)
        (lows, highs), (other_lows, other_highs) = (self.intervals(each, nats) for each in ends)
        return np.minimum(lows, other_lows), np.maximum(highs, other_highs)

    def describe(self) -> dict[str, Any]:
        """Return the measure as JSON values, which `from_description` reads."""
        description = self._asdict()
        del description["n_folds"], description["rounded"]  # which are parameters of the search
        return description | {
            "sizes": list(self.sizes),
            "options": dict(self.options),
            "baseline": self.baseline and list(self.baseline),
        }

    @classmethod
    def from_description(
        cls, described: dict[str, Any], n_folds: int | None, rounded: Rounded | None = None
    ) -> Self:
        """Return the measure that `describe` described, with folds and grid of its search."""
        parts = described | {
            "sizes": tuple(described["sizes"]),
            "options": tuple(sorted(described["options"].items())),
            "baseline": described["baseline"] and tuple(described["baseline"]),
        }
        return cls(**parts, n_folds=n_folds, rounded=rounded)

    def __repr__(self) -> str:
        options = "".join(f", {name}={value!r}" for name, value in self.options)
        return f"{self.name!r}{options}"


@lru_cache(maxsize=4096)
def _hull_of_one(
    measure: Measure, least: float, most: float, nats: float
) -> tuple[Floats, Floats] | None:
    return measure.hull(*map(np.atleast_1d, (least, most, nats)))
