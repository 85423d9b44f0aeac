"""`query_many` takes bit-sliced blocks by itself; what it answers never depends on the path."""

import itertools

import numpy as np
import pytest
import support
from numpy.testing import assert_array_equal
from support import NEVER, assert_extremes, gate, running

from radabound_fast import PackedLosses
from radabound_fast._kernels.guard import GuardCore
from radabound_fast._kernels.rows import SignStore
from radabound_fast.rows import reference

BLOCK = 512  # rows to a block on the widest instruction set
N_ROWS = 5 * BLOCK + 100  # several blocks after the first rows, and a tail

# a block starts at row 512 at the earliest: the first and last rows of blocks and of the stream,
# their neighbours, and a row in the plain beginning and in the tail
HALTS = [0, 1, 510, 511, 512, 513, 1023, 1024, 1025, 2047, 2048, 2559, 2560, N_ROWS - 1]


def stream(n_vectors, n_samples, seed=0):
    """Random rows, and the signs that judge them."""
    losses = np.random.default_rng(seed).random((N_ROWS, n_samples)) < 0.4
    return losses, reference.signs(3, n_vectors, n_samples)


@pytest.mark.parametrize("half_range", [False, True])
@pytest.mark.parametrize(("n_samples", "n_vectors"), [(200, 33), (65, 100), (513, 32)])
def test_the_halting_row_does_not_depend_on_the_path(
    kernel, n_samples, n_vectors, half_range, pack
):
    losses, signs = stream(n_vectors, n_samples)
    store = SignStore(3, n_samples, n_vectors)
    for halt in HALTS:
        spoilt = losses.copy()
        spoilt[halt] = signs[0] > 0  # the largest sum that vector 0 can have
        sums = reference.signed_sums(signs, spoilt)
        totals, *_ = running(sums, half_range)
        budget = int(totals[halt]) - 1
        assert halt == 0 or totals[halt - 1] <= budget
        for rows, n_threads in [(pack(spoilt), 1), (pack(spoilt), 2), (spoilt, 1)]:
            extremes = GuardCore(store, half_range=half_range, price=gate(budget))
            values, trace, n_rows, halted, *_ = extremes.query_many(
                rows, packed=rows.dtype == np.uint64, trace=True, n_threads=n_threads
            )
            assert halted and n_rows == halt
            assert_array_equal(values, spoilt[:halt].mean(axis=1))
            assert_array_equal(trace, totals[:halt] / extremes.cells)
            assert_extremes(extremes, sums[: halt + 1])


# around words; below and above a tile of the plan; groups of vectors with every remainder
SHAPES = list(itertools.product([1, 63, 64, 65, 127, 500, 513], [16, 32, 33, 47, 100, 129]))


@pytest.mark.thorough
@pytest.mark.parametrize(("n_samples", "n_vectors"), [*SHAPES, (4096, 32), (6100, 33)])
def test_a_stream_that_never_halts_has_the_reference_complexities(kernel, n_samples, n_vectors):
    losses, signs = stream(n_vectors, n_samples, seed=n_samples)
    sums = reference.signed_sums(signs, losses)
    for half_range in [False, True]:
        totals, *_ = running(sums, half_range)
        extremes = GuardCore(SignStore(3, n_samples, n_vectors), half_range=half_range)
        values, complexities, *_ = extremes.query_many(losses.view(np.uint8), trace=True)
        assert_array_equal(values, losses.mean(axis=1))
        assert_array_equal(complexities, totals / extremes.cells)
        assert_extremes(extremes, sums)


# the first row, counted alone; in a tile, in a block, at their ends, in the tail
@pytest.mark.parametrize("row", [0, 1, 700, 1023, 1024, 2600])
@pytest.mark.parametrize("n_samples", [1, 63, 100, 127, 4100])
def test_any_bit_past_the_end_is_found(kernel, row, n_samples, pack):
    """The first spare bit and the last, in blocks and in a call for one row."""
    words = pack(stream(32, n_samples)[0][: max(row + 1, 4 * BLOCK if row > 512 else 0)])
    for bit in {n_samples % 64, 63}:
        bad = words.copy()
        bad[row, -1] |= np.uint64(1) << np.uint64(bit)
        core = GuardCore(SignStore(3, n_samples, 32))
        message = f"past n_samples = {n_samples}, got one in row"
        with pytest.raises(ValueError, match=f"{message} {row}"):
            core.query_many(bad, packed=True)
        assert not core.started and core.n_rows == 0
        if row < 2:
            if row:
                core.query(words[0], packed=True)
            with pytest.raises(ValueError, match=f"{message} 0"):
                core.query(bad[row], packed=True)
            assert core.n_rows == row


def test_real_valued_rows_inside_a_block_change_the_units(kernel):
    losses, signs = stream(32, 100)
    losses = losses.astype(np.float32)
    losses[1500] *= 0.25
    extremes = GuardCore(SignStore(3, 100, 32))
    values, complexities, *_ = extremes.query_many(losses, trace=True)
    totals, *_ = running(reference.signed_sums(signs, losses * 2**24))
    assert_array_equal(complexities, totals / extremes.cells)
    assert_array_equal(values, losses.mean(axis=1, dtype=np.float64))


def large_calls(core, words, sizes):
    """Everything that calls of these many rows answer, and the bytes kept after each."""
    values, complexities, kept, row = [], [], [], 0
    for size in sizes:
        found = core.query_many(words[row : row + size], packed=True, trace=True)
        values.extend(found[0])
        complexities.extend(found[1])
        kept.append(core.table_bytes)
        row += size
    return values, complexities, kept


@pytest.mark.parametrize("stored", [True, False])
@pytest.mark.parametrize(("n_samples", "n_vectors"), [(65, 48), (1000, 49), (4097, 64)])
def test_blocks_that_are_not_full_answer_as_row_by_row(kernel, n_samples, n_vectors, stored, pack):
    """Once a guard keeps its tables: calls of part of a block, a block and one row more."""
    losses, signs = stream(n_vectors, n_samples, seed=7)
    store = SignStore(3, n_samples, n_vectors, stored=stored)
    core = GuardCore(store)
    sizes = [512, 500, 511, 129, 257, 300, 63, 65]
    values, complexities, kept = large_calls(core, pack(losses), sizes)
    n_rows = sum(sizes)
    sums = reference.signed_sums(signs, losses[:n_rows])
    totals, *_ = running(sums)
    assert_array_equal(values, losses[:n_rows].mean(axis=1))
    assert_array_equal(complexities, totals / core.cells)
    assert_extremes(core, sums)
    assert kept[0] == 0 and all(kept[2:])  # the tables are of the second large call


def guard_of(m=1000, epsilon=0.9):
    return support.guard_of(m, epsilon=epsilon, n_vectors=64 if m == 1000 else 32, seed=3)


def test_the_second_large_call_keeps_tables_and_small_ones_none(pack):
    rows, guard = PackedLosses(pack(stream(64, 1000)[0]), 1000), guard_of()
    for row in range(0, 300, 15):
        guard.query_many(rows[row : row + 15])
    guard.query(rows[0])
    for n_rows in [len(rows), 512]:  # the first makes tables, and keeps none
        assert guard._core.table_bytes == 0
        guard.query_many(rows[:n_rows])
    assert 0 < guard._core.table_bytes < 1000 * 64


@pytest.mark.parametrize("n_samples", [2**14, 2**20])
def test_generated_signs_keep_small_tables_alone(n_samples):
    words = np.zeros((600, n_samples // 64), np.uint64)
    core = GuardCore(SignStore(3, n_samples, 64, stored=False))
    for _ in range(3):
        core.query_many(words, packed=True)
    assert core.table_bytes < 2**21
    assert (core.table_bytes > 0) == (n_samples == 2**14)


def test_a_guard_that_halts_frees_its_tables(pack):
    losses, signs = stream(64, 1000)
    words = pack(losses)
    core = GuardCore(SignStore(3, 1000, 64), price=gate(900 * 32))
    for _ in range(2):
        core.query_many(words, packed=True)
    assert core.table_bytes > 0
    spoilt = np.repeat(losses[:1], 600, axis=0)
    for row in range(64):  # each as large as it can be for a sign vector of its own
        spoilt[row] = signs[row] > 0
    halted = core.query_many(pack(spoilt), packed=True)[3]
    assert halted
    assert core.table_bytes == 0


def test_tables_that_were_freed_are_made_anew_by_the_second_large_call(pack):
    losses, _ = stream(64, 1000)
    core, words = GuardCore(SignStore(3, 1000, 64)), pack(losses)
    for _ in range(2):
        assert core.table_bytes == 0
        core.query_many(words, packed=True)
        assert core.table_bytes == 0
        core.query_many(words, packed=True)
        assert core.table_bytes > 0
        core.free_tables()


def test_rows_that_need_no_signs_pass_over_the_budget(kernel, pack):
    losses, _ = stream(33, 200)
    extremes = GuardCore(SignStore(3, 200, 33), price=_free_gate)
    _, _, n_rows, halted, *_ = extremes.query_many(pack(losses), packed=True)
    assert halted and n_rows == 1700


def _free_gate(largest_total, unit_shift, n_rows):
    """No complexity is allowed, but 1700 queries are free; a price holds for ten errors more."""
    free = (0, 0) if n_rows < 1700 else (-1, NEVER)
    return -1, largest_total + 10, 1700 if n_rows < 1700 else NEVER, *free, *free


def test_many_bytes_of_values_are_answered_as_packed_rows(kernel, pack):
    """More than 8 MB, which are counted as they are packed where that pays."""
    values = np.tile(np.random.default_rng(5).integers(0, 2, (21, 4001), np.uint8), (100, 1))
    values[1700, ::3] ^= 1
    guards = [guard_of(4001, epsilon=0.999) for _ in range(3)]
    expected = guards[0].query_many(PackedLosses(pack(values), 4001), trace=True)
    found = guards[1].query_many(values, trace=True)
    assert_array_equal(found.values, expected.values)
    assert_array_equal(found.complexities, expected.complexities)
    values[1999, 4000] = 2
    with pytest.raises(ValueError, match="got 2 at row 1999, sample 4000"):
        guards[2].query_many(values)
    assert guards[2].n_answered == 0


# every count up to the one that a tile ends at reaches the top plane of the counter: around each
# power of 2, after it with every rest of 8, 16 and 32 lines, and around the tile's end
TILE = 94 * 64
FULL = sorted(
    {2**k + rest for k in range(2, 13) for rest in (-1, 0, 1)}
    | {4096 + rest for rest in (7, 8, 9, 15, 16, 31, 32, 33, 63, 64, 100)}
    | {TILE + rest for rest in (-65, -64, -33, -1, 0, 1, 64)}
)
AT_ONCE = [63, 4096, 4104, TILE]


@pytest.mark.parametrize(
    "n_samples",
    [pytest.param(m, marks=[] if m in AT_ONCE else pytest.mark.thorough) for m in FULL],
)
def test_rows_of_nearly_all_ones_have_the_reference_extremes(kernel, n_samples):
    """Up to three zeros a row, so that sums are those of the signs less the zeros' own."""
    n_vectors, n_rows = 33, 3 * BLOCK + 7
    rng = np.random.default_rng(n_samples)
    places = (rng.integers(0, n_samples, n_rows)[:, None] + np.arange(3)) % n_samples
    places[::5] = places[::5, :1]  # some rows have one
    losses = np.ones((n_rows, n_samples), np.bool_)
    np.put_along_axis(losses, places, False, axis=1)
    losses[::7] = True  # and some none
    signs = reference.signs(3, n_vectors, n_samples)
    zeros = [np.flatnonzero(~row) for row in losses]
    sums = np.array([signs.sum(axis=1) - signs[:, where].sum(axis=1) for where in zeros])
    core = GuardCore(SignStore(3, n_samples, n_vectors), half_range=True)
    values, complexities, *_ = core.query_many(losses.view(np.uint8), trace=True)
    assert_array_equal(values, losses.sum(axis=1) / n_samples)
    assert_array_equal(complexities, running(sums, half_range=True)[0] / core.cells)
    assert_extremes(core, sums)
