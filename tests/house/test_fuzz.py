"""What fuzzing found, and the fuzzing targets on their corpus and on a few hundred inputs.

The targets and what they promise are in tests/fuzz/; `make fuzz` runs them for longer.
"""

import importlib
import io
import subprocess
import sys
import types
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from radabound_fast import RadaBound, pack_losses
from radabound_fast.files.reading import open_losses, open_predictions

pytestmark = pytest.mark.thorough

FUZZ = Path(__file__).parents[1] / "fuzz"
TARGETS = sorted(path.stem for path in FUZZ.glob("*_fuzz.py"))


@pytest.fixture
def target(request, monkeypatch):
    """A module of tests/fuzz, which import each other by name."""
    monkeypatch.syspath_prepend(FUZZ)
    return importlib.import_module(request.param)


def guard_of(m=3):
    return RadaBound(m, epsilon=0.9, delta=0.5, bound="mclt", seed=1)


# ---- the targets --------------------------------------------------------------------------


@pytest.mark.parametrize("target", TARGETS, indirect=True)
def test_the_corpus_still_passes(target):
    inputs = sorted((FUZZ / "corpus" / target.__name__.removesuffix("_fuzz")).iterdir())
    assert len(inputs) >= 5
    for path in inputs:
        target.fuzz_one(path.read_bytes())


@pytest.mark.parametrize("target", TARGETS, indirect=True)
def test_random_inputs_pass(target):
    @settings(max_examples=150, deadline=None, database=None, derandomize=True)
    @given(st.binary(max_size=120))
    def run(data):
        target.fuzz_one(data)

    run()


def test_a_target_sees_a_wrong_mean(monkeypatch):
    monkeypatch.syspath_prepend(FUZZ)
    query_fuzz = importlib.import_module("query_fuzz")
    judge = query_fuzz.Twin.judge
    monkeypatch.setattr(
        query_fuzz.Twin, "judge", lambda twin, units: [mean + 1e-9 for mean in judge(twin, units)]
    )
    with pytest.raises(AssertionError):
        for number in range(300):
            query_fuzz.fuzz_one(np.random.default_rng(number).bytes(60))


@pytest.mark.source
def test_the_c_harness_runs_and_agrees():
    # without the sanitizers, which take twice as long to compile; the guard pages are there
    sys.path.insert(0, str(FUZZ))
    try:
        run = importlib.import_module("run")
    finally:
        sys.path.remove(str(FUZZ))
    try:
        harness = run.build("kernels_plain", [])
    except FileNotFoundError:
        pytest.skip("no C compiler")
    done = subprocess.run([harness, "--executions", "5000"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("5000 executions, 0 differences\n")


# ---- what fuzzing found -------------------------------------------------------------------


def test_a_masked_scalar_is_refused_as_a_value():
    with pytest.raises(ValueError, match="no masked entries"):
        guard_of().query(np.ma.masked)


def test_a_duration_among_objects_is_no_loss():
    with pytest.raises(TypeError, match="real numbers"):
        guard_of().query(np.array([0, np.timedelta64(1, "s"), 1], object))


@pytest.mark.parametrize("value", ["1e-4000", "0.9999999999"])
def test_a_longdouble_is_packed_only_if_it_is_0_or_1(value):
    losses = np.array([1, np.longdouble(value), 0], np.longdouble)
    with pytest.raises(ValueError, match="0 or 1 to be packed, got .* at sample 1"):
        pack_losses(losses)
    assert pack_losses(losses[::2]).words.tolist() == [1]


def test_strings_that_end_with_a_nul_are_classes_of_their_own():
    guard = RadaBound(["x", "x\0", "y"], epsilon=0.9, delta=0.9, bound="mclt", seed=1)
    assert guard.holdout.classes == ["x", "x\0", "y"]
    assert guard.query(["x\0", "x", "y"]).value == 2 / 3


def saved(tmp_path, suffix, content):
    path = tmp_path / f"file{suffix}"
    path.write_bytes(content)
    return path


def test_a_npy_header_that_is_no_python_is_a_value_error(tmp_path):
    file = io.BytesIO()
    np.save(file, np.eye(3))
    path = saved(tmp_path, ".npy", file.getvalue().replace(b"}", b" ", 1))
    with pytest.raises(ValueError, match="not a readable .npy array"):
        open_losses(path)


def test_a_zip_member_that_lies_nowhere_is_a_value_error(tmp_path):
    file = io.BytesIO()
    np.savez(file, losses=np.eye(3))
    content = bytearray(file.getvalue())
    at = content.rindex(b"PK\x05\x06") + 16  # where the directory is said to start
    content[at : at + 4] = (int.from_bytes(content[at : at + 4], "little") + 1000).to_bytes(
        4, "little"
    )
    path = saved(tmp_path, ".npz", bytes(content))
    assert zipfile.is_zipfile(path)
    with pytest.raises(ValueError, match="not a readable .npz file"):
        open_losses(path, transpose=False)


def test_characters_that_are_not_in_unicode_are_a_value_error(tmp_path):
    file = io.BytesIO()
    np.save(file, np.array(["ab", "cd"]))
    path = saved(tmp_path, ".npy", file.getvalue()[:-1] + b"\x7f")
    with pytest.raises(ValueError, match="not in Unicode"):
        open_predictions(path, path)


@pytest.mark.parametrize("transpose", [False, True])
def test_a_parquet_file_of_other_length_than_it_says_is_a_value_error(
    tmp_path, transpose, monkeypatch
):
    parquet = pytest.importorskip("pyarrow.parquet")
    table = pytest.importorskip("pyarrow").table({"a": [1, 0], "b": [0, 1], "c": [1, 1]})
    path = tmp_path / "file.parquet"
    parquet.write_table(table, path)

    class Lying(parquet.ParquetFile):  # pyarrow reads the groups, whatever this number says
        @property
        def metadata(self):
            return types.SimpleNamespace(num_rows=5, num_row_groups=1)

    monkeypatch.setattr(parquet, "ParquetFile", Lying)
    with pytest.raises(ValueError, match="2 of 5 rows"):
        list(open_losses(path, transpose=transpose))
