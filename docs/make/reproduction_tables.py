"""Put the tables of evidence/reproduction.md in place, from the files in reproduction/.

    python docs/make/reproduction_tables.py

A key of TABLES is the name in the marks around its table.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable
from pathlib import Path

from marked import fill

PAGE = Path(__file__).parents[1] / "evidence" / "reproduction.md"
FOLDER = PAGE.with_suffix("")

Row = dict[str, str]


def read(name: str) -> list[Row]:
    with (FOLDER / f"{name}.csv").open(newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def markdown(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    head = list(head)
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def figures() -> str:
    """Per figure and bound, the epsilon with the largest share."""
    rows = []
    for number in range(1, 7):
        lines = read(f"figure-{number}")
        for bound in dict.fromkeys(line["bound"] for line in lines):
            own = [line for line in lines if line["bound"] == bound]
            worst = max(own, key=lambda line: float(line["off"]))
            rows.append(
                [
                    str(number),
                    f"`{bound}`",
                    f"{own[0]['epsilon']} to {own[-1]['epsilon']}",
                    f"{own[0]['halt_median']} to {own[-1]['halt_median']}",
                    f"{float(worst['off']):.3f}"
                    + (f" at {worst['epsilon']}" if float(worst["off"]) else ""),
                    worst["delta"],
                    worst["passes_delta"],
                ]
            )
    head = ["figure", "bound", "epsilon", "median halt", "largest share off", "delta", "passes it"]
    return markdown(head, rows)


def table_vi() -> str:
    columns = {
        "thresholdout_printed_B_1": "Thresholdout, B = 1",
        "thresholdout_printed_B_k": "B = k, as printed",
        "thresholdout_theorem_B_k": "B = k, corrected",
        "sample_splitting": "new samples each",
        "guess_and_check_all_pass": "guess and check, all pass",
        "guess_and_check_1_fails": "one fails",
        "guess_and_check_all_fail": "all fail",
        "ladder": "Ladder",
    }
    rows = [
        [f"{int(row['k']):,}", row["epsilon"], *(f"{float(row[name]):,.0f}" for name in columns)]
        for row in read("table-vi")
    ]
    return markdown(["k", "epsilon", *columns.values()], rows)


def attack() -> str:
    """The largest share over k; a row for each mechanism, a column for each epsilon."""
    worst: dict[str, dict[str, float]] = {}
    for row in read("attack"):
        cells = worst.setdefault(row["mechanism"], {})
        cells[row["epsilon"]] = max(cells.get(row["epsilon"], 0.0), float(row["off"]))
    epsilons = next(iter(worst.values()))
    rows = [
        [name, *(f"{cells[epsilon]:.3f}" for epsilon in epsilons)] for name, cells in worst.items()
    ]
    return markdown(["largest share off, at epsilon", *epsilons], rows)


def searches(name: str, data: str, epsilon: str) -> str:
    rows = [
        [
            row["mechanism"],
            f"{row['halted']} of {row['runs']}",
            row["answered_median"],
            "-" if row["half_width"] == "nan" else row["half_width"],
            "-"
            if row["gap"] == "nan"
            else f"{row['gap']} ({row['gap_least']} to {row['gap_largest']})",
            f"{round(float(row['off']) * int(row['runs']))} of {row['runs']}",
        ]
        for row in read(name)
        if (row["data"], row["epsilon"]) == (data, epsilon)
    ]
    head = [
        "answered by",
        "spent",
        "answers",
        "promised",
        "gap, points",
        f"off by more than {epsilon}",
    ]
    return markdown(head, rows)


TABLES: dict[str, Callable[[], str]] = {
    "figures": figures,
    "table-vi": table_vi,
    "attack": attack,
    "climb": lambda: searches("climb", "flights", "0.04"),
    "flights": lambda: searches("real", "flights", "0.05"),
    "mortgages": lambda: searches("real", "mortgages", "0.05"),
    "scorecard": lambda: searches("real", "scorecard", "0.05"),
}


if __name__ == "__main__":
    for name, table in TABLES.items():
        fill(PAGE, name, table())
