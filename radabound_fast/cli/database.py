"""``radabound report`` and ``radabound backup``: what a database holds, and a copy of it."""

from __future__ import annotations

import argparse
import os
from typing import Any

from radabound_fast.cli import options
from radabound_fast.guards.confirmed.search import ConfirmedSearch
from radabound_fast.guards.declared.search import DeclaredSearch
from radabound_fast.store import back_up


def add_report(commands: Any) -> None:
    parser = commands.add_parser(
        "report",
        help="what a search kept in a database came to: its best model, and how far to trust it",
        description="Say in a sentence what a DeclaredSearch or a ConfirmedSearch came to, whose "
        "database was made by its open.",
    )
    parser.set_defaults(run=_report)
    parser.add_argument("database", metavar="FILE", help="of the search")
    options.add(parser, "json", plot="draw all scores with their intervals, and the best")


def _report(args: argparse.Namespace) -> int:
    options.check_outputs(args)
    try:
        search: ConfirmedSearch | DeclaredSearch = ConfirmedSearch.open(args.database)
    except ValueError:
        search = DeclaredSearch.open(args.database)  # or it says what is wrong
    return options.show(args, search.report())


def add_backup(commands: Any) -> None:
    parser = commands.add_parser(
        "backup",
        help="copy the database of a guard or a search while others use it",
        description="Copy the database of a guard or a search, as it is at one moment, into a new "
        "file, and check all of the copy. Others may use the database meanwhile. A guard that is "
        "taken from a copy has forgotten what was asked since.",
    )
    parser.set_defaults(run=_backup)
    parser.add_argument("database", metavar="FILE", help="of the guard or the search")
    parser.add_argument("copy", metavar="COPY", help="the new file; never over one that is there")


def _backup(args: argparse.Namespace) -> int:
    kind = back_up(args.database, args.copy)
    size = os.stat(args.copy).st_size
    print(f"{args.copy} has the {kind} of {args.database}: {size:,} bytes, checked")
    return options.OK
