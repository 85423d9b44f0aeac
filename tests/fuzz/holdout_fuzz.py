"""Target: a guard made on labels, with labels and predictions of every kind.

The error rate is the share of predictions that are not `==` their label; a prediction that is no
class is refused, and then nothing has changed; no message tells a label.
"""

import numpy as np
from draw import REFUSALS, Draw

from radabound_fast import HoldoutExhausted, RadaBound

CLASSES = (
    [0, 1],
    [False, True],
    [-1, 1],
    [3, 4, 5],
    [0.25, 0.5, 2],
    [2**53, 2**53 + 1],
    [-(2**62), 2**62 + 1, 7],
    ["a", "b"],
    ["cat", "dog", "\N{SNOWMAN}"],
    ["", "x\0", "0"],
    [b"a", b"bc"],
    [(0,), (1,), "z"],
    [None, 0, 1],
    [1, "1"],
    [0.0, float("nan")],
    [7],
    list(range(300)),
)
DTYPES = ("?", "i1", "u1", "i4", ">i4", "i8", "u8", "f2", "f4", "f8", ">f8", "g", "U4", "S4", "O")


def labels_like(draw, values):
    """A list, or an array of some dtype that may hold the values or not."""
    way = draw.integer(0, 5)
    if way == 0:
        return values
    if way == 1:
        return tuple(values) if not isinstance(values[0], list) else values
    if way == 2:
        rows = values if isinstance(values[0], list) else [values]
        objects = np.empty((len(rows), len(rows[0])), object)
        for at in np.ndindex(objects.shape):
            objects[at] = rows[at[0]][at[1]]
        return objects if rows is values else objects[0]
    try:
        with np.errstate(all="ignore"):
            array = np.array(values, draw.choice(DTYPES) if way > 3 else None)
    except (ValueError, TypeError, OverflowError):
        return values
    if array.ndim and draw.one_in(3):
        array = np.repeat(array, 2, axis=-1)[..., ::2]
    return array


def plain(values):
    """Rows of Python's own values; None: ragged, or no labels at all."""
    array = values
    if isinstance(values, np.ndarray):
        if values.dtype.kind == "S":
            array = np.char.decode(values, "utf-8", "surrogateescape")
        array = array.tolist()
    return list(array)


def in_one_kind(values):
    """NumPy's reading of a list of bytes and of strings: bytes are the strings they encode."""
    return [v.decode("utf-8", "surrogateescape") if isinstance(v, bytes) else v for v in values]


def is_number(value):
    return isinstance(value, (bool, int, float, np.number, np.bool_))


def error_rate(y_true, y_pred, classes):
    """None: some prediction is no class."""
    if len(y_pred) != len(y_true):
        return None
    try:
        if not all(any(value == known for known in classes) for value in y_pred):
            return None
    except (TypeError, ValueError):
        return None
    return sum(t != p for t, p in zip(y_true, y_pred, strict=True)) / len(y_true)


def fuzz_one(data):
    draw = Draw(data)
    known = draw.choice(CLASSES)
    m = draw.choice([1, 5, 64, 65, 130])
    pick = draw.seeded().integers(len(known), size=m).tolist()
    labels = labels_like(draw, [known[i] for i in pick])
    try:
        guard = RadaBound(labels, epsilon=0.9, delta=0.9, bound="mclt", n_vectors=5, seed=1)
    except REFUSALS:
        return
    y_true = plain(labels)
    for _ in range(draw.integer(1, 3)):
        k = draw.choice([None, 0, 1, 3])
        options = known if draw.one_in(4) is False else draw.choice(CLASSES)
        picks = draw.seeded().integers(len(options), size=(k or 1, m + draw.one_in(8)))
        rows = [[options[i] for i in row] for row in picks.tolist()][: 1 if k is None else k]
        if k == 0:
            y_pred = np.empty((0, m), draw.choice(["i4", "f8"]))
        else:
            y_pred = labels_like(draw, rows[0] if k is None else rows)
        before = guard.n_answered, guard.complexity, guard.halted
        try:
            got = guard.query(y_pred) if k is None else guard.query_many(y_pred)
        except HoldoutExhausted:
            assert guard.halted
            return
        except REFUSALS:
            assert before == (guard.n_answered, guard.complexity, guard.halted)
            refused_rightly(y_true, y_pred, k)
            continue
        values = [got.value] if k is None else got.values.tolist()
        plain_rows = [plain(y_pred)] if k is None else [plain(row) for row in plain(y_pred)]
        for value, row in zip(values, plain_rows, strict=False):
            kinds = map(in_one_kind, (y_true, row, guard.holdout.classes))
            assert value == error_rate(*kinds)
        assert guard.halted or len(values) == len(plain_rows)


def refused_rightly(y_true, y_pred, k):
    """An array of numbers, all of them values of numeric labels, must be taken."""
    if k == 0 or not isinstance(y_pred, np.ndarray) or y_pred.dtype.kind not in "biuf":
        return
    if y_pred.ndim != (1 if k is None else 2) or not all(map(is_number, y_true)):
        return
    rows = [y_pred.tolist()] if k is None else y_pred.tolist()
    rates = [error_rate(y_true, row, y_true) for row in rows]
    assert None in rates, "known classes were refused"
