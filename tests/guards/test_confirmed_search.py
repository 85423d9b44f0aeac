"""A search on some rows, confirmed on the others: prices, what is told, what waits, bad input."""

import copy
import math
import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import quad
from scipy.special import expit
from scipy.stats import beta, norm
from support import METRIC_OPTIONS, holdout_of, most_failures

from radabound_fast import (
    ConfirmedSearch,
    DeclaredSearch,
    Holdout,
    HoldoutExhausted,
    Losses,
    Rounded,
    pack_losses,
)
from radabound_fast.bounds import confirmation_nats
from radabound_fast.guards.confirmed import history
from radabound_fast.metrics import METRICS

M = 400
ON_B = np.arange(M) < 200
rng = np.random.default_rng(5)
Y = rng.integers(0, 2, M)


def wrong_on(n_errors, y_true, rows):
    """Predictions of two classes that err on the first `n_errors` of some rows."""
    wrong = np.zeros(len(y_true), bool)
    wrong[np.flatnonzero(rows)[:n_errors]] = True
    return y_true ^ wrong


def model(error, seed):
    return Y ^ (np.random.default_rng(seed).random(M) < error)


def told(answer):
    return [answer.value, answer.low, answer.high]


# ---- known answers ---------------------------------------------------------------------------

# m_B = 2000, 290 errors, delta .1: finalists, nats and exact limits, computed apart from this code
THE_ONLY_BATCH = [
    (1, 2.995732, 0.132191, 0.158586),
    (3, 4.094345, 0.128608, 0.162605),
    (10, 5.298317, 0.125338, 0.166378),
    (100, 7.600902, 0.120219, 0.172493),
]
# n_batches, which batch: after one count was told in each batch before
LATER = [
    (None, 1, 3.688879, 0.129848, 0.161201),
    (None, 2, 12.388894, 0.112138, 0.182713),
    (2, 2, 11.290282, 0.113785, 0.180570),
]


def big_search(**options):
    y_true = np.random.default_rng(1).integers(0, 2, 4000)
    rows = np.arange(4000) >= 2000
    return y_true, rows, ConfirmedSearch(y_true, delta=0.1, rows=rows, **options)


@pytest.mark.parametrize(("n", "nats", "low", "high"), THE_ONLY_BATCH)
def test_known_limits_of_the_only_batch(n, nats, low, high):
    y_true, rows, search = big_search()
    finalists = {str(k): wrong_on(290 + k, y_true, rows) for k in range(n)}
    answer = search.confirm(finalists)["0"]
    assert answer.value == 0.145
    assert_allclose([answer.nats, answer.low, answer.high], [nats, low, high], atol=1e-6)


@pytest.mark.parametrize(("n_batches", "batch", "nats", "low", "high"), LATER)
def test_known_limits_of_later_batches(n_batches, batch, nats, low, high):
    y_true, rows, search = big_search(n_batches=n_batches)
    for number in range(1, batch):
        search.confirm(wrong_on(300 + number, y_true, rows))
    answer = search.confirm(wrong_on(290, y_true, rows))
    assert_allclose([answer.nats, answer.low, answer.high], [nats, low, high], atol=1e-6)
    # Clopper and Pearson by the beta distribution
    assert answer.low == pytest.approx(beta.ppf(math.exp(-nats), 290, 1711), rel=1e-4)
    assert answer.high == pytest.approx(beta.isf(math.exp(-nats), 291, 1710), rel=1e-4)


def test_the_price_is_the_sum_of_its_parts():
    price = confirmation_nats(7, 0.1, batch=3, n_batches=None, log_outcomes=5.5, n_families=2)
    assert price == pytest.approx(math.log(20) + math.log(12) + math.log(7) + 5.5 + math.log(2))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"n_finalists": 0}, "n_finalists must be at least 1"),
        ({"batch": 3, "n_batches": 2}, "batch must be at most n_batches = 2, got 3"),
        ({"log_outcomes": -1.0}, "log_outcomes"),
        ({"delta": 1.0}, "delta must be in"),
    ],
)
def test_a_price_of_nonsense_is_refused(options, said):
    with pytest.raises(ValueError, match=said):
        confirmation_nats(**{"n_finalists": 1, "delta": 0.1} | options)


# ---- the two parts ---------------------------------------------------------------------------


@pytest.mark.parametrize("share", [0.1, 0.33, 0.5, 0.9])
def test_the_parts_share_no_row_and_leave_none_out(share):
    search = ConfirmedSearch(Y, delta=0.1, confirm_share=share, seed=3)
    assert (search.search_rows ^ search.confirmation_rows).all()
    assert abs(search.confirmation_rows.sum() - share * M) <= 1
    again = ConfirmedSearch(Y, delta=0.1, confirm_share=share, seed=3)
    assert (search.confirmation_rows == again.confirmation_rows).all()
    other = ConfirmedSearch(1 - Y, delta=0.1, confirm_share=share, seed=3)
    assert (search.confirmation_rows == other.confirmation_rows).all()  # no label was read


def test_a_seed_draws_the_same_rows_for_ever_and_none_draws_others():
    """The permutation is a part of what is stored: a new NumPy must not change it."""
    rows = ConfirmedSearch(np.arange(16) % 2, delta=0.1, seed=7).confirmation_rows
    assert np.flatnonzero(rows).tolist() == [3, 4, 6, 9, 10, 11, 12, 13]
    one, other = (ConfirmedSearch(Y, delta=0.1).confirmation_rows for _ in range(2))
    assert (one != other).any()


def test_groups_are_kept_whole_and_their_sizes_decide_nothing():
    """A part that was filled up to a number of rows would end where a large group comes."""
    chosen = []
    for sizes in (np.full(20, 20), np.array([361, *[1] * 3, *[2] * 4, *[1] * 2, *[2] * 8, 6, 4])):
        groups = np.random.default_rng(2).permutation(np.repeat(np.arange(20), sizes))
        search = ConfirmedSearch(Holdout(Y, groups=groups), delta=0.1, seed=3)
        chosen.append(set(groups[search.confirmation_rows]))
        assert not chosen[-1] & set(groups[search.search_rows])
    assert chosen[0] == chosen[1] and len(chosen[0]) == 10


@pytest.mark.filterwarnings("ignore:confirmation rows must be at least")
@pytest.mark.parametrize("kind", ["rows", "groups", "strata"])
@pytest.mark.parametrize("share", [1e-9, 0.001, 0.25, 0.5, 0.999, 1 - 1e-9])
def test_both_parts_have_rows_in_the_share_that_was_asked_for(kind, share):
    holdout = Holdout(Y, groups=np.arange(M) // 2) if kind == "groups" else Y
    search = ConfirmedSearch(
        holdout, delta=0.1, confirm_share=share, seed=2, stratify=kind == "strata"
    )
    kept, size = search.confirmation_rows, 2 if kind == "groups" else 1
    assert size <= kept.sum() <= M - size
    assert abs(kept.sum() - share * M) <= size
    if kind == "strata":
        assert abs(kept[Y == 1].sum() - kept.mean() * Y.sum()) <= 1


@pytest.mark.parametrize("ndim", [1, 2])
def test_named_rows_of_the_other_part_are_refused(ndim):
    """Both parts have 200 rows, so that their number tells nothing."""
    pd = pytest.importorskip("pandas")
    y_true = pd.Series(Y, index=[f"row {place}" for place in range(M)])
    search = ConfirmedSearch(y_true, delta=0.1, seed=1, n_batches=None)
    kept, free = search.confirmation_rows, search.search_rows
    score = search.score if ndim == 1 else lambda y_pred: search.score_many([y_pred])
    assert score(y_true[free]) == 0.0 and search.confirm(y_true[kept]).value == 0.0
    for ask, wrong in (
        (score, y_true[kept]),
        (score, y_true[free][::-1]),
        (search.confirm, y_true[free]),
        (search.confirm, y_true[kept][::-1]),
        (lambda y_pred: search.nominate("a", y_pred), y_true[free]),
    ):
        with pytest.raises(ValueError, match="got the (names of others|same index in an)"):
            ask(wrong)
    assert search.n_answered == 1 and search.nominated == []
    assert score(y_true[kept].to_numpy()) > 0.0


def test_a_name_that_was_confirmed_is_no_name_of_another_model():
    """Nor may such a nomination stay, and keep all that were nominated from being confirmed."""
    search = ConfirmedSearch(Y, delta=0.1, n_batches=None, seed=1)
    models = [model(0.2, seed) for seed in range(4)]
    search.nominate("a", models[0])
    assert search.confirm().names == ["a"]
    with pytest.raises(ValueError, match="'a' was confirmed with other predictions"):
        search.nominate("a", models[1])
    search.nominate("b", models[1])
    assert search.confirm().names == ["a", "b"]
    search.confirm({"finalist 4": models[2]})
    search.confirm(models[3])
    assert len(set(search.answers.names)) == 4


def test_strata_are_within_a_row_of_their_share():
    y_true = np.repeat([0, 1, 2], [300, 60, 40])
    search = ConfirmedSearch(y_true, delta=0.1, confirm_share=0.3, seed=1, stratify=True)
    kept = np.bincount(y_true[search.confirmation_rows])
    assert (np.abs(kept - [90, 18, 12]) <= 1).all()
    assert "class shares" in search.guarantee


def test_all_rows_may_be_kept_for_the_end():
    search = ConfirmedSearch(Y, delta=0.1, confirm_share=1.0)
    assert search.confirmation_rows.all() and not search.search_rows.any()
    with pytest.raises(ValueError, match="score needs search rows"):
        search.score(Y)
    answer = search.confirm(model(0.1, 1))
    assert answer.search_value is None and answer.low < answer.value < answer.high


@pytest.mark.parametrize(
    ("judged", "n_kept", "least"),
    [(Y, 4, "5 to say"), (Holdout(Y, metric="roc_auc"), 9, "5 of each class to say")],
)
def test_so_few_rows_that_nothing_can_be_said_get_a_warning(judged, n_kept, least):
    """Of n flawless rows the limit at 3 nats is exp(-3 / n), below one half for n < 4.3."""
    rows = np.zeros(M, bool)
    rows[np.flatnonzero(Y == 0)[: n_kept // 2]] = rows[np.flatnonzero(Y == 1)[:5]] = True
    rows[np.flatnonzero(rows)[n_kept:]] = False
    with pytest.warns(UserWarning, match=f"confirmation rows must be at least {least}"):
        ConfirmedSearch(judged, delta=0.1, rows=rows)
    five = np.arange(M) < 5
    answer = ConfirmedSearch(Y, delta=0.1, rows=five).confirm(Y)  # no warning
    assert answer.high < 0.5


def test_repeated_features_get_a_warning():
    X = np.random.default_rng(1).normal(size=(M, 3))
    X[ON_B & (np.arange(M) < 5)] = X[M - 1]
    search = ConfirmedSearch(Y, delta=0.1, rows=ON_B)
    with pytest.warns(UserWarning, match="5 confirmation rows of 200 repeat the features"):
        repeated = search.repeated_rows(X)
    assert np.flatnonzero(repeated).tolist() == [0, 1, 2, 3, 4]
    mixed = X.astype(object)
    mixed[:, 0] = "a"
    with pytest.warns(UserWarning, match="5 confirmation rows"):
        search.repeated_rows(mixed)
    with pytest.raises(ValueError, match="X must have shape"):
        search.repeated_rows(X[:7])


# ---- scores ----------------------------------------------------------------------------------

PROBABILITIES = np.random.default_rng(3).uniform(0.05, 0.95, M)


def of_metric(name, **more):
    """A holdout with this metric, and predictions as it takes them."""
    y_true = PROBABILITIES if METRICS[name].takes == "numbers" else Y
    predictions = {
        "classes": model(0.2, 4),
        "scores": Y + rng.normal(size=M),
        "probabilities": np.clip(0.5 + 0.3 * (Y - 0.5) + 0.2 * (PROBABILITIES - 0.5), 0, 1),
        "numbers": np.clip(PROBABILITIES + rng.normal(0, 0.05, M), 0, 1),
    }[METRICS[name].takes]
    return holdout_of(y_true, metric=name, **METRIC_OPTIONS.get(name, {}), **more), predictions


@pytest.mark.parametrize("name", METRICS)
def test_every_metric_scores_and_confirms_as_a_search_of_those_rows(name):
    """The score is that of the search rows alone, and the limits those of one model on the rest."""
    holdout, y_pred = of_metric(name)
    search = ConfirmedSearch(holdout, delta=0.1, rows=ON_B)
    apart = {
        part: DeclaredSearch(holdout.part(rows), 1, delta=0.1).query(y_pred[rows], key=0)
        for part, rows in (("search", ~ON_B), ("end", ON_B))
    }
    assert search.score(y_pred) == pytest.approx(apart["search"].value)
    assert search.score(y_pred[~ON_B]) == search.score(y_pred)
    assert_allclose(search.score_many([y_pred, y_pred]), search.score(y_pred))
    answer = search.confirm(y_pred)
    assert_allclose(told(answer), told(apart["end"]))
    assert answer.search_value == search.score(y_pred)
    assert search.confirm(y_pred[ON_B]) == answer  # the same finalist, and free
    assert name in search.guarantee and search.greater_is_better == holdout.greater_is_better


@pytest.mark.parametrize("name", ["error", "mean_cost", "neg_log_loss"])
@pytest.mark.parametrize("grouped", [False, True])
def test_weights_and_groups_come_with_their_rows(name, grouped):
    weights = np.random.default_rng(1).uniform(0.5, 2, M)
    groups = np.arange(M) // 4 if grouped else None
    holdout, y_pred = of_metric(name, sample_weight=weights, groups=groups)
    search = ConfirmedSearch(holdout, delta=0.1, rows=ON_B)
    plain = ConfirmedSearch(of_metric(name)[0], delta=0.1, rows=ON_B)
    assert search.score(y_pred) != plain.score(y_pred)
    answer = search.confirm(y_pred)
    losses = {
        "error": lambda: y_pred != Y,
        "mean_cost": lambda: np.array(METRIC_OPTIONS["mean_cost"]["costs"])[Y, y_pred],
        "neg_log_loss": lambda: np.log(np.where(Y == 1, y_pred, 1 - y_pred)),
    }[name]()
    assert answer.value == pytest.approx(np.average(losses[ON_B], weights=weights[ON_B]))
    assert answer.low < answer.value < answer.high


@pytest.mark.parametrize("binary", [True, False])
def test_losses_are_searched_and_confirmed_without_labels(binary):
    losses = rng.random((3, M)) < 0.3 if binary else rng.random((3, M))
    search = ConfirmedSearch(M, delta=0.1, rows=ON_B)
    assert_allclose(search.score_many(losses), losses[:, ~ON_B].mean(axis=1), atol=1e-7)
    answers = search.confirm(dict(zip("abc", losses, strict=True)))
    assert_allclose(answers.values, losses[:, ON_B].mean(axis=1), atol=1e-7)
    if binary:
        packed, rows = ConfirmedSearch(M, delta=0.1, rows=ON_B), [*map(pack_losses, losses)]
        assert packed.score(rows[0]) == search.score(losses[0])
        confirmed = packed.confirm(dict(zip("abc", rows, strict=True)))
        assert_allclose(confirmed.lows, answers.lows)


@pytest.mark.parametrize("kind", [list, tuple, lambda y: np.array(y, object), np.array])
def test_predictions_come_as_anything(kind):
    labels = np.where(Y == 1, "yes", "no")
    search = ConfirmedSearch(labels.tolist(), delta=0.1, rows=ON_B)
    y_pred = np.where(model(0.2, 1) == 1, "yes", "no").tolist()
    assert search.score(kind(y_pred)) == np.mean(labels[~ON_B] != np.array(y_pred)[~ON_B])


# ---- what waits, and what it costs -----------------------------------------------------------


@pytest.mark.parametrize("name", METRICS)
def test_a_batch_before_the_last_tells_what_it_pays_for(name):
    """Counts with their limits; real numbers on a grid, with limits that hold the exact ones."""
    holdout, y_pred = of_metric(name)
    search = ConfirmedSearch(holdout, delta=0.1, rows=ON_B, n_batches=2)
    first = search.confirm({"a": y_pred})["a"]
    second = search.confirm({"b": np.roll(y_pred, 1)})["b"]
    outcomes = math.exp(second.nats - math.log(40))
    full = search.answers["a"]
    assert full.nats == first.nats == pytest.approx(math.log(40))
    assert not np.isnan(told(full)).any()
    n_0, n_1 = np.bincount(Y[ON_B])
    expected = {
        "error": 201,
        "accuracy": 201,
        "recall": n_1 + 1,
        "specificity": n_0 + 1,
        "balanced_accuracy": (n_0 + 1) * (n_1 + 1),
        "precision": 202 * 201 / 2,
        "f1": 202 * 201 / 2,
    }.get(name, 10_001)
    assert outcomes == pytest.approx(expected)
    if expected != 10_001:
        assert told(first) == told(full)
        return
    least, most = holdout.limits_of_metric
    step = (most - least) / 10_000
    assert first.value == pytest.approx(round(full.value / step) * step)
    assert abs(first.value - full.value) <= step / 2 * (1 + 1e-9)
    assert np.isnan([first.low, first.high]).all()  # limits are no function of the value


def test_rounded_values_cost_what_the_grid_has():
    y_true, rows, search = big_search(n_batches=None)
    first = search.confirm({"a": wrong_on(290, y_true, rows)}, release=Rounded(0.01))["a"]
    assert first.value == 0.15  # .145 is a tie
    second = search.confirm({"b": wrong_on(7, y_true, rows)})["b"]
    assert second.nats == pytest.approx(math.log(20) + math.log(6) + math.log(101))
    exact = search.close_out()["a"]
    assert exact.value == 0.145 and first.low == exact.low and exact.high < first.high


def test_a_verdict_costs_one_bit_a_finalist():
    search = ConfirmedSearch(Holdout(Y, metric="accuracy"), delta=0.1, rows=ON_B, n_batches=3)
    finalists = {str(k): model(e, k) for k, e in enumerate((0.02, 0.3, 0.4))}
    answers = search.confirm(finalists, release="pass", at_least=0.8)
    assert [answer.passed for answer in answers] == [True, False, False]
    assert np.isnan([told(answer) for answer in answers]).all()
    second = search.confirm({"x": model(0.1, 9)})["x"]
    assert second.nats == pytest.approx(math.log(20) + math.log(3) + 3 * math.log(2))
    again = search.confirm(finalists, release="pass", at_least=0.8)
    assert [answer.passed for answer in again] == [True, False, False]
    # a verdict on what was told in full is a function of that
    again = search.confirm({"x": model(0.1, 9)}, release="pass", at_least=0.99)["x"]
    assert again.passed is False and search.n_left() == 1
    full = search.close_out()
    assert not np.isnan(full.lows).any() and full["0"].passed and full["0"].low >= 0.8
    assert search.halted and search.n_left() == 0


def test_at_most_is_a_bar_for_losses():
    search = ConfirmedSearch(Y, delta=0.1, rows=ON_B)
    finalists = {"good": model(0.02, 1), "bad": model(0.3, 2)}
    answers = search.confirm(finalists, release="pass", at_most=0.1)
    assert answers["good"].passed and not answers["bad"].passed
    assert answers["good"].high <= 0.1  # of the last batch all is released


def test_gains_and_pairs_share_delta_and_wait_for_the_end():
    baseline = model(0.3, 1)
    options = {"delta": 0.1, "rows": ON_B, "baseline": baseline, "pairs": True}
    search = ConfirmedSearch(Y, n_batches=2, **options)
    finalists = {"a": model(0.05, 2), "b": model(0.2, 3), "c": model(0.25, 4)}
    first = search.confirm(finalists)
    assert first["a"].nats == pytest.approx(math.log(20) + math.log(2) + math.log(3) + math.log(3))
    assert np.isnan(first["a"].gain)
    with pytest.raises(KeyError, match="no gain of 'a' over 'b'"):
        search.compare("a", "b")
    search.confirm({"d": model(0.1, 5)})
    comparison, back = search.compare("a", "b"), search.compare("b", "a")
    errors = {name: y_pred[ON_B] != Y[ON_B] for name, y_pred in finalists.items()}
    assert comparison.gain == pytest.approx(errors["b"].mean() - errors["a"].mean())
    assert comparison.gain_low < comparison.gain < comparison.gain_high
    assert back[:3] == (-comparison.gain, -comparison.gain_high, -comparison.gain_low)
    assert comparison.nats == pytest.approx(math.log(20) + math.log(2) + 2 * math.log(3))
    answer = search.answers["a"]
    assert answer.gain == pytest.approx(np.mean(baseline[ON_B] != Y[ON_B]) - errors["a"].mean())
    assert answer.gain_low < answer.gain < answer.gain_high
    assert {"gain", "gain_low", "gain_high"} <= answer.to_dict().keys()
    alone = ConfirmedSearch(Y, **options).confirm({"a": finalists["a"]})
    assert alone.names == ["a"]
    with pytest.raises(KeyError, match="no finalist is called 'z'; there are: a"):
        alone.compare("a", "z")


def test_each_batch_pays_for_all_before_it_until_the_end():
    """Gains of pairs have prices too: each limit is at the nats of its own batch."""
    search = ConfirmedSearch(Y, delta=0.1, rows=ON_B, n_batches=4, pairs=True)
    batches = [{f"{t}{k}": model(0.1, 10 * t + k) for k in range(1 + t)} for t in range(4)]
    numbers, told, price = [], 0.0, math.log(20) + math.log(2) + math.log(4)
    expected = {}
    for t, batch in enumerate(batches):
        answers = search.confirm(batch)
        numbers += [answer.number for answer in answers]
        for answer in answers:
            assert answer.nats == pytest.approx(price + math.log(len(batch)) + told)
        n_pairs = math.comb(len(batch), 2)
        expected[t] = price + math.log(max(n_pairs, 1)) + told
        told += len(batch) * math.log(201)
        left = search.outlook()
        assert left.share == pytest.approx((3 - t) / 4) and search.n_left() == 3 - t
    assert numbers == list(range(1, 11))
    for t, batch in enumerate(batches[1:], 1):
        names = list(batch)
        comparison = search.compare(names[0], names[-1])
        assert comparison.nats == pytest.approx(expected[t])


@pytest.mark.parametrize(("bar", "harder"), [("at_least", 1), ("at_most", -1)])
def test_a_limit_exactly_at_its_bar_passes(bar, harder):
    known = ConfirmedSearch(Y, delta=0.1, rows=ON_B)
    answer = known.confirm(model(0.2, 1))
    edge = answer.low if bar == "at_least" else answer.high
    for at, passes in ((edge, True), (math.nextafter(edge, harder * math.inf), False)):
        search = ConfirmedSearch(Y, delta=0.1, rows=ON_B)
        assert search.confirm(model(0.2, 1), release="pass", **{bar: at}).passed == passes


@pytest.mark.parametrize("again", ["interval", "pass", Rounded(0.05)])
@pytest.mark.parametrize("first", ["interval", "pass", Rounded(0.05)])
def test_what_follows_from_what_was_told_is_free(first, again):
    def bars(release):
        return {"release": release} | ({"at_most": 0.3} if release == "pass" else {})

    search = ConfirmedSearch(Y, delta=0.1, rows=ON_B, n_batches=3)
    search.confirm(model(0.2, 1), **bars(first))
    search.confirm(model(0.2, 1), **bars(again))
    assert search.n_left() == (2 if first in ("interval", again) else 1)


def test_masks_that_were_told_are_copies():
    search = ConfirmedSearch(Y, delta=0.1, rows=ON_B)
    expected = search.confirm({"a": model(0.2, 1)})["a"]
    for rows in (search.confirmation_rows, search.search_rows):
        rows[:] = ~rows
    assert search.confirm({"a": model(0.2, 1)})["a"] == expected and search.n_answered == 1
    assert (search.confirmation_rows == ON_B).all() and (search.search_rows != ON_B).all()


def test_a_second_batch_that_was_not_declared_says_what_it_would_cost():
    y_true, rows, search = big_search()
    search.confirm(wrong_on(290, y_true, rows))
    with pytest.raises(
        HoldoutExhausted,
        match=r"=1 allows no .*: 1 was conf.* n_batches=2 .* 11\.3 nats, .* 12\.4, .* 3\.0",
    ):
        search.confirm(wrong_on(291, y_true, rows))
    assert search.n_answered == 1 and search.halted


def test_the_same_finalist_again_is_free_whatever_it_is_called():
    search = ConfirmedSearch(Y, delta=0.1, rows=ON_B)
    good = model(0.1, 1)
    answers = search.confirm({"a": good, "twin": good.copy(), "b": model(0.2, 2)})
    assert answers["a"].nats == pytest.approx(math.log(20) + math.log(2))  # two finalists
    assert told(answers["a"]) == told(answers["twin"])
    again = search.confirm({"another name": good[ON_B]})
    assert told(again["another name"]) == told(answers["a"]) and search.n_answered == 2
    with pytest.raises(ValueError, match="'a' was confirmed with other predictions"):
        search.confirm({"a": model(0.2, 2)})


def test_best_is_by_the_limit_that_counts():
    for metric, best in (("error", "good"), ("accuracy", "good")):
        search = ConfirmedSearch(Holdout(Y, metric=metric), delta=0.1, rows=ON_B)
        assert search.best is None
        search.confirm({"bad": model(0.3, 1), "good": model(0.05, 2), "worse": model(0.4, 3)})
        assert search.best.name == best
    waiting = ConfirmedSearch(Y, delta=0.1, rows=ON_B, n_batches=2)
    waiting.confirm({"a": Y}, release="pass", at_most=0.1)
    with pytest.raises(ValueError, match="no interval was released yet"):
        _ = waiting.best


@pytest.mark.parametrize("greater_is_better", [False, True])
def test_the_best_value_with_a_wide_interval_is_not_the_best(greater_is_better):
    shaky, steady = np.zeros(M), np.full(M, 0.24)
    shaky[:40] = 1.0  # 1 on a fifth of the rows
    judged = Losses(M)
    if greater_is_better:
        judged = holdout_of(np.zeros(M), metric="neg_mean_absolute_error", y_range=(0, 1))
    search = ConfirmedSearch(judged, delta=0.1, rows=ON_B)
    answers = search.confirm({"shaky": shaky, "steady": steady})
    first, second = (abs(answers[name].value) for name in ("shaky", "steady"))
    assert first == pytest.approx(0.2) and second == pytest.approx(0.24)
    assert search.best.name == answers.best.name == "steady"


def test_nominated_finalists_are_one_batch_and_a_name_stands_for_the_last():
    search = ConfirmedSearch(Y, delta=0.1, rows=ON_B)
    with pytest.raises(ValueError, match="none was nominated"):
        search.confirm()
    for name, seed in (("red", 1), ("blue", 2), ("red", 3)):
        search.nominate(name, model(0.1, seed))
    assert search.nominated == ["red", "blue"] and search.n_answered == 0 and search.n_left() == 1
    together = ConfirmedSearch(Y, delta=0.1, rows=ON_B)
    expected = together.confirm({"red": model(0.1, 3), "blue": model(0.1, 2)})
    assert [told(answer) for answer in search.confirm()] == [told(answer) for answer in expected]
    assert [answer.name for answer in search.confirm()] == ["red", "blue"]  # stored, and free
    with pytest.raises(ValueError, match="the search has ended"):
        search.nominate("green", Y)
    with pytest.raises(ValueError, match="finalists must be of all 400 rows"):
        search.nominate("green", Y[:9])


# ---- copies ----------------------------------------------------------------------------------


def pickled(search):
    return pickle.loads(pickle.dumps(search))


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, pickled])
def test_a_copy_scores_and_confirms_nothing(duplicate):
    search = ConfirmedSearch(Y, delta=0.1, rows=ON_B)
    twin = duplicate(search)
    assert twin.score(model(0.1, 1)) == search.score(model(0.1, 1))
    with pytest.raises(RuntimeError, match="is a copy"):
        twin.confirm(model(0.1, 1))
    with pytest.raises(RuntimeError, match="is a copy"):
        twin.close_out()
    assert search.confirm(model(0.1, 1)).number == 1


def test_answers_are_pickled_and_compared():
    answers = ConfirmedSearch(Y, delta=0.1, rows=ON_B).confirm({"a": Y, "b": 1 - Y})
    again = pickle.loads(pickle.dumps(answers))
    assert list(again) == list(answers) and again["b"] != again["a"]
    assert list(answers.to_dict())[:5] == ["value", "low", "high", "half_width", "number"]
    assert len(answers.to_dict()["name"]) == 2 and answers[0].name == "a"


# ---- bad input -------------------------------------------------------------------------------

GROUPS = np.arange(M) // 3


@pytest.mark.parametrize(
    ("judged", "options", "said"),
    [
        (Y, {"delta": 0.0}, "delta must be in"),
        (Y, {"confirm_share": 0.0}, r"confirm_share must be in \(0, 1\], got 0.0"),
        (Y, {"confirm_share": 1.5}, r"confirm_share must be in \(0, 1\], got 1.5"),
        (Y, {"n_batches": 0}, "n_batches must be at least 1, got 0"),
        (Y, {"seed": -1}, "seed must be in"),
        (Y, {"rows": ON_B, "seed": 1}, "must be left out beside rows"),
        (Y, {"rows": ON_B, "confirm_share": 0.4}, "must be left out beside rows"),
        (Y, {"rows": ON_B, "stratify": True}, "must be left out beside rows"),
        (Y, {"rows": ON_B.astype(int)}, "rows must be a boolean array"),
        (Y, {"rows": ON_B[1:]}, r"rows must be a boolean array of shape \(400,\)"),
        (Y, {"rows": np.zeros(M, bool)}, "rows must keep at least one row"),
        (Holdout(Y, groups=GROUPS), {"rows": ON_B}, "rows must keep groups whole, got 1 group"),
        (Holdout(Y, groups=np.zeros(M)), {}, "got 1 group of rows"),
        ([1], {}, "at least 2 rows"),
        (Y, {"baseline": Y[:7]}, "baseline must be of all 400 rows, or of the 200"),
        (Y, {"baseline": Y, "stratify": True}, "baseline must be left out with stratify"),
        (Holdout(Y, metric="f1"), {"pairs": True}, "pairs must be left out with 'f1'"),
        (Holdout(Y, metric="f1"), {"stratify": True}, "stratify must be False with 'f1'"),
        (
            Holdout(Y, metric="neg_brier_score"),
            {"stratify": True},
            "stratify must be False with 'neg_brier_score'",
        ),
        (Holdout(Y, groups=GROUPS), {"pairs": True}, "pairs must be left out beside"),
        (Holdout(Y, groups=GROUPS), {"stratify": True}, "stratify must be False with weights"),
        (M, {"stratify": True}, "stratify must be False where there are no classes"),
        (M, {"pairs": True}, "pairs must be left out with 'mean loss'"),
        (Losses(M, groups=GROUPS), {}, "sample_weight and groups must be left out"),
    ],
)
def test_bad_arguments_are_refused_by_name(judged, options, said):
    with pytest.raises(ValueError, match=said):
        ConfirmedSearch(judged, **{"delta": 0.1} | options)


@pytest.mark.parametrize("metric", ["roc_auc", "recall", "specificity", "balanced_accuracy"])
@pytest.mark.parametrize("part", ["confirmation", "search"])
def test_a_part_of_one_class_is_refused_where_the_metric_needs_all(metric, part):
    rows = Y == 1 if part == "confirmation" else ~((Y == 0) & ON_B)
    with pytest.raises(ValueError, match=f"the {part} rows must hold all 2 classes .* at least 2"):
        ConfirmedSearch(Holdout(Y, metric=metric), delta=0.1, rows=rows)
    ConfirmedSearch(Y, delta=0.1, rows=rows).confirm(Y)  # an error rate needs none


@pytest.mark.parametrize(
    ("finalists", "options", "error", "said"),
    [
        ({}, {}, ValueError, "at least one model, got none"),
        ({"a": Y[:7]}, {}, ValueError, "finalists must be of all 400 rows, or of the 200 conf"),
        ({"a": np.zeros((2, M))}, {}, ValueError, "finalists must"),
        ({"a": Y + 5}, {}, ValueError, "finalists must"),
        ({"a": np.nan * Y}, {}, ValueError, "finalists must"),
        ({3: Y}, {}, TypeError, "names that are strings, got 3"),
        ({"": Y}, {}, TypeError, "names that are strings, got ''"),
        ({"a": pack_losses(Y)}, {}, TypeError, "must be predictions"),
        ({"a": Y}, {"release": "all"}, ValueError, "release must be one of"),
        ({"a": Y}, {"release": "pass"}, ValueError, "at_least and at_most must be given"),
        ({"a": Y}, {"at_least": 0.5}, ValueError, "at_least and at_most must be left out"),
        ({"a": Y}, {"release": "pass", "at_most": "x"}, TypeError, "at_most must be a real"),
    ],
)
def test_bad_finalists_are_refused_and_change_nothing(finalists, options, error, said):
    search = ConfirmedSearch(Y, delta=0.1, rows=ON_B)
    with pytest.raises(error, match=said):
        search.confirm(finalists, **options)
    assert search.n_answered == 0 and search.n_left() == 1
    search.confirm(Y)


def test_a_score_of_nonsense_is_refused():
    search = ConfirmedSearch(Y, delta=0.1, confirm_share=0.3, seed=1)
    for bad in (Y[:7], Y[:120], np.zeros((2, M)), [[1], [2, 3]]):
        with pytest.raises((ValueError, TypeError), match="y_pred"):
            search.score(bad)


# ---- coverage --------------------------------------------------------------------------------


def attack(search, m, seed, s=40):
    """Confirm coin flips, in view of what is told; return the answer for the best guess of all.

    Batches 1 and 2 are told counts, which are votes on every label; batch 3 is the vote's winner.
    The truth of every model is one half.
    """
    coins = np.random.default_rng(seed)
    votes = np.zeros(m)
    for _ in range(2):
        guesses = coins.integers(0, 2, (s, m))
        # the second batch already leans to what the first one told
        guesses[: s // 2] = np.where(coins.random((s // 2, m)) < 0.3, votes > 0, guesses[: s // 2])
        answers = search.confirm(
            {f"{len(votes)}-{votes.sum()}-{k}": g for k, g in enumerate(guesses)}
        )
        votes += ((0.5 - answers.values)[:, np.newaxis] * (2 * guesses - 1)).sum(axis=0)
    last = search.confirm({"vote": (votes > 0).astype(int)})["vote"]
    return [*search.answers, last]


@pytest.mark.parametrize(
    ("pays", "n_batches"),
    [pytest.param(True, 3, marks=pytest.mark.thorough), (True, None), (False, 3)],
)
def test_an_analyst_who_adapts_to_three_batches_is_covered(pays, n_batches, monkeypatch):
    """12 runs; a program that does not pay for what was told misses in nearly all.

    A correct program misses in a run with probability at most delta = .1, and in more than
    `most_failures` runs with probability at most 1e-6.
    """
    if not pays:
        monkeypatch.setattr(
            history,
            "confirmation_nats",
            lambda *args, log_outcomes=0.0, **more: confirmation_nats(*args, **more),
        )
    m, n_missed = 60, 0
    for seed in range(12):
        y_true = np.random.default_rng(1000 + seed).integers(0, 2, m)
        search = ConfirmedSearch(y_true, delta=0.1, confirm_share=1.0, n_batches=n_batches)
        n_missed += any(not one.low <= 0.5 <= one.high for one in attack(search, m, seed))
    assert n_missed <= most_failures(12, 0.1) if pays else n_missed >= 11


def brier_of(slope):
    """The expected Brier score of the probability expit(2 s), s normal around slope / 2."""
    return quad(lambda s: norm.pdf(s, slope / 2) * expit(-2 * s) ** 2, -9, 9)[0]


# of scores that are normal around +-slope / 2, and as many rows of one class as of the other
TRUTHS = {
    "error": (lambda scores: (scores > 0).astype(int), lambda slope: norm.cdf(-slope / 2)),
    "f1": (lambda scores: (scores > 0).astype(int), lambda slope: norm.cdf(slope / 2)),
    "roc_auc": (lambda scores: scores, lambda slope: norm.cdf(slope / math.sqrt(2))),
    "neg_brier_score": (lambda scores: expit(2 * scores), lambda slope: -brier_of(slope)),
}


@pytest.mark.thorough
@pytest.mark.parametrize("metric", TRUTHS)
def test_the_best_of_a_free_search_is_covered(metric):
    """The winner of 30 models by their scores; its truth is known.

    200 runs at delta .2, with their own seeds: a correct program has more than `most_failures`
    misses with probability at most 1e-6.
    """
    response, truth = TRUTHS[metric]
    n_missed = 0
    for seed in range(200):
        coins = np.random.default_rng(seed)
        y_true = coins.integers(0, 2, 300)
        search = ConfirmedSearch(holdout_of(y_true, metric=metric), delta=0.2, seed=seed)
        slopes = coins.normal(0.7, 0.3, 30)
        means = slopes[:, np.newaxis] * (y_true - 0.5)
        models = response(means + coins.normal(size=means.shape))
        scores = search.score_many(models)
        best = int(scores.argmax() if search.greater_is_better else scores.argmin())
        answer = search.confirm(models[best])
        n_missed += not answer.low <= truth(slopes[best]) <= answer.high
    assert n_missed <= most_failures(200, 0.2)
