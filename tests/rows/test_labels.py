"""Predictions against labels: equal by value whatever the dtypes, and nothing leaks out."""

import re
from datetime import datetime

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from radabound_fast._kernels.guard import GuardCore
from radabound_fast._kernels.rows import SignStore, pack_rows
from radabound_fast.rows.labels import Labels

# as in test_packing.py: around a word, in the middle of one, many words
SIZES = [1, 7, 63, 64, 65, 129, 1000, 4000]

NUMBER_DTYPES = ["?", *"bBhHiIlLqQefd", ">i8", ">f4"]


def errs(labels, y_pred, ndim=1, kernel=None):
    """Where predictions differ from the labels, by way of the packers."""
    values, row = labels.match(y_pred, ndim)
    words = np.atleast_2d(pack_rows(values, row, kernel=kernel)).astype("<u8")
    bits = np.unpackbits(words.view(np.uint8), axis=1, bitorder="little")
    assert not bits[:, labels.n_samples :].any()
    bits = bits[:, : labels.n_samples].astype(bool)
    return bits if ndim == 2 else bits[0]


# ---- numbers -----------------------------------------------------------------------------

CLASSES = [
    [0, 1],
    [-1, 1],
    [3],
    [0, 1, 2],
    [-3, -2, -1, 0],
    list(range(-128, 128)),  # all of int8: differences wrap
    [1, 5, 9],  # gaps: no rule in C
    [0.5, 2.25],
    [0.5, 1, 2.25],
    # ranges around what 32 bits hold, and up to what is whole in a float64
    *(list(range(edge - 2, edge + 3)) for edge in (-(2**31), 2**31, 2**32)),
    list(range(-(2**53), -(2**53) + 3)),
    list(range(2**53 - 2, 2**53 + 1)),
]


def fits(value, dtype):
    """Whether the dtype holds this very value."""
    try:
        with np.errstate(all="ignore"):
            stored = np.array(value, object).astype(dtype)
    except (OverflowError, DeprecationWarning):  # which NumPy 1.26 says instead
        return False
    return dtype == "g" or stored.item() == value


@pytest.mark.parametrize("n_samples", SIZES)
@pytest.mark.parametrize(
    "classes", CLASSES, ids=lambda classes: f"{len(classes)} from {classes[0]}"
)
def test_predictions_of_every_dtype_are_compared_with_labels_by_value(kernel, classes, n_samples):
    rng = np.random.default_rng(n_samples)
    y_true, *y_preds = rng.choice(classes, (4, n_samples))
    labels = Labels(y_true, classes)
    for dtype in NUMBER_DTYPES:
        allowed = [value for value in classes if fits(value, dtype)]
        if not allowed:
            continue
        y_pred = rng.choice(allowed, (3, n_samples))
        for stored in (y_pred.astype(dtype), np.asfortranarray(y_pred.astype(dtype))):
            assert_array_equal(errs(labels, stored, ndim=2, kernel=kernel), y_pred != y_true)
            assert_array_equal(errs(labels, stored[1], kernel=kernel), y_pred[1] != y_true)


@pytest.mark.parametrize("n_samples", [4095, 4096, 4097, 8192, 9000])
@pytest.mark.parametrize("classes", [[0, 1], [0, 1, 2], list(range(-128, 128)), [0.5, 1, 2.25]])
def test_predictions_in_every_tile_of_a_row_meet_their_own_labels(kernel, classes, n_samples):
    """A guard reads long rows in tiles of 4096 samples, and goes on in the labels as it does."""
    rng = np.random.default_rng(n_samples)
    y_true, *y_preds = rng.choice(classes, (4, n_samples))
    labels, store = Labels(y_true, classes), SignStore(1, n_samples, 9)
    for dtype in NUMBER_DTYPES:
        allowed = [value for value in classes if fits(value, dtype)]
        if not allowed:
            continue
        y_pred = np.array([np.where(np.isin(row, allowed), row, allowed[0]) for row in y_preds])
        expected = GuardCore(store)
        expected.query_many((y_pred != y_true).view(np.uint8))
        values, row = labels.match(y_pred.astype(dtype), 2)
        many, one = GuardCore(store), GuardCore(store)
        assert_array_equal(many.query_many(values, row)[0], (y_pred != y_true).mean(axis=1))
        for each in values:
            one.query(each, row)
        for guard in (many, one):
            assert_array_equal(guard.progress(), expected.progress())


number = st.one_of(
    st.integers(-4, 4),
    st.sampled_from(
        [2**53, 2**53 + 1, -(2**63), 2**63 - 1, 2**63, 2**64 - 1, 255, 256, 65504, 2**24 + 1]
    ),
    st.sampled_from([0.5, -0.0, 1e300, 2.0**53, 0.1, float(np.float32(0.1)), 2.0**63, 2.0**-24]),
)


@settings(max_examples=400, deadline=None)
@given(
    y_true=st.lists(number, min_size=1, max_size=5),
    y_pred=st.lists(number, min_size=1, max_size=5),
    true_dtype=st.sampled_from([*NUMBER_DTYPES, "O"]),
    pred_dtype=st.sampled_from([*NUMBER_DTYPES, "O", "g"]),
)
@pytest.mark.thorough
def test_equality_is_pythons_own_at_the_edges_of_every_dtype(
    y_true, y_pred, true_dtype, pred_dtype
):
    y_true = [value for value in y_true if fits(value, true_dtype)] or [1]
    y_pred = [value for value in y_pred if fits(value, pred_dtype)] or [0]
    n_samples = len(y_true)
    y_pred = (y_pred * n_samples)[:n_samples]
    labels = Labels(np.array(y_true, true_dtype), classes=np.array(y_true + y_pred, object))
    assert_array_equal(
        errs(labels, np.array(y_pred, pred_dtype)),
        [p != t for p, t in zip(y_pred, y_true, strict=True)],
    )


def test_large_integers_are_not_compared_as_floats():
    labels = Labels(np.array([2**53, 2**53 + 1, 2**53 + 1, 0]))
    assert errs(labels, np.array([2**53, 2**53, 2**53 + 1, 0])).tolist() == [
        False,
        True,
        False,
        False,
    ]
    assert errs(labels, np.array([2.0**53] * 4)).tolist() == [False, True, True, True]
    assert errs(labels, [2**53 + 1, 2**53 + 1, 0, 2.0**53]).tolist() == [True, False, True, True]


def test_an_unsigned_number_is_not_the_negative_one_of_the_same_bits():
    labels = Labels(np.array([-1, 1, 1]))
    with pytest.raises(ValueError, match="known classes, got 18446744073709551615 at sample 0"):
        errs(labels, np.array([2**64 - 1, 1, 1], np.uint64))
    labels = Labels(np.array([2**64 - 1, 0, 0], np.uint64))
    with pytest.raises(ValueError, match="known classes, got -1 at sample 1"):
        errs(labels, np.array([0, -1, 0]))


def test_a_label_that_the_dtype_of_the_predictions_cannot_hold_is_simply_missed():
    for y_true in ([0, 300, 0], [0, 300, 1], [-1, 0, 0.5]):
        assert errs(Labels(y_true), np.zeros(3, np.uint8)).tolist() == [v != 0 for v in y_true]
    with pytest.raises(ValueError, match="known classes, got 44 at sample 0"):
        errs(Labels([300, 301, 300]), np.full(3, 300 % 256, np.uint8))


def test_repeated_predictions_of_one_dtype_meet_the_same_row_and_are_not_copied():
    labels = Labels([0, 1, 1])
    for dtype in NUMBER_DTYPES:
        y_pred = np.ones((2, 3), dtype)
        values, row = labels.match(y_pred, ndim=2)
        assert values is y_pred
        assert labels.match(y_pred.copy(), ndim=2)[1] is row


@pytest.mark.parametrize("y_true", [[0, 1], [1, 2, 3], [0, 5, 9], [1], ["0", "1"], ["a", 1]])
def test_a_prediction_that_is_no_class_is_named_wherever_it_stands(kernel, y_true):
    n_samples = 70  # more than a word, so that vector code sees every place
    dtypes = NUMBER_DTYPES[1:] if isinstance(y_true[-1], int) else ["U1", "S1", "O"]
    labels = Labels((y_true * n_samples)[:n_samples])
    for dtype in dtypes:
        kind = np.dtype(dtype).kind
        wrong = [7] + [-7] * (kind in "if") + [1.5, -np.inf, np.nan] * (kind == "f")
        for value in np.array(wrong, dtype).tolist():
            y_pred = np.full((1000, n_samples), y_true[-1]).astype(dtype)
            named = re.escape(repr(value.decode() if isinstance(value, bytes) else value))
            for row, sample in [(0, 0), (1, 69), (999, 33)]:  # the last in a second block
                y_pred[row, sample] = value
                with pytest.raises(ValueError, match=f"got {named} at row {row}, sample {sample}"):
                    errs(labels, y_pred, ndim=2, kernel=kernel)
                with pytest.raises(ValueError, match=f"got {named} at sample {sample}"):
                    errs(labels, y_pred[row], kernel=kernel)
                y_pred[row, sample] = y_true[-1]


@pytest.mark.parametrize("y_true", [[0, 1], [0, 1, 2], [1, 5, 9]])
@pytest.mark.parametrize("dtype", ["e", "f", "d", "g", "O"])
def test_a_probability_is_no_prediction(y_true, dtype):
    y_pred = np.array(y_true, dtype)
    y_pred[1] = 0.75
    with pytest.raises(ValueError, match=r"got 0\.75\D* at sample 1, which looks like a score$"):
        errs(Labels(y_true), y_pred)
    for value in (np.nan, np.inf):
        y_pred[1] = value
        with pytest.raises(ValueError, match=rf"got \S*{value}\S* at sample 1$"):
            errs(Labels(y_true), y_pred)


# ---- strings and other objects -----------------------------------------------------------


def string_arrays(values):
    pd = pytest.importorskip("pandas")
    pa = pytest.importorskip("pyarrow")
    pl = pytest.importorskip("polars")
    yield values
    yield np.array(values)
    yield np.char.encode(np.array(values), "utf-8")
    yield np.array(values, object)
    if hasattr(np.dtypes, "StringDType"):
        yield np.array(values, np.dtypes.StringDType())
    for dtype in ("str", "object", "category", "string"):
        yield pd.Series(values, index=range(len(values), 0, -1)).astype(dtype)
    yield pd.Categorical(values)
    yield pa.array(values)
    yield pa.array(values).dictionary_encode()
    yield pl.Series(values)
    yield pl.Series(values, dtype=pl.Categorical)


def test_strings_are_equal_whatever_they_are_kept_in():
    y_true, y_pred = ["cat", "dog", "élan", "cat"], ["cat", "élan", "élan", "dog"]
    for kept_true in string_arrays(y_true):
        labels = Labels(kept_true)
        assert labels.classes == ["cat", "dog", "élan"]
        for kept_pred in string_arrays(y_pred):
            assert errs(labels, kept_pred).tolist() == [False, True, False, True]


def test_many_string_classes_need_wider_codes():
    y_true = np.array([f"class {i}" for i in range(300)])
    labels = Labels(y_true)
    y_pred = np.stack([y_true, np.roll(y_true, 1)])
    assert_array_equal(errs(labels, y_pred, ndim=2), [[False] * 300, [True] * 300])


def test_other_objects_are_compared_as_python_compares_them():
    y_true = np.empty(4, object)
    y_true[:] = [("a", 1), "a", 1, datetime(2020, 1, 1)]
    y_pred = y_true[::-1].copy()
    y_pred[1] = 1.0  # equal to 1
    assert errs(Labels(y_true), y_true).tolist() == [False] * 4
    assert errs(Labels(y_true), y_pred).tolist() == [True] * 4
    y_pred[2] = 1.0
    assert errs(Labels(y_true), y_pred).tolist() == [True, True, False, True]


def test_a_list_of_strings_and_numbers_keeps_its_numbers():
    labels = Labels(["1", 1, "a"])
    assert errs(labels, [1, 1, "a"]).tolist() == [True, False, False]


# ---- what is refused ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("y_true", "y_pred", "error", "message"),
    [
        ([0, 1], [0, 1, 1], ValueError, "have length 2, got shape (3,)"),
        ([0, 1], [[0, 1]], ValueError, "have one dimension, got shape (1, 2)"),
        ([0, 1], [[0], [1]], ValueError, "have one dimension, got shape (2, 1)"),
        ([0, 1], [[0], [1, 0]], ValueError, "have rows of one length"),
        ([0, 1], [0, None], ValueError, "have no missing values, got one at sample 1"),
        (["a", "b"], ["a", None], ValueError, "have no missing values, got one at"),
        ([0, 1], np.ma.masked_array([0, 1], [0, 1]), ValueError, "have no masked entries"),
        ([0, 1], ["0", "1"], TypeError, "be numbers as y_true, got dtype <U1"),
        ([0, 1], np.array(["0", "1"]), TypeError, "be numbers as y_true, got dtype <U1"),
        (["0", "1"], [0, 1], TypeError, "be strings as y_true, got dtype int64"),
        (["a", "b"], [0.5, 0.25], TypeError, "be strings as y_true, got dtype float64"),
        ([0, 1], [0, 1j], TypeError, "be numbers as y_true, got dtype complex128"),
        ([0, 1], np.zeros(2, "M8[s]"), TypeError, "be numbers as y_true, got dtype datetime"),
        (["a", "b"], ["a", "c"], ValueError, "hold only known classes, got 'c' at sample 1"),
        (["a", "b"], ["a", 10**6 * "c"], ValueError, f"classes, got '{99 * 'c'} at sample 1"),
        (["a", 1], np.array(["a", []], object), TypeError, "be hashable: unhashable type"),
    ],
)
def test_bad_predictions_are_refused_in_one_clear_sentence(y_true, y_pred, error, message):
    with pytest.raises(error, match=f"^y_pred must .*{re.escape(message)}"):
        errs(Labels(y_true), y_pred)


@pytest.mark.parametrize(
    ("y_true", "classes", "error", "message"),
    [
        ([], None, ValueError, "not be empty, got shape (0,)"),
        ([[0, 1]], None, ValueError, "have one dimension, got shape (1, 2)"),
        (3, None, ValueError, "have one dimension, got shape ()"),
        ([0, None], None, ValueError, "have no missing values, got one at sample 1"),
        ([0, np.nan], None, ValueError, "have no missing values, got one at sample 1"),
        (["a", np.nan], None, ValueError, "have no missing values, got one at sample 1"),
        ([0, np.inf], None, ValueError, "be finite"),
        ([0, 1j], None, TypeError, "be numbers, strings or objects, got dtype complex128"),
        (np.array([{}, {}]), None, TypeError, "be hashable: unhashable type: 'dict'"),
        (np.ma.masked_array([0, 1], [0, 1]), None, ValueError, "have no masked entries"),
        ([0, 1, 2], [0, 1], ValueError, "hold only classes, got another value at sample 2"),
        ([0, 1], ["0", "1"], TypeError, "of one kind, got numbers and strings"),
        ([0, 1], [], ValueError, "classes must not be empty, got shape (0,)"),
    ],
)
def test_bad_labels_are_refused_in_one_clear_sentence(y_true, classes, error, message):
    with pytest.raises(error, match=re.escape(message)) as refusal:
        Labels(y_true, classes)
    assert " must " in str(refusal.value)


def test_classes_may_hold_more_than_the_labels_do():
    labels = Labels(["a", "a", "b"], classes=["c", "b", "a"])
    assert labels.classes == ["a", "b", "c"]
    assert errs(labels, ["c", "a", "b"]).tolist() == [True, False, False]


@pytest.mark.parametrize("secret", [90210, 90210.5, "xyzzy", ("xyzzy", 90210)])
def test_no_message_and_no_repr_holds_a_label(secret):
    y_true = np.empty(3, object)
    y_true[:] = [secret, secret, "plugh" if isinstance(secret, (str, tuple)) else 17]
    labels = Labels(y_true)
    values, row = labels.match(y_true)
    texts = [repr(labels), str(labels), repr(row), repr(labels.rows)]
    bad_predictions = [
        [0, 1, 2],
        [0.5] * 3,
        ["a"] * 3,
        [None] * 3,
        [0],
        [[0] * 3],
        [0, 1j, 2],
        [0, [], 1],
        np.array([{}] * 3),
        np.zeros(3, np.uint8),
        np.zeros(3, "M8[s]"),
    ]
    for y_pred in bad_predictions:
        with pytest.raises((ValueError, TypeError)) as caught:
            errs(labels, y_pred)
        texts.append(str(caught.value))
    for classes in ([1], ["a"], [secret, None], np.array([secret, {}], object)):
        with pytest.raises((ValueError, TypeError)) as caught:
            Labels(y_true, classes)
        texts.append(str(caught.value))
    for text in texts:
        assert not re.search(r"xyzzy|plugh|90210|\b17\b", text), text


def test_a_row_of_labels_serves_only_the_dtype_and_length_it_was_made_for():
    labels = Labels([0, 1, 1])
    _, row = labels.match(np.array([0, 1, 1], np.int64))
    for other in (np.uint64, np.int32, np.float64, bool):
        with pytest.raises(TypeError, match="values must be of the dtype of the labels"):
            pack_rows(np.ones(3, other), row)
    with pytest.raises(ValueError, match="values must have 3 samples a row, got shape"):
        pack_rows(np.ones(4, np.int64), row)


@pytest.mark.parametrize("dtype", [np.int8, np.int64, np.uint8, bool])
@pytest.mark.parametrize("classes", [[0.5, 2], [0.5, 1], [0.5, 1, 2, 3], [-0.5, 0, 1]])
def test_no_whole_number_is_a_class_between_two(classes, dtype):
    """A dtype holds the classes that it has numbers for, and no others rounded."""
    labels, whole = Labels(classes), [value for value in classes if value == int(value)]
    known = [value for value in whole if np.array([value]).astype(dtype)[0] == value]
    for value in range(2 if dtype is bool else 4):
        given = np.full(len(classes), value, dtype)
        if value in known:
            assert labels.codes_of(given).tolist() == [classes.index(value)] * len(classes)
            assert pack_rows(*labels.match(given))[0] == sum(
                1 << place for place, one in enumerate(classes) if one != value
            )
        else:
            for read in (labels.codes_of, lambda given: pack_rows(*labels.match(given))):
                with pytest.raises(ValueError, match="must"):
                    read(given)
