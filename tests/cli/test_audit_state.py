"""Long audits: answers written block by block, a state to go on from, and threads."""

import csv
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from support import waiting

from radabound_fast import FixedSequence, RadaBound, pack_losses
from radabound_fast.files import reading as files
from radabound_fast.guards.by_bound import guard_by_bound

pq = pytest.importorskip("pyarrow.parquet", reason="the files extra is not installed")

M, K = 1000, 300
PARAMETERS = ["--epsilon", "0.09", "--delta", "0.1", "--n-vectors", "12", "--seed", "5"]
LOSSES = ["audit", "--losses", "l.npy", *PARAMETERS]
STATE = ["--state", "g.db", "--bound", "mclt"]
PREDICTIONS = ["audit", "--labels", "y.npy", "--predictions", "p.npy", *PARAMETERS]


def losses_of(n_queries=K):
    rng = np.random.default_rng(17)
    base = rng.random(M) < 0.02
    return base ^ (rng.random((n_queries, M)) < 0.1)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The working directory, with files whose blocks have seven rows."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(files, "BLOCK_BYTES", 7 * M)
    labels = np.random.default_rng(1).integers(0, 3, M)
    np.save("l.npy", losses_of())
    np.save("y.npy", labels.astype(np.int8))
    np.save("p.npy", ((labels + losses_of()) % 3).astype(np.int8))
    return tmp_path


def rows_of(name):
    if name.endswith(".parquet"):
        table = pq.read_table(name)
        return list(zip(*(column.to_pylist() for column in table.columns), strict=True))
    with open(name, newline="") as file:
        head, *rows = csv.reader(file)
    assert head == ["bound", "query", "value", "low", "high", "complexity", "delta_prime"]
    return [(bound, int(query), *map(float, rest)) for bound, query, *rest in rows]


def expected_rows(bound, losses):
    guard = guard_by_bound(bound, M, epsilon=0.09, delta=0.1, n_vectors=12, seed=5)
    answers = guard.query_many(losses, trace=True)
    names = ("numbers", "values", "lows", "highs", "complexities", "delta_primes")
    columns = (getattr(answers, name).tolist() for name in names)
    return [(bound, *row) for row in zip(*columns, strict=True)]


@pytest.mark.parametrize("name", ["a.csv", "a.txt", "a.parquet"])
@pytest.mark.parametrize("what", [LOSSES, PREDICTIONS])
def test_every_answer_is_in_the_file_bound_by_bound_in_each_block(run, what, name):
    bounds = ["mclt", "bernstein-split", "bernstein"]
    named = [part for bound in bounds for part in ("--bound", bound)]
    assert run(*what, *named, "--quiet", "--output", name) == (3, "", "")
    rows = rows_of(name)
    for bound in bounds:
        assert [row for row in rows if row[0] == bound] == expected_rows(bound, losses_of())
    # of blocks of seven rows
    places = [((query - 1) // 7, bounds.index(bound), query) for bound, query, *_ in rows]
    assert places == sorted(places) and len(rows) > 7


def test_a_bound_without_a_tail_has_nan(run):
    assert run(*LOSSES, "--bound", "fixed-sequence", "--quiet", "--output", "a.csv")[0] == 0
    rows = rows_of("a.csv")
    assert len(rows) == K and all(row[6] != row[6] for row in rows)


def test_threads_change_nothing(run):
    for threads in (1, 2, 3):
        run(*LOSSES, "--bound", "mclt", "--quiet", "--output", f"{threads}.csv",
            "--threads", threads)  # fmt: skip
    written = {Path(f"{threads}.csv").read_bytes() for threads in (1, 2, 3)}
    assert len(written) == 1


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        (["--threads", "0"], "threads must be at least 1, got 0"),
        ([*STATE, "--bound", "bernstein"], "for one guard: give one"),
        ([*STATE, "--plot", "a.png"], "--plot of a guard needs the whole"),
        (["--state", "no/g.db", "--bound", "mclt"], "no"),
        (["--state", "l.npy", "--bound", "mclt"], "l.npy"),
        ([*STATE, "--output", "g.db"], "must be a file of its own"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(refuse, extra, message):
    before = Path("l.npy").read_bytes()
    refuse(message, *LOSSES, *extra)
    assert Path("l.npy").read_bytes() == before and not Path("g.db").exists()


# ---- a state to go on from -------------------------------------------------------------------


@pytest.mark.parametrize("what", [LOSSES, PREDICTIONS])
@pytest.mark.parametrize(("bound", "halts"), [("mclt", True), ("fixed-sequence", False)])
def test_an_audit_goes_on_where_it_stopped(run, what, bound, halts):
    """The file grows, as a log does; no run begins at the first row of a block."""
    whole, n_answered = losses_of(), 0
    expected = expected_rows(bound, whole)
    name = "l.npy" if what is LOSSES else "p.npy"
    rows = np.load(name)
    for n_rows in (10, 10, 25, 60, K, K):
        np.save(name, rows[:n_rows])
        code, out, _ = run(
            *what, "--bound", bound, "--state", "g.db", "--output", "a.csv", "--json"
        )
        (found,) = json.loads(out)["bounds"]
        known = repr(expected[n_answered : min(n_rows, len(expected))])
        assert repr(rows_of("a.csv")) == known  # by repr, in which nan is nan
        assert found["n_answered_before"] == n_answered
        n_answered = found["n_answered"]
        assert n_answered == min(n_rows, len(expected))
        halted = halts and n_rows > len(expected)
        assert found["halted"] == halted and code == (3 if halted else 0)
    assert halts == (len(expected) < K)


@pytest.mark.parametrize(
    "keys", [pytest.param([], marks=pytest.mark.thorough), ["--keys", "k.txt"]]
)
def test_a_search_goes_on_where_it_stopped(run, keys):
    """10 rows, then all 30: the second run answers and writes 20, and the report is of all."""
    losses = losses_of(30)
    search = ["audit", "--losses", "l.npy", *keys, "--delta", 0.1, "--space-size", 99]
    for n, n_before in ((10, 0), (30, 10), (30, 30)):
        np.save("l.npy", losses[:n])
        Path("k.txt").write_text("".join(f"model {number}\n" for number in range(n)))
        code, out, _ = run(*search, "--state", "s.db", "--output", "a.csv")
        before = f"\n{n_before} queries were answered before.\n"
        assert code == 0 and (before in out) == (n_before > 0)
        with open("a.csv", newline="") as file:
            rows = list(csv.DictReader(file))
        assert [int(row["query"]) for row in rows] == list(range(n_before + 1, n + 1))
    stored = json.loads(run(*search, "--state", "s.db", "--json")[1])
    assert stored == json.loads(run(*search, "--json")[1]) | {"state": "s.db"}


def test_packed_rows_go_on_too(run):
    np.save("words.npy", pack_losses(losses_of()).words)
    for n_rows, before in ((50, 0), (K, 50)):
        np.save("words.npy", pack_losses(losses_of()[:n_rows]).words)
        code, out, _ = run(
            "audit", "--losses", "words.npy", "--packed", "--n-samples", M, *PARAMETERS,
            "--bound", "fixed-sequence", "--state", "g.db",
        )  # fmt: skip
        assert code == 0
        assert (f"{before} queries were answered before." in out) == (before > 0)


@pytest.mark.parametrize("dtype", [bool, np.uint8, np.float64])
def test_what_is_left_is_of_losses_of_this_type_also_where_all_were_answered_before(run, dtype):
    np.save("l.npy", losses_of(6).astype(dtype))
    guard = FixedSequence(M, epsilon=0.09, delta=0.1, n_vectors=12, seed=5)
    guard.query_many(losses_of(6).astype(dtype))
    left = guard.n_left(binary=dtype is not np.float64)
    for _ in range(2):
        code, out, _ = run(*LOSSES, "--bound", "fixed-sequence", "--state", "g.db")
        assert code == 0 and f"all answered; {left:,} more will be" in out


def test_the_seed_is_that_of_the_state(run, refuse):
    without = [*LOSSES[:-2], "--bound", "fixed-sequence", "--state", "g.db", "--json"]
    first, second = (json.loads(run(*without)[1]) for _ in range(2))
    assert first["seed"] == second["seed"] and not first["seed_drawn"]
    refuse("seed must be that with which g.db was made", *without, "--seed", 6)


def test_another_audit_is_refused_and_the_state_stays(run, refuse):
    np.save("l.npy", losses_of()[:20])
    assert run(*LOSSES, *STATE)[0] == 0
    refuse("made for another holdout", *PREDICTIONS, *STATE)
    other = "epsilon must be 0.09, with which g.db was made"
    refuse(other, *LOSSES, "--epsilon", "0.1", *STATE)
    np.save("l.npy", losses_of()[:19])
    refuse("g.db: it has answered 20 queries, and l.npy has 19", *LOSSES, *STATE)
    with RadaBound.open("g.db") as guard:
        assert guard.n_answered == 20


@pytest.mark.thorough
@pytest.mark.skipif(sys.platform == "win32", reason="Windows ends processes without a signal")
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_what_was_counted_before_a_signal_is_in_the_file(run, name):
    command = [*LOSSES, "--bound", "fixed-sequence", "--state", "g.db", "--quiet"]
    process = waiting([*command, "--output", "a.csv"], block=5, block_bytes=7000)
    process.send_signal(getattr(signal, name))
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (128 + getattr(signal, name), "", "")
    expected = expected_rows("fixed-sequence", losses_of())
    assert repr(rows_of("a.csv")) == repr(expected[:35])
    assert run(*command, "--output", "b.csv")[0] == 0
    assert repr(rows_of("b.csv")) == repr(expected[35:])
    assert not [each for each in os.listdir() if each.endswith(".part")]


@pytest.mark.thorough
@pytest.mark.skipif(sys.platform == "win32", reason="Windows ends processes without a signal")
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
@pytest.mark.parametrize("second", [False, True])
def test_a_signal_waits_until_what_is_counted_is_written_and_a_second_does_not(run, name, second):
    counts = (
        "import os, signal, sys\n"
        "from radabound_fast import cli\n"
        "from radabound_fast.cli import halting\n"
        "from radabound_fast.files import reading\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "reading.BLOCK_BYTES = 7000\n"
        "whole = halting.GuardReplay.ask\n"
        "def ask(self, block):\n"
        "    told = whole(self, block)\n"
        "    if self.guard.n_answered == 35:\n"
        f"        for _ in range({1 + second}):\n"
        f"            os.kill(os.getpid(), signal.{name})\n"
        "    return told\n"
        "halting.GuardReplay.ask = ask\n"
        "sys.exit(cli.main(sys.argv[1:]))"
    )
    command = [*LOSSES, "--bound", "fixed-sequence", "--state", "g.db", "--quiet"]
    ended = subprocess.run(
        [sys.executable, "-c", counts, *command, "--output", "a.csv"],
        capture_output=True, text=True,
    )  # fmt: skip
    assert (ended.returncode, ended.stdout, ended.stderr) == (128 + getattr(signal, name), "", "")
    with FixedSequence.open("g.db") as guard:
        assert guard.n_answered == 35
    expected = expected_rows("fixed-sequence", losses_of())
    assert repr(rows_of("a.csv")) == repr(expected[: 28 if second else 35])


def test_a_bad_row_is_told_by_its_number_in_the_file(run):
    losses = losses_of().astype(np.float32)
    losses[123, 4] = 1.5
    for n_rows, code in ((100, 0), (K, 2)):
        np.save("l.npy", losses[:n_rows])
        found, _, err = run(
            *LOSSES, "--bound", "fixed-sequence", "--epsilon", "0.2", "--state", "g.db"
        )
        assert found == code
    assert "got 1.5 at row" in err and "queries 12" in err
    with FixedSequence.open("g.db") as guard:
        assert 100 <= guard.n_answered <= 123


def test_a_holdout_that_others_ask_meanwhile_is_the_same_one(run):
    np.save("p.npy", np.load("p.npy")[:20])
    assert run(*PREDICTIONS, *STATE)[0] == 0
    with RadaBound.open("g.db", np.load("y.npy")) as guard:
        assert guard.n_answered == 20 and not guard.halted
