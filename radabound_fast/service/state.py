"""The state of a holdout, as far as its viewer may know it: the owner all, a team its own answers.

Neither R~ nor delta' goes to a team: both reveal more than the answers do (SECURITY.md).
"""

from __future__ import annotations

import contextlib
import json
import math
import time
from typing import Any, NamedTuple

from radabound_fast._checks import counted
from radabound_fast.guards.declared_search import DeclaredSearch, DeclaredSearchAnswers
from radabound_fast.guards.fixed_sequence import FixedSequence
from radabound_fast.guards.guess_and_check import GuessAndCheck
from radabound_fast.guards.ladder import Ladder
from radabound_fast.guards.radabound import RadaBound
from radabound_fast.guards.report import Report, plain
from radabound_fast.holdout import Holdout
from radabound_fast.integrations._owner import needs_guess, takes_keys
from radabound_fast.metrics import METRICS
from radabound_fast.service.tokens import Team
from radabound_fast.service.wire import FORMS
from radabound_fast.store.served import SECONDS_A_DAY, Asker, Log, Served

_MOST_SHOWN = 400  # answers on the page
_NOTHING = Asker(0, 0, 0)
# parameters that no reply has; a metric is stored with how many labels each class has
_SECRET = ("seed", "signs", "weighting", "metric")


def team_state(holdout: Holdout, team: Team, log: Log) -> dict[str, Any]:
    """The reply to `GET /state`."""
    guard = holdout.guard
    askers = log.askers(int(time.time()) // SECONDS_A_DAY)
    mine = askers.get(team.name, _NOTHING)
    fields: dict[str, Any] = {
        "you": {
            "name": team.name, "n_calls": mine.n_calls, "n_answers": mine.n_answers,
            "n_answers_today": mine.n_today, "limit_a_day": team.a_day,
        },
        "mechanism": type(guard).__name__,
        "parameters": _parameters(guard),
        "n_samples": holdout.n_samples,
        "classes": holdout.classes,
        "metric": holdout.metric,
        "pos_label": holdout.pos_label,
        "takes": METRICS[holdout.metric].takes,
        "takes_keys": takes_keys(holdout),
        "needs_guess": needs_guess(holdout),
        "forms": list(FORMS),
        "halted": bool(holdout.halted),
        "n_queries": int(holdout.n_queries),
        "n_left": _n_left(guard),
        "guarantee": holdout.guard.guarantee,
    }  # fmt: skip
    if team.is_owner:
        fields["teams"] = {name: asker._asdict() for name, asker in askers.items()}
        if isinstance(guard, RadaBound):
            fields |= {"complexity": guard.complexity, "budget": guard.budget}
    return fields


def _parameters(guard: Any) -> dict[str, Any]:
    return {name: value for name, value in guard._parameters().items() if name not in _SECRET}


def _n_left(guard: Any) -> int | None:
    """Answers that are left for certain, as far as the answers so far reveal; None: no limit."""
    if guard.halted:
        return 0
    if isinstance(guard, RadaBound):
        # without what depends on R~
        return guard._rule.free_left(guard.n_queries, None, True)
    if isinstance(guard, Ladder) and guard.max_queries is not None:
        return guard.max_queries - guard.n_queries
    if isinstance(guard, FixedSequence):
        with contextlib.suppress(ValueError):  # of another metric nobody knows
            return guard.n_left(declared=True)
    return 0 if isinstance(guard, GuessAndCheck | FixedSequence) else None


# ---- the report of a search ------------------------------------------------------------------


def report_and_replies(holdout: Holdout, team: Team, log: Log) -> tuple[Report, list[str] | None]:
    """The report on all answers, and the replies to the team, or None for the owner.

    Raises
    ------
    TypeError, ValueError
        The guard stores no scores, or has answered nothing yet.
    """
    report = holdout.report()
    return report, None if team.is_owner else [call.reply for call in log.last(team.name)]


def team_report(holdout: Holdout, report: Report, replies: list[str] | None) -> dict[str, Any]:
    """The reply to `GET /report`, from what `report_and_replies` has read: for any thread.

    Raises
    ------
    ValueError
        The team has no answers yet.
    """
    if replies is not None:
        answers = _answers_in(replies, report.answers, holdout.guard)
        report = Report.of(holdout.guard, holdout.metric, answers)
    fields: dict[str, Any] = json.loads(report.to_json())
    best = [answer._asdict() for answer in report.ranking(10)]
    return fields | {
        "ranking": json.loads(json.dumps(best, default=plain)),
        "html": report._repr_html_(),
    }


def _answers_in(
    replies: list[str], answers: DeclaredSearchAnswers, search: DeclaredSearch
) -> DeclaredSearchAnswers:
    """The answers that some replies released."""
    released = set()
    for reply in replies:
        fields = json.loads(reply)
        keys = fields["keys"] if "keys" in fields else [fields["key"]]
        reruns = fields["reruns"] if "keys" in fields else [fields["rerun"]]
        for key, rerun in zip(keys, reruns, strict=True):
            released.add((search.space.find(key)[0], rerun))
    queries = zip(answers.codes, answers.reruns.tolist(), strict=True)
    return answers._some([row for row, query in enumerate(queries) if query in released])


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


class PageContent(NamedTuple):
    """Content of the page."""

    kind: str
    metric: str
    n_samples: int
    halted: bool
    n_queries: int
    left: list[tuple[str, str, float | None]]  # title, text, share of all
    points: list[Point]
    askers: dict[str, Asker]
    parameters: dict[str, Any]
    guarantee: str


def page_content(holdout: Holdout, team: Team, log: Log) -> PageContent:
    """Content of the page for a team."""
    guard = holdout.guard
    askers = log.askers(int(time.time()) // SECONDS_A_DAY)
    if not team.is_owner:
        askers = {team.name: askers.get(team.name, _NOTHING)}
    points = _last_points(log, None if team.is_owner else team.name)
    return PageContent(
        type(guard).__name__,
        holdout.metric,
        holdout.n_samples,
        bool(holdout.halted),
        int(holdout.n_queries),
        _remaining(guard, team),
        points,
        askers,
        _parameters(guard),
        guard.guarantee,
    )


def _last_points(log: Log, team: str | None) -> list[Point]:
    """The last answers, from as few calls as have them: a call may have 100,000."""
    blocks: list[list[Point]] = []
    n_points = 0
    with contextlib.closing(log.last(team)) as calls:
        for call in calls:
            blocks.append(_points(call))
            n_points += len(blocks[-1])
            if n_points >= _MOST_SHOWN:
                break
    return [point for block in reversed(blocks) for point in block][-_MOST_SHOWN:]


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
    items: list[tuple[str, str, float | None]] = []
    if guard.halted:
        return [("Left", "nothing: the next query is withheld, and so is every later one", 0.0)]
    left = _n_left(guard)
    if isinstance(guard, RadaBound):
        if guard.bound == "fixed-sequence":
            items.append(
                ("Left for certain", f"{counted(left or 0, 'answer')}, whatever is asked", None)
            )
        else:
            items.append(("Left", "as long as the queries are not too many and too complex", None))
        if team.is_owner and guard.budget > 0:
            share = guard.complexity / guard.budget
            items.append(
                ("Complexity", f"{guard.complexity:.4f} of {guard.budget:.4f} spent", 1.0 - share)
            )
    elif isinstance(guard, GuessAndCheck):
        n = guard.affordable()
        text = f"{counted(n, 'answer')}, if guesses are as the last one and pass"
        items.append(("Left", text, None))
    elif isinstance(guard, FixedSequence):
        items.append(("Left", f"as long as each is known to within {guard.epsilon:g}", None))
    elif isinstance(guard, DeclaredSearch):
        size = "no end" if guard.size is None else counted(guard.size, "configuration")
        items.append(("Left", f"a declared space never halts: {size}", None))
    elif left is not None:
        share = left / (left + guard.n_queries) if left + guard.n_queries else 0.0
        items.append(("Left", counted(left, "answer"), share))
    else:
        items.append(("Left", "no limit; intervals widen slowly", None))
    if team.a_day is not None:
        items.append(("Your limit", f"{counted(team.a_day, 'answer')} a day (UTC)", None))
    return items
