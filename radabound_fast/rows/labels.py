"""Labels that stay inside, and predictions that are compared with them exactly.

bool, integers and floats are one kind of label, compared by value; strings are another; anything
else that can be hashed is a third.  No message and no repr holds a label.
"""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from radabound_fast._kernels.rows import LabelRow, LabelRows, bad_prediction, pack_rows, reads_dtype
from radabound_fast.rows.named import check_rows, row_names
from radabound_fast.rows.packing import as_array, check_shape, is_missing, is_number, place_of

Finder = Callable[[NDArray[Any]], NDArray[np.intp]]

NUMBERS, STRINGS, OBJECTS = "numbers", "strings", "hashable objects"
# by NumPy's kind of dtype; what is not here is no label
KIND_OF = {**dict.fromkeys("biuf", NUMBERS), **dict.fromkeys("UST", STRINGS), "O": OBJECTS}

BLOCK_VALUES = 1 << 16  # predictions that become codes at a time, so that scratch stays small


class Labels:
    """The true classes of a holdout, ready to be compared with predictions of any dtype.

    `y_true`, shape (n_samples,), are numbers, strings, or other hashable objects, and `classes`
    what a prediction may be; None: the values in `y_true`.  `codes` are the places of the labels
    among the classes.

    TypeError: complex numbers, dates, values that cannot be hashed, or `classes` of another kind.
    ValueError: empty, not one-dimensional, missing or infinite values, floats that float64 cannot
    hold, or labels that are not in `classes`.
    """

    def __init__(self, y_true: Any, classes: Any = None) -> None:
        self._kind, self._classes, codes = distinct(y_true, "y_true")
        if classes is not None:
            codes = self._recode(classes, codes)
        # index: what names the samples, if y_true was a Series of pandas
        self.n_samples, self.index = len(codes), row_names(y_true)
        self.codes = codes.astype(np.min_scalar_type(len(self._classes) - 1))
        self._code_of = {value: code for code, value in enumerate(self._classes)}
        # the labels in the form in which the packers compare them, per dtype seen so far
        self.rows = LabelRows(self.n_samples)

    def __getstate__(self) -> dict[str, Any]:
        known = vars(self) | {"index": None}  # who receives it may have no pandas
        return {name: one for name, one in known.items() if name not in ("rows", "code_row")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self.rows = LabelRows(self.n_samples)

    def __getitem__(self, samples: slice | NDArray[np.bool_]) -> Labels:
        """Return the labels of some samples, with the same classes."""
        part = Labels.__new__(Labels)
        codes, index = self.codes[samples], None if self.index is None else self.index[samples]
        own = {"codes": codes, "n_samples": len(codes), "index": index}
        part.__setstate__(self.__getstate__() | own)
        return part

    def _recode(self, classes: Any, codes: NDArray[np.intp]) -> NDArray[np.intp]:
        kind, known, _ = distinct(classes, "classes")
        if kind != self._kind:
            raise TypeError(f"y_true and classes must be of one kind, got {self._kind} and {kind}")
        code_of = {value: code for code, value in enumerate(known)}
        codes = np.array([code_of.get(value, -1) for value in self._classes])[codes]
        if codes.min() < 0:
            sample = int(codes.argmin())
            raise ValueError(f"y_true must hold only classes, got another value at sample {sample}")
        self._classes = known
        return codes

    @property
    def classes(self) -> list[Any]:
        """What a prediction may be; numbers and strings in order."""
        return list(self._classes)

    @property
    def are_numbers(self) -> bool:
        """Whether the labels are numbers."""
        return self._kind == NUMBERS

    def fingerprint(self, salt: str) -> str:
        """Salt and hash of the labels, equal for equal labels whatever their dtype.

        It shows whether a complete guess of the labels is right, and nothing else.  Of hashable
        objects, which have no canonical form, it covers which samples have equal labels.
        """
        import hashlib  # here: it loads megabytes, and most holdouts are in no file
        import json

        present, codes = np.unique(self.codes, return_inverse=True)
        digest = hashlib.blake2b(salt.encode(), digest_size=32)
        if self._kind == OBJECTS:
            codes = np.unique(codes, return_index=True)[1][codes]  # where each is met first
        else:
            # of np.str_ and str alike
            digest.update(json.dumps([self._classes[code] for code in present]).encode())
        digest.update(codes.astype("<i8").tobytes())
        return f"{salt}${digest.hexdigest()}"

    def hash_of_classes(self) -> str:
        """Return a hash of the classes in order; of hashable objects their number alone."""
        import hashlib
        import json

        classes = len(self._classes) if self._kind == OBJECTS else self._classes
        return hashlib.blake2b(json.dumps(classes).encode(), digest_size=8).hexdigest()

    def match(self, y_pred: Any, ndim: int = 1) -> tuple[NDArray[Any], LabelRow]:
        """Predictions, and the labels in the form in which the packers compare them.

        Predicted classes have shape (n_samples,) or (k, n_samples), as `ndim` says.  `y_pred`
        itself is returned if the packers can compare it, and the first that is no class is then
        found when it is packed; else codes of classes, all of them checked.

        TypeError: numbers against strings or strings against numbers; complex, dates.  ValueError:
        wrong length or dimensions, ragged, masked or missing values, or a prediction that is no
        class.
        """
        row = self.rows.find(y_pred, ndim)
        if row is not None:
            return y_pred, row
        values = self._checked(y_pred, ndim)
        if KIND_OF[values.dtype.kind] == self._kind == NUMBERS:
            row = self.rows.find(values, ndim) or self._row(values.dtype)
            if row is not None:
                self.rows.add(values.dtype, row)
                return values, row
        return self._as_codes(values), self.code_row

    def are(self, y_true: Any) -> bool:
        """Whether these are the labels, sample by sample; of whatever kind and length they are."""
        try:
            return not pack_rows(*self.match(y_true)).any()
        except (TypeError, ValueError):
            return False

    def codes_of(self, y_pred: Any, ndim: int = 1) -> NDArray[Any]:
        """The place of every prediction in `classes`, of an unsigned dtype and in the same shape.

        Parameters and errors are those of `match`.
        """
        return self._as_codes(self._checked(y_pred, ndim))

    def _checked(self, y_pred: Any, ndim: int) -> NDArray[Any]:
        values = _as_labels(y_pred, "y_pred")
        check_shape(values, self.n_samples, ndim, "y_pred")
        self.check_rows(y_pred, ndim)
        kind = KIND_OF.get(values.dtype.kind)
        if kind is None or OBJECTS not in (kind, self._kind) and kind != self._kind:
            raise TypeError(f"y_pred must be {self._kind} as y_true, got dtype {values.dtype}")
        return values

    def check_rows(
        self,
        values: Any,
        ndim: int = 1,
        name: str = "y_pred",
        part: NDArray[np.bool_] | None = None,
    ) -> None:
        """ValueError for Series or frames whose index has the samples in another order."""
        check_rows(values, self.index, name, ndim, part)

    def _row(self, dtype: np.dtype[Any]) -> LabelRow | None:
        """Labels of this dtype; None if the packers have no rule for these classes in it."""
        held = self._held(dtype)
        if not held or not reads_dtype(dtype):
            return None
        first, last = self._classes[held[0]], self._classes[held[-1]]
        if len(self._classes) <= 2:
            return LabelRow(dtype, first, last, self.n_samples, bits=self.differs(held[0]))
        # distinct and in order, so whole numbers without a gap
        whole = all(isinstance(value, int) for value in self._classes)
        if len(held) < len(self._classes) or not whole or last - first != len(held) - 1:
            return None
        values = np.array(self._classes, dtype)[self.codes]
        return LabelRow(dtype, first, last, self.n_samples, values=values)

    @functools.cached_property
    def code_row(self) -> LabelRow:
        """The labels beside predictions that are codes of classes."""
        last = len(self._classes) - 1
        labels = {"bits": self.differs(0)} if last <= 1 else {"values": self.codes}
        return LabelRow(self.codes.dtype, 0, last, self.n_samples, **labels)

    def differs(self, code: int) -> NDArray[np.uint64]:
        """Where labels are not the class of this code, as bits."""
        return pack_rows(self.codes != code)

    def _held(self, dtype: np.dtype[Any]) -> list[int]:
        """Codes of the classes that some number of this dtype equals."""
        return [code for code, value in enumerate(self._classes) if _holds(dtype, value)]

    def _as_codes(self, values: NDArray[Any]) -> NDArray[Any]:
        """The code of every prediction, found a block of rows at a time."""
        find: Finder = self._find_object
        if self._kind == NUMBERS == KIND_OF[values.dtype.kind]:
            find = self._number_finder(values.dtype)
        rows = np.atleast_2d(values)
        codes = np.empty(rows.shape, self.codes.dtype)
        step = max(1, BLOCK_VALUES // self.n_samples)
        for start in range(0, len(rows), step):
            block_codes = find(rows[start : start + step])
            if block_codes.min() < 0:
                row, sample = np.argwhere(block_codes < 0)[0].tolist()
                value = _listed(rows[start + row, sample : sample + 1])[0]
                place = place_of((start + row) * self.n_samples + sample, values.shape)
                if is_missing(value):
                    raise ValueError(f"y_pred must have no missing values, got one {place}")
                raise bad_prediction(value, place)
            codes[start : start + step] = block_codes
        return codes.reshape(values.shape)

    def _number_finder(self, dtype: np.dtype[Any]) -> Finder:
        """Binary search among the classes that this dtype can hold; -1: not found."""
        held = self._held(dtype)
        classes = np.array([self._classes[code] for code in held], dtype)
        code_of = np.array(held, np.intp)

        def find(block: NDArray[Any]) -> NDArray[np.intp]:
            if not held:
                return np.full(block.shape, -1)
            nearest = np.searchsorted(classes, block).clip(max=len(held) - 1)
            return np.where(classes[nearest] == block, code_of[nearest], -1)

        return find

    def _find_object(self, block: NDArray[Any]) -> NDArray[np.intp]:
        """By a dictionary, in which numbers are equal by value; -1: not found."""
        code_of = self._code_of
        try:
            codes = [code_of.get(value, -1) for value in _listed(block)]
        except TypeError as error:
            raise TypeError(f"y_pred must be hashable: {error}") from None
        return np.array(codes, np.intp).reshape(block.shape)

    def __repr__(self) -> str:
        return f"Labels(n_samples={self.n_samples}, n_classes={len(self._classes)})"


def _as_labels(values: Any, name: str) -> NDArray[Any]:
    array = as_array(values, name)
    if isinstance(values, (list, tuple)) and array.dtype.kind == "U" and array.size > 0:
        # NumPy makes strings of numbers beside strings, and drops the last NULs of strings
        objects = np.array(values, object)
        whole = all(isinstance(value, str) and value[-1:] != "\0" for value in objects.flat)
        return array if whole else objects
    return array


def distinct(values: Any, name: str) -> tuple[str, list[Any], NDArray[np.intp]]:
    """The kind of the values, the different ones in order, and which of them each one is."""
    array = _as_labels(values, name)
    check_shape(array, None, 1, name)
    if array.dtype.kind not in KIND_OF:
        raise TypeError(f"{name} must be numbers, strings or objects, got dtype {array.dtype}")
    if array.dtype.kind in "biuf":
        unique, codes = np.unique(array, return_inverse=True)
        distinct = list(unique)
    else:
        listed = _listed(array)
        try:
            code_of = {value: code for code, value in enumerate(dict.fromkeys(listed))}
        except TypeError as error:
            raise TypeError(f"{name} must be hashable: {error}") from None
        distinct, codes = list(code_of), np.array([code_of[value] for value in listed], np.intp)
    for code, value in enumerate(distinct):
        if is_missing(value) or value != value:
            sample = int((codes == code).argmax())
            raise ValueError(f"{name} must have no missing values, got one at sample {sample}")
    kind = _kind_of(distinct)
    if kind == NUMBERS:
        distinct = [_plain(value, name) for value in distinct]
    order = list(range(len(distinct)))
    with contextlib.suppress(TypeError):  # objects may have none
        order.sort(key=distinct.__getitem__)
    return kind, [distinct[code] for code in order], np.argsort(order)[codes]


def _kind_of(values: list[Any]) -> str:
    if all(is_number(value) for value in values):
        return NUMBERS
    return STRINGS if all(isinstance(value, str) for value in values) else OBJECTS


def _listed(array: NDArray[Any]) -> list[Any]:
    """Python's own values; bytes as the strings that they encode."""
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
    if dtype.kind in "iu":
        return np.iinfo(dtype).min <= value <= np.iinfo(dtype).max and value == int(value)
    try:
        with np.errstate(all="ignore"):
            return bool(type(value)(dtype.type(value)) == value)
    except OverflowError:
        return False
