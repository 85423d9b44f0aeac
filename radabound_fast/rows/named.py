"""Names that a frame or a Series brings along: those of classes, and those of rows."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from radabound_fast.rows.packing import as_array, is_pandas


def by_class(frame: Any, classes: list[Any], name: str, ndim: int = 1) -> Any:
    """The values of a frame, or with `ndim` 2 of a list of frames, in the order of the classes.

    Columns are put in order if they are named as the classes (`True` and "1.0" name the class 1).
    Columns with other names, and anything but frames with a row a sample, are as they come.  If
    some are named as classes and others are not, or two are named alike, it is a ValueError.
    """
    if ndim == 2:
        return [by_class(one, classes, name) for one in frame] if _are_named(frame) else frame
    names = column_names(frame)
    order = None if names is None else class_order(names, classes, name)
    return frame if order is None else as_array(frame, name)[..., order]


def class_order(names: list[Any], classes: list[Any], what: str) -> list[int] | None:
    """Where each class is among the names of columns or rows; None: they say nothing."""
    numbered = list(enumerate(classes))[::-1]  # so that of equals the first counts
    place_of = {str(value): place for place, value in numbered}
    place_of |= {value: place for place, value in numbered}
    places = [_place(one, place_of) for one in names]
    known = [place for place in places if place is not None]
    if sorted(known) == list(range(len(classes))) and len(names) == len(classes):
        return [places.index(place) for place in range(len(classes))]
    if not known or [str(one) for one in names] == [str(place) for place in range(len(names))]:
        return None
    raise ValueError(
        f"{what} must name each of the classes {classes!r:.200} once, or none, got the names "
        f"{names!r:.200}"
    )


def check_class(series: Any, classes: list[Any], place: int, name: str) -> None:
    """ValueError for a Series, or a list with one, named as another class than that at a place."""
    for one in series if _are_named(series) else [series]:
        label = getattr(one, "name", None)
        if isinstance(label, str) and label in classes and label != classes[place]:
            raise ValueError(
                f"{name} must be of the class {classes[place]!r:.100}, got the column of "
                f"{label!r:.100}"
            )


def row_names(series: Any) -> Any:
    """The index of a Series of pandas; None for anything else."""
    return series.index if is_pandas(series) and hasattr(series, "index") else None


def check_rows(
    values: Any, index: Any, name: str, ndim: int = 1, part: NDArray[np.bool_] | None = None
) -> None:
    """ValueError for values that have the index of `y_true`, `index`, in another order.

    Values are a Series, a frame with a row a sample, or with `ndim` 2 a list of these or a frame
    with a column a sample.  Anything without names, or named otherwise, is taken by position.
    `part`, bool (n_samples,), says which rows they are of where they are not of all: names of
    others are an error then.
    """
    if index is None:
        return
    if _are_named(values):
        for one in values:
            check_rows(one, index, name, part=part)
    axis = "columns" if ndim == 2 else "index"
    if not is_pandas(values) or not hasattr(values, axis):
        return
    own = getattr(values, axis)
    all_rows = index
    if part is not None and len(own) == part.sum():
        index = index[part]
    unnamed = type(own).__name__ == "RangeIndex" and own.start == 0 and own.step == 1
    if own is index or unnamed or len(own) != len(index) or own.equals(index):
        return
    if not own.isin(index).all() and own.isin(all_rows).all():
        raise ValueError(
            f"{name} must be of all rows of y_true or of those {len(own)} that are asked for, got "
            f"the names of others: take them by .loc, or pass {name}.to_numpy() if positions are "
            "right"
        )
    if own.isin(index).all() and index.isin(own).all():
        raise ValueError(
            f"{name} must have its rows in the order of y_true, got the same index in another "
            f"order: align it by .loc, or pass {name}.to_numpy() if positions are right"
        )


def some_rows(values: Any, rows: NDArray[np.bool_], ndim: int) -> Any:
    """Some rows of values as of `check_rows`, which keep their names; None of anything without
    names.

    `rows`, bool, says whether to take each.  The first axis goes over the rows, or with `ndim` 2
    that of each in a list or the second.
    """
    if ndim == 2 and _are_named(values):
        return [some_rows(one, rows, 1) for one in values]
    if is_pandas(values) and hasattr(values, "loc"):
        return values.loc[:, rows] if ndim == 2 else values.loc[rows]
    is_named = hasattr(values, "name") or column_names(values) is not None
    if ndim == 1 and is_named and hasattr(values, "filter"):  # polars; pyarrow
        return values.filter(rows)
    return None


def column_names(frame: Any) -> list[Any] | None:
    """The names of the columns of a frame of pandas, polars or pyarrow; None for anything else."""
    names = getattr(frame, "column_names", None)  # pyarrow
    if names is None:
        names = getattr(frame, "columns", None)
    return None if names is None else list(names)


def _are_named(values: Any) -> bool:
    """Whether it is a list of frames or Series."""
    listed = isinstance(values, (list, tuple)) and len(values) > 0
    return listed and (hasattr(values[0], "name") or column_names(values[0]) is not None)


def _place(name: Any, place_of: dict[Any, int]) -> int | None:
    spelt = [name, str(name)]
    with contextlib.suppress(TypeError, ValueError):
        number = {"True": 1, "False": 0}.get(name)
        spelt.insert(1, float(name) if number is None else number)
    return next((place_of[one] for one in spelt if one in place_of), None)
