"""From the octets of a call to what the guard takes; see `wire` for the forms.

A call of a team that means harm takes no more memory than a few times its body, or than a few times
`MOST_UNFOLDED`: shapes are looked at before arrays are made, nothing is unpickled, and nothing is
decompressed.
"""

from __future__ import annotations

import io
from typing import Any

import numpy as np
from numpy.typing import NDArray

from radabound_fast import _kernel
from radabound_fast._extras import needs
from radabound_fast.files.formats import array_header, legible
from radabound_fast.holdout import Holdout
from radabound_fast.rows.packing import as_array, side_by_side
from radabound_fast.service.wire import code_dtype

# octets of the labels that codes of a call stand for, where a metric takes labels
MOST_UNFOLDED = 2**28


class Reader:
    """Reads predictions for a holdout.

    Parameters
    ----------
    holdout : Holdout
    """

    def __init__(self, holdout: Holdout) -> None:
        self._labels = holdout._labels
        self._measured = holdout._truth is not None
        self._m, self._classes = holdout.n_samples, holdout._labels.classes
        self._takes_classes = holdout.classes is not None
        if self._measured and self._takes_classes:
            self._class_values = as_array(self._classes, "classes")
        self._bits = self._labels._differs(0) if len(self._classes) == 2 else None

    def rows(self, form: str, octets: memoryview, ndim: int) -> NDArray[Any]:
        """Packed losses, or predictions as a metric of the holdout takes them.

        Raises
        ------
        TypeError, ValueError
            They are not predictions for this holdout.
        """
        if form == "bits":
            return self._of_bits(octets, ndim)
        if form == "codes":
            codes = self._coded(octets, ndim)
            if self._measured:
                return self._of_class(codes)
            return _kernel.pack_rows(codes, self._labels._code_row)
        values = _npy(octets) if form == "npy" else _arrow(octets, self._m, ndim)
        if self._measured:
            return values
        return _kernel.pack_rows(*self._labels.match(values, ndim))

    def _of_bits(self, octets: memoryview, ndim: int) -> NDArray[Any]:
        if self._bits is None:
            raise ValueError(f"bits are for two classes, this holdout has {len(self._classes)}")
        rows = self._shaped(octets, -(-self._m // 8), np.dtype(np.uint8), ndim)
        if self._measured:
            self._check_unfolds(rows)  # before it is
            return self._of_class(np.unpackbits(rows, axis=-1, count=self._m, bitorder="little"))
        # as words, in less time than `words_of` takes for one row
        words = np.zeros((*rows.shape[:-1], len(self._bits)), "<u8")
        words.view(np.uint8)[..., : rows.shape[-1]] = rows
        words = words.astype(np.uint64, copy=False)
        words ^= self._bits
        return words

    def _coded(self, octets: memoryview, ndim: int) -> NDArray[Any]:
        dtype = np.dtype(code_dtype(len(self._classes)))
        codes = self._shaped(octets, self._m * dtype.itemsize, dtype, ndim)
        return codes.astype(dtype.newbyteorder("="), copy=False)

    def _of_class(self, codes: NDArray[Any]) -> NDArray[Any]:
        """The labels that codes stand for."""
        self._check_unfolds(codes)
        if codes.size and int(codes.max()) >= len(self._classes):
            raise ValueError(f"codes must be below {len(self._classes)}, got {int(codes.max())}")
        return np.asarray(self._class_values[codes])

    def _check_unfolds(self, rows: NDArray[Any]) -> None:
        """ValueError if rows stand for no labels, or for more than may be held."""
        if not self._takes_classes:
            raise ValueError("form must be npy or arrow, since the metric takes numbers")
        row_octets = self._m * self._class_values.itemsize
        most = max(1, MOST_UNFOLDED // row_octets)
        if rows.ndim == 2 and len(rows) > most:
            raise ValueError(
                f"rows must be at most {most:,} a call in this form, got {len(rows):,}"
            )

    def _shaped(
        self, octets: memoryview, row_octets: int, dtype: np.dtype[Any], ndim: int
    ) -> NDArray[Any]:
        n_rows, rest = divmod(len(octets), row_octets)
        if rest or ndim == 1 and n_rows != 1:
            what = "k times " if ndim == 2 else ""
            raise ValueError(
                f"there must be {what}{row_octets} octets for {self._m} samples, got {len(octets)}"
            )
        rows = np.frombuffer(octets, dtype)
        return rows.reshape(n_rows, row_octets // dtype.itemsize) if ndim == 2 else rows


def _npy(octets: memoryview) -> NDArray[Any]:
    file = io.BytesIO(octets)
    header = array_header("the body", file)
    found = len(octets) - file.tell()
    if found != header.n_bytes:
        raise ValueError(f"the array's header speaks of {header.n_bytes} octets, got {found}")
    return legible("the body", header.array(octets, file.tell()))


def _arrow(octets: memoryview, n_samples: int, ndim: int) -> NDArray[Any]:
    with needs("files"):
        import pyarrow as pa
    try:
        for message in pa.ipc.MessageReader.open_stream(octets):
            if _is_compressed(bytes(message.metadata)):
                raise ValueError("an Arrow stream must not be compressed")
        stream = pa.ipc.open_stream(octets)
        for field in stream.schema:
            kinds = pa.types
            plain = kinds.is_boolean, kinds.is_integer, kinds.is_floating, kinds.is_string
            if not any(is_kind(field.type) for is_kind in (*plain, kinds.is_large_string)):
                raise TypeError(
                    f"a column must be bools, numbers or strings, got {field.type!s:.50}"
                )
        table = stream.read_all()
        # else a length or an offset that lies has memory of this process read
        table.validate(full=True)
    # whose messages may quote what they read
    except (pa.ArrowException, OSError, IndexError, StopIteration):
        raise ValueError("the body is no Arrow stream, or one that was cut or altered") from None
    if table.num_rows != n_samples or ndim == 1 and table.num_columns != 1:
        raise ValueError(
            f"an Arrow stream must have a column of {n_samples} values for each row, got "
            f"{table.num_columns} of {table.num_rows}"
        )
    columns = [as_array(column, "y_pred") for column in table.columns]
    return columns[0] if ndim == 1 else side_by_side(columns).T


_RECORD_BATCH, _DICTIONARY_BATCH = 3, 2  # MessageHeader of Arrow's Message.fbs


def _is_compressed(metadata: bytes) -> bool:
    """Whether a batch has `compression` (Message.fbs), which pyarrow does not tell."""
    message = _Table(metadata, int.from_bytes(metadata[:4], "little"))
    kind = message.octet(1)
    if kind not in (_RECORD_BATCH, _DICTIONARY_BATCH):
        return False
    batch = message.table(2)
    if kind == _DICTIONARY_BATCH:
        batch = batch.table(1)
    return batch.place(3) is not None


class _Table:
    """A table of a FlatBuffer; IndexError where there is none."""

    def __init__(self, buffer: bytes, at: int) -> None:
        self._buffer, self._at = buffer, at
        self._fields = at - self._number(at, 4, signed=True)

    def _number(self, at: int, size: int, signed: bool = False) -> int:
        if not 0 <= at <= len(self._buffer) - size:
            raise IndexError("a place outside of the metadata")
        return int.from_bytes(self._buffer[at : at + size], "little", signed=signed)

    def place(self, field: int) -> int | None:
        """Where a field is; None: it is not there."""
        entry = 4 + 2 * field
        if entry >= self._number(self._fields, 2):
            return None
        offset = self._number(self._fields + entry, 2)
        return self._at + offset if offset else None

    def octet(self, field: int) -> int:
        at = self.place(field)
        return 0 if at is None else self._number(at, 1)

    def table(self, field: int) -> _Table:
        at = self.place(field)
        if at is None:
            raise IndexError("a table that is not there")
        return _Table(self._buffer, at + self._number(at, 4))
