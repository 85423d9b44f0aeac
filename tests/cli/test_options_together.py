"""Any options together are done, or refused in a line: no combination ends in a traceback."""

import argparse
import random

import numpy as np
import pytest

from radabound_fast import cli
from radabound_fast.cli.options import BAD_INPUT

N_COMMANDS = 750  # a seed
LEFT_OUT = ("completion", "demo", "info", "reproduce", "serve")  # nothing to combine, or no end
# what an option is mostly set to; an option that is not here gets a file or a number
VALUES = {
    "at_least": ".5",
    "at_most": ".5",
    "baseline": "base.npy cases.jsonl",
    "bound": "bernstein mclt fixed-sequence",
    "candidate": "base.npy",
    "clip": ".01",
    "confirm_share": ".5",
    "costs": "costs.csv",
    "database": "confirmed.db gate.db search.db new.db",
    "delta": ".1 .05",
    "disagreement": ".1",
    "epsilon": ".2 .3",
    "estimator": "plain half-range",
    "finalist": "a=base.npy half.csv",
    "keys": "keys.json",
    "labels": "y.npy",
    "losses": "losses.npy",
    "metric": "error accuracy f1 mean_cost roc_auc neg_log_loss",
    "n_batches": "1 2 any",
    "n_samples": "60 1000",
    "n_vectors": "32 8",
    "output": "out.csv out.parquet",
    "path": "new.bin edge.bin",
    "plot": "picture.png",
    "pos_label": "0 1",
    "predictions": "p.npy",
    "results": "cases.jsonl",
    "rows": "half.csv",
    "slice": "s=half.csv",
    "space": "space.json",
    "space_size": "100",
    "state": "search.db new.db",
}
FILES = "y.npy p.npy half.csv space.json search.db gate.db text nothing . folder/x out.parquet"
NUMBERS = "0 1 2 10 100 -1 .5 .1 1e-400 nan inf x 99999999999999999999 2.5"


@pytest.fixture
def folder(tmp_path, monkeypatch, capsys):
    """A working directory with a file of each kind."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    y_true = rng.integers(0, 2, 60)
    predictions = np.where(rng.random((8, 60)) < 0.2, 1 - y_true, y_true)
    np.save("y.npy", y_true)
    np.save("p.npy", predictions)
    np.save("base.npy", predictions[-1])
    np.save("losses.npy", predictions != y_true)
    np.savetxt("half.csv", np.arange(60) % 2, fmt="%d")
    np.savetxt("costs.csv", [[0, 1], [3, 0]], delimiter=",")
    cases = "".join(f'{{"id": "t{i}", "score": {i % 2}}}\n' for i in range(60))
    (tmp_path / "cases.jsonl").write_text(cases)
    (tmp_path / "space.json").write_text('{"a": [1, 2]}')
    (tmp_path / "keys.json").write_text("[1, 2]")
    (tmp_path / "text").write_text("x")
    labels, baseline = ["--labels", "y.npy"], ["--baseline", "base.npy"]
    searched = ["--predictions", "p.npy", "--delta", ".1", "--space-size", "100"]
    edge = ["--n-samples", "60", "--epsilon", ".3", "--delta", ".1"]
    for argv in (
        ["confirm", "confirmed.db", *labels, "--delta", ".1"],
        ["gate", "gate.db", *labels, *baseline],
        ["audit", *labels, *searched, "--state", "search.db"],
        ["edge", "new-state", "edge.bin", *edge],
    ):
        assert cli.main(argv) == 0
    capsys.readouterr()
    return tmp_path


def subcommands(parser, path=()):
    """Every command as (its words, its parser), parts of a command too."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, each in action.choices.items():
                if name not in LEFT_OUT:
                    yield from subcommands(each, (*path, name))
            return
    yield path, parser


def value_of(action, random_):
    if action.choices:
        return str(random_.choice(list(action.choices)))
    if action.dest in VALUES and random_.random() < 0.95:
        return random_.choice(VALUES[action.dest].split())
    return random_.choice((NUMBERS if action.type else f"{FILES} {NUMBERS}").split())


def drawn_command(commands, random_):
    """Words of a command: mostly what it needs, some of its options, each with some value."""
    path, parser = random_.choice(commands)
    share = random_.choice([0.03, 0.1, 0.2, 0.35])
    words = list(path)
    for action in parser._actions:
        needed = action.required or action.dest in ("labels", "delta", "n_samples")
        if action.dest == "help" or random_.random() > (0.95 if needed else share):
            continue
        n_values = action.nargs if isinstance(action.nargs, int) else 1
        words += action.option_strings[:1]
        words += [value_of(action, random_) for _ in range(n_values)]
    return words


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", [1, 2])
def test_options_together_are_done_or_refused_in_a_line(run, seed):
    random_, commands = random.Random(seed), list(subcommands(cli.make_parser()))
    codes = set()
    for _ in range(N_COMMANDS):
        argv = drawn_command(commands, random_)
        try:
            code, _, err = run(*argv)
        except Exception as error:
            pytest.fail(f"radabound {' '.join(argv)}: {error!r}")
        assert code != BAD_INPUT or err.count("\n") == 1, (argv, err)
        codes.add(code)
    assert codes >= {0, BAD_INPUT}


@pytest.mark.parametrize(
    ("command", "text"),
    [
        ("confirm confirmed.db --close-out", "--labels must be given with --close-out"),
        (
            "edge new-state new.bin --n-samples 60 --epsilon .3 --delta .1 --max-queries 5",
            "max_queries must be left out with bound='bernstein', got 5",
        ),
    ],
)
def test_options_that_do_not_go_together_are_named(refuse, command, text):
    refuse(text, *command.split())
