"""The file of the answers: what is read from it is what was written, in CSV and in Parquet."""

import csv
import sys

import numpy as np
import pytest

from radabound_fast.files import output as answers
from radabound_fast.files.output import answers_file

pq = pytest.importorskip("pyarrow.parquet", reason="the files extra is not installed")

RANDOM = np.random.default_rng(0)
FLOATS = np.array([
    *(0.0, -0.0, 1.0, 0.1, 1 / 3, -2 / 3, 1e16, 1e22, 123456789.0, 9007199254740993.0),
    *(sys.float_info.min, -sys.float_info.min, sys.float_info.max, 5e-324, -5e-324),
    *(-2.2250738585072014e-308, float("inf"), float("-inf"), float("nan")),
    *(RANDOM.normal(size=5000) * 10.0 ** RANDOM.integers(-320, 300, 5000)),
    *RANDOM.random(5000),
])  # fmt: skip
QUERIES = np.arange(len(FLOATS)) + (2**63 - len(FLOATS))  # the last is the largest int64
TEXTS = ["plain", "a,b", 'say "x"', "two\nlines", " spaced ", "\u00fc", "=1+1"]


def rows_of(name):
    if name.endswith(".parquet"):
        table = pq.read_table(name)
        return table.column_names, [tuple(row.values()) for row in table.to_pylist()]
    with open(name, newline="", encoding="utf-8") as file:
        head, *rows = csv.reader(file)
    texts = sum(column in ("bound", "key") for column in head)
    return head, [(*row[:texts], int(row[texts]), *map(float, row[texts + 1 :])) for row in rows]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("name", ["a.csv", "a.txt", "a.parquet"])
@pytest.mark.parametrize("first", ["bound", "key", None])
def test_what_is_read_is_what_was_written(folder, name, first):
    columns = [*([first] if first else []), "query", "value", "low"]
    texts = np.resize(TEXTS, len(FLOATS)).tolist()
    with answers_file(name, columns, keep=False) as write:
        for i in range(0, len(FLOATS), 1000):
            rows = slice(i, i + 1000)
            texts[rows] = texts[rows] if first == "key" else [texts[i]] * len(texts[rows])
            block = {"query": QUERIES[rows], "value": FLOATS[rows], "low": -FLOATS[rows]}
            write(block | {"bound": texts[i], "key": texts[rows]})
    head, rows = rows_of(name)
    assert head == columns
    expected = zip(texts, QUERIES.tolist(), FLOATS.tolist(), (-FLOATS).tolist(), strict=True)
    assert repr(rows) == repr([row if first else row[1:] for row in expected])


def test_rows_lie_in_groups_whatever_the_blocks(folder, monkeypatch):
    monkeypatch.setattr(answers, "_ROW_GROUP", 100)
    with answers_file("a.parquet", ("bound", "query", "value"), keep=False) as write:
        for first in range(1, 300, 7):
            numbers = np.arange(first, first + 7)
            write({"bound": "ab"[first % 2], "query": numbers, "value": numbers / 8})
    found = pq.ParquetFile("a.parquet")
    sizes = [found.metadata.row_group(i).num_rows for i in range(found.num_row_groups)]
    assert sizes == [105, 105, 91]
    assert [str(kind) for kind in found.schema_arrow.types] == [
        "dictionary<values=string, indices=int32, ordered=0>", "int64", "double",
    ]  # fmt: skip
    rows = found.read().to_pylist()
    assert [row["query"] for row in rows] == list(range(1, 302))
    assert all(row["bound"] == "ab"[(1 + (row["query"] - 1) // 7 * 7) % 2] for row in rows)


@pytest.mark.parametrize("name", ["a.csv", "a.parquet"])
@pytest.mark.parametrize("stop", [ValueError, KeyboardInterrupt])
@pytest.mark.parametrize("keep", [False, True])
def test_what_was_written_before_an_error_stays_only_where_it_is_to(folder, name, stop, keep):
    with pytest.raises(stop), answers_file(name, ("query", "value"), keep=keep) as write:
        write({"query": np.array([1, 2]), "value": np.array([0.5, 0.25])})
        raise stop
    if keep:
        assert rows_of(name)[1] == [(1, 0.5), (2, 0.25)]
    else:
        with pytest.raises(FileNotFoundError):
            rows_of(name)
