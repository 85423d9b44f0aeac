"""limit.c, compiled when it is needed: the register-only limit of this CPU."""

from __future__ import annotations

import ctypes
import functools
import os
import subprocess
import tempfile
from pathlib import Path


@functools.cache
def library() -> ctypes.CDLL | None:
    """The compiled limit, or None where there is no C compiler; says so."""
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
    library.limit.argtypes = [ctypes.c_int64]
    library.limit.restype = ctypes.c_uint64
    library.limit_name.restype = ctypes.c_char_p
    return library


def n_cells(n_samples: int, n_vectors: int) -> int:
    """512-bit cells of one query: words of the losses times strips of eight vectors."""
    return -(-n_samples // 64) * -(-n_vectors // 8)
