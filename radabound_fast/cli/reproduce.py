"""``radabound reproduce``: the paper's evaluation, the attack, and real data."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from radabound_fast._extras import needs
from radabound_fast.cli.options import OK, integer


def add_reproduce(commands: Any) -> None:
    parser = commands.add_parser(
        "reproduce",
        help="the paper's evaluation with error bars, the attack, and real data",
        description="Run parts of the evaluation and write a table (.csv) and a figure (.png) for "
        "each. Finished cells are kept in DIR/cells and not run again.",
    )
    parser.set_defaults(run=_reproduce)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--figure", type=integer, choices=range(1, 7), metavar="N", help="1 to 6")
    what.add_argument("--table", choices=["vi"], help="the sample sizes of Section VI")
    what.add_argument(
        "--attack", action="store_true", help="the weighted vote, and the hill-climb on flights"
    )
    what.add_argument("--real", action="store_true", help="searches on three real data sets")
    what.add_argument("--all", action="store_true", help="everything")
    parser.add_argument(
        "--repeats",
        type=integer,
        default=200,
        metavar="R",
        help="of Figures 1-6 and of the vote (default: 200)",
    )
    parser.add_argument(
        "--jobs", type=integer, default=1, metavar="J", help="processes (default: 1)"
    )
    parser.add_argument(
        "--output", metavar="DIR", default="reproduction", help="folder (default: reproduction)"
    )
    parser.add_argument("--quiet", action="store_true", help="no progress")


def _reproduce(args: argparse.Namespace) -> int:
    for option in ("repeats", "jobs"):
        value = getattr(args, option)
        if value < 1:
            raise ValueError(f"--{option} must be at least 1, got {value}")
    with needs("reproduce"):
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
    return OK
