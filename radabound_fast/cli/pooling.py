"""The audit of a pool: all models of a file at once, fixed before any score was seen."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from radabound_fast.cli import options
from radabound_fast.cli.auditing import Audit, Columns, Files
from radabound_fast.cli.spaces import read_keys
from radabound_fast.files.output import answers_file
from radabound_fast.pool.model_pool import ModelPool

_AT_ONCE = 2**16  # models that are written at a time


class PoolAudit(Audit):
    """A pool of all the rows, whose file is read again where a step needs it."""

    def __init__(self, files: Files) -> None:
        super().__init__(files)
        what, baseline = files.judged()
        signs = options.values(self.args, "delta", "n_vectors", "seed")
        self.pool = ModelPool(what, baseline=baseline, **signs)
        n_rows = files.rows.shape[0]
        self.keys = None if self.args.keys is None else read_keys(self.args.keys, n_rows)

    def ask(self, rows: Any) -> Iterable[Columns]:
        return ()  # but about all rows at once

    def replay(self) -> None:
        """Add all rows, and write all models.

        ValueError where a row is no predictions or losses, with the file and the row.
        """
        files, names = self.files, self.files.names
        n_rows = files.rows.shape[0]
        if self.keys is not None:
            names = self.keys
        elif names is None or len(set(names)) < len(names):
            names = [f"query {number:,}" for number in range(1, n_rows + 1)]
        try:
            # again and again, where a step needs it
            self.pool.add(lambda: map(files.ready, files.rows), names, n_threads=files.n_threads)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{files.rows.name}: {error}") from error
        self.report = self.pool.report()
        if self.args.output:
            columns = {} if self.keys is None else {"key": self.keys}
            columns |= {"query": np.arange(1, n_rows + 1)} | self.report.columns()
            with answers_file(self.args.output, list(columns), keep=False) as write:
                for start in range(0, n_rows, _AT_ONCE):
                    part = slice(start, start + _AT_ONCE)
                    write({name: column[part] for name, column in columns.items()})

    def head(self) -> str:
        return self.files.signs_of(self.pool, self.args.seed is None)

    def record(self) -> dict[str, Any]:
        signs = {"seed": self.pool.seed, "n_vectors": self.pool.n_vectors}
        return signs | {"pool": self.report.as_json()}
