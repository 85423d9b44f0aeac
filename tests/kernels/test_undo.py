"""A change that fails is undone whole: in memory, in the database, and whoever else has it open."""

import numpy as np
import pytest
from support import query_many, state_of

from radabound_fast import GuessAndCheck, HoldoutExhausted, Ladder, RadaBound
from radabound_fast._kernels.guard import lay_out
from radabound_fast.guards.signed import SignedGuard


@pytest.fixture(params=[OSError, KeyboardInterrupt])
def fails(request):
    """Has the next call of a function of a ledger fail, before it does anything."""

    def fail(ledger, name):
        def once(*_):
            delattr(ledger, name)
            raise request.param

        setattr(ledger, name, once)
        return pytest.raises(request.param)

    return fail


@pytest.fixture(params=["query", "query_many"])
def ask(request):
    def asked(guard, halting, number):
        if request.param == "query":
            return halting.query(guard, number)
        rows = halting.losses[number : number + 1]
        return query_many(guard, rows, [halting.guesses[number]])

    return asked


@pytest.fixture
def path(tmp_path):
    return tmp_path / "guard.db"


def test_a_query_whose_commit_fails_never_happened(halting, ask, fails, path):
    twin = halting.make()
    with halting.make(path) as guard, halting.make(path) as other:
        before = state_of(guard)
        for part in ("begin", "commit"):
            with fails(guard.database, part):
                ask(guard, halting, 0)
            assert state_of(guard) == before and guard.n_answered == other.n_answered == 0
        assert repr(ask(guard, halting, 0)) == repr(ask(twin, halting, 0))
        assert state_of(guard) == state_of(twin) and other.n_answered == 1


def test_a_halt_whose_commit_fails_is_no_halt(halting, ask, fails, path):
    with halting.make(path) as guard, halting.make(path) as other:
        ask(guard, halting, 0)
        before = state_of(guard)
        with fails(guard.database, "commit"):
            ask(guard, halting, 1)
        assert not guard._shared.has_halted and state_of(guard) == before
        assert not guard.halted and not other.halted
        if isinstance(guard, (SignedGuard, GuessAndCheck)):  # the others have one answer in all
            ask(guard, halting, 0)
            assert guard.n_answered == other.n_answered == 2


def test_an_undo_forgets_no_answer_of_another(halting, ask, fails, path):
    if halting.kind is Ladder:
        halting.parameters.update(max_queries=9)
    if "budget" in halting.parameters:
        halting.parameters.update(budget=9)
    memory = halting.make()
    with halting.make(path) as guard, halting.make(path) as other:
        for number in (1, 2):
            ask(other, halting, 0)
            with fails(guard.database, "commit"):
                ask(guard, halting, 0)
            answer = ask(guard, halting, 0)
            ask(memory, halting, 0)
            assert guard.n_answered == 2 * number
            assert repr(ask(memory, halting, 0)) == repr(answer)
            assert state_of(guard) == state_of(memory) and other.n_answered == 2 * number


def test_a_halt_of_another_is_seen_after_an_undo(halting, ask, fails, path):
    with halting.make(path) as guard, halting.make(path) as other:
        ask(guard, halting, 0)
        with pytest.raises(HoldoutExhausted):
            halting.query(other, 1)
        with fails(guard.database, "begin"):
            ask(guard, halting, 0)
        with pytest.raises(HoldoutExhausted):
            ask(guard, halting, 0)
        assert guard.halted and guard.n_answered == 1 and state_of(guard) == state_of(other)


def test_rows_whose_adoption_fails_were_never_adopted(fails, path):
    parameters = {"epsilon": 0.2, "delta": 0.1, "bound": "mclt", "seed": 1}
    maxima, minima = np.arange(32), -np.arange(32)
    totals = np.array([5, 31, 40])
    there = lay_out(maxima, minima, n_rows=3, unit_shift=0, largest=40)
    with RadaBound.open(path, 1000, **parameters) as one, RadaBound.open(path) as other:
        other.query(np.zeros(1000))
        before = state_of(other)
        with fails(one.database, "commit"):
            one._core.adopt(there, totals)
        assert one.n_answered == 1 and state_of(one) == before
        n_queries, complexity = one._core.adopt(there, totals)
        assert n_queries == one.n_answered == other.n_answered == 4
        assert complexity == other.complexity == one.complexity > 0
