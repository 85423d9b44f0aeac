"""Tries every fault, counts, and writes the tables of docs/evidence/reliability.md:

    python tests/faults/try_faults.py

Takes minutes.  Exit code 1 if anything was lost.  With --quick each fault is tried a few times;
with words, only faults that have one of them in their names.  Neither writes anything.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import textwrap
import time
from datetime import date
from pathlib import Path

import costs
import disks
import endings
import forks
import harm
import interrupts
import kills
import names
import openers
import signals
import sizes
from trial import Count, Fault

DOCS = Path(__file__).parents[2] / "docs"
FAULTS: list[Fault] = [
    *kills.FAULTS,
    *interrupts.FAULTS,
    *endings.FAULTS,
    *forks.FAULTS,
    *disks.FAULTS,
    *openers.FAULTS,
    *names.FAULTS,
    *harm.FAULTS,
    *sizes.FAULTS,
]


def tried(fault: Fault, times: int) -> Count:
    count = Count()
    with tempfile.TemporaryDirectory(prefix="faults-") as folder:
        fault.run(count, Path(folder), times)
    count.check(count.times >= times, f"tried {count.times} times, not {times}")
    return count


def wrapped(text: str) -> str:
    return textwrap.fill(text, 100, break_on_hyphens=False)


def fault_table(counts: dict[Fault, Count], seconds: float) -> str:
    total = sum(count.times for count in counts.values())
    lost = sum(len(count.lost) for count in counts.values())
    lines = [
        wrapped(
            f"Made by `make faults` on {date.today()} in {seconds:.0f} seconds: "
            f"faults tried {total:,} times, losses found: {lost}."
        ),
        "",
        "| fault | times tried | what must hold | losses |",
        "|---|---|---|---|",
    ]
    for fault, count in counts.items():
        note = f" ({count.note})" if count.note else ""
        lines.append(
            f"| {fault.name}{note} | {count.times:,} | {fault.must_hold} | {len(count.lost)} |"
        )
    return "\n".join(lines)


def cost_table(measured: dict[str, tuple[float, float]]) -> str:
    in_memory = measured["in memory"][1]
    lines = [
        wrapped(
            f"m = {costs.N_SAMPLES:,} losses of 0 and 1, l = {costs.N_VECTORS}, one process; "
            f"medians, measured by the same command. A block is a call of `query_many` with "
            f"{costs.BLOCK_ROWS:,} rows."
        ),
        "",
        "| where | a single query | a row of a block | throughput in blocks, of that in memory |",
        "|---|---|---|---|",
    ]
    for place, (single, row) in measured.items():
        shown = place if place == "in memory" else f'`durability="{place}"`'
        lines.append(f"| {shown} | {single:,.1f} µs | {row:.2f} µs | {in_memory / row:.2f} |")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description="Try every fault and count what is lost.")
    parser.add_argument("words", nargs="*", help="of the names of the faults to try")
    parser.add_argument("--quick", action="store_true", help="a few times each")
    args = parser.parse_args()
    signals.heed()
    chosen = [
        fault for fault in FAULTS if not args.words or any(w in fault.name for w in args.words)
    ]
    counts, begun = {}, time.monotonic()
    for fault in chosen:
        start = time.monotonic()
        counts[fault] = count = tried(fault, fault.quick_times if args.quick else fault.times)
        seconds = time.monotonic() - start
        print(f"{fault.name}: {count.times:,} times, {len(count.lost)} lost, {seconds:.1f} s")
        for line in [count.note, *count.lost[:20]]:
            if line:
                print(f"    {line}")
    if not (args.quick or args.words):
        sys.path.append(str(DOCS / "make"))
        from marked import fill

        page = DOCS / "evidence" / "reliability.md"
        fill(page, "faults", fault_table(counts, time.monotonic() - begun))
        with tempfile.TemporaryDirectory(prefix="costs-") as folder:
            fill(page, "costs", cost_table(costs.costs(Path(folder))))
    return 1 if any(count.lost for count in counts.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
