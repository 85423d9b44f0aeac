"""What was asked, in a database that processes share: a record that no interval rests on."""

import _thread
import math
import multiprocessing
import os
import pickle
import shutil
import sqlite3
import threading
import time
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from support import at_once

from radabound_fast import DeclaredSearch, FixedSequence, Holdout, Losses, RadaBound, pack_losses
from radabound_fast.metrics import F1
from radabound_fast.spaces import InOrder, ensemble_of, epoch_of

M = 1000
GRID = {"depth": [1, 2, 3], "leaf": range(100)}


def coin(seed, rate=0.2):
    return np.random.default_rng(seed).random(M) < rate


@pytest.fixture
def path(tmp_path):
    return tmp_path / "search.db"


def test_who_opens_it_sees_what_all_have_asked(path):
    one = DeclaredSearch.open(path, M, GRID, delta=0.1)
    two = DeclaredSearch.open(path)
    assert two.parameters == one.parameters and two.space == one.space
    first = one.query(coin(0), key={"depth": 1, "leaf": 7})
    second = two.query(coin(1, 0.1).astype(float), key={"depth": 2, "leaf": 7})
    assert (first.number, second.number) == (1, 2) and one.n_answered == two.n_answered == 2
    for search in (one, two, DeclaredSearch.open(path, M, GRID, delta=0.1)):
        assert search.answers.keys == [first.key, second.key]
        # the last digit of limits is another for many at once
        assert_allclose(search.answers.highs, [first.high, second.high], rtol=1e-12)
        assert search.best.key == second.key and search.best.high == second.high
    alone = DeclaredSearch(M, GRID, delta=0.1)
    assert alone.query(coin(0), key={"depth": 1, "leaf": 7}).high == first.high


@pytest.mark.parametrize(("durability", "level"), [("power", 2), ("process", 0)])
def test_sqlite_is_asked_to_wait_for_the_disk_or_not(path, durability, level):
    """2 is FULL: a commit is on the disk before the answer; 0 is OFF.  Of writes and of reads."""
    search = DeclaredSearch.open(path, M, GRID, delta=0.1, durability=durability)
    again = DeclaredSearch.open(path, durability=durability)
    for record in (search.database, again.database, pickle.loads(pickle.dumps(again)).database):
        for do in (record.look, record.transact):
            assert do(lambda db: db.execute("PRAGMA synchronous").fetchone()) == (level,)


def test_one_key_is_one_model_for_all(path):
    one = DeclaredSearch.open(path, M, GRID, delta=0.1)
    two = DeclaredSearch.open(path, M, GRID, delta=0.1)
    key, other = {"depth": 1, "leaf": 7}, {"depth": 1, "leaf": 8}
    one.query(coin(0), key=key)
    assert two.query(coin(0), key=key).number == 1
    assert two.query(coin(0).astype(float), key=key).number == 1  # the same, told otherwise
    with pytest.raises(ValueError, match="key must stand for one model, got {'depth': 1, 'leaf'"):
        two.query(coin(1), key=key)
    with pytest.raises(ValueError, match="key must stand for one model"):
        two.query_many(np.stack([coin(2), coin(3)]), keys=[other, key])
    assert one.n_answered == 1  # nothing of the block was added
    block = two.query_many(
        pack_losses(np.stack([coin(2), coin(0), coin(2)])), keys=[other, key, other]
    )
    assert block.numbers.tolist() == [2, 2, 2] and one.n_answered == 2


def test_a_block_is_numbered_as_without_a_record_whatever_repeats(path):
    """Keys asked before, of which the record alone may know, and keys twice in the block."""
    rng = np.random.default_rng(0)
    losses = np.array([coin(seed) for seed in range(12)])
    alone = DeclaredSearch(M, 100, delta=0.1)
    owners = [DeclaredSearch.open(path, M, 100, delta=0.1) for _ in range(2)]
    for number in range(20):
        keys = rng.integers(0, min(12, 3 + number), rng.integers(0, 9))
        told = owners[number % 2].query_many(losses[keys], keys=keys.tolist())
        expected = alone.query_many(losses[keys], keys=keys.tolist())
        assert told.numbers.tolist() == expected.numbers.tolist()
        assert told.n_answered == expected.n_answered == alone.n_answered


@pytest.mark.parametrize(
    ("space", "keys"),
    [
        (2**80, [0, 2**80 - 1]),
        (InOrder(), [1, 10**20]),
        (epoch_of(5) * epoch_of(7), [(0, 6), (4, 0)]),
        (ensemble_of({"a": [1, "x", None, True]}), [[{"a": 1}, {"a": 1}], [{"a": True}]]),
    ],
)
def test_keys_of_any_kind_come_back(path, space, keys):
    search = DeclaredSearch.open(path, M, space, delta=0.1, allow_reruns=True)
    for seed, key in enumerate(keys):
        search.query(coin(seed), key=key, rerun=seed + 1)
    again = DeclaredSearch.open(path)
    assert [again.space.find(key) for key in again.answers.keys] == [
        search.space.find(key) for key in keys
    ]
    assert again.answers.reruns.tolist() == [1, 2]
    assert again.query(coin(0), key=keys[0]).number == 2


class Halving:
    def nats(self, key):
        return key * math.log(2)


def test_a_space_of_ones_own_is_passed_each_time(path):
    DeclaredSearch.open(path, M, Halving(), delta=0.1).query(coin(0), key=3)
    with pytest.raises(ValueError, match="space must be passed again"):
        DeclaredSearch.open(path)
    again = DeclaredSearch.open(path, M, Halving(), delta=0.1)
    assert again.answers.keys == [3]


def test_a_search_opens_for_its_labels_alone(path):
    labels = coin(9, 0.5).astype(int)
    with DeclaredSearch.open(path, labels, GRID, delta=0.1) as search:
        high = search.query(labels ^ coin(0), key={"depth": 1, "leaf": 7}).high
    again = DeclaredSearch.open(path, labels.astype(float))
    assert again.answers.highs.tolist() == [pytest.approx(high, rel=1e-12)]
    assert again.n_answered == 1
    with pytest.raises(ValueError, match="was made for another holdout"):
        DeclaredSearch.open(path, 1 - labels)
    with pytest.raises(ValueError, match="was made for another holdout"):
        DeclaredSearch.open(path, holdout_id="mine")


def test_nothing_in_the_file_holds_losses_or_labels(path):
    labels = coin(9, 0.5).astype(int)
    search = DeclaredSearch.open(path, labels, GRID, delta=0.1)
    search.query(labels ^ coin(0), key={"depth": 1, "leaf": 7})
    content = path.read_bytes()
    for bits in (coin(0), labels):
        assert pack_losses(bits).words.tobytes()[:8] not in content
    assert oct(path.stat().st_mode & 0o777) == "0o600" or os.name == "nt"
    assert os.listdir(path.parent) == ["search.db"]  # nothing is left beside it


def ask(task):
    search, seeds = task
    for seed in seeds:
        search.query(coin(seed), key={"depth": 1, "leaf": seed})


@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_workers_write_to_one_record(path, method):
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"this system cannot {method}")
    search = DeclaredSearch.open(path, M, GRID, delta=0.1, durability="process")
    search.query(coin(0), key={"depth": 1, "leaf": 0})
    with warnings.catch_warnings(), multiprocessing.get_context(method).Pool(3) as pool:
        warnings.simplefilter("ignore", DeprecationWarning)  # of fork beside threads
        pool.map(ask, [(search, range(start, start + 12)) for start in (0, 6, 12)])
    assert search.n_answered == 24
    assert sorted(key["leaf"] for key in search.answers.keys) == list(range(24))


def test_threads_write_to_one_record(path):
    search = DeclaredSearch.open(path, M, GRID, delta=0.1, durability="process")
    failed = []

    def run(start):
        try:
            ask((search, range(start, start + 10)))
        except BaseException as error:
            failed.append(error)

    at_once(run, (0, 5, 10))
    assert not failed and search.n_answered == 20


def test_a_copy_of_an_opened_search_writes_to_the_same_record(path):
    search = DeclaredSearch.open(path, M, GRID, delta=0.1)
    pickle.loads(pickle.dumps(search)).query(coin(0), key={"depth": 1, "leaf": 7})
    assert search.n_answered == 1 and search.best.key == {"depth": 1, "leaf": 7}
    search.close()
    assert search.query(coin(0), key={"depth": 1, "leaf": 7}).number == 1


def test_a_record_that_is_not_there_raises(path, tmp_path):
    with pytest.raises(FileNotFoundError):
        DeclaredSearch.open(path)
    with pytest.raises(FileNotFoundError, match="no such folder"):
        DeclaredSearch.open(tmp_path / "none" / "search.db", M, GRID, delta=0.1)
    search = DeclaredSearch.open(path, M, GRID, delta=0.1)
    path.unlink()
    with pytest.raises(FileNotFoundError, match="search.db"):
        search.query(coin(0), key={"depth": 1, "leaf": 7})
    assert not path.exists()


@pytest.mark.parametrize("harm", ["text", "empty", "guard", "cut", "table", "description"])
def test_what_is_no_record_of_a_search_raises(path, harm):
    if harm == "text":
        path.write_text("not a database, but long enough for a header of one hundred bytes" * 9)
    elif harm == "empty":
        path.touch()
    elif harm == "guard":
        RadaBound.open(path, M, epsilon=0.1, delta=0.1).close()
    else:
        DeclaredSearch.open(path, M, GRID, delta=0.1)
        if harm == "cut":
            path.write_bytes(path.read_bytes()[:6000])
        else:
            statement = {
                "table": "ALTER TABLE query ADD COLUMN more",
                "description": "UPDATE search SET description = '[1]'",
            }[harm]
            database = sqlite3.connect(path)
            database.execute(statement)
            database.commit()
            database.close()
    before = path.read_bytes()
    with pytest.raises(ValueError, match="search.db"):
        DeclaredSearch.open(path)
    assert path.read_bytes() == before


# ---- damage --------------------------------------------------------------------------------------


def edited(path, *statements):
    """A record of two answers, which somebody has edited since."""
    with DeclaredSearch.open(path, M, GRID, delta=0.1) as search:
        search.query(coin(0), key={"depth": 1, "leaf": 7})
        search.query(coin(1) * 0.5, key={"depth": 2, "leaf": 8})
    database = sqlite3.connect(path, isolation_level=None)
    for statement in statements:
        database.execute(statement)
    database.close()


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("code", "'[[0, 1], [0, 8]]'"),
        ("code", "CAST(x'FFFE' AS TEXT)"),
        ("rerun", "2"),
        ("summary", "'[81, 24]'"),
        ("summary", "x'00'"),
        ("nats", "0.5"),
        ("fingerprint", "7"),
        ("checksum", "zeroblob(8)"),
    ],
)
def test_an_altered_row_is_damage(path, column, value):
    edited(path, f"UPDATE query SET {column} = {value} WHERE rowid = 2")
    search, before = DeclaredSearch.open(path), path.read_bytes()
    for look in (lambda: search.answers, lambda: search.best):
        with pytest.raises(ValueError, match="search.db is damaged"):
            look()
    if column not in ("code", "rerun"):
        with pytest.raises(ValueError, match="search.db is damaged"):
            search.query(coin(1) * 0.5, key={"depth": 2, "leaf": 8})
    assert path.read_bytes() == before
    assert search.query(coin(0), key={"depth": 1, "leaf": 7}).number == 2


def test_a_row_of_another_search_is_damage(path):
    other = path.with_name("other.db")
    edited(other)
    edited(path, f"ATTACH '{other}' AS other", "DELETE FROM query WHERE rowid = 2")
    assert len(DeclaredSearch.open(path).answers.keys) == 1
    database = sqlite3.connect(path, isolation_level=None)
    database.execute(f"ATTACH '{other}' AS other")
    database.execute("INSERT INTO main.query SELECT * FROM other.query WHERE rowid = 2")
    database.close()
    with pytest.raises(ValueError, match="the checksum of a query does not match"):
        DeclaredSearch.open(path).answers  # noqa: B018


@pytest.mark.thorough
def test_a_flipped_bit_is_refused_or_changes_nothing(path):
    edited(path)
    whole = path.read_bytes()

    def found():
        search = DeclaredSearch.open(path, durability="process")
        return repr(search), search.answers.keys, search.answers.highs.tolist()

    expected, n_refused = found(), 0
    for bit in range(0, 8 * len(whole), 61):  # a prime, so that every place in a byte is met
        altered = bytearray(whole)
        altered[bit // 8] ^= 1 << bit % 8
        path.write_bytes(altered)
        try:
            assert found() == expected
        except ValueError as error:
            assert "search.db" in str(error)
            n_refused += 1
    assert n_refused > 20


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE other (x)",
        "CREATE INDEX i ON query (summary)",
        "ANALYZE",
        "DELETE FROM search",
        "INSERT INTO search SELECT * FROM search",
        "UPDATE search SET description = x'00'",
        "UPDATE search SET description = CAST(x'FFFE' AS TEXT)",
        "UPDATE search SET description = replace(description, '0.1', '0.2')",
        "UPDATE search SET checksum = zeroblob(8)",
        "PRAGMA user_version = 2",
        "PRAGMA user_version = 3",
        "PRAGMA application_id = 1380011073",
    ],
)
def test_a_record_of_another_form_is_refused(path, statement):
    edited(path, statement)
    before = path.read_bytes()
    with pytest.raises(ValueError, match="search.db") as refused:
        DeclaredSearch.open(path)
    assert "\n" not in str(refused.value) and len(str(refused.value)) < 1000
    assert path.read_bytes() == before and os.listdir(path.parent) == ["search.db"]


@pytest.mark.skipif(os.name == "nt", reason="hard links")
def test_a_record_with_a_second_name_is_not_written(path):
    search, link = DeclaredSearch.open(path, M, GRID, delta=0.1), path.with_name("link")
    os.link(path, link)
    for look in (
        lambda: search.query(coin(0), key={"depth": 1, "leaf": 7}),
        lambda: search.n_answered,
        lambda: DeclaredSearch.open(link),
        lambda: DeclaredSearch.open(path, M, GRID, delta=0.1),
    ):
        with pytest.raises(RuntimeError, match="is one of 2 names of one file"):
            look()
    link.unlink()
    assert search.query(coin(0), key={"depth": 1, "leaf": 7}).number == 1


def test_the_log_of_another_record_is_not_taken_for_the_new_ones(path):
    path.with_name("search.db-journal").write_bytes(b"of another")
    with pytest.raises(ValueError, match="search.db-journal is the log of a database that is gone"):
        DeclaredSearch.open(path, M, GRID, delta=0.1)
    assert os.listdir(path.parent) == ["search.db-journal"]


@pytest.mark.parametrize("spell", [str, os.fsencode])
def test_a_path_is_a_path_however_it_is_spelled(path, spell):
    search = DeclaredSearch.open(spell(path), M, GRID, delta=0.1)
    search.query(coin(0), key={"depth": 1, "leaf": 7})
    assert DeclaredSearch.open(spell(path)).n_answered == 1 and os.listdir(path.parent) == [
        path.name
    ]


def test_ctrl_c_ends_the_wait_for_another_process(path):
    search = DeclaredSearch.open(path, M, GRID, delta=0.1)
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    interrupt = threading.Timer(0.3, _thread.interrupt_main)
    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        interrupt.start()
        search.query(coin(0), key={"depth": 1, "leaf": 7})
    assert time.monotonic() - begun < 20
    interrupt.join()
    holder.close()
    assert search.query(coin(0), key={"depth": 1, "leaf": 7}).number == 1


# ---- a block against itself, and against what was asked before ----------------------------------

LABELS = coin(20, 0.5).astype(int)
# how rows of a block are made of a seed, for a search on losses of both kinds, and on labels
BLOCKS = {
    "bits": (lambda: M, lambda seed: coin(seed)),
    "real losses": (lambda: M, lambda seed: 0.5 * coin(seed)),
    "predictions": (lambda: LABELS, lambda seed: LABELS ^ coin(seed)),
    "scores": (
        lambda: Holdout(LABELS, metric="roc_auc"),
        lambda seed: np.random.default_rng(seed).normal(size=M),
    ),
    "weights": (
        lambda: Holdout(LABELS, sample_weight=1.0 + np.arange(M) % 3),
        lambda seed: LABELS ^ coin(seed),
    ),
}


@pytest.mark.parametrize("reruns", [None, [1, 2, 1, 3, 2]])
@pytest.mark.parametrize("kind", BLOCKS)
@pytest.mark.parametrize("stored", [False, True])
def test_a_key_twice_in_a_block_has_the_same_rows_or_is_refused(path, stored, kind, reruns):
    judged, row = BLOCKS[kind]
    options = {"delta": 0.1, "allow_reruns": reruns is not None}
    make = DeclaredSearch.open if stored else DeclaredSearch
    arguments = ([path] if stored else []) + [judged(), 100]
    search = make(*arguments, **options)
    # the first, the third and the last are one query; or with reruns the first and the third alone
    keys = [7, 8, 7, 9, 7 if reruns is None else 8]
    same = [0, 1, 0, 2, 0 if reruns is None else 1]
    for place in (2, 4):
        wrong = list(same)
        wrong[place] = 5  # other rows than those of that query before it in the block
        with pytest.raises(ValueError, match=f"key must stand for one model, got {keys[place]} "):
            search.query_many(np.stack([row(seed) for seed in wrong]), keys=keys, reruns=reruns)
        assert search.n_answered == 0 and len(search.answers) == 0
    answers = search.query_many(np.stack([row(seed) for seed in same]), keys=keys, reruns=reruns)
    assert answers.numbers.tolist() == [1, 2, 2, 3, 3] and search.n_answered == 3
    with pytest.raises(ValueError, match="key must stand for one model"):  # and against the record
        search.query_many(np.stack([row(30), row(5)]), keys=[11, 7])
    assert search.n_answered == 3


# ---- a database that was used is of what it was made on ------------------------------------------

TWO = {"roc_auc", "f1", "accuracy"}
JUDGED = {
    "losses": (lambda: Losses(M), {}),
    "other m": (lambda: Losses(M - 1), {}),
    "labels": (lambda: Holdout(LABELS), {}),
    "other labels": (lambda: Holdout(1 - LABELS), {}),
    **{name: (lambda name=name: Holdout(LABELS, metric=name), {}) for name in sorted(TWO)},
    "the other class": (lambda: Holdout(LABELS, metric=F1(pos_label=0)), {}),
    "more classes": (lambda: Holdout(LABELS, classes=[0, 1, 2]), {}),
    "weights": (lambda: Holdout(LABELS, sample_weight=1.0 + np.arange(M) % 3), {}),
    "other weights": (lambda: Holdout(LABELS, sample_weight=1.0 + np.arange(M) % 4), {}),
    "groups": (lambda: Holdout(LABELS, groups=np.arange(M) // 2), {}),
    "baseline": (lambda: Holdout(LABELS), {"baseline": np.zeros(M, int)}),
    "other baseline": (lambda: Holdout(LABELS), {"baseline": np.ones(M, int)}),
    "folds": (lambda: Holdout(LABELS), {"n_folds": 5}),
    "one side": (lambda: Holdout(LABELS), {"two_sided": False}),
    "reruns": (lambda: Holdout(LABELS), {"allow_reruns": True}),
}


def of_search(path, name):
    judged, options = JUDGED[name]
    return DeclaredSearch.open(path, judged(), 100, delta=0.1, **options)


def of_sequence(path, name):
    judged, options = JUDGED[name]
    if options:
        pytest.skip("a fixed sequence has no such option")
    weighted = judged().weighting is not None
    return FixedSequence.open(
        path, judged(), epsilon=0.9, delta=0.1, n_vectors=8 if weighted else 0, seed=3
    )


AT_ONCE = ("losses", "labels", "f1")


@pytest.mark.parametrize("used", [True, pytest.param(False, marks=pytest.mark.thorough)])
@pytest.mark.parametrize("make", [of_search, of_sequence])
@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=[] if n in AT_ONCE else pytest.mark.thorough) for n in JUDGED],
)
def test_a_database_opens_for_what_it_was_made_on_alone(path, name, make, used):
    """Labels where losses were answered, and every other change of what is judged."""
    with make(path, name) as guard:
        rows = np.zeros(guard.n_samples, int)
        if used:
            guard.query(rows, **({"key": 3} if make is of_search else {}))
    for other in JUDGED:
        if other == name or make is of_sequence and JUDGED[other][1]:
            continue
        # two classes, or three of which the holdout has two, are the same labels for an error rate
        if {name, other} == {"labels", "more classes"}:
            continue
        with pytest.raises(ValueError):
            make(path, other).close()
            pytest.fail(f"opened for {other}")
    with make(path, name) as again:
        assert again.n_answered == used


@pytest.mark.parametrize("put", [os.replace, shutil.copyfile])
@pytest.mark.parametrize("other", ["older copy", "empty", "another search"])
def test_a_file_put_in_its_place_is_noticed_before_a_number_is_given_twice(path, other, put):
    """By what is in it: a file that is not open may get the inode of the one that was removed."""
    search = DeclaredSearch.open(path, M, GRID, delta=0.1)
    copy = path.with_name("copy")
    if other == "older copy":
        shutil.copyfile(path, copy)
    search.query(coin(0), key={"depth": 1, "leaf": 7})
    if other != "older copy":
        made = DeclaredSearch.open(copy, M, GRID, delta=0.1)
        for leaf in range(2 if other == "another search" else 0):
            made.query(coin(leaf), key={"depth": 3, "leaf": leaf})
    workers = pickle.loads(pickle.dumps(search))
    put(copy, path)
    for each in (search, workers):
        for use in (
            lambda each=each: each.query(coin(1), key={"depth": 2, "leaf": 7}),
            lambda each=each: each.n_answered,
            lambda each=each: each.answers,
        ):
            with pytest.raises(RuntimeError, match=r"search.db is another file than when it was"):
                use()
    anew = DeclaredSearch.open(path, M, GRID, delta=0.1)
    assert anew.query(coin(1), key={"depth": 2, "leaf": 7}).number == (
        3 if other == "another search" else 1
    )


class LateError(sqlite3.Connection):
    """A connection whose COMMIT is done, and then fails to let go of its locks, as under ENOLCK."""

    code = sqlite3.SQLITE_IOERR_UNLOCK

    def execute(self, sql, *values):
        done = super().execute(sql, *values)
        if sql == "COMMIT":
            error = sqlite3.OperationalError("disk I/O error")
            error.sqlite_errorcode = self.code
            raise error
        return done


@pytest.mark.parametrize("code", [sqlite3.SQLITE_IOERR_UNLOCK, sqlite3.SQLITE_IOERR_RDLOCK])
def test_what_is_committed_is_not_said_to_be_lost_where_locks_cannot_be_let_go(
    path, code, monkeypatch
):
    search, real = DeclaredSearch.open(path, M, GRID, delta=0.1), sqlite3.connect
    monkeypatch.setattr(LateError, "code", code)
    monkeypatch.setattr(sqlite3, "connect", lambda *a, **k: real(*a, factory=LateError, **k))
    assert search.query(coin(0), key={"depth": 1, "leaf": 7}).number == 1
    monkeypatch.setattr(LateError, "code", sqlite3.SQLITE_IOERR_WRITE)
    with pytest.raises(OSError, match="search.db"):
        search.query(coin(1), key={"depth": 2, "leaf": 7})
    monkeypatch.undo()
    assert DeclaredSearch.open(path).answers.keys[0] == {"depth": 1, "leaf": 7}
