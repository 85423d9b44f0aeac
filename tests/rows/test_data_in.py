"""One loss vector in whatever holds it: the same answer, or one clear error and nothing spent."""

from importlib.util import find_spec

import numpy as np
import pytest
import support
from numpy.testing import assert_array_equal
from support import Tensor

from radabound_fast import DeclaredSearch, FixedSequence, Holdout, PackedLosses, pack_losses
from radabound_fast.rows.packing import as_words

N_SAMPLES = 1003  # no multiple of 8
LOSSES = np.random.default_rng(0).random(N_SAMPLES) < 0.3
LABELS = np.random.default_rng(1).integers(0, 3, N_SAMPLES)
SHUFFLED = np.random.default_rng(2).permutation(N_SAMPLES)


def pandas_series(index=None):
    import pandas as pd

    return lambda values: pd.Series(values, index=index)


def arrow_column(values, *, start=0, n_chunks=1):
    import pyarrow as pa

    # `start` rows before the first, of which the column knows nothing any more
    padded = np.concatenate([values[:start], values])
    column = pa.array(padded)[start:]
    if n_chunks == 1:
        return column
    cuts = np.linspace(0, len(values), n_chunks + 1).astype(int)
    return pa.chunked_array(
        [column[a:b] for a, b in zip(cuts[:-1], cuts[1:], strict=True)], column.type
    )


def polars_series(values, *, n_chunks=1):
    import polars as pl

    parts = [pl.Series(part) for part in np.array_split(values, n_chunks)]
    return pl.concat(parts, rechunk=False)


def tensor_of(library):
    def make(values):
        if library == "torch":
            import torch

            return torch.from_numpy(values)
        import jax.numpy as jnp

        return jnp.array(values)

    return make


# name: (packages it needs, how it holds an array)
CONTAINERS = {
    "list": ((), list),
    "ndarray": ((), np.asarray),
    "DLPack alone": ((), Tensor),
    "pandas": (("pandas",), pandas_series()),
    "pandas, another index": (("pandas",), pandas_series(SHUFFLED)),
    "pyarrow": (("pyarrow",), arrow_column),
    "pyarrow from bit 3": (("pyarrow",), lambda v: arrow_column(v, start=3)),
    "pyarrow from bit 16": (("pyarrow",), lambda v: arrow_column(v, start=16)),
    "pyarrow in chunks": (("pyarrow",), lambda v: arrow_column(v, start=5, n_chunks=4)),
    "polars": (("polars",), polars_series),
    "polars in chunks": (("polars",), lambda v: polars_series(v, n_chunks=3)),
    "torch": (("torch",), tensor_of("torch")),
    "jax": (("jax",), tensor_of("jax")),
}


@pytest.fixture(params=CONTAINERS)
def held(request):
    packages, hold = CONTAINERS[request.param]
    missing = [name for name in packages if not find_spec(name)]
    if missing:
        pytest.skip(f"{missing[0]} is not installed")
    return hold


def guard_of(judged=N_SAMPLES):
    return support.guard_of(judged, epsilon=0.2, seed=0)


def answer_of(losses):
    guard = guard_of()
    answer = guard.query(losses)
    return answer.value, answer.complexity, guard.n_answered


@pytest.mark.parametrize("dtype", [bool, np.uint8, np.int64, np.float32, np.float64])
def test_a_container_does_not_change_the_answer(held, dtype):
    losses = LOSSES * 0.375 if dtype is np.float64 else LOSSES.astype(dtype)
    if held is CONTAINERS["jax"][1] and losses.dtype.itemsize == 8:
        pytest.skip("jax has no 64-bit numbers unless told to")
    assert answer_of(held(losses)) == answer_of(losses)


def test_bits_of_every_container_are_the_same(held):
    assert_array_equal(pack_losses(held(LOSSES)).words, pack_losses(LOSSES).words)


def test_predictions_of_every_container_are_compared_by_position(held):
    predictions = np.where(LOSSES, (LABELS + 1) % 3, LABELS).astype(np.int32)
    expected = guard_of(LABELS).query(predictions).value
    assert expected == LOSSES.mean()
    assert guard_of(held(LABELS.astype(np.int32))).query(held(predictions)).value == expected


@pytest.mark.parametrize("start", [0, 8, 64, 1, 13])
@pytest.mark.parametrize("n_samples", [960, 1000, 1001])  # whole words, whole bytes, neither
def test_a_bool_column_of_whole_words_is_a_packed_row_uncopied(start, n_samples):
    pa = pytest.importorskip("pyarrow")
    column = pa.array(np.concatenate([np.zeros(start, bool), LOSSES, np.zeros(99, bool)]))
    column = column[start : start + n_samples]
    words = as_words(column, n_samples)
    buffer = np.frombuffer(column.buffers()[1], np.uint8)
    assert np.shares_memory(words, buffer) == (start % 8 == 0 and n_samples == 960)
    expected = guard_of(n_samples).query(LOSSES[:n_samples]).to_dict()
    for packed in (PackedLosses(column, n_samples), pack_losses(column)):
        assert guard_of(n_samples).query(packed).to_dict() == expected


@pytest.mark.parametrize("library", ["pandas", "pyarrow", "polars"])
def test_labels_and_predictions_may_be_columns_of_strings(library):
    module = pytest.importorskip(library)
    names = np.array(["cat", "dog", "eel"])
    make = module.array if library == "pyarrow" else module.Series
    labels = make(names[LABELS].tolist())
    predictions = make(names[np.where(LOSSES, (LABELS + 1) % 3, LABELS)].tolist())
    assert guard_of(labels).query(predictions).value == LOSSES.mean()


def test_categories_of_pandas_are_compared_by_value():
    pd = pytest.importorskip("pandas")
    names = np.array(["cat", "dog", "eel"])
    predicted = names[np.where(LOSSES, (LABELS + 1) % 3, LABELS)]
    labels = pd.Series(pd.Categorical(names[LABELS], categories=["eel", "cat", "dog"]))
    predictions = pd.Series(pd.Categorical(predicted, categories=["dog", "eel", "cat"]))
    assert guard_of(labels).query(predictions).value == LOSSES.mean()


@pytest.mark.skipif(not find_spec("torch"), reason="torch is not installed")
def test_a_tensor_with_a_gradient_is_refused():
    import torch

    tensor = torch.zeros(N_SAMPLES, requires_grad=True)
    with pytest.raises(TypeError, match="losses must be readable by NumPy"):
        guard_of().query(tensor)


@pytest.mark.parametrize("make", ["csr_matrix", "csr_array", "coo_array", "dok_array"])
def test_a_sparse_matrix_is_named_as_what_it_is(make):
    sparse = pytest.importorskip("scipy.sparse")
    y_true = np.arange(50) % 2
    rows = getattr(sparse, make)(np.atleast_2d(y_true))
    labels, scores, losses = (
        lambda: DeclaredSearch(y_true, 5, delta=0.1),
        lambda: DeclaredSearch(Holdout(y_true, metric="roc_auc"), 5, delta=0.1),
        lambda: DeclaredSearch(50, 5, delta=0.1),
    )
    for name, call in (
        ("y_pred", lambda: labels().query(rows, key=0)),
        ("y_pred", lambda: labels().query_many(rows, keys=[0])),
        ("y_pred", lambda: scores().query_many(rows, keys=[0])),
        ("losses", lambda: losses().query_many(rows, keys=[0])),
        ("losses", lambda: FixedSequence(50, epsilon=0.3, delta=0.1).query_many(rows)),
        ("losses", lambda: pack_losses(rows)),
        ("y_true", lambda: Holdout(rows)),
        ("baseline", lambda: DeclaredSearch(y_true, 5, delta=0.1, baseline=rows)),
    ):
        message = rf"{name} must be dense, got a sparse {make}: pass its toarray\(\)"
        with pytest.raises(TypeError, match=message):
            call()
