"""The best answers of a search, where the others are not stored."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from radabound_fast.guards.declared.answers import DeclaredSearchAnswers, Terms

# rows whose limits are computed together: equal counts among them have one
_MANY = 1 << 16


class BestAnswers:
    """The n best answers of a search in the order of the queries; the first of equals.

    Any thread may add answers; `n_answered` is how many there were in all.
    """

    def __init__(self, terms: Terms, n_best: int) -> None:
        self.n_best, self.n_answered, self._lock = n_best, 0, threading.Lock()
        dtype = np.float64 if terms.measure.keeps == "limits" else np.int64
        no_ints = np.empty(0, np.int64)
        self._best = DeclaredSearchAnswers(
            terms, [], no_ints, [np.empty(0, dtype)] * terms.measure.n_kept, np.empty(0), no_ints, 0
        )
        self._worst = math.inf  # the limit that an answer must be better than

    @property
    def answers(self) -> DeclaredSearchAnswers:
        """The best so far."""
        with self._lock:
            return self._best.those(np.arange(len(self._best)), n_answered=self.n_answered)

    def add(self, blocks: Iterable[DeclaredSearchAnswers]) -> int:
        """Add answers that are numbered from 1, all or none; return how many there are then."""
        found, n = self._best.those(np.arange(0)), 0
        for block in _of_many_rows(blocks):
            rows, n = self._rows_of_best(block), n + len(block)
            better = block.those(rows[block.ranks[rows] < self._worst])
            found = self._best_of(found, better) if len(better) else found
        with self._lock:
            if len(found):
                found = found.those(np.arange(len(found)), self.n_answered)
                self._best = self._best_of(self._best, found)
                if len(self._best) == self.n_best:
                    self._worst = float(self._best.ranks.max())
            self.n_answered += n
            return self.n_answered

    def _best_of(
        self, one: DeclaredSearchAnswers, other: DeclaredSearchAnswers
    ) -> DeclaredSearchAnswers:
        both = DeclaredSearchAnswers.joined([one, other])
        return both.those(self._rows_of_best(both))

    def _rows_of_best(self, answers: DeclaredSearchAnswers) -> NDArray[np.intp]:
        """Rows of the best, in the order of their numbers."""
        ranks, numbers = answers.ranks, answers.numbers
        rows = np.arange(len(ranks))
        if len(ranks) > self.n_best:
            worst = np.partition(ranks, self.n_best - 1)[self.n_best - 1]
            better, as_good = np.flatnonzero(ranks < worst), np.flatnonzero(ranks == worst)
            first = as_good[numbers[as_good].argsort()][: self.n_best - len(better)]
            rows = np.append(better, first)
        return rows[numbers[rows].argsort()]

    def __getstate__(self) -> dict[str, Any]:
        with self._lock:
            return vars(self) | {"_lock": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _lock=threading.Lock())


def _of_many_rows(blocks: Iterable[DeclaredSearchAnswers]) -> Iterator[DeclaredSearchAnswers]:
    """Yield the answers in fewer blocks."""
    gathered: list[DeclaredSearchAnswers] = []
    n = 0
    for block in blocks:
        gathered.append(block)
        n += len(block)
        if n >= _MANY:
            yield DeclaredSearchAnswers.joined(gathered)
            gathered, n = [], 0
    if gathered:
        yield DeclaredSearchAnswers.joined(gathered)
