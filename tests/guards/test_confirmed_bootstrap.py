"""Limits of finalists by the bootstrap: plain NumPy's, a pool's, and only where they are asked."""

import math
from itertools import combinations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from support import enough, holdout_of, level

from radabound_fast import ConfirmedSearch, Losses, ModelPool
from radabound_fast.bounds import betting_interval, binomial_interval, paired_interval
from radabound_fast.rows import reference

M, K, DELTA, SEED = 1200, 7, 0.1, 5
ROWS = np.arange(M) % 2 == 0
N = M // 2


def made():
    """Losses of alike models, and a baseline's.

    One is right on 39 rows, one differs from the baseline on 39, and two from each other.
    """
    rng = np.random.default_rng(8)
    hard = rng.random(M)
    wrong = (hard + 0.15 * rng.random((K + 1, M))) % 1 < np.linspace(0.12, 0.3, K + 1)[:, None]
    some = ROWS & (np.cumsum(ROWS) <= 39)
    wrong[1], wrong[2], wrong[3] = wrong[0] ^ some, ~some, wrong[K] ^ some
    return wrong[:K], wrong[K]


def nats_of(differences, able):
    """Of both sides together, by the maxima of all that have 40 rows of either kind."""
    signs = reference.signs(SEED, 1000, differences.shape[1])
    maxima = np.abs(reference.studentised(signs, differences[able], None)).max(axis=0)
    return -math.log(level(maxima, DELTA / 3 * able.mean(), 2 * able.sum()))


def check_limits(found, row, nats):
    """Those of a gain, row by row; None where there are none."""
    if nats is None:
        assert found == (None, None)
        return
    expected = paired_interval(int((row > 0).sum()), int((row < 0).sum()), N, nats)
    assert_allclose(found, expected, atol=1e-7)


def test_they_are_the_proved_kind_at_the_level_of_plain_numpy():
    wrong, base = (losses[..., ROWS].astype(int) for losses in made())
    y = np.random.default_rng(1).integers(0, 2, M)
    rows = ConfirmedSearch(M, delta=DELTA, seed=SEED).confirmation_rows
    predictions = np.tile(y, (K + 1, 1))
    predictions[:, rows] ^= np.vstack([wrong, base])
    mine = {f"m{i}": y_pred for i, y_pred in enumerate(predictions[:K])}
    options = {"delta": DELTA, "seed": SEED, "baseline": predictions[K], "pairs": True}
    answers = ConfirmedSearch(y, **options, limits="bootstrap").confirm(mine)
    plain = ConfirmedSearch(y, **options).confirm(mine)

    able = enough(wrong)
    assert_array_equal(np.flatnonzero(~able), [2])
    nats = nats_of(wrong, able)
    for place, (answer, other) in enumerate(zip(answers, plain, strict=True)):
        assert (answer.low, answer.high, answer.nats) == (other.low, other.high, other.nats)
        if not able[place]:
            assert answer.asymptotic_low is answer.asymptotic_nats is None
            continue
        assert answer.asymptotic_nats == pytest.approx(nats, rel=1e-9)
        expected = binomial_interval(int(wrong[place].sum()), N, nats)
        assert_allclose((answer.asymptotic_low, answer.asymptotic_high), expected, rtol=1e-8)
        assert answer.low < answer.asymptotic_low < answer.value < answer.asymptotic_high

    gains = base - wrong
    able = enough(gains)
    assert_array_equal(np.flatnonzero(~able), [3])
    nats = nats_of(gains, able)
    for row, has_limits, answer in zip(gains, able, answers, strict=True):
        found = answer.asymptotic_gain_low, answer.asymptotic_gain_high
        check_limits(found, row, nats if has_limits else None)

    pairs = list(combinations(range(K), 2))
    differences = np.array([wrong[other] - wrong[one] for one, other in pairs])
    able = enough(differences)
    nats = nats_of(differences, able)
    for (one, other), row, has_limits in zip(pairs, differences, able, strict=True):
        found = answers.compare(f"m{one}", f"m{other}")
        assert found[:4] == plain.compare(f"m{one}", f"m{other}")[:4]
        check_limits(found[4:], row, nats if has_limits else None)
        assert answers.compare(f"m{other}", f"m{one}").reversed() == found
    assert 0 < able.sum() < len(pairs)


def test_values_are_those_of_a_pool_of_the_same_rows_and_signs():
    wrong, _ = made()
    search = ConfirmedSearch(M, delta=DELTA, seed=SEED, limits="bootstrap")
    answers = search.confirm({str(i): row for i, row in enumerate(wrong)})
    rows = search.confirmation_rows
    pool = ModelPool(int(rows.sum()), delta=DELTA, seed=SEED)
    pool.add(wrong[:, rows])
    found = pool.intervals()
    for place, answer in enumerate(answers):
        assert (answer.asymptotic_low is not None) == found.by_bootstrap[place]
        low, high = answer.asymptotic_low, answer.asymptotic_high
        expected = found.lows[place], found.highs[place]
        assert_allclose(expected, (answer.low, answer.high) if low is None else (low, high))
    as_if = f"as if they were {found.as_if:.3g} independent ones"
    assert as_if in str(search.report()) and "which is asymptotic" in str(search.report())
    assert "not proved at any number of rows" in search.guarantee
    plain = ConfirmedSearch(M, delta=DELTA, seed=SEED)
    assert "symptotic" not in plain.guarantee
    assert plain.parameters | {"limits": "bootstrap"} == search.parameters


def test_real_valued_losses_and_those_that_are_both():
    rng = np.random.default_rng(3)
    base = rng.random(M)
    losses = {str(i): 0.8 * base + 0.2 * rng.random(M) for i in range(4)}
    losses["binary"] = base < 0.3
    search = ConfirmedSearch(Losses(M), delta=DELTA, rows=ROWS, limits="bootstrap")
    answers = search.confirm(losses)
    nats = answers["0"].asymptotic_nats
    assert math.log(2 / DELTA) < nats < math.log(2 * 5 / DELTA)
    for answer in answers:
        limits = answer.asymptotic_low, answer.asymptotic_high
        x = losses[answer.name][ROWS]
        if answer.name == "binary":
            assert_allclose(limits, binomial_interval(int(x.sum()), N, nats))
        else:
            assert_allclose(limits, betting_interval(x, nats), rtol=1e-6)
    y = rng.integers(0, 2, M)
    chances = {"a": np.clip(0.7 * y + 0.3 * base, 0, 1), "b": base}
    holdout = holdout_of(y, metric="neg_brier_score")
    search = ConfirmedSearch(
        holdout, delta=DELTA, rows=ROWS, limits="bootstrap", baseline=0.5 * base, pairs=True
    )
    for answer in search.confirm(chances):
        assert answer.low <= answer.asymptotic_low < answer.value < answer.asymptotic_high
        assert answer.gain_low <= answer.asymptotic_gain_low < answer.gain
    assert search.compare("a", "b").asymptotic_low is not None


def test_a_table_has_finalists_with_and_without_them():
    pytest.importorskip("pandas")
    wrong, _ = made()
    search = ConfirmedSearch(M, delta=DELTA, seed=SEED, limits="bootstrap")
    few = np.arange(M) < 30
    search.confirm({"few": few, "many": wrong[0], "some": wrong[1]})
    report = search.report()
    frame = report.to_frame()
    assert frame["asymptotic_low"].isna().tolist() == [True, False, False]
    assert "asymptotic_low" in report.to_html() and "| few |" in report.to_markdown()
    assert "asymptotic" not in str(report)  # the best has none


@pytest.mark.parametrize("k", [1, 2])
def test_one_finalist_or_none_with_enough_errors(k):
    search = ConfirmedSearch(M, delta=DELTA, rows=ROWS, limits="bootstrap", pairs=False)
    few = {str(i): np.arange(M) == i for i in range(k)}
    assert all(answer.asymptotic_nats is None for answer in search.confirm(few))
    search = ConfirmedSearch(M, delta=DELTA, rows=ROWS, limits="bootstrap")
    answer = search.confirm(np.arange(M) % 3 == 0)
    assert answer.asymptotic_nats == pytest.approx(math.log(2 / DELTA), abs=0.3)


@pytest.mark.parametrize(
    ("judged", "options", "message"),
    [
        (M, {"n_batches": 2}, "n_batches must be 1 with limits='bootstrap', got 2"),
        (M, {"n_batches": None}, "n_batches must be 1 with limits='bootstrap', got None"),
        ("roc_auc", {}, "metric must be a mean of losses with limits='bootstrap', error"),
        ("error", {"stratify": True}, "stratify must be False with limits='bootstrap'"),
        ("groups", {}, "sample_weight and groups must be left out with limits='bootstrap'"),
        (M, {"limits": "normal"}, "limits must be one of"),
        (M, {"delta": 1e-4}, "delta must be at least 0.001 with limits='bootstrap', .* got 0.0001"),
    ],
)
def test_where_they_would_not_hold_they_are_refused(judged, options, message):
    y = np.arange(M) % 2
    if judged == "groups":
        judged = holdout_of(y, groups=np.arange(M) // 3)
    elif judged != M:
        judged = holdout_of(y, metric=judged)
    with pytest.raises(ValueError, match=message):
        ConfirmedSearch(judged, **{"delta": DELTA, "limits": "bootstrap"} | options)
    assert ConfirmedSearch(M, delta=0.001, limits="bootstrap").delta == 0.001


@pytest.mark.slow
def test_they_hold_at_once_as_often_as_they_say():
    """400 searches, seeds 0 to 399, 20 finalists: values, gains and pairs fail in at most 62.

    A family that fails in a tenth has more than 62 once in 4,500 programs.
    """
    n, truths = 1000, np.linspace(0.1, 0.2, 21)
    failures = np.zeros(3, int)
    for seed in range(400):
        rng = np.random.default_rng(seed)
        hard = rng.random(n)
        wrong = (hard + 0.3 * rng.random((21, n))) % 1 < truths[:, np.newaxis]
        y = rng.integers(0, 2, n)
        search = ConfirmedSearch(
            y, delta=0.3, confirm_share=1.0, seed=seed, baseline=y ^ wrong[20], pairs=True,
            limits="bootstrap",
        )  # fmt: skip
        answers = search.confirm({str(i): y ^ wrong[i] for i in range(20)})
        pairs = [
            (answers.compare(str(i), str(j)), truths[j] - truths[i])
            for i, j in combinations(range(20), 2)
        ]
        failures += [
            any(not a.asymptotic_low <= t <= a.asymptotic_high
                for a, t in zip(answers, truths, strict=False)),
            any(not a.asymptotic_gain_low <= truths[20] - t <= a.asymptotic_gain_high
                for a, t in zip(answers, truths, strict=False)
                if a.asymptotic_gain_low is not None),
            any(not c.asymptotic_low <= t <= c.asymptotic_high
                for c, t in pairs if c.asymptotic_low is not None),
        ]  # fmt: skip
    assert (failures <= 62).all(), failures
