"""Keys for a search without a space: the improvements that it was shown."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

from radabound_fast._checks import check_count
from radabound_fast.spaces.messages import quoted
from radabound_fast.spaces.space import Coded, Space, log_comb
from radabound_fast.spaces.tokens import as_int


class Improvements(Space):
    """The improvements shown to a search before a query, for searches that have no space of keys.

    Scores are rounded to n levels, and the search sees the best level so far and nothing else.  A
    key is what it had seen before the query: ``(n, ((1, first level), (place, level), ...))``, the
    number of answers, and the places at which the level fell with the new level; level 0 is the
    best, n_levels - 1 the worst.  `integrations.metric.HoldoutMetric` stores this list, rounds,
    and shows.

    Parameters
    ----------
    n_levels : int
        Number of levels; for a metric from 0 to 1, 101 levels are steps of .01.

    Notes
    -----
    After n answers with u improvements the weights are 1/((n+1)(n+2)) for n, 1/(u(u+1)) for u,
    equal for the places of all but the first, 1/n_levels for the first level, and 1/(j(j+1)) for
    each fall by j levels: they sum to at most 1.  The model of a query is a function of the key
    and of what is independent of the holdout, as long as the search sees nothing else of the
    holdout: Result 12 of docs/explanation/theory.md, or Result 20 for these keys.

    It is up to you that the search sees nothing else.  An answer of ``search.query`` contains the
    value itself, and so do ``answers``, ``best`` and ``report()``: none of these may reach the
    search, or you if you steer it, until it has ended.

    Examples
    --------
    >>> space = Improvements(101)
    >>> round(space.nats((0, ())), 2), round(space.nats((99, ((1, 30), (5, 24), (40, 22)))), 2)
    (0.69, 30.32)
    """

    def __init__(self, n_levels: int) -> None:
        self.n_levels = check_count(n_levels=n_levels, at_most=2**53)

    @property
    def size(self) -> None:
        """None: there are infinitely many keys."""

    @property
    def shows(self) -> str:
        return f"the best score so far on {self.n_levels} levels"

    def find(self, key: Any) -> Coded:
        n, falls = self._checked(key)
        nats = math.log(n + 1) + math.log(n + 2)
        if n == 0:
            return (0, ()), nats
        u = len(falls)
        nats += math.log(u) + math.log(u + 1) + log_comb(n - 1, u - 1) + math.log(self.n_levels)
        for (_, before), (_, after) in pairwise(falls):
            nats += math.log(before - after) + math.log(before - after + 1)
        return (n, falls), nats

    def _checked(self, key: Any) -> tuple[int, tuple[tuple[int, int], ...]]:
        try:
            n, falls = _whole(key[0]), tuple((_whole(i), _whole(level)) for i, level in key[1])
            fits = len(key) == 2 and (falls[0][0] == 1 if n else not falls and n == 0)
            fits = fits and all(1 <= i <= n and 0 <= level < self.n_levels for i, level in falls)
            fits = fits and all(i < j and a > b for (i, a), (j, b) in pairwise(falls))
        except (TypeError, ValueError, LookupError):
            fits = False
        if not fits:
            raise ValueError(
                "key must be how many answers were shown, and the place and level of every "
                f"improvement among them, got {quoted(key)}"
            )
        return n, falls

    def key_of(self, code: Any) -> tuple[int, tuple[tuple[int, int], ...]]:
        n, falls = code
        return n, tuple((place, level) for place, level in falls)

    def describe(self) -> dict[str, Any]:
        return {"kind": "Improvements", "n_levels": self.n_levels}

    def __repr__(self) -> str:
        return f"Improvements({self.n_levels})"


def _whole(number: Any) -> int:
    """`as_int` of a number; TypeError if it is not whole."""
    whole = as_int(number)
    if whole is None:
        raise TypeError(f"key must have whole numbers, got {quoted(number)}")
    return whole
