"""``radabound audit``: how far the scores in a file can be trusted, and which model is best."""

from __future__ import annotations

import argparse
import contextlib
import json
import secrets
from collections.abc import Iterator, Sequence
from typing import Any

from numpy.typing import NDArray

from radabound_fast import __version__
from radabound_fast._checks import check_choice, check_count, counted
from radabound_fast._extras import check_installed
from radabound_fast.bounds import BOUNDS, PAPER_BOUNDS
from radabound_fast.cli.confirming import ConfirmReplay
from radabound_fast.cli.options import (
    EPSILON_OR_SPACE,
    HALTED,
    OF_PREDICTIONS,
    OK,
    add_option,
    check_outputs,
    declared_space,
    flag_of,
    given,
    integer,
    judged,
    takes_classes,
)
from radabound_fast.cli.pooling import add_file, columns_of, write_columns
from radabound_fast.cli.replay import (
    GuardReplay,
    Replay,
    SearchReplay,
    record,
    replay,
    shortfalls,
    table,
)
from radabound_fast.cli.spaces import keys_in, read_keys
from radabound_fast.files.answers import answers_file
from radabound_fast.files.output import write_figure
from radabound_fast.files.place import expanded
from radabound_fast.files.progress import progress
from radabound_fast.files.reading import FileRows, open_losses, open_predictions
from radabound_fast.files.sources import CSV, SUFFIXES
from radabound_fast.guards.by_bound import guard_by_bound, open_by_bound
from radabound_fast.guards.confirmed.search import ConfirmedSearch
from radabound_fast.guards.declared.search import DeclaredSearch
from radabound_fast.guards.report import plain
from radabound_fast.metrics import METRICS
from radabound_fast.pool.model_pool import ModelPool
from radabound_fast.rows.labels import Labels
from radabound_fast.spaces import Space, as_space
from radabound_fast.spaces.named import NamedKeys

# of an audit that halts, beside epsilon, delta and bound
GUARD_OPTIONS = ("n_vectors", "estimator", "max_queries", "seed")
IN_FULL = "What is guaranteed and assumed, in full, is in the output of --json."

# whether the first line is a header, of the labels and of the rest
HEADERS = {
    None: (None, None),
    "yes": (True, True),
    "no": (False, False),
    "labels": (True, False),
    "predictions": (False, True),
}


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
    what.add_argument(
        "--predictions",
        metavar="FILE",
        nargs="+",
        help=f"k x m predictions: files ({', '.join(SUFFIXES)}, .npz:key), folders, patterns, URLs",
    )
    what.add_argument("--losses", metavar="FILE", nargs="+", help="k x m losses in [0, 1] instead")
    parser.add_argument(
        "--labels", metavar="FILE", nargs="+", help="the m labels that predictions are for"
    )
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
    parser.add_argument(
        "--n-samples", type=integer, metavar="M", help="m, which packed losses do not tell"
    )
    add_option(parser, "delta")
    guard = parser.add_argument_group("for models in an order fixed before any score was seen")
    add_option(guard, "epsilon")
    add_option(
        guard,
        "bound",
        action="append",
        help=f"{', '.join(BOUNDS)}; may be repeated (default: fixed-sequence)",
    )
    for name in GUARD_OPTIONS:
        add_option(guard, name)
    search = parser.add_argument_group(
        "for a search over a space declared before any score was seen"
    )
    add_option(search, "space_size")
    add_option(search, "space")
    search.add_argument(
        "--keys",
        metavar="FILE",
        help="a line for each row, which configuration it is: any text, or with --space its "
        "values as JSON (default: one of its own)",
    )
    for name in OF_PREDICTIONS:
        add_option(search, name)
    free = parser.add_argument_group("for any search at all, which used some of the rows alone")
    free.add_argument(
        "--confirm-share",
        type=float,
        metavar="P",
        help="keep this share of the rows for the end: each model is scored on the others, and the "
        "best is confirmed on these; with --seed as the search had it",
    )
    free.add_argument(
        "--finalists", type=integer, metavar="N", help="confirm the N best (default: 1)"
    )
    pool = parser.add_argument_group("for models that were all fixed before any score was seen")
    pool.add_argument(
        "--pool",
        action="store_true",
        help="judge all models at once: which may be the best, and which are better than the "
        "baseline; asymptotic, beside what is proved; --keys names the models, --n-vectors is "
        "1000 by default",
    )
    parser.add_argument("--json", action="store_true", help="print everything as JSON")
    parser.add_argument(
        "--output",
        metavar="FILE",
        help="write every answer: .parquet, or CSV by any other name (needs the extra files)",
    )
    parser.add_argument(
        "--plot",
        metavar="FILE.png",
        help="draw complexity against queries; of a search, all scores with their intervals",
    )
    parser.add_argument(
        "--state",
        metavar="FILE.db",
        help="keep the search, or the guard of one bound, here, and go on where it stopped; "
        "--output has the answers of this run",
    )
    guard.add_argument("--threads", type=integer, metavar="N", help="threads at most (default: 1)")
    parser.add_argument("--quiet", action="store_true", help="no text and no progress")


def _audit(args: argparse.Namespace) -> int:
    _check_audit(args)
    space = declared_space(args)
    labels, rows, n_samples = _open_files(args)
    if args.pool:
        return _audit_pool(args, rows, labels, _pool(args, labels, n_samples))
    with contextlib.ExitStack() as kept:
        if args.confirm_share is not None:
            return _audit_confirmed(args, rows, labels, _confirmed(args, labels, rows, n_samples))
        if space is None:
            guards = _guards(args, labels, rows, n_samples, kept)
            return _audit_guards(args, rows, labels, guards)
        search = _search(args, space, labels, rows, n_samples, kept)
        return _audit_search(args, rows, labels, search)


def _guards(
    args: argparse.Namespace,
    labels: NDArray[Any] | None,
    rows: FileRows,
    n_samples: int,
    kept: contextlib.ExitStack,
) -> list[GuardReplay]:
    """A guard a bound; one that is kept in a database is closed with `kept`."""
    drawn = secrets.randbits(64) if args.seed is None and args.state is None else args.seed
    n_threads = 1 if args.threads is None else check_count(threads=args.threads)
    replays = []
    for bound in dict.fromkeys(args.bound or ["fixed-sequence"]):
        parameters = {"delta": args.delta} | given(args, "epsilon", *GUARD_OPTIONS)
        if bound not in PAPER_BOUNDS:  # which has one estimator
            parameters.pop("estimator", None)
        if drawn is not None:
            parameters["seed"] = drawn
        judged = n_samples if labels is None else _known(args, labels)
        if args.state is None:
            guard = guard_by_bound(bound, judged, **parameters)
        else:
            guard = kept.enter_context(open_by_bound(bound, args.state, judged, **parameters))
        replays.append(
            GuardReplay(
                guard,
                names=rows.names,
                binary=labels is not None or rows.dtype.kind in "biu",
                packed=bool(args.packed),
                trace=bool(args.output or args.plot),
                keep=bool(args.plot),
                n_threads=n_threads,
            )
        )
    return replays


def _known(args: argparse.Namespace, labels: NDArray[Any]) -> Labels:
    try:
        return Labels(labels)
    except ValueError as error:
        raise ValueError(f"{' '.join(args.labels)}: {error}") from error


def _search(
    args: argparse.Namespace,
    space: Space,
    labels: NDArray[Any] | None,
    rows: FileRows,
    n_samples: int,
    kept: contextlib.ExitStack,
) -> SearchReplay:
    n_rows = rows.shape[0]
    name = "--space-size" if args.space is None else "the number of configurations in --space"
    keys: list[Any] | None = None
    if args.keys is not None:
        keys = read_keys(args.keys, n_rows)
    if space.size is None:
        raise ValueError("--space must hold a number of configurations, got a space without end")
    if keys is None and n_rows > space.size:
        raise ValueError(
            f"{name} must be at least the number of rows, {n_rows:,}, got {space.size:,}: if a "
            "configuration comes more than once, say with --keys which rows are of it"
        )
    if keys is not None and args.space is None:
        space = NamedKeys(space.size)
    elif keys is not None:
        keys = keys_in(space, args.keys, keys)
    else:
        space = as_space(space.size)  # a row is a configuration, and nobody knows which
    what: Any = n_samples
    baseline = None
    if labels is not None:
        _known(args, labels)  # which names the file if they are no labels
        what, baseline = judged(args, labels)
    options: dict[str, Any] = {"delta": args.delta, "baseline": baseline}
    if args.state is None:
        # where no key comes again, and no picture shows all, one answer is enough
        n_best = 1 if keys is None and not args.plot else None
        search = DeclaredSearch(what, space, n_best=n_best, **options)
    else:
        search = kept.enter_context(DeclaredSearch.open(args.state, what, space, **options))
    if isinstance(space, NamedKeys):
        n_names = len({*(keys or ()), *search.answers.codes})
        if n_names > space.size:
            raise ValueError(
                f"--space-size must be at least the number of different keys, {n_names:,}, got "
                f"{space.size:,}"
            )
    return SearchReplay(search, keys, names=rows.names, packed=bool(args.packed))


def _confirmed(
    args: argparse.Namespace, labels: NDArray[Any] | None, rows: FileRows, n_samples: int
) -> ConfirmReplay:
    what: Any = n_samples
    baseline = None
    if labels is not None:
        _known(args, labels)  # which names the file if they are no labels
        what, baseline = judged(args, labels)
    search = ConfirmedSearch(
        what,
        delta=args.delta,
        confirm_share=args.confirm_share,
        seed=args.seed,
        baseline=baseline,
    )
    n_finalists = check_count(finalists=1 if args.finalists is None else args.finalists)
    return ConfirmReplay(search, n_finalists, names=rows.names, packed=bool(args.packed))


def _pool(args: argparse.Namespace, labels: NDArray[Any] | None, n_samples: int) -> ModelPool:
    what: Any = n_samples
    baseline = None
    if labels is not None:
        _known(args, labels)  # which names the file if they are no labels
        what, baseline = judged(args, labels)
    options = given(args, "n_vectors", "seed")
    return ModelPool(what, delta=args.delta, baseline=baseline, **options)


def _replay(args: argparse.Namespace, rows: FileRows, replays: Sequence[Replay]) -> None:
    n_before = max(each.n_before for each in replays)
    if n_before > rows.shape[0]:
        raise ValueError(
            f"{args.state}: it has answered {counted(n_before, 'query', 'queries')}, and "
            f"{rows.name} has {rows.shape[0]:,}"
        )
    write = None
    with contextlib.ExitStack() as written:
        if args.output:
            columns, keep = replays[0].columns, args.state is not None
            write = written.enter_context(answers_file(args.output, columns, keep=keep))
        blocks = _with_progress(rows, n_before, args.quiet)
        replay(rows.file_of, blocks, replays, write, n_before)


def _check_audit(args: argparse.Namespace) -> None:
    if args.pool:
        searches = ("space_size", "space", "confirm_share", "finalists")
        guards = ("epsilon", "bound", "estimator", "max_queries", "state")
        for option in given(args, *guards, *searches):
            raise ValueError(f"{flag_of(option)} must be left out with --pool")
    elif args.confirm_share is not None:
        others = {"epsilon", "bound", *GUARD_OPTIONS, "state", "threads", "space_size", "space"}
        for option in given(args, *sorted(others - {"seed"}), "keys"):
            raise ValueError(f"{flag_of(option)} must be left out with --confirm-share")
        if not args.confirm_share < 1:
            raise ValueError(
                f"--confirm-share must be below 1, by the rest the best is found, got "
                f"{args.confirm_share:g}"
            )
    elif args.finalists is not None:
        raise ValueError("--finalists must be given with --confirm-share")
    elif args.space_size is None and args.space is None:
        for option in given(args, "keys", *OF_PREDICTIONS):
            raise ValueError(
                f"{flag_of(option)} is for a search over a declared space: give --space-size, the "
                "number of configurations that could have been asked about, or --space"
            )
        if args.epsilon is None:
            raise ValueError(
                f"{EPSILON_OR_SPACE}; or --confirm-share, for any search at all; or --pool, for "
                "models that were fixed beforehand"
            )
    else:
        for option in given(args, "epsilon", "bound", *GUARD_OPTIONS, "threads"):
            raise ValueError(
                f"{flag_of(option)} is for a guard, which halts; a search over a declared space "
                "does not: leave it or the space out"
            )
    if args.labels is None:
        for option in given(args, *OF_PREDICTIONS):
            raise ValueError(f"{flag_of(option)} is for --predictions, got --losses")
    if args.metric is not None:
        check_choice(METRICS, metric=args.metric)
    if args.max_queries is not None and set(args.bound or []) - {"fixed-sequence"}:
        raise ValueError('--max-queries is for "fixed-sequence" alone, got other bounds')
    if args.estimator is not None and not set(args.bound or []) & set(PAPER_BOUNDS):
        raise ValueError(f"--estimator is for {', '.join(PAPER_BOUNDS)}, got fixed-sequence alone")
    check_outputs(args)
    if args.output:
        check_installed("files", "pyarrow")
    if args.state is not None and len(set(args.bound or [""])) != 1:
        raise ValueError(f"--state is for one guard: give one --bound, got {len(set(args.bound))}")
    if args.state is not None and args.plot and args.epsilon is not None:
        raise ValueError("--plot of a guard needs the whole replay: leave out --state")


def _open_files(args: argparse.Namespace) -> tuple[NDArray[Any] | None, FileRows, int]:
    """The labels of predictions, or None; predictions or losses; and m."""
    if (args.predictions is None) != (args.labels is None):
        raise ValueError("--labels must be given with --predictions, and only with them")
    paths = [each for paths in (args.labels, args.predictions, args.losses) for each in paths or ()]
    if args.header and not any(file.lower().endswith(CSV) for file in expanded(paths, SUFFIXES)):
        raise ValueError("--header is for .csv files, got none")
    labels_header, header = HEADERS[args.header]
    how = {
        "transpose": args.transpose,
        "packed": bool(args.packed),
        "bitorder": args.packed if isinstance(args.packed, str) else None,
        "header": header,
    }
    if args.losses:
        rows = open_losses(args.losses, n_samples=args.n_samples, **how)
        return None, rows, rows.shape[1] if args.n_samples is None else args.n_samples
    labels, rows = open_predictions(
        args.labels,
        args.predictions,
        labels_header=labels_header,
        classes=takes_classes(args.metric),
        probabilities=METRICS[args.metric or "error"].takes == "probabilities",
        **how,
    )
    if args.n_samples not in (None, len(labels)):
        raise ValueError(
            f"--n-samples must be the number of labels, {len(labels)}, got {args.n_samples}"
        )
    return labels, rows, len(labels)


def _with_progress(rows: FileRows, n_before: int, quiet: bool) -> Iterator[NDArray[Any]]:
    with progress(rows.shape[0] - n_before, "queries", quiet=quiet) as advance:
        for block in rows.blocks(n_before):
            yield block
            advance(len(block))


def _told(
    args: argparse.Namespace, rows: FileRows, labels: NDArray[Any] | None, n_samples: int
) -> dict[str, Any]:
    """What --json says of any audit."""
    return {
        "version": __version__,
        "file": rows.name,
        "files": [name for name, _ in rows.parts],
        "labels": args.labels[0] if args.labels and len(args.labels) == 1 else args.labels,
        "transpose": bool(args.transpose),
        "packed": bool(args.packed),
        "bitorder": rows.bitorder,
        "header": args.header,
        "compared_as": _compared_as(labels),
        "n_samples": n_samples,
        "n_queries": rows.shape[0],
        "queries_counted_from": 1,
        "delta": args.delta,
    }


def _asked(rows: FileRows, n_samples: int) -> str:
    return f"{counted(rows.shape[0], 'query', 'queries')} on {counted(n_samples, 'sample')}"


def _audit_guards(
    args: argparse.Namespace,
    rows: FileRows,
    labels: NDArray[Any] | None,
    replays: list[GuardReplay],
) -> int:
    """Replay, print what came out, then draw the picture that was asked for."""
    _replay(args, rows, replays)
    guard, n_before = replays[0].guard, replays[0].n_before
    seed_drawn = args.seed is None and args.state is None
    halted = any(each.halted for each in replays)
    if args.json:
        outcome = _told(args, rows, labels, guard.n_samples) | {
            "epsilon": args.epsilon,
            "n_vectors": guard.n_vectors,
            "seed": guard.seed,
            "seed_drawn": seed_drawn,
            "state": args.state,
            "bounds": [record(each) for each in replays],
        }
        print(json.dumps(outcome, indent=2))
    elif not args.quiet:
        drawn = " (drawn)" if seed_drawn else ""
        print(
            f"{_asked(rows, guard.n_samples)}: epsilon {args.epsilon:g}, delta {args.delta:g}, "
            f"{counted(guard.n_vectors, 'sign vector')}, seed {guard.seed}{drawn}"
        )
        if rows.note:
            print(f"Cells are compared as text: {rows.note}.")
        if n_before:
            print(f"{counted(n_before, 'query was', 'queries were')} answered before.")
        print()
        print(table(replays))
        if halted:
            print("\nA bound that halted vouches neither for that query nor for any after it.")
        for line in shortfalls(replays):
            print(line)
        for best in filter(None, (each.sentence for each in replays)):
            print(f"\n{best}")
        print(f"\n{IN_FULL}")
    if args.plot:
        from radabound_fast.plots import audit_figure

        figure = audit_figure(
            {each.guard.bound: each.complexities() for each in replays},
            {each.guard.bound: each.guard.budget for each in replays},
            {each.guard.bound: each.halting_query for each in replays},
            without_signs={each.guard.bound: each.n_without_signs for each in replays},
        )
        write_figure(args.plot, figure)
    return HALTED if halted else OK


def _audit_search(
    args: argparse.Namespace, rows: FileRows, labels: NDArray[Any] | None, made: SearchReplay
) -> int:
    """Replay, print what came out, then draw the picture that was asked for."""
    _replay(args, rows, [made])
    n_samples = made.search.n_samples
    if args.json:
        outcome = _told(args, rows, labels, n_samples)
        outcome |= {"state": args.state, "search": made.record()}
        print(json.dumps(outcome, indent=2))
    elif not args.quiet:
        n_before = made.n_before
        size = counted(made.search.size or 0, "configuration")
        print(f"{_asked(rows, n_samples)}: delta {args.delta:g}, a declared space of {size}")
        if rows.note:
            print(f"Cells are compared as text: {rows.note}.")
        if n_before:
            print(f"{counted(n_before, 'query was', 'queries were')} answered before.")
        if made.note:
            print(f"Note: {made.note}.")
        print(f"\n{made.sentence}\n\n{IN_FULL}")
    if args.plot:
        write_figure(args.plot, made.report.plot())
    return OK


def _audit_pool(
    args: argparse.Namespace, rows: FileRows, labels: NDArray[Any] | None, pool: ModelPool
) -> int:
    """Judge all models, print what came out, then write the file and the picture asked for."""
    keys = None if args.keys is None else read_keys(args.keys, rows.shape[0])
    n_threads = 1 if args.threads is None else check_count(threads=args.threads)
    names = rows.names
    if names is None or len(set(names)) < len(names):
        names = [f"query {number:,}" for number in range(1, rows.shape[0] + 1)]
    packed = bool(args.packed)
    add_file(pool, rows, names if keys is None else keys, packed=packed, n_threads=n_threads)
    report = pool.report()
    if args.output:
        columns = columns_of(report, keys)
        with answers_file(args.output, list(columns), keep=False) as write:
            write_columns(write, columns)
    if args.json:
        outcome = _told(args, rows, labels, pool.n_samples)
        outcome |= {"seed": pool.seed, "n_vectors": pool.n_vectors, "pool": report.as_json()}
        print(json.dumps(outcome, indent=2, default=plain))
    elif not args.quiet:
        drawn = " (drawn)" if args.seed is None else ""
        print(
            f"{_asked(rows, pool.n_samples)}: delta {args.delta:g}, "
            f"{counted(pool.n_vectors, 'sign vector')}, seed {pool.seed}{drawn}"
        )
        if rows.note:
            print(f"Cells are compared as text: {rows.note}.")
        print(f"\n{report}\n\n{IN_FULL}")
    if args.plot:
        write_figure(args.plot, report.plot())
    return OK


def _audit_confirmed(
    args: argparse.Namespace, rows: FileRows, labels: NDArray[Any] | None, made: ConfirmReplay
) -> int:
    """Replay, print what came out, then draw the picture that was asked for."""
    _replay(args, rows, [made])
    n_samples = made.search.n_samples
    if args.json:
        outcome = _told(args, rows, labels, n_samples) | {"confirmed": made.report.as_json()}
        print(json.dumps(outcome, indent=2))
    elif not args.quiet:
        print(f"{_asked(rows, n_samples)}: delta {args.delta:g}")
        if rows.note:
            print(f"Cells are compared as text: {rows.note}.")
        print(f"\n{made.sentence}\n\n{IN_FULL}")
    if args.plot:
        write_figure(args.plot, made.report.plot())
    return OK


def _compared_as(labels: NDArray[Any] | None) -> str | None:
    if labels is None:
        return None
    return "numbers" if labels.dtype.kind in "biuf" else "text"
