"""Many threads: every answer is counted once, one query halts, and a closed guard is all of it.

RADABOUND_STRESS_SECONDS says how long; the default suits every run of the suite.
"""

import itertools
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
import support
from numpy.testing import assert_array_equal

from radabound_fast import (
    HoldoutExhausted,
    Ladder,
    RadaBound,
    pack_losses,
)

pytestmark = pytest.mark.thorough

SECONDS = float(os.environ.get("RADABOUND_STRESS_SECONDS", "3"))
N_THREADS = 8
N_SAMPLES = 1000  # not a multiple of 64
LOSSES = np.random.default_rng(0).random((64, N_SAMPLES)) < 0.2
PACKED = pack_losses(LOSSES)
# for the runs that are fixed in number: short rows, so many that extremes move for a long time
SHORT = 200
SHORT_ROWS = pack_losses(np.random.default_rng(0).random((4096, SHORT)) < 0.2)


@pytest.fixture(autouse=True)
def threads_that_switch_often():
    """With a GIL: a switch every 10 microseconds in place of 5000."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(interval)


def guard_of(epsilon, judged=N_SAMPLES, **given):
    return support.guard_of(judged, epsilon=epsilon, **given)


def together(work):
    """Runs work(number) in all threads at once; an exception in one is the test's."""
    failures = []
    start = threading.Barrier(N_THREADS)

    def run(number):
        try:
            start.wait()
            work(number)
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(N_THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


def rounds(share):
    """Numbers of rounds, until this share of the time is over; at least two."""
    end = time.monotonic() + share * SECONDS
    for number in itertools.count():
        yield number
        if number and time.monotonic() > end:
            return


def ask(guard, rng, given):
    """One call of a random kind; appends (guard, row) for every answer it got."""
    rows = rng.integers(len(LOSSES), size=rng.integers(1, 6))
    kind = rng.integers(6)
    if kind < 2:
        rows = rows[:1]
        guard.query(LOSSES[rows[0]] if kind else PACKED[rows[0]])
        n_answered = 1
    elif kind == 2:  # real-valued: a change of units while others ask
        n_answered = len(guard.query_many(LOSSES[rows].astype(float)))
    else:
        source, n_threads = PACKED if kind == 3 else LOSSES, int(rng.integers(1, 3))
        n_answered = len(guard.query_many(source[rows], n_threads=n_threads))
    given.extend((id(guard), row) for row in rows[:n_answered])


def test_what_all_threads_were_answered_is_what_each_guard_saw():
    for number in rounds(1 / 3):
        guards = [
            guard_of(0.9),
            guard_of(0.9, signs="generated"),
            guard_of(0.9, n_vectors=9),
        ]
        given = [[] for _ in range(N_THREADS)]

        def work(thread, number=number, guards=guards, given=given):
            rng = np.random.default_rng([number, thread])
            for _ in range(20):
                ask(guards[rng.integers(len(guards))], rng, given[thread])

        together(work)
        answers = list(itertools.chain.from_iterable(given))
        for guard in guards:
            rows = [row for asked, row in answers if asked == id(guard)]
            assert guard.n_answered == len(rows)
            alone = guard_of(0.9, n_vectors=guard.n_vectors)
            alone.query_many(LOSSES[rows].astype(float))  # the order leaves no trace in a state
            assert guard.complexity == alone.complexity
            for mine, its in zip(guard._core.extremes(), alone._core.extremes(), strict=True):
                assert_array_equal(mine, its)


def test_every_guard_halts_once_and_for_every_thread():
    y_true = np.arange(N_SAMPLES) % 2
    for number in rounds(1 / 3):
        guard = guard_of(0.08, y_true)
        ladder = Ladder(y_true, step=0.02, delta=0.1, max_queries=100)
        given = {id(guard): [], id(ladder): []}

        def work(thread, number=number, judges=(guard, ladder), given=given):
            rng = np.random.default_rng([number, thread])
            live = list(judges)
            while live:
                judge = live[rng.integers(len(live))]
                wrong = rng.random(N_SAMPLES) < 0.2
                try:
                    given[id(judge)].append(judge.query(y_true ^ wrong).number)
                except HoldoutExhausted:
                    assert judge.halted
                    live.remove(judge)

        together(work)
        for judge in (guard, ladder):
            assert sorted(given[id(judge)]) == list(range(1, judge.n_answered + 1))
        assert ladder.n_answered == 100


def ask_each_of(guard, n_asked):
    """Every thread asks so often.  Returns rows and answers in the guard's order, and the first
    row that each thread was refused."""
    answered = [[] for _ in range(N_THREADS)]
    refused = [[] for _ in range(N_THREADS)]

    def work(thread):
        for row in np.random.default_rng(thread).integers(len(SHORT_ROWS), size=n_asked).tolist():
            try:
                answered[thread].append((guard.query(SHORT_ROWS[row]), row))
            except HoldoutExhausted:
                refused[thread].append(row)

    together(work)
    in_order = sorted(itertools.chain.from_iterable(answered), key=lambda pair: pair[0].number)
    assert len(in_order) + sum(map(len, refused)) == N_THREADS * n_asked
    answers, rows = zip(*in_order, strict=True)
    return list(rows), answers, [rows[0] for rows in refused if rows]


def short_guard(epsilon):
    """With so many vectors that the GIL is let go of for the sums: threads truly take turns."""
    return RadaBound(SHORT, epsilon=epsilon, delta=0.1, bound="mclt", n_vectors=2**14, seed=1)


def extremes_of(guard):
    return [values.tolist() for values in guard._core.extremes()]


def test_answers_of_many_threads_are_those_of_one_in_some_order():
    guard, alone = short_guard(0.9), short_guard(0.9)
    rows, answers, refused = ask_each_of(guard, 10_000)
    assert not refused and guard.n_answered == 80_000
    assert [answer.number for answer in answers] == list(range(1, 80_001))
    serial = alone.query_many(SHORT_ROWS[rows], trace=True)
    assert [answer.value for answer in answers] == serial.values.tolist()
    assert [answer.complexity for answer in answers] == serial.complexities.tolist()
    assert extremes_of(guard) == extremes_of(alone)


def test_exactly_one_query_halts_and_all_later_ones_are_refused():
    guard, alone = (
        short_guard(0.248),
        short_guard(0.248),
    )  # halts after some thousand answers
    rows, answers, refused = ask_each_of(guard, 10_000)
    assert guard.halted and len(refused) == N_THREADS and 0 < len(rows) < 40_000
    assert [answer.number for answer in answers] == list(range(1, len(rows) + 1))
    serial = alone.query_many(SHORT_ROWS[rows], trace=True)
    assert not serial.halted and guard.n_answered == len(rows)
    assert [answer.complexity for answer in answers] == serial.complexities.tolist()

    def with_one_more(row):
        again = short_guard(0.248)
        again.query_many(SHORT_ROWS[[*rows, row]])
        return again

    halting = [again for again in map(with_one_more, refused) if again.halted]
    assert extremes_of(guard) in [extremes_of(again) for again in halting]
    before = extremes_of(guard)
    with pytest.raises(HoldoutExhausted):
        guard.query(SHORT_ROWS[0])
    assert extremes_of(guard) == before


@pytest.mark.parametrize("signs", ["stored", "generated"])
@pytest.mark.parametrize("form", ["bool", "packed"])
@pytest.mark.parametrize("many", [False, True])
def test_other_threads_run_while_the_sums_are_computed(many, form, signs):
    m = 1 << 21
    rows = pack_losses(np.zeros((4, m))) if form == "packed" else np.zeros((4, m), bool)
    guard = RadaBound(m, epsilon=0.9, delta=0.1, bound="mclt", signs=signs)
    ask, argument = (guard.query_many, rows) if many else (guard.query, rows[0])
    ticks, over = [0], threading.Event()

    def tick():
        while not over.is_set():
            ticks[0] += 1
            time.sleep(0.0002)

    # no thread is made to give up the GIL: it is let go of inside the call, or not at all
    sys.setswitchinterval(1000)
    clock = threading.Thread(target=tick)
    clock.start()
    try:
        for _ in range(500):
            before = ticks[0]
            ask(argument)
            if ticks[0] > before:
                return
    finally:
        over.set()
        clock.join()
    pytest.fail("no other thread ran during 500 calls")


def test_a_guard_that_is_closed_at_work_has_every_answer(tmp_path):
    for number in rounds(1 / 3):
        path = tmp_path / f"guard-{number}.db"
        parameters = {"epsilon": 0.9, "delta": 0.1, "bound": "mclt", "durability": "process"}
        guard = RadaBound.open(path, N_SAMPLES, **parameters)
        given = [[] for _ in range(N_THREADS)]
        closed = []

        def work(thread, number=number, guard=guard, given=given, closed=closed):
            rng = np.random.default_rng([number, thread])
            for step in range(20):
                try:
                    if thread < 3 and step == 10:
                        guard.close()
                        closed.append(thread)
                    ask(guard, rng, given[thread])
                except RuntimeError as refusal:
                    assert "closed" in str(refusal)
                    return

        together(work)
        assert closed
        with pytest.raises(RuntimeError, match="closed"):
            guard.query(LOSSES[0])
        with RadaBound.open(path) as again:
            assert again.n_answered == sum(map(len, given))
            assert again.query(LOSSES[0]).number == again.n_answered


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="this system has no interval timer")
def test_threads_that_ctrl_c_leaves_at_work_keep_what_they_read():
    """In a process of its own: what is read after it was freed ends that."""
    code = """if True:
        import signal, time
        import numpy as np
        from radabound_fast import PackedLosses, RadaBound
        from radabound_fast._kernels.guard import choose_thread_cells

        choose_thread_cells(1 << 26)  # half of the rows each
        signal.signal(signal.SIGALRM, signal.default_int_handler)
        # signs of 64 MB, which are given back to the system as soon as they are freed
        guard = RadaBound(65534, epsilon=.9, delta=.1, bound="mclt", n_vectors=1 << 13, seed=1)
        words = np.random.default_rng(0).integers(0, 1 << 63, (1024, 1024), np.uint64)
        words[:, -1] = 0  # a tenth of a second and more for the other
        words[0] = ~np.uint64(0)  # with bits past n_samples: this thread is done at once, and waits
        signal.setitimer(signal.ITIMER_REAL, 0.02)
        try:
            guard.query_many(PackedLosses(words, 65534), n_threads=2)
        except KeyboardInterrupt:
            del guard, words
            print("left", flush=True)
        time.sleep(1)
        print("alive")
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "left\nalive\n"), done.stderr
