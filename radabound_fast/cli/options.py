"""Options that several subcommands have, declared once, and what they name read and checked."""

from __future__ import annotations

import argparse
import contextlib
import os
from collections.abc import Callable, Iterable
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from radabound_fast._checks import check_choice, check_count
from radabound_fast._extras import needs
from radabound_fast.cli.spaces import read_space
from radabound_fast.files.output import check_target, write_figure
from radabound_fast.files.place import split_key
from radabound_fast.files.reading import open_labels, open_losses, read_values
from radabound_fast.holdout import Holdout
from radabound_fast.metrics import METRICS, choice_of
from radabound_fast.rows.labels import Labels
from radabound_fast.spaces import Space, as_space

OK, FAILED, BAD_INPUT, HALTED, INTERRUPTED, PIPE_CLOSED = 0, 1, 2, 3, 130, 141

EPSILON_OR_SPACE = (
    "--epsilon must be given, the error tolerated; or --space-size or --space, for a search over a "
    "declared space"
)
# whatever names a file that some subcommand reads
READ = (
    "labels", "predictions", "losses", "state", "space", "keys", "costs", "baseline", "database",
)  # fmt: skip
# what a Holdout measures of predictions
OF_PREDICTIONS = ("metric", "pos_label", "clip", "y_range", "costs", "baseline")
# of a Gate, beside delta and slices
CONDITIONS = ("margin", "total_margin", "at_least", "at_most", "n_candidates", "release")
_MOST_DIGITS = 400


def integer(text: str) -> int:
    """A whole number as an option has it: 1000, 1e6 or 1,000,000."""
    try:
        number = Decimal(text.replace(",", "_"))
        whole = number.is_finite() and number.adjusted() < _MOST_DIGITS
        if whole and number == number.to_integral_value():
            return int(number)
    except InvalidOperation:
        pass
    raise argparse.ArgumentTypeError(f"must be a whole number, got {text!r:.50}")


# options with a value, by its type, and what stands for the value in the help, or by its choices;
# the rest are flags
_VALUES: dict[Callable[[str], Any], dict[str, str | tuple[str, ...] | None]] = {
    integer: {
        "n_samples": "M", "n_vectors": "L", "max_queries": "K", "space_size": "N", "seed": None,
        "finalists": "N", "threads": "N", "n_finalists": "S", "port": None, "max_body": "N",
        "repeats": "R", "jobs": "J", "figure": "N",
    },
    int: {"n_candidates": "H", "n_passes": "B"},
    float: {
        "epsilon": None, "delta": None, "clip": "P", "y_range": ("LOW", "HIGH"), "margin": None,
        "total_margin": None, "slice_margin": None, "at_least": None, "at_most": None,
        "confirm_share": "P", "error_rate": "P", "width": None, "disagreement": "P",
        "tolerance": "GAIN", "step": None, "round": "STEP",
    },
    str: {
        "labels": "FILE", "predictions": "FILE", "losses": "FILE", "space": "FILE.json",
        "keys": "FILE", "costs": "FILE", "baseline": "FILE", "rows": "FILE", "tokens": "FILE",
        "candidate": "FILE", "results": "FILE", "finalist": "[NAME=]FILE", "slice": "NAME=FILE",
        "output": "FILE", "plot": "FILE.png", "state": "FILE.db", "search_rows": "FILE.npy",
        "junit": "FILE.xml", "summary": "FILE.md", "bound": "NAME", "estimator": "NAME",
        "metric": "NAME", "pos_label": "LABEL", "id": "FIELD", "score": "FIELD", "host": None,
    },
}  # fmt: skip
_CHOICES = {
    "header": ("yes", "no"), "release": ("pass", "three"), "durability": ("power", "process"),
    "limits": ("proved", "bootstrap"),
}  # fmt: skip
# help that several subcommands share
_HELP = {
    "n_samples": "the holdout",
    "epsilon": "the error tolerated",
    "delta": "probability of failure",
    "n_vectors": "sign vectors (default: 32)",
    "estimator": "plain or half-range",
    "max_queries": "of a sequence in a fixed order: how many share delta alike",
    "space_size": "configurations in a declared space",
    "space": "a declared space: names with lists, or with intervals {from, to, step}",
    "metric": f"of predictions: {', '.join(METRICS)} (default: error)",
    "pos_label": "the positive class",
    "clip": "least probability of a log loss",
    "y_range": "of labels that are numbers",
    "costs": "of mean_cost: a row a true class, a column a predicted one",
    "baseline": "m predictions of a model fixed beforehand: each model's gain over it is told too",
    "seed": "of the signs, for reproduction (default: drawn)",
    "margin": "gain over production that a pass exceeds (0)",
    "total_margin": "the same over the first baseline",
    "at_least": "what the metric must reach",
    "at_most": "what the metric must not exceed",
    "n_candidates": "at most so many candidates",
    "release": "three: better, worse, neither",
    "header": "of a .csv file of labels",
    "json": "print it as JSON",
}


Options = argparse.ArgumentParser | argparse._ArgumentGroup


def _kind_of(name: str) -> dict[str, Any]:
    for convert, metavars in _VALUES.items():
        if name in metavars:
            metavar = metavars[name]
            several = {"nargs": len(metavar)} if isinstance(metavar, tuple) else {}
            return {"type": convert, "metavar": metavar} | several
    return {"choices": _CHOICES[name]} if name in _CHOICES else {"action": "store_true"}


def add_one(parser: Options, name: str, **settings: Any) -> None:
    """Add the option of this name, of which `settings` are the subcommand's own.

    One that is not set is None, a flag False, and the library's default is taken.
    """
    parser.add_argument(flag_of(name), **({"help": _HELP.get(name)} | _kind_of(name) | settings))


def add(parser: Options, *names: str, **helps: str) -> None:
    """Add options with their common help, then options with help of the subcommand's own."""
    for name in names:
        add_one(parser, name)
    for name, text in helps.items():
        add_one(parser, name, help=text)


def flag_of(option: str) -> str:
    return f"--{option.replace('_', '-')}"


def values(args: argparse.Namespace, *names: str) -> dict[str, Any]:
    """The options of these names that the subcommand has and the user set."""
    named = ((name, getattr(args, name, None)) for name in names)
    return {name: value for name, value in named if not (value is None or value is False)}


def check_absent(args: argparse.Namespace, names: Iterable[str], rule: str) -> None:
    """ValueError by this rule, where {} stands for the flag, for the first option that is set."""
    for name in values(args, *names):
        raise ValueError(rule.format(flag_of(name)))


def named_files(
    flag: str,
    texts: list[str] | None,
    read: Callable[[str], Any],
    *,
    may_lack_name: bool = False,
) -> dict[str, Any]:
    """What is read of the files of an option that may be repeated, by names that all differ."""
    named: dict[str, Any] = {}
    for text in texts or ():
        name, equals, path = text.partition("=")
        if may_lack_name and not equals:
            name, path = os.path.basename(text).rpartition(".")[0] or text, text
        if not name or not path:
            form = "NAME=FILE" + " or FILE" * may_lack_name
            raise ValueError(f"{flag} must be {form}, got {text}")
        if name in named:
            raise ValueError(f"{flag} must have each name once, got {name!r} twice")
        named[name] = read(path)
    return named


def declared_space(args: argparse.Namespace) -> Space | None:
    """The space of --space or --space-size; None without either."""
    if None not in (args.space, args.space_size):
        raise ValueError("--space must be given without --space-size: it has one")
    if args.space is not None:
        return read_space(args.space)
    return None if args.space_size is None else as_space(check_count(space_size=args.space_size))


def takes_classes(metric: str | None) -> bool:
    """Whether predictions are classes, as labels are."""
    return METRICS[check_choice(METRICS, metric=metric or "error")].takes == "classes"


def labels_of(args: argparse.Namespace) -> NDArray[Any]:
    """Read the labels of the options `--labels` and `--header`."""
    return open_labels(args.labels, header={None: None, "yes": True, "no": False}[args.header])


def judged(args: argparse.Namespace, labels: NDArray[Any]) -> tuple[Holdout | Labels, Any]:
    """The labels with the metric of the options, and the predictions of the baseline, if any.

    ValueError where an option is missing, or none of the metric, or labels are none to judge by.
    """
    options = values(args, "clip", "y_range")
    if args.pos_label is not None:
        options["pos_label"] = _as_label(args.pos_label, labels)
    if args.costs is not None:
        costs = open_losses(args.costs, transpose=False, header=False)
        options["costs"] = np.concatenate([*costs])
    baseline = None
    if args.baseline is not None:
        like = labels if takes_classes(args.metric) else None
        baseline = read_values(args.baseline, like)
    known = Labels(labels)
    if args.metric is None and not options:
        return known, baseline
    try:
        return Holdout(known, metric=choice_of(args.metric or "error", options)), baseline
    except TypeError as error:
        raise ValueError(str(error)) from error


def _as_label(text: str, labels: NDArray[Any]) -> float | str:
    if labels.dtype.kind not in "biuf":
        return text
    for number in (int, float):
        with contextlib.suppress(ValueError):
            return number(text)
    raise ValueError(f"--pos-label must be a number, as the labels are, got {text}")


def read_rows(path: str, what: str) -> NDArray[np.bool_]:
    """The rows that a file says 1 of, and 0 of the others."""
    rows = read_values(path)
    if not np.isin(rows, (0, 1)).all():
        raise ValueError(f"{path} must hold 1 for a row {what} and 0 for another")
    return rows.astype(np.bool_)


def check_outputs(args: argparse.Namespace) -> None:
    """Find before long work what could fail after it, or would write over what is read."""
    read = (paths if isinstance(paths, list) else [paths] for paths in values(args, *READ).values())
    others = [(split_key(path)[0], "is read") for paths in read for path in paths]
    for name, path in values(args, "output", "plot").items():
        check_target(path)
        for other, what in others:
            if _is_same_file(path, other):
                raise ValueError(
                    f"{flag_of(name)} must be a file of its own, got {path}, which {what}"
                )
            if os.path.isdir(other) and Path(path).resolve().is_relative_to(Path(other).resolve()):
                raise ValueError(
                    f"{flag_of(name)} must be outside the folder {other}, which is read, got {path}"
                )
        others.append((path, f"is that of {flag_of(name)}"))
    if args.plot:
        if not args.plot.lower().endswith(".png"):
            raise ValueError(f"--plot must end in .png, got {args.plot}")
        with needs("plot"):
            import radabound_fast.plots  # noqa: F401


def _is_same_file(path: str, other: str) -> bool:
    if os.path.exists(path) and os.path.exists(other):
        return os.path.samefile(path, other)
    return os.path.realpath(path) == os.path.realpath(other)


def show(args: argparse.Namespace, result: Any) -> int:
    """Print a plan or a report, as text or as JSON, and draw it where `--plot` is set."""
    print(result.to_json() if args.json else result)
    if args.plot:
        write_figure(args.plot, result.plot())
    return OK
