"""The peers: libraries that give the same signed sums, asserted equal before anything is timed.

Packed bits: with pos_j the bits of the +1 signs, a Hamming distance gives the sum,

    S_j(f) = 2 popcount(f & pos_j) - popcount(f) = popcount(pos_j) - hamming(f, pos_j).

A peer is timed for its distances, counts or products alone; ours is timed for the sums, the
running extremes, the halting test and the answers.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Thread
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.limit import limit_of, n_cells
from benchmarks.race import Contestant
from radabound_fast import PackedLosses, RadaBound, RademacherAverage, SignMatrix, pack_losses
from radabound_fast._kernels.rows import active_kernel

Sums = NDArray[np.int64]


@dataclass
class Case:
    """Some losses, and a guard's signs in every form that a peer wants."""

    n_samples: int
    n_vectors: int
    n_rows: int
    real: bool = False
    dtype: str = "float32"
    seed: int = 1
    losses: NDArray[Any] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        rng = np.random.default_rng(self.seed)
        shape = self.n_rows, self.n_samples
        if self.real:
            self.losses = rng.integers(0, 2**24, shape, endpoint=True).astype(self.dtype)
            self.losses /= 2**24
        else:
            rates = rng.uniform(0.1, 0.4, (self.n_rows, 1))
            self.losses = (rng.random(shape, np.float32) < rates).view(np.uint8)
        self.signs = SignMatrix(self.n_samples, self.n_vectors, seed=self.seed)

    @functools.cached_property
    def packed(self) -> PackedLosses:
        """The losses as guards take them."""
        return pack_losses(self.losses)

    @property
    def words(self) -> NDArray[np.uint64]:
        """uint64 (n_rows, n_words)"""
        return self.packed.words

    @functools.cached_property
    def loss_bytes(self) -> NDArray[np.uint8]:
        """The same memory as bytes."""
        return self.words.view(np.uint8)

    @functools.cached_property
    def positive_words(self) -> NDArray[np.uint64]:
        """The +1 signs as bits, zero past n_samples: uint64 (n_vectors, n_words)."""
        words = np.stack([self.signs.words(j) for j in range(self.n_vectors)])
        if self.n_samples % 64:
            words[:, -1] &= np.uint64(2 ** (self.n_samples % 64) - 1)
        return words

    @functools.cached_property
    def positive_counts(self) -> Sums:
        return np.bitwise_count(self.positive_words).sum(axis=1, dtype=np.int64)

    @functools.cached_property
    def float_signs(self) -> NDArray[Any]:
        """+1 and -1, (n_vectors, n_samples)."""
        return np.asarray(self.signs).astype(self.dtype)

    def guard(self, kind: Any = RadaBound, **parameters: Any) -> Any:
        """A `RadaBound`, or a `FixedSequence`, that does not halt here."""
        parameters = {"epsilon": 0.999, "delta": 0.1, "seed": self.seed} | parameters
        return kind(self.n_samples, n_vectors=self.n_vectors, **parameters)

    @functools.cached_property
    def sums(self) -> Sums:
        """Ours, (n_rows, n_vectors) of the first rows: each the extremes of that row alone."""
        sums = []
        for row in self.losses[:8]:
            average = RademacherAverage(self.signs)
            average.update(row)
            sums.append(average.maxima)
        return np.stack(sums)

    def from_distances(self, distances: Any) -> Sums:
        return self.positive_counts - np.asarray(distances, np.int64)

    def check(self, name: str, sums: Any) -> None:
        """Raises unless a peer's sums of the first rows are ours."""
        ours = self.sums
        theirs = np.asarray(sums)[: len(ours)]
        if self.real:  # a float32 product is rounded; ours is exact, in units of 2^-24
            tolerance = self.n_samples * np.finfo(self.losses.dtype).eps * 2**24 * 8
            equal = np.abs(np.rint(theirs * 2.0**24) - ours).max() <= tolerance
        else:
            equal = np.array_equal(np.rint(theirs), ours)
        if not equal:
            raise AssertionError(f"the signed sums of {name} must equal ours")


PEERS: dict[str, Callable[[Case], Contestant]] = {}


def peer(name: str) -> Callable[[Callable[[Case], Contestant]], Callable[[Case], Contestant]]:
    """Enters a function that checks a peer on a case and returns it as a contestant."""

    def enter(make: Callable[[Case], Contestant]) -> Callable[[Case], Contestant]:
        PEERS[name] = make
        return make

    return enter


# for a process in which the peers are to do without AVX-512
PEERS_LIKE = {
    "avx2": {
        "NUMBA_CPU_NAME": "haswell",
        "NUMBA_CPU_FEATURES": "+avx2,+bmi,+bmi2,+fma,+lzcnt,+popcnt",
        "FAISS_SIMD_LEVEL": "AVX2",
        "OPENBLAS_CORETYPE": "Haswell",
    }
}


def limit_capabilities(cpu: str) -> None:
    """The same for those that take no environment variable."""
    for library in ["numkong", "simsimd"] if cpu in PEERS_LIKE else []:
        try:
            peer = importlib.import_module(library)
        except ImportError:
            continue
        for name, usable in peer.get_capabilities().items():
            if usable and name not in ("serial", "haswell", "alder"):
                peer.disable_capability(name)


@functools.cache
def skip_aloud(name: str, error: str) -> None:
    print(f"SKIPPED: {name}: {error}")


def contestants(case: Case, names: list[str]) -> list[Contestant]:
    """Those of the named peers that are installed here."""
    found = []
    for name in names:
        try:
            found.append(PEERS[name](case))
        except ImportError as error:
            skip_aloud(name, str(error))
    return found


def limit(case: Case) -> list[Contestant]:
    """The register-only limit of the kernel's class, for as many queries as the case has."""
    found = limit_of(active_kernel())
    if found is None:
        return []
    cells = n_cells(case.n_samples, case.n_vectors) * case.n_rows
    names = {"limit": found.run, "cells": cells}
    return [Contestant("register-only limit", "limit(cells)", names, case.n_rows)]


def limit_in_threads() -> list[Contestant]:
    """Some milliseconds of the register-only loop in one thread, and halved between two."""
    found = limit_of(active_kernel())
    if found is None:
        return []
    limit, cells = found.run, 25_000_000

    def halved() -> None:
        other = Thread(target=limit, args=(cells // 2,))
        other.start()
        limit(cells // 2)
        other.join()

    names = {"limit": limit, "cells": cells, "halved": halved}
    return [Contestant(f"limit, {call}", call, names) for call in ["limit(cells)", "halved()"]]


# ---- blocks of packed queries -------------------------------------------------------------


@peer("numkong")
def numkong_block(case: Case) -> Contestant:
    import numkong

    signs = numkong.hammings_pack(case.positive_words.view(np.uint8), dtype="uint1")
    out = numkong.hammings_packed(case.loss_bytes, signs)
    case.check("numkong", case.from_distances(out))
    names = {"f": numkong.hammings_packed, "a": case.loss_bytes, "b": signs, "out": out}
    return Contestant("numkong", "f(a, b, out=out)", names, case.n_rows)


@peer("simsimd")
def simsimd_block(case: Case) -> Contestant:
    import simsimd

    names = {"f": simsimd.cdist, "a": case.loss_bytes, "b": case.positive_words.view(np.uint8)}
    statement = "f(a, b, 'hamming', dtype='bin8')"
    case.check("simsimd", case.from_distances(eval(statement, names)))
    return Contestant("simsimd", statement, names, case.n_rows)


@peer("faiss")
def faiss_block(case: Case) -> Contestant:
    import faiss

    out = np.empty((case.n_rows, case.n_vectors), np.int32)
    signs = case.positive_words.view(np.uint8)
    names = {
        "f": faiss.hammings,
        "a": faiss.swig_ptr(case.loss_bytes),
        "b": faiss.swig_ptr(signs),
        "sizes": (*out.shape, signs.shape[1]),
        "out": faiss.swig_ptr(out),
        "memory": (signs, out),  # a pointer keeps nothing alive
    }
    faiss.omp_set_num_threads(1)
    faiss.hammings(names["a"], names["b"], *names["sizes"], names["out"])
    case.check("faiss", case.from_distances(out))
    return Contestant("faiss", "f(a, b, *sizes, out)", names, case.n_rows)


@functools.cache
def numba_sums() -> Any:
    """sums[r, v] = 2 popcount(losses[r] & signs[v]) - popcount(losses[r]), compiled."""
    import numba
    from numba.extending import intrinsic

    @intrinsic
    def popcount(_context, word):
        def code(_context, builder, _signature, arguments):
            return builder.ctpop(arguments[0])

        return numba.uint64(word), code

    @numba.njit(nogil=True)
    def sums(losses, signs, out):
        for r in range(losses.shape[0]):
            total = np.uint64(0)
            for w in range(losses.shape[1]):
                total += popcount(losses[r, w])
            for v in range(signs.shape[0]):
                count = np.uint64(0)
                for w in range(losses.shape[1]):
                    count += popcount(losses[r, w] & signs[v, w])
                out[r, v] = np.int64(2 * count) - np.int64(total)

    return sums


@peer("numba")
def numba_block(case: Case) -> Contestant:
    out = np.empty((case.n_rows, case.n_vectors), np.int64)
    names = {"f": numba_sums(), "a": case.words, "b": case.positive_words, "out": out}
    names["f"](case.words, case.positive_words, out)
    case.check("numba", out)
    return Contestant("numba", "f(a, b, out)", names, case.n_rows)


@peer("numpy.bitwise_count")
def numpy_block(case: Case) -> Contestant:
    def distances(losses, signs):
        both = losses[:, np.newaxis] & signs
        return 2 * np.bitwise_count(both).sum(axis=2, dtype=np.int64)

    names = {"f": distances, "a": case.words[:8], "b": case.positive_words}
    totals = np.bitwise_count(case.words[:8]).sum(axis=1, dtype=np.int64)[:, np.newaxis]
    case.check("numpy.bitwise_count", distances(names["a"], names["b"]) - totals)
    return Contestant("numpy.bitwise_count", "f(a, b)", names, len(names["a"]))


# ---- products -----------------------------------------------------------------------------


def _product(case: Case, name: str, n_rows: int, converts: bool) -> Contestant:
    losses = case.losses[:n_rows] if converts else case.losses[:n_rows].astype(case.dtype)
    out = np.empty((len(losses), case.n_vectors), case.dtype)
    names = {"np": np, "a": losses, "b": case.float_signs.T, "out": out, "dtype": case.dtype}
    statement = f"np.matmul({'a.astype(dtype)' if converts else 'a'}, b, out=out)"
    exec(statement, names)
    case.check(name, out)
    return Contestant(name, statement, names, len(losses))


BLOCKS = [64, 512]
for _size in BLOCKS:
    PEERS[f"gemm, {_size} rows"] = functools.partial(
        _product, name=f"gemm, {_size} rows", n_rows=_size, converts=False
    )
    PEERS[f"gemm from uint8, {_size} rows"] = functools.partial(
        _product, name=f"gemm from uint8, {_size} rows", n_rows=_size, converts=True
    )
GEMM = [f"gemm, {size} rows" for size in BLOCKS]
GEMM_FROM_UINT8 = [f"gemm from uint8, {size} rows" for size in BLOCKS]


@peer("gemv")
def gemv(case: Case) -> Contestant:
    row, out = case.losses[0].astype(case.dtype), np.empty(case.n_vectors, case.dtype)
    names = {"np": np, "a": case.float_signs, "row": row, "out": out}
    np.matmul(case.float_signs, row, out=out)
    case.check("gemv", [*[out], *case.sums[1:] / (2.0**24 if case.real else 1)])
    return Contestant("gemv", "np.matmul(a, row, out=out)", names)


# ---- one query per call --------------------------------------------------------------------


def one_by_one(case: Case) -> list[Contestant]:
    """The peers of packed bits, called for a single query."""
    single = Case(case.n_samples, case.n_vectors, 1, seed=case.seed)
    return contestants(single, ["numkong", "faiss", "numba", "simsimd", "numpy.bitwise_count"])
