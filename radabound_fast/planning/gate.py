"""What a release gate affords on a test set, before any of it is used."""

from __future__ import annotations

import json
import math
from bisect import bisect_left
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from radabound_fast._checks import (
    MAX_SAMPLES,
    check_count,
    check_delta,
    check_fraction,
    check_integer,
    check_n_samples,
    check_positive,
    check_real,
    counted,
    table_lines,
)
from radabound_fast.bounds import gain_needed, history_nats

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# passes before a candidate, for which a plan has a column
PASSES = (0, 1, 2, 4, 8)


@dataclass(frozen=True)
class GatePlan:
    """What a `Gate` affords; ``str(plan)`` is a table.

    Attributes
    ----------
    n_samples, disagreement, delta, margin, n_candidates, n_passes, tolerance
        The arguments of `plan`.
    rows : list of dict
        A row for each candidate that is looked at:

        candidate : int
            Which candidate it is, from 1.
        gains : dict of int to float
            By the passes before it: the least observed gain that passes, inf where none does.
            Without `n_samples` None.
        samples : dict of int to int
            By the passes before it: about how many labels let a gain of `tolerance` pass;
            counts are whole numbers, so that a few more may not be enough.
            With `n_samples` None.
    """

    n_samples: int | None
    disagreement: float
    delta: float
    margin: float
    n_candidates: int | None
    n_passes: int | None
    tolerance: float | None
    rows: list[dict[str, Any]]

    @property
    def _column(self) -> str:
        return "samples" if self.n_samples is None else "gains"

    def to_json(self) -> str:
        """The question and the rows, as a JSON object."""
        fields, name = asdict(self), self._column
        for row in fields["rows"]:  # JSON has no infinity
            row[name] = {
                passes: None if number == math.inf else number
                for passes, number in row[name].items()
            }
        return json.dumps(fields, indent=2, allow_nan=False)

    def __str__(self) -> str:
        if self.n_samples is None:
            what = f"About how many labels let an observed gain of {self.tolerance:g} pass"
        else:
            what = f"The least observed gain that passes on {self.n_samples:,} rows"
        columns = [row[self._column] for row in self.rows]
        passes = sorted(set().union(*columns))
        head = ["candidate", *(counted(count, "pass", "passes") for count in passes)]
        lines = [
            [f"{row['candidate']:,}", *(self._cell(numbers.get(count)) for count in passes)]
            for row, numbers in zip(self.rows, columns, strict=True)
        ]
        table = table_lines([head, *lines], [str.rjust] * len(head))
        return "\n".join([f"{what}, by the passes before.", self._circumstances, *table])

    @property
    def _circumstances(self) -> str:
        declared = "candidates without end"
        if self.n_candidates is not None:
            declared = f"{counted(self.n_candidates, 'candidate')} declared"
        margin = f", margin {self.margin:g}" if self.margin else ""
        differ = f"Losses differ on {100 * self.disagreement:g} % of rows"
        return f"{differ}; delta {self.delta:g}{margin}; {declared}."

    def _cell(self, number: float | None) -> str:
        if number is None:
            return ""
        if number == math.inf:
            return "none"
        return f"{number:,}" if self.n_samples is None else f"{number:.4f}"

    def plot(self) -> Figure:
        """A figure of what is needed against the number of candidates, a line a count of passes."""
        from radabound_fast.plots import gate_figure

        lines: dict[int, list[tuple[int, float]]] = {}
        for row in self.rows:
            for passes, number in row[self._column].items():
                if number < math.inf:
                    lines.setdefault(passes, []).append((row["candidate"], number))
        is_of_labels = self.n_samples is None
        return gate_figure(
            lines,
            height="labels needed" if is_of_labels else "least gain that passes",
            subtitle=("" if is_of_labels else f"{self.n_samples:,} rows. ") + self._circumstances,
        )


def plan_gate(
    n_samples: int | None,
    delta: float,
    *,
    disagreement: Any,
    margin: float,
    n_candidates: Any,
    n_passes: Any,
    tolerance: Any,
) -> GatePlan:
    """Make the plan of a gate; see `radabound_fast.plan`."""
    disagreement = check_fraction(disagreement=disagreement)
    delta, margin = check_delta(delta), check_real(margin=margin)
    if n_candidates is not None:
        n_candidates = check_count(n_candidates=n_candidates)
    if n_passes is not None:
        n_passes = check_integer(n_passes=n_passes)
        if not 0 <= n_passes < (n_candidates or math.inf):
            raise ValueError(
                f"n_passes must be at least 0 and less than n_candidates, got {n_passes}"
            )
    if n_samples is None:
        if tolerance is None:
            raise ValueError("tolerance must be given where n_samples is None")
        tolerance = check_positive(tolerance=tolerance)
    elif tolerance is not None:
        raise ValueError("tolerance must be left out beside n_samples: a plan tells one or other")
    else:
        n_samples = check_n_samples(n_samples)
    last = n_candidates or 128
    candidates = sorted({*(2**power for power in range(last.bit_length())), last})
    columns = PASSES if n_passes is None else (n_passes,)
    of = "samples" if n_samples is None else "gains"
    rows = []
    for candidate in candidates:
        needed: dict[int, float] = {}
        for passes in columns:
            if passes < candidate:
                counts = [passes, candidate - 1 - passes]
                nats = math.log(1.0 / delta) + history_nats(counts, n_candidates=n_candidates)
                if n_samples is None:
                    needed[passes] = _labels_needed(disagreement, nats, margin, tolerance)
                else:
                    needed[passes] = gain_needed(n_samples, disagreement, nats, margin=margin)
        if needed:
            rows.append({"candidate": candidate, "gains": None, "samples": None, of: needed})
    return GatePlan(n_samples, disagreement, delta, margin, n_candidates, n_passes, tolerance, rows)


def _labels_needed(disagreement: float, nats: float, margin: float, tolerance: float) -> float:
    """Return about how many labels let a gain of `tolerance` pass; inf: more than 2**40."""

    def is_enough(n_samples: int) -> bool:
        return gain_needed(n_samples, disagreement, nats, margin=margin) <= tolerance

    most = 1
    while not is_enough(most):
        most *= 2
        if most > MAX_SAMPLES or tolerance <= margin:
            return math.inf
    return bisect_left(range(1, most + 1), True, key=is_enough) + 1
