"""FixedSequence with sign vectors: the rule of docs/explanation/theory.md, Result 11, by query."""

import math
from typing import NamedTuple

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import stats
from support import state_of

from radabound_fast import FixedSequence, Holdout, HoldoutExhausted, RadaBound, bounds, pack_losses
from radabound_fast.guards.halting import HaltingRule
from radabound_fast.rows import reference

M, N_VECTORS, DELTA, SEED = 500, 256, 0.1, 3
UNIT = 2.0**-24


def sequence(epsilon, max_queries=None, n_samples=M):
    given = {"delta": DELTA, "n_vectors": N_VECTORS, "seed": SEED}
    return FixedSequence(n_samples, epsilon=epsilon, max_queries=max_queries, **given)


class Judged(NamedTuple):
    """Each query as the theory has it, whatever became of those before it."""

    means: np.ndarray
    complexities: np.ndarray
    by_signs: np.ndarray  # the self-bounding (low-error) part passes
    by_union: np.ndarray  # the union part passes

    @property
    def n_answered(self):
        passes = self.by_signs | self.by_union
        return len(passes) if passes.all() else int(np.argmin(passes))


def errors_of_sides(epsilon, max_queries, n_queries):
    """What a side of each query's interval may fail with: the larger of its two shares of delta."""
    half = 0.2 * DELTA
    counts = np.arange(M)
    truths = np.minimum(counts / M + epsilon, 1.0)
    # the most unlucky count of 0s and 1s that is off by epsilon
    worst = np.where(truths < 1.0, stats.binom.cdf(counts, M, truths), 0.0).max()
    n_flat = max_queries or math.floor(half / (2.0 * worst))
    k = np.arange(1, n_queries + 1)
    j = np.floor(np.log2(k))
    dyadic = 1.0 / (2.0**j * (j + 1.0) * (j + 2.0))
    flat = np.where(k <= n_flat, 1.0 / max(n_flat, 1), 0.0)
    return half * np.maximum(flat, dyadic) / 2.0


def free_counts(epsilon, error):
    """So many 0s or 1s, and fewer, have both exact limits within epsilon of the mean."""
    counts = np.arange(M + 1)
    truths = np.minimum(counts / M + epsilon, 1.0)
    fits = (truths == 1.0) | (stats.binom.cdf(counts, M, truths) <= error)
    fits &= fits[::-1]
    return M if fits.all() else int(np.argmin(fits)) - 1


def judged(losses, epsilon, max_queries=None):
    """The rule, evaluated in NumPy from the signs: no integer gate, nothing incremental."""
    declared = losses.dtype != np.float64
    n_samples = losses.shape[1]
    signs = reference.signs(SEED, N_VECTORS, n_samples)
    rounded = np.rint(losses / UNIT).astype(np.int64)
    sums = rounded @ signs.T
    spans = np.maximum.accumulate(sums) - np.minimum.accumulate(sums)
    complexities = spans.sum(1) / (2 * N_VECTORS * n_samples * 2**24)
    means = rounded.sum(1) / (n_samples * 2**24)
    widths = [
        bounds.low_error_half_width(complexity, largest, n_samples, N_VECTORS, 0.6 * DELTA)
        for complexity, largest in zip(complexities, np.maximum.accumulate(means), strict=True)
    ]
    by_union = []
    for mean, error in zip(means, errors_of_sides(epsilon, max_queries, len(losses)), strict=True):
        if declared:
            count = round(mean * M)
            by_union.append(min(count, M - count) <= free_counts(epsilon, error))
        else:
            b = math.log(1.0 / error) / n_samples
            high, low = bounds.kl_interval(mean, 1, b)[1], bounds.kl_interval(mean, 1, b)[0]
            by_union.append(high - mean <= epsilon and mean - low <= epsilon)
    return Judged(means, complexities, np.array(widths) <= epsilon, np.array(by_union))


def mutations(n_queries, rate, change, seed=1):
    """A classifier that errs at `rate`, and copies that differ from it at `change`."""
    rng = np.random.default_rng(seed)
    return (rng.random(M) < rate) ^ (rng.random((n_queries, M)) < change)


def of_growing_error(n_queries):
    """Each errs where the one before it does, and at a few samples more."""
    first = np.random.default_rng(2).random(M)
    return first < np.linspace(0.01, 0.4, n_queries)[:, np.newaxis]


def real_valued(n_queries):
    rng = np.random.default_rng(4)
    return 0.3 * rng.random(M) + 0.1 * rng.random((n_queries, M)) ** 2


# losses, epsilon, max_queries: either part stops first, or both never, or one passes nothing;
# means leave the free ones, and more is asked than max_queries
RUNS = {
    "union part only": (mutations(200, 0.5, 0.5), 0.083, None),
    "signs go on": (mutations(400, 0.5, 0.0005), 0.09, 10**9),
    "signs go on to the end": (mutations(400, 0.5, 0.0005), 0.095, 10**9),
    "both to the end": (mutations(300, 0.3, 0.003), 0.13, None),
    "growing error": (of_growing_error(300), 0.075, None),
    "real-valued": (real_valued(300), 0.08, None),
    "real-valued near 1/2": (0.35 + real_valued(300), 0.086, None),
    "nothing": (mutations(20, 0.5, 0.5), 0.03, None),
    "shared, union part only": (mutations(200, 0.1, 0.1), 0.08, 150),
    "shared, low error": (mutations(200, 0.01, 0.01), 0.035, 120),
    "shared, growing error": (of_growing_error(300), 0.07, 1000),
    "shared, real-valued": (real_valued(300), 0.08, 250),
}
each_run = pytest.mark.parametrize("run", RUNS)


@each_run
def test_the_integer_gate_is_the_rule_at_every_query(run):
    losses, epsilon, max_queries = RUNS[run]
    expected = judged(losses, epsilon, max_queries)
    guard = sequence(epsilon, max_queries)
    for place, row in enumerate(losses):
        if place >= expected.n_answered:
            with pytest.raises(HoldoutExhausted) as caught:
                guard.query(row)
            assert caught.value.n_answered == expected.n_answered
            break
        answer = guard.query(row)
        assert answer.value == expected.means[place]
        assert answer.complexity == expected.complexities[place]
        assert math.isnan(answer.delta_prime)
    assert guard.halted == (expected.n_answered < len(losses))


def test_the_runs_end_in_every_way():
    """What is tested above includes both orders in which the parts stop, and all answered."""
    ends = {}
    for run, (losses, epsilon, max_queries) in RUNS.items():
        each = judged(losses, epsilon, max_queries)
        by = {
            name: len(part) if part.all() else int(np.argmin(part))
            for name, part in (("signs", each.by_signs), ("union", each.by_union))
        }
        ends[run] = (by["signs"], by["union"], each.n_answered, len(losses))
    assert any(0 < signs < union == n < k for signs, union, n, k in ends.values())
    assert any(0 < union < signs == n < k for signs, union, n, k in ends.values())
    assert any(0 < union < signs == n == k for signs, union, n, k in ends.values())
    assert any(0 == signs < union < n + 1 < k for signs, union, n, k in ends.values())
    assert any(signs == union == n == k for signs, union, n, k in ends.values())
    assert ends["nothing"][2] == 0


@pytest.mark.parametrize(("epsilon", "n_queries"), [(0.062, 3), (0.078, 35), (0.1, 2146)])
def test_the_union_part_answers_exactly_so_many_queries(epsilon, n_queries):
    """Unrelated fair coins, whose means are the last to be within epsilon: the signs stop early."""
    rule = sequence(epsilon).rule
    assert rule.free.n_queries == n_queries
    losses = np.random.default_rng(5).integers(0, 2, (n_queries + 3, M), dtype=np.uint8)
    answers = sequence(epsilon).query_many(losses)
    assert (len(answers), answers.halted) == (n_queries, True)


def test_floats_that_happen_to_be_0_and_1_are_not_declared_so():
    losses = np.random.default_rng(5).integers(0, 2, (300, M))
    declared = sequence(0.083).query_many(losses)
    assert sequence(0.083).query_many(losses.astype(np.float64)).n_answered == 1
    assert declared.n_answered == 82
    for form in (losses.astype(bool), losses.astype(np.int64), pack_losses(losses)):
        assert_array_equal(sequence(0.083).query_many(form).values, declared.values)


@pytest.mark.parametrize("max_queries", [3, 7, 40, 150])
def test_max_queries_shares_half_and_the_other_half_goes_on(max_queries):
    losses = np.random.default_rng(6).random((200, M)) < 0.5
    answered = sequence(0.085, max_queries).query_many(losses).n_answered
    # fair coins: what max_queries is not too many for is answered; else by dyadic weights
    assert answered == (max_queries if 7 <= max_queries <= 117 else 7)


# THEORY's table: 400 unrelated coins, l = 256, delta = .1; before exact binomials and dyadic
# weights 3, 26, 5 and 1 of them were answered
@pytest.mark.parametrize(
    ("n_samples", "rate", "epsilon"),
    [(4000, 0.02, 0.02), (4000, 0.05, 0.03), (20_000, 0.02, 0.008), (1000, 0.02, 0.04)],
)
def test_low_error_is_worth_hundreds_of_queries(n_samples, rate, epsilon):
    for seed in range(3):
        losses = np.random.default_rng([seed, 400]).random((400, n_samples)) < rate
        guard = sequence(epsilon, n_samples=n_samples)
        assert guard.query_many(losses).n_answered == 400


def test_a_mean_that_is_not_free_halts_and_its_mirror_image_too():
    epsilon, place = 0.06, 41
    free = bounds.BOUNDS["fixed-sequence"].free(M, epsilon, DELTA, 10**6)
    edge = free.stage(place - 1).low_count  # the largest count that is free
    assert 0 < edge < 0.2 * M
    spread = np.random.default_rng(8).permutation(M)

    def answered(count):
        guard = sequence(epsilon, 10**6)
        # rare coins first: the signs then vouch for nothing more
        guard.query_many(np.random.default_rng(9).random((place - 1, M)) < 0.02)
        assert not guard.halted
        try:
            return guard.query(spread < count).value == count / M
        except HoldoutExhausted:
            return False

    assert answered(edge) and not answered(edge + 1)
    assert answered(M - edge) and not answered(M - edge - 1)


@pytest.mark.parametrize("declared", [True, False])
def test_as_many_queries_are_answered_as_were_promised(declared):
    """Unrelated coins of one count; signs pass none of them."""
    rng = np.random.default_rng(10)
    for count, epsilon in ((5, 0.03), (25, 0.055), (100, 0.075), (475, 0.055)):
        losses = rng.permuted(np.tile(np.arange(M) < count, (700, 1)), axis=1)
        guard = sequence(epsilon)
        promised = guard.rule.free_left(0, count / M, declared)
        assert 0 < promised < 700
        rows = losses if declared else losses.astype(np.float32)
        assert guard.query_many(rows).n_answered == promised
        left = [guard.rule.free_left(n, count / M, declared) for n in range(promised + 9)]
        assert left == [*range(promised, 0, -1), *[0] * 9]
    paper = RadaBound(M, epsilon=0.1, delta=DELTA)
    assert paper.rule.free_left(0, 0.1, declared) == 0


def test_an_interval_of_a_guards_answers_is_that_of_its_bound():
    guard = sequence(0.08, 300)
    answers = guard.query_many(np.random.default_rng(11).random((60, M)) < 0.05)
    places = np.arange(1, 61)
    lows, highs = guard.rule.interval(answers.values, places, True)
    row = bounds.BOUNDS["fixed-sequence"]
    free = row.free(M, 0.08, DELTA, 300)
    expected = row.interval(free, answers.values, places, 0.08, True)
    assert_array_equal((lows, highs), expected)
    assert (lows < answers.values).all() and (answers.values < highs).all()
    assert np.mean(highs - lows) < 0.12  # epsilon alone: .16


@pytest.mark.parametrize("kind", ["binary", "real-valued"])
def test_the_price_changes_with_the_largest_mean_and_the_stage(monkeypatch, kind):
    priced = []
    price = HaltingRule.price

    def counted(rule, largest, unit_shift, n_rows):
        priced.append((largest / (rule.n_samples << unit_shift), n_rows))
        return price(rule, largest, unit_shift, n_rows)

    monkeypatch.setattr(HaltingRule, "price", counted)
    losses = mutations(200, 0.02, 0.02)
    if kind == "real-valued":
        losses = losses * 0.75
    guard = sequence(0.11)
    ends = {2**j - 1 for j in range(1, 8)}  # a new power of two, whose weights are smaller
    records = [guard.query(losses[0]).value]
    for asked, row in enumerate(losses[1:], start=1):
        before = len(priced)
        mean = guard.query(row).value
        if mean > max(records):
            records.append(mean)
            assert priced[-1] == (mean, asked)
        else:
            assert (len(priced) > before) == (asked in ends)
    assert 3 < len(records) < 20


@each_run
def test_the_budget_is_of_the_self_bounding_part_at_the_largest_mean(run):
    losses, epsilon, max_queries = RUNS[run]
    guard = sequence(epsilon, max_queries)
    row = bounds.BOUNDS["fixed-sequence"]
    largest = 0.0
    for loss in losses[:50]:
        try:
            largest = max(largest, guard.query(loss).value)
        except HoldoutExhausted:
            break
        budget = row.budget(M, N_VECTORS, epsilon, DELTA, largest)
        assert guard.budget == pytest.approx(budget, abs=1 / (2 * N_VECTORS * M)) or budget < 0


@pytest.mark.parametrize(
    "run", ["signs go on", "growing error", "real-valued", "shared, low error"]
)
def test_a_database_that_is_opened_again_goes_on(run, tmp_path):
    losses, epsilon, max_queries = RUNS[run]
    whole, values, given = sequence(epsilon, max_queries), [], {"durability": "process"}
    parameters = {"epsilon": epsilon, "delta": DELTA, "n_vectors": N_VECTORS}
    expected = whole.query_many(losses)
    for part in np.array_split(losses, 5):
        with FixedSequence.open(
            tmp_path / "guard.db", M, max_queries=max_queries, seed=SEED, **parameters, **given
        ) as guard:
            assert guard.guarantee == whole.guarantee
            values += guard.query_many(part).values.tolist()
            if guard.halted:
                break
    assert values == expected.values.tolist()
    with FixedSequence.open(tmp_path / "guard.db") as guard:  # by what the file says
        assert state_of(guard) == state_of(whole) and guard.budget == whole.budget
        assert guard.n_left() == whole.n_left() and repr(guard) == repr(whole)


@pytest.mark.parametrize(
    ("judged", "given", "signed"),
    [
        (M, {}, True),
        (M, {"n_vectors": 0}, False),
        (np.arange(M) % 2, {}, True),
        (np.arange(M) % 2, {"n_vectors": 0}, False),
        (Holdout(np.arange(M) % 2, metric="accuracy"), {}, False),
        (Holdout(np.arange(M) % 2, metric="roc_auc"), {"n_vectors": 9}, False),
    ],
)
def test_error_rates_and_losses_have_signs_unless_n_vectors_is_0(judged, given, signed):
    guard = FixedSequence(judged, epsilon=0.3, delta=0.1, **given)
    assert guard.kind == "FixedSequence" and repr(guard).startswith("FixedSequence(")
    assert isinstance(guard, FixedSequence) and hasattr(guard, "complexity") == signed
    assert "FixedSequence" in str(guard._description()["kind"])


def test_the_guarantee_is_the_rows_with_its_words():
    for max_queries in (None, 300):
        words = sequence(0.1, max_queries).guarantee
        row = bounds.BOUNDS["fixed-sequence"]
        assert words == row.guarantee(M, N_VECTORS, 0.1, DELTA, max_queries=max_queries)
        for phrase in ("proved", "fixed in advance", "two-sided", "finite-sample", "halting time"):
            assert phrase in words
    assert "the first 300 queries, whatever their means" in words


def test_the_guarantee_says_which_order_and_which_pool_it_covers():
    words = sequence(0.09).guarantee
    assert "for queries in an order fixed in advance (before any score on this holdout" in words
    pool = sequence(0.09).n_left(binary=True)
    said = (
        f"in any order from a pool, fixed in advance, of at most {pool:,} whose losses are declared"
    )
    assert f", or {said}" in words
    assert "or an order of queries, chosen after seeing earlier answers" in words
    assert "pool" not in sequence(0.03).guarantee  # where it answers nothing


def run_of_copies(seed, epsilon, max_queries):
    """How many answers a guard gave, and whether one was off by more than epsilon.

    Copies of a classifier of error 1/4: m = 500, signs of their own.
    """
    rng = np.random.default_rng([seed, 11])
    base = rng.random(M) < 0.25
    losses = base ^ (rng.random((100, M)) < 0.002)
    truth = 0.25 * 0.998 + 0.75 * 0.002
    given = {"delta": 0.3, "n_vectors": N_VECTORS, "seed": seed}
    guard = FixedSequence(M, epsilon=epsilon, max_queries=max_queries, **given)
    values = guard.query_many(losses).values
    return len(values), bool(np.any(np.abs(values - truth) > epsilon))


@pytest.mark.parametrize(("epsilon", "max_queries"), [(0.06, None), (0.07, None), (0.07, 10**9)])
def test_answers_up_to_the_halt_are_within_epsilon(epsilon, max_queries):
    """400 runs at delta = .3, seeds 0 to 399: a correct program fails with chance below 1e-6."""
    runs = [run_of_copies(seed, epsilon, max_queries) for seed in range(400)]
    assert sum(bad for _, bad in runs) <= stats.binom.ppf(1 - 1e-6, 400, 0.3)
    # it does halt, and not at once: five standard deviations and more of leeway
    answered = np.mean([answered for answered, _ in runs])
    assert 1 < answered < 90, answered


@pytest.mark.parametrize("many", [False, True], ids=["one", "a block"])
def test_a_withheld_row_that_raised_the_price_leaves_none_behind(many):
    # its mean is the largest: the budget at it, or the largest sum in a file, would tell it
    seen = []
    errors = np.random.default_rng(1).permutation(1000)
    first = np.tile(errors < 20, (2**14, 1))
    for n_errors in (38, 41):
        given = {"delta": 0.1, "n_vectors": 64, "seed": 5, "max_queries": 2**60}
        guard = FixedSequence(1000, epsilon=0.05, **given)
        # a million times the same: the union bound then passes no more than 28 errors
        packed = pack_losses(first)
        for _ in range(64):
            guard.query_many(packed)
        assert guard.rule.free.stage(guard.n_answered).low_count == 28
        budget, last = guard.budget, errors[np.newaxis] < n_errors
        if many:
            assert len(guard.query_many(np.concatenate([first[:3], last]))) == 3
        else:
            with pytest.raises(HoldoutExhausted):
                guard.query(last[0])
        assert guard.halted and guard.n_left() == 0
        assert guard.budget == budget >= guard.complexity  # halted by its mean alone
        seen.append((guard.budget, guard._core.largest))
    assert seen[0] == seen[1] and seen[0][1] == 20
