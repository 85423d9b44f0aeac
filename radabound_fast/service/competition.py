"""A competition: teams see scores on the search rows, and their finalists are confirmed at the end.

What a team may learn by asking are the labels of the search rows, which does not matter.  Of the
confirmation rows nothing leaves before the end, when the finalists of all teams are one batch of a
`ConfirmedSearch`: what they cost is the logarithm of their number.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
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
    """A `ConfirmedSearch` as the service hosts it.

    Parameters
    ----------
    search : ConfirmedSearch
        Opened from a database.
    n_finalists : int
        How many finalists a team may name.
    """

    kind: ClassVar[str] = "ConfirmedSearch"
    of_teams: ClassVar[bool] = True

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

        Parameters
        ----------
        y_pred : array_like, shape (n_samples,)
        team : str
            Whose they are.
        finalist : str, optional
            Name these predictions as a finalist of the team, in place of an earlier one of this
            name.

        Raises
        ------
        ValueError
            Not predictions, or the team has as many finalists already, or the end has come.
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
        """Confirm the finalists of all teams in one batch, and return the report.

        Raises
        ------
        ValueError
            No finalist was named.
        """
        if not self.search.halted:
            self.search.confirm()
        return self.search.report()

    def report(self) -> ConfirmedReport:
        """Return the report; ValueError before the end."""
        if not self.search.halted:
            raise ValueError("finalists are confirmed when the owner ends the competition")
        return self.search.report()

    def intervals_of(self, answers: Sequence[Any]) -> Iterator[tuple[float, float, float]]:
        """Return no limits: a score on the search rows has none."""
        return (_NO_LIMITS for _ in answers)

    @property
    def halted(self) -> bool:
        """Whether the finalists were confirmed; scores go on."""
        return self.search.halted

    @property
    def can_answer(self) -> bool:
        """True: scores have no end."""
        return True

    @property
    def n_answered(self) -> int:
        """Scores given so far, to all teams."""
        return self._n_answered

    def n_left(self) -> int | None:
        """Return None: there is no end to the scores."""
        return None

    def n_left_public(self) -> int | None:
        """Return None: there is no end to the scores."""
        return None

    def outlook(self) -> Outlook:
        """Return what is left, for people."""
        if self.halted:
            return Outlook("scores on the search rows, without limit and without a promise", None)
        named = counted(len(self.search.nominated), "finalist")
        return Outlook(f"scores without limit; {named} named, confirmed together at the end", None)

    def what_now(self) -> str:
        """Return what to do after the end, for people; "" before it."""
        if not self.halted:
            return ""
        return (
            "Report the finalists with their intervals, which hold for all of them at once. To "
            "confirm more models take rows that nobody has seen."
        )

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters of the search, and how many finalists a team may name."""
        n_kept = int(np.count_nonzero(self.search.confirmation_rows))
        return self.search.parameters | {
            "n_confirmation_rows": n_kept,
            "finalists_a_team": self._n_finalists,
        }

    @property
    def guarantee(self) -> str:
        """What holds for the finalists; scores on the search rows have no promise."""
        return (
            f"Scores are on the search rows, and have no promise. Of the finalists: "
            f"{self.search.guarantee}"
        )

    def close(self) -> None:
        """Do nothing: the database is open for the length of a call."""
