"""The audit of a free search: every row of a file is scored, and the best ones are confirmed."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from radabound_fast._kernels.rows import PackedLosses
from radabound_fast.cli.replay import Replay, Told
from radabound_fast.guards.confirmed.report import ConfirmedReport
from radabound_fast.guards.confirmed.search import ConfirmedSearch


class ConfirmReplay(Replay):
    """A search that scores every row on the search rows, and confirms the best at the end."""

    halted: ClassVar[bool] = False

    def __init__(
        self,
        search: ConfirmedSearch,
        n_finalists: int,
        *,
        names: Sequence[str] | None = None,
        packed: bool = False,
    ) -> None:
        self.search, self._n_finalists = search, n_finalists
        super().__init__(search.holdout, packed, names)
        self.columns = (*self.named, "query", "value")
        self._n_rows = 0
        # the best so far: score (more is better), minus the query's number, and its row
        self._best: list[tuple[float, int, Any]] = []

    def _ask(self, rows: Any) -> Told:
        first = self._n_rows + 1
        values = self.search.score_many(rows)
        scores = values if self.search.greater_is_better else -values
        self._n_rows += len(rows)
        is_packed = isinstance(rows, PackedLosses)
        for row in np.argsort(-scores, kind="stable")[: self._n_finalists].tolist():
            entry = float(scores[row]), -(first + row), row
            if len(self._best) == self._n_finalists and entry < self._best[0][:2]:
                break
            kept = PackedLosses(rows.words[row], rows.n_samples) if is_packed else rows[row].copy()
            push = heapq.heappush if len(self._best) < self._n_finalists else heapq.heappushpop
            push(self._best, (*entry[:2], kept))
        numbers = np.arange(first, self._n_rows + 1)
        named = self.names_of(first - 1, len(rows))
        return lambda: {**named, "query": numbers, "value": values}

    @cached_property
    def report(self) -> ConfirmedReport:
        """The report on the best rows, which are confirmed when it is first asked for."""
        self.search.confirm(
            {self.name_of(-number - 1): row for _, number, row in sorted(self._best)[::-1]}
        )
        return self.search.report()

    @property
    def sentence(self) -> str:
        return str(self.report)
