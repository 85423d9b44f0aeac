"""The goals, with more rounds than `make bench-quick` has."""

import pytest

from benchmarks.goals import GROUPS, Effort
from benchmarks.results import Row


@pytest.mark.parametrize("group", GROUPS, ids=lambda group: group.__name__)
def bench_goals(group, benchmark, record):
    goals = benchmark.pedantic(lambda: list(group(Effort(25, 0.004))), rounds=1)
    for goal in goals:
        print(goal)
        record([Row("goals", goal.what, ratio=goal.measured, sense=goal.sense, bound=goal.bound,
                    unit=goal.unit, met=goal.verdict, rounds=25)])  # fmt: skip
