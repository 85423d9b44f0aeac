"""Results of an evaluation, case by case: a score in [0, 1] beside the name of its case."""

from __future__ import annotations

import contextlib
import csv
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TextIO

import numpy as np
from numpy.typing import NDArray

Path = str | os.PathLike[str]


def read_results(path: Path, case: str, score: str) -> dict[str, float]:
    """Read the mean score of each case, in the order in which the cases occur first.

    `path` is a .jsonl file of an object a line, or a .csv file with a header.  `case` and `score`
    are the field or column of the case's name, and that of its score: a number in [0, 1], or true
    or false; of several results of a case the mean is taken.

    ValueError: a line that is no such result, by its number.  OSError: the file cannot be read.
    """
    name = os.fsdecode(path)
    read = {".jsonl": _json_lines, ".csv": _csv_lines}.get(os.path.splitext(name)[1].lower())
    if read is None:
        raise ValueError(f"{name} must end in .jsonl or .csv")
    scores_of: dict[str, list[float]] = {}
    for where, fields in read(name):
        for field in (case, score):
            if fields.get(field) in (None, ""):
                raise ValueError(f"{where} must have a field {field!r}")
        if isinstance(fields[case], (bool, list, dict)):
            raise ValueError(f"{where} must have a string or a number in the field {case!r}")
        scores_of.setdefault(str(fields[case]), []).append(_score(where, score, fields[score]))
    if not scores_of:
        raise ValueError(f"{name} must hold at least one result, it holds none")
    return {one: float(np.mean(scores)) for one, scores in scores_of.items()}


def losses_of(results: dict[str, float], ids: Sequence[str], name: str) -> NDArray[Any]:
    """Return the losses of results, 1 less the score, in the order of the cases `ids`.

    They are of uint8 where all scores are 0 or 1, else of float64.  A case that is missing or
    unknown in the results, which messages call `name`, is a ValueError.
    """
    missing = [one for one in ids if one not in results]
    unknown = set(results).difference(ids)
    for what, cases in (("lacks", missing), ("has the unknown", sorted(unknown))):
        if cases:
            more = f" and {len(cases) - 1:,} more" if len(cases) > 1 else ""
            raise ValueError(f"{name} {what} case {cases[0]!r:.80}{more}")
    losses = 1.0 - np.array([results[one] for one in ids])
    return losses.astype(np.uint8) if np.isin(losses, (0.0, 1.0)).all() else losses


def _json_lines(name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    with _text(name) as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            where = f"line {number} of {name}"
            try:
                fields = json.loads(line, object_pairs_hook=_once)
            except (ValueError, RecursionError) as error:
                raise ValueError(f"{where} must be a JSON object: {error}") from None
            if not isinstance(fields, dict):
                raise ValueError(f"{where} must be a JSON object")
            yield where, fields


def _once(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for key, value in pairs:
        if key in fields:
            raise ValueError(f"the field {key!r:.80} stands twice")
        fields[key] = value
    return fields


def _csv_lines(name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    with _text(name) as file:
        lines = csv.reader(file, strict=True)
        try:
            header = next(lines, [])
            if len(set(header)) < len(header):
                raise ValueError(f"{name} must have each column once, got {header!r:.200}")
            for row in filter(None, lines):
                where = f"line {lines.line_num} of {name}"
                if len(row) != len(header):
                    raise ValueError(f"{where} must have {len(header)} fields, got {len(row)}")
                yield where, dict(zip(header, row, strict=True))
        except csv.Error as error:
            raise ValueError(f"{name} is no CSV file: {error}") from None


@contextlib.contextmanager
def _text(name: str) -> Iterator[TextIO]:
    """A file of text in UTF-8, open; ValueError by its name where it turns out to be none."""
    with open(name, encoding="utf-8-sig", newline="") as file:
        try:
            yield file
        except UnicodeDecodeError:
            raise ValueError(f"{name} must be text in UTF-8") from None


def _score(where: str, field: str, value: Any) -> float:
    word = str(value).lower()
    try:
        number = float(word == "true") if word in ("true", "false") else float(value)
    except (TypeError, ValueError):
        number = np.nan
    if not 0.0 <= number <= 1.0:
        raise ValueError(
            f"{where} must have a {field} in [0, 1], or true or false, got {value!r:.50}"
        )
    return number
