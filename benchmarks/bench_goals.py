"""The goals, with more rounds than `make bench-quick` has."""

import pytest

from benchmarks.goals import GROUPS, Effort, classes_here, goals_in_stead, goals_of
from benchmarks.results import Row

HERE, *LESSER = classes_here()
ROUNDS = 25


def keep(record, goals, cpu):
    for goal in goals:
        print(goal)
        numbers = {"ratio": goal.measured, "sense": goal.sense, "bound": goal.bound}
        about = {"unit": goal.unit, "met": goal.verdict, "rounds": ROUNDS}
        record([Row(f"goals, {cpu}", goal.what, **numbers, **about)])


@pytest.mark.parametrize("group", GROUPS, ids=lambda group: group.__name__)
def bench_goals(group, benchmark, record):
    effort = Effort(ROUNDS, 0.004)
    goals = benchmark.pedantic(lambda: list(goals_of(group, effort, HERE)), rounds=1)
    keep(record, goals, HERE)


@pytest.mark.parametrize("cpu", LESSER)
def bench_goals_of_lesser_cpus(cpu, benchmark, record):
    goals = benchmark.pedantic(lambda: list(goals_in_stead(cpu, ROUNDS)), rounds=1)
    keep(record, goals, cpu)
