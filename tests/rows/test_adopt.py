"""Rows counted elsewhere and adopted by a guard: the same state as if it had judged each."""

import numpy as np
import pytest
import support
from support import state_of

from radabound_fast import FixedSequence, HoldoutExhausted, RademacherAverage
from radabound_fast._kernels.guard import GuardCore, lay_out
from radabound_fast._kernels.rows import SignStore

N_SAMPLES, N_VECTORS, SEED = 1000, 12, 5


def guard_of(bound, epsilon):
    given = {"epsilon": epsilon, "n_vectors": N_VECTORS, "seed": SEED}
    return support.guard_of(N_SAMPLES, bound=bound, **given)


def counted_elsewhere(guard, losses):
    """What `adopt` takes: some rows counted in an object without a gate."""
    average = RademacherAverage(guard._signs)
    average.update(losses)
    shift = average._core.unit_shift
    totals = np.rint(losses * 2.0**shift).astype(np.int64).sum(axis=1)
    maxima, minima = average._core.extremes()
    progress = lay_out(
        maxima, minima, n_rows=len(losses), unit_shift=shift, largest=int(totals.max())
    )
    return progress, totals


def adopted(guard, losses):
    may_be_real = losses.dtype.kind == "f"
    found = guard._core.adopt(*counted_elsewhere(guard, losses), may_be_real=may_be_real)
    return found is not None


def rows(kind, n_queries):
    rng = np.random.default_rng(17)
    base = rng.random(N_SAMPLES) < 0.02
    losses = (base ^ (rng.random((n_queries, N_SAMPLES)) < 0.1)).astype(np.float64)
    if kind != "binary":
        losses[:, ::3] *= 0.25
    if kind == "mixed":
        losses[: n_queries // 4] = np.rint(losses[: n_queries // 4])
        losses[-n_queries // 4 :] = np.rint(losses[-n_queries // 4 :])
    return losses


def n_adopted_of(guard, losses, segment):
    """Adopts segments and judges the others, up to a halt; how many rows were adopted."""
    n_adopted = 0
    for start in range(0, len(losses), segment):
        block = losses[start : start + segment]
        if adopted(guard, block):
            n_adopted += len(block)
        elif guard.query_many(block).halted:
            break
    return n_adopted


@pytest.mark.parametrize("max_queries", [None, 1, 70, 1000])
def test_a_block_over_the_end_of_stages_is_adopted_whole(max_queries):
    """Of rows that pass in every stage; after 1, 3, 7, ... and max_queries answers one ends."""
    given = {"delta": 0.1, "seed": 1, "n_vectors": N_VECTORS, "max_queries": max_queries}
    here, there = (FixedSequence(N_SAMPLES, epsilon=0.06, **given) for _ in "12")
    losses = np.random.default_rng(3).random((900, N_SAMPLES)) < 0.02
    losses[1::2] ^= True  # as many that err nearly everywhere
    assert n_adopted_of(there, losses, 300) == 900
    here.query_many(losses)
    assert state_of(there) == state_of(here)


@pytest.mark.parametrize("ours", ["bits", "units"])
@pytest.mark.parametrize("theirs", ["bits", "units"])
def test_totals_are_priced_in_the_units_there_are(ours, theirs):
    """A record total asks for a gate, and one of more than 400 losses for one that is shut."""

    def price(largest, unit_shift, n_rows):
        budget = 2**62 if largest <= 400 << unit_shift else -1
        return budget, largest, 2**63 - 1, -1, 2**63 - 1, -1, 2**63 - 1

    signs = SignStore(SEED, N_SAMPLES, N_VECTORS)
    for total in (399, 400, 401, 999):
        here, judged = (GuardCore(signs, price=price) for _ in "12")
        there = GuardCore(signs)
        first = np.zeros(N_SAMPLES, np.float32)
        first[:5] = 1.0 if ours == "bits" else 0.5
        other = (np.arange(N_SAMPLES) < total).astype(np.float32)
        if theirs == "units":  # the same sum
            other[[0, -1]] = 0.5, 0.5
        for core in (here, judged):
            core.query_many(first[None])
        there.query_many(other[None])
        shift = 24 if theirs == "units" else 0
        assert (here.unit_shift, there.unit_shift) == (24 if ours == "units" else 0, shift)
        maxima, minima = there.extremes()
        state = lay_out(maxima, minima, n_rows=1, unit_shift=shift, largest=total << shift)
        before = here.progress()
        taken = here.adopt(state, np.array([total << shift]), may_be_real=True)
        judged.query_many(other[None])
        assert (taken is not None) == (not judged.halted) == (total <= 400)
        assert (here.progress() == (judged.progress() if taken else before)).all()


def test_totals_of_another_state_change_nothing():
    guard = guard_of("mclt", 0.2)
    progress, totals = counted_elsewhere(guard, rows("binary", 3))
    before = state_of(guard)
    for wrong in (totals[:2], totals + 1, -totals, totals.astype(float), totals[:, None]):
        with pytest.raises(ValueError, match="totals must be those of the rows"):
            guard._core.adopt(progress, wrong)
    with pytest.raises(ValueError, match="totals must be given to a guard that has a gate"):
        guard._core.adopt(progress)
    assert state_of(guard) == before
    assert guard._core.adopt(progress, totals) is not None


def test_what_may_not_pass_changes_nothing():
    guard = guard_of("mclt", 0.07)
    guard.query(rows("binary", 1)[0])
    before = state_of(guard)
    assert not adopted(guard, rows("binary", 200))
    assert not adopted(guard, rows("mixed", 200))  # not even the units
    assert state_of(guard) == before


def test_a_halted_guard_adopts_nothing():
    guard = guard_of("mclt", 0.07)
    assert guard.query_many(rows("binary", 200)).halted
    before = state_of(guard)
    assert not adopted(guard, np.zeros((1, N_SAMPLES)))
    assert state_of(guard) == before
    with pytest.raises(HoldoutExhausted):
        guard.query_many(np.zeros((1, N_SAMPLES)))
