"""What rows cost that are counted elsewhere: ``python -m benchmarks.scale`` prints the table.

``python -m benchmarks.scale audits`` prints what an audit of a file takes, and what writing its
answers adds; Linux, 3 GB of disk.

Times of one thread are the thread's own, so that a busy machine hardly shows in them; what takes
several processes or threads is wall time, the best of a few runs.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks.race import Contestant, Race
from radabound_fast import FixedSequence, PackedLosses, RadaBound, pack_losses

M, L, K = 4000, 32, 20_000
SHARD = 1024


def fixed_sequence() -> FixedSequence:
    return FixedSequence(M, epsilon=0.08, delta=0.1, n_vectors=L, seed=1)


def by_mclt() -> RadaBound:
    return RadaBound(M, epsilon=0.3, delta=0.1, n_vectors=L, bound="mclt", seed=1)


def one_thread(losses: Any) -> list[tuple[str, str]]:
    """Nanoseconds a row of what a worker does, and the owner."""
    packed, owner = pack_losses(losses), fixed_sequence()  # which answers whatever is asked here
    task = owner.task()
    partials = [task.reduce(packed[row : row + 1000]) for row in range(0, K, 1000)]
    shard = losses[:, :SHARD]
    packed_shard = pack_losses(shard)
    cases = [
        ("one process: query_many of bools", lambda: owner.query_many(losses), K),
        ("one process: query_many of packed losses", lambda: owner.query_many(packed), K),
        ("worker: task.reduce of bools", lambda: task.reduce(losses), K),
        ("worker: task.reduce of packed losses", lambda: task.reduce(packed), K),
        (f"worker: a shard of {SHARD} bools", lambda: task.reduce(shard), K),
        (f"worker: a shard of {SHARD}, packed", lambda: task.reduce(packed_shard), K),
        ("owner: guard.take of blocks of 1,000", lambda: owner.take(partials), K),
    ]
    contestants = [Contestant(name, "run()", {"run": run}, n) for name, run, n in cases]
    outcome = Race(contestants, turn=0.02).run(15)
    assert not owner.halted
    rows = [(f"{name}, ns a row", f"{outcome.median(name):.0f}") for name in outcome.names]
    for name in (f"worker: a shard of {SHARD} bools", f"worker: a shard of {SHARD}, packed"):
        rows.append((f"{name}, ps a loss", f"{outcome.median(name) / SHARD * 1e3:.0f}"))
    return rows


def best(run: Callable[[], object], clock: Callable[[], float], n_runs: int = 7) -> float:
    times = []
    for _ in range(n_runs):
        before = clock()
        run()
        times.append(clock() - before)
    return min(times)


def two_threads(losses: Any) -> list[tuple[str, str]]:
    packed = PackedLosses(np.tile(pack_losses(losses).words, (20, 1)), M)
    rows = []
    for name, make in (("fixed-sequence", fixed_sequence), ("mclt", by_mclt)):
        calls = [lambda n=n, make=make: make().query_many(packed, n_threads=n) for n in (1, 2)]
        assert len(calls[0]()) == len(packed)
        wall = [best(call, time.perf_counter) for call in calls]
        work = [best(call, time.process_time) for call in calls]
        rows.append((f"two threads, {name}: faster than one", f"{wall[0] / wall[1]:.2f}"))
        rows.append((f"two threads, {name}: work of both over one's", f"{work[1] / work[0]:.2f}"))
    return rows


def sizes(losses: Any) -> list[tuple[str, str]]:
    task = fixed_sequence().task()
    whole = len(pickle.dumps(task.reduce(losses[:1000]))) / 1000
    shard = len(pickle.dumps(task.reduce(losses[:1000, :SHARD]))) / 1000
    return [
        ("a task, bytes", f"{len(pickle.dumps(task))}"),
        ("a whole partial of 1,000 rows, bytes a row", f"{whole:.1f}"),
        ("a shard's partial, bytes a row", f"{shard:.0f}"),
        ("the rows themselves, packed, bytes a row", f"{-(-M // 64) * 8}"),
    ]


def in_a_process(arguments: list[str]) -> tuple[float, int]:
    """Seconds of processor time that an audit takes, once it has begun, and MB beside its files."""
    code = (
        "import sys, time\n"
        "from radabound_fast import cli\n"
        "cli.main([sys.argv[1], *sys.argv[3:], '--quiet'])\n"  # of a few rows: all is loaded
        "before = time.process_time()\n"
        "cli.main(['audit', '--losses', sys.argv[2], *sys.argv[5:], '--quiet'])\n"
        "print(time.process_time() - before)"
    )
    command = [sys.executable, "-c", code, "audit", *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    most = 0
    while process.poll() is None:
        with contextlib.suppress(OSError), open(f"/proc/{process.pid}/status") as status:
            most = max([most, *(int(r.split()[1]) for r in status if r.startswith("RssAnon"))])
        time.sleep(0.01)
    assert process.stdout is not None and process.returncode == 0
    return float(process.stdout.read()), most // 1024


def audits(folder: str, n_rows: int, m: int, packed: bool) -> Iterator[tuple[str, str]]:
    """Of rows in a file: with the answers printed nowhere, as CSV and as Parquet."""
    block = np.random.default_rng(0).random((10_000, m)) < 0.2
    rows = pack_losses(block).words if packed else block
    few, many = os.path.join(folder, "few.npy"), os.path.join(folder, "many.npy")
    np.save(few, rows)
    stored = np.lib.format.open_memmap(many, "w+", rows.dtype, (n_rows, rows.shape[1]))
    for first in range(0, n_rows, len(rows)):
        stored[first : first + len(rows)] = rows
    del stored
    bits = ["--packed", "--n-samples", str(m)] if packed else []
    for mode, options in (
        ("fixed-sequence", ["--epsilon", "0.12"]),
        ("declared space", ["--space-size", str(10**9)]),
    ):
        times = {}
        for output in ("", "a.csv", "a.parquet"):
            written = ["--output", os.path.join(folder, output)] if output else []
            asked = ["--delta", "0.1", *bits, *options, *written]
            times[output], most = in_a_process([many, "--losses", few, *asked])
            what = f"with --output {output}" if output else "without --output"
            size = ""
            if output:
                size = f", {os.path.getsize(os.path.join(folder, output)) / n_rows:.0f} bytes a row"
            name = f"{n_rows:,} rows of {m:,} {'packed ' * packed}losses, {mode}, {what}"
            told = f"{times[output] / n_rows * 1e9:.0f}{size}, {most} MB"
            yield name, told + (f", {times[output] / times['']:.1f} times" if output else "")


def main() -> None:
    if sys.argv[1:] == ["audits"]:
        print("an audit of | ns of processor time a row | \n|---|---|")
        for n_rows, m, packed in (
            (10**7, 1000, True),
            (2 * 10**6, 4000, True),
            (300_000, 4000, False),
        ):
            with tempfile.TemporaryDirectory() as folder:
                for name, value in audits(folder, n_rows, m, packed):
                    print(f"| {name} | {value} |", flush=True)
        return
    losses = np.random.default_rng(0).random((K, M)) < 0.2
    print(f"load before: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores\n")
    print(f"m = {M}, l = {L}, fixed-sequence, k = {K:,} | |\n|---|---|")
    for part in (one_thread, two_threads, sizes):
        for name, value in part(losses):
            print(f"| {name} | {value} |", flush=True)


if __name__ == "__main__":
    main()
