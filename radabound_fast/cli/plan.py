"""``radabound plan``: what a holdout affords, before any of it is spent."""

from __future__ import annotations

import argparse
from typing import Any

from radabound_fast.cli.options import (
    EPSILON_OR_SPACE,
    OK,
    add_option,
    check_outputs,
    declared_space,
    flag_of,
    given,
)
from radabound_fast.files.output import write_figure
from radabound_fast.planning import plan


def add_plan(commands: Any) -> None:
    parser = commands.add_parser(
        "plan",
        help="what a holdout affords, before any of it is spent",
        description="For every bound and guard: the complexity budget, whether a first query "
        "can be answered, how many can and what that takes, and the smallest epsilon and holdout "
        "for a first one. For a space of configurations: the interval of every answer.",
    )
    parser.set_defaults(run=_plan)
    add_option(parser, "n_samples", required=True)
    add_option(
        parser, "epsilon", help="the error tolerated; for a declared space alone it may be left out"
    )
    for name in ("delta", "n_vectors", "space_size", "space", "max_queries"):
        add_option(parser, name)
    parser.add_argument("--error-rate", type=float, metavar="P", help="of a query (default: 0.25)")
    parser.add_argument("--json", action="store_true", help="print it as JSON")
    parser.add_argument("--plot", metavar="FILE.png", help="draw half-widths against m")


def _plan(args: argparse.Namespace) -> int:
    check_outputs(args)
    options = given(args, "n_vectors", "error_rate", "max_queries")
    space = declared_space(args)
    if space is not None:
        options["space_size"] = space.size
    if args.epsilon is None:
        if space is None:
            raise ValueError(EPSILON_OR_SPACE)
        for option in given(args, "n_vectors", "max_queries"):
            raise ValueError(f"{flag_of(option)} is for a guard, which halts: give --epsilon too")
    made = plan(args.n_samples, args.epsilon, args.delta, **options)
    print(made.to_json() if args.json else made)
    if args.plot:
        write_figure(args.plot, made.plot())
    return OK
