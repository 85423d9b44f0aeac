"""Who may ask what, until when: the file of tokens, which may change while the service runs."""

import json
import os
import signal
import threading
import time
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from serving import TOKENS, Command, arguments, in_thread, octets_of, serve

from radabound_fast import DeclaredSearch, FixedSequence, cli
from radabound_fast.service import app, server
from radabound_fast.service.tokens import Part, Tokens

M = 400
Y = np.arange(M) % 2
FIXED = {"epsilon": 0.3, "delta": 0.1, "seed": 1, "durability": "process"}


def write(path, *lines):
    """Put a file in the place of another, as an editor does."""
    new = path.with_suffix(".new")
    new.write_text("\n".join(lines) + "\n")
    new.chmod(0o600)
    os.replace(new, path)


def line(team, *limits):
    return " ".join([team, TOKENS[team], *limits])


def until(what, seconds=10.0):
    give_up = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < give_up
        time.sleep(0.02)


def refused(service, team, key=None, many=False):
    """Status, limit and Retry-After of a query; its limit is None if it is answered."""
    head = {"form": "bits"} | ({} if key is None else {"keys": key} if many else {"key": key})
    path = "/query_many" if many else "/query"
    body = json.dumps(head).encode() + b"\n" + octets_of([Y] * len(key) if many else Y)
    status, headers, told = service.send("POST", path, body, team)
    return status, json.loads(told).get("error", {}).get("limit"), headers.get("retry-after")


# ---- added, withdrawn, and malformed -------------------------------------------------------------


@pytest.fixture(autouse=True)
def looked_at_often(monkeypatch):
    monkeypatch.setattr(app, "_TOKENS_SECONDS", 0.02)


def test_tokens_come_and_go_while_the_service_runs(tmp_path, caplog):
    tokens = tmp_path / "tokens.txt"
    with serve(tmp_path, FixedSequence, Y, **FIXED) as service:
        write(tokens, line("owner"), line("red"))
        until(lambda: service.send("GET", "/state", team="blue")[0] == 401)
        assert service.send("GET", "/state", team="red")[0] == 200
        write(tokens, line("owner"), line("blue", "0"), "* 7")
        until(lambda: service.send("GET", "/state", team="red")[0] == 401)
        assert refused(service, "blue")[:2] == (429, "answers_a_day")
        for wrong in ("red short", line("blue", "keys=0..5"), "* 1\n* 2", "\xff"):
            caplog.clear()
            write(tokens, wrong)
            until(lambda: "tokens stay as they were" in caplog.text)
            assert refused(service, "blue")[:2] == (429, "answers_a_day")
            assert not any(token in caplog.text for token in TOKENS.values())
        tokens.unlink()
        time.sleep(0.1)
        assert refused(service, "blue")[:2] == (429, "answers_a_day")
        write(tokens, line("blue"))
        until(lambda: refused(service, "blue")[0] == 200)


@pytest.mark.thorough
def test_a_call_of_a_token_that_is_withdrawn_meanwhile_is_answered(tmp_path, monkeypatch):
    guard = FixedSequence.open(tmp_path / "g.db", Y, **FIXED)
    began, goes_on = threading.Event(), threading.Event()
    query = guard.query
    monkeypatch.setattr(
        guard, "query", lambda rows: began.set() or goes_on.wait(20) and query(rows)
    )
    with in_thread(guard, tmp_path) as service:
        replies = []
        asking = threading.Thread(target=lambda: replies.append(refused(service, "red")))
        asking.start()
        assert began.wait(10)
        write(tmp_path / "tokens.txt", line("owner"))
        until(lambda: service.send("GET", "/nothing", team="red")[0] == 404)
        assert service.send("GET", "/health", team=None)[0] == 200  # while a call is at work
        time.sleep(0.1)
        goes_on.set()
        asking.join(20)
        assert replies == [(200, None, None)]
        assert service.send("GET", "/state", team="red")[0] == 401


@pytest.mark.thorough
@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="needs SIGHUP")
def test_a_hangup_has_the_file_read_again_and_ends_nothing(tmp_path):
    options = ["--guard", "fixed-sequence", "--epsilon", "0.3", "--delta", "0.1"]
    with Command(tmp_path, Y, *options) as command:
        service = command.start()
        found = os.stat(command.tokens)
        content = command.tokens.read_bytes().replace(b"red-token", b"tan-token")
        command.tokens.write_bytes(content)  # in place, as long, and with the time it had
        os.utime(command.tokens, ns=(found.st_atime_ns, found.st_mtime_ns))
        time.sleep(1.5)
        assert service.send("GET", "/state", team="red")[0] == 200
        os.kill(command.pid, signal.SIGHUP)
        until(lambda: service.send("GET", "/state", team="red")[0] == 401)
        assert service.send("GET", "/state", team="blue")[0] == 200
        command.stop()


# ---- until when, and how much --------------------------------------------------------------------


def test_queries_end_when_the_file_says_and_what_was_answered_is_answered_still(tmp_path):
    body = b'{"form": "bits"}\n' + octets_of(Y)
    tokens = tmp_path / "tokens.txt"
    with serve(tmp_path, FixedSequence, Y, **FIXED) as service:
        first = service.send("POST", "/query", body, Idempotency_Key="a")
        now = datetime.now(UTC)
        for over in (["until=2001-01-31"], [f"until={now - timedelta(hours=1):%Y-%m-%dT%H:%MZ}"]):
            write(tokens, line("owner"), line("red", *over), line("blue", "until=2999-01-31"))
            until(lambda: [refused(service, team)[0] for team in ("red", "blue")] == [403, 200])
            assert refused(service, "red") == (403, "until", None)
            assert refused(service, "owner")[0] == 200
            write(tokens, line("owner"), line("red"), line("blue"), " ".join(["*", *over]))
            until(lambda: refused(service, "blue") == (403, "until", None))
            assert refused(service, "owner")[0] == 200
            again = service.send("POST", "/query", body, Idempotency_Key="a")
            assert again[0] == 200 and again[2] == first[2]
            assert service.send("GET", "/state")[0] == 200
            with pytest.raises(PermissionError, match="queries of red ended on 20"):
                service.remote("red").query(Y)


def test_a_date_is_over_when_its_day_is(tmp_path):
    path = tmp_path / "t.txt"
    ends = {
        "2027-01-31": datetime(2027, 2, 1, tzinfo=UTC),
        "2027-01-31T18:00": datetime(2027, 1, 31, 18, tzinfo=UTC),
        "2027-01-31T18:00+02:00": datetime(2027, 1, 31, 16, tzinfo=UTC),
    }
    for text, end in ends.items():
        write(path, line("red", f"until={text}"))
        assert Tokens(path).teams[0].until == end


def test_answers_to_all_teams_together_have_a_limit_that_the_owner_has_not(tmp_path):
    with serve(tmp_path, FixedSequence, Y, **FIXED) as service:
        assert refused(service, "red")[0] == 200
        you = service.get("/state")[1]["you"]
        assert you["until"] is you["keys"] is you["limit_a_day"] is None
        write(tmp_path / "tokens.txt", line("owner"), line("red"), line("blue"), "* 2")
        time.sleep(0.2)
        assert refused(service, "owner")[0] == refused(service, "blue")[0] == 200
        for team in ("red", "blue"):
            status, limit, seconds = refused(service, team)
            assert (status, limit) == (429, "answers_a_day_of_all") and 0 < int(seconds) <= 86400
        assert refused(service, "owner")[0] == 200
        assert service.get("/state")[1]["n_answered"] == 4


def test_what_asks_for_nothing_is_not_stored(tmp_path):
    """A team without answers wrote megabytes a second of empty calls under long keys."""
    with serve(tmp_path, FixedSequence, Y, **FIXED) as service:
        log = tmp_path / "g.db-wal"  # to which every commit appends
        before = log.stat().st_size
        for n in range(10):
            key = f"{n:0200}"
            status, _, body = service.send(
                "POST", "/query_many", b'{"form": "bits"}\n', "small", Idempotency_Key=key
            )
            assert status == 200 and json.loads(body)["values"] == []
        assert log.stat().st_size == before
        assert service.get("/state", "small")[1]["you"]["n_calls"] == 0


# ---- keys of one's own ---------------------------------------------------------------------------


SPACE = {"team": ["red", "blue"], "depth": [1, 2, 3]}


def test_a_team_asks_about_its_own_keys_alone(tmp_path):
    tokens = tmp_path / "tokens.txt"
    parts = {team: f'keys={{"team":"{team}"}}' for team in ("red", "blue")}
    guard = DeclaredSearch.open(tmp_path / "g.db", Y, SPACE, delta=0.1, durability="process")
    lines = [line("owner"), *(line(team, part) for team, part in parts.items())]
    with in_thread(guard, tmp_path, lines=lines) as service:
        theirs = {"team": "blue", "depth": 1}
        assert refused(service, "red", theirs) == (403, "keys", None)
        mine = {"depth": 1, "team": "red"}
        assert refused(service, "red", [mine, theirs], many=True)[0] == 403
        assert service.get("/state")[1]["n_answered"] == 0
        assert refused(service, "red", mine)[0] == refused(service, "blue", theirs)[0] == 200
        assert refused(service, "owner", {"team": "red", "depth": 3})[0] == 200
        # what is no key is the guard's to say
        assert refused(service, "red", {"team": "tan", "depth": 1})[:2] == (400, None)
        with pytest.raises(PermissionError, match=r'keys of red are \{"team":"red"\}, got'):
            service.remote("red").query(Y, key=theirs)
        # a key that was somebody's is never another's, nor everybody's, while the service runs
        write(tokens, line("owner"), line("red", parts["blue"]))
        time.sleep(0.2)
        write(tokens, line("owner"), line("red"), line("blue"))
        time.sleep(0.2)
        assert refused(service, "red", theirs)[0] == 403
        assert refused(service, "red", mine)[0] == 200
        assert refused(service, "blue", theirs)[0] == 200


def test_which_keys_are_whose_stays_as_it_was_when_the_file_changes(tmp_path):
    path, red, blue = tmp_path / "t.txt", line("red", "keys=0..4"), line("blue", "keys=5..9")
    for first, later, message in (
        ([red, blue], [line("red"), line("blue")], "to none, blue has or had none"),
        ([line("red"), line("blue")], [red, blue], "to none, blue has or had none"),
        ([red, blue], [red, line("blue")], "to none, blue has or had none"),
        ([red, blue], [red, line("blue", "keys=5..12")], r"keys of blue must stay 5\.\.9"),
        ([red, blue], [red, line("small", "keys=9..12")], "keys of blue and small must be apart"),
    ):
        write(path, *first)
        known = Tokens(path)
        for lines in (["owner owners-token-0123456789"], later):  # though nobody asks meanwhile
            write(path, *lines)
            if lines is not later:
                known = known.read_again()
        with pytest.raises(ValueError, match=message):
            known.read_again()
    # a team more may be told of a key, and so shares what all may ask about
    write(path, line("red"))
    one = Tokens(path)
    write(path, line("owner"), line("blue"))
    two = one.read_again()
    assert one.warning_of_keys() == ""
    assert "with probability 1 - 2 delta" in two.warning_of_keys()


@pytest.mark.thorough
def test_keys_of_a_range_are_those_in_it(tmp_path):
    lines = [line("red", "keys=0..4"), line("blue", "keys=5..9")]
    with serve(tmp_path, DeclaredSearch, Y, 10, delta=0.1, lines=lines) as service:
        assert refused(service, "red", 5)[0] == 403
        assert [refused(service, "blue", key)[0] for key in (4, 5, 9, 10)] == [403, 200, 200, 400]
        assert [refused(service, "red", key)[0] for key in (-1, 0, 4)] == [400, 200, 200]


@pytest.mark.parametrize(
    ("teams", "warns"),
    [
        (["owner", "red"], False),
        (["owner", "red", "blue"], True),
        (["red keys=0..4", "blue keys=5..9"], False),
    ],
)
def test_where_several_teams_ask_about_all_keys_the_command_says_what_holds(
    tmp_path, capsys, monkeypatch, teams, warns
):
    monkeypatch.setattr(server, "run", lambda *_: None)
    write(tmp_path / "tokens.txt", *(line(*team.split()) for team in teams))
    options = ["--guard", "declared-search", "--space-size", "10", "--delta", "0.1"]
    assert cli.main(arguments(tmp_path, Y, *options)) == 0
    assert ("with probability 1 - 2 delta" in capsys.readouterr().err) is warns


def test_keys_of_teams_are_refused_before_a_guard_without_keys_is_made(tmp_path, capsys):
    write(tmp_path / "tokens.txt", line("red", "keys=0..4"))
    assert cli.main(arguments(tmp_path, Y, "--guard", "gate", "--delta", "0.1")) == 2
    assert "keys= must be left out of" in capsys.readouterr().err
    assert not (tmp_path / "g.db").exists()


APART = [
    ("0..4", "5..9", True), ("0..4", "4..9", False), ("3..3", "0..9", False),
    ('{"a":1}', '{"a":2}', True), ('{"a":1}', '{"b":1}', False), ('{"a":[1,2]}', '{"a":2}', False),
    ('{"a":1,"b":1}', '{"a":1,"b":2}', True), ("0..4", '{"a":1}', True),
]  # fmt: skip


@pytest.mark.parametrize(("one", "other", "are_apart"), APART)
def test_parts_are_apart_only_if_no_key_is_in_both(one, other, are_apart):
    one, other = Part.parse(one), Part.parse(other)
    assert one.is_apart_from(other) is other.is_apart_from(one) is are_apart
    keys = [*range(12), *({"a": a, "b": b} for a in (1, 2, 3) for b in (1, 2, 3))]
    keys += [(key, n) for key in keys for n in (1, 2)]
    both = [key for key in keys if key in one and key in other]
    assert bool(both) is not are_apart


def test_a_key_that_is_made_of_others_is_in_a_part_if_all_of_them_are():
    part = Part.parse('{"team":"red"}')
    red, blue = {"team": "red", "n": 1}, {"team": "blue", "n": 1}
    assert red in part and (red, 7) in part and (red, ({"n": 2}, red)) in part
    assert blue not in part and (red, blue) not in part and ({"n": 2}, 7) not in part
    assert 7 not in part and "red" not in part
