"""Time against m, l and k over many decades."""

from dataclasses import asdict, replace

import pytest

from benchmarks.growth import LINES, line
from benchmarks.results import race_rows


@pytest.mark.parametrize("axis", LINES)
def bench_growth(axis, compete, record):
    points = line(axis, per_decade=2)
    outcome = compete([point.contestant() for point in points], rounds=7)
    rows = race_rows(f"growth of {axis}", outcome, over=outcome.names[0])
    record(
        [
            replace(row, contestant="ours", **asdict(point))
            for row, point in zip(rows, points, strict=True)
        ]
    )
