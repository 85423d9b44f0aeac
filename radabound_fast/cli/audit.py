"""``radabound audit``: how far the scores in a file can be trusted, and which model is best."""

from __future__ import annotations

import argparse
import contextlib
from typing import Any

from radabound_fast._checks import check_choice
from radabound_fast._extras import check_installed
from radabound_fast.bounds import BOUNDS, PAPER_BOUNDS
from radabound_fast.cli import options
from radabound_fast.cli.auditing import HEADERS, Files
from radabound_fast.cli.confirming import ConfirmedAudit
from radabound_fast.cli.halting import GUARD_OPTIONS, GuardsAudit
from radabound_fast.cli.pooling import PoolAudit
from radabound_fast.cli.searching import SearchAudit
from radabound_fast.files.place import SUFFIXES
from radabound_fast.metrics import METRICS


def add_audit(commands: Any) -> None:
    parser = commands.add_parser(
        "audit",
        help="how far the scores of many models on one holdout can be trusted, and which is best",
        description="Judge predictions or losses, one row a model: over a declared space "
        "(--space-size, --space) each score has an interval, however the search went about it; "
        "with --confirm-share the best on some rows are confirmed on the others; "
        "with --pool models that were fixed beforehand are judged all at once; "
        "with --epsilon a guard answers models in a fixed order until the holdout is spent. "
        "Exit code: 0 all answered, 3 a guard halted, 2 bad input.",
    )
    parser.set_defaults(run=_audit)
    what = parser.add_mutually_exclusive_group(required=True)
    known = f"files ({', '.join(SUFFIXES)}, .npz:key), folders, patterns, URLs"
    options.add_one(what, "predictions", nargs="+", help=f"k x m predictions: {known}")
    options.add_one(what, "losses", nargs="+", help="k x m losses in [0, 1] instead")
    options.add_one(parser, "labels", nargs="+", help="the m labels that predictions are for")
    parser.add_argument(
        "--transpose",
        action=argparse.BooleanOptionalAction,
        help="the file is m x k: a query is a column; a square file needs one of the two",
    )
    parser.add_argument(
        "--packed",
        nargs="?",
        const=True,
        choices=("little", "big"),
        help="rows are bits: words of pack_losses, or bytes of numpy.packbits with this bitorder",
    )
    parser.add_argument(
        "--header",
        choices=[name for name in HEADERS if name],
        help="which .csv files begin with a header: both, none, or one (default: none, and a first "
        "line 0, 1, 2, ... and a first text label that is like no other are refused)",
    )
    options.add(parser, n_samples="m, which packed losses do not tell")
    options.add_one(parser, "delta", required=True)
    guard = parser.add_argument_group("for models in an order fixed before any score was seen")
    options.add(guard, "epsilon")
    bounds = f"{', '.join(BOUNDS)}; may be repeated (default: fixed-sequence)"
    options.add_one(guard, "bound", action="append", help=bounds)
    options.add(guard, *GUARD_OPTIONS)
    search = parser.add_argument_group(
        "for a search over a space declared before any score was seen"
    )
    options.add(
        search,
        "space_size",
        "space",
        keys="a line for each row, which configuration it is: any text, or with --space its "
        "values as JSON (default: one of its own)",
    )
    options.add(search, *options.OF_PREDICTIONS)
    options.add(
        parser.add_argument_group("for any search at all, which used some of the rows alone"),
        confirm_share="keep this share of the rows for the end: each model is scored on the "
        "others, and the best is confirmed on these; with --seed as the search had it",
        finalists="confirm the N best (default: 1)",
    )
    options.add(
        parser.add_argument_group("for models that were all fixed before any score was seen"),
        pool="judge all models at once: which may be the best, and which are better than the "
        "baseline; asymptotic, beside what is proved; --keys names the models, --n-vectors is "
        "1000 by default",
    )
    options.add(
        parser,
        json="print everything as JSON",
        output="write every answer: .parquet, or CSV by any other name (needs the extra files)",
        plot="draw complexity against queries; of a search, all scores with their intervals",
        state="keep the search, or the guard of one bound, here, and go on where it stopped; "
        "--output has the answers of this run",
        threads="threads at most (default: 1)",
        quiet="no text and no progress",
    )


def _audit(args: argparse.Namespace) -> int:
    _check_audit(args)
    space = options.declared_space(args)
    files = Files(args)
    if args.pool:
        return PoolAudit(files).run()
    if args.confirm_share is not None:
        return ConfirmedAudit(files).run()
    if space is not None:
        return SearchAudit(files, space).run()
    with contextlib.ExitStack() as opened:
        return GuardsAudit(files, opened).run()


def _check_audit(args: argparse.Namespace) -> None:
    of_guard, of_space = ("epsilon", "bound", *GUARD_OPTIONS), ("space_size", "space")
    if args.pool:
        others = ("epsilon", "bound", "estimator", "max_queries", "state", *of_space)
        rule = "{} must be left out with --pool"
        options.check_absent(args, (*others, "confirm_share", "finalists"), rule)
    elif args.confirm_share is not None:
        names = {*of_guard, "state", *of_space, "keys", "threads"} - {"seed"}
        options.check_absent(args, sorted(names), "{} must be left out with --confirm-share")
        if not args.confirm_share < 1:
            raise ValueError(
                f"--confirm-share must be below 1, by the rest the best is found, got "
                f"{args.confirm_share:g}"
            )
    elif args.finalists is not None:
        raise ValueError("--finalists must be given with --confirm-share")
    elif args.space_size is None and args.space is None:
        rule = (
            "{} is for a search over a declared space: give --space-size, the number of "
            "configurations that could have been asked about, or --space"
        )
        options.check_absent(args, ("keys", *options.OF_PREDICTIONS), rule)
        if args.epsilon is None:
            raise ValueError(
                f"{options.EPSILON_OR_SPACE}; or --confirm-share, for any search at all; or "
                "--pool, for models that were fixed beforehand"
            )
    else:
        halts = "{} is for a guard, which halts; a search over a declared space does not"
        options.check_absent(args, of_guard, f"{halts}: leave it or the space out")
    if args.labels is None:
        options.check_absent(args, options.OF_PREDICTIONS, "{} is for --predictions, got --losses")
    if args.metric is not None:
        check_choice(METRICS, metric=args.metric)
    bounds = set(args.bound or [])
    if args.max_queries is not None and bounds - {"fixed-sequence"}:
        raise ValueError('--max-queries is for "fixed-sequence" alone, got other bounds')
    if args.estimator is not None and not bounds & set(PAPER_BOUNDS):
        raise ValueError(f"--estimator is for {', '.join(PAPER_BOUNDS)}, got fixed-sequence alone")
    options.check_outputs(args)
    if args.output:
        check_installed("files", "pyarrow")
    if args.state is not None and len(bounds) > 1:
        raise ValueError(f"--state is for one guard: give one --bound, got {len(bounds)}")
    if args.state is not None and args.plot and args.epsilon is not None:
        raise ValueError("--plot of a guard needs the whole replay: leave out --state")
