"""The replay behind ``radabound audit``: one pass over a file, a guard per bound.

Queries are counted from 1 in everything that is shown or written.  The mean of a withheld
query is nowhere: a guard returns the answered prefix only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from radabound_fast import Holdout, RadaBound, RadaBoundAnswers, plan
from radabound_fast._answers_file import Write
from radabound_fast._checks import counted
from radabound_fast.bounds import BOUNDS
from radabound_fast.packing import as_words


class Replay:
    """One guard, and what is asked of it.

    Parameters
    ----------
    owner : RadaBound or Holdout
        A `Holdout`, over a `RadaBound`, is asked about predictions, a `RadaBound` about losses.
    packed : bool
        Rows of blocks are words, as `pack_losses` makes them.
    trace : bool
        Whether answers tell the complexity after each.
    keep : bool
        Whether the complexities are kept, for `complexities`.
    n_threads : int
        As for `RadaBound.query_many`.

    Attributes
    ----------
    n_before : int
        Queries that were answered before this replay.
    """

    def __init__(
        self,
        owner: RadaBound | Holdout,
        *,
        packed: bool = False,
        trace: bool = False,
        keep: bool = False,
        n_threads: int = 1,
    ) -> None:
        self._losses = isinstance(owner, RadaBound)
        self.guard: RadaBound = owner if isinstance(owner, RadaBound) else owner.guard
        self.n_before = self.guard.n_queries
        self._declared = True
        self._options: dict[str, Any] = {"trace": trace, "n_threads": n_threads}
        self._complexities: list[NDArray[np.float64]] | None = [] if keep else None
        self._query_many: Callable[..., RadaBoundAnswers] = owner.query_many
        if packed and isinstance(owner, RadaBound):
            self._query_many = owner.query_many_packed
        self._unpack = packed and not self._losses

    def ask(self, block: NDArray[Any]) -> RadaBoundAnswers | None:
        """What is answered to the rows of `block`; None if the guard had halted."""
        if self.guard.halted:
            return None
        if self._unpack:
            block = unpacked(block, self.guard.n_samples)
        if self._losses and block.dtype.kind not in "biu":
            self._declared = False
        answers = self._query_many(block, **self._options)
        if self._complexities is not None and answers.complexities is not None:
            self._complexities.append(answers.complexities)
        return answers

    @property
    def halting_query(self) -> int | None:
        """The query that was withheld; None if all were answered."""
        return self.guard.n_queries + 1 if self.guard.halted else None

    @property
    def n_left(self) -> int:
        """How many more queries like these would be answered, whatever they are."""
        return self.guard.n_left(declared=self._declared)

    @property
    def n_without_signs(self) -> int:
        """How many queries are answered from the first on whatever they are."""
        return self.guard._rule.free_left(0, None, self._declared)

    def complexities(self) -> NDArray[np.float64]:
        """The complexity after each query, the withheld one included."""
        answered = np.concatenate(self._complexities or [np.empty(0)])
        return np.append(answered, self.guard.complexity) if self.guard.halted else answered


def unpacked(words: Any, n_samples: int) -> NDArray[np.uint8]:
    """Packed predictions of 0 and 1, one per byte; ValueError if a bit past the last is set."""
    packed = as_words(words, n_samples).astype("<u8", copy=False)
    return np.unpackbits(
        np.ascontiguousarray(packed).view(np.uint8), axis=1, count=n_samples, bitorder="little"
    )


def replay(
    name: str,
    blocks: Iterable[NDArray[Any]],
    replays: list[Replay],
    write: Write | None = None,
    n_before: int = 0,
) -> int:
    """Ask every block of every guard, until all have halted; returns how many rows were read.

    Parameters
    ----------
    name : str
        Of the file that the blocks are from.
    blocks : iterable of ndarray
    replays : list of Replay
    write : callable, optional
        What is answered is given to it.
    n_before : int
        Rows that were asked about before, the first ones: they are read, and not asked about.

    Raises
    ------
    ValueError
        A block is not predictions or losses; the message says which queries of which file.
    """
    n_read = 0
    for whole in blocks:
        block = whole[max(0, n_before - n_read) :]
        n_read += len(whole) - len(block)
        try:
            for each in replays:
                answers = each.ask(block) if len(block) else None
                if write is not None and answers is not None:
                    write(each.guard.bound, answers)
        except (TypeError, ValueError) as error:
            where = f"queries {n_read + 1} to {n_read + len(block)} (rows 0 to {len(block) - 1})"
            raise ValueError(f"{name}, {where}: {error}") from error
        n_read += len(block)
        if all(each.guard.halted for each in replays):
            break
    return n_read


def table(replays: list[Replay]) -> str:
    """For each bound, how many queries were answered, and where and why it halted."""
    width = max(len("bound"), *(len(each.guard.bound) for each in replays))
    lines = [f"{'bound':<{width}}  answered  outcome"]
    for each in replays:
        guard = each.guard
        lines.append(f"{guard.bound:<{width}}  {guard.n_queries:>8,}  {_outcome(each)}")
    return "\n".join(lines)


def _outcome(each: Replay) -> str:
    guard, left = each.guard, each.n_left
    if not guard.halted and left:
        whole = guard.n_queries + left
        share = f"{100 * left // whole} % of {whole:,}"
        return f"all answered; {left:,} more will be, whatever they are ({share})"
    if not guard.halted:
        within = f"complexity {guard.complexity:.6f}, budget {guard.budget:.6f}"
        return f"all answered; the next may be withheld: {within}"
    halt = f"halted at query {each.halting_query:,}: "
    if guard.budget < 0 and guard.n_queries == 0:
        return halt + (
            f"{counted(guard.n_samples, 'sample')} cannot vouch for any answer at this epsilon "
            "and delta"
        )
    if each.n_without_signs:
        halt += "the union bound has no more for it, and "
    if guard.budget < 0:
        return halt + f"{guard.n_samples:,} samples are too few for the complexity to vouch for any"
    if guard.complexity <= guard.budget:  # which is that of the answered means
        return halt + f"the budget, {guard.budget:.6f}, is for smaller means than its own"
    return halt + f"complexity {guard.complexity:.6f} is over the budget, {guard.budget:.6f}"


def shortfalls(replays: list[Replay], estimator: str | None) -> list[str]:
    """A line of the plan for each guard, made with this `estimator`, that answered no query.

    A plan is for the first estimator of a bound: with another there is no line.
    """
    lines = []
    for guard in (each.guard for each in replays if each.halting_query == 1):
        if estimator in (None, BOUNDS[guard.bound].estimators[0]):
            planned = plan(guard.n_samples, guard.epsilon, guard.delta, guard.n_vectors)
            lines.append(planned.shortfall(guard.bound))
    return [line for line in lines if line is not None]


def record(each: Replay, estimator: str | None) -> dict[str, Any]:
    """The outcome of one guard, made with this `estimator`, as JSON values."""
    guard = each.guard
    return {
        "bound": guard.bound,
        "estimator": estimator or BOUNDS[guard.bound].estimators[0],
        "halted": guard.halted,
        "n_answered": guard.n_queries,
        "n_answered_before": each.n_before,
        "halting_query": each.halting_query,
        "complexity": guard.complexity,
        "budget": guard.budget,
        "n_left": each.n_left,
        "threshold": guard.threshold,
        "guarantee": guard.guarantee,
    }
