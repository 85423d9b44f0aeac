"""A search on some of the rows, and finalists that are confirmed on the others."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, Self, overload

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
from radabound_fast._kernels.support import n_forks, sealed
from radabound_fast.bounds import confirmation_nats
from radabound_fast.guards.base import Guard, Outlook
from radabound_fast.guards.candidates import fingerprint_of, rows_of
from radabound_fast.guards.confirmed import parts
from radabound_fast.guards.confirmed.answers import ConfirmedAnswer, ConfirmedAnswers, Finalist
from radabound_fast.guards.confirmed.history import Confirmation, History, Model, Question, Release
from radabound_fast.guards.declared.answers import Comparison
from radabound_fast.guards.declared.rows import LossRows as SearchLosses
from radabound_fast.guards.log import hears_queries, note_answers
from radabound_fast.guards.opening import Opening, check_same
from radabound_fast.holdout import Holdout, Losses, as_judged
from radabound_fast.metrics import MeanLoss, Measure
from radabound_fast.rows.parts import Part, rows_of_text, text_of_rows
from radabound_fast.store.events import EventList

if TYPE_CHECKING:
    from radabound_fast.guards.confirmed.report import ConfirmedReport
    from radabound_fast.store import Description, Durability, EventRecord, Path
    from radabound_fast.store.events import Events


_BY_BOOTSTRAP = (
    " Asymptotic, as rows grow many, and not proved at any number of rows: with probability about "
    "{} the limits whose names begin with asymptotic hold at once, beside the proved ones where "
    "there are none (multiplier bootstrap with Rademacher signs, Chernozhukov, Chetverikov and "
    "Kato 2013, turned into a level for the same limits)."
)


class ConfirmedSearch(Guard):
    """Lets any search use some of the rows freely, and confirms its finalists on the others.

    The search rows may be used for anything: scored as often as one likes, trained on, looked at.
    Nothing is declared and nothing is counted.  The confirmation rows are kept for the end: of
    every finalist they give an interval, and all hold at once with probability 1 - delta.

    Parameters
    ----------
    judged : array_like, Holdout, int or Losses
        Labels, or a `Holdout` with any metric; then finalists are predictions.  Or a number of
        rows; then they are losses.
    delta : float
        The probability that any interval misses, in (0, 1).
    confirm_share : float, default 0.5
        Which share of the rows, or of the groups, is kept for the end, in (0, 1].  1: all
        rows, for a search that scored by other means, such as cross-validation on training rows.
    n_batches : int or None, default 1
        How many times finalists will be confirmed: each batch has delta / n_batches, and pays for
        what earlier ones released.  None: any number; batch t has delta / (t (t + 1)).
    seed : int, optional
        Draws the confirmation rows; by default one is drawn and stored.
    rows : array_like of bool, shape (n_samples,), optional
        The confirmation rows, chosen elsewhere by a rule that read neither labels nor predictions:
        the last weeks, another site.  In place of `confirm_share` and `seed`.
    stratify : bool, default False
        Whether both parts have the same share of every class, for error, accuracy and metrics that
        are given the labels.  The population that intervals speak of then has the class shares of
        the confirmation rows (Result 33).
    baseline : array_like, shape (n_samples,), optional
        For metrics that are means: predictions of a model that was fixed before the confirmation
        rows were seen, or chosen on the search rows.  Every finalist then has a gain over it.
    pairs : bool, default False
        For metrics that are means: whether the finalists of a batch are compared with each other
        (`compare`).  Values, gains and pairs, as many as there are, share delta equally.
    limits : {"proved", "bootstrap"}, default "proved"
        "bootstrap": finalists have further limits beside the proved ones, for means and in a search
        with one batch: the same kind of limits at the level that a multiplier bootstrap gives all
        finalists at once, as in a `ModelPool`.  They are narrower where finalists are alike, and
        **asymptotic**: that they hold at once is proved for many rows alone.  delta must be at
        least .001.

    Attributes
    ----------
    search_part : Holdout, Losses or None
        The search rows as a holdout of their own, for anything; None where there are none.

    Raises
    ------
    TypeError, ValueError
        An argument is of the wrong type or out of its range; the message says which and why.

    Notes
    -----
    The limits of batch t are taken at ``ln(2/delta) + ln(1/u(t)) + ln s_t`` nats, s_t its
    finalists and u(t) its share of delta, and at ``ln M_i`` more for every earlier batch i, of
    which one of M_i outcomes was released (Result 31 of docs/explanation/theory.md).  They are
    those of the metric for one model fixed in advance, on the confirmation rows.

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
    (0.1175, 0.1058, 0.13)
    """

    _record: EventRecord | None = None
    _has_gains: bool

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
        limits: Literal["proved", "bootstrap"] = "proved",
    ) -> None:
        holdout = as_judged(judged)
        if rows is not None and (seed is not None or confirm_share != 0.5 or stratify):
            raise ValueError("confirm_share, seed and stratify must be left out beside rows")
        self.stratify = check_bool(stratify=stratify)
        self.confirm_share = check_real(confirm_share=confirm_share)
        if not 0.0 < self.confirm_share <= 1.0:
            raise ValueError(f"confirm_share must be in (0, 1], got {confirm_share!r}")
        self.pairs = check_bool(pairs=pairs)
        for name, is_wanted in (("baseline", baseline is not None), ("pairs", pairs)):
            if is_wanted:
                parts.check_gains(holdout, stratify, name)
        self.n_batches = None if n_batches is None else check_count(n_batches=n_batches)
        self.limits = check_choice(("proved", "bootstrap"), limits=limits)
        if limits == "bootstrap":
            parts.check_bootstrap(holdout, stratify, self.n_batches, check_delta(delta))
        self._seed = check_seed(seed) if rows is None else None
        chosen = parts.confirmation_rows(holdout, rows, self.confirm_share, self._seed, stratify)
        self.delta = check_delta(delta)
        self._set_up(holdout, chosen)
        self._baseline = None if baseline is None else self._read(baseline, "baseline")
        self._has_gains = baseline is not None
        least = confirmation_nats(1, self.delta, n_batches=self.n_batches)
        parts.warn_of_few(self._confirmation_part, least)
        holdout.note_guard(None)

    def _set_up(self, holdout: Holdout | Losses, chosen: NDArray[np.bool_]) -> None:
        """All of a search but its parameters and its baseline."""
        self._holdout = holdout
        self._confirmation, self._search = Part(chosen, "confirmation"), Part(~chosen, "search")
        self.search_part = holdout.part(~chosen) if self._search.n_rows else None
        self._confirmation_part = part = holdout.part(chosen)
        self._rows, self._baseline, self._lacks_labels = rows_of(part), None, False
        self._metric: MeanLoss | Measure = MeanLoss(part.n_samples)
        if isinstance(part, Holdout):
            self._metric = part.truth.measure(bytes(16))
        self._secret = os.urandom(16)
        self._events: Events | None = EventList()
        self._born, self._logs = n_forks(), hears_queries()

    # ---- the search --------------------------------------------------------------------------

    @property
    def search_rows(self) -> NDArray[np.bool_]:
        """Whether each row may be used by the search, for anything; shape (n_samples,)."""
        return self._search.rows.copy()

    @property
    def confirmation_rows(self) -> NDArray[np.bool_]:
        """Whether each row is kept for the end; shape (n_samples,)."""
        return self._confirmation.rows.copy()

    @sealed
    def repeated_rows(self, X: Any) -> NDArray[np.bool_]:
        """Return which confirmation rows have the features of a search row, and warn of them.

        Rows that come twice are no independent draws, and a model that was fitted to the search
        rows knows them: pass such rows as one group (`Holdout`).  `X` has the features of all
        rows, shape (n_samples, n_features).
        """
        return parts.repeated_rows(X, self._confirmation.rows)

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
        """Return the metric of several models on the search rows, shape (k,), as by `score`.

        `Y_pred` has shape (k, n_samples) or (k, n_search_rows).
        """
        return self._score(Y_pred, 2)

    def _score(self, y_pred: Any, ndim: int) -> NDArray[np.float64]:
        self._check_labels()
        part = self.search_part
        if part is None:
            raise ValueError("score needs search rows, and all rows are kept for the end")
        rows = self._rows_of(self._search, y_pred, ndim, "y_pred")
        if isinstance(part, Holdout):
            truth = part.truth
            return np.asarray(truth.values(truth.measure(bytes(16)), truth.read(rows, ndim)))
        losses = SearchLosses.read(rows, part.n_samples, ndim, None)
        totals, shifts = losses.columns
        return np.asarray(totals / (part.n_samples << shifts))

    # ---- the end -----------------------------------------------------------------------------

    @overload
    def confirm(
        self,
        finalists: Mapping[str, Any] | None = ...,
        *,
        release: Release = ...,
        at_least: float | None = ...,
        at_most: float | None = ...,
    ) -> ConfirmedAnswers: ...
    @overload
    def confirm(
        self,
        finalists: Any,
        *,
        release: Release = ...,
        at_least: float | None = ...,
        at_most: float | None = ...,
    ) -> ConfirmedAnswer: ...
    @sealed
    def confirm(
        self,
        finalists: Any = None,
        *,
        release: Release = "interval",
        at_least: float | None = None,
        at_most: float | None = None,
    ) -> ConfirmedAnswers | ConfirmedAnswer:
        """Judge a batch of finalists on the confirmation rows, or a single one.

        Return `ConfirmedAnswers`, or the `ConfirmedAnswer` of a single one.  The same predictions
        again have the stored answer, and cost nothing.

        Parameters
        ----------
        finalists : mapping of str to array_like, or array_like, optional
            Predictions, or losses, for all rows or the confirmation rows, by the finalist's name;
            or those of a single finalist, which is called by its number.  By default all that were
            nominated (`nominate`).
        release : {"interval", "pass"} or Rounded, default "interval"
            How much leaves, where another batch may follow and pays for it: values and intervals,
            real-valued metrics on a grid of 1e-4 of their range; one bit a finalist; or values on a
            coarser grid.  Limits that are no function of the value, gains and pairs then wait for
            the end.  In the last batch all is released.
        at_least, at_most : float, optional
            The bar of ``release="pass"``: a finalist passes if its whole interval is there.

        Raises
        ------
        HoldoutExhausted
            All batches that were declared were confirmed.
        TypeError, ValueError
            No finalists, or they are not such arrays, or a name stands for two models; nothing has
            changed then.
        RuntimeError
            This is a copy of a search in memory.
        """
        question = Question.of(release, at_least, at_most)
        events, judge = self._own_events(), self._judge()
        is_one = not isinstance(finalists, Mapping) and finalists is not None
        models = None
        if finalists is not None:
            models = [self._model("", finalists)] if is_one else self._models(finalists)
        released, history = events.turn(lambda turn: judge.take_turn(turn, models, question))
        if self._logs:
            note_answers(self.kind, len(released), len(history.finalists))
        answers = self._answers(released, history)
        return answers[0] if is_one else answers

    @sealed
    def nominate(self, name: str, y_pred: Any) -> None:
        """Store a model as a finalist, until ``confirm()`` confirms all that were nominated.

        Nothing is released of it, and nothing is paid.  A `name` that is nominated again stands for
        the later model.  So people or programs that do not know each other can share one batch.

        `y_pred`, and its errors, are those of `confirm`.  ValueError also if another model was
        confirmed by this name, or the search has ended.
        """
        events, judge = self._own_events(), self._judge()
        (model,) = self._models({name: y_pred})
        events.turn(lambda turn: judge.nominate(turn, model))

    @property
    def nominated(self) -> list[str]:
        """The names of the models that were nominated, in order."""
        return list(self._history().nominated)

    def _models(self, finalists: Mapping[str, Any]) -> list[Model]:
        if not finalists:
            raise ValueError("finalists must hold at least one model, got none")
        for name in finalists:
            if not isinstance(name, str) or not name:
                raise TypeError(f"finalists must have names that are strings, got {name!r:.100}")
        return [self._model(name, y_pred) for name, y_pred in finalists.items()]

    def _model(self, name: str, y_pred: Any) -> Model:
        try:
            stored = self._read(y_pred, "finalists")
        except (TypeError, ValueError) as error:
            if name:
                error.add_note(f"the finalist is {name!r}")
            raise
        search_value = None
        if self.search_part and self._confirmation.is_of_all(y_pred, 1, "finalists"):
            search_value = self.score(y_pred)
        return Model(name, stored, fingerprint_of(stored, self._secret), search_value)

    def _read(self, y_pred: Any, name: str) -> NDArray[Any]:
        with read_as(y_pred=name, losses=name):
            return self._rows.read(self._rows_of(self._confirmation, y_pred, 1, name), name)

    def _rows_of(self, part: Part, y_pred: Any, ndim: int, name: str) -> Any:
        """The part's rows of predictions or losses, which may be of all rows."""
        if self._holdout.labels is not None:
            self._holdout.labels.check_rows(y_pred, ndim, name, part.rows)
        return part.take(y_pred, ndim, name)

    def _judge(self) -> Confirmation:
        self._check_labels()
        baseline = None if self._baseline is None else self._rows.candidate(self._baseline)
        seed = (self._seed or 0) if self.limits == "bootstrap" else None
        return Confirmation(self._rows, baseline, self.pairs, self.delta, self.n_batches, seed)

    @sealed
    def close_out(self) -> ConfirmedAnswers:
        """End the search, and return the `answers` in full: nothing more can be confirmed.

        Values, intervals, gains and pairs that were not released before are released here, at the
        nats of their batch.
        """
        judge = self._judge()
        history = self._own_events().turn(judge.end)
        return self._answers(history.finalists, history)

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
        limits: Literal["proved", "bootstrap"] = "proved",
        holdout_id: str | None = None,
        durability: Durability = "power",
    ) -> Self:
        """Open the search whose finalists are in a database, made now if there is none.

        Any number of processes and threads on one machine may open it.  What is confirmed is
        counted there before it is released, whatever crashes.  The file is open for the length of
        a call.  Errors, and `holdout_id`, are those of `RadaBound.open`.

        Other parameters are those of the constructor.  They must be those that the database was
        made with, which has the rows, but not the baseline: pass that each time.  Without delta all
        are those of the database, which must exist.

        Parameters
        ----------
        path : path
            The database.  It holds what was released of every finalist and, until the end, the
            predictions of those of which more will be released, but no label.
        judged : array_like, Holdout, int or Losses, optional
            That for which the database was made.  May be left out where it exists: the search then
            has its answers and its report, and nothing else.
        durability : {"power", "process"}
            "power": an answer waits for the disk.  "process": it does not, and a power cut may take
            it back.
        """
        return cls._open(locals())

    def _description(self) -> Description:
        measure, baseline = self._metric, None
        if self._baseline is not None:
            baseline = fingerprint_of(self._baseline, self._secret)
        if isinstance(self._confirmation_part, Holdout):
            measure = self._confirmation_part.truth.measure(self._secret)
        return {
            "kind": self.kind,
            "parameters": self.parameters,
            "seed": self._seed,
            "rows": text_of_rows(self._confirmation.rows),
            "secret": self._secret.hex(),
            "metric": measure.describe(),
            "baseline": baseline,
        }

    @classmethod
    def _of_file(cls, stored: Description, opening: Opening) -> Self:
        parameters = dict(stored["parameters"])
        n_samples = parameters.pop("n_samples")
        rows = rows_of_text(stored["rows"], n_samples)
        holdout = opening.as_stored(stored["metric"], n_samples)
        if opening.holdout is None and stored["metric"] is not None:  # to be read, without labels
            search = cls.__new__(cls)
            vars(search).update(parameters)
            search._set_up(holdout, rows)
            search._has_gains, search._lacks_labels = stored["baseline"] is not None, True
            search._metric = Measure.from_description(stored["metric"], None)
            return search
        beside = {part: opening.arguments[part] for part in ("seed", "rows", "baseline")}
        if beside["seed"] is None and beside["rows"] is None:
            # without a seed the rows were chosen elsewhere
            beside |= {"rows": rows} if stored["seed"] is None else {"seed": stored["seed"]}
        search = cls(holdout, **(opening.arguments if opening.has_needed else parameters) | beside)
        search._secret = bytes.fromhex(stored["secret"])
        check_same(opening.name, search._description(), stored)
        return search

    def _keep_in(self, record: EventRecord) -> None:
        self._record = self._events = record

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
        """Return how much better finalist `a` is than `b`: see `ConfirmedAnswers.compare`."""
        return self.answers.compare(a, b)

    def report(self) -> ConfirmedReport:
        """Return the result so far: a sentence to paste, a table, JSON, a page, a picture.

        ValueError if nothing was confirmed yet, or no interval was released.
        """
        from radabound_fast.guards.confirmed.report import ConfirmedReport

        answers = self.answers
        if not len(answers):
            raise ValueError("there is nothing to report: no finalist was confirmed yet")
        _ = answers.best  # raises where no interval was released
        return ConfirmedReport(
            metric=self._metric.name,
            n_search_rows=self._search.n_rows,
            n_confirmation_rows=self._confirmation.n_rows,
            n_models=len(answers),
            n_batches=self.n_batches,
            delta=self.delta,
            guarantee=self.guarantee,
            answers=answers,
            where=self._metric.where,
        )

    def _history(self) -> History:
        return self._own_events().read(lambda turn: History(turn.events))

    def _answers(self, finalists: list[Finalist], history: History) -> ConfirmedAnswers:
        has_gains = self._has_gains
        return ConfirmedAnswers(
            (ConfirmedAnswer.of(finalist, has_gains) for finalist in finalists),
            halted=history.ended,
            n_answered=len(history.finalists),
            greater_is_better=self.greater_is_better,
        )

    @property
    def n_answered(self) -> int:
        """Finalists that were confirmed so far."""
        return len(self._history().finalists)

    def n_left(self) -> int | None:
        """Return how many batches more may be confirmed; None: any number until `close_out`."""
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
        return self._metric.greater_is_better

    @property
    def guarantee(self) -> str:
        """What is guaranteed in this configuration, when, and proved by what."""
        measure = self._metric
        what, limits = measure.in_words
        if isinstance(measure, MeanLoss):
            limits = "exact binomial limits for losses of 0 and 1, and by betting for others"
        claims = f"the {what} of every finalist {measure.where} is between its low and high"
        if self._has_gains:
            claims += ", its true gain over the baseline between gain_low and gain_high"
        if self.pairs:
            claims += ", the true gain of one over another of its batch between its limits"
        batches = "any number of batches"
        if self.n_batches is not None:
            batches = counted(self.n_batches, "batch", "batches")
        text = (
            f"With probability at least {certainty(self.delta)} {claims}, of all finalists of "
            f"{batches} at once. Finite-sample, valid for any search that sees "
            f"{counted(self._confirmation.n_rows, 'confirmation row')} in the answers of earlier "
            f"batches alone, whatever it does with the other rows; proved by Result 31, with "
            f"{limits}. Assumed: {measure.assumed}; the confirmation rows were chosen without "
            f"looking at labels or predictions, and no finalist was trained, tuned or chosen on "
            f"them."
        )
        if self.stratify:
            text += " The population has the class shares of the confirmation rows."
        if self.limits == "bootstrap":
            text += _BY_BOOTSTRAP.format(certainty(self.delta))
        return text

    @property
    def parameters(self) -> dict[str, Any]:
        """The search's parameters as JSON values."""
        names = ("n_samples", "delta", "confirm_share", "n_batches", "stratify", "pairs", "limits")
        return {name: getattr(self, name) for name in names}

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
