"""Results of an evaluation, case by case."""

import numpy as np
import pytest

from radabound_fast.files.results import losses_of, read_results


def write(path, text):
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.jsonl", '{"case": "b", "s": true}\n\n{"case": 7, "s": 0.25}\n{"case": "b", "s": 0}\n'),
        ("a.csv", "s,case,x\nTrue,b,1\n.25,7,2\n0,b,3\n"),
    ],
)
def test_results_are_averaged_by_case(tmp_path, name, text):
    results = read_results(write(tmp_path / name, text), "case", "s")
    assert results == {"b": 0.5, "7": 0.25}
    assert losses_of(results, ["7", "b"], "a").tolist() == [0.75, 0.5]


def test_passes_and_failures_are_losses_of_0_and_1(tmp_path):
    path = write(tmp_path / "a.jsonl", '{"id": "x", "score": false}\n{"id": "y", "score": 1}\n')
    losses = losses_of(read_results(path, "id", "score"), ["x", "y"], "a")
    assert losses.tolist() == [1, 0] and losses.dtype == np.uint8


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.jsonl", "", "must hold at least one result"),
        ("a.jsonl", "[1]\n", "line 1 of .* must be a JSON object"),
        ("a.jsonl", '{"id": 1, "score": 1}\n{"id": 2,', "line 2 of .* must be a JSON object: "),
        ("a.jsonl", '{"id": 1, "id": 2, "score": 1}', "the field 'id' stands twice"),
        ("a.jsonl", '{"score": 1}', "line 1 of .* must have a field 'id'"),
        ("a.jsonl", '{"id": 1, "score": null}', "line 1 of .* must have a field 'score'"),
        ("a.jsonl", '{"id": 1, "score": 1.01}', r"a score in \[0, 1\], or true or false, got 1.01"),
        (
            "a.jsonl",
            '{"id": 1, "score": "yes"}',
            r"a score in \[0, 1\], or true or false, got 'yes'",
        ),
        ("a.jsonl", '{"id": 1, "score": NaN}', "a score in"),
        ("a.jsonl", '{"id": 1, "score": [1]}', "a score in"),
        ("a.csv", "id,score\n1,-.1\n", "line 2 of .* a score in"),
        ("a.csv", "id,points\n1,1\n", "line 2 of .* must have a field 'score'"),
        ("a.csv", 'id,score\n1,"1\n', "is no CSV file"),
        ("a.csv", "id,score,score\n1,0,1\n", "a.csv must have each column once"),
        ("a.csv", "id,score\nx,1,0\n", "line 2 of .* must have 2 fields, got 3"),
        ("a.csv", "id,score\nx\n", "line 2 of .* must have 2 fields, got 1"),
        ("a.jsonl", '{"id": [1], "score": 1}', "must have a string or a number in the field 'id'"),
        ("a.jsonl", '{"id": true, "score": 1}', "must have a string or a number in the field 'id'"),
        ("a.jsonl", "[" * 100_000, "line 1 of .* must be a JSON object: "),
        ("a.txt", "1", "must end in .jsonl or .csv"),
    ],
)
def test_faults_are_named(tmp_path, name, text, message):
    with pytest.raises(ValueError, match=message):
        read_results(write(tmp_path / name, text), "id", "score")


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        (["a", "b", "c"], "f lacks case 'c'$"),
        (["a", "b", "c", "d"], "f lacks case 'c' and 1 more"),
        (["a"], "f has the unknown case 'b'"),
    ],
)
def test_cases_are_matched_by_name(ids, message):
    with pytest.raises(ValueError, match=message):
        losses_of({"b": 1.0, "a": 0.0}, ids, "f")


@pytest.mark.parametrize(
    ("name", "text"), [("a.jsonl", '{"id": 1, "score": 1}'), ("a.csv", "id,score\n1,1\n")]
)
def test_text_is_utf_8_with_or_without_its_mark(tmp_path, name, text):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8-sig")
    assert read_results(path, "id", "score") == {"1": 1.0}
    path.write_text(text, encoding="utf-16")
    with pytest.raises(ValueError, match=f"{name} must be text in UTF-8"):
        read_results(path, "id", "score")
