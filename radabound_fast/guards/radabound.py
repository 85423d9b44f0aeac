"""RadaBound: Algorithm 1 of De Stefani and Upfal (2019) with the bounds of the paper."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Self

from radabound_fast._checks import check_choice
from radabound_fast._kernels.support import sealed
from radabound_fast.bounds import PAPER_BOUNDS
from radabound_fast.guards.release import Release
from radabound_fast.guards.signed import ARGUMENTS, SignedGuard

if TYPE_CHECKING:
    from radabound_fast.store import Durability, Path


class RadaBound(SignedGuard):
    """Answers mean losses on one holdout while the paper's bound vouches for them.

    Each query is a vector of losses in [0, 1], one per held-out row, or predictions that are
    compared with labels.  Its mean is answered while a tail bound keeps the probability of an error
    above epsilon at or below delta; the first query for which it does not is withheld, and so is
    every later one.

    Parameters
    ----------
    judged : array_like, Holdout, int or Losses
        What is judged: labels, or a `Holdout` with the metric "error"; then queries bring
        predictions.  Or the number of held-out rows, m, from 1 to 2**40; then queries bring losses.
    epsilon : float
        The error tolerated, in (0, 1).
    delta : float
        The probability of failure, in (0, 1).
    n_vectors : int, default 32
        Random sign vectors, l; 1 to 2**23.
    bound : {"bernstein", "bernstein-split", "mclt"}, default "bernstein"
        Theorem 4, Theorem 3, or Theorem 6 of the paper, the last of which is a heuristic; a row of
        ``bounds.BOUNDS``.
    estimator : {"plain", "half-range"}, optional
        The Monte-Carlo estimate of the Rademacher complexity; None takes the bound's first.
    two_sided : bool, optional
        Whether delta' is doubled to cover errors of both signs; None takes the bound's default.
    seed : int, optional
        The seed of the signs, 0 to 2**64 - 1.  None draws it from the operating system.  A seed as
        an argument is for reproduction: whoever chooses the queries must not know it.
    signs : {"stored", "generated"}, default "stored"
        Whether the sign vectors are kept in memory, or made again for each query; see `SignMatrix`.
    release : "interval" or Rounded, default "interval"
        How much leaves: means and intervals as they are, or for a guard made on labels answers
        rounded to multiples of a step below 2 epsilon, and intervals that are widened by what that
        hides; epsilon still bounds their error, and no answer has a complexity.

    Attributes
    ----------
    threshold : float
        What delta' must stay at or below: delta (1 - delta), or delta for "fixed-sequence".
    rule : HaltingRule
        The bound with its parameters, and no state.
    n_groups : int
        How many rows, or groups of rows, are independent: each has a sign of its own.
    seed : int
        The seed of the signs, an argument or drawn.

    Raises
    ------
    TypeError, ValueError
        An argument is of the wrong type or out of its range; the message says which and why.
    MemoryError
        Stored signs take more than the machine's memory: ``signs="generated"`` takes none.

    Notes
    -----
    ``guard.guarantee`` says in words what is proved for this configuration; what the paper claims
    (Theorem 7) is not proved at a halting time that depends on the data, nor for an adaptive
    analyst.  `FixedSequence` is the proved guard of this kind.

    Real-valued losses are rounded to multiples of 2**-24; the function judged, and its mean, are
    the rounded one's.  Methods may be called from several threads, and not in the middle of another
    call on its very thread, as a signal handler might: docs/how-to/store-a-guard.md.

    References
    ----------
    De Stefani and Upfal (2019), "A Rademacher complexity based method for controlling power and
    confidence level in adaptive statistical analysis", Algorithm 1 and Theorem 7, with the
    misprints corrected that docs/explanation/theory.md lists.

    Examples
    --------
    >>> import numpy as np
    >>> guard = RadaBound(4000, epsilon=0.05, delta=0.1, bound="mclt", seed=0)
    >>> losses = np.arange(4000) % 5 == 0
    >>> answer = guard.query(losses)
    >>> answer.value, answer.half_width, answer.number
    (0.2, 0.05, 1)
    """

    _arguments = (*ARGUMENTS, "bound", "estimator", "two_sided")

    @sealed
    def __init__(
        self,
        judged: Any,
        *,
        epsilon: float,
        delta: float,
        n_vectors: int = 32,
        bound: str = "bernstein",
        estimator: str | None = None,
        two_sided: bool | None = None,
        seed: int | None = None,
        signs: Literal["stored", "generated"] = "stored",
        release: Release = "interval",
    ) -> None:
        if bound == "fixed-sequence":
            raise ValueError(
                f"bound must be one of {', '.join(PAPER_BOUNDS)}, got 'fixed-sequence': use "
                "FixedSequence"
            )
        super().__init__(
            judged,
            epsilon=epsilon,
            delta=delta,
            n_vectors=n_vectors,
            bound=check_choice(PAPER_BOUNDS, bound=bound),
            estimator=estimator,
            two_sided=two_sided,
            seed=seed,
            signs=signs,
            release=release,
        )

    @classmethod
    @sealed
    def open(
        cls,
        path: Path,
        judged: Any = None,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        n_vectors: int = 32,
        bound: str = "bernstein",
        estimator: str | None = None,
        two_sided: bool | None = None,
        seed: int | None = None,
        signs: Literal["stored", "generated"] = "stored",
        release: Release = "interval",
        holdout_id: str | None = None,
        durability: Durability = "power",
    ) -> Self:
        """Open the guard that lives in a database, made now if there is none.

        Any number of processes and threads on one machine may open it: they are one guard.  An
        answer is released only after its count is committed, so no crash forgets one; once it
        has halted, every process is refused.  `query_many` commits once, at its end.  Close it with
        `close` or a ``with`` block; a dropped one closes itself.

        Parameters
        ----------
        path : path
            The database; see `radabound_fast.store` for what stands beside it.
        judged : array_like, Holdout, int or Losses, optional
            As for the constructor.  The database holds a salted hash of labels, which shows whether
            a complete guess of them is right and nothing else, and opens only for these labels.
            May be left out where losses are judged and the database exists.
        epsilon, delta, n_vectors, bound, estimator, two_sided, seed, signs, release
            As for the constructor; they must be those that the database was made with (`signs` may
            differ: the results do not).  ``seed=None`` takes the seed that is stored.  Without
            epsilon and delta all parameters are those of the database, which must exist.
        holdout_id : str, optional
            A name for a holdout without labels, such as a hash of its file.  A name that the
            database was made with must be repeated, or left out.
        durability : {"power", "process"}
            "power": every commit waits for the disk and survives a power cut.  "process":
            commits survive the death of processes, ``kill -9`` included, but a power cut may
            take the last answers back; that is faster.

        Raises
        ------
        ValueError
            The database was made with other parameters, another seed or holdout, by a later
            format, or is damaged.  The file is left as it was.
        OSError
            It cannot be read and written; FileNotFoundError if there is none, and no parameters.
        RuntimeError
            Whoever opened it next would not see this guard's answers (the file has a second name,
            is mounted without its folder, or lacks a file beside it), the parent of this process
            had it open when it forked, or this very thread is in the middle of opening one.
        """
        return cls._open(locals())

    def __repr__(self) -> str:
        return (
            f"RadaBound({self.holdout!r}, epsilon={self.epsilon}, delta={self.delta}, "
            f"n_vectors={self.n_vectors}, bound={self.bound!r}, "
            f"n_answered={self._core.n_rows}, halted={self._core.has_halted})"
        )
