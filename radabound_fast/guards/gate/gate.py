"""A release gate on a fixed test set: verdicts on candidates that are made in their light."""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from radabound_fast._checks import certainty, counted
from radabound_fast._kernels.support import sealed
from radabound_fast._ownership import Owned
from radabound_fast.bounds import gain_needed, history_nats
from radabound_fast.guards.base import Guard, Outlook
from radabound_fast.guards.candidates import (
    Candidate,
    CandidateRows,
    from_bytes,
    rows_of,
    to_bytes,
)
from radabound_fast.guards.exhausted import HoldoutExhausted
from radabound_fast.guards.gate.history import History, Verdict
from radabound_fast.guards.gate.report import GateReport, JudgedCandidate
from radabound_fast.guards.gate.rules import Comparators, GateRules
from radabound_fast.guards.log import hears_queries, note_answer
from radabound_fast.guards.opening import Judged, same_json
from radabound_fast.holdout import Holdout, Losses, as_judged
from radabound_fast.metrics import Rounded
from radabound_fast.store.events import EventList, Events, Turn

if TYPE_CHECKING:
    from radabound_fast.store import Durability, EventRecord, Path
    from radabound_fast.store.served import ServedDatabase

# an argument of `Gate.open` that was left out: as in the file, or as the constructor's default
_AS_STORED: Any = type("AsStored", (), {"__repr__": lambda _: "as stored"})()
# passes more, for which `Gate.needed` looks ahead
_AHEAD = (0, 1, 2, 5)


class Gate(Guard, Owned):
    """Says of each candidate whether it may be released, and stays right however often it is asked.

    A team has a model in production and one labelled test set.  Every candidate is compared with
    production on it; what passes becomes production; the team sees the verdicts and works on in
    their light.  With probability at least 1 - delta no pass is ever wrong.  What costs is passes,
    hardly looks: the gate gets stricter with each.

    Parameters
    ----------
    judged : array_like, Holdout, int or Losses
        The test set: labels, or a `Holdout` with any metric; then queries bring predictions.  Or
        the number of rows, m; then queries bring losses in [0, 1], one a row.
    baseline : array_like, shape (n_samples,), optional
        Predictions, or losses, of the model in production, which was fixed before any score on
        this test set was seen.  For metrics that are means.
    delta : float, default 0.05
        The probability that any pass is wrong, in (0, 1).
    margin : float or None, default 0.0
        A candidate passes if its population gain over what it is compared with is larger.  Positive
        gains are better, whatever the metric; -0.01 means not worse by more than .01.  None, or no
        baseline: no such condition.
    total_margin : float, optional
        The same over the first baseline: with a negative margin and promotion losses may add up.
    at_least, at_most : float, optional
        The population's metric is at least, or at most, this.
    slices : mapping of str to array_like of bool, shape (n_samples,), optional
        Rows on which no candidate may be worse by more than `slice_margin`.
    slice_margin : float, default 0.0
        As a loss of the metric, at least 0.
    n_candidates : int, optional
        How many candidates there will be at most; one more raises `HoldoutExhausted`.  By default
        there is no end, at a price that grows with the logarithm of their number.
    promote : bool, default True
        Whether a candidate that passes is what later ones are compared with.
    release : {"pass", "three"} or Rounded, default "pass"
        "pass": passed or not.  "three": better, worse (the gain is at most the margin) or neither.
        ``Rounded(step)``: passed or not, and the gain (without a baseline the metric) rounded to a
        multiple of the step; every later candidate pays for it.

    Raises
    ------
    TypeError, ValueError
        An argument is of the wrong type or out of its range; the message says which and why.

    Notes
    -----
    Candidate t, after b passes among the t - 1 before it, passes if the lower limit of each
    condition holds at ``ln(1/delta) + ln(1/u) + ln(1/w)`` nats, one-sided, with
    ``w = b!(t-1-b)!/t!``, and ``u = 1/n_candidates`` or ``1/(t(t+1))``
    (`radabound_fast.bounds.history_nats`; Result 30 of docs/explanation/theory.md).

    Nothing but the verdict leaves the gate: no value, interval, p-value or distance.  The same
    predictions against the same model are the same question, answered as before and free.
    How long an answer takes inside one process is not hidden.

    Assumed: independent rows that no candidate was trained on, and which nobody has looked at:
    whoever reads which rows a candidate errs on, or its score on them, voids the guarantee.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y_true = rng.integers(0, 2, 4000)
    >>> production = y_true ^ (rng.random(4000) < 0.20)
    >>> gate = Gate(y_true, baseline=production, delta=0.05)
    >>> gate.query(y_true ^ (rng.random(4000) < 0.19)).passed
    False
    >>> better = gate.query(y_true ^ (rng.random(4000) < 0.12))
    >>> better.passed, better.n_passes, better.compared_with
    (True, 1, 0)
    """

    tells: ClassVar[Literal["scores", "verdicts"]] = "verdicts"
    _instead: ClassVar[str] = (
        "send predictions to the process that owns it, or share it as a database (open)"
    )

    @sealed
    def __init__(
        self,
        judged: Any,
        *,
        baseline: Any = None,
        delta: float = 0.05,
        margin: float | None = 0.0,
        total_margin: float | None = None,
        at_least: float | None = None,
        at_most: float | None = None,
        slices: Mapping[str, Any] | None = None,
        slice_margin: float = 0.0,
        n_candidates: int | None = None,
        promote: bool = True,
        release: str | Rounded = "pass",
    ) -> None:
        super().__init__()
        self._holdout: Holdout | Losses = as_judged(judged)
        self._rows: CandidateRows | None = rows_of(self._holdout)
        if self._holdout.labels is not None and isinstance(slices, Mapping):
            for name, rows in slices.items():
                self._holdout.labels.check_rows(rows, name=f"slices[{name!r}]")
        first = None if baseline is None else self._read_baseline(baseline)
        self._rules = GateRules.of(
            self.n_samples,
            delta=delta,
            margin=margin,
            total_margin=total_margin,
            at_least=at_least,
            at_most=at_most,
            slices=slices,
            slice_margin=slice_margin,
            n_candidates=n_candidates,
            promote=promote,
            release=release,
            has_baseline=first is not None,
        )
        self.delta = self._rules.delta
        self._row_ids: list[str] | None = None
        self._described_metric = self._holdout.metric
        self._events: Events = EventList()
        self._record: EventRecord | None = None  # the database it was opened from
        if first is not None:
            self._events.turn(lambda turn: _append_baseline(turn, first))
        self._logs = hears_queries()
        self._holdout.note_guard(None)

    def _read_baseline(self, baseline: Any) -> NDArray[Any]:
        if isinstance(self._holdout, Holdout):
            self._holdout.truth.beside(baseline, None)  # raises where gains have no limits
        return self._readable().read(baseline, "baseline")

    def _readable(self) -> CandidateRows:
        if self._rows is None:
            raise TypeError("the gate needs the labels for this: open it with them")
        return self._rows

    # ---- the conditions, and where it stands -------------------------------------------------

    @property
    def parameters(self) -> dict[str, Any]:
        """The conditions as JSON values; of slices their names."""
        rules = self._rules.describe() | {"slices": list(self._rules.slices)}
        return {"n_samples": self.n_samples} | rules

    @property
    def metric(self) -> str:
        """What candidates are measured by, a name in `radabound_fast.metrics.METRICS`."""
        return self._described_metric

    @property
    def row_ids(self) -> list[str] | None:
        """The names of the rows that the database keeps, if it was made with them."""
        return self._row_ids

    @property
    def guarantee(self) -> str:
        """What is guaranteed in this configuration, when, and proved by what."""
        rules = self._rules
        other = "the last that passed" if rules.promote else "the baseline"
        worse = ""
        if rules.release == "three":
            worse = f', and no "worse" is: the gain is then at most {rules.margin:g}'
        claim = rules.claim(self.metric, other)
        return (
            f"With probability at least {certainty(self.delta)} no pass is ever wrong{worse}. "
            f"What a pass says of a candidate, in the population: {claim}. "
            "Finite-sample, valid for candidates that are chosen in any way by the verdicts before "
            "them; proved by the union bound over the histories of verdicts (Result 30). Assumed: "
            "independent test rows that no candidate was trained on, and whose labels, scores and "
            "errors nobody has seen who makes candidates."
        )

    def explain(self, verdict: Verdict) -> str:
        """Return a verdict in one sentence, with what a pass claims and how sure it is."""
        production = verdict.compared_with
        other = f"candidate {production}" if production else "the baseline"
        claim, name = self._rules.claim(self.metric, other), f"Candidate {verdict.number}"
        so_far = f"{counted(verdict.n_passes, 'pass', 'passes')} so far"
        sure = f"{so_far}; with probability {certainty(self.delta)} none of this gate is ever wrong"
        if verdict.passed:
            told = f"{name} passed: {claim} ({sure})."
        elif verdict.verdict == "worse":
            gain = f"its gain over {other} is at most {self._rules.margin:g}"
            told = f"{name} is worse: {gain} ({sure})."
        else:
            told = f"{name} did not pass: these rows do not prove that {claim} ({so_far})."
        return told if verdict.value is None else f"{told} Rounded: {verdict.value:g}."

    @property
    def verdicts(self) -> list[Verdict]:
        """All verdicts so far, one a candidate."""
        return self._history().verdicts

    @property
    def in_production(self) -> int | None:
        """The candidate that the next one is compared with, 0 for the baseline; None: with none."""
        return self._history().compared_with

    @property
    def n_answered(self) -> int:
        """Candidates so far; a question that is repeated is none."""
        return len(self._history().verdicts)

    @property
    def n_passes(self) -> int:
        """Candidates that have passed so far."""
        return self._history().n_passes

    @property
    def halted(self) -> bool:
        """Whether no new candidate gets a verdict: all declared had theirs, or it is closed."""
        return self.n_left() == 0

    def n_left(self) -> int | None:
        """Return how many candidates more get a verdict; None: there is no end."""
        return self._n_left(self._history())

    def _n_left(self, history: History) -> int | None:
        if history.is_closed:
            return 0
        declared = self._rules.n_candidates
        return None if declared is None else declared - len(history.verdicts)

    def outlook(self) -> Outlook:
        """Return in words what is left, for people."""
        history = self._history()
        left = self._n_left(history)
        if history.is_closed:
            return Outlook("nothing: the gate is closed, and its intervals were told", 0.0)
        passes = counted(history.n_passes, "pass", "passes")
        if left is None:
            return Outlook(f"no end of candidates, stricter with each pass; {passes} so far", None)
        share = left / (left + len(history.verdicts))
        return Outlook(f"{counted(left, 'candidate')} of those declared; {passes} so far", share)

    def needed(self, disagreement: float) -> dict[int, float]:
        """Return which observed gain passes now, and after some more passes.

        Parameters
        ----------
        disagreement : float
            The share of rows on which the losses of candidate and production differ, in [0, 1];
            losses are taken as 0 or 1.

        Returns
        -------
        dict of int to float
            The least gain that meets the margin now (0), and after 1, 2 and 5 more passes in a
            row; inf where not even a gain on all those rows does, or no candidate is left.

        Raises
        ------
        ValueError
            The gate has no margin, or the share is outside [0, 1].

        Notes
        -----
        It is made of the verdicts and the argument alone, and reads nothing of the test set.
        """
        rules, history = self._rules, self._history()
        if not rules.has_baseline or rules.margin is None:
            raise ValueError("needed is of gains: this gate has no baseline with a margin")
        found = {}
        for ahead in _AHEAD:
            passes, *others = history.counts()
            told = [passes + ahead, *others]
            if rules.n_candidates is not None and sum(told) >= rules.n_candidates:
                found[ahead] = math.inf
                continue
            nats = self._nats(told)
            found[ahead] = gain_needed(self.n_samples, disagreement, nats, margin=rules.margin)
        return found

    def _nats(self, counts: list[int]) -> float:
        """Return the nats of each one-sided limit of a candidate after these verdicts."""
        nats = math.log(1.0 / self.delta)
        nats += history_nats(counts, n_candidates=self._rules.n_candidates)
        if isinstance(self._rules.release, Rounded):
            nats += sum(counts) * self._rules.nats_a_release(self._readable())
        return nats

    def _history(self) -> History:
        self._check_owner()
        return self._events.read(self._history_of)

    def _history_of(self, turn: Turn) -> History:
        return History(turn.events, self._rules.verdicts, self._rules.promote)

    # ---- asking ------------------------------------------------------------------------------

    @sealed
    def query(self, y_pred: Any) -> Verdict:
        """Return the verdict on a candidate; it is counted and stored before it is returned.

        Parameters
        ----------
        y_pred : array_like, shape (n_samples,)
            Predictions in the order of the test set's rows, as its metric takes them; of a gate
            that was made on `Losses`, losses in [0, 1] (of a bool or integer dtype: 0 or 1).

        Returns
        -------
        Verdict

        Raises
        ------
        TypeError, ValueError
            They are no such array; nothing has changed then.
        HoldoutExhausted
            The declared number of candidates was used, or the gate was closed.
        """
        self._check_owner()
        return self._ask(self._readable().read(y_pred, "y_pred"))

    def _ask(self, stored: NDArray[Any]) -> Verdict:
        octets = to_bytes(stored)
        verdict = self._events.turn(lambda turn: self._answer(turn, stored, octets))
        if self._logs:
            note_answer(self.kind, verdict.number, None)
        return verdict

    @sealed
    def query_many(self, Y_pred: Any) -> list[Verdict]:
        """Return the verdicts on several candidates, one after another as by `query`.

        Parameters
        ----------
        Y_pred : sequence of array_like, shape (k, n_samples)

        Returns
        -------
        list of Verdict
            Of all candidates, or of those that came before the declared number was used.

        Raises
        ------
        TypeError, ValueError
            One of them is no such array; nothing has changed then.
        HoldoutExhausted
            Not even the first gets a verdict.
        """
        self._check_owner()
        rows, verdicts = self._readable(), []
        for stored in [rows.read(y_pred, "y_pred") for y_pred in Y_pred]:
            try:
                verdicts.append(self._ask(stored))
            except HoldoutExhausted:
                if not verdicts:
                    raise
                break
        return verdicts

    def _answer(self, turn: Turn, stored: NDArray[Any], octets: bytes) -> Verdict:
        rules, rows = self._rules, self._readable()
        history, digest = self._history_of(turn), _digest(stored)
        if history.is_closed:
            raise self._exhausted(history, "this gate is closed: its intervals were told")
        found = history.find(digest)
        if found is not None:
            verdict = history.verdicts[found - 1]
            if verdict.passed and history.takes_back(found):
                turn.append({"event": "restored", "number": found})
            return verdict
        if rules.n_candidates is not None and len(history.verdicts) >= rules.n_candidates:
            raise self._exhausted(
                history, f"all {rules.n_candidates} declared candidates had their verdict"
            )
        told, value = rules.decide(
            rows,
            rows.candidate(stored),
            self._comparators(turn, history, history.compared_with),
            self._nats(history.counts()),
        )
        event = {"event": "candidate", "digest": digest, "verdict": told}
        turn.append(event if value is None else event | {"value": value}, octets)
        return self._history_of(turn).verdicts[-1]

    def _exhausted(self, history: History, reason: str) -> HoldoutExhausted:
        return HoldoutExhausted(
            f"{reason}; go on with a gate on fresh rows", n_answered=len(history.verdicts)
        )

    def _comparators(self, turn: Turn, history: History, production: int | None) -> Comparators:
        if production is None:
            return Comparators(None, None)
        first = self._stored(turn, history, 0)
        return Comparators(
            first if production == 0 else self._stored(turn, history, production), first
        )

    def _stored(self, turn: Turn, history: History, number: int) -> Candidate:
        return self._readable().candidate(from_bytes(turn.content(history.place_of(number))))

    # ---- a pass taken back, and the end ------------------------------------------------------

    @sealed
    def revoke(self) -> int:
        """Take the last pass back: what was compared with before it is so again.

        Returns
        -------
        int
            The candidate that the next one is compared with; 0 for the baseline.

        Raises
        ------
        ValueError
            There is no pass to take back.

        Notes
        -----
        For a model that passed and was withdrawn for another reason.  The guarantee stays: what is
        compared with is still decided by the verdicts and by what is outside the test set.
        """
        self._check_owner()

        def work(turn: Turn) -> int:
            history = self._history_of(turn)
            if len(history.path) < 2 or history.is_closed:
                raise ValueError("there is no pass to revoke")
            turn.append({"event": "revoked"})
            return history.path[-2]

        return self._events.turn(work)

    @sealed
    def close_out(self) -> GateReport:
        """End the gate, and only then tell the values and intervals of all its candidates.

        Returns
        -------
        GateReport
            All intervals hold at once with probability 1 - delta, an event of their own beside that
            of the verdicts.

        Raises
        ------
        TypeError
            The gate was opened without the labels.

        Notes
        -----
        The losses are counted again from the predictions that the gate keeps.  Closed again it
        returns the same.
        """
        self._check_owner()
        self._readable()

        def work(turn: Turn) -> GateReport:
            history = self._history_of(turn)
            if not history.is_closed:
                turn.append({"event": "closed"})
            return GateReport(
                metric=self._holdout.metric,
                n_samples=self.n_samples,
                delta=self.delta,
                candidates=[self._judged(turn, history, one) for one in history.verdicts],
            )

        return self._events.turn(work)

    def _judged(self, turn: Turn, history: History, verdict: Verdict) -> JudgedCandidate:
        rules = self._rules
        nats = self._nats(history.counts(verdict.number)) + math.log(2 * rules.n_estimates)
        estimates = rules.estimates(
            self._readable(),
            self._stored(turn, history, verdict.number),
            self._comparators(turn, history, verdict.compared_with),
            nats,
        )
        return JudgedCandidate(verdict, nats, estimates)

    # ---- a database that processes share -----------------------------------------------------

    @classmethod
    @sealed
    def open(
        cls,
        path: Path,
        judged: Any = None,
        *,
        baseline: Any = None,
        delta: float = _AS_STORED,
        margin: float | None = _AS_STORED,
        total_margin: float | None = _AS_STORED,
        at_least: float | None = _AS_STORED,
        at_most: float | None = _AS_STORED,
        slices: Mapping[str, Any] | None = _AS_STORED,
        slice_margin: float = _AS_STORED,
        n_candidates: int | None = _AS_STORED,
        promote: bool = _AS_STORED,
        release: str | Rounded = _AS_STORED,
        row_ids: Sequence[str] | None = None,
        holdout_id: str | None = None,
        durability: Durability = "power",
    ) -> Self:
        """Open the gate that is kept in a database, made now if there is none.

        Any number of processes and threads on one machine may open it.  A verdict is stored before
        it is returned, whatever crashes.  The file holds the conditions, the candidates'
        predictions (or losses), the verdicts and a salted hash of the labels; it holds neither
        labels nor counts.  Slices are kept as they are: one that is made of the labels shows them
        to whoever reads the file.

        Parameters
        ----------
        path : path
            The database.
        judged : array_like, Holdout, int or Losses, optional
            As for the constructor.  The database opens only for the rows that it was made with.
            May be left out where it exists: then no verdict is given, and what was is shown.
        baseline : array_like, shape (n_samples,), optional
            As for the constructor; the database keeps it, and a later one must be the same.
        delta, margin, total_margin, at_least, at_most, slices, slice_margin, n_candidates, promote
            As for the constructor.  What is left out is as in the database, or as the constructor's
            default in a new one; what is given must be what it was made with.
        release : {"pass", "three"} or Rounded, optional
            The same.
        row_ids : sequence of str, length n_samples, optional
            Names of the rows, all different, which a new database keeps in this order: for results
            that come by name.
        holdout_id : str, optional
            A name for a test set without labels.
        durability : {"power", "process"}
            "power": a verdict waits for the disk.  "process": it does not, and a power cut may cost
            the last ones.

        Raises
        ------
        FileNotFoundError
            There is no file and nothing to make one of.
        ValueError
            It was made with other conditions or for another test set, or is no such database.
        OSError
            It cannot be read and written.
        """
        from radabound_fast.store import EventRecord, open_record

        name, whose = os.fsdecode(path), Judged(judged, holdout_id)
        given: dict[str, Any] = {
            "delta": delta,
            "margin": margin,
            "total_margin": total_margin,
            "at_least": at_least,
            "at_most": at_most,
            "slices": slices,
            "slice_margin": slice_margin,
            "n_candidates": n_candidates,
            "promote": promote,
            "release": release,
        }
        given = {one: value for one, value in given.items() if value is not _AS_STORED}
        new = None
        if judged is not None and not os.path.exists(path):
            made = cls(whose.apart(), baseline=baseline, **given)
            new = made._description(whose) | {"row_ids": made._checked_ids(row_ids)}
        record = open_record(EventRecord, path, durability, new)
        described = record.description
        if described.get("kind") != cls.kind:
            raise ValueError(f"{name} must hold a {cls.kind}, it holds a {described.get('kind')}")
        gate = cls._of_file(name, described, whose, given)
        if row_ids is not None and gate._checked_ids(row_ids) != gate.row_ids:
            raise ValueError(f"row_ids must be those with which {name} was made")
        gate._take_record(name, record, baseline)
        return gate

    def _description(self, whose: Judged) -> dict[str, Any]:
        """Return what never changes of a gate, as JSON values."""
        return {
            "kind": self.kind,
            "parameters": {"n_samples": self.n_samples} | self._rules.describe(),
            "holdout": whose.new_identity(),
            "metric": self._metric(),
        }

    def _checked_ids(self, row_ids: Sequence[str] | None) -> list[str] | None:
        if row_ids is None:
            return None
        listed = list(row_ids)
        if len(listed) != self.n_samples or len(set(listed)) != len(listed):
            raise ValueError(
                f"row_ids must be {self.n_samples} different names, got {len(listed)}, "
                f"{len(set(listed))} of them different"
            )
        if not all(isinstance(one, str) for one in listed):
            raise TypeError("row_ids must be strings")
        return listed

    def _metric(self) -> dict[str, Any] | None:
        """Return what candidates are measured by, as JSON values; None: mean losses."""
        if not isinstance(self._holdout, Holdout):
            return None
        measure, labels = self._holdout.truth.measure(bytes(16)), self._holdout.labels
        return {
            "name": measure.name,
            "options": dict(measure.options),
            "weighting": measure.weighting,
            "classes": labels.hash_of_classes(),
        }

    @classmethod
    def _of_file(
        cls, name: str, described: dict[str, Any], whose: Judged, given: dict[str, Any]
    ) -> Self:
        """Return a gate with the conditions of a file, once what is given was compared with it."""
        whose.check_made_for(name, described["holdout"])
        arguments = dict(described["parameters"])
        n_samples = arguments.pop("n_samples")
        whose.take_stored_metric(described["metric"])
        is_readable = whose.holdout is not None
        if whose.holdout is None:
            whose.holdout, is_readable = Losses(n_samples), described["metric"] is None
        rules = GateRules.from_description(arguments, n_samples)
        if whose.holdout.n_samples != n_samples:
            raise ValueError(
                f"judged must have {n_samples} rows, with which {name} was made, got "
                f"{whose.holdout.n_samples}"
            )
        wanted = rules.with_changes(n_samples, given).describe()
        for parameter, value in wanted.items():
            if not same_json(value, arguments[parameter]):
                shown = f", {arguments[parameter]!r}, got {value!r}" * (parameter != "slices")
                raise ValueError(f"{parameter} must be that with which {name} was made{shown}")
        gate = cls.__new__(cls)
        Owned.__init__(gate)
        gate._holdout, gate._rules, gate.delta = whose.holdout, rules, rules.delta
        gate._row_ids, metric = described["row_ids"], described["metric"]
        gate._described_metric = "mean loss" if metric is None else metric["name"]
        gate._rows = rows_of(whose.holdout) if is_readable else None
        if is_readable and not same_json(gate._metric(), described["metric"]):
            raise ValueError(
                f"metric, its options, classes, weights and groups must be those with which {name} "
                "was made"
            )
        return gate

    def _take_record(self, name: str, record: EventRecord, baseline: Any) -> None:
        """Have the events of a database from now on."""
        self._events = self._record = record
        self._logs = hears_queries()
        first = None if baseline is None else self._read_baseline(baseline)

        def begin(turn: Turn) -> None:
            if not self._rules.has_baseline:
                if first is not None:
                    raise ValueError(f"baseline must be left out: {name} was made without one")
            elif first is None:
                if not turn.events:
                    raise ValueError(f"baseline must be given: {name} was made with one")
            elif not turn.events:
                _append_baseline(turn, first)
            elif turn.events[0]["digest"] != _digest(first):
                raise ValueError(f"baseline must be that with which {name} was made")

        record.turn(begin)
        self._holdout.note_guard(record.path)

    @property
    def database(self) -> EventRecord | None:
        """The database that the gate was opened from, if it was."""
        return self._record

    def share_transactions(self) -> ServedDatabase:
        """Have the calls of an opened gate committed together from now on, with a log of them."""
        from radabound_fast.store.served import ServedDatabase

        if self._record is None:
            raise RuntimeError("this gate is in no database: share it as a database (open)")
        return ServedDatabase(self._record)

    def close(self) -> None:
        """Do nothing: the database of an opened gate is open for the length of a query."""

    def __repr__(self) -> str:
        history = self._history()
        return (
            f"Gate({self._holdout!r}, delta={self.delta!r}, n_answered={len(history.verdicts)}, "
            f"n_passes={history.n_passes})"
        )


def _append_baseline(turn: Turn, stored: NDArray[Any]) -> None:
    turn.append({"event": "baseline", "digest": _digest(stored)}, to_bytes(stored))


def _digest(stored: NDArray[Any]) -> str:
    """Return a hash by which the same predictions are known again."""
    little = np.ascontiguousarray(stored, stored.dtype.newbyteorder("<"))
    head = f"{little.dtype.str} {little.shape}".encode()
    return hashlib.blake2b(head + little.tobytes(), digest_size=16).hexdigest()
