"""Every kernel gives the reference's integers: counts, extremes, and the halting row."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from support import assert_extremes, gate, running

from radabound_fast._kernels.guard import GuardCore
from radabound_fast._kernels.rows import SignStore, active_kernel, choose_kernel, kernels

# one sample; around a byte, a word, two words (a tail of one), the eight words of a vector
from radabound_fast.rows import reference

# register; the paper's m; a whole tile of the scanner and one sample more; many tiles and a tail
N_SAMPLES = [1, 7, 8, 63, 64, 65, 127, 128, 129, 511, 512, 513, 1000, 4000, 4096, 4097, 65537]
# one; around the eight lanes of a strip, two strips, the four strips of a tile; a ragged dozen;
# more than the stack holds would be 513, too slow here for the oracle
N_VECTORS = [1, 2, 7, 8, 9, 15, 16, 17, 31, 32, 33, 100, 257]


def losses_of_all_rates(seed, n_rows, n_samples):
    """0-1 losses from all zeros to all ones, so that the totals differ a lot."""
    rng = np.random.default_rng(seed)
    rates = np.linspace(0.0, 1.0, n_rows)[:, np.newaxis]
    return (rng.random((n_rows, n_samples)) < rates).astype(np.uint8)


@pytest.mark.parametrize("signs", ["stored", "generated"])
@pytest.mark.parametrize("n_samples", N_SAMPLES)
def test_every_kernel_finds_the_reference_extremes(kernel, n_samples, signs, pack):
    n_rows = 3 if n_samples > 5000 else 9
    losses = losses_of_all_rates(n_samples, n_rows, n_samples)
    sums = reference.signed_sums(reference.signs(11, max(N_VECTORS), n_samples), losses)
    for n_vectors in N_VECTORS:
        store = SignStore(11, n_samples, n_vectors, stored=signs == "stored")
        extremes = GuardCore(store)
        extremes.query_many(pack(losses), packed=True)
        assert_extremes(extremes, sums[:, :n_vectors])


@pytest.mark.parametrize("signs", ["stored", "generated"])
@pytest.mark.parametrize("n_samples", [1, 63, 64, 65, 640, 1000, 4096, 4097])
def test_every_kernel_finds_the_extremes_of_many_rows(kernel, n_samples, signs, pack):
    """Enough rows and vectors, some more and some fewer, for those that work on squares of both."""
    losses = losses_of_all_rates(n_samples, 133, n_samples)
    sums = reference.signed_sums(reference.signs(12, 100, n_samples), losses)
    for n_vectors in [16, 17, 24, 25, 32, 33, 48, 56, 57, 100]:
        store = SignStore(12, n_samples, n_vectors, stored=signs == "stored")
        for n_rows in [95, 96, 97, 128, 133]:
            extremes = GuardCore(store)
            values, *_ = extremes.query_many(pack(losses[:n_rows]), packed=True)
            assert_extremes(extremes, sums[:n_rows, :n_vectors])
            assert_array_equal(values, losses[:n_rows].mean(axis=1))


@pytest.mark.parametrize("n_samples", N_SAMPLES)
def test_every_kernel_sums_real_valued_losses_exactly(kernel, n_samples):
    n_rows = 2 if n_samples > 5000 else 5
    losses = np.random.default_rng(n_samples).random((n_rows, n_samples))
    losses[0] = 1.0  # the largest sums there are: 2^24 units each
    losses[0, 0] = 0.5
    units = np.rint(losses * 2**24).astype(np.int64)
    sums = reference.signed_sums(reference.signs(3, 33, n_samples), units)
    for n_vectors in [1, 8, 17, 33]:
        extremes = GuardCore(SignStore(3, n_samples, n_vectors))
        extremes.query_many(losses)
        assert extremes.unit_shift == 24
        assert_extremes(extremes, sums[:, :n_vectors])


@pytest.mark.parametrize("n_rows", range(1, 10))
def test_real_valued_losses_of_any_number_of_rows_and_strips_keep_to_their_own_sums(kernel, n_rows):
    """Kernels take several of either at once: of what is left over none goes to a neighbour."""
    units = np.random.default_rng(n_rows).integers(0, 2**24, (n_rows, 130), endpoint=True)
    sums = reference.signed_sums(reference.signs(3, 136, 130), units)
    highest = np.maximum(np.maximum.accumulate(sums), 0)
    for n_vectors in [n for strips in range(1, 18) for n in (8 * strips - 7, 8 * strips)]:
        extremes = GuardCore(SignStore(3, 130, n_vectors))
        _, complexities, *_ = extremes.query_many(units / 2**24, trace=True)
        assert_array_equal(
            complexities, highest[:, :n_vectors].sum(axis=1) / (n_vectors * 130 * 2**24)
        )
        assert_extremes(extremes, sums[:, :n_vectors])


@pytest.mark.parametrize("half_range", [False, True])
def test_the_row_that_crosses_the_budget_is_the_first_withheld(kernel, half_range, pack):
    """A budget one below, at and above what each row in turn brings the sum of extremes to."""
    losses = losses_of_all_rates(6, 560, 129)
    sums = reference.signed_sums(reference.signs(2, 17, 129), losses)
    totals, *_ = running(sums, half_range)
    store = SignStore(2, 129, 17)
    for row in [0, 1, 30, 511, 512, 559]:
        for budget in [totals[row] - 1, totals[row], totals[row] + 1]:
            extremes = GuardCore(store, half_range=half_range, price=gate(int(budget)))
            expected = int(np.searchsorted(totals, budget, side="right"))
            values, *_ = extremes.query_many(pack(losses), packed=True)
            assert len(values) == expected
            assert extremes.halted == (expected < len(losses))
            seen = min(expected, len(losses) - 1)  # the withheld row counts, later ones do not
            assert_extremes(extremes, sums[: seen + 1])


@pytest.mark.parametrize("n_rows", [2048, 2049, 6000])
def test_threads_change_nothing(kernel, n_rows, pack):
    rng = np.random.default_rng(n_rows)
    losses = rng.random((n_rows, 200)) < rng.random((n_rows, 1))
    store = SignStore(4, 200, 33)
    whole = GuardCore(store)
    values, complexities, *_ = whole.query_many(pack(losses), packed=True, trace=True)
    last = whole.extremes()
    rise = np.flatnonzero(np.diff(complexities))  # rows before one that raises the complexity
    for budget_after in [0, int(rise[len(rise) // 2]), int(rise[-1]), n_rows - 1]:
        budget = round(complexities[budget_after] * whole.cells)
        results = []
        for n_threads in [1, 2, 3]:
            extremes = GuardCore(store, price=gate(budget))
            result = extremes.query_many(pack(losses), packed=True, trace=True, n_threads=n_threads)
            results.append((*result, *extremes.extremes()))
        for other in results[1:]:
            for ours, theirs in zip(results[0], other, strict=True):
                assert_array_equal(ours, theirs)
        if budget_after == n_rows - 1:
            assert_array_equal(results[0][0], values)
            assert_array_equal(results[0][-2:], last)


def test_kernels_are_listed_fastest_first_with_portable_last():
    rows = kernels()
    assert rows[-1] == ("portable", True)
    assert active_kernel() == next(name for name, usable in rows if usable)


def test_an_unknown_kernel_is_refused_with_the_known_ones():
    with pytest.raises(ValueError, match="portable.*got 'mmx'"):
        choose_kernel("mmx")
