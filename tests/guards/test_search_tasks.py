"""Rows of a declared search, counted elsewhere: what `query_many` gives, in whatever order."""

import copy
import itertools
import pickle
import traceback
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from support import in_package, search_of

from radabound_fast import DeclaredSearch, Losses, PackedLosses, Rounded, pack_losses
from radabound_fast.rows import partial as partials_module
from radabound_fast.rows.partial import Partial
from radabound_fast.spaces import Choice, Grid, Improvements, InOrder

M, K = 200, 40  # of four words, the last one short
RNG = np.random.default_rng(11)
CLASSES = RNG.integers(0, 3, M)
Y = CLASSES % 2
WRONG = (RNG.random(M) < 0.05) ^ (RNG.random((K, M)) < np.linspace(0.02, 0.3, K)[:, np.newaxis])
PREDICTED = Y ^ WRONG
SHARES = np.clip(np.where(PREDICTED, 0.8, 0.2) + 0.2 * RNG.random((K, M)), 0, 1)


class Case(NamedTuple):
    make: Any  # a search, given n_best
    rows: Any
    in_parts: bool = True  # whether rows may be cut along the samples
    keys: Any = tuple(range(K))


def on_labels(rows=PREDICTED, *, in_parts=True, y=Y, **options):
    return Case(lambda **more: search_of(y, 10**6, **options, **more), rows, in_parts)


def on_losses(rows, space=10**6, keys=tuple(range(K)), **options):
    return Case(
        lambda **more: DeclaredSearch(M, space, delta=0.1, **options, **more), rows, True, keys
    )


GRID = Grid({"depth": range(1, 11), "leaf": [1, "many", None, True]})
NAMES = tuple(f"model {i}" for i in range(K))
PRODUCT = Grid({"a": [1, 2]}) * Choice(NAMES)
REAL = {"in_parts": False}
CASES = {
    "bools": on_losses(WRONG),
    "packed": on_losses(pack_losses(WRONG)),
    "floats": on_losses(WRONG.astype(np.float32)),
    "real": on_losses(WRONG * 0.75),
    "list": on_losses(WRONG.tolist()),
    "one-sided": on_losses(WRONG, two_sided=False),
    "folds": on_losses(WRONG, n_folds=5),
    "grid": on_losses(WRONG, GRID, tuple(GRID)),
    "in order": on_losses(WRONG, InOrder(), tuple(range(1, K + 1))),
    "names": on_losses(WRONG, Choice(NAMES), NAMES),
    "product": on_losses(WRONG, PRODUCT, tuple(({"a": 2}, n) for n in NAMES)),
    "large ints": on_losses(WRONG, 2**70, tuple(2**64 + i for i in range(K))),
    "error": on_labels(),
    "error of packed": on_labels(pack_losses(WRONG)),
    "gains": on_labels(baseline=PREDICTED[3]),
    "accuracy": on_labels(metric="accuracy", baseline=PREDICTED[3]),
    "precision": on_labels(metric="precision"),
    "recall": on_labels(metric="recall"),
    "f1": on_labels(metric="f1"),
    "balanced": on_labels((CLASSES + WRONG) % 3, y=CLASSES, metric="balanced_accuracy"),
    "costs": on_labels(metric="mean_cost", costs=[[0, 1], [3, 0]], **REAL),
    "auc": on_labels(SHARES, metric="roc_auc", **REAL),
    "log loss": on_labels(SHARES, metric="neg_log_loss", clip=0.01, **REAL),
    "gains of log loss": on_labels(
        SHARES, metric="neg_log_loss", clip=0.01, baseline=SHARES[1], **REAL
    ),
    "brier": on_labels(np.stack([1 - SHARES, SHARES], axis=2), metric="neg_brier_score", **REAL),
    "squares": on_labels(SHARES, metric="neg_mean_squared_error", y_range=(0, 1), **REAL),
    "weights": on_labels(sample_weight=1.0 + np.arange(M) % 3, **REAL),
    "rounded": on_labels(release=Rounded(0.05), **REAL),
    "groups": on_labels(groups=np.arange(M) // 4, **REAL),
}  # fmt: skip


BY_DEFAULT = ("bools", "packed", "grid", "gains", "f1", "auc")
each_case = pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, id=name, marks=[] if name in BY_DEFAULT else pytest.mark.thorough)
        for name, case in CASES.items()
    ],
)


def part_of(rows, which):
    return [rows[i] for i in which] if isinstance(rows, list) else rows[np.asarray(which, int)]


def columns_of(rows, start, stop):
    if isinstance(rows, PackedLosses):
        return PackedLosses(rows.words[:, start // 64 : -(-stop // 64)], stop - start)
    return np.asarray(rows)[:, start:stop]


def scattered():
    """Rows of blocks in an order that has nothing to do with that of the keys."""
    order = np.random.default_rng(5).permutation(K)
    return [order[:7].tolist(), order[7:8].tolist(), [], order[8:].tolist()]


def partials_of(task, case, **options):
    task = pickle.loads(pickle.dumps(task))
    for which in scattered():
        if which or not isinstance(case.rows, list):
            keys = [case.keys[i] for i in which]
            yield task.reduce(part_of(case.rows, which), keys=keys, **options)


def assert_same(answers, expected):
    assert answers.n_answered == expected.n_answered and len(answers) == len(expected)
    ours, theirs = answers.to_dict(), expected.to_dict()
    assert ours.keys() == theirs.keys()
    for name, column in theirs.items():
        assert_array_equal(ours[name], column)


@pytest.fixture(autouse=True)
def small_blocks_have_threads(monkeypatch):
    monkeypatch.setattr(partials_module, "THREAD_BYTES", 1)


@each_case
def test_what_comes_in_any_order_is_answered_as_by_one_process(case):
    here, there = case.make(), None
    expected = here.query_many(case.rows, keys=case.keys, n_threads=3)
    for options in ({}, {"n_threads": 3}):
        there = case.make()
        partials = list(partials_of(there.task(), case, **options))
        assert_same(there.take(partials, keys=case.keys), expected)
        assert_same(there.answers, here.answers)
        # and again, after a way through bytes: the same models, so the same queries
        again = (Partial.from_bytes(partial.to_bytes()) for partial in partials)
        assert_array_equal(np.sort(there.take(again).lows), np.sort(expected.lows))
        there.query_many(case.rows, keys=case.keys)
        assert there.n_answered == K


@each_case
def test_the_best_are_those_of_a_search_that_stores_all(case):
    everything = case.make()
    answers = everything.query_many(case.rows, keys=case.keys)
    order = np.argsort(answers.ranks, kind="stable")
    for n_best in (1, 3, K + 5):
        one, other = case.make(n_best=n_best), case.make(n_best=n_best)
        one.take(partials_of(one.task(), case), keys=case.keys)
        for i in range(K):
            answer = other.query(part_of(case.rows, [i])[0], key=case.keys[i])
            assert (answer.number, answer.low) == (i + 1, answers.lows[i])
        wanted = np.sort(order[:n_best])
        assert_array_equal(other.answers.numbers, wanted + 1)
        assert_array_equal(other.answers.lows, answers.lows[wanted])
        assert other.answers.keys == [answers.keys[i] for i in wanted]
        assert_same(one.answers, other.answers)
        for search in (one, other, pickle.loads(pickle.dumps(one)), copy.copy(other)):
            assert search.n_answered == search.n_queries == K and search.n_best == n_best
            assert search.best.high == everything.best.high
        assert str(one.report()) == str(everything.report())
    assert one.guarantee == everything.guarantee


@each_case
@pytest.mark.parametrize("n_best", [None, 2])
def test_rows_that_no_machine_holds_are_added_up(case, n_best):
    search, spans = case.make(n_best=n_best), [(0, 64), (64, 128), (128, M)]
    task = search.task()
    if not case.in_parts:
        with pytest.raises(ValueError, match=r"start must be 0, with all 200 samples, for the met"):
            task.reduce(columns_of(case.rows, 0, 64), keys=case.keys)
        return
    orders = [np.random.default_rng(i).permutation(K) for i in range(3)]
    parts = [
        task.reduce(
            part_of(columns_of(case.rows, *span), order),
            keys=[case.keys[i] for i in order],
            start=span[0],
        )
        for span, order in zip(spans, orders, strict=True)
    ]  # each has the rows in an order of its own
    expected = case.make(n_best=n_best)
    expected.query_many(case.rows, keys=case.keys)
    for number, order in enumerate(itertools.permutations(parts)):
        total = sum(Partial.from_bytes(part.to_bytes()) for part in order)
        assert total.is_whole and total.fingerprints is None
        if n_best is None or number == 0:
            search.take([total], keys=case.keys)
        assert_array_equal(np.sort(search.answers.lows), np.sort(expected.answers.lows))
    if n_best is None:
        assert_same(search.answers, expected.answers)
        search.query_many(case.rows, keys=case.keys)  # the same counts: the same model
        wrong = ~WRONG if "losses" in repr(search.holdout).lower() else 1 - PREDICTED
        if case.rows is WRONG or case.rows is PREDICTED:
            with pytest.raises(ValueError, match="key must stand for one model"):
                search.query_many(wrong, keys=case.keys)


def test_reruns_travel_with_their_keys():
    keys, reruns = [7] * 20 + [8] * 20, [*range(1, 21)] * 2
    make = lambda: DeclaredSearch(M, Choice(["a", *range(10)]), delta=0.1, allow_reruns=True)  # noqa: E731
    here, there = make(), make()
    expected = here.query_many(WRONG, keys=keys, reruns=reruns)
    partials = []
    for rows in scattered():
        own = {"keys": [keys[i] for i in rows], "reruns": [reruns[i] for i in rows]}
        partials.append(Partial.from_bytes(there.task().reduce(WRONG[rows], **own).to_bytes()))
    assert_same(there.take(partials, keys=keys, reruns=reruns), expected)
    with pytest.raises(ValueError, match="must come once, got 8 a second time in partial 4"):
        there.take([*partials, partials[1]], keys=keys, reruns=reruns)
    of_best = DeclaredSearch(M, 9, delta=0.1, allow_reruns=True, n_best=2)
    assert of_best.query(WRONG[0], key=3, rerun=5).rerun == 5


def test_how_many_keys_are_left_is_not_said_where_nobody_knows():
    for n_best, share in ((None, 0.5), (2, None)):
        search = DeclaredSearch(M, 4, delta=0.1, n_best=n_best)
        for _ in range(3):  # the same two keys
            search.query_many(WRONG[:2], keys=range(2))
        assert search.outlook().share == share


SPACES = {
    "range": (range(3, K + 3), 10**6),
    "beyond int64": (range(2**64, 2**64 + K), 2**70),
    "step": (range(0, 2 * K, 2), 10**6),
    "array": (np.arange(K)[::-1], 10**6),
    "in order": (range(1, K + 1), InOrder()),
    "names": (NAMES, Choice(NAMES)),
    "grid": (list(GRID), GRID),
}


@pytest.mark.parametrize(("keys", "space"), SPACES.values(), ids=SPACES)
@pytest.mark.parametrize("n_best", [None, 3])
def test_missing_doubled_and_other_keys_are_named_and_nothing_changes(keys, space, n_best):
    search = DeclaredSearch(M, space, delta=0.1, n_best=n_best)
    task, first, last = search.task(), keys[0], keys[K - 1]
    head, body = task.reduce(WRONG[:1], keys=[first]), task.reduce(WRONG[1:], keys=keys[1:])
    doubled = task.reduce(WRONG[[0, 0]], keys=[first, first])
    named = lambda key: str(key).replace("{", r"\{")[:20]  # noqa: E731
    cases = [
        ([head], keys, f"partials must have every key, 39 rows of 40 missing: .*{named(keys[1])}"),
        ([body], keys, f"1 row of 40 missing: .*{named(first)}.* is the first"),
        ([], keys, "40 rows of 40 missing"),
        ([head, body, head], keys, f"got .*{named(first)}.* a second time in partial 2"),
        ([doubled, body], keys, f"got .*{named(first)}.* a second time in partial 0"),
        ([body, head], keys[:-1], "keys must have every row, partial 0 has another"),
        ([body, head], [*keys, first], f"keys must be different, got .*{named(first)}.* twice"),
    ]
    for partials, wanted, message in cases:
        with pytest.raises(ValueError, match=message):
            search.take(partials, keys=wanted)
        assert search.n_answered == 0 and search.best is None
    assert search.take([body, head], keys=keys).n_answered == K
    nothing = task.reduce(WRONG[:0], keys=[])  # of an empty part of a data frame
    assert search.take([]).n_answered == search.take([nothing]).n_answered == K
    for reruns in (None, [1] * K):
        again = DeclaredSearch(M, space, delta=0.1, n_best=n_best)
        parts = [again.task().reduce(rows, keys=keys[: len(rows)]) for rows in (WRONG[:0], WRONG)]
        assert again.take(parts, keys=keys, reruns=reruns) and again.n_answered == K
    if n_best is None:
        assert search.answers.keys[0] == first and search.answers.keys[-1] == last
        assert search.take([head, body, doubled]).n_answered == K  # the same queries again


def test_a_range_of_keys_is_never_written_out(monkeypatch):
    from radabound_fast.guards.declared import task as task_module

    monkeypatch.setattr(task_module, "_BLOCK_KEYS", 7)
    search = DeclaredSearch(M, 10**6, delta=0.1, n_best=3)
    partials = [search.task().reduce(WRONG[i::3], keys=range(i, K, 3)) for i in range(3)]
    assert search.take(partials, keys=range(K)).n_answered == K


def test_counts_of_another_program_are_answered_like_predictions():
    for case in (CASES["bools"], CASES["error"], on_labels(metric="accuracy")):
        for n_best in (None, 3):
            one, other = case.make(n_best=n_best), case.make(n_best=n_best)
            partial = one.task().from_counts(WRONG.sum(axis=1), keys=range(K))
            expected = other.query_many(case.rows, keys=range(K))
            answers = one.take([partial], keys=range(K))
            assert_same(answers, other.answers if n_best else expected)
            assert str(one.report()) == str(other.report())
            one.query_many(case.rows, keys=range(K))
    for name in ("f1", "gains", "weights", "log loss", "recall"):
        with pytest.raises(TypeError, match="counts are enough for error, accuracy and mean loss"):
            CASES[name].make().task().from_counts([1], keys=[0])
    task = CASES["bools"].make().task()
    for counts, keys, message in [
        ([M + 1], [0], r"counts must be in \[0, 200\]"),
        ([1, 2], [0], "keys must be one a row, 2, got 1"),
        ([1], [10**6], "key must be"),
    ]:
        with pytest.raises(ValueError, match=message):
            task.from_counts(counts, keys=keys)


def test_a_key_with_two_models_is_noticed_unless_the_best_alone_are_stored():
    search = DeclaredSearch(M, 9, delta=0.1)
    task = search.task()
    search.take([task.reduce(WRONG[:1], keys=[3])])
    for other in (WRONG[-1:], np.roll(WRONG[:1], 1), WRONG[-1:] * 0.5):
        with pytest.raises(ValueError, match="key must stand for one model, got 3") as caught:
            search.take([task.reduce(WRONG[1:2], keys=[4]), task.reduce(other, keys=[3])])
        assert caught.value.answer.value == WRONG[0].mean() and search.n_answered == 1
    assert search.take([task.reduce(WRONG[:1].astype(float), keys=[3])]).n_answered == 1
    forgetful = DeclaredSearch(M, 9, delta=0.1, n_best=5)
    for row in WRONG[:3]:
        forgetful.query(row, key=3)
    assert forgetful.n_answered == len(forgetful.answers) == 3


@pytest.mark.parametrize("n_best", [0, -1, 1.5, "all", True])
def test_n_best_is_a_number(n_best):
    with pytest.raises((TypeError, ValueError), match="n_best must be"):
        DeclaredSearch(M, 9, delta=0.1, n_best=n_best)


def test_what_needs_all_answers_says_so():
    with pytest.raises(ValueError, match="n_best must be left out where keys are what was shown"):
        DeclaredSearch(M, Improvements(5), delta=0.1, n_best=3)
    search = DeclaredSearch(M, 9, delta=0.1, n_best=3, allow_reruns=True)
    with pytest.raises(ValueError, match="rerun must be a number in a search with n_best"):
        search.query(WRONG[0], key=1, rerun="next")
    assert search.n_answered == 0 and len(search.answers) == 0 and "n_best=3" in repr(search)
    with pytest.raises(ValueError, match="nothing to report"):
        search.report()


def test_partials_of_a_database_are_taken_by_all_who_opened_it(tmp_path):
    path, options = tmp_path / "search.db", {"delta": 0.1, "durability": "process"}
    one = DeclaredSearch.open(path, Y, 10**6, **options)
    partials = [one.task().reduce(PREDICTED[i::2], keys=range(i, K, 2)) for i in range(2)]
    other = DeclaredSearch.open(path, Y)
    expected = search_of(Y, 10**6).query_many(PREDICTED, keys=range(K))
    assert_same(other.take(partials, keys=range(K)), expected)
    assert one.n_answered == K and one.answers.keys == list(range(K))
    with pytest.raises(ValueError, match="partial 0 is of another search"):
        search_of(Y, 10**6).take(partials)


def test_threads_add_their_answers_one_after_the_other():
    search = DeclaredSearch(M, 10**6, delta=0.1, n_best=4)
    rows = pack_losses(WRONG)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda i: search.query(rows[i % K], key=i), range(400)))
    best = np.sort(WRONG.sum(axis=1))[0]
    assert search.n_answered == 400 and len(set(search.answers.numbers.tolist())) == 4
    assert (search.answers.values == best / M).all()


@pytest.mark.parametrize(
    "ask",
    [
        lambda search: search.task().reduce(PREDICTED + 7, keys=range(K)),
        lambda search: search.task().reduce(PREDICTED[:, :63], keys=range(K)),
        lambda search: search.task().reduce(PREDICTED, keys=range(K - 1)),
        lambda search: search.task().reduce(PREDICTED, keys=range(K), n_threads=0),
        lambda search: search.take([search.task().reduce(PREDICTED[:5], keys=range(5)), None]),
        lambda search: search.take(None),
        lambda search: search.take(
            [search.task().reduce(PREDICTED[:, :64], keys=range(K))], keys=range(K)
        ),
    ],
)
def test_no_error_keeps_what_it_was_about(ask):
    search = search_of(Y, 10**6)
    with pytest.raises((TypeError, ValueError)) as caught:
        ask(search)
    frames = [frame for frame, _ in traceback.walk_tb(caught.value.__traceback__)]
    ours = [frame for frame in frames if in_package(frame)]
    assert [frame.f_code.co_name for frame in ours if frame.f_locals] == []
    assert search.n_answered == 0


@pytest.mark.parametrize("n_threads", [1, 3])
def test_a_value_that_is_no_loss_is_told_by_its_place(n_threads):
    losses = WRONG * 0.5
    losses[30, 150] = 1.5
    search = DeclaredSearch(M, 99, delta=0.1)
    for ask in (search.task().reduce, search.query_many):
        with pytest.raises(ValueError, match="got 1.5 at row 30, sample 150"):
            ask(losses, keys=range(K), n_threads=n_threads)


def test_a_task_has_the_labels_and_its_repr_has_not():
    task = search_of(np.where(Y, "emu", "owl"), 99).task()
    assert b"emu" in pickle.dumps(task) and task.labels is not None
    assert repr(task) == "SearchTask(n_samples=200)"
    of_losses = DeclaredSearch(Losses(M), 99, delta=0.1).task()
    assert of_losses.labels is None and of_losses.truth is None
    assert len(pickle.dumps(of_losses)) < 700
    with pytest.raises(TypeError, match="only the task of a guard that has labels packs"):
        of_losses.pack(WRONG)
