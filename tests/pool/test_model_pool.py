"""ModelPool states what plain NumPy states, however the models are added."""

import copy
import math
import pickle
from functools import cache
from itertools import pairwise

import numpy as np
import pytest
import support
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import binomtest, norm

from radabound_fast import Losses, ModelPool, PackedLosses, pack_losses
from radabound_fast.bounds import (
    betting_interval,
    betting_p_value,
    binomial_interval,
    paired_interval,
)
from radabound_fast.bounds.bootstrap import critical_value, one_sided_level, vectors_needed
from radabound_fast.pool import best
from radabound_fast.pool.judging import Judge, sign_test
from radabound_fast.pool.limits import holm
from radabound_fast.rows import reference
from radabound_fast.rows.moments import moments_of

M, K, DELTA, SEED = 600, 40, 0.1, 5
L = 1003  # sign vectors: the last strip of 8 is not full


@pytest.fixture(scope="module")
def pool_of_40():
    """Labels and predictions: families of alike models of several errors, two of them rare."""
    rng = np.random.default_rng(11)
    y_true = rng.integers(0, 2, M)
    wrong = simulated(rng, M, np.linspace(0.12, 0.25, K), 0.2)
    wrong[0] = np.arange(M) < 39  # an error less than the bootstrap needs, and just enough
    wrong[1] = np.arange(M) < 40
    wrong[2] = np.arange(M) < M - 39
    return y_true, np.where(wrong, 1 - y_true, y_true), wrong


@cache
def signs(n_samples=M):
    return reference.signs(SEED, L, n_samples)


def pool(judged, *blocks, delta=DELTA, **options):
    made = ModelPool(judged, delta=delta, seed=SEED, n_vectors=L, **options)
    for block in blocks:
        made.add(block)
    return made


# ---- against plain NumPy -------------------------------------------------------------------------


def test_intervals_are_exact_ones_at_the_bootstraps_level(pool_of_40):
    y_true, Y_pred, wrong = pool_of_40
    found = pool(y_true, Y_pred).intervals()
    able = support.enough(wrong.astype(float))
    assert_array_equal(np.flatnonzero(~able), [0, 2])
    assert_array_equal(found.by_bootstrap, able)
    maxima = np.abs(reference.studentised(signs(), wrong[able], None)).max(axis=0)
    share = DELTA * able.mean()
    expected = 2 * support.level(maxima, share, 2 * able.sum())
    assert found.level == pytest.approx(expected, rel=1e-9)
    assert found.as_if == pytest.approx(share / expected, rel=1e-9)
    assert 1 < found.as_if < 0.8 * K
    nats = np.where(able, -math.log(expected / 2), math.log(2 * K / DELTA))
    limits = binomial_interval(wrong.sum(axis=1), M, nats)
    assert_allclose((found.lows, found.highs), limits, rtol=1e-9)
    proved = binomial_interval(wrong.sum(axis=1), M, math.log(2 * K / DELTA))
    assert_array_equal((found.bonferroni_lows, found.bonferroni_highs), proved)
    assert_array_equal(found.values, wrong.mean(axis=1))


def test_unrelated_models_have_bonferronis_level_at_least():
    """Of six pools the critical value is further out in some: there the level is delta / k."""
    at_floor = []
    for seed in range(6):
        wrong = np.random.default_rng(seed).random((30, 300)) < 0.3
        found = pool(300, wrong).intervals()
        maxima = np.abs(reference.studentised(signs(300), wrong, None)).max(axis=0)
        expected = 2 * support.level(maxima, DELTA, 60)
        assert found.level == pytest.approx(expected, rel=1e-9)
        at_floor.append(expected == DELTA / 30)
    assert any(at_floor) and not all(at_floor)


def edges(outcome):
    """Deltas on both sides of every change of an outcome that depends on delta."""
    deltas = [DELTA, *np.geomspace(0.011, 0.8, 16)]
    for low, high in pairwise(deltas[1:]):
        first, last = outcome(low), outcome(high)
        if np.array_equal(first, last):
            continue
        while high - low > 1e-7:
            middle = (low + high) / 2
            if np.array_equal(outcome(middle), first):
                low = middle
            else:
                high = middle
        deltas += [low, high]
    return deltas


class Against:
    """Models against a baseline by NumPy: a sign test of each, and the step-down."""

    def __init__(self, wrong, base):
        self.gains = base.astype(int) - wrong
        self.plus, self.minus = (self.gains > 0).sum(axis=1), (self.gains < 0).sum(axis=1)
        self.p_values = np.array(
            [
                binomtest(int(n), max(int(n + other), 1), alternative="greater").pvalue
                for n, other in zip(self.plus, self.minus, strict=True)
            ]
        )
        self.enough = support.enough(self.gains.astype(float))
        self.studentised = -reference.studentised(signs(wrong.shape[1]), wrong, base)

    def better(self, delta):
        """Which models are found, the levels of the steps, and which Holm finds of all."""
        share, left = delta * self.enough.mean(), self.enough.copy()
        found, levels = self._holm(~self.enough, delta * (~self.enough).mean()), []
        while left.any():
            maxima = np.maximum(self.studentised[left].max(axis=0), 0)
            levels.append(support.level(maxima, share, left.sum()))
            new = left & (self.p_values <= levels[-1])
            if not new.any():
                break
            found, left = found | new, left & ~new
        return found, levels, self._holm(np.ones(len(found), bool), delta)

    def _holm(self, tested, delta):
        found, places = np.zeros(len(tested), bool), np.flatnonzero(tested)
        for place in places[np.argsort(self.p_values[places], kind="stable")]:
            if self.p_values[place] > delta / (len(places) - found.sum()):
                break
            found[place] = True
        return found


def test_better_is_the_step_down(pool_of_40):
    y_true, Y_pred, wrong = pool_of_40
    check_better(wrong, wrong[31], [DELTA], pool(y_true, Y_pred, baseline=Y_pred[31]))


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.thorough)])
def test_better_at_every_delta_where_a_model_is_just_found(seed):
    """Some models are far better, some a little, and some differ on few rows."""
    rng, m = np.random.default_rng(seed), 400
    wrong = simulated(rng, m, np.array([0.1, 0.12, 0.2, 0.22, 0.24, 0.26, 0.27, 0.28, 0.4]), 0.3)
    base = simulated(rng, m, np.array([0.3]), 0.3)[0]
    few = np.tile(base, (4, 1))
    for place, n in enumerate((9, 7, 5, 4)):
        few[place, np.flatnonzero(base)[:n]] = False
    wrong = np.vstack([wrong, few])
    by_numpy = Against(wrong, base)
    check_better(wrong, base, edges(lambda delta: by_numpy.better(delta)[0]))


def test_the_last_model_of_a_step_down_has_all_of_delta():
    """Two far better ones are found first; of the third p is compared with delta, or a little more.

    Of four thirds some have a critical value that is further out than the normal law's.
    """
    row, m, at_floor = np.arange(400), 400, 0
    base, far = row < 120, row < 20
    for seed in range(4):
        order = np.random.default_rng(seed).permutation(m)
        third = (base ^ ((row < 57) | (row >= 120) & (row < 163)))[order]  # 57 against 43
        wrong = np.array([far[order], (row < 25)[order], third])
        by_numpy = Against(wrong, base[order])
        for delta in edges(lambda delta, by_numpy=by_numpy: by_numpy.better(delta)[0]):
            made = pool(m, wrong, delta=delta, baseline=base[order])
            found, levels, _ = by_numpy.better(delta)
            assert_array_equal(made.better().is_better, found)
            at_floor += levels[-1] == delta
    assert at_floor > 0


def check_better(wrong, base, deltas, made=None):
    by_numpy, n_steps, n_found = Against(wrong, base), set(), set()
    m = wrong.shape[1]
    for delta in deltas:
        if made is None or delta != DELTA:
            made = pool(m, *np.array_split(wrong, 2), delta=delta, baseline=base)
        found, (expected, levels, holm) = made.better(), by_numpy.better(delta)
        assert_array_equal(found.is_better, expected, err_msg=str(delta))
        assert_array_equal(found.bonferroni_is_better, holm, err_msg=str(delta))
        assert found.level == pytest.approx(levels[0], rel=1e-9)
        assert_allclose(found.gains, by_numpy.gains.mean(axis=1), atol=1e-15)
        nats = np.where(by_numpy.enough, -math.log(levels[0]), math.log(len(wrong) / delta))
        lows = paired_interval(by_numpy.plus, by_numpy.minus, m, nats)[0]
        assert_allclose(found.gain_lows, np.where(expected, lows, np.nan), rtol=1e-6, atol=1e-9)
        assert found.better_names == np.flatnonzero(expected).tolist()
        n_steps.add(len(levels))
        n_found.add(int(expected.sum()))
    assert max(n_steps) > 2 and max(n_found) > 3  # later steps find more


class AllPairs:
    """Every pair of models by NumPy: exact tests against the best one, and maxima of each."""

    def __init__(self, wrong):
        self.n, m = wrong.shape
        best = int(wrong.sum(axis=1).argmin())
        self.p_values, self.enough = np.ones(self.n), np.zeros(self.n, bool)
        self.drops, self.sums = [], []  # how much worse others are, in standard errors
        for place, row in enumerate(wrong):
            ours, n_both = row & ~wrong[best], int((row != wrong[best]).sum())
            if n_both:
                test = binomtest(int(ours.sum()), n_both, alternative="greater")
                self.p_values[place] = test.pvalue
            differences = row.astype(float) - wrong
            self.enough[place] = support.enough(differences[[best]])[0]
            centred = differences - differences.mean(axis=1)[:, None]
            spread = np.sqrt((centred**2).sum(axis=1))
            self.drops.append(-differences.sum(axis=1) / np.where(spread > 0, spread, np.inf))
            self.sums.append(-reference.studentised(signs(m), wrong, row))

    def n_below(self, place, delta):
        """Of how many sign vectors the maximum is below the model's own difference."""
        near = self.drops[place] < 2 * norm.isf(0.01 * delta / self.n)
        maxima = np.maximum(self.sums[place][near].max(axis=0), 0)
        return int((maxima < norm.isf(self.p_values[place])).sum())

    def best_set(self, delta):
        """Which models may be the best, and which by Bonferroni's level."""
        proved = self.p_values >= delta / (self.n - 1)
        may_be = proved.copy()
        for place in np.flatnonzero(self.enough & (self.p_values < delta)):
            may_be[place] &= self.n_below(place, delta) < support.rank(L, delta * 0.98)
        return may_be, proved


@pytest.mark.parametrize(
    ("seed", "k"), [(1, 8), pytest.param(2, 11, marks=pytest.mark.thorough), (3, 3)]
)
def test_the_best_set_is_that_of_all_pairs(seed, k):
    """At delta .1 and at every delta where a model is just left out or just stays.

    Few models are two and copies of the second: there its level is that of one comparison.
    """
    rng, m = np.random.default_rng(seed), 400
    wrong = simulated(rng, m, np.linspace(0.2, 0.35, k), 0.3)
    if k == 3:
        row = np.arange(m)
        wrong[0] = row < 120
        wrong[1:] = wrong[0] ^ ((row < 43) | (row >= 120) & (row < 177))  # 57 against 43
    pairs, n_sizes = AllPairs(wrong), set()
    for delta in edges(pairs.best_set):
        may_be, proved = pairs.best_set(delta)
        found = pool(m, wrong, delta=delta).best_set()
        assert_array_equal(found.may_be_best, may_be, err_msg=str(delta))
        assert_array_equal(found.bonferroni_may_be_best, proved, err_msg=str(delta))
        assert found.best == wrong.sum(axis=1).argmin() and found.n_by_bonferroni == 0
        n_sizes.add((int(may_be.sum()), int(proved.sum())))
    assert len(n_sizes) > (1 if k == 3 else 4) and any(a < b for a, b in n_sizes)


@pytest.fixture(scope="module")
def pairs(pool_of_40):
    return AllPairs(pool_of_40[2][3:23])


def test_rows_for_which_there_is_no_room_are_judged_by_bonferroni(pool_of_40, pairs, monkeypatch):
    """Rows of 80 bytes, of which 11 fit."""
    y_true, Y_pred, _ = pool_of_40
    may_be, proved = pairs.best_set(DELTA)
    monkeypatch.setattr(best, "FRONT_BYTES", 900)
    found = pool(y_true, Y_pred[3:23]).best_set()
    assert_array_equal(found.bonferroni_may_be_best, proved)
    assert not (may_be & ~found.may_be_best).any()
    assert not (found.may_be_best & ~proved).any()
    n_more = int((found.may_be_best & ~may_be).sum())
    assert n_more <= found.n_by_bonferroni > 0


@pytest.mark.thorough
@pytest.mark.parametrize("most", ["MOST_CANDIDATES", "MOST_PAIRS"])
def test_candidates_for_which_time_is_short_are_judged_by_bonferroni(
    pool_of_40, pairs, monkeypatch, most
):
    """So many candidates as it takes for the last to be left out; 16 candidates."""
    y_true, Y_pred, wrong = pool_of_40
    may_be, expected = pairs.best_set(DELTA)
    candidates = np.flatnonzero(expected & pairs.enough & (pairs.p_values < DELTA))
    n_errors = wrong[3:23].sum(axis=1)
    ordered = candidates[np.argsort(n_errors[candidates], kind="stable")]
    n = 16 if most == "MOST_PAIRS" else 1 + int(np.argmin(may_be[ordered]))
    monkeypatch.setattr(best, most, 0 if most == "MOST_PAIRS" else n)
    found = pool(y_true, Y_pred[3:23]).best_set()
    expected[ordered[:n]] = may_be[ordered[:n]]
    assert_array_equal(found.may_be_best, expected)
    assert found.n_by_bonferroni == max(len(ordered) - n, 0)
    assert most == "MOST_PAIRS" or not may_be[ordered[n - 1]]


def test_the_front_holds_the_best_models_that_fit(pool_of_40, monkeypatch):
    """What is left out is as bad as `capped` says, or proved worse than the best one."""
    _, _, wrong = pool_of_40
    monkeypatch.setattr(best, "FRONT_BYTES", 900)
    judge, means = Judge(Losses(M), None), wrong.mean(axis=1)
    made = best.Front(judge, DELTA)
    order = np.argsort(-means, kind="stable")  # the best ones come last
    for first in range(0, K, 7):
        rows = pack_losses(wrong[order[first : first + 7]]).words
        made.add(rows, moments_of(rows, M), first)
    before = made.copy()
    made.prune()
    numbers = order[np.concatenate([numbers for numbers, _ in made.parts])]
    assert sum(rows.nbytes for _, rows in made.parts) <= 900 and len(numbers) > 5
    assert means[numbers].max() < made.capped < 1
    left_out = np.setdiff1d(np.arange(K), numbers)
    for place in left_out[means[left_out] < made.capped]:
        p_values = Against(wrong[[order[made.best]]], wrong[place]).p_values
        assert p_values[0] < DELTA / best.NO_POOL_HAS
    beyond = wrong[left_out[np.argmin(np.abs(means[left_out] - made.capped))]][np.newaxis]
    assert beyond.mean() >= made.capped
    words = pack_losses(beyond).words
    made.add(words, moments_of(words, M), K)
    assert np.concatenate([numbers for numbers, _ in made.parts]).max() < K
    assert len(before.parts) >= len(made.parts) and made.best == K - 1
    ((best_row,), *_) = [rows for rows in made.best_rows(1) if len(rows)]
    assert_array_equal(best_row, made.row)


def test_models_with_few_rows_that_differ_have_their_share_of_delta():
    """One of 50 has 6 rows in its favour: .016, which is below delta and above its 50th part."""
    rng = np.random.default_rng(1)
    base = rng.random(M) < 0.3
    few = base.copy()
    few[np.flatnonzero(base)[:6]] = False
    made = pool(M, np.vstack([few, rng.random((49, M)) < 0.4]), baseline=base)
    assert made.intervals().by_bootstrap.all() and not made.better().is_better.any()
    assert pool(M, few, baseline=base).better().is_better.all()


# ---- however they are added ----------------------------------------------------------------------


def all_columns(made):
    return made.report().columns()


def assert_same(made, expected):
    """A pool states the columns that another has stated."""
    found = all_columns(made)
    assert found.keys() == expected.keys()
    for name, column in found.items():
        assert_array_equal(column, expected[name], err_msg=name)


def test_nothing_depends_on_how_models_are_added(pool_of_40, tmp_path):
    y_true, Y_pred, wrong = pool_of_40
    np.save(tmp_path / "wrong.npy", wrong)
    np.save(tmp_path / "words.npy", pack_losses(wrong).words)
    mapped = np.load(tmp_path / "wrong.npy", mmap_mode="r")
    words = np.load(tmp_path / "words.npy", mmap_mode="r")
    expected = all_columns(pool(y_true, Y_pred, baseline=Y_pred[31]))
    ways = {
        "losses": [wrong],
        "one by one": list(wrong),
        "blocks": [wrong[:7], wrong[7:8], wrong[8:]],
        "floats of 0 and 1 as ints": [wrong.astype(np.int64).tolist()],
        "packed": [pack_losses(wrong)],
        "packed rows": [pack_losses(wrong[:39]), pack_losses(wrong[39])],
        "a memory map": [mapped],
        "packed in a memory map": [PackedLosses(words, M)],
        "a file": [tmp_path / "wrong.npy"],
    }
    for name, blocks in ways.items():
        made = pool(M, *blocks, baseline=wrong[31])
        assert made.n_models == K, name
        assert_same(made, expected)


def test_models_may_be_added_between_questions(pool_of_40):
    y_true, Y_pred, _ = pool_of_40
    first = Y_pred[:20].copy()
    made = pool(y_true, first, baseline=Y_pred[31])
    all_columns(made)
    first[:] = y_true  # what is in memory is the pool's own
    made.add(Y_pred[20:])
    assert_same(made, all_columns(pool(y_true, Y_pred, baseline=Y_pred[31])))


def test_blocks_may_come_in_one_buffer(pool_of_40):
    _, _, wrong = pool_of_40
    words = pack_losses(wrong).words

    def blocks():
        buffer = np.empty_like(words[:1])
        for row in words:
            buffer[:] = row
            yield PackedLosses(buffer, M)

    assert_same(pool(M, blocks), all_columns(pool(M, wrong)))


@pytest.mark.parametrize("binary", [True, False])
def test_rows_are_read_twice_at_most(pool_of_40, binary):
    """Once as they are added, and once for all statements, whatever the losses are."""
    _, _, wrong = pool_of_40
    losses = wrong if binary else (0.5 * wrong + 0.25).astype(np.float32)
    n_reads = []
    blocks = [losses[:25], losses[25:]]
    made = pool(M, lambda: n_reads.append(1) or iter(blocks), baseline=losses[31])
    columns = all_columns(made)
    assert len(n_reads) == 2
    for n_before, ask in enumerate((made.intervals, made.better, made.best_set)):
        del n_reads[:]
        for name, column in ask().columns().items():
            assert_array_equal(column, columns[name])
        assert len(n_reads) <= 1, n_before
    assert_same(pool(M, losses, baseline=losses[31]), columns)


def test_rows_that_are_gone_when_they_are_read_again_are_an_error():
    blocks = iter([np.random.default_rng(3).random((5, M)) for _ in range(2)])
    made = pool(M, lambda: blocks)
    with pytest.raises(ValueError, match="Y_pred must have the same rows each time .* got 0"):
        made.intervals()


@pytest.mark.parametrize("blocks", [object, lambda: 3, lambda: None])
def test_a_callable_that_returns_no_blocks_is_an_error(blocks):
    made = pool(M)
    with pytest.raises(TypeError, match="Y_pred must return blocks of rows, got "):
        made.add(blocks)
    assert made.n_models == 0


def test_counted_and_real_valued_losses_in_one_pool(pool_of_40):
    """Each model has the limits of its own kind, whatever the others are."""
    _, _, wrong = pool_of_40
    made = pool(M, wrong[3:20], wrong[20:].astype(np.float32), baseline=wrong[31])
    counted = pool(M, wrong[3:], baseline=wrong[31])
    found, expected = all_columns(made), all_columns(counted)
    for name in ("value", "low", "high", "bonferroni_low", "gain", "gain_low"):
        assert_allclose(found[name][:17], expected[name][:17], rtol=1e-12)
    assert (found["low"][17:] != expected["low"][17:]).all()
    assert_allclose(found["low"], expected["low"], atol=0.02)
    assert found["better"].sum() > 10 and found["may_be_best"].sum() > 3


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda made: pickle.loads(pickle.dumps(made))]
)
def test_a_copy_is_a_pool_of_its_own(pool_of_40, tmp_path, copied):
    y_true, Y_pred, wrong = pool_of_40
    np.save(tmp_path / "wrong.npy", wrong[:10])
    made = pool(M, tmp_path / "wrong.npy", wrong[10:20], baseline=wrong[31])
    expected = all_columns(made)
    other = copied(made)
    other.add(wrong[20:])
    assert_same(made, expected)
    assert_same(other, all_columns(pool(M, wrong, baseline=wrong[31])))


def test_names(pool_of_40):
    y_true, Y_pred, _ = pool_of_40
    made = ModelPool(y_true, seed=SEED)
    made.add(Y_pred[:2])
    made.add(Y_pred[2:4], names=["svm", ("tree", 3)])
    assert list(made.names) == [0, 1, "svm", ("tree", 3)]
    for names, message in [
        (["svm", "a"], "names must be different ones, got 'svm' twice"),
        (["a"], "names must be one a model, 2, got 1"),
        ("ab", "names must be a sequence, one a model, got 'ab'"),
        (["a", [1]], r"names must be hashable, got \[1\]"),
    ]:
        with pytest.raises((TypeError, ValueError), match=message):
            made.add(Y_pred[4:6], names=names)
    made.add(Y_pred[:0])
    assert made.n_models == 4


def test_a_critical_value_is_the_rank_th_maximum():
    """Of l in order the ceil((1 - delta)(l + 1))-th; none where that is more than l."""
    maxima = np.array([3.0, 9, 1, 7, 5, 2, 8, 4, 6])
    found = [critical_value(maxima, delta) for delta in (0.95, 0.5, 0.21, 0.2, 0.1, 0.099)]
    assert found == [1, 5, 8, 8, 9, math.inf]
    assert [vectors_needed(delta) for delta in (0.01, 0.009, 1e-3)] == [1000, 1112, 10_000]


@pytest.mark.parametrize("n_models", [1, 7, 10**6])
# far out; too few vectors for any critical value
@pytest.mark.parametrize("maxima", [np.full(1000, 9.0), np.full(4, 1.0)])
def test_no_level_is_below_bonferronis(maxima, n_models):
    far_out = norm.sf(9.0) if len(maxima) == 1000 else 0.0
    assert one_sided_level(maxima, DELTA, n_models) == pytest.approx(max(DELTA / n_models, far_out))


# ---- exact tests ---------------------------------------------------------------------------------


def test_the_sign_test_is_the_binomial_test():
    plus, minus = np.divmod(np.arange(12 * 12), 12)
    expected = [
        binomtest(int(a), int(a + b), alternative="greater").pvalue if a + b else 1.0
        for a, b in zip(plus, minus, strict=True)
    ]
    found = sign_test(plus, minus)
    assert_allclose(found, expected, rtol=1e-8)
    assert (found >= np.array(expected) * (1 - 1e-12)).all()
    assert sign_test(3000, 2000) == pytest.approx(binomtest(3000, 5000, 0.5, "greater").pvalue)


@pytest.mark.parametrize(
    ("p_values", "rejected"),
    [
        ([], []),
        ([0.2], [0]),
        ([0.1], [1]),
        ([0.04, 0.03, 0.09], [1, 1, 1]),  # .03 <= .1/3, .04 <= .1/2, .09 <= .1
        ([0.04, 0.034, 0.09], [0, 0, 0]),  # the smallest is above .1/3, and ends it
        ([0.01, 0.06, 0.09], [1, 0, 0]),  # .09 would do, but .06 has ended it
        ([0.05, 0.01, 0.05, 0.5], [0, 1, 0, 0]),
        ([0.03, 0.01, 0.03, 0.5], [1, 1, 1, 0]),
    ],
)
def test_holm(p_values, rejected):
    assert holm(np.array(p_values), 0.1).tolist() == [bool(one) for one in rejected]


# ---- odd pools -----------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [1, 2])
def test_equal_models_are_one(k):
    """As many as they are, no bootstrap tells them apart: the level is that of a single model."""
    row = np.arange(M) % 4 == 0
    made = pool(M, np.array([row] * k), baseline=np.arange(M) % 3 == 0)
    assert made.intervals().as_if == pytest.approx(1, rel=0.3)
    made.add(row)
    best = made.best_set()
    assert best.may_be_best.all() and best.bonferroni_may_be_best.all() and best.best == 0
    assert made.better().is_better.all()


def test_models_without_errors_or_right_rows():
    rows = np.array([np.zeros(M), np.ones(M), np.arange(M) < 4], np.uint8)
    made = pool(M, rows, baseline=np.zeros(M, np.uint8))
    found = made.intervals()
    assert not found.by_bootstrap.any()
    assert found.as_if == 3 and found.level == DELTA / 3
    assert_array_equal(found.lows, found.bonferroni_lows)
    assert_array_equal(found.highs, found.bonferroni_highs)
    assert made.better().better_names == []
    assert made.best_set().best_names == [0, 2]
    assert "3 models" in str(made.report())


def test_accuracy_is_one_less_the_error(pool_of_40):
    y_true, Y_pred, _ = pool_of_40
    error = pool(y_true, Y_pred, baseline=Y_pred[31])
    other = support.holdout_of(y_true, metric="accuracy")
    accuracy = pool(other, Y_pred, baseline=Y_pred[31])
    assert_allclose(accuracy.intervals().lows, 1 - error.intervals().highs)
    assert_allclose(accuracy.intervals().values, 1 - error.intervals().values)
    assert_array_equal(accuracy.better().gain_lows, error.better().gain_lows)
    assert_array_equal(accuracy.best_set().may_be_best, error.best_set().may_be_best)
    assert accuracy.report().ranking() == error.report().ranking()
    assert accuracy.baseline_value == pytest.approx(1 - error.baseline_value)


@pytest.mark.parametrize("metric", ["neg_brier_score", "neg_log_loss"])
def test_real_valued_losses(metric):
    rng, m = np.random.default_rng(3), 3000
    y_true = rng.integers(0, 2, m)
    noise = np.linspace(0.5, 2.0, 12)[:, np.newaxis]
    logits = (2 * y_true - 1) * 1.5 + noise * rng.normal(size=m) + 0.3 * rng.normal(size=(12, m))
    probabilities = 1 / (1 + np.exp(-logits))
    options = {"clip": 0.01} if metric == "neg_log_loss" else {}
    holdout = support.holdout_of(y_true, metric=metric, **options)
    made = pool(holdout, probabilities, baseline=probabilities[8])
    found, better, best = made.intervals(), made.better(), made.best_set()
    assert found.by_bootstrap.all()
    assert (found.lows < found.values).all() and (found.values < found.highs).all()
    assert (found.bonferroni_lows <= found.lows).all()
    assert (found.highs <= found.bonferroni_highs).all()
    assert found.as_if < 10
    p = np.where(y_true, probabilities, 1 - probabilities)  # that of what came
    scores = -((1 - p) ** 2) if metric == "neg_brier_score" else np.log(np.maximum(p, 0.01))
    assert_allclose(found.values, scores.mean(axis=1), atol=1e-6)
    assert_allclose(better.gains, scores.mean(axis=1) - scores[8].mean(), atol=1e-6)
    assert made.baseline_value == pytest.approx(scores[8].mean(), abs=1e-6)
    assert best.may_be_best[best.best] and not best.may_be_best.all()
    assert best.best == found.values.argmax()
    assert 0 < better.is_better.sum() < 9 and not better.is_better[8:].any()
    assert (better.gain_lows[better.is_better] <= better.gains[better.is_better]).all()
    assert np.isnan(better.gain_lows[~better.is_better]).all()
    assert made.report().ranking(1) == [best.best]


@pytest.mark.parametrize("weighted", [False, True])
def test_groups_of_one_weight_are_units(pool_of_40, weighted):
    """A pool of groups is the pool of their mean losses, however the rows lie and are given."""
    y_true, Y_pred, wrong = pool_of_40
    rng, options = np.random.default_rng(3), {}
    groups = rng.permutation(np.repeat(np.arange(150), 4))
    if weighted:  # groups of all sizes, which weigh alike
        groups = np.concatenate([np.arange(200), rng.integers(0, 200, M - 200)])
        options = {"sample_weight": 7 / np.bincount(groups)[groups]}
    n = groups.max() + 1
    means = np.array([np.bincount(groups, row, n) for row in wrong]) / np.bincount(groups)
    expected = all_columns(pool(n, means, baseline=means[31]))
    judged = Losses(M, groups=groups, **options)
    holdout = support.holdout_of(y_true, groups=groups, **options)
    made = {
        "losses": pool(judged, wrong, baseline=wrong[31]),
        "packed": pool(judged, pack_losses(wrong), baseline=pack_losses(wrong[31])),
        "predictions": pool(holdout, Y_pred, baseline=Y_pred[31]),
    }
    for name, each in made.items():
        assert (each.n_samples, each.n_units, each.n_vectors) == (M, n, L)
        for column, values in all_columns(each).items():
            assert_allclose(values, expected[column], rtol=1e-6, err_msg=f"{name}, {column}")
        assert f"on 600 held-out rows in {n} groups" in str(each.report())
        assert "independent groups of held-out examples" in each.guarantee
    made["losses"].add(wrong[:0])
    whole = support.holdout_of(y_true, metric="accuracy", groups=groups, **options)
    assert_allclose(pool(whole, Y_pred).intervals().lows, 1 - expected["high"], rtol=1e-6)


def test_exact_tests_of_real_valued_gains_are_bets_made_for_delta():
    """Holm's step-down on them, at deltas between which it changes; other bets differ at some."""
    rng, m = np.random.default_rng(4), 200
    losses = np.clip(np.linspace(0.1, 0.5, 7)[:, None] + rng.uniform(-0.4, 0.4, (7, m)), 0, 1)
    losses = np.round(losses * 2**24) / 2**24
    for place, n in enumerate((12, 9, 7)):  # which differ on few rows
        losses[place] = np.where(np.arange(m) < n, 0, losses[6])
    halves, n_others, n_open = 0.5 + (losses[6] - losses[:6]) / 2, 0, 0
    for delta in np.geomspace(0.011, 0.6, 12):
        found = ModelPool(m, delta=delta, seed=SEED, baseline=losses[6])
        found.add(losses[:6])
        nats = -math.log(delta), 1.0
        mine, others = (
            holm(np.array([betting_p_value(row, 0.5, one) for row in halves]), delta)
            for one in nats
        )
        better = found.better()
        assert_array_equal(better.bonferroni_is_better, mine)
        assert_array_equal(np.isnan(better.gain_lows), ~better.is_better)
        n_others += not np.array_equal(mine, others)
        p_values = np.array([betting_p_value(row, 0.5, nats[0]) for row in halves])
        n_open += ((p_values <= delta) & ~better.is_better).sum()
    assert n_others > 0 and n_open > 0


def test_a_model_that_always_loses_alike_has_no_part_in_the_bootstrap():
    rng = np.random.default_rng(4)
    losses = np.vstack([np.full(M, 0.1), rng.random((3, M))]).astype(np.float32)
    found = pool(M, losses).intervals()
    assert found.by_bootstrap.tolist() == [False, True, True, True]
    assert DELTA / 4 <= found.level < DELTA
    assert found.lows[0] < 0.1 < found.highs[0]


def test_costs_whose_least_is_not_zero(pool_of_40):
    y_true, Y_pred, _ = pool_of_40
    costs = np.array([[0.5, 2.0], [5.0, 1.0]])
    holdout = support.holdout_of(y_true, metric="mean_cost", costs=costs.tolist())
    made = pool(holdout, Y_pred, baseline=Y_pred[31])
    found, expected = made.intervals(), costs[y_true, Y_pred]
    assert_allclose(found.values, expected.mean(axis=1), rtol=1e-6)
    low, high = betting_interval((expected[7] - 0.5) / 4.5, math.log(2 * K / DELTA))
    assert found.bonferroni_lows[7] == pytest.approx(0.5 + 4.5 * low, rel=1e-5)
    assert found.bonferroni_highs[7] == pytest.approx(0.5 + 4.5 * high, rel=1e-5)
    better, gains = made.better(), expected[31] - expected
    assert_allclose(better.gains, gains.mean(axis=1), atol=1e-5)
    for place in np.flatnonzero(better.is_better)[-3:]:
        nats = -math.log(better.level if support.enough(gains[[place]])[0] else DELTA / K)
        least, _ = betting_interval(0.5 + gains[place] / 9, nats)
        assert better.gain_lows[place] == pytest.approx(4.5 * (2 * least - 1), rel=1e-4)
    assert better.is_better.sum() > 2


# ---- bad input -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"delta": 0}, "delta must be in"),
        ({"n_vectors": 999}, "n_vectors must be at least 1000 with delta = 0.1, got 999"),
        ({"delta": 1e-3}, "n_vectors must be at least 10000 with delta = 0.001, got 1000"),
        ({"seed": -1}, "seed must be in"),
        ({"baseline": [0, 1]}, "baseline must have length 4, got shape"),
        ({"baseline": [0, 1, 1, 7]}, "baseline must hold only known classes, got 7"),
    ],
)
def test_bad_arguments(options, message):
    with pytest.raises(ValueError, match=message):
        ModelPool([0, 1, 1, 0], **options)


@pytest.mark.parametrize("metric", ["roc_auc", "f1", "balanced_accuracy"])
def test_metrics_that_are_no_means_are_refused(metric):
    with pytest.raises(ValueError, match="metric must be a mean of losses in a pool, error"):
        ModelPool(support.holdout_of([0, 1, 1, 0], metric=metric))


@pytest.mark.parametrize(
    "options", [{"sample_weight": [1, 2, 3, 4]}, {"groups": [0, 0, 0, 1]}], ids=["rows", "groups"]
)
def test_units_of_different_weight_are_refused(options):
    with pytest.raises(ValueError, match=r"must give every group the same weight.*1 / \(rows of"):
        ModelPool(Losses(4, **options))


def test_bad_rows_change_nothing(pool_of_40):
    y_true, Y_pred, _ = pool_of_40
    made = pool(y_true, Y_pred, baseline=Y_pred[31])
    expected = all_columns(made)
    spoilt = Y_pred[::-1].copy()
    spoilt[30, 7] = 3
    for bad, message in [
        (spoilt, "got 3 at row 30, sample 7"),
        (Y_pred[:, 1:], "Y_pred must have length 600"),
        (np.full((2, M), "a"), "Y_pred must be numbers"),
    ]:
        with pytest.raises((ValueError, TypeError), match=message):
            made.add(bad)
    with pytest.raises(ValueError, match="names must be one a model"):
        made.add(spoilt[:2], names=["a"])
    assert_same(made, expected)


@pytest.mark.parametrize("n_good", [0, 1, 2, 4])
def test_a_bad_block_after_good_ones_changes_nothing(pool_of_40, n_good):
    """Its rows are counted from the first row of all blocks, and nothing of these is kept."""
    y_true, Y_pred, wrong = pool_of_40
    good = np.zeros((2, M), np.uint8)  # better than all that is there
    bad = np.full((2, M), 3)
    blocks = [good] * n_good + [bad]
    made = pool(M, wrong, baseline=wrong[31])
    expected = all_columns(made)
    counting = f".*counting rows from row {2 * n_good} on" if n_good else ""
    with pytest.raises(ValueError, match=f"got 3.*row 0{counting}") as error:
        made.add(lambda: iter(blocks))
    assert ("counting" in str(error.value)) == (n_good > 0)
    assert made.n_models == K
    assert_same(made, expected)


def test_an_empty_pool_says_so(pool_of_40):
    y_true, Y_pred, _ = pool_of_40
    made = ModelPool(y_true, baseline=Y_pred[0])
    for ask in (made.intervals, made.better, made.best_set, made.report):
        with pytest.raises(ValueError, match="no model was added"):
            ask()
    with pytest.raises(ValueError, match="baseline must be given to the pool"):
        pool(y_true, Y_pred).better()


def test_a_pool_shows_no_labels(pool_of_40):
    y_true, Y_pred, _ = pool_of_40
    made = pool(y_true, Y_pred)
    assert repr(made) == "ModelPool(Holdout(n_samples=600), 40 models, delta=0.1)"
    assert "0.9" in made.guarantee and "asymptotic" in made.guarantee


# ---- the report ----------------------------------------------------------------------------------


def test_the_report(pool_of_40):
    pytest.importorskip("pandas")
    y_true, Y_pred, wrong = pool_of_40
    made = pool(y_true, Y_pred, baseline=Y_pred[31])
    report = made.report()
    n_best = int(report.best_set.may_be_best.sum())
    assert f"among {n_best} models, with probability about 0.9" in str(report)
    assert "better than the baseline" in str(report) and "asymptotic" in str(report)
    frame = report.to_frame()
    assert frame.index[0] == wrong.sum(axis=1).argmin()
    assert (frame["value"].diff().dropna() >= 0).all()
    assert int(frame["may_be_best"].sum()) == n_best
    assert made.intervals().to_frame().index.tolist() == list(range(K))
    assert '"may_be_best": [' in report.to_json()


@pytest.mark.thorough
def test_the_picture(pool_of_40):
    pytest.importorskip("matplotlib")
    y_true, Y_pred, _ = pool_of_40
    report = pool(y_true, Y_pred, baseline=Y_pred[31]).report()
    assert report.plot().axes[0].get_ylabel() == "error"
    page = report.to_html()
    assert "<img" in page and "<td>yes</td>" in page and "nan" not in report.to_markdown()
    assert page.count("<tr>") == 11 and "<th>may_be_best</th>" in page and "bonferroni" not in page


# ---- statistics ----------------------------------------------------------------------------------


def simulated(rng, n_samples, truths, own=0.4):
    """Alike models with these errors: a row is hard for all of them."""
    hard = rng.random(n_samples)
    return (hard + own * rng.random((len(truths), n_samples))) % 1 < truths[:, np.newaxis]


@pytest.mark.slow
@pytest.mark.parametrize("n_samples", [1000, 4000])
def test_every_statement_holds_as_often_as_it_says(n_samples):
    """300 pools, seeds 0 to 299: of each statement at most 50 fail; 1 e-4 would if it held .9.

    With a failure in 12 of a hundred, which asymptotics allow, one program in 250 would fail here.
    """
    truths = np.sort(np.random.default_rng(1).uniform(0.08, 0.2, 60))
    failures = np.zeros(4, int)
    for seed in range(300):
        rng = np.random.default_rng(seed)
        base = rng.random(n_samples) < truths[20]
        wrong = simulated(rng, n_samples, truths)
        made = ModelPool(n_samples, delta=0.1, seed=seed, baseline=base)
        made.add(wrong)
        found, better, best = made.intervals(), made.better(), made.best_set()
        gains = truths[20] - truths
        failures += [
            bool(((truths < found.lows) | (found.highs < truths)).any()),
            bool(better.is_better[20:].any()),
            bool((better.gain_lows > gains)[better.is_better].any()),
            not best.may_be_best[0],
        ]
    assert (failures <= 50).all(), failures
