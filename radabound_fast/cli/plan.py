"""``radabound plan``: what a holdout affords, before any of it is spent."""

from __future__ import annotations

import argparse
from typing import Any

from radabound_fast.cli.options import (
    EPSILON_OR_SPACE,
    OK,
    add_option,
    check_absent,
    check_outputs,
    declared_space,
    flag_of,
    given,
    integer,
)
from radabound_fast.files.output import write_figure
from radabound_fast.planning import GatePlan, Plan, SearchPlan, plan

_OF_GATE = ("disagreement", "margin", "n_candidates", "n_passes", "tolerance")


def add_plan(commands: Any) -> None:
    parser = commands.add_parser(
        "plan",
        help="what a holdout affords, before any of it is spent",
        description="For every bound and guard: the complexity budget, whether a first query "
        "can be answered, how many can and what that takes, and the smallest epsilon and holdout "
        "for a first one. For a space of configurations: the interval of every answer. For the "
        "finalists of any search: ways to trust it, side by side. For a "
        "release gate: the gain that a candidate needs, or the labels that a gain needs.",
    )
    parser.set_defaults(run=_plan)
    add_option(parser, "n_samples")
    add_option(
        parser, "epsilon", help="the error tolerated; for a declared space alone it may be left out"
    )
    add_option(parser, "delta", required=False)
    for name in ("n_vectors", "space_size", "space", "max_queries"):
        add_option(parser, name)
    parser.add_argument("--error-rate", type=float, metavar="P", help="of a query (default: 0.25)")
    search = parser.add_argument_group("of a search that ends with finalists")
    search.add_argument(
        "--n-finalists", type=integer, metavar="S", help="compare ways to trust so many models"
    )
    search.add_argument(
        "--width", type=float, help="without --n-samples: how wide their intervals may be"
    )
    gate = parser.add_argument_group("of a release gate")
    gate.add_argument("--gate", action="store_true", help="what gain a candidate needs")
    gate.add_argument("--disagreement", type=float, metavar="P", help="share of rows that differ")
    gate.add_argument("--margin", type=float, help="gain that a pass exceeds (0)")
    gate.add_argument("--n-candidates", type=int, metavar="H", help="how many are declared")
    gate.add_argument("--n-passes", type=int, metavar="B", help="passes before (0, 1, 2, 4, 8)")
    gate.add_argument(
        "--tolerance", type=float, metavar="GAIN", help="without --n-samples: the gain to pass"
    )
    parser.add_argument("--json", action="store_true", help="print it as JSON")
    parser.add_argument("--plot", metavar="FILE.png", help="draw half-widths against m")


def _plan(args: argparse.Namespace) -> int:
    check_outputs(args)
    if args.gate:
        return _told(args, _gate_plan(args))
    check_absent(args, _OF_GATE, "must be given with --gate")
    if args.n_finalists is not None:
        return _told(args, _search_plan(args))
    if args.width is not None:
        raise ValueError("--width must be given with --n-finalists")
    for name in ("n_samples", "delta"):
        if getattr(args, name) is None:
            raise ValueError(f"{flag_of(name)} must be given")
    options = given(args, "n_vectors", "error_rate", "max_queries")
    space = declared_space(args)
    if space is not None:
        options["space_size"] = space.size
    if args.epsilon is None:
        if space is None:
            raise ValueError(EPSILON_OR_SPACE)
        rule = "is for a guard, which halts: give --epsilon too"
        check_absent(args, ("n_vectors", "max_queries"), rule)
    return _told(args, plan(args.n_samples, args.epsilon, args.delta, **options))


def _search_plan(args: argparse.Namespace) -> SearchPlan:
    of_guard = ("epsilon", "n_vectors", "max_queries")
    check_absent(args, of_guard, "must be left out with --n-finalists")
    if args.delta is None:
        raise ValueError("--delta must be given")
    if (args.n_samples is None) == (args.width is None):
        raise ValueError("one of --n-samples and --width must be given with --n-finalists")
    options: dict[str, float] = given(args, "error_rate", "width")
    space, n_finalists = declared_space(args), int(args.n_finalists)
    size = None if space is None else space.size
    return plan(
        args.n_samples, delta=args.delta, n_finalists=n_finalists, space_size=size, **options
    )


def _gate_plan(args: argparse.Namespace) -> GatePlan:
    of_guard = ("epsilon", "n_vectors", "space_size", "space", "max_queries", "error_rate")
    check_absent(args, (*of_guard, "n_finalists", "width"), "must be left out with --gate")
    if args.disagreement is None:
        raise ValueError("--disagreement must be given with --gate")
    return plan(args.n_samples, gate=True, **given(args, "delta", *_OF_GATE))


def _told(args: argparse.Namespace, planned: Plan | SearchPlan | GatePlan) -> int:
    print(planned.to_json() if args.json else planned)
    if args.plot:
        write_figure(args.plot, planned.plot())
    return OK
