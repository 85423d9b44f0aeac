"""The audit of a fixed order: one pass over a file, for a guard of each bound."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Iterator, Mapping
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from radabound_fast._checks import counted
from radabound_fast._kernels.guard import RadaBoundAnswer
from radabound_fast.bounds import BOUNDS, PAPER_BOUNDS
from radabound_fast.bounds.bound import complexity_part
from radabound_fast.bounds.union import MOST_QUERIES
from radabound_fast.cli import options
from radabound_fast.cli.auditing import Audit, Columns, Files
from radabound_fast.guards.answers import SHARED, RadaBoundAnswers
from radabound_fast.guards.by_bound import guard_by_bound, open_by_bound
from radabound_fast.guards.halting import Limits
from radabound_fast.guards.report import scored, sentence
from radabound_fast.guards.signed import SignedGuard
from radabound_fast.planning import plan

# of an audit that halts, beside epsilon, delta and bound
GUARD_OPTIONS = ("n_vectors", "estimator", "max_queries", "seed")
_COLUMNS = ("query", "value", "low", "high", "complexity", "delta_prime")


class GuardsAudit(Audit):
    """Guards that halt, one a bound; those of a database are closed by `opened`."""

    def __init__(self, files: Files, opened: contextlib.ExitStack) -> None:
        super().__init__(files)
        args = self.args
        self.drawn = args.seed is None and args.state is None
        seed = secrets.randbits(64) if self.drawn else args.seed
        bounds = dict.fromkeys(args.bound or ["fixed-sequence"])
        self.replays = [GuardReplay(files, _guard(files, bound, seed, opened)) for bound in bounds]
        self.n_before = self.replays[0].n_before  # only a single one is kept in a database
        self.columns = ("bound", *files.names_of(0, 0), *_COLUMNS)

    def ask(self, rows: Any) -> Iterator[Columns]:
        for each in self.replays:
            if not each.guard.halted:
                yield each.ask(rows)

    @property
    def halted(self) -> bool:
        return all(each.guard.halted for each in self.replays)

    @property
    def code(self) -> int:
        return options.HALTED if any(each.guard.halted for each in self.replays) else options.OK

    def head(self) -> str:
        signs = self.files.signs_of(self.replays[0].guard, self.drawn)
        return f"epsilon {self.args.epsilon:g}, {signs}"

    def body(self) -> str:
        """For each bound, how many queries were answered, and where and why it halted."""
        width = max(len("bound"), *(len(each.guard.bound) for each in self.replays))
        lines = [f"{'bound':<{width}}  answered  outcome"]
        for each in self.replays:
            guard = each.guard
            lines.append(f"{guard.bound:<{width}}  {guard.n_answered:>8,}  {each.outcome()}")
        if self.code == options.HALTED:
            lines.append(
                "\nA bound that halted vouches neither for that query nor for any after it."
            )
        lines += [line for each in self.replays if (line := each.shortfall()) is not None]
        lines += [f"\n{line}" for each in self.replays if (line := each.sentence()) is not None]
        return "\n".join(lines)

    def record(self) -> dict[str, Any]:
        guard = self.replays[0].guard
        return {
            "epsilon": self.args.epsilon,
            "n_vectors": guard.n_vectors,
            "seed": guard.seed,
            "seed_drawn": self.drawn,
            "state": self.args.state,
            "bounds": [each.record() for each in self.replays],
        }

    def figure(self) -> Any:
        from radabound_fast.plots import audit_figure

        by_bound = {each.guard.bound: each for each in self.replays}
        return audit_figure(
            {bound: each.complexities() for bound, each in by_bound.items()},
            {bound: each.guard.budget for bound, each in by_bound.items()},
            {bound: each.halting_query for bound, each in by_bound.items()},
            without_signs={bound: each.n_without_signs for bound, each in by_bound.items()},
        )


def _guard(files: Files, bound: str, seed: int | None, opened: contextlib.ExitStack) -> SignedGuard:
    args, what = files.args, files.n_samples if files.labels is None else files.known()
    parameters = options.values(args, "delta", "epsilon", *GUARD_OPTIONS)
    if bound not in PAPER_BOUNDS:  # which has one estimator
        parameters.pop("estimator", None)
    if seed is not None:
        parameters["seed"] = seed
    if args.state is None:
        return guard_by_bound(bound, what, **parameters)
    return opened.enter_context(open_by_bound(bound, args.state, what, **parameters))


class GuardReplay:
    """A guard that halts, and what it answers of a file.

    `lowest` is the first of this replay's answers with the lowest upper limit: it need not have the
    lowest mean, since later answers have wider intervals.
    """

    def __init__(self, files: Files, guard: SignedGuard) -> None:
        self.files, self.guard, self.n_before = files, guard, guard.n_answered
        self._binary = files.labels is not None or files.rows.dtype.kind in "biu"
        self._trace = bool(files.args.output or files.args.plot)
        self._complexities: list[NDArray[np.float64]] = []  # after each query, for the figure
        self._limits = Limits(guard.rule)
        self._lowest_mean = inf
        self.lowest: RadaBoundAnswer | None = None

    def ask(self, rows: Any) -> Columns:
        answers: RadaBoundAnswers = self.guard.query_many(
            rows, trace=self._trace, n_threads=self.files.n_threads
        )
        if self.files.args.plot and answers.complexities is not None:
            self._complexities.append(answers.complexities)
        self._find_lowest(answers)
        return lambda: self._columns_of(answers)

    def _columns_of(self, answers: RadaBoundAnswers) -> Mapping[str, Any]:
        low, high = self._limits.of(answers.values, answers.numbers, answers.binary)
        first = int(answers.numbers[0]) - 1 if len(answers) else 0
        columns = answers.numbers, answers.values, low, high, answers.complexities
        named = {"bound": self.guard.bound} | self.files.names_of(first, len(answers))
        return named | dict(zip(_COLUMNS, (*columns, answers.delta_primes), strict=True))

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
        last = [self.guard.complexity] if self.guard.halted else []
        return np.concatenate([*self._complexities, last])

    def sentence(self) -> str | None:
        """To paste: a model, and how far to trust its score; None if none was answered."""
        lowest, guard, files = self.lowest, self.guard, self.files
        if lowest is None:
            return None
        models = counted(guard.n_answered - self.n_before, "model")
        if self.n_before:
            models += " of this run"
        elif guard.halted:
            models += " before the halt"
        score, place = scored(lowest.value, lowest.low, lowest.high)
        return sentence(
            f"Of {models} {files.name_of(lowest.number - 1)} has the lowest upper limit",
            f"{guard.holdout.metric} {score} on {counted(guard.n_samples, 'held-out row')}",
            f"{place} in the population",
            guard.delta,
            f'{_provided(guard)} (radabound_fast.{guard.kind}, bound "{guard.bound}", epsilon '
            f"{guard.epsilon:g})",
        )

    def outcome(self) -> str:
        """Whether all were answered, and how many more will be, or where and why it halted."""
        guard, left = self.guard, self.n_left
        whole = guard.n_answered + left
        if not guard.halted and whole >= MOST_QUERIES:
            return "all answered; so will be as many more as you like, whatever they are"
        if not guard.halted and left:
            share = f"{100 * left // whole} % of {whole:,}"
            return f"all answered; {left:,} more will be, whatever they are ({share})"
        if not guard.halted:
            part = complexity_part(guard.complexity, guard.budget)
            return f"all answered; the next may be withheld: {part}"
        halt = f"halted at query {self.halting_query:,}: "
        if guard.budget < 0 and guard.n_answered == 0:
            samples = counted(guard.n_samples, "sample")
            return f"{halt}{samples} cannot vouch for any answer at this epsilon and delta"
        if self.n_without_signs:
            halt += "the union bound has no more for it, and "
        if guard.budget < 0:
            few = f"{guard.n_samples:,} samples are too few for the complexity to vouch for any"
            return halt + few
        if guard.complexity <= guard.budget:  # which is that of the answered means
            return halt + f"the budget, {guard.budget:.6f}, is for smaller means than its own"
        return halt + f"complexity {guard.complexity:.6f} is over the budget, {guard.budget:.6f}"

    def shortfall(self) -> str | None:
        """A line of the plan for a guard that answered no query, by the bound's first estimator."""
        guard = self.guard
        if self.halting_query != 1 or guard.estimator != BOUNDS[guard.bound].estimators[0]:
            return None
        planned = plan(guard.n_samples, guard.epsilon, guard.delta, guard.n_vectors)
        return planned.shortfall(guard.bound)

    def record(self) -> dict[str, Any]:
        """The outcome as JSON values."""
        guard, lowest = self.guard, None
        if self.lowest is not None:
            fields, query = self.lowest.to_dict(), self.lowest.number
            model = {name: names[0] for name, names in self.files.names_of(query - 1, 1).items()}
            lowest = {"query": query} | model | {name: fields[name] for name in SHARED[:4]}
        return (
            {name: getattr(guard, name) for name in ("bound", "estimator", "halted", "n_answered")}
            | {"n_answered_before": self.n_before, "halting_query": self.halting_query}
            | {"lowest_upper_limit": lowest, "sentence": self.sentence()}
            | {"complexity": guard.complexity, "budget": guard.budget, "n_left": self.n_left}
            | {"threshold": guard.threshold, "guarantee": guard.guarantee}
        )


def _provided(guard: SignedGuard) -> str:
    """On which condition the intervals of a guard's answers hold."""
    bound = BOUNDS[guard.bound]
    if bound.proved:
        order = "the order of the models was fixed before any holdout score was seen"
        return f"if {order} and no model was trained on these rows"
    if bound.asymptotic:
        return "by a heuristic"
    return "as the paper claims, which is not proved"
