"""What may be told of a holdout: to the owner everything, to a team what is its own.

Neither R~ nor delta' goes to a team: both tell more than the answers do (SECURITY.md).
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
from radabound_fast.metrics import METRICS
from radabound_fast.service.tokens import Team
from radabound_fast.service.wire import FORMS
from radabound_fast.store.served import SECONDS_A_DAY, Asker, Log, Served

_MOST_SHOWN = 400  # answers on the page
_NOTHING = Asker(0, 0, 0)
# parameters that nobody is told; a metric is stored with how many labels each class has
_SECRET = ("seed", "signs", "weighting", "metric")


def of(holdout: Holdout, team: Team, log: Log) -> dict[str, Any]:
    """What `GET /state` tells."""
    guard = holdout.guard
    askers = log.askers(int(time.time()) // SECONDS_A_DAY)
    mine = askers.get(team.name, _NOTHING)
    told: dict[str, Any] = {
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
        "takes_keys": guard.needs == "key",
        "needs_guess": guard.needs == "guess",
        "forms": list(FORMS),
        "halted": bool(holdout.halted),
        "n_queries": int(holdout.n_queries),
        "n_left": _n_left(guard),
        "guarantee": holdout.guard.guarantee,
    }  # fmt: skip
    if team.is_owner:
        told["teams"] = {name: asker._asdict() for name, asker in askers.items()}
        if isinstance(guard, RadaBound):
            told |= {"complexity": guard.complexity, "budget": guard.budget}
    return told


def _parameters(guard: Any) -> dict[str, Any]:
    return {name: value for name, value in guard._parameters().items() if name not in _SECRET}


def _n_left(guard: Any) -> int | None:
    """Answers that are left for certain, as far as the answers so far tell; None: no limit."""
    if guard.halted:
        return 0
    if isinstance(guard, RadaBound):
        # what rests on R~ is left out
        return guard._rule.free_left(guard.n_queries, None, True)
    if isinstance(guard, Ladder) and guard.max_queries is not None:
        return guard.max_queries - guard.n_queries
    if isinstance(guard, FixedSequence):
        with contextlib.suppress(ValueError):  # of another metric nobody knows
            return guard.n_left(declared=True)
    return 0 if isinstance(guard, GuessAndCheck | FixedSequence) else None


# ---- the report of a search ------------------------------------------------------------------


def asked_by(holdout: Holdout, team: Team, log: Log) -> tuple[Report, list[str] | None]:
    """The report of all that was asked, and the replies that a team got; None: it is the owner.

    Raises
    ------
    TypeError, ValueError
        The guard keeps no scores, or nothing was asked yet.
    """
    made = holdout.report()
    return made, None if team.is_owner else [call.reply for call in log.last(team.name)]


def report_of(holdout: Holdout, made: Report, replies: list[str] | None) -> dict[str, Any]:
    """What `GET /report` tells of that, which is read by now: for any thread.

    Raises
    ------
    ValueError
        The team asked nothing yet.
    """
    if replies is not None:
        answers = _those_in(replies, made.answers, holdout.guard)
        made = Report.of(holdout.guard, holdout.metric, answers)
    told: dict[str, Any] = json.loads(made.to_json())
    best = [answer._asdict() for answer in made.ranking(10)]
    return told | {
        "ranking": json.loads(json.dumps(best, default=plain)),
        "html": made._repr_html_(),
    }


def _those_in(
    replies: list[str], answers: DeclaredSearchAnswers, search: DeclaredSearch
) -> DeclaredSearchAnswers:
    asked = set()
    for reply in replies:
        told = json.loads(reply)
        keys = told["keys"] if "keys" in told else [told["key"]]
        reruns = told["reruns"] if "keys" in told else [told["rerun"]]
        for key, rerun in zip(keys, reruns, strict=True):
            asked.add((search.space.find(key)[0], rerun))
    queries = zip(answers.codes, answers.reruns.tolist(), strict=True)
    return answers._some([row for row, query in enumerate(queries) if query in asked])


# ---- the page ----------------------------------------------------------------------------------


class Point(NamedTuple):
    """An answer on the page; a limit that there is none of is nan."""

    number: int
    value: float
    low: float
    high: float
    team: str
    second: int
    key: Any


class Shown(NamedTuple):
    """What the page shows."""

    kind: str
    metric: str
    n_samples: int
    halted: bool
    n_queries: int
    left: list[tuple[str, str, float | None]]  # what, how much, which share of all
    points: list[Point]
    askers: dict[str, Asker]
    parameters: dict[str, Any]
    guarantee: str


def shown(holdout: Holdout, team: Team, log: Log) -> Shown:
    """What the page shows to a team."""
    guard = holdout.guard
    askers = log.askers(int(time.time()) // SECONDS_A_DAY)
    if not team.is_owner:
        askers = {team.name: askers.get(team.name, _NOTHING)}
    points = _last_points(log, None if team.is_owner else team.name)
    return Shown(
        type(guard).__name__,
        holdout.metric,
        holdout.n_samples,
        bool(holdout.halted),
        int(holdout.n_queries),
        _left(guard, team),
        points,
        askers,
        _parameters(guard),
        guard.guarantee,
    )


def _last_points(log: Log, team: str | None) -> list[Point]:
    """The last answers; no more calls are read than have them, as a call may have 100,000."""
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
    told = json.loads(call.reply)
    if "values" not in told:
        told = {f"{name}s": [value] for name, value in told.items()}
    keys = told.get("keys") or [None] * len(told["values"])
    return [
        Point(number, _float(value), _float(low), _float(high), call.team, call.second, key)
        for number, value, low, high, key in zip(
            told["numbers"], told["values"], told["lows"], told["highs"], keys, strict=False
        )
    ]


def _float(value: float | None) -> float:
    return math.nan if value is None else value


def _left(guard: Any, team: Team) -> list[tuple[str, str, float | None]]:
    found: list[tuple[str, str, float | None]] = []
    if guard.halted:
        return [("Left", "nothing: the next query is withheld, and so is every later one", 0.0)]
    left = _n_left(guard)
    if isinstance(guard, RadaBound):
        if guard.bound == "fixed-sequence":
            found.append(
                ("Left for certain", f"{counted(left or 0, 'answer')}, whatever is asked", None)
            )
        else:
            found.append(("Left", "as long as the queries are not too many and too complex", None))
        if team.is_owner and guard.budget > 0:
            share = guard.complexity / guard.budget
            found.append(
                ("Complexity", f"{guard.complexity:.4f} of {guard.budget:.4f} spent", 1.0 - share)
            )
    elif isinstance(guard, GuessAndCheck):
        n = guard.affordable()
        text = f"{counted(n, 'answer')}, if guesses are as the last one and pass"
        found.append(("Left", text, None))
    elif isinstance(guard, FixedSequence):
        found.append(("Left", f"as long as each is known to within {guard.epsilon:g}", None))
    elif isinstance(guard, DeclaredSearch):
        size = "no end" if guard.size is None else counted(guard.size, "configuration")
        found.append(("Left", f"a declared space never halts: {size}", None))
    elif left is not None:
        share = left / (left + guard.n_queries) if left + guard.n_queries else 0.0
        found.append(("Left", counted(left, "answer"), share))
    else:
        found.append(("Left", "no limit; intervals widen slowly", None))
    if team.a_day is not None:
        found.append(("Your limit", f"{counted(team.a_day, 'answer')} a day (UTC)", None))
    return found
