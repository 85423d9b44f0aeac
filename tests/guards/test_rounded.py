"""Answers on a grid: what is released, what the intervals contain, and what nothing tells."""

import json
import logging
import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
from support import DeclaredSearch, FixedSequence, HoldoutExhausted, RadaBound, query, query_many

from radabound_fast import Holdout, Rounded
from radabound_fast.metrics import Cost, LogLoss
from radabound_fast.spaces import InOrder

M, STEP = 60, 0.05
RNG = np.random.default_rng(3)
Y = np.repeat([0, 1], [24, 36])
# rows that err in 0, 1, ..., all of the samples; the classes take turns
ORDER = np.argsort(np.concatenate([np.arange(24) / 24, np.arange(36) / 36]), kind="stable")
ROWS = np.where(np.argsort(ORDER)[None, :] < np.arange(M + 1)[:, None], 1 - Y, Y)

GUARDS = {
    "RadaBound": (RadaBound, {"epsilon": 0.4, "delta": 0.1, "bound": "mclt", "seed": 1}),
    "FixedSequence": (FixedSequence, {"epsilon": 0.3, "delta": 0.1, "seed": 1}),
    "the union alone": (FixedSequence, {"epsilon": 0.3, "delta": 0.1, "n_vectors": 0}),
    "DeclaredSearch": (DeclaredSearch, {"space": M + 1, "delta": 0.1}),
    "one side": (DeclaredSearch, {"space": M + 1, "delta": 0.1, "two_sided": False}),
    "folds": (DeclaredSearch, {"space": M + 1, "delta": 0.1, "n_folds": 5}),
}
KINDS = ("RadaBound", "FixedSequence", "the union alone", "DeclaredSearch")
# metrics whose limits are a function of the value
COUNTS = ("error", "accuracy", "recall", "specificity")


def guard_on(name, judged=Y, **more):
    kind, parameters = GUARDS[name]
    return kind(judged, **parameters | more)


def exactly(count, n, step):
    """The multiple of a step that a count over n is rounded to, up where it is a tie."""
    step = Fraction(str(step))
    return float(math.floor(Fraction(count, n) / step + Fraction(1, 2)) * step)


@pytest.mark.thorough
@pytest.mark.parametrize("step", [0.01, 0.05, 0.25, 0.003, 1 / 3, 1e-6])
@pytest.mark.parametrize("n", [1, 3, 7, 60, 4000, 1_000_003])
def test_rounding_is_that_of_the_exact_count_and_a_tie_goes_up(n, step):
    counts = np.unique(np.linspace(0, n, 500).round().astype(int))
    grid = Rounded(step)
    released = grid.of(counts / n)
    assert released.tolist() == [exactly(count, n, repr(step)) for count in counts.tolist()]
    least, most = grid.cell(counts / n)
    assert ((least <= counts / n) & (counts / n <= most)).all()
    assert (grid.below(counts / n) <= counts / n).all()
    assert (grid.above(counts / n) >= counts / n).all()
    assert grid.n_values(0, 1) == 1 + math.floor(1 / Fraction(repr(step)) + Fraction(1, 2))
    assert grid.of(counts[-1] / n) == released[-1]


@pytest.mark.parametrize("of", ["of", "below", "above", "cell"])
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_only_finite_numbers_are_rounded(of, bad):
    for values in (bad, np.array([0.5, bad])):
        with pytest.raises(ValueError, match=f"values must be finite, got {bad}"):
            getattr(Rounded(0.01), of)(values)


@pytest.mark.parametrize("name", GUARDS)
def test_an_answer_is_a_function_of_the_rounded_count_alone(name):
    """All of it: fields, limits, pickles, logs."""
    told = {}
    for count in range(M + 1):
        answer = query(guard_on(name, release=Rounded(STEP)), ROWS[count], 0)
        assert answer.value == exactly(count, M, STEP)
        all_of_it = repr(answer.to_dict()), repr(answer.as_metrics()), pickle.dumps(answer)
        assert told.setdefault(answer.value, all_of_it) == all_of_it
    assert len(told) == round(1 / STEP) + 1


@pytest.mark.thorough
@pytest.mark.parametrize("name", GUARDS)
def test_the_interval_contains_that_of_every_count_that_is_rounded_alike(name):
    exact = [query(guard_on(name), row, 0) for row in ROWS]
    for count, row in enumerate(ROWS):
        answer = query(guard_on(name, release=Rounded(STEP)), row, 0)
        alike = [one for c, one in enumerate(exact) if exactly(c, M, STEP) == answer.value]
        assert exact[count] in alike
        low, high = min(one.low for one in alike), max(one.high for one in alike)
        if name in ("RadaBound", "FixedSequence"):
            # cut at epsilon, which here is of the value after rounding, and closed at a tie
            epsilon = GUARDS[name][1]["epsilon"]
            low, high = max(low, answer.value - epsilon), min(high, answer.value + epsilon)
            assert answer.low <= low + 1e-12 and answer.high >= high - 1e-12
            assert answer.half_width <= epsilon
        else:
            assert (answer.low, answer.high) == (low, high)
        assert answer.low <= answer.value <= answer.high


@pytest.mark.thorough
@pytest.mark.parametrize("metric", COUNTS)
@pytest.mark.parametrize("name", ["DeclaredSearch", "the union alone"])
def test_the_same_of_other_shares_of_rows(metric, name):
    holdout = Holdout(Y, metric=metric)
    answers = {}
    for row in ROWS[::3]:
        exact = query(guard_on(name, holdout.apart()), row, 0)
        rounded = query(guard_on(name, holdout.apart(), release=Rounded(STEP)), row, 0)
        assert rounded.low <= exact.low and exact.high <= rounded.high
        assert abs(rounded.value - exact.value) <= STEP / 2 + 1e-12
        limits = rounded.low, rounded.high
        assert answers.setdefault(rounded.value, limits) == limits


METRICS = {
    "roc_auc": "roc_auc",
    "f1": "f1",
    "balanced_accuracy": "balanced_accuracy",
    "neg_brier_score": "neg_brier_score",
    "neg_log_loss": LogLoss(clip=0.01),
    "mean_cost": Cost([[0, 1], [7, 0]]),
}


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["DeclaredSearch", "the union alone"])
@pytest.mark.parametrize("metric", METRICS)
def test_other_limits_are_rounded_outward(metric, name):
    holdout = Holdout(Y, metric=METRICS[metric])
    more = {} if name == "DeclaredSearch" else {"epsilon": 10.0}
    for row in ROWS[:30:7]:
        y_pred = row if holdout.takes == "classes" else 0.2 + 0.6 * row
        exact = query(guard_on(name, holdout.apart(), **more), y_pred, 0)
        rounded = query(guard_on(name, holdout.apart(), release=Rounded(STEP), **more), y_pred, 0)
        assert rounded.low <= exact.low and exact.high <= rounded.high
        assert abs(rounded.value - exact.value) <= STEP / 2 + 1e-12
        for number in (rounded.value, rounded.low, rounded.high):
            on_grid = Fraction(repr(number)) / Fraction(str(STEP))
            assert on_grid.denominator == 1 or number in holdout.limits_of_metric


@pytest.mark.thorough
@pytest.mark.parametrize("metric", ["error", "accuracy", "neg_brier_score"])
def test_a_gain_tells_no_more_than_the_value(metric):
    holdout = Holdout(Y, metric=metric)

    def as_taken(row):
        return row if holdout.takes == "classes" else 0.2 + 0.6 * row

    options = {"space": M + 1, "delta": 0.1, "baseline": as_taken(ROWS[25])}
    exact = DeclaredSearch(holdout.apart(), **options)
    search = DeclaredSearch(holdout.apart(), **options, release=Rounded(STEP))
    known = exact.query_many(as_taken(ROWS), keys=range(M + 1))
    told = search.query_many(as_taken(ROWS), keys=range(M + 1))
    baseline = search.report().baseline
    assert abs(baseline - exact.report().baseline) <= STEP / 2 + 1e-12
    sign = 1 if holdout.greater_is_better else -1
    assert told.gains == pytest.approx(sign * (told.values - baseline))
    assert (told.gain_lows <= known.gain_lows).all()
    assert (told.gain_highs >= known.gain_highs).all()
    assert (told.gain_lows <= told.gains).all() and (told.gains <= told.gain_highs).all()
    of_grid = told.gain_lows / STEP
    assert of_grid == pytest.approx(of_grid.round())


@pytest.mark.thorough
@pytest.mark.parametrize(
    "weighted", [{"groups": np.arange(M) // 2}, {"sample_weight": 1 + np.arange(M) % 3}]
)
@pytest.mark.parametrize("name", ["FixedSequence", "the union alone", "DeclaredSearch"])
def test_weights_and_groups(name, weighted):
    more = {} if name == "DeclaredSearch" else {"epsilon": 0.6}
    for row in ROWS[5:30:8]:
        exact = query(guard_on(name, Holdout(Y, **weighted), **more), row, 0)
        rounded = query(
            guard_on(name, Holdout(Y, **weighted), release=Rounded(STEP), **more), row, 0
        )
        assert rounded.value == Rounded(STEP).of(exact.value)
        assert rounded.low <= exact.low and exact.high <= rounded.high


@pytest.mark.thorough
@pytest.mark.parametrize("name", GUARDS)
def test_a_block_is_a_loop(name):
    rows = ROWS[:20]
    loop = guard_on(name, release=Rounded(STEP))
    one_by_one = [query(loop, row, key) for key, row in enumerate(rows)]
    block = query_many(guard_on(name, release=Rounded(STEP)), rows, range(20))
    assert list(block) == one_by_one
    for name in ("low", "high", "half_width"):
        assert getattr(block, f"{name}s").tolist() == [getattr(one, name) for one in one_by_one]
    assert "nan" in repr(block.to_dict().get("complexity", "nan"))


@pytest.mark.thorough
@pytest.mark.parametrize("name", KINDS)
def test_a_database_holds_the_grid_and_compares_it(name, tmp_path):
    kind, parameters = GUARDS[name]
    path = tmp_path / "guard.db"
    with kind.open(path, Y, **parameters, release=Rounded(STEP)) as guard:
        first = query(guard, ROWS[14], 3)
        assert f"multiples of {STEP}" in guard.guarantee
        assert guard.parameters["release"] == {"step": STEP}
        limits = list(guard.intervals_of([first] * 5))
        assert limits == [(first.low, first.high, first.half_width)] * 5
    with kind.open(path, Y) as guard:
        assert guard.release == Rounded(STEP)
        assert query(guard, ROWS[13], 4).value == exactly(13, M, STEP)
    for other in ("interval", Rounded(0.1)):
        with pytest.raises(ValueError, match=r"release must be Rounded\(step=0.05\), .* was made"):
            kind.open(path, Y, **parameters, release=other)


@pytest.mark.thorough
def test_a_search_stores_and_reports_rounded_scores_alone(tmp_path):
    """Two searches whose scores round alike are the same to the octet, but for hashes and keys."""
    reports = []
    for rows in ([14, 25], [16, 24]):
        path = tmp_path / f"{rows[0]}.db"
        with DeclaredSearch.open(path, Y, 9, delta=0.1, release=Rounded(STEP)) as search:
            search.query_many(ROWS[rows], keys=[3, 4])
            stored = [entry[:-1] for entry in search.database.after(0).values()]
            report = search.report()
        reader = DeclaredSearch.open(path)  # without the labels
        assert reader.report().to_json() == report.to_json()
        assert reader.guarantee == search.guarantee
        reports.append((stored, report.to_json(), report.to_markdown(), str(report)))
    assert reports[0] == reports[1]
    assert "(rounded to multiples of 0.05)" in reports[0][3]
    assert json.loads(reports[0][1])["best"]["value"] == 0.25


def test_the_halt_is_that_of_a_smaller_epsilon():
    """So every rounded answer is within epsilon, and what the halt tells is known."""
    kind, parameters = GUARDS["FixedSequence"]
    rows = np.tile(ROWS[28:32], (400, 1))
    n_answered = []
    for options in ({"release": Rounded(0.1)}, {"epsilon": 0.25}):
        guard = kind(Y, **parameters | options)
        answers = guard.query_many(rows)
        n_answered.append((len(answers), answers.halted, guard.n_left()))
        with pytest.raises(HoldoutExhausted) as halt:
            guard.query(ROWS[0])
        assert (halt.value.complexity is None) == ("release" in options)
        assert ("complexity" in str(halt.value)) == ("release" not in options)
    assert n_answered[0] == n_answered[1] and n_answered[0][1]


@pytest.mark.thorough
@pytest.mark.parametrize("mean", [None, 0.1, 0.5])
@pytest.mark.parametrize("metric", ["error", "accuracy"])
def test_what_is_left_is_answered(metric, mean):
    guard = FixedSequence(
        Holdout(Y, metric=metric), epsilon=0.23, delta=0.1, n_vectors=0, release=Rounded(0.02)
    )
    left = guard.n_left(mean)
    assert 0 < left < 1000
    rows = ROWS[6 if mean == 0.1 else 30][None].repeat(left, axis=0)
    assert len(guard.query_many(rows)) == left


@pytest.mark.parametrize("name", KINDS)
def test_a_log_has_the_rounded_value(name, caplog):
    with caplog.at_level(logging.DEBUG, "radabound_fast"):
        guard = guard_on(name, release=Rounded(STEP))
        query(guard, ROWS[14], 3)
    assert [record for record in caplog.messages if "0.25" in record]
    assert not [record for record in caplog.messages if "0.2333" in record]


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize(
    ("release", "message"),
    [
        ("pass", "release must be 'interval' or a Rounded, got 'pass'"),
        (0.01, "release must be 'interval' or a Rounded, got 0.01"),
        (None, "release must be 'interval' or a Rounded, got None"),
    ],
)
def test_bad_releases(name, release, message):
    with pytest.raises(ValueError, match=message):
        guard_on(name, release=release)


@pytest.mark.parametrize("name", KINDS)
def test_losses_are_not_rounded_for_those_who_bring_them(name):
    with pytest.raises(ValueError, match="must be 'interval' where losses are judged"):
        guard_on(name, M, release=Rounded(STEP))


@pytest.mark.parametrize("name", ["RadaBound", "FixedSequence", "the union alone"])
def test_a_step_is_below_two_epsilon(name):
    with pytest.raises(ValueError, match="a step below 2 epsilon"):
        guard_on(name, epsilon=0.2, release=Rounded(0.4))


@pytest.mark.parametrize("metric", ["error", "accuracy"])
def test_a_comparison_has_the_gain_of_the_rounded_values(metric):
    search = DeclaredSearch(Holdout(Y, metric=metric), M + 1, delta=0.1, release=Rounded(STEP))
    exact = DeclaredSearch(Holdout(Y, metric=metric), M + 1, delta=0.1)
    for a, b in ((2, 4), (4, 2), (1, 8), (20, 19)):  # 2 and 4 of 60 are both .05
        models = {"key_a": a, "key_b": b}
        known = exact.compare(ROWS[a], ROWS[b], **models)
        told = search.compare(ROWS[a], ROWS[b], **models)
        assert told.gain == round(exactly(b, M, STEP) - exactly(a, M, STEP), 9)
        assert told.gain_low <= min(known.gain_low, told.gain)
        assert told.gain_high >= max(known.gain_high, told.gain)


def test_what_else_a_search_tells():
    search = DeclaredSearch(Y, InOrder(), delta=0.1, release=Rounded(STEP))
    exact = DeclaredSearch(Y, InOrder(), delta=0.1)
    rounded, known = (one.compare(ROWS[10], ROWS[21], key_a=1, key_b=2) for one in (search, exact))
    assert rounded.gain == 0.2 and known.gain == pytest.approx(11 / 60)
    assert rounded.gain_low <= known.gain_low and rounded.gain_high >= known.gain_high
    told = search.interval_of_count(14, key=3)
    assert told == search.interval_of_value(15 / 60, key=3) == search.interval_of_value(0.25, key=3)
    lows, _ = search.interval_of_count([14, 16, 20], key=[3, 3, 3])
    assert lows[0] == lows[1] == told[0] != lows[2]
    answer = search.query(ROWS[14], key=3)
    assert told == (answer.low, answer.high)
    for metric in ("roc_auc", "f1"):
        search = DeclaredSearch(Holdout(Y, metric=metric), 9, delta=0.1, release=Rounded(STEP))
        with pytest.raises(ValueError, match="takes more than its value"):
            search.interval_of_value(0.5, key=3)
    search = DeclaredSearch(Holdout(Y, metric="roc_auc"), 9, delta=0.1, release=Rounded(STEP))
    with pytest.raises(ValueError, match="a curve tells more than a rounded score"):
        search.roc_band(ROWS[3], key=1)
    assert search.n_answered == 0


@pytest.mark.parametrize("name", ["RadaBound", "the union alone", "DeclaredSearch"])
def test_a_step_that_does_not_divide_one_releases_nothing_above_one(name):
    answer = query(guard_on(name, release=Rounded(0.15)), ROWS[M], 0)  # 7 steps are 1.05
    assert answer.high == answer.value == 1.0
    many = query_many(guard_on(name, release=Rounded(0.15)), ROWS[[M]], range(1))
    assert many.values.tolist() == many.highs.tolist() == [1.0]


def test_with_three_classes_a_refused_model_of_a_key_tells_labels_and_with_two_none():
    """The number that SECURITY states: other predictions of a key with the same errors pass."""

    def passes(search, row):
        try:
            search.query(row, key=0)
        except ValueError:
            return False
        return True

    for n_classes, n_known in ((2, 0), (3, 18)):
        y_true = np.arange(27) % n_classes
        search = DeclaredSearch(y_true, 1, delta=0.1, release=Rounded(0.5))
        guess = np.zeros(27, int)
        search.query(guess, key=0)
        known = [
            y_true[i] == 3 - other
            for i in range(27)
            for other in range(1, n_classes)
            if passes(search, np.where(np.arange(27) == i, other, guess))
        ]
        assert all(known) and len(known) == n_known and search.n_answered == 1
