"""``radabound info``: the version, the kernels, and a self-check of them."""

from __future__ import annotations

import argparse
import platform
from itertools import product
from typing import Any

import numpy as np

from radabound_fast import __version__
from radabound_fast._kernels.rows import (
    LabelRow,
    active_kernel,
    choose_kernel,
    kernels,
    pack_rows,
    rows_in_units,
)
from radabound_fast.cli.options import FAILED, OK
from radabound_fast.rows import reference
from radabound_fast.rows.signs import RademacherAverage, SignMatrix


def add_info(commands: Any) -> None:
    parser = commands.add_parser(
        "info",
        help="the version, the kernels, and a self-check of them",
        description="List the kernels and compare those that run here with the reference. "
        "Exit code: 0 they agree, 1 one does not.",
    )
    parser.set_defaults(run=_info)


def _info(args: argparse.Namespace) -> int:
    chosen = active_kernel()
    print(f"radabound_fast {__version__}, NumPy {np.__version__}, {platform.platform()}")
    code = OK
    for name, supported in kernels():
        if not supported:
            state = "compiled; this CPU cannot run it"
        elif _agrees_with_reference(name):
            state = "agrees with the reference"
        else:
            state, code = "DISAGREES with the reference: do not use, and report it", FAILED
        print(f"{'*' if name == chosen else ' '} {name:<10} {state}")
    print("* is in use")
    return code


def _agrees_with_reference(kernel: str) -> bool:
    """Whether a kernel's signs and signed sums are the reference's, and it refuses nan."""
    chosen = active_kernel()
    choose_kernel(kernel)
    try:
        # either side of a word, and of the strides of the widest kernel; a block of 600 queries
        sizes = [(1, 1, 1), (65, 9, 3), (4097, 33, 600)]
        return all(_sums_are_right(*size) for size in sizes) and _nan_is_refused()
    finally:
        choose_kernel(chosen)


def _sums_are_right(n_samples: int, n_vectors: int, n_queries: int) -> bool:
    """Whether signs and sums are those of the reference, one by one and in blocks."""
    losses = np.random.default_rng(0).integers(0, 2, (n_queries, n_samples), dtype=np.uint8)
    signs = reference.signs(7, n_vectors, n_samples)
    sums = reference.signed_sums(signs, losses)
    matrix = SignMatrix(n_samples, n_vectors, seed=7)
    first, every = RademacherAverage(matrix), RademacherAverage(matrix)
    first.update(losses[0])
    every.update(losses)
    return (
        np.array_equal(matrix, signs)
        and np.array_equal(first.maxima, sums[0])
        and np.array_equal(every.maxima, sums.max(axis=0))
        and np.array_equal(every.minima, sums.min(axis=0))
    )


def _nan_is_refused() -> bool:
    """Whether nan is refused, as a loss, binary or real, and as one of two classes, or of five.

    What is built with ``-ffast-math`` may take it for a number.
    """
    m = 200  # whole words, and a rest
    for dtype, place in product((np.float16, np.float32, np.float64), (0, 63, 130, m - 1)):
        values = np.ones(m, dtype)
        values[place] = np.nan
        two = LabelRow(values.dtype, 0.0, 1.0, m, bits=np.zeros(4, np.uint64))
        five = LabelRow(values.dtype, 0.0, 4.0, m, values=np.zeros(m))
        for read, *labels in ((pack_rows,), (rows_in_units,), (pack_rows, two), (pack_rows, five)):
            try:
                read(values, *labels)
            except ValueError:
                continue
            return False
    return True
