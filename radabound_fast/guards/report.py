"""What a search over a declared space came to: a sentence to paste, a table and a picture."""

from __future__ import annotations

import base64
import html
import io
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from radabound_fast import __version__
from radabound_fast._checks import certainty, counted
from radabound_fast._extras import needs
from radabound_fast.metrics import COUNTED
from radabound_fast.spaces.messages import shown_key

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pandas
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from radabound_fast.guards.confirmed.answers import ConfirmedAnswers
    from radabound_fast.guards.declared.answers import DeclaredSearchAnswer, DeclaredSearchAnswers

SHOWN = 10  # models in a table
_PAGE = """<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{title}</title><style>:root {{color-scheme: light dark}}
body {{font-family: sans-serif; max-width: 50em; margin: 2em auto; padding: 0 1em}}
td, th {{padding: .2em .6em; text-align: left}}</style></head>
<body>{body}</body>
</html>
"""


class BaseReport:
    """What all reports on many models share: JSON, a page, a table and a picture in it."""

    metric: str
    n_models: int
    guarantee: str

    def as_json(self) -> dict[str, Any]:
        """Return what `to_json` prints but for all models."""
        raise NotImplementedError

    def plot(self) -> Figure:
        """Return a picture of the models."""
        raise NotImplementedError

    def _best_rows(self) -> list[dict[str, Any]]:
        """The fields of the ten best models, by name."""
        raise NotImplementedError

    def to_json(self) -> str:
        """All of the report as JSON, but for a table of all models."""
        return self._as_text(self.as_json())

    def _as_text(self, fields: dict[str, Any]) -> str:
        return json.dumps({"version": __version__} | fields, indent=2, default=plain)

    def to_html(self) -> str:
        """A page: sentence, picture (with matplotlib), the ten best models, and the guarantee."""
        return page(f"{self.metric} of {self.n_models:,} models", self._repr_html_())

    def to_markdown(self) -> str:
        """Sentence, the ten best models and the guarantee, for a model card."""
        names, rows = self._table()
        lines = [names, ["---"] * len(names), *(map(_in_markdown, row) for row in rows)]
        table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
        return f"{_in_markdown(str(self))}\n\n{table}\n\n{_in_markdown(self.guarantee)}\n"

    def _table(self) -> tuple[list[str], list[list[str]]]:
        """Names and cells of the best models."""
        rows = self._best_rows()
        hidden = {"half_width", "nats", "asymptotic_nats"}
        if not any(row.get("rerun", 1) > 1 for row in rows):
            hidden.add("rerun")
        names = [name for name in dict.fromkeys(chain(*rows)) if name not in hidden]
        return names, [list(_cells(row, names)) for row in rows]

    def _repr_html_(self) -> str:
        names, rows = self._table()
        head = "".join(f"<th>{html.escape(name)}</th>" for name in names)
        lines = ("".join(f"<td>{html.escape(cell)}</td>" for cell in row) for row in rows)
        body = "".join(f"<tr>{line}</tr>" for line in lines)
        return (
            f"<p>{html.escape(str(self))}</p>{self._picture()}"
            f'<div style="overflow-x: auto"><table><thead><tr>{head}</tr></thead>'
            f"<tbody>{body}</tbody></table></div>"
            f"<p><small>{html.escape(self.guarantee)}</small></p>"
        )

    def _picture(self) -> str:
        """The picture as an image within the page; nothing where matplotlib is missing."""
        try:
            figure = self.plot()
        except ModuleNotFoundError:
            return ""
        png = io.BytesIO()
        figure.savefig(png, format="png")
        data = base64.b64encode(png.getvalue()).decode()
        text = html.escape(f"Scores of {self.n_models:,} models with their intervals", quote=True)
        style = "max-width: 100%; height: auto"
        return f'<img width="720" style="{style}" alt="{text}" src="data:image/png;base64,{data}">'


class SearchReport(BaseReport):
    """What the reports of searches share: answers, and the gain over a baseline."""

    answers: DeclaredSearchAnswers | ConfirmedAnswers
    _in_json: ClassVar[tuple[str, ...]]  # fields that `as_json` has beside the best answer

    @property
    def best(self) -> Any:
        return self.answers.best

    def as_json(self) -> dict[str, Any]:
        """Return what `to_json` prints but for the answers, keys as they are."""
        fields = {name: getattr(self, name) for name in self._in_json}
        fields |= {"best": released(self.best.to_dict()), "sentence": str(self)}
        return fields | {"guarantee": self.guarantee}

    def ranking(self, n: int | None = None) -> list[Any]:
        """The n best models, the best first, by the limit that counts: `low` or `high`."""
        order = np.argsort(self.answers.ranks, kind="stable")[:n]
        return [self.answers[row] for row in order.tolist()]

    def to_frame(self) -> pandas.DataFrame:
        """All answers, one row a model in the order of the queries.

        A column for each field of an answer, and ``param_*`` for each parameter where keys are
        mappings; else ``key``, or the finalists' ``name``.  ModuleNotFoundError without pandas, the
        extra ``pandas``.
        """
        with needs("pandas"):
            import pandas

        columns = self.answers.to_dict()
        keys = columns.get("key", [None])
        if all(isinstance(key, dict) for key in keys):
            del columns["key"]
            for name in dict.fromkeys(name for key in keys for name in key):
                columns[f"param_{name}"] = [key.get(name) for key in keys]
        return pandas.DataFrame(columns)

    def to_json(self) -> str:
        """All of the report, with every answer under "answers"; keys as they are, or as text."""
        answers = [released(answer.to_dict()) for answer in self.answers]
        return self._as_text(self.as_json() | {"answers": answers})

    def _best_rows(self) -> list[dict[str, Any]]:
        return [answer.to_dict() for answer in self.ranking(SHOWN)]

    def _compared(self, answer: Any, two_sided: bool, fixed: str) -> str:
        """The sentence on the gain of an answer over the baseline, in the direction that it has."""
        gain, low, high = answer.gain, answer.gain_low, answer.gain_high
        counts, is_worse = self.metric in COUNTED, gain < 0
        says, other = ("less often", "more often") if counts else ("lower", "higher")
        if is_worse:
            says, other = other, says
            gain, low, high = -gain, -high, -low
        score, place = scored(gain, *_known_sides(low, high, two_sided, is_worse))
        place = f"by {place}"
        if not two_sided and not is_worse and low < 0:
            place = f"{other} by at most {outward(-low, 1, _digits(gain, low))}"
        how = f"It errs {says} than the baseline"
        if not counts:
            how = f"Its mean loss is {says} than that of the baseline"
        return f"{how} by {score}, and in the population {place}, if the baseline was {fixed}."


@dataclass(frozen=True)
class Report(SearchReport):
    """The result of a `DeclaredSearch` so far, which `DeclaredSearch.report` returns.

    ``str(report)`` is one sentence to paste, or two with a baseline.  A notebook shows the
    picture and the ten best models too.

    Attributes
    ----------
    metric : str
        A name in `radabound_fast.metrics.METRICS`, or "mean loss".
    n_samples : int
        m, the size of the holdout.
    n_models : int
        Different models that were queried; of a search with `n_best` all queries.
    n_queries : int or None
        Queries, those of a model that was queried before counted too; None: nobody counted.
    space_size : int or None
        N, how many configurations were declared; None: without end, or unknown.
    delta, guarantee : float, str
        As of the search.
    best : DeclaredSearchAnswer
    answers : DeclaredSearchAnswers
        As of the search: all, in the order in which they were first queried; with `n_best` the
        best.
    baseline : float or None
        The metric of the baseline, if there is one.
    n_folds : int or None
        Of the cross-validation, if it was one.
    name_of_best : str or None
        What the sentence calls the best model; None: by its key.
    """

    metric: str
    n_samples: int
    n_models: int
    n_queries: int | None
    space_size: int | None
    delta: float
    guarantee: str
    answers: DeclaredSearchAnswers
    baseline: float | None
    n_folds: int | None
    name_of_best: str | None
    _in_json = (
        *("metric", "n_samples", "n_models", "n_queries", "space_size", "delta", "n_folds"),
        "baseline",
    )

    @property
    def best(self) -> DeclaredSearchAnswer:
        return self.answers.best

    def __str__(self) -> str:
        best, folds = self.best, ""
        if self.n_folds is not None:
            folds = (
                f" for its {self.n_folds} fold models on average (a refitted model is another one)"
            )
        size = "" if self.space_size is None else f" of {self.space_size:,} configurations"
        used, first = "its scores", f"its space{size} was declared before them"
        if self._shows is not None:
            used, first = f"what it was shown, {self._shows}", "it saw nothing else of these rows"
        unseen = "no model was trained on these rows"
        if self.n_folds is not None:
            unseen = "each fold's rows were judged by a model that was trained without them"
        terms = self.answers.terms
        is_loss = not terms.measure.greater_is_better
        score, place = scored(
            best.value, *_known_sides(best.low, best.high, terms.two_sided, is_loss)
        )
        rounded = ""
        if terms.measure.rounded is not None:
            rounded = f" (rounded to multiples of {terms.measure.rounded.step:g})"
        text = sentence(
            f"The best of {self._models} is {self._called}",
            f"{self.metric} {score}{rounded} {self._rows}",
            f"{place} {terms.measure.where}{folds}",
            self.delta,
            f"however the search used {used}, if {first} and {unseen} "
            "(radabound_fast.DeclaredSearch)",
        )
        if self.baseline is None:
            return text
        fixed = "fixed before any holdout score was seen"
        return f"{text} {self._compared(best, terms.two_sided, fixed)}"

    @property
    def _called(self) -> str:
        """What the best model is called."""
        if self.name_of_best is not None:
            return self.name_of_best
        best = self.best
        if self._shows is not None:  # the key is all that was shown before
            called = f"number {best.number}"
        elif isinstance(best.key, Mapping):
            called = shown_key(best.key)
        else:
            called = f"key {shown_key(best.key)}"
        return f"{called}, training {best.rerun}" if best.rerun > 1 else called

    @property
    def _models(self) -> str:
        """How many models, and in how many queries where these are more."""
        if self.n_queries == self.n_models or self.n_models == 1:
            models = counted(self.n_models, "model")
        else:
            models = f"{self.n_models:,} different models"
        known = self.n_queries not in (None, self.n_models)
        return f"{models} ({self.n_queries:,} queries)" if known else models

    @property
    def _shows(self) -> str | None:
        """All that the search sees of the holdout, where its keys are that."""
        return self.answers.terms.space.shows

    @property
    def _rows(self) -> str:
        weighted = " with weights or groups" if self.answers.terms.measure.is_weighted else ""
        if self.n_folds is None:
            return f"on {counted(self.n_samples, 'held-out row')}{weighted}"
        rows = f"{counted(self.n_samples, 'row')}{weighted}"
        return f"in {self.n_folds}-fold cross-validation on {rows}"

    def plot(self) -> Figure:
        """All scores in order with their intervals, the best so far, and the baseline.

        ModuleNotFoundError without matplotlib, the extra ``plot``.
        """
        from radabound_fast.plots import report_figure

        answers, terms = self.answers, self.answers.terms
        # a side that has no limit has nothing to show
        greater, one_sided = terms.measure.greater_is_better, not terms.two_sided
        lows = answers.values if one_sided and not greater else answers.lows
        highs = answers.values if one_sided and greater else answers.highs
        used = "the scores" if self._shows is None else "what it was shown"
        whose = "" if self.n_folds is None else " of the fold models"
        return report_figure(
            answers.values,
            lows,
            highs,
            _best_so_far(answers),
            numbers=answers.numbers if len(answers) < self.n_models else None,
            baseline=self.baseline,
            metric=self.metric,
            title=f"{self._models} {self._rows}",
            subtitle=f"Every interval{whose} holds, with probability {certainty(self.delta)}, "
            f"however the search used {used}",
        )


def page(title: str, body: str) -> str:
    """A page of HTML of its own."""
    return _PAGE.format(title=html.escape(title), body=body)


def sentence(choice: str, score: str, place: str, delta: float, provided: str) -> str:
    """The sentence on the model that some guard's user chose among many.

    `choice` says which, `score` is on the holdout, `place` in the population, with probability
    ``1 - delta``, under the condition `provided`.
    """
    return f"{choice}: {score}, and {place}, with probability {certainty(delta)}, {provided}."


def _known_sides(
    low: float, high: float, two_sided: bool, upper: bool
) -> tuple[float | None, float | None]:
    """Limits; of one side alone the upper or the lower one, and None."""
    if two_sided:
        return low, high
    return (None, high) if upper else (low, None)


def scored(value: float, low: float | None, high: float | None) -> tuple[str, str]:
    """A number, and where its truth is: limits rounded outward, None where there is none."""
    digits = _digits(value, *(limit for limit in (low, high) if limit is not None))
    least = "" if low is None else outward(low, -1, digits)
    most = "" if high is None else outward(high, 1, digits)
    place = f"between {least} and {most}"
    if high is None:
        place = f"at least {least}"
    elif low is None:
        place = f"at most {most}"
    return shown(value, digits), place


def _digits(value: float, *limits: float) -> int:
    """Decimals that tell a number from its limits: 4, of large ones 2, or more."""
    width = max(abs(value - limit) for limit in limits)
    needed = 1 - math.floor(math.log10(width)) if width > 0.0 else 0
    usual = 4 if max(map(abs, (value, *limits))) < 10 else 2
    return min(max(usual, needed), 30)


def shown(number: float, digits: int) -> str:
    """A number for people; nothing is less than zero by a sign alone."""
    return f"{number:z,.{digits}f}"


def outward(limit: float, side: int, digits: int) -> str:
    """A limit, rounded away from the middle: -1 down, 1 up."""
    ten = 10**digits
    return shown(side * math.ceil(side * limit * ten - 1e-9) / ten, digits)


def _cells(row: dict[str, Any], names: list[str]) -> Iterator[str]:
    """What a table has of an answer."""
    usual = _digits(row["value"], row["value"] + row["half_width"])
    gains = _digits(row["gain"], row["gain_low"]) if "gain" in row else usual
    for name in names:
        value = row.get(name)
        if name == "key":
            yield shown_key(value)
        elif isinstance(value, float):
            limit = name.removeprefix("asymptotic_").removeprefix("gain_")
            side = {"low": -1, "high": 1}.get(limit)
            digits = gains if "gain" in name else usual
            if math.isnan(value):  # which was not released
                yield ""
            elif side is None or math.isinf(value):
                yield shown(value, digits)
            else:
                yield outward(value, side, digits)
        elif isinstance(value, bool) or value is None:
            yield {True: "yes", False: "no", None: ""}[value]
        else:
            yield f"{value:,}" if isinstance(value, int) else value


def _in_markdown(text: str) -> str:
    """Text that is neither HTML nor the end of a cell."""
    return html.escape(" ".join(text.split()), quote=False).replace("|", "&#124;")


def released(fields: dict[str, Any]) -> dict[str, Any]:
    """Fields of an answer for JSON, which has no nan: None where a number was not released."""
    return {name: None if value != value else value for name, value in fields.items()}


def plain(value: Any) -> Any:
    """What JSON has no word for: NumPy's numbers as numbers, all else as text."""
    return value.item() if isinstance(value, np.generic) else str(value)


def _best_so_far(answers: DeclaredSearchAnswers) -> NDArray[np.int64]:
    """The place of the best answer among the first, for each number of them; first of equals."""
    lowest = np.minimum.accumulate(answers.ranks)
    is_new = np.append(True, lowest[1:] < lowest[:-1])
    return np.maximum.accumulate(np.where(is_new, np.arange(len(lowest)), 0))
