"""Conversion of the octets of a call to rows for the guard; see `wire` for the forms.

A hostile call takes no more memory than a few times its body, or a few times `MOST_UNFOLDED`:
shapes are checked before arrays are made, and nothing is unpickled.
"""

from __future__ import annotations

import io
from typing import Any

import numpy as np
from numpy.typing import NDArray

from radabound_fast._kernels.rows import PackedLosses, pack_rows
from radabound_fast.files.formats import array_header, legible
from radabound_fast.holdout import Holdout
from radabound_fast.rows.packing import as_array
from radabound_fast.service.wire import code_dtype

# octets of the labels that a call's codes are converted to, where a metric takes labels
MOST_UNFOLDED = 2**28


class Reader:
    """Reader of predictions for one holdout.

    With `as_predictions` classes stay classes where error rates are answered.
    """

    def __init__(self, holdout: Holdout, *, as_predictions: bool = False) -> None:
        self._labels = holdout.labels
        self._measured = holdout.metric != "error" or as_predictions
        self._m, self._classes = holdout.n_samples, holdout.labels.classes
        self._takes_classes = holdout.classes is not None
        if self._measured and self._takes_classes:
            self._class_values = as_array(self._classes, "classes")
        self._bits = self._labels.differs(0) if len(self._classes) == 2 else None

    def rows(self, form: str, octets: memoryview, ndim: int) -> NDArray[Any] | PackedLosses:
        """Rows of errors as bits if error rates are answered, else predictions for the metric.

        TypeError or ValueError if they are not predictions for this holdout.
        """
        if form == "bits":
            rows = self._from_bits(octets, ndim)
        elif form == "npy":
            values = _npy(octets)
            rows = values if self._measured else pack_rows(*self._labels.match(values, ndim))
        elif self._measured:
            rows = self._labels_of(self._as_codes(octets, ndim))
        else:
            rows = pack_rows(self._as_codes(octets, ndim), self._labels.code_row)
        return rows if self._measured else PackedLosses(rows, self._m)

    def _from_bits(self, octets: memoryview, ndim: int) -> NDArray[Any]:
        if self._bits is None:
            raise ValueError(f"bits are for two classes, this holdout has {len(self._classes)}")
        rows = self._as_rows(octets, -(-self._m // 8), np.dtype(np.uint8), ndim)
        if self._measured:
            self._check_label_size(rows)  # before bits are unpacked
            return self._labels_of(np.unpackbits(rows, axis=-1, count=self._m, bitorder="little"))
        # faster than `words_of` for one row
        words = np.zeros((*rows.shape[:-1], len(self._bits)), "<u8")
        words.view(np.uint8)[..., : rows.shape[-1]] = rows
        words = words.astype(np.uint64, copy=False)
        words ^= self._bits
        return words

    def _as_codes(self, octets: memoryview, ndim: int) -> NDArray[Any]:
        dtype = np.dtype(code_dtype(len(self._classes)))
        codes = self._as_rows(octets, self._m * dtype.itemsize, dtype, ndim)
        return codes.astype(dtype.newbyteorder("="), copy=False)

    def _labels_of(self, codes: NDArray[Any]) -> NDArray[Any]:
        """The labels that codes stand for."""
        self._check_label_size(codes)
        if codes.size and int(codes.max()) >= len(self._classes):
            raise ValueError(f"codes must be below {len(self._classes)}, got {int(codes.max())}")
        return np.asarray(self._class_values[codes])

    def _check_label_size(self, rows: NDArray[Any]) -> None:
        """ValueError if the metric takes no labels, or these take more memory than allowed."""
        if not self._takes_classes:
            raise ValueError("form must be npy, since the metric takes numbers")
        row_octets = self._m * self._class_values.itemsize
        most = max(1, MOST_UNFOLDED // row_octets)
        if rows.ndim == 2 and len(rows) > most:
            raise ValueError(
                f"rows must be at most {most:,} a call in this form, got {len(rows):,}"
            )

    def _as_rows(
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
    n_octets = len(octets) - file.tell()
    if n_octets != header.n_bytes:
        raise ValueError(f"the array's header speaks of {header.n_bytes} octets, got {n_octets}")
    return legible("the body", header.array(octets, file.tell()))
