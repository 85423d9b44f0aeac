"""Intervals of values and counts that come from elsewhere: what is taken for a count."""

import math

import numpy as np
import pytest
from support import holdout_of, search_of

from radabound_fast import DeclaredSearch, bounds
from radabound_fast.metrics import METRICS

M, DELTA, N_KEYS = 4000, 0.1, 50
NATS = math.log(2 / DELTA * N_KEYS)
Y = (np.arange(M) % 10 < 3).astype(int)
N_POSITIVE = int(Y.sum())


def losses_search(m=M, **given):
    return DeclaredSearch(m, N_KEYS, delta=DELTA, **given)


@pytest.mark.parametrize(
    ("value", "m", "count"),
    [
        (0.2, 4000, 800),
        (1, 4000, 4000),
        (1.0, 4000, 4000),
        (0, 4000, 0),
        (0.2004, 3997, 801),  # .20040030
        (0.2004003002252, 3997, 801),
        (0.200400300225169, 3997, 801),  # as spreadsheets print it
        (0.213, 4000, 852),
        (0.745, 3999, 2979),  # .74494
        (np.float32(852 / 4000), 4000, 852),
        (np.float32(1 / 3), 3, 1),
        (1 - 0.787, 4000, 852),  # .21299999999999997
        (2 / 3, 3, 2),
        (123456789 / 2**40, 2**40, 123456789),
    ],
)
def test_a_value_that_is_a_count_within_its_printed_digits_is_that_count(value, m, count):
    search = losses_search(m)
    expected = bounds.binomial_interval(count, m, NATS)
    assert search.interval_of_value(value, 7) == expected
    assert search.interval_of_count(count, 7) == expected
    lows, highs = search.interval_of_value(np.array([value]), [7])
    assert (lows[0], highs[0]) == expected


@pytest.mark.parametrize(
    ("value", "m"),
    [(0.2, 7), (0.2137, 200), (0.20012345, 4000), (1 / 7, 4000), (0.333333333333334, 3)],
)
def test_any_other_value_is_a_mean_of_real_valued_losses(value, m):
    search = losses_search(m)
    expected = bounds.kl_interval(value, m, NATS)
    assert search.interval_of_value(value, 7) == expected
    assert search.interval_of_value([value], [7]) == expected
    with pytest.raises(
        ValueError, match=rf"value must be a number of rows over {M}, .* got 0.2000"
    ):
        search_of(Y, N_KEYS, delta=DELTA).interval_of_value(0.20001, 7)


@pytest.mark.parametrize("n_folds", [None, 5])
@pytest.mark.parametrize("name", ["error", "accuracy", "recall", "specificity"])
def test_shares_of_rows_have_the_interval_that_an_answer_has(name, n_folds):
    said = Y ^ (np.arange(M) % 7 == 0)
    search = search_of(Y, N_KEYS, metric=name, n_folds=n_folds, delta=DELTA)
    answer = search.query(said, key=3)
    n_rows = {"recall": N_POSITIVE, "specificity": M - N_POSITIVE}.get(name, M)
    assert search.interval_of_value(answer.value, 4) == (answer.low, answer.high)
    assert search.interval_of_count(round(answer.value * n_rows), 4) == (answer.low, answer.high)
    baseline = search_of(Y, N_KEYS, delta=DELTA, baseline=Y)
    with_gains = baseline.query(said, key=3)
    assert baseline.interval_of_value(with_gains.value, 3) == (with_gains.low, with_gains.high)


@pytest.mark.parametrize("name", ["neg_brier_score", "balanced_accuracy"])
def test_folds_serve_every_mean(name):
    said = np.clip(0.6 * Y + 0.4 * (np.arange(M) % 11) / 11, 0, 1)
    search = search_of(Y, N_KEYS, metric=name, n_folds=5, delta=DELTA)
    answer = search.query(said if name == "neg_brier_score" else said > 0.3, key=3)
    assert search.interval_of_value(answer.value, 3) == (answer.low, answer.high)


def test_one_side_and_reruns_are_as_in_a_query():
    losses = np.arange(M) < 852
    search = losses_search(two_sided=False, allow_reruns=True)
    answer = search.query(losses, key=3, rerun=4)
    assert search.interval_of_value(0.213, 3, rerun=4) == (answer.low, answer.high)
    lows, highs = search.interval_of_count([852, 853], [3, 3], rerun=[4, 1])
    assert (lows[0], highs[0]) == (answer.low, answer.high)
    assert highs[1] < highs[0]  # the first run has the larger weight


def test_many_are_as_one_at_a_time_and_nothing_is_queried():
    rng = np.random.default_rng(5)
    search = losses_search()
    keys, counts = rng.integers(0, N_KEYS, 300), rng.integers(0, M + 1, 300)
    values = np.where(rng.random(300) < 0.5, counts / M, rng.random(300))
    for ask, given in (
        (search.interval_of_value, values),
        (search.interval_of_count, counts),
        (losses_search(n_folds=5).interval_of_value, values),
        (losses_search(n_folds=5).interval_of_count, counts),
    ):
        lows, highs = ask(given, keys)
        for place in range(0, 300, 13):
            one = ask(given[place].item(), int(keys[place]))
            assert (lows[place], highs[place]) == pytest.approx(one, rel=1e-14)
    assert search.n_answered == 0


@pytest.mark.parametrize("name", ["f1", "precision", "balanced_accuracy", "roc_auc"])
def test_metrics_whose_interval_takes_more_are_refused_by_name(name):
    search = DeclaredSearch(holdout_of(Y, metric=name), N_KEYS, delta=DELTA)
    for ask in (search.interval_of_value, search.interval_of_count):
        with pytest.raises(ValueError, match=f"metric must be a share of rows .* got {name!r}"):
            ask(1, 3)
    assert name in METRICS


@pytest.mark.parametrize(
    "value", [-0.1, 1.5, math.nan, "3", None, True, [[0.1]], [0.1, 2.0], ["a"]]
)
def test_what_is_no_value_is_refused_by_name(value):
    with pytest.raises((TypeError, ValueError), match="^value must be "):
        losses_search().interval_of_value(value, [1] * np.size(value) if np.ndim(value) else 1)


@pytest.mark.parametrize("count", [-1, M + 1, 0.5, 3.0, "3", None, True, [[1]], [1, M + 1], [0.5]])
def test_what_is_no_count_is_refused_by_name(count):
    with pytest.raises((TypeError, ValueError), match="^count must be "):
        losses_search().interval_of_count(count, [1] * np.size(count) if np.ndim(count) else 1)


def test_keys_must_be_as_many_as_numbers():
    search = losses_search()
    for ask, error, message in (
        (lambda: search.interval_of_count([1, 2], [1, 2, 3]), ValueError, "one a number, 2, got 3"),
        (lambda: search.interval_of_value(0.2, N_KEYS), ValueError, "key must be one of range"),
        (lambda: search.interval_of_value(0.2, 1, rerun=2), ValueError, "rerun must be 1 unless"),
    ):
        with pytest.raises(error, match=message):
            ask()
    for key in (5, {"a": 1}, "ab"):
        with pytest.raises(TypeError, match="key must be a sequence of 2, one a number, got"):
            search.interval_of_value([0.1, 0.2], key)
    again = losses_search(allow_reruns=True)
    with pytest.raises(ValueError, match="rerun must be one a key, 2, got 1"):
        again.interval_of_count([1, 2], [1, 2], rerun=[2])
    both = again.interval_of_count([1, 2], [1, 2], rerun=2)
    each = again.interval_of_count([1, 2], [1, 2], rerun=np.array([2, 2]))
    np.testing.assert_array_equal(both, each)
    assert both[0][1] == again.interval_of_count(2, 2, rerun=2)[0]
