"""The report of a search in a database, read in steps: memory does not grow with its answers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from radabound_fast.guards.declared.answers import Floats
    from radabound_fast.guards.declared.search import DeclaredSearch
    from radabound_fast.guards.report import Report
    from radabound_fast.store.record import Query

# answers that a step takes in: some hundredths of a second
STEP_ANSWERS = 5000
# of the best answers, and of those that the picture shows; of the latter up to four times as many
_N_BEST, _N_SHOWN = 10, 400


class Digest:
    """The best answers of a search in a database, and of all an even sample for the picture.

    `n_models` different queries were taken in so far.
    """

    def __init__(self, search: DeclaredSearch) -> None:
        record = search._record
        if record is None:
            raise ValueError("search must be opened from a database")
        self._search, self._record = search, record
        self.n_models = 0
        # queries with their numbers: the best, after their ranks; those that were the best when
        # they came; every so manieth; and the last
        self._best: list[tuple[float, int, Query]] = []
        self._leaders: list[tuple[int, Query]] = []
        self._sample: list[tuple[int, Query]] = []
        self._last: list[tuple[int, Query]] = []
        self._stride = 1

    def step(self) -> bool:
        """Take in the next answers, and return whether there may be more."""
        entries = self._record.after(self.n_models, STEP_ANSWERS)
        if entries:
            self.add(list(entries), self._search.answers_from(entries).ranks)
        return len(entries) == STEP_ANSWERS

    def add(self, queries: Sequence[Query], ranks: Floats) -> None:
        """Take in queries that are no earlier ones, at least one, and what they are ranked by."""
        numbered = list(enumerate(queries, self.n_models + 1))
        best = self._best[0][0] if self._best else math.inf
        leads = ranks < np.minimum.accumulate(np.append(best, ranks))[:-1]
        self._leaders += [numbered[row] for row in np.flatnonzero(leads).tolist()]
        while len(self._leaders) > 2 * _N_SHOWN:
            self._leaders = self._leaders[::2]
        rows = np.argsort(ranks, kind="stable")[:_N_BEST].tolist()
        self._best += [(float(ranks[row]), *numbered[row]) for row in rows]
        self._best = sorted(self._best)[:_N_BEST]  # numbers differ, so that no query is compared
        self._sample += numbered[-self.n_models % self._stride :: self._stride]
        while len(self._sample) > 2 * _N_SHOWN:
            self._sample, self._stride = self._sample[::2], 2 * self._stride
        self._last = numbered[-1:]
        self.n_models += len(queries)

    def report(self) -> Report:
        """Return the report on what was taken in; ValueError if nothing was."""
        best = [(number, query) for _, number, query in self._best]
        chosen = dict(sorted([*best, *self._leaders, *self._sample, *self._last]))
        entries = self._record.those(list(chosen.values()))
        answers = self._search.answers_from(entries, np.array(list(chosen), np.int64))
        return self._search.report_on(answers, n_models=self.n_models)
