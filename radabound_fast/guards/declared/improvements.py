"""What a search over `spaces.Improvements` is shown: the best score so far, on a few levels."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from radabound_fast.guards.declared.search import DeclaredSearch

# how many answers were given, and at which of them the level fell, to what
_Key = tuple[int, tuple[tuple[int, int], ...]]


class BestSoFar:
    """Queries a `DeclaredSearch` over `spaces.Improvements`, and returns the best level so far.

    Threads may share it, and so may the processes that open one database: the key of each query is
    what all of them were shown before.  It is a ValueError if the search has folds or, by `query`,
    if it was queried in another way.
    """

    def __init__(self, search: DeclaredSearch, n_levels: int) -> None:
        if search.n_folds is not None:
            raise ValueError(
                "guard must be a search without n_folds over spaces.Improvements: scores of folds "
                "are not what is shown"
            )
        self._search, self.lock = search, threading.Lock()
        self._least, self._most = search.limits_of_metric
        self._n_steps = n_levels - 1
        self._key: _Key = (0, ())

    def query(self, y_pred: Any) -> float:
        """Query with the key that is due, and return the best value so far, rounded to a level.

        If they are no predictions, nothing has changed.
        """
        with self.lock:
            while True:
                self._catch_up()
                n_answered = self._key[0]
                try:
                    value = self._search.query(y_pred, key=self._key).value
                except ValueError:
                    if self._search.n_answered == n_answered:
                        raise
                    continue  # another process has queried with this key
                self._key = self._after(self._key, value)
                return self._value_of(self._key[1][-1][1])

    def _catch_up(self) -> None:
        """Take in the answers of other processes, which write to the same database."""
        if self._search.n_answered == self._key[0]:
            return
        last = self._search.answers[-1]
        if last.key[0] + 1 != last.number:
            raise ValueError("guard must be queried by its metric alone, it was queried otherwise")
        self._key = self._after(last.key, last.value)

    def _after(self, key: _Key, value: float) -> _Key:
        n_answered, falls = key
        level = self._level_of(value)
        if n_answered == 0 or level < falls[-1][1]:
            falls = (*falls, (n_answered + 1, level))
        return n_answered + 1, falls

    def _level_of(self, value: float) -> int:
        worse = self._most - value if self._search.greater_is_better else value - self._least
        level = round(worse / (self._most - self._least) * self._n_steps)
        return min(max(level, 0), self._n_steps)  # a mean may be beyond its range by rounding

    def _value_of(self, level: int) -> float:
        worse = (self._most - self._least) * (level / self._n_steps if self._n_steps else 0.0)
        return self._most - worse if self._search.greater_is_better else self._least + worse
