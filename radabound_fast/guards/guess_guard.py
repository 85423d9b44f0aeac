"""Guards that need a guess of each mean, made without the holdout."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from radabound_fast._checks import check_fraction
from radabound_fast._kernels.support import sealed
from radabound_fast.guards.mean_guard import AnswersT, AnswerT, MeanGuard
from radabound_fast.rows.packing import as_array


class GuessGuard(MeanGuard[AnswerT, AnswersT]):
    """Base class of guards whose queries bring a guess beside predictions."""

    needs: ClassVar[Literal["key", "guess"] | None] = "guess"

    @sealed
    def query(self, y_pred: Any, *, guess: float) -> AnswerT:
        """Answer one query.

        Parameters
        ----------
        y_pred : array_like, shape (n_samples,), or PackedLosses
            Predicted classes, in the order of the holdout's rows; losses in [0, 1] for a guard
            made on `Losses`, which are rounded to multiples of 2**-24 unless they are 0 or 1.
        guess : float
            A guess of the mean loss, in [0, 1], made without the holdout: that on other data, say.

        Raises
        ------
        HoldoutExhausted
            This query's answer is withheld, or an earlier one's was.
        TypeError, ValueError
            Not such an array, or no such guess; nothing has changed then.
        RuntimeError
            In a process forked after the guard was made; or in the middle of another call on this
            very thread.
        """
        rows = self._reader(y_pred, many=False)
        checked = check_guess(guess, self.kind)
        self._check_first(checked)
        return self._one(rows, checked)

    @sealed
    def query_many(self, Y_pred: Any, *, guesses: Any) -> AnswersT:
        """Answer queries in order, bit for bit as a loop of `query` would.

        Rows, shape (k, n_samples), answers and errors are those of `FixedSequence.query_many`;
        `guesses`, array_like of shape (k,), are one a row.
        """
        rows = self._reader(Y_pred, many=True)
        checked = check_guesses(guesses, len(rows.means), self.kind)
        for guess in checked[:1]:
            self._check_first(guess)
        return self._many(rows, checked)

    def _check_first(self, guess: float) -> None:
        """ValueError for a guess that would end an unused guard, while another would not."""


def check_guess(guess: Any, kind: str) -> float:
    """A guess of a mean loss, in [0, 1]."""
    if guess is None:
        raise ValueError(f"guess must be in [0, 1] for {kind}, got None")
    return check_fraction(guess=guess)


def check_guesses(guesses: Any, n_rows: int, kind: str) -> list[float]:
    """One guess a row."""
    if guesses is None:
        raise ValueError(f"guesses must be one number per query for {kind}, got None")
    checked = as_array(guesses, "guesses")
    if checked.dtype.kind not in "iuf":
        raise TypeError(f"guesses must be real numbers, got dtype {checked.dtype}")
    if checked.shape != (n_rows,):
        raise ValueError(
            f"guesses must have shape ({n_rows},), one per query, got shape {checked.shape}"
        )
    # also False for nan
    outside = ~((checked >= 0) & (checked <= 1))
    if outside.any():
        first = int(outside.argmax())
        raise ValueError(f"guesses must be in [0, 1], got {checked[first]} at {first}")
    return [float(guess) for guess in checked]
