"""Tries every fault, counts, and writes the tables of docs/reliability.md:

    python tests/faults/run.py

Takes minutes.  Exit code 1 if anything was lost; then nothing is written.  With --quick each
fault is tried a few times and nothing is written; with words, only faults that have one of
them in their names.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

import damage
import disks
import forks
import kills
import openers
from trial import Count, Fault

FAULTS: list[Fault] = [*kills.FAULTS, *disks.FAULTS, *openers.FAULTS, *damage.FAULTS, *forks.FAULTS]


def tried(fault: Fault, times: int) -> Count:
    count = Count()
    with tempfile.TemporaryDirectory(prefix="faults-") as folder:
        fault.run(count, Path(folder), times)
    count.check(count.times >= times, f"tried {count.times} times, not {times}")
    return count


def main() -> int:
    parser = argparse.ArgumentParser(description="Try every fault and count what is lost.")
    parser.add_argument("words", nargs="*", help="of the names of the faults to try")
    parser.add_argument("--quick", action="store_true", help="a few times each")
    args = parser.parse_args()
    chosen = [
        fault for fault in FAULTS if not args.words or any(w in fault.name for w in args.words)
    ]
    counts = {}
    for fault in chosen:
        start = time.monotonic()
        counts[fault] = count = tried(fault, fault.quick_times if args.quick else fault.times)
        seconds = time.monotonic() - start
        print(f"{fault.name}: {count.times:,} times, {len(count.lost)} lost, {seconds:.1f} s")
        print("".join(f"    {line}\n" for line in [count.note, *count.lost[:20]] if line), end="")
    return 1 if any(count.lost for count in counts.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
