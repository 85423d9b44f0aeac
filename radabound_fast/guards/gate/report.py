"""What a `Gate` tells when it is closed: the values and intervals of all its candidates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from radabound_fast._checks import certainty, table_lines
from radabound_fast.guards.candidates import Estimate
from radabound_fast.guards.gate.history import Verdict


class JudgedCandidate(NamedTuple):
    """A candidate of a closed gate.

    Attributes
    ----------
    verdict : Verdict
        As it was given.
    nats : float
        What each limit was paid for: it is wrong with probability at most exp(-nats).
    estimates : dict of str to Estimate
        "value" is the metric; "gain" that over what it was compared with; "total gain" that over
        the first baseline; "gain on ..." that on a slice.  Each has value, low and high.
    """

    verdict: Verdict
    nats: float
    estimates: dict[str, Estimate]

    def to_dict(self) -> dict[str, Any]:
        """Return all of it as JSON values, side by side."""
        limits = {
            f"{name} {part}".removeprefix("value "): number
            for name, estimate in self.estimates.items()
            for part, number in estimate._asdict().items()
        }
        return self.verdict.to_dict() | {"nats": self.nats} | limits


@dataclass(frozen=True)
class GateReport:
    """The candidates of a closed gate, with values and intervals; `Gate.close_out` makes one.

    ``str(report)`` is a table.  With probability at least 1 - delta all intervals hold at once, an
    event of their own beside that of the verdicts.

    Attributes
    ----------
    metric : str
    n_samples : int
        m, the size of the test set.
    delta : float
        The probability that any interval misses.
    candidates : list of JudgedCandidate
    """

    metric: str
    n_samples: int
    delta: float
    candidates: list[JudgedCandidate]

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON values."""
        return vars(self) | {"candidates": [one.to_dict() for one in self.candidates]}

    def __str__(self) -> str:
        names = list(self.candidates[0].estimates) if self.candidates else ["value"]
        head = ["candidate", "verdict", "compared with"]
        head += [self.metric if name == "value" else name for name in names]
        return "\n".join(
            [
                f"Closed gate on {self.n_samples:,} rows.  All intervals hold at once with "
                f"probability at least {certainty(self.delta)}.",
                *table_lines([head, *map(_cells, self.candidates)]),
            ]
        )


def _cells(one: JudgedCandidate) -> list[str]:
    verdict = one.verdict
    before = {None: "-", 0: "baseline"}.get(verdict.compared_with, str(verdict.compared_with))
    estimates = (
        f"{estimate.value:.4f} ({estimate.low:.4f} to {estimate.high:.4f})"
        for estimate in one.estimates.values()
    )
    return [str(verdict.number), verdict.verdict, before, *estimates]
