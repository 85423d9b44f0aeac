"""What rows cost that are counted elsewhere: ``python -m benchmarks.scale`` prints the table.

``python -m benchmarks.scale models`` prints what the owner of a declared search takes for 10^8
models whose partials come in, and in how much memory; Linux.

``python -m benchmarks.scale audits`` prints what an audit of a file takes, and what writing its
answers adds; Linux, 3 GB of disk.

``python -m benchmarks.scale tables`` prints what an audit of a Parquet file of 1,000 columns takes,
beside the same rows as .npy.

Times of one thread are the thread's own, so that a busy machine hardly shows in them; what takes
several processes or threads is wall time, the best of a few runs.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks.race import Contestant, Race
from radabound_fast import DeclaredSearch, FixedSequence, PackedLosses, RadaBound, pack_losses

M, L, K = 4000, 32, 20_000
SHARD = 1024
N_MODELS = 10**8
BLOCK = 10_000  # models of a partial
SUFFIXES = (".npy", ".parquet")
Y_TRUE = np.random.default_rng(1).integers(0, 2, M).astype(np.int8)


def fixed_sequence() -> FixedSequence:
    return FixedSequence(M, epsilon=0.08, delta=0.1, n_vectors=L, seed=1)


def by_mclt() -> RadaBound:
    return RadaBound(M, epsilon=0.3, delta=0.1, n_vectors=L, bound="mclt", seed=1)


def declared(n_best: int | None = None, judged: Any = M) -> DeclaredSearch:
    return DeclaredSearch(judged, N_MODELS, delta=0.1, n_best=n_best)


def race(cases: list[tuple[str, Callable[[], Any]]]) -> list[tuple[str, float]]:
    """Nanoseconds a row of each, of which none changes the state of another."""
    contestants = [Contestant(name, "run()", {"run": run}, K) for name, run in cases]
    outcome = Race(contestants, turn=0.02).run(15)
    return [(name, outcome.median(name)) for name in outcome.names]


def one_thread(losses: Any) -> Iterator[tuple[str, str]]:
    """Nanoseconds a row of what a worker does, and the owner."""
    packed, owner = pack_losses(losses), fixed_sequence()  # which answers whatever is asked here
    task, keys = owner.task(), np.arange(K)
    partials = [task.reduce(packed[row : row + 1000]) for row in range(0, K, 1000)]
    shard = losses[:, :SHARD]
    packed_shard = pack_losses(shard)
    cases = [
        ("one process: query_many of bools", lambda: owner.query_many(losses)),
        ("one process: query_many of packed losses", lambda: owner.query_many(packed)),
        ("worker: task.reduce of bools", lambda: task.reduce(losses)),
        ("worker: task.reduce of packed losses", lambda: task.reduce(packed)),
        (f"worker: a shard of {SHARD} bools", lambda: task.reduce(shard)),
        (f"worker: a shard of {SHARD}, packed", lambda: task.reduce(packed_shard)),
        ("owner: guard.take of blocks of 1,000", lambda: owner.take(partials)),
    ]
    for name, median in race(cases):
        yield f"fixed order, {name}, ns a row", f"{median:.0f}"
        if "shard" in name:
            yield f"fixed order, {name}, ps a loss", f"{median / SHARD * 1e3:.0f}"
    assert not owner.halted
    search, best = declared(), declared(10)
    of_labels = declared(10, Y_TRUE).task()
    predictions = Y_TRUE ^ losses
    blocks = [
        [
            one.reduce(packed[row : row + 1000], keys=keys[row : row + 1000])
            for row in range(0, K, 1000)
        ]
        for one in (search.task(), best.task())
    ]
    cases = [
        ("one process: query_many of packed losses", lambda: search.query_many(packed, keys=keys)),
        (
            "worker: task.reduce of predictions, int8",
            lambda: of_labels.reduce(predictions, keys=keys),
        ),
        ("worker: task.reduce of packed losses", lambda: best.task().reduce(packed, keys=keys)),
        ("owner: search.take of blocks of 1,000", lambda: search.take(blocks[0])),
        ("owner: the same, with keys=", lambda: search.take(blocks[0], keys=range(K))),
        ("owner: the same, with n_best=10", lambda: best.take(blocks[1], keys=range(K))),
    ]
    for name, median in race(cases):
        yield f"declared space, {name}, ns a row", f"{median:.0f}"
        if "predictions" in name:
            yield f"declared space, {name}, ps a prediction", f"{median / M * 1e3:.0f}"


def best(run: Callable[[], object], clock: Callable[[], float], n_runs: int = 7) -> float:
    times = []
    for _ in range(n_runs):
        before = clock()
        run()
        times.append(clock() - before)
    return min(times)


def two_threads(losses: Any) -> Iterator[tuple[str, str]]:
    packed = PackedLosses(np.tile(pack_losses(losses).words, (20, 1)), M)
    keys = np.arange(len(packed))
    task, searches = by_mclt().task(), declared(10)
    calls: list[tuple[str, Callable[[int], Any]]] = [
        ("query_many, fixed-sequence", lambda n: fixed_sequence().query_many(packed, n_threads=n)),
        ("query_many, mclt", lambda n: by_mclt().query_many(packed, n_threads=n)),
        ("task.reduce, fixed order", lambda n: task.reduce(packed, n_threads=n)),
        (
            "task.reduce, declared space",
            lambda n: searches.task().reduce(packed, keys=keys, n_threads=n),
        ),
    ]
    for name, call in calls:
        assert len(call(1)) == len(call(2)) == len(packed)
        both = [lambda n=n, call=call: call(n) for n in (1, 2)]
        wall = [best(run, time.perf_counter) for run in both]
        work = [best(run, time.process_time) for run in both]
        yield f"two threads, {name}: faster than one", f"{wall[0] / wall[1]:.2f}"
        yield f"two threads, {name}: work of both over one's", f"{work[1] / work[0]:.2f}"


def sizes(losses: Any) -> Iterator[tuple[str, str]]:
    def a_row(partial: Any) -> str:
        return f"{len(pickle.dumps(partial)) / 1000:.1f}"

    task, rows = fixed_sequence().task(), losses[:1000]
    yield "fixed order, a task, bytes", f"{len(pickle.dumps(task))}"
    yield "fixed order, a partial of 1,000 rows, bytes a row", a_row(task.reduce(rows))
    with_ids = task.reduce(rows, ids=np.arange(1000))
    yield "fixed order, the same with ids, bytes a row", a_row(with_ids)
    yield "fixed order, a shard's partial, bytes a row", a_row(task.reduce(rows[:, :SHARD]))
    for name, search in (
        ("losses", declared(10)),
        ("labels", declared(10, Y_TRUE)),
    ):
        yield f"declared space, a task of {name}, bytes", f"{len(pickle.dumps(search.task()))}"
    for name, search in (("n_best=10", declared(10)), ("all answers stored", declared())):
        partial = search.task().reduce(rows, keys=np.arange(1000))
        yield f"declared space, a partial of 1,000 rows, {name}, bytes a row", a_row(partial)
    yield "the rows themselves, packed, bytes a row", f"{-(-M // 64) * 8}"


def models(n_models: int, n_best: int | None) -> None:
    """Print what the owner takes for so many models, whose counts are drawn."""
    search = declared(n_best)
    task, rng = search.task(), np.random.default_rng(0)
    drawn = rng.binomial(M, 0.2, 100 * BLOCK)
    before, seconds = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, 0.0

    def partials() -> Iterator[Any]:
        nonlocal seconds
        for first in rng.permutation(n_models // BLOCK) * BLOCK:
            begin = time.process_time()
            start, keys = rng.integers(99 * BLOCK), np.arange(first, first + BLOCK)
            partial = task.from_counts(drawn[start : start + BLOCK], keys=keys)
            seconds += time.process_time() - begin  # which is the workers'
            yield partial

    begin = time.process_time()
    search.take(partials(), keys=range(n_models))
    seconds = time.process_time() - begin - seconds
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    what = "all answers stored" if n_best is None else f"n_best={n_best}"
    print(
        f"| {n_models:,} models, {what} | {seconds / n_models * 1e9:.0f} | {most / 1024:.0f} MB |",
        flush=True,
    )
    print(f"\n{search.report()}\n" if n_best else "", flush=True)


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


def tables(folder: str, n_rounds: int = 9) -> Iterator[tuple[str, ...]]:
    """Seconds of processor time of whole processes, .npy and Parquet in turn: medians."""
    import pyarrow.parquet

    labels = np.random.default_rng(0).integers(0, 2, 1000)
    rows = labels ^ (np.random.default_rng(1).random((20_000, 1000)) < 0.2)
    for dtype, turned in (*((each, False) for each in ("int64", "float64", "int8", "bool")),
                          ("int8", True)):  # fmt: skip
        stored, names = rows.astype(dtype), [os.path.join(folder, f"p{e}") for e in SUFFIXES]
        np.save(os.path.join(folder, "y.npy"), labels.astype(dtype))
        np.save(names[0], stored.T if turned else stored)
        columns = stored if turned else stored.T
        table = {f"{number}": np.ascontiguousarray(one) for number, one in enumerate(columns)}
        pyarrow.parquet.write_table(pyarrow.table(table), names[1])
        seconds: list[list[float]] = [[], []]
        for _ in range(n_rounds):
            for name, times in zip(names, seconds, strict=True):
                command = [
                    *(sys.executable, "-m", "radabound_fast", "audit", "--quiet", "--delta", "0.1"),
                    *("--space-size", "20000", "--labels", os.path.join(folder, "y.npy")),
                    *("--predictions", name, *(["--transpose"] if turned else [])),
                ]
                before = resource.getrusage(resource.RUSAGE_CHILDREN)
                subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
                after = resource.getrusage(resource.RUSAGE_CHILDREN)
                times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        npy, parquet = map(statistics.median, seconds)
        what = "20,000 columns of 1,000" if turned else "20,000 rows of 1,000"
        yield f"{what}, {dtype}", f"{npy:.2f}", f"{parquet:.2f}", f"{parquet / npy:.1f}"


def main() -> None:
    if sys.argv[1:] == ["tables"]:
        print("predictions | `.npy` | Parquet | times |\n|---|---|---|---|")
        with tempfile.TemporaryDirectory() as folder:
            for row in tables(folder):
                print(f"| {' | '.join(row)} |", flush=True)
        return
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
    if sys.argv[1:2] == ["models"]:
        if len(sys.argv) == 2:  # each in a process of its own, whose memory is its own
            print(
                "the owner takes | ns of processor time a model | memory \n|---|---|---|",
                flush=True,
            )
            for n, n_best in ((N_MODELS // 10, ""), (N_MODELS // 10, "10"), (N_MODELS, "10")):
                command = [sys.executable, "-m", "benchmarks.scale", "models", str(n), n_best]
                subprocess.run(command, check=True)
        else:
            models(int(sys.argv[2]), int(sys.argv[3]) if sys.argv[3] else None)
        return
    losses = np.random.default_rng(0).random((K, M)) < 0.2
    print(f"load before: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores\n")
    print(f"m = {M}, l = {L}, k = {K:,} | |\n|---|---|")
    for part in (one_thread, two_threads, sizes):
        for name, value in part(losses):
            print(f"| {name} | {value} |", flush=True)


if __name__ == "__main__":
    main()
