"""Blocks of packed queries: ours and the peers, against m, l, the block's rows, and threads."""

import time
from dataclasses import replace

import pytest

from benchmarks.goals import MANY_ROWS, ours
from benchmarks.peers import GEMM, GEMM_FROM_UINT8, Case, contestants, limit
from benchmarks.race import CORES, pinned
from benchmarks.results import race_rows

# the packed peers; products only at the paper's m, since they are far behind everywhere
PACKED = ["numkong", "simsimd", "faiss", "numba"]
PRODUCTS = [*GEMM, *GEMM_FROM_UINT8, "numpy.bitwise_count"]

SAMPLES = [100, 300, 1000, 4000, 10_000, 30_000, 100_000, 1_000_000]
VECTORS = [8, 16, 32, 64, 128, 256, 512, 1024]
ROWS = [1, 4, 16, 64, 256, 1024, 2047, 2048, 4096, 16_384, 65_536]


def rows_of(n_samples):
    """So many that a block is 8 MB, or as many as go through the plain kernel."""
    return min(MANY_ROWS, 64_000_000 // n_samples)


@pytest.mark.parametrize("n_samples", SAMPLES)
def bench_against_samples(n_samples, compete, record):
    case = Case(n_samples, 32, rows_of(n_samples))
    peers = PACKED + PRODUCTS if n_samples in (1000, 4000) else PACKED
    entries = [ours("ours", case.guard(), case.packed), *limit(case), *contestants(case, peers)]
    shape = {"n_samples": n_samples, "n_vectors": 32, "n_rows": case.n_rows}
    record(race_rows("samples", compete(entries), **shape))


@pytest.mark.parametrize("n_vectors", VECTORS)
def bench_against_vectors(n_vectors, compete, record):
    """The plain kernel, blocks of 512 queries through the bit-sliced one, and the peers."""
    plain, many = Case(4000, n_vectors, MANY_ROWS), Case(4000, n_vectors, 8192)
    entries = [
        ours("ours", plain.guard(), plain.packed),
        ours("ours, 8192 rows", many.guard(), many.packed),
        *limit(plain),
        *contestants(plain, PACKED),
    ]
    shape = {"n_samples": 4000, "n_vectors": n_vectors, "n_rows": MANY_ROWS}
    record(race_rows("vectors", compete(entries), **shape))


@pytest.mark.parametrize("n_rows", ROWS)
def bench_against_rows(n_rows, compete, record):
    case = Case(4000, 256, n_rows)
    entries = [ours("ours", case.guard(), case.packed), *limit(case), *contestants(case, PACKED)]
    shape = {"n_samples": 4000, "n_vectors": 256, "n_rows": n_rows}
    record(race_rows("rows", compete(entries, rounds=9 if n_rows > 5000 else 25), **shape))


@pytest.mark.skipif(len(CORES) < 2, reason="threads need two cores")
@pytest.mark.parametrize("n_vectors", [32, 256])
def bench_against_threads(n_vectors, compete, record):
    case = Case(4000, n_vectors, 65_536)
    counts = sorted({1, 2, len(CORES)})
    entries = [
        ours("ours" if n == 1 else f"{n} threads", case.guard(), case.packed, f", n_threads={n}")
        for n in counts
    ]
    with pinned(len(CORES)):
        outcome = compete(entries, rounds=9, clock=time.perf_counter)
    shape = {"n_samples": 4000, "n_vectors": n_vectors, "n_rows": case.n_rows}
    rows = race_rows("threads", outcome, **shape)
    record([replace(row, n_threads=n) for row, n in zip(rows, counts, strict=True)])
