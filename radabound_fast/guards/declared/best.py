"""The best answers of a search, where the others are not stored."""

from __future__ import annotations

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

    Any thread may add answers.

    Parameters
    ----------
    terms : Terms
    n_best : int

    Attributes
    ----------
    answers : DeclaredSearchAnswers
        The best so far; their ``n_answered`` is how many there were in all.
    """

    def __init__(self, terms: Terms, n_best: int) -> None:
        self.n_best, self._lock = n_best, threading.Lock()
        dtype = np.float64 if terms.measure.keeps == "limits" else np.int64
        no_ints = np.empty(0, np.int64)
        self.answers = DeclaredSearchAnswers(
            terms, [], no_ints, [np.empty(0, dtype)] * terms.measure.n_kept, np.empty(0), no_ints, 0
        )

    @property
    def n_answered(self) -> int:
        """How many answers there were in all."""
        return self.answers.n_answered

    def add(self, blocks: Iterable[DeclaredSearchAnswers]) -> int:
        """Add answers that are numbered from 1, all or none; return how many there are then."""
        best = None
        for block in _of_many_rows(blocks):
            found = block.those(self._rows_of_best(block.ranks))
            best = found if best is None else self._best_of(best, found)
        with self._lock:
            before = self.answers
            if best is not None:
                best = self._best_of(before, best.those(np.arange(len(best)), before.n_answered))
                self.answers = best
            return self.answers.n_answered

    def _best_of(
        self, one: DeclaredSearchAnswers, other: DeclaredSearchAnswers
    ) -> DeclaredSearchAnswers:
        both = DeclaredSearchAnswers.joined([one, other])
        return both.those(self._rows_of_best(both.ranks))

    def _rows_of_best(self, ranks: NDArray[np.float64]) -> NDArray[np.intp]:
        if len(ranks) <= self.n_best:
            return np.arange(len(ranks))
        worst = np.partition(ranks, self.n_best - 1)[self.n_best - 1]
        better, as_good = np.flatnonzero(ranks < worst), np.flatnonzero(ranks == worst)
        return np.sort(np.append(better, as_good[: self.n_best - len(better)]))

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_lock": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _lock=threading.Lock())


def _of_many_rows(blocks: Iterable[DeclaredSearchAnswers]) -> Iterator[DeclaredSearchAnswers]:
    """The same answers in fewer blocks."""
    gathered: list[DeclaredSearchAnswers] = []
    for block in blocks:
        gathered.append(block)
        if sum(map(len, gathered)) >= _MANY:
            yield DeclaredSearchAnswers.joined(gathered)
            gathered = []
    if gathered:
        yield DeclaredSearchAnswers.joined(gathered)
