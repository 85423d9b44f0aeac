"""``radabound edge``: what a guard on a small machine needs of the desktop."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
from typing import Any

from radabound_fast._checks import counted
from radabound_fast.bounds import BOUNDS
from radabound_fast.bounds.bound import complexity_part
from radabound_fast.cli import options
from radabound_fast.edge import EdgeState, margins_header
from radabound_fast.guards.by_bound import guard_by_bound

_MOST_BYTES = 2**28  # of a state file: 2^23 vectors have half of that


def add_edge(commands: Any) -> None:
    parser = commands.add_parser(
        "edge",
        help="states and tables for a guard on a small machine",
        description="What a guard in C on a microcontroller is given by the desktop, and what it "
        "has kept.",
    )
    parts = parser.add_subparsers(dest="part", required=True, metavar="PART")
    for add_part in (_add_new_state, _add_show, _add_header, _add_intervals):
        add_part(parts)


def _add_new_state(parts: Any) -> None:
    parser = parts.add_parser(
        "new-state",
        help="make the state of a new guard",
        description="Write the state of a guard that has answered nothing yet: two slots, one "
        "after the other. One state, one device: two copies know nothing of each other.",
    )
    parser.set_defaults(run=_new_state)
    parser.add_argument("path", metavar="STATE", help="the file to make; it must not exist")
    options.add_one(parser, "n_samples", required=True)
    options.add_one(parser, "epsilon", required=True)
    options.add(parser, bound=f"{', '.join(BOUNDS)} (default: bernstein)")
    options.add_one(parser, "delta", required=True)
    options.add(parser, "n_vectors", "max_queries", "seed")


def _new_state(args: argparse.Namespace) -> int:
    own = ("epsilon", "delta", "n_vectors", "bound", "max_queries", "seed")
    parameters = options.values(args, *own)
    state = EdgeState.new(args.n_samples, **parameters)
    if state.budget < 0 and state.free_below == 0:  # better told here than by the device
        bound = parameters.pop("bound", "bernstein")
        guard = guard_by_bound(bound, args.n_samples, signs="generated", **parameters)
        raise ValueError(f"the holdout cannot answer a first query{guard.what_would_answer()}")
    # never over a state that is in use, and for its owner alone: whoever reads it knows the signs
    file = os.open(
        args.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600
    )
    try:
        with os.fdopen(file, "wb") as opened:
            opened.write(2 * state.to_bytes())
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(args.path)
        raise
    return options.OK


def _add_show(parts: Any) -> None:
    parser = parts.add_parser(
        "show",
        help="say what a guard has spent",
        description="Read a state, say what was answered under it, and what that is worth. It "
        "shows neither the seed nor a count.",
    )
    parser.set_defaults(run=_show)
    parser.add_argument("path", metavar="STATE", help="a state file, or both pages of flash")
    options.add(parser, "json")


def _show(args: argparse.Namespace) -> int:
    state, n_whole = _read(args.path)
    complexity, budget = state.complexity / state.cells, state.budget / state.cells
    if args.json:
        parameters = ("n_samples", "n_vectors", "epsilon", "delta", "bound", "max_queries")
        record = {name: getattr(state, name) for name in (*parameters, "n_answered", "halted")}
        record |= {
            "complexity": complexity, "budget": budget, "complexity_cells": state.complexity,
            "budget_cells": state.budget, "n_whole_slots": n_whole, "guarantee": state.guarantee,
        }  # fmt: skip
        print(json.dumps(record, indent=2))
        return options.OK
    print(
        f"{counted(state.n_samples, 'sample')}, epsilon {state.epsilon:g}, delta {state.delta:g}, "
        f"{state.bound}, {counted(state.n_vectors, 'sign vector')}"
    )
    part = complexity_part(complexity, budget, halted=state.halted)
    print(
        f"{'halted after ' if state.halted else ''}{counted(state.n_answered, 'answer')}, "
        f"{part} (the device counts {state.complexity} and {state.budget})"
    )
    if n_whole == 1:
        print(
            "one of the two slots is not whole: it was cut, or damaged, or lies elsewhere in the "
            "file, and then a later answer may not be counted here"
        )
    print(state.guarantee)
    return options.OK


def _read(path: str) -> tuple[EdgeState, int]:
    """The state in a file, and how many of its slots are whole."""
    with open(path, "rb") as file:
        content = file.read(_MOST_BYTES)
    try:
        return EdgeState.from_file(content), len(EdgeState.whole_slots(content))
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def _add_header(parts: Any) -> None:
    parser = parts.add_parser(
        "header",
        help="print a state as an array in C",
        description="Print one slot of a state as a C header, to be programmed into both slots at "
        "the factory.",
    )
    parser.set_defaults(run=_header)
    parser.add_argument("path", metavar="STATE", help="made by radabound edge new-state")


def _header(args: argparse.Namespace) -> int:
    print(_read(args.path)[0].to_header(), end="")
    return options.OK


def _add_intervals(parts: Any) -> None:
    parser = parts.add_parser(
        "intervals",
        help="print the intervals of a declared search as a table in C",
        description="Print a C header that says, for each count of errors, between which counts "
        "the truth is, of all models of a declared space at once (DeclaredSearch).",
    )
    parser.set_defaults(run=_intervals)
    for name in ("n_samples", "space_size", "delta"):
        options.add_one(parser, name, required=True)


def _intervals(args: argparse.Namespace) -> int:
    print(margins_header(args.n_samples, args.space_size, args.delta), end="")
    return options.OK
