"""What leaves the library: a withheld mean and the labels are in none of it.

Each test spends a holdout up to a halt, collects whatever got out, and looks for the mean of the
withheld query, which no other number here is near.
"""

import contextlib
import json
import logging
import pickle
import re
import struct
import subprocess
import sys
import traceback
import warnings
from functools import partial

import numpy as np
import pytest
from support import in_package, query, query_many

from radabound_fast import (
    FixedSequence,
    GuessAndCheck,
    HoldoutExhausted,
    Ladder,
    RadaBound,
    cli,
    pack_losses,
)
from radabound_fast.experiments.thresholdout import Thresholdout
from radabound_fast.guards.signed import SignedGuard

M = 10_007  # a prime, so that count / M is no short decimal
COUNT = 3571  # of the withheld query's losses
TOLD = 103  # of an answered query's: what the search must find
REAL = 0.625  # what a loss weighs where losses are real-valued

NUMBER = re.compile(r"(?<![\w.])\d*\.?\d+(?:e[-+]?\d+)?(?![\w.]*\w)", re.IGNORECASE)


class Mean:
    """A mean that is searched for, as a number of any rounding to four digits and as bytes."""

    def __init__(self, count, weight=1.0):
        units = round(count * weight * 2**24)
        self.values = [units / (M << 24), 1 - units / (M << 24)]
        self.totals = {total << shift for shift in (0, 24) for total in (count, M - count)}
        self.totals |= {units, (M << 24) - units}
        shapes = [("<d", self.values), (">d", self.values), ("<q", self.totals)]
        self.patterns = [struct.pack(shape, v) for shape, values in shapes for v in values]
        self.patterns += [value.hex().encode() for value in self.values]

    def is_in(self, content):
        if isinstance(content, str):
            content = content.encode()
        if any(pattern in content for pattern in self.patterns):
            return True
        numbers = [float(found) for found in NUMBER.findall(content.decode("latin-1"))]
        return any(
            number in self.totals
            or any(abs(number / scale - v) < 5e-5 for scale in (1, 100) for v in self.values)
            for number in numbers
        )


SECRET = Mean(COUNT)
VALUE = COUNT / M


@pytest.mark.parametrize(
    "leak",
    [
        f"the mean is {VALUE}",
        f"value={VALUE:.4f}, withheld, {COUNT - 1}",
        f"{100 * VALUE:.2f} % err",
        f"accuracy {1 - VALUE:.5f}",
        f"np.float64({VALUE!r})",
        f"{COUNT}/{M}",
        f"({COUNT} of them)",
        VALUE.hex(),
        json.dumps({"mean": VALUE}),
        pickle.dumps(np.array([0.5, VALUE])),
        b"\x89RADA\r\n" + struct.pack("<q", COUNT << 24),
        b"\x00{" + str(VALUE).encode() + b"}",
    ],
)
def test_the_search_finds_what_is_leaked(leak):
    assert SECRET.is_in(leak)


@pytest.mark.parametrize("told", ["0.36", "0.0101", f"0x7f{COUNT}", f"1{COUNT}", "35", b"\0" * 99])
def test_the_search_finds_nothing_else(told):
    assert not SECRET.is_in(told)


# ---- what gets out -------------------------------------------------------------------------------


def row(count, seed, weight=1.0):
    losses = np.zeros(M, bool)
    losses[np.random.default_rng(seed).permutation(M)[:count]] = True
    return losses if weight == 1.0 else losses * weight


def inside(thing, depth=8):
    """Every string and number in it, as text: attributes, items, and theirs."""
    if depth == 0 or isinstance(thing, type):
        return
    if isinstance(thing, (str, bytes, bool, int, float, np.number)):
        yield f" {thing} "
    elif isinstance(thing, np.ndarray):
        yield from (f" {value} " for value in thing.ravel()[:1000].tolist())
    elif isinstance(thing, (list, tuple, set, frozenset, dict)):
        parts = thing.items() if isinstance(thing, dict) else thing
        for part in parts:
            yield from inside(part, depth - 1)
    else:
        slots = [name for kind in type(thing).__mro__ for name in getattr(kind, "__slots__", ())]
        yield from inside(getattr(thing, "__dict__", {}), depth - 1)
        yield from inside([getattr(thing, name, None) for name in slots], depth - 1)


def of_error(error, depth=8):
    """All that can be read from an exception, with the local names of the library's frames.

    So deep: of its attributes and those names, whose objects in the end are the holdout itself.
    """
    found = error.__traceback__
    while found is not None and not in_package(found.tb_frame):
        found = found.tb_next  # this file's frames know the mean
    rendered = traceback.TracebackException(type(error), error, found, capture_locals=True)
    yield from [str(error), repr(error), repr(error.args), *rendered.format()]
    yield from inside(vars(error), depth)
    yield pickle.dumps(error)
    while found is not None:
        yield from inside(list(found.tb_frame.f_locals.values()), depth)
        found = found.tb_next
    for other in (error.__cause__, error.__context__):
        if other is not None:
            yield from of_error(other, depth)


def of_objects(*things):
    for thing in things:
        yield from [repr(thing), str(thing), *inside(thing)]
        with contextlib.suppress(TypeError):  # guards are not pickled
            yield pickle.dumps(thing)


def of_files(folder):
    """Every file in it, read by another process: to close one here would drop SQLite's locks."""
    code = "import sys; [sys.stdout.buffer.write(open(p, 'rb').read()) for p in sys.argv[1:]]"
    paths = sorted(folder.iterdir())
    if paths:
        read = [sys.executable, "-S", "-E", "-c", code, *paths]
        yield subprocess.run(read, capture_output=True, check=True).stdout


@contextlib.contextmanager
def listening(caplog):
    """Yields a list that gets what is logged and warned of meanwhile."""
    heard = []
    with caplog.at_level(logging.DEBUG), warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        yield heard
    heard += [caplog.text, *(str(warning.message) for warning in warned)]


def refused(ask):
    with pytest.raises(HoldoutExhausted) as caught:
        ask()
    return caught.value


MCLT = {"epsilon": 0.0125, "delta": 0.1, "bound": "mclt", "seed": 3}
FIXED = {"epsilon": 0.0125, "delta": 0.1, "seed": 3}
# kind, parameters, then what is asked: counts of losses, and guesses; the last one halts it.
# Repeated answers, guesses that stand and refusals withhold means too.
SPENT = {
    "mclt": (RadaBound, MCLT, "101 103 S"),
    "real": (RadaBound, MCLT, "101 103 R"),
    "fixed": (FixedSequence, FIXED, "101 103 S"),
    "union": (FixedSequence, {"epsilon": 0.01, "delta": 0.1, "n_vectors": 0}, "101 103 S"),
    "guess and check": (GuessAndCheck, {"epsilon": 0.017, "delta": 0.1}, "S:0.357 S:0.357"),
    "failed guess": (GuessAndCheck, {"epsilon": 0.015, "delta": 0.1}, "103:0.01 S:0.05"),
    "ladder": (Ladder, {"step": 0.01, "delta": 0.1, "max_queries": 3}, "103 S 101 S"),
    "thresholdout": (
        Thresholdout,
        {"threshold": 0.1, "noise": 0.01, "budget": 1, "seed": 3},
        "S:0.36 103:0.9 S:0.36",
    ),
}
LABELS = np.random.default_rng(8).choice(["quokka", "numbat"], M)
ELSE = np.where(LABELS == "quokka", "numbat", "quokka")


class Asked(np.ndarray):
    """Predictions that do not show in a traceback: they are the analyst's own."""

    def __repr__(self):
        return "<predictions>"


def queries(text):
    """Losses, or predictions that have them, and guesses."""
    for seed, one in enumerate(text.split()):
        count, _, guess = one.partition(":")
        weight = REAL if count == "R" else 1.0
        yield row(COUNT if count in "SR" else int(count), seed, weight), float(guess or 0.5)


def spend(guard, asked, many):
    """Asks in turn, up to the halt; returns answers and the exception."""
    if many:
        rows, guesses = (np.array(column) for column in zip(*asked, strict=True))
        traced = {"trace": True} if isinstance(guard, SignedGuard) else {}
        answers = query_many(guard, rows, guesses, **traced)
        assert answers.halted and answers.n_answered == len(rows) - 1
        return [answers], refused(lambda: query_many(guard, rows, guesses, **traced))
    *first, (last, guess) = asked
    answers = [query(guard, losses, guess) for losses, guess in first]
    return answers, refused(lambda: query(guard, last, guess))


# real-valued losses are of no predictions and no bits
CASES = [
    pytest.param(*spent, of, id=f"{name}, {of}")
    for name, spent in SPENT.items()
    for of in (("losses",) if "R" in spent[2] else ("losses", "bits", "predictions"))
]


@pytest.mark.parametrize("many", [False, True], ids=["one by one", "a block"])
@pytest.mark.parametrize("kept", ["in memory", "opened"])
@pytest.mark.parametrize(("kind", "parameters", "text", "of"), CASES)
def test_a_withheld_mean_leaves_by_no_way(tmp_path, caplog, kind, parameters, text, of, kept, many):
    asked, judged = list(queries(text)), M
    if of == "predictions":
        asked, judged = [(np.where(rows, ELSE, LABELS), guess) for rows, guess in asked], LABELS
    if of == "bits" and not many:
        asked = [(pack_losses(losses), guess) for losses, guess in asked]
    make = kind if kept == "in memory" else partial(kind.open, tmp_path / "guard")
    with listening(caplog) as out:
        guard = make(judged, **parameters)
        answers, error = spend(guard, asked, many)
    out += [*of_error(error), *of_objects(guard, *answers)]
    if kept == "opened":
        out += of_files(tmp_path)
        assert len(list(tmp_path.iterdir())) == 3
        guard.close()
    out += of_files(tmp_path)
    secrets = [SECRET, Mean(COUNT, REAL)]
    leaks = [content for content in out for secret in secrets if secret.is_in(content)]
    assert not leaks
    if issubclass(kind, (RadaBound, FixedSequence)):  # the answered mean is there, and found
        assert any(Mean(TOLD).is_in(content) for content in out)


# ---- labels, signs and seeds ---------------------------------------------------------------------


@pytest.mark.parametrize("kept", ["in memory", "opened"])
@pytest.mark.parametrize(("kind", "parameters", "text"), SPENT.values(), ids=SPENT)
def test_labels_leave_by_no_way(tmp_path, caplog, kind, parameters, text, kept):
    asked = list(queries(text.replace("R", "S")))
    make = kind if kept == "in memory" else partial(kind.open, tmp_path / "guard")
    with listening(caplog) as out:
        guard = make(LABELS, **parameters)
        asked = [(np.where(losses, ELSE, LABELS).view(Asked), guess) for losses, guess in asked]
        answers, error = spend(guard, asked, many=False)
        for wrong in (LABELS[1:], np.full(M, "emu"), np.arange(M), [[None]]):
            with pytest.raises((TypeError, ValueError)) as caught:
                query(guard, wrong)
            out += [str(caught.value), repr(caught.value)]
    out += [*of_error(error, depth=0), repr(guard), repr(guard.holdout), *of_objects(*answers)]
    out += [json.dumps(guard.parameters), guard.guarantee]
    if kept == "opened":
        out += of_files(tmp_path)
        guard.close()
    out += of_files(tmp_path)
    assert not [content for content in out if holds_labels(content)]


def of_labels():
    """The names, and the pattern of the labels as bits, bytes, codes and text."""
    for name in ("quokka", "numbat"):
        yield from (name.encode(), name.encode("utf-32-le"))
        codes = name == LABELS
        yield from (np.packbits(codes, bitorder=order).tobytes()[:8] for order in ("big", "little"))
        yield from (codes.astype(dtype).tobytes()[:32] for dtype in ("u1", "<i4", "<i8", "<f8"))
        for first in (codes[:9], codes[:9].astype(int), codes[:9].astype(int).tolist()):
            yield str(first)[1:-1].encode()


OF_LABELS = list(of_labels())


def holds_labels(content):
    content = content.encode() if isinstance(content, str) else content
    return any(secret in content for secret in OF_LABELS)


def test_the_labels_are_found_where_they_are():
    holdout = RadaBound(LABELS, epsilon=0.1, delta=0.1).holdout
    codes = holdout.labels.codes
    leaks = [pickle.dumps(codes), str(codes[:20]), repr(holdout.classes), LABELS.tobytes()]
    assert all(map(holds_labels, leaks)) and not holds_labels(repr(holdout))


@pytest.mark.parametrize(("kind", "parameters", "text"), SPENT.values(), ids=SPENT)
def test_a_repr_shows_no_signs_seed_or_extremes(kind, parameters, text):
    seed = 0x9E37_79B9_7F4A_7C15
    if "seed" in parameters:
        parameters = parameters | {"seed": seed}
    guard = kind(M, **parameters)
    spend(guard, list(queries(text)), many=False)
    shown = repr(guard)
    known = {M, 32, *(v for v in parameters.values() if isinstance(v, (int, float))), 0, 1, 2, 3}
    known.discard(seed)
    assert {float(number) for number in NUMBER.findall(shown)} <= {float(v) for v in known}
    known = {"halted": True, **parameters}
    if kind is FixedSequence and parameters.get("n_vectors") == 0:
        del known["n_vectors"]  # it has none
    assert all(f"{name}={known[name]!r}" in shown for name in known.keys() - {"seed"})
    assert shown.startswith(f"{kind.__name__}(Losses({M}), ") and "seed" not in shown
    assert "seed" not in guard.parameters and str(seed) not in json.dumps(guard.parameters)


# ---- the command line and the integrations -------------------------------------------------------


def test_the_command_line_writes_no_withheld_mean_and_no_label(tmp_path, caplog, capsys):
    losses = np.array([losses for losses, _ in queries("101 103 S")])
    np.save(tmp_path / "losses.npy", losses)
    np.save(tmp_path / "labels.npy", LABELS)
    np.save(tmp_path / "predictions.npy", np.where(losses, ELSE, LABELS))
    asked = [f"--losses={tmp_path}/losses.npy"]
    predicted = [f"--labels={tmp_path}/labels.npy", f"--predictions={tmp_path}/predictions.npy"]
    table = tmp_path / "answers.csv"
    common = ["--bound=mclt", "--epsilon=0.0125", "--delta=0.1", "--seed=3", f"--output={table}"]
    with listening(caplog) as out:
        for source in (asked, predicted):
            for shape in ([], ["--json"], ["--quiet"]):
                assert cli.main(["audit", *source, *common, *shape]) == 3
                out += [*capsys.readouterr(), table.read_text()]
    assert not [content for content in out if SECRET.is_in(content)]
    assert not [content for content in out if holds_labels(content)]
    assert sum(Mean(TOLD).is_in(content) for content in out) == 6  # each table


def guard_for(text="101 103 S"):
    guard = RadaBound(LABELS, **MCLT)
    return guard, [np.where(losses, ELSE, LABELS) for losses, _ in queries(text)]


def test_joblib_yields_no_withheld_mean(caplog):
    joblib = pytest.importorskip("radabound_fast.integrations.joblib", reason="needs joblib")
    guard, predictions = guard_for()
    with listening(caplog) as out:
        answers = list(joblib.guarded_map(guard, predictions.__getitem__, range(3), n_jobs=1))
        out += of_error(refused(lambda: joblib.guarded_map(guard, predictions.pop, [0])))
    assert guard.halted and len(answers) == 2
    out += of_objects(answers, guard)
    assert not [content for content in out if SECRET.is_in(content)]
    assert any(Mean(TOLD).is_in(content) for content in out)


def test_optuna_keeps_no_withheld_mean(caplog, capsys):
    optuna = pytest.importorskip("optuna", reason="needs optuna")
    from radabound_fast.integrations.optuna import guarded_objective

    guard, predictions = guard_for()
    study = optuna.create_study()
    with listening(caplog) as out:
        study.optimize(guarded_objective(guard, lambda trial: predictions[trial.number]), 9)
    out += [*capsys.readouterr(), repr(study.trials), pickle.dumps(study.trials)]
    assert guard.halted and len(study.trials) == 3
    assert not [content for content in out if SECRET.is_in(content)]
    assert any(Mean(TOLD).is_in(content) for content in out)


def test_scikit_learn_keeps_no_withheld_mean(caplog):
    pytest.importorskip("sklearn", reason="needs scikit-learn")
    from sklearn.base import BaseEstimator, ClassifierMixin

    from radabound_fast.integrations.sklearn import HoldoutSearchCV

    guard, predictions = guard_for()

    class Known(ClassifierMixin, BaseEstimator):
        def __init__(self, number=0):
            self.number = number

        def fit(self, X, y):
            self.classes_ = np.unique(y)
            return self

        def predict(self, X):
            return predictions[self.number]

    X = np.zeros((M, 1))
    search = HoldoutSearchCV(Known(), {"number": [0, 1, 2]}, guard=guard, n_jobs=1)
    with listening(caplog) as out:
        search.fit(X, LABELS, X_holdout=X)
    assert search.halted_ and search.cv_results_["withheld"].tolist() == [False, False, True]
    out += [repr(search), *inside(vars(search))]
    assert not [content for content in out if SECRET.is_in(content)]
    assert any(Mean(TOLD).is_in(content) for content in out)
