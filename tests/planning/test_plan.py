"""What a plan says is what the bounds and mechanisms then do."""

import functools
import json
import math

import numpy as np
import pytest

from radabound_fast import (
    FixedSequence,
    GuessAndCheck,
    Ladder,
    Plan,
    bounds,
)
from radabound_fast import plan as uncached_plan
from radabound_fast.bounds import BOUNDS
from radabound_fast.guards.by_bound import guard_by_bound
from radabound_fast.planning.guards import _entries
from radabound_fast.plots import plan_figure

plan = functools.lru_cache(maxsize=None, typed=True)(uncached_plan)

NAMES = [
    *BOUNDS, "DeclaredSearch", "GuessAndCheck", "Ladder", "Ladder, 3 updates", "Thresholdout",
]  # fmt: skip
# holdouts too small and large enough, and errors common, rare and certain
QUESTIONS = [
    (4000, 0.05, 0.1, 32, 0.25),
    (200, 0.05, 0.1, 32, 0.25),
    (4000, 0.04, 0.1, 256, 0.02),
    (10**6, 0.003, 0.01, 1, 0.5),
    (50, 0.4, 0.3, 4, 0.0),
    (1, 0.9, 0.5, 32, 1.0),
    (2**40, 1e-6, 0.1, 32, 0.25),
]


def by_name(*question, **more):
    return {row["name"]: row for row in plan(*question, **more).rows}


def test_a_plan_has_a_row_for_every_bound_and_mechanism():
    rows = plan(4000, 0.05, 0.1).rows
    assert [row["name"] for row in rows] == NAMES
    for row in rows:
        assert list(row) == [
            "name", "budget", "first_query", "n_queries", "provided", "epsilon_min",
            "n_samples_min",
        ]  # fmt: skip


@pytest.mark.parametrize("error_rate", [0.02, 0.25, 0.5])
@pytest.mark.parametrize("max_queries", [None, 200])
def test_fixed_sequence_has_the_queries_planned_left(error_rate, max_queries):
    own = {"max_queries": max_queries}
    row = by_name(4000, 0.035, 0.1, error_rate=error_rate, **own)["fixed-sequence"]
    guard = FixedSequence(4000, epsilon=0.035, delta=0.1, **own)
    assert row["n_queries"] == guard.n_left(error_rate, binary=True) > 100
    assert row["provided"] == "in a fixed order"


def test_max_queries_is_a_matter_of_fixed_sequence_alone():
    one, other = by_name(4000, 0.03, 0.1), by_name(4000, 0.03, 0.1, max_queries=30)
    assert {name for name in NAMES if one[name] != other[name]} == {"fixed-sequence"}
    # half of the union bound's delta has no need of that number
    assert other["fixed-sequence"]["n_queries"] == 31


@pytest.mark.parametrize("question", QUESTIONS)
def test_budgets_are_those_of_bounds_and_the_papers_first_query_costs_its_complexity(question):
    m, epsilon, delta, n_vectors, error_rate = question
    rows = by_name(*question)
    expected = math.sqrt(error_rate / (2 * math.pi * m))
    for name, bound in BOUNDS.items():
        row = rows[name]
        assert row["budget"] == bound.budget(m, n_vectors, epsilon, delta, error_rate)
        if not bound.proved:
            assert row["first_query"] == (row["budget"] >= expected) and row["n_queries"] is None
    assert all(rows[name]["budget"] is None for name in NAMES[4:])


def test_the_expected_complexity_is_that_of_simulated_first_queries():
    """2,000 vectors of 400 signs: within five standard errors, as 1 - 6e-7 of programs are."""
    m, p = 400, 0.25
    rng = np.random.default_rng(1)
    sums = 2 * rng.binomial(int(p * m), 0.5, 2000) - int(p * m)
    complexity = np.maximum(sums, 0) / m
    error = complexity.std() / math.sqrt(2000)
    assert abs(complexity.mean() - math.sqrt(p / (2 * math.pi * m))) < 5 * error


@pytest.mark.parametrize("question", QUESTIONS)
def test_the_least_epsilon_and_the_least_samples_are_the_edge(question):
    m, epsilon, *rest = question
    entries = {entry.name: entry for entry in _entries(*rest, None, None)}
    for name, row in by_name(*question).items():
        least, fewest = row["epsilon_min"], row["n_samples_min"]

        def first_query(m, epsilon, spare=entries[name].spare):
            return spare(m, epsilon) >= 0.0

        assert row["first_query"] == first_query(m, epsilon)
        assert row["first_query"] == (least is not None and least <= epsilon)
        assert row["first_query"] == (fewest is not None and fewest <= m)
        if least is not None:
            assert first_query(m, least)
            assert not first_query(m, least * (1 - 1e-9))
        if fewest is not None:
            assert first_query(fewest, epsilon)
            assert fewest == 1 or not first_query(fewest - 1, epsilon)


def test_where_nothing_suffices_there_is_no_least():
    assert all(row["n_samples_min"] is None for row in plan(4000, 1e-7, 0.1).rows)
    assert by_name(1, 0.5, 0.1)["bernstein"]["epsilon_min"] is None


@pytest.mark.parametrize("bound", BOUNDS)
def test_a_guard_answers_above_the_least_epsilon_and_not_below(bound):
    # 4,096 vectors: a complexity within 2 % of its expectation, six standard deviations
    least = by_name(4000, 0.05, 0.1, 4096)[bound]["epsilon_min"]
    for share in (1.02, 0.98):
        given = {"epsilon": share * least, "delta": 0.1, "seed": 5, "n_vectors": 4096}
        answers = guard_by_bound(bound, 4000, **given).query_many([np.arange(4000) % 4 == 0])
        assert len(answers) == (share > 1)


@pytest.mark.parametrize("error_rate", [0.02, 0.5])
def test_guess_and_check_gives_the_passes_planned(error_rate):
    row = by_name(4000, 0.04, 0.1, 32, error_rate)["GuessAndCheck"]
    check = GuessAndCheck(4000, epsilon=0.04, delta=0.1)
    assert row["n_queries"] == check.affordable(error_rate) > 0
    assert by_name(40, 0.04, 0.1)["GuessAndCheck"]["n_queries"] == 0


def step_of(row):
    step, _ = row["provided"].removeprefix("step=").split(", ")
    return float(step)


@pytest.mark.parametrize(("m", "epsilon", "most"), [(4000, 0.1, 28), (10**5, 0.05, None)])
def test_the_ladder_stays_within_epsilon_for_the_queries_planned(m, epsilon, most):
    row = by_name(m, epsilon, 0.1)["Ladder"]
    planned, step = row["n_queries"], step_of(row)
    assert most in (planned, None)
    assert row["provided"] == f"step={step:g}, max_queries={planned:,}"
    ladder = Ladder(m, step, delta=0.1, max_queries=planned)
    assert ladder.query([0] * m).half_width <= epsilon * 1.001  # of the step, three digits
    for other in np.linspace(0.005, 0.5, 100) * epsilon:  # no step affords one more
        assert bounds.ladder_half_width(planned + 1, m, other, 0.1) > epsilon


@pytest.mark.parametrize("epsilon", [0.01, 0.05])
def test_of_steps_that_afford_as_many_the_ladder_has_the_narrowest(epsilon):
    row = by_name(10**8, epsilon, 0.1)["Ladder"]
    steps = [step_of(row), *np.linspace(0.005, 0.5, 100) * epsilon]
    own, *widths = [bounds.ladder_half_width(row["n_queries"], 10**8, x, 0.1) for x in steps]
    assert own <= min(widths) * 1.01


def test_the_ladder_without_a_limit_stays_within_epsilon_while_three_improve():
    row = by_name(4000, 0.1, 0.1)["Ladder, 3 updates"]
    planned, step = row["n_queries"], step_of(row)
    assert planned == 982_752 and row["provided"] == "step=0.002, at most 3 improve"

    def half_width(k, u=3):
        return bounds.ladder_transcript_half_width(k, u, 4000, step, 0.1)

    assert half_width(planned) <= 0.1 < half_width(planned + 1)
    assert max(half_width(k, min(3, k - 1)) for k in range(1, 1000)) <= 0.1


def test_the_interval_is_that_of_a_search_over_the_declared_space():
    """Half-widths of docs/explanation/theory.md's table: on a million keys at error .2 and .02."""
    for error_rate, above in ((0.2, 0.035), (0.02, 0.014)):
        made = plan(4000, 0.05, 0.1, error_rate=error_rate, space_size=10**6)
        low, high = bounds.binomial_interval(
            round(4000 * error_rate), 4000, math.log(2 * 10**6 / 0.1)
        )
        assert (made.low, made.high) == (low, high)
        assert round(high - error_rate, 3) == above
        (row,) = [row for row in made.rows if row["name"] == "DeclaredSearch"]
        assert row["epsilon_min"] == pytest.approx(high - error_rate, abs=1e-12)
        lines = str(made).splitlines()
        assert lines[-2:] == [
            f"DeclaredSearch over 1,000,000 keys: where the holdout says {error_rate} the truth is "
            f"in {low:.4f} to {high:.4f}",
            f"(-{error_rate - low:.4f}, +{high - error_rate:.4f}), for whatever keys were asked "
            "about, in whatever order.",
        ]
    made = plan(4000, 0.05, 0.1)
    assert made.low is made.high is None and "keys:" not in str(made)


def test_a_plan_for_a_declared_space_alone_needs_no_epsilon(run):
    made, whole = (plan(4000, epsilon, 0.1, space_size=1000) for epsilon in (None, 0.05))
    assert (made.low, made.high, made.rows) == (whole.low, whole.high, [])
    question, interval = str(made).split("\n\n")
    assert question == "4,000 samples, delta 0.1, error rate 0.25"
    assert interval == str(whole).split("\n\n")[-1]
    assert json.loads(made.to_json())["epsilon"] is None
    axes = made.plot().axes[0]
    assert not [line for line in axes.lines if len(line.get_xdata()) == 1]  # no dot
    asked = ["plan", "--n-samples", "4000", "--delta", "0.1"]
    assert run(*asked, "--space-size", "1000") == (0, f"{made}\n", "")
    with pytest.raises(ValueError, match="epsilon must be given to `plan` for its rows"):
        made.shortfall("bernstein")
    for options in ({}, {"space_size": 1000, "max_queries": 5}):
        with pytest.raises(ValueError, match="epsilon must be given, except for a declared space"):
            plan(4000, None, 0.1, **options)
    for options, message in (
        ([], "--epsilon must be given, the error tolerated; or --space-size or "),
        (["--space-size", "9", "--n-vectors", "8"], "--n-vectors is for a guard, which halts: "),
        (["--space-size", "9", "--max-queries", "8"], "--max-queries is for a guard, which halts"),
    ):
        code, out, error = run(*asked, *options)
        assert (code, out, error.count("\n")) == (2, "", 1) and message in error


def test_the_largest_space_is_within_epsilon_and_one_key_more_is_not():
    row = by_name(4000, 0.04, 0.1, error_rate=0.25)["DeclaredSearch"]
    size = row["n_queries"]
    assert row["provided"] == "keys of a declared space"
    assert plan(4000, 0.04, 0.1, space_size=size).high - 0.25 <= 0.04
    assert plan(4000, 0.04, 0.1, space_size=size + 1).high - 0.25 > 0.04
    for space_size, answered in ((size, True), (2 * size, False)):
        rows = by_name(4000, 0.04, 0.1, space_size=space_size)
        assert rows["DeclaredSearch"]["first_query"] == answered
        assert rows["DeclaredSearch"]["n_queries"] == size


def test_between_two_counts_the_interval_is_between_theirs():
    made = plan(100, 0.2, 0.1, error_rate=0.255, space_size=10)
    lows, highs = bounds.binomial_interval([25, 26], 100, math.log(200))
    assert made.low == pytest.approx(lows.mean()) and made.high == pytest.approx(highs.mean())
    for error_rate, count in ((0.0, 0), (1.0, 100)):
        made = plan(100, 0.2, 0.1, error_rate=error_rate, space_size=10)
        limits = bounds.binomial_interval(count, 100, math.log(200))
        assert (made.low, made.high) == pytest.approx(limits, rel=1e-12)


def test_thresholdout_has_the_samples_it_needs_for_the_queries_planned():
    most = by_name(10**7, 0.05, 0.1)["Thresholdout"]["n_queries"]
    assert bounds.thresholdout_sample_size(most, 1, 0.05, 0.1) <= 10**7
    assert bounds.thresholdout_sample_size(most + 1, 1, 0.05, 0.1) > 10**7


@pytest.mark.parametrize("question", QUESTIONS)
def test_json_is_the_question_and_the_rows(question):
    made, names = plan(*question), ("n_samples", "epsilon", "delta", "n_vectors", "error_rate")
    nothing = dict.fromkeys(["space_size", "max_queries", "low", "high"])
    expected = dict(zip(names, question, strict=True)) | nothing | {"rows": made.rows}
    assert json.loads(made.to_json()) == expected


def test_the_table_has_a_line_per_row_and_its_numbers():
    lines = str(plan(4000, 0.04, 0.1)).splitlines()
    assert lines[0] == ("4,000 samples, epsilon 0.04, delta 0.1, 32 sign vectors, error rate 0.25")
    assert [line.split("  ")[0] for line in lines[3:]] == NAMES
    (check,) = (line for line in lines if line.startswith("GuessAndCheck"))
    passes = GuessAndCheck(4000, epsilon=0.04, delta=0.1).affordable(0.25)
    assert check.split(maxsplit=6) == [
        "GuessAndCheck", "-", "yes", f"{passes:,}", "0.02299", "1,357", "every guess passes",
    ]  # fmt: skip
    assert len({line.find("least epsilon") for line in lines[2:3]}) == 1


@pytest.mark.parametrize("question", QUESTIONS)
def test_what_is_printed_suffices(question):
    """Least epsilons are rounded up."""
    for line, row in zip(str(plan(*question)).splitlines()[3:], plan(*question).rows, strict=True):
        if row["epsilon_min"] is not None:
            printed = float(line.removesuffix(row["provided"]).split()[-2])
            assert row["epsilon_min"] <= printed <= 1.001 * row["epsilon_min"]


def test_a_shortfall_names_what_would_do():
    made = plan(200, 0.05, 0.1)
    line = made.shortfall("bernstein")
    assert line == (
        "bernstein needs epsilon 0.155 with 200 samples or 1,786 samples at epsilon 0.05 "
        "to answer a first query of error rate 0.25"
    )
    assert by_name(200, 0.155, 0.1)["bernstein"]["first_query"]
    assert by_name(1786, 0.05, 0.1)["bernstein"]["first_query"]
    assert plan(4000, 0.05, 0.1).shortfall("bernstein") is None
    line = plan(4000, 0.03, 0.1, space_size=10**6).shortfall("DeclaredSearch")
    assert line == (
        "DeclaredSearch needs epsilon 0.03775 with 4,000 samples or 6,250 samples at epsilon 0.03 "
        "to be within epsilon for 1,000,000 keys of error rate 0.25"
    )
    nothing = plan(1, 1e-7, 0.1).shortfall("bernstein")
    assert "needs more samples and a larger epsilon to" in nothing
    with pytest.raises(ValueError, match="name must be one of bernstein, .*, got 'mcl'"):
        made.shortfall("mcl")


@pytest.mark.thorough
def test_a_plot_has_a_curve_per_space_and_one_of_guess_and_check():
    axes = plan(4000, 0.05, 0.1, space_size=250).plot().axes[0]
    spaces = [250, 10**3, 10**6, 10**9, 10**12]
    assert {text.get_text() for text in axes.texts} >= {
        "250 keys", *(f"$10^{{{d}}}$ keys" for d in (3, 6, 9, 12)),
        "guess and check:\n1,000 that pass",
    }  # fmt: skip
    points = [line.get_xydata() for line in axes.lines]
    assert [line.tolist() for line in points if len(line) == 1] == [[[4000.0, 0.05]]]
    curves = [np.log(line).T for line in points if len(line) > 1]
    *searches, check = [math.exp(np.interp(math.log(4000), *curve)) for curve in curves]
    expected = [plan(4000, 0.05, 0.1, space_size=size).high - 0.25 for size in spaces]
    assert searches == pytest.approx(expected, rel=0.01)
    for share in (0.98, 1.02):
        tried = GuessAndCheck(4000, epsilon=share * check, delta=0.1).affordable(0.25)
        assert (tried >= 1000) == (share > 1)


def test_a_plan_of_extreme_sizes_can_be_drawn():
    for m in (1, 2**40):
        assert plan(m, 0.5, 0.1).plot().axes


@pytest.mark.parametrize(
    ("question", "error", "message"),
    [
        ((0, 0.05, 0.1), ValueError, "n_samples must be at least 1, got 0"),
        ((4000.0, 0.05, 0.1), TypeError, "n_samples must be an integer"),
        ((4000, 0.0, 0.1), ValueError, r"epsilon must be in \(0, 1\), got 0.0"),
        ((4000, 0.05, 1.5), ValueError, r"delta must be in \(0, 1\), got 1.5"),
        ((4000, 0.05, 0.1, 0), ValueError, "n_vectors must be at least 1, got 0"),
        ((4000, 0.05, 0.1, 32, -0.1), ValueError, r"error_rate must be in \[0, 1\], got -0.1"),
        ((4000, 0.05, 0.1, 32, math.nan), ValueError, "error_rate must be finite, got nan"),
        ({"space_size": 0}, ValueError, "space_size must be at least 1, got 0"),
        ({"space_size": 1e6}, TypeError, "space_size must be an integer"),
        ({"max_queries": 0}, ValueError, "max_queries must be at least 1, got 0"),
    ],
)
def test_bad_questions_are_named(question, error, message):
    with pytest.raises(error, match=message):
        if isinstance(question, dict):
            plan(4000, 0.05, 0.1, **question)
        else:
            plan(*question)


def test_a_plan_cannot_be_changed():
    with pytest.raises(AttributeError):
        plan(4000, 0.05, 0.1).epsilon = 0.5
    assert isinstance(plan(4000, 0.05, 0.1), Plan)


# ---- the command line ------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


ASKED = ["plan", "--n-samples", "4000", "--epsilon", "0.04", "--delta", "0.1"]


@pytest.mark.thorough
def test_the_command_prints_the_table(run):
    assert run(*ASKED) == (0, f"{plan(4000, 0.04, 0.1)}\n", "")
    more = ["--n-vectors", "256", "--error-rate", "0.02"]
    assert run(*ASKED, *more) == (0, f"{plan(4000, 0.04, 0.1, 256, 0.02)}\n", "")
    made = plan(4000, 0.04, 0.1, space_size=10**6, max_queries=300)
    assert run(*ASKED, "--space-size", "1000000", "--max-queries", "300") == (0, f"{made}\n", "")


def test_the_command_prints_json_and_draws(run, tmp_path):
    code, out, err = run(*ASKED, "--json", "--plot", "plan.png")
    assert (code, out, err) == (0, plan(4000, 0.04, 0.1).to_json() + "\n", "")
    assert (tmp_path / "plan.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--epsilon", "1.5"], "epsilon must be in (0, 1), got 1.5"),
        (["--space-size", "0"], "space_size must be at least 1, got 0"),
        (["--plot", "plan.pdf"], "--plot must end in .png, got plan.pdf"),
        (["--plot", "nowhere/plan.png"], "nowhere/plan.png: its folder does not exist"),
    ],
)
def test_a_bad_question_is_one_line(run, arguments, message):
    assert run(*ASKED, *arguments) == (2, "", f"radabound plan: {message}\n")


def audit(run, *arguments):
    losses = np.random.default_rng(3).integers(0, 2, (3, 200))
    np.save("losses.npy", losses)
    asked = ["--losses", "losses.npy", "--epsilon", "0.05", "--delta", "0.1", "--seed", "1"]
    code, out, _ = run("audit", *asked, *arguments)
    assert code == 3
    return out.splitlines()


def test_audit_says_what_a_holdout_lacks_that_cannot_answer_one_query(run):
    made = plan(200, 0.05, 0.1)
    lines = audit(run, "--bound", "bernstein")
    assert lines.count(made.shortfall("bernstein")) == 1
    lines = audit(run, "--bound", "fixed-sequence", "--n-vectors", "64")
    assert plan(200, 0.05, 0.1, 64).shortfall("fixed-sequence") in lines
    # a plan is for the plain estimator here
    lines = audit(run, "--bound", "bernstein", "--estimator", "half-range")
    assert not [line for line in lines if "bernstein needs" in line]


def test_audit_has_no_such_line_where_a_first_query_was_answered(run):
    assert " needs " not in "\n".join(audit(run, "--bound", "bernstein", "--epsilon", "0.17"))


@pytest.mark.parametrize(
    ("searches", "guesses", "message"),
    [
        ({10: [0.1, 0.2]}, [0.1] * 3, "curves must be as long as sizes, 3, got 2"),
        ({}, [math.nan] * 3, "curves must hold a half-width that is not nan, got none"),
        ({}, [[0.1]], "curves must have shape"),
    ],
)
def test_bad_curves_are_named(searches, guesses, message):
    with pytest.raises(ValueError, match=message):
        plan_figure(
            [100, 200, 400], searches, guesses, n_samples=200, epsilon=0.1, subtitle="Words"
        )
