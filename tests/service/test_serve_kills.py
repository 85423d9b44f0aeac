"""`radabound serve` killed under load: nothing that was released is lost, nothing counted twice."""

import http.client
import json
import random
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest
from serving import TOKENS, Command, octets_of

from radabound_fast import DeclaredSearch, FixedSequence, GuessAndCheck
from radabound_fast.service import client as remote

pytestmark = pytest.mark.thorough

M = 1000
RNG = np.random.default_rng(11)
Y = RNG.integers(0, 2, M)
OPTIONS = {
    FixedSequence: ["--guard", "fixed-sequence", "--epsilon", "0.1", "--delta", "0.1"],
    GuessAndCheck: ["--guard", "guess-and-check", "--epsilon", "0.2", "--delta", "0.1"],
    DeclaredSearch: [
        "--guard", "declared-search", "--space-size", "1000000", "--delta", "0.1",
    ],
}  # fmt: skip


def asked_until(service, team, stop, told, named):
    """A client of one team: it asks about new rows until it is to stop, and notes the answers."""
    rng = np.random.default_rng([len(team), 3])
    with service.remote(team, timeout=60) as remote:
        while not stop.is_set() or len(told) < 3:
            row = np.where(rng.random(M) < 0.3, 1 - Y, Y)
            told.append((row, remote.query(row, **named(team, len(told)))))


def killed(command, service, n_kills, seed, named, teams=("red", "blue", "owner")):
    """What each team was told while the service was killed so often, at random instants."""
    stop, told = threading.Event(), {team: [] for team in teams}
    threads = [
        threading.Thread(target=asked_until, args=(service, team, stop, told[team], named))
        for team in teams
    ]
    for thread in threads:
        thread.start()
    draw = random.Random(seed)
    try:
        for _ in range(n_kills):
            n_before = sum(map(len, told.values()))
            while sum(map(len, told.values())) == n_before:
                assert all(thread.is_alive() for thread in threads)
                time.sleep(0.001)
            time.sleep(draw.uniform(0.0, 0.02))
            command.kill()
            command.start()
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    return told


def check_counts(service, told, kind):
    """The count is that of the answers which clients got, and no number came twice."""
    answers = [answer for each in told.values() for _, answer in each]
    for row, answer in (pair for each in told.values() for pair in each):
        assert kind is GuessAndCheck or answer.value == np.mean(row != Y)
    state = service.get("/state", "owner")[1]
    assert state["n_answered"] == len(answers)
    assert {team: each["n_answers"] for team, each in state["teams"].items()} == {
        team: len(each) for team, each in told.items() if each
    }
    if kind is not DeclaredSearch:  # which says how many there are, not which one it is
        assert sorted(answer.number for answer in answers) == list(range(1, len(answers) + 1))
    return len(answers)


def named_of(kind):
    def named(team, number):
        if kind is GuessAndCheck:
            return {"guess": 0.3}
        if kind is DeclaredSearch:
            return {"key": 1000 * number + ["red", "blue", "owner"].index(team)}
        return {}

    return named


@pytest.mark.parametrize(
    ("kind", "n_kills"),
    [
        (FixedSequence, 20),
        (DeclaredSearch, 10),
        *(pytest.param(kind, 150, marks=pytest.mark.slow) for kind in OPTIONS),
    ],
)
def test_a_service_that_is_killed_loses_and_doubles_nothing(tmp_path, kind, n_kills, monkeypatch):
    monkeypatch.setattr(remote, "_LONGEST_PAUSE", 0.05)
    with Command(tmp_path, Y, *OPTIONS[kind]) as command:
        service = command.start()
        told = killed(command, service, n_kills, n_kills, named_of(kind))
        n_answers = check_counts(service, told, kind)
        assert n_answers >= n_kills
        command.stop()
    with kind.open(tmp_path / "guard.db", Y) as guard:
        assert guard.n_answered == n_answers


KILLED_WHERE = ["before the commit", "after the commit", "after the reply"]


@pytest.mark.parametrize("where", KILLED_WHERE)
def test_a_call_is_counted_once_wherever_the_service_dies(tmp_path, where):
    """Not at random instants, but at each that matters."""
    with Command(tmp_path, Y, *OPTIONS[FixedSequence]) as command:
        service = command.start()
        row, send = np.where(RNG.random(M) < 0.2, 1 - Y, Y), {"form": "bits"}
        assert service.post("/query", send, octets_of(row), Idempotency_Key="0")[0] == 200
        command.kill()
        service = command.start(dies=where)
        try:
            reply = service.post("/query", send, octets_of(row), Idempotency_Key="1")
        except (OSError, http.client.HTTPException):
            reply = None
        assert command.ended() == -signal.SIGKILL
        service = command.start()
        state = service.get("/state")[1]
        assert state["n_answered"] == state["you"]["n_answers"]
        assert state["n_answered"] == (1 if where == "before the commit" else 2)
        again = service.post("/query", send, octets_of(row), Idempotency_Key="1")
        assert again[0] == 200 and again[1]["number"] == 2 and (reply in (None, again))
        assert service.get("/state")[1]["n_answered"] == 2


FARM = textwrap.dedent("""
    import json, os, sys
    import numpy as np
    import optuna
    from radabound_fast.integrations.optuna import guarded_objective
    from radabound_fast.service.client import RemoteGuard

    optuna.logging.set_verbosity(optuna.logging.ERROR)

    def study(guard, n, rng):
        def fit_predict(trial):
            return rng.random(guard.n_samples) < trial.suggest_float("share", 0, 1)
        study = optuna.create_study()
        study.optimize(guarded_objective(guard, fit_predict), n_trials=n)
        return [trial.user_attrs["holdout_number"] for trial in study.trials]

    def loop(guard, n, rng):
        numbers = []
        while len(numbers) < n:
            rows = rng.integers(0, 2, (3, guard.n_samples))
            numbers.append(guard.query(rows[0]).number)
            numbers += guard.query_many(rows[1:]).numbers.tolist()
        return numbers

    url, tokens, plan = sys.argv[1], json.loads(sys.argv[2]), json.loads(sys.argv[3])
    for client, (team, n) in enumerate(plan):
        if not os.fork():
            guard = RemoteGuard(url, token=tokens[team], timeout=120)
            work = study if team == "owner" else loop
            line = json.dumps(work(guard, n, np.random.default_rng(client))) + "\\n"
            os.write(1, line.encode())
            os._exit(0)
    print("asking", flush=True)
    sys.exit(any(os.wait()[1] for _ in plan))
""")


def test_a_farm_of_eight_clients_and_one_service_that_dies_counts_exactly(tmp_path):
    plan = [("owner", 12), ("owner", 15), *[("red", 15), ("blue", 15)] * 3]  # studies, and loops
    with Command(tmp_path, Y, *OPTIONS[FixedSequence]) as command:
        service = command.start()
        farm = subprocess.Popen(
            [sys.executable, "-c", FARM, service.url, json.dumps(TOKENS), json.dumps(plan)],
            stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert farm.stdout.readline() == "asking\n"
        for seconds in (0.03, 0.05, 0.05):
            time.sleep(seconds)
            command.kill()
            command.start()
        numbers = [json.loads(line) for line in farm.communicate(timeout=60)[0].splitlines()]
        assert farm.returncode == 0
        assert sorted(map(len, numbers)) == sorted(n for _, n in plan)
        assert sorted(sum(numbers, [])) == list(range(1, 118))
        state = service.get("/state", "owner")[1]
        assert state["n_answered"] == 117
        assert {team: told["n_answers"] for team, told in state["teams"].items()} == {
            "owner": 27, "red": 45, "blue": 45,
        }  # fmt: skip
