"""The page: the best so far, what is left, what to do now, scores with intervals; no script.

A guard and its log are read in one go (`page_content`); templates, which escape all that they are
given, make the text of that in any thread (`page`).
"""

from __future__ import annotations

import contextlib
import json
import math
import time
from collections.abc import Callable
from itertools import count, takewhile
from typing import Any, NamedTuple, TypeVar

from radabound_fast._checks import counted
from radabound_fast._extras import needs
from radabound_fast.bounds.bound import complexity_part
from radabound_fast.guards.confirmed.answers import ConfirmedAnswer
from radabound_fast.guards.report import outward, scored, shown
from radabound_fast.service.state import NOTHING
from radabound_fast.service.tokens import Team
from radabound_fast.service.wire import answers_in
from radabound_fast.spaces.messages import shown_key
from radabound_fast.store.served import SECONDS_A_DAY, Asker, Best, Log, Served

with needs("serve"):
    from jinja2 import Environment, PackageLoader, StrictUndefined

_T = TypeVar("_T")

_MOST_READ = 400  # answers
_LAST = 15  # answers in the table
_COLOURS = 6  # of teams; the others are grey
# width, height, and how many answers, of the pictures for two kinds of screens
_PICTURES = {"wide": (880, 320, 240), "narrow": (360, 280, 60)}
_RESTS = " (see What holds)"
# of a picture: room at its sides, in pixels, and how many points are many, which are small
_LEFT, _RIGHT, _TOP, _BOTTOM = 54, 10, 28, 44
_MANY = 100


class Point(NamedTuple):
    """An answer on the page; a limit is nan where the guard has none."""

    number: int
    value: float
    low: float
    high: float
    team: str
    second: int
    key: Any

    @property
    def has_limits(self) -> bool:
        return math.isfinite(self.low) and math.isfinite(self.high)


class Fact(NamedTuple):
    """What stands in a box: a title and a text, and which share is left of all there was."""

    title: str
    text: str
    share: float | None = None


class Headline(NamedTuple):
    """What stands on top: the best answer, or what is in production."""

    title: str
    score: str
    place: str
    model: str


def page_content(guard: Any, team: Team, log: Log) -> dict[str, Any]:
    """What the templates show to a team, by name."""
    holdout, whose = guard.holdout, None if team.is_owner else team.name
    askers = log.askers(int(time.time()) // SECONDS_A_DAY)
    if not team.is_owner:
        askers = {team.name: askers.get(team.name, NOTHING)}
    tells_scores, best = guard.tells == "scores", log.best(whose)
    points = _last(log, whose, _points) if tells_scores else []
    verdicts = [] if tells_scores else _last(log, whose, _verdicts)
    finalists = guard.report().ranking() if guard.of_teams and guard.halted else []
    if not tells_scores:
        headline = _in_production(guard)
    elif finalists:
        headline = _best_finalist(finalists[0])
    else:
        headline = None if best is None else _best_answer(best, team, guard.of_teams)
    return {
        "team": team,
        "kind": guard.kind,
        "metric": holdout.metric,
        "better": "higher" if holdout.greater_is_better else "lower",
        "n_samples": holdout.n_samples,
        "state": "confirmed" if finalists else "halted" if guard.halted else "answering",
        "what_now": guard.what_now(),
        "headline": headline,
        "facts": _facts(guard, team, askers),
        "tells_scores": tells_scores,
        "points": points,
        "has_keys": any(point.key is not None for point in points),
        "has_limits": any(point.has_limits for point in points),
        "last_points": points[: -_LAST - 1 : -1],
        "last_verdicts": verdicts[: -_LAST - 1 : -1],
        "best": None if best is None else json.loads(best.answer)["number"],
        "n_answers": guard.n_answered if team.is_owner else askers[team.name].n_answers,
        "askers": askers,
        "colours": {name: n if n < _COLOURS else "x" for n, name in enumerate(askers)},
        "parameters": _parameters(guard.parameters),
        "guarantee": guard.guarantee,
        "finalists": finalists,
    }


def page(content: dict[str, Any]) -> str:
    """HTML of the page with this content."""
    pictures = [
        Picture(kind, content["points"][-most:], width, height)
        for kind, (width, height, most) in _PICTURES.items()
        if content["points"]
    ]
    return _PAGE.render(content, pictures=pictures)


def _best_answer(best: Best, team: Team, of_search_rows: bool) -> Headline:
    fields = json.loads(best.answer)
    value, low, high = (_float(fields[name]) for name in ("value", "low", "high"))
    title = "Best so far"
    if math.isfinite(low) and math.isfinite(high):
        score, place = scored(value, low, high)
        place = f"in the population {place}{_RESTS}"
    else:
        score, place = _score(value), "no interval is known"
        if of_search_rows:
            title = "Best score so far, on the search rows"
            place = "no interval: finalists are confirmed at the end, on rows kept for it"
    model = f"answer {fields['number']:,}"
    if "key" in fields:
        model = f"{shown_key(fields['key'])}, {model}"
    if team.is_owner:
        model += f", asked by {best.team}"
    return Headline(title, score, place, f"{model}, {_when(best.second)} UTC")


def _best_finalist(answer: ConfirmedAnswer) -> Headline:
    score, place = scored(answer.value, answer.low, answer.high)
    place = f"in the population {place}{_RESTS}"
    return Headline("Best finalist, confirmed", score, place, answer.name)


def _in_production(guard: Any) -> Headline | None:
    number = guard.in_production
    if number is None:
        return None
    what = f"candidate {number:,}" if number else "the baseline"
    passes = f"{counted(guard.n_passes, 'pass', 'passes')} so far"
    return Headline("In production", what, "Candidates are compared with it.", passes)


def _facts(guard: Any, team: Team, askers: dict[str, Asker]) -> list[Fact]:
    facts = [Fact("Left", *guard.outlook()), Fact("Answers given", f"{guard.n_answered:,}")]
    numbers = guard.owner_facts() if team.is_owner and not guard.halted else {}
    if numbers.get("budget", 0.0) > 0:
        complexity, budget = numbers["complexity"], numbers["budget"]
        text = complexity_part(complexity, budget).removeprefix("complexity ")
        facts.append(Fact("Complexity", text, max(0.0, 1.0 - complexity / budget)))
    if guard.can_answer and team.a_day is not None:
        left = max(team.a_day - askers[team.name].n_today, 0)
        text = f"{left:,} of {counted(team.a_day, 'answer')}, until 00:00 UTC"
        facts.append(Fact("Left to you today", text, left / team.a_day if team.a_day else 0.0))
    if guard.can_answer and team.until is not None:
        facts.append(Fact("Your queries end", f"{team.until:%Y-%m-%d, %H:%M %Z}"))
    return facts


def _parameters(parameters: dict[str, Any]) -> str:
    shown = {
        name: f"multiples of {value['step']}" if name == "release" and "step" in value else value
        for name, value in parameters.items()
        if value not in (None, []) and name not in ("n_samples", "space")
    }
    return ", ".join(f"{name} = {value}" for name, value in shown.items())


def _last(log: Log, team: str | None, read: Callable[[Served], list[_T]]) -> list[_T]:
    """The last answers, from as few calls as have them: a call may have 20,000."""
    blocks: list[list[_T]] = []
    n_answers = 0
    with contextlib.closing(log.last(team)) as calls:
        for call in calls:
            blocks.append(read(call))
            n_answers += len(blocks[-1])
            if n_answers >= _MOST_READ:
                break
    return [answer for block in reversed(blocks) for answer in block][-_MOST_READ:]


def _verdicts(call: Served) -> list[dict[str, Any]]:
    fields = json.loads(call.reply)
    beside = {"team": call.team, "second": call.second}
    return [one | beside for one in fields.get("verdicts", [fields])]


def _points(call: Served) -> list[Point]:
    columns = answers_in(json.loads(call.reply))
    keys = columns.get("key") or [None] * len(columns["number"])
    scores = (columns[name] for name in ("value", "low", "high"))
    return [
        Point(number, _float(value), _float(low), _float(high), call.team, call.second, key)
        for number, value, low, high, key in zip(columns["number"], *scores, keys, strict=True)
    ]


def _float(value: float | None) -> float:
    return math.nan if value is None else value


class Picture:
    """A plot of values against the numbers of the answers, at least one, in pixels.

    `kind` is that of a screen, "wide" or "narrow"; `text` is for those who do not see the plot.
    """

    def __init__(self, kind: str, points: list[Point], width: int, height: int) -> None:
        self.kind, self.points, self.width, self.height = kind, points, width, height
        self.left, self.right = _LEFT, width - _RIGHT
        self.radius = 3 if len(points) < _MANY else 2
        ends = [end for point in points for end in (point.value, point.low, point.high)]
        ends = [end for end in ends if math.isfinite(end)]
        room = 0.06 * (max(ends) - min(ends)) or 0.01
        self._least, self._largest = min(ends) - room, max(ends) + room
        self._first, self._last = points[0].number, points[-1].number
        self.text = (
            f"{counted(len(points), 'score')} with intervals, from {self._least:.3f} to "
            f"{self._largest:.3f}"
        )

    def x(self, number: float) -> float:
        """Where an answer is, by its number."""
        first, last = self._first, self._last
        share = 0.5 if last == first else (number - first) / (last - first)
        return _LEFT + 8 + share * (self.width - _LEFT - _RIGHT - 16)

    def y(self, value: float) -> float:
        """Where a value is."""
        share = (self._largest - value) / (self._largest - self._least)
        return _TOP + share * (self.height - _TOP - _BOTTOM)

    @property
    def rows(self) -> list[tuple[float, str]]:
        """The lines of the grid, at three to seven round values: y and text."""
        rough = (self._largest - self._least) / 6
        power = math.floor(math.log10(rough))
        step = next(one for one in (1, 2, 5, 10) if one * 10.0**power >= rough) * 10.0**power
        values = (n * step for n in count(math.ceil(self._least / step)))
        digits = max(0, -math.floor(math.log10(step) + 1e-9))
        inside = takewhile(lambda value: value <= self._largest, values)
        return [(self.y(value), f"{value:.{digits}f}") for value in inside]

    @property
    def columns(self) -> list[tuple[float, str]]:
        """The numbers below the plot: x and text."""
        numbers = sorted({self._first, (self._first + self._last) // 2, self._last})
        return [(self.x(number), f"{number:,}") for number in numbers]


def _score(value: float | None, side: int = 0) -> str:
    """A number for people; a limit is rounded outward: -1 down, 1 up."""
    if value is None or not math.isfinite(value):
        return "–"
    digits = 4 if abs(value) < 10 else 2
    return outward(value, side, digits) if side else shown(value, digits)


def _when(second: int) -> str:
    return time.strftime("%b %d, %H:%M:%S", time.gmtime(second))


_TEMPLATES = Environment(
    loader=PackageLoader("radabound_fast.service"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_TEMPLATES.filters |= {
    "score": _score, "when": _when, "key": shown_key, "counted": counted,
    "number": "{:,}".format, "pixels": "{:.1f}".format,
}  # fmt: skip
_PAGE = _TEMPLATES.get_template("page.html")
