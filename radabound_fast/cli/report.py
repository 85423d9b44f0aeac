"""``radabound report``: what a search kept in a database came to."""

from __future__ import annotations

import argparse
from typing import Any

from radabound_fast.cli.options import OK, check_outputs
from radabound_fast.files.output import write_figure
from radabound_fast.guards.confirmed.search import ConfirmedSearch
from radabound_fast.guards.declared.search import DeclaredSearch


def add_report(commands: Any) -> None:
    parser = commands.add_parser(
        "report",
        help="what a search kept in a database came to: its best model, and how far to trust it",
        description="Say in a sentence what a DeclaredSearch or a ConfirmedSearch came to, whose "
        "database was made by its open.",
    )
    parser.set_defaults(run=_report)
    parser.add_argument("database", metavar="FILE", help="of the search")
    parser.add_argument("--json", action="store_true", help="print it as JSON")
    parser.add_argument(
        "--plot", metavar="FILE.png", help="draw all scores with their intervals, and the best"
    )


def _report(args: argparse.Namespace) -> int:
    check_outputs(args)
    try:
        search: ConfirmedSearch | DeclaredSearch = ConfirmedSearch.open(args.database)
    except ValueError:
        search = DeclaredSearch.open(args.database)  # or it says what is wrong
    report = search.report()
    print(report.to_json() if args.json else report)
    if args.plot:
        write_figure(args.plot, report.plot())
    return OK
