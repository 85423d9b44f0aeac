"""``radabound confirm``: finalists of a free search, judged on rows that were kept for the end."""

from __future__ import annotations

import argparse
import json
import os
from functools import partial
from typing import Any

import numpy as np

from radabound_fast._checks import counted
from radabound_fast.cli import options
from radabound_fast.files.output import check_target, whole_file, write_figure
from radabound_fast.files.reading import read_values
from radabound_fast.guards.answers import HoldoutExhausted
from radabound_fast.guards.confirmed.answers import ConfirmedAnswers
from radabound_fast.guards.confirmed.search import ConfirmedSearch
from radabound_fast.guards.report import released, scored

# where FILE is made, as `ConfirmedSearch` takes them
_ANY = "any"
_NEW = ("delta", "confirm_share", "n_batches", "seed", "stratify", "pairs", "limits")


def add_confirm(commands: Any) -> None:
    parser = commands.add_parser(
        "confirm",
        help="how good the finalists of any search are, on rows that were kept for the end",
        description="Split the rows of a holdout, search on one part in any way, and confirm "
        "finalists on the other: each gets an interval, and all hold at once. The first call makes "
        "FILE and, with --search-rows, says which rows are free. Without a finalist: what was "
        "confirmed so far. Exit code: 0 done, 1 with --release pass: one did not pass, 2 bad "
        "input, 3 all batches were confirmed.",
    )
    parser.set_defaults(run=_confirm)
    parser.add_argument("database", metavar="FILE", help="of the search; made by the first call")
    what = parser.add_argument_group("finalists")
    options.add(what, labels="the m labels, needed for each finalist")
    options.add(what, "header")
    finalist = (
        "m predictions, or those of the confirmation rows; may be repeated: all are one batch"
    )
    options.add_one(what, "finalist", action="append", help=finalist)
    release = {"choices": ("interval", "pass"), "help": "how much is told (interval)"}
    options.add_one(what, "release", **release)
    options.add(
        what,
        at_least="what passes, with --release pass",
        at_most="what passes, with --release pass",
        close_out="end the search, and tell the rest",
    )
    rules = parser.add_argument_group("the search, where FILE is made; FILE has them afterwards")
    options.add(rules, "delta", confirm_share="kept for the end (.5)")
    rules.add_argument(
        "--n-batches", metavar="N", help='1, or more, or "any"',
        type=lambda text: text if text == _ANY else options.integer(text),
    )  # fmt: skip
    rows = "or: 1 for a row that is kept, else 0"
    options.add(rules, seed="of the split (default: drawn, and kept)", rows=rows)
    options.add(
        rules,
        stratify="as many of every class in each part",
        pairs="compare the finalists of a batch",
        limits="bootstrap: also asymptotic ones, narrower where finalists are alike (proved)",
    )
    options.add(rules, *options.OF_PREDICTIONS)
    options.add(
        parser.add_argument_group("output"),
        search_rows="write which rows the search may use: booleans",
        json="print it as JSON",
        plot="draw the finalists",
    )


def _confirm(args: argparse.Namespace) -> int:
    options.check_outputs(args)
    if args.search_rows is not None:
        check_target(args.search_rows)
    search, predictions = _open(args)
    if args.search_rows is not None:
        with whole_file(args.search_rows) as part, open(part, "wb") as file:
            np.save(file, search.search_rows)
    settings = options.values(args, "release", "at_least", "at_most")
    answers = search.answers
    try:
        if predictions:
            answers = search.confirm(predictions, **settings)
        elif settings:
            raise ValueError("--release, --at-least and --at-most must be given with --finalist")
        if args.close_out:
            answers = search.close_out()
    except HoldoutExhausted as error:
        print(error)
        return options.HALTED
    _tell(args, search, answers)
    passed = [answer.passed for answer in answers]
    return options.FAILED if args.release == "pass" and False in passed else options.OK


def _open(args: argparse.Namespace) -> tuple[ConfirmedSearch, dict[str, Any]]:
    """Return the search, and the predictions of the finalists by their names."""
    parameters = options.values(args, *_NEW)
    is_new, is_repeated = not os.path.exists(args.database), bool(parameters)
    if parameters.get("n_batches") == _ANY:
        parameters["n_batches"] = None
    if args.labels is None:
        others = ("finalist", "search_rows", "rows", "close_out", *_NEW)
        options.check_absent(args, others, "--labels must be given with {}")
        if is_new:
            raise ValueError("--labels and --delta must be given to make FILE")
        return ConfirmedSearch.open(args.database), {}
    labels = options.labels_of(args)
    holdout, parameters["baseline"] = options.judged(args, labels)
    if args.rows is not None:
        parameters["rows"] = options.read_rows(args.rows, "that is kept for the end")
    if is_repeated and not is_new:  # what is not given is as in FILE
        parameters = ConfirmedSearch.open(args.database).parameters | parameters
        del parameters["n_samples"]
    elif is_new and args.delta is None:
        raise ValueError("--delta must be given to make FILE")
    search = ConfirmedSearch.open(args.database, holdout, **parameters)
    like = labels if options.takes_classes(search.holdout.metric) else None
    read = partial(read_values, like=like)
    return search, options.named_files("--finalist", args.finalist, read, may_lack_name=True)


def _tell(args: argparse.Namespace, search: ConfirmedSearch, answers: ConfirmedAnswers) -> None:
    can_report = any(answer.low == answer.low for answer in search.answers)
    if args.json:
        outcome: dict[str, Any] = {"parameters": search.parameters, "n_left": search.n_left()}
        outcome["finalists"] = [released(answer.to_dict()) for answer in answers]
        outcome["report"] = search.report().as_json() if can_report else None
        print(json.dumps(outcome, indent=2))
    else:
        if not len(answers):
            rows = counted(int(search.confirmation_rows.sum()), "row")
            print(f"No finalist was confirmed yet; {rows} are kept for the end.")
        for answer in answers:
            print(f"{answer.name}: {_text_of(answer)}")
        if can_report:
            print(f"\n{search.report()}")
        print(f"\nLeft: {search.outlook().text}.")
    if args.plot:
        write_figure(args.plot, search.report().plot())


def _text_of(answer: Any) -> str:
    passed = {True: "passed", False: "not passed", None: ""}[answer.passed]
    if answer.low != answer.low:
        value = "" if answer.value != answer.value else f"{answer.value:.4f}"
        return ", ".join(filter(None, [passed, value, "the rest is told at the end"]))
    value, place = scored(answer.value, answer.low, answer.high)
    beside = ""
    if answer.asymptotic_nats is not None:
        _, about = scored(answer.value, answer.asymptotic_low, answer.asymptotic_high)
        beside = f"by the bootstrap, asymptotic, {about}"
    return ", ".join(filter(None, [passed, f"{value}, in the population {place}", beside]))
