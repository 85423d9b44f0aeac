"""RadaBound(bound="fixed-sequence"): the rule of docs/theory.md, Result 11, query by query."""

import math
from typing import NamedTuple

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import stats

from radabound_fast import HoldoutExhausted, RadaBound, bounds, pack_losses, reference
from radabound_fast._halting import HaltingRule

M, N_VECTORS, DELTA, SEED = 500, 256, 0.1, 3
UNIT = 2.0**-24


def guard_of(epsilon, max_queries=None, n_samples=M, n_vectors=N_VECTORS):
    return RadaBound(
        n_samples, epsilon=epsilon, delta=DELTA, n_vectors=n_vectors, bound="fixed-sequence",
        seed=SEED, max_queries=max_queries,
    )  # fmt: skip


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


def judged(losses, epsilon, max_queries=None):
    """The rule, evaluated in NumPy from the signs: no integer gate, nothing incremental."""
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
    places = np.arange(len(losses))
    if max_queries is None:
        afforded = math.floor(0.2 * DELTA * math.exp(2 * n_samples * epsilon**2))
        by_union = places < afforded
    else:
        b = math.log(2 * max_queries / (0.4 * DELTA)) / n_samples
        near = [
            bounds.kl_plus(mean, b) - mean <= epsilon and mean - bounds.kl_minus(mean, b) <= epsilon
            for mean in means
        ]
        by_union = (places < max_queries) & near
    return Judged(means, complexities, np.array(widths) <= epsilon, by_union)


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


# losses, epsilon, max_queries: either part stops first, or both never, or one passes nothing; in
# the kl form means leave the free ones, and more is asked than max_queries
RUNS = {
    "union part only": (mutations(200, 0.5, 0.5), 0.09, None),
    "signs go on": (mutations(400, 0.02, 0.002), 0.08, None),
    "signs alone": (mutations(300, 0.02, 0.002), 0.062, None),
    "all answered": (mutations(300, 0.3, 0.01), 0.12, None),
    "growing error": (of_growing_error(300), 0.08, None),
    "real-valued": (real_valued(300), 0.09, None),
    "nothing": (mutations(20, 0.5, 0.5), 0.03, None),
    "kl, union part only": (mutations(200, 0.1, 0.1), 0.09, 150),
    "kl, low error": (mutations(200, 0.01, 0.01), 0.05, 120),
    "kl, growing error": (of_growing_error(300), 0.075, 1000),
    "kl, real-valued": (real_valued(300), 0.1, 250),
}
each_run = pytest.mark.parametrize("run", RUNS)


@each_run
def test_the_integer_gate_is_the_rule_at_every_query(run):
    losses, epsilon, max_queries = RUNS[run]
    expected = judged(losses.astype(np.float64), epsilon, max_queries)
    guard = guard_of(epsilon, max_queries)
    for place, row in enumerate(losses):
        if place >= expected.n_answered:
            with pytest.raises(HoldoutExhausted) as caught:
                guard.query(row)
            assert caught.value.n_queries == expected.n_answered
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
        each = judged(losses.astype(np.float64), epsilon, max_queries)
        by = {
            name: len(part) if part.all() else int(np.argmin(part))
            for name, part in (("signs", each.by_signs), ("union", each.by_union))
        }
        ends[run] = (by["signs"], by["union"], each.n_answered, len(losses))
    assert any(signs < union == n < k for signs, union, n, k in ends.values())
    assert any(0 < union < signs == n < k for signs, union, n, k in ends.values())
    assert any(0 < signs < union for signs, union, n, k in ends.values())
    assert any(n == k for _, _, n, k in ends.values())
    assert ends["nothing"][2] == 0


@each_run
def test_query_and_query_many_agree_bit_for_bit(run):
    losses, epsilon, max_queries = RUNS[run]
    one, many, threaded, parts = (guard_of(epsilon, max_queries) for _ in range(4))
    values = []
    try:
        for row in losses:
            values.append(one.query(row).value)
    except HoldoutExhausted:
        pass
    answers = many.query_many(losses)
    assert_array_equal(answers.values, values)
    assert answers.halted == one.halted
    assert_array_equal(threaded.query_many(losses, n_threads=2).values, values)
    for part in np.array_split(losses, 9):
        if not parts.halted:
            parts.query_many(part)
    guards = [many, threaded, parts]
    if losses.dtype == bool:
        packed, single = guard_of(epsilon, max_queries), guard_of(epsilon, max_queries)
        packed.query_many_packed(pack_losses(losses))
        for row in pack_losses(losses):
            if not single.halted:
                try:
                    single.query_packed(row)
                except HoldoutExhausted:
                    break
        guards += [packed, single]
    for guard in guards:
        assert state_of(guard) == state_of(one)
        assert guard.budget == one.budget and guard.n_left() == one.n_left()


def state_of(guard):
    return {name: np.asarray(value).tolist() for name, value in guard._state().items()}


@pytest.mark.parametrize("epsilon", [0.078, 0.09, 0.1])
def test_the_union_part_answers_exactly_so_many_queries(epsilon):
    """Unrelated coins: the signs stop before it does."""
    afforded = math.floor(0.4 * DELTA / 2 * math.exp(2 * M * epsilon**2))
    assert 1 < afforded < 10_000
    losses = np.random.default_rng(5).integers(0, 2, (afforded + 3, M), dtype=np.uint8)
    answers = guard_of(epsilon).query_many(losses)
    assert (answers.n_answered, answers.halted) == (afforded, True)


@pytest.mark.parametrize("max_queries", [3, 7, 40])
def test_with_max_queries_the_union_part_ends_there(max_queries):
    losses = np.random.default_rng(6).random((60, M)) < 0.3
    answers = guard_of(0.12, max_queries).query_many(losses)
    assert answers.n_answered == max_queries


def test_with_max_queries_more_are_answered_at_low_error_than_flat():
    """Unrelated classifiers of error 1/32: kl is worth ten times the queries, and more."""
    rng = np.random.default_rng(7)
    losses = rng.random((300, M)) < 1 / 32
    flat, kl = guard_of(0.06), guard_of(0.06, 300)
    assert flat.query_many(losses).n_answered < 30
    assert kl.query_many(losses).n_answered == 300


def test_a_mean_that_is_not_free_halts_and_its_mirror_image_too():
    epsilon, max_queries = 0.06, 1000
    free = bounds.BOUNDS["fixed-sequence"].free(M, epsilon, DELTA, max_queries)
    assert 0 < free.low < 0.1
    edge = math.floor(free.low * M)  # the largest count that is free
    spread = np.random.default_rng(8).permutation(M)

    def answered(count):
        guard = guard_of(epsilon, max_queries)
        # a coin first: the signs then vouch for nothing more
        noise = np.random.default_rng(9).random((40, M)) < 0.02
        guard.query_many(noise)
        assert not guard.halted
        try:
            return guard.query(spread < count).value == count / M
        except HoldoutExhausted:
            return False

    assert answered(edge) and not answered(edge + 1)
    assert answered(M - edge) and not answered(M - edge - 1)


@pytest.mark.parametrize("kind", ["binary", "real-valued"])
def test_the_budget_is_computed_anew_only_when_the_largest_mean_grows(monkeypatch, kind):
    priced = []
    price = HaltingRule.price

    def counted(rule, largest, unit_shift, n_rows):
        priced.append(largest / (rule.n_samples << unit_shift))
        return price(rule, largest, unit_shift, n_rows)

    monkeypatch.setattr(HaltingRule, "price", counted)
    losses = mutations(200, 0.02, 0.02)
    if kind == "real-valued":
        losses = losses * 0.75
    guard = guard_of(0.11)
    del priced[:]
    records = []
    for row in losses:
        before = len(priced)
        mean = guard.query(row).value
        if mean > max(records, default=0.0):
            records.append(mean)
            assert len(priced) > before
            assert priced[-1] == mean
        elif records:
            assert len(priced) == before
    assert 3 < len(records) < 20


@each_run
def test_the_budget_is_that_of_the_self_bounding_part_at_the_largest_mean(run):
    losses, epsilon, max_queries = RUNS[run]
    guard = guard_of(epsilon, max_queries)
    row = bounds.BOUNDS["fixed-sequence"]
    largest = 0.0
    for loss in losses[:50]:
        try:
            largest = max(largest, guard.query(loss).value)
        except HoldoutExhausted:
            break
        budget = row.budget(M, N_VECTORS, epsilon, DELTA, largest)
        assert guard.budget == pytest.approx(budget, abs=1 / (2 * N_VECTORS * M)) or budget < 0


@pytest.mark.parametrize("run", ["signs go on", "growing error", "real-valued", "kl, low error"])
def test_a_saved_guard_goes_on_as_if_it_had_not_been(run, tmp_path):
    losses, epsilon, max_queries = RUNS[run]
    whole, first = guard_of(epsilon, max_queries), guard_of(epsilon, max_queries)
    expected = whole.query_many(losses)
    values = []
    for part in np.array_split(losses, 5):
        values += first.query_many(part).values.tolist()
        if first.halted:
            break
        path = tmp_path / "guard"
        first.save(path)
        first = RadaBound.load(path)
        assert first.bound == "fixed-sequence"
        assert first.guarantee == whole.guarantee
    assert values == expected.values.tolist()
    assert state_of(first) == state_of(whole)
    assert first.budget == whole.budget


def test_the_guarantee_is_the_rows_with_its_words():
    for max_queries in (None, 300):
        words = guard_of(0.06, max_queries).guarantee
        row = bounds.BOUNDS["fixed-sequence"]
        assert words == row.guarantee(M, N_VECTORS, 0.06, DELTA, max_queries=max_queries)
        for phrase in ("proved", "fixed in advance", "two-sided", "finite-sample", "halting time"):
            assert phrase in words
    assert "300 queries" in words


def test_the_guarantee_says_that_the_order_must_be_fixed_and_which_pool_needs_none():
    words = guard_of(0.09).guarantee
    assert "for queries in an order fixed in advance (before any score on this holdout" in words
    pool = guard_of(0.09).n_left(declared=True)
    assert f", or in any order from a pool, fixed in advance, of at most {pool:,}, except" in words
    assert "or an order of queries, chosen after seeing earlier answers" in words
    assert "pool" not in guard_of(0.03).guarantee  # where it answers nothing


def run_of_copies(seed, epsilon, max_queries):
    """How many answers a guard gave, and whether one was off by more than epsilon.

    Copies of a classifier of error 1/4: m = 500, signs of their own.
    """
    rng = np.random.default_rng([seed, 11])
    base = rng.random(M) < 0.25
    losses = base ^ (rng.random((100, M)) < 0.002)
    truth = 0.25 * 0.998 + 0.75 * 0.002
    guard = RadaBound(
        M, epsilon=epsilon, delta=0.3, n_vectors=N_VECTORS, bound="fixed-sequence", seed=seed,
        max_queries=max_queries,
    )  # fmt: skip
    values = guard.query_many(losses).values
    return len(values), bool(np.any(np.abs(values - truth) > epsilon))


@pytest.mark.parametrize(("epsilon", "max_queries"), [(0.06, None), (0.08, None), (0.07, 6)])
def test_answers_up_to_the_halt_are_within_epsilon(epsilon, max_queries):
    """400 runs at delta = .3, seeds 0 to 399: a correct program fails with chance below 1e-6."""
    runs = [run_of_copies(seed, epsilon, max_queries) for seed in range(400)]
    assert sum(bad for _, bad in runs) <= stats.binom.ppf(1 - 1e-6, 400, 0.3)
    # it does halt, and not at once: five standard deviations and more of leeway
    assert 1 < np.mean([answered for answered, _ in runs]) < 90


@pytest.mark.parametrize("many", [False, True], ids=["one", "a block"])
def test_a_withheld_row_that_raised_the_price_leaves_none_behind(many):
    # its mean is the largest: the budget at it, or the largest sum in a file, would tell it
    seen = []
    for n_errors in (38, 45):
        guard = RadaBound(
            1000, epsilon=0.075, delta=0.1, n_vectors=64, bound="fixed-sequence", seed=5,
            max_queries=1,
        )  # fmt: skip
        first = np.random.default_rng(1).random((20, 1000)) < 0.02
        guard.query_many(first)
        budget, last = guard.budget, first[:1] | (np.arange(1000) < n_errors)
        if many:
            assert guard.query_many(np.concatenate([first, last])).n_answered == 20
        else:
            with pytest.raises(HoldoutExhausted):
                guard.query(last[0])
        assert guard.halted and guard.n_left() == 0
        assert guard.budget == budget >= guard.complexity  # halted by its mean alone
        seen.append((guard.budget, guard._core.largest))
    assert seen[0] == seen[1] and seen[0][1] == first.sum(axis=1).max()
