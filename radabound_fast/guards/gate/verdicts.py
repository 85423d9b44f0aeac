"""What a `Gate` has said: its verdicts, their history, and its report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from radabound_fast._checks import certainty, table_lines
from radabound_fast.guards.candidates import Estimate
from radabound_fast.store.events import Event

VERDICTS = {"pass": ("pass", "fail"), "three": ("better", "worse", "neither")}
PASSES = ("pass", "better")


@dataclass(frozen=True)
class Verdict:
    """What a `Gate` says of a candidate.

    Attributes
    ----------
    verdict : {"pass", "fail"} or {"better", "worse", "neither"}
    number : int
        Which candidate of the gate it is, from 1.
    n_passes : int
        Candidates that have passed so far, this one included.
    compared_with : int or None
        The candidate that it was compared with, 0 for the baseline; None: with none.
    value : float or None
        With `Rounded`: the gain over that, rounded, or without a baseline the metric.
    """

    verdict: str
    number: int
    n_passes: int
    compared_with: int | None
    value: float | None = None

    @property
    def passed(self) -> bool:
        """Whether every condition is met; wrong with probability at most delta over all."""
        return self.verdict in PASSES

    def to_dict(self) -> dict[str, Any]:
        """Return the verdict as JSON values."""
        fields = {"passed": self.passed} | vars(self)
        if self.value is None:
            del fields["value"]
        return fields


class History:
    """The events of a gate, read in order; the first is the baseline's, if there is one.

    `verdicts` are those that the gate can give; with `promote` what passes becomes the baseline.
    """

    def __init__(self, events: Sequence[Event], verdicts: Sequence[str], promote: bool) -> None:
        self.verdicts: list[Verdict] = []  # one a candidate, in order
        # the candidates that are or were in production, the last of them now; 0: the baseline
        self.path: list[int] = []
        self.places: dict[int, int] = {}  # of each candidate's event
        self.is_closed = False  # whether the gate's intervals were released
        self._events, self._kinds, self._promote, n_passes = events, verdicts, promote, 0
        # by fingerprint, and what it was compared with
        self._candidate_of: dict[tuple[int, int | None], int] = {}
        for place, event in enumerate(events):
            what = event["event"]
            if what == "baseline":
                self.places[0] = place
                self.path.append(0)
            elif what == "candidate":
                number, compared_with = len(self.verdicts) + 1, self.compared_with
                self.places[number] = place
                self._candidate_of[event["fingerprint"], compared_with] = number
                n_passes += event["verdict"] in PASSES
                self.verdicts.append(
                    Verdict(event["verdict"], number, n_passes, compared_with, event.get("value"))
                )
                if event["verdict"] in PASSES and promote and self.path:
                    self.path.append(number)
            elif what == "revoked":
                self.path.pop()
            elif what == "restored":
                self.path.append(event["number"])
            else:
                self.is_closed = True

    @property
    def compared_with(self) -> int | None:
        """What the next candidate is compared with; None: with nothing."""
        return self.path[-1] if self.path else None

    @property
    def n_passes(self) -> int:
        """Candidates that have passed so far."""
        return self.verdicts[-1].n_passes if self.verdicts else 0

    def find(self, fingerprint: int) -> int | None:
        """Return the candidate whose verdict answers these predictions now, if there is one."""
        current = self.compared_with
        if current and self._events[self.places[current]]["fingerprint"] == fingerprint:
            return current  # in production: it has passed
        return self._candidate_of.get((fingerprint, current))

    def takes_back(self, number: int) -> bool:
        """Whether a candidate that has passed, and was revoked, is in production again."""
        return self._promote and self.compared_with not in (None, number)

    def counts(self, number: int | None = None) -> list[int]:
        """Return how often each verdict was given, before a candidate or so far."""
        verdicts = [one.verdict for one in self.verdicts[: None if number is None else number - 1]]
        return [verdicts.count(kind) for kind in self._kinds]


class JudgedCandidate(NamedTuple):
    """A candidate of a closed gate.

    Attributes
    ----------
    verdict : Verdict
        As it was returned.
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
    metric, n_samples, delta
        As in the gate.
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
        rows = f"Closed gate on {self.n_samples:,} rows.  All intervals hold at once with "
        first = f"{rows}probability at least {certainty(self.delta)}."
        return "\n".join([first, *table_lines([head, *map(_cells, self.candidates)])])


def _cells(one: JudgedCandidate) -> list[str]:
    number, before = str(one.verdict.number), one.verdict.compared_with
    compared_with = {None: "-", 0: "baseline"}.get(before, str(before))
    estimates = (
        f"{value:.4f} ({low:.4f} to {high:.4f})" for value, low, high in one.estimates.values()
    )
    return [number, one.verdict.verdict, compared_with, *estimates]
