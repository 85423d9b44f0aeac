"""What a pool comes to: sentences to paste, a table and a picture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from radabound_fast._checks import certainty, counted
from radabound_fast.guards.report import SHOWN, BaseReport, scored, shown
from radabound_fast.pool.results import BestSet, BetterModels, PoolIntervals, frame_of
from radabound_fast.spaces.messages import shown_key

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame


@dataclass(frozen=True)
class PoolReport(BaseReport):
    """The result of a `ModelPool`; `ModelPool.report` makes one.

    ``str(report)`` is a paragraph to paste.  A notebook shows the picture and the ten best models
    too.

    Attributes
    ----------
    metric : str
        A name in `radabound_fast.metrics.METRICS`, or "mean loss".
    greater_is_better : bool
    n_samples, n_units, n_models, delta, guarantee
        As in the pool.
    intervals, best_set : PoolIntervals, BestSet
    better, baseline : BetterModels, float
        The second is the baseline's metric.  None without a baseline.
    """

    metric: str
    greater_is_better: bool
    n_samples: int
    n_units: int
    n_models: int
    delta: float
    guarantee: str
    intervals: PoolIntervals
    best_set: BestSet
    better: BetterModels | None
    baseline: float | None

    def __str__(self) -> str:
        intervals, best_set = self.intervals, self.best_set
        best, about = best_set.best, f"with probability about {certainty(self.delta)}"
        score, place = scored(intervals.values[best], intervals.lows[best], intervals.highs[best])
        text = (
            f"Of {counted(self.n_models, 'model')} {_called(intervals.names[best])} is the best "
            f"on {self._rows}: {self.metric} {score}, and {place} in "
            f"the population, {about} for all models at once (as if they were "
            f"{counted(round(intervals.as_if), 'independent one')}). The best model in the "
            f"population is among {counted(int(best_set.may_be_best.sum()), 'model')}, {about} "
            f"(proved: {int(best_set.bonferroni_may_be_best.sum()):,})."
        )
        if self.better is not None and self.baseline is not None:
            n_better = int(self.better.is_better.sum())
            text += (
                f" {counted(n_better, 'model is', 'models are')} better than the baseline, whose "
                f"{self.metric} is {shown(self.baseline, 4)}, {about} all of them (proved: "
                f"{int(self.better.bonferroni_is_better.sum()):,})."
            )
        return (
            f"{text} All of this is asymptotic, but for what is proved, and for models that were "
            "fixed before any holdout score was seen (radabound_fast.ModelPool)."
        )

    @property
    def _rows(self) -> str:
        rows = counted(self.n_samples, "held-out row")
        return rows if self.n_units == self.n_samples else f"{rows} in {self.n_units:,} groups"

    def ranking(self, n: int | None = None) -> list[int]:
        """Places of the n best models on the holdout, the best first."""
        values = self.intervals.values
        order = np.argsort(-values if self.greater_is_better else values, kind="stable")
        places: list[int] = order[:n].tolist()
        return places

    def columns(self) -> dict[str, Any]:
        """Return all columns by name, arrays of length k, in the order of the pool."""
        better = {} if self.better is None else self.better.columns()
        return self.intervals.columns() | better | self.best_set.columns()

    def to_frame(self) -> DataFrame:
        """Return a DataFrame (extra ``pandas``), a row for each model by name, the best first."""
        return frame_of(self.intervals.names, self.columns()).iloc[self.ranking()]

    def as_json(self) -> dict[str, Any]:
        """Return what `to_json` prints: all but the table, with the names that may be the best."""
        intervals, best = self.intervals, self.best_set.best
        names = ("metric", "n_samples", "n_units", "n_models", "delta")
        fields = {name: getattr(self, name) for name in names} | {
            "level": intervals.level,
            "as_if": intervals.as_if,
            "best": {
                "name": intervals.names[best],
                **{name: column[best] for name, column in intervals.columns().items()},
            },
            "may_be_best": self.best_set.best_names,
            "n_may_be_best_by_bonferroni": int(self.best_set.bonferroni_may_be_best.sum()),
        }
        if self.better is not None:
            fields |= {
                "baseline": self.baseline,
                "better": self.better.better_names,
                "n_better_by_bonferroni": int(self.better.bonferroni_is_better.sum()),
            }
        return fields | {"sentence": str(self), "guarantee": self.guarantee}

    def plot(self) -> Figure:
        """All models by score, with intervals, best set and baseline; needs the extra ``plot``."""
        from radabound_fast.plots import pool_figure

        order = self.ranking()
        n_best = int(self.best_set.may_be_best.sum())
        return pool_figure(
            self.intervals.values[order],
            self.intervals.lows[order],
            self.intervals.highs[order],
            self.best_set.may_be_best[order],
            baseline=self.baseline,
            metric=self.metric,
            title=f"{counted(self.n_models, 'model')} on {self._rows}: {n_best:,} may be the best",
            subtitle=f"All intervals hold with probability about {certainty(self.delta)}, and so "
            "does the set, if all models were fixed beforehand",
        )

    def _best_rows(self) -> list[dict[str, Any]]:
        intervals, columns = self.intervals, self.columns()
        above, below = intervals.highs - intervals.values, intervals.values - intervals.lows
        half_widths = np.maximum(below, above)
        shown_columns = [name for name in columns if not name.startswith("bonferroni")]
        return [
            {"model": _called(intervals.names[place]), "half_width": half_widths[place]}
            | {name: columns[name][place].item() for name in shown_columns}
            for place in self.ranking(SHOWN)
        ]


def _called(name: Any) -> str:
    """A model's name for people."""
    return name if isinstance(name, str) else f"model {shown_key(name)}"
