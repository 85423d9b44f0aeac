"""The reports of a declared search: each viewer's is read on from where it was, in steps.

A step takes some hundredths of a second, so that the reports of many teams are read in turns.  The
owner's is of all that is in the database, a team's of the replies that it got.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from radabound_fast.guards.declared.digest import STEP_ANSWERS, Digest
from radabound_fast.guards.declared.search import DeclaredSearch
from radabound_fast.service.state import report_fields
from radabound_fast.service.tokens import Team
from radabound_fast.service.wire import answers_in, ranks_of
from radabound_fast.store.record import Query
from radabound_fast.store.served import Log

Read = Callable[[Callable[[Log], Any]], Any]


class _TeamDigest(Digest):
    """The digest of the answers of one team.

    An answer that a team got twice is one model: of each there are eight octets, a hash, so that
    two models count as one with a chance of 3e-8 among a million.
    """

    def __init__(self, search: DeclaredSearch, team: str, read: Read) -> None:
        super().__init__(search)
        self._team, self._read = team, read
        self._row = 0  # in the log, of the last call
        self._hashes = np.empty(0, np.int64)  # sorted

    def step(self) -> bool:
        calls = self._read(lambda log: log.after(self._team, self._row, STEP_ANSWERS))
        queries: list[Query] = []
        ranks: list[float] = []
        for _, reply in calls:
            answers = answers_in(json.loads(reply))
            codes = [self._search.space.find(key)[0] for key in answers["key"]]
            queries += zip(codes, answers["rerun"], strict=True)
            ranks += ranks_of(answers, greater_is_better=self._search.greater_is_better)
        if calls:
            self._row, _ = calls[-1]
            rows = self._new(np.array([hash(query) for query in queries], np.int64))
            if rows:
                self.add([queries[row] for row in rows], np.array(ranks)[rows])
        return len(queries) >= STEP_ANSWERS

    def _new(self, hashes: NDArray[np.int64]) -> list[int]:
        """The rows whose hashes did not come before, in order."""
        hashes, rows = np.unique(hashes, return_index=True)
        places = np.searchsorted(self._hashes, hashes)
        are_new = places == np.searchsorted(self._hashes, hashes, side="right")
        self._hashes = np.insert(self._hashes, places[are_new], hashes[are_new])
        new: list[int] = np.sort(rows[are_new]).tolist()
        return new


class Reports:
    """The reports of a search; `read` returns what a function of the log reads, in any thread."""

    def __init__(self, search: DeclaredSearch, read: Read) -> None:
        self._search, self._read = search, read
        self._digests: dict[str, Digest] = {}
        self._latest: dict[str, tuple[int, bytes]] = {}  # the last reply, and of how many models

    def step(self, team: Team) -> bool:
        """Read on for a team, and return whether there may be more."""
        digest = self._digests.get(team.name)
        if digest is None:
            digest = Digest(self._search)
            if not team.is_owner:
                digest = _TeamDigest(self._search, team.name, self._read)
            self._digests[team.name] = digest
        return digest.step()

    def reply(self, team: Team) -> bytes:
        """Return the report on what was read, as JSON; ValueError if that is nothing."""
        digest = self._digests[team.name]
        n_models, reply = self._latest.get(team.name, (0, b""))
        if n_models < digest.n_models or not n_models:
            reply = json.dumps(report_fields(digest.report())).encode()
            self._latest[team.name] = digest.n_models, reply
        return reply
