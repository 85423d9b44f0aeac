"""Reports over HTTP: of a team's own answers, read in turns and read on."""

import json

import numpy as np
import pytest
from serving import in_thread, octets_of, serve
from support import at_once

from radabound_fast import DeclaredSearch, Holdout
from radabound_fast.service import reports
from radabound_fast.service.answering import Answering, Call
from radabound_fast.service.tokens import Team
from radabound_fast.service.wire import pack_body

M = 60
Y = np.arange(M) % 2
SPACE = {"depth": list(range(20)), "leaf": ["a", "b", None]}


def rows_of(rng, n):
    return Y ^ (rng.random((n, M)) < rng.random((n, 1)) / 2)


@pytest.mark.thorough
@pytest.mark.parametrize("metric", ["error", "f1"])
def test_a_teams_report_is_that_of_a_search_that_got_its_answers_alone(
    tmp_path, monkeypatch, metric
):
    """Whatever came twice, in one call or in several, alone or in a block, and from others."""
    monkeypatch.setattr(reports, "STEP_ANSWERS", 3)
    rng = np.random.default_rng(1)
    keys = [{"depth": depth, "leaf": leaf} for depth in range(20) for leaf in ("a", "b", None)]
    row_of = dict(enumerate(rows_of(rng, len(keys))))
    guard = DeclaredSearch.open(
        tmp_path / "g.db", Holdout(Y, metric=metric), SPACE, delta=0.1, durability="process"
    )
    alone = {team: DeclaredSearch(Holdout(Y, metric=metric), SPACE, delta=0.1)
             for team in ("red", "blue", "owner")}  # fmt: skip
    with in_thread(guard, tmp_path) as service:
        for _ in range(4):
            for team in ("red", "blue"):
                places = rng.integers(0, len(keys), 7).tolist()
                blocks = [places[:1], places[1:2], places[2:]]
                for block in blocks:
                    rows, asked = [row_of[place] for place in block], [keys[n] for n in block]
                    if len(block) == 1:
                        service.remote(team).query(rows[0], key=asked[0])
                    else:
                        service.remote(team).query_many(rows, keys=asked)
                    for search in (alone[team], alone["owner"]):
                        search.query_many(rows, keys=asked)
            for team, search in alone.items():
                found, expected = service.remote(team).report(), search.report()
                fields = json.loads(found.to_json())
                told = json.loads(expected.to_json()) | {"n_queries": None}
                told.pop("answers")
                told["sentence"] = fields["sentence"]  # which has queries where they are counted
                assert fields == told
                assert found.ranking() == json.loads(
                    json.dumps([answer.to_dict() for answer in expected.ranking(10)])
                )


def test_a_report_ends_though_answers_keep_coming(tmp_path, monkeypatch):
    """It is of what there was when it was read, and not read on for ever."""
    monkeypatch.setattr(reports, "report_fields", lambda report: {"n_models": report.n_models})
    search = DeclaredSearch.open(tmp_path / "g.db", Y, 10**6, delta=0.1, durability="process")
    answering = Answering(search)
    reading = reports.Reports(search, answering.read)
    for n in range(5):
        body = pack_body({"form": "bits", "key": n}, octets_of(Y))
        answering.answer([Call(Team("red"), body, False, None)])
        assert reading.step(Team("red")) is reading.step(Team("owner")) is False
        for name in ("red", "owner"):
            assert json.loads(reading.reply(Team(name)))["n_models"] == n + 1
    answering.close()


def test_a_report_is_made_once_for_all_who_ask_for_the_same(tmp_path, monkeypatch):
    made = []
    report_fields = reports.report_fields
    monkeypatch.setattr(
        reports, "report_fields", lambda report: made.append(0) or report_fields(report)
    )
    with serve(tmp_path, DeclaredSearch, Y, 50, delta=0.1, durability="process") as service:
        service.remote().query_many(rows_of(np.random.default_rng(0), 50), keys=range(50))
        told = []
        at_once(lambda _: told.append(service.send("GET", "/report")[2]), range(10))
        assert len(told) == 10 and len(set(told)) == 1 and len(made) == 1
        assert service.remote("owner").report().n_models == 50 and len(made) == 2
        with pytest.raises(ValueError, match="there is nothing to report"):
            service.remote("blue").report()
