"""Finalists on the confirmation rows: what is released of each, and what that costs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, count, groupby
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from radabound_fast._checks import check_choice, check_real, counted
from radabound_fast.bounds import confirmation_nats
from radabound_fast.bounds.bootstrap import two_sided_level, vectors_needed
from radabound_fast.guards.answers import HoldoutExhausted
from radabound_fast.guards.candidates import Candidate, CandidateRows, from_bytes, to_bytes
from radabound_fast.guards.confirmed.answers import Finalist
from radabound_fast.guards.declared.answers import Comparison
from radabound_fast.rows.moments import moments_of, moments_of_gains
from radabound_fast.rows.rounded import Rounded
from radabound_fast.rows.signs import SignMatrix
from radabound_fast.rows.studentised import StudentisedSums, signed_sums
from radabound_fast.store.events import Turn

Release = Literal["interval", "pass"] | Rounded
Nats = list[float | None]  # one a claim; None: the bootstrap does not speak for it

# real-valued metrics are released before the last batch on a grid of so many steps
_GRID_STEPS = 10_000


class Question(NamedTuple):
    """What is to be released of finalists, as `confirm` is called."""

    release: Release
    at_least: float | None
    at_most: float | None

    @classmethod
    def of(cls, release: Any, at_least: Any, at_most: Any) -> Question:
        """Check the arguments of `ConfirmedSearch.confirm`."""
        if not isinstance(release, Rounded):
            check_choice(("interval", "pass"), release=release)
        at_least = None if at_least is None else check_real(at_least=at_least)
        at_most = None if at_most is None else check_real(at_most=at_most)
        has_bar = at_least is not None or at_most is not None
        if has_bar != (release == "pass"):
            rule = "be left out" if has_bar else "be given, one of them,"
            raise ValueError(f"at_least and at_most must {rule} with release={release!r}")
        return cls(release, at_least, at_most)

    def stored(self) -> list[Any]:
        """Return the question as JSON values."""
        step = self.release.step if isinstance(self.release, Rounded) else self.release
        return [step, self.at_least, self.at_most]

    def passes(self, low: float, high: float) -> bool:
        """Whether the whole interval clears the bars that there are."""
        return (self.at_least is None or low >= self.at_least) and (
            self.at_most is None or high <= self.at_most
        )

    def answered_by(self, finalist: Finalist, stored: list[Any], ended: bool) -> Finalist | None:
        """Return what an earlier release answers; None: it is a new question."""
        (_, low, high), is_whole = finalist.value, ended or stored[0] == "interval"
        if stored == self.stored() or is_whole and self.release != "pass":
            return finalist
        if not is_whole or low is None or high is None:
            return None
        return finalist._replace(passed=self.passes(low, high))


class Model(NamedTuple):
    """A finalist as it was passed to `confirm`."""

    name: str  # or ""
    stored: NDArray[Any]
    fingerprint: int
    search_value: float | None


class History:
    """What the events say: who was confirmed, what that costs later batches, and whether it ended.

    `log_outcomes` is ``ln M`` over all batches, and `nominated` has the last nomination of each
    name: its place among the events, and the event.
    """

    def __init__(self, events: list[dict[str, Any]]) -> None:
        self.ended, fields = False, []
        self.places: list[int] = []  # of the finalists among the events
        self.nominated: dict[str, tuple[int, dict[str, Any]]] = {}
        for place, event in enumerate(events):
            if "finalist" in event:
                self.places.append(place)
                fields.append(event["finalist"])
            elif "nominated" in event:
                self.nominated[event["nominated"]] = place, event
            else:
                self.ended, fields = True, event["end"]
        self.events = [events[place] for place in self.places]
        self.finalists = [_finalist(each) for each in fields]
        self.n_batches = self.finalists[-1].batch if self.finalists else 0
        self.log_outcomes = sum(event["log_outcomes"] for event in self.events)

    def find(self, model: Model, question: Question) -> Finalist | None:
        """Return what was released of this very model that answers the question; None: nothing."""
        released = None
        for event, finalist in zip(self.events, self.finalists, strict=True):
            if event["fingerprint"] == model.fingerprint:
                released = released or question.answered_by(finalist, event["question"], self.ended)
        return released and released._replace(name=model.name or released.name)

    def free_name(self, number: int) -> str:
        """Return what finalist `number` is called that came without a name."""
        in_use = {finalist.name for finalist in self.finalists}
        names = (f"finalist {place}" for place in count(number))
        return next(name for name in names if name not in in_use)

    def check_name(self, model: Model) -> None:
        """ValueError if another model was confirmed by this name."""
        for event, finalist in zip(self.events, self.finalists, strict=True):
            if finalist.name == model.name and event["fingerprint"] != model.fingerprint:
                raise ValueError(
                    f"finalists must have a name each, and {model.name!r} was confirmed with other "
                    "predictions: give this model another name"
                )


def _finalist(fields: dict[str, Any]) -> Finalist:
    """The finalist whose fields JSON holds."""
    over = {name: Comparison(*pair) for name, pair in fields["over"].items()}
    gain = fields["gain"] and Comparison(*fields["gain"])
    return Finalist(**fields | {"gain": gain, "over": over})


def bootstrap_nats(
    sums: StudentisedSums, delta: float, claims: list[tuple[NDArray[Any], NDArray[Any] | None]]
) -> Nats:
    """``ln(2/a)``, a the level of the claims that the bootstrap speaks for, with delta for all.

    Claims are on the mean losses of rows, or on their gains over a base row.
    """
    m, every, parts = sums.signs.n_samples, sums.extremes(), [np.empty(0, np.bool_)]
    for rows, base in claims:
        if base is None:
            moments, of_base = moments_of(rows, m), None
            means = moments.means
        else:
            moments = moments_of_gains(rows, base, m)
            means = -moments.means  # T is of a row's loss less the base's
            of_base = signed_sums(sums.signs, base[np.newaxis])[0]
        extremes = sums.extremes(of_base)
        sums.update(rows, [(extremes, means, moments.scales_of_enough(m))])
        every.join(extremes)
        parts.append(moments.enough(m))
    enough = np.concatenate(parts)
    if not enough.any():
        return [None] * len(enough)
    share = delta * float(enough.mean())  # the others have theirs by Bonferroni
    nats = math.log(2.0 / two_sided_level(every, share, int(enough.sum())))
    return [nats if is_enough else None for is_enough in enough.tolist()]


@dataclass(frozen=True)
class Confirmation:
    """The confirmation rows, and what batches of finalists pay for claims about them."""

    rows: CandidateRows
    baseline: Candidate | None  # what finalists have gains over
    pairs: bool  # whether finalists of a batch have gains over each other
    delta: float
    n_batches: int | None
    seed: int | None  # of the bootstrap's signs; None: there is no bootstrap

    @property
    def _n_families(self) -> int:
        return 1 + (self.baseline is not None) + self.pairs

    def nominate(self, turn: Turn, model: Model) -> None:
        """Keep a model as a finalist of the batch that will be confirmed; ValueError at the end."""
        history = History(turn.events)
        if history.ended:
            raise ValueError("finalists can be nominated before the end, and the search has ended")
        history.check_name(model)
        name, stored, fingerprint, value = model
        event = {"nominated": name, "fingerprint": fingerprint, "search_value": value}
        turn.append(event, to_bytes(stored))

    def _nominated(self, turn: Turn) -> list[Model]:
        """The models that were nominated, the last of each name; ValueError without any."""
        models = []
        for name, (place, event) in History(turn.events).nominated.items():
            stored = from_bytes(turn.content(place))
            models.append(Model(name, stored, event["fingerprint"], event["search_value"]))
        if not models:
            raise ValueError("finalists must hold at least one model, and none was nominated")
        return models

    def take_turn(
        self, turn: Turn, models: list[Model] | None, question: Question
    ) -> tuple[list[Finalist], History]:
        """Confirm the models that are new, and return what is released of all of them.

        None are those that were nominated.  HoldoutExhausted if some are new and no batch is left;
        ValueError if a name stands for two models.
        """
        models = self._nominated(turn) if models is None else models
        history = History(turn.events)
        new: dict[int, Model] = {}
        for model in models:
            history.check_name(model)
            if history.find(model, question) is None:
                new.setdefault(model.fingerprint, model)
        if new:
            self._confirm(turn, history, list(new.values()), question)
            history = History(turn.events)
        released = (history.find(model, question) for model in models)
        return [finalist for finalist in released if finalist is not None], history

    def _confirm(
        self, turn: Turn, history: History, models: list[Model], question: Question
    ) -> None:
        batch = history.n_batches + 1
        if history.ended:
            raise self._exhausted(history, len(models))
        nats = self._nats(batch, len(models), history.log_outcomes)
        finalists, candidates, outcomes = [], [], []
        for number, model in enumerate(models, len(history.finalists) + 1):
            candidates.append(self.rows.candidate(model.stored))
            name = model.name or history.free_name(number)
            finalist = Finalist(name, number, batch, nats, model.search_value)
            finalist, n_outcomes = self._in_part(finalist, candidates[-1], question)
            finalists.append(finalist)
            outcomes.append(math.log(n_outcomes))
        is_last = batch == self.n_batches
        if is_last:
            finalists = self._in_full(finalists, candidates, history.log_outcomes)
        for model, finalist, log_outcomes in zip(models, finalists, outcomes, strict=True):
            event = {
                "fingerprint": model.fingerprint,
                "question": question.stored(),
                "log_outcomes": log_outcomes,
                "finalist": finalist._asdict(),
            }
            turn.append(event, b"" if is_last else to_bytes(model.stored))
        if is_last:
            self._end(turn, history, finalists)

    def _in_part(
        self, finalist: Finalist, candidate: Candidate, question: Question
    ) -> tuple[Finalist, int]:
        """What is released of a finalist that others may follow, and of how many outcomes."""
        value, low, high = self.rows.value(candidate, finalist.nats)
        if question.release == "pass":
            return finalist._replace(passed=question.passes(low, high)), 2
        n_outcomes, (least, most) = self.rows.n_outcomes(candidate), self.rows.ends
        grid = question.release
        if not isinstance(grid, Rounded):
            if n_outcomes is not None:
                return finalist._replace(value=(value, low, high)), n_outcomes
            grid = Rounded((most - least) / _GRID_STEPS)
        hull = self.rows.hull(candidate, *grid.cell(value), finalist.nats)
        limits = (None, None) if hull is None else hull
        return finalist._replace(value=(grid.of(value), *limits)), grid.n_values(least, most)

    def _in_full(
        self, finalists: Sequence[Finalist], candidates: list[Candidate], log_outcomes: float
    ) -> list[Finalist]:
        """All of the finalists of one batch: values, gains, and gains of pairs."""
        of_values, of_gains, of_pairs = self._bootstrap_nats(candidates)
        full, rows, base = [], self.rows, self.baseline
        for finalist, candidate, nats, gain_nats in zip(
            finalists, candidates, of_values, of_gains, strict=True
        ):
            paid, limits = finalist.nats, None
            if self.seed is None:
                limits = rows.asymptotic(candidate, paid)
            elif nats is not None:
                limits = rows.value(candidate, nats)[1:]
            full.append(
                finalist._replace(
                    value=rows.value(candidate, paid),
                    gain=None if base is None else self._gain(base, candidate, paid, gain_nats),
                    asymptotic=limits,
                    asymptotic_nats=nats,
                )
            )
        if not of_pairs:
            return full
        paid = self._nats(full[0].batch, len(of_pairs), log_outcomes)
        over: list[dict[str, Comparison]] = [{} for _ in full]
        pairs = combinations(range(len(full)), 2)
        for (one, other), nats in zip(pairs, of_pairs, strict=True):
            pair = self._gain(candidates[other], candidates[one], paid, nats)
            over[one][full[other].name], over[other][full[one].name] = pair, pair.reversed()
        return [finalist._replace(over=gains) for finalist, gains in zip(full, over, strict=True)]

    def _gain(
        self, before: Candidate, after: Candidate, nats: float, by_bootstrap: float | None
    ) -> Comparison:
        """How much better the second candidate is, with proved limits and the bootstrap's."""
        gain = Comparison(*self.rows.gain(before, after, nats), nats)
        if by_bootstrap is None:
            return gain
        _, low, high = self.rows.gain(before, after, by_bootstrap)
        return gain._replace(asymptotic_low=low, asymptotic_high=high)

    def _bootstrap_nats(self, candidates: list[Candidate]) -> tuple[Nats, Nats, Nats]:
        """Nats for limits by the bootstrap, of values, gains and pairs; None of each without it."""
        k, m, delta = len(candidates), self.rows.n_samples, self.delta / self._n_families
        gains: Nats = [None] * k
        if self.seed is None:
            return gains, gains, [None] * (math.comb(k, 2) if self.pairs else 0)
        signs = SignMatrix(m, vectors_needed(delta), seed=self.seed, signs="generated")
        sums, rows = StudentisedSums(signs), self.rows.in_units(candidates)
        if self.baseline is not None:
            base = self.rows.in_units([self.baseline])[0]
            gains = bootstrap_nats(sums, delta, [(rows, base)])
        pairs = [(rows[n:], row) for n, row in enumerate(rows[:-1], 1)] if self.pairs else []
        values = bootstrap_nats(sums, delta, [(rows, None)])
        return values, gains, bootstrap_nats(sums, delta, pairs)

    def end(self, turn: Turn) -> History:
        """Release all of every finalist, if that has not happened yet."""
        history = History(turn.events)
        if not history.ended:
            self._end(turn, history, [])
        return History(turn.events)

    def _end(self, turn: Turn, history: History, last: list[Finalist]) -> None:
        """Release all of the finalists so far, and of a last batch, whose all is known."""
        full: list[Finalist] = []
        log_outcomes = 0.0
        placed = zip(history.finalists, history.places, history.events, strict=True)
        for _, batch in groupby(placed, key=lambda one: one[0].batch):
            finalists, places, events = zip(*batch, strict=True)
            candidates = [self.rows.candidate(from_bytes(turn.content(one))) for one in places]
            full += self._in_full(finalists, candidates, log_outcomes)
            log_outcomes += sum(event["log_outcomes"] for event in events)
        turn.append({"end": [finalist._asdict() for finalist in full + last]})

    def _nats(self, batch: int, n_claims: int, log_outcomes: float) -> float:
        return confirmation_nats(
            n_claims,
            self.delta,
            batch=batch,
            n_batches=self.n_batches,
            log_outcomes=log_outcomes,
            n_families=self._n_families,
        )

    def _exhausted(self, history: History, n_finalists: int) -> HoldoutExhausted:
        """Why nothing more is confirmed; what one more batch costs, and how it is declared."""
        batch, n_answered = history.n_batches + 1, len(history.finalists)
        if history.n_batches != self.n_batches:
            reason = "close_out() has ended this search: nothing more is confirmed on its rows"
            return HoldoutExhausted(reason, n_answered=n_answered)
        paid = {"batch": batch, "log_outcomes": history.log_outcomes}
        declared, free = (
            confirmation_nats(n_finalists, self.delta, n_batches=n, **paid) for n in (batch, None)
        )
        alone = confirmation_nats(n_finalists, self.delta)
        return HoldoutExhausted(
            f"n_batches={self.n_batches} allows no further batch of finalists: "
            f"{counted(batch - 1, 'was', 'were')} confirmed. One more has to be declared before "
            f"the first: with n_batches={batch} its limits would be taken at {declared:.1f} nats, "
            f"with n_batches=None at {free:.1f}, and in a batch of its own alone at {alone:.1f}",
            n_answered=n_answered,
        )
