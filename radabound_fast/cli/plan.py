"""``radabound plan``: what a holdout affords, before any of it is spent."""

from __future__ import annotations

import argparse
from typing import Any

from radabound_fast.cli import options
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
    options.add(
        parser,
        "n_samples",
        epsilon="the error tolerated; for a declared space alone it may be left out",
    )
    options.add(parser, "delta", "n_vectors", "space_size", "space", "max_queries")
    options.add(parser, error_rate="of a query (default: 0.25)")
    options.add(
        parser.add_argument_group("of a search that ends with finalists"),
        n_finalists="compare ways to trust so many models",
        width="without --n-samples: how wide their intervals may be",
    )
    options.add(
        parser.add_argument_group("of a release gate"),
        gate="what gain a candidate needs",
        disagreement="share of rows that differ",
        margin="gain that a pass exceeds (0)",
        n_candidates="how many are declared",
        n_passes="passes before (0, 1, 2, 4, 8)",
        tolerance="without --n-samples: the gain to pass",
    )
    options.add(parser, "json", plot="draw half-widths against m")


def _plan(args: argparse.Namespace) -> int:
    options.check_outputs(args)
    if args.gate:
        return options.show(args, _gate_plan(args))
    options.check_absent(args, _OF_GATE, "{} must be given with --gate")
    if args.n_finalists is not None:
        return options.show(args, _search_plan(args))
    if args.width is not None:
        raise ValueError("--width must be given with --n-finalists")
    for name in ("n_samples", "delta"):
        if getattr(args, name) is None:
            raise ValueError(f"{options.flag_of(name)} must be given")
    settings = options.values(args, "n_vectors", "error_rate", "max_queries")
    space = options.declared_space(args)
    if space is not None:
        settings["space_size"] = space.size
    if args.epsilon is None:
        if space is None:
            raise ValueError(options.EPSILON_OR_SPACE)
        rule = "{} is for a guard, which halts: give --epsilon too"
        options.check_absent(args, ("n_vectors", "max_queries"), rule)
    return options.show(args, plan(args.n_samples, args.epsilon, args.delta, **settings))


def _search_plan(args: argparse.Namespace) -> SearchPlan:
    of_guard = ("epsilon", "n_vectors", "max_queries")
    options.check_absent(args, of_guard, "{} must be left out with --n-finalists")
    if args.delta is None:
        raise ValueError("--delta must be given")
    if (args.n_samples is None) == (args.width is None):
        raise ValueError("one of --n-samples and --width must be given with --n-finalists")
    settings = options.values(args, "delta", "error_rate", "width")
    space, n_finalists = options.declared_space(args), int(args.n_finalists)
    if space is not None:
        settings["space_size"] = space.size
    return plan(args.n_samples, n_finalists=n_finalists, **settings)


def _gate_plan(args: argparse.Namespace) -> GatePlan:
    of_guard = ("epsilon", "n_vectors", "space_size", "space", "max_queries", "error_rate")
    options.check_absent(
        args, (*of_guard, "n_finalists", "width"), "{} must be left out with --gate"
    )
    if args.disagreement is None:
        raise ValueError("--disagreement must be given with --gate")
    return plan(args.n_samples, gate=True, **options.values(args, "delta", *_OF_GATE))
