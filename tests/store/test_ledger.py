"""A guard in a database is the guard in memory, bit for bit, whoever else has it open."""

import contextlib
import json
import os
import subprocess
import sys
import textwrap
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle, pairwise

import numpy as np
import pytest
from support import query, query_many, state_of

from radabound_fast import (
    FixedSequence,
    GuessAndCheck,
    HoldoutExhausted,
    Ladder,
    RadaBound,
    RademacherAverage,
    pack_losses,
    store,
)
from radabound_fast.experiments.thresholdout import Thresholdout

M = 1000  # not a multiple of 64
COMMON = {"delta": 0.1, "n_vectors": 12, "seed": 5}
QUICK = {"durability": "process"}


def rows(seed, n_rows, real=False, rate=0.1):
    """Rows that all err on the same few samples, so that their complexity grows slowly."""
    base = np.random.default_rng(99).random(M) < 0.02
    losses = base ^ (np.random.default_rng(seed).random((n_rows, M)) < rate)
    return losses * np.where(np.arange(M) % 3, 1.0, 0.3) if real else losses


# what is asked in turn, up to the block of two threads' work in which the last halt
ASKED = [
    lambda guard: guard.query(rows(1, 1)[0]),
    lambda guard: guard.query(pack_losses(rows(2, 1)[0])),
    lambda guard: guard.query_many(pack_losses(rows(3, 20))),
    lambda guard: guard.query_many(rows(4, 40), trace=True),
    lambda guard: guard.query(rows(5, 1, real=True)[0]),
    lambda guard: guard.query_many(rows(6, 60, real=True), trace=True),
    lambda guard: guard.query_many(rows(7, 2100), n_threads=2),
    lambda guard: guard.query_many(rows(8, 2100, real=True), trace=True, n_threads=2),
]
FIXED = {"epsilon": 0.054}  # of a FixedSequence
# with the number of answers before each halts: None, it never does
GUARDS = {
    "bernstein": (RadaBound, {"bound": "bernstein", "epsilon": 0.105}, 16),
    "bernstein in threads": (RadaBound, {"bound": "bernstein", "epsilon": 0.13}, 667),
    "bernstein without a halt": (RadaBound, {"bound": "bernstein", "epsilon": 0.15}, None),
    "half-range": (
        RadaBound,
        {"bound": "bernstein", "epsilon": 0.105, "estimator": "half-range"},
        16,
    ),
    "split": (RadaBound, {"bound": "bernstein-split", "epsilon": 0.15, "two_sided": True}, 141),
    "mclt": (RadaBound, {"bound": "mclt", "epsilon": 0.08, "signs": "generated"}, 40),
    "fixed sequence": (FixedSequence, FIXED, 67),
    "fixed sequence in threads": (
        FixedSequence,
        FIXED | {"epsilon": 0.058, "max_queries": 50},
        256,
    ),
}
MECHANISMS = {
    "guess and check": (GuessAndCheck, {"epsilon": 0.2, "delta": 0.1}),
    "flat guess and check": (GuessAndCheck, {"epsilon": 0.2, "delta": 0.1, "low_error": False}),
    "ladder": (Ladder, {"step": 0.01, "delta": 0.1}),
    "ladder of 25": (Ladder, {"step": 0.01, "delta": 0.1, "max_queries": 25}),
    "thresholdout": (Thresholdout, {"threshold": 0.1, "noise": 0.02, "budget": 9, "seed": 3}),
}


def falling(first, last, real=False):
    """Rows first to last of those whose means fall from .9 to .1, and a guess for each."""
    rng = np.random.default_rng(11)
    rates = np.linspace(0.9, 0.1, 60)
    losses = rng.random((60, M)) < rates[:, np.newaxis]
    guesses = np.clip(rates + rng.normal(0, 0.05, 60), 0, 1)
    if real:
        losses = losses * np.where(np.arange(M) % 3, 1.0, 0.75)
    return losses[first:last], guesses[first:last]


def asked_of_mechanism(first, last, real):
    losses, guesses = falling(first, last, real)
    if last - first == 1:
        return lambda mechanism: query(mechanism, losses[0], guesses[0])
    return lambda mechanism: query_many(mechanism, losses, guesses)


CUTS = [0, 1, 2, 9, 10, 30, 31, 60]
ASKED_OF_MECHANISMS = [
    asked_of_mechanism(first, last, real)
    for (first, last), real in zip(pairwise(CUTS), cycle([False, True]))  # noqa: B905
]


def told(ask, guard):
    """Everything that one call tells, floats by every digit."""
    try:
        answer = ask(guard)
    except HoldoutExhausted as halt:
        return repr((str(halt), sorted(vars(halt).items())))
    values = [getattr(answer, name) for name in dir(answer) if not name.startswith("_")]
    return repr([np.asarray(value).tolist() for value in values if not callable(value)])


def shown(guard):
    signed = (getattr(guard, name, None) for name in ("complexity", "budget"))
    return [guard.n_answered, guard.halted, *signed, guard.n_left(), repr(guard)]


def start(code, *arguments):
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


@contextlib.contextmanager
def two_owners(path, kind, parameters):
    """Two guards on one file."""
    with kind.open(path, M, **QUICK, **parameters) as one, kind.open(path, **QUICK) as other:
        yield one, other


def in_threads(work):
    """Runs work(number) in 8 threads; an exception in one is the test's."""
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "guard.db"


# ---- one guard, kept in a file -----------------------------------------------------------------


# kind, parameters, what is asked, and how many answers there are before a halt; ...: some
CASES = {
    **{name: (kind, COMMON | own, ASKED, n) for name, (kind, own, n) in GUARDS.items()},
    **{name: (*both, ASKED_OF_MECHANISMS, ...) for name, both in MECHANISMS.items()},
}
each_case = pytest.mark.parametrize(
    ("kind", "parameters", "asks", "n_answered"), CASES.values(), ids=CASES
)


@pytest.mark.parametrize("reopened", [False, True])
@each_case
def test_an_opened_guard_is_the_guard_in_memory(path, kind, parameters, asks, n_answered, reopened):
    memory = kind(M, **parameters)
    guard = kind.open(path, M, **QUICK, **parameters)
    for ask in asks:
        assert told(ask, guard) == told(ask, memory)
        assert state_of(guard) == state_of(memory) and shown(guard) == shown(memory)
        if reopened:
            guard.close()
            guard = kind.open(path, **QUICK)
    assert memory.n_answered > 10
    assert n_answered in (..., memory.n_answered if memory.halted else None)


# ---- several guards, one file -------------------------------------------------------------------


@each_case
def test_two_guards_on_one_file_are_one_guard(path, kind, parameters, asks, n_answered):
    memory = kind(M, **parameters)
    with two_owners(path, kind, parameters) as (one, other):
        for ask, guard in zip(asks, cycle([one, other])):  # noqa: B905
            assert told(ask, guard) == told(ask, memory)
            assert shown(one) == shown(other) == shown(memory)
        assert state_of(one) == state_of(other) == state_of(memory)


def commits_first(guard, ask):
    """Makes `ask` happen after the next call of `guard` has scanned and before it commits."""
    begin = guard._record.begin

    def late():
        guard._record.begin = begin
        ask()
        return begin()

    guard._record.begin = late


# how often theirs err, and of 0-1 rows how many of our 2100 are answered alone and after theirs
MEETINGS = {
    "both fit": (RadaBound, {"bound": "mclt", "epsilon": 0.15}, 0.1, 2100, 2100),
    "ours halts, and sooner after theirs": (
        RadaBound,
        {"bound": "mclt", "epsilon": 0.09},
        0.1,
        159,
        108,
    ),
    "ours halts after theirs only": (RadaBound, {"bound": "mclt", "epsilon": 0.11}, 0.3, 2100, 54),
    "theirs halts": (RadaBound, {"bound": "bernstein", "epsilon": 0.1}, 0.1, 18, None),
    "theirs takes what is free": (FixedSequence, FIXED, 0.1, 126, 81),
}


@pytest.mark.parametrize("n_threads", [1, 2])
@pytest.mark.parametrize("trace", [False, True])
@pytest.mark.parametrize("real", [(0, 0), (0, 1), (1, 0), (1, 1)], ids=str)
@pytest.mark.parametrize(
    ("kind", "parameters", "rate", "alone", "after"), MEETINGS.values(), ids=MEETINGS
)
def test_what_is_committed_during_a_scan_comes_first(
    path, kind, parameters, rate, alone, after, real, trace, n_threads
):
    first, ours, theirs = rows(23, 1)[0], rows(21, 2100, real[0]), rows(22, 48, real[1], rate)
    parameters = COMMON | parameters
    memory = kind(M, **parameters)

    def ask(guard):
        return guard.query_many(ours, trace=trace, n_threads=n_threads)

    with two_owners(path, kind, parameters) as (one, other):
        for guard in (one, memory):
            guard.query(first)
        commits_first(one, lambda: other.query_many(theirs))
        before = memory.n_answered + len(memory.query_many(theirs))
        assert told(ask, one) == told(ask, memory)
        assert state_of(one) == state_of(memory) and shown(other) == shown(memory)
    if real == (0, 0):
        assert memory.n_answered - before == (after or 0)
        fresh = kind(M, **parameters)
        fresh.query(first)
        assert len(ask(fresh)) == alone


WORKER = """
    import json, sys
    import numpy as np
    from radabound_fast import HoldoutExhausted, RadaBound
    path, number, trace, parameters = sys.argv[1], *map(json.loads, sys.argv[2:])
    losses = np.load(f"{path}.{number}.npy")
    guard = RadaBound.open(path, losses.shape[1], durability="process", **parameters)
    print("ready", flush=True)
    sys.stdin.readline()
    asked, told = 0, []
    while not guard.halted:
        size = 1 if asked % 3 else 7
        # from the first row again, if the others hardly get to run
        block = losses.take(range(asked, asked + size), axis=0, mode="wrap")
        try:
            if size == 1:
                answer = guard.query(block[0])
                told.append([answer.number, asked, answer.value, answer.complexity])
            else:
                answers = guard.query_many(block, trace=trace)
                traced = answers.complexities if trace else [None] * len(answers)
                numbers = answers.numbers.tolist()
                for row, pair in enumerate(zip(answers.values, traced)):
                    told.append([numbers[row], asked + row, *pair])
                size = len(answers) if answers.halted else size
        except HoldoutExhausted:
            size = 0
        asked += size
    print(json.dumps([told, asked]))
"""


@pytest.mark.thorough
@pytest.mark.parametrize("trace", [False, True])
def test_processes_that_share_a_file_are_one_guard_in_the_order_of_their_commits(path, trace):
    parameters = {"epsilon": 0.105, "delta": 0.1, "bound": "mclt", "n_vectors": 12}
    losses = [rows(31 + number, 4000, real=number == 2) for number in range(3)]  # bits and units
    workers = []
    for number, asked in enumerate(losses):
        np.save(f"{path}.{number}.npy", asked)
        workers.append(start(WORKER, path, *map(json.dumps, [number, trace, parameters])))
    for worker in workers:
        assert worker.stdout.readline() == "ready\n"
    for worker in workers:
        worker.stdin.write("go\n")
        worker.stdin.flush()
    answers = [json.loads(worker.communicate(timeout=60)[0]) for worker in workers]
    guard = RadaBound.open(path, **QUICK)
    order = sorted(
        (count, number, row, value, complexity)
        for number, (told, _) in enumerate(answers)
        for count, row, value, complexity in told
    )
    # each count is answered once: nothing was forgotten, and nothing was counted twice
    assert [count for count, *_ in order] == list(range(1, guard.n_answered + 1))
    memory = RadaBound(M, **parameters, seed=guard.seed)
    for _, number, row, value, complexity in order:
        answer = memory.query(losses[number][row % 4000])
        assert answer.value == value
        assert complexity in (None, answer.complexity)
    # the query that halted it was the next of one of them, and no more than one has counted
    ends = []
    for asked, (_, row) in zip(losses, answers, strict=True):
        end = RadaBound(M, **parameters, seed=guard.seed)
        end._shared.resume(memory._shared.progress())
        told(lambda guard, losses=asked[row % 4000]: guard.query(losses), end)
        ends.append(state_of(end))
    assert guard.halted and state_of(guard) in ends


PEER = """
    import sys
    import numpy as np
    from radabound_fast import HoldoutExhausted, RadaBound
    guard = RadaBound.open(sys.argv[1])
    print("ready", flush=True)
    for line in sys.stdin:
        try:
            print(eval(line), flush=True)
        except HoldoutExhausted as halt:
            print(type(halt).__name__, flush=True)
"""


def test_what_one_process_commits_every_other_sees_at_once(path):
    def peer(expression):
        process.stdin.write(f"{expression}\n")
        process.stdin.flush()
        return process.stdout.readline().strip()

    coins = np.random.default_rng(0).random((400, M)) < 0.5
    with RadaBound.open(path, M, epsilon=0.12, delta=0.1, bound="mclt") as guard:
        process = start(PEER, path)
        with process:
            assert process.stdout.readline() == "ready\n"
            assert guard.query(coins[0]).number == 1
            assert peer("guard.n_answered") == "1"
            asked = "np.random.default_rng(0).random((400, 1000)) < 0.5"
            assert peer(f"guard.query(({asked})[1]).number") == "2"
            assert guard.n_answered == 2
            for name in ("complexity", "budget", "halted", "n_left()", "seed"):
                assert peer(f"guard.{name}") == str(eval(f"guard.{name}"))
            # rows that err with the signs: no budget is so large
            assert peer("guard.query_many(np.asarray(guard._signs) > 0).halted") == "True"
            assert guard.halted and guard.n_left() == 0
            with pytest.raises(HoldoutExhausted) as refused:
                guard.query(np.zeros(M))
            assert refused.value.n_answered == guard.n_answered
            assert peer("guard.query(np.zeros(1000))") == "HoldoutExhausted"
            process.stdin.close()


def test_of_many_that_create_a_file_at_once_one_does(path):
    def make(number):
        guards[number] = RadaBound.open(path, M, epsilon=0.1, delta=0.1)

    guards = [None] * 8
    in_threads(make)
    assert len({guard.seed for guard in guards}) == 1
    assert sorted(os.listdir(path.parent)) == [path.name + end for end in ("", "-shm", "-wal")]


@pytest.mark.parametrize("shared", [True, False], ids=["one guard", "a guard each"])
def test_threads_share_one_count_and_one_halt(path, shared):
    losses = rows(41, 1600)
    parameters = COMMON | {"bound": "mclt", "epsilon": 0.1}
    one = RadaBound.open(path, M, **QUICK, **parameters)
    answers, refused = [], []

    def ask(number):
        guard = one if shared else RadaBound.open(path, **QUICK)
        for row in range(number, len(losses), 8):
            try:
                answers.append((guard.query(losses[row]), row))
            except HoldoutExhausted:
                refused.append(row)

    in_threads(ask)
    assert one.halted and len(answers) + len(refused) == len(losses)
    memory = RadaBound(M, **parameters)
    for count, (answer, row) in enumerate(sorted(answers, key=lambda pair: pair[0].number), 1):
        assert answer.number == count
        assert repr(memory.query(losses[row])) == repr(answer)


def test_extremes_that_are_adopted_are_committed(path):
    losses = rows(51, 30)
    average = RademacherAverage(RadaBound(M, epsilon=0.1, **COMMON)._signs)
    average.update(losses)
    there = average._core.progress()
    totals = losses.sum(axis=1)
    there[2] = totals.max()
    parameters = COMMON | {"bound": "mclt", "epsilon": 0.1}
    memory = RadaBound(M, **parameters)
    memory.query_many(rows(52, 5, real=True))
    memory.query_many(losses)
    one = RadaBound.open(path, M, **QUICK, **parameters)
    with RadaBound.open(path, **QUICK) as other:
        other.query_many(rows(52, 5, real=True))
        assert one._core.adopt(there, totals)
    assert state_of(one) == state_of(memory) == state_of(RadaBound.open(path))
    one.query_many(np.random.default_rng(0).random((99, M)) < 0.5)
    assert one.halted and not one._core.adopt(there, totals)


# ---- what a change that fails leaves -------------------------------------------------------------


def test_a_ledger_tells_what_is_new_until_it_is_committed(path):
    RadaBound.open(path, M, epsilon=0.15, **COMMON).close()
    first, second = store.open_ledger(path, "process"), store.open_ledger(path, "process")
    for ledger in (first, second):
        start = ledger.stored()
        assert ledger.read() is None  # known already
    number = iter(range(1, 100))

    def changed():
        later = start.copy()
        later[-1] = next(number)
        return later

    def is_told(found, expected):
        assert found.tolist() == expected.tolist()

    assert first.begin() is None
    one = changed()
    first.commit(one)
    assert first.read() is None and first.begin() is None
    first.rollback()
    is_told(second.begin(), one)
    second.rollback()  # what it was told it has forgotten
    is_told(second.begin(), one)
    second.rollback()
    is_told(second.read(), one)
    assert second.read() is None and second.begin() is None
    two = changed()
    second.commit(two)
    is_told(first.begin(), two)
    first.rollback()
    is_told(first.read(), two)
    first.begin()
    first.rollback()
    is_told(first.read(), two)  # and what was known before the change that failed
    for ledger in (first, second):
        ledger.close()
        ledger.close()


KINDS = {
    "RadaBound": (RadaBound, {"bound": "mclt", "epsilon": 0.15, **COMMON}),
    "FixedSequence": (FixedSequence, COMMON | FIXED),
    **MECHANISMS,
}


class Failing:
    """Makes one step of a guard's ledger fail, before or after it is done."""

    def __init__(self, guard, step, after):
        self.ledger, self.step, self.after = guard._record, step, after

    def __enter__(self):
        whole = getattr(self.ledger, self.step)

        def fail(*arguments):
            if self.after:
                whole(*arguments)
            raise KeyboardInterrupt

        setattr(self.ledger, self.step, fail)

    def __exit__(self, *_):
        delattr(self.ledger, self.step)


@pytest.mark.parametrize("many", [False, True], ids=["query", "query_many"])
@pytest.mark.parametrize(
    ("step", "after"), [("begin", False), ("begin", True), ("commit", False), ("_read", True)]
)
@pytest.mark.parametrize(("kind", "parameters"), KINDS.values(), ids=KINDS)
def test_a_change_that_fails_forgets_no_other_owners_answer(
    path, kind, parameters, step, after, many
):
    losses, guesses = falling(0, 6)

    def ask(guard, row):
        if many:
            return query_many(guard, losses[row : row + 1], guesses[row : row + 1])
        return query(guard, losses[row], guesses[row])

    memory = kind(M, **parameters)
    with two_owners(path, kind, parameters) as (one, other):
        for row, guard in enumerate([one, other, other]):
            ask(guard, row)
            ask(memory, row)
        with pytest.raises(KeyboardInterrupt), Failing(one, step, after):
            ask(one, 3)
        # the first call since, in which it must learn of what it had seen and not taken in
        assert told(lambda guard: ask(guard, 4), one) == told(lambda guard: ask(guard, 4), memory)
        assert state_of(one) == state_of(memory)
        ask(other, 5)
        ask(memory, 5)
        assert (one.n_answered, one.halted) == (memory.n_answered, memory.halted)
        assert state_of(one) == state_of(memory)
    assert state_of(kind.open(path)) == state_of(memory)


@pytest.mark.parametrize(("kind", "parameters"), KINDS.values(), ids=KINDS)
def test_a_look_that_fails_is_looked_again(path, kind, parameters):
    losses, guesses = falling(0, 3)
    with two_owners(path, kind, parameters) as (one, other):
        query(other, losses[0], guesses[0])
        with pytest.raises(KeyboardInterrupt), Failing(one, "read", True):
            one.n_answered  # noqa: B018 (which reads the database)
        assert one.n_answered == 1
        assert state_of(one) == state_of(other)


@pytest.mark.parametrize(("kind", "parameters"), KINDS.values(), ids=KINDS)
def test_a_change_that_fails_in_commit_lets_the_others_go_on(path, kind, parameters):
    losses, guesses = falling(0, 4)
    with two_owners(path, kind, parameters) as (one, other):
        with pytest.raises(KeyboardInterrupt), Failing(one, "commit", False):
            query(one, losses[0], guesses[0])
        begun = time.monotonic()
        assert query(other, losses[1], guesses[1]).number == 1
        assert time.monotonic() - begun < 10


# ---- several calls in one transaction ------------------------------------------------------------


@pytest.mark.parametrize(("kind", "parameters"), KINDS.values(), ids=KINDS)
def test_a_transaction_commits_all_of_its_calls_or_none(path, kind, parameters):
    losses, guesses = falling(0, 6)
    with two_owners(path, kind, parameters) as (one, other):

        def ask(guard, row):
            return query(guard, losses[row], guesses[row]).number

        def ask_both(_):
            assert [ask(one, 1), ask(one, 2)] == [2, 3]
            assert (one.n_answered, other.n_answered) == (3, 1)

        def ask_and_fail(_):
            assert ask(one, 3) == 4
            raise KeyError

        assert ask(other, 0) == 1
        one.database.transact(ask_both)
        assert other.n_answered == 3 and state_of(one) == state_of(other)
        with pytest.raises(KeyError):
            one.database.transact(ask_and_fail)
        assert (one.n_answered, other.n_answered) == (3, 3) and state_of(one) == state_of(other)
        assert ask(other, 4) == 4
        one.database.transact(lambda _: None)  # in which nobody queries it
        assert one.n_answered == 4 and ask(one, 5) == other.n_answered == 5


def test_a_transaction_within_a_transaction_is_refused(path):
    with RadaBound.open(path, M, **QUICK, epsilon=0.15, **COMMON) as guard:

        def nest(_):
            guard.query(rows(1, 1)[0])
            with RadaBound.open(path) as other:
                for again in (
                    lambda: guard.database.transact(lambda _: pytest.fail("begun")),
                    lambda: other.query(rows(1, 1)[0]),  # which would wait for this very thread
                ):
                    with pytest.raises(RuntimeError, match="in the middle of a call"):
                        again()

        guard.database.transact(nest)
        assert guard.n_answered == 1
    assert RadaBound.open(path).n_answered == 1
