"""Answers in a file, written block by block: a row per bound and answered query."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from radabound_fast._answers import RadaBoundAnswers
from radabound_fast._extras import needs
from radabound_fast._output import whole_file

COLUMNS = ("bound", "query", "value", "complexity", "delta_prime")

# of a block: a bound's name, its answers, asked with a trace
Write = Callable[[str, RadaBoundAnswers], None]


def check_answers_file(path: str) -> None:
    """ValueError or ImportError if `answers_file` could not write such a file."""
    if not path.lower().endswith(".parquet"):
        return  # whatever it is called
    with needs("parquet"):
        import pyarrow.parquet  # noqa: F401


@contextlib.contextmanager
def answers_file(path: str, *, keep: bool) -> Iterator[Write]:
    """A function that writes the answers to a block, as Parquet or CSV by the file's name.

    Rows come block by block, and within a block bound by bound.

    Parameters
    ----------
    path : str
        Ends in .parquet; any other name is CSV.
    keep : bool
        Whether what was written stays where something ends the work on the way, an error or
        Ctrl-C; if not, there is a whole file or none.
    """
    write_to = _parquet if path.lower().endswith(".parquet") else _csv
    stopped: BaseException | None = None
    with whole_file(path) as name, write_to(name) as write:
        try:
            yield write
        except BaseException as error:
            if not keep:
                raise
            stopped = error
    if stopped is not None:
        raise stopped


@contextlib.contextmanager
def _csv(name: str) -> Iterator[Write]:
    with open(name, "w", encoding="utf-8", newline="") as file:
        file.write(",".join(COLUMNS) + "\n")
        yield lambda bound, answers: _write_lines(file, bound, answers)


def _write_lines(file: Any, bound: str, answers: RadaBoundAnswers) -> None:
    """Lines as the csv module writes them; but a number that comes again is written out once."""
    values, place = np.unique(answers.values, return_inverse=True)
    texts, places = [repr(value) for value in values.tolist()], place.tolist()
    complexities, delta_primes = answers.complexities, answers.delta_primes
    assert complexities is not None and delta_primes is not None
    for start, stop in pairwise(_runs(complexities)):
        rest = f",{float(complexities[start])!r},{float(delta_primes[start])!r}\n"
        numbers = answers.numbers[start:stop].tolist()
        file.write(
            "".join(
                [
                    f"{bound},{number},{texts[i]}{rest}"
                    for number, i in zip(numbers, places[start:stop], strict=True)
                ]
            )
        )


def _runs(values: NDArray[np.float64]) -> list[int]:
    """Where runs of equal values begin, and the end of the last."""
    starts: list[int] = np.flatnonzero(np.diff(values, prepend=np.nan) != 0).tolist()
    return [*starts, len(values)]


@contextlib.contextmanager
def _parquet(name: str) -> Iterator[Write]:
    with needs("parquet"):
        import pyarrow as pa
        import pyarrow.parquet as pq

    kinds = (pa.dictionary(pa.int32(), pa.string()), pa.int64(), *[pa.float64()] * 3)
    schema = pa.schema(list(zip(COLUMNS, kinds, strict=True)))
    with pq.ParquetWriter(name, schema) as writer:

        def write(bound: str, answers: RadaBoundAnswers) -> None:
            names = pa.DictionaryArray.from_arrays(np.zeros(len(answers), np.int32), [bound])
            told = answers.values, answers.complexities, answers.delta_primes
            if len(answers):
                writer.write_table(pa.table([names, answers.numbers, *told], schema=schema))

        yield write
