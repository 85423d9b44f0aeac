"""The command ``radabound reproduce``: run the cells, then write tables and figures."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from radabound_fast._checks import check_choice, check_count
from radabound_fast._extras import check_installed
from radabound_fast.experiments import (
    attack,
    climb,
    figures,
    real,
    sample_sizes,
    searches,
    section5,
)
from radabound_fast.experiments.results import Row
from radabound_fast.experiments.runner import Task, run, write_csv
from radabound_fast.files.output import write_figure

FIGURES = {f"figure-{number}": number for number in section5.FIGURES}
PARTS = (*FIGURES, "table-vi", "attack", "real")


def main(
    output: str | bytes | os.PathLike[Any],
    parts: Sequence[str] = PARTS,
    *,
    repeats: int = 200,
    n_jobs: int = 1,
    quiet: bool = False,
) -> None:
    """Reproduce parts of the evaluation, a table (.csv) and a figure (.png) for each.

    The folder `output` gets these files, which are replaced, and the finished cells, which are not
    run again; it is made if missing.  `parts` are of `PARTS`: Figures 1 to 6, the sample sizes of
    Section VI, the attack of the weighted vote with the hill-climb on flights, and the searches on
    real data.  `repeats` are searches for each figure, and runs of the vote; the others have their
    own numbers.  `n_jobs` are processes; `quiet` shows no progress on stderr.

    ImportError: a package that a part needs is not installed.
    """
    for part in parts:
        check_choice(PARTS, part=part)
    repeats, n_jobs = check_count(repeats=repeats), check_count(n_jobs=n_jobs)
    if "real" in parts:
        check_installed("reproduce", "causaldata")
    folder = Path(os.fsdecode(output))
    folder.mkdir(parents=True, exist_ok=True)
    numbers = [FIGURES[part] for part in parts if part in FIGURES]
    tasks: list[Task] = section5.tasks(numbers, repeats)
    if "attack" in parts:
        tasks += attack.tasks(repeats) + climb.tasks()
    if "real" in parts:
        tasks += real.tasks()
    rows = run(tasks, folder, n_jobs=n_jobs, quiet=quiet)
    for part in parts:
        if part in FIGURES:
            _write_figure(folder, FIGURES[part], rows)
        elif part == "table-vi":
            write_csv(folder / "table-vi.csv", sample_sizes.table())
            write_figure(folder / "table-vi.png", figures.sample_size_figure())
        elif part == "attack":
            _write_attack(folder, rows)
        else:
            _write_searches(
                *(folder / "real", rows["real"]),
                "Searches for the best vote of 60 trees, 1,000 candidates each",
            )


def _write_figure(folder: Path, number: int, rows: dict[str, list[Row]]) -> None:
    lines = section5.summary(number, rows[section5.experiment(number)])
    write_csv(folder / f"figure-{number}.csv", lines)
    # the first search is shown, whatever it looks like
    search, seed = section5.one_search(number, repeat=0)
    figure = figures.section5_figure(number, search, seed, lines)
    write_figure(folder / f"figure-{number}.png", figure)


def _write_attack(folder: Path, rows: dict[str, list[Row]]) -> None:
    lines = attack.summary(rows["attack"])
    write_csv(folder / "attack.csv", lines)
    write_figure(folder / "attack.png", figures.attack_figure(lines))
    _write_searches(
        *(folder / "climb", rows["climb"]),
        "Hill-climbs on the decision thresholds of one tree, 2,500 candidates each",
    )


def _write_searches(path: Path, rows: list[Row], title: str) -> None:
    write_csv(path.with_suffix(".csv"), searches.summary(rows))
    write_figure(path.with_suffix(".png"), figures.searches_figure(rows, title))
