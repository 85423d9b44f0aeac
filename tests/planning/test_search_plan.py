"""Ways to trust a search, side by side: widths, rows for a width, and the command."""

import json
import math

import numpy as np
import pytest
from scipy.stats import beta, norm

from radabound_fast import ConfirmedSearch, FixedSequence, Losses, SearchPlan, plan
from radabound_fast.cli import main


def exact(errors, m, nats):
    """Clopper and Pearson, by the beta distribution."""
    a = math.exp(-nats)
    return beta.ppf(a, errors, m - errors + 1), beta.isf(a, errors + 1, m - errors)


def rows_of(made):
    return {row["name"]: row for row in made.rows}


def test_each_row_is_the_exact_interval_of_its_rows():
    rows = rows_of(plan(4000, delta=0.1, error_rate=0.2, space_size=10**6, n_finalists=3))
    for share, m in ((0.2, 800), (0.33, 1320), (0.5, 2000), (1, 4000)):
        row = rows[f"ConfirmedSearch, share {share}"]
        expected = exact(m // 5, m, math.log(20 * 3))
        assert row["n_rows"] == m and (row["low"], row["high"]) == pytest.approx(expected, rel=1e-6)
    row = rows["DeclaredSearch"]
    assert (row["low"], row["high"]) == pytest.approx(exact(800, 4000, math.log(2e7)), rel=1e-6)


def test_a_fixed_order_is_within_the_least_epsilon_that_answers_it():
    """A guard answers so many unlike models of this error rate, and with less epsilon it halts."""
    row = rows_of(plan(4000, delta=0.1, space_size=500, n_finalists=1))["FixedSequence"]
    epsilon = (row["high"] - row["low"]) / 2
    losses = np.random.default_rng(1).permuted(np.tile(np.arange(4000) < 1000, (500, 1)), axis=1)
    for scale, answered in ((1.0, 500), (0.9, 0)):
        guard = FixedSequence(4000, epsilon=scale * epsilon, delta=0.1, max_queries=500, seed=1)
        assert (len(guard.query_many(losses)) == 500) == (answered == 500)


@pytest.mark.parametrize(("n", "about"), [(1, 5), (10, 370)])
def test_the_size_up_to_which_a_declared_space_is_narrower(n, about):
    """Theory: the normal quantile at .05/N exceeds sqrt(2) times that at .05/n."""
    made = plan(10**6, delta=0.1, n_finalists=n)
    quantile = math.sqrt(2) * norm.isf(0.05 / n)
    assert made.n_narrower == pytest.approx(0.05 / norm.sf(quantile), rel=0.2)
    assert made.n_narrower == pytest.approx(about, rel=0.25)
    assert "up to" in str(made)


@pytest.mark.thorough
def test_the_inverse_gives_the_fewest_rows():
    made = plan(None, delta=0.1, width=0.05, n_finalists=2, space_size=1000, error_rate=0.1)
    for name, row in rows_of(made).items():
        m = row["n_samples"]
        again = [
            rows_of(plan(k, delta=0.1, n_finalists=2, space_size=1000, error_rate=0.1))[name]
            for k in (m, math.floor(0.99 * m))
        ]
        assert again[0]["width"] <= 0.05 < again[1]["width"] and row["width"] == again[0]["width"]
    assert made.n_narrower is None and "Rows for an interval of width 0.05" in str(made)
    with pytest.raises(ValueError, match="plot needs a plan with n_samples"):
        made.plot()


def test_the_table_says_what_is_asked_and_what_may_be_done():
    made = plan(4000, delta=0.1, space_size=10**6, n_finalists=3)
    text = str(made)
    assert isinstance(made, SearchPlan) and text.startswith("4,000 rows: delta 0.1")
    assert "0.5 of the rows stay unseen" in text and "a space of 1,000,000" in text
    rows = json.loads(made.to_json())["rows"]
    assert len(rows) == 6
    fields = ["name", "n_samples", "n_rows", "low", "high", "width", "asked", "allowed"]
    assert list(rows[0]) == fields
    assert len(plan(4000, delta=0.1, n_finalists=3).rows) == 4
    (axes,) = made.plot().axes
    assert len(axes.lines) == 3  # of one finalist, of three, and of the declared space


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"n_samples": None}, "one of n_samples and width must be given"),
        ({"width": 0.1}, "one of n_samples and width must be given"),
        ({"n_samples": None, "width": 2}, "width must be in"),
        ({"n_finalists": 0}, "n_finalists must be at least 1"),
        ({"epsilon": 0.1}, "epsilon must be left out beside n_finalists"),
        ({"max_queries": 3}, "max_queries must be left out beside n_finalists"),
        ({"delta": None}, "delta must be given with n_finalists"),
        ({"n_finalists": None, "width": 0.1}, "width must be left out without n_finalists"),
        ({"space_size": 0}, "space_size must be at least 1"),
    ],
)
def test_bad_questions_are_refused(arguments, said):
    with pytest.raises(ValueError, match=said):
        plan(**{"n_samples": 4000, "delta": 0.1, "n_finalists": 1} | arguments)


@pytest.mark.thorough
def test_the_command_prints_the_same(capsys, tmp_path):
    question = ["plan", "--delta", "0.1", "--n-finalists", "3", "--space-size", "1e6"]
    picture = tmp_path / "shares.png"
    assert main([*question, "--n-samples", "4000", "--plot", str(picture)]) == 0
    made = plan(4000, delta=0.1, space_size=10**6, n_finalists=3)
    assert capsys.readouterr().out == f"{made}\n" and picture.stat().st_size > 1000
    assert main([*question, "--width", "0.1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["n_samples"] is None
    one_of_two = "one of --n-samples and --width must be given with --n-finalists"
    for wrong, message in (
        (["--epsilon", "0.1", "--n-samples", "9"], "--epsilon must be left out"),
        ([], one_of_two),
        (["--n-samples", "9", "--width", "0.1"], one_of_two),
        (["--gate", "--disagreement", "0.1"], "must be left out with --gate"),
    ):
        assert main([*question, *wrong]) == 2
        error = capsys.readouterr().err
        assert error.count("\n") == 1 and message in error


@pytest.mark.parametrize("m", [25, 50, 101, 333, 1999])
def test_the_rows_that_a_plan_keeps_are_those_of_the_search(m):
    rows = plan(m, delta=0.1, n_finalists=2).rows
    for share, row in zip((0.2, 0.33, 0.5, 1.0), rows, strict=True):
        search = ConfirmedSearch(Losses(m), delta=0.1, confirm_share=share)
        assert row["n_rows"] == search.confirmation_rows.sum()
