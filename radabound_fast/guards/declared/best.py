"""The best answers of a search, where the others are not stored."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from radabound_fast._kernels.support import QuickLock
from radabound_fast.guards.declared.answers import DeclaredSearchAnswers, Terms

# rows whose limits are computed together, since equal counts have one, and blocks that may wait
_MANY_ROWS, _MANY_BLOCKS = 1 << 16, 128

# the best, later ones that have not been compared with them, and how many there were in all
_State = tuple[DeclaredSearchAnswers, tuple[DeclaredSearchAnswers, ...], int]


class BestAnswers:
    """The n best answers of a search in the order of the queries; the first of equals.

    Any thread may add answers.
    """

    def __init__(self, terms: Terms, n_best: int) -> None:
        self.n_best, self._lock = n_best, QuickLock()
        columns = [np.empty(0, terms.dtype)] * terms.measure.n_stored
        no_ints = np.empty(0, np.int64)
        nothing = DeclaredSearchAnswers(terms, [], no_ints, columns, np.empty(0), no_ints, 0)
        # changed in one step, so that an interrupt leaves nothing half done
        self._state: _State = nothing, (), 0

    @property
    def n_answered(self) -> int:
        """How many answers there were in all."""
        return self._state[2]

    @property
    def answers(self) -> DeclaredSearchAnswers:
        """The best so far; their ``n_answered`` is how many answers there were in all."""
        with self._lock:
            self._state = best, _, n = self._compared(self._state)
        return best.those(np.arange(len(best)), n_answered=n)

    def add(self, blocks: Iterable[DeclaredSearchAnswers]) -> int:
        """Add answers that are numbered from 1, all or none; return how many there are then."""
        own: _State = self._state[0].those(np.arange(0)), (), 0
        for block in blocks:
            own = self._with(own, block)
        best, pending, n_own = own
        with self._lock:
            state = self._state
            n = state[2]
            for block in (best, *pending) if len(best) else pending:
                state = self._with(state, block.those(np.arange(len(block)), n))
            self._state = *state[:2], n + n_own
        return n + n_own

    def _with(self, state: _State, block: DeclaredSearchAnswers) -> _State:
        best, pending, n = state
        state = best, (*pending, block), n + len(block)
        many = len(pending) >= _MANY_BLOCKS or sum(map(len, state[1])) >= _MANY_ROWS
        return self._compared(state) if many else state

    def _compared(self, state: _State) -> _State:
        """Compare the later ones with the best."""
        best, pending, n = state
        if not pending:
            return state
        every = DeclaredSearchAnswers.joined([best, *pending])
        ranks, numbers = every.ranks, every.numbers
        rows = np.arange(len(ranks))
        if len(ranks) > self.n_best:
            worst = np.partition(ranks, self.n_best - 1)[self.n_best - 1]
            rows = np.flatnonzero(ranks <= worst)
            rows = rows[np.lexsort((numbers[rows], ranks[rows]))][: self.n_best]
        return every.those(rows[numbers[rows].argsort()]), (), n

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_lock": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _lock=QuickLock())
