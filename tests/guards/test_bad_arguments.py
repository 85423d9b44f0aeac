"""Arguments in the wrong place: what is said, and that it says no label."""

import inspect
import math

import numpy as np
import pytest
from support import GUARDS

from radabound_fast import (
    ConfirmedSearch,
    DeclaredSearch,
    FixedSequence,
    Gate,
    GuessAndCheck,
    Holdout,
    Ladder,
    Losses,
    ModelPool,
    RadaBound,
    plan,
)
from radabound_fast.metrics import F1, Cost, LogLoss, SquaredError

LABEL = 7654321
LABELS = [LABEL, LABEL + 1] * 50
pd = pytest.importorskip("pandas")
FORMS = {
    "list": LABELS,
    "tuple": tuple(LABELS),
    "array": np.array(LABELS),
    "strings": np.array(LABELS).astype(str),
    "series": pd.Series(LABELS),
    "frame": pd.DataFrame({"y": LABELS}),
}


def holdout_by(metric):
    return lambda **options: Holdout([0, 1] * 50, metric=metric(**options))


# what is called, and arguments that it takes
CALLS = {
    "RadaBound": (RadaBound, {"judged": 100, "epsilon": 0.3, "delta": 0.1}),
    "FixedSequence": (FixedSequence, {"judged": 100, "epsilon": 0.3, "delta": 0.1}),
    "union": (FixedSequence, {"judged": 100, "epsilon": 0.3, "delta": 0.1, "n_vectors": 0}),
    "DeclaredSearch": (DeclaredSearch, {"judged": 100, "space": 9, "delta": 0.1}),
    "GuessAndCheck": (GuessAndCheck, {"judged": 100, "epsilon": 0.3, "delta": 0.1}),
    "Ladder": (Ladder, {"judged": 100, "step": 0.1, "delta": 0.1}),
    "ConfirmedSearch": (ConfirmedSearch, {"judged": [0, 1] * 50, "delta": 0.1}),
    "Gate": (Gate, {"judged": [0, 1] * 50, "at_least": 0.1}),
    "ModelPool": (ModelPool, {"judged": [0, 1] * 50, "delta": 0.1}),
    "Losses": (Losses, {"n_samples": 100}),
    "Holdout": (Holdout, {"y_true": [0, 1] * 50}),
    "plan": (plan, {"n_samples": 100, "delta": 0.1, "epsilon": 0.3}),
    "LogLoss": (LogLoss, {"clip": 0.1}),
    "SquaredError": (SquaredError, {"y_range": (0, 1)}),
    "Cost": (Cost, {"costs": np.eye(2)}),
    "F1": (F1, {}),
}
ASKS = {
    "query": {"y_pred": [0, 1] * 50, "key": 1, "guess": 0.5},
    "query_many": {"Y_pred": [[0, 1] * 50], "keys": [1], "guesses": [0.5]},
    "n_left": {},
}


def said(call, arguments):
    """What an error says; the repr of what is made without one."""
    with np.errstate(all="ignore"):
        try:
            made = call(**arguments)
            if isinstance(made, (LogLoss, SquaredError, Cost, F1)):
                made = Holdout([0, 1] * 50, metric=made)
        except (TypeError, ValueError) as error:
            return str(error)
    return repr(made)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", CALLS)
def test_labels_in_the_place_of_another_argument_are_not_shown(name, form):
    call, arguments = CALLS[name]
    # predictions are the caller's own
    for parameter in set(inspect.signature(call).parameters) - {"baseline"}:
        text = said(call, arguments | {parameter: FORMS[form]})
        assert str(LABEL) not in text, (parameter, text)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("guard", GUARDS)
def test_labels_in_the_place_of_what_a_query_brings_are_not_shown(guard, form):
    for method, values in ASKS.items():
        taken = inspect.signature(getattr(GUARDS[guard](100), method)).parameters
        given = {name: value for name, value in values.items() if name in taken}
        # predictions, keys and guesses are the caller's own
        for parameter in set(taken) - {"y_pred", "Y_pred", "key", "keys", "guesses", "trace"}:
            text = said(getattr(GUARDS[guard](100), method), given | {parameter: FORMS[form]})
            assert str(LABEL) not in text, (method, parameter, text)


# ---- what a guard needs beside predictions -------------------------------------------------------


@pytest.mark.parametrize("guard", GUARDS)
def test_a_query_that_is_called_wrongly_says_how_it_is_called(guard):
    made = GUARDS[guard](np.arange(100) % 2)
    kept = {"key": "keys", "guess": "guesses"}.get(made.needs)
    for call in (
        lambda: made.query_many([np.arange(100) % 2], [1]),
        lambda: made.query_many(),
        lambda: made.query_many([np.arange(100) % 2], models=[1]),
    ):
        with pytest.raises(TypeError, match=r": it is query_many\(Y_pred") as raised:
            call()
        assert kept is None or f" {kept}" in str(raised.value).partition("it is ")[2]
    if made.needs is not None:
        with pytest.raises(TypeError, match=rf"it is query\(y_pred, \*, {made.needs}"):
            made.query(np.arange(100) % 2, {"depth": 3})
        with pytest.raises(
            TypeError, match=f"missing 1 required keyword-only argument: .{made.needs}"
        ):
            made.query(np.arange(100) % 2)
    assert made.n_answered == 0


def test_an_error_from_within_is_as_it_was_raised():
    with pytest.raises(TypeError) as raised:
        DeclaredSearch(100, 9, delta="x")
    assert str(raised.value) == "delta must be a real number, got 'x'"


def test_what_was_called_is_what_is_blamed():
    for call, blamed in (
        (
            lambda: Holdout(),
            r"Holdout\.__init__\(\) missing .* 'y_true': it is __init__\(y_true, \*",
        ),
        (
            lambda: DeclaredSearch(100, delta=0.1),
            r"DeclaredSearch\.__init__\(\) missing .* 'space'",
        ),
        (
            lambda: GuessAndCheck(100, delta=0.1),
            r"GuessAndCheck\.__init__\(\) missing .* 'epsilon'",
        ),
        (lambda: Ladder(100, delta=0.1), "missing 1 required positional argument: 'step'"),
        (lambda: Holdout([0, 1], delta=0.1), r"Holdout\.__init__\(\) got an unexpected .* 'delta'"),
    ):
        with pytest.raises(TypeError, match=blamed):
            call()


# ---- arguments of the wrong type, or out of their range ------------------------------------------

# of errors that say this; others are a ValueError
A_TYPE_ERROR = ("a real number", "an integer", "True or False", "judged must be", "unexpected")
WRONG = [
    ("RadaBound", "epsilon", 0, r"epsilon must be in \(0, 1\), got 0"),
    ("RadaBound", "epsilon", 1.0, r"epsilon must be in \(0, 1\), got 1"),
    ("RadaBound", "epsilon", math.nan, "epsilon must be finite, got nan"),
    ("RadaBound", "epsilon", True, "epsilon must be a real number, got True"),
    ("RadaBound", "epsilon", "0.1", "epsilon must be a real number, got '0.1'"),
    ("RadaBound", "delta", -0.1, r"delta must be in \(0, 1\), got -0.1"),
    ("RadaBound", "bound", "hoeffding", "bound must be one of 'bernstein-split', .* 'hoeffding'"),
    ("RadaBound", "bound", None, "bound must be one of"),
    ("RadaBound", "estimator", "median", "estimator must be one of 'plain', 'half-range'"),
    ("RadaBound", "n_vectors", 0, "n_vectors must be at least 1, got 0"),
    ("RadaBound", "seed", 1.5, "seed must be an integer, got 1.5"),
    ("RadaBound", "two_sided", 1, "two_sided must be True or False, got 1"),
    ("RadaBound", "max_queries", 9, "unexpected keyword argument 'max_queries'"),
    ("RadaBound", "judged", 0, "n_samples must be at least 1, got 0"),
    ("RadaBound", "judged", 2**40 + 1, "n_samples must be at most 1099511627776"),
    ("RadaBound", "judged", 4000.0, "n_samples must be an integer, got 4000.0"),
    ("RadaBound", "judged", True, "n_samples must be an integer, got True"),
    ("RadaBound", "judged", None, "judged must be labels, a Holdout, Losses or the number of rows"),
    ("RadaBound", "judged", "labels.npy", "judged must be labels, .* got 'labels.npy'"),
    ("RadaBound", "judged", RadaBound, "judged must be labels, .* got <class"),
    ("FixedSequence", "epsilon", 0, r"epsilon must be in \(0, 1\), got 0"),
    ("FixedSequence", "epsilon", 1.5, r"epsilon must be in \(0, 1\), got 1.5"),
    ("FixedSequence", "delta", 1, r"delta must be in \(0, 1\), got 1"),
    ("FixedSequence", "n_vectors", -1, "n_vectors must be at least 0, got -1"),
    ("FixedSequence", "n_vectors", 2.5, "n_vectors must be an integer, got 2.5"),
    ("FixedSequence", "max_queries", 0, "max_queries must be at least 1, got 0"),
    ("FixedSequence", "seed", -1, "seed must be"),
    ("FixedSequence", "signs", "drawn", "signs must be one of 'stored', 'generated'"),
    ("FixedSequence", "bound", "mclt", "unexpected keyword argument 'bound'"),
    ("GuessAndCheck", "judged", 0, "n_samples must be at least 1, got 0"),
    ("GuessAndCheck", "judged", 1.5, "n_samples must be an integer, got 1.5"),
    ("GuessAndCheck", "epsilon", 0, "epsilon must be"),
    ("GuessAndCheck", "epsilon", 1, "epsilon must be"),
    ("GuessAndCheck", "delta", math.nan, "delta must be"),
    ("GuessAndCheck", "delta", "0.1", "delta must be a real number, got '0.1'"),
    ("GuessAndCheck", "low_error", 1, "low_error must be True or False, got 1"),
    ("Ladder", "step", 0.0, "step must be"),
    ("Ladder", "step", 1.0, "step must be"),
    ("Ladder", "step", None, "step must be a real number, got None"),
    ("Ladder", "delta", 1.5, "delta must be"),
    ("Ladder", "max_queries", 0, "max_queries must be"),
    ("Ladder", "max_queries", 2.0, "max_queries must be an integer, got 2.0"),
]


@pytest.mark.parametrize(("name", "argument", "value", "message"), WRONG)
def test_a_wrong_argument_is_named(name, argument, value, message):
    call, arguments = CALLS[name]
    error = TypeError if any(part in message for part in A_TYPE_ERROR) else ValueError
    with pytest.raises(error, match=message):
        call(**arguments | {argument: value})
