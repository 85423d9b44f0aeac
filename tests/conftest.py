"""Fixtures that several test files share."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from radabound_fast import _kernel

_spec = importlib.util.spec_from_file_location(
    "signals", Path(__file__).parent / "faults" / "signals.py"
)
_signals = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_signals)
_signals.heed()  # and so do the processes that tests start

KERNELS = [name for name, _ in _kernel.kernels()]
ALL_NAMES = ["portable", "avx2", "avx512", "amx", "neon"]


@pytest.fixture(params=ALL_NAMES)
def kernel(request):
    """Each instruction set in turn, for objects that the test makes; others are skipped aloud."""
    usable = dict(_kernel.kernels())
    if request.param not in usable:
        pytest.skip(f"kernel {request.param!r} is not compiled on this architecture")
    if not usable[request.param]:
        pytest.skip(f"kernel {request.param!r} needs instructions that this CPU lacks")
    _kernel.choose_kernel(request.param)
    yield request.param
    _kernel.choose_kernel()


@pytest.fixture(autouse=True, scope="session")
def eager_threads():
    """`n_threads` counts for far less work than would pay, and is many segments long."""
    _kernel.choose_thread_cells(1 << 10)
    yield
    _kernel.choose_thread_cells()


@pytest.fixture
def pack():
    """Bits by NumPy alone: (k, m) of 0 and 1 to uint64 (k, ceil(m / 64))."""

    def packed(losses):
        losses = np.asarray(losses)
        bits = np.packbits(losses.astype(bool), axis=-1, bitorder="little")
        n_bytes = -(-losses.shape[-1] // 64) * 8
        padding = [(0, 0)] * (losses.ndim - 1) + [(0, n_bytes - bits.shape[-1])]
        return np.ascontiguousarray(np.pad(bits, padding)).view(np.uint64)

    return packed
