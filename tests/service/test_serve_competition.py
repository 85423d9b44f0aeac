"""A competition: a public score for all, finalists that nobody is told of, and the end."""

import json
import re
import sqlite3
from pathlib import Path

import numpy as np
import pytest
from serving import Command, in_thread, octets_of

from radabound_fast import ConfirmedSearch, Holdout
from radabound_fast.service.competition import Competition
from radabound_fast.store import record

M = 600
RNG = np.random.default_rng(3)
Y = RNG.integers(0, 2, M)


def model(error, seed):
    return Y ^ (np.random.default_rng(seed).random(M) < error)


@pytest.fixture(params=["error", "roc_auc", "accuracy"])
def metric(request):
    return request.param


@pytest.fixture
def path(tmp_path):
    return tmp_path / "search.db"


def competition(path, metric="error", n_finalists=2):
    holdout = Holdout(Y, metric=metric)
    search = ConfirmedSearch.open(path, holdout, delta=0.1, seed=1, durability="process")
    return Competition(search, n_finalists)


def test_from_the_first_score_to_the_private_board(path, tmp_path, metric):
    alone = ConfirmedSearch(Holdout(Y, metric=metric), delta=0.1, seed=1)
    with in_thread(competition(path, metric), tmp_path) as service:
        red, blue, owner = map(service.remote, ("red", "blue", "owner"))
        assert red.kind == "ConfirmedSearch" and red.needs is None and not red.halted
        first = red.query(model(0.2, 1), finalist="forest")
        assert first.value == alone.score(model(0.2, 1)) and np.isnan([first.low, first.high]).all()
        many = blue.query_many([model(0.3, k) for k in range(4)])
        assert many.values.tolist() == [alone.score(model(0.3, k)) for k in range(4)]
        blue.query(model(0.1, 2), finalist="stack")
        red.query(model(0.15, 3), finalist="forest")  # in place of the first
        with pytest.raises(ValueError, match="are confirmed when the owner ends"):
            red.report()
        with pytest.raises(PermissionError):
            red.end()
        page = service.send("GET", "/", team="red")[2].decode()
        assert "2 finalists named" in page and "rows kept for the end" not in page
        report = owner.end()
        finalists = {"red: forest": model(0.15, 3), "blue: stack": model(0.1, 2)}
        expected = alone.confirm(finalists)
        assert report.n_models == 2 and report.best["name"] == "blue: stack"
        for told in red.report().ranking():
            answer = expected[told["name"]]
            assert (told["value"], told["low"], told["high"]) == (
                answer.value,
                answer.low,
                answer.high,
            )
        page = service.send("GET", "/", team="blue")[2].decode()
        assert "Finalists, on rows kept for the end" in page and "red: forest" in page
        assert owner.end().to_json() == report.to_json()  # once more is the same
        red.query(model(0.4, 9))  # scores go on
        with pytest.raises(ValueError, match="search has ended"):
            red.query(model(0.4, 9), finalist="forest")


def test_a_team_has_so_many_finalists_and_no_more(path, tmp_path):
    with in_thread(competition(path), tmp_path) as service:
        red = service.remote("red")
        for name in ("a", "b", "a"):
            red.query(model(0.2, 1), finalist=name)
        with pytest.raises(ValueError, match="red has 2 finalists, which is all"):
            red.query(model(0.2, 1), finalist="c")
        service.remote("blue").query(model(0.2, 4), finalist="c")
        status, told = service.post("/query", {"form": "bits", "finalist": 3}, bytes(75), "blue")
        assert status == 400 and "finalist must be a name" in told["error"]["message"]
        with pytest.raises(ValueError, match="form, guesses, keys, reruns alone"):
            red._send_query("/query_many", [Y], 2, dict, finalist="x")


def test_it_goes_on_after_a_restart(path, tmp_path):
    with in_thread(competition(path), tmp_path) as service:
        service.remote("red").query(model(0.2, 1), finalist="a")
        with pytest.raises(ValueError, match="must have length 600"):
            service.remote("red").query([1], finalist="b")
    with in_thread(competition(path), tmp_path) as service:
        answer = service.remote("blue").query(model(0.1, 2), finalist="b")
        assert answer.number == 2
        assert service.remote("owner").end().n_models == 2
    assert ConfirmedSearch.open(path).answers.names == ["red: a", "blue: b"]


@pytest.mark.thorough
def test_scores_that_were_not_committed_have_no_number(path, tmp_path, monkeypatch):
    commit, fails = record._commit, iter([True, True, False, False])

    def failing(database):
        logged = database.execute("SELECT count(*) FROM served").fetchone()[0]
        if database.total_changes and logged > 1 and next(fails):
            raise sqlite3.OperationalError("disk I/O error")
        commit(database)

    body = b'{"form": "bits"}\n' + octets_of(Y)
    with in_thread(competition(path), tmp_path) as service:
        service.remote("red").query(Y)
        monkeypatch.setattr(record, "_commit", failing)
        replies = [service.send("POST", "/query", body) for _ in range(4)]
        assert [status for status, _, _ in replies] == [503, 503, 200, 200]
        assert [json.loads(reply)["number"] for _, _, reply in replies[2:]] == [2, 3]
        assert service.get("/state")[1]["n_answered"] == 3


def test_scores_do_not_depend_on_the_rows_that_are_kept(path, tmp_path):
    """Whatever a team sends, no reply before the end changes with the labels kept for the end."""
    kept = ConfirmedSearch(Y, delta=0.1, seed=1).confirmation_rows
    replies = []
    for number, labels in enumerate((Y, np.where(kept, 1 - Y, Y))):
        file = tmp_path / f"{number}.db"
        search = ConfirmedSearch.open(file, labels, delta=0.1, seed=1, durability="process")
        with in_thread(Competition(search, 2), tmp_path) as service:
            body = np.packbits(model(0.2, 1).astype(bool), bitorder="little").tobytes()
            told = [
                service.post("/query", {"form": "bits", "finalist": "a"}, body),
                service.post("/query_many", {"form": "bits"}, 3 * body),
                service.get("/state"),
                service.get("/report"),
            ]
            for state in told:
                state[1].pop("version", None)
            replies.append(json.dumps(told))
    assert replies[0] == replies[1]


def test_the_file_has_classes_and_no_errors(path, tmp_path):
    with in_thread(competition(path), tmp_path) as service:
        service.remote("red").query(model(0.2, 1), finalist="a")
    rows = sqlite3.connect(path).execute("SELECT event, content FROM event").fetchall()
    assert len(rows) == 1 and "value" not in json.loads(rows[0][0]) and rows[0][1]


def test_the_command_makes_a_competition_and_goes_on_after_a_kill(tmp_path):
    options = ["--confirm-share", 0.4, "--finalists", 1, "--delta", 0.1, "--durability", "process"]
    with Command(tmp_path, Y, *options) as command:
        service = command.start()
        red = service.remote("red")
        assert red.parameters["confirm_share"] == 0.4 and red.parameters["finalists_a_team"] == 1
        red.query(model(0.2, 1), finalist="a")
        command.kill()
        service = command.start()
        service.post("/query", {"form": "bits", "finalist": "b"}, octets_of(model(0.1, 2)), "blue")
        report = service.remote("owner").end()
        assert report.n_models == 2 and report.n_samples == 240
        assert command.stop() == 143  # ended by SIGTERM
    search = ConfirmedSearch.open(tmp_path / "guard.db", Y)
    assert search.answers.names == ["red: a", "blue: b"] and search.confirm_share == 0.4


@pytest.mark.source
@pytest.mark.thorough
def test_the_first_command_of_the_page_is_proved_for_teams_that_see_scores(tmp_path):
    page = Path(__file__).parents[2] / "docs" / "how-to" / "serve-a-holdout.md"
    command = re.search(r"^radabound serve (.*)$", page.read_text(encoding="utf-8"), re.M)
    database, *options = command[1].split()
    assert (database, *options[:4]) == (
        "guard.db", "--labels", "y.npy", "--tokens", "tokens.txt")  # fmt: skip
    with Command(tmp_path, Y, *options[4:]) as served, served.start().remote() as remote:
        assert remote.kind == "ConfirmedSearch" and "Result 31" in remote.guarantee
        alone = "in the answers of earlier batches alone, whatever it does with the other rows"
        assert f"valid for any search that sees 300 confirmation rows {alone}" in remote.guarantee
        assert remote.query(model(0.2, 1), finalist="a").value < 0.3
