"""What goes wrong at the edges: interrupts, forks, failing disks, odd arrays."""

import gc
import os
import weakref
from _thread import start_new_thread

import numpy as np
import pytest
import support
from support import coins

from radabound_fast import (
    DeclaredSearch,
    FixedSequence,
    GuessAndCheck,
    Ladder,
    PackedLosses,
    RademacherAverage,
    SignMatrix,
    pack_losses,
    plan,
)
from radabound_fast._kernels import rows as rows_kernel
from radabound_fast._kernels.guard import GuardCore, choose_thread_cells
from radabound_fast._kernels.search import QueryTable
from radabound_fast.bounds import BOUNDS
from radabound_fast.edge import margins


def guard_of(judged=200, **given):
    return support.guard_of(judged, **{"epsilon": 0.9} | given)


@pytest.mark.thorough
def test_threads_that_outlive_a_call_keep_what_they_read(monkeypatch):
    kept = []

    def impatient(*thread):  # as when Ctrl-C breaks into the start of the threads
        kept.append(thread)
        raise KeyboardInterrupt

    monkeypatch.setattr(rows_kernel, "start_new_thread", impatient)
    losses = coins(0, 5000, 64)
    alive = weakref.ref(losses)
    guard = guard_of(64)
    try:
        guard.query_many(losses, n_threads=2)
    except KeyboardInterrupt:
        pass
    else:
        raise AssertionError
    del losses
    gc.collect()
    assert alive() is not None
    kept.clear()
    gc.collect()
    assert alive() is None


@pytest.mark.parametrize("bound", ["mclt", "fixed-sequence"])
def test_ctrl_c_while_a_row_is_priced_changes_nothing(bound):
    guard, twin = guard_of(bound=bound), guard_of(bound=bound)
    interrupt = [False]

    def price(*args):
        if interrupt[0]:
            raise KeyboardInterrupt
        return twin.rule.price(*args)

    def extremes():
        return GuardCore(
            guard._signs.store,
            half_range=bound != "mclt",
            price=price,
            rule=guard.rule,
        )

    real = np.random.default_rng(0).random(200)
    tried, fresh = extremes(), extremes()
    interrupt[0] = True
    for losses in (real, coins(0, 1, 200)[0]) if bound != "mclt" else (real,):
        with pytest.raises(KeyboardInterrupt):
            tried.query(losses)
        assert not tried.started and tried.unit_shift == 0 and tried.budget == fresh.budget
    interrupt[0] = False
    assert repr(tried.query(real)) == repr(fresh.query(real))
    assert [a.tolist() for a in tried.extremes()] == [a.tolist() for a in fresh.extremes()]


@pytest.mark.parametrize("dtype", ["L", "Q"])
def test_both_of_numpys_64_bit_unsigned_types_are_words(dtype):
    packed = PackedLosses(pack_losses(coins(0, 3, 200)).words.astype(dtype), 200)
    one = PackedLosses(packed.words[0], 200)
    assert guard_of().query(one).value == guard_of().query(coins(0, 3, 200)[0]).value
    assert len(guard_of().query_many(packed)) == 3
    average = RademacherAverage(SignMatrix(200))
    average.update(packed)
    assert average.n_queries == 3
    assert Ladder(200, step=0.1, delta=0.1).query(one).number == 1


def test_more_threads_than_rows_are_no_error():
    assert guard_of().query_many(coins(0, 5, 200), n_threads=2**40).n_answered == 5


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_an_average_is_refused_in_a_forked_child():
    average = RademacherAverage(SignMatrix(200))
    child = os.fork()
    if child == 0:
        try:
            average.update(coins(0, 1, 200))
        except RuntimeError:
            os._exit(0)
        os._exit(1)
    assert os.waitpid(child, 0)[1] == 0


def test_answers_compare_without_an_error():
    assert (guard_of().query_many(coins(0, 5, 200)) == guard_of().query_many(coins(0, 5, 200))) in (
        True,
        False,
    )


def test_a_thread_is_started_only_for_work_that_pays(monkeypatch):
    started = []

    def counted(*thread):
        started.append(thread)
        return start_new_thread(*thread)

    monkeypatch.setattr(rows_kernel, "start_new_thread", counted)
    words = np.zeros((200, 1563), np.uint64)  # 200 rows of 1563 words x 4 strips: 1.25 million
    guard = guard_of(100_032)
    choose_thread_cells()
    try:
        guard.query_many(PackedLosses(words, 100_032), n_threads=2)
        assert not started
        guard.query_many(PackedLosses(np.tile(words, (2, 1)), 100_032), n_threads=8)
        assert len(started) == 1  # 2.5 million: this thread and one more
        real = np.full((40, 100_032), 0.5)  # a quarter million, but they are looked up
        guard.query_many(real, n_threads=2)
        assert len(started) == 2
    finally:
        choose_thread_cells(1 << 10)


@pytest.mark.parametrize("bound", list(BOUNDS))
@pytest.mark.parametrize("delta", [5e-324, 1e-310, 9.9e-301])
def test_a_delta_that_has_no_logarithm_is_refused_by_name(bound, delta):
    made = [
        lambda delta: guard_of(epsilon=0.5, delta=delta, bound=bound),
        lambda delta: DeclaredSearch(200, 10, delta=delta),
        lambda delta: FixedSequence(200, epsilon=0.5, delta=delta, n_vectors=0),
        lambda delta: GuessAndCheck(200, epsilon=0.5, delta=delta),
        lambda delta: Ladder(200, step=0.1, delta=delta),
        lambda delta: plan(200, epsilon=0.5, delta=delta, space_size=5),
        lambda delta: margins(200, 5, delta),
    ]
    for make in made:
        with pytest.raises(ValueError, match=f"^delta must be at least 1e-300, got {delta!r}$"):
            make(delta)
        with pytest.raises(ValueError, match="^delta must be finite in float64, got 1000"):
            make(10**400)
        make(1e-300)
    search = DeclaredSearch(100, 10, delta=1e-300)
    assert 0.99 < search.query(np.zeros(100), key=0).high < 1.0


@pytest.mark.parametrize("kind", [GuardCore, QueryTable, PackedLosses])
def test_what_needs_its_arguments_is_not_made_without(kind):
    with pytest.raises(TypeError, match="takes exactly . positional argument"):
        kind.__new__(kind)
    with pytest.raises(TypeError):
        kind.__new__(kind, None)
