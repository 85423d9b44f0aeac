"""Metrics of a holdout: scikit-learn's values, what is refused, and what is kept."""

import copy
import itertools
import pickle
import warnings
from functools import partial

import numpy as np
import pytest
from support import METRIC_OPTIONS, holdout_of, search_of

from radabound_fast import (
    DeclaredSearch,
    FixedSequence,
    GuessAndCheck,
    Holdout,
    Ladder,
    Losses,
    RadaBound,
    bounds,
    pack_losses,
)
from radabound_fast.metrics import COUNTED, MEANS, METRICS

metrics = pytest.importorskip("sklearn.metrics")

M = 500
RNG = np.random.default_rng(20)
Y = (RNG.random(M) < 0.1).astype(int)
SCORES = np.round(Y + RNG.normal(size=M), 1)  # with many ties
CLASSES = (SCORES > 0.8).astype(int)
CHANCES = 1 / (1 + np.exp(3 - 2 * SCORES))
THREE = RNG.integers(0, 3, M)
CHANCES_OF_3 = RNG.dirichlet([1, 1, 1], M)
TARGETS = RNG.normal(size=M).clip(-4, 4)
GUESSES = (TARGETS + RNG.normal(size=M)).clip(-4, 4)
COSTS = [[0, 1, 2.5], [5, 0, 1], [-1, 3, 0]]


def search_by(metric, y_true=Y, **options):
    return search_of(y_true, metric=metric, **options)


def log_loss(y_true, chances, clip):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # clipped rows do not add up to 1
        if chances.ndim == 1:
            chances = np.stack([1 - chances, chances], axis=1)
        return -metrics.log_loss(y_true, np.maximum(chances, clip))


# metric, what it is asked, options, what scikit-learn says
def cases():
    sk, strings = metrics, np.array(["no", "yes"])
    yield "error", Y, CLASSES, {}, 1 - sk.accuracy_score(Y, CLASSES)
    yield "accuracy", Y, CLASSES, {}, sk.accuracy_score(Y, CLASSES)
    yield "accuracy", THREE, (THREE + Y) % 3, {}, sk.accuracy_score(THREE, (THREE + Y) % 3)
    mixed = RNG.integers(0, 3, M)
    for one in (mixed, THREE, np.zeros(M, int)):
        yield "balanced_accuracy", THREE, one, {}, sk.balanced_accuracy_score(THREE, one)
    yield "balanced_accuracy", Y, CLASSES, {}, sk.balanced_accuracy_score(Y, CLASSES)
    for pos_label in (0, 1):
        own = {"pos_label": pos_label}
        for one in (CLASSES, Y, 1 - Y, np.zeros(M, int), np.ones(M, int)):
            for name in ("precision", "recall", "f1"):
                score = getattr(sk, f"{name}_score")
                yield name, Y, one, own, score(Y, one, zero_division=0, **own)
            yield "specificity", Y, one, own, sk.recall_score(Y, one, pos_label=1 - pos_label)
    yield (
        "f1", strings[Y], strings[CLASSES], {"pos_label": "no"},
        sk.f1_score(strings[Y], strings[CLASSES], pos_label="no"),
    )  # fmt: skip
    for one in (SCORES, SCORES.astype(np.float32), -SCORES, np.zeros(M), CLASSES, Y * 2.0):
        yield "roc_auc", Y, one, {}, sk.roc_auc_score(Y, one)
    yield "roc_auc", 2 * Y - 1, SCORES, {}, sk.roc_auc_score(Y, SCORES)
    yield "roc_auc", strings[Y], SCORES, {"pos_label": "yes"}, sk.roc_auc_score(Y, SCORES)
    for one in (CHANCES, CLASSES * 1.0, np.full(M, 0.1), np.stack([1 - CHANCES, CHANCES], 1)):
        for clip in (0.001, 0.2):
            yield "neg_log_loss", Y, one, {"clip": clip}, log_loss(Y, one, clip)
        yield "neg_brier_score", Y, one, {}, -sk.brier_score_loss(Y, one)
    sk_brier = -sk.brier_score_loss(THREE, CHANCES_OF_3, labels=[0, 1, 2])
    yield "neg_brier_score", THREE, CHANCES_OF_3, {}, sk_brier
    yield "neg_log_loss", THREE, CHANCES_OF_3, {"clip": 0.01}, log_loss(THREE, CHANCES_OF_3, 0.01)
    own = {"y_range": (-4, 4)}
    for one in (GUESSES, TARGETS, np.zeros(M), np.full(M, 4)):
        error, square = sk.mean_absolute_error(TARGETS, one), sk.mean_squared_error(TARGETS, one)
        yield "neg_mean_absolute_error", TARGETS, one, own, -error
        yield "neg_mean_squared_error", TARGETS, one, own, -square
    pairs = zip(THREE, mixed, strict=True)
    mean = np.mean([COSTS[true][predicted] for true, predicted in pairs])
    yield "mean_cost", THREE, mixed, {"costs": COSTS}, mean


CASES = list(cases())
# the first of each, of probabilities of one class, of two and of three
ONE_OF_EACH = list({(case[0], case[2].shape): case for case in reversed(CASES)}.values())


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0])
def test_the_value_is_scikit_learn_s(case):
    metric, y_true, predictions, options, expected = case
    answer = search_by(metric, y_true, **options).query(predictions, key=0)
    assert answer.value == pytest.approx(expected, rel=0, abs=1e-12)
    assert answer.low <= answer.value <= answer.high


# two rows; around a word of 64 bits, whose last bits are no samples; and around a tile of words
@pytest.mark.parametrize("m", [2, 3, 63, 64, 65, 129, 4031])
@pytest.mark.parametrize("dtype", [bool, np.int8, float])
def test_counts_and_areas_are_scikit_learn_s_at_awkward_sizes(kernel, m, dtype):
    rng = np.random.default_rng(m)
    y_true = np.append([0, 1], rng.integers(0, 2, m - 2))
    rows = rng.integers(0, 2, (5, m))
    scores = rng.integers(0, 4, (5, m)) / 4
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        own = {"zero_division": 0}
        expected = {
            "accuracy": [metrics.accuracy_score(y_true, row) for row in rows],
            "balanced_accuracy": [metrics.balanced_accuracy_score(y_true, row) for row in rows],
            "precision": [metrics.precision_score(y_true, row, **own) for row in rows],
            "recall": [metrics.recall_score(y_true, row, **own) for row in rows],
            "specificity": [metrics.recall_score(y_true, row, pos_label=0) for row in rows],
            "f1": [metrics.f1_score(y_true, row, **own) for row in rows],
            "roc_auc": [metrics.roc_auc_score(y_true, row) for row in scores],
        }
    for name, values in expected.items():
        given = scores if name == "roc_auc" else rows.astype(dtype)
        answers = search_by(name, y_true).query_many(given, keys=range(5))
        np.testing.assert_allclose(answers.values, values, rtol=0, atol=1e-12)
        assert (answers.lows <= answers.values).all() and (answers.values <= answers.highs).all()


def test_every_metric_has_a_case():
    assert {case[0] for case in CASES} == set(METRICS)


@pytest.mark.parametrize("case", ONE_OF_EACH, ids=lambda case: case[0])
def test_none_or_many_at_once_are_answered_as_one_by_one(case):
    metric, y_true, predictions, options, _ = case
    rows = np.stack([predictions, predictions[::-1], np.roll(predictions, 7, axis=0)])
    many, one = (search_by(metric, y_true, **options) for _ in range(2))
    keys, found = np.array([5, 0, 999]), []
    expected = [one.query(row, key=key).to_dict() for row, key in zip(rows, keys, strict=True)]
    for part in (slice(0), slice(2), slice(2, 3)):
        answers = many.query_many(rows[part], keys=keys[part])
        found += [answer.to_dict() for answer in answers]
        assert answers.lows.tolist() == [limits["low"] for limits in expected[part]]
    assert found == expected
    assert many.answers.to_dict().keys() == one.answers.to_dict().keys()


@pytest.mark.parametrize("case", ONE_OF_EACH, ids=lambda case: case[0])
def test_a_dearer_key_is_wider_and_one_side_alone_is_nearer(case):
    metric, y_true, predictions, options, _ = case
    wider = search_by(metric, y_true, **options).query(predictions, key=0)
    narrow = search_by(metric, y_true, space=1, **options).query(predictions, key=0)
    assert wider.low < narrow.low and narrow.high < wider.high
    one = search_by(metric, y_true, two_sided=False, **options).query(predictions, key=0)
    if METRICS[metric].greater_is_better:
        assert wider.low < one.low and wider.high < one.high
        assert one.half_width == one.value - one.low
    else:
        assert one.high < wider.high and one.low < wider.low
        assert one.half_width == one.high - one.value


@pytest.mark.parametrize("case", ONE_OF_EACH, ids=lambda case: case[0])
def test_a_search_by_a_metric_is_pickled_copied_and_kept_on_disk(case, tmp_path):
    metric, y_true, predictions, options, _ = case
    search = search_by(metric, y_true, **options)
    answer = search.query(predictions, key=7)
    # no label is in either
    assert len(pickle.dumps(answer)) < 1200 < M * 4
    assert len(pickle.dumps(search.answers)) < 1500
    copies = pickle.loads(pickle.dumps(search)), copy.deepcopy(search)
    for other in copies:
        assert other.holdout.metric == metric
        assert other.query(predictions, key=7).to_dict() == answer.to_dict()
    path, judged = tmp_path / "search.db", holdout_of(y_true, metric=metric, **options)
    stored = DeclaredSearch.open(path, judged, 1000, delta=0.1)
    stored.query(predictions, key=7)
    again = DeclaredSearch.open(path, y_true)  # the metric in the file
    assert again.holdout.metric == metric
    for other in (stored, again, DeclaredSearch.open(path)):
        assert other.best.to_dict() == answer.to_dict()
    assert again.query(predictions, key=7).to_dict() == answer.to_dict()


def test_the_best_has_the_highest_low_where_more_is_better():
    search = search_by("roc_auc")
    for key, scores in enumerate((SCORES, -SCORES, SCORES * 0)):
        search.query(scores, key=key)
    assert search.best.key == 0
    search = search_by("mean_cost", costs=[[0, 1], [9, 0]])
    for key, classes in enumerate((1 - Y, Y, CLASSES)):
        search.query(classes, key=key)
    assert search.best.key == 1


def test_without_predicted_positives_precision_is_0():
    answer = search_by("precision").query(np.zeros(M, int), key=0)
    assert (answer.value, answer.low, answer.high) == (0.0, 0.0, 1.0)
    nobody = search_by("f1", np.zeros(M, int), classes=[0, 1]).query(np.zeros(M, int), key=0)
    assert (nobody.value, nobody.low, nobody.high) == (0.0, 0.0, 1.0)


# of a class without a row nothing is known; means need no class at all
@pytest.mark.parametrize("metric", METRICS)
def test_a_named_class_without_a_row_is_refused_where_its_rows_are_divided_by(metric):
    by_class = ("balanced_accuracy", "recall", "specificity", "roc_auc")
    is_of_two = METRICS[metric].needs in ("two classes", "both classes")
    options = {"pos_label": 1} if is_of_two else METRIC_OPTIONS.get(metric, {})
    for y_true in (np.zeros(M, int), np.ones(M, int)):
        if metric in by_class:
            with pytest.raises(ValueError, match=f"with metric={metric!r}, got no row of 1 class"):
                search_by(metric, y_true, classes=[0, 1], **options)
        else:
            chances = METRICS[metric].takes == "probabilities"
            given = np.full((M, 2), 0.5) if chances else y_true
            assert search_by(metric, y_true, classes=[0, 1], **options).query(given, key=0)


def test_a_balanced_accuracy_is_over_the_classes_that_there_are_and_says_so():
    with pytest.raises(ValueError, match="y_true must hold every class with metric='balanced_accu"):
        search_by("balanced_accuracy", THREE, classes=[0, 1, 2, 3, 4])
    searches = {name: search_by(name) for name in ("balanced_accuracy", "accuracy")}
    searches["fixed"] = FixedSequence(
        holdout_of(Y, metric="balanced_accuracy"), epsilon=0.9, delta=0.1
    )
    over = "in the population (over the classes that the holdout has)"
    for name, guard in searches.items():
        assert (over in guard.guarantee) == (name != "accuracy")
        if name != "fixed":
            guard.query(CLASSES, key=0)
            assert (over in str(guard.report())) == (name != "accuracy")


def test_labels_may_be_strings_beside_probabilities_of_both():
    y_true = np.array(["cat", "dog"])[Y]
    search = search_by("neg_log_loss", y_true, clip=0.01)
    pairs = np.stack([1 - CHANCES, CHANCES], axis=1)
    assert search.query(pairs, key=0).value == pytest.approx(log_loss(Y, CHANCES, 0.01))
    with pytest.raises(ValueError, match="pos_label must be given for one probability"):
        search.query(CHANCES, key=1)
    assert search.n_answered == 1


# ---- what is refused -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("metric", "options", "y_true", "error", "message"),
    [
        ("oops", {}, Y, ValueError, "metric must be one of 'error', .*_error', got 'oops'$"),
        ("auc", {}, Y, ValueError, "metric must be one of.*got 'auc': write 'roc_auc'$"),
        ("MSE", {}, Y, ValueError, "got 'MSE': write 'neg_mean_squared_error'$"),
        ("f1", {"pos_label": 2}, Y, ValueError, r"one of the classes \[0, 1\], got 2"),
        ("f1", {}, Y + 1, ValueError, "pos_label must be given with metric='f1'"),
        ("f1", {}, THREE, ValueError, "metric='f1' needs two classes, got 3 classes"),
        ("roc_auc", {}, THREE, ValueError, "needs two classes, got 3 classes"),
        ("roc_auc", {}, Y * 0, ValueError, "needs two classes, got 1 class"),
        ("recall", {"classes": [0, 1]}, Y * 0, ValueError, "y_true must hold both classes"),
        ("accuracy", {"pos_label": 1}, Y, TypeError, "pos_label must be left out with metric='acc"),
        ("f1", {"clip": 0.1}, Y, TypeError, "clip must be left out.*'f1', which has pos_label"),
        ("neg_log_loss", {}, Y, TypeError, "clip must be given with metric='neg_log_loss'"),
        ("neg_log_loss", {"clip": 0.5}, Y, ValueError, r"clip must be in \(0, 0.5\), got 0.5"),
        ("neg_brier_score", {"pos_label": 1}, THREE, ValueError, "left out with 3 classes"),
        ("neg_mean_squared_error", {}, TARGETS, TypeError, "y_range must be given"),
        ("neg_mean_squared_error", {"y_range": 3}, TARGETS, TypeError, r"\(low, high\), got 3"),
        ("neg_mean_squared_error", {"y_range": (1, 1)}, TARGETS, ValueError, "low < high"),
        ("neg_mean_squared_error", {"y_range": (0, 1)}, TARGETS, ValueError, "y_true must lie in"),
        ("neg_mean_absolute_error", {"y_range": (0, 1)}, ["a"] * M, TypeError, "must be numbers"),
        ("mean_cost", {}, Y, TypeError, "costs must be given"),
        ("mean_cost", {"costs": COSTS}, Y, ValueError, r"shape \(2, 2\), by classes, got \(3, 3\)"),
        ("mean_cost", {"costs": [[1, 1], [1, 1]]}, Y, ValueError, "costs must differ, got 1.0"),
        ("mean_cost", {"costs": [[0, np.inf], [1, 0]]}, Y, ValueError, "costs must be finite"),
        (
            "mean_cost", {"costs": [[0, 1e308], [-1e308, 0]]}, Y, ValueError,
            r"differences that are finite, got -1e\+308 and 1e\+308",
        ),
        ("neg_mean_squared_error", {"y_range": (-9, 1e200)}, TARGETS, ValueError, "positive fin"),
        ("neg_mean_squared_error", {"y_range": (0, 1e-200)}, Y * 0, ValueError, "positive finite"),
        ("neg_mean_squared_error", {"y_range": (0, 10**400)}, Y, ValueError, "finite in float64"),
        ("neg_log_loss", {"clip": 10**400}, Y, ValueError, "clip must be finite in float64, got 1"),
        ("mean_cost", {"costs": [[0, 10**400], [1, 0]]}, Y, ValueError, "costs must be finite in"),
        ("neg_mean_squared_error", {"y_range": (0, 1)}, [10**400] * M, ValueError, "y_true must"),
        ("mean_cost", {"costs": [[0, None], [1, 0]]}, Y, ValueError, "costs must have no missing"),
        ("", {}, Y, ValueError, "metric must be one of 'error'.*got ''"),
        ("mean_cost", {"costs": [["a", "b"], [1, 0]]}, Y, TypeError, "costs must be real numbers"),
        ("roc_auc", {"baseline": CLASSES}, Y, ValueError, "gains are of means, error, accuracy"),
        ("accuracy", {"baseline": CLASSES + 1}, Y, ValueError, "known classes"),
    ],
)  # fmt: skip
def test_what_a_metric_cannot_do_is_named(metric, options, y_true, error, message):
    with pytest.raises(error, match=message):
        search_by(metric, y_true, **options)


@pytest.mark.parametrize(
    ("metric", "options", "y_true", "predictions", "error", "message"),
    [
        ("f1", {}, Y, SCORES, ValueError, "known classes"),
        ("f1", {}, Y, CLASSES[1:], ValueError, "length 500"),
        ("roc_auc", {}, Y, np.where(Y == 1, np.nan, SCORES), ValueError, "finite, got nan at samp"),
        ("roc_auc", {}, Y, np.full(M, np.inf), ValueError, "finite, got inf at sample 0"),
        ("roc_auc", {}, Y, ["a"] * M, TypeError, "y_pred must be real numbers"),
        ("roc_auc", {}, Y, np.full(M, 2**60 + 1), ValueError, "exact in float64"),
        ("roc_auc", {}, Y, [None] * M, ValueError, "missing values, got one at sample 0"),
        ("roc_auc", {}, Y, [2**64 + i for i in range(M)], ValueError, "exact in float64, got"),
        ("roc_auc", {}, Y, [10**400] * M, ValueError, "finite in float64, got 10+ at sample 0"),
        ("neg_brier_score", {}, Y, [10**400] * M, ValueError, "finite in float64"),
        ("neg_mean_squared_error", {"y_range": (0, 1)}, Y, [10**400] * M, ValueError, "finite"),
        ("roc_auc", {}, Y, np.zeros((M, 2)), ValueError, "one dimension"),
        ("neg_log_loss", {"clip": 0.01}, Y, SCORES, ValueError, r"in \[0, 1\], got -?[\d.]+ at"),
        ("neg_log_loss", {"clip": 0.01}, Y, CHANCES * np.nan, ValueError, "got nan at sample 0"),
        ("neg_log_loss", {"clip": 0.01}, THREE, CHANCES, ValueError, "each of 3 classes"),
        ("neg_log_loss", {"clip": 0.01}, THREE, CHANCES_OF_3 / 2, ValueError, "divide them by"),
        ("neg_brier_score", {}, Y, CHANCES_OF_3, ValueError, "2 prob.*name all by Holdout"),
        ("neg_brier_score", {}, THREE, CHANCES_OF_3[:, :2], ValueError, r"got shape \(500, 2\)$"),
        ("neg_brier_score", {}, Y * 0, CHANCES, ValueError, "1 class, got .*name all by"),
        (
            "neg_mean_squared_error", {"y_range": (-4, 4)}, TARGETS, GUESSES * 9, ValueError,
            r"lie in y_range = \[-4.0, 4.0\], got .*: clip it",
        ),
        ("mean_cost", {"costs": COSTS}, THREE, THREE + 1, ValueError, "known classes"),
    ],
)  # fmt: skip
def test_predictions_that_a_metric_cannot_judge_change_nothing(
    metric, options, y_true, predictions, error, message
):
    search = search_by(metric, y_true, **options)
    with pytest.raises(error, match=message):
        search.query(predictions, key=0)
    with pytest.raises((TypeError, ValueError)):
        search.query_many([predictions, predictions], keys=[0, 1])
    assert search.n_answered == 0


@pytest.mark.parametrize("metric", ["error", "roc_auc", "neg_brier_score", *METRIC_OPTIONS])
def test_zeros_of_either_sign_are_one_prediction(metric):
    search = search_by(metric, **METRIC_OPTIONS.get(metric, {}))
    answer = search.query(CLASSES.astype(float), key=0)
    assert search.query(np.where(CLASSES, 1.0, -0.0), key=0) == answer
    if metric in ("neg_log_loss", "neg_brier_score"):
        both = np.stack([1.0 - CLASSES, CLASSES], axis=1)
        answer = search.query(both, key=1)
        assert search.query(np.where(both, 1.0, -0.0), key=1) == answer
    assert search.n_answered == 1 + (metric in ("neg_log_loss", "neg_brier_score"))


# np.float16(0.3) and np.float32(0.3) are above 0.3, np.float16(0.1) is below 0.1
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.longdouble])
@pytest.mark.parametrize("high", [0.1, 0.3, 1e6])
def test_numbers_clipped_in_their_dtype_are_within_the_range(dtype, high):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # float16 has no 1e6
        largest = np.finfo(dtype).max if np.isinf(dtype(high)) else dtype(high)
    own = {"y_range": (0, high)}
    search = search_by("neg_mean_absolute_error", np.zeros(M), **own)
    answer = search.query(np.full(M, largest), key=0)
    assert answer.low <= answer.value
    assert answer.value == pytest.approx(-min(float(largest), high))
    for wrong in (np.inf, np.nan, 1.01 * high, -0.01 * high):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            values = np.full(M, wrong).astype(dtype)
        if np.isinf(values).any() and not np.isinf(wrong):
            continue
        with pytest.raises(ValueError, match="y_pred must lie in y_range"):
            search.query(values, key=1)
    assert search.n_answered == 1


# the mean of m times 1.1 may be 1.1000000000000003
@pytest.mark.parametrize("m", [1, 2, 3, 7, 20, 59])
@pytest.mark.parametrize("n_folds", [None, 2])
def test_no_rounding_puts_a_value_outside_its_limits(m, n_folds):
    if n_folds is not None and m < n_folds:
        pytest.skip("more folds than rows")
    for most in (0.1, 0.3, 0.7, 1.1, 3.3, 1e6 / 3):
        numbers = {"metric": "neg_mean_squared_error", "y_range": (0, most)}
        absolute = {"metric": "neg_mean_absolute_error", "y_range": (0, most)}
        costs = {"metric": "mean_cost", "costs": [[most, 0], [most / 3, 0]], "classes": [0, 1]}
        rows = [{}, {"sample_weight": 0.1 + np.arange(m) ** 0.5}, {"groups": np.arange(m) // 2}]
        rows += [{"baseline": np.zeros(m, int)}] * (n_folds is None)
        for own, more in itertools.product((numbers, absolute, costs), rows):
            given = {"space": 9, "delta": 0.5, "n_folds": n_folds}
            search = search_of(np.zeros(m, int), **given, **own, **more)
            for key, y_pred in enumerate((0, 1) if own is costs else (0.0, most / 3, most)):
                answer = search.query(np.full(m, y_pred), key=key)
                assert answer.low <= answer.value <= answer.high
                if "baseline" in more:
                    assert answer.gain_low <= answer.gain <= answer.gain_high


def test_scores_are_not_rounded_to_ties_by_the_rows_beside_them():
    whole, halves = 2**53 + Y, Y / 2  # NumPy makes floats of both
    search = search_by("roc_auc")
    with pytest.raises(ValueError, match="be exact in float64, got 9007199254740993 at row 0"):
        search.query_many([whole, halves], keys=[0, 1])
    with pytest.raises(ValueError, match="be exact in float64, got 9007199254740993 at sample"):
        search.query([*whole.tolist()[:-1], 0.5], key=0)
    assert search.query_many([whole - 2**53, halves], keys=[0, 1]).values.tolist() == [1.0, 1.0]


def test_errors_may_be_as_large_as_a_float():
    search = search_by("neg_mean_absolute_error", 1e200 * Y, y_range=(0, 1e200))
    assert search.query(np.zeros(M), key=0).value == pytest.approx(-1e200 * Y.mean())


@pytest.mark.parametrize("metric", sorted(set(METRICS) - {"error"}))
def test_guards_of_error_rates_refuse_other_metrics_by_name(metric):
    options = next(case[3] for case in ONE_OF_EACH if case[0] == metric)
    y_true = next(case[1] for case in ONE_OF_EACH if case[0] == metric)
    for make in (
        lambda judged: RadaBound(judged, epsilon=0.5, delta=0.5),
        lambda judged: Ladder(judged, step=0.1, delta=0.1),
        lambda judged: GuessAndCheck(judged, epsilon=0.1, delta=0.1),
    ):
        judged = holdout_of(y_true, metric=metric, **options)
        with pytest.raises(ValueError, match=f"must be 'error' for a .* got '{metric}': Declared"):
            make(judged)


@pytest.mark.parametrize("case", ONE_OF_EACH, ids=lambda case: case[0])
def test_a_key_stands_for_one_model_by_any_metric(case):
    metric, y_true, predictions, options, _ = case
    search = search_by(metric, y_true, **options)
    search.query(predictions, key=3)
    with pytest.raises(ValueError, match=r"key must stand for one model, got 3 \(rerun 1\)"):
        search.query(predictions[::-1], key=3)
    assert search.n_answered == 1 and search.query(predictions, key=3).number == 1


def test_a_record_opens_for_its_metric_and_baseline_alone(tmp_path):
    path, accuracy = tmp_path / "search.db", Holdout(Y, metric="accuracy")
    make = {"space": 1000, "delta": 0.1}
    DeclaredSearch.open(path, accuracy, baseline=CLASSES, **make)
    wrong = [
        (Holdout(Y, metric="f1"), {}),
        (Holdout(Y, metric="accuracy"), {}),
        (Y, {}),
        (Holdout(Y), {"baseline": CLASSES}),
        (Y, {"baseline": 1 - CLASSES}),
    ]
    for judged, given in wrong:
        for parameters in ({}, make):
            with pytest.raises(ValueError, match="metric, its options, classes, weights"):
                DeclaredSearch.open(path, judged, **given, **parameters)
    again = DeclaredSearch.open(path, Y, baseline=CLASSES)
    assert again.holdout.metric == "accuracy"
    with pytest.raises(ValueError, match="metric must be 'error' for a RadaBound"):
        RadaBound.open(tmp_path / "guard.db", Holdout(Y, metric="f1"), epsilon=0.5, delta=0.5)
    assert not (tmp_path / "guard.db").exists()


@pytest.mark.parametrize("metric", ["error", "accuracy", "balanced_accuracy", "f1"])
def test_bits_of_wrong_predictions_stand_for_predictions(metric):
    plain, packed = search_by(metric), search_by(metric)
    rows = np.stack([CLASSES, 1 - CLASSES, Y])
    expected = plain.query_many(rows, keys=range(3))
    answers = packed.query_many(pack_losses(rows != Y), keys=range(3))
    assert list(answers) == list(expected)
    assert packed.query(pack_losses(CLASSES != Y), key=0) == plain.query(CLASSES, key=0)


@pytest.mark.parametrize(
    "metric", [name for name, row in METRICS.items() if row.stores != "errors"]
)
def test_bits_of_wrong_predictions_are_refused_where_a_metric_needs_more(metric):
    search = search_of(np.arange(70) % 2, metric=metric, **METRIC_OPTIONS.get(metric, {}))
    for ask in (
        lambda: search.query(pack_losses(np.zeros(70, bool)), key=0),
        lambda: search.query_many(pack_losses(np.zeros((2, 70), bool)), keys=[0, 1]),
    ):
        with pytest.raises(TypeError, match=f"for the metric '{metric}', got PackedLosses"):
            ask()
    assert search.n_answered == 0


# ---- is B better than A? -------------------------------------------------------------------


@pytest.mark.parametrize("metric", ["error", "accuracy"])
@pytest.mark.parametrize("m", [1, 63, 64, 65, 500])
def test_the_gain_is_the_difference_of_both_scores(metric, m):
    rng = np.random.default_rng(m)
    y_true, baseline = rng.integers(0, 2, (2, m))
    rows = rng.integers(0, 2, (5, m))
    search = search_by(metric, y_true, classes=[0, 1], baseline=baseline)
    answers = search.query_many(rows, keys=range(5))
    errors, of_baseline = (rows != y_true).sum(1), (baseline != y_true).sum()
    assert (answers.gains * m).round(9).tolist() == (of_baseline - errors).tolist()
    nats = np.log(2 / 0.1) + np.log(1000) + np.log(2)  # scores and gains have half of delta each
    for row, answer in zip(rows, answers, strict=True):
        wrong, base = row != y_true, baseline != y_true
        counts = int((base & ~wrong).sum()), int((wrong & ~base).sum())
        limits = bounds.paired_interval(*counts, m, nats)
        assert (answer.gain_low, answer.gain_high) == pytest.approx(limits, abs=1e-12)
        scores = bounds.binomial_interval(int(wrong.sum()), m, nats)
        low, high = scores if metric == "error" else (1 - scores[1], 1 - scores[0])
        assert (answer.low, answer.high) == pytest.approx((low, high), abs=1e-12)
    columns = answers.to_dict()
    assert list(columns)[-3:] == ["gain", "gain_low", "gain_high"]
    assert [answer.to_dict()["gain_low"] for answer in answers] == columns["gain_low"].tolist()


def test_without_a_baseline_there_is_no_gain():
    search = search_by("accuracy")
    answer = search.query(CLASSES, key=0)
    for thing, name in ((answer, "gain"), (search.answers, "gains")):
        with pytest.raises(AttributeError, match=name):
            getattr(thing, name)
    for name in ("gain_lows", "gain_highs"):
        with pytest.raises(AttributeError, match="only a search with a baseline has gains"):
            getattr(search.answers, name)


@pytest.mark.parametrize("metric", ["error", "accuracy"])
@pytest.mark.parametrize("baseline", [None, CLASSES])
def test_two_models_are_compared_at_the_price_of_both_keys(metric, baseline):
    search = search_by(metric, baseline=baseline)
    compared = search.compare(Y, CLASSES, key_a=3, key_b=4)
    n_wrong = int((CLASSES != Y).sum())
    nats = np.log(2 / 0.1) + 2 * np.log(1000) - np.log(2)
    low, high = bounds.paired_interval(n_wrong, 0, M, nats)
    assert (compared.gain, compared.gain_low, compared.gain_high) == pytest.approx(
        (n_wrong / M, low, high)
    )
    assert compared.nats == pytest.approx(nats)
    assert search.n_answered == 2  # both were asked about
    back = search.compare(CLASSES, Y, key_a=4, key_b=3)
    assert (back.gain_low, back.gain_high) == pytest.approx((-high, -low))
    assert search.n_answered == 2
    with pytest.raises(ValueError, match=r"one model, got 3"):
        search.compare(1 - Y, CLASSES, key_a=3, key_b=4)
    with pytest.raises(ValueError, match="must be two models, got 3 twice"):
        search.compare(Y, Y, key_a=3, key_b=3)


def test_one_sided_gains_and_comparisons_have_a_lower_limit_alone():
    search = search_by("error", baseline=CLASSES, two_sided=False)
    n_wrong, nats = int((CLASSES != Y).sum()), np.log(1 / 0.1) + np.log(1000)
    answer = search.query(Y, key=0)
    compared = search.compare(Y, CLASSES, key_a=3, key_b=4)  # which pays for an ordered pair
    for gain, paid in ((answer, nats + np.log(2)), (compared, nats + np.log(1000))):
        low, _ = bounds.paired_interval(n_wrong, 0, M, paid)
        assert (gain.gain_low, gain.gain_high) == (pytest.approx(low), 1.0)


OTHER_MEANS = [case for case in ONE_OF_EACH if case[0] in set(MEANS) - set(COUNTED)]


@pytest.mark.parametrize("two_sided", [True, False])
@pytest.mark.parametrize("case", OTHER_MEANS, ids=lambda case: case[0])
def test_gains_and_comparisons_of_other_means_are_by_betting(case, two_sided, tmp_path):
    metric, y_true, one, options, _ = case
    other = one[::-1].copy()
    search = search_by(metric, y_true, baseline=other, two_sided=two_sided, **options)
    answers = search.query_many([one, other], keys=[0, 1])
    sign = 1 if METRICS[metric].greater_is_better else -1
    expected = sign * (answers.values - answers.values[1])
    np.testing.assert_allclose(answers.gains, expected, rtol=0, atol=1e-12)
    assert (answers.gain_lows < answers.gains).all() and (answers.gains < answers.gain_highs).all()
    truth = search.holdout.truth
    span = truth.most - truth.least
    losses, before = (truth.row.summary(truth, truth.read(rows, 1))[0] for rows in (one, other))
    nats = np.log((1 + two_sided) / 0.1) + np.log(1000) + np.log(2)
    low, high = bounds.betting_interval(0.5 + (before - losses) / (2 * span), nats)
    high = 2 * high - 1 if two_sided else 1
    assert answers[0].gain_low == pytest.approx((2 * low - 1) * span)
    assert answers[0].gain_high == pytest.approx(high * span)
    copied = pickle.loads(pickle.dumps(search))
    assert copied.query(one, key=0).to_dict() == search.query(one, key=0).to_dict()
    path, own = tmp_path / "search.db", {"space": 1000, "delta": 0.1, "two_sided": two_sided}
    judged = holdout_of(y_true, metric=metric, **options)
    stored = DeclaredSearch.open(path, judged, baseline=other, **own)
    assert stored.query(one, key=0).gain_low == answers[0].gain_low
    assert DeclaredSearch.open(path).best.gain_low == answers[0].gain_low
    compared = search.compare(one, other, key_a=0, key_b=1)
    assert compared.gain == pytest.approx(expected[0], abs=1e-12)
    assert compared.gain_low < answers[0].gain_low  # both keys are paid for
    assert search.n_answered == 2


def test_an_error_names_the_predictions_that_it_is_about():
    for given, fault in ((Y[:5], "length"), (Y.astype(str), "numbers"), (Y + 7, "known classes")):
        for metric in ("error", "accuracy", "balanced_accuracy"):
            search = search_by(metric)
            with pytest.raises((TypeError, ValueError), match=f"^y_pred must .*{fault}"):
                search.query(given, key=0)
            if metric == "balanced_accuracy":
                continue
            with pytest.raises((TypeError, ValueError), match=f"^baseline must .*{fault}"):
                search_by(metric, baseline=given)
            with pytest.raises((TypeError, ValueError), match=f"^y_pred_a must .*{fault}"):
                search.compare(given, Y, key_a=0, key_b=1)
            with pytest.raises((TypeError, ValueError), match=f"^y_pred_b must .*{fault}"):
                search.compare(Y, given, key_a=0, key_b=1)
            for own in (
                {"key_a": -1, "key_b": 1},
                {"key_b": -1, "key_a": 1},
                {"rerun_a": 2, "key_a": 0, "key_b": 1},
                {"rerun_b": 2, "key_a": 0, "key_b": 1},
            ):
                with pytest.raises(ValueError, match=f"^{next(iter(own))} must be "):
                    search.compare(Y, Y, **own)
            assert search.n_answered == 0
    with pytest.raises(ValueError, match="^y_score must be finite, got nan at sample 0"):
        search_by("roc_auc").roc_band(np.where(np.arange(len(Y)), 0.5, np.nan), key=0)


def test_compare_says_what_it_is_for():
    with pytest.raises(ValueError, match="compare is of means, error, .*'f1'"):
        search_by("f1").compare(Y, CLASSES, key_a=1, key_b=2)
    with pytest.raises(ValueError, match="compare is of means, .*without weights"):
        search_by("error", groups=Y).compare(Y, CLASSES, key_a=0, key_b=1)
    with pytest.raises(TypeError, match="compare needs a search that was made on labels"):
        DeclaredSearch(M, 9, delta=0.1).compare(Y, CLASSES, key_a=1, key_b=2)


def test_a_study_of_optuna_maximizes_an_area_and_tells_of_gains():
    optuna = pytest.importorskip("optuna")
    from radabound_fast.integrations.optuna import TrialSpace, guarded_objective

    optuna.logging.set_verbosity(optuna.logging.ERROR)

    def fit_predict(trial):
        return SCORES + trial.suggest_int("noise", 0, 5) * SCORES[::-1]

    search = search_by("roc_auc", space=TrialSpace())
    with pytest.raises(ValueError, match="study must maximize objective 0, the holdout roc_auc"):
        optuna.create_study().optimize(guarded_objective(search, fit_predict), n_trials=1)
    study = optuna.create_study(direction="maximize")
    study.optimize(guarded_objective(search, fit_predict), n_trials=4)
    assert study.best_value == max(answer.value for answer in search.answers)
    paired = search_by("accuracy", space=TrialSpace(), baseline=CLASSES)
    study = optuna.create_study(direction="maximize")
    study.optimize(
        guarded_objective(paired, lambda trial: Y * (trial.suggest_int("one", 0, 1))), n_trials=2
    )
    attrs = study.best_trial.user_attrs
    assert attrs["holdout_gain_low"] == paired.best.gain_low


# ---- weights, groups, and curves -------------------------------------------------------------

WEIGHTS = RNG.exponential(size=M) + 0.1
WEIGHTED = [
    ("error", Y, CLASSES, {}, 1 - metrics.accuracy_score(Y, CLASSES, sample_weight=WEIGHTS)),
    ("accuracy", Y, CLASSES, {}, metrics.accuracy_score(Y, CLASSES, sample_weight=WEIGHTS)),
    (
        "neg_log_loss", Y, CHANCES.clip(0.001, 0.999), {"clip": 0.001},
        -metrics.log_loss(Y, CHANCES.clip(0.001, 0.999), sample_weight=WEIGHTS),
    ),
    (
        "neg_brier_score", Y, CHANCES, {},
        -metrics.brier_score_loss(Y, CHANCES, sample_weight=WEIGHTS),
    ),
    (
        "neg_mean_absolute_error", TARGETS, GUESSES, {"y_range": (-4, 4)},
        -metrics.mean_absolute_error(TARGETS, GUESSES, sample_weight=WEIGHTS),
    ),
    (
        "neg_mean_squared_error", TARGETS, GUESSES, {"y_range": (-4, 4)},
        -metrics.mean_squared_error(TARGETS, GUESSES, sample_weight=WEIGHTS),
    ),
    (
        "mean_cost", THREE, (THREE + Y) % 3, {"costs": COSTS},
        np.average(np.array(COSTS)[THREE, (THREE + Y) % 3], weights=WEIGHTS),
    ),
]  # fmt: skip


@pytest.mark.parametrize("case", WEIGHTED, ids=lambda case: case[0])
def test_a_weighted_value_is_scikit_learn_s(case, tmp_path):
    metric, y_true, predictions, options, expected = case
    search = search_by(metric, y_true, sample_weight=WEIGHTS, **options)
    answer = search.query(predictions, key=3)
    assert answer.value == pytest.approx(expected, rel=0, abs=1e-12)
    assert answer.low < answer.value < answer.high
    assert answer.to_dict() == search.query_many([predictions], keys=[3])[0].to_dict()
    other = pickle.loads(pickle.dumps(search))
    assert other.query(predictions, key=3).to_dict() == answer.to_dict()
    path = tmp_path / "search.db"
    own = {"metric": metric, **options}
    judged = holdout_of(y_true, sample_weight=WEIGHTS, **own)
    stored = DeclaredSearch.open(path, judged, 1000, delta=0.1)
    assert stored.query(predictions, key=3).to_dict() == answer.to_dict()
    for wrong in ({}, {"sample_weight": WEIGHTS + 1}, {"sample_weight": WEIGHTS, "groups": Y}):
        with pytest.raises(ValueError, match="must be those with which"):
            DeclaredSearch.open(path, holdout_of(y_true, **own, **wrong))


def test_weights_and_groups_have_the_limits_of_the_groups_weights():
    groups = np.arange(M) // 5
    search = search_by("error", sample_weight=WEIGHTS, groups=groups)
    answer = search.query(CLASSES, key=0)
    nats = np.log(2 / 0.1) + np.log(1000)
    weights = np.bincount(groups, WEIGHTS)
    expected = bounds.weighted_interval(answer.value, weights, 1, nats)
    assert (answer.low, answer.high) == pytest.approx(expected)
    assert "weighted error" in search.guarantee
    of_objects = search_by("error", sample_weight=WEIGHTS.astype(object), groups=groups)
    assert of_objects.query(CLASSES, key=0).to_dict() == answer.to_dict()
    given = "in the population (given the weights and the groups' sizes)"
    assert given in search.guarantee and given in str(search.report())
    assert "E[w loss]/E[w] is another number" in search.guarantee


# equal weights are no weights, and groups of one row are no groups
ALIKE = {
    "ones": {"sample_weight": np.ones(M)},
    "floats": {"sample_weight": np.full(M, 0.1)},
    "objects": {"sample_weight": [7] * M},
    "groups": {"groups": [f"patient {row}" for row in range(M)]},
    "both": {"sample_weight": np.full(M, 1e-9), "groups": RNG.permutation(M)},
}


@pytest.mark.parametrize("alike", ALIKE)
@pytest.mark.parametrize("case", ONE_OF_EACH, ids=lambda case: case[0])
def test_rows_that_count_alike_have_the_answers_without_weights(case, alike):
    metric, y_true, predictions, options, _ = case
    holdout = holdout_of(y_true, metric=metric, **options)
    weighted = holdout_of(y_true, metric=metric, **options, **ALIKE[alike])
    searches = [DeclaredSearch(one.apart(), 1000, delta=0.1) for one in (weighted, holdout)]
    answers = [search.query(predictions, key=0).to_dict() for search in searches]
    assert answers[0] == answers[1]
    assert searches[0].guarantee == searches[1].guarantee
    for n_vectors in (0, 32):
        wide = {"epsilon": 0.9 if metric == "error" else 99.0, "delta": 0.1, "n_vectors": n_vectors}
        if metric == "error" or not n_vectors:
            guards = [FixedSequence(one.apart(), **wide) for one in (weighted, holdout)]
            answers = [guard.query(predictions).to_dict() for guard in guards]
            assert answers[0] == answers[1]
    if metric == "error":  # guards that take no weights
        assert Ladder(weighted, 0.1, delta=0.1).query(predictions).value > 0.0


@pytest.mark.parametrize(
    "options", [{"sample_weight": [1.0, 1.0, 1.0, 1.5]}, {"groups": [0, 0, 1, 2]}]
)
def test_rows_that_do_not_count_alike_are_weighted(options):
    assert Holdout([0, 1, 0, 1], **options).weighting is not None
    assert Losses(4, **options).weighting is not None


@pytest.mark.parametrize(
    ("metric", "options", "error", "message"),
    [
        ("f1", {"groups": Y}, ValueError, "left out with metric='f1': they are for means, error"),
        (
            "roc_auc",
            {"sample_weight": WEIGHTS},
            ValueError,
            "sample_weight and groups must be",
        ),
        ("error", {"sample_weight": WEIGHTS[1:]}, ValueError, "sample_weight must have length 500"),
        ("error", {"sample_weight": WEIGHTS * Y}, ValueError, "positive and finite, got 0.0 at s"),
        ("error", {"sample_weight": ["a"] * M}, TypeError, "sample_weight must be real numbers"),
        ("error", {"sample_weight": [None] * M}, ValueError, "weight must have no missing values"),
        ("error", {"sample_weight": [10**400] * M}, ValueError, "weight must be finite in float64"),
        ("error", {"groups": Y[1:]}, ValueError, "groups must have length 500"),
        ("error", {"groups": [None] * M}, ValueError, "groups must have no missing values"),
        ("error", {"groups": Y, "baseline": Y}, ValueError, "baseline must be left out beside"),
    ],
)
def test_weights_and_groups_that_make_no_sense_are_named(metric, options, error, message):
    with pytest.raises(error, match=message):
        search_by(metric, **options)


def assert_curve(band, y_true, scores):
    curve = metrics.roc_curve(y_true, scores, drop_intermediate=False)
    for found, expected in zip((band.fpr, band.tpr, band.thresholds), curve, strict=True):
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


def test_the_band_is_around_scikit_learn_s_curve():
    search = search_by("roc_auc")
    for key, scores in enumerate((SCORES, -SCORES, RNG.random(M))):
        band = search.roc_band(scores, key=key)
        assert_curve(band, Y, scores)
        nats = np.log(2 / 0.1) + np.log(1000)
        widths = bounds.roc_band(int((Y == 0).sum()), int(Y.sum()), nats)
        found = band.fpr_half_width, band.tpr_half_width, band.nats
        assert found == pytest.approx((*widths, nats))
    assert search.n_answered == 3
    with pytest.raises(ValueError, match="one model, got 2"):
        search.roc_band(scores + Y, key=2)
    with pytest.raises(ValueError, match="roc_band needs metric='roc_auc', got 'f1'"):
        search_by("f1").roc_band(scores, key=5)


# ---- ties in great number ------------------------------------------------------------------------

# how many different scores there are, and what they are: none, a class, grades, a sign of zero
LEVELS = {
    "one": lambda rng, m: np.full(m, 0.25),
    "two": lambda rng, m: rng.integers(0, 2, m),
    "three": lambda rng, m: rng.integers(0, 3, m).astype(np.float32) / 3,
    "five, of both signs": lambda rng, m: rng.integers(-2, 3, m) * -1.0,
    "signs of zero": lambda rng, m: np.where(rng.random(m) < 0.5, 0.0, -0.0),
}


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(("n_negative", "n_positive"), [(1, 1), (700, 3), (2, 900), (640, 640)])
def test_areas_and_curves_of_few_different_scores_count_ties_one_half(
    level, n_negative, n_positive
):
    rng = np.random.default_rng(n_negative)
    y_true = rng.permutation(np.repeat([0, 1], [n_negative, n_positive]))
    scores = LEVELS[level](rng, len(y_true))
    negative, positive = scores[y_true == 0], scores[y_true == 1]
    less = (negative[:, np.newaxis] < positive).sum()
    same = (negative[:, np.newaxis] == positive).sum()
    search = search_by("roc_auc", y_true)
    answer = search.query(scores, key=0)
    assert answer.value == (2 * less + same) / (2 * n_negative * n_positive)
    assert search.query_many([scores, scores], keys=[1, 2]).values.tolist() == [answer.value] * 2
    assert_curve(search.roc_band(scores, key=0), y_true, scores)


@pytest.mark.parametrize("metric", ["error", "roc_auc", "neg_brier_score"])
@pytest.mark.parametrize("stored", [False, True])
def test_of_many_equal_models_the_first_that_was_asked_about_is_best(metric, stored, tmp_path):
    given = {"error": CLASSES, "roc_auc": SCORES, "neg_brier_score": CHANCES}[metric]
    worse = {"error": 1 - CLASSES, "roc_auc": -SCORES, "neg_brier_score": 1 - CHANCES}[metric]
    judged = holdout_of(Y, metric=metric)
    make = partial(DeclaredSearch.open, tmp_path / "s.db") if stored else DeclaredSearch
    search = make(judged, 1000, delta=0.1)
    keys = np.random.default_rng(5).permutation(1000)[:60].tolist()
    search.query_many([worse] * 10, keys=keys[:10])
    for part in (keys[10:40], keys[40:]):
        search.query_many([given] * len(part), keys=part)
    assert search.best.key == keys[10]
    ranked = [answer.key for answer in search.report().ranking()]
    assert ranked == keys[10:] + keys[:10]


# ---- at a limit, and just beyond it --------------------------------------------------------------

THIRDS = np.full((M, 3), [0.25, 0.25, 0.5])


def changed(given, value, place=7):
    given = np.array(given)
    given[place] = value
    return given


# metric, options, labels, predictions with a value at each place, the last that is taken, the first
# that is not: next to it where float64 tells them apart
LIMITS = {
    "chances from 0": ("neg_brier_score", {}, Y, CHANCES, 0.0, -5e-324),
    "chances to 1": ("neg_brier_score", {}, Y, CHANCES, 1.0, np.nextafter(1, 2)),
    "sums from 1 - 1e-4": (
        "neg_brier_score", {}, THREE, THIRDS, [0.25, 0.25, 0.49991], [0.25, 0.25, 0.49989],
    ),
    "sums to 1 + 1e-4": (
        "neg_brier_score", {}, THREE, THIRDS, [0.25, 0.25, 0.50009], [0.25, 0.25, 0.50011],
    ),
    "numbers from the least": (
        "neg_mean_absolute_error", {"y_range": (-4, 4)}, TARGETS, GUESSES,
        -4.0, np.nextafter(-4, -5),
    ),
    "numbers to the largest": (
        "neg_mean_squared_error", {"y_range": (-4, 4)}, TARGETS, GUESSES, 4.0, np.nextafter(4, 5),
    ),
    "scores that are whole": ("roc_auc", {}, Y, np.round(SCORES).astype(int), 2**53, 2**53 + 1),
    "below 0": ("roc_auc", {}, Y, np.round(SCORES).astype(int), -(2**53), -(2**53) - 1),
    "finite scores": ("roc_auc", {}, Y, SCORES, np.finfo(float).max, np.inf),
    "classes": ("accuracy", {}, THREE, THREE, 2, 3),
    "costs": ("mean_cost", {"costs": COSTS}, THREE, THREE, 0, -1),
}  # fmt: skip


@pytest.mark.parametrize("limit", LIMITS)
def test_predictions_are_taken_up_to_their_limit_and_not_beyond_it(limit):
    metric, options, y_true, given, last, beyond = LIMITS[limit]
    search = search_by(metric, y_true, **options)
    answer = search.query(changed(given, last), key=0)
    least, most = search.limits_of_metric
    assert least <= answer.low <= answer.value <= answer.high <= most
    assert len(search.query_many([changed(given, last), given], keys=[0, 1])) == 2
    for ask in (
        lambda: search.query(changed(given, beyond), key=2),
        lambda: search.query_many([given, changed(given, beyond)], keys=[1, 2]),
    ):
        with pytest.raises(ValueError, match="sample 7"):
            ask()
    assert search.n_answered == 2


@pytest.mark.parametrize(
    ("metric", "options", "y_true", "ends"),
    [
        ("error", {}, THREE, (0, 1)),
        ("roc_auc", {}, Y, (0, 1)),
        ("neg_log_loss", {"clip": 0.01}, THREE, (np.log(0.01), 0)),
        ("neg_brier_score", {}, Y, (-1, 0)),
        ("neg_brier_score", {}, THREE, (-1 - 1.0001**2, 0)),  # of chances that sum up to 1.0001
        ("neg_mean_absolute_error", {"y_range": (-4, 5)}, TARGETS, (-9, 0)),
        ("neg_mean_squared_error", {"y_range": (-4, 5)}, TARGETS, (-81, 0)),
        ("mean_cost", {"costs": COSTS}, THREE, (-1, 5)),
    ],
)
def test_the_least_and_the_largest_value_of_a_metric(metric, options, y_true, ends):
    assert search_by(metric, y_true, **options).limits_of_metric == pytest.approx(ends, rel=1e-15)
