"""Files that appear at their place whole or not at all, and the one of all answers among them."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from radabound_fast._extras import needs

_ROW_GROUP = 2**16  # rows written at a time: fewer take longer, to read as well

# columns of a pool: whether a model is better than the baseline, and whether it may be the best
YES_OR_NO = ("better", "bonferroni_better", "may_be_best", "bonferroni_may_be_best")

# takes the columns of a block by their names
Write = Callable[[Mapping[str, Any]], None]


def check_target(path: str | bytes | os.PathLike[Any]) -> None:
    """What could keep a file from being written is told before the work that makes it.

    ValueError: its folder does not exist, or it is a folder or a symbolic link.
    """
    name = os.fsdecode(path)
    folder = os.path.dirname(name) or "."
    if not os.path.isdir(folder):
        raise ValueError(f"{name}: its folder does not exist")
    if os.path.isdir(name):
        raise ValueError(f"{name} is a folder")
    if os.path.islink(name) and _is_file_or_nothing(name):
        raise ValueError(f"{name} is a symbolic link: name the file that it points to")
    if _is_file_or_nothing(name) and not os.access(folder, os.W_OK):
        raise ValueError(f"{name}: its folder cannot be written")


@contextlib.contextmanager
def whole_file(path: str | bytes | os.PathLike[Any]) -> Iterator[str]:
    """The name of a new file to write to; it takes its place at `path` when the block is done.

    Its name cannot be guessed, so that nobody puts a link there before.  Whatever ends the block
    otherwise (an error, Ctrl-C) removes it.  Devices and pipes, /dev/stdout, are written directly.

    Errors are those of `check_target`, and OSError of the system, with `path` as its file; ENOSPC
    if the disk is full.
    """
    name = os.fsdecode(path)
    check_target(name)
    if not _is_file_or_nothing(name):
        yield name
        return
    folder, base = os.path.split(name)
    part = os.path.join(folder, f".{base[:100]}.{secrets.token_hex(8)}.part")
    try:
        # with the permissions of any new file, and never through a link
        os.close(os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
        with contextlib.suppress(FileNotFoundError):  # or with those of the one that it replaces
            os.chmod(part, stat.S_IMODE(os.stat(name).st_mode))
        yield part
        os.replace(part, name)
    except BaseException as error:
        with contextlib.suppress(OSError):
            os.unlink(part)
        if isinstance(error, OSError) and error.errno and error.filename in (None, part):
            raise OSError(error.errno, os.strerror(error.errno), name) from error
        raise


def write_figure(path: str | bytes | os.PathLike[Any], figure: Any) -> None:
    """A matplotlib figure as PNG."""
    with whole_file(path) as name:
        figure.savefig(name, format="png")


def _is_file_or_nothing(name: str) -> bool:
    try:
        return stat.S_ISREG(os.stat(name).st_mode)
    except FileNotFoundError:
        return True


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
