"""The goals, each with what was measured here: ``python -m benchmarks.goals`` (make bench-quick).

Ratios are medians over interleaved rounds in one process.  Every class of CPU has goals of its own;
one with AVX-512 stands in for those without, with their kernel and peers that are held to the same
instructions, in a process of its own.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import betainccinv, betaincinv

from benchmarks import fresh
from benchmarks.growth import LINES, decade_factors
from benchmarks.peers import (
    GEMM,
    GEMM_FROM_UINT8,
    PEERS_LIKE,
    Case,
    contestants,
    limit,
    limit_capabilities,
    limit_in_threads,
    one_by_one,
)
from benchmarks.race import CORES, Contestant, Outcome, Race, pinned
from radabound_fast import DeclaredSearch, FixedSequence, ModelPool, PackedLosses, RadaBound
from radabound_fast._kernels.rows import (
    active_kernel,
    choose_kernel,
    kernels,
    pack_rows,
    sums_of_rows,
)
from radabound_fast.bounds import BOUNDS, betting_interval, binomial_interval, paired_interval
from radabound_fast.files.reading import open_losses
from radabound_fast.guards.answers import RadaBoundAnswers
from radabound_fast.rows.studentised import StudentisedSums

CLASSES = ["amx", "avx512", "avx2", "neon"]  # the first kernel that a CPU runs
MANY_ROWS = 2000
SLICED_ROWS = 8192
# without kept tables too few for bit-sliced blocks: fewer than four of them
PARTS_ROWS = {"portable": 240, "neon": 500}

# ---- the table of goals --------------------------------------------------------------------------

OVER = "over the register-only limit"

# what, the sense, the unit ("x": a ratio of times in one interleaved run), and the bound for each
# of CLASSES; None: no goal there
Bounds = tuple[float | None, float | None, float | None, float | None]
WANTED: list[tuple[str, str, str, Bounds]] = [
    # blocks of packed queries, with extremes, the halting test and the answers
    (f"(4000, 32), 2000 rows: {OVER}", "<=", "x", (1.2, 1.2, 1.2, 1.2)),
    ("(4000, 32), 2000 rows: faster than numkong", ">=", "x", (1.6, 1.6, 4.5, None)),
    ("(4000, 32), 2000 rows: faster than numba", ">=", "x", (2.8, 2.8, 2.5, None)),
    ("(4000, 32), 2000 rows: faster than faiss.hammings", ">=", "x", (3.3, 3.3, 4.3, None)),
    ("(4000, 32), 2000 rows: faster than simsimd", ">=", "x", (3.8, 3.8, 3.8, None)),
    ("(4000, 32), 2000 rows: faster than the best sgemm block", ">=", "x", (24, 24, None, None)),
    ("(4000, 32), 2000 rows: faster than sgemm from uint8", ">=", "x", (28, 28, None, None)),
    ("(4000, 32), 511 rows: faster than numba", ">=", "x", (None, None, 1.7, None)),
    ("(4000, 32), 256 rows: faster than numba", ">=", "x", (None, None, 1.5, None)),
    (f"(4000, 256), 2000 rows: {OVER}", "<=", "x", (1.2, 1.2, 1.2, 1.2)),
    (f"(100000, 32), 1000 rows: {OVER}", "<=", "x", (1.2, 1.2, 1.2, 1.2)),
    ("(100000, 32), 1000 rows: faster than numkong", ">=", "x", (1.25, 1.25, None, None)),
    ("(100000, 32), 1000 rows: faster than numba", ">=", "x", (2.2, 2.2, 1.8, None)),
    ("(100000, 32), 1000 rows: faster than faiss.hammings", ">=", "x", (2.2, 2.2, 3.0, None)),
    (f"(1000, 32), 2000 rows: {OVER}", "<=", "x", (1.3, 1.3, 1.3, 1.3)),
    # one kernel against another
    ("bit-sliced blocks, (4000, 32): over the plain kernel", "<=", "x", (None, 0.75, None, None)),
    ("bit-sliced blocks, (4000, 256): over the plain kernel", "<=", "x", (None, 0.52, 0.6, 0.6)),
    ("bit-sliced blocks, (4000, 1024): over the plain kernel", "<=", "x", (None, 0.52, None, None)),
    (
        "bit-sliced blocks, portable, (4000, 256): over its plain kernel",
        "<=",
        "x",
        (None, 0.35, None, None),
    ),
    ("(4000, 256), 8192 rows: faster than numkong", ">=", "x", (3, 3, None, None)),
    ("portable over avx512, (4000, 32), 8192 rows", "<=", "x", (None, 6, None, None)),
    ("avx2 over avx512, (4000, 32), 8192 rows", "<=", "x", (None, 2, None, None)),
    ("generated signs over stored, (4000, 32), 64 rows", "<=", "x", (1.15, 1.15, 1.15, 1.15)),
    ("generated signs over stored, (4000, 32), 2000 rows", "<=", "x", (1.15, 1.15, 1.15, 1.15)),
    ("generated signs over stored, (100000, 32), 64 rows", "<=", "x", (1.15, 1.15, 1.15, 1.15)),
    # one query a call
    ("packed query, (4000, 32): over the kernel alone", "<=", "x", (2.0, 2.0, 1.7, 1.7)),
    ("packed query, (4000, 32): faster than numkong", ">=", "x", (3.5, 3.5, None, None)),
    ("packed query, (4000, 32): faster than faiss", ">=", "x", (3.5, 3.5, 2.3, None)),
    ("packed query, (4000, 32): faster than numba", ">=", "x", (3.5, 3.5, 1.8, None)),
    ("packed query, (4000, 32): faster than sgemv", ">=", "x", (30, 30, None, None)),
    ("query(uint8): over packing + sums in C", "<=", "x", (1.6, 1.6, 1.6, 1.6)),
    # real-valued losses
    ("float32, (4000, 32): faster than sgemv", ">=", "x", (3.0, 3.0, 2.5, None)),
    ("float32, (4000, 32): faster than the best sgemm block", ">=", "x", (1.4, 1.4, 1.0, None)),
    ("float64, (4000, 32): faster than blocked dgemm", ">=", "x", (2.0, 2.0, 1.5, None)),
    # a pool of models: signed sums studentised, and into the extremes
    ("studentised, (4000, 1000): over a scan of 1024 vectors", "<=", "x", (1.3, 1.3, 1.3, 1.3)),
    ("studentised, (4000, 1000): faster than sgemm", ">=", "x", (15, 15, 5, None)),
    # seconds of CPU: 1.5 of two cores
    ("a pool of 10^6 packed models, (4000, 1000), two threads", "<=", "s", (3, 3, 4.5, None)),
    # growth
    *(
        (f"10 times the {axis}: time over 10 times the time, {decade} decade", sense, "x", bounds)
        for axis in LINES
        for decade, sense, bounds in [
            ("worst", "<=", (1.25, 1.25, 1.25, 1.25)),
            ("best", ">=", (0.75, 0.75, 0.75, 0.75)),
        ]
    ),
]

# what no instruction set is asked for
OF_ANY_CPU: list[tuple[str, str, str, float]] = [
    ("query_many(int64): share of numpy.max's bandwidth", ">=", "x", 0.9),
    ("trace=True over the plain call, (4000, 32), k = 100,000", "<=", "x", 1.15),
    ("n_threads=2, (4000, 32), k = 100,000: faster than one thread", ">=", "x", 1.7),
    ("the same of two register-only loops: what the machine gives", ">=", "x", 1.7),
    ("warm memory-mapped file of 1,000,000 x 500 bytes: over memory", "<=", "x", 1.1),
    ("low and high, each of 10^6 answers of fixed-sequence", "<=", "us", 0.2),
    ("low and high, each of 10^6 counts at one level", "<=", "us", 0.2),
    ("low and high, each of 10^6 counts whose levels all differ", "<=", "us", 0.2),
    ("the last: faster than scipy.special.betaincinv", ">=", "x", 5),
    ("low and high of one answer of fixed-sequence", "<=", "us", 20),
    ("low and high of one answer of a declared search", "<=", "us", 20),
    ("packed query of fixed-sequence, nothing read: over bernstein", "<=", "x", 1.1),
    ("DeclaredSearch.query_many of packed losses, k = 100,000: over the means", "<=", "x", 2),
    ("DeclaredSearch, 10^6 int keys: kept of each", "<=", "B", 32),
    ("query against a baseline over one without, one at a time", "<=", "x", 1.3),
    ("query against a baseline over one without, many at a time", "<=", "x", 1.3),
    ("betting_interval of 10^5 losses", "<=", "ms", 5),
    ("paired_interval, 400 of 4,000 rows differ", "<=", "us", 200),
    ("paired_interval, 200,000 of 10^6 rows differ", "<=", "ms", 5),
    ("a guard at (4000, 32): resident, one of 2000", "<=", "KB", 40),
    ("a guard at (4000, 32): what tracemalloc sees", "<=", "KB", 40),
    ("signs generated, (10^8, 32): peak memory beside the input", "<=", "MB", 2),
    ("import radabound_fast: time", "<=", "ms", 1),
    ("from radabound_fast import RadaBound, beyond numpy: time", "<=", "ms", 20),
    ("from radabound_fast import Holdout, beyond numpy: time", "<=", "ms", 20),
    ("from radabound_fast import Holdout, beyond numpy: memory", "<=", "MB", 6),
    ("packed query of an opened guard, durability='process'", "<=", "us", 12),
    ("guarded_map, a candidate: beside fit_predict, query and joblib", "<=", "us", 2),
    ("HoldoutSearchCV, a candidate: beside clone, fit, predict, query", "<=", "us", 20),
    ("audit of a .npy file of 10^5 x 4,000 bytes: share of numpy.max's", ">=", "x", 0.8),
]


@dataclass(frozen=True)
class Goal:
    """One line of the table: `measured` should be at most, or at least, `bound`."""

    what: str
    measured: float
    sense: str  # "<=" or ">="
    bound: float
    unit: str = "x"

    @property
    def verdict(self) -> str:
        """What the table says of it."""
        if np.isnan(self.measured):
            return "not measured"
        below = self.measured <= self.bound
        above = self.measured >= self.bound
        return "met" if (below if self.sense == "<=" else above) else "not met"

    def __str__(self) -> str:
        numbers = f"{self.measured:7.2f} {self.sense} {self.bound:5.2f} {self.unit:2}"
        return f"{self.what:80} {numbers} {self.verdict}"


Measured = Iterator[tuple[str, float]]  # what of the table, and how much


@dataclass(frozen=True)
class Effort:
    """How many rounds, and how long each contestant's turn is in seconds."""

    rounds: int
    turn: float

    def race(self, entries: list[Contestant], **options: Any) -> Outcome:
        return Race(entries, self.turn, **options).run(self.rounds)


def ours(name: str, guard: Any, rows: Any, options: str = "") -> Contestant:
    """Rows through a guard in one call, which has seen many."""
    ask = guard.query_many
    for _ in range(3):  # extremes settle, and tables are kept
        ask(rows)
    return Contestant(name, f"ask(rows{options})", {"ask": ask, "rows": rows}, len(rows))


def plain(name: str, guard: Any, packed: PackedLosses) -> Contestant:
    """The same by the plain kernel: too few rows at a time, and no tables kept, for blocks."""
    guard.query_many(packed)
    size = PARTS_ROWS.get(active_kernel(), 1000)
    names = {
        "ask": guard.query_many,
        "free": guard._core.free_tables,
        "parts": [packed[i : i + size] for i in range(0, len(packed), size)],
    }
    return Contestant(name, "for rows in parts: free(); ask(rows)", names, len(packed))


def random_bits(rng: np.random.Generator, n_rows: int) -> PackedLosses:
    """Rows of 4000 losses, half of them 1."""
    words = rng.integers(0, 2**64, (n_rows, 63), np.uint64)
    words[:, -1] >>= np.uint64(32)
    return PackedLosses(words, 4000)


def times_faster(outcome: Outcome, peers: list[str], us: str = "ours") -> float:
    """The best of the peers' times over ours; nan if none of them is here."""
    return min((outcome.ratio(p, us) for p in peers if p in outcome.names), default=float("nan"))


@contextmanager
def kernel(name: str) -> Iterator[None]:
    """Guards made inside use this kernel."""
    before = active_kernel()
    choose_kernel(name)
    try:
        yield
    finally:
        choose_kernel(before)


# ---- blocks of packed queries -----------------------------------------------------------------

# of each shape, n_samples, n_vectors and rows, the peers
PEERS_OF = {
    (4000, 32, MANY_ROWS): {
        "numkong": ["numkong"],
        "numba": ["numba"],
        "faiss.hammings": ["faiss"],
        "simsimd": ["simsimd"],
        "the best sgemm block": GEMM,
        "sgemm from uint8": GEMM_FROM_UINT8,
    },
    (4000, 32, 511): {"numba": ["numba"]},
    (4000, 32, 256): {"numba": ["numba"]},
    (4000, 256, MANY_ROWS): {},
    (100_000, 32, 1000): {"numkong": ["numkong"], "numba": ["numba"], "faiss.hammings": ["faiss"]},
    (1000, 32, MANY_ROWS): {},
    (4000, 256, SLICED_ROWS): {"numkong": ["numkong"]},
}


def blocks(effort: Effort) -> Measured:
    for (n_samples, n_vectors, n_rows), peers in PEERS_OF.items():
        case = Case(n_samples, n_vectors, n_rows)
        names = [name for group in peers.values() for name in group]
        entries = [ours("ours", case.guard(), case.packed), *limit(case), *contestants(case, names)]
        outcome = effort.race(entries)
        shape = f"({n_samples}, {n_vectors}), {n_rows} rows"
        if "register-only limit" in outcome.names:
            yield f"{shape}: {OVER}", outcome.ratio("ours", "register-only limit")
        for label, group in peers.items():
            yield f"{shape}: faster than {label}", times_faster(outcome, group)


def sliced_over_plain(effort: Effort, n_vectors: int) -> float:
    case = Case(4000, n_vectors, SLICED_ROWS)
    entries = [ours("blocks", case.guard(), case.packed), plain("plain", case.guard(), case.packed)]
    return effort.race(entries).ratio("blocks", "plain")


def sliced_blocks(effort: Effort) -> Measured:
    for n_vectors in [32, 256, 1024]:
        what = f"bit-sliced blocks, (4000, {n_vectors}): over the plain kernel"
        yield what, sliced_over_plain(effort, n_vectors)
    with kernel("portable"):
        what = "bit-sliced blocks, portable, (4000, 256): over its plain kernel"
        yield what, sliced_over_plain(effort, 256)


def other_kernels(effort: Effort) -> Measured:
    case, here = Case(4000, 32, SLICED_ROWS), active_kernel()
    entries = [ours(here, case.guard(), case.packed)]
    others = [name for name in ["avx2", "portable"] if name != here and dict(kernels()).get(name)]
    for name in others:
        with kernel(name):
            entries.append(ours(name, case.guard(), case.packed))
    outcome = effort.race(entries)
    for name in others:
        yield f"{name} over {here}, (4000, 32), 8192 rows", outcome.ratio(name, here)


def generated_signs(effort: Effort) -> Measured:
    for n_samples, n_rows in [(4000, 64), (4000, MANY_ROWS), (100_000, 64)]:
        case = Case(n_samples, 32, n_rows)
        entries = [
            ours(signs, case.guard(signs=signs), case.packed) for signs in ["generated", "stored"]
        ]
        ratio = effort.race(entries).ratio("generated", "stored")
        yield f"generated signs over stored, ({n_samples}, 32), {n_rows} rows", ratio


# ---- one query per call -------------------------------------------------------------------------


def single_queries(effort: Effort) -> Measured:
    case = Case(4000, 32, MANY_ROWS)
    row = case.losses[0]
    names = {"pack": pack_rows, "rows": case.losses[:64]}
    packing = Contestant("packing", "pack(rows)", names, 64)
    guard = case.guard()
    here = active_kernel()
    with kernel("avx512" if here == "amx" else here):  # the one of single rows
        alone = case.guard()
    entries = [
        plain("kernel", alone, case.packed),
        packing,
        Contestant("packed", "ask(row)", {"ask": guard.query, "row": case.packed[0]}),
        Contestant("uint8", "ask(row)", {"ask": guard.query, "row": row}),
        *one_by_one(case),
        *contestants(case, ["gemv"]),
    ]
    outcome = effort.race(entries)
    what = "packed query, (4000, 32)"
    yield f"{what}: over the kernel alone", outcome.ratio("packed", "kernel")
    for peer, label in [("numkong",) * 2, ("faiss",) * 2, ("numba",) * 2, ("gemv", "sgemv")]:
        yield f"{what}: faster than {label}", times_faster(outcome, [peer], "packed")
    column = outcome.names.index
    in_c = outcome.times[:, column("packing")] + outcome.times[:, column("kernel")]
    ratio = float(np.median(outcome.times[:, column("uint8")] / in_c))
    yield "query(uint8): over packing + sums in C", ratio


# ---- what users hand over -----------------------------------------------------------------------


def predictions(effort: Effort) -> Measured:
    rng = np.random.default_rng(2)
    y_true = rng.integers(0, 10, 4000)
    right = rng.random((16_000, 4000), np.float32) < 0.8
    y_pred = np.where(right, y_true, 9 - y_true)
    guard = RadaBound(y_true, epsilon=0.999, delta=0.1, seed=1)
    entries = [
        ours("ours", guard, y_pred),
        Contestant("numpy.max", "y_pred.max()", {"y_pred": y_pred}, len(y_pred)),
    ]
    share = effort.race(entries).ratio("numpy.max", "ours")
    yield "query_many(int64): share of numpy.max's bandwidth", share


def threads_and_trace(effort: Effort) -> Measured:
    rows = random_bits(np.random.default_rng(3), 100_000)
    names = {"guard": Case(4000, 32, 1).guard, "rows": rows}
    plain, traced, two = (
        Contestant(options, f"guard().query_many(rows{options})", names, len(rows))
        for options in ["", ", trace=True", ", n_threads=2"]
    )
    ratio = effort.race([plain, traced]).ratio(traced.name, plain.name)
    yield "trace=True over the plain call, (4000, 32), k = 100,000", ratio
    faster = given = float("nan")
    if len(CORES) > 1:
        control = limit_in_threads()
        with pinned(2):
            outcome = effort.race([plain, two, *control], clock=time.perf_counter)
        faster = outcome.ratio(plain.name, two.name)
        given = outcome.ratio(*(each.name for each in control)) if control else given
    yield "n_threads=2, (4000, 32), k = 100,000: faster than one thread", faster
    yield "the same of two register-only loops: what the machine gives", given


def memory_map(effort: Effort) -> Measured:
    rows = random_bits(np.random.default_rng(4), 1_000_000)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "losses.npy"
        np.save(path, rows.words)
        mapped = PackedLosses(np.load(path, mmap_mode="r"), 4000)
        guard = Case(4000, 32, 1).guard()
        entries = [ours("mapped", guard, mapped), ours("memory", guard, rows)]
        ratio = effort.race(entries).ratio("mapped", "memory")
    yield "warm memory-mapped file of 1,000,000 x 500 bytes: over memory", ratio


def real_valued(effort: Effort) -> Measured:
    wanted = {
        "float32": {"sgemv": ["gemv"], "the best sgemm block": GEMM},
        "float64": {"blocked dgemm": GEMM},
    }
    for dtype, peers in wanted.items():
        case = Case(4000, 32, 512, real=True, dtype=dtype)
        entries = [ours("ours", case.guard(), case.losses)]
        outcome = effort.race(entries + contestants(case, ["gemv", *GEMM]))
        for label, names in peers.items():
            what = f"{dtype}, (4000, 32): faster than {label}"
            yield what, times_faster(outcome, names)


def pools(effort: Effort) -> Measured:
    case = Case(4000, 1000, 2048)
    sums, losses = StudentisedSums(case.signs), case.losses.astype(np.float32)
    means = losses.mean(axis=1, dtype=np.float64)
    scales = 1 / np.sqrt(4000 * means * (1 - means))
    signs = np.asarray(case.signs, dtype=np.float32).T.copy()
    extremes = sums.extremes()
    words, into = case.packed.words, [(extremes, means, scales)]
    factors = means[:, np.newaxis].astype(np.float32), scales[:, np.newaxis].astype(np.float32)
    by_numpy = {"losses": losses, "signs": signs, "of_signs": signs.sum(axis=0), "f": factors}
    product = "((losses @ signs - f[0] * of_signs) * f[1]).max(axis=0)"
    sums.update(words, into)
    check("studentised extremes", extremes.highest, eval(product, {}, by_numpy), 1e-4)
    outcome = effort.race(
        [
            Contestant("ours", "update(words, into)", {"update": sums.update, "words": words,
                       "into": into}, 2048),
            ours("scan", Case(4000, 1024, 1).guard(), case.packed),
            Contestant("sgemm", product, by_numpy, 2048),
        ]
    )  # fmt: skip
    what = "studentised, (4000, 1000)"
    yield f"{what}: over a scan of 1024 vectors", outcome.ratio("ours", "scan")
    yield f"{what}: faster than sgemm", outcome.ratio("sgemm", "ours")
    many, start = ModelPool(4000, seed=1), time.process_time()
    while many.n_models < 10**6:
        many.add(case.packed, n_threads=2)
    spent = time.process_time() - start
    check("the scores of a pool", many.intervals().values[-2048:], means)
    yield "a pool of 10^6 packed models, (4000, 1000), two threads", spent


# ---- intervals ----------------------------------------------------------------------------------


def check(what: str, found: Any, expected: Any, rtol: float = 1e-6) -> None:
    """Raises unless they are equal to rounding."""
    if not np.allclose(found, expected, rtol=rtol, atol=0.0):
        raise AssertionError(f"{what} must be as expected")


def clopper_pearson(means: Any, nats: Any, n_samples: int = 4000) -> tuple[Any, Any]:
    """SciPy's exact limits."""
    count, error = np.rint(means * n_samples), np.exp(-nats)
    return (
        betaincinv(count, n_samples - count + 1.0, error),
        betainccinv(count + 1.0, n_samples - count, error),
    )


def many_intervals(effort: Effort) -> Measured:
    case = Case(4000, 32, 10_000)
    guard = case.guard(FixedSequence, epsilon=0.05)
    blocks = [guard.query_many(case.packed) for _ in range(100)]
    answers = RadaBoundAnswers.joined(blocks)
    nats = BOUNDS["fixed-sequence"].free(4000, 0.05, 0.1).nats(answers.numbers[::9973])
    lows, highs = clopper_pearson(answers.values[::9973], nats)
    again = {"again": RadaBoundAnswers.joined, "answers": answers}  # which keep no limits
    check("lows of fixed-sequence", again["again"]([answers]).lows[::9973], lows)
    check("highs of fixed-sequence", again["again"]([answers]).highs[::9973], highs)
    search = DeclaredSearch(4000, 10**6, delta=0.1)
    told = search.query_many(case.packed, keys=np.arange(10_000))
    lows, highs = clopper_pearson(told.values, told.nats + np.log(2 / 0.1))
    check("lows of a declared search", told.lows, lows)
    check("highs of a declared search", told.highs, highs)
    columns = {
        "interval": binomial_interval,
        "counts": np.tile(np.rint(told.values * 4000).astype(np.int64), 100),
        "nats": np.tile(told.nats + np.log(2 / 0.1), 100),
        "different": np.linspace(8.0, 30.0, 10**6),
        "scipy": clopper_pearson,
        "means": told.values,
    }
    found = binomial_interval(columns["counts"], 4000, columns["different"])
    some = slice(None, 10_000)
    lows, highs = clopper_pearson(told.values, columns["different"][some])
    check("lows whose levels all differ", found[0][some], lows)
    check("highs whose levels all differ", found[1][some], highs)
    entries = [
        Contestant("fixed-sequence", "again([answers]).lows", again, 10**6),
        Contestant("search", "interval(counts, 4000, nats)", columns, 10**6),
        Contestant("different", "interval(counts, 4000, different)", columns, 10**6),
        Contestant("scipy", "scipy(means, different[:10_000])", columns, 10**4),
    ]
    outcome = effort.race(entries)
    for name, what in [
        ("fixed-sequence", "answers of fixed-sequence"),
        ("search", "counts at one level"),
        ("different", "counts whose levels all differ"),
    ]:
        measured = outcome.median(name) / 1000.0
        yield f"low and high, each of 10^6 {what}", measured
    yield "the last: faster than scipy.special.betaincinv", outcome.ratio("scipy", "different")


def single_intervals(effort: Effort) -> Measured:
    case = Case(4000, 32, 64)
    row, mean = case.packed[0], case.losses[0].mean()
    search = DeclaredSearch(4000, 10**6, delta=0.1)
    answer = search.query(row, key=3)
    lows, highs = clopper_pearson(mean, answer.nats + np.log(2 / 0.1))
    check("low and high of a declared search", (answer.low, answer.high), (lows, highs))
    guard = case.guard(FixedSequence, epsilon=0.05)
    first = guard.query(row)
    nats = BOUNDS["fixed-sequence"].free(4000, 0.05, 0.1).nats(1)
    expected = clopper_pearson(mean, nats)
    check("low and high of fixed-sequence", (first.low, first.high), expected)
    names = {
        "ask": case.guard(FixedSequence).query,
        "other": case.guard(bound="bernstein").query,
        "search": search.query,
        "row": row,
    }
    entries = [
        Contestant("bernstein", "other(row)", names),
        Contestant("unread", "ask(row)", names),
        Contestant("read", "answer = ask(row); answer.low, answer.high", names),
        Contestant("search", "search(row, key=3)", names),
        Contestant("search, read", "answer = search(row, key=3); answer.low, answer.high", names),
    ]
    outcome = effort.race(entries)
    for what, read, unread in [
        ("fixed-sequence", "read", "unread"),
        ("a declared search", "search, read", "search"),
    ]:
        microseconds = (outcome.median(read) - outcome.median(unread)) / 1000.0
        yield f"low and high of one answer of {what}", microseconds
    what = "packed query of fixed-sequence, nothing read: over bernstein"
    yield what, outcome.ratio("unread", "bernstein")


def declared_searches(effort: Effort) -> Measured:
    rng = np.random.default_rng(5)
    rows = random_bits(rng, 100_000)
    names = {
        "search": lambda: DeclaredSearch(4000, 10**6, delta=0.1),
        "sums": sums_of_rows,
        "rows": rows,
        "words": rows.words,
        "keys": rng.permutation(10**6)[: len(rows)],
    }
    told = names["search"]().query_many(rows, keys=names["keys"])
    check(
        "means of a declared search", told.values, np.bitwise_count(rows.words).sum(axis=1) / 4000.0
    )
    if told.keys != names["keys"].tolist():
        raise AssertionError("the keys of the answers must be those that were given")
    entries = [
        Contestant("means", "sums(words, 4000, packed=True)", names, len(rows)),
        Contestant("ours", "search().query_many(rows, keys=keys)", names, len(rows)),
    ]
    outcome = effort.race(entries)
    what = "DeclaredSearch.query_many of packed losses, k = 100,000: over the means"
    yield what, outcome.ratio("ours", "means")
    yield "DeclaredSearch, 10^6 int keys: kept of each", bytes_a_model()


def bytes_a_model() -> float:
    """What tracemalloc sees of a search that was asked about 10^6 models, 10^4 at a time."""
    rows = PackedLosses(np.random.default_rng(6).integers(0, 2**64, (10_000, 1), np.uint64), 64)
    search = DeclaredSearch(64, 10**7, delta=0.1)
    tracemalloc.start()
    try:
        for first in range(0, 10**6, len(rows)):
            search.query_many(rows, keys=np.arange(first, first + len(rows)) * 7)
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    return kept / search.n_answered


def metrics(effort: Effort) -> Measured:
    rng = np.random.default_rng(6)
    y_true = rng.integers(0, 2, 4000)
    rows = np.where(rng.random((100, 4000)) < 0.2, 1 - y_true, y_true)
    baseline = rows[0]
    names: dict[str, Any] = {"row": rows[1], "rows": rows, "keys": np.arange(100)}
    for name, options in {"plain": {}, "paired": {"baseline": baseline}}.items():
        names[name] = DeclaredSearch(y_true, 10**6, delta=0.1, **options)
    told = names["paired"].query_many(rows, keys=names["keys"])
    gains = (baseline != y_true).mean() - (rows != y_true).mean(axis=1)
    if not np.allclose(told.gains, gains, rtol=0, atol=1e-12):
        raise AssertionError("gains must be differences of error rates")
    entries = [
        Contestant(f"{name}, {what}", f"{name}.{call}", names, n)
        for name in ("plain", "paired")
        for what, call, n in [
            ("one", "query(row, key=1)", 1),
            ("many", "query_many(rows, keys=keys)", 100),
        ]
    ]
    outcome = effort.race(entries)
    for what in ("one", "many"):
        measured = outcome.ratio(f"paired, {what}", f"plain, {what}")
        yield f"query against a baseline over one without, {what} at a time", measured
    losses = {"interval": betting_interval, "losses": rng.beta(1, 9, 10**5)}
    outcome = effort.race([Contestant("betting", "interval(losses, 20.0)", losses)])
    yield "betting_interval of 10^5 losses", outcome.median("betting") / 1e6
    paired = {"interval": paired_interval}
    few, many = "interval(240, 160, 4000, 10.0)", "interval(10**5, 10**5, 10**6, 10.0)"
    outcome = effort.race([Contestant("few", few, paired), Contestant("many", many, paired)])
    yield "paired_interval, 400 of 4,000 rows differ", outcome.median("few") / 1e3
    yield "paired_interval, 200,000 of 10^6 rows differ", outcome.median("many") / 1e6


# ---- memory, import, growth ---------------------------------------------------------------------


def memory(effort: Effort) -> Measured:
    resident, traced = fresh.guard_kilobytes()
    yield "a guard at (4000, 32): resident, one of 2000", resident
    yield "a guard at (4000, 32): what tracemalloc sees", traced
    what = "signs generated, (10^8, 32): peak memory beside the input"
    yield what, fresh.generated_megabytes()
    yield "import radabound_fast: time", fresh.imports("import radabound_fast", effort.rounds)[0]
    for name in ("RadaBound", "Holdout"):
        what = f"from radabound_fast import {name}"
        milliseconds, megabytes = fresh.imports(what, effort.rounds)
        yield f"{what}, beyond numpy: time", milliseconds
        yield f"{what}, beyond numpy: memory", megabytes


# ---- what stands around a query ------------------------------------------------------------------


def opened_guards(effort: Effort) -> Measured:
    case = Case(4000, 32, 64)
    with tempfile.TemporaryDirectory() as folder:
        parameters = {"epsilon": 0.999, "delta": 0.1, "seed": 1}
        with RadaBound.open(
            Path(folder) / "guard.db", 4000, durability="process", **parameters
        ) as guard:
            guard.query_many(case.packed)
            answer = guard.query(case.packed[0])
            if (answer.value, answer.number) != (case.losses[0].mean(), 65):
                raise AssertionError("an opened guard must count its answers")
            names = {"ask": guard.query, "row": case.packed[0]}
            outcome = effort.race([Contestant("ours", "ask(row)", names)])
    yield "packed query of an opened guard, durability='process'", outcome.median("ours") / 1e3


def searches(effort: Effort) -> Measured:
    from joblib import Parallel, delayed
    from sklearn.base import clone
    from sklearn.dummy import DummyClassifier

    from radabound_fast.integrations.joblib import guarded_map
    from radabound_fast.integrations.sklearn import HoldoutSearchCV
    from radabound_fast.spaces import Choice

    rng = np.random.default_rng(7)
    y_true = rng.integers(0, 2, 4000)
    y_preds = list(rng.integers(0, 2, (50, 4000)))
    n = 200

    def fit_predict(candidate: int) -> Any:
        return y_preds[candidate % len(y_preds)]

    def guard() -> RadaBound:
        return RadaBound(y_true, epsilon=0.999, delta=0.1, seed=1)

    def mapped() -> list[float]:
        return [one.value for _, one in guarded_map(guard(), fit_predict, range(n))]

    def by_joblib() -> list[float]:
        task = delayed(fit_predict)
        tasks = (task(candidate) for candidate in range(n))
        query = guard().query
        return [query(found).value for found in Parallel(return_as="generator")(tasks)]

    estimator = DummyClassifier(strategy="constant", constant=0)
    candidates = [{"random_state": i} for i in range(n)]
    X, y, X_holdout = np.zeros((50, 1)), np.arange(50) % 2, np.zeros((4000, 1))

    def searched() -> list[float]:
        search = HoldoutSearchCV(estimator, Choice(candidates), guard=guard(), refit=False)
        search.fit(X, y, X_holdout=X_holdout)
        return search.cv_results_["answer"].tolist()

    def by_hand() -> list[float]:
        query = guard().query
        return [
            query(clone(estimator).set_params(**one).fit(X, y).predict(X_holdout)).value
            for one in candidates
        ]

    pairs = {
        "guarded_map, a candidate: beside fit_predict, query and joblib": (mapped, by_joblib),
        "HoldoutSearchCV, a candidate: beside clone, fit, predict, query": (searched, by_hand),
    }
    for what, (ours, theirs) in pairs.items():
        check(what, ours(), theirs())
        entries = [
            Contestant(name, "f()", {"f": f}, n) for name, f in [("ours", ours), ("theirs", theirs)]
        ]
        outcome = effort.race(entries)
        nanoseconds = outcome.times[:, outcome.names.index("ours")] - outcome.times[:, 1]
        yield what, float(np.median(nanoseconds)) / 1e3


def audits(effort: Effort) -> Measured:
    rows = Case(4000, 32, 100).losses
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "losses.npy"
        np.save(path, np.tile(rows, (1000, 1)))

        def audit() -> int:
            guard = RadaBound(4000, epsilon=0.999, delta=0.1, seed=1)
            return sum(len(guard.query_many(block)) for block in open_losses(path))

        def largest() -> int:
            return max(int(block.max()) for block in open_losses(path))

        if (audit(), largest()) != (100_000, 1):
            raise AssertionError("an audit must read every row")
        entries = [Contestant(f.__name__, "f()", {"f": f}) for f in (audit, largest)]
        share = effort.race(entries).ratio("largest", "audit")
    yield "audit of a .npy file of 10^5 x 4,000 bytes: share of numpy.max's", share


def linear_growth(effort: Effort) -> Measured:
    for axis in LINES:
        slowest, fastest = decade_factors(effort.race, axis)
        where = f"10 times the {axis}: time over 10 times the time"
        yield f"{where}, worst decade", slowest
        yield f"{where}, best decade", fastest


# ---- classes of CPU ------------------------------------------------------------------------------

Group = Callable[[Effort], Measured]

OF_KERNELS: list[Group] = [
    blocks,
    sliced_blocks,
    other_kernels,
    generated_signs,
    single_queries,
    real_valued,
    pools,
    linear_growth,
]
GROUPS: list[Group] = [
    *OF_KERNELS,
    predictions,
    threads_and_trace,
    memory_map,
    many_intervals,
    single_intervals,
    declared_searches,
    metrics,
    memory,
    opened_guards,
    searches,
    audits,
]


def classes_here() -> list[str]:
    """The class of this CPU, and those of lesser ones that it can stand in for."""
    here = active_kernel()
    lesser = {"amx": ["avx512", "avx2"], "avx512": ["avx2"]}.get(here, [])
    return [here, *(name for name in lesser if dict(kernels()).get(name))]


def wanted_of(cpu: str) -> dict[str, tuple[str, str, float]]:
    """Sense, unit and bound of every goal of a class; plain C is asked for what NEON is."""
    column = CLASSES.index(cpu) if cpu in CLASSES else CLASSES.index("neon")
    found = {what: (sense, unit, bounds[column]) for what, sense, unit, bounds in WANTED}
    return {
        what: (sense, unit, bound)
        for what, (sense, unit, bound) in found.items()
        if bound is not None
    }


def goals_of(group: Group, effort: Effort, cpu: str) -> Iterator[Goal]:
    """What a group measures, where there is a goal for this class."""
    wanted = wanted_of(cpu) | {what: rest for what, *rest in OF_ANY_CPU}
    for what, measured in group(effort):
        if what in wanted:
            sense, unit, bound = wanted[what]
            yield Goal(what, measured, sense, bound, unit)


def goals_in_stead(cpu: str, rounds: int, only: str = "") -> Iterator[Goal]:
    """The goals of a lesser class, in a process whose libraries use no more than that has."""
    command = [sys.executable, "-m", "benchmarks.goals", "--cpu", cpu, "--json"]
    command += ["--rounds", str(rounds), "--only", only]
    folder = Path(__file__).parents[1]
    environment = os.environ | PEERS_LIKE.get(cpu, {})
    done = subprocess.run(command, cwd=folder, env=environment, stdout=subprocess.PIPE, check=True)
    for line in done.stdout.decode().splitlines():
        if line.startswith("{"):
            yield Goal(**json.loads(line))
        else:
            print(line)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", default="", help="groups to run, by part of their name")
    parser.add_argument(
        "--cpu", choices=CLASSES, help="a class of CPU; default: all there are here"
    )
    parser.add_argument("--json", action="store_true", help="a line of JSON for each goal")
    options = parser.parse_args()
    start, n_met, n_goals = time.perf_counter(), 0, 0

    told = set()

    def tell(goal: Goal) -> None:
        nonlocal n_met, n_goals
        told.add(goal.what)
        print(json.dumps(asdict(goal)) if options.json else goal, flush=True)
        n_goals += 1
        n_met += goal.verdict == "met"

    here, *lesser = [options.cpu] if options.cpu else classes_here()
    if options.cpu:
        choose_kernel(options.cpu)
        limit_capabilities(options.cpu)
    with pinned():
        for group in OF_KERNELS if options.cpu else GROUPS:
            if options.only in group.__name__:
                for goal in goals_of(group, Effort(options.rounds, 0.004), here):
                    tell(goal)
    if not options.only:
        for what in wanted_of(here).keys() - told:
            raise AssertionError(f"nothing has measured {what!r}")
    for cpu in lesser:
        print(f"as a CPU of class {cpu}, and peers as they are there:")
        for goal in goals_in_stead(cpu, options.rounds, options.only):
            tell(goal)
    if not options.json:
        print(f"{n_met} of {n_goals} met, in {time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
