"""The replay behind ``radabound audit``: one pass over a file, a guard per bound.

Queries are counted from 1 in everything that is shown or written.  The mean of a withheld
query is nowhere: a guard returns the answered prefix only.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from radabound_fast import Holdout, RadaBound, RadaBoundAnswers, plan
from radabound_fast._checks import counted
from radabound_fast._output import whole_file
from radabound_fast.bounds import BOUNDS
from radabound_fast.packing import as_words


class Replay:
    """One guard, and what it answered.

    Parameters
    ----------
    guard : RadaBound
        A fresh one.
    labels : array_like, optional
        With them, blocks are predictions; without, losses.
    packed : bool
        Rows of blocks are words, as `pack_losses` makes them.
    trace : bool
        Whether every answer is kept, for `write_csv` and `complexities`.
    """

    def __init__(
        self, guard: RadaBound, labels: Any = None, *, packed: bool = False, trace: bool = False
    ) -> None:
        self.guard = guard
        self._declared = True
        self._trace = trace
        self._answers: list[RadaBoundAnswers] = []
        self._query_many: Callable[..., RadaBoundAnswers]
        if labels is None:
            self._query_many = guard.query_many_packed if packed else guard.query_many
        else:
            self._query_many = Holdout(labels, guard).query_many
        self._unpack = packed and labels is not None
        self._losses = labels is None

    def ask(self, block: NDArray[Any]) -> None:
        """Ask the rows of `block`, unless the guard has halted."""
        if self.guard.halted:
            return
        if self._unpack:
            block = unpacked(block, self.guard.n_samples)
        if self._losses and block.dtype.kind not in "biu":
            self._declared = False
        answers = self._query_many(block, trace=self._trace)
        if self._trace:
            self._answers.append(answers)

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

    def column(self, name: str) -> NDArray[np.float64]:
        """``values``, ``complexities`` or ``delta_primes``, one per answered query."""
        return np.concatenate([getattr(answers, name) for answers in self._answers])

    def complexities(self) -> NDArray[np.float64]:
        """The complexity after each query, the withheld one included."""
        answered = self.column("complexities")
        return np.append(answered, self.guard.complexity) if self.guard.halted else answered


def unpacked(words: Any, n_samples: int) -> NDArray[np.uint8]:
    """Packed predictions of 0 and 1, one per byte; ValueError if a bit past the last is set."""
    packed = as_words(words, n_samples).astype("<u8", copy=False)
    return np.unpackbits(
        np.ascontiguousarray(packed).view(np.uint8), axis=1, count=n_samples, bitorder="little"
    )


def replay(name: str, blocks: Iterable[NDArray[Any]], replays: list[Replay]) -> int:
    """Ask every block of every guard, until all have halted; returns how many rows were read.

    Raises
    ------
    ValueError
        A block is not predictions or losses; the message says which queries of which file.
    """
    n_read = 0
    for block in blocks:
        try:
            for each in replays:
                each.ask(block)
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
        "halting_query": each.halting_query,
        "complexity": guard.complexity,
        "budget": guard.budget,
        "n_left": each.n_left,
        "threshold": guard.threshold,
        "guarantee": guard.guarantee,
    }


def write_csv(path: str, replays: list[Replay]) -> None:
    """One row per bound and answered query: bound, query, value, complexity, delta_prime."""
    names = ("values", "complexities", "delta_primes")
    with (
        whole_file(path) as name,
        open(name, "w", encoding="utf-8", newline="") as file,
    ):
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["bound", "query", "value", "complexity", "delta_prime"])
        for each in replays:
            columns = (each.column(name).tolist() for name in names)
            for query, answer in enumerate(zip(*columns, strict=True), start=1):
                writer.writerow([each.guard.bound, query, *answer])
