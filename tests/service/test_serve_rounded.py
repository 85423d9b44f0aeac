"""A service that rounds: what leaves it is the same for labels whose scores round alike."""

import re

import numpy as np
import pytest
from serving import Command, arguments, in_thread, octets_of

from radabound_fast import DeclaredSearch, FixedSequence, RadaBound, Rounded, cli

M, STEP = 600, 0.05
Y = np.arange(M) % 3 % 2  # 200 ones: a third, in the cell from .325 to .375
OTHERS = np.where(np.arange(M) == 0, 1, Y)  # 201
GUARDS = {
    "RadaBound": (RadaBound, {"epsilon": 0.2, "delta": 0.1, "seed": 1, "bound": "mclt"}),
    "FixedSequence": (FixedSequence, {"epsilon": 0.2, "delta": 0.1, "seed": 1}),
    "the union alone": (FixedSequence, {"epsilon": 0.2, "delta": 0.1, "n_vectors": 0}),
    "DeclaredSearch": (DeclaredSearch, {"space": 9, "delta": 0.1}),
}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.thorough] * (name != "FixedSequence"))
        for name in GUARDS
    ],
)
def test_replies_state_report_and_page_are_the_same_for_scores_that_round_alike(tmp_path, name):
    kind, parameters = GUARDS[name]
    told = []
    for folder, labels in (("a", Y), ("b", OTHERS)):
        (tmp_path / folder).mkdir()
        guard = kind.open(tmp_path / folder / "g.db", labels, **parameters, release=Rounded(STEP))
        keyed = guard.needs == "key"
        with in_thread(guard, tmp_path / folder) as service:
            one, many = ({"key": 3}, {"keys": [4, 5]}) if keyed else ({}, {})
            row = octets_of(np.zeros(M))
            replies = [
                service.post("/query", {"form": "bits"} | one, row),
                service.post("/query_many", {"form": "bits"} | many, row + octets_of(np.ones(M))),
            ]
            replies += [service.get("/state"), service.send("GET", "/")[2].decode()]
            if keyed:
                report = service.get("/report")
                replies.append(report)
                assert "(rounded to multiples of 0.05)" in report[1]["sentence"]
        assert replies[0][1]["value"] == 0.35 and replies[1][1]["values"] == [0.35, 0.65]
        state = replies[2][1]
        assert state["parameters"]["release"] == {"step": STEP}
        assert f"multiples of {STEP}" in state["guarantee"]
        assert "Result 35" in replies[3] and "0.3333" not in replies[3]
        told.append(re.sub(r"\d\d:\d\d:\d\d", "", str(replies)))
    assert told[0] == told[1]


@pytest.mark.thorough
def test_the_command_rounds_and_the_file_says_so(tmp_path):
    options = ["--guard", "declared-search", "--space-size", 9, "--delta", 0.1, "--round", STEP]
    with Command(tmp_path, Y, *options) as command:
        with command.start().remote() as remote:
            first = remote.query(np.zeros(M, int), key=3)
            assert first.value == 0.35 and remote.parameters["release"] == {"step": STEP}
        command.kill()
        command.options = ()  # the file has it
        with command.start().remote() as remote:
            assert remote.query(np.zeros(M, int), key=4).value == 0.35
        assert command.stop() == 143


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--guard", "ladder", "--step", ".1"], "ladder, whose answers are multiples of --step"),
        (["--guard", "gate"], "gate, which answers in verdicts"),
        (["--confirm-share", ".5"], "confirmed-search, whose search scores may tell"),
        (["--guard", "guess-and-check", "--epsilon", ".1"], "guess-and-check, which answers"),
        (["--guard", "radabound", "--epsilon", ".1"], "--round must have a step below 2 epsilon"),
        (["--guard", "radabound", "--epsilon", ".1", "--round", "0"], "--round must be positive"),
    ],
)
def test_guards_that_answer_on_a_grid_are_not_rounded(tmp_path, capsys, options, reason):
    assert cli.main(arguments(tmp_path, Y, "--delta", 0.1, "--round", 0.5, *options)) == 2
    assert reason in capsys.readouterr().err and not (tmp_path / "g.db").exists()
