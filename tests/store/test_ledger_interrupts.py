"""Ctrl-C at every place where Python looks for it: nothing half counted, no lock kept."""

import _thread
import contextlib
import gc
import os
import signal
import sqlite3
import threading
import time
from itertools import count

import numpy as np
import pytest
from support import PACKAGE, query, query_many

from radabound_fast import FixedSequence, HoldoutExhausted, Ladder, RadaBound, store
from radabound_fast.experiments.thresholdout import Thresholdout

M = 200
LOSSES = np.random.default_rng(0).random((8, M)) < np.linspace(0.9, 0.6, 8)[:, np.newaxis]
GUARDS = {
    "RadaBound": (RadaBound, {"epsilon": 0.4, "delta": 0.1, "bound": "mclt", "seed": 1}),
    "Ladder": (Ladder, {"step": 0.01, "delta": 0.1}),
    "Thresholdout": (Thresholdout, {"threshold": 0.1, "noise": 0.02, "budget": 9, "seed": 3}),
}
CALLS = {
    "query": lambda guard: query(guard, LOSSES[1], 0.5),
    "query_many": lambda guard: query_many(guard, LOSSES[1:4], np.full(3, 0.5)),
}


@pytest.fixture(autouse=True)
def no_waiting_for_the_disk(monkeypatch):
    connect = store.sqlite.connect

    def quick(*arguments):
        connection = connect(*arguments)
        connection.execute("PRAGMA synchronous = OFF")
        return connection

    monkeypatch.setattr(os, "fsync", lambda _: None)
    for module in (store.sqlite, store.ledger):
        monkeypatch.setattr(module, "connect", quick)


def in_time(work):
    """Whether it ends: a lock that is kept would hold it up for ever."""
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(10)
    return not thread.is_alive()


@pytest.mark.thorough
@pytest.mark.parametrize("opened", [True, False], ids=["opened", "in memory"])
@pytest.mark.parametrize("ask", CALLS.values(), ids=CALLS)
@pytest.mark.parametrize(("kind", "parameters"), GUARDS.values(), ids=GUARDS)
def test_an_interrupt_anywhere_counts_a_call_whole_or_not_at_all(
    tmp_path, kind, parameters, ask, opened, interrupt_at
):
    before, after = kind(M, **parameters), kind(M, **parameters)
    for guard in (before, after):
        query(guard, LOSSES[0], 0.9)
    ask(after)
    whole = [guard._shared.progress().tolist() for guard in (before, after)]
    assert whole[0] != whole[1]
    found = []
    for number in count():
        path = tmp_path / str(number)
        guard = kind(M, **parameters)
        if opened:
            guard = kind.open(path, M, durability="process", **parameters)
        query(guard, LOSSES[0], 0.9)
        try:
            with interrupt_at(number) as interrupt:
                ask(guard)
        except KeyboardInterrupt as caught:
            kept = caught  # with its frames, as an interactive interpreter keeps them
        if interrupt.left >= 0:
            break
        assert in_time(lambda guard=guard: guard.n_answered), kept
        found.append(whole.index(guard._shared.progress().tolist()))
        if opened:
            with kind.open(path) as stored:
                assert stored._shared.progress().tolist() == guard._shared.progress().tolist()
        assert in_time(lambda guard=guard: query(guard, LOSSES[4], 0.5)), kept
    if kind is RadaBound and ask is CALLS["query"] and not opened:
        assert not found  # it is compiled: there is no such place
    else:
        assert len(found) > 2
    if opened:  # interrupted before the commit and after it
        assert {0, 1} == set(found)


MANY = 10**6  # more than there are places
WITHHELD = {
    "epsilon": 0.045,
    "delta": 0.1,
    "max_queries": 10**6,
    "seed": 1,
}


@pytest.mark.thorough
@pytest.mark.parametrize("opened", [True, False], ids=["opened", "in memory"])
@pytest.mark.parametrize("real", [False, True], ids=["binary", "real"])
@pytest.mark.parametrize("many", [False, True], ids=["query", "query_many"])
def test_no_interrupt_leaves_the_price_of_a_withheld_row(
    tmp_path, opened, real, many, interrupt_at
):
    rng = np.random.default_rng(1)
    answered, withheld = rng.random(1000) < 0.02, (rng.random(1000) < 0.5) * (0.75 if real else 1)

    def guard_at(number):
        guard = FixedSequence(1000, **WITHHELD)
        if opened:
            path = tmp_path / str(number)
            guard = FixedSequence.open(path, 1000, durability="process", **WITHHELD)
        guard.query(answered)
        return guard

    def ask(guard):
        if not many:
            guard.query(withheld)
        elif not guard.query_many(withheld[np.newaxis]).halted:
            pytest.fail("answered")

    def seen(guard):
        core = guard._core
        return core.progress().tolist(), core.budget, core.largest >> core.unit_shift

    before, after = guard_at("before"), guard_at("after")
    states = [seen(before)]
    with contextlib.suppress(HoldoutExhausted):
        ask(after)
    states.append(seen(after))
    assert after.halted and states[0][2] == states[1][2] == answered.sum()

    def interrupted(number):
        """What is seen then, and how many places were left."""
        guard = guard_at(number)
        try:
            with interrupt_at(number) as interrupt:
                ask(guard)
        except (HoldoutExhausted, KeyboardInterrupt):
            pass
        halted = guard.halted  # which takes over what was committed before the interrupt came
        assert states.index(seen(guard)) == halted
        return int(halted), interrupt.left

    found, left = interrupted(MANY)
    assert found == 1  # it was not interrupted
    n_places = MANY - left
    tried = np.unique(np.linspace(0, n_places - 1, 30, dtype=int)).tolist()
    assert 0 in {interrupted(number)[0] for number in tried}


@pytest.fixture
def sigint():
    """Sends Ctrl-C, which a parent may have had ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield lambda: signal.raise_signal(signal.SIGINT)
    signal.signal(signal.SIGINT, before)


# and not of making a guard
OF_OPENING = (
    *(PACKAGE + os.path.join("guards", name) for name in ("opening.py", "halting_guard.py")),
    PACKAGE + "store",
)


@pytest.mark.thorough
@pytest.mark.parametrize("new", [False, True], ids=["open", "open a new one"])
@pytest.mark.parametrize(("kind", "parameters"), GUARDS.values(), ids=GUARDS)
def test_an_interrupt_anywhere_in_opening_leaves_it_to_the_next(
    tmp_path, sigint, interrupt_at, kind, parameters, new
):
    path, n_broken = tmp_path / "guard", 0
    for number in count(list(GUARDS).index(kind.__name__), 7):  # each kind at other places
        if not new:
            kind.open(path, M, **parameters).close()
        try:
            with interrupt_at(number, sigint, OF_OPENING) as interrupt:
                kind.open(path, M, **parameters).close()
        except KeyboardInterrupt as caught:
            kept = caught
            n_broken += 1
        if interrupt.left >= 0:
            break
        # with the frames of what was broken into, as an interactive interpreter keeps them
        again = kind.open(path, M, **parameters)
        assert query(again, LOSSES[0], 0.9).number == 1, kept
        again = kept = None
        gc.collect()
        assert os.listdir(tmp_path) == ["guard"]
        path.unlink()
    assert n_broken > 10


@pytest.fixture
def held(tmp_path):
    """A guard, and a connection that keeps it waiting until it rolls back."""
    guard = RadaBound.open(tmp_path / "guard.db", M, durability="process", **GUARDS["RadaBound"][1])
    holder = sqlite3.connect(tmp_path / "guard.db", isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    with guard:
        yield guard, holder
    holder.close()


def test_ctrl_c_ends_the_wait_for_another_process(held):
    guard, holder = held
    interrupt = threading.Timer(0.2, _thread.interrupt_main)
    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        interrupt.start()
        guard.query(LOSSES[1])
    assert time.monotonic() - begun < store.ledger.BUSY_SECONDS / 2
    interrupt.join()
    holder.execute("ROLLBACK")
    assert guard.query(LOSSES[1]).number == 1


def test_a_wait_that_takes_too_long_counts_nothing(held, monkeypatch):
    guard, holder = held
    for module in (store.ledger, store.sqlite):
        monkeypatch.setattr(module, "BUSY_SECONDS", 0.05)
    with pytest.raises(TimeoutError, match="guard.db was busy for 0.05 seconds; nothing was"):
        guard.query(LOSSES[1])
    holder.execute("ROLLBACK")
    assert guard.query(LOSSES[1]).number == 1
