"""Arguments in the wrong place: what is said, and that it says no label."""

import inspect

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
        (lambda: Holdout([0, 1], delta=0.1), r"Holdout\.__init__\(\) got an unexpected .* 'delta'"),
    ):
        with pytest.raises(TypeError, match=blamed):
            call()
