"""The audit of a pool: all models of a file at once, fixed before any score was seen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from radabound_fast.cli.replay import rows_of
from radabound_fast.files.answers import Write
from radabound_fast.files.reading import FileRows
from radabound_fast.holdout import Losses
from radabound_fast.pool.model_pool import ModelPool
from radabound_fast.pool.report import PoolReport

_AT_ONCE = 2**16  # models that are written at a time


def add_file(
    pool: ModelPool, rows: FileRows, names: Sequence[str] | None, *, packed: bool, n_threads: int
) -> None:
    """Add all rows of a file, which is read again where a step needs it.

    ValueError where a row is no predictions or losses; the message says which, in which file.
    """

    def read() -> Iterator[Any]:
        are_losses = isinstance(pool.judged, Losses)
        for block in rows:
            yield rows_of(block, pool.n_samples, are_losses) if packed else block

    try:
        pool.add(read, names, n_threads=n_threads)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{rows.name}: {error}") from error


def columns_of(report: PoolReport, keys: Sequence[str] | None) -> dict[str, Any]:
    """What a file of the answers has: a column a name, in the order of the file of models."""
    numbers = np.arange(1, report.n_models + 1)
    named: dict[str, Any] = {} if keys is None else {"key": keys}
    return named | {"query": numbers} | report.columns()


def write_columns(write: Write, columns: Mapping[str, Sequence[Any] | NDArray[Any]]) -> None:
    """Write all models, block by block."""
    n_models = len(columns["query"])
    for start in range(0, n_models, _AT_ONCE):
        part = slice(start, start + _AT_ONCE)
        write({name: column[part] for name, column in columns.items()})
