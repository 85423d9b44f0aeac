"""What every bound says of bad arguments: their names, the rule and the value."""

import inspect
import math
import subprocess
import sys

import numpy as np
import pytest

from radabound_fast import bounds
from radabound_fast.bounds import BOUNDS, PAPER_BOUNDS
from radabound_fast.bounds.binomial import binomial_free
from radabound_fast.bounds.kl import kl_free

# a good value of every argument that a function of the package may take
GOOD = {
    "answer": 0.1, "auc": 0.8, "budget": 1, "code_length": 1.0, "complexity": 0.01, "count": 80,
    "counts": 80, "delta": 0.1, "disagreement": 0.1, "epsilon": 0.05, "errors": 7,
    "eta": 0.05, "excess": 0.03, "expectation": 0.3,
    "failures": 0.0, "largest_mean": 0.1, "largest_weight": 1e-3,
    "log_delta": -2.0, "losses": [0.1, 0.5],
    "max_queries": 10, "mean": 0.1, "means": 0.1, "n_effective": 90.5, "n_failures": 0,
    "n_finalists": 3, "n_folds": 5, "n_minus": 9, "n_negative": 90,
    "n_plus": 3, "n_positive": 10, "n_queries": 10, "n_samples": 4000, "n_updates": 1,
    "n_vectors": 32, "nats": 3.0, "hits": [90, 20], "values": [0.1, 0.5],
    "positive": [1.0, 3.0], "negative": [0.0, 2.0],
    "queries": 5, "query": 5, "shift": 1, "sizes": 100,
    "squares": 5e-4, "true_positives": 11, "weights": [1.0, 2.5], "width": 0.04,
}  # fmt: skip
BAD = {
    "n_samples": [(0, "at least 1, got 0"), (2**40 + 1, "at most"), (4000.0, "an integer")],
    "n_vectors": [(0, "at least 1, got 0"), (2**23 + 1, "at most"), (True, "an integer")],
    "delta": [(0.0, r"in \(0, 1\), got 0.0"), (1.5, "got 1.5"), (math.nan, "finite")],
    "epsilon": [(1.0, r"in \(0, 1\), got 1.0"), (-0.1, "got -0.1"), ("a", "a real number")],
    "log_delta": [(0.0, "negative, got 0.0"), (-math.inf, "finite, got -inf")],
    "excess": [(math.nan, "finite, got nan"), (None, "a real number, got None")],
    "complexity": [(-1e-9, "not be negative, got -1e-09")],
    "largest_mean": [(1.1, r"in \[0, 1\], got 1.1")],
    "mean": [(-0.1, r"in \[0, 1\], got -0.1")],
    "max_queries": [(0, "at least 1, got 0"), (2.5, "an integer, got 2.5")],
    "n_positive": [(0, "at least 1, got 0"), (1.5, "an integer, got 1.5")],
    "n_plus": [(-1, r"in \[0, 4000\], got -1"), (1.5, "integers, got 1.5")],
    "auc": [(1.1, r"in \[0, 1\], got 1.1"), ("a", "real numbers, got 'a'")],
    "sizes": [(99.5, "integers, got 99.5"), (-1, "at least 0, got -1")],
    "query": [(0, "at least 1, got 0")],
    "largest_weight": [(0.0, "positive, got 0.0")],
    "squares": [(-1.0, "positive, got -1.0")],
    "n_folds": [(1, "at least 2, got 1"), (2.0, "an integer, got 2.0")],
    "n_effective": [(0.0, "positive, got 0.0"), (math.inf, "finite, got inf")],
    "nats": [(-1.0, "(negative|at least 0), got -1.0"), (math.nan, "finite.*got nan")],
    "means": [(1.5, r"in \[0, 1\], got 1.5"), ("a", "real numbers, got 'a'")],
    "n_negative": [(0, "at least 1, got 0")],
    "n_minus": [(-2, r"in \[0, 4000\], got -2")],
    "eta": [(1.5, r"in \(0, 1\), got 1.5")],
    "failures": [(-1.0, "not be negative, got -1.0")],
    "code_length": [(-0.1, "not be negative, got -0.1")],
    "budget": [(-1, "(negative|at least 1), got -1")],
    "shift": [(0, "not be 0, got 0")],
    "estimator": [("best", "one of 'half-range', 'plain', got 'best'")],
}
# where a name stands for something else
OWN = {
    "history_nats": {"counts": [2, 1]},
    "asymptotic_balanced_interval": {"sizes": [100, 30]},
    "balanced_interval": {"sizes": [100, 30]},
}
FUNCTIONS = [
    *(f for name in bounds.__all__ if inspect.isfunction(f := getattr(bounds, name))),
    *(tail for name in PAPER_BOUNDS for tail in (BOUNDS[name].log_tail, BOUNDS[name].excess)),
    binomial_free,
    kl_free,
]


def good_arguments(function):
    named = GOOD | OWN.get(function.__name__, {})
    return {name: named[name] for name in inspect.signature(function).parameters if name in named}


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_every_function_names_the_argument_the_rule_and_the_value(function):
    names = inspect.signature(function).parameters
    good = good_arguments(function)
    function(**good)
    for name in set(names) & set(BAD):
        for value, message in BAD[name]:
            with pytest.raises((ValueError, TypeError), match=f"^{name} must .*{message}"):
                function(**{**good, name: value})


# arguments that do not fit each other, or arrays: function, arguments, message
CASES = [
    ("guess_and_check_code", (5, 5, 0.0), r"n_failures must be in \[0, 4\] before query 5, got 5"),
    (
        "ladder_transcript_half_width", (5, 0, 4000, 0.1, 0.1),
        r"n_updates must be in \[1, 4\] before query 5, got 0",
    ),
    ("kl_interval", ([0.1, math.nan], 10, 3.0), "means must be .*, got nan"),
    ("kl_interval", (0.1, 10, [1, math.inf]), "nats must be finite"),
    ("binomial_interval", (11, 10, 3.0), r"counts must be in \[0, 10\], got 11"),
    ("binomial_interval", ([-1, 3], 10, 3.0), "counts must be .* got -1"),
    ("binomial_interval", (2.0, 10, 3.0), "counts must be integers, got 2.0"),
    ("binomial_interval", (True, 10, 3.0), "counts must be integers, got True"),
    ("rate_interval", (5, 3, 1.0), r"counts must be in \[0, 3\], got 5"),
    ("weighted_interval", (0.2, [1], [0], 1.0), "counts must be integers of at least 1"),
    ("weighted_interval", (0.2, [1, 0], 3, 1.0), "weights must be positive and finite"),
    ("weighted_interval", (0.2, 1, 3, 1.0), r"weights must .* a stratum, got shape \(\)"),
    ("balanced_interval", ([1], [2, 3], 1.0), "hits and sizes must be one number a class"),
    ("balanced_interval", (np.empty(0, int), np.empty(0, int), 1.0), "hits and sizes must be"),
    ("balanced_interval", ([0], [0], 1.0), "sizes must be at least 1, got 0"),
    ("balanced_interval", ([3], [2], 1.0), "hits must be at most their sizes, got 3"),
    ("balanced_interval", ([-1], [2], 1.0), "hits must be at least 0, got -1"),
    ("asymptotic_balanced_interval", ([-1], [3], 3.0), "hits must be at least 0"),
    ("asymptotic_mean_interval", ([[0.1]], 3.0), "values must be one number per sample"),
    ("asymptotic_mean_interval", ([], 3.0), "values must be one number per sample"),
    ("asymptotic_auc_interval", ([], [1.0], 3.0), "positive and negative must .* at least one"),
    ("paired_interval", (6, 5, 10, 1.0), r"n_plus \+ n_minus must .* n_samples = 10, got 11"),
    ("betting_interval", ([], 1.0), "losses must be one number per sample"),
    ("betting_interval", ([[0.1]], 1.0), "losses must be one number per sample"),
    ("betting_interval", ([0.1, 1.5], 1.0), r"losses must be in \[0, 1\], .* outside at sample 1"),
    ("betting_interval", ([math.nan], 1.0), r"losses must be in \[0, 1\], .* outside at sample 0"),
    ("history_nats", ([], None), "counts must be one number a verdict"),
    ("history_nats", ([1, -1], None), "counts must be one number a verdict, at least 0"),
    ("history_nats", ([3, 0], 3), "counts must sum to less than n_candidates = 3"),
    ("history_nats", ([0, 0], 0), "n_candidates must be at least 1, got 0"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "arguments", "message"), CASES)
def test_arguments_that_do_not_fit_each_other_are_named(name, arguments, message):
    own = {}
    if name == "history_nats":
        *arguments, own["n_candidates"] = arguments
    with pytest.raises((TypeError, ValueError), match=f"^{message}"):
        getattr(bounds, name)(*arguments, **own)


def test_integers_and_reals_of_numpy_are_taken_like_pythons():
    assert BOUNDS["bernstein"].log_tail(np.float64(0.05), np.int32(4000), np.uint8(32)) == BOUNDS[
        "bernstein"
    ].log_tail(0.05, 4000, 32)
    for function in FUNCTIONS:
        result = function(**good_arguments(function))
        if function is bounds.union_free:
            assert result == bounds.Free(4000, 0.05, 0.1, 10)
            continue
        for number in result if isinstance(result, tuple) else [result]:
            assert type(number) in (int, float), function


def test_importing_the_bounds_does_not_load_scipy():
    code = "import sys, radabound_fast.bounds; sys.exit('scipy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
