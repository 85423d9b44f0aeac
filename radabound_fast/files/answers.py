"""Answers in a file, written block by block: a row per answered query of each mode."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from radabound_fast._extras import needs
from radabound_fast._kernel import Lines
from radabound_fast.files.output import whole_file

# what may stand before the number of a query, one text for a block or one a row
TEXTS = ("bound", "key")
_ROW_GROUP = 2**16  # rows of Parquet at a time: fewer take longer, to read as well
_LINES = 4096  # at a time: they stay in the cache until they are written

# of a block: its columns by their names
Write = Callable[[Mapping[str, Any]], None]


def check_answers_file(path: str) -> None:
    """ValueError or ImportError if `answers_file` could not write such a file."""
    if not path.lower().endswith(".parquet"):
        return  # whatever it is called
    with needs("parquet"):
        import pyarrow.parquet  # noqa: F401


@contextlib.contextmanager
def answers_file(path: str, columns: Sequence[str], *, keep: bool) -> Iterator[Write]:
    """A function that writes the answers to a block, as Parquet or CSV by the file's name.

    Rows come block by block, and within a block bound by bound.

    Parameters
    ----------
    path : str
        Ends in .parquet; any other name is CSV.
    columns : sequence of str
        First those of `TEXTS`, then "query", then floats.
    keep : bool
        Whether what was written stays where something ends the work on the way, an error or
        Ctrl-C; if not, there is a whole file or none.
    """
    write_to = _parquet if path.lower().endswith(".parquet") else _csv
    stopped: BaseException | None = None
    with whole_file(path) as name, write_to(name, columns) as write:
        try:
            yield write
        except BaseException as error:
            if not keep:
                raise
            stopped = error
    if stopped is not None:
        raise stopped


@contextlib.contextmanager
def _csv(name: str, columns: Sequence[str]) -> Iterator[Write]:
    texts = [column for column in columns if column in TEXTS]
    floats = columns[len(texts) + 1 :]
    lines = Lines(len(floats))
    with open(name, "wb", buffering=0) as file:

        def write(block: Mapping[str, Any]) -> None:
            numbers, *told = (np.ascontiguousarray(block[c]) for c in ("query", *floats))
            heads = block[texts[0]] if texts else ""
            for start in range(0, len(numbers), _LINES):
                rows = slice(start, start + _LINES)
                head = heads if isinstance(heads, str) else ""
                made = lines.of(
                    f"{_cell(head)},".encode() if head else b"",
                    numbers[rows],
                    *(column[rows] for column in told),
                )
                if not isinstance(heads, str):
                    pairs = zip(heads[rows], bytes(made).splitlines(keepends=True), strict=True)
                    keyed = b"".join(f"{_cell(key)},".encode() + line for key, line in pairs)
                    made = memoryview(keyed)
                _write_all(file, made)

        _write_all(file, memoryview(f"{','.join(columns)}\n".encode()))
        yield write


def _write_all(file: Any, content: memoryview) -> None:
    """A file without a buffer may take a part, as a pipe does."""
    while content:
        content = content[file.write(content) :]


def _cell(text: str) -> str:
    """As the csv module writes it."""
    if not any(mark in text for mark in ',"\r\n'):
        return text
    return '"' + text.replace('"', '""') + '"'


@contextlib.contextmanager
def _parquet(name: str, columns: Sequence[str]) -> Iterator[Write]:
    with needs("parquet"):
        import pyarrow as pa
        import pyarrow.parquet as pq

    kinds = {"bound": pa.dictionary(pa.int32(), pa.string()), "key": pa.string()}
    kinds["query"] = pa.int64()
    schema = pa.schema([(column, kinds.get(column, pa.float64())) for column in columns])
    pending: list[Any] = []
    n_pending = 0

    with pq.ParquetWriter(name, schema) as writer:

        def flush() -> None:
            nonlocal n_pending
            if pending:
                writer.write_table(pa.concat_tables(pending).unify_dictionaries())
                pending.clear()
                n_pending = 0

        def write(block: Mapping[str, Any]) -> None:
            nonlocal n_pending
            n = len(block["query"])
            told = [
                pa.DictionaryArray.from_arrays(np.zeros(n, np.int32), [block[c]])
                if c == "bound"
                else block[c]
                for c in columns
            ]
            if n:
                pending.append(pa.table(told, schema=schema))
                n_pending += n
            if n_pending >= _ROW_GROUP:
                flush()

        try:
            yield write
        finally:
            flush()
