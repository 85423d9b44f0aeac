"""What a `ConfirmedSearch` came to: a sentence to paste, a table and a picture."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from radabound_fast._checks import certainty, counted
from radabound_fast.guards.confirmed.answers import ConfirmedAnswer, ConfirmedAnswers
from radabound_fast.guards.report import SearchReport, scored, sentence, shown

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class ConfirmedReport(SearchReport):
    """The result of a `ConfirmedSearch` so far; `ConfirmedSearch.report` makes one.

    ``str(report)`` is what to paste.  A notebook shows the picture and the ten best finalists too,
    each with its score on the search rows, so that everybody sees how much of that was luck.

    Attributes
    ----------
    metric : str
        A name in `radabound_fast.metrics.METRICS`, or "mean loss".
    n_search_rows, n_confirmation_rows, n_models : int
        Rows of each kind, and finalists that were confirmed.
    n_batches, delta, guarantee, answers, best
        As in the search.
    where : str
        Where the value is that intervals speak of.
    """

    metric: str
    n_search_rows: int
    n_confirmation_rows: int
    n_models: int
    n_batches: int | None
    delta: float
    guarantee: str
    answers: ConfirmedAnswers
    where: str
    _in_json = (
        *("metric", "n_search_rows", "n_confirmation_rows", "n_models", "n_batches"),
        "delta",
    )

    @property
    def best(self) -> ConfirmedAnswer:
        return self.answers.best

    def __str__(self) -> str:
        best, rows = self.best, counted(self.n_confirmation_rows, "row")
        choice = f"The best of {self.n_models:,} finalists is {best.name}"
        if self.n_models == 1:
            choice = f"The only finalist is {best.name}"
        score, place = scored(best.value, best.low, best.high)
        text = sentence(
            choice,
            f"{self.metric} {score} on {rows} that took no part in the search",
            f"{place} {self.where}",
            self.delta,
            "whatever the search did with other rows, if no finalist was trained, tuned or chosen "
            "on these (radabound_fast.ConfirmedSearch)",
        )
        if best.asymptotic_low is not None and best.asymptotic_high is not None:
            low, high = shown(best.asymptotic_low, 4), shown(best.asymptotic_high, 4)
            by_bootstrap = best.asymptotic_nats is not None
            how = "the bootstrap" if by_bootstrap else "the normal approximation"
            beside = f", {self._as_if}" if by_bootstrap else ""
            text += f" (By {how}, which is asymptotic: {low} to {high}{beside}.)"
        if best.search_value is not None:
            on_search = counted(self.n_search_rows, "search row")
            text += f" On the {on_search} it was {shown(best.search_value, 4)}."
        if best.gain is not None and best.gain == best.gain:
            fixed = "fixed before these rows were seen"
            text += f" {self._compared(best, two_sided=True, fixed=fixed)}"
        return text

    @property
    def _as_if(self) -> str:
        """How many independent finalists would cost as much as those that the bootstrap has."""
        by_bootstrap = [one for one in self.answers if one.asymptotic_nats is not None]
        first, n = by_bootstrap[0], len(by_bootstrap)
        as_if = n * math.exp((first.asymptotic_nats or 0.0) - first.nats)
        return f"for {counted(n, 'finalist')} at once, as if they were {as_if:.3g} independent ones"

    def plot(self) -> Figure:
        """The finalists, the best on top, with their intervals; needs the extra ``plot``.

        Their scores on the search rows stand beside them.
        """
        from radabound_fast.plots import finalists_figure

        known = [answer for answer in self.ranking() if answer.low == answer.low]
        names = ("name", "value", "low", "high", "search_value")
        rows = counted(self.n_confirmation_rows, "row")
        return finalists_figure(
            *([getattr(answer, name) for answer in known] for name in names),
            metric=self.metric,
            title=f"{counted(self.n_models, 'finalist')} on {rows} kept for the end",
            subtitle=f"All intervals hold at once, with probability {certainty(self.delta)}, "
            "whatever the search did with other rows",
        )
