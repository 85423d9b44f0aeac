"""RESULTS.md, its plots, and the README's block, from the CSVs: ``python -m benchmarks.report``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from benchmarks import results
from benchmarks.figures import FIGURES, draw
from benchmarks.goals import OF_ANY_CPU, WANTED

HERE = Path(__file__).parent
README = HERE.parent / "README.md"
START, END = "<!-- bench:start -->", "<!-- bench:end -->"

# what goals have been called in older files, and are called now
RENAMED = {
    "query_packed": "packed query",
    "query_many_packed": "query_many of packed losses",
    "Holdout.query_many": "query_many",
}

Rows = list[dict[str, str]]

TITLES = {
    "samples": "Blocks of queries, 32 vectors: against m",
    "vectors": "Blocks of queries, m = 4000: against l",
    "rows": "Queries in a call, m = 4000, l = 256",
    "threads": "Threads, m = 4000",
}
KEYS = {"samples": "n_samples", "vectors": "n_vectors", "rows": "n_rows"}
SYMBOLS = {"n_samples": "m", "n_vectors": "l", "n_rows": "rows"}

INTRODUCTION = """\
# Measured speed

Made by `make bench` from the files in `results/`; nothing here is typed by hand. Contestants run in
turns on one pinned core, in an order shuffled for every round; a ratio is the median over the
rounds of the ratio within a round, so that a drifting clock cancels. Every peer's signed sums were
asserted equal to ours before it was timed. A peer is timed for its distances, counts or products
alone; ours for the sums, the running extremes, the halting test and the answers, through the
Python API. The limit of a class of CPU is the fastest loop on registers, without loads, for the
same number of 512-bit cells: AND, POPCNT and ADD, or with AVX2 a tree of carry-save adders
(`limit.c`). Bit-sliced blocks and AMX do without either, and may pass it. The extremes have
settled, as they have after the first few hundred queries, and guards keep their tables, as they do
from the second large call on. Every CPU's last results stay here until it is measured again.
"""


def table(header: list[str], lines: list[list[str]]) -> Iterator[str]:
    """A table in Markdown, with a blank line after it."""
    yield f"| {' | '.join(header)} |"
    yield "|" + "---|" * len(header)
    for line in lines:
        yield f"| {' | '.join(line)} |"
    yield ""


def number(text: str) -> str:
    """Three digits at most, no exponent."""
    value = float(text)
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def goals(paths: list[Path]) -> Iterator[str]:
    """What was aimed at and reached: a column for each CPU, and each class that it stood in for."""
    columns: dict[str, dict[str, str]] = {}
    for path in paths:
        about, rows = results.read(path)
        for row in rows:
            where, _, cpu = row["table"].partition(", ")
            if where != "goals":
                continue
            instead = "" if cpu == about["kernel"] else " (stood in for)"
            cell = "-" if row["ratio"] == "nan" else f"{float(row['ratio']):.2f}"
            if row["met"] == "not met":
                cell = f"**{cell}**"
            column = columns.setdefault(f"{about['cpu']}: {cpu}{instead}", {})
            what = row["contestant"]
            for old, new in RENAMED.items():
                what = what.replace(old, new)
            column[what] = f"{cell} ({row['sense']} {number(row['bound'])})"
    if not columns:
        return
    whats = [what for what, *_ in [*WANTED, *OF_ANY_CPU]]
    whats += [what for column in columns.values() for what in column]
    units = {what: f" [{unit}]" for what, _, unit, _ in [*WANTED, *OF_ANY_CPU] if unit != "x"}
    yield "## Goals\n"
    yield (
        "What was measured, and in brackets the goal of that class of CPU; **bold** where it is "
        "missed. A CPU with AVX-512 stands in for one without: our AVX2 kernel, and peers that are "
        "held to AVX2, each in the way it offers.\n"
    )
    lines = [
        [f"{what}{units.get(what, '')}", *(column.get(what, "") for column in columns.values())]
        for what in dict.fromkeys(whats)
        if any(what in column for column in columns.values())
    ]
    met = [
        f"{sum('**' not in cell and cell[0] != '-' for cell in column.values())} of {len(column)}"
        for column in columns.values()
    ]
    yield from table(["what", *columns], [["**met**", *met], *lines])


def comparison(rows: Rows, name: str) -> Iterator[str]:
    """Nanoseconds of ours, and times of the others over it, a line for each value of the key."""
    rows = [row for row in rows if row["table"] == name]
    if not rows:
        return
    key = KEYS[name]
    names = list(dict.fromkeys(row["contestant"] for row in rows if row["contestant"] != "ours"))
    cells = {(row[key], row["contestant"]): row for row in rows}
    lines = []
    for at in dict.fromkeys(row[key] for row in rows):
        found = [cells.get((at, other)) for other in names]
        ratios = [f"{float(row['ratio']):.2f}" if row else "" for row in found]
        lines.append([at, number(cells[at, "ours"]["ns_per_query"]), *ratios])
    yield f"### {TITLES[name]}\n"
    yield "Time a query: ours in ns, the others' over ours (above 1: ours is faster).\n"
    yield from table([SYMBOLS[key], "ours, ns", *names], lines)


def threads(rows: Rows) -> Iterator[str]:
    rows = [row for row in rows if row["table"] == "threads"]
    if rows:
        yield f"### {TITLES['threads']}\n"
        lines = [
            [row["n_vectors"], row["n_threads"], number(row["ns_per_query"]),
             f"{1 / float(row['ratio']):.2f}"]
            for row in rows
        ]  # fmt: skip
        yield from table(["l", "threads", "ns a query", "times faster than one"], lines)


def losses(rows: Rows) -> Iterator[str]:
    """Every place where a peer was faster."""
    lines = [
        f"* {row['contestant']} at m = {row['n_samples']}, l = {row['n_vectors']}, "
        f"{row['n_rows']} rows a call: {float(row['ratio']):.2f} of our time"
        for row in rows
        if row["table"] in KEYS
        and row["contestant"] != "register-only limit"
        and not row["contestant"].startswith("ours")
        and float(row["ratio"]) < 1
    ]
    yield "### Where we lose\n"
    yield from lines or ["Nowhere in these tables."]
    yield ""


def section(path: Path) -> Iterator[str]:
    """All about one machine."""
    about, rows = results.read(path)
    caches = {name: int(about[name]) for name in results.CACHES if name in about}
    yield f"## {about['cpu']}\n"
    yield f"{'; '.join(f'{key} {value}' for key, value in about.items() if key != 'cpu')}.\n"
    for name in FIGURES:
        picture = draw(rows, name, caches, path.with_name(f"{path.stem}-{name}.svg"))
        if picture:
            yield f"![{name}](results/{picture.name})"
    yield ""
    for name in KEYS:
        yield from comparison(rows, name)
    yield from threads(rows)
    yield from losses(rows)


def quotation(paths: list[Path]) -> Iterator[str]:
    """The README's block: a few numbers of each machine."""
    for path in paths:
        about, rows = results.read(path)
        at = [row for row in rows if row["table"] == "vectors"]
        ns = {
            size: [
                r["ns_per_query"] for r in at if (r["n_vectors"], r["contestant"]) == (size, name)
            ]
            for size, name in [("32", "ours"), ("256", "ours, 8192 rows")]
        }
        if not all(ns.values()):
            continue
        per_query = [
            row for row in rows if row["table"] == "samples" and row["n_samples"] == "4000"
        ]
        peers = ", ".join(
            f"{row['contestant']} {float(row['ratio']):.1f}"
            for row in per_query
            if row["contestant"] in ("numkong", "faiss", "simsimd", "numba")
        )
        yield (
            f"{about['cpu']}, one core, {about['date']}: a query of 4000 losses takes "
            f"{number(ns['32'][0])} ns with 32 sign vectors, {number(ns['256'][0])} ns with 256 "
            f"(blocks of queries). Times over ours at 32 vectors: {peers}. All numbers, and where "
            "we lose: [benchmarks/RESULTS.md](benchmarks/RESULTS.md)."
        )


def replace_block(text: str, block: str) -> str:
    """`text` with what stands between the marks replaced."""
    before, start, rest = text.partition(START)
    _, end, after = rest.partition(END)
    return f"{before}{start}\n{block}\n{end}{after}" if start and end else text


def main() -> None:
    paths = results.newest()
    if not paths:
        raise SystemExit("there are no results yet: run make bench")
    sections = (line for path in paths for line in section(path))
    parts = [INTRODUCTION, *goals(paths), *sections]
    (HERE / "RESULTS.md").write_text("\n".join(parts).rstrip("\n") + "\n")
    if README.exists():
        text = README.read_text()
        README.write_text(replace_block(text, "\n\n".join(quotation(paths))))
    print(f"wrote {HERE / 'RESULTS.md'}")


if __name__ == "__main__":
    main()
