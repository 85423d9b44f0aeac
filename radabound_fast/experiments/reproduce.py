"""The command ``radabound reproduce``: run the cells, then write tables and figures."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from radabound_fast._checks import check_choice, check_count
from radabound_fast._extras import check_installed
from radabound_fast.experiments import attack, figures, real, sample_sizes, searches, section5
from radabound_fast.experiments.runner import Row, Task, run, write_csv
from radabound_fast.files.output import write_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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
    tasks: list[Task] = section5.tasks(
        [FIGURES[part] for part in parts if part in FIGURES], repeats
    )
    if "attack" in parts:
        tasks += attack.tasks(repeats) + real.climbs()
    if "real" in parts:
        tasks += real.tasks()
    rows = run(tasks, folder, n_jobs=n_jobs, quiet=quiet)

    def write(name: str, lines: Sequence[Row], figure: Figure) -> None:
        write_csv(folder / f"{name}.csv", lines)
        write_figure(folder / f"{name}.png", figure)

    for part in parts:
        if part in FIGURES:
            number = FIGURES[part]
            lines = section5.summary(number, rows[section5.experiment(number)])
            # the first search is shown, whatever it looks like
            search = section5.one_search(number, repeat=0)
            write(part, lines, figures.section5_figure(number, *search, lines))
        elif part == "table-vi":
            write(part, sample_sizes.table(), figures.sample_size_figure())
        else:
            if part == "attack":
                lines = attack.summary(rows[part])
                write(part, lines, figures.attack_figure(lines))
            name, title = _SEARCHES[part]
            write(name, searches.summary(rows[name]), figures.searches_figure(rows[name], title))


_SEARCHES = {
    "attack": (
        "climb",
        "Hill-climbs on the decision thresholds of one tree, 2,500 candidates each",
    ),
    "real": ("real", "Searches for the best vote of 60 trees, 1,000 candidates each"),
}
