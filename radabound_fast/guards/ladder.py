"""The Ladder: only the best so far, and only when it improves by a real step."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from radabound_fast._checks import certainty, check_count, check_delta, check_probability, counted
from radabound_fast._kernels.support import sealed
from radabound_fast.bounds import adaptive
from radabound_fast.guards.answers import Answers, MeanAnswer, clip_to_unit
from radabound_fast.guards.base import Outlook
from radabound_fast.guards.mean_guard import MeanGuard, Progress

if TYPE_CHECKING:
    from radabound_fast.store import Durability, Path


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class LadderAnswer(MeanAnswer):
    """One answer of `Ladder`.

    Attributes
    ----------
    value : float
        The best mean loss so far, as far as the Ladder tells it.
    low, high : float
        The smallest true mean among the queries so far is between them: at most e + eta below
        the value, or e + eta/2 above it; in [0, 1].
    half_width, number
        As in `Answer`; half_width is e + eta.
    updated : bool
        True if this query improved on the best and the value is its own.
    """

    updated: bool


class LadderAnswers(Answers[LadderAnswer]):
    """`Answers` with an array ``updated``."""

    @cached_property
    def updated(self) -> NDArray[np.bool_]:
        return self._column("updated", np.bool_)


class _Standing(Progress):
    """The best answer of a `Ladder`, and how far it may be off."""

    n_updates = 0
    best = inf
    half_width = 0.0


class Ladder(MeanGuard[LadderAnswer, LadderAnswers]):
    """A leaderboard that adaptive analysts cannot climb by luck (Blum and Hardt [1]_).

    A query is answered by its own mean, rounded, only if it improves on the best answer so far
    by more than a step; otherwise the best answer is repeated.

    Parameters
    ----------
    judged : array_like, Holdout, int or Losses
        What is judged: labels, or a `Holdout` with the metric "error"; then queries bring
        predictions.  Or the number of held-out rows, m; then queries bring losses.
    step : float
        eta, the least improvement that counts and the grid of the answers, in units of loss;
        0 < step < 1.
    delta : float
        Probability that any answer is off by more than its half-width; 0 < delta < 1.
    max_queries : int, optional
        With it the transcripts are counted exactly, all half-widths are equal, and queries
        beyond it are refused. None: half-widths grow slowly with the queries and updates so
        far, and nothing is refused.

    Raises
    ------
    TypeError, ValueError
        An argument is outside its rule; the message names it.

    Notes
    -----
    With probability 1 - delta all exact means so far are within e of the truth, and then every
    answer is within e + eta of the smallest true mean so far (at most e + eta/2 below it): Result
    14 of docs/explanation/theory.md, which counts the nonincreasing transcripts of `max_queries`
    answers, or has a code for those of any length.  An answer rests on the means of all queries so
    far, so half-widths never fall.

    References
    ----------
    .. [1] A. Blum and M. Hardt, "The Ladder: a reliable leaderboard for machine learning
       competitions", ICML 2015.

    Examples
    --------
    >>> import numpy as np
    >>> ladder = Ladder(4000, step=0.01, delta=0.1, max_queries=1000)
    >>> losses = np.arange(4000) % 4 == 0
    >>> ladder.query(losses).value
    0.25
    >>> losses[:100] = False
    >>> ladder.query(losses).updated
    False
    """

    _answers_type = LadderAnswers
    _arguments = ("step", "delta", "max_queries")
    _progress: _Standing

    @sealed
    def __init__(
        self, judged: Any, step: float, *, delta: float, max_queries: int | None = None
    ) -> None:
        super().__init__(judged, _Standing())
        self.step = check_probability(step=step)
        self.delta = check_delta(delta)
        self.max_queries = None if max_queries is None else check_count(max_queries=max_queries)
        if self.max_queries is not None:
            self._progress.half_width = adaptive.ladder_half_width(
                self.max_queries, self.n_samples, self.step, self.delta
            )
        self._holdout.note_guard(None)

    @classmethod
    @sealed
    def open(
        cls,
        path: Path,
        judged: Any = None,
        step: float | None = None,
        *,
        delta: float | None = None,
        max_queries: int | None = None,
        holdout_id: str | None = None,
        durability: Durability = "power",
    ) -> Self:
        """Open the guard in a database, made now if there is none: see `RadaBound.open`.

        Other parameters are those of the class, and must be those that the database was made with.
        Without step and delta all are those of the database.
        """
        return cls._open(locals())

    @sealed
    def query(self, y_pred: Any) -> LadderAnswer:
        """Answer one query with a `LadderAnswer`.

        Predictions, or losses, are those of `GuessAndCheck.query`, and so are errors: the guard is
        exhausted once as many queries as `max_queries` have been answered.
        """
        (mean,) = self._read(y_pred, many=False)
        return self._one(mean)

    @sealed
    def query_many(self, Y_pred: Any) -> LadderAnswers:
        """Answer queries in order, bit for bit as a loop of `query` would.

        Rows, shape (k, n_samples), answers and errors are those of `FixedSequence.query_many`.
        """
        return self._many(self._read(Y_pred, many=True))

    def n_left(self) -> int | None:
        """Return how many queries of `max_queries` are left; None without that: there is no end."""
        return None if self.max_queries is None else self.max_queries - self.n_answered

    def _outlook(self) -> Outlook:
        if self.max_queries is None:
            return Outlook("no limit; intervals widen slowly", None)
        return super()._outlook()

    @property
    def n_updates(self) -> int:
        """How many queries improved on the best before them; the first one counts."""
        return int(self._current.n_updates)

    @property
    def guarantee(self) -> str:
        if self.max_queries is None:
            transcripts = "Kraft's inequality for a code of the nonincreasing transcripts"
        else:
            queries = counted(self.max_queries, "query", "queries")
            transcripts = f"an exact count of the nonincreasing transcripts of {queries}"
        return (
            f"With probability at least {certainty(self.delta)} every answer is within its "
            f"half_width of the smallest true mean loss among the queries so far. Two-sided, "
            f"finite-sample, valid for an adaptive analyst, whatever the queries; proved by "
            f"{transcripts}, the union bound and Hoeffding's inequality (after Blum and Hardt, "
            f"2015). Assumed: independent held-out examples, and losses in [0, 1] chosen from "
            f"earlier answers and from data independent of the holdout."
        )

    def _decide(self, mean: float, guess: float, number: int) -> LadderAnswer | str:
        if self.max_queries is not None and number > self.max_queries:
            return f"as many queries as max_queries = {self.max_queries} have been answered"
        done = self._progress
        if self.max_queries is None:
            width = adaptive.ladder_transcript_half_width(
                number, done.n_updates, self.n_samples, self.step, self.delta
            )
            done.half_width = max(done.half_width, width)
        updated = mean < done.best - self.step
        if updated:
            done.best = self.step * round(mean / self.step)
            done.n_updates += 1
        below = done.half_width
        above = below - self.step / 2
        low, high = clip_to_unit(done.best - below), clip_to_unit(done.best + above)
        return LadderAnswer(done.best, low, high, done.half_width, number, updated)
