"""DeclaredSearch: an interval for every answer, a key for every model, and nothing else to mind."""

import copy
import gc
import math
import multiprocessing
import pickle
import tracemalloc
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy.stats import beta

from radabound_fast import DeclaredSearch, Holdout, PackedLosses, bounds, pack_losses
from radabound_fast.spaces import Choice, Grid, Improvements, InOrder, epoch_of

M = 4000
# one under, at and over a byte and a word, and one sample
SIZES = [1, 7, 8, 9, 63, 64, 65, 1000, 4001]


def coin(seed, rate=0.2, m=M):
    return np.random.default_rng(seed).random(m) < rate


def clopper_pearson(count, m, a):
    low = beta.ppf(a, count, m - count + 1) if count else 0.0
    return low, beta.isf(a, count + 1, m - count) if count < m else 1.0


@pytest.mark.parametrize("m", [1, 64])
def test_rows_of_one_word_may_lie_in_any_order(m):
    losses = np.random.default_rng(m).random((20, m)) < 0.5
    search, packed = DeclaredSearch(m, 20, delta=0.1), pack_losses(losses)
    values = search.query_many(packed, keys=range(20)).values
    for column in (np.asfortranarray(packed.words), np.repeat(packed.words, 3, axis=1)[:, 1:2]):
        again = search.query_many(PackedLosses(column, m), keys=range(20))
        assert_array_equal(again.values, values)
    other = DeclaredSearch(Holdout(np.zeros(m, int), classes=[0, 1]), 20, delta=0.1)
    again = other.query_many(np.asfortranarray(losses.astype(int)), keys=range(20))
    assert_array_equal(again.values, values)


# ---- intervals ----------------------------------------------------------------------------------

# m, keys: the upper side at error .2 and .02, as printed in docs/how-to/search-a-declared-space.md
TABLE = {
    (1000, 10**3): (0.053, 0.023),
    (1000, 10**6): (0.073, 0.034),
    (1000, 10**12): (0.105, 0.053),
    (4000, 10**3): (0.026, 0.010),
    (4000, 10**6): (0.035, 0.014),
    (4000, 10**12): (0.050, 0.021),
    (20000, 10**3): (0.011, 0.004),
    (20000, 10**6): (0.015, 0.006),
    (20000, 10**12): (0.022, 0.008),
    (100000, 10**3): (0.0050, 0.0018),
    (100000, 10**6): (0.0068, 0.0025),
    (100000, 10**12): (0.0095, 0.0035),
}


@pytest.mark.parametrize(("m", "size"), TABLE)
def test_the_upper_sides_are_those_of_the_table(m, size):
    search = DeclaredSearch(m, size, delta=0.1)
    last_digit = 1e-4 if m == 100_000 else 1e-3
    widths = [search.interval_of_count(m * e // 100, key=0)[1] - e / 100 for e in (20, 2)]
    assert widths == pytest.approx(TABLE[m, size], abs=0.51 * last_digit)


@pytest.mark.parametrize("errors", [0, 1, 80, 800, 2000, 3999, 4000])
def test_binary_losses_have_exact_limits_and_floats_chernoffs(errors):
    search = DeclaredSearch(M, 1000, delta=0.1)
    losses = np.arange(M) < errors
    exact = pytest.approx(clopper_pearson(errors, M, 0.1 / 1000 / 2), rel=1e-6)
    for asked, key in ((losses, 1), (losses.astype(np.int8), 2), (losses.tolist(), 3)):
        answer = search.query(asked, key=key)
        assert (answer.low, answer.high) == exact
        assert search.interval_of_count(errors, key=9) == (answer.low, answer.high)
    limits = bounds.kl_interval(errors / M, 1, math.log(2 / 0.1 * 1000) / M)
    for dtype in (np.float16, np.float32, np.float64):
        answer = search.query(losses.astype(dtype), key=4)
        assert (answer.low, answer.high) == pytest.approx(limits, rel=1e-9)
        low, high = exact.expected
        assert answer.low <= low * (1 + 1e-9) and high <= answer.high * (1 + 1e-9)
    assert search.interval_of_value(errors / M, key=9) == search.interval_of_count(errors, key=9)


@pytest.mark.parametrize(
    "losses",
    [
        [True, False, True],
        [1, 0, 1],
        np.array([1, 0, 1], np.uint8),
        np.array([1, 0, 1], object),
        np.array([True, np.int8(0), 1], object),
    ],
)
def test_what_is_declared_is_so_by_its_type(losses):
    search = DeclaredSearch(3, 2, delta=0.5)
    exact = clopper_pearson(2, 3, 0.5 / 4)
    answer = search.query(losses, key=0)
    assert (answer.low, answer.high) == pytest.approx(exact, rel=1e-6)
    floats = search.query([float(loss) for loss in losses], key=0)
    assert floats.low < answer.low and answer.high < floats.high
    assert search.query(np.array([1.0, 0, 1], object), key=1).low == floats.low


def test_the_half_width_is_the_longer_side():
    answer = DeclaredSearch(M, 10**6, delta=0.1).query(np.arange(M) < 80, key=0)
    assert answer.low < answer.value == 0.02 < answer.high
    assert answer.half_width == answer.high - answer.value > answer.value - answer.low
    few = DeclaredSearch(M, 10**6, delta=0.1).query(np.arange(M) >= 80, key=0)
    assert few.half_width == few.value - few.low
    assert float(answer) == answer.value


def test_the_upper_side_alone_costs_ln_2_less():
    both = DeclaredSearch(M, 500, delta=0.1)
    upper = DeclaredSearch(M, 1000, delta=0.1, two_sided=False)
    answer = upper.query(coin(0), key=3)
    assert answer.low == 0.0
    assert answer.high == pytest.approx(both.query(coin(0), key=3).high)
    assert answer.half_width == answer.high - answer.value
    assert "at or below its high" in upper.guarantee and "at or below" not in both.guarantee


def test_a_key_pays_its_own_weight():
    search = DeclaredSearch(M, InOrder(), delta=0.1)
    first, late = (search.query(coin(0), key=k) for k in (1, 10**6))
    assert first.nats == math.log(2) and late.nats == pytest.approx(2 * math.log(10**6), rel=1e-6)
    low, high = clopper_pearson(int(coin(0).sum()), M, 0.1 / 2 / 2)
    assert (first.low, first.high) == pytest.approx((low, high), rel=1e-6)
    assert late.low < first.low < first.high < late.high
    assert search.best.key == 1


# ---- one query, many, packed --------------------------------------------------------------------


@pytest.mark.parametrize("m", SIZES)
def test_real_losses_are_rounded_as_everywhere(kernel, m):
    losses = np.random.default_rng(m).random((5, m))
    exact = np.rint(losses * 2**24).astype(np.int64).sum(axis=1)
    search = DeclaredSearch(m, 100, delta=0.1)
    one = [search.query(row, key=key).value for key, row in enumerate(losses)]
    assert one == [int(total) / (m << 24) for total in exact]
    many = DeclaredSearch(m, 100, delta=0.1).query_many(losses, keys=range(5))
    assert_array_equal(many.values, one)
    assert_array_equal(many.highs, search.answers.highs)


def test_a_block_larger_than_scratch_is_read_in_pieces():
    losses = np.random.default_rng(0).random((300, M)).astype(np.float32)
    search = DeclaredSearch(M, 300, delta=0.1)
    answers = search.query_many(losses, keys=range(300))
    again = search.query(losses[299], key=299)  # the same losses, or it would raise
    assert again.value == answers.values[299] and search.n_answered == 300


def test_a_block_of_nothing_is_answered():
    search = DeclaredSearch(M, 10, delta=0.1)
    for answers in (
        search.query_many(np.empty((0, M)), keys=[]),
        search.query_many(np.empty((0, M), bool), keys=np.arange(0)),
        search.query_many(pack_losses(np.empty((0, M))), keys=[]),
        search.answers,
    ):
        assert len(answers.values) == len(answers.highs) == len(answers.keys) == 0
    assert search.best is None and search.n_answered == 0


# ---- one key, one model -------------------------------------------------------------------------


def test_the_same_losses_again_are_answered_the_same():
    search = DeclaredSearch(M, 100, delta=0.1)
    first = search.query(coin(0), key=3)
    assert search.query(pack_losses(coin(0)), key=3.0) == first
    block = search.query_many(np.stack([coin(0), coin(1), coin(1)]), keys=[3, 4, 4])
    assert search.n_answered == block.n_answered == 2
    assert block.highs[1] == block.highs[2] and block.highs[0] == first.high
    assert search.answers.keys == [3, 4]


def ways(search, losses, key, **named):
    many = {name + "s": [value] for name, value in named.items()}
    return [
        lambda: search.query(losses, key=key, **named),
        lambda: search.query(pack_losses(losses), key=key, **named),
        lambda: search.query_many(losses[None], keys=[key], **many),
        lambda: search.query_many(pack_losses(losses[None]), keys=[key], **many),
        lambda: search.query(losses.astype(float), key=key, **named),
        lambda: search.query_many(losses[None].astype(np.float32), keys=[key], **many),
    ]


def test_other_losses_for_the_same_key_change_nothing():
    search = DeclaredSearch(M, 100, delta=0.1)
    search.query(coin(0), key=3)
    search.query(np.linspace(0, 1, M), key=5)
    moved = np.roll(coin(0), 1)  # as many errors, elsewhere
    flipped = coin(0) ^ (np.arange(M) == M - 1)
    for losses in (moved, flipped, coin(1)):
        for key in (3, 5):
            for ask in ways(search, losses, key):
                with pytest.raises(ValueError, match=rf"key must stand for one model, got {key} "):
                    ask()
    with pytest.raises(ValueError, match="make the search with allow_reruns=True, pass rerun="):
        search.query_many(np.stack([coin(7), coin(8), coin(9)]), keys=[1, 2, 1])
    assert search.n_answered == 2 and search.answers.keys == [3, 5]
    search.query_many(np.stack([coin(7), coin(8)]), keys=[1, 2])  # nothing was kept of these


@pytest.mark.parametrize("m", [1, 2, 8, 9, 64, 65, 1000])
@pytest.mark.parametrize("kind", [bool, np.float32, np.float64])
def test_losses_that_differ_at_any_one_sample_are_other_losses(kind, m):
    losses = np.random.default_rng(m).integers(0, 2, m).astype(kind)
    if kind is not bool:
        losses *= 0.75
    for sample in {*range(0, m, max(1, m // 50)), m - 1}:
        other = losses.copy()
        other[sample] = not other[sample]
        for first, second in ((losses, other), (other, losses)):
            search = DeclaredSearch(m, 100, delta=0.1)
            search.query(first, key=3)
            with pytest.raises(ValueError, match="key must stand for one model"):
                search.query(second, key=3)
            with pytest.raises(ValueError, match="key must stand for one model"):
                search.query_many(second[None], keys=[3])
            assert search.query(first, key=3).number == 1


@pytest.mark.parametrize("other", [0.5 * coin(0), coin(0) * 1e-9, 1 - 1e-7 * coin(1)])
def test_losses_between_0_and_1_are_other_losses_than_bits_were(other):
    for first, second in ((coin(0), other), (other, coin(0))):
        search = DeclaredSearch(M, 100, delta=0.1)
        search.query(first, key=3)
        for ask in ways(search, second, 3)[-2:]:
            with pytest.raises(ValueError, match="key must stand for one model, got 3 "):
                ask()
        assert search.n_answered == 1


def test_bits_and_floats_of_the_same_losses_are_the_same_losses():
    for first, second in ((coin(0), coin(0).astype(float)), (coin(0).astype(float), coin(0))):
        search = DeclaredSearch(M, 100, delta=0.1)
        search.query(first, key=3)
        answer = search.query(second, key=3)  # as it was declared this time
        assert answer.high == DeclaredSearch(M, 100, delta=0.1).query(second, key=3).high
        assert search.n_answered == 1
        with pytest.raises(ValueError, match="key must stand for one model"):
            search.query(1 - second, key=3)


def test_a_rerun_is_another_query_and_reruns_sum_to_the_weight():
    search = DeclaredSearch(M, 10, delta=0.1, allow_reruns=True)
    told = [search.query(coin(r), key=3, rerun=r) for r in range(1, 51)]
    weights = [math.exp(-answer.nats) for answer in told]
    assert math.fsum(weights) == pytest.approx(0.1 * (1 - 1 / 51))
    assert told[1].nats == pytest.approx(math.log(10 * 6)) and told[1].rerun == 2
    assert search.n_answered == 50 and search.answers.reruns.tolist() == list(range(1, 51))
    with pytest.raises(ValueError, match=r"got 3 \(rerun 2\) a second time.*is another rerun$"):
        search.query(coin(1), key=3, rerun=2)
    block = search.query_many(np.stack([coin(60), coin(61)]), keys=[4, 4], reruns=[1, 2])
    assert block.reruns.tolist() == [1, 2] and block.nats[0] == pytest.approx(math.log(20))
    assert search.query_many(coin(62)[None], keys=[5]).nats[0] == pytest.approx(math.log(20))


def test_reruns_must_be_declared():
    search = DeclaredSearch(M, 10, delta=0.1)
    for ask in ways(search, coin(0), 3, rerun=2):
        with pytest.raises(
            ValueError, match="rerun must be 1 unless the search has allow_reruns=True, got 2"
        ):
            ask()
    declared = DeclaredSearch(M, 10, delta=0.1, allow_reruns=True)
    for rerun, error in ((0, ValueError), (-1, ValueError), (1.5, TypeError), (True, TypeError)):
        for ask in ways(declared, coin(0), 3, rerun=rerun):
            with pytest.raises(error, match="rerun must be"):
                ask()
    with pytest.raises(ValueError, match="reruns must be one a key, 1, got 2"):
        declared.query_many(coin(0)[None], keys=[1], reruns=[1, 2])
    assert search.n_answered == declared.n_answered == 0


@pytest.mark.parametrize("key", [10, -1, 1.5, True, None, "3", (3,)])
def test_a_key_outside_the_space_raises_and_nothing_has_changed(key):
    search = DeclaredSearch(M, 10, delta=0.1)
    for ask in ways(search, coin(0), key):
        with pytest.raises(ValueError, match=r"key must be one of range\(0, 10\), got"):
            ask()
    with pytest.raises(ValueError, match="key must be one of"):
        search.interval_of_count(3, key=key)
    assert search.n_answered == 0


def test_bad_losses_raise_and_nothing_has_changed():
    search = DeclaredSearch(M, 10, delta=0.1)
    for losses, error, message in (
        (coin(0)[:-1], ValueError, "losses must have length 4000"),
        (pack_losses(coin(0)[:-1]), ValueError, "losses must have length 4000, got PackedLosses"),
        (np.full(M, 1.5), ValueError, "losses must be in"),
        (np.full(M, math.nan), ValueError, "losses must be in"),
        (np.full(M, 2), ValueError, "losses must be"),
        (np.array([2] * M, object), ValueError, "losses must be in"),
        (np.zeros((2, M)), ValueError, "losses must have one dimension"),
        (["a"] * M, TypeError, "losses must be real numbers"),
    ):
        with pytest.raises(error, match=message):
            search.query(losses, key=3)
    with pytest.raises(ValueError, match="keys must be one a row, 2, got 1"):
        search.query_many(np.zeros((2, M)), keys=[3])
    with pytest.raises(ValueError, match="losses must be in"):
        search.query_many(np.array([np.zeros(M), np.full(M, -0.1)]), keys=[3, 4])
    with pytest.raises(ValueError, match="words must have no bit set past n_samples"):
        packed = PackedLosses(np.array([32], np.uint64), 5)
        DeclaredSearch(5, 10, delta=0.1).query(packed, key=0)
    with pytest.raises(TypeError, match="key"):
        search.query(coin(0))
    assert search.n_answered == 0


def test_a_key_that_is_changed_later_is_stored_as_it_was():
    search = DeclaredSearch(M, {"depth": [1, 2, 3], "leaf": [1]}, delta=0.1)
    key = {"depth": 1, "leaf": 1}
    told = []
    for depth in (1, 2, 3):
        key["depth"] = depth
        told.append(search.query(coin(depth, 0.1 * depth), key=key))
    assert [answer.key["depth"] for answer in told] == [1, 2, 3]
    assert search.best.key == {"depth": 1, "leaf": 1}
    search.best.key["depth"] = 9
    assert search.best.key["depth"] == 1


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"judged": 0}, ValueError, "n_samples must be at least 1"),
        ({"space": 0}, ValueError, "space must be at least 1"),
        ({"space": {"a": [1, 1]}}, ValueError, "a must have different values"),
        ({"delta": 1.5}, ValueError, r"delta must be in \(0, 1\), got 1.5"),
        ({"delta": 0}, ValueError, r"delta must be in \(0, 1\)"),
        ({"allow_reruns": 1}, TypeError, "allow_reruns must be True or False, got 1"),
        ({"two_sided": None}, TypeError, "two_sided must be True or False, got None"),
    ],
)
def test_bad_parameters_raise(arguments, error, message):
    with pytest.raises(error, match=message):
        DeclaredSearch(**({"judged": M, "space": 10, "delta": 0.1} | arguments))


# ---- what it came to ----------------------------------------------------------------------------


def test_the_best_has_the_lowest_high_not_the_lowest_mean():
    search = DeclaredSearch(M, InOrder(), delta=0.1)
    search.query(np.arange(M) < 100, key=1)
    search.query(np.arange(M) < 99, key=10**9)
    search.query(np.arange(M) < 100, key=2)
    assert search.best.key == 1 and search.best.value == 100 / M
    assert search.best.high == search.answers.highs.min() < search.answers.highs[1]
    search.query((np.arange(M) < 100).astype(float), key=3)
    assert search.answers.highs[3] == pytest.approx(
        bounds.kl_interval(0.025, 1, math.log(20 * 12) / M)[1]
    )


def test_answers_tell_all_in_one_row_each():
    pandas = pytest.importorskip("pandas")
    search = DeclaredSearch(M, {"a": [1, 2]}, delta=0.1)
    told = [search.query(coin(a), key={"a": a}) for a in (1, 2)]
    table = pandas.DataFrame([answer.to_dict() for answer in told])
    assert {"value", "low", "high", "half_width", "number", "key", "nats"} <= set(table.columns)
    assert_array_equal(table["high"], search.answers.highs)
    assert_array_equal(table["half_width"], search.answers.half_widths)


def test_it_says_what_it_guarantees_and_shows_what_it_is():
    search = DeclaredSearch(M, {"a": range(1000)} | {"b": range(1000)}, delta=0.1)
    promise = "With probability at least 0.9 the mean loss of every answer in the population is"
    assert promise in search.guarantee and "one a key, so that" in search.guarantee
    assert "space of 1,000,000 keys" in search.guarantee
    assert "space that was declared" in DeclaredSearch(M, InOrder(), delta=0.1).guarantee
    assert repr(search) == (
        "DeclaredSearch(Losses(4000), Grid({'a': range(0, 1000), 'b': range(0, 1000)}), "
        "delta=0.1, n_answered=0)"
    )
    assert "allow_reruns=True" in repr(DeclaredSearch(M, 3, delta=0.1, allow_reruns=True))
    assert search.size == 10**6 and not search.halted


# ---- copies, processes, threads -----------------------------------------------------------------


def test_copies_go_their_own_way_and_answer_the_same():
    search = DeclaredSearch(M, Choice(50) * epoch_of(20), delta=0.1)
    first = search.query(coin(0), key=(3, 4))
    high = search.interval_of_count(int(coin(1).sum()), key=(0, 0))[1]
    for again in (pickle.loads(pickle.dumps(search)), copy.copy(search), copy.deepcopy(search)):
        assert again.query(coin(0), key=(3, 4)) == first
        assert again.query(coin(1), key=(3, 5)).high == high
        with pytest.raises(ValueError, match="key must stand for one model"):
            again.query(coin(2), key=(3, 4))
        assert again.n_answered == 2 and search.n_answered == 1
    stored = pickle.loads(pickle.dumps((first, search.answers)))
    assert stored[0] == first
    # one by itself and many at once are computed by other logarithms on some CPUs
    assert stored[1].highs[0] == pytest.approx(first.high, rel=1e-14)


def ask_in_worker(task):
    search, seed, predictions = task
    return search.query(predictions, key=seed).high


@pytest.mark.parametrize("method", [pytest.param("spawn", marks=pytest.mark.thorough), "fork"])
def test_any_worker_may_ask_a_search(method):
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"this system cannot {method}")
    labels = coin(99, 0.5).astype(int)
    search = DeclaredSearch(labels, 1000, delta=0.1)
    tasks = [(search, seed, labels ^ coin(seed)) for seed in range(4)]
    with warnings.catch_warnings(), multiprocessing.get_context(method).Pool(2) as pool:
        warnings.simplefilter("ignore", DeprecationWarning)  # of fork beside threads
        highs = pool.map(ask_in_worker, tasks)
    assert highs == [search.query(predictions, key=key).high for _, key, predictions in tasks]


def test_an_error_has_no_answer_where_levels_alone_are_shown():
    for space, key, shows_scores in ((9, 0, True), (Improvements(5), (0, ()), False)):
        search = DeclaredSearch(M, space, delta=0.1)
        search.query(coin(0), key=key)
        with pytest.raises(ValueError, match="a second time with other losses") as refusal:
            search.query(coin(1), key=key)
        assert hasattr(refusal.value, "answer") == shows_scores


def test_a_copy_takes_the_labels_along():
    labels = np.random.default_rng(0).choice(["cat", "dog", "owl"], M)
    search = DeclaredSearch(labels, 10, delta=0.1)
    answer = search.query(labels[::-1], key=3)
    for again in (pickle.loads(pickle.dumps(search)), copy.deepcopy(search)):
        assert again.holdout.classes == search.holdout.classes
        for predictions in (labels[::-1], labels[::-1].astype(object)):
            assert again.query(predictions, key=3) == answer


def test_threads_share_one_search():
    search = DeclaredSearch(M, 2000, delta=0.1)
    packed = pack_losses(np.array([coin(seed) for seed in range(50)]))

    def ask(_):
        for key in range(50):
            search.query(PackedLosses(packed.words[key], M), key=key)
        search.query_many(packed, keys=range(50))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(ask, range(8)))
    assert search.n_answered == 50 and sorted(search.answers.keys) == list(range(50))


# ---- labels -------------------------------------------------------------------------------------


def test_a_search_on_labels_takes_predictions_and_wrong_bits():
    labels = coin(9, 0.5).astype(int)
    search = DeclaredSearch(labels, 10, delta=0.1, allow_reruns=True)
    assert search.query(labels ^ coin(0), key=3, rerun=2).value == coin(0).mean()
    assert search.query(pack_losses(coin(0)), key=3, rerun=2).number == 1  # the same again
    many = search.query_many(np.stack([labels, 1 - labels]), keys=[4, 5], reruns=[1, 3])
    assert many.values.tolist() == [0.0, 1.0] and many.reruns.tolist() == [1, 3]
    with pytest.raises(ValueError, match=r"key must be one of range\(0, 10\), got None"):
        search.query(labels, key=None)
    with pytest.raises(TypeError, match="y_pred must be scores for the metric 'roc_auc'"):
        other = DeclaredSearch(Holdout(labels, metric="roc_auc"), 10, delta=0.1)
        other.query(pack_losses(coin(0)), key=3)


def test_nothing_that_is_kept_or_written_holds_losses():
    search = DeclaredSearch(M, 10, delta=0.1)
    losses = coin(0)
    search.query(losses, key=3)
    blob = pickle.dumps(search)
    assert pack_losses(losses).words.tobytes()[:16] not in blob and len(blob) < 2000


GRID = Grid({"a": range(1000), "b": range(100)})


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("space", "key_of"),
    [
        (10**7, lambda i: 79 * i),
        (GRID, lambda i: GRID[i]),
        (Choice(1000) * epoch_of(100), lambda i: (i // 100, i % 100)),
    ],
    ids=["ints", "grid", "product"],
)
def test_of_each_model_few_bytes_are_kept(space, key_of):
    search = DeclaredSearch(M, space, delta=0.1)
    packed = pack_losses(np.array([coin(seed) for seed in range(100)]))
    tracemalloc.start()
    try:
        for first in range(0, 10**5, 100):
            search.query_many(packed, keys=[key_of(i) for i in range(first, first + 100)])
        gc.collect()
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert search.n_answered == 10**5 and kept / 10**5 < 26


@pytest.mark.parametrize(
    ("space", "keys"),
    [
        (Choice(7) * InOrder(["a", "b", "c"]) * epoch_of(3), [(6, "c", 2), (0, "a", 0)]),
        (Choice(7) * InOrder() * epoch_of(3), [(6, 10**30, 2), (0, 1, 0)]),  # without end
        (Choice(2**40) * Choice(2**40), [(2**40 - 1, 0), (1, 2**40 - 1)]),  # too many for 64 bits
        (Choice(2**31) * Choice(2**32), [(2**31 - 1, 2**32 - 1), (0, 1)]),  # just few enough
    ],
)
def test_keys_of_products_come_back_as_they_were(space, keys):
    search = DeclaredSearch(M, space, delta=0.1)
    losses = np.array([coin(0), coin(1)])
    assert search.query_many(losses, keys=keys).keys == keys
    for again in (search, pickle.loads(pickle.dumps(search))):
        assert again.answers.keys == keys and again.answers.numbers.tolist() == [1, 2]
        assert again.query(losses[1], key=keys[1]) == again.answers[1]
        with pytest.raises(ValueError, match="key must stand for one model"):
            again.query_many(losses[::-1], keys=keys)
        with pytest.raises(ValueError, match="key must stand for one model"):
            again.query(losses[0], key=keys[1])


def test_queries_of_bits_come_again_as_floats_and_back():
    losses = np.array([coin(seed) for seed in range(4)])
    reals = losses.astype(float)
    for first, second in ((losses, reals), (reals, losses)):
        search = DeclaredSearch(M, 10, delta=0.1)
        search.query_many(first, keys=range(4))
        again = search.query_many(second[[0, 3, 2, 2]], keys=[0, 3, 2, 2])
        assert again.values.tolist() == losses.mean(axis=1)[[0, 3, 2, 2]].tolist()
        more = search.query_many(second[[0, 1, 1, 0]], keys=[0, 7, 7, 0])
        assert more.numbers.tolist() == [4, 5, 5, 5] and search.n_answered == 5
        with pytest.raises(ValueError, match=r"got 2 \(rerun 1\) a second time with other losses"):
            search.query_many(second[[0, 1, 1]], keys=[0, 8, 2])
        assert search.n_answered == 5 and search.answers.keys == [0, 1, 2, 3, 7]
