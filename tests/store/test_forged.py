"""Files and databases that a forger wrote: refused in one line, or a guard that works."""

import json
import os
import resource
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest

from radabound_fast import RadaBound, store
from radabound_fast import guards as all_guards
from radabound_fast.experiments.thresholdout import Thresholdout

sys.path.insert(0, str(Path(__file__).parents[1] / "fuzz"))
import forge  # noqa: E402

sys.path.remove(str(Path(__file__).parents[1] / "fuzz"))

ways = pytest.mark.parametrize("way", forge.WAYS)
guards = pytest.mark.parametrize("name", forge.GUARDS)

# numbers that some field of a state cannot be; floats by their bits
ODD_NUMBERS = [-1, 0, 1, 2, 3, 7, 2**31, 2**32, 2**40, 2**53, 2**53 + 1, 2**62, 2**63 - 1, -(2**63)]
ODD_NUMBERS += np.array([np.nan, np.inf, -np.inf, -0.5, 0.5, 1e-300, 1e300]).view("i8").tolist()
# JSON that some parameter cannot be
ODD_VALUES = ["null", "true", "false", "-1", "0", "1", "2", "3.0", "0.5", "-0.5", "1e400", "NaN"]
ODD_VALUES += ["-Infinity", "1e-300", str(2**64), "1" * 400, "9" * 5000, '"x"', '"mclt"', '""']
ODD_VALUES += ["[]", "[1]", "{}", "[" * 3000 + "]" * 3000, "[" * 100_000 + "]" * 100_000, "1 2"]


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "guard")


def forged(way, path, kind, description, numbers):
    """Whether it is refused."""
    forge.write(way, path, description, numbers)
    found = forge.refused(kind, way, path)
    os.unlink(path)
    return found


def test_every_mechanism_is_forged_here():
    made = [getattr(all_guards, name) for name in all_guards.__all__]
    kinds = {kind for kind in made if issubclass(kind, all_guards.Mechanism)}
    forged_here = {kind for kind, *_ in forge.GUARDS.values()}
    assert forged_here == kinds - {all_guards.Mechanism} | {RadaBound, Thresholdout}


@ways
@guards
def test_what_the_forger_left_alone_is_the_guard(path, way, name):
    kind, description, progress = forge.contents(name)
    text = forge.as_json(forge.description_for(way, description))
    forge.write(way, path, text, progress.tobytes())
    guard = kind.load(path) if way == "file" else kind.open(path)
    assert guard._shared._progress().tolist() == progress.tolist()
    assert guard._parameters() == description["parameters"]
    del guard
    assert not forge.refused(kind, way, path)


@ways
@guards
def test_any_number_of_a_state_may_be_any_other(path, way, name):
    kind, description, progress = forge.contents(name)
    text = forge.as_json(forge.description_for(way, description))
    n_refused = 0
    places = list(range(len(progress)))
    for place in places[:14] + places[14::5]:
        near = [int(progress[place]) + step for step in (-1, 1) if abs(progress[place]) < 2**62]
        for number in (ODD_NUMBERS if way == "file" else ODD_NUMBERS[place % 3 :: 3]) + near:
            altered = progress.copy()
            altered[place] = number
            n_refused += forged(way, path, kind, text, altered.tobytes())
    # a state of two numbers has fewer that may be others
    assert n_refused > (40 if way == "file" else 12) * min(1, len(places) / 7)


@ways
@pytest.mark.parametrize("name", ["fresh", "used", "halted", "real", "fixed"])
def test_a_state_with_a_least_sum_above_the_largest_is_refused(path, way, name):
    kind, description, progress = forge.contents(name)
    text = forge.as_json(forge.description_for(way, description))
    maxima, minima = np.split(np.arange(5, len(progress)), 2)
    for high, low in zip(maxima, minima, strict=True):
        altered = progress.copy()
        altered[high], altered[low] = -1, 1
        assert forged(way, path, kind, text, altered.tobytes())


@ways
@guards
def test_a_state_of_another_length_is_refused(path, way, name):
    kind, description, progress = forge.contents(name)
    text, whole = forge.as_json(forge.description_for(way, description)), progress.tobytes()
    for numbers in (b"", whole[:8], whole[:-8], whole + bytes(8), whole[8:], whole * 2, whole[:-3]):
        assert forged(way, path, kind, text, numbers), len(numbers)


@ways
@guards
def test_any_parameter_may_be_anything(path, way, name):
    kind, description, progress = forge.contents(name)
    parameters, n_allowed = description["parameters"], 0
    for changed in [*parameters, "another", "n_sample"]:
        for value in ODD_VALUES:
            text = forge.as_json(
                forge.description_for(way, description)
                | {"parameters": parameters | {changed: "HERE"}}
            ).replace('"HERE"', value)
            if not forged(way, path, kind, text, progress.tobytes()):
                # another guard's parameters, of which nothing in the state tells
                given = parameters | {changed: json.loads(value)}
                given.pop("weighting", None)  # a hash, or null
                other = kind(**given)
                assert forge.as_json(other._parameters()[changed]) == value
                n_allowed += 1
    assert n_allowed < 40
    for missing in parameters:
        rest = {key: value for key, value in parameters.items() if key != missing}
        text = forge.as_json(forge.description_for(way, description) | {"parameters": rest})
        assert forged(way, path, kind, text, progress.tobytes()), missing


TEXTS = [
    "", "{", "null", "[]", "0", '"x"', "{}", "[" * 100_000, '{"a":' * 50_000, "\ufeff{}", "\x00",
    "9" * 5000, "NaN", '{"kind": "RadaBound"}', '{"kind": "RadaBound", "parameters": {}}',
    '{"kind": "RadaBound", "parameters": {}, "holdout": null}', "é", "{}" + " " * 100_000,
]  # fmt: skip


@ways
@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_any_text_may_stand_for_a_description(path, way, text):
    progress = forge.contents("used")[2]
    assert forged(way, path, RadaBound, text, progress.tobytes())


@ways
def test_a_description_is_as_it_was_written_or_refused(path, way):
    kind, description, progress = forge.contents("used")
    text = forge.as_json(forge.description_for(way, description))
    for altered in [
        text.replace(": ", ":"),
        text + " ",
        text.replace('"kind": "RadaBound"', '"kind": "Ladder", "kind": "RadaBound"'),
        text.replace("0.9", "0.90"),
        text.replace("0.9", "9e-1"),
        text.replace('"seed": 1', '"seed": 1.0'),
        text.replace('"seed": 1', '"seed": true'),
        text.replace('"seed": 1', '"seed": null'),
        text.replace('"kind"', '"\\u006bind"'),
        text[:-1] + ', "z": 1}',
        forge.as_json(forge.description_for(way, description) | {"kind": None}),
        forge.as_json(forge.description_for(way, description) | {"kind": "Rada" * 100}),
        forge.as_json(forge.description_for(way, description) | {"kind": "Ladder"}),
        forge.as_json(forge.description_for(way, description) | {"parameters": [1]}),
        forge.as_json(description | {"holdout": 5}),
        forge.as_json(description | {"holdout": {}}),
    ]:
        assert altered != text
        assert forged(way, path, kind, altered, progress.tobytes()), altered


def test_a_header_that_is_not_of_what_follows_is_refused(path):
    kind, description, progress = forge.contents("used")
    state, n = forge.as_json(description), len(progress)
    for arrays in [
        f'{{"progress": [{n + 1}]}}', f'{{"progress": [{n}, 1]}}', f'{{"progress": {n}}}',
        f'{{"progress": [{n}.0]}}', f'{{"other": [{n}]}}', "{}", "[]", "null",
        f'{{"a": [1], "progress": [{n - 1}]}}', '{"progress": [-1]}', f'{{"progress": "{n}"}}',
    ]:  # fmt: skip
        header = f'{{"arrays": {arrays}, "state": {state}}}'.encode()
        forge.write_file(path, header, progress.tobytes())
        assert forge.refused(kind, "file", path), arrays
        os.unlink(path)
    for header in (b"", b"{}", b"[]", b"\xff", b"[" * 60_000, state.encode()):
        forge.write_file(path, header, progress.tobytes())
        assert forge.refused(kind, "file", path), header[:20]
        os.unlink(path)


def test_a_seed_that_a_forger_left_out_is_not_drawn(path):
    """A guard with other signs than its extremes would answer."""
    kind, description, progress = forge.contents("used")
    for seed in ({"seed": None}, {"seed": -1}, {"seed": 2**64}, {"seed": "1"}):
        parameters = description["parameters"] | seed
        text = forge.as_json(description | {"parameters": parameters, "holdout": None})
        forge.write_database(path, text, progress.tobytes())
        given = {
            key: value for key, value in parameters.items() if key not in ("seed", "weighting")
        }
        with pytest.raises(ValueError, match="guard"):
            RadaBound.open(path, **given)
        assert forge.refused(kind, "database", path)
        os.unlink(path)


# ---- databases of another make -------------------------------------------------------------------

TRAP = "WITH RECURSIVE r(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM r) SELECT max(x), '' FROM r"
GENERATED = forge.TABLE[:-1] + ", more INTEGER AS (length(state)) VIRTUAL)"
SWAPPED = "CREATE TABLE guard (state BLOB NOT NULL, description TEXT NOT NULL)"
SCHEMAS = {
    "a view": ["ALTER TABLE guard RENAME TO g", "CREATE VIEW guard AS SELECT * FROM g"],
    "a view that never ends": [
        "ALTER TABLE guard RENAME TO g",
        f"CREATE VIEW guard(description, state) AS {TRAP}",
    ],
    "a view alone": ["DROP TABLE guard", f"CREATE VIEW guard(description, state) AS {TRAP}"],
    "a trigger": [
        "CREATE TRIGGER t AFTER UPDATE ON guard BEGIN "
        "UPDATE guard SET description = description || 'x'; END"
    ],
    "an index": ["CREATE INDEX i ON guard (length(state))"],
    "another table": ["CREATE TABLE other (x)"],
    "another table first": [
        "ALTER TABLE guard RENAME TO g",
        "CREATE TABLE other (x)",
        "CREATE TABLE guard AS SELECT * FROM g",
        "DROP TABLE g",
    ],
    "another column": ["ALTER TABLE guard ADD COLUMN more"],
    "statistics": ["ANALYZE", "INSERT INTO sqlite_stat1 VALUES ('guard', NULL, '1 2 3')"],
    "no table": ["DROP TABLE guard"],
    "no row": ["DELETE FROM guard"],
    "two rows": ["INSERT INTO guard SELECT * FROM guard"],
    "the state as text": ["UPDATE guard SET state = 'text'"],
    "the state as a number": ["UPDATE guard SET state = 5"],
    "the description as a blob": ["UPDATE guard SET description = CAST(description AS BLOB)"],
    "the description as a number": ["UPDATE guard SET description = 0.5"],
    "a description that is no text": ["UPDATE guard SET description = CAST(x'FFFE' AS TEXT)"],
    "an empty state": ["UPDATE guard SET state = x''"],
    "a program of its own": ["PRAGMA application_id = 7"],
    "an earlier format": ["PRAGMA user_version = 0"],
    "a negative format": ["PRAGMA user_version = -1"],
}
TABLES = {
    "a generated column": GENERATED,
    "a strict table": forge.TABLE + " STRICT",
    "a check": forge.TABLE[:-1] + ", CHECK (length(state) > 0))",
    "a default": forge.TABLE.replace("TEXT NOT NULL", "TEXT NOT NULL DEFAULT 'x'"),
    "another type": forge.TABLE.replace("BLOB", "ANY"),
    "other words": forge.TABLE.replace("guard (", "guard  ("),
    "no rowid": forge.TABLE[:-1] + ", PRIMARY KEY (description)) WITHOUT ROWID",
    "columns in another order": SWAPPED,
}


def of_used_guard():
    _, description, progress = forge.contents("used")
    return forge.as_json(description | {"holdout": None}), progress.tobytes()


def refused_at_once(path):
    begun = time.monotonic()
    for parameters in ({}, {"n_samples": forge.M, "epsilon": 0.9, "delta": 0.5}):
        with pytest.raises(ValueError, match="guard"):
            RadaBound.open(path, **parameters)
    assert forge.refused(RadaBound, "database", path)
    assert time.monotonic() - begun < 3


@pytest.mark.parametrize("statements", SCHEMAS.values(), ids=SCHEMAS)
def test_a_database_of_another_form_is_refused_at_once(path, statements):
    forge.write_database(path, *of_used_guard(), *statements)
    refused_at_once(path)


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_a_table_of_another_form_is_refused(path, table):
    text, numbers = of_used_guard()
    if table in (GENERATED, SWAPPED):  # where a row of two values, in their order, does not fit
        forge.write_database(path, text, numbers, "DROP TABLE guard", table)
    else:
        forge.write_database(path, text, numbers, table=table)
    refused_at_once(path)


BIG = 60_000_000
LARGE = {
    "a large state": [f"UPDATE guard SET state = zeroblob({BIG})"],
    "a large description": [f"UPDATE guard SET description = hex(zeroblob({BIG // 2}))"],
    "many rows": [
        "INSERT INTO guard WITH RECURSIVE r(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM r "
        "WHERE x < 300000) SELECT 'description', zeroblob(100) FROM r"
    ],
    "many pages that nobody uses": [
        "CREATE TABLE other (x)",
        f"INSERT INTO other VALUES (zeroblob({BIG}))",
        "DROP TABLE other",
    ],
    "a large table beside": [
        "CREATE TABLE other (x)",
        f"INSERT INTO other VALUES (zeroblob({BIG}))",
    ],
    "many tables": [f"CREATE TABLE t{number} (x)" for number in range(3000)],
}
MEASURED = """
    import resource, sys, time
    from radabound_fast import RadaBound, store
    path, way = sys.argv[1:]
    read = RadaBound.load if way == "file" else RadaBound.open
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    begun = time.monotonic()
    try:
        read(path)
    except ValueError as error:
        print(str(error).replace(path, "guard"))
    print(time.monotonic() - begun)
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def measured(path, way):
    """What is said, in how many seconds, and by how many KB the process has grown."""
    size = os.stat(path).st_size
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(MEASURED), path, way],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stderr == ""
    said, seconds, grown = done.stdout.splitlines()
    assert os.stat(path).st_size == size and os.listdir(os.path.dirname(path)) == ["guard"]
    return said, float(seconds), int(grown)


@pytest.mark.parametrize("statements", LARGE.values(), ids=LARGE)
def test_a_large_database_is_refused_without_being_read(path, statements):
    forge.write_database(path, *of_used_guard(), *statements)
    said, seconds, grown = measured(path, "database")
    assert said.startswith("guard is damaged")
    assert seconds < 2 and grown < 20_000


def test_a_large_file_is_refused_without_being_kept(path):
    _, description, progress = forge.contents("used")
    forge.write("file", path, forge.as_json(description), progress.tobytes() + bytes(2 * BIG))
    said, seconds, grown = measured(path, "file")
    assert said.startswith(f"guard cannot be loaded: it has {len(progress) + 2 * BIG // 8} numbers")
    assert seconds < 5 and grown < 20_000
    with open(path, "r+b") as file:  # a hole, with a head that says so
        file.truncate(2**31)
        file.seek(16)
        file.write((2**31).to_bytes(8, "little"))
        file.seek(0)
        file.write(b"x")
    said, seconds, grown = measured(path, "file")
    assert "not a saved guard" in said and seconds < 1 and grown < 20_000


def test_a_large_state_that_another_owner_commits_is_not_read(tmp_path):
    path = tmp_path / "guard"
    losses = np.zeros(forge.M)
    with RadaBound.open(path, forge.M, epsilon=0.9, delta=0.5) as guard:
        guard.query(losses)
        forger = store.sqlite.connect(str(path), 0)
        forger.execute(f"UPDATE guard SET state = zeroblob({BIG})")
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for call in (lambda: guard.query(losses), lambda: guard.n_answered):
            with pytest.raises(ValueError, match="guard is damaged or not a database of"):
                call()
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 20_000
        forger.close()


def test_a_view_that_another_owner_puts_in_place_ends(tmp_path):
    path = tmp_path / "guard"
    losses = np.zeros(forge.M)
    with RadaBound.open(path, forge.M, epsilon=0.9, delta=0.5) as guard:
        guard.query(losses)
        forger = store.sqlite.connect(str(path), 0)
        for statement in SCHEMAS["a view that never ends"]:
            forger.execute(statement)
        forger.close()
        for call in (lambda: guard.query(losses), lambda: guard.n_answered):
            with pytest.raises(ValueError, match="guard is damaged .*: it takes too many steps"):
                call()
