"""Streams of which few rows move an extreme any more: answered at once, as if row by row."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from radabound_fast import RadaBound, pack_losses
from radabound_fast._kernels.rows import choose_kernel, kernels

KERNELS = [
    pytest.param(
        name, marks=pytest.mark.skipif(not here, reason=f"this CPU cannot run the {name} kernel")
    )
    for name, here in kernels()
]


@pytest.fixture(params=KERNELS, autouse=True)
def kernel(request):
    choose_kernel(request.param)
    yield
    choose_kernel(None)


def losses_of(seed, n_rows, n_samples, movers=()):
    """Thirty rows over and over, so that nothing moves, but for a few rows of their own."""
    rng = np.random.default_rng(seed)
    losses = (rng.random((30, n_samples)) < 0.3)[np.arange(n_rows) % 30]
    for number, row in enumerate(movers):
        losses[row] = rng.random(n_samples) < 0.4 + 0.1 * number
    return losses


def guard_of(n_samples, n_vectors=33, **parameters):
    wanted = {"epsilon": 0.9, "delta": 0.1, "bound": "mclt", "seed": 5} | parameters
    return RadaBound(n_samples, n_vectors=n_vectors, **wanted)


def row_by_row(guard, words):
    """Values and complexities of the answered rows."""
    found = []
    for row in words:
        try:
            answer = guard.query_packed(row)
        except RuntimeError:
            break
        found.append((answer.value, answer.complexity))
    return [list(column) for column in zip(*found, strict=True)]


def assert_same_in_blocks(make, words, block):
    one, many = make(), make()
    values, complexities = row_by_row(one, words)
    found = []
    for start in range(0, len(words), block):
        if many.halted:
            break
        found.append(many.query_many_packed(words[start : start + block], trace=True))
    assert_array_equal(np.concatenate([part.values for part in found]), values)
    assert_array_equal(np.concatenate([part.complexities for part in found]), complexities)
    assert_array_equal(many._shared.progress(), one._shared.progress())


@pytest.mark.parametrize("n_vectors", [1, 8, 9, 17, 32, 40, 72, 100])
@pytest.mark.parametrize("n_samples", [40, 63, 64, 65, 1000, 4095, 4096, 4097, 9000])
def test_blocks_of_still_rows_are_rows_one_by_one(n_samples, n_vectors):
    words = pack_losses(losses_of(1, 700, n_samples, movers=[400, 401, 533, 699]))
    assert_same_in_blocks(lambda: guard_of(n_samples, n_vectors), words, 256)


@pytest.mark.parametrize("signs", ["stored", "generated"])
@pytest.mark.parametrize("block", [1, 3, 4, 127, 128, 129, 511, 512, 513, 700])
def test_the_size_of_the_blocks_does_not_matter(block, signs):
    words = pack_losses(losses_of(2, 700, 900, movers=[60, 300, 301, 302, 303, 304, 640]))
    assert_same_in_blocks(lambda: guard_of(900, signs=signs), words, block)


@pytest.mark.parametrize("halt", [200, 255, 256, 257, 383, 384, 385, 511])
def test_it_halts_at_the_row_that_passes_the_budget(halt):
    losses = losses_of(3, 512, 2000)
    losses[halt] = np.asarray(guard_of(2000)._signs).sum(axis=0) > 0  # errs with most signs
    words = pack_losses(losses)

    def make():
        return guard_of(2000, epsilon=0.12)

    assert_same_in_blocks(make, words, 512)
    assert make().query_many_packed(words).n_answered == halt


def test_rows_with_a_larger_mean_than_was_priced_are_judged():
    losses = losses_of(4, 600, 3000)
    losses[450] = losses[449] | (np.arange(3000) % 7 == 0)
    words = pack_losses(losses)
    assert_same_in_blocks(
        lambda: guard_of(3000, epsilon=0.1, bound="fixed-sequence", max_queries=40), words, 150
    )


@pytest.mark.parametrize("bad", [200, 300, 384, 599])
def test_a_row_that_cannot_be_read_is_named_and_nothing_has_changed(bad):
    words = pack_losses(losses_of(5, 600, 1000, movers=[250]))
    words[bad, -1] |= np.uint64(1) << np.uint64(63)
    guard = guard_of(1000)
    guard.query_many_packed(words[:150])
    before = guard._shared.progress()
    with pytest.raises(ValueError, match=f"in row {bad}"):
        guard.query_many_packed(words)
    assert_array_equal(guard._shared.progress(), before)


def test_real_valued_rows_go_on_in_units_after_still_bits():
    losses = losses_of(6, 400, 700).astype(np.float64)
    one, many = guard_of(700), guard_of(700)
    many.query_many(losses)
    many.query_many(losses * 0.5)
    many.query_many(losses)
    for row in np.concatenate([losses, losses * 0.5, losses]):
        one.query(row)
    assert_array_equal(many._shared.progress(), one._shared.progress())


def test_threads_agree():
    words = pack_losses(losses_of(7, 20_000, 500, movers=range(3000, 20_000, 1777)))
    one, two = guard_of(500, 16), guard_of(500, 16)
    for words_of in (words[:500], words):
        found = one.query_many_packed(words_of, trace=True)
        same = two.query_many_packed(words_of, trace=True, n_threads=2)
        assert_array_equal(same.values, found.values)
        assert_array_equal(same.complexities, found.complexities)
    assert_array_equal(one._shared.progress(), two._shared.progress())
