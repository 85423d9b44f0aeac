"""The state of a guard, as far as its viewer may know it: the owner all, a team its own answers.

Neither R~ nor delta' goes to a team: both reveal more than the answers do (SECURITY.md).
"""

from __future__ import annotations

import json
import time
from typing import Any

from radabound_fast import __version__
from radabound_fast.guards.report import SearchReport, plain, released
from radabound_fast.service.tokens import Team
from radabound_fast.service.wire import FORMS
from radabound_fast.store.served import SECONDS_A_DAY, Asker, Log

NOTHING = Asker(0, 0, 0)


def team_state(guard: Any, team: Team, log: Log) -> dict[str, Any]:
    """The reply to `GET /state`."""
    holdout = guard.holdout
    askers = log.askers(int(time.time()) // SECONDS_A_DAY)
    mine = askers.get(team.name, NOTHING)
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
