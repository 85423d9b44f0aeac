"""What every audit has: the files that it reads, and how it asks, writes, prints and draws."""

from __future__ import annotations

import argparse
import contextlib
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from numpy.typing import NDArray

from radabound_fast import __version__
from radabound_fast._checks import check_count, counted
from radabound_fast._kernels.rows import PackedLosses
from radabound_fast.cli.options import OK, judged, takes_classes
from radabound_fast.files.output import answers_file, write_figure
from radabound_fast.files.place import CSV, expanded
from radabound_fast.files.progress import progress
from radabound_fast.files.reading import open_losses, open_predictions
from radabound_fast.guards.report import plain
from radabound_fast.metrics import METRICS
from radabound_fast.rows.labels import Labels
from radabound_fast.rows.packing import as_words, bits_of
from radabound_fast.spaces.messages import shortened
from radabound_fast.store.folder import undisturbed

IN_FULL = "What is guaranteed and assumed, in full, is in the output of --json."

# whether the first line is a header, of the labels and of the rest
HEADERS = {
    None: (None, None),
    "yes": (True, True),
    "no": (False, False),
    "labels": (True, False),
    "predictions": (False, True),
}

# answers to a block, by the columns of a file of answers: made only where there is a file
Columns = Callable[[], Mapping[str, Any]]


class Files:
    """The rows of an audit, the labels that they are for, or None, and m."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.args, self.labels = args, None
        if (args.predictions is None) != (args.labels is None):
            raise ValueError("--labels must be given with --predictions, and only with them")
        paths = [*(args.labels or ()), *(args.predictions or ()), *(args.losses or ())]
        if args.header and not any(name.lower().endswith(CSV) for name in expanded(paths)):
            raise ValueError("--header is for .csv files, got none")
        labels_header, header = HEADERS[args.header]
        how = {"transpose": args.transpose, "packed": args.packed, "header": header}
        if args.losses:
            self.rows = open_losses(args.losses, n_samples=args.n_samples, **how)
            self.n_samples = self.rows.shape[1] if args.n_samples is None else args.n_samples
        else:
            self.labels, self.rows = open_predictions(
                args.labels,
                args.predictions,
                labels_header=labels_header,
                classes=takes_classes(args.metric),
                probabilities=METRICS[args.metric or "error"].takes == "probabilities",
                **how,
            )
            self.n_samples = len(self.labels)
            if args.n_samples not in (None, self.n_samples):
                raise ValueError(
                    f"--n-samples must be the number of labels, {self.n_samples}, got "
                    f"{args.n_samples}"
                )
        self.n_threads = 1 if args.threads is None else check_count(threads=args.threads)
        self.names = self.rows.names

    def known(self) -> Labels:
        """The labels; an error names their file."""
        try:
            return Labels(self.labels)
        except ValueError as error:
            raise ValueError(f"{' '.join(self.args.labels)}: {error}") from error

    def judged(self) -> tuple[Any, Any]:
        """What a search or a pool judges, and its baseline."""
        if self.labels is None:
            return self.n_samples, None
        self.known()
        return judged(self.args, self.labels)

    def ready(self, block: NDArray[Any]) -> Any:
        """Rows as guards take them: packed losses are `PackedLosses`, packed predictions bytes.

        ValueError if a bit past the last is set.
        """
        if not self.args.packed:
            return block
        if self.labels is None:
            return PackedLosses(block, self.n_samples)
        return bits_of(as_words(block, self.n_samples), self.n_samples)

    def name_of(self, query: int) -> str:
        """What a sentence calls a query, of which 0 is the first."""
        number = f"query {query + 1:,}"
        return number if self.names is None else f"{shortened(self.names[query])} ({number})"

    def names_of(self, first: int, n: int) -> dict[str, Sequence[str]]:
        """The column of names for some rows, if there are names."""
        return {} if self.names is None else {"model": self.names[first : first + n]}

    def signs_of(self, guard: Any, drawn: bool) -> str:
        """The delta, the sign vectors and the seed, for a head."""
        vectors = counted(guard.n_vectors, "sign vector")
        seed = f"seed {guard.seed}{' (drawn)' if drawn else ''}"
        return f"delta {self.args.delta:g}, {vectors}, {seed}"


class Audit(ABC):
    """What judges the rows of a file, block by block, and what is said of them.

    Queries are counted from 1 in everything that is shown or written.  The mean of a withheld query
    is nowhere: a guard returns the answered prefix only.
    """

    columns: Sequence[str]  # of a file of the answers
    n_before = 0  # queries that were answered before
    report: Any  # the outcome, after the run

    def __init__(self, files: Files) -> None:
        self.files, self.args = files, files.args

    @property
    def halted(self) -> bool:
        """Whether nothing is answered any more."""
        return False

    @property
    def code(self) -> int:
        """The exit code, after the run."""
        return OK

    @abstractmethod
    def ask(self, rows: Any) -> Iterable[Columns]:
        """Ask about the rows of a block."""

    @abstractmethod
    def head(self) -> str:
        """The parameters, in a line."""

    def notes(self) -> list[str]:
        """Lines before the body."""
        answered = counted(self.n_before, "query was", "queries were")
        return [f"{answered} answered before."] * (self.n_before > 0)

    def body(self) -> str:
        """The outcome as text."""
        return str(self.report)

    @abstractmethod
    def record(self) -> dict[str, Any]:
        """The outcome as JSON values."""

    def figure(self) -> Any:
        """The outcome as a matplotlib figure."""
        return self.report.plot()

    def run(self) -> int:
        """Audit all rows, print and draw the outcome, and return the exit code."""
        self.replay()
        self.tell()
        return self.code

    def replay(self) -> None:
        """Ask about every block that was not answered before, until a halt."""
        args, rows, n_read = self.args, self.files.rows, self.n_before
        if n_read > rows.shape[0]:
            raise ValueError(
                f"{args.state}: it has answered {counted(n_read, 'query', 'queries')}, and "
                f"{rows.name} has {rows.shape[0]:,}"
            )
        with contextlib.ExitStack() as stack:
            write = None
            if args.output:
                keep = args.state is not None
                write = stack.enter_context(answers_file(args.output, self.columns, keep=keep))
            left = rows.shape[0] - n_read
            advance = stack.enter_context(progress(left, "queries", quiet=args.quiet))
            for block in rows.blocks(n_read):
                try:
                    # what is counted is written too
                    with contextlib.nullcontext() if write is None else undisturbed(patient=False):
                        for columns in self.ask(self.files.ready(block)):
                            if write is not None:
                                write(columns())
                except (TypeError, ValueError) as error:
                    queries = f"queries {n_read + 1} to {n_read + len(block)}"
                    where = f"{rows.file_of(n_read)}, {queries} (rows 0 to {len(block) - 1})"
                    raise ValueError(f"{where}: {error}") from error
                n_read += len(block)
                if self.halted:
                    break
                advance(len(block))

    def tell(self) -> None:
        """Print the head, notes and body, or the record; then draw the figure."""
        args, files, rows = self.args, self.files, self.files.rows
        if args.json:
            compared_as = None
            if files.labels is not None:
                compared_as = "numbers" if files.labels.dtype.kind in "biuf" else "text"
            of_any = {
                "version": __version__,
                "file": rows.name,
                "files": [name for name, _ in rows.parts],
                "labels": args.labels[0] if args.labels and len(args.labels) == 1 else args.labels,
                "transpose": bool(args.transpose),
                "packed": bool(args.packed),
                "bitorder": rows.bitorder,
                "header": args.header,
                "compared_as": compared_as,
                "n_samples": files.n_samples,
                "n_queries": rows.shape[0],
                "queries_counted_from": 1,
                "delta": args.delta,
            }
            print(json.dumps(of_any | self.record(), indent=2, default=plain))
        elif not args.quiet:
            queries = counted(rows.shape[0], "query", "queries")
            print(f"{queries} on {counted(files.n_samples, 'sample')}: {self.head()}")
            if rows.note:
                print(f"Cells are compared as text: {rows.note}.")
            notes = "".join(f"{note}\n" for note in self.notes())
            print(f"{notes}\n{self.body()}\n\n{IN_FULL}")
        if args.plot:
            write_figure(args.plot, self.figure())
