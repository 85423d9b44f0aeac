"""The long form: a table with a line for each model and row, its columns model, row, and a value.

Rows are numbered from 0, as the labels are; lines may come in any order, over any number of files.
The models come in the order in which they are first met.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from radabound_fast._checks import counted
from radabound_fast.files.csv import lines_of, ways_of
from radabound_fast.files.formats import Source, of_array

VALUES = ("prediction", "loss")
_GROUP_BYTES = 256 << 20  # of the models that are put together in one pass over the files
_LINES = 1 << 18  # that are read at a time


class Piece(NamedTuple):
    """Some lines."""

    models: list[str]  # that occur in it
    model: np.ndarray  # which of these, for each line
    row: np.ndarray
    value: np.ndarray


def is_long(columns: Iterable[str] | None) -> bool:
    """Whether a table has these columns and no others."""
    return columns is not None and sorted(columns) in [sorted(("model", "row", v)) for v in VALUES]


def long_source(names: Sequence[str], n_samples: int | None) -> Source:
    """The queries in files of the long form, a model each; of `n_samples` rows, or of all there
    are.

    ValueError: a pair of model and row is missing or comes twice, or a row is not in 0 to m - 1.
    """
    codes: dict[str, int] = {}
    n_lines = last = 0
    spans: list[tuple[int, int]] = []  # the first and the last of the models of each piece
    dtypes = set()
    for piece in _pieces(names):
        places = [codes.setdefault(model, len(codes)) for model in piece.models]
        spans.append((min(places, default=0), max(places, default=-1)))
        n_lines += len(piece.row)
        dtypes.add(piece.value.dtype)
        if len(piece.row):
            if piece.row.min() < 0:
                raise ValueError(f"{names[0]}: rows must count from 0, got {piece.row.min()}")
            last = max(last, int(piece.row.max()))
    m = last + 1 if n_samples is None else n_samples
    if last >= m:
        raise ValueError(f"{names[0]}: rows must be below {m:,}, the number of labels, got {last}")
    if n_lines != m * len(codes):
        raise ValueError(
            f"{names[0]} must have a line for each of {counted(len(codes), 'model')} and each of "
            f"{counted(m, 'row')}, {m * len(codes):,}, got {n_lines:,}"
        )
    if len({each.kind == "U" for each in dtypes}) > 1:
        raise ValueError(f"{names[0]}: the files must all hold strings or all numbers")
    dtype = np.result_type(*dtypes) if dtypes else np.dtype(np.float64)
    listed = list(codes)

    def blocks(n: int) -> Iterator[np.ndarray]:
        group = max(1, _GROUP_BYTES // (max(1, dtype.itemsize) * max(1, m)))
        for first in range(0, len(listed), group):
            n_models = min(group, len(listed) - first)
            matrix = np.empty((n_models, m), dtype)
            seen = np.zeros(matrix.shape, np.bool_)
            overlap = (low < first + n_models and high >= first for low, high in spans)
            for piece in _pieces(names, overlap):
                place = np.array([codes[model] - first for model in piece.models], np.int64)
                place = place[piece.model]
                inside = (place >= 0) & (place < n_models)
                matrix[place[inside], piece.row[inside]] = piece.value[inside]
                seen[place[inside], piece.row[inside]] = True
            if not seen.all():
                model, row = np.argwhere(~seen)[0].tolist()
                raise ValueError(
                    f"{names[0]}: model {listed[first + model][:60]!r} has no line for row {row}, "
                    "and another twice"
                )
            yield from of_array(matrix).blocks(n)

    return Source((len(codes), m), dtype, blocks, listed)


def _pieces(names: Sequence[str], wanted: Iterable[bool] | None = None) -> Iterator[Piece]:
    """All lines, or those of the pieces that are wanted."""
    chosen = iter(itertools.repeat(True) if wanted is None else wanted)
    for name in names:
        is_csv = name.lower().endswith((".csv", ".csv.gz"))
        for lines in _of_csv(name) if is_csv else _of_table(name):
            if next(chosen):
                yield lines()


def _of_table(name: str) -> Iterator[Any]:
    import pyarrow as pa

    from radabound_fast.files.tables import as_kind, kind_of, table_in, values_of, without_missing

    table = table_in(name)
    fields = {field.name: field for field in table.fields}
    (value,) = fields.keys() - {"model", "row"}
    kind = kind_of(name, fields[value])
    if not pa.types.is_integer(fields["row"].type):
        raise ValueError(f"{name}, column 'row': must hold whole numbers, from 0 on")

    def piece(batch: Any) -> Piece:
        model, row, values = (
            without_missing(name, column, batch.column(column))
            for column in ("model", "row", value)
        )
        encoded = as_kind(model, pa.string()).dictionary_encode()
        return Piece(
            encoded.dictionary.to_pylist(),
            values_of(name, encoded.indices),
            values_of(name, as_kind(row, pa.int64())),
            values_of(name, as_kind(values, kind)),
        )

    for batch in table.batches(["model", "row", value], _LINES):
        yield lambda batch=batch: piece(batch)


def _of_csv(name: str) -> Iterator[Any]:
    lines = lines_of(name)
    header = next(lines).cells
    places = [header.index(column) for column in ("model", "row")]
    (value,) = set(range(3)) - set(places)
    is_number = all(ways_of(line.cells[value]) for line in lines)
    lines = lines_of(name)
    next(lines)

    def piece(block: list[Any]) -> Piece:
        columns = [[line.cells[place] for line in block] for place in (*places, value)]
        models = list(dict.fromkeys(columns[0]))
        code = {model: number for number, model in enumerate(models)}
        try:
            row = np.array(list(map(int, columns[1])), np.int64)
        except ValueError:
            odd = next(line for line in block if not line.cells[places[1]].isdecimal())
            raise ValueError(
                f"{name}, line {odd.number}: row must be a whole number, got "
                f"{odd.cells[places[1]][:40]!r}"
            ) from None
        values = np.array(columns[2])
        return Piece(
            models,
            np.array([code[model] for model in columns[0]], np.int64),
            row,
            values.astype(np.float64) if is_number else values,
        )

    while block := list(itertools.islice(lines, _LINES)):
        yield lambda block=block: piece(block)
