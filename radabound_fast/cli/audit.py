"""``radabound audit``: how far the scores in a file can be trusted, and which model is best."""

from __future__ import annotations

import argparse
import contextlib
import json
import secrets
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

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
    check_absent,
    check_outputs,
    declared_space,
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
from radabound_fast.spaces.choice import NamedKeys

if TYPE_CHECKING:
    from radabound_fast.guards.signed import SignedGuard

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
    parser.add_argument("--threads", type=integer, metavar="N", help="threads at most (default: 1)")
    parser.add_argument("--quiet", action="store_true", help="no text and no progress")


def _audit(args: argparse.Namespace) -> int:
    _check_audit(args)
    space = declared_space(args)
    audit = _Audit(args)
    if args.pool:
        return audit.of_pool()
    if args.confirm_share is not None:
        return audit.of_confirmed()
    return audit.of_guards() if space is None else audit.of_search(space)


class _Audit:
    """The rows of one audit, the labels that they are for, or None, and m."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.args = args
        self.labels, self.rows, self.n_samples = _open_files(args)
        self.n_threads = 1 if args.threads is None else check_count(threads=args.threads)
        self.packed = bool(args.packed)

    def of_guards(self) -> int:
        """Audit a fixed order by a guard for each bound."""
        args = self.args
        drawn = args.seed is None and args.state is None
        seed = secrets.randbits(64) if drawn else args.seed
        bounds = dict.fromkeys(args.bound or ["fixed-sequence"])
        with contextlib.ExitStack() as opened:  # closes what is kept in a database
            replays = [self._guard(bound, seed, opened) for bound in bounds]
            self._replay(replays)
            return self._tell_of_guards(replays, drawn)

    def _guard(self, bound: str, seed: int | None, opened: contextlib.ExitStack) -> GuardReplay:
        args, what = self.args, self.n_samples if self.labels is None else self._known()
        parameters = {"delta": args.delta} | given(args, "epsilon", *GUARD_OPTIONS)
        if bound not in PAPER_BOUNDS:  # which has one estimator
            parameters.pop("estimator", None)
        if seed is not None:
            parameters["seed"] = seed
        if args.state is None:
            guard = guard_by_bound(bound, what, **parameters)
        else:
            guard = opened.enter_context(open_by_bound(bound, args.state, what, **parameters))
        return GuardReplay(
            guard,
            names=self.rows.names,
            binary=self.labels is not None or self.rows.dtype.kind in "biu",
            packed=self.packed,
            trace=bool(args.output or args.plot),
            keep=bool(args.plot),
            n_threads=self.n_threads,
        )

    def _tell_of_guards(self, replays: list[GuardReplay], drawn: bool) -> int:
        args, guard = self.args, replays[0].guard
        halted = any(each.halted for each in replays)

        def body() -> str:
            halt = "\nA bound that halted vouches neither for that query nor for any after it."
            best = [f"\n{each.sentence}" for each in replays if each.sentence]
            return "\n".join([table(replays), *[halt] * halted, *shortfalls(replays), *best])

        def figure() -> Any:
            from radabound_fast.plots import audit_figure

            return audit_figure(
                {each.guard.bound: each.complexities() for each in replays},
                {each.guard.bound: each.guard.budget for each in replays},
                {each.guard.bound: each.halting_query for each in replays},
                without_signs={each.guard.bound: each.n_without_signs for each in replays},
            )

        self._tell(
            head=f"epsilon {args.epsilon:g}, {self._signs_of(guard, drawn)}",
            notes=_notes_on(replays[0]),
            body=body,
            record=lambda: {
                "epsilon": args.epsilon,
                "n_vectors": guard.n_vectors,
                "seed": guard.seed,
                "seed_drawn": drawn,
                "state": args.state,
                "bounds": [record(each) for each in replays],
            },
            figure=figure,
        )
        return HALTED if halted else OK

    def of_search(self, space: Space) -> int:
        """Audit a search over a declared space."""
        replayed = self._search(space)
        self._replay([replayed])
        size = counted(replayed.search.size or 0, "configuration")
        return self._tell(
            head=f"delta {self.args.delta:g}, a declared space of {size}",
            notes=_notes_on(replayed) + ([f"Note: {replayed.note}."] if replayed.note else []),
            body=lambda: replayed.sentence,
            record=lambda: {"state": self.args.state, "search": replayed.record()},
            figure=lambda: replayed.report.plot(),
        )

    def _search(self, space: Space) -> SearchReplay:
        args, n_rows = self.args, self.rows.shape[0]
        name = "--space-size" if args.space is None else "the number of configurations in --space"
        keys: list[Any] | None = None if args.keys is None else read_keys(args.keys, n_rows)
        if space.size is None:
            raise ValueError(
                "--space must hold a number of configurations, got a space without end"
            )
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
        what, baseline = self._judged()
        options: dict[str, Any] = {"delta": args.delta, "baseline": baseline}
        if args.state is None:
            # where no key comes again, and no picture shows all, one answer is enough
            n_best = 1 if keys is None and not args.plot else None
            search = DeclaredSearch(what, space, n_best=n_best, **options)
        else:
            search = DeclaredSearch.open(args.state, what, space, **options)
        if isinstance(space, NamedKeys):
            n_names = len({*(keys or ()), *search.answers.codes})
            if n_names > space.size:
                raise ValueError(
                    f"--space-size must be at least the number of different keys, {n_names:,}, got "
                    f"{space.size:,}"
                )
        options = {"packed": self.packed, "n_threads": self.n_threads}
        return SearchReplay(search, keys, names=self.rows.names, **options)

    def of_confirmed(self) -> int:
        """Audit any search by the best on some rows, which are confirmed on the others."""
        args, (what, baseline) = self.args, self._judged()
        options = {"confirm_share": args.confirm_share, "seed": args.seed, "baseline": baseline}
        search = ConfirmedSearch(what, delta=args.delta, **options)
        n_best = check_count(finalists=1 if args.finalists is None else args.finalists)
        replayed = ConfirmReplay(search, n_best, names=self.rows.names, packed=self.packed)
        self._replay([replayed])
        return self._tell(
            head=f"delta {args.delta:g}",
            body=lambda: replayed.sentence,
            record=lambda: {"confirmed": replayed.report.as_json()},
            figure=lambda: replayed.report.plot(),
        )

    def of_pool(self) -> int:
        """Judge all models at once, and write the file."""
        args, rows, (what, baseline) = self.args, self.rows, self._judged()
        options = given(args, "n_vectors", "seed")
        pool = ModelPool(what, delta=args.delta, baseline=baseline, **options)
        keys = None if args.keys is None else read_keys(args.keys, rows.shape[0])
        names = rows.names
        if names is None or len(set(names)) < len(names):
            names = [f"query {number:,}" for number in range(1, rows.shape[0] + 1)]
        names = names if keys is None else keys
        add_file(pool, rows, names, packed=self.packed, n_threads=self.n_threads)
        report = pool.report()
        if args.output:
            columns = columns_of(report, keys)
            with answers_file(args.output, list(columns), keep=False) as write:
                write_columns(write, columns)
        signs = {"seed": pool.seed, "n_vectors": pool.n_vectors}
        return self._tell(
            head=self._signs_of(pool, args.seed is None),
            body=lambda: str(report),
            record=lambda: signs | {"pool": report.as_json()},
            figure=report.plot,
        )

    def _known(self) -> Labels:
        """The labels; an error names their file."""
        try:
            return Labels(self.labels)
        except ValueError as error:
            raise ValueError(f"{' '.join(self.args.labels)}: {error}") from error

    def _judged(self) -> tuple[Any, Any]:
        """What a search or a pool judges, and its baseline."""
        if self.labels is None:
            return self.n_samples, None
        self._known()
        return judged(self.args, self.labels)

    def _replay(self, replays: Sequence[Replay]) -> None:
        args, rows = self.args, self.rows
        n_before = replays[0].n_before  # only a single one is kept in a database
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

    def _signs_of(self, of: SignedGuard | ModelPool, drawn: bool) -> str:
        vectors = counted(of.n_vectors, "sign vector")
        return f"delta {self.args.delta:g}, {vectors}, seed {of.seed}{' (drawn)' if drawn else ''}"

    def _tell(
        self,
        *,
        head: str,
        body: Callable[[], str],
        record: Callable[[], dict[str, Any]],
        figure: Callable[[], Any],
        notes: Sequence[str] = (),
    ) -> int:
        """Print a head, notes and a body, or a record; then draw what was asked for."""
        args, rows, labels = self.args, self.rows, self.labels
        if args.json:
            compared_as = None
            if labels is not None:
                compared_as = "numbers" if labels.dtype.kind in "biuf" else "text"
            of_any = {
                "version": __version__,
                "file": rows.name,
                "files": [name for name, _ in rows.parts],
                "labels": args.labels[0] if args.labels and len(args.labels) == 1 else args.labels,
                "transpose": bool(args.transpose),
                "packed": self.packed,
                "bitorder": rows.bitorder,
                "header": args.header,
                "compared_as": compared_as,
                "n_samples": self.n_samples,
                "n_queries": rows.shape[0],
                "queries_counted_from": 1,
                "delta": args.delta,
            }
            print(json.dumps(of_any | record(), indent=2, default=plain))
        elif not args.quiet:
            queries = counted(rows.shape[0], "query", "queries")
            print(f"{queries} on {counted(self.n_samples, 'sample')}: {head}")
            if rows.note:
                print(f"Cells are compared as text: {rows.note}.")
            print("".join(f"{note}\n" for note in notes) + f"\n{body()}\n\n{IN_FULL}")
        if args.plot:
            write_figure(args.plot, figure())
        return OK


def _notes_on(replayed: Replay) -> list[str]:
    n = replayed.n_before
    return [f"{counted(n, 'query was', 'queries were')} answered before."] * (n > 0)


def _check_audit(args: argparse.Namespace) -> None:
    of_guard, of_space = ("epsilon", "bound", *GUARD_OPTIONS), ("space_size", "space")
    if args.pool:
        others = ("epsilon", "bound", "estimator", "max_queries", "state", *of_space)
        rule = "must be left out with --pool"
        check_absent(args, (*others, "confirm_share", "finalists"), rule)
    elif args.confirm_share is not None:
        names = {*of_guard, "state", *of_space, "keys", "threads"} - {"seed"}
        check_absent(args, sorted(names), "must be left out with --confirm-share")
        if not args.confirm_share < 1:
            raise ValueError(
                f"--confirm-share must be below 1, by the rest the best is found, got "
                f"{args.confirm_share:g}"
            )
    elif args.finalists is not None:
        raise ValueError("--finalists must be given with --confirm-share")
    elif args.space_size is None and args.space is None:
        rule = (
            "is for a search over a declared space: give --space-size, the number of "
            "configurations that could have been asked about, or --space"
        )
        check_absent(args, ("keys", *OF_PREDICTIONS), rule)
        if args.epsilon is None:
            raise ValueError(
                f"{EPSILON_OR_SPACE}; or --confirm-share, for any search at all; or --pool, for "
                "models that were fixed beforehand"
            )
    else:
        halts = "is for a guard, which halts; a search over a declared space does not"
        check_absent(args, of_guard, f"{halts}: leave it or the space out")
    if args.labels is None:
        check_absent(args, OF_PREDICTIONS, "is for --predictions, got --losses")
    if args.metric is not None:
        check_choice(METRICS, metric=args.metric)
    bounds = set(args.bound or [])
    if args.max_queries is not None and bounds - {"fixed-sequence"}:
        raise ValueError('--max-queries is for "fixed-sequence" alone, got other bounds')
    if args.estimator is not None and not bounds & set(PAPER_BOUNDS):
        raise ValueError(f"--estimator is for {', '.join(PAPER_BOUNDS)}, got fixed-sequence alone")
    check_outputs(args)
    if args.output:
        check_installed("files", "pyarrow")
    if args.state is not None and len(bounds) > 1:
        raise ValueError(f"--state is for one guard: give one --bound, got {len(bounds)}")
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
