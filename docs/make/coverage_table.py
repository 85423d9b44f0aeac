"""Makes coverage.csv, .png and .md, and their section of theory.md, by one command:

    python docs/make/coverage_table.py

Tries every bound on the classes of coverage_classes.py as coverage_rules.py says, makes the
paper's two known failures again, and replays the demo's searches through every bound.  Takes
some ten minutes on two free cores; seeds are fixed.
"""

from __future__ import annotations

import argparse
import csv
import math
import os
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from textwrap import fill
from typing import Any, NamedTuple

import coverage_intervals
import numpy as np
from coverage_classes import CLASSES
from coverage_rules import DELTAS, FIXED, HALTING, SIZES, VECTORS, Row, simulate
from matplotlib.figure import Figure
from scipy.stats import binom
from tqdm import tqdm

from radabound_fast import FixedSequence, RadaBound, bounds
from radabound_fast.bounds import BOUNDS, PAPER_BOUNDS
from radabound_fast.plots import BLUE, FAINT, INK, RED

DOCS = Path(__file__).parents[1]
PAGE, THEORY = DOCS / "evidence" / "coverage.md", DOCS / "explanation" / "theory.md"
CSV = PAGE.with_name("coverage.csv")
N_RUNS = 3000
FALSE_ALARM = 1e-6
NOMINAL = 0.1 * (1 - 0.1)
PAPER = PAPER_BOUNDS
# columns of the tables, and the bounds of which each shows the worst
AT_FIXED_K = {
    "union": tuple(
        f"union, {w}{kl}" for w in ("flat weights", "1/(k(k+1))") for kl in ("", ", kl")
    ),
    "McDiarmid": ("McDiarmid",),
    "symmetrised": ("symmetrised",),
    "self-bounding": ("self-bounding",),
    "low error": ("low error",),
    **{name: (name,) for name in PAPER},
}
AT_THE_HALT = {
    "self-bounding": ("self-bounding",),
    "low error": ("low error",),
    "fixed-sequence": ("fixed-sequence", "fixed-sequence, max_queries"),
    **{name: (name,) for name in PAPER},
}
HEADING, NEXT_HEADING = "## Coverage by simulation\n", "## References\n"  # of theory.md


class Cell(NamedTuple):
    """A line of coverage.csv."""

    loss_class: str
    n_samples: int
    n_runs: int
    row: Row

    @property
    def share(self) -> float:
        return self.row.misses / self.n_runs

    def misses_too_often(self) -> bool:
        """Whether a bound that held would miss as often with a chance below FALSE_ALARM."""
        return bool(self.row.misses > binom.ppf(1 - FALSE_ALARM, self.n_runs, self.row.delta))


def run(loss_class: str, m: int, n_runs: int, only: tuple[str, ...]) -> list[Cell]:
    rows = simulate(loss_class, m, n_runs, only=only)
    return [Cell(loss_class, m, n_runs, row) for row in rows]


def run_all(n_runs: int, jobs: int, only: tuple[str, ...]) -> list[Cell]:
    tasks = list(product(CLASSES, sorted(SIZES, reverse=True)))
    # workers that are spawned read it; matrices are too small for threads
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        waiting = [pool.submit(run, *task, n_runs, only) for task in tasks]
        return [cell for done in tqdm(waiting, unit=" cells") for cell in done.result()]


def replaced(cells: list[Cell], anew: list[Cell]) -> list[Cell]:
    """The cells, those of the same class, rule, l and delta made anew."""

    def key(cell: Cell) -> tuple[Any, ...]:
        row = cell.row
        return (*cell[:2], row.bound, row.estimator, row.form, row.n_vectors, row.delta)

    made = {key(cell): cell for cell in anew}
    return [made.get(key(cell), cell) for cell in cells]


# ---- the two known failures ------------------------------------------------------------------


def shattering_misses(rng: np.random.Generator, n_runs: int, e: float, m: int, n: int) -> int:
    """Runs with R - R~ > e, R = 1/4: one atom of mass 1/2, and all finite sets elsewhere."""
    plus = rng.binomial(n * rng.binomial(m, 0.5, n_runs), 0.5)
    return int(np.sum(0.25 - plus / (n * m) > e))


def two_atoms_misses(rng: np.random.Generator, n_runs: int, m: int, n: int) -> tuple[int, int]:
    """Runs in which Psi-, and in which Psi, is beyond 2 R~ where Theorem 6 says .09."""
    excess = BOUNDS["mclt"].excess(math.log(NOMINAL), m, n)
    at_a, at_b, rest = rng.multinomial(m, [0.4, 0.4, 0.2], n_runs).T
    # every max_f S_j(f) is positive, unless 2,400 coins are off by ten standard deviations
    total = 2 * rng.binomial(n * at_a, 0.5) - n * at_a + rng.binomial(n * rest, 0.5)
    limit = 2 * total / (n * m) + excess
    one, both = (rest + at_a) / m - 0.4, (rest + np.maximum(at_a, at_b)) / m - 0.4
    return int(np.sum(one > limit)), int(np.sum(both > limit))


def misses_of_a_chosen_vote(rng: np.random.Generator, n_runs: int) -> int:
    """Runs in which a guard's answer to a vote of coins, weighted by its answers, is off by .06."""
    misses = 0
    for _ in range(n_runs):
        coins = rng.integers(0, 2, (25, 1000), dtype=np.uint8)  # whether each is wrong
        seed = int(rng.integers(2**63))
        guard = FixedSequence(1000, epsilon=0.06, delta=0.1, n_vectors=64, seed=seed)
        weights = np.where(guard.query_many(coins).values < 0.5, 1, -1)
        vote = weights @ (2.0 * coins - 1.0) > 0
        misses += abs(guard.query(vote).value - 0.5) > 0.06
    return misses


def known_failures(n_runs: int = 100_000) -> str:
    rng = np.random.default_rng(2019)
    e, m = 0.00791, 4000
    lines = [
        f"Theorem 2 on *shattering, one atom*, m = {m}, l = 256, e = {e:g}: R - R~ > e in "
        f"{shattering_misses(rng, n_runs, e, m, 256) / n_runs:.4f} of {n_runs:,} runs; it says "
        f"{math.exp(bounds.rademacher_log_tail(e, m, 256)):.1e}."
    ]
    for n in (256, 4096):
        one, both = two_atoms_misses(rng, n_runs, m, n)
        lines.append(
            f"Theorem 6 (mclt) on *shattering, two atoms*, m = {m}, l = {n}, nominal {NOMINAL:g}: "
            f"one side misses in {one / n_runs:.3f}, the two together, as Algorithm 1 uses it, in "
            f"{both / n_runs:.3f}."
        )
    misses = misses_of_a_chosen_vote(rng, 2000)
    lines.append(
        f"fixed-sequence where the answers choose the order: 25 coins, m = 1000, and their vote "
        f"weighted by what was answered, epsilon = 0.06, delta = 0.1, l = 64: off by more than "
        f"epsilon in {misses / 2000:.3f} of 2,000 runs "
        "([theory](../explanation/theory.md#the-order-must-be-fixed-too)). A search that stays "
        "in a declared space is covered by its own intervals "
        "([declared space](../explanation/declared-space.md))."
    )
    return "\n".join(wrapped(f"* {line}", indent="  ") for line in lines)


# ---- the demo's search -----------------------------------------------------------------------


def demo_halts() -> str:
    """Where every bound halts the demo's first searches, at equal epsilon and delta."""
    from radabound_fast.experiments import demo

    split, n_candidates = demo.load_split(), 3000
    labels = split.holdout.late.astype(np.uint8)
    lines = [
        "| search | epsilon | " + " | ".join(BOUNDS) + " | first best score off by more |",
        "|---" * (len(BOUNDS) + 3) + "|",
    ]
    for what, models, epsilon in (
        ("configurations of a tree", demo.Trees(split), demo.EPSILON),
        ("moved thresholds", demo.Thresholds(split), demo.EPSILON_MOVES),
    ):
        found = demo.adaptive_search(models, split, 0, n_candidates, lambda n: None)
        halts = []
        for bound in BOUNDS:
            kind = FixedSequence if bound == "fixed-sequence" else partial(RadaBound, bound=bound)
            guard = kind(
                labels,
                epsilon=epsilon,
                delta=demo.DELTA,
                n_vectors=demo.N_VECTORS,
                seed=demo.SIGN_SEED,
            )
            answers = guard.query_many(found.predictions)
            halts.append(f"{len(answers) + 1:,}" if answers.halted else "never")
        off = np.flatnonzero(np.abs(found.true_error - found.holdout_error) > epsilon)
        halts.append(f"{off[0] + 1:,}" if len(off) else "none")
        lines.append(f"| {what} | {epsilon:g} | " + " | ".join(halts) + " |")
    return "\n".join(lines)


# ---- the report ------------------------------------------------------------------------------


def wrapped(text: str, indent: str = "") -> str:
    return fill(" ".join(text.split()), 100, subsequent_indent=indent, break_on_hyphens=False)


def worst_share(cells: Iterable[Cell], form: str, names: tuple[str, ...], delta: float) -> float:
    """The largest share of misses over estimators, m and l; nan where there is no such bound."""
    shares = [
        cell.share
        for cell in cells
        if cell.row.form == form and cell.row.bound in names and cell.row.delta == delta
    ]
    return max(shares, default=math.nan)


def shown(share: float) -> str:
    return "–" if math.isnan(share) else f"{share:.4f}"


def table(cells: list[Cell], form: str, columns: dict[str, tuple[str, ...]], delta: float) -> str:
    lines = ["| class | " + " | ".join(columns) + " |", "|---" * (len(columns) + 1) + "|"]
    for name in CLASSES:
        of_class = [cell for cell in cells if cell.loss_class == name]
        shares = (worst_share(of_class, form, names, delta) for names in columns.values())
        lines.append(f"| {name} | " + " | ".join(map(shown, shares)) + " |")
    return "\n".join(lines)


def verdict(cells: list[Cell], opening: str = "") -> str:
    """What was run, and what came out for the proved bounds; after an opening sentence."""
    proved = [cell for cell in cells if cell.row.proved]
    too_often = sum(cell.misses_too_often() for cell in proved)

    def worst(of: list[Cell]) -> str:
        cell = max(of, key=lambda cell: cell.share / cell.row.delta)
        return (
            f"{cell.share:.4f} at delta = {cell.row.delta:g} ({cell.row.bound}, {cell.loss_class})"
        )

    sizes, vectors = (", ".join(map(str, values)) for values in (SIZES, VECTORS))
    return wrapped(
        f"""{opening} {len(CLASSES)} classes, all fixed in advance; m = {sizes}; l = {vectors};
        {cells[0].n_runs:,} runs each; delta = {DELTAS[0]:g} and {DELTAS[1]:g}. A run is a miss if a
        mean of the class is further from its truth than the bound says (at a fixed number of
        queries), or if an answer that was given is off by more than epsilon (at the halting time,
        with the worst of several epsilons, at which the rule halts midway). {too_often} of
        {len(proved):,} cells of proved bounds have more misses than the binomial quantile at
        1 - {FALSE_ALARM:g} allows. Relative to delta, the largest share of misses of a proved bound
        is {worst([cell for cell in proved if cell.row.form != HALTING])} at a fixed number of
        queries, {worst([cell for cell in proved if cell.row.form == HALTING])} at the halting
        time."""
    )


def summary(cells: list[Cell]) -> str:
    """Per bound the largest share of misses over everything else."""
    lines = [
        "| bound | | "
        + " | ".join(f"{form}, {d:g}" for form in (FIXED, HALTING) for d in DELTAS)
        + " |",
        "|---|---" + "|---" * 2 * len(DELTAS) + "|",
    ]
    for name, names in {**AT_FIXED_K, **AT_THE_HALT}.items():
        shares = [worst_share(cells, f, names, d) for f in (FIXED, HALTING) for d in DELTAS]
        standing = "the paper's" if name in PAPER else "proved"
        lines.append(f"| {name} | {standing} | " + " | ".join(map(shown, shares)) + " |")
    return "\n".join(lines)


def section(cells: list[Cell]) -> str:
    """Of theory.md: its heading and all up to the next."""
    return f"""{HEADING}
{verdict(cells, "Made by `python docs/make/coverage_table.py`.")}

![Share of misses of every bound](../evidence/coverage.png)

Largest share of misses over classes, m, l and estimators. At a fixed k the paper's three are used
as Algorithm 1 does, a one-sided tail for both sides; at the halting time nothing is proved for
them. By class, with the known failures and where every bound halts the demo's searches:
[coverage](../evidence/coverage.md).

{summary(cells)}

"""


def report(cells: list[Cell], failures: str, halts: str) -> str:
    """Of coverage.md: all."""
    truths = ", ".join(f"{truth:g}" for truth in coverage_intervals.TRUTHS)
    return f"""\
# Coverage by simulation

Made by `python docs/make/coverage_table.py`; every number is in [coverage.csv](coverage.csv), and
the classes are described in [coverage_classes.py](../make/coverage_classes.py). Intervals of
metrics and of cross-validation have [tables of their own](coverage-of-metrics.md).

{verdict(cells)}

![Share of misses of every bound](coverage.png)

## At a fixed number of queries

Largest share of misses over m, l and estimators, two-sided, delta = {DELTAS[0]:g}. The last three,
the paper's, are used as Algorithm 1 does: a one-sided tail for both sides. A dash: the bound
counts queries, and the class has uncountably many.

{table(cells, FIXED, AT_FIXED_K, DELTAS[0])}

## Intervals of single queries

Largest share of runs in which the truth of any of {coverage_intervals.N_QUERIES} independent
queries is outside its interval, over truths {truths}, with and without
`max_queries`, in 2,000 runs; delta = 0.1 and 0.5, of which the intervals have 2/5.

{coverage_intervals.table(list(coverage_intervals.simulate(2000)))}

## At the halting time

Largest share of runs with a wrong answer over m, l and epsilon, delta = {DELTAS[0]:g}. Nothing is
proved here for the last three.

{table(cells, HALTING, AT_THE_HALT, DELTAS[0])}

## Known failures, of the paper's bounds and of a chosen order

{failures}

## The demo's searches

The query at which each bound halts the first search of either kind in `radabound demo`: m = 4000,
delta = .1, l = 32, all at the same epsilon.

{halts}

**These sequences were adaptive: the search saw every score.** So none of these halts comes with a
guarantee. Where the last column is smaller than a bound's halt, or that never came, the bound let
pass a best score off by more than epsilon. Fixed-sequence should be used here least of all: for
sequences fixed in advance it may answer longest, and it does. A search that sees its scores needs a
`DeclaredSearch`.
"""


def figure(cells: list[Cell]) -> Figure:
    """Every cell a dot: the share of misses by bound, proved ones first."""
    made = Figure(figsize=(9, 5.2), dpi=160, facecolor="white")
    delta = DELTAS[0]
    for place, (form, columns) in enumerate(((FIXED, AT_FIXED_K), (HALTING, AT_THE_HALT))):
        axes = made.add_axes((0.07 + 0.49 * place, 0.24, 0.43, 0.56))
        for x, names in enumerate(columns.values()):
            shares = [
                cell.share
                for cell in cells
                if cell.row.form == form and cell.row.bound in names and cell.row.delta == delta
            ]
            jitter = np.linspace(-0.25, 0.25, len(shares)) if len(shares) > 1 else [0.0]
            color = RED if names[0] in PAPER else BLUE
            axes.plot(x + np.array(jitter), shares, ".", color=color, markersize=4, alpha=0.7)
        axes.axhline(delta, color=INK, linewidth=1, linestyle=(0, (5, 3)))
        axes.text(-0.4, delta * 1.08, f"delta = {delta:g}", color=INK, fontsize=9)
        axes.set_yscale("symlog", linthresh=1e-3)
        axes.set_ylim(-1e-4, 0.5)
        axes.set_yticks([0, 1e-3, 1e-2, 1e-1], ["0", "0.001", "0.01", "0.1"])
        axes.set_xticks(range(len(columns)), list(columns), rotation=35, ha="right")
        axes.set_title(f"at {'a ' if form == FIXED else 'the '}{form}", color=INK, fontsize=10.5)
        axes.spines[["top", "right"]].set_visible(False)
        axes.spines[["left", "bottom"]].set_color(FAINT)
        axes.tick_params(colors=INK, labelsize=9)
    made.text(0.018, 0.935, "Share of runs in which a bound missed", fontsize=15,
              fontweight="bold", color=INK)  # fmt: skip
    made.text(0.018, 0.885, "A dot is a class, m, l and estimator; blue is proved, red the "
              "paper's; sequences fixed in advance", fontsize=10.5, color=FAINT)  # fmt: skip
    return made


HEADER = ("class", "n_samples", "n_runs", *Row._fields)


def write_csv(path: Path, cells: Iterable[Cell]) -> None:
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(HEADER)
        for cell in cells:
            epsilon = "" if cell.row.epsilon is None else f"{cell.row.epsilon:.6g}"
            writer.writerow([*cell[:3], *cell.row._replace(epsilon=epsilon)])


def read_csv(path: Path) -> list[Cell]:
    with open(path, encoding="utf-8", newline="") as file:
        lines: list[dict[str, Any]] = list(csv.DictReader(file))
    return [
        Cell(
            line["class"],
            int(line["n_samples"]),
            int(line["n_runs"]),
            Row(
                line["bound"],
                line["estimator"],
                line["proved"] == "True",
                line["form"],
                int(line["n_vectors"]),
                float(line["delta"]),
                float(line["epsilon"]) if line["epsilon"] else None,
                int(line["misses"]),
            ),
        )
        for line in lines
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description="Make the coverage table.")
    parser.add_argument("--runs", type=int, default=N_RUNS, help="of every class, at every m")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--from-csv", action="store_true", help="only report coverage.csv again")
    parser.add_argument(
        "--only", action="append", default=[], metavar="RULE", help="make its rows alone anew"
    )
    args = parser.parse_args()
    if not args.from_csv:
        anew = run_all(args.runs, args.jobs, tuple(args.only))
        write_csv(CSV, replaced(read_csv(CSV), anew) if args.only else anew)
    cells = read_csv(CSV)
    figure(cells).savefig(PAGE.with_name("coverage.png"))
    text = report(cells, known_failures(), demo_halts())
    PAGE.write_text(text, encoding="utf-8")
    theory = THEORY.read_text(encoding="utf-8")
    before = theory.partition(NEXT_HEADING)[0].partition(HEADING)[0]
    after = theory.partition(NEXT_HEADING)[2]
    theory = before + section(cells) + NEXT_HEADING + after
    THEORY.write_text(theory, encoding="utf-8")


if __name__ == "__main__":
    main()
