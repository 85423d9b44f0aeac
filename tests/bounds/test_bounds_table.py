"""The rows a guard halts by, their edges, their sentences, and bad input."""

import inspect
import math
import subprocess
import sys
from itertools import pairwise, product

import numpy as np
import pytest

from radabound_fast import bounds
from radabound_fast.bounds import BOUNDS

PAPER = bounds.PAPER_BOUNDS
# the paper's m, one in a million, and holdouts too small and large enough for most epsilons
CONFIGURATIONS = list(
    product([1, 60, 4000, 10**6, 2**40], [1, 32, 2**23], [0.01, 0.05, 0.3, 0.95], [1e-9, 0.1, 0.7])
)

each_row = pytest.mark.parametrize("name", BOUNDS)


def test_the_table_has_the_four_bounds_and_cannot_be_changed():
    assert list(BOUNDS) == ["bernstein", "bernstein-split", "mclt", "fixed-sequence"]
    assert set(PAPER) == set(BOUNDS) - {"fixed-sequence"}
    # in the order in which they halt
    widths = [BOUNDS[name].excess(-2.4, 4000, 32) for name in PAPER]
    assert widths == sorted(widths, reverse=True)
    assert all(row.name == name for name, row in BOUNDS.items())
    assert [row.proved for row in BOUNDS.values()] == [False, False, False, True]
    with pytest.raises(TypeError):
        BOUNDS["bernstein"] = BOUNDS["mclt"]
    with pytest.raises(AttributeError):
        BOUNDS["bernstein"].proved = True


def test_rows_list_the_estimators_and_sides_they_allow_default_first():
    for name in PAPER:
        assert BOUNDS[name].estimators == ("plain", "half-range")
        assert BOUNDS[name].sides == (False, True)
    assert BOUNDS["fixed-sequence"].estimators == ("half-range",)
    assert BOUNDS["fixed-sequence"].sides == (True,)


def test_the_threshold_is_that_of_theorem_7_or_delta_itself():
    for name in PAPER:
        assert BOUNDS[name].threshold(0.1) == 0.1 * (1.0 - 0.1)
    assert BOUNDS["fixed-sequence"].threshold(0.1) == 0.1


@pytest.mark.parametrize(
    ("name", "two_sided"), [(name, two) for name, row in BOUNDS.items() for two in row.sides]
)
def test_the_budget_is_the_largest_complexity_that_is_admitted(name, two_sided):
    row, n_answering = BOUNDS[name], 0
    for m, n_vectors, epsilon, delta in CONFIGURATIONS:
        where = (m, n_vectors, epsilon, delta, two_sided)
        budget = row.budget(*where[:4], two_sided=two_sided)
        assert (budget >= 0.0) == row.admits(0.0, *where)
        if budget >= 0.0:
            n_answering += 1
            assert row.admits(budget, *where)
            assert not row.admits(budget + 1e-9 * epsilon, *where)
            assert row.admits(0.5 * budget, *where)
    assert 20 < n_answering < len(CONFIGURATIONS)


@pytest.mark.parametrize("name", PAPER)
@pytest.mark.parametrize("two_sided", [False, True])
def test_the_papers_rows_admit_by_the_log_tail_at_the_excess(name, two_sided):
    row = BOUNDS[name]
    for complexity in np.linspace(0.0, 0.03, 301).tolist():
        log_tail = row.log_tail(0.05 - 2.0 * complexity, 4000, 32)
        doubled = log_tail + (math.log(2.0) if two_sided else 0.0)
        admitted = row.admits(complexity, 4000, 32, 0.05, 0.1, two_sided)
        assert admitted == (doubled <= math.log(0.1 * 0.9))


@each_row
def test_no_query_is_admitted_without_an_excess(name):
    for complexity in (0.025, 0.03, 0.9):
        assert not BOUNDS[name].admits(complexity, 2**40, 2**23, 0.05, 0.5)


@pytest.mark.parametrize("name", PAPER)
def test_the_papers_budgets_do_not_depend_on_the_largest_mean(name):
    by_mean = {BOUNDS[name].budget(4000, 32, 0.05, 0.1, mean) for mean in (0.0, 0.3, 1.0)}
    assert len(by_mean) == 1
    assert BOUNDS[name].budget(4000, 32, 0.05, 0.1, two_sided=True) < by_mean.pop()


def test_the_fixed_sequence_budget_shrinks_as_the_largest_mean_grows():
    row = BOUNDS["fixed-sequence"]
    budgets = [row.budget(4000, 256, 0.05, 0.1, w) for w in np.linspace(0.0, 1.0, 101).tolist()]
    assert all(a >= b for a, b in pairwise(budgets))
    assert budgets[0] > 1.4 * budgets[-1] > 0.0


def test_fixed_sequence_spends_three_fifths_of_delta_on_signs_and_two_on_the_union():
    row = BOUNDS["fixed-sequence"]
    for complexity, mean in product((0.0, 0.01, 0.016, 0.02), (0.02, 0.5)):
        width = bounds.low_error_half_width(complexity, mean, 4000, 256, 0.6 * 0.1)
        admitted = row.admits(complexity, 4000, 256, 0.05, 0.1, largest_mean=mean)
        assert admitted == (width <= 0.05)
    for max_queries in (None, 10, 10**9):
        expected = bounds.union_free(4000, 0.03, 0.4 * 0.1, max_queries)
        assert row.free(4000, 0.03, 0.1, max_queries) == expected
    # half of it flat: half of what exact binomials afford at 2/5 of delta
    for epsilon in (0.03, 0.04, 0.05):
        flat = row.free(4000, epsilon, 0.1).n_queries
        assert flat == bounds.binomial_queries(4000, epsilon, 0.02)


@pytest.mark.parametrize("name", PAPER)
def test_the_papers_rows_answer_nothing_without_signs(name):
    assert BOUNDS[name].free(4000, 0.05, 0.1) is None


@pytest.mark.parametrize("two_sided", [False, True])
@pytest.mark.parametrize("estimator", ["plain", "half-range"])
@pytest.mark.parametrize("n_vectors", [16, 32, 512])
def test_guarantees_of_the_papers_rows_say_what_is_claimed_and_what_is_proved(
    two_sided, estimator, n_vectors
):
    for name in PAPER:
        row = BOUNDS[name]
        words = row.guarantee(4000, n_vectors, 0.07, 0.1, estimator, two_sided)
        assert "The paper claims (Theorem 7" in words
        assert row.source in words
        assert "fixed in advance" in words
        assert "not at the halting time" in words
        assert "Never for an adaptive analyst" in words
        assert ("two-sided" in words, "one-sided" in words) == (two_sided, not two_sided)
        assert ("plain estimator, not for half-range" in words) == (estimator == "half-range")
        assert ("heuristic" in words, "asymptotic" in words) == (name == "mclt",) * 2
        assert ("finite-sample" in words) == (name != "mclt")
        assert "Assumed: independent held-out examples of one law" in words
        assert "No query can be answered" not in words
        if name != "mclt":
            implied = n_vectors <= row.proved_up_to[estimator]
            assert ("is not proved, though no violation" in words) == (not implied)
            assert ("is proved by way of the symmetrised bound" in words) == implied


@pytest.mark.parametrize(
    ("m", "max_queries", "union"),
    [
        (4000, None, "answers the first 71,921,989 queries, whatever their means"),
        (400, None, "answers means up to 0.1375 or from 0.8625 at first"),
        (100, None, "answers none here"),
    ],
)
def test_the_guarantee_of_fixed_sequence_is_proved_and_never_for_an_adaptive_analyst(
    m, max_queries, union
):
    row = BOUNDS["fixed-sequence"]
    words = row.guarantee(m, 256, 0.05, 0.1, max_queries=max_queries)
    for phrase in ("It is proved", "two-sided", "finite-sample", "fixed in advance", union):
        assert phrase in words
    assert "halting time that depends on the data" in words
    assert "Never for an adaptive analyst" in words
    assert "heuristic" not in words and "one-sided" not in words
    assert "Assumed: independent held-out examples of one law" in words


@each_row
def test_a_guarantee_says_when_no_query_can_be_answered(name):
    row = BOUNDS[name]
    for m, n_vectors, epsilon, delta in CONFIGURATIONS:
        words = row.guarantee(m, n_vectors, epsilon, delta)
        free = row.free(m, epsilon, delta)
        never = row.budget(m, n_vectors, epsilon, delta, largest_mean=0.0) < 0.0 and not (
            free and free.answers_any
        )
        said = f"No query can be answered: n_samples={m} with n_vectors={n_vectors}"
        assert words.startswith(said) == never


def test_the_numbers_in_a_guarantee_are_not_rounded():
    words = BOUNDS["bernstein"].guarantee(10**9, 32, 0.0123456789, 1.23456789e-9)
    assert "except with probability 1.23456789e-09" in words
    assert "within 0.0123456789 of" in words


def test_a_row_refuses_sides_and_estimators_it_does_not_list():
    row = BOUNDS["fixed-sequence"]
    message = "two_sided must be True for bound 'fixed-sequence', got False"
    for call in (
        lambda: row.admits(0.0, 4000, 32, 0.05, 0.1, False),
        lambda: row.budget(4000, 32, 0.05, 0.1, two_sided=False),
        lambda: row.guarantee(4000, 32, 0.05, 0.1, two_sided=False),
    ):
        with pytest.raises(ValueError, match=message):
            call()
    with pytest.raises(ValueError, match="estimator must be one of 'half-range', got 'plain'"):
        row.guarantee(4000, 32, 0.05, 0.1, "plain")
    with pytest.raises(TypeError, match="two_sided must be True or False, got 1"):
        BOUNDS["mclt"].budget(4000, 32, 0.05, 0.1, two_sided=1)


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
    "estimator": [("best", "one of 'half-range', 'plain', got 'best'")],
}
# where a name stands for something else
OWN = {
    "history_nats": {"counts": [2, 1]},
    "asymptotic_balanced_interval": {"sizes": [100, 30]},
    "balanced_interval": {"sizes": [100, 30]},
}
FUNCTIONS = [
    function for name in bounds.__all__ if inspect.isfunction(function := getattr(bounds, name))
] + [tail for name in PAPER for tail in (BOUNDS[name].log_tail, BOUNDS[name].excess)]


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
