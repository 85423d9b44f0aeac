"""Rows counted elsewhere and adopted by a guard: the same state as if it had judged each."""

import numpy as np
import pytest

from radabound_fast import HoldoutExhausted, RadaBound, RademacherAverage, _kernel

N_SAMPLES, N_VECTORS, SEED = 1000, 12, 5


def guard_of(bound, epsilon):
    return RadaBound(
        N_SAMPLES, epsilon=epsilon, delta=0.1, n_vectors=N_VECTORS, bound=bound, seed=SEED
    )


def counted_elsewhere(guard, losses):
    """The state that some rows come to in an object without a budget."""
    average = RademacherAverage(guard._signs)
    average.update(losses)
    shift = average._core.unit_shift
    largest = np.rint(losses * 2.0**shift).astype(np.int64).sum(axis=1).max()
    maxima, minima = average._core.extremes()
    return _kernel.lay_out(
        maxima, minima, n_rows=len(losses), unit_shift=shift, largest=int(largest)
    )


def state_of(guard):
    return {name: np.asarray(value).tolist() for name, value in guard._state().items()}


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


# bound, epsilon, rows answered: some halt, early and late, the others answer all 200
RUNS = [
    ("bernstein", 0.118, 126),
    ("mclt", 0.088, 78),
    ("mclt", 0.2, 200),
    ("fixed-sequence", 0.054, 30),  # by its union part alone
    ("fixed-sequence", 0.15, 200),
]


@pytest.mark.parametrize("kind", ["binary", "real", "mixed"])
@pytest.mark.parametrize(("bound", "epsilon", "n_answered"), RUNS)
@pytest.mark.parametrize("segment", [1, 7, 40])
def test_adopting_where_all_pass_and_judging_the_rest_is_judging_each(
    bound, epsilon, n_answered, kind, segment
):
    losses = rows(kind, 200)
    here, there = guard_of(bound, epsilon), guard_of(bound, epsilon)
    n_adopted = 0
    for start in range(0, len(losses), segment):
        block = losses[start : start + segment]
        if there._core.adopt(counted_elsewhere(there, block)):
            n_adopted += len(block)
        elif there.query_many(block).halted:
            break
    here.query_many(losses)
    assert state_of(there) == state_of(here)
    if kind == "binary":
        assert here.n_queries == n_answered
        assert n_adopted > 0 or n_answered == 30


@pytest.mark.parametrize("ours", ["bits", "units"])
@pytest.mark.parametrize("theirs", ["bits", "units"])
def test_a_larger_total_than_was_priced_is_not_adopted_in_any_units(ours, theirs):
    """The two largest totals are compared in the same units."""

    def price(largest, unit_shift, n_rows):  # for sums up to 400 losses
        return 2**62, max(largest, 400 << unit_shift), 2**63 - 1, -1, 2**63 - 1, -1, 2**63 - 1

    signs = _kernel.SignStore(SEED, N_SAMPLES, N_VECTORS)
    for total, is_taken in [(399, True), (400, True), (401, False), (1000, False)]:
        here, there = _kernel.GuardCore(signs, price=price), _kernel.GuardCore(signs)
        first = np.zeros(N_SAMPLES, np.float32)
        first[:5] = 1.0 if ours == "bits" else 0.5
        here.query_many(first[None])
        other = (np.arange(N_SAMPLES) < total).astype(np.float32)
        if theirs == "units":  # the same sum
            other[[0, -1]] = 0.5, other[-1] + 0.5
            if total == 1000:
                continue
        there.query_many(other[None])
        shift = 24 if theirs == "units" else 0
        assert (here.unit_shift, there.unit_shift) == (24 if ours == "units" else 0, shift)
        maxima, minima = there.extremes()
        state = _kernel.lay_out(maxima, minima, n_rows=1, unit_shift=shift, largest=total << shift)
        # a guard whose rows were all of 0 and 1 judges real-valued ones itself
        is_taken = is_taken and not (ours == "bits" and theirs == "units")
        assert (here.adopt(state) is not None) == is_taken
        assert here.n_rows == 1 + is_taken


def test_what_may_not_pass_changes_nothing():
    guard = guard_of("mclt", 0.07)
    guard.query(rows("binary", 1)[0])
    before = state_of(guard)
    assert not guard._core.adopt(counted_elsewhere(guard, rows("binary", 200)))
    assert not guard._core.adopt(counted_elsewhere(guard, rows("real", 1)))
    assert state_of(guard) == before


def test_a_halted_guard_adopts_nothing():
    guard = guard_of("mclt", 0.07)
    assert guard.query_many(rows("binary", 200)).halted
    before = state_of(guard)
    assert not guard._core.adopt(counted_elsewhere(guard, np.zeros((1, N_SAMPLES))))
    assert state_of(guard) == before
    with pytest.raises(HoldoutExhausted):
        guard.query_many(np.zeros((1, N_SAMPLES)))
