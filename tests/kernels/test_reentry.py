"""A guard that is used within its own call says so at once, and one that waits hears Ctrl-C.

Signal handlers, destructors, callbacks and trace functions run in the middle of a call, on its very
thread: to wait there for the guard's lock would be for ever.
"""

import _thread
import contextlib
import gc
import os
import re
import signal
import sqlite3
import subprocess
import sys
import threading
import time
import weakref
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from support import in_package, query, query_many, state_of

from radabound_fast import (
    DeclaredSearch,
    FixedSequence,
    GuessAndCheck,
    Holdout,
    Ladder,
    PackedLosses,
    RadaBound,
    RademacherAverage,
    SignMatrix,
    pack_losses,
    store,
)
from radabound_fast._kernels.guard import GuardCore, lay_out
from radabound_fast._kernels.support import QuickLock
from radabound_fast.experiments.thresholdout import Thresholdout
from radabound_fast.guards.signed import SignedGuard

if sys.platform != "win32":
    import fcntl

M = 200
# means that rise, so that a gate is priced at each row
LOSSES = np.random.default_rng(0).random((6, M)) < np.linspace(0.2, 0.7, 6)[:, np.newaxis]
FIXED = {"epsilon": 0.4, "delta": 0.1, "max_queries": 40, "seed": 1}
GUARDS = {
    "FixedSequence": (FixedSequence, FIXED),
    "union": (FixedSequence, {"epsilon": 0.4, "delta": 0.1, "n_vectors": 0}),
    "GuessAndCheck": (GuessAndCheck, {"epsilon": 0.4, "delta": 0.1}),
    "Ladder": (Ladder, {"step": 0.01, "delta": 0.1}),
    "Thresholdout": (Thresholdout, {"threshold": 0.1, "noise": 0.02, "budget": 9, "seed": 3}),
}
CALLS = {
    "query": lambda guard: query(guard, LOSSES[0]),
    "packed query": lambda guard: query(guard, pack_losses(LOSSES[1])),
    "query_many": lambda guard: query_many(guard, LOSSES, np.full(6, 0.5)),
    "packed query_many": lambda guard: query_many(guard, pack_losses(LOSSES), np.full(6, 0.5)),
}
WITHIN = "in the middle of a call on this very thread"


def locking(guard):
    """Everything that takes the lock of a guard."""
    calls = [lambda call=call: call(guard) for call in CALLS.values()]
    calls += [guard._shared.retire, lambda: guard._shared.keep_in(None)]
    if guard.database is not None:
        calls += [guard.close, lambda: guard.__exit__()]
    if isinstance(guard, GuessAndCheck):
        calls.append(guard.affordable)
    if isinstance(guard, SignedGuard):
        core = guard._core
        progress = lay_out(*[np.zeros(32, np.int64)] * 2, n_rows=1, unit_shift=0, largest=0)
        calls += [core.extremes, lambda: core.adopt(progress, np.zeros(1, np.int64))]
        if guard.holdout.takes == "losses":
            calls.append(lambda: guard.take([guard.task().reduce(LOSSES)]))
    return calls


def tried_within(guard):
    """Uses a guard in every way; whether that was within a call of it."""
    try:
        guard._shared.progress()
    except RuntimeError as error:
        assert WITHIN in str(error)
    else:
        return False
    for call in locking(guard):
        with pytest.raises(RuntimeError, match=WITHIN):
            call()
    assert guard.halted is False and guard.n_answered >= 0 and "n_answered" in repr(guard)
    if isinstance(guard, SignedGuard):
        assert guard.complexity >= 0.0 and guard.budget > 0.0
    return True


@contextlib.contextmanager
def traced(function, events=("call", "return")):
    """Calls it at these events of functions of the library: whenever one begins or ends."""

    def trace(frame, event, _):
        if not in_package(frame):
            return None
        if event in events:
            function()
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(before)


@pytest.fixture(params=["in memory", "opened"])
def pair(request, tmp_path, kind, parameters):
    """Two guards that are the same."""
    twin = kind(M, **parameters)
    if request.param == "in memory":
        yield kind(M, **parameters), twin
    else:
        with kind.open(tmp_path / "guard.db", M, durability="process", **parameters) as guard:
            yield guard, twin


each_guard = pytest.mark.parametrize(("kind", "parameters"), GUARDS.values(), ids=GUARDS)
each_call = pytest.mark.parametrize("ask", CALLS.values(), ids=CALLS)


@pytest.mark.thorough
@each_guard
@each_call
def test_a_trace_function_is_refused_within_a_call(pair, ask):
    guard, twin = pair
    within = []
    with traced(lambda: within.append(tried_within(guard))):
        answer = ask(guard)
    assert any(within)
    assert repr(answer) == repr(ask(twin)) and state_of(guard) == state_of(twin)


def break_into(guard, monkeypatch, function):
    """Has `function` called in the middle of the next call of a guard."""
    if isinstance(guard, SignedGuard):
        price, made = guard.rule.price, []

        def within(*args):
            if made:
                function()
            return price(*args)

        options = {"half_range": True, "price": within, "rule": guard.rule}
        guard._core = guard._shared = GuardCore(guard._signs.store, **options)
        made.append(guard._core)
    else:
        decide = guard._decide

        def within(*args):
            function()
            return decide(*args)

        monkeypatch.setattr(guard, "_decide", within)


class Handled:
    """A signal handler that uses a guard."""

    def __init__(self, use):
        self.use, self.times = use, 0

    def __enter__(self):
        self.before = signal.signal(signal.SIGTERM, self)

    def __exit__(self, *_):
        signal.signal(signal.SIGTERM, self.before)

    def __call__(self, *_):
        self.times += 1
        self.use()


@each_guard
@each_call
def test_a_signal_handler_is_refused_within_a_call(kind, parameters, ask, monkeypatch):
    guard, twin = kind(M, **parameters), kind(M, **parameters)
    break_into(guard, monkeypatch, lambda: signal.raise_signal(signal.SIGTERM))
    handler = Handled(lambda: tried_within(guard) or pytest.fail("not within"))
    with handler:
        answer = ask(guard)
    assert handler.times > 0
    assert repr(answer) == repr(ask(twin)) and state_of(guard) == state_of(twin)


@each_guard
def test_what_a_handler_raises_ends_the_call_uncounted(kind, parameters, monkeypatch):
    guard = kind(M, **parameters)
    before = state_of(guard)
    break_into(guard, monkeypatch, lambda: signal.raise_signal(signal.SIGTERM))
    with Handled(lambda: query(guard, LOSSES[0])):
        for ask in CALLS.values():
            with pytest.raises(RuntimeError, match=WITHIN):
                ask(guard)
    assert state_of(guard) == before


class Dropped:
    """Uses a guard when it is dropped."""

    def __init__(self, use):
        self.use = use

    def __del__(self):
        self.use()


def drop_one(use):
    Dropped(use)


def drop_a_cycle(use):
    cycle = [Dropped(use)]
    cycle.append(cycle)
    del cycle
    gc.collect()


def drop_what_is_watched(use):
    watched = threading.Event()
    kept = weakref.ref(watched, lambda _: use())
    del watched
    assert kept() is None


@pytest.mark.thorough
@each_guard
@pytest.mark.parametrize("drop", [drop_one, drop_a_cycle, drop_what_is_watched])
def test_what_is_dropped_is_refused_within_a_call(kind, parameters, drop, monkeypatch):
    guard, twin = kind(M, **parameters), kind(M, **parameters)
    heard = []
    monkeypatch.setattr(sys, "unraisablehook", lambda told: heard.append(str(told.exc_value)))
    break_into(guard, monkeypatch, lambda: drop(lambda: CALLS["query"](guard)))
    for ask in CALLS.values():
        heard.clear()
        assert repr(ask(guard)) == repr(ask(twin))
        if ask is CALLS["query"] or not isinstance(guard, SignedGuard):
            assert heard and all(WITHIN in message for message in heard)
    assert state_of(guard) == state_of(twin)


@each_guard
def test_an_array_that_uses_the_guard_is_read_before(kind, parameters):
    guard = kind(M, **parameters)

    class Losses:
        def __array__(self, dtype=None, copy=None):
            told.append(query(guard, LOSSES[0]).number)
            return LOSSES[1]

    told = []
    assert query(guard, Losses()).number == 2 and told == [1]


def test_a_signal_handler_is_refused_within_a_long_scan():
    one = pack_losses(np.random.default_rng(0).random(4000) < 0.3)
    losses = PackedLosses(np.broadcast_to(one.words, (200_000, len(one.words))), 4000)
    guard, twin = (
        RadaBound(4000, epsilon=0.9, delta=0.1, n_vectors=512, bound="mclt", seed=1)
        for _ in range(2)
    )
    seen = []

    def interrupt(*_):
        seen.append((guard.halted, guard.n_answered, guard.complexity))
        try:
            guard.query(one)
        except RuntimeError as error:
            seen.append(WITHIN in str(error))

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.005, 0.005)
    try:
        answers = guard.query_many(losses)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert True in seen and answers.n_answered == 200_000
    assert_array_equal(answers.values, twin.query_many(losses).values)


@pytest.mark.skipif(sys.platform == "win32", reason="signals to a process are for POSIX")
@each_guard
def test_a_handler_cannot_close_a_guard_that_waits(kind, parameters, tmp_path, monkeypatch):
    def explained(*arguments, whole=store.ledger.explained):
        signal.raise_signal(signal.SIGTERM)  # it has found the database busy, and will look again
        return whole(*arguments)

    monkeypatch.setattr(store.ledger, "explained", explained)
    guard = kind.open(tmp_path / "guard.db", M, durability="process", **parameters)
    holder = sqlite3.connect(tmp_path / "guard.db", isolation_level=None)
    for ask in CALLS.values():
        holder.execute("BEGIN IMMEDIATE")
        with Handled(guard.close), pytest.raises(RuntimeError, match=WITHIN):
            ask(guard)
        holder.execute("ROLLBACK")
    holder.close()
    assert query(guard, LOSSES[0]).number == 1
    guard.close()


@each_guard
@pytest.mark.parametrize("ask", [CALLS["query"], CALLS["query_many"]], ids=["query", "query_many"])
def test_a_guard_on_labels_is_refused_within_its_own_call(kind, parameters, ask, tmp_path):
    labels, within = np.zeros(M, bool), []
    twin = kind(Holdout(labels, classes=[False, True]), **parameters)
    judged = Holdout(labels, classes=[False, True])
    with kind.open(tmp_path / "guard.db", judged, **parameters) as guard:

        def use():
            if not within and tried_within(guard):
                within.append((guard.halted, guard.n_answered))

        with traced(use):
            answer = ask(guard)
        assert within == [(False, 0)]
        assert repr(answer) == repr(ask(twin)) and guard.n_answered == twin.n_answered


# ---- within another guard's call -----------------------------------------------------------------


@each_guard
@pytest.mark.parametrize("ask", [CALLS["query"], CALLS["query_many"]], ids=["query", "query_many"])
def test_another_guard_is_refused_within_a_transaction(kind, parameters, ask, tmp_path):
    path, took = tmp_path / "guard.db", []
    with kind.open(path, M, durability="process", **parameters) as guard, kind.open(path) as other:

        def use():
            if not guard.database._database.in_transaction or len(took) == 20:
                return
            begun = time.monotonic()
            assert other.halted is False and other.n_answered == 0
            with pytest.raises(RuntimeError, match=f"guard.db is {WITHIN}"):
                ask(other)
            if not took:
                with kind.open(path) as third, pytest.raises(RuntimeError, match=WITHIN):
                    ask(third)
            took.append(time.monotonic() - begun)

        with traced(use):
            ask(guard)
        assert took and max(took) < 10
        n_answered = guard.n_answered
        assert n_answered == other.n_answered > 0
        ask(other)
        assert guard.n_answered == 2 * n_answered
    assert kind.open(path).n_answered == 2 * n_answered


WAYS = {
    "open a new one": lambda path: FixedSequence.open(path, M, **FIXED).close(),
    "open a search": lambda path: DeclaredSearch.open(path, M, 9, delta=0.1),
}


@pytest.mark.skipif(sys.platform == "win32", reason="folders are not locked there")
@pytest.mark.parametrize("inner", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize("outer", WAYS.values(), ids=WAYS)
def test_no_file_is_made_within_another_making_in_the_folder(outer, inner, tmp_path):
    seen = []

    def use():
        begun, has_turn = time.monotonic(), bool(store.folder._turns)
        if has_turn not in (turn for turn, _ in seen):  # once without and once with
            if has_turn:
                with pytest.raises(RuntimeError, match=f"in {tmp_path} is {WITHIN}"):
                    inner(tmp_path / "inner")
            else:
                inner(tmp_path / "inner")
            seen.append((has_turn, time.monotonic() - begun))

    with traced(use, ["call", "line", "return"]):
        outer(tmp_path / "outer")
    assert [turn for turn, _ in seen] == [False, True] and max(took for _, took in seen) < 10
    assert sorted(os.listdir(tmp_path)) == ["inner", "outer"] and not store.folder._turns
    inner(tmp_path / "next")


@pytest.mark.thorough
def test_a_search_within_its_own_call_never_waits(tmp_path):
    search = DeclaredSearch.open(tmp_path / "search.db", M, 9999, delta=0.1)
    again = DeclaredSearch.open(tmp_path / "search.db")
    answered, took = [], []

    def use():
        begun = time.monotonic()
        for other in (search, again):
            assert other.halted is False
            assert other.n_answered - len(answered) in (0, 1)  # with the query around this
            try:
                other.query(LOSSES[1], key=len(answered) + 1)
            except RuntimeError as error:
                assert WITHIN in str(error)
                took.append(time.monotonic() - begun)
            else:
                answered.append(len(answered) + 1)

    with traced(use):
        search.query(LOSSES[0], key=0)
    assert answered and took and max(took) < 10 and not store.record._in_work
    assert sorted(again.answers.keys) == [0, *answered]


@pytest.mark.parametrize("place", ["in memory", "opened"])
def test_no_python_runs_on_the_threads_of_a_call(place, tmp_path):
    """A trace function for all threads would wait for the lock that the call has."""
    made = {"epsilon": 0.9, "delta": 0.1, "bound": "mclt", "seed": 1}
    guard = RadaBound(1000, **made)
    if place == "opened":
        guard = RadaBound.open(tmp_path / "guard.db", 1000, **made)
    rows = np.random.default_rng(0).random((2000, 1000)) < 0.3
    seen, answers = [], []

    def work():
        threading.settrace(lambda *_: seen.append(guard.n_answered))
        try:
            answers.append(guard.query_many(rows, n_threads=4))
        finally:
            threading.settrace(None)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(60)
    assert not thread.is_alive() and answers[0].n_answered == 2000 and not seen


@pytest.mark.source
@pytest.mark.skipif(sys.platform == "win32", reason="signals to a process are for POSIX")
@pytest.mark.thorough
def test_the_handler_on_the_page_closes_the_guard_whole(tmp_path):
    page = Path(__file__).parents[2] / "docs" / "how-to" / "store-a-guard.md"
    (shown,) = re.findall(r"```python\n(import signal.*?)```", page.read_text("utf-8"), re.S)
    last = "    guard.query(np.arange(4000) % 5 == 0)\n"
    assert shown.endswith(last)
    asking = "    while True:\n    " + last + "        print('x', flush=True)\n"
    for _ in range(3):
        process = subprocess.Popen(
            [sys.executable, "-c", shown.removesuffix(last) + asking],
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            text=True,
        )
        with process:
            told = process.stdout.read(4)  # two answers
            process.send_signal(signal.SIGTERM)
            n_told = (told + process.stdout.read()).count("x")
        assert process.returncode == 1 and os.listdir(tmp_path) == ["guard.db"]
        with RadaBound.open(tmp_path / "guard.db") as guard:
            assert guard.n_answered in (n_told, n_told + 1)
        (tmp_path / "guard.db").unlink()


# ---- another thread has the lock -----------------------------------------------------------------


@contextlib.contextmanager
def busy(lock):
    """Another thread has it."""
    has, may_end = threading.Event(), threading.Event()

    def work():
        with lock:
            has.set()
            may_end.wait(60)

    thread = threading.Thread(target=work)
    thread.start()
    has.wait()
    try:
        yield
    finally:
        may_end.set()
        thread.join()


def interrupted(wait, interrupt):
    """Whether KeyboardInterrupt ends a wait soon."""
    timer = threading.Timer(0.05, interrupt)
    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        timer.start()
        wait()
    timer.join()
    return time.monotonic() - begun < 10


@pytest.mark.thorough
@each_guard
def test_ctrl_c_ends_every_wait_for_another_thread(pair):
    guard, _ = pair
    waits = locking(guard)
    if guard.database is not None:
        waits += [lambda: guard.n_answered, lambda: guard.halted]
    with busy(guard._shared.lock):
        for wait in waits:
            assert interrupted(wait, _thread.interrupt_main)
        if sys.platform != "win32":
            assert interrupted(waits[0], lambda: os.kill(os.getpid(), signal.SIGINT))
    assert query(guard, LOSSES[0]).number == 1  # the lock is free, nothing was counted


@pytest.mark.skipif(sys.platform == "win32", reason="folders are not locked there")
def test_ctrl_c_ends_every_wait_for_a_folder(tmp_path):
    FixedSequence.open(tmp_path / "guard.db", M, **FIXED).close()
    waits = [
        *(lambda make=make: make(tmp_path / "new") for make in WAYS.values()),
        lambda: FixedSequence.open(tmp_path / "guard.db"),
    ]
    descriptor = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    for wait in waits:
        assert interrupted(wait, _thread.interrupt_main)
        assert interrupted(wait, lambda: os.kill(os.getpid(), signal.SIGINT))
    os.close(descriptor)
    assert os.listdir(tmp_path) == ["guard.db"] and not store.folder._turns


@each_guard
def test_a_wait_that_is_not_interrupted_ends_with_the_answer(pair):
    guard, _ = pair
    answers = []
    with busy(guard._shared.lock):
        thread = threading.Thread(target=lambda: answers.append(query(guard, LOSSES[0])))
        thread.start()
        thread.join(0.1)
        assert not answers
    thread.join(60)
    assert answers[0].number == guard.n_answered == 1


def test_an_average_and_a_guard_on_labels_hear_ctrl_c_too():
    average = RademacherAverage(SignMatrix(M, seed=1))
    average.update(LOSSES)
    guard = RadaBound(LOSSES[0], epsilon=0.4, delta=0.1, seed=1)
    for lock, wait in [
        (average._core.lock, lambda: average.update(LOSSES)),
        (average._core.lock, lambda: average.maxima),
        (average._core.lock, lambda: average.merge(RademacherAverage(SignMatrix(M, seed=1)))),
        (guard._core.lock, lambda: guard.query(LOSSES[1])),
        (guard._core.lock, lambda: guard.query_many(LOSSES)),
    ]:
        with busy(lock):
            assert interrupted(wait, _thread.interrupt_main)
    assert average.n_queries == 6 and guard.n_answered == 0


def test_who_has_waited_for_the_lock_is_refused_within_it():
    lock, told = QuickLock(), []

    def work():
        with lock:
            try:
                with lock:
                    told.append("taken again")
            except RuntimeError as error:
                told.append(str(error))

    thread = threading.Thread(target=work, daemon=True)
    with busy(lock):
        thread.start()
        thread.join(0.1)
        assert not told
    thread.join(30)
    assert len(told) == 1 and WITHIN in told[0]
    with lock:  # it is free
        pass


def test_a_guard_that_was_waited_for_is_read_within_its_call(monkeypatch):
    guard, seen = FixedSequence(M, **FIXED), []
    break_into(guard, monkeypatch, lambda: seen.append((guard.halted, guard.n_answered)))
    thread = threading.Thread(target=lambda: CALLS["query"](guard), daemon=True)
    with busy(guard._core.lock):
        thread.start()
        thread.join(0.1)
        assert not seen
    thread.join(30)
    assert not thread.is_alive() and set(seen) == {(False, 0)}


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="this system has no interval timer")
def test_waits_broken_off_at_any_moment_lose_no_turn_and_give_none_twice():
    lock = QuickLock()
    inside, counts, stop = [], [0, 0, 0, 0], threading.Event()

    def turn(number):
        with lock:
            inside.append(number)
            assert inside == [number]
            time.sleep(2e-5)  # others run, and find the lock taken
            inside.pop()
        counts[number] += 1

    def work(number):
        while not stop.is_set():
            turn(number)

    class Late(Exception):
        pass

    armed = []

    def late(*_):
        if armed:
            raise Late

    threads = [threading.Thread(target=work, args=(number,)) for number in (1, 2, 3)]
    before = signal.signal(signal.SIGALRM, late)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    broken, give_up = 0, time.monotonic() + 60
    for thread in threads:
        thread.start()
    try:
        while broken < 300 and time.monotonic() < give_up:
            try:
                armed.append(True)
                signal.setitimer(signal.ITIMER_REAL, 1e-4)
                with lock:
                    counts[0] += 1
                armed.clear()
            except Late:  # once: nothing sets the timer again
                armed.clear()
                broken += 1
    finally:
        stop.set()
        for thread in threads:
            thread.join(30)
        signal.signal(signal.SIGALRM, before)
        sys.setswitchinterval(interval)
    assert not any(thread.is_alive() for thread in threads) and not inside
    assert broken == 300 and all(counts[1:])
    with lock, pytest.raises(RuntimeError, match=WITHIN), lock:
        pass
    with lock:
        pass
