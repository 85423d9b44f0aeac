"""Memory and import time, each in a process of its own."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile

IMPORTS = """
import gc, json, time
import numpy
def resident():
    return int(open("/proc/self/statm").read().split()[1]) * 4096
gc.collect()
memory, start = resident(), time.process_time()
{use}
seconds = time.process_time() - start
print(json.dumps(dict(seconds=seconds, bytes=resident() - memory)))
"""

GUARD = """
import gc, json, tracemalloc
import numpy as np
from radabound_fast import RadaBound
row = np.zeros(4000, np.uint8)
def one():
    guard = RadaBound(4000, epsilon=0.1, delta=0.1, bound="mclt", seed=0)
    guard.query(row)
    return guard
def resident():
    return int(open("/proc/self/statm").read().split()[1]) * 4096
one()                                # whatever is imported or cached once
gc.collect()
memory = resident()
guards = [one() for _ in range(2000)]
each = (resident() - memory) / len(guards)
guards.clear()
gc.collect()
tracemalloc.start()                  # counts Python's and NumPy's memory, but not malloc's
kept = one()
traced = tracemalloc.get_traced_memory()[0]
print(json.dumps({"resident": each, "traced": traced}))
"""

GENERATED = """
import gc, json, re
import numpy as np
from radabound_fast import PackedLosses, RadaBound
m = 10**8
words = np.random.default_rng(0).integers(0, 2**64, -(-m // 64), dtype=np.uint64)
RadaBound(100, epsilon=0.9, delta=0.1).query(np.zeros(100, np.uint8))
def peak():
    return int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]) * 1024
gc.collect()
open("/proc/self/clear_refs", "w").write("5")  # the peak starts anew
before = peak()
guard = RadaBound(m, epsilon=0.9, delta=0.1, n_vectors=32, signs="generated")
answer = guard.query(PackedLosses(words, m))
print(json.dumps({"bytes": peak() - before, "value": answer.value}))
"""


def run(program: str, **environment: str) -> dict[str, float]:
    """What the program prints as JSON."""
    command = [sys.executable, "-c", program]
    printed = subprocess.run(
        command, check=True, capture_output=True, text=True, env=os.environ | environment
    ).stdout
    return json.loads(printed)


def imports(use: str, n_processes: int) -> tuple[float, float]:
    """Medians of the milliseconds and megabytes that an import takes beyond numpy.

    Once its bytecode is cached, as after any installation; time of the processor.
    """
    with tempfile.TemporaryDirectory() as folder:
        cached = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": folder}
        program = IMPORTS.format(use=use)
        run(program, **cached)
        runs = [run(program, **cached) for _ in range(n_processes)]
    seconds = statistics.median(one["seconds"] for one in runs)
    return seconds * 1e3, statistics.median(one["bytes"] for one in runs) / 1e6


def guard_kilobytes() -> tuple[float, float]:
    """A guard at (4000, 32): resident memory, one of 2000; and what tracemalloc sees of one."""
    found = run(GUARD)
    return found["resident"] / 1e3, found["traced"] / 1e3


def generated_megabytes() -> float:
    """Peak memory of one query with generated signs at m = 10^8, l = 32, beside the input."""
    return run(GENERATED)["bytes"] / 1e6
