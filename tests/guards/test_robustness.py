"""What goes wrong at the edges: interrupts, forks, failing disks, odd arrays."""

import gc
import os
import weakref
from _thread import start_new_thread

import numpy as np
import pytest

from radabound_fast import (
    Holdout,
    HoldoutExhausted,
    RadaBound,
    RademacherAverage,
    SignMatrix,
    _kernel,
    guards,
    pack_losses,
    plan,
)
from radabound_fast.bounds import BOUNDS
from radabound_fast.edge import margins


def coins(k, m, seed=0):
    return np.random.default_rng(seed).random((k, m)) < 0.3


def guard_of(m=200, **k):
    return RadaBound(m, **{"epsilon": 0.9, "delta": 0.1, "bound": "mclt", "seed": 1} | k)


def test_threads_that_outlive_an_interrupted_call_keep_what_they_read(monkeypatch):
    kept = []

    def impatient(*thread):  # as when Ctrl-C breaks into the start of the threads
        kept.append(thread)
        raise KeyboardInterrupt

    monkeypatch.setattr(_kernel, "start_new_thread", impatient)
    losses = coins(5000, 64)
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
        return twin._rule.price(*args)

    def extremes():
        return _kernel.GuardCore(
            guard._signs._store,
            half_range=bound != "mclt",
            price=price,
            rule=guard._rule,
        )

    real = np.random.default_rng(0).random(200)
    tried, fresh = extremes(), extremes()
    interrupt[0] = True
    for losses in (real, coins(1, 200)[0]) if bound != "mclt" else (real,):
        with pytest.raises(KeyboardInterrupt):
            tried.query(losses)
        assert not tried.started and tried.unit_shift == 0 and tried.budget == fresh.budget
    interrupt[0] = False
    assert repr(tried.query(real)) == repr(fresh.query(real))
    assert [a.tolist() for a in tried.extremes()] == [a.tolist() for a in fresh.extremes()]


@pytest.mark.parametrize("dtype", ["L", "Q"])
def test_both_of_numpys_64_bit_unsigned_types_are_words(dtype):
    words = pack_losses(coins(3, 200)).astype(dtype)
    assert guard_of().query_packed(words[0]).value == guard_of().query(coins(3, 200)[0]).value
    assert guard_of().query_many_packed(words).n_answered == 3
    average = RademacherAverage(SignMatrix(200))
    average.update_packed(words)
    assert average.n_answered == 3
    assert guards.Ladder(200, step=0.1, delta=0.1).query_packed(words[0]).n_answered == 1


def test_no_packed_rows_are_an_empty_answer():
    words = pack_losses(np.empty((0, 200)))
    assert guard_of().query_many_packed(words).n_answered == 0
    assert guards.Ladder(200, step=0.1, delta=0.1).query_many_packed(words).n_answered == 0


def test_more_threads_than_rows_are_no_error():
    assert guard_of().query_many(coins(5, 200), n_threads=2**40).n_answered == 5


def test_the_traceback_of_a_refusal_holds_no_mean():
    y = coins(1, 200)[0].astype(int)
    holdout = guards.GuessAndCheck(y, epsilon=0.06, delta=0.1)
    with pytest.raises(HoldoutExhausted) as halt:
        holdout.query_many([y, y], guesses=[0.0, 0.5])
        holdout.query(y, guess=0.0)
    names = [e.frame.f_locals.keys() for e in halt.traceback[1:]]
    assert not {"rows", "words"} & set().union(*names)


def test_a_saved_guard_stays_at_its_path(tmp_path):
    guard_of().save(tmp_path / "a")
    guard = RadaBound.load(tmp_path / "a")
    with pytest.raises(ValueError, match="path must be"):
        guard.save(tmp_path / "b")
    assert guard.query(coins(1, 200)[0]).number == 1


def test_a_first_save_that_fails_after_the_rename_leaves_no_file(tmp_path, monkeypatch):
    guard, fsync, calls = guard_of(), os.fsync, []

    def fail_on_folder(fd):
        calls.append(fd)
        if len(calls) == 2:
            raise OSError("no")
        fsync(fd)

    with monkeypatch.context() as patch, pytest.raises(OSError):
        patch.setattr(os, "fsync", fail_on_folder)
        guard.save(tmp_path / "a")
    assert guard.query(coins(1, 200)[0]).number == 1
    assert not (tmp_path / "a").exists()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_an_average_is_refused_in_a_forked_child():
    average = RademacherAverage(SignMatrix(200))
    child = os.fork()
    if child == 0:
        try:
            average.update(coins(1, 200))
        except RuntimeError:
            os._exit(0)
        os._exit(1)
    assert os.waitpid(child, 0)[1] == 0


@pytest.mark.parametrize("guard", [5, {"epsilon": 0.1}, RadaBound])
def test_what_is_no_guard_is_refused_by_name(guard):
    with pytest.raises(TypeError, match="guard must be"):
        Holdout([0, 1], guard)


def test_answers_compare_without_an_error():
    assert (guard_of().query_many(coins(5, 200)) == guard_of().query_many(coins(5, 200))) in (
        True,
        False,
    )


def test_a_thread_is_started_only_for_work_that_pays(monkeypatch):
    started = []

    def counted(*thread):
        started.append(thread)
        return start_new_thread(*thread)

    monkeypatch.setattr(_kernel, "start_new_thread", counted)
    words = np.zeros((200, 1563), np.uint64)  # 200 rows of 1563 words x 4 strips: 1.25 million
    guard = guard_of(100_032)
    _kernel.choose_thread_cells()
    try:
        guard.query_many_packed(words, n_threads=2)
        assert not started
        guard.query_many_packed(np.tile(words, (2, 1)), n_threads=8)
        assert len(started) == 1  # 2.5 million: this thread and one more
        real = np.full((40, 100_032), 0.5)  # a quarter million, but they are looked up
        guard.query_many(real, n_threads=2)
        assert len(started) == 2
    finally:
        _kernel.choose_thread_cells(1 << 10)


def test_a_subclass_of_the_guard_sees_every_query_of_a_holdout():
    class Counting(RadaBound):
        n_seen = 0

        def _query_predictions(self, values, labels):
            self.n_seen += 1
            return super()._query_predictions(values, labels)

    guard = Counting(200, epsilon=0.9, delta=0.1)
    holdout = Holdout(coins(1, 200)[0], guard)
    for row in coins(5, 200, seed=1):
        holdout.query(row)
    assert guard.n_seen == 5


@pytest.mark.parametrize("bound", list(BOUNDS))
@pytest.mark.parametrize("delta", [5e-324, 1e-310, 9.9e-301])
def test_a_delta_that_has_no_logarithm_is_refused_by_its_own_name(bound, delta):
    made = [
        lambda delta: RadaBound(200, epsilon=0.5, delta=delta, bound=bound),
        lambda delta: guards.DeclaredSearch(200, 10, delta=delta),
        lambda delta: guards.FixedSequence(200, epsilon=0.5, delta=delta),
        lambda delta: guards.GuessAndCheck(200, epsilon=0.5, delta=delta),
        lambda delta: guards.Ladder(200, step=0.1, delta=delta),
        lambda delta: plan(200, epsilon=0.5, delta=delta, space_size=5),
        lambda delta: margins(200, 5, delta),
    ]
    for make in made:
        with pytest.raises(ValueError, match=f"^delta must be at least 1e-300, got {delta!r}$"):
            make(delta)
        make(1e-300)


@pytest.mark.parametrize("kind", [_kernel.GuardCore, _kernel.QueryTable, _kernel.Descriptor])
def test_what_needs_its_arguments_is_not_made_without(kind):
    with pytest.raises(TypeError, match="takes exactly 1 positional argument"):
        kind.__new__(kind)
    with pytest.raises(TypeError):
        kind.__new__(kind, None)
