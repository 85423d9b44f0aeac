"""Tables of Arrow: .parquet, .arrow, .feather and .ipc files, by pyarrow.

A table has a query as a row, a column for each sample; or, transposed, a query as a column; or a
query as the list, or the packed bytes, in one cell of one column.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from radabound_fast._checks import counted
from radabound_fast._extras import needs
from radabound_fast.files.formats import Source, of_array, one_line, reading
from radabound_fast.files.place import is_url, opened
from radabound_fast.rows.packing import side_by_side

with needs("files"):
    import pyarrow as pa
    from pyarrow import types

# rows to decode at a time, in at most so many blocks: each time takes long to begin where there are
# many columns, and to be given more memory takes longer than to decode into it
_BATCH_ROWS, _BATCH_BLOCKS = 4096, 4
_NAMES = ("model", "key")  # of the column that may stand beside one of lists


class Table(NamedTuple):
    """A file of a table, and how to read it."""

    name: str
    fields: list[Any]  # pyarrow's, without an index that pandas wrote
    n_rows: int
    batches: Callable[[list[str], int], Iterator[Any]]  # of these columns, about so many rows each
    columns: Callable[[list[str], int], Iterator[Any]]  # these whole, so many at a time


def table_in(name: str) -> Table:
    """Open a table; ValueError: it is damaged, or two columns have one name."""
    table = _parquet(name) if name.lower().endswith(".parquet") else _arrow(name)
    names = [field.name for field in table.fields]
    if len(set(names)) < len(names):
        raise ValueError(f"{name} must have columns of different names")
    return table


def _without_index(schema: Any) -> list[Any]:
    """The fields without the index, which pandas stores as a column if it is not 0, 1, 2, ...."""
    written = schema.pandas_metadata
    index = written.get("index_columns") if isinstance(written, dict) else None
    return [field for field in schema if not isinstance(index, list) or field.name not in index]


def _parquet(name: str) -> Table:
    import pyarrow.parquet as pq

    @contextlib.contextmanager
    def file() -> Iterator[Any]:
        damaged = reading(name, ".parquet file", pa.ArrowException, json.JSONDecodeError)
        with opened(name) as raw, damaged, pq.ParquetFile(raw if is_url(name) else name) as table:
            yield table

    with file() as table:
        fields, n_rows = _without_index(table.schema_arrow), table.metadata.num_rows

    def batches(columns: list[str], n: int) -> Iterator[Any]:
        with file() as table:
            yield from table.iter_batches(n, columns=columns, use_threads=False)

    def whole(columns: list[str], n: int) -> Iterator[Any]:
        with file() as table:
            for start in range(0, len(columns), n):
                yield table.read(columns=columns[start : start + n], use_threads=False)

    return Table(name, fields, n_rows, batches, whole)


def _arrow(name: str) -> Table:
    @contextlib.contextmanager
    def file() -> Iterator[Any]:
        """The schema, and every batch."""
        with contextlib.ExitStack() as stack:
            raw = stack.enter_context(opened(name))  # or it says what is wrong with it
            if not is_url(name):
                raw = stack.enter_context(pa.memory_map(name))
            stack.enter_context(reading(name, "Arrow file", pa.ArrowException))
            try:
                reader = pa.ipc.open_file(raw)
                stored = map(reader.get_batch, range(reader.num_record_batches))
            except pa.ArrowInvalid:
                raw.seek(0)
                reader = stored = stack.enter_context(pa.ipc.open_stream(raw))
            yield reader.schema, stored

    with file() as (schema, stored):
        n_rows = sum(map(len, stored))

    def batches(columns: list[str], n: int) -> Iterator[Any]:
        with file() as (_, stored):
            for batch in stored:
                chosen = batch.select(columns)
                for start in range(0, len(batch), n):
                    yield chosen.slice(start, n)

    def whole(columns: list[str], n: int) -> Iterator[Any]:
        with file() as (schema, stored):
            table = pa.Table.from_batches(stored, schema)
        for start in range(0, len(columns), n):
            yield table.select(columns[start : start + n])

    return Table(name, _without_index(schema), n_rows, batches, whole)


def kind_of(name: str, field: Any) -> Any:
    """The type of a column's values: of numbers, bools, or strings of whatever width."""
    kind = field.type.value_type if types.is_dictionary(field.type) else field.type
    if types.is_string(kind) or types.is_large_string(kind) or kind == pa.string_view():
        return pa.string()
    if types.is_boolean(kind) or types.is_integer(kind) or types.is_floating(kind):
        return kind
    raise ValueError(
        f"{name}, column {field.name[:60]!r}: must hold real numbers, bools or strings, "
        f"got {one_line(field.type, 60)}"
    )


def values_of(name: str, array: Any) -> np.ndarray:
    """An Arrow array without missing values; each string that it has is made once."""
    if array.type != pa.string():
        return _numbers(array)
    encoded = array.dictionary_encode()
    texts = encoded.dictionary.to_pylist()
    if any("\0" in text for text in texts):  # NumPy drops them at the end of strings
        raise ValueError(f"{name} must hold text, got a NUL character")
    values: np.ndarray = np.array(texts, np.str_)[_numbers(encoded.indices)]
    return values


def _numbers(array: Any) -> np.ndarray:
    """Numbers or bools of Arrow; its own `to_numpy` would load pandas first, for half a second."""
    buffer, start = array.buffers()[1], array.offset
    if len(array) == 0:
        return np.empty(0, array.type.to_pandas_dtype())
    if types.is_boolean(array.type):
        first, end = start // 8, start + len(array)
        bits = np.frombuffer(buffer, np.uint8, -(-end // 8) - first, first)
        unpacked = np.unpackbits(bits, bitorder="little")
        return unpacked[start - 8 * first : end - 8 * first].view(np.bool_)
    dtype = np.dtype(array.type.to_pandas_dtype())
    return np.frombuffer(buffer, dtype, len(array), start * dtype.itemsize)


def without_missing(name: str, column: str, array: Any) -> Any:
    """The array, unless a value is missing."""
    if array.null_count:
        missing = counted(array.null_count, "missing value")
        raise ValueError(f"{name}, column {column[:60]!r}: it has {missing}")
    return array


def as_kind(array: Any, kind: Any) -> Any:
    """An array, or the chunks of one, of this type in one piece."""
    if array.type != kind:
        array = array.cast(kind)
    chunks = getattr(array, "chunks", None)
    return array if chunks is None else pa.concat_arrays(chunks) if chunks else pa.array([], kind)


def table_source(table: Table, transpose: bool) -> Source:
    """The queries of a table, and their names where it has some."""
    lists = [field for field in table.fields if _has_lists(field.type)]
    return _of_cells(table, lists, transpose) if lists else _of_columns(table, transpose)


def _of_columns(table: Table, transpose: bool) -> Source:
    name, columns = table.name, [field.name for field in table.fields]
    kinds = [kind_of(name, field) for field in table.fields]
    is_text = [kind == pa.string() for kind in kinds]
    if any(is_text) and not all(is_text):
        raise ValueError(f"{name} must hold strings in all columns or in none")
    dtypes = {np.dtype(np.str_ if any(is_text) else kind.to_pandas_dtype()) for kind in set(kinds)}
    dtype = np.result_type(*dtypes) if dtypes else np.dtype(np.float64)
    kind_of_column = dict(zip(columns, kinds, strict=True))

    def checked(part: Any) -> list[Any]:
        """Columns, each in one piece and without missing values."""
        return [
            as_kind(without_missing(name, column, array), kind_of_column[column])
            for column, array in zip(part.schema.names, part.columns, strict=True)
        ]

    def matrix(whole: list[Any]) -> np.ndarray:
        """Columns of one kind, each as a row, converted at once: of strings each takes long."""
        return values_of(name, pa.concat_arrays(whole)).reshape(len(whole), -1)

    def check_length(n_read: int) -> None:
        if n_read != table.n_rows:
            raise ValueError(f"{name} is not a readable table: {n_read} of {table.n_rows} rows")

    def rows(n: int) -> Iterator[np.ndarray]:
        n_read = 0
        for batch in table.batches(columns, min(_BATCH_BLOCKS * n, max(_BATCH_ROWS, n))):
            n_read += len(batch)
            whole = checked(batch)
            if dtype.kind == "U":
                yield from of_array(np.ascontiguousarray(matrix(whole).T)).blocks(n)
                continue
            values = [_numbers(array) for array in whole]
            for start in range(0, len(batch), n):
                yield side_by_side([each[start : start + n] for each in values])
        check_length(n_read)

    def transposed_rows(n: int) -> Iterator[np.ndarray]:
        for some in table.columns(columns, n):
            check_length(len(some))
            whole = checked(some)
            if len(dtypes) > 1:
                yield side_by_side([_numbers(array) for array in whole]).T
            else:
                yield matrix(whole)

    if transpose:
        return Source((len(columns), table.n_rows), dtype, transposed_rows, columns)
    return Source((table.n_rows, len(columns)), dtype, rows, columns=columns)


def _has_lists(kind: Any) -> bool:
    """Whether a cell of such a column has several values."""
    is_fixed = types.is_fixed_size_binary(kind) or types.is_fixed_size_list(kind)
    return bool(is_fixed or types.is_list(kind) or types.is_large_list(kind))


def _of_cells(table: Table, lists: list[Any], transpose: bool) -> Source:
    """Rows that are lists, or bytes, in the cells of a column; another column may name them."""
    name, column = table.name, lists[0].name
    others = [field.name for field in table.fields if field.name != column]
    if len(lists) > 1 or len(others) > 1 or others and others[0] not in _NAMES:
        raise ValueError(
            f"{name} must have one column of lists, {lists[0].name[:60]!r}, and beside it at most "
            f"one called {' or '.join(map(repr, _NAMES))}, which names the rows, got "
            f"{', '.join(others)[:100]}"
        )
    if transpose:
        raise ValueError(f"{name} has a row in each cell: it cannot be transposed")
    names = None
    if others:
        (of_names,) = next(table.columns(others, 1)).columns
        names = [str(each) for each in without_missing(name, others[0], of_names).to_pylist()]
    outer = lists[0].type
    widths, kind = _widths(table, column, outer)
    shape = (table.n_rows, *widths)
    if not types.is_fixed_size_binary(outer):
        kind = kind_of(name, pa.field(column, kind))
    dtype = np.dtype(np.str_ if kind == pa.string() else kind.to_pandas_dtype())

    def rows(n: int) -> Iterator[np.ndarray]:
        n_read = 0
        for batch in table.batches([column], n):
            array = without_missing(name, column, batch.column(0))
            if types.is_fixed_size_binary(outer):
                first = array.offset * outer.byte_width
                flat = np.frombuffer(array.buffers()[1], np.uint8, len(array) * shape[1], first)
            else:
                flat = _flat(name, column, array, shape[1:], n_read)
            n_read += len(array)
            yield flat.reshape(len(array), *shape[1:])

    return Source(shape, dtype, rows, names)


def _widths(table: Table, column: str, kind: Any) -> tuple[list[int], Any]:
    """How many values a cell has, lists within lists too, and their type; the first cell says."""
    if types.is_fixed_size_binary(kind):
        return [kind.byte_width], pa.uint8()
    batch = next((batch for batch in table.batches([column], 1) if len(batch)), None)
    cell = None if batch is None else batch.column(0)[0].as_py()
    widths = []
    while _has_lists(kind):
        widths.append(len(cell or ()))
        cell, kind = cell[0] if cell else None, kind.value_type
    return widths, kind


def _flat(name: str, column: str, array: Any, widths: tuple[int, ...], n_before: int) -> np.ndarray:
    """The values in lists that all have these lengths."""
    import pyarrow.compute as pc  # takes long to import, and only this needs it

    for width in widths:
        lengths = pc.list_value_length(array)
        odd = pc.index(pc.not_equal(lengths, pa.scalar(width, lengths.type)), True).as_py()
        if odd >= 0:
            raise ValueError(
                f"{name}, column {column[:60]!r}: must hold lists of {width:,}, got "
                f"{lengths[odd].as_py():,} in row {n_before + odd + 1:,}"
            )
        array = without_missing(name, column, array.flatten())
    return values_of(name, as_kind(array, kind_of(name, pa.field(column, array.type))))
