"""The state of a guard, as far as its viewer may know it: the owner all, a team its own answers.

Neither R~ nor delta' goes to a team: both reveal more than the answers do (SECURITY.md).
"""

from __future__ import annotations

import contextlib
import json
import math
import time
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from radabound_fast import __version__
from radabound_fast._checks import counted
from radabound_fast.bounds.guarantees import complexity_part
from radabound_fast.guards.confirmed.answers import ConfirmedAnswer
from radabound_fast.guards.report import SearchReport, plain, released
from radabound_fast.service.tokens import Team
from radabound_fast.service.wire import FORMS
from radabound_fast.store.served import SECONDS_A_DAY, Asker, Log, Served

_T = TypeVar("_T")

_MOST_SHOWN = 400  # answers on the page
_NOTHING = Asker(0, 0, 0)


def team_state(guard: Any, team: Team, log: Log) -> dict[str, Any]:
    """The reply to `GET /state`."""
    holdout = guard.holdout
    askers = log.askers(int(time.time()) // SECONDS_A_DAY)
    mine = askers.get(team.name, _NOTHING)
    fields: dict[str, Any] = {
        "you": {
            "name": team.name, "n_calls": mine.n_calls, "n_answers": mine.n_answers,
            "n_answers_today": mine.n_today, "limit_a_day": team.a_day,
            "until": None if team.until is None else team.until.isoformat(),
            "keys": None if team.part is None else team.part.text,
        },
        "guard": guard.kind,
        "parameters": guard.parameters,
        "n_samples": holdout.n_samples,
        "classes": holdout.classes,
        "metric": holdout.metric,
        "pos_label": holdout.pos_label,
        "takes": holdout.takes,
        "greater_is_better": holdout.greater_is_better,
        "needs": guard.needs,
        "forms": list(FORMS),
        "halted": bool(guard.halted),
        "can_answer": bool(guard.can_answer),
        "n_answered": int(guard.n_answered),
        "n_left": guard.n_left_public(),
        "guarantee": guard.guarantee,
    }  # fmt: skip
    if team.is_owner:
        fields["teams"] = {name: asker._asdict() for name, asker in askers.items()}
        fields |= guard.owner_facts()
    return fields


def report_fields(report: SearchReport) -> dict[str, Any]:
    """The reply to `GET /report`."""
    fields = {"version": __version__} | report.as_json()
    fields["ranking"] = [released(answer.to_dict()) for answer in report.ranking(10)]
    plain_fields: dict[str, Any] = json.loads(json.dumps(fields, default=plain))
    return plain_fields | {"html": report._repr_html_()}


# ---- the page ----------------------------------------------------------------------------------


class Point(NamedTuple):
    """An answer on the page; a limit is nan where the guard has none."""

    number: int
    value: float
    low: float
    high: float
    team: str
    second: int
    key: Any


class TeamVerdict(NamedTuple):
    """A verdict on the page."""

    number: int
    verdict: str
    compared_with: int | None
    team: str
    second: int


class PageContent(NamedTuple):
    """Content of the page: points where scores are told, else verdicts."""

    kind: str
    metric: str
    n_samples: int
    halted: bool
    n_answered: int
    left: list[tuple[str, str, float | None]]  # title, text, share of all
    points: list[Point]
    verdicts: list[TeamVerdict]
    askers: dict[str, Asker]
    parameters: dict[str, Any]
    guarantee: str
    finalists: list[ConfirmedAnswer]


def page_content(guard: Any, team: Team, log: Log) -> PageContent:
    """Content of the page for a team."""
    holdout = guard.holdout
    askers = log.askers(int(time.time()) // SECONDS_A_DAY)
    if not team.is_owner:
        askers = {team.name: askers.get(team.name, _NOTHING)}
    whose = None if team.is_owner else team.name
    tells_scores = guard.tells == "scores"
    return PageContent(
        guard.kind,
        holdout.metric,
        holdout.n_samples,
        bool(guard.halted),
        int(guard.n_answered),
        _remaining(guard, team),
        _last(log, whose, _points) if tells_scores else [],
        [] if tells_scores else _last(log, whose, _verdicts),
        askers,
        guard.parameters,
        guard.guarantee,
        guard.report().ranking() if guard.of_teams and guard.halted else [],
    )


def _last(log: Log, team: str | None, read: Callable[[Served], list[_T]]) -> list[_T]:
    """The last answers, from as few calls as have them: a call may have 100,000."""
    blocks: list[list[_T]] = []
    n_answers = 0
    with contextlib.closing(log.last(team)) as calls:
        for call in calls:
            blocks.append(read(call))
            n_answers += len(blocks[-1])
            if n_answers >= _MOST_SHOWN:
                break
    return [answer for block in reversed(blocks) for answer in block][-_MOST_SHOWN:]


def _verdicts(call: Served) -> list[TeamVerdict]:
    fields = json.loads(call.reply)
    return [
        TeamVerdict(one["number"], one["verdict"], one["compared_with"], call.team, call.second)
        for one in fields.get("verdicts", [fields])
    ]


def _points(call: Served) -> list[Point]:
    fields = json.loads(call.reply)
    if "values" not in fields:
        fields = {f"{name}s": [value] for name, value in fields.items()}
    keys = fields.get("keys") or [None] * len(fields["values"])
    return [
        Point(number, _float(value), _float(low), _float(high), call.team, call.second, key)
        for number, value, low, high, key in zip(
            fields["numbers"],
            fields["values"],
            fields["lows"],
            fields["highs"],
            keys,
            strict=False,
        )
    ]


def _float(value: float | None) -> float:
    return math.nan if value is None else value


def _remaining(guard: Any, team: Team) -> list[tuple[str, str, float | None]]:
    items: list[tuple[str, str, float | None]] = [("Left", *guard.outlook())]
    facts = guard.owner_facts() if team.is_owner and not guard.halted else {}
    if facts.get("budget", 0.0) > 0:
        complexity, budget = facts["complexity"], facts["budget"]
        text = complexity_part(complexity, budget).removeprefix("complexity ")
        items.append(("Complexity", text, max(0.0, 1.0 - complexity / budget)))
    if team.a_day is not None and not guard.halted:
        items.append(("Your limit", f"{counted(team.a_day, 'answer')} a day (UTC)", None))
    return items
