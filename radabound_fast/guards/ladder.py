"""The Ladder: only the best so far, and only when it improves by a real step."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import inf, isclose, isnan, nan, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from radabound_fast._checks import (
    certainty,
    check_count,
    check_delta,
    check_n_samples,
    check_probability,
    counted,
)
from radabound_fast._kernel import UNIT_SHIFT
from radabound_fast.bounds import adaptive
from radabound_fast.guards.answers import Answers
from radabound_fast.guards.mechanism import Mechanism, MechanismAnswer, cut
from radabound_fast.guards.reader import Losses, LossReader, deviation_of_difference


@dataclass(frozen=True, slots=True, repr=False)
class LadderAnswer(MechanismAnswer):
    """One answer of `Ladder`.

    Attributes
    ----------
    value : float
        The best mean loss so far, as far as the Ladder tells it.
    low, high : float
        The smallest true mean among the queries so far is between them: at most e + eta below
        the value, or e + eta/2 above it; in [0, 1].  nan for the parameter-free rule.
    half_width : float
        e + eta; nan for the parameter-free rule.
    n_queries : int
        Answers given so far, this one counted.
    updated : bool
        True if this query improved on the best and the value is its own.
    """

    updated: bool


class LadderAnswers(Answers[LadderAnswer]):
    """The answered prefix of a block: `Answers` with an array ``updated``."""

    @cached_property
    def updated(self) -> NDArray[np.bool_]:
        return self._column("updated", np.bool_)


class Ladder(Mechanism[LadderAnswer, LadderAnswers]):
    """A leaderboard that adaptive analysts cannot climb by luck (Blum and Hardt [1]_).

    A query is answered by its own mean, rounded, only if it improves on the best answer so far
    by more than a step; otherwise the best answer is repeated.

    Parameters
    ----------
    n_samples : int
        m, the number of held-out examples; at least 1.
    step : float, optional
        eta, the least improvement that counts and the grid of the answers, in units of loss;
        0 < step < 1. None is the parameter-free rule: a query improves if its mean is below
        the best answer by more than sd(its losses - the best's losses) / sqrt(m), sd with
        divisor m, and its mean is rounded to a multiple of 1/m.
    delta : float
        Probability that any answer is off by more than its half-width; 0 < delta < 1. The
        parameter-free rule has no half-width and does not use it.
    max_queries : int, optional
        With it the transcripts are counted exactly, all half-widths are equal, and queries
        beyond it are refused. None: half-widths grow slowly with the queries and updates so
        far, and nothing is refused.

    Raises
    ------
    TypeError, ValueError
        For an argument outside its rule; the message names it.

    Notes
    -----
    With G = floor(1/eta + 1/2) + 1 grid points, all exact means asked for are within e of the
    truth with probability 1 - delta, and then every answer is within e + eta of the smallest
    true mean so far (at most e + eta/2 below it). Either

        2 C(k+G-1, G) exp(-2 m e^2) = delta,    k = max_queries,

    which counts the nonincreasing transcripts, or with u updates among t - 1 answers

        2 m e_t^2 = ln(2/delta) + ln(t(t+1)) + ln(u(u+1)) + ln C(t-2, u-1) + ln C(G, u)

    (t = 1: ln(2/delta) + ln 2), a code for them (Kraft). An answer rests on the means of all
    queries so far, and e_t falls where nearly all grid points have been used, so the half-width
    is eta plus the largest e so far.

    What `open` and `save` write of a parameter-free Ladder holds the losses of its best query:
    keep it as the labels are kept.

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
    _needs_guess = False
    _arguments = ("n_samples", "step", "delta", "max_queries")
    _n_own = 5
    _shown = (*_arguments, "n_queries", "halted")

    def __init__(
        self,
        n_samples: int,
        step: float | None = None,
        *,
        delta: float,
        max_queries: int | None = None,
    ) -> None:
        super().__init__(n_samples)
        self.step = None if step is None else check_probability(step=step)
        self.delta = check_delta(delta)
        self.max_queries = None if max_queries is None else check_count(max_queries=max_queries)
        self._best = inf
        self._best_losses: Losses | None = None
        self._n_updates = 0
        if self.step is None:
            self._half_width = nan
        elif self.max_queries is None:
            self._half_width = 0.0
        else:
            self._half_width = adaptive.ladder_half_width(
                self.max_queries, self.n_samples, self.step, self.delta
            )

    @property
    def n_updates(self) -> int:
        """How many queries improved on the best before them; the first one counts."""
        self._refresh()
        return self._n_updates

    @property
    def guarantee(self) -> str:
        """What is guaranteed, when, and proved by what."""
        if self.step is None:
            return (
                "A heuristic: for the parameter-free rule no finite-sample bound is known, for "
                "queries fixed in advance or for an adaptive analyst, so half_width is nan. "
                "With a step the Ladder has one (Blum and Hardt, 2015)."
            )
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

    def _decide(self, rows: LossReader, row: int, guess: float, number: int) -> LadderAnswer | str:
        if self.max_queries is not None and number > self.max_queries:
            return f"as many queries as max_queries = {self.max_queries} have been answered"
        if self.step is not None and self.max_queries is None:
            width = adaptive.ladder_transcript_half_width(
                number, self._n_updates, self.n_samples, self.step, self.delta
            )
            self._half_width = max(self._half_width, width)
        mean = rows.means[row]
        updated = mean < self._best - self._least_improvement(mean, rows, row)
        if updated:
            self._best = self._rounded(mean)
            self._n_updates += 1
            if self.step is None:
                self._best_losses = rows.losses(row)
        below = self._half_width
        above = below - (self.step or 0.0) / 2
        low, high = cut(self._best - below), cut(self._best + above)
        return LadderAnswer(self._best, low, high, self._half_width, number, updated)

    def _least_improvement(self, mean: float, rows: LossReader, row: int) -> float:
        if self.step is not None:
            return self.step
        if self._best_losses is None or mean >= self._best:
            return 0.0
        losses = rows.losses(row)
        deviation = deviation_of_difference(losses, self._best_losses, self.n_samples)
        return deviation / sqrt(self.n_samples)

    def _rounded(self, mean: float) -> float:
        if self.step is None:
            return round(mean * self.n_samples) / self.n_samples
        return self.step * round(mean / self.step)

    def _own(self) -> NDArray[np.int64]:
        floats = np.array([self._best, self._half_width])
        losses = self._best_losses
        if losses is None:
            losses = np.empty(0, np.uint8)
        whole = losses.tobytes().ljust(-(-losses.nbytes // 8) * 8, b"\0")
        return np.concatenate(
            [
                np.array([self._n_updates, losses.nbytes, losses.itemsize], np.int64),
                floats.view(np.int64),
                np.frombuffer(whole, np.int64),
            ]
        )

    def _resume_own(self, own: NDArray[np.int64], n_queries: int) -> None:
        n_updates, n_bytes, itemsize = own[:3].tolist()
        best, half_width = own[3:5].view(np.float64).tolist()
        self._check_counts(n_queries, n_updates, best, half_width)
        # bits, or units of 2^-24
        sizes = {1: -(-self.n_samples // 8), 4: 4 * self.n_samples}
        kept = self.step is None and n_updates > 0
        if n_bytes != (sizes.get(itemsize, -1) if kept else 0) or len(own) != 5 - (-n_bytes // 8):
            raise ValueError("the state has losses of another length")
        losses = np.frombuffer(own[5:].tobytes()[:n_bytes], "u1" if itemsize == 1 else "i4")
        if itemsize == 4 and kept and not 0 <= losses.min() <= losses.max() <= 1 << UNIT_SHIFT:
            raise ValueError("the state has losses outside [0, 1]")
        self._best_losses = losses if kept else None
        self._n_updates, self._best, self._half_width = n_updates, best, half_width

    def _check_counts(self, n_queries: int, n_updates: int, best: float, half_width: float) -> None:
        """Raise ValueError for numbers that no queries lead to."""
        most = n_queries if self.step is None else min(n_queries, adaptive.ladder_levels(self.step))
        if not min(1, n_queries) <= n_updates <= most:
            raise ValueError(f"the state has {n_updates} updates in {n_queries} answers")
        if self.max_queries is not None and n_queries > self.max_queries:
            raise ValueError(f"the state has {n_queries} answers, of {self.max_queries}")
        if not (0 <= best <= 2 if n_updates else best == inf):
            raise ValueError(f"the state has a best mean of {best}")
        if self.step is None:
            expected = isnan(half_width)
        elif self.max_queries is not None:
            expected = isclose(half_width, self._half_width)
        else:
            expected = half_width > self.step if n_queries else half_width == 0
        if not (expected and half_width != inf):
            raise ValueError(f"the state has a half-width of {half_width}")

    @classmethod
    def _most_numbers(cls, parameters: dict[str, Any]) -> int:
        # the losses of the best query, two units in a number
        losses = -(-check_n_samples(parameters["n_samples"]) // 2)
        return super()._most_numbers(parameters) + (losses if parameters["step"] is None else 0)
