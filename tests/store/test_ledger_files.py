"""Opening a guard's database: which file is opened for whom, what is refused, and what is left."""

import gc
import os
import sqlite3
import sys

import numpy as np
import pytest
from support import query

from radabound_fast import DeclaredSearch, GuessAndCheck, Ladder, RadaBound
from radabound_fast.experiments.thresholdout import Thresholdout
from radabound_fast.store.ledger import Ledger

posix = pytest.mark.skipif(sys.platform == "win32", reason="POSIX modes")

M = 1000
MADE = {"judged": M, "epsilon": 0.1, "delta": 0.1, "bound": "mclt"}
QUICK = {"durability": "process"}
MECHANISMS = [
    (GuessAndCheck, {"epsilon": 0.2, "delta": 0.1}),
    (Ladder, {"step": 0.01, "delta": 0.1}),
    (Thresholdout, {"threshold": 0.1, "noise": 0.02, "budget": 9}),
]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "guard.db"


# ---- whose it is ---------------------------------------------------------------------------------


def test_the_stored_seed_is_taken_and_another_refused_without_showing_it(path):
    with RadaBound.open(path, M, epsilon=0.1, delta=0.1) as guard:
        seed = guard.seed
    for same in (None, seed):
        with RadaBound.open(path, M, epsilon=0.1, delta=0.1, seed=same) as guard:
            assert guard.seed == seed
    with pytest.raises(ValueError, match="seed must be that with which .* was made") as refused:
        RadaBound.open(path, M, epsilon=0.1, delta=0.1, seed=7)
    assert str(seed) not in str(refused.value)
    with Thresholdout.open(path.with_name("t"), M, threshold=0.1, noise=0.1, budget=3) as guard:
        seed = guard.seed
    with Thresholdout.open(path.with_name("t"), M, threshold=0.1, noise=0.1, budget=3) as guard:
        assert guard.seed == seed


def test_a_file_opens_without_parameters_and_is_not_made_without(path):
    for kind in (RadaBound, GuessAndCheck, Ladder, Thresholdout):
        with pytest.raises(FileNotFoundError, match="guard"):
            kind.open(path)
    with pytest.raises(ValueError, match="epsilon"):
        RadaBound.open(path, M, epsilon=2, delta=0.1)
    assert os.listdir(path.parent) == []
    with pytest.raises(FileNotFoundError):
        RadaBound.open(path.parent / "no such folder" / "guard", M, epsilon=0.1, delta=0.1)


def test_a_name_of_the_holdout_is_given_again_or_left_out(path):
    RadaBound.open(path, **MADE, holdout_id="digits").close()
    for holdout_id in ("digits", None):
        RadaBound.open(path, **MADE, holdout_id=holdout_id).close()
        RadaBound.open(path, holdout_id=holdout_id).close()
    for opened in (MADE, {}):
        with pytest.raises(ValueError, match="made for another holdout") as refused:
            RadaBound.open(path, **opened, holdout_id="letters")
        assert "digits" not in str(refused.value)
    RadaBound.open(path.with_name("unnamed"), **MADE).close()
    with pytest.raises(ValueError, match="or for none by name"):
        RadaBound.open(path.with_name("unnamed"), holdout_id="digits")


LABELS = np.arange(M) % 3
NAMES = np.array(["cat", "dog", "owl"])[LABELS]


@pytest.mark.parametrize(
    ("labels", "equal", "other"),
    [
        (LABELS, [LABELS.astype("u1"), LABELS.astype(float), LABELS.tolist()], LABELS[::-1]),
        (LABELS > 0, [(LABELS > 0).astype(int)], LABELS == 0),
        (NAMES, [NAMES.astype("S"), NAMES.astype(object), NAMES.tolist()], NAMES[::-1]),
        (NAMES, [np.array(list(NAMES), object)], np.char.upper(NAMES)),  # of np.str_
        (LABELS, [np.array(list(LABELS), object)], LABELS + 1),  # of np.int64
    ],
    ids=["numbers", "truths", "strings", "objects of strings", "objects of numbers"],
)
def test_a_guard_opens_for_equal_labels_of_any_dtype_and_for_no_others(path, labels, equal, other):
    made = {name: MADE[name] for name in ("epsilon", "delta", "bound")}
    with RadaBound.open(path, labels, **QUICK, **made) as guard:
        assert guard.query(labels).value == 0.0
    for same in equal:
        for parameters in (made, {}):
            with RadaBound.open(path, same, **parameters) as guard:
                assert guard.n_answered == 1
    before = path.read_bytes()
    for labels in (other, other[:-1]):
        for parameters in ({}, made):
            with pytest.raises(ValueError, match=r"another holdout|n_samples must be 1000"):
                RadaBound.open(path, labels, **parameters)
    with pytest.raises(ValueError, match="another holdout"):
        RadaBound.open(path, holdout_id="digits")
    assert path.read_bytes() == before


def test_a_file_without_labels_opens_for_none(path):
    RadaBound.open(path, M, epsilon=0.1, delta=0.1).close()
    with pytest.raises(ValueError, match="another holdout"):
        RadaBound.open(path, LABELS)


@pytest.mark.parametrize(("kind", "parameters"), MECHANISMS)
def test_a_guard_is_opened_on_labels_and_as_no_other_kind(path, kind, parameters):
    with kind.open(path, LABELS, **QUICK, **parameters) as guard:
        assert query(guard, LABELS, 0.0).number == 1
    with kind.open(path, LABELS.astype("i1")) as guard:
        assert guard.n_answered == 1 and type(guard) is kind
    for other in {RadaBound, GuessAndCheck, Ladder, Thresholdout} - {kind}:
        with pytest.raises(ValueError, match=f"must hold a {other.__name__}, it holds a"):
            other.open(path)


# ---- what SQLite is asked for --------------------------------------------------------------------


def asked_of(guard, statement):
    return guard._record._database.execute(statement).fetchone()[0]


@pytest.mark.parametrize("n_vectors", [1, 60, 130, 9000])
def test_the_row_fills_one_page_of_the_least_size_that_holds_it(path, n_vectors):
    """A page is what a commit writes; beside the row it has room for 128 bytes of SQLite's own."""
    with RadaBound.open(path, M, epsilon=0.1, delta=0.1, n_vectors=n_vectors) as guard:
        lengths = "SELECT length(CAST(description AS BLOB)) + length(state) FROM guard"
        n_bytes = asked_of(guard, lengths) + 128
        fits = [size for size in (1024, 2048, 4096, 8192, 16384, 32768, 65536) if size >= n_bytes]
        assert asked_of(guard, "PRAGMA page_size") == (fits or [65536])[0]


@pytest.mark.parametrize("n_vectors", [1, 130])
def test_the_log_is_written_back_when_it_has_eight_mebibytes(path, n_vectors):
    with RadaBound.open(path, M, epsilon=0.1, delta=0.1, n_vectors=n_vectors) as guard:
        n_pages = asked_of(guard, "PRAGMA wal_autocheckpoint")
        assert n_pages * asked_of(guard, "PRAGMA page_size") == 2**23


# ---- what is no guard's database, and what is left of it -----------------------------------------


def made(path, **parameters):
    with RadaBound.open(path, **MADE, **parameters) as guard:
        guard.query(LABELS == 0)
    return path.read_bytes()


def edited(path, *statements):
    database = sqlite3.connect(path, isolation_level=None)
    for statement in statements:
        database.execute(statement)
    database.close()
    return path.read_bytes()


def refused(path, message):
    """The file is refused, bare and with parameters, and left as it was."""
    before = path.read_bytes()
    for parameters in (MADE, {}):
        with pytest.raises(ValueError, match=message):
            RadaBound.open(path, **parameters)
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == [path.name]


@pytest.mark.parametrize("content", [b"\x93NUMPY\x01\x00", b"hello" * 1000, b"\x89RADA\r\n\x1a"])
def test_a_foreign_file_is_refused_and_left_as_it_was(path, content):
    path.write_bytes(content)
    refused(path, "guard.db is (damaged or not a database of|not the database of a guard)")


def test_an_empty_file_and_a_strange_database_are_no_guards(path):
    path.write_bytes(b"")
    refused(path, "guard.db is not the database of a guard")
    edited(path, "CREATE TABLE guard (description TEXT, state BLOB)")
    refused(path, "guard.db is not the database of a guard")


def test_a_later_format_is_refused_by_its_number(path):
    made(path)
    edited(path, "PRAGMA user_version = 3")
    refused(path, "guard.db has format version 3, this program reads 1 and 2")


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE guard SET state = zeroblob(length(state))",
        "UPDATE guard SET state = substr(state, 1, length(state) - 8)",
        "UPDATE guard SET state = 'text'",
        "UPDATE guard SET description = replace(description, '0.1', '0.9')",
        "INSERT INTO guard SELECT * FROM guard",
        "DELETE FROM guard",
        "DROP TABLE guard",
        # what another program does to a database that it takes for its own
        "ANALYZE",
        "CREATE TABLE other (x)",
        "ALTER TABLE guard ADD COLUMN more",
    ],
)
def test_an_altered_row_is_refused(path, statement):
    made(path)
    edited(path, statement)
    refused(path, "guard.db is damaged")


def test_what_is_no_text_is_refused_without_being_shown(path):
    made(path, seed=987654321)
    edited(path, "UPDATE guard SET description = CAST(description || x'0AFF' AS TEXT)")
    with pytest.raises(ValueError, match="guard.db is damaged .*: it holds text that is not UTF-8"):
        RadaBound.open(path)
    refused(path, "^((?!987654321).)*$")


def test_a_file_cut_short_anywhere_is_refused(path):
    whole = made(path)
    for length in range(1, len(whole), 97):
        path.write_bytes(whole[:length])
        refused(path, "guard.db is (damaged|not the database of a guard)")


def test_a_damaged_list_of_free_pages_is_refused(path):
    """Nothing of the state is there, but the next to write could take a page that is in use."""
    whole = made(path)
    for place in range(32, 40):  # of the first such page, and how many there are
        altered = bytearray(whole)
        altered[place] ^= 1
        path.write_bytes(altered)
        refused(path, "guard.db is damaged")


def test_a_damaged_header_is_never_taken_for_a_disk_that_cannot_be_written(path):
    """Every byte of SQLite's header, of a guard and of a search."""
    search = path.with_name("search.db")
    made_of = {"judged": M, "space": 3, "delta": 0.1}
    DeclaredSearch.open(search, **made_of, **QUICK).query(LABELS == 0, key=0)

    def ask_guard():
        with RadaBound.open(path, **QUICK) as guard:
            assert guard.query(LABELS == 0).number == 2

    def ask_search():
        assert DeclaredSearch.open(search, **QUICK).query(LABELS == 0, key=1).number == 2

    for file, ask in ((path, ask_guard), (search, ask_search)):
        whole = made(path) if file == path else search.read_bytes()
        refused_at = set()
        for place in range(100):
            for value in {whole[place] ^ 0x80, 5} - {whole[place]}:
                altered = bytearray(whole)
                altered[place] = value
                file.write_bytes(altered)
                try:
                    ask()
                except ValueError as error:  # and no OSError
                    assert file.name in str(error)
                    refused_at.add(place)
        assert {*range(16), 18, 19, 20, 21, 22, 23, *range(60, 64), *range(68, 72)} <= refused_at


def test_a_damaged_state_is_refused_each_time_that_it_is_read(path):
    with RadaBound.open(path, **MADE) as guard:
        guard.query(LABELS == 0)
        edited(path, "UPDATE guard SET state = zeroblob(length(state))")
        for ask in (guard._record.read, guard._record.read, lambda: guard.n_answered) * 2:
            with pytest.raises(ValueError, match="guard.db is damaged"):
                ask()


def test_a_flipped_bit_is_refused_or_changes_nothing(path):
    whole = made(path, seed=3)
    with RadaBound.open(path) as guard:
        expected = repr(guard._parameters()), guard._shared.progress().tolist()
    n_refused = 0
    for bit in range(0, 8 * len(whole), 61):  # a prime, so that every place in a byte is met
        altered = bytearray(whole)
        altered[bit // 8] ^= 1 << bit % 8
        path.write_bytes(altered)
        try:
            with RadaBound.open(path, **QUICK) as guard:
                assert (repr(guard._parameters()), guard._shared.progress().tolist()) == expected
        except ValueError as error:
            assert "guard.db" in str(error)
            n_refused += 1
    assert n_refused > 20


# ---- what stands in the folder -------------------------------------------------------------------


@posix
def test_all_files_are_their_owners_alone_and_one_is_left(path):
    with RadaBound.open(path, **MADE) as guard:
        guard.query(LABELS == 0)
        assert sorted(os.listdir(path.parent)) == [path.name + end for end in ("", "-shm", "-wal")]
        modes = {entry.stat().st_mode & 0o777 for entry in os.scandir(path.parent)}
    assert modes == {0o600}
    assert os.listdir(path.parent) == [path.name]


@pytest.mark.parametrize("name", ["a b?c=d#e%20.db", "ünïcode ☂", ":memory:", "file:x"])
def test_a_path_is_a_path_whatever_is_in_it(tmp_path, name, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with RadaBound.open(name, **MADE) as guard:
        assert guard.query(LABELS == 0).number == 1
    assert os.listdir() == [name]
    assert RadaBound.open(tmp_path / name).n_answered == 1


# every kind of path that Python's own functions take
SPELLINGS = {"str": str, "bytes": os.fsencode, "PathLike": lambda path: path}


class Spelled:
    """What is no pathlib.Path, and gives bytes."""

    def __init__(self, path):
        self.path = path

    def __fspath__(self):
        return os.fsencode(self.path)


@pytest.mark.parametrize("spell", [*SPELLINGS.values(), Spelled], ids=[*SPELLINGS, "of bytes"])
@pytest.mark.parametrize(("kind", "parameters"), [(RadaBound, MADE), *MECHANISMS])
def test_a_path_is_a_path_however_it_is_spelled(path, kind, parameters, spell):
    parameters = {key: value for key, value in parameters.items() if key != "judged"}
    with kind.open(spell(path), M, **QUICK, **parameters) as guard:
        query(guard, LABELS == 0, 0.3)
    with kind.open(spell(path)) as guard:
        assert guard.n_answered == 1
    with kind.open(spell(path.with_name("labelled")), LABELS, **parameters) as guard:
        assert query(guard, LABELS, 0.0).number == 1
    path.with_name("other").write_bytes(b"no database")
    for name, error in [("other", ValueError), ("none", FileNotFoundError)]:
        with pytest.raises(error, match=name) as refused:
            kind.open(spell(path.with_name(name)))
        assert "b'" not in str(refused.value)
    assert sorted(os.listdir(path.parent)) == ["guard.db", "labelled", "other"]


@pytest.mark.parametrize("path", [3, None, 1.5, ["guard"]], ids=str)
def test_what_is_no_path_is_refused_before_anything_changes(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for parameters in ({}, MADE):
        with pytest.raises(TypeError, match="expected str, bytes or os.PathLike object, not"):
            RadaBound.open(path, **parameters)
    assert os.listdir() == []


@pytest.mark.parametrize("what", ["a folder", "a pipe"])
@posix
def test_what_is_no_file_is_refused_at_once(path, what):
    path.mkdir() if what == "a folder" else os.mkfifo(path)
    for parameters in ({}, MADE):
        with pytest.raises(ValueError, match="guard.db is not a regular file"):
            RadaBound.open(path, **parameters)


@posix
def test_a_symbolic_link_is_the_file_it_points_to(path):
    link = path.with_name("link")
    link.symlink_to(path)
    with RadaBound.open(link, **MADE) as one, RadaBound.open(path) as other:
        one.query(LABELS == 0)
        assert other.n_answered == 1
    assert link.is_symlink() and path.exists()


def test_durability_is_one_of_two(path):
    with pytest.raises(ValueError, match="durability must be one of 'power', 'process', got 'no'"):
        RadaBound.open(path, **MADE, durability="no")
    assert os.listdir(path.parent) == []
    for durability, level in [("power", 2), ("process", 1)]:
        with RadaBound.open(path, **MADE, durability=durability) as guard:
            database = guard._record._database
            assert database.execute("PRAGMA synchronous").fetchone() == (level,)


# ---- the end of it -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "make",
    [lambda path: RadaBound.open(path, **MADE), lambda path: Ladder.open(path, M, 0.01, delta=0.1)],
    ids=["RadaBound", "Ladder"],
)
def test_a_closed_guard_answers_no_more_and_says_so(path, make):
    with make(path) as guard:
        guard.query(LABELS == 0)
        assert guard.query(LABELS == 0).number == 2
    guard.close()
    for ask in (guard.query, lambda losses: guard.query_many(losses[np.newaxis])):
        with pytest.raises(RuntimeError, match="is closed: open its database again"):
            ask(LABELS == 0)
    assert guard.n_answered == 2 and "n_answered=2" in repr(guard)
    with make(path) as again:
        assert again.n_answered == 2


@pytest.mark.parametrize(
    "guard",
    [RadaBound(**MADE), Ladder(M, 0.01, delta=0.1)],
    ids=["RadaBound", "Ladder"],
)
def test_what_is_in_no_database_cannot_be_closed(guard):
    with pytest.raises(RuntimeError, match="in no database"):
        guard.close()
    with pytest.raises(RuntimeError, match="in no database"), guard:
        raise AssertionError("entered")
    guard.query(LABELS == 0)


def test_an_error_in_a_with_block_closes_the_file(path):
    with pytest.raises(KeyError), RadaBound.open(path, LABELS, epsilon=0.1, delta=0.1):
        raise KeyError
    assert os.listdir(path.parent) == [path.name]


def test_a_dropped_guard_lets_go_of_its_file(path):
    guard = RadaBound.open(path, **MADE)
    other = Ladder.open(path.with_name("ladder"), LABELS, 0.01, delta=0.1)
    del guard, other
    gc.collect()
    assert sorted(os.listdir(path.parent)) == [path.name, "ladder"]


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="no /proc to count descriptors in")
@pytest.mark.thorough
def test_opening_a_thousand_times_keeps_nothing(path):
    made(path)
    n_open = len(os.listdir("/proc/self/fd"))
    for number in range(1000):
        guard = RadaBound.open(path, **QUICK)
        if number % 2:
            guard.close()
        del guard
        if number % 10 == 0:
            with pytest.raises(ValueError, match="epsilon"):
                RadaBound.open(path, **MADE | {"epsilon": 0.2})
    assert len(os.listdir("/proc/self/fd")) == n_open


def test_a_file_that_was_moved_is_not_counted_in(path):
    guard = RadaBound.open(path, **MADE)
    guard.query(LABELS == 0)
    path.rename(path.with_name("moved"))
    with pytest.raises((FileNotFoundError, RuntimeError), match="guard.db"):
        guard.query(LABELS == 0)


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no such folder: .*nowhere'$"):
        RadaBound.open(tmp_path / "nowhere" / "guard.db", 10, epsilon=0.5, delta=0.1)
    assert list(tmp_path.iterdir()) == []


def test_a_database_opens_while_a_service_adds_its_tables(path, monkeypatch):
    """The format and the tables are read one after the other, and must be those of one moment."""
    with RadaBound.open(path, **MADE) as guard:
        real, adding = Ledger._rows, [guard.share_transactions]

        def rows(ledger, statement, *values):
            found = real(ledger, statement, *values)
            if statement == "PRAGMA user_version" and adding:
                adding.pop()()
            return found

        monkeypatch.setattr(Ledger, "_rows", rows)
        with RadaBound.open(path) as again:
            assert not adding and again.n_answered == 0
