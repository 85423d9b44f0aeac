"""The replay behind ``radabound audit``: one pass over a file, for a search or a guard per bound.

Queries are counted from 1 in everything that is shown or written.  The mean of a withheld
query is nowhere: a guard returns the answered prefix only.
"""

from __future__ import annotations

import contextlib
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import inf
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from radabound_fast._checks import counted
from radabound_fast._kernels.guard import RadaBoundAnswer
from radabound_fast._kernels.rows import PackedLosses
from radabound_fast.bounds import BOUNDS
from radabound_fast.bounds.bound import complexity_part
from radabound_fast.bounds.union import MOST_QUERIES
from radabound_fast.files.answers import Write
from radabound_fast.guards.answers import SHARED, RadaBoundAnswers
from radabound_fast.guards.declared.answers import DeclaredSearchAnswers
from radabound_fast.guards.declared.search import DeclaredSearch
from radabound_fast.guards.halting import Limits
from radabound_fast.guards.report import Report, scored, sentence
from radabound_fast.guards.signed import SignedGuard
from radabound_fast.holdout import Holdout, Losses
from radabound_fast.planning import plan
from radabound_fast.rows.packing import as_words, bits_of
from radabound_fast.spaces.messages import shortened, shown_key
from radabound_fast.store.folder import undisturbed

SCORES = ("query", "value", "low", "high")

Told = Callable[[], Mapping[str, Any]]  # the columns of a block


class Replay(ABC):
    """A guard or a search, and what is asked of it, block by block.

    `columns` are those of a file of the answers, and `n_before` queries were answered before.  Rows
    are called by `names`, if there are any; `packed` ones are words, as `pack_losses` makes them.
    """

    columns: tuple[str, ...]
    n_before = 0

    def __init__(
        self, holdout: Holdout | Losses, packed: bool, names: Sequence[str] | None
    ) -> None:
        self.metric: str = holdout.metric
        self._names, self.named = names, [] if names is None else ["model"]
        self._n_samples = holdout.n_samples
        self._packed, self._takes_losses = packed, isinstance(holdout, Losses)

    def ask(self, block: NDArray[Any]) -> Told | None:
        """Ask about the rows of a block; a function of what was answered, or None: nothing was."""
        if self.halted or not len(block):
            return None
        rows: Any = rows_of(block, self._n_samples, self._takes_losses) if self._packed else block
        return self._ask(rows)

    def name_of(self, query: int) -> str:
        """What the sentence calls a query, of which 0 is the first."""
        number = f"query {query + 1:,}"
        return number if self._names is None else f"{shortened(self._names[query])} ({number})"

    def names_of(self, first: int, n: int) -> dict[str, Sequence[str]]:
        """The column of names for some rows, if there are names."""
        return {} if self._names is None else {"model": self._names[first : first + n]}

    @abstractmethod
    def _ask(self, block: NDArray[Any]) -> Told: ...

    @property
    @abstractmethod
    def halted(self) -> bool:
        """Whether nothing is answered any more."""

    @property
    @abstractmethod
    def sentence(self) -> str | None:
        """To paste: a model, and how far to trust its score; None if none was answered."""


class GuardReplay(Replay):
    """A guard that halts, asked about losses that are `binary` by their type or not.

    With `trace` answers tell the complexity after each, and with `keep` the complexities are kept,
    for `complexities`.  `lowest` is the first of this replay's answers with the lowest upper limit:
    it need not have the lowest mean, since later answers have wider intervals.
    """

    def __init__(
        self,
        guard: SignedGuard,
        *,
        names: Sequence[str] | None = None,
        binary: bool = True,
        packed: bool = False,
        trace: bool = False,
        keep: bool = False,
        n_threads: int = 1,
    ) -> None:
        self.guard = guard
        super().__init__(guard.holdout, packed, names)
        self.columns = ("bound", *self.named, *SCORES, "complexity", "delta_prime")
        self.n_before = guard.n_answered
        self._options: dict[str, Any] = {"trace": trace, "n_threads": n_threads}
        self._binary = binary
        self._complexities: list[NDArray[np.float64]] | None = [] if keep else None
        self._limits = Limits(guard.rule)
        self._lowest_mean = inf
        self.lowest: RadaBoundAnswer | None = None

    def _ask(self, block: NDArray[Any]) -> Told:
        answers: RadaBoundAnswers = self.guard.query_many(block, **self._options)
        if self._complexities is not None and answers.complexities is not None:
            self._complexities.append(answers.complexities)
        self._find_lowest(answers)
        return lambda: self._columns_of(answers)

    def _columns_of(self, answers: RadaBoundAnswers) -> Mapping[str, Any]:
        limits = self._limits.of(answers.values, answers.numbers, answers.binary)
        names = self.names_of(int(answers.numbers[0]) - 1 if len(answers) else 0, len(answers))
        scores = dict(zip(SCORES, (answers.numbers, answers.values, *limits), strict=True))
        own = {"complexity": answers.complexities, "delta_prime": answers.delta_primes}
        return {"bound": self.guard.bound} | names | scores | own

    def _find_lowest(self, answers: RadaBoundAnswers) -> None:
        # upper limits rise with the mean and along a sequence: only a mean that is lower than all
        # before it can have the lowest
        if not len(answers) or not answers.values.min() < self._lowest_mean:
            return
        means = np.minimum.accumulate(np.append(self._lowest_mean, answers.values))
        candidates = answers.subset(np.flatnonzero(means[1:] < means[:-1]))
        lowest = candidates[int(candidates.highs.argmin())]
        self._lowest_mean = float(means[-1])
        if self.lowest is None or lowest.high < self.lowest.high:
            self.lowest = lowest

    @property
    def halted(self) -> bool:
        return bool(self.guard.halted)

    @property
    def sentence(self) -> str | None:
        lowest, guard = self.lowest, self.guard
        if lowest is None:
            return None
        models = counted(guard.n_answered - self.n_before, "model")
        if self.n_before:
            models += " of this run"
        elif guard.halted:
            models += " before the halt"
        score, place = scored(lowest.value, lowest.low, lowest.high)
        return sentence(
            f"Of {models} {self.name_of(lowest.number - 1)} has the lowest upper limit",
            f"{self.metric} {score} on {counted(guard.n_samples, 'held-out row')}",
            f"{place} in the population",
            guard.delta,
            f'{_provided(guard)} (radabound_fast.{guard.kind}, bound "{guard.bound}", epsilon '
            f"{guard.epsilon:g})",
        )

    @property
    def halting_query(self) -> int | None:
        """The query that was withheld; None if all were answered."""
        return self.guard.n_answered + 1 if self.guard.halted else None

    @property
    def n_left(self) -> int:
        """How many more queries like these would be answered, whatever they are."""
        return self.guard.n_left(binary=self._binary)

    @property
    def n_without_signs(self) -> int:
        """How many queries are answered from the first on whatever they are."""
        return self.guard.rule.free_left(0, None, self._binary)

    def complexities(self) -> NDArray[np.float64]:
        """The complexity after each query, the withheld one included."""
        answered = np.concatenate(self._complexities or [np.empty(0)])
        return np.append(answered, self.guard.complexity) if self.guard.halted else answered


def _provided(guard: SignedGuard) -> str:
    """On which condition the intervals of a guard's answers hold."""
    bound = BOUNDS[guard.bound]
    if bound.proved:
        order = "the order of the models was fixed before any holdout score was seen"
        return f"if {order} and no model was trained on these rows"
    if bound.asymptotic:
        return "by a heuristic"
    return "as the paper claims, which is not proved"


class SearchReplay(Replay):
    """A search over a declared space, which never halts, in memory or opened from a database.

    `keys` are those of every row, in the search's space.  Without them each row is a configuration
    of its own, whose key is its number.
    """

    halted: ClassVar[bool] = False

    def __init__(
        self,
        search: DeclaredSearch,
        keys: Sequence[Any] | None,
        *,
        names: Sequence[str] | None = None,
        packed: bool = False,
        n_threads: int = 1,
    ) -> None:
        self.search, self._n_threads = search, n_threads
        super().__init__(search.holdout, packed, names)
        self._gains = ("gain", "gain_low", "gain_high") if search.is_paired else ()
        self.columns = (*(["key"] if keys else []), *self.named, *SCORES, *self._gains)
        self._keys = keys
        is_stored = search.database is not None
        self.n_before = self._n_rows = self._n_answered_before() if is_stored else 0
        self._has_scores, self._may_be_hard = search.holdout.takes in _SCORES, True

    def _n_answered_before(self) -> int:
        """How many of the first rows the database has, each with all before it."""
        if self._keys is None:
            return self.search.n_answered
        answered, find = set(self.search.answers.codes), self.search.space.find
        each = enumerate(self._keys)
        return next((n for n, key in each if find(key)[0] not in answered), len(self._keys))

    def _look_for_classes(self, block: NDArray[Any]) -> None:
        if self._has_scores and self._may_be_hard:
            rows = block.reshape(len(block), -1)
            low, high = rows.min(axis=1, keepdims=True), rows.max(axis=1, keepdims=True)
            self._may_be_hard = bool(((rows == low) | (rows == high)).all())

    @property
    def note(self) -> str | None:
        """What is odd about the predictions."""
        if not (self._has_scores and self._may_be_hard and self._n_rows > self.n_before):
            return None
        takes = self.search.holdout.takes
        return (
            f"all predictions of a model are one of two values, as classes are; {self.metric} is "
            f"meant for {takes}, and says less of classes"
        )

    def _ask(self, block: NDArray[Any]) -> Told:
        self._look_for_classes(block)
        first = self._n_rows
        numbers = np.arange(first, first + len(block))
        keys = numbers if self._keys is None else self._keys[first : first + len(block)]
        answers: DeclaredSearchAnswers = self.search.query_many(
            block, keys=keys, n_threads=self._n_threads
        )
        self._n_rows += len(block)
        named = self.names_of(first, len(block))
        if self._keys is not None:
            texts = [key if isinstance(key, str) else json.dumps(key) for key in keys]
            named = {"key": texts} | named
        fields = ("value", "low", "high", *self._gains)
        return lambda: (
            named | {"query": numbers + 1} | {name: getattr(answers, f"{name}s") for name in fields}
        )

    @property
    def report(self) -> Report:
        """The report on all rows that were audited."""
        answers, name = self.search.answers, None
        if len(answers):
            key = answers.best.key
            name = shortened(key) if isinstance(key, str) else shown_key(key)
            name = self.name_of(int(key)) if self._keys is None else name
        return self.search.report_on(answers, n_queries=self._n_rows, name_of_best=name)

    def _query_of(self, key: Any) -> int:
        """The first row with a key."""
        if self._keys is None:
            return int(key)
        find = self.search.space.find
        code = find(key)[0]
        return next(n for n, each in enumerate(self._keys) if find(each)[0] == code)

    @property
    def sentence(self) -> str:
        return str(self.report)

    def record(self) -> dict[str, Any]:
        """The outcome, as JSON values."""
        report = self.report
        fields = report.as_json()
        own = ("number", "rerun") if self._keys else ("number", "rerun", "key")
        best = {name: value for name, value in fields["best"].items() if name not in own}
        query = self._query_of(report.best.key)
        model = {name: names[0] for name, names in self.names_of(query, 1).items()}
        return fields | {"note": self.note, "best": {"query": query + 1} | model | best}


_SCORES = ("scores", "probabilities")


def rows_of(words: Any, n_samples: int, are_losses: bool) -> PackedLosses | NDArray[np.uint8]:
    """Packed rows as guards take them: losses as they are, predictions of 0 and 1 as bytes.

    ValueError if a bit past the last is set.
    """
    if are_losses:
        return PackedLosses(words, n_samples)
    return bits_of(as_words(words, n_samples), n_samples)


def replay(
    file_of: Callable[[int], str],
    blocks: Iterable[NDArray[Any]],
    replays: Sequence[Replay],
    write: Write | None = None,
    n_before: int = 0,
) -> int:
    """Ask every block of every guard, until all have halted; returns how many rows were read.

    `file_of` is the file that a query is in, counted from 0; `n_before` were asked about before and
    are in no block.  What is answered is given to `write`.  ValueError where a block is not
    predictions or losses: the message says which queries of which file.
    """
    n_read = n_before
    for block in blocks:
        try:
            # what is counted is written too
            with contextlib.nullcontext() if write is None else undisturbed(patient=False):
                for each in replays:
                    columns = each.ask(block)
                    if write is not None and columns is not None:
                        write(columns())
        except (TypeError, ValueError) as error:
            where = f"queries {n_read + 1} to {n_read + len(block)} (rows 0 to {len(block) - 1})"
            raise ValueError(f"{file_of(n_read)}, {where}: {error}") from error
        n_read += len(block)
        if all(each.halted for each in replays):
            break
    return n_read


def table(replays: Sequence[GuardReplay]) -> str:
    """For each bound, how many queries were answered, and where and why it halted."""
    width = max(len("bound"), *(len(each.guard.bound) for each in replays))
    lines = [f"{'bound':<{width}}  answered  outcome"]
    for each in replays:
        guard = each.guard
        lines.append(f"{guard.bound:<{width}}  {guard.n_answered:>8,}  {_outcome(each)}")
    return "\n".join(lines)


def _outcome(each: GuardReplay) -> str:
    guard, left = each.guard, each.n_left
    whole = guard.n_answered + left
    if not guard.halted and whole >= MOST_QUERIES:
        return "all answered; so will be as many more as you like, whatever they are"
    if not guard.halted and left:
        share = f"{100 * left // whole} % of {whole:,}"
        return f"all answered; {left:,} more will be, whatever they are ({share})"
    if not guard.halted:
        part = complexity_part(guard.complexity, guard.budget)
        return f"all answered; the next may be withheld: {part}"
    halt = f"halted at query {each.halting_query:,}: "
    if guard.budget < 0 and guard.n_answered == 0:
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


def shortfalls(replays: Sequence[GuardReplay]) -> list[str]:
    """A line of the plan for each guard that answered no query.

    A plan is for the first estimator of a bound: with another there is no line.
    """
    lines = []
    for guard in (each.guard for each in replays if each.halting_query == 1):
        if guard.estimator == BOUNDS[guard.bound].estimators[0]:
            planned = plan(guard.n_samples, guard.epsilon, guard.delta, guard.n_vectors)
            lines.append(planned.shortfall(guard.bound))
    return [line for line in lines if line is not None]


def record(each: GuardReplay) -> dict[str, Any]:
    """The outcome of one guard, as JSON values."""
    guard, lowest = each.guard, None
    if each.lowest is not None:
        fields = each.lowest.to_dict()
        named = {name: names[0] for name, names in each.names_of(fields["number"] - 1, 1).items()}
        lowest = {"query": fields["number"]} | named | {name: fields[name] for name in SHARED[:4]}
    return (
        {name: getattr(guard, name) for name in ("bound", "estimator", "halted", "n_answered")}
        | {"n_answered_before": each.n_before, "halting_query": each.halting_query}
        | {"lowest_upper_limit": lowest, "sentence": each.sentence}
        | {"complexity": guard.complexity, "budget": guard.budget, "n_left": each.n_left}
        | {"threshold": guard.threshold, "guarantee": guard.guarantee}
    )
