"""``radabound demo`` and ``radabound reproduce``: searches on real data, the paper, the attack."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from radabound_fast._checks import read_as
from radabound_fast._extras import needs
from radabound_fast.cli import options


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
    options.add(parser, quiet="no text and no progress")


def _demo(args: argparse.Namespace) -> int:
    with needs("demo"):
        from radabound_fast.experiments import demo

        demo.main(args.output, quiet=args.quiet)
    return options.OK


def add_reproduce(commands: Any) -> None:
    parser = commands.add_parser(
        "reproduce",
        help="the paper's evaluation with error bars, the attack, and real data",
        description="Run parts of the evaluation and write a table (.csv) and a figure (.png) for "
        "each. Finished cells are kept in DIR/cells and not run again.",
    )
    parser.set_defaults(run=_reproduce)
    what = parser.add_mutually_exclusive_group(required=True)
    options.add_one(what, "figure", choices=range(1, 7), help="1 to 6")
    what.add_argument("--table", choices=["vi"], help="the sample sizes of Section VI")
    options.add(
        what,
        attack="the weighted vote, and the hill-climb on flights",
        real="searches on three real data sets",
        all="everything",
    )
    repeats = "of Figures 1-6 and of the vote (default: 200)"
    options.add_one(parser, "repeats", default=200, help=repeats)
    options.add_one(parser, "jobs", default=1, help="processes (default: 1)")
    parser.add_argument(
        "--output", metavar="DIR", default="reproduction", help="folder (default: reproduction)"
    )
    options.add(parser, quiet="no progress")


def _reproduce(args: argparse.Namespace) -> int:
    with needs("reproduce"), read_as(repeats="--repeats", n_jobs="--jobs"):
        from radabound_fast.experiments import reproduce

        if args.all:
            parts: Sequence[str] = reproduce.PARTS
        elif args.figure:
            parts = [f"figure-{args.figure}"]
        elif args.table:
            parts = ["table-vi"]
        else:
            parts = ["attack" if args.attack else "real"]
        reproduce.main(args.output, parts, repeats=args.repeats, n_jobs=args.jobs, quiet=args.quiet)
    return options.OK
