"""A competition: teams see scores on the search rows, and their finalists are confirmed at the end.

What a team may learn by asking are the labels of the search rows, which does not matter.  Of the
confirmation rows nothing leaves before the end, when the finalists of all teams are one batch of a
`ConfirmedSearch`: what they cost is the logarithm of their number.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from radabound_fast._checks import check_count, counted
from radabound_fast.guards.answers import Answers
from radabound_fast.guards.base import Guard, Outlook
from radabound_fast.guards.confirmed.report import ConfirmedReport
from radabound_fast.guards.confirmed.search import ConfirmedSearch
from radabound_fast.service.client import RemoteAnswer
from radabound_fast.store.served import Log, ServedDatabase

_NO_LIMITS = (math.nan, math.nan, math.nan)


class Competition(Guard):
    """A `ConfirmedSearch`, opened from a database, as the service hosts it.

    Scores on the search rows have no end and no limits; `halted` says that the finalists, of which
    a team may name `n_finalists`, were confirmed.
    """

    kind: ClassVar[str] = "ConfirmedSearch"
    of_teams: ClassVar[bool] = True
    can_answer = True

    def __init__(self, search: ConfirmedSearch, n_finalists: int) -> None:
        self.search, self._n_finalists = search, check_count(finalists=n_finalists)
        self.delta, self._holdout = search.delta, search.holdout
        self._store = search.share_transactions()
        self._store.look(self.recount)

    def share_transactions(self) -> ServedDatabase:
        """Return the database, with its log of calls."""
        return self._store

    def recount(self, log: Log) -> None:
        """Take the number of scores from the log: what was not committed was not given."""
        self._n_answered = sum(one.n_answers for one in log.askers(0).values())

    def query(self, y_pred: Any, *, team: str, finalist: str | None = None) -> RemoteAnswer:
        """Return the score of predictions on the search rows.

        With `finalist` they are named as a finalist of the team, in place of an earlier one of this
        name; ValueError if the team has as many already, or the end has come.
        """
        value = self.search.score(y_pred)
        if finalist is not None:
            self._nominate(y_pred, team, finalist)
        self._n_answered += 1
        return RemoteAnswer(value, *_NO_LIMITS, self._n_answered)

    def query_many(self, Y_pred: Any, *, team: str) -> Answers[RemoteAnswer]:
        """Return the scores of several rows of predictions on the search rows."""
        first = self._n_answered + 1
        values = self.search.score_many(Y_pred).tolist()
        self._n_answered += len(values)
        answers = [RemoteAnswer(one, *_NO_LIMITS, first + n) for n, one in enumerate(values)]
        return Answers(answers, halted=False, n_answered=self._n_answered)

    def _nominate(self, y_pred: Any, team: str, finalist: Any) -> None:
        if not isinstance(finalist, str) or not 0 < len(finalist) <= 100:
            raise ValueError(
                f"finalist must be a name of 1 to 100 characters, got {finalist!r:.50}"
            )
        name = f"{team}: {finalist}"
        mine = {one for one in self.search.nominated if one.startswith(f"{team}: ")}
        if len(mine | {name}) > self._n_finalists:
            raise ValueError(
                f"{team} has {counted(len(mine), 'finalist')}, which is all: take the name of one, "
                "which is replaced then"
            )
        self.search.nominate(name, y_pred)

    def end(self) -> ConfirmedReport:
        """Confirm all finalists in one batch, and return the report; ValueError without any."""
        if not self.search.halted:
            self.search.confirm()
        return self.search.report()

    def report(self) -> ConfirmedReport:
        """Return the report; ValueError before the end."""
        if not self.search.halted:
            raise ValueError("finalists are confirmed when the owner ends the competition")
        return self.search.report()

    @property
    def halted(self) -> bool:
        return self.search.halted

    @property
    def n_answered(self) -> int:
        return self._n_answered

    def n_left(self) -> int | None:
        return None

    n_left_public = n_left

    def outlook(self) -> Outlook:
        if self.halted:
            return Outlook("scores on the search rows, without limit and without a promise", None)
        named = counted(len(self.search.nominated), "finalist")
        return Outlook(f"scores without limit; {named} named, confirmed together at the end", None)

    def what_now(self) -> str:
        if not self.halted:
            return ""
        return (
            "Report the finalists with their intervals, which hold for all of them at once. To "
            "confirm more models take rows that nobody has seen."
        )

    @property
    def parameters(self) -> dict[str, Any]:
        n_rows = int(np.count_nonzero(self.search.confirmation_rows))
        own = {"n_confirmation_rows": n_rows, "finalists_a_team": self._n_finalists}
        return self.search.parameters | own

    @property
    def guarantee(self) -> str:
        return (
            f"Scores are on the search rows, and have no promise. Of the finalists: "
            f"{self.search.guarantee}"
        )
