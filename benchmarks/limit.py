"""limit.c, compiled when it is needed: the register-only limit of a class of CPU."""

from __future__ import annotations

import ctypes
import functools
import os
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

TRIAL = 200_000  # cells, a few times, to see which of a class's loops is the fastest


@dataclass(frozen=True)
class Limit:
    """The fastest register-only loop of a class of CPU."""

    name: str
    run: Callable[[int], int]  # so many 512-bit cells


@functools.cache
def _library() -> ctypes.CDLL | None:
    """The compiled loops, or None where there is no C compiler; says so."""
    source = Path(__file__).with_name("limit.c")
    compiler = os.environ.get("CC", "cc").split()
    with tempfile.TemporaryDirectory() as folder:
        built = Path(folder) / "limit.so"
        command = [*compiler, "-O3", "-shared", "-fPIC", str(source), "-o", str(built)]
        try:
            subprocess.run(command, check=True)
        except (OSError, subprocess.CalledProcessError) as error:
            print(f"SKIPPED: the register-only limit: {error}")
            return None
        library = ctypes.CDLL(str(built))
    library.run_loop.argtypes = [ctypes.c_int, ctypes.c_int64]
    library.run_loop.restype = ctypes.c_uint64
    library.loop_is_for.argtypes = [ctypes.c_int, ctypes.c_char_p]
    library.loop_name.restype = ctypes.c_char_p
    return library


@functools.cache
def limit_of(cpu: str) -> Limit | None:
    """The limit of a class of CPU, or of "portable"; None where there is no C compiler."""
    library = _library()
    if library is None:
        return None

    def seconds(loop: int) -> float:
        start = time.thread_time()
        library.run_loop(loop, TRIAL)
        return time.thread_time() - start

    here = [i for i in range(library.n_loops()) if library.loop_is_for(i, cpu.encode())]
    fastest = min(here, key=lambda loop: min(seconds(loop) for _ in range(5)))
    name = library.loop_name(fastest).decode()
    return Limit(name, functools.partial(library.run_loop, fastest))


def n_cells(n_samples: int, n_vectors: int) -> int:
    """512-bit cells of one query: words of the losses times strips of eight vectors."""
    return -(-n_samples // 64) * -(-n_vectors // 8)
