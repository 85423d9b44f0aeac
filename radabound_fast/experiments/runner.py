"""Cells of an experiment, run once and stored as CSV; their rows, and how they become lines."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from radabound_fast._extras import needs
from radabound_fast.files.output import whole_file
from radabound_fast.files.progress import progress

with needs("reproduce"):
    from joblib import Parallel, delayed

Value = str | int | float
Row = dict[str, Value]

# means are multiples of 1/m and may lie at epsilon exactly, but for rounding
_ROUNDING = 1e-12


class Task(NamedTuple):
    """One cell: what it is called, and what computes its rows from nothing but constants."""

    experiment: str
    cell: str
    work: Callable[[], list[Row]]


def run(tasks: Sequence[Task], folder: Path, *, n_jobs: int, quiet: bool) -> dict[str, list[Row]]:
    """The rows of every experiment, by its name, cell by cell in the order of the tasks.

    They are in ``cells/<experiment>/<cell>.csv`` of `folder`; a cell that is there is not run.
    `n_jobs` are processes, as joblib counts them; `quiet` shows no progress on stderr.
    """
    files = [folder / "cells" / task.experiment / f"{task.cell}.csv" for task in tasks]
    waiting = [(task, file) for task, file in zip(tasks, files, strict=True) if not file.exists()]
    finished = Parallel(n_jobs=n_jobs, return_as="generator_unordered")(
        delayed(_compute)(task, file) for task, file in waiting
    )
    with progress(len(waiting), "cells", quiet=quiet) as advance:
        for _ in finished:
            advance(1)
    rows: dict[str, list[Row]] = {}
    for task, file in zip(tasks, files, strict=True):
        rows.setdefault(task.experiment, []).extend(read_csv(file))
    return rows


def _compute(task: Task, file: Path) -> None:
    rows = task.work()
    file.parent.mkdir(parents=True, exist_ok=True)
    write_csv(file, rows)


def write_csv(path: Path, rows: Sequence[Row]) -> None:
    """Write rows with the same keys, under a line of them, as a whole file or none."""
    with whole_file(path) as name, open(name, "w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, fieldnames=list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def read_csv(path: Path) -> list[Row]:
    """The rows of a file of `write_csv`; whatever reads as a number is one."""
    with path.open(newline="", encoding="utf-8") as stream:
        return [
            {name: _value(text) for name, text in row.items()} for row in csv.DictReader(stream)
        ]


def _value(text: str) -> Value:
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            continue
    return text


def any_off(answers: ArrayLike, truths: ArrayLike, epsilon: float) -> bool:
    """Whether an answer is further than epsilon from its truth."""
    distances = np.abs(np.subtract(answers, truths))
    return bool(np.any(distances > epsilon + _ROUNDING))


def share(flags: Sequence[float]) -> Row:
    """Share of runs that are off, with its 95 % interval (Clopper and Pearson)."""
    from scipy.stats import binomtest

    test = binomtest(int(sum(flags)), len(flags))
    interval = test.proportion_ci(0.95)
    numbers = {"off": test.statistic, "off_low": interval.low, "off_high": interval.high}
    return {name: round(float(number), 4) for name, number in numbers.items()}


def grouped(rows: Iterable[Row], *keys: str) -> dict[tuple[Value, ...], list[Row]]:
    """Rows by the values of some columns, in the order of their first appearance."""
    groups: dict[tuple[Value, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row[key] for key in keys), []).append(row)
    return groups


def summarised(
    rows: Iterable[Row], keys: Sequence[str], line: Callable[[Sequence[Row]], Row]
) -> list[Row]:
    """One row for all that agree in some columns: these, and what `line` makes of the rows."""
    groups = grouped(rows, *keys).items()
    return [dict(zip(keys, values, strict=True)) | line(runs) for values, runs in groups]


def column(rows: Iterable[Row], name: str) -> list[float]:
    """The numbers of one column."""
    return [float(row[name]) for row in rows]
