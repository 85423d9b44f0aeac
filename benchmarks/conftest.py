"""Runs races under pytest-benchmark on one pinned core, and keeps what came of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from benchmarks import results
from benchmarks.race import Contestant, Outcome, Race, pinned

ROUNDS = 25

_rows: list[results.Row] = []


@pytest.fixture(autouse=True, scope="session")
def _one_core() -> Iterator[None]:
    with pinned():
        yield


@pytest.fixture
def record() -> Callable[[list[results.Row]], None]:
    """Puts rows into the CSV of this run."""
    return _rows.extend


@pytest.fixture
def compete(benchmark) -> Callable[..., Outcome]:
    """Races contestants, one round of all of them per round of pytest-benchmark."""

    def run(entries: list[Contestant], rounds: int = ROUNDS, **options) -> Outcome:
        race = Race(entries, **options)
        benchmark.pedantic(race.round, rounds=rounds, iterations=1)
        outcome = race.outcome()
        benchmark.extra_info.update({name: outcome.median(name) for name in outcome.names})
        return outcome

    return run


def pytest_sessionfinish(exitstatus: int) -> None:
    if _rows and exitstatus == 0:
        print(f"\nwrote {results.write(_rows)}")
