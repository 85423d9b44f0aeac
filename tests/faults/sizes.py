"""Signs that no memory holds."""

from __future__ import annotations

import os
import resource
from collections.abc import Callable
from pathlib import Path
from typing import Any

from trial import Count, Fault, in_child

from radabound_fast import RadaBound, SignMatrix

PARAMETERS = {"epsilon": 0.9, "delta": 0.1, "seed": 12}
SPARE_BYTES = 2**24  # what a refusal may take: nothing in proportion to what was asked for


def absurd_shapes(times: int) -> list[tuple[int, int]]:
    """(n_samples, n_vectors) from one byte over this machine's memory to the largest allowed."""
    physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    shapes = [
        (-(-8 * (physical + 1) // n_vectors) << shift, n_vectors)
        for n_vectors in (1, 2, 32, 1000, 2**16, 2**23)
        for shift in range(20)
    ]
    allowed = [(m, n) for m, n in shapes if m <= 2**40 and m * n < 2**62]
    assert len(allowed) >= times
    return [allowed[place * len(allowed) // times] for place in range(times)]


def absurd(count: Count, folder: Path, times: int) -> None:
    makers: dict[str, Callable[[int, int], Any]] = {
        "RadaBound": lambda m, n: RadaBound(m, n_vectors=n, **PARAMETERS),
        "SignMatrix": lambda m, n: SignMatrix(m, n),
        "open": lambda m, n: RadaBound.open(folder / "guard.db", m, n_vectors=n, **PARAMETERS),
    }
    for shape in absurd_shapes(-(-times // len(makers))):
        for name, make in makers.items():
            what = f"{name}, {shape}"
            grown, error = in_child(lambda m=make, s=shape: growth(m, *s))
            count.check(isinstance(error, MemoryError), f"{what}: {error!r}")
            count.check('signs="generated"' in str(error), f"{what}: no way out in {error}")
            count.check(grown < SPARE_BYTES, f"{what}: {grown} bytes allocated")
            count.check(os.listdir(folder) == [], f"{what}: left behind {os.listdir(folder)}")
            count.times += 1


def growth(make: Callable[[int, int], Any], n_samples: int, n_vectors: int) -> tuple[int, Any]:
    """By how many bytes the process was larger at most, and how it failed."""
    before, error = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, None
    virtual = resource.getrlimit(resource.RLIMIT_AS)
    # memory that is only promised counts too
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * os.sysconf("SC_PAGE_SIZE") + SPARE_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (limit, virtual[1]))
    try:
        make(n_samples, n_vectors)
    except Exception as caught:
        error = caught
    return 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before), error


FAULTS = [
    Fault(
        "n_samples x n_vectors beyond the machine's memory: RadaBound, SignMatrix, open",
        'MemoryError that names signs="generated", before any allocation; no file appears',
        absurd,
        150,
        15,
    ),
]
