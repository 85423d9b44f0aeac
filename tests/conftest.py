"""Fixtures that several test files share."""

import dis
import functools
import gc
import importlib.util
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from support import PACKAGE, query

from radabound_fast import FixedSequence, GuessAndCheck, Ladder, RadaBound
from radabound_fast._kernels.guard import choose_thread_cells
from radabound_fast._kernels.rows import choose_kernel, kernels
from radabound_fast.experiments.thresholdout import Thresholdout

_spec = importlib.util.spec_from_file_location(
    "signals", Path(__file__).parent / "faults" / "signals.py"
)
_signals = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_signals)
_signals.heed()  # and so do the processes that tests start


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """No collection of garbage goes through imported modules and the thousands of tests."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


FASTEST = next(name for name, usable in kernels() if usable)
OTHERS = {"portable", "avx2", "avx512", "amx", "neon"} - {FASTEST}


@pytest.fixture(
    params=[FASTEST, *(pytest.param(name, marks=pytest.mark.thorough) for name in sorted(OTHERS))]
)
def kernel(request):
    """Each instruction set in turn, for objects that the test makes; others are skipped aloud."""
    usable = dict(kernels())
    if request.param not in usable:
        pytest.skip(f"kernel {request.param!r} is not compiled on this architecture")
    if not usable[request.param]:
        pytest.skip(f"kernel {request.param!r} needs instructions that this CPU lacks")
    choose_kernel(request.param)
    yield request.param
    choose_kernel()


@pytest.fixture(autouse=True, scope="session")
def eager_threads():
    """`n_threads` counts for far less work than would pay, and is many segments long."""
    choose_thread_cells(1 << 10)
    yield
    choose_thread_cells()


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


# of a call, in the middle of which it does not
PARTS = ("CACHE", "PRECALL")


@functools.cache
def places(code):
    """Where CPython runs signal handlers: on entry, after calls and when it jumps back."""
    steps = [step for step in dis.get_instructions(code) if step.opname not in PARTS]
    looks = ("CALL", "RESUME", "JUMP_BACKWARD")
    return {
        after.offset
        for step, after in zip(steps, steps[1:], strict=False)
        if any(name in step.opname for name in looks)
    }


def raise_interrupt():
    raise KeyboardInterrupt


class Interrupt:
    """Interrupts at the place of this number in the library's Python code."""

    def __init__(self, number, interrupt=raise_interrupt, files=(PACKAGE,)):
        self.left, self.interrupt, self.files = number, interrupt, (*files, "contextlib")

    def __enter__(self):
        self.before = sys.gettrace()
        sys._getframe().f_trace_opcodes = True  # in Python 3.12, before settrace
        sys.settrace(self.enter)
        return self

    def __exit__(self, *_):
        sys.settrace(self.before)

    def enter(self, frame, event, _):
        if not any(file in frame.f_code.co_filename for file in self.files):
            return None
        frame.f_trace = self.step  # from Python 3.13 on, before opcodes are asked for
        frame.f_trace_opcodes = True
        return self.step

    def step(self, frame, event, _):
        if event == "opcode" and frame.f_lasti in places(frame.f_code):
            self.left -= 1
            if self.left == -1:
                self.interrupt()
        return self.step


@pytest.fixture
def interrupt_at():
    """Ctrl-C at each place in turn where Python looks for it, within the library."""
    return Interrupt


@pytest.fixture
def run(folder, capsys):
    """Run the command in the test file's `folder`: exit code, stdout, stderr."""
    from radabound_fast import cli

    def run(*arguments):
        try:
            code = cli.main([str(argument) for argument in arguments])
        except SystemExit as stopped:  # what argparse raises for its own errors
            code = stopped.code
        return code, *capsys.readouterr()

    return run


@pytest.fixture
def refuse(run):
    """The command refuses what it is given, in one line on stderr that has the message."""

    def refuse(message, *arguments):
        code, out, err = run(*arguments)
        assert (code, out) == (2, "") and message in err
        assert err.startswith("radabound") and err.count("\n") == 1 and err.endswith("\n")
        return err

    return refuse


# guards of 1000 samples that answer a first query and are halted by a second, with what each needs
# as guesses
HALTING = {
    "mclt": (RadaBound, {"epsilon": 0.04, "bound": "mclt", "seed": 1}, (0.5, 0.5)),
    "fixed sequence": (
        FixedSequence,
        {"epsilon": 0.045, "max_queries": 10**6, "seed": 1},
        (0.5, 0.5),
    ),
    "union bound alone": (FixedSequence, {"epsilon": 0.04, "n_vectors": 0}, (0.5, 0.5)),
    "guess and check": (GuessAndCheck, {"epsilon": 0.05}, (0.02, 0.5)),
    "ladder": (Ladder, {"step": 0.01, "max_queries": 1}, (0.5, 0.5)),
    "thresholdout": (
        Thresholdout,
        {"threshold": 0.1, "noise": 0.01, "budget": 1, "seed": 3},
        (0.9, 0.9),
    ),
}


class Halting(NamedTuple):
    kind: Any
    parameters: dict[str, Any]
    guesses: tuple[float, float]
    losses: Any  # of the two queries, bool of shape (2, 1000)

    def make(self, path=None, judged=1000):
        if path is None:
            return self.kind(judged, **self.parameters)
        return self.kind.open(path, judged, durability="process", **self.parameters)

    def query(self, guard, number):
        """Asks about row `number`, 0 or 1."""
        return query(guard, self.losses[number], self.guesses[number])


@pytest.fixture(params=HALTING)
def halting(request):
    """Each guard in turn that a second query halts."""
    kind, parameters, guesses = HALTING[request.param]
    parameters = parameters | ({} if kind is Thresholdout else {"delta": 0.1})
    rates = np.array([[0.02], [0.5]])
    losses = np.random.default_rng(1).random((2, 1000)) < rates
    return Halting(kind, parameters, guesses, losses)
