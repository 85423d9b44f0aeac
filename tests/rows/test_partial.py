"""Losses counted anywhere and taken in by their guard: what `query_many` gives, bit for bit."""

import contextlib
import hashlib
import itertools
import json
import pickle
import random
import struct
import subprocess
import sys
import traceback
from dataclasses import replace

import numpy as np
import pytest
import support
from numpy.testing import assert_array_equal
from support import in_package, state_of

from radabound_fast import (
    FixedSequence,
    GuessAndCheck,
    Holdout,
    HoldoutExhausted,
    Ladder,
    PackedLosses,
    RadaBound,
    pack_losses,
)
from radabound_fast.bounds import BOUNDS
from radabound_fast.rows import partial as partial_module
from radabound_fast.rows import reference
from radabound_fast.rows.partial import Partial, SignedTask

SEED = 5
# one sample and one word; one past a word; a tile of real-valued losses, and one past it; the last
# word short
SIZES = [1, 64, 65, 384, 385, 1000]
# vectors: one, a strip, one past it, past the eight strips that share a tile
VECTORS = [1, 8, 9, 70]


def guard_of(judged=1000, n_vectors=12, bound="mclt", epsilon=0.088, seed=SEED, **parameters):
    given = {"n_vectors": n_vectors, "epsilon": epsilon, "seed": seed} | parameters
    return support.guard_of(judged, bound=bound, **given)


def losses_of(kind, n_queries=60, m=1000, rate=0.1):
    rng = np.random.default_rng(17)
    base = rng.random(m) < 0.02
    losses = base ^ (rng.random((n_queries, m)) < rate)
    if kind == "bits":
        return losses
    losses = losses.astype(np.float32)
    if kind == "real":
        losses[:, ::3] *= 0.25
    if kind == "mixed":  # the first real-valued loss comes late, and in the last sample
        losses[n_queries // 2 :, -1] = 0.3
    return losses


KINDS = ["bits", "floats", "real", "mixed"]


def cuts_of(m):
    """Ways to cut the samples: whole, the first word, every word."""
    words = list(range(0, m, 64))
    ways = [[0], [0, 64], words]
    return [[*way, m] for way in ways if way[-1] < m]


def parts_of(task, losses, cut, *, packed=False, **options):
    parts = []
    for start, stop in itertools.pairwise(cut):
        shard = losses[:, start:stop]
        rows = pack_losses(shard) if packed else shard
        parts.append(task.reduce(rows, start=start, **options))
    return parts


def assert_same(answers, expected):
    for name in ("halted", "n_answered", "complexity", "delta_prime"):
        assert_array_equal(getattr(answers, name), getattr(expected, name))
    for name, column in expected.to_dict().items():
        assert_array_equal(answers.to_dict()[name], column)


# ---- what a partial is -----------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("m", SIZES)
def test_partials_add_up_to_the_reference_integers(kernel, kind, m):
    losses = losses_of(kind, m=m)
    for n_vectors, cut in itertools.product(VECTORS, cuts_of(m)):
        task = guard_of(m, n_vectors).task()
        parts = parts_of(task, losses, cut)
        whole = sum(parts)
        units = np.rint(losses * 2.0**whole.unit_shift).astype(np.int64)
        sums = reference.signed_sums(reference.signs(SEED, n_vectors, m), units)
        assert whole.unit_shift == (24 if ((losses > 0) & (losses < 1)).any() else 0)
        assert whole.is_whole and whole.binary == (kind == "bits") and len(whole) == 60
        assert_array_equal(whole.sums, [sums.max(axis=0), sums.min(axis=0)])
        assert_array_equal(whole.totals, units.sum(axis=1))
        if kind == "bits":
            packed = sum(parts_of(task, losses, cut, packed=True))
            assert packed.binary
            assert_array_equal(packed.sums, whole.sums)
            assert_array_equal(packed.totals, whole.totals)


@pytest.mark.parametrize("kind", ["bits", "mixed"])
def test_the_sums_of_a_part_are_those_of_its_samples(kernel, kind):
    losses = losses_of(kind)
    signs = reference.signs(SEED, 12, 1000)
    for start, stop in [(0, 64), (64, 576), (576, 1000), (960, 1000)]:
        part = guard_of().task().reduce(losses[:, start:stop], start=start)
        units = np.rint(losses[:, start:stop] * 2.0**part.unit_shift).astype(np.int64)
        assert_array_equal(part.sums, reference.signed_sums(signs[:, start:stop], units))
        assert part.sums.dtype == (np.int64 if part.unit_shift else np.int32)
        assert part.spans == ((start, stop),) and not part.is_whole


def test_parts_add_up_in_any_order():
    losses = losses_of("mixed")
    parts = parts_of(guard_of().task(), losses, [0, 64, 448, 960, 1000])
    expected = guard_of().task().reduce(losses)
    for order in itertools.permutations(parts):
        a, b, c, d = order
        for whole in (((a + b) + c) + d, a + (b + (c + d)), (a + c) + (b + d)):
            assert whole.spans == ((0, 1000),)
            assert_array_equal(whole.sums, expected.sums)
            assert_array_equal(whole.totals, expected.totals)
            assert (whole.unit_shift, whole.binary) == (24, False)


def test_generated_signs_count_alike():
    losses = losses_of("bits")
    one, other = (guard_of(signs=signs).task() for signs in ("stored", "generated"))
    assert (one.signs, other.signs) == ("stored", "generated")
    for cut in cuts_of(1000):
        assert_array_equal(
            sum(parts_of(one, losses, cut)).sums, sum(parts_of(other, losses, cut)).sums
        )


def test_parts_too_large_to_keep_have_generated_signs(monkeypatch):
    from radabound_fast.rows import partial

    losses = losses_of("bits")
    expected = parts_of(guard_of().task(), losses, [0, 448, 1000])
    partial._store.cache_clear()
    monkeypatch.setattr(partial, "MOST_STORED_BYTES", 0)
    parts = parts_of(guard_of().task(), losses, [0, 448, 1000])
    for part, kept in zip(parts, expected, strict=True):
        assert_array_equal(part.sums, kept.sums)
    assert not partial._store(SEED, 1000, 12, "stored", 0, 448).stored
    assert partial._store(SEED, 1000, 12, "stored", 0, 1000).stored
    partial._store.cache_clear()


# ---- what a guard makes of it --------------------------------------------------------------

# some halt early, some late, some by the union part, some not at all
RUNS = [
    *((bound, epsilon) for bound in BOUNDS for epsilon in (0.088, 0.118, 0.2)),
    ("fixed-sequence", 0.04),
    ("fixed-sequence", 0.057),
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("bound", "epsilon"), RUNS)
def test_hardly_any_rows_but_those_of_the_halt_are_fetched(bound, epsilon, kind):
    losses, block = losses_of(kind, 150), {"bits": 7, "floats": 1, "real": 40, "mixed": 7}[kind]
    here, there = guard_of(bound=bound, epsilon=epsilon), guard_of(bound=bound, epsilon=epsilon)
    task = pickle.loads(pickle.dumps(there.task()))
    blocks = [losses[row : row + block] for row in range(0, 150, block)]
    partials = (sum(parts_of(task, rows, [0, 448, 1000])) for rows in blocks)
    fetched = []
    answers = there.take(partials, fetch=lambda i: (fetched.append(i), blocks[i])[1])
    assert_same(answers, here.query_many(losses))
    assert state_of(there) == state_of(here)
    assert fetched == ([len(answers) // block] if answers.halted else [])


@pytest.mark.parametrize("kind", ["bits", "real"])
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(("bound", "epsilon"), [("mclt", 0.06), ("fixed-sequence", 0.03)])
def test_a_halt_at_every_place_of_every_block_is_found(bound, epsilon, kind, packed):
    if packed and kind == "real":
        pytest.skip("real-valued losses cannot be packed")
    rng = np.random.default_rng(4)
    calm = np.tile(rng.random(1000) < 0.02, (12, 1))  # rows that are alike add nothing
    agreeing = np.asarray(guard_of()._signs) > 0  # with a sign vector each
    for place in range(13):
        losses = calm.copy()
        losses[place:] = agreeing[place:]
        if kind == "real":
            losses = losses * np.float32(0.75)
        here = guard_of(bound=bound, epsilon=epsilon)
        expected = here.query_many(losses)
        assert len(expected) == place and expected.halted == (place < 12)
        for cut in ([0, 1000], [0, 64, 1000]):
            there = guard_of(bound=bound, epsilon=epsilon)
            blocks = np.split(losses, 3)
            partials = [sum(parts_of(there.task(), rows, cut, packed=packed)) for rows in blocks]
            given = [pack_losses(rows) for rows in blocks] if packed else blocks
            answers = there.take(partials, fetch=given.__getitem__)
            assert_same(answers, expected)
            assert state_of(there) == state_of(here)


def test_no_rows_are_no_queries():
    guard = guard_of()
    empty = guard.task().reduce(np.zeros((0, 1000)))
    parts = parts_of(guard.task(), np.zeros((0, 1000), bool), [0, 64, 1000])
    assert guard.take([]).n_answered == guard.take([empty, sum(parts)]).n_answered == 0
    assert guard.n_answered == 0 and not guard._core.started


def test_partials_after_the_halt_are_not_asked_for():
    guard, losses = guard_of(epsilon=0.05), losses_of("bits")
    asked = []

    def partials():
        for number, rows in enumerate(np.split(losses, 20)):
            asked.append(number)
            yield guard.task().reduce(rows)

    answers = guard.take(partials(), fetch=np.split(losses, 20).__getitem__)
    assert answers.halted and asked == list(range(len(answers) // 3 + 1))
    with pytest.raises(HoldoutExhausted):
        guard.take([guard.task().reduce(losses)])


def test_guards_of_one_seed_share_partials():
    losses = losses_of("bits")
    partial = guard_of().task().reduce(losses)
    for bound in BOUNDS:
        here, there = guard_of(bound=bound), guard_of(bound=bound)
        assert_same(there.take([partial], fetch=lambda i: losses), here.query_many(losses))


def test_what_is_taken_is_committed_and_another_may_halt_between(tmp_path):
    path, losses = tmp_path / "guard.db", losses_of("bits")
    parameters = {"epsilon": 0.12, "delta": 0.1, "n_vectors": 12, "bound": "mclt", "seed": SEED}
    halts_it = (
        "import sys, numpy as np; from radabound_fast import RadaBound\n"
        "with RadaBound.open(sys.argv[1]) as guard:\n"
        "    guard.query_many(np.random.default_rng(1).random((2000, 1000)) < 0.5)\n"
        "    assert guard.halted"
    )
    with RadaBound.open(path, 1000, **parameters) as guard, RadaBound.open(path) as other:

        def partials():
            yield guard.task().reduce(losses[:20])
            assert other.n_answered == 20
            subprocess.run([sys.executable, "-c", halts_it, str(path)], check=True)
            yield guard.task().reduce(losses[20:40])
            pytest.fail("it went on")

        answers = guard.take(partials())  # nothing is fetched, since nothing may be judged
        assert answers.halted and len(answers) == 20
        assert answers.n_answered == guard.n_answered == other.n_answered > 20
        assert_array_equal(answers.numbers, np.arange(20) + 1)


@pytest.mark.parametrize(
    ("bound", "epsilon"),
    [("mclt", 0.06), pytest.param("fixed-sequence", 0.057, marks=pytest.mark.thorough)],
)
def test_an_interrupt_anywhere_leaves_whole_partials(interrupt_at, bound, epsilon):
    """The last partial may be counted without having been told, as with `query_many`."""
    blocks = np.split(losses_of("bits", 40), 4)
    guard = guard_of(bound=bound, epsilon=epsilon)
    known = [state_of(guard)]
    for rows in blocks:
        if not guard.halted:
            guard.query_many(rows)
            known.append(state_of(guard))
    partials = [guard.task().reduce(rows) for rows in blocks]
    n_seen, number = set(), 0
    while True:
        guard = guard_of(bound=bound, epsilon=epsilon)
        try:
            with interrupt_at(number):
                guard.take(partials, fetch=blocks.__getitem__)
        except KeyboardInterrupt as stop:
            assert state_of(guard) in known
            n_told = len(getattr(stop, "answers", []))
            n_seen.add((guard.n_answered, n_told))
            assert n_told <= guard.n_answered <= n_told + 10 or not hasattr(stop, "answers")
        else:
            break
        number += 1 if bound == "mclt" else 61  # there is far more Python in its price
    assert number > 50 and len(n_seen) > 2
    assert state_of(guard) == known[-1]


# ---- predictions ---------------------------------------------------------------------------


@pytest.mark.parametrize("classes", [[0, 1], [2, 3, 4], ["cat", "dog", "emu"], [0.5, None]])
def test_the_task_of_a_guard_on_labels_takes_predictions(classes):
    if None in classes:
        classes = [("a",), "b"]
    table = np.empty(len(classes), object)
    table[:] = classes
    if not isinstance(classes[0], tuple):
        table = np.array(classes)
    codes = np.random.default_rng(8).integers(0, len(classes), 1000)
    predictions = table[(codes + losses_of("bits")) % len(classes)]
    here, there = (guard_of(table[codes], epsilon=0.07) for _ in "12")
    task = pickle.loads(pickle.dumps(there.task()))
    blocks = np.split(predictions, 6)
    for cut in ([0, 1000], [0, 64, 448, 1000]):
        partials = [sum(parts_of(task, rows, cut)) for rows in blocks]
        assert all(partial.binary for partial in partials)
    answers = there.take(partials, fetch=blocks.__getitem__)
    assert answers.halted
    assert_same(answers, here.query_many(predictions))
    assert state_of(there) == state_of(here)


def test_a_guard_on_labels_takes_packed_losses_as_well():
    blocks, labels = np.split(losses_of("bits"), 3), np.arange(1000) % 2
    guard, expected = guard_of(labels), guard_of().query_many(losses_of("bits"))
    task = guard.task()
    for partials, fetch in (
        ([task.reduce(pack_losses(rows)) for rows in blocks], lambda i: pack_losses(blocks[i])),
        ([task.reduce(task.pack(labels ^ rows)) for rows in blocks], lambda i: labels ^ blocks[i]),
    ):
        assert_same(guard_of(labels).take(partials, fetch=fetch), expected)


@pytest.mark.parametrize("start", [0, 64, 640])
def test_predictions_are_packed_where_they_are(start):
    labels, losses = np.arange(1000) % 2, losses_of("bits", 5)
    task = guard_of(labels).task()
    packed = task.pack((labels ^ losses)[:, start:], start=start)
    assert packed.n_samples == 1000 - start
    assert_array_equal(packed.words, pack_losses(losses[:, start:]).words)


def test_guards_without_signs_have_no_task():
    for guard in (
        Ladder(1000, step=0.1, delta=0.1),
        GuessAndCheck(1000, epsilon=0.1, delta=0.1),
        FixedSequence(1000, epsilon=0.1, delta=0.1, n_vectors=0),
    ):
        assert not hasattr(guard, "task") and not hasattr(guard, "take")
    with pytest.raises(TypeError, match="only the task of a guard that has labels packs predict"):
        guard_of().task().pack(np.zeros((1, 1000)))


# ---- what does not fit, and who may know -----------------------------------------------------


def test_what_does_not_fit_is_refused_with_what_was_counted():
    guard, losses = guard_of(), losses_of("bits")
    good = guard.task().reduce(losses[:10])
    cases = [
        (None, TypeError, "partial 1 must be a Partial, got NoneType"),
        (guard_of(seed=6).task().reduce(losses), ValueError, "partial 1 is of another guard's"),
        (guard_of(n_vectors=13).task().reduce(losses), ValueError, "of another guard's signs"),
        (
            guard.task().reduce(losses[:, 64:128], start=64),
            ValueError,
            r"partial 1 must have all samples, got Partial\(60 rows at 64 of 1000 samples\)",
        ),
    ]
    for n_before, (partial, error, message) in enumerate(cases):
        with pytest.raises(error, match=message) as caught:
            guard.take([good, partial], fetch=lambda i: losses)
        assert len(caught.value.answers) == 10
        assert guard.n_answered == 10 * (n_before + 1)


# one argument of the guard differs at a time, and nothing else
OTHERS = {
    "seed": {"seed": SEED + 1},
    "n_vectors, one more": {"n_vectors": 13},
    "n_vectors, one less": {"n_vectors": 11},
    "m, one more": {"judged": 1001},
    "m, one less": {"judged": 999},
    "m, of as many words": {"judged": 1024},
    "m, of one word more": {"judged": 1025},
}


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_partial_of_a_guard_that_differs_in_one_argument_is_not_taken(kind, other):
    guard, stranger = guard_of(), guard_of(**OTHERS[other])
    losses, theirs = (losses_of(kind, 5, m=one.n_samples) for one in (guard, stranger))
    before, task = state_of(guard), guard.task()
    assert task.identity != stranger.task().identity
    with pytest.raises(ValueError, match="partial 0 is of another guard's signs"):
        guard.take([stranger.task().reduce(theirs)], fetch=lambda i: losses)
    assert state_of(guard) == before
    with pytest.raises(ValueError, match="with other signs, or of other searches, do not add up"):
        task.reduce(losses[:, :64]) + stranger.task().reduce(theirs[:, 64:128], start=64)
    # what decides by other terms has the same signs, and may share
    for same in (guard_of(epsilon=0.2), guard_of(bound="bernstein"), guard_of(signs="generated")):
        assert same.task().identity == task.identity


def test_sums_in_units_of_128_samples_have_64_bits():
    """The least that 31 bits are too few for; parts whose sums all have the sign of one vector."""
    task = guard_of(192, 1).task()
    signs = reference.signs(SEED, 1, 192)[0]
    losses = np.where(signs > 0, 1.0, 0.0)[np.newaxis]
    losses[0, :2] = 0.5, 1.0
    first, second, third = parts_of(task, losses, [0, 64, 128, 192])
    both = first + second
    assert both.sums.dtype == np.int64
    assert both.sums[0, 0] == (signs[:128] * losses[0, :128]).sum() * 2**24
    assert sum([first, second, third]).totals[0] == losses.sum() * 2**24


def test_parts_of_every_two_kinds_add_up_to_the_reference_integers():
    """Binary and real, packed or not, of one sample and of many; and the other way round."""
    m, n_vectors = 200, 12
    task, signs = guard_of(m, n_vectors).task(), reference.signs(SEED, n_vectors, m)
    for (one, other), cut in itertools.product(itertools.product(KINDS, repeat=2), (64, 128, 192)):
        left, right = losses_of(one, m=m)[:, :cut], losses_of(other, m=m)[:, cut:]
        parts = [task.reduce(left), task.reduce(right, start=cut)]
        for whole in (parts[0] + parts[1], parts[1] + parts[0]):
            shift = max(part.unit_shift for part in parts)
            units = np.rint(np.hstack([left, right]) * 2.0**shift).astype(np.int64)
            sums = reference.signed_sums(signs, units)
            assert (whole.unit_shift, whole.is_whole) == (shift, True)
            assert whole.binary == (one == other == "bits")
            assert_array_equal(whole.totals, units.sum(axis=1))
            assert_array_equal(whole.sums, [sums.max(axis=0), sums.min(axis=0)])
            assert whole.to_bytes() == Partial.from_bytes(whole.to_bytes()).to_bytes()


@pytest.mark.parametrize("judged", [200, [0] * 200])
def test_one_partial_alone_is_refused_by_the_arguments_name(judged):
    guard = guard_of(judged, epsilon=0.3)
    partial = guard.task().reduce(pack_losses(np.zeros((2, 200))))
    for given in (partial, None, 3):
        expected = f"^partials must be an iterable of Partial, got {type(given).__name__}$"
        with pytest.raises(TypeError, match=expected):
            guard.take(given)
    assert guard.n_answered == 0


@pytest.mark.parametrize("blob", [5, 10**15, "text", None, [1, 2]])
def test_what_is_no_bytes_is_refused_and_a_number_is_no_length(blob):
    with pytest.raises(TypeError, match=f"^blob must be bytes, got {type(blob).__name__}$"):
        Partial.from_bytes(blob)


def test_missing_or_other_rows_are_refused_before_any_change():
    losses = losses_of("bits", 150)
    guard = guard_of()
    partial = guard.task().reduce(losses)
    before = state_of(guard)
    wrong = [losses[:-1], losses[::-1], losses.astype(float), pack_losses(~losses)]
    wrong += [losses[:, :-1], pack_losses(losses[:, :-1])]
    with pytest.raises(ValueError, match="fetch must return the rows of partial 0, .* got None"):
        guard.take([partial])
    for rows in wrong:
        with pytest.raises(ValueError, match=r"got others|must have length 1000"):
            guard.take([partial], fetch=lambda i, rows=rows: rows)
        assert state_of(guard) == before and not guard.halted
    assert guard.take([partial], fetch=lambda i: losses).halted


def test_parts_that_do_not_belong_together_do_not_add_up():
    task, losses = guard_of().task(), losses_of("bits")
    part = task.reduce(losses[:, :448])
    cases = [
        (task.reduce(losses[:, 64:512], start=64), "overlap: both have sample 64"),
        (task.reduce(losses[:, 384:448], start=384), "overlap: both have sample 384"),  # a word
        (part, "overlap: both have sample 0"),
        (task.reduce(losses), "overlap: both have sample 0"),
        (task.reduce(losses[1:, 448:], start=448), "of 60 and of 59 rows do not add up"),
        (guard_of(seed=6).task().reduce(losses[:, 448:], start=448), "with other signs"),
    ]
    for other, message in cases:
        with pytest.raises(ValueError, match=message):
            part + other
    with pytest.raises(TypeError):
        part + 1


@pytest.mark.parametrize(
    ("shape", "start", "error", "message"),
    [
        ((2, 1000), 1, ValueError, "start must be a multiple of 64, got 1"),
        ((2, 1000), -64, ValueError, "start must be a multiple of 64, got -64"),
        ((2, 1000), 0.5, TypeError, "start must be an integer, got 0.5"),
        ((2, 63), 0, ValueError, "or a multiple of 64 of them, got 63 samples from 0 on"),
        ((2, 1001), 0, ValueError, "up to the last of 1000, .* got 1,001 samples"),
        ((2, 64), 960, ValueError, "got 64 samples from 960 on"),
        ((2, 64), 1024, ValueError, "got 64 samples from 1024 on"),
        ((1000,), 0, ValueError, "losses must have two dimensions"),
        ((2, 0), 0, ValueError, "losses must not be empty"),
    ],
)
def test_samples_that_no_part_has_are_refused(shape, start, error, message):
    with pytest.raises(error, match=message):
        guard_of().task().reduce(np.zeros(shape), start=start)


def test_words_that_no_part_has_are_refused():
    task = guard_of().task()
    for packed, start, message in [
        (PackedLosses(np.zeros((2, 17), np.uint64), 1088), 0, "up to the last of 1000, .* got 1,0"),
        (PackedLosses(np.zeros((2, 2), np.uint64), 128), 960, "got 128 samples from 960 on"),
        (PackedLosses(np.full((2, 1), 2**40, np.uint64), 40), 960, "bit set past n_samples = 40"),
        (PackedLosses(np.zeros(16, np.uint64), 1000), 0, "words must have two dimensions"),
        (PackedLosses(np.zeros((2, 1), np.uint64), 64), 1024, "from 1024 on"),
        (PackedLosses(np.zeros((2, 1), np.uint64), 63), 0, "got 63 samples from 0 on"),
    ]:
        with pytest.raises(ValueError, match=message):
            task.reduce(packed, start=start)


def test_a_value_that_is_no_loss_is_told_by_its_place():
    losses = losses_of("real")
    losses[30, 500] = 1.5
    task = guard_of().task()
    for rows, start, place in [(losses, 0, 500), (losses[:, 448:], 448, 52)]:
        with pytest.raises(ValueError, match=f"got 1.5 at row 30, sample {place}$"):
            task.reduce(rows, start=start)


def test_neither_seed_nor_labels_nor_totals_are_in_a_repr():
    labels = np.full(1000, "emu")
    guard = guard_of(Holdout(labels, classes=["emu", "owl"]), seed=123456789)
    partial = guard.task().reduce(pack_losses(np.arange(1000)[np.newaxis] < 321))
    for told in (repr(guard.task()), repr(partial), str(partial), repr(guard)):
        assert not any(secret in told for secret in ("123456789", "emu", "321"))
    assert repr(guard.task()) == "SignedTask(n_samples=1000, n_vectors=12)"


def fails(*_):
    raise ZeroDivisionError


@pytest.mark.parametrize(
    "ask",
    [
        lambda guard, losses: guard.task().reduce(losses * 2.0),
        lambda guard, losses: guard.task().reduce(losses[:, :63]),
        lambda guard, losses: guard.task().reduce(
            PackedLosses(np.full((3, 16), 2**64 - 1, np.uint64), 1000)
        ),
        lambda guard, losses: guard_of(losses[0]).task().reduce(losses + 7),
        lambda guard, losses: guard_of(losses[0]).task().pack(losses + 7),
        lambda guard, losses: guard.take([guard.task().reduce(losses[:5]), None]),
        lambda guard, losses: guard.take([guard.task().reduce(losses)]),
        lambda guard, losses: guard.take([guard.task().reduce(losses)], fetch=fails),
        lambda guard, losses: guard.take([guard.task().reduce(losses)], fetch=lambda i: ~losses),
        lambda guard, losses: guard_of(losses[0]).take(
            [guard.task().reduce(losses)], fetch=lambda i: losses
        ),
    ],
)
def test_no_error_keeps_what_it_was_about(ask):
    """No frame of the library below this file's has a variable: losses, totals, labels."""
    with pytest.raises((TypeError, ValueError, ZeroDivisionError)) as caught:
        ask(guard_of(), losses_of("bits", 150))
    frames = [frame for frame, _ in traceback.walk_tb(caught.value.__traceback__)]
    ours = [frame for frame in frames if in_package(frame)]
    assert [frame.f_code.co_name for frame in ours if frame.f_locals] == []
    assert len(frames) > 1


# ---- ids and threads -------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["bits", "mixed"])
@pytest.mark.parametrize(("bound", "epsilon"), [("mclt", 0.088), ("fixed-sequence", 0.057)])
def test_rows_in_any_order_are_answered_in_that_of_their_ids(bound, epsilon, kind):
    losses, rng = losses_of(kind, 150), np.random.default_rng(3)
    here, there = (guard_of(bound=bound, epsilon=epsilon) for _ in "12")
    blocks = [rng.permutation(np.arange(start, min(start + 7, 150))) for start in range(0, 150, 7)]
    rng.shuffle(blocks)
    cut, task = [0, 448, 1000], there.task()

    def counted(ids):  # each part has the rows in an order of its own
        orders = [rng.permutation(len(ids)) for _ in cut[1:]]
        orders[0] = np.arange(len(ids))
        return sum(
            task.reduce(losses[ids[order], start:stop], ids=ids[order], start=start)
            for order, (start, stop) in zip(orders, itertools.pairwise(cut), strict=True)
        )

    partials = [Partial.from_bytes(counted(ids).to_bytes()) for ids in blocks]
    fetched = []
    answers = there.take(partials, fetch=lambda i: (fetched.append(i), losses[blocks[i]])[1])
    assert_same(answers, here.query_many(losses))
    assert state_of(there) == state_of(here) and len(fetched) == answers.halted


def test_a_row_that_is_missing_or_comes_twice_is_named_before_anything_is_answered():
    losses = losses_of("bits", 40)

    def part(start, stop):
        return guard_of(epsilon=0.3).task().reduce(losses[start:stop], ids=range(start, stop))

    without = guard_of(epsilon=0.3).task().reduce(losses[:5])
    odd = guard_of(epsilon=0.3).task()
    cases = [
        ([part(0, 10), part(20, 40)], "row 10 is missing: no partial before partial 1 has it"),
        ([part(20, 40), part(0, 10)], "row 10 is missing: no partial before partial 0 has it"),
        ([part(1, 10)], "row 0 is missing"),
        ([part(0, 10), part(9, 20)], "row 9 of partial 1 comes twice, or was answered before"),
        ([part(0, 10), part(0, 10)], "row 0 of partial 1 comes twice"),
        ([odd.reduce(losses[:3], ids=[0, 1, 1])], "row 1 comes twice in partial 0"),
        ([odd.reduce(losses[:3], ids=[0, 1, 3])], "partial 0 must have rows that are side by side"),
        ([part(0, 10), without], "must all have ids, or none: partial 1 is unlike 0"),
        ([without, part(0, 10)], "must all have ids, or none: partial 1 is unlike 0"),
    ]
    for number, (partials, message) in enumerate(cases):
        guard = guard_of(epsilon=0.3)
        with pytest.raises(ValueError, match=message):
            guard.take(partials)
        assert guard.n_answered == (5 if partials[0] is without else 0), number
    guard = guard_of(epsilon=0.3)
    assert guard.take([part(10, 20), part(0, 10)]).n_answered == 20
    with pytest.raises(ValueError, match="row 10 of partial 1 comes twice, or was answered before"):
        guard.take([part(20, 40), part(10, 20)])
    nothing = odd.reduce(losses[:0], ids=[])
    assert guard.take([part(30, 40), nothing, part(20, 30)]).n_answered == 40


@pytest.mark.parametrize(
    ("ids", "error", "message"),
    [
        ([0, 1], ValueError, "ids must be one a row, 3, got 2"),
        ([0, 1, -1], ValueError, r"ids must be in \[0, 2\*\*63\), got -1"),
        (np.array([0, 1, 2**63], np.uint64), ValueError, r"2\*\*63\), got 9223372036854775808"),
        ([0, 1, 2.0], TypeError, "ids must be integers, one a row"),
        ("abc", TypeError, "ids must be integers, one a row"),
        ([[0, 1, 2]], TypeError, "ids must be integers, one a row"),
    ],
)
def test_ids_are_integers_one_a_row(ids, error, message):
    with pytest.raises(error, match=message):
        guard_of().task().reduce(losses_of("bits", 3), ids=ids)


def test_parts_of_other_rows_do_not_add_up():
    task, losses = guard_of().task(), losses_of("bits", 3)
    left = task.reduce(losses[:, :64], ids=[4, 5, 6])
    for ids, message in [
        ([4, 5, 7], "partials of other rows do not add up: one lacks the row 6"),
        ([4, 5, 5], "one lacks the row 6"),
        (None, "partials with ids and without do not add up"),
    ]:
        with pytest.raises(ValueError, match=message):
            left + task.reduce(losses[:, 64:], ids=ids, start=64)
    doubled = task.reduce(losses[:, :64], ids=[4, 4, 5])
    with pytest.raises(ValueError, match="a row is twice"):
        doubled + task.reduce(losses[:, 64:], ids=[4, 5, 4], start=64)


@pytest.mark.parametrize("kind", KINDS)
def test_threads_count_what_one_does(kind, monkeypatch):
    monkeypatch.setattr(partial_module, "THREAD_BYTES", 1)
    losses = losses_of(kind)
    labels = np.arange(1000) % 2
    for guard, rows in ((guard_of(), losses), (guard_of(labels), labels ^ (losses > 0.5))):
        for cut in ([0, 1000], [0, 448, 1000]):
            for one, several in zip(
                parts_of(guard.task(), rows, cut),
                parts_of(guard.task(), rows, cut, n_threads=7),
                strict=True,
            ):
                assert one.to_bytes() == several.to_bytes()
        none = guard.task().reduce(rows[:0], n_threads=7)
        assert none.to_bytes() == guard.task().reduce(rows[:0]).to_bytes()


# ---- bytes ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("cut", [[0, 1000], [0, 64], [448, 1000]])
def test_a_partial_comes_back_from_its_bytes_and_from_a_pickle(kind, cut):
    for n_rows in (0, 1, 60):
        (part,) = parts_of(guard_of().task(), losses_of(kind)[:n_rows], cut)
        for back in (Partial.from_bytes(part.to_bytes()), pickle.loads(pickle.dumps(part))):
            assert back.to_bytes() == part.to_bytes()
            assert_array_equal(back.sums, part.sums)
            assert_array_equal(back.totals, part.totals)
            assert back.sums.dtype == part.sums.dtype and back.spans == part.spans
            assert back.binary == part.binary
    scattered = sum(parts_of(guard_of().task(), losses_of(kind), [0, 64, 128, 192])[::2])
    assert Partial.from_bytes(scattered.to_bytes()).spans == ((0, 64), (128, 192))


def test_the_bytes_are_those_of_the_format():
    """Written down: another layout is another version."""
    task = guard_of(65, n_vectors=2, seed=7).task()
    blob = task.reduce(PackedLosses(np.array([[5], [0]], np.uint64), 64)).to_bytes()
    (n,) = struct.unpack_from("<I", blob, 8)
    assert blob[:8] == b"\x89RADP\r\n\x1a"
    assert json.loads(blob[12 : 12 + n]) == {
        "version": 1,
        "identity": task.identity.hex(),
        "n_samples": 65,
        "spans": [[0, 64]],
        "unit_shift": 0,
        "binary": True,
        "arrays": {"totals": ["<i8", [2]], "sums": ["<i4", [2, 2]]},
    }
    assert struct.unpack_from("<2q", blob, 12 + n) == (2, 0)
    assert len(blob) == 12 + n + 2 * 8 + 4 * 4 + 32


def test_altered_bytes_are_refused():
    (part,) = parts_of(guard_of().task(), losses_of("bits"), [0, 64])
    blob = part.to_bytes()
    for n in range(0, len(blob), 7):
        for wrong in (blob[:n], blob[:n] + bytes([blob[n] ^ 1]) + blob[n + 1 :]):
            with pytest.raises(ValueError, match="partial"):
                Partial.from_bytes(wrong)
    with pytest.raises(ValueError, match="partial"):
        Partial.from_bytes(blob + b"\0")
    longer = blob[:-32] + b"\0"  # with the checksum of it
    with pytest.raises(ValueError, match="no losses lead to"):
        Partial.from_bytes(longer + hashlib.sha256(longer).digest())


def test_forged_numbers_are_refused():
    whole = guard_of().task().reduce(losses_of("bits"))
    (part,) = parts_of(guard_of().task(), losses_of("bits"), [0, 64])
    forged = [
        replace(whole, totals=whole.totals - whole.totals.max()),
        replace(whole, sums=whole.sums[::-1].copy()),
        replace(whole, sums=np.full_like(whole.sums, -(2**63))),
        replace(whole, spans=((0, 64),)),
        replace(part, spans=((0, 1000),)),
        replace(part, spans=((0, 65),)),
        replace(part, spans=((1, 64),)),
        replace(part, spans=((64, 0),)),
        replace(part, spans=((-64, 64),)),
        replace(part, spans=((0, 64), (64, 128))),
        replace(part, spans=((64, 128), (0, 64))),
        replace(part, spans=((0, 2000),)),
        replace(part, spans=()),
        replace(part, totals=part.totals * (part.totals == part.totals.max())),
        replace(part, n_samples=0),
        replace(part, sums=part.sums[:, :0]),
        replace(part, sums=part.sums[:-1]),
        replace(part, n_samples=2**40 + 1),
        replace(part, ids=np.arange(59)),
        replace(part, fingerprints=np.zeros(59, np.uint64)),
        replace(part, nats=np.zeros(2)),
        replace(whole, totals=whole.totals.astype(float)),
        replace(part, totals=part.totals[:-1]),
    ]
    for number, partial in enumerate(forged):
        with pytest.raises(ValueError):
            Partial.from_bytes(partial.to_bytes())
            pytest.fail(f"number {number}")


@pytest.mark.parametrize("kind", ["bits", "real"])
def test_numbers_are_taken_up_to_their_limit_and_not_beyond_it(kind):
    """What some losses lead to, and one beyond: of totals, sums, extremes, spans and sizes."""
    task, m = guard_of(200, 3).task(), 200
    ones = np.ones((2, m), np.bool_ if kind == "bits" else np.float32)
    if kind == "real":
        ones[0, 0] = 0.5
    part, whole = task.reduce(ones[:, :64]), task.reduce(ones)
    unit = 1 << whole.unit_shift
    most, total = m * unit, int(whole.totals.max())
    largest_m = 2**40 if kind == "bits" else (2**38 - 1) // 3  # sums of all vectors are int64

    def changed(partial, name, place, value):
        numbers = getattr(partial, name).copy()
        numbers[place] = value
        return replace(partial, **{name: numbers})

    # as far as it goes, and one further
    cases = [
        (lambda value: changed(whole, "totals", 1, value), most, most + 1),
        (lambda value: changed(part, "totals", 1, value), 64 * unit, 64 * unit + 1),
        (lambda value: changed(part, "sums", (1, 2), value), part.totals[1], part.totals[1] + 1),
        (lambda value: changed(part, "sums", (1, 2), -value), part.totals[1], part.totals[1] + 1),
        (lambda value: changed(whole, "sums", (0, 1), value), total, total + 1),
        (lambda value: changed(whole, "sums", (1, 1), -value), total, total + 1),
        (
            lambda value: changed(changed(whole, "sums", (0, 2), 5), "sums", (1, 2), value),
            5,  # a minimum may be the maximum, and no more
            6,
        ),
        (lambda value: replace(part, spans=((0, value),)), 64, 63),
        (lambda value: replace(part, spans=((value, value + 64),)), 64, 65),
        (lambda value: replace(part, n_samples=value), largest_m, largest_m + 1),
        (lambda value: replace(whole, unit_shift=value), whole.unit_shift, whole.unit_shift + 1),
    ]
    for number, (forge, last, beyond) in enumerate(cases):
        assert Partial.from_bytes(forge(last).to_bytes()).n_vectors == 3, number
        with pytest.raises(ValueError):
            Partial.from_bytes(forge(beyond).to_bytes())
            pytest.fail(f"number {number}")
    # as many cells as sums of all vectors have bits for, and none to spare
    wide = guard_of(200, 256).task().reduce(0.5 * np.ones((1, 64)))
    assert Partial.from_bytes(replace(wide, n_samples=2**30 - 1).to_bytes()).n_vectors == 256
    with pytest.raises(ValueError, match="no losses lead to"):
        Partial.from_bytes(replace(wide, n_samples=2**30).to_bytes())
    zero = changed(changed(part, "totals", 0, 0), "sums", 0, 0)
    assert len(Partial.from_bytes(zero.to_bytes())) == 2
    with pytest.raises(ValueError, match="no losses lead to"):
        Partial.from_bytes(changed(zero, "totals", 0, -1).to_bytes())


def test_forged_bytes_are_refused_or_taken():
    """Bytes of the head or the body are changed, and the checksum with them."""
    rng, losses = random.Random(0), losses_of("bits", 5)
    task = guard_of(n_vectors=3).task()
    blobs = [
        task.reduce(losses).to_bytes(),
        (task.reduce(losses[:, :64]) + task.reduce(losses[:, 128:192], start=128)).to_bytes(),
    ]
    outcomes = set()
    for _ in range(3000):
        blob = bytearray(rng.choice(blobs))
        for _ in range(rng.choice((1, 1, 3))):
            place = rng.choice((rng.randrange(8, 260), rng.randrange(260, len(blob) - 32)))
            blob[place] = rng.choice((0, 1, 255, blob[place] ^ (1 << rng.randrange(8))))
        content = bytes(blob[:-32])
        try:
            partial = Partial.from_bytes(content + hashlib.sha256(content).digest())
        except ValueError:
            outcomes.add("refused")
            continue
        with contextlib.suppress(TypeError, ValueError):  # words are fetched, or other rows
            guard_of(n_vectors=3).take([partial], fetch=lambda i: losses)
            outcomes.add("taken")
    assert outcomes == {"taken", "refused"}


def test_a_task_is_small_and_a_whole_partial_too():
    guard = guard_of(n_vectors=32)
    assert len(pickle.dumps(guard.task())) < 300
    partial = guard.task().reduce(losses_of("bits", 1000))
    assert len(pickle.dumps(partial)) < 40 * 1000 and len(partial.to_bytes()) < 40 * 1000
    assert isinstance(guard.task(), SignedTask) and guard.task() == guard.task()
