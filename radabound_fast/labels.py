"""Labels that stay inside, and predictions that are compared with them exactly.

bool, integers and floats are one kind of label, compared by value; strings are another; anything
else that can be hashed is a third.  A prediction must be one of the classes.  No message and no
repr holds a label.
"""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from radabound_fast import _kernel
from radabound_fast._kernel import LabelRow, LabelRows
from radabound_fast.packing import as_array, check_shape, is_missing, place_of

Finder = Callable[[NDArray[Any]], NDArray[np.intp]]

# of NumPy's dtype kinds, and of Python's and NumPy's scalars inside object arrays
_KIND_OF = {**dict.fromkeys("biuf", "numbers"), **dict.fromkeys("UST", "strings"), "O": "objects"}
_TYPES_OF = {
    "numbers": (bool, int, float, np.bool_, np.integer, np.floating),
    "strings": (str,),
}

BLOCK_VALUES = 1 << 18  # mapped to codes at a time, so that scratch stays in the second cache


class Labels:
    """The true classes of a holdout, ready to be compared with predictions of any dtype.

    Parameters
    ----------
    y_true : array_like, shape (n_samples,)
        Labels: numbers, strings, or other hashable objects.
    classes : array_like, optional
        What a prediction may be; None: the values in `y_true`.

    Raises
    ------
    ValueError, TypeError
        `y_true` is empty, not one-dimensional, has missing or not finite values, values that
        cannot be hashed, or some that are not in `classes`.
    """

    def __init__(self, y_true: Any, classes: Any = None) -> None:
        values, self._kind = _typed(y_true, "y_true")
        self._classes, self._codes = _distinct(values, "y_true")
        if classes is not None:
            known, kind = _typed(classes, "classes")
            if kind != self._kind:
                raise TypeError(f"classes must be {self._kind} as y_true, got {kind}")
            self._recode(_distinct(known, "classes")[0])
        self.n_samples = len(self._codes)
        self._codes = self._codes.astype(np.min_scalar_type(len(self._classes)))
        self._code_of = {value: code for code, value in enumerate(self._classes)}
        self._rows = LabelRows(self.n_samples)

    def _recode(self, classes: list[Any]) -> None:
        index = {value: code for code, value in enumerate(classes)}
        codes = np.array([index.get(value, -1) for value in self._classes])[self._codes]
        if codes.min() < 0:
            sample = int(codes.argmin())
            raise ValueError(f"y_true must hold only classes, got another one at sample {sample}")
        self._classes, self._codes = classes, codes

    @property
    def classes(self) -> list[Any]:
        """What a prediction may be; numbers and strings are in order."""
        return list(self._classes)

    @property
    def n_classes(self) -> int:
        """How many values a prediction may have."""
        return len(self._classes)

    def match(self, y_pred: Any, ndim: int = 1) -> tuple[NDArray[Any], LabelRow]:
        """Predictions, and the labels in the form in which the packers compare them.

        Parameters
        ----------
        y_pred : array_like, shape (n_samples,) or (k, n_samples)
            Predicted classes.
        ndim : {1, 2}
            Dimensions.

        Returns
        -------
        values : ndarray
            `y_pred` itself if the packers can read it; the first value that is no class is
            then found when it is packed.  Else codes of the classes, checked.
        labels : LabelRow
            Of the dtype of `values`.

        Raises
        ------
        TypeError
            Numbers against strings, or the other way round; complex, datetime.
        ValueError
            Wrong length or dimensions, masked or missing values, or a prediction that is no
            class.
        """
        row = self._rows.find(y_pred, ndim)
        if row is not None:
            return y_pred, row
        values = as_array(y_pred, "y_pred")
        check_shape(values, self.n_samples, ndim, "y_pred")
        kind = _KIND_OF.get(values.dtype.kind)
        if kind is None or "objects" not in (kind, self._kind) and kind != self._kind:
            raise TypeError(f"y_pred must be {self._kind} as y_true, got dtype {values.dtype}")
        if self._kind == kind == "numbers":
            row = self._row(values.dtype)
            if row is not None:
                self._rows.add(values.dtype, row)
                return values, row
        return self._as_codes(values), self._code_row

    # ---- labels beside predictions of one dtype ------------------------------------------

    def _row(self, dtype: np.dtype[Any]) -> LabelRow | None:
        """Labels of this dtype; None if the packers have no rule for these classes in it."""
        held = [code for code, value in enumerate(self._classes) if _holds(dtype, value)]
        if not held or not _kernel.reads_dtype(dtype):
            return None
        first, last = self._classes[held[0]], self._classes[held[-1]]
        if self.n_classes <= 2:
            return LabelRow(dtype, first, last, self.n_samples, bits=self._differs(held[0]))
        # distinct and in order: whole numbers without a gap
        whole = all(isinstance(value, int) for value in self._classes)
        if len(held) < self.n_classes or not whole or last - first != self.n_classes - 1:
            return None
        values = np.array(self._classes, dtype)[self._codes]
        return LabelRow(dtype, first, last, self.n_samples, values=values)

    @functools.cached_property
    def _code_row(self) -> LabelRow:
        last = self.n_classes - 1
        labels = {"bits": self._differs(0)} if last <= 1 else {"values": self._codes}
        return LabelRow(self._codes.dtype, 0, last, self.n_samples, **labels)

    def _differs(self, code: int) -> NDArray[np.uint64]:
        return _kernel.pack_rows(self._codes != code)

    # ---- predictions as codes ------------------------------------------------------------

    def _as_codes(self, values: NDArray[Any]) -> NDArray[Any]:
        """The code of every prediction, found a block of rows at a time."""
        find: Finder = self._find_objects
        if self._kind == "numbers" and values.dtype.kind != "O":
            find = self._number_finder(values.dtype)
        rows = np.atleast_2d(values)
        codes = np.empty(rows.shape, self._codes.dtype)
        step = max(1, BLOCK_VALUES // self.n_samples)
        for start in range(0, len(rows), step):
            found = find(rows[start : start + step])
            if found.min() < 0:
                row, sample = np.argwhere(found < 0)[0].tolist()
                value = _objects(rows[start + row, sample : sample + 1])[0]
                place = place_of((start + row) * self.n_samples + sample, values.shape)
                raise _unknown(value, place)
            codes[start : start + step] = found
        return codes.reshape(values.shape)

    def _number_finder(self, dtype: np.dtype[Any]) -> Finder:
        """Binary search among the classes that this dtype can hold; -1: not found."""
        held = [code for code, value in enumerate(self._classes) if _holds(dtype, value)]
        classes = np.array([self._classes[code] for code in held], dtype)
        code_of = np.array(held, np.intp)

        def find(block: NDArray[Any]) -> NDArray[np.intp]:
            if not held:
                return np.full(block.shape, -1)
            nearest = np.searchsorted(classes, block).clip(max=len(held) - 1)
            return np.where(classes[nearest] == block, code_of[nearest], -1)

        return find

    def _find_objects(self, block: NDArray[Any]) -> NDArray[np.intp]:
        """By a dictionary, in which numbers are equal by value; -1: not found."""
        code_of = self._code_of
        try:
            found = [code_of.get(value, -1) for value in _objects(block)]
        except TypeError as error:
            raise TypeError(f"y_pred must hold hashable values: {error}") from None
        return np.array(found, np.intp).reshape(block.shape)

    def __repr__(self) -> str:
        return f"Labels(n_samples={self.n_samples}, n_classes={self.n_classes})"


def _typed(values: Any, name: str) -> tuple[list[Any], str]:
    """Labels as Python's own values, and their kind."""
    array = as_array(values, name)
    check_shape(array, None, 1, name)
    kind = _KIND_OF.get(array.dtype.kind)
    if kind is None:
        raise TypeError(f"{name} must be numbers, strings or objects, got dtype {array.dtype}")
    listed = _objects(array)
    for sample, value in enumerate(listed):
        if is_missing(value) or value != value:
            raise ValueError(f"{name} must have no missing values, got one at sample {sample}")
    if kind == "objects":
        for known, types in _TYPES_OF.items():
            if all(isinstance(value, types) for value in listed):
                kind = known
    if kind == "numbers":
        listed = [_plain(value, name) for value in listed]
    return listed, kind


def _distinct(values: list[Any], name: str) -> tuple[list[Any], NDArray[np.intp]]:
    """The different values, in order where they have one, and the index of each among them."""
    try:
        distinct = list(dict.fromkeys(values))
    except TypeError as error:
        raise TypeError(f"{name} must hold hashable values: {error}") from None
    with contextlib.suppress(TypeError):
        distinct.sort()
    code_of = {value: code for code, value in enumerate(distinct)}
    return distinct, np.array([code_of[value] for value in values], np.intp)


def _objects(array: NDArray[Any]) -> list[Any]:
    """Python's own values; bytes as the strings they encode."""
    if array.dtype.kind == "S":
        array = np.char.decode(array, "utf-8", "surrogateescape")
    listed: list[Any] = array.ravel().tolist()
    return listed


def _plain(value: Any, name: str) -> int | float:
    """A number as the int or float that equals it: 2.0 and True are the ints 2 and 1."""
    plain = float(value) if isinstance(value, (float, np.floating)) else int(value)
    if plain != value or plain in (math.inf, -math.inf):
        raise ValueError(f"{name} must be finite and exact in float64")
    return int(plain) if plain == int(plain) else plain


def _holds(dtype: np.dtype[Any], value: int | float) -> bool:
    """Whether some number of this dtype equals the value."""
    try:
        with np.errstate(all="ignore"):
            return bool(type(value)(dtype.type(value)) == value)
    except OverflowError:
        return False


def _unknown(value: Any, place: str) -> ValueError:
    if is_missing(value):
        return ValueError(f"y_pred must have no missing values, got one {place}")
    return _kernel.bad_prediction(value, place)
