"""``radabound demo``: searches on real flights, and what each guard says of them."""

from __future__ import annotations

import argparse
from typing import Any

from radabound_fast._extras import needs
from radabound_fast.cli.options import OK


def add_demo(commands: Any) -> None:
    parser = commands.add_parser(
        "demo",
        help="an adaptive search on real flights, and where each bound halts it",
        description="Search for models of late flights by their scores on 4,000 held-out flights: "
        "among configurations of a tree, and by moving the thresholds of one tree. Replay the "
        "searches through the paper's bounds, GuessAndCheck and DeclaredSearch, print a table of "
        "each kind; then let the same searches look at half of the flights, and confirm what they "
        "end with on the others. Write three pictures, the labels, and the predictions of a search "
        "among trees, which the command that is printed last audits. Takes some minutes.",
    )
    parser.set_defaults(run=_demo)
    parser.add_argument("--output", metavar="DIR", default="demo", help="folder (default: demo)")
    parser.add_argument("--quiet", action="store_true", help="no text and no progress")


def _demo(args: argparse.Namespace) -> int:
    with needs("demo"):
        from radabound_fast.experiments import demo

        demo.main(args.output, quiet=args.quiet)
    return OK
