"""Attacks on a service of this machine, counted: ``make attacks``, an hour.

Each attack runs against a service of its own, without a proxy and behind each of examples/service
that is installed, while another team asks.  The counts, and what answers tell of labels, go into
docs/evidence/attacks.md.  The exit code is 1 if an attack behind a proxy, or by a team, costs the
others or the machine more than it may.  --quick is a minute of it, behind nginx alone and without
the attacks on labels, which the tests make, and writes nothing; nor does a run that chooses attacks
by words of their names.

Nothing connects to another machine, and every attack ends by itself.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import sys
import tempfile
import textwrap
import time
from dataclasses import replace
from datetime import date
from pathlib import Path

import numpy as np
from attacks import labels, strangers, teams
from attacks.rig import Attack, Outcome, attacked
from proxies import PROXIES

PAGE = Path(__file__).parents[2] / "docs" / "evidence" / "attacks.md"
NOTHING = "nothing"  # in front
DECLARED = ("--guard", "declared-search", "--space-size", "1000000000", "--delta", "0.1")
BALANCED = ("--guard", "fixed-sequence", "--epsilon", "0.4", "--delta", "0.1",
            "--metric", "balanced_accuracy", "--max-queries", "1000000000")  # fmt: skip
SMALL_SEARCH = {"serve": DECLARED, "n_samples": teams.SMALL, "key": 999_999_999}
LONG_RECORD = {**SMALL_SEARCH, "n_answers": 1_000_000}
ATTACKS = [
    Attack(strangers.pipelines),
    Attack(strangers.idle),
    Attack(strangers.handshakes),
    Attack(strangers.slow_heads),
    Attack(strangers.slow_bodies),
    Attack(strangers.long_heads),
    Attack(strangers.refused),
    Attack(strangers.malformed),
    Attack(teams.pipelines, "red", **SMALL_SEARCH),
    Attack(teams.reports, "red", **LONG_RECORD),
    Attack(teams.reports_of_many, "owner", **LONG_RECORD),
    Attack(teams.reports_of_many, "red", **LONG_RECORD, whose="red"),
    Attack(teams.pages, "red", **LONG_RECORD),
    Attack(teams.long_blocks, "red", BALANCED, teams.SMALL),
    Attack(teams.large_blocks, "red"),
    Attack(teams.held_bodies, "red"),
    Attack(teams.empty_blocks, "small"),
]
# what an attack may cost: seconds of the others; octets of memory; octets of logs a second, and of
# the database where no answer is given
MOST_WAIT, MOST_MEMORY, MOST_LOGS, MOST_DATABASE = 5.0, 2**28, 10_000, 100_000
N_MODELS = 10  # of each error, in attacks on labels


# ---- what one client can cost the others ---------------------------------------------------------


def faults(attack: Attack, outcome: Outcome) -> list[str]:
    """What cost more than it may."""
    found = []
    if outcome.failures or not outcome.waits:
        found.append(f"{len(outcome.failures)} calls of others failed: {set(outcome.failures)}")
    if (longest := max(outcome.waits + outcome.health, default=0.0)) > MOST_WAIT:
        found.append(f"others waited {longest:.1f} s")
    if outcome.memory > MOST_MEMORY:
        found.append(f"{outcome.memory / 1e6:,.0f} MB of memory")
    if outcome.logs > MOST_LOGS * max(outcome.seconds, 1.0):
        found.append(f"{outcome.logs / outcome.seconds / 1000:,.0f} kB of logs a second")
    if attack.team == "small" and outcome.database > MOST_DATABASE * max(outcome.seconds, 1.0):
        found.append(f"{outcome.database / outcome.seconds / 1000:,.0f} kB of database a second")
    return found


def title(attack: Attack) -> str:
    by = ", by the owner" if attack.team == "owner" else ""
    return attack.run.__doc__.splitlines()[0].rstrip(".") + by


def row(attack: Attack, proxy: str, outcome: Outcome) -> str:
    counts = outcome.counts
    sent = f"{counts.get('connections', 0):,} connections, {counts.get('octets', 0) / 1e6:,.0f} MB"
    if "requests" in counts:
        statuses = ", ".join(
            f"{name[7:]}: {counts[name]:,}" for name in sorted(counts) if name.startswith("status ")
        )
        sent = f"{counts['requests']:,} requests{statuses and f' ({statuses})'}, {sent}"
    n_asked = len(outcome.waits) + sum("/" not in failure for failure in outcome.failures)
    waits, health = ([1000 * wait for wait in one] for one in (outcome.waits, outcome.health))
    answered = f"{len(waits):,} of {n_asked:,}"
    cells = [
        title(attack), proxy, sent, f"**{answered}**" if outcome.failures else answered,
        f"{statistics.median(waits):,.0f}" if waits else "",
        f"{max(waits):,.0f}" if waits else "",
        f"{max(health):,.0f}" if health else "",
        f"{outcome.memory / 1e6:,.0f}",
        f"{outcome.logs * 86.4e-6 / outcome.seconds:,.1f}",
    ]  # fmt: skip
    return f"| {' | '.join(cells)} |"


def cost_table(rows: list[str], n_faults: int, seconds: float) -> str:
    return "\n".join([
        textwrap.fill(
            f"Made by `make attacks` on {date.today()}: {len(rows)} attacks of {seconds:g} seconds "
            f"each. {n_faults} times one behind a proxy, or by a team, cost more than it may.",
            110,
        ),
        "",
        "| attack | in front | sent | others' calls that were answered | median wait, ms "
        "| longest, ms | of /health | memory, MB | logs, GB a day |",
        "|---|---|---|---|---|---|---|---|---|",
        *rows,
    ])  # fmt: skip


# ---- what answers tell of the labels -------------------------------------------------------------


def label_table() -> str:
    """How many labels each attack learned, the fewest and the most of several models an error."""
    rng = np.random.default_rng(5)
    y_true = rng.integers(0, 2, labels.M)
    lines = [
        f"m = {labels.M:,}; {N_MODELS} models of each error.",
        "",
        "| `--guard` | error of the attacker's model | labels learned for certain |",
        "|---|---|---|",
    ]
    for name, (make, attack) in labels.EXACT.items():
        n = _learned(attack(make(y_true)), y_true)
        lines.append(f"| {name} | none | {n:,} |")
    for name, (_, attack) in labels.FEW_BITS.items():
        for error in labels.ERRORS:
            models = [labels.model_of(y_true, error, rng) for _ in range(N_MODELS)]
            counts = [
                _learned(attack(y_true, model, int((model != y_true).sum())), y_true)
                for model in models
            ]
            lines.append(f"| {name} | {error:g} | {min(counts):,} to {max(counts):,} |")
    return "\n".join(lines)


def _learned(found: dict[int, int], y_true: np.ndarray) -> int:
    wrong = sum(y_true[i] != label for i, label in found.items())
    if wrong:
        raise AssertionError(f"{wrong} labels were learned for certain, and are wrong")
    return len(found)


def main() -> int:
    parser = argparse.ArgumentParser(prog="attacks", description=__doc__.splitlines()[0])
    parser.add_argument("words", nargs="*", help="of the names of the attacks to try")
    parser.add_argument("--quick", action="store_true", help="in a minute, behind nginx alone")
    parser.add_argument("--seconds", type=float, help="of an attack (default: 60; quick: 1)")
    parser.add_argument("--front", action="append", choices=[NOTHING, *PROXIES])
    args = parser.parse_args()
    seconds = args.seconds or (1.0 if args.quick else 60.0)
    fronts = []
    for front in args.front or (["nginx"] if args.quick else [NOTHING, *PROXIES]):
        if front == NOTHING or shutil.which(front):
            fronts.append(front)
        else:
            print(f"SKIPPED: what is behind {front}, which is not installed")
    n_faults, rows, begun = 0, [], time.monotonic()
    for attack in ATTACKS:
        if args.quick:
            attack = replace(attack, n_answers=min(attack.n_answers, 20_000))
        if args.words and not any(word in attack.run.__name__ for word in args.words):
            continue
        for front in fronts:
            if attack.run is strangers.handshakes and front == NOTHING:
                continue  # which speaks no TLS
            with tempfile.TemporaryDirectory(prefix="attacks-") as folder:
                proxy = None if front == NOTHING else front
                outcome = attacked(attack, proxy, seconds, Path(folder))
            rows.append(row(attack, front, outcome))
            found = faults(attack, outcome)
            print(rows[-1], *found, sep="\n    ", flush=True)
            # without a proxy strangers may; a team may nowhere
            n_faults += len(found) if proxy or attack.team else 0
    if not args.words and not args.quick:
        sys.path.append(str(PAGE.parents[1] / "make"))
        from marked import fill

        fill(PAGE, "costs", cost_table(rows, n_faults, seconds))
        fill(PAGE, "labels", label_table())
    print(f"{time.monotonic() - begun:.0f} s, {n_faults} faults")
    return 1 if n_faults else 0


if __name__ == "__main__":
    sys.exit(main())
