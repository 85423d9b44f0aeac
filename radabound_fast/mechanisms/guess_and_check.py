"""Guess and check: an adaptive analyst pays for surprises only."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from functools import cached_property
from math import log, sqrt

import numpy as np
from numpy.typing import NDArray

from radabound_fast._answers import Answers
from radabound_fast._checks import check_fraction, check_probability
from radabound_fast.bounds import adaptive
from radabound_fast.bounds.kl import kl_tolerance
from radabound_fast.mechanisms._protocol import Mechanism, MechanismAnswer, cut
from radabound_fast.mechanisms._reader import LossReader

# the furthest that affordable() counts; floats hold every integer up to here
_MOST_PASSES = 2**53


@dataclass(frozen=True, slots=True, repr=False)
class GuessAndCheckAnswer(MechanismAnswer):
    """One answer of `GuessAndCheck`.

    Attributes
    ----------
    value : float
        ``guess + 2 tau step``, not clipped to [0, 1]; the guess itself when it passed.
    low, high : float
        The true mean is between them: within epsilon of the value, in [0, 1].
    half_width : float
        epsilon.
    n_queries : int
        Answers given so far, this one counted.
    passed : bool
        True if the guess stands.
    step : int
        How many steps of 2 tau from the guess to the value; 0 when it passed.
    """

    passed: bool
    step: int


class GuessAndCheckAnswers(Answers[GuessAndCheckAnswer]):
    """The answered prefix of a block: `Answers` with arrays ``passed`` and ``steps``."""

    @cached_property
    def passed(self) -> NDArray[np.bool_]:
        return self._column("passed", np.bool_)

    @cached_property
    def steps(self) -> NDArray[np.int64]:
        return self._column("step", np.int64)


class GuessAndCheck(Mechanism[GuessAndCheckAnswer, GuessAndCheckAnswers]):
    """Checks guesses of mean losses on a holdout; valid whatever the analyst does.

    Every query brings a guess of its mean loss, made from earlier answers and from data
    independent of the holdout: a cross-validation error, say. A guess that is good enough
    is returned as it is and costs almost nothing; otherwise the answer moves in whole steps
    from the guess, and the ledger pays for what that reveals.

    Parameters
    ----------
    n_samples : int
        m, the number of held-out examples; at least 1.
    epsilon : float
        The half-width of every answer, in units of loss; 0 < epsilon < 1.
    delta : float
        Probability that any answer ever given is further than epsilon from the truth;
        0 < delta < 1.
    low_error : bool, default True
        True: tolerances from the binary relative entropy, which are far wider at small (or
        large) means; a failed guess whose answer is not within epsilon by the same test
        is withheld and halts the object. False: Hoeffding's inequality, under which a
        failed guess is always answered. Near a mean of 1/2 the two tolerances are equal for
        practical purposes and False halts later, since it withholds nothing.

    Raises
    ------
    TypeError, ValueError
        For an argument outside its rule; the message names it.

    Notes
    -----
    The length of the code [1]_, with b failures, of steps j, among t - 1 answers::

        ln(1/q_t) = ln(t(t+1)) + ln((b+1)(b+2)) + ln C(t-1, b) + sum [ln 2 + ln(|j|(|j|+1))]

    is such that q sums to at most 1 over all transcripts (Kraft). Given its transcript a query
    is a fixed function, so by the union bound all exact means lie, with probability 1 - delta,
    as near the truth as an inequality with failure ``delta q_t`` says: Hoeffding's ``width_t``,
    or the Chernoff interval [kl-(mean, b_t), kl+(mean, b_t)] with
    ``b_t = (ln(2/delta) + ln(1/q_t)) / m``. The tolerance tau leaves room for that:
    ``epsilon - width_t``, or the largest tau such that every mean within tau of the guess has
    its interval inside guess +- epsilon. Which of the two is settled when the object is
    built, and code, tolerance and size of the steps depend on the
    transcript and the guess alone, never on the losses; what is shown here leaks nothing.

    References
    ----------
    .. [1] After R. Rogers, A. Roth, A. Smith, N. Srebro, O. Thakkar and B. Woodworth,
       "Guaranteed validity for empirical approaches to adaptive data analysis", AISTATS 2020;
       the code and its proof are this library's (docs/theory.md).

    Examples
    --------
    >>> import numpy as np
    >>> check = GuessAndCheck(4000, epsilon=0.05, delta=0.1)
    >>> losses = np.arange(4000) % 4 == 0
    >>> check.query(losses, guess=0.26).value
    0.26
    >>> answer = check.query(losses, guess=0.40)
    >>> answer.passed, answer.step, round(answer.value, 4)
    (False, -3, 0.2559)
    """

    _answers_type = GuessAndCheckAnswers
    _needs_guess = True
    _arguments = ("n_samples", "epsilon", "delta", "low_error")
    _shown = (*_arguments, "n_queries", "halted")

    def __init__(
        self, n_samples: int, *, epsilon: float, delta: float, low_error: bool = True
    ) -> None:
        super().__init__(n_samples)
        self.epsilon = check_probability(epsilon=epsilon)
        self.delta = check_probability(delta=delta)
        if not isinstance(low_error, bool):
            raise TypeError(f"low_error must be True or False, got {low_error!r}")
        self.low_error = low_error
        self._failures = 0
        # nats that the steps of the failures so far cost
        self._paid = 0.0
        self._spent = adaptive.guess_and_check_code(1, 0, 0.0)
        self._last_guess = 0.5

    @property
    def failures(self) -> int:
        """How many guesses failed and were answered."""
        self._refresh()
        return self._failures

    @property
    def spent(self) -> float:
        """Length of the transcript so far in nats, ln(1/q_t): what the next answer pays.

        ln 4 before the first query, the price of having a code at all.
        """
        self._refresh()
        return self._spent

    @property
    def tolerance(self) -> float:
        """tau for the next query if it repeats the last guess (1/2 before the first query).

        How far a guess may be from the exact mean and pass. The next query is refused once
        this falls below epsilon/10. With ``low_error=False`` it is the same for every guess.
        Negative or 0: no room at all.
        """
        self._refresh()
        return self._tolerance(self._last_guess, self._spent)

    def affordable(self, guess: float | None = None) -> int:
        """Passes left if all goes well: if every guess from here on is this one and passes.

        Parameters
        ----------
        guess : float, optional
            A typical guess, in [0, 1]; it matters with ``low_error=True``. Default: the last
            guess (1/2 before the first query).

        Returns
        -------
        int
            0 if the next query would be refused; at most 2**53.
        """
        if guess is not None:
            guess = check_fraction(guess=guess)
        self._check_owner()
        self._refresh()
        wanted = self._last_guess if guess is None else guess
        with self._lock:
            if self._halted:
                return 0
            following, failures, paid = self._n_queries + 1, self._failures, self._paid

        def refused(passes: int) -> bool:
            nats = adaptive.guess_and_check_code(following + passes, failures, paid)
            return self._tolerance(wanted, nats) < self.epsilon / 10

        # with every pass the code only grows, so the first refusal ends the run
        return bisect_left(range(_MOST_PASSES), True, key=refused)

    @property
    def guarantee(self) -> str:
        """What is guaranteed, when, and proved by what."""
        inequality = (
            "the Chernoff (relative entropy) bound" if self.low_error else "Hoeffding's inequality"
        )
        promise = (
            f"With probability at least {1 - self.delta:g} every returned answer is within "
            f"epsilon = {self.epsilon:g} of the true mean loss. Two-sided, finite-sample, valid "
            f"for an adaptive analyst, whatever is asked; proved by Kraft's inequality for a code "
            f"of the transcript, the union bound and {inequality}. Assumed: independent held-out "
            f"examples; losses in [0, 1] and guesses chosen from earlier answers and from data "
            f"independent of the holdout."
        )
        first = adaptive.guess_and_check_code(1, 0, 0.0)
        # the guesses that leave the most room: 0, or 1/2 if epsilon is large
        if max(self._tolerance(0.0, first), self._tolerance(0.5, first)) < self.epsilon / 10:
            promise += f" n_samples = {self.n_samples} is too small to answer even one query."
        return promise

    def _tolerance(self, centre: float, nats: float) -> float:
        """The largest tau around this centre under a code of this length; below 0: none."""
        total = nats + log(2 / self.delta)
        if self.low_error:
            return kl_tolerance(centre, total / self.n_samples, self.epsilon)
        return self.epsilon - sqrt(total / (2 * self.n_samples))

    def _decide(
        self, rows: LossReader, row: int, guess: float, number: int
    ) -> GuessAndCheckAnswer | str:
        tau = self._tolerance(guess, self._spent)
        if tau < self.epsilon / 10:
            return f"no tolerance of epsilon/10 is left around a guess of {guess:g}"
        step = round((rows.means[row] - guess) / (2 * tau))
        value = guess + 2 * tau * step
        if step != 0:
            if self.low_error and self._tolerance(value, self._spent) < tau:
                return "the guess failed, and its answer may be more than epsilon from the truth"
            self._failures += 1
            self._paid += adaptive.failure_code(step)
        self._last_guess = guess
        self._spent = adaptive.guess_and_check_code(number + 1, self._failures, self._paid)
        low, high = cut(value - self.epsilon), cut(value + self.epsilon)
        return GuessAndCheckAnswer(value, low, high, self.epsilon, number, step == 0, step)

    def _own(self) -> NDArray[np.int64]:
        floats = np.array([self._paid, self._spent, self._last_guess])
        return np.concatenate([np.array([self._failures], np.int64), floats.view(np.int64)])

    def _resume_own(self, own: NDArray[np.int64]) -> None:
        self._failures = int(own[0])
        self._paid, self._spent, self._last_guess = own[1:].view(np.float64).tolist()
