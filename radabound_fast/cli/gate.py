"""``radabound gate``: whether a candidate may be released."""

from __future__ import annotations

import argparse
import json
import os
from functools import partial
from typing import Any
from xml.etree import ElementTree

import numpy as np
from numpy.typing import NDArray

from radabound_fast._checks import counted
from radabound_fast.cli import options
from radabound_fast.files.output import check_target
from radabound_fast.files.reading import read_values
from radabound_fast.files.results import losses_of, read_results
from radabound_fast.guards.answers import HoldoutExhausted
from radabound_fast.guards.gate.gate import Gate
from radabound_fast.guards.gate.verdicts import Verdict
from radabound_fast.holdout import Losses

# conditions, as `Gate` takes them
_CONDITIONS = ("delta", "slice_margin", *options.CONDITIONS)
# shares of rows on which two models differ, for which the status says what passes
_SHARES = (0.02, 0.05, 0.1, 0.2)


def add_gate(commands: Any) -> None:
    parser = commands.add_parser(
        "gate",
        help="whether a candidate may be released, on a test set that stays right",
        description="Compare a candidate with the model in production on a fixed test set, and say "
        "whether it passes: nothing else leaves. Exit code 0: passed; 1: not; 2: bad input; 3: the "
        "gate answers no more. Without a candidate: where the gate stands.",
    )
    parser.set_defaults(run=_gate)
    parser.add_argument("database", metavar="FILE", help="of the gate; made by the first call")
    what = parser.add_argument_group("the candidate")
    options.add(what, labels="the m labels, needed for each candidate")
    options.add(
        what,
        "header",
        candidate="its m predictions",
        results="or its results, a case a line: .jsonl or .csv",
    )
    options.add_one(what, "id", default="id", help="of a case (default: id)")
    score = "in [0, 1], 1 is best, or true or false (default: score)"
    options.add_one(what, "score", default="score", help=score)
    rules = parser.add_argument_group("the gate, where FILE is made; FILE has them afterwards")
    options.add(rules, delta="probability that any pass is wrong (.05)")
    options.add(rules, *options.CONDITIONS)
    slices = "rows, 1 a row of the slice and 0 another, on which no candidate may be worse"
    options.add_one(rules, "slice", action="append", help=slices)
    options.add(
        rules, slice_margin="by how much it may (0)", no_promote="passes leave production as it is"
    )
    options.add(
        rules,
        *options.OF_PREDICTIONS[:-1],
        baseline="m predictions, or results, of the model in production",
    )
    options.add(
        parser.add_argument_group("instead of a candidate"),
        revoke="take the last pass back",
        close_out="end the gate, and tell all values and intervals",
    )
    options.add(
        parser.add_argument_group("output"),
        "json",
        junit="write the verdict as a test result",
        summary="append the verdict as Markdown",
    )


def _gate(args: argparse.Namespace) -> int:
    actions = [one for one in ("candidate", "results", "revoke", "close_out") if getattr(args, one)]
    if len(actions) > 1:
        one, other = map(options.flag_of, actions[:2])
        raise ValueError(f"{other} must be given without {one}")
    for path in filter(None, (args.junit, args.summary)):
        check_target(path)  # before a verdict is given
    gate, candidate = _open(args)
    if args.revoke:
        now = gate.revoke()
        print(f"The last pass is revoked: {_model(now)} is in production again.")
        return options.OK
    if args.close_out:
        report = gate.close_out()
        print(json.dumps(report.to_dict()) if args.json else report)
        return options.OK
    if candidate is None:
        names = ("parameters", "metric", "in_production", "guarantee")
        status = {name: getattr(gate, name) for name in names}
        status["verdicts"] = [one.to_dict() for one in gate.verdicts]
        print(json.dumps(status) if args.json else _status(gate))
        return options.OK
    try:
        verdict = gate.query(candidate)
    except HoldoutExhausted as error:
        print(error)
        return options.HALTED
    _tell(args, gate, verdict)
    return options.OK if verdict.passed else options.FAILED


def _open(args: argparse.Namespace) -> tuple[Gate, NDArray[Any] | None]:
    """Return the gate, and the candidate if there is one."""
    settings = options.values(args, *_CONDITIONS)
    if args.no_promote:
        settings["promote"] = False
    is_new = not os.path.exists(args.database)
    known = None if is_new else Gate.open(args.database)
    if args.results is not None or known is not None and known.row_ids is not None:
        return _open_on_results(args, known, settings)
    if args.labels is None:
        if is_new or args.candidate or args.close_out:
            raise ValueError("--labels must be given" + " to make FILE" * is_new)
        options.check_absent(
            args, ("slice", *options.OF_PREDICTIONS), "--labels must be given with {}"
        )
        return Gate.open(args.database, **settings), None
    labels = options.labels_of(args)
    if args.slice:
        read = partial(options.read_rows, what="of the slice")
        settings["slices"] = options.named_files("--slice", args.slice, read)
    holdout, baseline = options.judged(args, labels)
    gate = Gate.open(args.database, holdout, baseline=baseline, **settings)
    if args.candidate is None:
        return gate, None
    return gate, read_values(args.candidate, labels if options.takes_classes(gate.metric) else None)


def _open_on_results(
    args: argparse.Namespace, known: Gate | None, settings: dict[str, Any]
) -> tuple[Gate, NDArray[Any] | None]:
    others = ("labels", "candidate", "slice", *options.OF_PREDICTIONS[:-1])
    options.check_absent(args, others, "{} must be left out with results")
    read = {
        name: read_results(getattr(args, name), args.id, args.score)
        for name in ("baseline", "results")
        if getattr(args, name) is not None
    }
    ids = known.row_ids if known is not None else sorted(next(iter(read.values()), {}))
    if ids is None:
        raise ValueError(f"{args.database} must be given predictions: it was made on labels")
    losses = {name: losses_of(results, ids, getattr(args, name)) for name, results in read.items()}
    gate = Gate.open(
        args.database, Losses(len(ids)), baseline=losses.get("baseline"), row_ids=ids, **settings
    )
    return gate, losses.get("results")


def _tell(args: argparse.Namespace, gate: Gate, verdict: Verdict) -> None:
    text = gate.explain(verdict)
    # files first: a pass that was printed must not end as an error
    if args.junit:
        _write_junit(args.junit, verdict, text)
    if args.summary:
        with open(args.summary, "a", encoding="utf-8") as file:
            file.write(_markdown(gate, verdict, text))
    print(json.dumps(verdict.to_dict() | {"text": text}) if args.json else text)


def _write_junit(path: str, verdict: Verdict, text: str) -> None:
    failures = str(int(not verdict.passed))
    suite = ElementTree.Element("testsuite", name="radabound gate", tests="1", failures=failures)
    case = ElementTree.SubElement(
        suite, "testcase", classname="radabound.gate", name=f"candidate {verdict.number}"
    )
    if not verdict.passed:
        ElementTree.SubElement(case, "failure", message=text)
    ElementTree.ElementTree(suite).write(path, encoding="utf-8", xml_declaration=True)


def _markdown(gate: Gate, verdict: Verdict, text: str) -> str:
    head = "Passed" if verdict.passed else "Not passed" if verdict.verdict != "worse" else "Worse"
    rows = "".join(
        f"| {one.number} | {one.verdict} | {_model(one.compared_with)} |\n" for one in gate.verdicts
    )
    return (
        f"## Release gate: {head}\n\n{text}\n\n"
        f"| candidate | verdict | compared with |\n|---|---|---|\n{rows}\n"
    )


def _status(gate: Gate) -> str:
    passes = counted(gate.n_passes, "pass", "passes")
    lines = [
        f"{counted(gate.n_answered, 'candidate')}, {passes}; in production: "
        f"{_model(gate.in_production)}.",
        gate.guarantee,
    ]
    if gate.in_production is not None and gate.parameters["margin"] is not None:
        lines.append("The least observed gain that passes, by the share of rows that differ:")
        rows = [["share", "now", "after 1 pass", "2 passes", "5 passes"]]
        for share in _SHARES:
            gains = gate.needed(share).values()
            rows.append([f"{share:g}", *("-" if x == np.inf else f"{x:.4f}" for x in gains)])
        lines += ["  ".join(cell.rjust(12) for cell in row) for row in rows]
    return "\n".join(lines)


def _model(number: int | None) -> str:
    return {None: "none", 0: "the baseline"}.get(number, f"candidate {number}")
