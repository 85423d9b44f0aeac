"""quick_lock.h between its steps: a signal, or a fork, comes as the lock is handed over.

Nobody else runs there: the thread that hands over keeps the GIL, which a long switch interval lets
it do.  The lock must be free afterwards, and still make others wait.
"""

import os
import signal
import sys
import threading
import time

import pytest
from support import true_in_a_child

from radabound_fast._kernels.support import QuickLock

forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
timers = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no interval timer")


@pytest.fixture(autouse=True)
def nobody_runs_between():
    interval = sys.getswitchinterval()
    sys.setswitchinterval(10.0)
    yield
    sys.setswitchinterval(interval)


def taken_in_a_thread(lock):
    """A thread that takes the lock and lets it go, and an event that says when."""
    done = threading.Event()

    def work():
        with lock:
            done.set()

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread, done


def excludes(lock):
    """Whether it can be taken, makes another thread wait, and is free again."""
    with lock:
        thread, done = taken_in_a_thread(lock)
        waits = not done.wait(0.03)
    return waits and done.wait(10) and (thread.join(10) or not thread.is_alive())


def held_in_a_thread(lock):
    has, may_end = threading.Event(), threading.Event()

    def work():
        lock.__enter__()
        has.set()
        may_end.wait(60)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    assert has.wait(60)
    return thread, may_end


def test_a_lock_excludes():
    assert excludes(QuickLock())


@timers
@pytest.mark.parametrize("n_waiting", [0, 1, 2])
def test_who_gives_up_a_lock_that_he_is_being_given_leaves_it_as_it_should_be(n_waiting):
    class GivenUp(Exception):
        pass

    before = signal.getsignal(signal.SIGALRM)
    try:
        for _ in range(4):
            lock = QuickLock()
            holder, may_end = held_in_a_thread(lock)
            others = [taken_in_a_thread(lock) for _ in range(n_waiting)]

            def give_up(*_, lock=lock):
                lock.__exit__()  # for the holder: it is given to who waits
                raise GivenUp

            signal.signal(signal.SIGALRM, give_up)
            with pytest.raises(GivenUp):
                signal.setitimer(signal.ITIMER_REAL, 0.02)
                with lock:
                    pass
            assert all(done.wait(10) for _, done in others)
            may_end.set()
            holder.join()
            assert excludes(lock)
    finally:
        signal.signal(signal.SIGALRM, before)


def let_go(lock):
    """Hands it over: its waiter finds it released, or is about to."""
    lock.__exit__()


def let_go_and_linger(lock):
    """Hands it over: its waiter has Python's lock, and waits for the GIL to say that it has it."""
    lock.__exit__()
    until = time.perf_counter() + 0.003
    while time.perf_counter() < until:
        pass


def keep(lock):
    """Has it at the fork."""


@forks
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("n_waiting", [1, pytest.param(2, marks=pytest.mark.thorough)])
@pytest.mark.parametrize("step", [let_go, let_go_and_linger, keep])
def test_a_child_forked_as_a_lock_is_handed_over_has_a_free_one(step, n_waiting):
    for _ in range(4):
        lock = QuickLock()
        with lock:
            pass  # so that it knows this process
        lock.__enter__()
        others = [taken_in_a_thread(lock) for _ in range(n_waiting)]
        time.sleep(0.01)  # they wait
        step(lock)

        def free(lock=lock):
            if step is keep:
                lock.__exit__()
            return excludes(lock) and excludes(lock)

        assert true_in_a_child(free)
        if step is keep:
            lock.__exit__()
        assert all(done.wait(10) for _, done in others)
        assert excludes(lock)


@forks
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_forked_while_another_thread_has_a_lock_has_a_free_one():
    lock = QuickLock()
    holder, may_end = held_in_a_thread(lock)
    # in a thread that may have the very number of the one that had it, which is no more
    assert true_in_a_child(lambda: taken_in_a_thread(lock)[1].wait(10) and excludes(lock))
    lock.__exit__()
    may_end.set()
    holder.join()
    assert excludes(lock)
