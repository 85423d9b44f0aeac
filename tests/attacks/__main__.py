"""Attacks on a service of this machine, counted: ``make attacks``, an hour.

Each attack runs against a service of its own, without a proxy and behind each of examples/service
that is installed, while another team asks.  The exit
code is 1 if an attack costs the others, or the machine, more than it may.  --quick is the same in
a minute, behind nginx alone, and writes nothing.  Words choose attacks by their names.

Nothing connects to another machine, and every attack ends by itself.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

from attacks import strangers, teams
from attacks.rig import Attack, Outcome, attacked
from proxies import PROXIES

DECLARED = ("--guard", "declared-search", "--space-size", "1000000000", "--delta", "0.1")
BALANCED = ("--guard", "fixed-sequence", "--epsilon", "0.4", "--delta", "0.1",
            "--metric", "balanced_accuracy", "--max-queries", "1000000000")  # fmt: skip
ATTACKS = [
    Attack(strangers.pipelines),
    Attack(strangers.idle),
    Attack(strangers.handshakes),
    Attack(strangers.slow_heads),
    Attack(strangers.slow_bodies),
    Attack(strangers.long_heads),
    Attack(strangers.refused),
    Attack(strangers.malformed),
    Attack(teams.reports, "red", DECLARED, 80, key=999_999_999, n_answers=100_000),
    Attack(teams.pages, "red", DECLARED, 80, key=999_999_999, n_answers=100_000),
    Attack(teams.long_blocks, "red", BALANCED, teams.SMALL),
    Attack(teams.large_blocks, "red"),
    Attack(teams.held_bodies, "red"),
    Attack(teams.empty_blocks, "small"),
]
# what an attack may cost at most: seconds of the others, octets of memory, of logs in a second
MOST_WAIT, MOST_MEMORY, MOST_LOGS = 5.0, 2**28, 10_000


def faults(outcome: Outcome) -> list[str]:
    """What cost more than it may."""
    found = []
    if outcome.failures or not outcome.waits:
        found.append(f"{len(outcome.failures)} calls of others failed: {set(outcome.failures)}")
    if max(outcome.waits, default=0.0) > MOST_WAIT:
        found.append(f"others waited {max(outcome.waits):.1f} s")
    if outcome.memory > MOST_MEMORY:
        found.append(f"{outcome.memory / 2**20:,.0f} MB of memory")
    if outcome.logs > MOST_LOGS * max(outcome.seconds, 1.0):
        found.append(f"{outcome.logs / outcome.seconds / 1000:,.0f} kB of logs a second")
    return found


def row(attack: Attack, proxy: str | None, outcome: Outcome) -> str:
    counts = outcome.counts
    sent = f"{counts.get('connections', 0):,} connections, {counts.get('octets', 0) / 1e6:,.0f} MB"
    if counts.get("requests"):
        sent = f"{counts['requests']:,} requests, {sent}"
    n_asked = len(outcome.waits) + len(outcome.failures)
    median = f"{1000 * statistics.median(outcome.waits):,.0f}" if outcome.waits else ""
    longest = f"{1000 * max(outcome.waits):,.0f}" if outcome.waits else ""
    cells = [
        attack.run.__doc__.splitlines()[0].rstrip("."), proxy or "nothing", sent,
        f"{len(outcome.waits):,} of {n_asked:,}", median, longest,
        f"{outcome.memory / 1e6:,.0f}", f"{outcome.logs / outcome.seconds / 1000:,.1f}",
        f"{outcome.database / outcome.seconds / 1000:,.1f}",
    ]  # fmt: skip
    return f"| {' | '.join(cells)} |"


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="attacks", description="Attack a service of this machine."
    )
    parser.add_argument("words", nargs="*", help="of the names of the attacks to try")
    parser.add_argument("--quick", action="store_true", help="in a minute, behind nginx alone")
    parser.add_argument("--seconds", type=float, default=60.0, help="of an attack (default: 60)")
    parser.add_argument("--proxy", action="append", choices=["nothing", *PROXIES])
    args = parser.parse_args()
    chosen = [
        each for each in ATTACKS
        if not args.words or any(word in each.run.__name__ for word in args.words)
    ]  # fmt: skip
    seconds = 1.5 if args.quick else args.seconds
    proxies = args.proxy or (["nginx"] if args.quick else ["nothing", *PROXIES])
    for name in proxies:
        if name != "nothing" and shutil.which(name) is None:
            print(f"SKIPPED: {name} is not installed")
    proxies = [name for name in proxies if name == "nothing" or shutil.which(name)]
    n_faults, rows, begun = 0, [], time.monotonic()
    for attack in chosen:
        for name in proxies:
            proxy = None if name == "nothing" else name
            with tempfile.TemporaryDirectory(prefix="attacks-") as folder:
                outcome = attacked(attack, proxy, seconds, Path(folder))
            rows.append(row(attack, proxy, outcome))
            found = faults(outcome)
            print(rows[-1], *found, sep="\n    ", flush=True)
            if proxy is not None:
                n_faults += len(found)
    print(f"{time.monotonic() - begun:.0f} s, {n_faults} faults")
    return 1 if n_faults else 0


if __name__ == "__main__":
    sys.exit(main())
