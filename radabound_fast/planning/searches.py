"""What a search affords: finalists on rows kept for the end, a declared space, a fixed order."""

from __future__ import annotations

import json
import math
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from radabound_fast._checks import (
    MAX_SAMPLES,
    check_count,
    check_delta,
    check_fraction,
    check_n_samples,
    check_probability,
    counted,
    table_lines,
)
from radabound_fast.bounds import confirmation_nats
from radabound_fast.bounds.union import MOST_QUERIES
from radabound_fast.guards.halting import HaltingRule
from radabound_fast.planning.guards import limits_at
from radabound_fast.rows.parts import size_of_part

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# shares of the rows that are kept for the end
SHARES = (0.2, 0.33, 0.5, 1.0)

Limits = Callable[[int], tuple[float, float]]  # by m


@dataclass(frozen=True)
class SearchPlan:
    """What ways there are to trust a search, side by side; ``str(plan)`` is a table.

    Attributes
    ----------
    n_samples, delta, error_rate, space_size, n_finalists, width
        The arguments of `plan`.
    rows : list of dict
        A row for each way:

        name : str
            The guard, and which share of the rows it keeps for the end.
        n_samples : int or None
            m, or the fewest rows in all with which the interval is no wider than `width`; None
            where 2**40 are not enough.
        n_rows : int or None
            The rows among these that the interval rests on.
        low, high, width : float or None
            The interval at this error rate, and its width.
        asked, allowed : str
            What is asked of the user beforehand, and what the search may do.
    n_narrower : int or None
        The largest declared space with an interval that is no wider than that of the finalists on
        half of the rows; None without `n_samples`.
    """

    n_samples: int | None
    delta: float
    error_rate: float
    space_size: int | None
    n_finalists: int
    width: float | None
    rows: list[dict[str, Any]]
    n_narrower: int | None

    def to_json(self) -> str:
        """The question and the rows, as a JSON object."""
        return json.dumps(asdict(self), indent=2)

    def __str__(self) -> str:
        what = counted(self.n_samples or 0, "row")
        if self.n_samples is None:
            what = f"Rows for an interval of width {self.width:g}"
        finalists = counted(self.n_finalists, "finalist")
        question = f"{what}: delta {self.delta:g}, error rate {self.error_rate:g}, {finalists}\n"
        head = ("", "rows", "of these", "low", "high", "width", "asked of you", "the search may")
        align = [str.ljust, *[str.rjust] * 5, str.ljust, str.ljust]
        lines = [question, *table_lines([head, *map(_cells, self.rows)], align)]
        if self.n_narrower is not None:
            whose = "the finalist's" if self.n_finalists == 1 else "the finalists'"
            lines.append(
                f"\nA declared space has an interval no wider than {whose} on half of the rows up "
                f"to {counted(self.n_narrower, 'configuration')}."
            )
        return "\n".join(lines)

    def plot(self) -> Figure:
        """A figure of the interval's width against the share that is kept for the end.

        ValueError if the plan is of the rows that a width needs.
        """
        from radabound_fast.plots import shares_figure

        m, delta, error_rate = self.n_samples, self.delta, self.error_rate
        if m is None:
            raise ValueError("plot needs a plan with n_samples")
        shares = [step / 40 for step in range(2, 41)]
        curves = {
            counted(count, "finalist"): [
                _width(_confirmed(share, count, delta, error_rate), m) for share in shares
            ]
            for count in sorted({1, self.n_finalists})
        }
        level = None
        if self.space_size is not None:
            level = _width(_declared(self.space_size, delta, error_rate), m)
        return shares_figure(
            shares,
            curves,
            level=level,
            level_name=f"a declared space\nof {self.space_size or 0:,}",
            title=f"How many of {m:,} rows to keep for the end",
            subtitle=f"Width of the interval at an error rate of {error_rate:g}, delta {delta:g}; "
            "the other rows are for the search",
        )


class _Way(NamedTuple):
    """A way to trust a search."""

    name: str
    limits: Limits
    n_rows: Callable[[int], int]  # that the interval rests on, of m
    demanded: str
    allowed: str

    def row(self, n_samples: int | None, width: float | None) -> dict[str, Any]:
        if n_samples is None:
            sizes = range(2, MAX_SAMPLES + 1)
            place = bisect_left(sizes, True, key=lambda m: _width(self.limits, m) <= (width or 0.0))
            n_samples = sizes[place] if place < len(sizes) else None
        n_rows = low = high = width = None
        if n_samples is not None:
            n_rows, (low, high) = self.n_rows(n_samples), self.limits(n_samples)
            width = high - low
        return {
            "name": self.name,
            "n_samples": n_samples,
            "n_rows": n_rows,
            "low": low,
            "high": high,
            "width": width,
            "asked": self.demanded,
            "allowed": self.allowed,
        }


def plan_searches(
    n_samples: int | None,
    delta: float,
    error_rate: float,
    space_size: int | None,
    n_finalists: int,
    width: float | None,
) -> SearchPlan:
    """Make the plan of a search; see `radabound_fast.plan`."""
    delta, error_rate = check_delta(delta), check_fraction(error_rate=error_rate)
    n_finalists = check_count(n_finalists=n_finalists)
    if space_size is not None:
        space_size = check_count(space_size=space_size)
    if (n_samples is None) == (width is None):
        raise ValueError("one of n_samples and width must be given with n_finalists")
    if width is not None:
        width = check_probability(width=width)
    m = None if n_samples is None else check_n_samples(n_samples)
    ways = _ways(n_finalists, space_size, delta, error_rate)
    rows, n_narrower = [way.row(m, width) for way in ways], None
    if m is not None:
        most = _width(_confirmed(0.5, n_finalists, delta, error_rate), m)
        n_narrower = bisect_left(
            range(1, MOST_QUERIES + 1),
            True,
            key=lambda size: _width(_declared(size, delta, error_rate), m) > most,
        )
    return SearchPlan(m, delta, error_rate, space_size, n_finalists, width, rows, n_narrower)


def _ways(n_finalists: int, space_size: int | None, delta: float, error_rate: float) -> list[_Way]:
    ways = []
    for share in SHARES:
        rows, anything = f"{share:g} of the rows stay unseen", "do anything with the others"
        if share == 1.0:
            rows, anything = "all rows stay unseen", "use data of its own"
        ways.append(
            _Way(
                f"ConfirmedSearch, share {share:g}",
                _confirmed(share, n_finalists, delta, error_rate),
                partial(size_of_part, share=share),
                rows,
                f"{anything}, then name {counted(n_finalists, 'finalist')}",
            )
        )
    if space_size is None:
        return ways
    return [
        *ways,
        _Way(
            "DeclaredSearch",
            _declared(space_size, delta, error_rate),
            lambda m: m,
            f"a space of {space_size:,}, before any score",
            "look at every score, within the space",
        ),
        _Way(
            "FixedSequence",
            partial(_in_order, space_size, delta, error_rate),
            lambda m: m,
            f"{space_size:,} models and their order, before any score",
            "choose nothing by the scores on the way",
        ),
    ]


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    numbers = ("-" if row[name] is None else f"{row[name]:,}" for name in ("n_samples", "n_rows"))
    limits = ("-" if row[name] is None else f"{row[name]:.4f}" for name in ("low", "high", "width"))
    return row["name"], *numbers, *limits, row["asked"], row["allowed"]


def _width(limits: Limits, m: int) -> float:
    low, high = limits(m)
    return high - low


def _confirmed(share: float, n_finalists: int, delta: float, error_rate: float) -> Limits:
    nats = confirmation_nats(n_finalists, delta)
    return lambda m: limits_at(size_of_part(m, share), error_rate, nats)


def _declared(size: int, delta: float, error_rate: float) -> Limits:
    nats = math.log(2.0 / delta) + math.log(size)
    return lambda m: limits_at(m, error_rate, nats)


def _in_order(size: int, delta: float, error_rate: float, m: int) -> tuple[float, float]:
    """Each answer within the least epsilon, in steps of 2**-14, with which so many are answered."""

    def is_enough(step: int) -> bool:
        rule = HaltingRule(m, 32, step * 2.0**-14, delta, "fixed-sequence", max_queries=size)
        return rule.free_left(0, error_rate, declared=True) >= size

    steps = range(1, 2**14)
    place = bisect_left(steps, True, key=is_enough)
    epsilon = steps[place] * 2.0**-14 if place < len(steps) else 1.0
    return max(0.0, error_rate - epsilon), min(1.0, error_rate + epsilon)
