""".csv files: which cells are numbers, what is compared as text, and what may be a header."""

import re
import sys

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from radabound_fast._kernels.rows import pack_rows
from radabound_fast.files import csv as _csv
from radabound_fast.files import reading as files
from radabound_fast.rows.labels import Labels


def written(path, rows):
    """A .csv file of these rows; a str is a row of one cell."""
    lines = [row if isinstance(row, str) else ",".join(map(str, row)) for row in rows]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def opened(tmp_path, labels, rows, transpose=False, **options):
    options["transpose"] = transpose  # these are small files, and often square ones
    return files.open_predictions(
        written(tmp_path / "y.csv", labels), written(tmp_path / "p.csv", rows), **options
    )


def refusal(tmp_path, labels, rows, **options):
    with pytest.raises(ValueError) as caught:
        opened(tmp_path, labels, rows, **options)
    message = str(caught.value).replace(f"{tmp_path}/", "")
    assert "\n" not in message
    return message


def error_rates(labels, rows):
    truth = Labels(labels)
    losses = [pack_rows(*truth.match(block, ndim=2)) for block in rows]
    n_wrong = [sum(word.bit_count() for word in row) for row in np.concatenate(losses).tolist()]
    return [n / len(labels) for n in n_wrong]


# ---- numbers ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "cells",
    [
        ["1_11", "11_1", "111"],
        ["007.1", "7.1", "7.10"],
        ["01", "1", "+1"],
        ["1.1", "1.10", "1.2"],  # releases
        ["1e3", "1000", "1E3"],
        ["9007199254740993", "9007199254740992", "9007199254740992.0"],
        ["18446744073709551616", "18446744073709551617", "1"],
        ["0.1", "0.10000000000000001", "1"],
        ["1", "0x1", "2"],
        ["1", "\u0661", "2"],  # Arabic for 1
        ["1", "one", "2"],
    ],
)
def test_different_texts_stay_different_classes(tmp_path, cells):
    labels, rows = opened(tmp_path, cells, [cells, cells[1:] + cells[:1]], **NO)
    assert labels.tolist() == cells
    assert error_rates(labels, rows) == [0, 1]


@pytest.mark.parametrize(
    ("cells", "numbers"),
    [
        (["1", "-1", "0"], [1, -1, 0]),
        (["1.0", "0.0", "-1.0"], [1, 0, -1]),  # pandas, where a value was missing once
        (["1", "0.0", "2.5"], [1, 0, 2.5]),
        (["0.30", "1.00", "-0.05"], [0.3, 1, -0.05]),  # "%.2f"
        (["1.000000000000000000e+00", "0.000000000000000000e+00"], [1, 0]),  # numpy.savetxt
        (["1e-05", "0.1", "1e+20"], [1e-5, 0.1, 1e20]),
        ([" 1", "0 ", "\t2"], [1, 0, 2]),
        (["9007199254740993", "9007199254740992"], [2**53 + 1, 2**53]),
        (["-9223372036854775808", "9223372036854775807"], [-(2**63), 2**63 - 1]),
        (["0", "-0"], [0, 0]),
    ],
)
def test_numbers_as_people_write_them_are_numbers(tmp_path, cells, numbers):
    labels, rows = opened(tmp_path, cells, [cells, cells[1:] + cells[:1]])
    assert labels.tolist() == numbers and labels.dtype.kind in "if"
    np.testing.assert_array_equal(np.concatenate(list(rows)), [numbers, numbers[1:] + numbers[:1]])


@pytest.mark.parametrize(
    ("labels", "predictions"),
    [
        (["1", "0", "1"], ["1.0", "0.0", "0.0"]),
        (["1.000000000000000000e+00", "0.000000000000000000e+00", "1.000000000000000000e+00"],
         ["1", "0", "0"]),
        (["1.00", "0.00", "1.00"], ["1e+00", "0e+00", "0e+00"]),
    ],
)  # fmt: skip
def test_the_same_numbers_written_by_two_tools_are_equal(tmp_path, labels, predictions):
    assert error_rates(*opened(tmp_path, labels, [predictions])) == [1 / 3]


# pieces from which most texts that Python reads as numbers are made
pieces = st.sampled_from([*"0123456789", "00", ".", "-", "+", "_", "e-05", "e+00", "E", " "])
cell = st.lists(pieces, min_size=1, max_size=5).map("".join)


@given(st.lists(cell, min_size=1, max_size=6))
@example(["1", "1.0"])
@example(["1_1", "11"])
def test_texts_of_one_file_become_one_number_only_if_they_are_one_to_anybody(cells):
    ways = frozenset.intersection(*map(_csv.ways_of, cells))
    if not ways:
        return
    texts_of = {}
    for each in cells:
        texts_of.setdefault(float(each), set()).add(each.strip(" \t"))
    for number, texts in texts_of.items():
        whole = {f"{number:.0f}", f"{number:.0f}.0", "0", "0.0", *(t for t in texts if not number)}
        assert len(texts) == 1 or texts <= whole


@given(st.floats(allow_nan=False, allow_infinity=False), st.integers(0, 20))
def test_what_a_format_prints_is_a_number_in_that_format(number, decimals):
    assert "" in _csv.ways_of(repr(number))
    for way in (f".{decimals}e", f".{decimals}f"):
        if abs(number) < 1e20:
            assert way in _csv.ways_of(format(number, way))


@given(st.integers(-(2**63), 2**63 - 1))
def test_every_int64_is_read_as_it_stands(number):
    assert "integer" in _csv.ways_of(str(number))


@given(st.integers(min_value=2**63) | st.integers(max_value=-(2**63) - 1))
@example(2**63)
@example(-(2**63) - 1)
def test_an_integer_past_int64_is_not_read_as_one(number):
    assert "integer" not in _csv.ways_of(str(number))


def test_no_extra_is_needed_to_read_them(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert error_rates(*opened(tmp_path, ["1", "0"], [["1", "1"]])) == [1 / 2]


# ---- one rule for both files --------------------------------------------------------------


def test_numbers_are_compared_as_text_beside_labels_that_are_text_and_that_is_said(tmp_path):
    labels, rows = opened(tmp_path, ["1", "01", "1"], [["1", "1", "1"]])
    assert error_rates(labels, rows) == [1 / 3]
    assert rows.note.endswith("y.csv has no plain number in line 2, cell 1")


def test_text_beside_labels_that_are_numbers_is_refused_where_it_stands(tmp_path):
    message = refusal(tmp_path, ["1", "0", "1"], [["1", "0", "1"], ["1", "01", "1"]])
    assert message == "p.csv must hold numbers, as y.csv does, got '01' in line 2, cell 2"


def test_a_csv_file_is_read_as_the_other_file_is(tmp_path):
    path = written(tmp_path / "a.csv", ["1", "0", "1"])
    other = tmp_path / "b.npy"
    np.save(other, np.array([["1", "0", "0"]]))
    labels, rows = files.open_predictions(path, other)
    assert labels.tolist() == ["1", "0", "1"] and error_rates(labels, rows) == [1 / 3]
    np.save(other, np.array([[1, 0, 0]]))
    labels, rows = files.open_predictions(path, other)
    assert labels.tolist() == [1, 0, 1] and error_rates(labels, rows) == [1 / 3]
    np.save(other, np.array(["1", "0", "0"]))
    labels, rows = files.open_predictions(other, path, transpose=True)
    assert error_rates(labels, rows) == [1 / 3]


def test_a_csv_file_of_text_beside_an_array_of_numbers_is_refused(tmp_path):
    path = written(tmp_path / "a.csv", ["1", "one", "1"])
    np.save(tmp_path / "p.npy", np.array([[1, 0, 0]]))
    np.save(tmp_path / "y.npy", np.array([1, 0, 0]))
    for arguments in [(path, tmp_path / "p.npy"), (tmp_path / "y.npy", path)]:
        with pytest.raises(ValueError, match=r"a.csv must hold numbers, as .*, got .* in line 2"):
            files.open_predictions(*arguments, transpose=arguments[1] == path)


@pytest.mark.parametrize(
    "missing",
    ["", "NA", "N/A", "n/a", "nan", "NaN", "None", "none", "null", "NULL", "<NA>", "#N/A", "."],
)
def test_a_missing_value_among_numbers_is_no_class(tmp_path, missing):
    for labels, row in [(["1", missing, "0"], "1,0,0"), (["1", "1", "0"], f"1,{missing},0")]:
        labels = [f'"{cell}"' for cell in labels]
        message = refusal(tmp_path, labels, [row])
        assert re.match(rf"[yp]\.csv must have no missing values, got '{missing}' in line", message)


def test_a_word_for_a_missing_value_is_a_class_among_words(tmp_path):
    labels, rows = opened(tmp_path, ["DE", "NA", "FR"], [["DE", "NA", "NA"]], **NO)
    assert error_rates(labels, rows) == [1 / 3]


# ---- headers ------------------------------------------------------------------------------

rng = np.random.default_rng(0)
LABELS = rng.integers(0, 2, 100)
PREDICTIONS = np.where(rng.random((3, 100)) < 0.23, 1 - LABELS, LABELS)
RATES = np.mean(PREDICTIONS != LABELS, axis=1).tolist()
YES, NO = ({"labels_header": which, "header": which} for which in (True, False))


LATE, MODELS = ["late", "0", "1", "0"], [["a", "b"], [0, 0], [1, 1], [0, 1]]
FOUR, THREE = ["0", "1", "0", "1"], [["1", "1", "1"], ["0", "1", "1"], ["1", "1", "0"]]
HINT = "; if a first line is a header, say so (--header)"


@pytest.mark.parametrize(
    ("labels", "rows", "transpose", "message", "rates"),
    [
        # 101 samples or 100
        (["0", *map(str, LABELS)], ["0", *map(str, PREDICTIONS[0])], True,
         "p.csv: its first line reads 0, 1, 2, ..., as pandas names columns without names: is it a "
         "header? Say so (--header yes), or not (--header no)",
         [(YES, RATES[:1]), (NO, [RATES[0] * 100 / 101])]),
        (LATE, MODELS, True, "y.csv: is the first line, which is like no other, a header? Say so",
         [(YES, [0, 1 / 3])]),
        (LATE[1:], MODELS, True,
         f"p.csv must hold numbers, as y.csv does, got 'a' in line 1, cell 1{HINT}",
         [({"header": True}, [0, 1 / 3])]),
        (["label", "yes", "no", "no"], ["label", "yes", "no", "yes"], True,
         "y.csv: is the first line, which is like no other, a header?", [(YES, [1 / 3])]),
        (["no", "yes", "no"], [["s1", "s2", "s3"], ["no", "yes", "yes"]], False,
         f"p.csv: its first line has 's1', which is no label{HINT}", [({"header": True}, [1 / 3])]),
        # one label too many, and one sample
        (FOUR, THREE, False, f"got 3 queries of 3{HINT}", []),
        (FOUR[:2], THREE, True, f"got 3 queries of 3{HINT}", []),
    ],
)  # fmt: skip
def test_a_first_line_that_may_be_a_header_is_asked_about(
    tmp_path, labels, rows, transpose, message, rates
):
    assert message in refusal(tmp_path, labels, rows, transpose=transpose)
    for answer, expected in rates:
        assert error_rates(*opened(tmp_path, labels, rows, transpose, **answer)) == expected


def test_headers_that_pandas_writes_are_no_sample(tmp_path):
    pd = pytest.importorskip("pandas")
    labels, rows = tmp_path / "y.csv", tmp_path / "p.csv"
    pd.Series(LABELS).to_csv(labels, index=False)
    for table, transpose in [(PREDICTIONS.T, True), (PREDICTIONS, False)]:
        pd.DataFrame(table).to_csv(rows, index=False)
        with pytest.raises(ValueError, match=r"reads 0, 1, 2, .*: is it a header\?.*--header yes"):
            files.open_predictions(labels, rows, transpose=transpose)
        assert error_rates(*files.open_predictions(labels, rows, transpose=transpose, **YES)) == (
            RATES
        )


def test_a_header_of_classes_beside_labels_that_have_none_is_asked_about(tmp_path):
    np.save(tmp_path / "y.npy", [2, 0, 1])
    path = written(tmp_path / "p.csv", [[0, 1, 2], [2, 0, 0]])
    with pytest.raises(ValueError, match=r"p.csv: its first line reads 0, 1, 2, "):
        files.open_predictions(tmp_path / "y.npy", path)
    labels, rows = files.open_predictions(tmp_path / "y.npy", path, header=True)
    assert error_rates(labels, rows) == [1 / 3]
    labels, rows = files.open_predictions(tmp_path / "y.npy", path, header=False)
    assert error_rates(labels, rows) == [1, 1 / 3]


def test_labels_that_begin_with_0_are_not_asked_about(tmp_path):
    labels = ["0", "1", "0", "1"]
    rows = [["0", "1", "1", "1"], ["1", "1", "0", "1"]]
    assert error_rates(*opened(tmp_path, labels, rows)) == [0.25, 0.5 - 0.25]
    assert opened(tmp_path, labels, np.array(rows[::-1]).T, transpose=True)[1].shape == (2, 4)


def test_a_header_of_losses_is_asked_about_where_it_could_be_losses(tmp_path):
    path = written(tmp_path / "l.csv", ["0", "1", "0.5"])
    with pytest.raises(ValueError, match="its first line reads 0, 1, 2, "):
        files.open_losses(path, transpose=True)
    for header, losses in [(True, [[1, 0.5]]), (False, [[0, 1, 0.5]])]:
        (block,) = files.open_losses(path, transpose=True, header=header)
        assert block.tolist() == losses


# pandas counts an index from 0, R from 1; "no" says that the first line is data
@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("header", [None, True])
def test_an_index_without_a_name_is_no_data(tmp_path, first, header):
    pd = pytest.importorskip("pandas")
    labels, path = tmp_path / "y.csv", tmp_path / "p.csv"
    index = pd.RangeIndex(first, first + len(LABELS))
    pd.Series(LABELS, index, name="y").to_csv(labels)
    frame = pd.DataFrame(np.transpose(PREDICTIONS), index, ["a", "b", "c"])
    frame.to_csv(path)
    options = {"header": header, "labels_header": header, "transpose": True}
    y_true, rows = files.open_predictions(labels, path, **options)
    assert y_true.tolist() == LABELS.tolist() and rows.names == ["a", "b", "c"]
    np.testing.assert_array_equal(np.concatenate(list(rows)), PREDICTIONS)
    losses = files.open_losses(path, transpose=True, header=header)
    np.testing.assert_array_equal(np.concatenate(list(losses)), PREDICTIONS)
    frame.T.reset_index(drop=True).to_csv(path)
    _, rows = files.open_predictions(labels, path, header=header, labels_header=header)
    np.testing.assert_array_equal(np.concatenate(list(rows)), PREDICTIONS)
    if first == 0:
        with pytest.raises(ValueError, match="must have no missing values|must hold labels in one"):
            files.open_predictions(labels, path, header=False, labels_header=False)


@pytest.mark.parametrize("index", [["p1", "p2", "p3"], [0, 2, 1], [7, 8, 9], [0, 1, 1]])
def test_any_other_column_without_a_name_is_refused(tmp_path, index):
    lines = [",a,b", *(f"{each},1,0" for each in index)]
    path = tmp_path / "p.csv"
    path.write_text("\n".join(lines))
    np.save(tmp_path / "y.npy", [1, 0, 1])
    for options in ({"classes": True}, {"classes": False}):
        with pytest.raises(ValueError, match="p.csv: its first column has no name; an index"):
            files.open_predictions(tmp_path / "y.npy", path, header=True, transpose=True, **options)
    with pytest.raises(ValueError, match="p.csv: its first column has no name; an index column"):
        files.open_losses(path, header=True, transpose=True)


def test_a_first_line_with_other_empty_cells_is_no_header(tmp_path):
    (tmp_path / "p.csv").write_text(",a,\n0,1,0\n1,0,1\n")
    np.save(tmp_path / "y.npy", [1, 0])
    for header, message in ((None, "must hold numbers, as .* got .. in"), (True, "has no name")):
        with pytest.raises(ValueError, match=message):
            files.open_predictions(
                tmp_path / "y.npy", tmp_path / "p.csv", header=header, transpose=True
            )


@pytest.mark.parametrize("suffix", [".csv", ".npy", ".parquet"])
@pytest.mark.parametrize("first", [0, 1])
def test_a_first_model_that_counts_the_rows_is_an_index_with_a_name(tmp_path, suffix, first):
    """As a score it would tell the order of the rows: where these are sorted, it would win."""
    rows = np.vstack([np.arange(first, first + 40), np.arange(40) % 2])
    np.save(tmp_path / "y.npy", np.arange(40) // 20)
    path = tmp_path / f"p{suffix}"
    if suffix == ".csv":
        path.write_text("id,a\n" + "\n".join(f"{i},{v}" for i, v in rows.T))
    elif suffix == ".npy":
        np.save(path, rows.T)
    else:
        pa = pytest.importorskip("pyarrow")
        pytest.importorskip("pyarrow.parquet").write_table(
            pa.table({"id": rows[0], "a": rows[1]}), path
        )
    header = True if suffix == ".csv" else None
    with pytest.raises(ValueError, match="its first column.* counts the rows, as an index does"):
        files.open_predictions(
            tmp_path / "y.npy", path, transpose=True, header=header, classes=False
        )
