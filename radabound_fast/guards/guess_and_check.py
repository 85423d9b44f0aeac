"""Guess and check: an adaptive analyst pays for surprises only."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from functools import cached_property
from math import ceil, floor, log
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from radabound_fast._checks import (
    certainty,
    check_bool,
    check_delta,
    check_fraction,
    check_probability,
)
from radabound_fast._kernels.support import sealed
from radabound_fast.bounds import adaptive
from radabound_fast.bounds._roots import root
from radabound_fast.bounds.kl import kl_tolerance
from radabound_fast.guards.answers import Answers, MeanAnswer, clip_to_unit
from radabound_fast.guards.base import Outlook
from radabound_fast.guards.mean_guard import GuessGuard, Progress

if TYPE_CHECKING:
    from radabound_fast.store import Durability, Path

# the furthest that affordable() counts; floats hold every integer up to here
_MOST_PASSES = 2**53
# guess_and_check_code(1, 0, 0.0): of the transcript before the first query, in nats
_FIRST_CODE = 2 * log(2)


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class GuessAndCheckAnswer(MeanAnswer):
    """One answer of `GuessAndCheck`.

    Attributes
    ----------
    value : float
        The guess itself when it passed; else the centre of the bin that holds the mean, not
        clipped to [0, 1].
    low, high, half_width, number
        As in `Answer`; half_width is epsilon.
    passed : bool
        True if the guess stands.
    step : int
        Which bin that is, counted from the guess: 0 when it passed, below 0 for means below it.
    """

    passed: bool
    step: int


class GuessAndCheckAnswers(Answers[GuessAndCheckAnswer]):
    """`Answers` with arrays ``passed`` and ``steps``."""

    @cached_property
    def passed(self) -> NDArray[np.bool_]:
        return self._column("passed", np.bool_)

    @cached_property
    def steps(self) -> NDArray[np.int64]:
        return self._column("step", np.int64)


class _Transcript(Progress):
    """What the next query of a `GuessAndCheck` rests on."""

    failures = 0
    paid = 0.0  # nats that the steps of the failures so far cost
    spent = _FIRST_CODE
    last_guess = 0.5


class GuessAndCheck(GuessGuard[GuessAndCheckAnswer, GuessAndCheckAnswers]):
    """Checks guesses of mean losses on a holdout; valid whatever the analyst does.

    Every query brings a guess of its mean loss, made from earlier answers and from data independent
    of the holdout: a cross-validation error, say. A guess that is good enough is returned as it is
    and costs almost nothing; otherwise the answer is one of a row of bins on either side of it, and
    what that reveals is paid for.

    Parameters
    ----------
    judged : array_like, Holdout, int or Losses
        What is judged: labels, or a `Holdout` with the metric "error"; then queries bring
        predictions.  Or the number of held-out rows, m; then queries bring losses.
    epsilon : float
        The half-width of every answer, in units of loss; 0 < epsilon < 1.
    delta : float
        Probability that any answer is further than epsilon from the truth; 0 < delta < 1.
    low_error : bool, default True
        True: tolerances from the binary relative entropy, which are far wider at small (or large)
        means. False: from Hoeffding's inequality, the same for every guess; it halts earlier, and
        answers every failed guess until then.

    Raises
    ------
    TypeError, ValueError
        An argument is outside its rule; the message names it.  So it is for a first guess that
        leaves no room, while another would: nothing is spent.

    Notes
    -----
    A guess passes if it is within tau of the mean: tau is what epsilon leaves beside the error that
    the transcript so far makes possible (Results 13 and 19 of docs/explanation/theory.md, after
    [1]_), and below epsilon/10 the query is refused.  A mean further away lies in one of a row of
    bins on either side of the guess, whose centre is the answer, unless too little room is left
    around that: then it is withheld, and the guard halts.

    Tolerances, bins and steps depend on the transcript and the guess alone, never on the losses;
    what is shown here leaks nothing.

    References
    ----------
    .. [1] R. Rogers, A. Roth, A. Smith, N. Srebro, O. Thakkar and B. Woodworth, "Guaranteed
       validity for empirical approaches to adaptive data analysis", AISTATS 2020; the code of the
       transcript and its proof are this library's.

    Examples
    --------
    >>> import numpy as np
    >>> check = GuessAndCheck(4000, epsilon=0.05, delta=0.1)
    >>> losses = np.arange(4000) % 4 == 0
    >>> check.query(losses, guess=0.26).value
    0.26
    >>> answer = check.query(losses, guess=0.40)
    >>> answer.passed, answer.step, round(answer.value, 4)
    (False, -3, 0.2569)
    """

    _answers_type = GuessAndCheckAnswers
    _arguments = ("epsilon", "delta", "low_error")
    _progress: _Transcript

    @sealed
    def __init__(
        self, judged: Any, *, epsilon: float, delta: float, low_error: bool = True
    ) -> None:
        super().__init__(judged, _Transcript())
        self.epsilon = check_probability(epsilon=epsilon)
        self.delta = check_delta(delta)
        self.low_error = check_bool(low_error=low_error)
        self._holdout.note_guard(None)

    @classmethod
    @sealed
    def open(
        cls,
        path: Path,
        judged: Any = None,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        low_error: bool = True,
        holdout_id: str | None = None,
        durability: Durability = "power",
    ) -> Self:
        """Open the guard in a database, made now if there is none: see `RadaBound.open`.

        Other parameters are those of the class, and must be those that the database was made with.
        Without epsilon and delta all are those of the database.
        """
        return cls._open(locals())

    @property
    def failures(self) -> int:
        """How many guesses failed and were answered."""
        return int(self._current.failures)

    @property
    def spent(self) -> float:
        """Nats that the next answer pays for the transcript so far, ln(1/q_t); ln 4 at first."""
        return float(self._current.spent)

    @property
    def tolerance(self) -> float:
        """How far the last guess (1/2 before the first), made again, may be from the mean and pass.

        A query is refused once this, tau, is below epsilon/10 for its guess.  It may be negative.
        """
        current = self._current
        return self._tolerance(current.last_guess, current.spent)

    def affordable(self, guess: float | None = None) -> int:
        """Passes left if all goes well: if every guess from here on is this one and passes.

        Parameters
        ----------
        guess : float, optional
            A typical guess, in [0, 1]. Default: the last one (1/2 before the first query).

        Returns
        -------
        int
            0 if the next query would be refused; at most 2**53.
        """
        if guess is not None:
            guess = check_fraction(guess=guess)
        self._check_owner()
        done = self._current
        with done.lock:
            if done.has_halted:
                return 0
            following, failures, paid = done.n_answered + 1, done.failures, done.paid
            centre = done.last_guess if guess is None else guess

        def refused(passes: int) -> bool:
            nats = adaptive.guess_and_check_code(following + passes, failures, paid)
            return not self._has_room(centre, nats)

        # with every pass the code only grows, so the first refusal ends the run
        return bisect_left(range(_MOST_PASSES), True, key=refused)

    @property
    def guarantee(self) -> str:
        by = "the Chernoff (relative entropy) bound" if self.low_error else "Hoeffding's inequality"
        promise = (
            f"With probability at least {certainty(self.delta)} every returned answer is within "
            f"epsilon = {self.epsilon} of the true mean loss. Two-sided, finite-sample, valid "
            f"for an adaptive analyst, whatever is asked; proved by Kraft's inequality for a code "
            f"of the transcript, the union bound and {by}. Assumed: independent held-out "
            f"examples; losses in [0, 1] and guesses chosen from earlier answers and from data "
            f"independent of the holdout."
        )
        if not self._has_room(self._roomiest, _FIRST_CODE):
            promise += f" n_samples = {self.n_samples} is too small to answer even one query."
        return promise

    def n_left(self) -> int:
        """Return 0: any guess may fail by so much that its answer is withheld; see `affordable`."""
        return 0

    def _outlook(self) -> Outlook:  # no count, which would tell the last guess
        return Outlook("unknown: guesses that pass use little, and those that fail much", None)

    def what_would_answer(self, guess: float | None = None) -> str:
        from radabound_fast.guards.reach import first_guess

        return first_guess(self.n_samples, self.epsilon, self.delta, guess)

    def _check_first(self, guess: float) -> None:
        if self._progress.n_answered or self._has_room(guess, _FIRST_CODE):
            return
        if self.n_answered or self.halted or not self._has_room(self._roomiest, _FIRST_CODE):
            return  # it is used, or too small for any guess
        edge = self._edge_of_room(guess)
        ends = f"at most {edge:g} or at least {1 - edge:g}"
        if self._roomiest > 0.0:
            ends = f"from {edge:g} to {1 - edge:g}"
        raise ValueError(
            f"guess must be {ends} for a first answer with n_samples={self.n_samples}, "
            f"epsilon={self.epsilon:g} and delta={self.delta:g}, got {guess:g}"
            + ("; pass the error rate, not the accuracy" if guess > 0.5 else "")
        )

    def _edge_of_room(self, guess: float) -> float:
        """The guess up to 1/2 that has room and is nearest to one without, to four digits."""
        best, low = self._roomiest, min(guess, 1.0 - guess)
        edge = root(
            lambda g: self._tolerance(g, _FIRST_CODE) - self.epsilon / 10, *sorted((best, low))
        )
        return (floor if best < low else ceil)(1e4 * edge) / 1e4

    @property
    def _roomiest(self) -> float:
        """The guess with the largest tolerance: 0, or 1/2 if epsilon is large."""
        return max((0.0, 0.5), key=lambda guess: self._tolerance(guess, _FIRST_CODE))

    def _has_room(self, guess: float, nats: float) -> bool:
        return self._tolerance(guess, nats) >= self.epsilon / 10

    def _tolerance(self, centre: float, nats: float) -> float:
        """The largest tau around this centre under a code of this length; below 0: none."""
        if not self.low_error:
            return self._flat_tolerance(nats)
        return kl_tolerance(centre, (nats + log(2 / self.delta)) / self.n_samples, self.epsilon)

    def _flat_tolerance(self, nats: float) -> float:
        """The largest tolerance by Hoeffding's inequality, around any centre."""
        return self.epsilon - adaptive.code_width(nats, self.n_samples, self.delta)

    def _decide(self, mean: float, guess: float, number: int) -> GuessAndCheckAnswer | str:
        done = self._progress
        if not self._has_room(guess, done.spent):
            return f"no tolerance of epsilon/10 is left around a guess of {guess:g}"
        centre_and_step = self._bin_of(mean, guess)
        if centre_and_step is None:
            return "the guess failed, and its answer may be more than epsilon from the truth"
        value, step = centre_and_step
        if step != 0:
            done.failures += 1
            done.paid += adaptive.failure_code(step)
        done.last_guess = guess
        done.spent = adaptive.guess_and_check_code(number + 1, done.failures, done.paid)
        low, high = clip_to_unit(value - self.epsilon), clip_to_unit(value + self.epsilon)
        return GuessAndCheckAnswer(value, low, high, self.epsilon, number, step == 0, step)

    def _bin_of(self, mean: float, guess: float) -> tuple[float, int] | None:
        """Centre and number of the bin that holds a mean; None if it has no answer."""
        spent = self._progress.spent
        tau = self._tolerance(guess, spent)
        beyond = abs(mean - guess) - tau
        if beyond <= 0:
            return guess, 0
        eta = max(self._flat_tolerance(spent), self.epsilon / 10)
        step = max(1, ceil(beyond / (2 * eta)))
        side = 1 if mean > guess else -1
        centre = guess + side * (tau + (2 * step - 1) * eta)
        if eta > self._flat_tolerance(spent) and not self._has_room(centre, spent):
            return None
        return centre, side * step
