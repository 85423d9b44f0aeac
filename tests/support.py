"""Helpers that test files of several folders share."""

import gzip
import math
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable
from decimal import Decimal
from fractions import Fraction
from importlib.util import find_spec
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom, norm

import radabound_fast
from radabound_fast import (
    DeclaredSearch,
    FixedSequence,
    GuessAndCheck,
    Holdout,
    HoldoutExhausted,
    Ladder,
    RadaBound,
)
from radabound_fast.experiments.thresholdout import Thresholdout
from radabound_fast.metrics import choice_of

# with a separator, so that a clone of any name, and tests inside it, are not taken for the package
PACKAGE = str(Path(radabound_fast.__file__).parent) + os.sep


def in_package(frame: FrameType) -> bool:
    """Whether the frame runs a Python file of the library."""
    return frame.f_code.co_filename.startswith(PACKAGE)


def at_once(work: Callable[[Any], object], arguments: Iterable[Any]) -> None:
    """Do the work for each argument in a thread of its own, and wait for all."""
    threads = [threading.Thread(target=work, args=[one]) for one in arguments]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def true_in_a_child(check: Callable[[], object]) -> bool:
    """Whether the check is true in a child made by fork, within 20 seconds."""
    child = os.fork()
    if child == 0:
        good = False
        try:
            signal.alarm(20)
            good = bool(check())
        finally:
            os._exit(0 if good else 1)
    return os.waitpid(child, 0)[1] == 0


# ---- guards --------------------------------------------------------------------------------------


def guard_of(judged: Any = 1000, *, bound: str = "mclt", **parameters: Any) -> Any:
    """A guard that counts signed sums, by the name of its bound; with a seed."""
    given = {"epsilon": 0.09, "delta": 0.1, "seed": 1} | parameters
    if bound == "fixed-sequence":
        return FixedSequence(judged, **given)
    return RadaBound(judged, bound=bound, **given)


def state_of(guard: Any) -> list[int]:
    """All that queries change in a guard that halts."""
    return guard._shared.progress().tolist()


def query(guard: Any, y_pred: Any, brought: Any = 0.5) -> Any:
    """One query of any guard: `brought` is the guess or the key that it needs, if it needs one."""
    return guard.query(y_pred, **({guard.needs: brought} if guard.needs else {}))


def query_many(guard: Any, Y_pred: Any, brought: Any = (), **options: Any) -> Any:
    """Queries of any guard, with a guess or a key a row where it needs them."""
    plural = {"guess": "guesses", "key": "keys", None: None}[guard.needs]
    return guard.query_many(Y_pred, **options, **({plural: brought} if plural else {}))


def one_by_one(guard: Any, rows: Any, brought: Any = None) -> list[Any]:
    """The answers of a loop of `query`, up to the halt."""
    answers = []
    for row, one in zip(rows, [0.5] * len(rows) if brought is None else brought, strict=True):
        try:
            answers.append(query(guard, row, one))
        except HoldoutExhausted:
            break
    return answers


OPTIONS = ("pos_label", "clip", "y_range", "costs")
# those that metrics need, for two classes and for numbers in [0, 1]
METRIC_OPTIONS: dict[str, dict[str, Any]] = {
    "neg_log_loss": {"clip": 0.01},
    "neg_mean_absolute_error": {"y_range": (0, 1)},
    "neg_mean_squared_error": {"y_range": (0, 1)},
    "mean_cost": {"costs": [[0.0, 1.0], [5.0, 0.5]]},
}


def holdout_of(y_true: Any, *, metric: str = "error", **given: Any) -> Holdout:
    """A holdout, with the options of its metric by name."""
    options = {name: given.pop(name) for name in OPTIONS if name in given}
    return Holdout(y_true, metric=choice_of(metric, options), **given)


def search_of(
    y_true: Any,
    space: Any = 1000,
    *,
    delta: float = 0.1,
    baseline: Any = None,
    allow_reruns: bool = False,
    two_sided: bool = True,
    **measured: Any,
) -> DeclaredSearch:
    """A search on labels; other arguments are those of `holdout_of`."""
    own = ("n_folds", "n_best", "release")
    options = {name: measured.pop(name) for name in own if name in measured}
    return DeclaredSearch(
        holdout_of(y_true, **measured),
        space,
        delta=delta,
        baseline=baseline,
        allow_reruns=allow_reruns,
        two_sided=two_sided,
        **options,
    )


# one of each, of what it judges
GUARDS = {
    "RadaBound": lambda judged: RadaBound(judged, epsilon=0.12, delta=0.1, bound="mclt", seed=3),
    "FixedSequence": lambda judged: FixedSequence(judged, epsilon=0.3, delta=0.1),
    "union": lambda judged: FixedSequence(judged, epsilon=0.3, delta=0.1, n_vectors=0),
    "DeclaredSearch": lambda judged: DeclaredSearch(judged, 99, delta=0.1),
    "GuessAndCheck": lambda judged: GuessAndCheck(judged, epsilon=0.3, delta=0.1),
    "Ladder": lambda judged: Ladder(judged, 0.1, delta=0.1),
    "Thresholdout": lambda judged: Thresholdout(judged, threshold=0.1, noise=0.1, budget=9),
}


# ---- the core of a guard -------------------------------------------------------------------------

NEVER = 2**63 - 1


def gate(budget: int, priced: int = NEVER) -> Any:
    """A price that allows this sum of extremes whatever the row, up to a total."""
    return lambda total, shift, n_rows: (budget, priced, NEVER, -1, NEVER, -1, NEVER)


def running(sums: Any, half_range: bool = False) -> tuple[Any, Any, Any]:
    """After each row of signed sums: sum of the extremes, maxima, minima."""
    highest, lowest = np.maximum.accumulate(sums), np.minimum.accumulate(sums)
    return (highest - lowest if half_range else np.maximum(highest, 0)).sum(axis=1), highest, lowest


def assert_extremes(core: Any, sums: Any) -> None:
    """The extremes of a core are those of these signed sums."""
    np.testing.assert_array_equal(core.extremes(), [sums.max(axis=0), sums.min(axis=0)])


class Tensor:
    """As torch's and jax's: DLPack, and nothing else that NumPy knows."""

    def __init__(self, values: Any) -> None:
        self._values = values

    def __dlpack__(self, **options: Any) -> Any:
        return self._values.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self._values.__dlpack_device__()


# ---- files ---------------------------------------------------------------------------------------


def write_rows(path: Any, array: Any) -> Path:
    """Write an array in the format that the suffix names; tables in several batches."""
    path = Path(path)
    if path.suffix == ".npy":
        np.save(path, array)
    elif path.suffix == ".npz":
        np.savez_compressed(path, array)
    elif path.suffix in (".csv", ".gz"):
        quoted = '"{}"' if array.dtype.kind == "U" else "{}"
        rows = array.astype(np.int64) if array.dtype.kind == "b" else array
        lines = [",".join(quoted.format(cell) for cell in row.tolist()) for row in rows]
        opened = gzip.open if path.suffix == ".gz" else open
        with opened(path, "wt", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")
    elif path.suffix == ".zarr":
        import zarr

        chunks = tuple(-(-side // 2) for side in array.shape)  # which divide no side
        version = 2 if array.dtype.kind == "U" else 3  # which has strings of no fixed length
        zarr.create_array(os.fspath(path), data=array, chunks=chunks, zarr_format=version)
    else:
        import pyarrow as pa
        import pyarrow.parquet as pq

        table = pa.table({f"q.{i}": column for i, column in enumerate(array.T)})
        if path.suffix == ".parquet":
            pq.write_table(table, path)
        else:
            new = pa.ipc.new_stream if path.suffix == ".ipc" else pa.ipc.new_file
            with new(path, table.schema) as file:
                file.write_table(table, max_chunksize=3)
    return path


# ---- the command ---------------------------------------------------------------------------------

WAITING = """
import signal, sys, time
from radabound_fast import cli
from radabound_fast.files import reading

def slow(*arguments, blocks=reading.FileRows.blocks):
    for number, block in enumerate(blocks(*arguments)):
        if number == int(sys.argv[1]):
            print("waiting", flush=True)
            time.sleep(60)
        yield block

signal.signal(signal.SIGINT, signal.default_int_handler)
reading.FileRows.blocks = slow
reading.BLOCK_BYTES = int(sys.argv[2])
sys.exit(cli.main(sys.argv[3:]))
"""


def waiting(arguments: list[str], block: int = 0, block_bytes: int = 1 << 20, **how: Any) -> Any:
    """A process of the command that waits before this block of the file that it reads."""
    process = subprocess.Popen(
        [sys.executable, "-c", WAITING, str(block), str(block_bytes), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **how,
    )
    assert process.stdout is not None and process.stdout.readline() == "waiting\n"
    return process


# ---- losses --------------------------------------------------------------------------------------


def coins(seed: int, n_queries: int, n_samples: int, rate: float = 0.3) -> Any:
    """Independent losses of 0 and 1."""
    return np.random.default_rng(seed).random((n_queries, n_samples)) < rate


def losses_with_mean(mean: float, n_samples: int = 4000) -> Any:
    """Losses of 0 and 1 with this mean, as near as there is one."""
    return np.arange(n_samples) < round(mean * n_samples)


def falling_losses(seed: int, n_samples: int, n_rows: int = 40) -> tuple[Any, Any]:
    """Rows of 0 and 1 whose means fall from about .9 to .1, and a guess for each."""
    rng = np.random.default_rng(seed)
    rates = np.linspace(0.9, 0.1, n_rows)
    losses = rng.random((n_rows, n_samples)) < rates[:, np.newaxis]
    return losses, np.clip(rates + rng.normal(0, 0.05, n_rows), 0, 1)


# ---- tools ---------------------------------------------------------------------------------------


def needs_packages(*packages: str) -> None:
    """Skip the file where a package is not installed."""
    if missing := [name for name in packages if not find_spec(name)]:
        pytest.skip(f"not installed: {missing}", allow_module_level=True)


def needs(*tools: str) -> None:
    """Skip the test where a program is not installed."""
    for tool in tools:
        if shutil.which(tool) is None:
            pytest.skip(f"needs {tool}")


# ---- simulations ---------------------------------------------------------------------------------


def most_failures(n_runs: int, delta: float) -> int:
    """More failures have probability at most 1e-6, if each run fails with at most delta."""
    return int(binom.isf(1e-6, n_runs, delta))


def log_lower_tail(count: int, m: int, p: Any, rest: Any = None) -> Any:
    """``ln P(Bin(m, p) <= count)``, summed term by term with mpmath's present digits.

    `rest` is 1 - p, where that has more digits.
    """
    from mpmath import mp, mpf

    p, rest = mpf(p), 1 - mpf(p) if rest is None else mpf(rest)
    term = total = mp.binomial(m, count) * p**count * rest ** (m - count)
    for k in range(count, 0, -1):
        term *= k * rest / ((m - k + 1) * p)
        total += term
        if term < total * mp.eps:
            break
    return mp.log(total)


# ---- bootstraps by plain NumPy -------------------------------------------------------------------


def enough(differences: Any) -> Any:
    """Which rows have 40 errors and 40 right ones, or as much of anything else."""
    centred, m = differences - differences.mean(axis=1, keepdims=True), differences.shape[1]
    need = 40 * m / (m - 40) * np.abs(centred).max(axis=1) ** 2
    return ((centred**2).sum(axis=1) >= need - 1e-6) & (need > 0)


def rank(n_vectors: int, delta: float) -> int:
    """Which of the maxima in order is the critical value: the ceil((1 - delta)(l + 1))-th."""
    return math.ceil((1 - delta) * (n_vectors + 1) - 1e-9)


def level(maxima: Any, delta: float, n: int) -> float:
    """The error of each of n one-sided limits."""
    critical = np.sort(maxima)[rank(len(maxima), delta) - 1]
    return max(float(norm.sf(critical)), delta / n)


# ---- spaces --------------------------------------------------------------------------------------


def accepted(space: Any, keys: Any) -> dict[Any, tuple[float, list[Any]]]:
    """Nats and keys by code, of the keys that a space accepts."""
    found: dict[Any, tuple[float, list[Any]]] = {}
    for key in keys:
        try:
            code, nats = space.find(key)
        except (TypeError, ValueError):
            continue
        before, same = found.setdefault(code, (nats, []))
        assert before == nats == space.nats(key) and key in space
        same.append(key)
    return found


# what a tool, a file or a slip may hand over where 0, 1, 2, 3 or "a" is declared
SCALARS: list[Any] = [
    0, 1, 2, 3, 4, 5, -1, 2**53 + 1, 2**63, 2**60, 2.0**60, int(1e300), 1e300, 10**400, 1.0, 2.0,
    3.0, -0.0, 0.5, 1.0000001, 3.0000001, 3 + 1e-12, math.nextafter(1.0, 2.0), math.nan, math.inf,
    -math.inf, True, False, None, "a", "b", "1", "True", "", b"a", Decimal(1), Fraction(1),
    Fraction(1, 2), 1 + 0j, np.int8(1), np.uint64(3), np.float32(1), np.float32(0.1),
    np.float64(2.0), np.longdouble(1), np.True_, np.str_("a"), np.array(1), np.array([1]),
    np.datetime64(1, "s"), np.timedelta64(1, "s"), (1,), [1], {1}, {"a": 1}, {}, (), object(),
]  # fmt: skip


def with_scalars(key: Any) -> list[Any]:
    """A key, and what it becomes when one of its values is any of the scalars."""
    changed = [key, *SCALARS]
    if isinstance(key, dict):
        changed += [key | {name: one} for name in key for one in _each(key[name])]
        changed += [key | {"more": 1}, {name: key[name] for name in list(key)[1:]}]
    if isinstance(key, (tuple, list)):
        changed += [
            type(key)([*key[:i], one, *key[i + 1 :]])
            for i, part in enumerate(key)
            for one in _each(part)
        ]
        changed += [key[1:], [*key, *key], key[::-1]]
    return changed


def _each(value: Any) -> list[Any]:
    return with_scalars(value) if isinstance(value, (dict, tuple, list)) else SCALARS
