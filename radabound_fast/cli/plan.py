"""``radabound plan``: what a holdout affords, before any of it is spent."""

from __future__ import annotations

import argparse
from typing import Any

from radabound_fast.cli.options import (
    EPSILON_OR_SPACE,
    add_options,
    check_absent,
    check_outputs,
    declared_space,
    flag_of,
    given,
    show,
)
from radabound_fast.planning import GatePlan, SearchPlan, plan

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
    add_options(
        parser,
        "n_samples",
        epsilon="the error tolerated; for a declared space alone it may be left out",
    )
    add_options(parser, "delta", "n_vectors", "space_size", "space", "max_queries")
    add_options(parser, error_rate="of a query (default: 0.25)")
    add_options(
        parser.add_argument_group("of a search that ends with finalists"),
        n_finalists="compare ways to trust so many models",
        width="without --n-samples: how wide their intervals may be",
    )
    add_options(
        parser.add_argument_group("of a release gate"),
        gate="what gain a candidate needs",
        disagreement="share of rows that differ",
        margin="gain that a pass exceeds (0)",
        n_candidates="how many are declared",
        n_passes="passes before (0, 1, 2, 4, 8)",
        tolerance="without --n-samples: the gain to pass",
    )
    add_options(parser, "json", plot="draw half-widths against m")


def _plan(args: argparse.Namespace) -> int:
    check_outputs(args)
    if args.gate:
        return show(args, _gate_plan(args))
    check_absent(args, _OF_GATE, "{} must be given with --gate")
    if args.n_finalists is not None:
        return show(args, _search_plan(args))
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
        rule = "{} is for a guard, which halts: give --epsilon too"
        check_absent(args, ("n_vectors", "max_queries"), rule)
    return show(args, plan(args.n_samples, args.epsilon, args.delta, **options))


def _search_plan(args: argparse.Namespace) -> SearchPlan:
    of_guard = ("epsilon", "n_vectors", "max_queries")
    check_absent(args, of_guard, "{} must be left out with --n-finalists")
    if args.delta is None:
        raise ValueError("--delta must be given")
    if (args.n_samples is None) == (args.width is None):
        raise ValueError("one of --n-samples and --width must be given with --n-finalists")
    options = given(args, "delta", "error_rate", "width")
    space, n_finalists = declared_space(args), int(args.n_finalists)
    if space is not None:
        options["space_size"] = space.size
    return plan(args.n_samples, n_finalists=n_finalists, **options)


def _gate_plan(args: argparse.Namespace) -> GatePlan:
    of_guard = ("epsilon", "n_vectors", "space_size", "space", "max_queries", "error_rate")
    check_absent(args, (*of_guard, "n_finalists", "width"), "{} must be left out with --gate")
    if args.disagreement is None:
        raise ValueError("--disagreement must be given with --gate")
    return plan(args.n_samples, gate=True, **given(args, "delta", *_OF_GATE))
