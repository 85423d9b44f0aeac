"""The goals, each with what was measured here: ``python -m benchmarks.goals`` (make bench-quick).

Ratios are medians over interleaved rounds in this process.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import betainccinv, betaincinv

from benchmarks import fresh
from benchmarks.growth import LINES, decade_factors
from benchmarks.peers import (
    GEMM,
    GEMM_FROM_UINT8,
    Case,
    contestants,
    limit,
    limit_in_threads,
    one_by_one,
)
from benchmarks.race import CORES, Contestant, Outcome, Race, pinned
from radabound_fast import Holdout, RadaBoundAnswers, _kernel
from radabound_fast.bounds import BOUNDS, betting_interval, binomial_interval
from radabound_fast.mechanisms import DeclaredSearch

PLAIN_ROWS = 2000  # from 2048 on rows go in bit-sliced blocks
SLICED_ROWS = 8192


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


Goals = Iterator[Goal]


@dataclass(frozen=True)
class Effort:
    """How many rounds, and how long each contestant's turn is in seconds."""

    rounds: int
    turn: float

    def race(self, entries: list[Contestant], **options: Any) -> Outcome:
        return Race(entries, self.turn, **options).run(self.rounds)


def ours(name: str, guard: Any, rows: Any, options: str = "", *, packed: bool = True) -> Contestant:
    """Rows through a guard in one call."""
    ask = guard.query_many_packed if packed else guard.query_many
    return Contestant(name, f"ask(rows{options})", {"ask": ask, "rows": rows}, len(rows))


def times_faster(outcome: Outcome, peers: list[str], us: str = "ours") -> float:
    """The best of the peers' times over ours; nan if none of them is here."""
    return min((outcome.ratio(p, us) for p in peers if p in outcome.names), default=float("nan"))


@contextmanager
def kernel(name: str) -> Iterator[bool]:
    """Guards made inside use this kernel; False where this CPU lacks it."""
    usable = dict(_kernel.kernels()).get(name, False)
    if usable:
        _kernel.choose_kernel(name)
    else:
        print(f"SKIPPED: the kernel {name}: this CPU does not run it")
    try:
        yield usable
    finally:
        _kernel.choose_kernel()


# ---- blocks of packed queries -----------------------------------------------------------------


OVER = "over the register-only limit"

# (n_samples, n_vectors): for each peer its contestants, and how many times faster we want to be
FASTER_THAN = {
    (4000, 32): {
        "numkong": (["numkong"], 1.6),
        "numba": (["numba"], 2.8),
        "faiss.hammings": (["faiss"], 3.3),
        "simsimd": (["simsimd"], 3.8),
        "the best sgemm block": (GEMM, 24),
        "sgemm with uint8 conversion": (GEMM_FROM_UINT8, 28),
    },
    (100_000, 32): {
        "numkong": (["numkong"], 1.25),
        "numba": (["numba"], 2.2),
        "faiss.hammings": (["faiss"], 2.2),
    },
}


def plain_kernel(effort: Effort) -> Goals:
    shapes = [(4000, 32, 1.2), (4000, 256, 1.2), (100_000, 32, 1.2), (1000, 32, 1.3)]
    for n_samples, n_vectors, bound in shapes:
        shape = f"({n_samples}, {n_vectors})"
        case = Case(n_samples, n_vectors, PLAIN_ROWS if n_samples < 100_000 else 512)
        wanted = FASTER_THAN.get((n_samples, n_vectors), {})
        names = [name for peers, _ in wanted.values() for name in peers]
        entries = [ours("ours", case.guard(), case.words), *limit(case), *contestants(case, names)]
        others = [] if _kernel.active_kernel() == "avx512" else ["avx512"]
        for name in others:
            with kernel(name) as usable:
                entries += [ours(name, case.guard(), case.words)] if usable else []
        outcome = effort.race(entries)
        over = "register-only limit"
        for name in ["ours", *others]:
            usable = {name, over} <= set(outcome.names)
            ratio = outcome.ratio(name, over) if usable else float("nan")
            what = f"{name.replace('ours', 'plain')} kernel, blocks, {shape}: {OVER}"
            yield Goal(what, ratio, "<=", bound)
        for label, (peers, least) in wanted.items():
            what = f"plain kernel with extremes, {shape}: faster than {label}"
            yield Goal(what, times_faster(outcome, peers), ">=", least)


def sliced(effort: Effort, name: str, n_vectors: int) -> tuple[float, float]:
    """Bit-sliced blocks of a kernel over its plain one, and over the plain one of AVX-512."""
    case = Case(4000, n_vectors, SLICED_ROWS)
    parts = [case.words[i : i + PLAIN_ROWS] for i in range(0, SLICED_ROWS, PLAIN_ROWS)]
    entries = []
    for row in dict.fromkeys([name, "avx512"]):
        with kernel(row) as usable:
            if not usable:
                continue
            guard = case.guard()
            guard.query_many_packed(case.words)  # extremes move a lot at first
            names = {"ask": guard.query_many_packed, "parts": parts, "words": case.words}
            statement = "for rows in parts: ask(rows)"
            entries.append(Contestant(f"{row}, plain", statement, names, SLICED_ROWS))
            entries.append(Contestant(f"{row}, sliced", "ask(words)", names, SLICED_ROWS))
    outcome = effort.race(entries)
    over = [
        outcome.ratio(f"{name}, sliced", other)
        if {f"{name}, sliced", other} <= set(outcome.names)
        else float("nan")
        for other in [f"{name}, plain", "avx512, plain"]
    ]
    return over[0], over[1]


# kernel: bounds over its own plain kernel, and the same over the plain AVX-512 one: when they were
# set, AVX2 counted ones in 2.4 times the time of AVX-512, and plain C in 5.3 times
OTHER_SLICED = {"avx2": (0.30, 0.30 * 2.4), "portable": (0.35, 0.35 * 5.3)}


def sliced_blocks(effort: Effort) -> Goals:
    for n_vectors, bound in [(32, 0.75), (256, 0.52), (1024, 0.52)]:
        what = f"bit-sliced blocks, avx512, (4000, {n_vectors}): over its plain kernel"
        yield Goal(what, sliced(effort, "avx512", n_vectors)[0], "<=", bound)
    for name, bounds in OTHER_SLICED.items():
        own, avx512 = sliced(effort, name, 256)
        what = f"bit-sliced blocks, {name}, (4000, 256)"
        yield Goal(f"{what}: over its plain kernel", own, "<=", bounds[0])
        yield Goal(f"{what}: over the plain avx512 kernel", avx512, "<=", bounds[1])
    case = Case(4000, 256, SLICED_ROWS)
    entries = [ours("ours", case.guard(), case.words), *contestants(case, ["numkong"])]
    what = "query_many on packed losses, (4000, 256): faster than numkong"
    yield Goal(what, times_faster(effort.race(entries), ["numkong"]), ">=", 3)


def other_kernels(effort: Effort) -> Goals:
    case = Case(4000, 32, SLICED_ROWS)
    entries = []
    for name in ["avx512", "avx2", "portable"]:
        with kernel(name) as usable:
            if usable:
                entries.append(ours(name, case.guard(), case.words))
    outcome = effort.race(entries)
    for name, bound in [("avx2", 2.0), ("portable", 6.0)]:
        both = {name, "avx512"} <= set(outcome.names)
        ratio = outcome.ratio(name, "avx512") if both else float("nan")
        yield Goal(f"{name} query_many over avx512, (4000, 32)", ratio, "<=", bound)


def generated_signs(effort: Effort) -> Goals:
    for n_samples, n_rows in [(4000, 64), (4000, PLAIN_ROWS), (100_000, 64)]:
        case = Case(n_samples, 32, n_rows)
        entries = [
            ours(signs, case.guard(signs=signs), case.words) for signs in ["generated", "stored"]
        ]
        ratio = effort.race(entries).ratio("generated", "stored")
        what = f"generated signs over stored, ({n_samples}, 32), blocks of {n_rows}"
        yield Goal(what, ratio, "<=", 1.15)


# ---- one query per call -------------------------------------------------------------------------


def single_queries(effort: Effort) -> Goals:
    case = Case(4000, 32, PLAIN_ROWS)
    row = case.losses[0]
    names = {"pack": _kernel.pack_rows, "rows": case.losses[:64]}
    packing = Contestant("packing", "pack(rows)", names, 64)
    guard = case.guard()
    with kernel("avx512"):  # the one of single rows, AMX or not
        alone = case.guard()
    entries = [
        ours("kernel", alone, case.words),
        packing,
        Contestant("packed", "ask(row)", {"ask": guard.query_packed, "row": case.words[0]}),
        Contestant("uint8", "ask(row)", {"ask": guard.query, "row": row}),
        *one_by_one(case),
        *contestants(case, ["gemv"]),
    ]
    outcome = effort.race(entries)
    what = "query_packed, one query a call, (4000, 32)"
    yield Goal(f"{what}: over the kernel alone", outcome.ratio("packed", "kernel"), "<=", 2.0)
    for peer in ["numkong", "faiss", "numba"]:
        faster = times_faster(outcome, [peer], "packed")
        yield Goal(f"{what}: faster than {peer} called once a query", faster, ">=", 3.5)
    yield Goal(f"{what}: faster than sgemv", times_faster(outcome, ["gemv"], "packed"), ">=", 30)
    column = outcome.names.index
    in_c = outcome.times[:, column("packing")] + outcome.times[:, column("kernel")]
    ratio = float(np.median(outcome.times[:, column("uint8")] / in_c))
    yield Goal("query(uint8), one a call: over packing + sums in C", ratio, "<=", 1.6)


# ---- what users hand over -----------------------------------------------------------------------


def predictions(effort: Effort) -> Goals:
    rng = np.random.default_rng(2)
    y_true = rng.integers(0, 10, 4000)
    right = rng.random((16_000, 4000), np.float32) < 0.8
    y_pred = np.where(right, y_true, 9 - y_true)
    holdout = Holdout(y_true, epsilon=0.999, delta=0.1, seed=1)
    entries = [
        ours("ours", holdout, y_pred, packed=False),
        Contestant("numpy.max", "y_pred.max()", {"y_pred": y_pred}, len(y_pred)),
    ]
    share = effort.race(entries).ratio("numpy.max", "ours")
    what = "Holdout.query_many(int64) from memory: share of numpy.max's bandwidth"
    yield Goal(what, share, ">=", 0.8)


def threads_and_trace(effort: Effort) -> Goals:
    rng = np.random.default_rng(3)
    words = rng.integers(0, 2**64, (100_000, 63), np.uint64)
    words[:, -1] &= np.uint64(2 ** (4000 % 64) - 1)
    names = {"guard": Case(4000, 32, 1).guard, "words": words}
    plain, traced, two = (
        Contestant(options, f"guard().query_many_packed(words{options})", names, len(words))
        for options in ["", ", trace=True", ", n_threads=2"]
    )
    ratio = effort.race([plain, traced]).ratio(traced.name, plain.name)
    yield Goal("trace=True over the plain call, (4000, 32), k = 100,000", ratio, "<=", 1.15)
    faster = given = float("nan")
    if len(CORES) > 1:
        control = limit_in_threads()
        with pinned(2):
            outcome = effort.race([plain, two, *control], clock=time.perf_counter)
        faster = outcome.ratio(plain.name, two.name)
        given = outcome.ratio(*(each.name for each in control)) if control else given
    yield Goal("n_threads=2, (4000, 32), k = 100,000: faster than one thread", faster, ">=", 1.7)
    what = "the same of two register-only loops: what the machine gives at the time"
    yield Goal(what, given, ">=", 1.7)


def memory_map(effort: Effort) -> Goals:
    rng = np.random.default_rng(4)
    rows = rng.integers(0, 2**64, (1_000_000, 63), np.uint64)
    rows[:, -1] >>= np.uint64(32)  # 4000 bits
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "losses.npy"
        np.save(path, rows)
        mapped = np.load(path, mmap_mode="r")
        guard = Case(4000, 32, 1).guard()
        entries = [ours("mapped", guard, mapped), ours("memory", guard, rows)]
        ratio = effort.race(entries).ratio("mapped", "memory")
    what = "warm memory-mapped file of 1,000,000 x 63 words over the same in memory"
    yield Goal(what, ratio, "<=", 1.10)


def real_valued(effort: Effort) -> Goals:
    wanted = {
        "float32": [("sgemv", ["gemv"], 3.0), ("the best sgemm block", GEMM, 1.4)],
        "float64": [("blocked dgemm", GEMM, 2.0)],
    }
    for dtype, peers in wanted.items():
        case = Case(4000, 32, 512, real=True, dtype=dtype)
        entries = [ours("ours", case.guard(), case.losses, packed=False)]
        outcome = effort.race(entries + contestants(case, ["gemv", *GEMM]))
        for label, names, least in peers:
            what = f"real-valued losses, {dtype}, (4000, 32): faster than {label}"
            yield Goal(what, times_faster(outcome, names), ">=", least)


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


def many_intervals(effort: Effort) -> Goals:
    case = Case(4000, 32, 10_000)
    guard = case.guard(bound="fixed-sequence", epsilon=0.05)
    blocks = [guard.query_many_packed(case.words) for _ in range(100)]
    answers = RadaBoundAnswers.joined(blocks)
    nats = BOUNDS["fixed-sequence"].free(4000, 0.05, 0.1).nats(answers.numbers[::9973])
    lows, highs = clopper_pearson(answers.values[::9973], nats)
    again = {"again": RadaBoundAnswers.joined, "answers": answers}  # which keep no limits
    check("lows of fixed-sequence", again["again"]([answers]).lows[::9973], lows)
    check("highs of fixed-sequence", again["again"]([answers]).highs[::9973], highs)
    search = DeclaredSearch(4000, 10**6, delta=0.1)
    told = search.query_many_packed(case.words, keys=np.arange(10_000))
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
        ("search", "counts at one level (a declared search)"),
        ("different", "counts whose levels all differ"),
    ]:
        measured = outcome.median(name) / 1000.0
        yield Goal(f"low and high, each of 10^6 {what}", measured, "<=", 0.2, "us")
    what = "the last: faster than scipy.special.betaincinv"
    yield Goal(what, outcome.ratio("scipy", "different"), ">=", 5)


def single_intervals(effort: Effort) -> Goals:
    case = Case(4000, 32, 64)
    row, mean = case.words[0], case.losses[0].mean()
    search = DeclaredSearch(4000, 10**6, delta=0.1)
    answer = search.query_packed(row, key=3)
    lows, highs = clopper_pearson(mean, answer.nats + np.log(2 / 0.1))
    check("low and high of a declared search", (answer.low, answer.high), (lows, highs))
    guard = case.guard(bound="fixed-sequence", epsilon=0.05)
    first = guard.query_packed(row)
    nats = BOUNDS["fixed-sequence"].free(4000, 0.05, 0.1).nats(1)
    expected = clopper_pearson(mean, nats)
    check("low and high of fixed-sequence", (first.low, first.high), expected)
    names = {
        "ask": case.guard(bound="fixed-sequence").query_packed,
        "other": case.guard(bound="bernstein").query_packed,
        "search": search.query_packed,
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
        yield Goal(f"low and high of one answer of {what}", microseconds, "<=", 20, "us")
    what = "query_packed of fixed-sequence, nothing read: over that of bernstein"
    yield Goal(what, outcome.ratio("unread", "bernstein"), "<=", 1.1)


def declared_searches(effort: Effort) -> Goals:
    rng = np.random.default_rng(5)
    words = rng.integers(0, 2**64, (100_000, 63), np.uint64)
    words[:, -1] >>= np.uint64(32)  # 4000 bits
    names = {
        "search": lambda: DeclaredSearch(4000, 10**6, delta=0.1),
        "sums": _kernel.sums_of_rows,
        "words": words,
        "keys": rng.permutation(10**6)[: len(words)],
    }
    told = names["search"]().query_many_packed(words, keys=names["keys"])
    check("means of a declared search", told.values, np.bitwise_count(words).sum(axis=1) / 4000.0)
    if told.keys != names["keys"].tolist():
        raise AssertionError("the keys of the answers must be those that were given")
    entries = [
        Contestant("means", "sums(words, 4000, packed=True)", names, len(words)),
        Contestant("ours", "search().query_many_packed(words, keys=keys)", names, len(words)),
    ]
    outcome = effort.race(entries)
    what = "DeclaredSearch.query_many_packed, m = 4000, k = 100,000: over the means alone"
    yield Goal(what, outcome.ratio("ours", "means"), "<=", 2)


def metrics(effort: Effort) -> Goals:
    rng = np.random.default_rng(6)
    y_true = rng.integers(0, 2, 4000)
    rows = np.where(rng.random((100, 4000)) < 0.2, 1 - y_true, y_true)
    baseline = rows[0]
    names: dict[str, Any] = {"row": rows[1], "rows": rows, "keys": np.arange(100)}
    for name, options in {"plain": {}, "paired": {"baseline": baseline}}.items():
        names[name] = Holdout(y_true, DeclaredSearch(4000, 10**6, delta=0.1), **options)
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
        yield Goal(
            f"query against a baseline over one without, {what} at a time", measured, "<=", 1.3
        )
    losses = {"interval": betting_interval, "losses": rng.beta(1, 9, 10**5)}
    outcome = effort.race([Contestant("betting", "interval(losses, 20.0)", losses)])
    what = "betting_interval of 10^5 losses"
    yield Goal(what, outcome.median("betting") / 1e6, "<=", 5, "ms")


# ---- memory, import, growth ---------------------------------------------------------------------


def memory(effort: Effort) -> Goals:
    resident, traced = fresh.guard_kilobytes()
    yield Goal("a guard at (4000, 32): resident, one of 2000", resident, "<=", 40, "KB")
    yield Goal("a guard at (4000, 32): what tracemalloc sees", traced, "<=", 40, "KB")
    what = "signs generated, (10^8, 32): peak memory beside the input"
    yield Goal(what, fresh.generated_megabytes(), "<=", 2, "MB")
    milliseconds, megabytes = fresh.imports(effort.rounds)
    yield Goal("import radabound_fast beyond numpy: time", milliseconds, "<=", 30, "ms")
    yield Goal("import radabound_fast beyond numpy: memory", megabytes, "<=", 6, "MB")


def linear_growth(effort: Effort) -> Goals:
    for axis in LINES:
        slowest, fastest = decade_factors(effort.race, axis)
        where = f"10 times the {axis}: time over 10 times the time"
        yield Goal(f"{where}, worst decade", slowest, "<=", 1.25)
        yield Goal(f"{where}, best decade", fastest, ">=", 0.75)


GROUPS: list[Callable[[Effort], Goals]] = [
    plain_kernel,
    sliced_blocks,
    other_kernels,
    generated_signs,
    single_queries,
    predictions,
    threads_and_trace,
    memory_map,
    real_valued,
    many_intervals,
    single_intervals,
    declared_searches,
    metrics,
    memory,
    linear_growth,
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", help="groups to run, by part of their name")
    options = parser.parse_args()
    start, n_met, goals = time.perf_counter(), 0, 0
    with pinned():
        for group in GROUPS:
            if options.only and options.only not in group.__name__:
                continue
            for goal in group(Effort(options.rounds, 0.004)):
                print(goal, flush=True)
                goals += 1
                n_met += goal.verdict == "met"
    print(f"{n_met} of {goals} met, in {time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
