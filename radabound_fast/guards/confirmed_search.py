"""A search on some of the rows, and finalists that are confirmed on the others."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from itertools import combinations
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Self, overload

import numpy as np
from numpy.typing import NDArray

from radabound_fast._checks import (
    certainty,
    check_bool,
    check_choice,
    check_count,
    check_delta,
    check_real,
    check_seed,
    counted,
    read_as,
)
from radabound_fast._kernels.rows import pack_rows
from radabound_fast._kernels.support import n_forks, sealed
from radabound_fast.bounds import confirmation_nats
from radabound_fast.guards.base import Guard, Outlook
from radabound_fast.guards.confirmed_answers import ConfirmedAnswer, ConfirmedAnswers, Finalist
from radabound_fast.guards.exhausted import HoldoutExhausted
from radabound_fast.guards.gate_rows import (
    Candidate,
    CandidateRows,
    LossRows,
    PredictionRows,
    from_bytes,
    gain,
    to_bytes,
)
from radabound_fast.guards.log import hears_queries, note_answers
from radabound_fast.guards.opening import Judged, same_json
from radabound_fast.guards.release import Rounded
from radabound_fast.guards.search_answers import Comparison
from radabound_fast.guards.search_rows import LossRows as SearchLosses
from radabound_fast.holdout import Holdout, Losses, as_judged
from radabound_fast.metrics import MEANS, METRICS, MeanLoss, Measure, fingerprints_of
from radabound_fast.rows.parts import Part, draw_part
from radabound_fast.store.events import EventList

if TYPE_CHECKING:
    from radabound_fast.store import Durability, EventRecord, Path
    from radabound_fast.store.events import Events, Turn
    from radabound_fast.store.served import ServedDatabase

# real-valued metrics are released before the last batch on a grid of so many steps
_GRID_STEPS = 10_000


class _Question(NamedTuple):
    """What was asked for about a finalist."""

    release: Literal["interval", "pass"] | Rounded
    at_least: float | None
    at_most: float | None

    def stored(self) -> list[Any]:
        """Return the question as JSON values."""
        step = self.release.step if isinstance(self.release, Rounded) else self.release
        return [step, self.at_least, self.at_most]

    def passes(self, low: float, high: float) -> bool | None:
        """Whether the whole interval clears the bar; None: there is none."""
        if self.release != "pass":
            return None
        return (self.at_least is None or low >= self.at_least) and (
            self.at_most is None or high <= self.at_most
        )

    def answered_by(self, finalist: Finalist, stored: list[Any], ended: bool) -> Finalist | None:
        """Return what an earlier release answers; None: it is a new question."""
        _, low, high = finalist.value
        if stored == self.stored():
            return finalist
        if self.release != "pass":
            return finalist if ended or stored[0] == "interval" else None
        if low is None or high is None or not (ended or stored[0] == "interval"):
            return None
        return finalist._replace(passed=self.passes(low, high))


class _Model(NamedTuple):
    """A finalist as it was passed to `confirm`."""

    name: str
    stored: NDArray[Any]
    fingerprint: int
    search_value: float | None


class _History:
    """What the events say: who was confirmed, what that costs later batches, and whether it ended.

    Attributes
    ----------
    finalists : list of Finalist
    n_batches : int
    log_outcomes : float
        ``ln M``, over all batches.
    ended : bool
    """

    def __init__(self, events: list[dict[str, Any]]) -> None:
        self.ended = any("end" in event for event in events)
        self.events = [event for event in events if "end" not in event]
        self.finalists = [_finalist(event["finalist"]) for event in self.events]
        self.n_batches = self.finalists[-1].batch if self.finalists else 0
        self.log_outcomes = sum(event["log_outcomes"] for event in self.events)
        if self.ended:
            self.finalists = [_finalist(told) for told in events[-1]["end"]]

    def find(self, model: _Model, question: _Question) -> Finalist | None:
        """Return what was released of this very model that answers the question; None: nothing."""
        for event, finalist in zip(self.events, self.finalists, strict=True):
            if event["fingerprint"] == model.fingerprint:
                found = question.answered_by(finalist, event["question"], self.ended)
                if found is not None:
                    return found._replace(name=model.name or found.name)
            elif finalist.name == model.name:
                raise ValueError(
                    f"finalists must have a name each, and {model.name!r} was confirmed with other "
                    "predictions: give this model another name"
                )
        return None


def _finalist(told: dict[str, Any]) -> Finalist:
    """The finalist whose fields JSON holds."""
    gain = told["gain"]
    return Finalist(
        **told
        | {
            "value": tuple(told["value"]),
            "gain": None if gain is None else tuple(gain),
            "over": {name: tuple(limits) for name, limits in told["over"].items()},
        }
    )


class ConfirmedSearch(Guard):
    """Lets any search use some of the rows freely, and confirms its finalists on the others.

    The search rows may be used for anything: scored as often as one likes, trained on, looked at.
    Nothing is declared and nothing is counted.  The confirmation rows are kept for the end: of
    every finalist they give an interval, and all hold at once with probability 1 - delta.

    Parameters
    ----------
    judged : array_like, Holdout, int or Losses
        What is judged: labels, or a `Holdout` with any metric; then finalists are predictions.  Or
        a number of rows; then they are losses.
    delta : float
        The probability that any interval misses, in (0, 1).
    confirm_share : float, default 0.5
        Which share of the rows is kept for the end, in (0, 1].  Groups are kept whole.  1: all
        rows, for a search that scored by other means, such as cross-validation on training rows.
    n_batches : int or None, default 1
        How many times finalists will be confirmed: each batch has delta / n_batches, and pays for
        what earlier ones were told.  None: any number; batch t has delta / (t (t + 1)).
    seed : int, optional
        Draws the confirmation rows; by default one is drawn and kept.
    rows : array_like of bool, shape (n_samples,), optional
        The confirmation rows, chosen elsewhere by a rule that read neither labels nor predictions:
        the last weeks, another site.  In place of `confirm_share` and `seed`.
    stratify : bool, default False
        Whether both parts have the same share of every class.  The population that intervals speak
        of then has the class shares of the confirmation rows.
    baseline : array_like, shape (n_samples,), optional
        For metrics that are means: predictions of a model that was fixed before the confirmation
        rows were seen, or chosen on the search rows.  Every finalist then has a gain over it.
    pairs : bool, default False
        For metrics that are means: whether the finalists of a batch are compared with each other
        (`compare`).  Values, gains and pairs, as many as there are, share delta equally.

    Raises
    ------
    TypeError, ValueError
        An argument is of the wrong type or out of its range; the message says which and why.

    Notes
    -----
    The limits of batch t are taken at ``ln(2/delta) + ln(1/u(t)) + ln s_t`` nats, s_t its
    finalists and u(t) its share of delta, and at ``ln M_i`` more for every earlier batch i, which
    was told one of M_i possible outcomes (Theorem J of docs/explanation/theory.md).  They are those
    of the metric for one model fixed in advance, on the confirmation rows.

    A model may be trained again on the search rows before it is confirmed.  Trained again on the
    confirmation rows it is another model, of which nothing is said.

    A copy (copy, pickle, fork) of a search in memory scores, and confirms nothing; one that was
    opened from a database (`open`) is shared by all who open it.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y_true = rng.integers(0, 2, 4000)
    >>> search = ConfirmedSearch(y_true, delta=0.1, seed=1)
    >>> models = [y_true ^ (rng.random(4000) < error) for error in rng.uniform(0.1, 0.3, 200)]
    >>> best = min(models, key=search.score)  # as often as you like
    >>> answer = search.confirm(best)
    >>> round(answer.value, 4), round(answer.low, 4), round(answer.high, 4)
    (0.109, 0.0977, 0.1211)
    """

    needs: ClassVar[Literal["key", "guess"] | None] = None

    @sealed
    def __init__(
        self,
        judged: Any,
        *,
        delta: float,
        confirm_share: float = 0.5,
        n_batches: int | None = 1,
        seed: int | None = None,
        rows: Any = None,
        stratify: bool = False,
        baseline: Any = None,
        pairs: bool = False,
    ) -> None:
        self._holdout = as_judged(judged)
        self.delta = check_delta(delta)
        self.confirm_share = _check_share(confirm_share)
        self.n_batches = None if n_batches is None else check_count(n_batches=n_batches)
        self.stratify = check_bool(stratify=stratify)
        self.pairs = check_bool(pairs=pairs)
        self._seed = None if rows is not None else check_seed(seed)
        if rows is not None and (seed is not None or confirm_share != 0.5 or stratify):
            raise ValueError("confirm_share, seed and stratify must be left out beside rows")
        self._check_means(baseline)
        chosen = self._draw() if rows is None else self._check_rows(rows)
        self._confirmation = Part(chosen, "confirmation")
        self._search = Part(~chosen, "search")
        self._check_classes()
        self._search_part = self._holdout.part(~chosen) if self._search.n_rows else None
        self._confirmation_part = self._holdout.part(chosen)
        self._rows = _rows_of(self._confirmation_part)
        self._measure: MeanLoss | Measure = self._rows.measure
        self._lacks_labels = False  # opened without them, for what was released
        self._has_baseline = baseline is not None
        if self._has_baseline:
            self._stored_baseline = self._read(baseline, "baseline")
            self._baseline = self._rows.candidate(self._stored_baseline)
        self._secret = os.urandom(16)
        self._events: Events | None = EventList()
        self._record: EventRecord | None = None  # the database it was opened from
        self._born = n_forks()
        self._logs = hears_queries()
        self._holdout.note_guard(None)

    # ---- the two parts -----------------------------------------------------------------------

    def _draw(self) -> NDArray[np.bool_]:
        assert self._seed is not None
        weighting, strata = self._holdout.weighting, None
        grouped = weighting is not None and not weighting.is_of_rows
        if self.stratify:
            strata = self._strata()
        return draw_part(
            self.n_samples,
            self.confirm_share,
            self._seed,
            groups=weighting.codes if weighting is not None and grouped else None,
            strata=strata,
        )

    def _strata(self) -> NDArray[Any]:
        """The classes of the rows, where stratified rows have limits that are proved."""
        holdout = self._holdout
        if not isinstance(holdout, Holdout) or METRICS[holdout.metric].needs == "numbers":
            raise ValueError("stratify must be False where there are no classes")
        if holdout.metric in ("precision", "f1") or holdout.weighting is not None:
            what = "weights or groups" if holdout.weighting is not None else repr(holdout.metric)
            raise ValueError(f"stratify must be False with {what}: no limits are proved for that")
        return holdout.labels.codes

    def _check_rows(self, rows: Any) -> NDArray[np.bool_]:
        chosen = np.asarray(rows)
        if chosen.dtype != np.bool_ or chosen.shape != (self.n_samples,):
            raise ValueError(
                f"rows must be a boolean array of shape ({self.n_samples},), True for rows that "
                f"are kept for the end, got dtype {chosen.dtype}, shape {chosen.shape}"
            )
        if not chosen.any():
            raise ValueError("rows must keep at least one row for the end, got none")
        weighting = self._holdout.weighting
        if weighting is not None:
            torn = np.intersect1d(weighting.codes[chosen], weighting.codes[~chosen])
            if len(torn):
                at = int(np.flatnonzero(weighting.codes == torn[0])[0])
                raise ValueError(
                    f"rows must keep groups whole, got {counted(len(torn), 'group')} with rows in "
                    f"both parts, one of them that of row {at}"
                )
        return chosen.copy()

    def _check_means(self, baseline: Any) -> None:
        """ValueError where gains are asked for that have no limits."""
        holdout = self._holdout
        if holdout.labels is None and holdout.weighting is not None:
            raise ValueError(
                "sample_weight and groups must be left out where losses are judged: give labels"
            )
        for name, is_asked in (("baseline", baseline is not None), ("pairs", self.pairs)):
            if not is_asked:
                continue
            if not isinstance(holdout, Holdout) or holdout.metric not in MEANS:
                raise ValueError(
                    f"{name} must be left out with {holdout.metric!r}: gains are of means of "
                    f"labelled rows, {', '.join(MEANS)}"
                )
            if holdout.weighting is not None:
                raise ValueError(f"{name} must be left out beside sample_weight or groups")
            if self.stratify:
                raise ValueError(
                    f"{name} must be left out with stratify=True: limits of gains are proved for "
                    "independent rows alone"
                )

    def _check_classes(self) -> None:
        """ValueError where a part lacks a class without which the metric says something else."""
        holdout = self._holdout
        if not isinstance(holdout, Holdout):
            return
        row = METRICS[holdout.metric]
        if row.needs != "both classes" and row.name != "balanced_accuracy":
            return
        codes = holdout.labels.codes
        present = np.unique(codes)
        for part, name in ((self._confirmation, "confirmation"), (self._search, "search")):
            n_classes = len(np.unique(codes[part.rows]))
            if part.n_rows and n_classes < len(present):
                raise ValueError(
                    f"the {name} rows must hold all {len(present)} classes with metric="
                    f"{row.name!r}, so at least {len(present)} rows, got {part.n_rows} of "
                    f"{counted(n_classes, 'class', 'classes')}: pass stratify=True, another share, "
                    "or other rows"
                )

    @property
    def search_rows(self) -> NDArray[np.bool_]:
        """Whether each row may be used by the search, for anything; shape (n_samples,)."""
        return self._search.rows.copy()

    @property
    def confirmation_rows(self) -> NDArray[np.bool_]:
        """Whether each row is kept for the end; shape (n_samples,)."""
        return self._confirmation.rows.copy()

    def repeated_rows(self, X: Any) -> NDArray[np.bool_]:
        """Find confirmation rows whose features are those of a search row, and warn of them.

        Rows that come twice are no independent draws, and a model that was fitted to the search
        rows knows them: pass such rows as one group (`Holdout`).

        Parameters
        ----------
        X : array_like, shape (n_samples, n_features)
            The features of all rows.

        Returns
        -------
        ndarray of bool, shape (n_samples,)
        """
        features = np.asarray(X)
        if features.ndim != 2 or len(features) != self.n_samples:
            raise ValueError(
                f"X must have shape ({self.n_samples}, n_features), got {features.shape}"
            )
        seen = {tuple(row) for row in features[self._search.rows].tolist()}
        repeated = self.confirmation_rows
        repeated[repeated] = [tuple(row) in seen for row in features[repeated].tolist()]
        if repeated.any():
            import warnings

            warnings.warn(
                f"{counted(int(repeated.sum()), 'confirmation row')} of {self._confirmation.n_rows:,} "
                "have the features of a search row: pass equal rows as one group "
                "(Holdout(..., groups=...))",
                stacklevel=2,
            )
        return repeated

    # ---- the search --------------------------------------------------------------------------

    @sealed
    def score(self, y_pred: Any) -> float:
        """Return the metric on the search rows: of anything, as often as you like, no promise.

        Parameters
        ----------
        y_pred : array_like, shape (n_samples,) or (n_search_rows,)
            Predictions, or losses, as the metric takes them, for all rows or the search rows.
        """
        return float(self._score(y_pred, 1)[0])

    @sealed
    def score_many(self, Y_pred: Any) -> NDArray[np.float64]:
        """Return the metric of several models on the search rows, shape (k,).

        Parameters
        ----------
        Y_pred : array_like, shape (k, n_samples) or (k, n_search_rows)
        """
        return self._score(Y_pred, 2)

    def _score(self, y_pred: Any, ndim: int) -> NDArray[np.float64]:
        self._check_labels()
        part = self._search_part
        if part is None:
            raise ValueError("score needs search rows, and all rows are kept for the end")
        taken = self._search.take(y_pred, ndim, "y_pred")
        if isinstance(part, Holdout):
            truth = part.truth
            return np.asarray(truth.values(truth.measure(bytes(16)), truth.read(taken, ndim)))
        losses = SearchLosses.read(taken, part.n_samples, ndim, bytes(16))
        totals, shifts = losses.columns
        return np.asarray(totals / (part.n_samples << shifts))

    # ---- the end -----------------------------------------------------------------------------

    @overload
    def confirm(
        self,
        finalists: Mapping[str, Any],
        *,
        release: Literal["interval", "pass"] | Rounded = ...,
        at_least: float | None = ...,
        at_most: float | None = ...,
    ) -> ConfirmedAnswers: ...
    @overload
    def confirm(
        self,
        finalists: Any,
        *,
        release: Literal["interval", "pass"] | Rounded = ...,
        at_least: float | None = ...,
        at_most: float | None = ...,
    ) -> ConfirmedAnswer: ...
    @sealed
    def confirm(
        self,
        finalists: Any,
        *,
        release: Literal["interval", "pass"] | Rounded = "interval",
        at_least: float | None = None,
        at_most: float | None = None,
    ) -> ConfirmedAnswers | ConfirmedAnswer:
        """Judge a batch of finalists on the confirmation rows.

        Parameters
        ----------
        finalists : mapping of str to array_like, or array_like
            Predictions, or losses, for all rows or the confirmation rows, by the finalist's name;
            or those of a single finalist, which is called by its number.
        release : {"interval", "pass"} or Rounded, default "interval"
            How much leaves, where another batch may follow and pays for it: values and intervals,
            real-valued metrics on a grid of 1e-4 of their range; one bit a finalist; or values on a
            coarser grid.  Limits that are no function of the value, gains and pairs then wait for
            the end.  In the last batch all is released.
        at_least, at_most : float, optional
            The bar of ``release="pass"``: a finalist passes if its whole interval is there.

        Returns
        -------
        ConfirmedAnswers, or ConfirmedAnswer of a single finalist

        Raises
        ------
        HoldoutExhausted
            All batches that were declared were confirmed.
        TypeError, ValueError
            No finalists, or they are not such arrays, or a name stands for two models; nothing has
            changed then.
        RuntimeError
            This is a copy of a search in memory.

        Notes
        -----
        The same predictions again are the stored answer, and cost nothing.
        """
        question = _check_question(release, at_least, at_most)
        events = self._own_events()
        self._check_labels()
        is_one = not isinstance(finalists, Mapping)
        named = {"": finalists} if is_one else finalists
        if not named:
            raise ValueError("finalists must hold at least one model, got none")
        for name in () if is_one else named:
            if not isinstance(name, str) or not name:
                raise TypeError(f"finalists must have names that are strings, got {name!r:.100}")
        models = [self._model(name, y_pred) for name, y_pred in named.items()]
        found, history = events.turn(lambda turn: self._take_turn(turn, models, question))
        if self._logs:
            note_answers(self.kind, len(found), len(history.finalists))
        answers = self._answers(found, history)
        return answers[0] if is_one else answers

    def _model(self, name: str, y_pred: Any) -> _Model:
        try:
            stored = self._read(y_pred, "finalists")
        except (TypeError, ValueError) as error:
            if name:
                error.add_note(f"the finalist is {name!r}")
            raise
        return _Model(name, stored, self._fingerprint(stored), self._search_value(y_pred))

    def _fingerprint(self, array: NDArray[Any]) -> int:
        """A keyed hash, which tells arrays apart."""
        return int(fingerprints_of(array[np.newaxis], self._secret)[0])

    def _search_value(self, y_pred: Any) -> float | None:
        """The score on the search rows, if these predictions are of all rows."""
        if self._search_part is None or not self._confirmation.is_of_all(y_pred, 1, "finalists"):
            return None
        return self.score(y_pred)

    def _read(self, y_pred: Any, name: str) -> NDArray[Any]:
        with read_as(y_pred=name, losses=name):
            return self._rows.read(self._confirmation.take(y_pred, 1, name), name)

    def _take_turn(
        self, turn: Turn, models: list[_Model], question: _Question
    ) -> tuple[list[Finalist], _History]:
        """Confirm the models that are new, and return what is released of all of them."""
        history = _History(turn.events)
        found = {model.name: history.find(model, question) for model in models}
        new: dict[int, _Model] = {}
        for model in models:
            if found[model.name] is None:
                new.setdefault(model.fingerprint, model)
        if new:
            self._confirm_new(turn, history, list(new.values()), question)
            history = _History(turn.events)
        released = [history.find(model, question) for model in models]
        return [finalist for finalist in released if finalist is not None], history

    def _confirm_new(
        self, turn: Turn, history: _History, models: list[_Model], question: _Question
    ) -> None:
        batch, n_before = history.n_batches + 1, len(history.finalists)
        if history.ended:
            raise self._exhausted(history, len(models))
        is_last = batch == self.n_batches
        nats = self._nats(batch, len(models), history.log_outcomes)
        finalists = [
            Finalist(model.name or f"finalist {number}", number, batch, nats, model.search_value)
            for number, model in enumerate(models, n_before + 1)
        ]
        candidates = [self._rows.candidate(model.stored) for model in models]
        released, outcomes = zip(
            *(self._in_part(*one, question) for one in zip(finalists, candidates, strict=True)),
            strict=True,
        )
        if is_last:
            released = self._in_full(finalists, candidates, history.log_outcomes, question)
        for model, finalist, log_outcomes in zip(models, released, outcomes, strict=True):
            event = {
                "fingerprint": model.fingerprint,
                "question": question.stored(),
                "log_outcomes": log_outcomes,
                "finalist": finalist._asdict(),
            }
            turn.append(event, b"" if is_last else to_bytes(model.stored))
        if is_last:
            self._end(turn, list(released))

    def _in_part(
        self, finalist: Finalist, candidate: Candidate, question: _Question
    ) -> tuple[Finalist, float]:
        """What is released of a finalist that others may follow, and ln of how much it may be."""
        measure, nats = self._rows.measure, finalist.nats
        value, low, high = self._rows.value(candidate, nats)
        if question.release == "pass":
            return finalist._replace(passed=question.passes(low, high)), math.log(2)
        kept = self._rows.kept(candidate, nats)
        n_outcomes = measure.n_outcomes(kept)
        if n_outcomes is not None and not isinstance(question.release, Rounded):
            return finalist._replace(value=(value, low, high)), math.log(n_outcomes)
        least, most = measure.ends
        grid = question.release
        if not isinstance(grid, Rounded):
            grid = Rounded((most - least) / _GRID_STEPS)
        rounded, half = grid.of(value), 0.5 * grid.step
        hull = measure.hull(kept, rounded - half, rounded + half, nats)
        released = rounded, *(hull or (None, None))
        return finalist._replace(value=released), math.log(grid.n_values(least, most))

    def _in_full(
        self,
        finalists: list[Finalist],
        candidates: list[Candidate],
        log_outcomes: float,
        question: _Question | None,
    ) -> list[Finalist]:
        """All of the finalists of one batch: values, gains, and gains of pairs."""
        full = []
        for finalist, candidate in zip(finalists, candidates, strict=True):
            value = self._rows.value(candidate, finalist.nats)
            passed = finalist.passed
            if question is not None:
                passed = question.passes(value.low, value.high)
            over_baseline = None
            if self._has_baseline:
                over_baseline = self._gain(self._baseline, candidate, finalist.nats)
            full.append(finalist._replace(value=tuple(value), gain=over_baseline, passed=passed))
        n_pairs = math.comb(len(full), 2)
        if self.pairs and n_pairs:
            nats = self._nats(full[0].batch, n_pairs, log_outcomes)
            over: list[dict[str, Any]] = [{} for _ in full]
            for one, other in combinations(range(len(full)), 2):
                better, low, high = self._gain(candidates[other], candidates[one], nats)
                over[one][full[other].name] = better, low, high, nats
                over[other][full[one].name] = -better, -high, -low, nats
            full = [one._replace(over=gains) for one, gains in zip(full, over, strict=True)]
        return full

    def _gain(self, before: Candidate, after: Candidate, nats: float) -> tuple[float, float, float]:
        n_samples, span = self._confirmation.n_rows, self._rows.span
        return tuple(gain(before.losses, after.losses, span, None, n_samples, nats))

    def _nats(self, batch: int, n_claims: int, log_outcomes: float) -> float:
        return confirmation_nats(
            n_claims,
            self.delta,
            batch=batch,
            n_batches=self.n_batches,
            log_outcomes=log_outcomes,
            n_families=1 + self._has_baseline + self.pairs,
        )

    def _exhausted(self, history: _History, n_finalists: int) -> HoldoutExhausted:
        if history.n_batches != self.n_batches:
            reason = "close_out() has ended this search: nothing more can be confirmed on its rows"
        else:
            reason = self._cost_of_another(history, n_finalists)
        return HoldoutExhausted(reason, n_answered=len(history.finalists))

    def _cost_of_another(self, history: _History, n_finalists: int) -> str:
        """What one more batch would have cost, and how to have declared it."""
        batch, told = history.n_batches + 1, history.log_outcomes
        costs = [
            confirmation_nats(
                n_finalists, self.delta, batch=batch, n_batches=declared, log_outcomes=told
            )
            for declared in (batch, None)
        ]
        return (
            f"this search was made for {counted(batch - 1, 'batch', 'batches')} of finalists "
            f"(n_batches={self.n_batches}), all confirmed. Another batch has to be declared before "
            f"the first: with n_batches={batch} its limits would be taken at {costs[0]:.1f} nats, "
            f"with n_batches=None at {costs[1]:.1f}, in place of "
            f"{confirmation_nats(n_finalists, self.delta):.1f} for the only batch"
        )

    def close_out(self) -> ConfirmedAnswers:
        """End the search, and return all of every finalist: nothing more can be confirmed.

        Values, intervals, gains and pairs that were not released before are released here, at the
        nats of their batch.

        Raises
        ------
        RuntimeError
            This is a copy of a search in memory.
        """

        def end(turn: Turn) -> _History:
            if not _History(turn.events).ended:
                self._end(turn, [])
            return _History(turn.events)

        self._check_labels()
        history = self._own_events().turn(end)
        return self._answers(history.finalists, history)

    def _end(self, turn: Turn, last: list[Finalist]) -> None:
        """Append all of every finalist; of the last batch it is known already."""
        history = _History(turn.events)
        full: list[Finalist] = []
        log_outcomes = 0.0
        for batch in range(1, history.n_batches + 1 - bool(last)):
            places = [at for at, one in enumerate(history.finalists) if one.batch == batch]
            candidates = [self._rows.candidate(from_bytes(turn.content(place))) for place in places]
            finalists = [history.finalists[place] for place in places]
            full += self._in_full(finalists, candidates, log_outcomes, None)
            log_outcomes += sum(history.events[place]["log_outcomes"] for place in places)
        turn.append({"end": [finalist._asdict() for finalist in [*full, *last]]})

    def _check_labels(self) -> None:
        if self._lacks_labels:
            raise TypeError("this search was opened without its labels, which are needed here")

    def _own_events(self) -> Events:
        """The events; RuntimeError in a copy of a search in memory, which would not count."""
        if self._events is None or self._record is None and self._born != n_forks():
            raise RuntimeError(
                "this is a copy (copy, pickle or fork) of a ConfirmedSearch in memory: it scores, "
                "and confirms nothing, since the original would not count it; confirm with that, "
                "or share the search as a database (open)"
            )
        return self._events

    # ---- a database that processes share -----------------------------------------------------

    @classmethod
    @sealed
    def open(
        cls,
        path: Path,
        judged: Any = None,
        *,
        delta: float | None = None,
        confirm_share: float = 0.5,
        n_batches: int | None = 1,
        seed: int | None = None,
        rows: Any = None,
        stratify: bool = False,
        baseline: Any = None,
        pairs: bool = False,
        holdout_id: str | None = None,
        durability: Durability = "power",
    ) -> Self:
        """Open the search whose finalists are in a database, made now if there is none.

        Any number of processes and threads on one machine may open it.  What is confirmed is
        counted there before it is released, whatever crashes.  The file is open for the length of
        a call.

        Parameters
        ----------
        path : path
            The database.  It holds what was released of every finalist and, until the end, the
            predictions of those of which more will be released, but no label.
        judged : array_like, Holdout, int or Losses, optional
            As for the constructor; only for the labels that the database was made for.  May be left
            out where it exists: the search then has its answers and its report, and nothing else.
        delta, confirm_share, n_batches, seed, stratify, pairs
            As for the constructor; they must be those that the database was made with.  Without
            delta all are those of the database, which must exist.
        rows, baseline
            As for the constructor, each time.
        holdout_id : str, optional
            A name for a holdout without labels.
        durability : {"power", "process"}
            "power": an answer waits for the disk.  "process": it does not, and a power cut may take
            it back.

        Raises
        ------
        FileNotFoundError
            There is no file and no parameters to make one.
        ValueError
            It was made with other parameters or for another holdout, or is no such database.
        OSError
            It cannot be read and written.
        """
        from radabound_fast.store import EventRecord, open_record

        name, whose, new = os.fsdecode(path), Judged(judged, holdout_id), None
        beside = {"rows": rows, "baseline": baseline}
        made: Self | None = None
        given = {
            "delta": delta,
            "confirm_share": confirm_share,
            "n_batches": n_batches,
            "stratify": stratify,
            "pairs": pairs,
        }
        if delta is not None and not os.path.exists(path):
            made = cls(whose.apart(), seed=seed, **given, **beside)
            new = made._description() | {"holdout": whose.new_identity()}
        record = open_record(EventRecord, path, durability, new)
        stored = record.description
        if stored["kind"] != cls.kind:
            raise ValueError(f"{name} must hold a {cls.kind}, it holds a {stored['kind']:.50}")
        whose.check_made_for(name, stored["holdout"])
        if made is None:
            made = cls._of_file(name, stored, whose, given, beside, seed)
        made._record = made._events = record
        if whose.holdout is not None:
            made._holdout = whose.holdout
        made._holdout.note_guard(record.path)
        return made

    def _description(self) -> dict[str, Any]:
        """What never changes, as the database has it."""
        rows = pack_rows(self._confirmation.rows)
        return {
            "kind": self.kind,
            "parameters": self.parameters,
            "seed": self._seed,
            "secret": self._secret.hex(),
            "metric": self._described_metric(),
            "n_confirmation_rows": self._confirmation.n_rows,
            "rows": self._fingerprint(rows),
            "baseline": self._has_baseline and self._fingerprint(self._stored_baseline),
        }

    def _described_metric(self) -> dict[str, Any] | None:
        part = self._confirmation_part
        return part.truth.measure(self._secret).describe() if isinstance(part, Holdout) else None

    @classmethod
    def _to_read(cls, stored: dict[str, Any]) -> Self:
        """The search of a database without its labels."""
        arguments = stored["parameters"]
        n_samples = arguments["n_samples"]
        made = cls(
            Losses(n_samples),
            delta=arguments["delta"],
            n_batches=arguments["n_batches"],
            rows=np.arange(n_samples) < stored["n_confirmation_rows"],
        )
        made.confirm_share, made.stratify, made.pairs = (
            arguments[name] for name in ("confirm_share", "stratify", "pairs")
        )
        made._has_baseline, made._lacks_labels = stored["baseline"] is not False, True
        made._measure = Measure.from_description(stored["metric"], None)
        return made

    @classmethod
    def _of_file(
        cls,
        name: str,
        stored: dict[str, Any],
        whose: Judged,
        given: dict[str, Any],
        beside: dict[str, Any],
        seed: int | None,
    ) -> Self:
        """The search of a database, if it is the one that the arguments describe."""
        if whose.holdout is None and stored["metric"] is not None:
            return cls._to_read(stored)
        if whose.holdout is None:
            whose.holdout = Losses(stored["parameters"]["n_samples"])
        whose.take_stored_metric(stored["metric"])
        arguments = given if given["delta"] is not None else dict(stored["parameters"])
        arguments.pop("n_samples", None)
        seed = stored["seed"] if seed is None and beside["rows"] is None else seed
        made = cls(whose.apart(), seed=seed, **arguments, **beside)
        made._secret = bytes.fromhex(stored["secret"])
        for part, value in (made._description() | made.parameters).items():
            if part not in ("kind", "parameters", "secret") and not same_json(
                value, stored["parameters"].get(part, stored.get(part))
            ):
                what = {"metric": "metric, options, weights and groups"}.get(part, part)
                raise ValueError(f"{what} must be that with which {name} was made")
        return made

    # ---- what it came to ---------------------------------------------------------------------

    @property
    def answers(self) -> ConfirmedAnswers:
        """What was released of every finalist, in the order in which they were confirmed."""
        history = self._history()
        return self._answers(history.finalists, history)

    @property
    def best(self) -> ConfirmedAnswer | None:
        """The answer with the best limit, as `ConfirmedAnswers.best`; None before the first."""
        answers = self.answers
        return answers.best if len(answers) else None

    def compare(self, a: str, b: str) -> Comparison:
        """Return how much better one finalist is than another: see `ConfirmedAnswers.compare`."""
        return self.answers.compare(a, b)

    def _history(self) -> _History:
        return self._own_events().turn(lambda turn: _History(turn.events))

    def _answers(self, finalists: list[Finalist], history: _History) -> ConfirmedAnswers:
        has_gains = self._has_baseline
        return ConfirmedAnswers(
            (ConfirmedAnswer(finalist, has_gains) for finalist in finalists),
            halted=history.ended,
            n_answered=len(history.finalists),
            greater_is_better=self.greater_is_better,
        )

    @property
    def n_answered(self) -> int:
        """Finalists that were confirmed so far."""
        return len(self._history().finalists)

    @property
    def halted(self) -> bool:
        """Whether all batches were confirmed, or `close_out` has ended the search."""
        return self._history().ended

    def n_left(self) -> int | None:
        """Return how many batches more may be confirmed; None: any number."""
        history = self._history()
        if history.ended:
            return 0
        return None if self.n_batches is None else self.n_batches - history.n_batches

    def outlook(self) -> Outlook:
        """Return in words what is left, for people."""
        left = self.n_left()
        if left is None:
            return Outlook("any number of batches of finalists, each dearer than the last", None)
        batches = counted(left, "batch", "batches")
        share = left / self.n_batches if self.n_batches else 0.0
        return Outlook(f"{batches} of finalists" if left else "nothing: it is confirmed", share)

    @property
    def greater_is_better(self) -> bool:
        """Whether a larger value is better."""
        return self._measure.greater_is_better

    @property
    def guarantee(self) -> str:
        """What is guaranteed in this configuration, when, and proved by what."""
        measure = self._measure
        what, limits = measure.told
        claims = f"the {what} of every finalist is between its low and high"
        if self._has_baseline:
            claims += ", its true gain over the baseline between gain_low and gain_high"
        if self.pairs:
            claims += ", the true gain of one over another of its batch between its limits"
        n_batches = "any number of" if self.n_batches is None else f"{self.n_batches:,}"
        batches = "batch" if self.n_batches == 1 else "batches"
        population = (
            " The population has the class shares of the confirmation rows."
            if self.stratify
            else ""
        )
        return (
            f"With probability at least {certainty(self.delta)} {claims}, of all finalists of "
            f"{n_batches} {batches} at once. Finite-sample, valid for any search that sees "
            f"{counted(self._confirmation.n_rows, 'confirmation row')} in the answers of earlier "
            f"batches alone, whatever it does with the other rows; proved by Theorem J, with "
            f"{limits}. Assumed: {measure.assumed}; the confirmation rows were chosen without "
            f"looking at labels or predictions, and no finalist was trained, tuned or chosen on "
            f"them.{population}"
        )

    @property
    def parameters(self) -> dict[str, Any]:
        """The search's parameters as JSON values."""
        return {
            "n_samples": self.n_samples,
            "delta": self.delta,
            "confirm_share": self.confirm_share,
            "n_batches": self.n_batches,
            "stratify": self.stratify,
            "pairs": self.pairs,
        }

    def close(self) -> None:
        """Do nothing: the database of an opened search is open for the length of a call."""

    def share_transactions(self) -> ServedDatabase:
        """Have the calls of an opened search committed together from now on, with a log of them."""
        from radabound_fast.store.served import ServedDatabase

        if self._record is None:
            raise RuntimeError("this search is in no database: share it as a database (open)")
        return ServedDatabase(self._record)

    @property
    def database(self) -> EventRecord | None:
        """The database that the search was opened from, if it was."""
        return self._record

    def __getstate__(self) -> dict[str, Any]:
        if self._record is not None:
            return vars(self)
        return vars(self) | {"_events": None}

    def __repr__(self) -> str:
        return (
            f"ConfirmedSearch({self.holdout!r}, delta={self.delta!r}, "
            f"n_batches={self.n_batches!r}, n_search_rows={self._search.n_rows}, "
            f"n_confirmation_rows={self._confirmation.n_rows})"
        )


def _rows_of(part: Holdout | Losses) -> CandidateRows:
    return PredictionRows(part) if isinstance(part, Holdout) else LossRows(part)


def _check_share(confirm_share: Any) -> float:
    share = check_real(confirm_share=confirm_share)
    if not 0.0 < share <= 1.0:
        raise ValueError(f"confirm_share must be in (0, 1], got {share!r}")
    return share


def _check_question(release: Any, at_least: Any, at_most: Any) -> _Question:
    if not isinstance(release, Rounded):
        check_choice(("interval", "pass"), release=release)
    bars = {"at_least": at_least, "at_most": at_most}
    bars = {name: None if bar is None else check_real(**{name: bar}) for name, bar in bars.items()}
    has_bar = any(bar is not None for bar in bars.values())
    if has_bar != (release == "pass"):
        rule = "be left out" if has_bar else "be given, one of them,"
        raise ValueError(f"at_least and at_most must {rule} with release={release!r}, got {bars}")
    return _Question(release, **bars)
