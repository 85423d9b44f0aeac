"""A declared space as a file of JSON, and which configuration each row of a file is.

The file holds a number N, for the configurations 0 to N - 1, or a mapping of names to values, or a
list of such mappings.  Values are a list, or an interval: ``{"from": 1, "to": 20}`` are the whole
numbers from 1 to 20, and with ``"step": 0.1`` numbers that far apart.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from radabound_fast.spaces import Space, Steps, as_space


def read_space(path: str) -> Space:
    """The space in a file; ValueError if it is no such file, the message says where."""
    declared = _json(path, _text_of(path))
    try:
        if isinstance(declared, list):
            return as_space([_grid(each) for each in declared])
        return as_space(_grid(declared) if isinstance(declared, dict) else declared)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{path}: {error}") from error


def _grid(names: Any) -> Any:
    if not isinstance(names, dict):
        raise ValueError(f"a grid must be a mapping of names to values, got {names!r:.100}")
    return {name: _values(name, values) for name, values in names.items()}


def _values(name: str, values: Any) -> Any:
    if not isinstance(values, dict):
        return values
    if not {"from", "to"} <= values.keys() <= {"from", "to", "step"}:
        raise ValueError(
            f'{name} must be a list, or an interval with "from", "to" and perhaps "step", got '
            f"{values!r:.100}"
        )
    low, high, step = values["from"], values["to"], values.get("step", 1)
    if all(type(each) is int for each in (low, high, step)) and step > 0:
        return range(low, high + 1, step)
    if "step" not in values:
        raise ValueError(f'{name} must have a "step", since its limits are no whole numbers')
    return Steps(low, high, step)


def read_keys(path: str, n_rows: int) -> list[str]:
    """The lines of a file, one a row; ValueError if not, if one is empty, or they are no text."""
    keys = _text_of(path).split("\n")
    if keys[-1] == "":
        del keys[-1]
    if len(keys) != n_rows:
        raise ValueError(f"{path} must have a line a row, {n_rows:,}, got {len(keys):,}")
    if "" in keys:
        raise ValueError(f"{path}: line {keys.index('') + 1:,} must not be empty")
    return keys


def keys_in(space: Space, path: str, lines: Sequence[str]) -> list[Any]:
    """The keys of a space that the lines of a file name, as JSON; ValueError names the line."""
    keys = []
    for number, line in enumerate(lines, 1):
        key = _json(f"{path}, line {number:,}", line)
        try:
            space.find(key)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{path}, line {number:,}: {error}") from error
        keys.append(key)
    return keys


def _text_of(path: str) -> str:
    try:
        with open(path, encoding="utf-8-sig") as file:
            return file.read()
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} must hold text in UTF-8: {error}") from error


def _json(name: str, text: str) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_without_repeats)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{name} must be JSON: {error}") from error


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    named = dict(pairs)
    if len(named) < len(pairs):
        raise ValueError(f"a name occurs twice in {[name for name, _ in pairs]!r:.100}")
    return named
