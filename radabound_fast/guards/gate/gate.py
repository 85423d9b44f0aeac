"""A release gate on a fixed test set: verdicts on candidates that are made in their light."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from numpy.typing import NDArray

from radabound_fast._checks import certainty, counted
from radabound_fast._kernels.support import sealed
from radabound_fast._ownership import Owned
from radabound_fast.bounds import gain_needed, history_nats
from radabound_fast.guards.answers import HoldoutExhausted
from radabound_fast.guards.base import Guard, Outlook
from radabound_fast.guards.candidates import (
    Candidate,
    CandidateRows,
    fingerprint_of,
    from_bytes,
    rows_of,
    to_bytes,
)
from radabound_fast.guards.gate.rules import CONDITIONS, GateRules, Stored
from radabound_fast.guards.gate.verdicts import GateReport, History, JudgedCandidate, Verdict
from radabound_fast.guards.log import hears_queries, note_answer
from radabound_fast.guards.opening import AS_STORED, Opening, check_same
from radabound_fast.holdout import Holdout, Losses, as_judged
from radabound_fast.rows.rounded import Rounded
from radabound_fast.store.events import EventList, Events, Turn

if TYPE_CHECKING:
    from radabound_fast.store import Description, Durability, EventRecord, Path


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
    row_ids : sequence of str, length n_samples, optional
        Names of the rows, all different, which a database keeps in this order: for results that
        come by name.

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
        row_ids: Sequence[str] | None = None,
    ) -> None:
        conditions = {name: value for name, value in locals().items() if name in CONDITIONS}
        holdout = as_judged(judged)
        if holdout.labels is not None and isinstance(slices, Mapping):
            for name, rows in slices.items():
                holdout.labels.check_rows(rows, name=f"slices[{name!r}]")
        rules = GateRules.of(holdout.n_samples, has_baseline=baseline is not None, **conditions)
        self._set_up(holdout, rules, row_ids, os.urandom(16))
        if baseline is not None:
            self._begin(baseline)
        holdout.note_guard(None)

    def _set_up(
        self,
        holdout: Holdout | Losses,
        rules: GateRules,
        row_ids: Sequence[str] | None,
        secret: bytes,
    ) -> None:
        """All of a gate but its baseline."""
        Owned.__init__(self)
        self._holdout, self._rules, self._secret = holdout, rules, secret
        self.delta = rules.delta
        self.row_ids = None if row_ids is None else _different_names(row_ids, self.n_samples)
        self._rows: CandidateRows | None = rows_of(holdout)
        self._measured: dict[str, Any] | None = None  # None: mean losses
        if isinstance(holdout, Holdout):
            described = holdout.truth.measure(bytes(16)).describe()
            self._measured = {name: described[name] for name in ("name", "options", "weighting")}
            self._measured["classes"] = holdout.labels.hash_of_classes()
        self._events: Events = EventList()
        self._logs = hears_queries()

    def _begin(self, baseline: Any) -> None:
        """Store the baseline's event, before there are others."""
        if isinstance(self._holdout, Holdout):
            self._holdout.truth.beside(baseline, None)  # raises where gains have no limits
        stored = self._readable().read(baseline, "baseline")
        event = {"event": "baseline", "fingerprint": fingerprint_of(stored, self._secret)}
        self._events.turn(lambda turn: turn.append(event, to_bytes(stored)))

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
        return "mean loss" if self._measured is None else str(self._measured["name"])

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
        """Return a `verdict` in one sentence, with what a pass claims and how sure it is."""
        production = verdict.compared_with
        other = f"candidate {production}" if production else "the baseline"
        claim, name = self._rules.claim(self.metric, other), f"Candidate {verdict.number}"
        so_far = f"{counted(verdict.n_passes, 'pass', 'passes')} so far"
        sure = f"{so_far}; with probability {certainty(self.delta)} none of this gate is ever wrong"
        if verdict.passed:
            text = f"{name} passed: {claim} ({sure})."
        elif verdict.verdict == "worse":
            gain = f"its gain over {other} is at most {self._rules.margin:g}"
            text = f"{name} is worse: {gain} ({sure})."
        else:
            text = f"{name} did not pass: these rows do not prove that {claim} ({so_far})."
        return text if verdict.value is None else f"{text} Rounded: {verdict.value:g}."

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

    def n_left(self) -> int | None:
        """Return how many candidates more get a verdict; None: any number until `close_out`."""
        history, declared = self._history(), self._rules.n_candidates
        if history.is_closed:
            return 0
        return None if declared is None else declared - len(history.verdicts)

    def outlook(self) -> Outlook:
        """Return in words what is left, for people."""
        history, declared = self._history(), self._rules.n_candidates
        if history.is_closed:
            return Outlook("nothing: the gate is closed, and its intervals were told", 0.0)
        if declared is None:
            return Outlook("candidates without limit; each pass makes the next one harder", None)
        left = declared - len(history.verdicts)
        return Outlook(f"{left:,} of {counted(declared, 'candidate')}", left / declared)

    def what_now(self) -> str:
        """Return what to do after the halt, for people; "" before it."""
        if not self.halted:
            return ""
        return (
            "No further candidate gets a verdict; those that were given hold as before. For more "
            "candidates take new test rows, and declare their number beforehand."
        )

    def needed(self, disagreement: float) -> dict[int, float]:
        """Return the least gain that meets the margin now (0), and after 1, 2 and 5 more passes.

        A dict of int to float, which is inf where not even a gain on all rows that differ does, or
        no candidate is left.  It is computed from the verdicts and the argument alone, and reads
        nothing of the test set.

        Parameters
        ----------
        disagreement : float
            The share of rows on which the losses of candidate and production differ, in [0, 1];
            losses are taken as 0 or 1.

        Raises
        ------
        ValueError
            The gate has no margin, or the share is outside [0, 1].
        """
        rules, history = self._rules, self._history()
        if not rules.has_baseline or rules.margin is None:
            raise ValueError("needed is of gains: this gate has no baseline with a margin")
        gains, (passes, *others) = {}, history.counts()
        for ahead in (0, 1, 2, 5):
            counts = [passes + ahead, *others]
            if rules.n_candidates is not None and sum(counts) >= rules.n_candidates:
                gains[ahead] = math.inf
                continue
            nats = self._nats(counts)
            gains[ahead] = gain_needed(self.n_samples, disagreement, nats, margin=rules.margin)
        return gains

    def _nats(self, counts: list[int]) -> float:
        """The nats of each one-sided limit of a candidate after these verdicts."""
        n_candidates = self._rules.n_candidates
        nats = math.log(1.0 / self.delta) + history_nats(counts, n_candidates=n_candidates)
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
        """Return the `Verdict` on a candidate; it is counted and stored before it is returned.

        Parameters
        ----------
        y_pred : array_like, shape (n_samples,)
            Predictions in the order of the test set's rows, as its metric takes them; of a gate
            that was made on `Losses`, losses in [0, 1] (of a bool or integer dtype: 0 or 1).

        Raises
        ------
        TypeError, ValueError
            They are no such array; nothing has changed then.
        HoldoutExhausted
            The declared number of candidates was used, or the gate was closed.
        """
        return self._verdicts([y_pred])[0]

    @sealed
    def query_many(self, Y_pred: Any) -> list[Verdict]:
        """Return the verdicts on several candidates, one after another as by `query`.

        `Y_pred` has shape (k, n_samples).  Candidates after the declared number get no verdict;
        HoldoutExhausted if not even the first gets one.  Where one is no such array nothing has
        changed.
        """
        return self._verdicts(Y_pred)

    def _verdicts(self, Y_pred: Any) -> list[Verdict]:
        self._check_owner()
        rows, verdicts = self._readable(), []
        for stored in [rows.read(y_pred, "y_pred") for y_pred in Y_pred]:
            try:
                verdicts.append(self._events.turn(partial(self._answer, stored, to_bytes(stored))))
            except HoldoutExhausted:
                if not verdicts:
                    raise
                break
            if self._logs:
                note_answer(self.kind, verdicts[-1].number, None)
        return verdicts

    def _answer(self, stored: NDArray[Any], octets: bytes, turn: Turn) -> Verdict:
        rules, rows = self._rules, self._readable()
        history, fingerprint = self._history_of(turn), fingerprint_of(stored, self._secret)
        if history.is_closed:
            raise self._exhausted(history, "this gate is closed: its intervals were told")
        earlier = history.find(fingerprint)
        if earlier is not None:
            verdict = history.verdicts[earlier - 1]
            if verdict.passed and history.takes_back(earlier):
                turn.append({"event": "restored", "number": earlier})
            return verdict
        if rules.n_candidates is not None and len(history.verdicts) >= rules.n_candidates:
            raise self._exhausted(
                history, f"all {rules.n_candidates} declared candidates had their verdict"
            )
        other, others = history.compared_with, partial(self._stored, turn, history)
        nats = self._nats(history.counts())
        estimates = rules.estimates(rows, rows.candidate(stored), other, others, nats)
        kind, value = rules.decide(estimates)
        event = {"event": "candidate", "fingerprint": fingerprint, "verdict": kind}
        turn.append(event if value is None else event | {"value": value}, octets)
        return self._history_of(turn).verdicts[-1]

    def _exhausted(self, history: History, reason: str) -> HoldoutExhausted:
        return HoldoutExhausted(
            f"{reason}; go on with a gate on fresh rows", n_answered=len(history.verdicts)
        )

    def _stored(self, turn: Turn, history: History, number: int) -> Candidate:
        return self._readable().candidate(from_bytes(turn.content(history.places[number])))

    # ---- a pass taken back, and the end ------------------------------------------------------

    @sealed
    def revoke(self) -> int:
        """Take the last pass back, of a model that was withdrawn for another reason.

        Return the candidate that the next one is compared with, 0 for the baseline; ValueError if
        there is no pass to take back.  The guarantee stays: what is compared with is still decided
        by the verdicts and by what is outside the test set.
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
        """End the gate, and only then release the values and intervals of all its candidates.

        All intervals of the `GateReport` hold at once with probability 1 - delta, an event of their
        own beside that of the verdicts.  The losses are counted again from the predictions that the
        gate stores.  Closed again it returns the same.  TypeError if it was opened without labels.
        """
        self._check_owner()
        self._readable()

        def work(turn: Turn) -> GateReport:
            history = self._history_of(turn)
            if not history.is_closed:
                turn.append({"event": "closed"})
            # many in a row are compared with the same two
            stored = lru_cache(maxsize=2)(partial(self._stored, turn, history))
            return GateReport(
                metric=self._holdout.metric,
                n_samples=self.n_samples,
                delta=self.delta,
                candidates=[self._judged(stored, history, one) for one in history.verdicts],
            )

        return self._events.turn(work)

    def _judged(self, stored: Stored, history: History, verdict: Verdict) -> JudgedCandidate:
        nats = self._nats(history.counts(verdict.number)) + math.log(2 * self._rules.n_estimates)
        candidate, other = stored(verdict.number), verdict.compared_with
        estimates = self._rules.estimates(self._readable(), candidate, other, stored, nats)
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
        delta: float = AS_STORED,
        margin: float | None = AS_STORED,
        total_margin: float | None = AS_STORED,
        at_least: float | None = AS_STORED,
        at_most: float | None = AS_STORED,
        slices: Mapping[str, Any] | None = AS_STORED,
        slice_margin: float = AS_STORED,
        n_candidates: int | None = AS_STORED,
        promote: bool = AS_STORED,
        release: str | Rounded = AS_STORED,
        row_ids: Sequence[str] | None = AS_STORED,
        holdout_id: str | None = None,
        durability: Durability = "power",
    ) -> Self:
        """Open the gate that is stored in a database, made now if there is none.

        Any number of processes and threads on one machine may open it.  A verdict is stored before
        it is returned, whatever crashes.  Errors, and `holdout_id`, are those of `RadaBound.open`.

        Other parameters are those of the constructor.  What is left out is as in the database, or
        as the constructor's default in a new one; what is passed must be what it was made with.

        Parameters
        ----------
        path : path
            The database.  It holds the conditions, the candidates' predictions (or losses), the
            verdicts and a salted hash of the labels, but neither labels nor counts.  Slices are
            stored as they are: one that is made of the labels shows them to whoever reads the file.
        judged : array_like, Holdout, int or Losses, optional
            The database opens only for the rows that it was made with.  May be left out where it
            exists: then no verdict is given, and what was is shown.
        durability : {"power", "process"}
            "power": a verdict waits for the disk.  "process": it does not, and a power cut may cost
            the last ones.
        """
        return cls._open(locals())

    def _description(self) -> Description:
        return {
            "kind": self.kind,
            "parameters": {"n_samples": self.n_samples} | self._rules.describe(),
            "secret": self._secret.hex(),
            "metric": self._measured,
            "row_ids": self.row_ids,
        }

    @classmethod
    def _of_file(cls, stored: Description, opening: Opening) -> Self:
        parameters, changes = dict(stored["parameters"]), dict(opening.arguments)
        n_samples, baseline = parameters.pop("n_samples"), changes.pop("baseline")
        holdout = opening.as_stored(stored["metric"], n_samples)
        row_ids = changes.pop("row_ids", stored["row_ids"])
        rules = GateRules.from_description(parameters, n_samples)
        if baseline is not None and not rules.has_baseline:
            raise ValueError(f"baseline must be left out: {opening.name} was made without one")
        gate = cls.__new__(cls)
        rules = GateRules.of(n_samples, **vars(rules) | changes)
        gate._set_up(holdout, rules, row_ids, bytes.fromhex(stored["secret"]))
        if opening.holdout is None and stored["metric"] is not None:  # to be shown, without labels
            gate._rows, gate._measured = None, stored["metric"]
        check_same(opening.name, gate._description(), stored)
        if baseline is not None:
            gate._begin(baseline)
        return gate

    def _keep_in(self, record: EventRecord) -> None:
        # the baseline's event, if it is known here
        first = self._events.read(lambda turn: [(event, turn.content(0)) for event in turn.events])

        def begin(turn: Turn) -> None:
            if turn.events and first and turn.events[0] != first[0][0]:
                raise ValueError(f"baseline must be that with which {record.path} was made")
            if not turn.events and first:
                turn.append(*first[0])
            elif not turn.events and self._rules.has_baseline:
                raise ValueError(f"baseline must be given: {record.path} was made with one")

        record.turn(begin)
        self._record = self._events = record

    def __repr__(self) -> str:
        history = self._history()
        return (
            f"Gate({self._holdout!r}, delta={self.delta!r}, n_answered={len(history.verdicts)}, "
            f"n_passes={history.n_passes})"
        )


def _different_names(row_ids: Sequence[str], n_samples: int) -> list[str]:
    listed = list(row_ids)
    if len(listed) != n_samples or len(set(listed)) != len(listed):
        raise ValueError(
            f"row_ids must be {n_samples} different names, got {len(listed)}, "
            f"{len(set(listed))} of them different"
        )
    if not all(isinstance(one, str) for one in listed):
        raise TypeError("row_ids must be strings")
    return listed
