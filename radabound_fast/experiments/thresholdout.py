"""Thresholdout: the training mean, unless the holdout disagrees."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import nan
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from radabound_fast._checks import check_count, check_positive, check_seed, counted
from radabound_fast._kernels.support import sealed
from radabound_fast.bounds import adaptive
from radabound_fast.guards.answers import Answers, MeanAnswer
from radabound_fast.guards.mean_guard import MOST_ANSWERS, GuessGuard, Progress

if TYPE_CHECKING:
    from radabound_fast.store import Durability, Path

_BELOW_ONE = 1 - 2**-53


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class ThresholdoutAnswer(MeanAnswer):
    """One answer of `Thresholdout`.

    Attributes
    ----------
    value : float
        The training mean, or the holdout's with noise, which may leave [0, 1].
    low, high, half_width : float
        nan: see `Thresholdout.guarantee`.
    number : int
        How many answers the guard has given, this one included.
    passed : bool
        True if the training mean stands; False if one of the budget was spent.
    """

    passed: bool


class ThresholdoutAnswers(Answers[ThresholdoutAnswer]):
    """`Answers` with an array ``passed``."""

    @cached_property
    def passed(self) -> NDArray[np.bool_]:
        return self._column("passed", np.bool_)


class _Noise(Progress):
    """How much of the budget is spent, the threshold in force, and where the noise comes from."""

    spent = 0
    noisy_threshold = 0.0

    def __init__(self, seed: int) -> None:
        self.random = np.random.Generator(np.random.PCG64(seed))

    def _lay_out(self) -> NDArray[np.int64]:
        drawn = self.random.bit_generator.state
        halves = [half for name in ("state", "inc") for half in divmod(drawn["state"][name], 2**64)]
        words = np.array([*halves, drawn["has_uint32"], drawn["uinteger"]], np.uint64)
        return np.concatenate([super()._lay_out(), words.view(np.int64)])

    def _take_over(self, progress: NDArray[np.int64]) -> None:
        words = progress[-6:].view(np.uint64).tolist()
        super()._take_over(progress[:-6])
        self.random.bit_generator.state = {
            "bit_generator": "PCG64",
            "state": {"state": words[0] << 64 | words[1], "inc": words[2] << 64 | words[3]},
            "has_uint32": words[4],
            "uinteger": words[5],
        }


class Thresholdout(GuessGuard[ThresholdoutAnswer, ThresholdoutAnswers]):
    """The reusable holdout of Dwork et al. [1]_, Figure 1; for comparison.

    With T^ = T + Lap(2 sigma) drawn beforehand, a query with training mean a and holdout mean
    h is answered by a while ``|h - a| <= T^ + Lap(4 sigma)``; otherwise it spends one of the
    budget, draws T^ anew and is answered by h + Lap(sigma). The guess of a query is its
    training mean. Once the budget is spent every query is refused.

    Parameters
    ----------
    judged : array_like, Holdout, int or Losses
        What is judged: labels, or a `Holdout` with the metric "error"; then queries bring
        predictions.  Or the number of held-out rows, m; then queries bring losses.
    threshold : float
        T, in units of loss; positive.
    noise : float
        sigma, the scale of the Laplace noise, in units of loss; positive.
    budget : int
        B, how many answers may come from the holdout; 1 to 2**53.
    seed : int, optional
        Of the noise, from 0 to 2**64 - 1; for reproduction. Default: drawn from the operating
        system. Whoever knows the seed can subtract the noise.

    Raises
    ------
    TypeError, ValueError
        For an argument outside its rule; the message names it.

    References
    ----------
    .. [1] C. Dwork, V. Feldman, M. Hardt, T. Pitassi, O. Reingold and A. Roth, "Generalization
       in adaptive data analysis and holdout reuse", NIPS 2015, arXiv:1506.02629: Figure 1 and
       Theorem 25.

    Examples
    --------
    >>> import numpy as np
    >>> holdout = Thresholdout(4000, threshold=0.04, noise=0.001, budget=10, seed=1)
    >>> losses = np.arange(4000) % 4 == 0
    >>> holdout.query(losses, guess=0.26)
    ThresholdoutAnswer(value=0.26, low=nan, high=nan, number=1, passed=True)
    >>> answer = holdout.query(losses, guess=0.1)
    >>> answer.passed, abs(answer.value - 0.25) < 0.01, holdout.spent
    (False, True, 1)
    """

    _answers_type = ThresholdoutAnswers
    _arguments = ("threshold", "noise", "budget", "seed")
    _set_once = GuessGuard._set_once | {"noise", "budget"}
    _progress: _Noise

    @sealed
    def __init__(
        self, judged: Any, *, threshold: float, noise: float, budget: int, seed: int | None = None
    ) -> None:
        seed = check_seed(seed)
        super().__init__(judged, _Noise(seed))
        self.seed = seed
        self.threshold = check_positive(threshold=threshold)
        self.noise = check_positive(noise=noise)
        self.budget = check_count(budget=budget, at_most=MOST_ANSWERS)
        self._progress.noisy_threshold = self._draw_threshold()
        self.delta = nan  # none is guaranteed
        self._holdout.note_guard(None)

    @classmethod
    @sealed
    def open(
        cls,
        path: Path,
        judged: Any = None,
        *,
        threshold: float | None = None,
        noise: float | None = None,
        budget: int | None = None,
        seed: int | None = None,
        holdout_id: str | None = None,
        durability: Durability = "power",
    ) -> Self:
        """Open the guard that lives in a database, made now if there is none: see `RadaBound.open`.

        Without threshold, noise and budget all parameters are those of the database.
        """
        return cls._open(locals())

    def n_left(self) -> int:
        """Return how many answers may still come from the holdout."""
        return 0 if self.halted else self.budget - self.spent

    @property
    def spent(self) -> int:
        """How many answers came from the holdout."""
        self._progress.refresh()
        return self._progress.spent

    @property
    def guarantee(self) -> str:
        """What is known at this size, and what is not."""
        # the theorem's conditions at their easiest: T = 3 epsilon / 4, k = B, delta near 1
        epsilon = min(4 * self.threshold / 3, _BELOW_ONE)
        needed = adaptive.thresholdout_sample_size(self.budget, self.budget, epsilon, _BELOW_ONE)
        theorem = (
            "Theorem 25 of Dwork et al. (2015), which is two-sided, finite-sample and proved for "
            "an adaptive analyst, takes threshold = 3 epsilon/4 and "
            "noise = epsilon/(96 ln(4k/delta))"
        )
        if self.n_samples < needed:
            return (
                f"A heuristic: at n_samples = {self.n_samples} it has no valid half-width, so "
                f"half_width is nan, and an adaptive analyst can make its answers wrong. "
                f"{theorem}, and with this threshold and budget needs more than {needed:.3g} "
                f"samples at any k and delta."
            )
        return (
            f"half_width is nan: whether there is a valid one depends on the number of queries k "
            f"and on delta. {theorem}; bounds.thresholdout_sample_size says how many samples it "
            f"needs."
        )

    def _decide(self, mean: float, guess: float, number: int) -> ThresholdoutAnswer | str:
        done = self._progress
        if done.spent == self.budget:
            return f"the budget of {counted(self.budget, 'answer')} from the holdout is spent"
        if abs(mean - guess) <= done.noisy_threshold + self._laplace(4):
            return ThresholdoutAnswer(guess, nan, nan, nan, number, passed=True)
        done.spent += 1
        done.noisy_threshold = self._draw_threshold()
        return ThresholdoutAnswer(mean + self._laplace(1), nan, nan, nan, number, passed=False)

    def _laplace(self, scale: int) -> float:
        return float(self._progress.random.laplace(scale=scale * self.noise))

    def _draw_threshold(self) -> float:
        return self.threshold + self._laplace(2)
