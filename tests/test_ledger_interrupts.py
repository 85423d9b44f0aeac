"""Ctrl-C at every place where Python looks for it: nothing half counted, no lock kept."""

import _thread
import contextlib
import sqlite3
import threading
import time
from itertools import count

import numpy as np
import pytest

from radabound_fast import HoldoutExhausted, RadaBound, store
from radabound_fast.mechanisms import Ladder, Thresholdout

M = 200
LOSSES = np.random.default_rng(0).random((8, M)) < np.linspace(0.9, 0.6, 8)[:, np.newaxis]
GUARDS = {
    "RadaBound": (RadaBound, {"epsilon": 0.4, "delta": 0.1, "bound": "mclt", "seed": 1}),
    "Ladder": (Ladder, {"delta": 0.1}),
    "Thresholdout": (Thresholdout, {"threshold": 0.1, "noise": 0.02, "budget": 9, "seed": 3}),
}
CALLS = {
    "query": lambda guard: guard.query(LOSSES[1], guess=0.5),
    "query_many": lambda guard: guard.query_many(LOSSES[1:4], guesses=np.full(3, 0.5)),
}


def in_time(work):
    """Whether it ends: a lock that is kept would hold it up for ever."""
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(10)
    return not thread.is_alive()


@pytest.mark.parametrize("opened", [True, False], ids=["opened", "in memory"])
@pytest.mark.parametrize("ask", CALLS.values(), ids=CALLS)
@pytest.mark.parametrize(("kind", "parameters"), GUARDS.values(), ids=GUARDS)
def test_an_interrupt_anywhere_counts_a_call_whole_or_not_at_all(
    tmp_path, kind, parameters, ask, opened, interrupt_at
):
    before, after = kind(M, **parameters), kind(M, **parameters)
    for guard in (before, after):
        guard.query(LOSSES[0], guess=0.9)
    ask(after)
    whole = [guard._shared._progress().tolist() for guard in (before, after)]
    assert whole[0] != whole[1]
    found = []
    for number in count():
        path = tmp_path / str(number)
        guard = kind(M, **parameters)
        if opened:
            guard = kind.open(path, M, durability="process", **parameters)
        guard.query(LOSSES[0], guess=0.9)
        try:
            with interrupt_at(number) as interrupt:
                ask(guard)
        except KeyboardInterrupt as caught:
            kept = caught  # with its frames, as an interactive interpreter keeps them
        if interrupt.left >= 0:
            break
        assert in_time(lambda guard=guard: guard.n_queries), kept
        found.append(whole.index(guard._shared._progress().tolist()))
        if opened:
            with kind.open(path) as stored:
                assert stored._shared._progress().tolist() == guard._shared._progress().tolist()
        assert in_time(lambda guard=guard: guard.query(LOSSES[4], guess=0.5)), kept
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
    "bound": "fixed-sequence",
    "max_queries": 10**6,
    "seed": 1,
}


@pytest.mark.parametrize("opened", [True, False], ids=["opened", "in memory"])
@pytest.mark.parametrize("real", [False, True], ids=["binary", "real"])
@pytest.mark.parametrize("many", [False, True], ids=["query", "query_many"])
def test_no_interrupt_leaves_the_price_of_a_withheld_row(
    tmp_path, opened, real, many, interrupt_at
):
    rng = np.random.default_rng(1)
    answered, withheld = rng.random(1000) < 0.02, (rng.random(1000) < 0.5) * (0.75 if real else 1)

    def guard_at(number):
        guard = RadaBound(1000, **WITHHELD)
        if opened:
            path = tmp_path / str(number)
            guard = RadaBound.open(path, 1000, durability="process", **WITHHELD)
        guard.query(answered)
        return guard

    def ask(guard):
        if not many:
            guard.query(withheld)
        elif not guard.query_many(withheld[np.newaxis]).halted:
            pytest.fail("answered")

    def seen(guard):
        core = guard._core
        return core._progress().tolist(), core.budget, core.largest >> core.unit_shift

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
    assert time.monotonic() - begun < store._ledger._BUSY_SECONDS / 2
    interrupt.join()
    holder.execute("ROLLBACK")
    assert guard.query(LOSSES[1]).n_queries == 1


def test_a_wait_that_takes_too_long_counts_nothing(held, monkeypatch):
    guard, holder = held
    monkeypatch.setattr(store._ledger, "_BUSY_SECONDS", 0.05)
    with pytest.raises(TimeoutError, match="guard.db was busy for 0.05 seconds; nothing was"):
        guard.query(LOSSES[1])
    holder.execute("ROLLBACK")
    assert guard.query(LOSSES[1]).n_queries == 1
