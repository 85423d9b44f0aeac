"""A guard whose rows weigh differently, or belong together: equality, coverage, what is kept.

By Result 28 a run of a coverage test misses with probability at most delta, so that a correct
program has more misses than `most_failures` with probability at most 1e-6 a test.
"""

import math
import pickle

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from support import most_failures

from radabound_fast import (
    DeclaredSearch,
    FixedSequence,
    GuessAndCheck,
    Holdout,
    HoldoutExhausted,
    Ladder,
    Losses,
    RadaBound,
    bounds,
    pack_losses,
)
from radabound_fast.rows.weighting import Units, Weighting

GIVEN = {"epsilon": 0.1, "delta": 0.2, "n_vectors": 9, "seed": 3}
WIDE = GIVEN | {"epsilon": 0.4}


def parts(m, seed=71):
    """Weights of 1 to 7, and groups of a few rows."""
    rng = np.random.default_rng(seed)
    return rng.integers(1, 8, m), rng.integers(0, max(1, m // 3), m)


def sequence(m, **given):
    """A guard of losses with weights and groups; other parameters go to the guard."""
    own = {name: given.pop(name) for name in ("sample_weight", "groups") if name in given}
    return FixedSequence(Losses(m, **own), **GIVEN | given)


def units_of(m, weights, groups):
    return Units.of(Weighting.of(m, weights, groups))


def test_no_group_weighs_more_than_one_though_all_its_rows_are_rounded_up():
    units = units_of(11, [1677721.55] * 10 + [1e6], [0] * 10 + [1])  # ten are below 2**24
    assert 2**23 < units.of_groups.max() <= 2**24


# ---- the same as the definition ------------------------------------------------------------------


def test_real_losses_are_rounded_to_units_of_the_heaviest_group():
    m = 200
    weights, groups = parts(m)
    losses = np.random.default_rng(72).random((3, m))
    guard = sequence(m, epsilon=0.9, sample_weight=weights / 3, groups=groups)
    answers = guard.query_many(losses)
    assert answers.values == pytest.approx(np.average(losses, axis=1, weights=weights), abs=1e-6)
    units = guard._units
    # losses in units of 2**-24, as the kernels have them; their weighted sums are exact integers
    exact = [np.bincount(units.codes, units.weights * np.rint(f * 2**24)) for f in losses]
    assert max(np.max(row) for row in exact) < 2**53
    rows = units.rows(losses, None, False, 2).astype(float) * 2**24
    assert np.abs(rows - np.array(exact) / 2**24).max() <= 0.5
    assert_array_equal(rows, np.floor(np.array(exact) / 2**24 + 0.5))
    bits = losses < 0.5
    counted = [np.bincount(units.codes, units.weights * row) for row in bits]
    for given, packed in ((bits, False), (pack_losses(bits).words, True)):
        assert_array_equal(units.rows(given, None, packed, 2).astype(float) * 2**24, counted)


@pytest.mark.parametrize("weights", [None, 1.0, 0.3])
def test_rows_that_weigh_the_same_are_a_guard_without_weights(weights):
    m = 500
    losses = np.random.default_rng(73).random((50, m)) < 0.2
    own = {"groups": np.arange(m)[::-1]}
    if weights is not None:
        own["sample_weight"] = np.full(m, weights)
    guard, plain = sequence(m, **own), sequence(m)
    assert guard.n_groups == plain.n_groups and guard.guarantee == plain.guarantee
    assert guard.query_many(losses).to_dict().keys() == plain.query_many(losses).to_dict().keys()
    assert_array_equal(guard._core.progress(), plain._core.progress())


def test_the_budget_is_the_largest_complexity_that_is_admitted():
    weights, groups = parts(3000)
    for epsilon in (0.03, 0.06, 0.1, 0.3):
        guard = sequence(3000, epsilon=epsilon, n_vectors=64, sample_weight=weights)
        row, given = guard.rule.bound, (guard.n_groups, 64, epsilon, 0.2)
        budget = row.budget(*given)
        assert (budget >= 0) == row.admits(0.0, *given)
        if budget >= 0:
            assert row.admits(budget, *given)
            assert not row.admits(budget + 1e-9, *given)
            assert guard.budget == pytest.approx(budget, rel=1e-4)


# ---- refused ------------------------------------------------------------------------------------


@pytest.mark.parametrize("own", [{"sample_weight": [1, 2, 3]}, {"groups": [0, 0, 1]}])
def test_guards_that_are_not_proved_for_weights_refuse_them(own):
    for judged in (Losses(3, **own), Holdout([0, 1, 1], **own)):
        for bound in bounds.PAPER_BOUNDS:
            with pytest.raises(ValueError, match="FixedSequence|fixed-sequence"):
                RadaBound(judged, epsilon=0.5, delta=0.5, bound=bound)
        for make in (
            lambda judged: Ladder(judged, 0.1, delta=0.1),
            lambda judged: GuessAndCheck(judged, epsilon=0.1, delta=0.1),
        ):
            with pytest.raises(ValueError, match="sample_weight and groups must be left out for a"):
                make(judged)
    with pytest.raises(ValueError, match="left out where losses are judged: give labels"):
        DeclaredSearch(Losses(3, **own), 9, delta=0.1)
    assert FixedSequence(Losses(3, **own), **GIVEN).guarantee == (
        FixedSequence(Holdout([0, 1, 1], **own), **GIVEN).guarantee
    )


@pytest.mark.parametrize(
    ("own", "error", "message"),
    [
        ({"sample_weight": [1, 2]}, ValueError, "sample_weight"),
        ({"sample_weight": [1, 2, 0]}, ValueError, "positive and finite, got 0 at sample 2"),
        ({"sample_weight": [1e308] * 3}, ValueError, "must have a sum that is finite"),
        ({"sample_weight": [1, 1, 1e9]}, ValueError, r"at least 2\*\*-24 of the weight .* got 1.0"),
        ({"sample_weight": ["a", "b", "c"]}, TypeError, "sample_weight must be real numbers"),
        ({"groups": [0, 1]}, ValueError, "groups"),
    ],
)
def test_bad_weights_and_groups_are_refused(own, error, message):
    for make in (Losses, lambda m, **own: Holdout([0, 1, 1], **own)):
        with pytest.raises(error, match=message):
            FixedSequence(make(3, **own), **GIVEN)


def test_workers_cannot_count_for_it():
    own = {"groups": parts(300)[1]}
    for judged in (Losses(300, **own), Holdout(np.arange(300) % 2, **own)):
        guard = FixedSequence(judged, **GIVEN)
        for ask in (guard.task, lambda guard=guard: guard.take([None])):
            with pytest.raises(
                TypeError, match="a guard with sample_weight or groups has no task|"
            ):
                ask()


# ---- told and kept ------------------------------------------------------------------------------


def test_what_is_left_is_answered_and_a_halt_is_final():
    m = 600
    weights, groups = parts(m)
    guard = sequence(m, epsilon=0.2, max_queries=40, sample_weight=weights, groups=groups)
    left = guard.n_left()
    assert left >= 40 and guard.n_left(0.5, binary=True) == left
    losses = np.random.default_rng(74).random((5000, m)) < 0.5
    answers = guard.query_many(losses)
    assert answers.halted and len(answers) >= left
    assert (answers.half_widths <= 0.2).all()
    with pytest.raises(HoldoutExhausted, match="the holdout is spent"):
        guard.query(losses[0])


def test_a_guard_that_can_answer_nothing_says_so():
    guard = sequence(50, epsilon=0.01, sample_weight=parts(50)[0])
    assert guard.guarantee.startswith("No query can be answered") and guard.n_left() == 0
    with pytest.raises(HoldoutExhausted, match="cannot answer a first query"):
        guard.query(np.ones(50))


def test_its_intervals_are_of_result_23_within_epsilon():
    weights, groups = parts(2000)
    guard = sequence(2000, max_queries=10, sample_weight=weights, groups=groups)
    losses = np.random.default_rng(75).random((3, 2000)) < 0.05
    answers = guard.query_many(losses)
    units = guard._units
    for answer in answers:
        nats = math.log(4 * 10 / (0.4 * 0.2))
        if answer.number == 1:  # the dyadic weight is the larger
            nats = math.log(4 * 2 / (0.4 * 0.2))
        expected = bounds.weighted_interval(answer.value, units.of_groups, units.counts, nats)
        assert (answer.low, answer.high) == pytest.approx(expected)
    assert "weighted mean is within 0.1" in guard.guarantee and "n_groups=" in repr(guard)


def test_a_database_has_a_hash_of_the_weights(tmp_path):
    m, path = 300, tmp_path / "guard.db"
    weights, groups = parts(m)
    own, losses = {"sample_weight": weights, "groups": groups}, np.arange(m) % 5 == 0
    with FixedSequence.open(path, Losses(m, **own), **WIDE) as made:
        first = made.query(losses)
    reversed_weights = own | {"sample_weight": weights[::-1]}
    for wrong in ({}, {"groups": groups}, {"sample_weight": weights}, reversed_weights):
        for given in ({}, WIDE):
            with pytest.raises(ValueError, match="must be those with which .* was made"):
                FixedSequence.open(path, Losses(m, **wrong), **given)
    with pytest.raises(ValueError, match=r"has weights or groups: Losses\(m, sample_weight="):
        FixedSequence.open(path)
    for given in ({}, WIDE):
        with FixedSequence.open(path, Losses(m, **own), **given) as found:
            assert found.query(losses).value == first.value
    plain = tmp_path / "plain.db"
    FixedSequence.open(plain, m, **WIDE).close()
    with pytest.raises(ValueError, match="must be those with which .* was made"):
        FixedSequence.open(plain, Losses(m, **own))
    with pytest.raises(FileNotFoundError):
        FixedSequence.open(tmp_path / "none.db", Losses(m, **own))


def test_labels_with_weights_live_in_a_database(tmp_path):
    y_true, (weights, groups) = np.arange(300) % 2, parts(300)
    own, path = {"sample_weight": weights, "groups": groups}, tmp_path / "guard.db"
    y_pred = np.where(np.arange(300) % 7 == 0, 1 - y_true, y_true)
    with FixedSequence.open(path, Holdout(y_true, **own), **WIDE) as made:
        first = made.query(y_pred)
    assert first.value == np.average(y_pred != y_true, weights=weights)
    with FixedSequence.open(path, Holdout(y_true, **own)) as again:
        assert again.n_answered == 1 and again.holdout.weighting is not None
    with pytest.raises(ValueError, match="must be those with which .* was made"):
        FixedSequence.open(path, y_true)


def test_units_are_exact_for_whole_weights():
    weights, groups = parts(500)
    units = units_of(500, weights, groups)
    ratio = units.weights / weights
    assert (ratio == ratio[0]).all() and math.log2(ratio[0]).is_integer()
    sums = np.bincount(units.codes, units.weights)
    assert 2**22 <= sums.max() <= 2**24
    assert units.fingerprint() == units_of(500, 8 * weights, groups).fingerprint()
    assert units.fingerprint() != units_of(500, weights, None).fingerprint()
    assert pickle.loads(pickle.dumps(units)).fingerprint() == units.fingerprint()
    # as fine as they can be: the heaviest may have all 2**24
    assert units_of(2, [2 - 1e-9, 1], None).weights.tolist() == [2**24, 2**23]
    # beside heavy rows a group of many light ones
    heavy = units_of(4, [0.1, 0.1, 0.1, 2.9], [0, 0, 0, 1])
    assert heavy.squares == pytest.approx((0.3**2 + 2.9**2) / 3.2**2)


# ---- coverage -----------------------------------------------------------------------------------


def weights_of(kind, m, rng):
    if kind == "steep":  # the heaviest weighs a thousand times the lightest
        return np.geomspace(1, 1000, m)
    if kind == "one heavy":
        return np.where(np.arange(m) == 0, m / 5, 1.0)
    return rng.uniform(0.5, 2.0, m)


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["steep", "one heavy", "mild"])
@pytest.mark.parametrize(("m", "truth"), [(60, 0.5), (400, 0.1), (400, 0.5)])
def test_no_answer_of_a_fixed_sequence_is_off_by_epsilon(kind, m, truth):
    """100 runs of 30 coins, seed 76, delta .3; an epsilon at which it halts on the way."""
    rng, missed, n_halts, n_answers = np.random.default_rng(76), 0, 0, 0
    weights = weights_of(kind, m, rng)
    shares = weights / weights.sum()
    squares = (shares**2).sum()
    # that of the fifth query, say, by its share of delta
    epsilon = min(0.95, math.sqrt(squares * math.log(4 * 24 / (0.4 * 0.3)) / 2))
    for run in range(100):
        given = {"delta": 0.3, "n_vectors": 16, "seed": run, "max_queries": 8}
        guard = sequence(m, sample_weight=weights, epsilon=epsilon, **given)
        answers = guard.query_many(rng.random((30, m)) < truth)
        n_halts, n_answers = n_halts + answers.halted, n_answers + len(answers)
        outside = (answers.lows > truth) | (answers.highs < truth)
        missed += bool((abs(answers.values - truth) > epsilon).any() or outside.any())
    assert missed <= most_failures(100, 0.3)
    assert n_halts > 50 and n_answers > 100


def shattering(rng, shares, k, copies=16):
    """Means of k coins on one sample and, for l sign vectors, their half-range complexity."""
    losses = rng.random((k, len(shares))) < 0.5
    sums = (losses * shares) @ rng.choice([-1.0, 1.0], (len(shares), copies))
    return losses @ shares, (sums.max(axis=0) - sums.min(axis=0)).mean() / 2


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["steep", "one heavy", "mild"])
def test_the_weighted_bound_holds_for_many_coins_at_once(kind):
    """400 runs, seed 77, delta .3: the worst of 200 coins against 2 R~ and the rest."""
    rng, missed, nearest = np.random.default_rng(77), 0, 0.0
    shares = weights_of(kind, 300, rng)
    shares = shares / shares.sum()
    for _ in range(400):
        means, complexity = shattering(rng, shares, 200)
        squares = float((shares**2).sum())
        width = bounds.weighted_half_width(complexity, shares.max(), squares, 16, 0.3)
        worst = abs(means - 0.5).max()
        missed += worst > width
        nearest = max(nearest, worst / width)
    assert missed <= most_failures(400, 0.3)
    assert nearest > 0.1


def test_groups_are_covered_and_rows_taken_for_independent_are_not():
    """200 runs, seed 78, delta .2: 60 patients with 1 to 40 rows, all wrong or all right."""
    rng = np.random.default_rng(78)
    missed = alone = 0
    for run in range(200):
        groups = np.repeat(np.arange(60), rng.integers(1, 41, 60))
        m, truth, rows = len(groups), 0.3, []
        for _ in range(10):
            rows.append((rng.random(60) < truth)[groups])
        for own in ({"groups": groups}, {}):
            # for each the least epsilon at which ten queries are answered
            squares = (np.bincount(groups) ** 2).sum() / m**2 if own else 1 / m
            epsilon = 1.001 * math.sqrt(squares * math.log(4 * 10 / (0.4 * 0.2)) / 2)
            guard = sequence(m, epsilon=epsilon, n_vectors=32, seed=run, max_queries=10, **own)
            answers = guard.query_many(np.array(rows))
            out = bool((abs(answers.values - truth) > epsilon).any())
            assert len(answers) == 10
            missed, alone = missed + (out if own else 0), alone + (0 if own else out)
    assert missed <= most_failures(200, 0.2)
    assert alone > 150
