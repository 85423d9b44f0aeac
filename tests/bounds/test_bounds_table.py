"""The rows a guard halts by, their edges, their sentences, and bad input."""

import math
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

# phrases of every guarantee
ALWAYS = (
    "fixed in advance",
    "Never for an adaptive analyst",
    "Assumed: independent held-out examples of one law",
)

each_row = pytest.mark.parametrize("name", BOUNDS)


def test_the_table_has_the_four_bounds_and_cannot_be_changed():
    # proved; estimators and sides, the default first; threshold, by Theorem 7 or delta itself
    of_paper = False, ("plain", "half-range"), (False, True), 0.1 * (1.0 - 0.1)
    rows = [*((name, *of_paper) for name in ("bernstein", "bernstein-split", "mclt"))]
    rows.append(("fixed-sequence", True, ("half-range",), (True,), 0.1))
    assert rows == [
        (row.name, row.proved, row.estimators, row.sides, row.threshold(0.1))
        for row in BOUNDS.values()
    ]
    assert list(BOUNDS) == [row[0] for row in rows]
    assert [name for name in BOUNDS if BOUNDS[name].free(4000, 0.05, 0.1)] == ["fixed-sequence"]
    assert [name for name in BOUNDS if BOUNDS[name].asymptotic] == ["mclt"]
    # in the order in which they halt
    assert set(PAPER) == set(BOUNDS) - {"fixed-sequence"}
    widths = [BOUNDS[name].excess(-2.4, 4000, 32) for name in PAPER]
    assert widths == sorted(widths, reverse=True)
    with pytest.raises(TypeError):
        BOUNDS["bernstein"] = BOUNDS["mclt"]
    with pytest.raises(AttributeError):
        BOUNDS["bernstein"].proved = True


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


@pytest.mark.parametrize("two_sided", [False, True])
@pytest.mark.parametrize("estimator", ["plain", "half-range"])
@pytest.mark.parametrize("n_vectors", [16, 32, 512])
def test_guarantees_of_the_papers_rows_say_what_is_claimed_and_what_is_proved(
    two_sided, estimator, n_vectors
):
    for name in PAPER:
        row = BOUNDS[name]
        words = row.guarantee(4000, n_vectors, 0.07, 0.1, estimator, two_sided)
        claimed = "The paper claims (Theorem 7", row.source, "not at the halting time"
        assert all(phrase in words for phrase in (*claimed, *ALWAYS))
        assert ("two-sided" in words, "one-sided" in words) == (two_sided, not two_sided)
        assert ("plain estimator, not for half-range" in words) == (estimator == "half-range")
        assert ("heuristic" in words, "asymptotic" in words) == (name == "mclt",) * 2
        assert ("finite-sample" in words) == (name != "mclt")
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
    when = "two-sided", "finite-sample", "halting time that depends on the data"
    assert all(phrase in words for phrase in ("It is proved", *when, union, *ALWAYS))
    assert "heuristic" not in words and "one-sided" not in words


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
