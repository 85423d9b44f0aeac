"""The audit of a free search: every row of a file is scored, and the best ones are confirmed."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np

from radabound_fast._checks import check_count
from radabound_fast._kernels.rows import PackedLosses
from radabound_fast.cli.auditing import Audit, Columns, Files
from radabound_fast.guards.confirmed.report import ConfirmedReport
from radabound_fast.guards.confirmed.search import ConfirmedSearch


class ConfirmedAudit(Audit):
    """A search that scores every row on the search rows, and confirms the best at the end."""

    def __init__(self, files: Files) -> None:
        super().__init__(files)
        args, (what, baseline) = self.args, files.judged()
        options = {"confirm_share": args.confirm_share, "seed": args.seed, "baseline": baseline}
        self.search = ConfirmedSearch(what, delta=args.delta, **options)
        self._n_finalists = check_count(finalists=1 if args.finalists is None else args.finalists)
        self.columns = (*files.names_of(0, 0), "query", "value")
        self._n_rows = 0
        # the best so far: score (more is better), minus the query's number, and its row
        self._best: list[tuple[float, int, Any]] = []

    def ask(self, rows: Any) -> Iterator[Columns]:
        first = self._n_rows + 1
        values = self.search.score_many(rows)
        scores = values if self.search.greater_is_better else -values
        self._n_rows += len(rows)
        is_packed = isinstance(rows, PackedLosses)
        for row in np.argsort(-scores, kind="stable")[: self._n_finalists].tolist():
            entry = float(scores[row]), -(first + row), row
            if len(self._best) == self._n_finalists and entry < self._best[0][:2]:
                break
            copy = PackedLosses(rows.words[row], rows.n_samples) if is_packed else rows[row].copy()
            push = heapq.heappush if len(self._best) < self._n_finalists else heapq.heappushpop
            push(self._best, (*entry[:2], copy))
        numbers = np.arange(first, self._n_rows + 1)
        named = self.files.names_of(first - 1, len(rows))
        yield lambda: {**named, "query": numbers, "value": values}

    @cached_property
    def report(self) -> ConfirmedReport:
        """The report on the best rows, which are confirmed when it is first asked for."""
        best = sorted(self._best)[::-1]
        self.search.confirm({self.files.name_of(-number - 1): row for _, number, row in best})
        return self.search.report()

    def head(self) -> str:
        return f"delta {self.args.delta:g}"

    def record(self) -> dict[str, Any]:
        return {"confirmed": self.report.as_json()}
