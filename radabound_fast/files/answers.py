"""Writes answers to a file block by block: a row for each answered query of each bound."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from radabound_fast._extras import needs
from radabound_fast.files.output import whole_file

_ROW_GROUP = 2**16  # rows written at a time: fewer take longer, to read as well

# columns of a pool: whether a model is better than the baseline, and whether it may be the best
YES_OR_NO = ("better", "bonferroni_better", "may_be_best", "bonferroni_may_be_best")

# takes the columns of a block by their names
Write = Callable[[Mapping[str, Any]], None]


@contextlib.contextmanager
def answers_file(path: str, columns: Sequence[str], *, keep: bool) -> Iterator[Write]:
    """A function that writes the answers to a block: as Parquet to .parquet, else as CSV.

    Rows come block by block, and within a block bound by bound.  `columns` are "bound", one text
    for a block; "key" and "model", a text for each row; "query"; floats, or bools where the name is
    one of `YES_OR_NO`.  With `keep` what was written stays where something ends the work on the
    way, an error or Ctrl-C; without, there is a whole file or none.
    """
    with needs("files"):
        import pyarrow as pa
        from pyarrow.csv import CSVWriter
        from pyarrow.parquet import ParquetWriter

    types = {"bound": pa.dictionary(pa.int32(), pa.string()), "query": pa.int64()}
    types |= {"key": pa.string(), "model": pa.string()} | dict.fromkeys(YES_OR_NO, pa.bool_())
    schema = pa.schema([(column, types.get(column, pa.float64())) for column in columns])
    writer_to = ParquetWriter if path.lower().endswith(".parquet") else CSVWriter
    pending: list[Any] = []
    n_pending = 0

    def write(block: Mapping[str, Any]) -> None:
        nonlocal n_pending
        arrays = dict(block)
        if "bound" in columns:
            arrays["bound"] = pa.repeat(block["bound"], len(block["query"])).dictionary_encode()
        pending.append(pa.table([arrays[column] for column in columns], schema=schema))
        n_pending += len(pending[-1])
        if n_pending >= _ROW_GROUP:
            flush()

    def flush() -> None:
        nonlocal n_pending
        if pending:
            writer.write_table(pa.concat_tables(pending).unify_dictionaries())
        pending.clear()
        n_pending = 0

    stopped: BaseException | None = None
    with whole_file(path) as name, open(name, "wb") as file, writer_to(file, schema) as writer:
        try:
            yield write
        except BaseException as error:
            if not keep:
                raise
            stopped = error
        flush()
    if stopped is not None:
        raise stopped
