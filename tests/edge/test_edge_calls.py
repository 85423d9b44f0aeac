"""The functions of src/edge one by one: what each returns, keeps and tells, by every way in.

A library of the C file, which traps on undefined behaviour, is called from here, with a storage
that fails, does less or has been damaged.
"""

import ctypes
import itertools
import struct
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support import needs

from radabound_fast import HoldoutExhausted, SignMatrix
from radabound_fast.edge import EdgeState
from radabound_fast.guards.by_bound import guard_by_bound

SRC = Path(__file__).parents[2] / "src"
pytestmark = [pytest.mark.source, pytest.mark.thorough]

(OK, NO_STATE, OTHER_STATE, STORAGE, NOT_READY, HALTED, BAD_LOSS, TOO_MANY, TOO_FEW) = range(9)
N_VECTORS = [1, 3, 32, 33]
CALLBACK = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p)


class Storage(ctypes.Structure):
    _fields_ = [("read", CALLBACK), ("write", CALLBACK), ("context", ctypes.c_void_p)]


@pytest.fixture(scope="module")
def libraries(tmp_path_factory):
    """By the number of vectors."""
    needs("cc")
    folder, loaded = tmp_path_factory.mktemp("libraries"), {}
    trap = ["-fsanitize=undefined", "-fsanitize-undefined-trap-on-error"]
    for n_vectors in N_VECTORS:
        path = folder / f"edge{n_vectors}.so"
        flags = ["-std=c99", "-O1", "-shared", "-fPIC", *trap, f"-I{SRC}"]
        flags.append(f"-DRADABOUND_EDGE_VECTORS={n_vectors}")
        source = SRC / "edge" / "radabound_edge.c"
        subprocess.run(["cc", *flags, source, "-o", path], check=True)
        loaded[n_vectors] = library = ctypes.CDLL(str(path))
        library.radabound_edge_complexity.restype = ctypes.c_int64
        library.radabound_edge_budget.restype = ctypes.c_int64
    return loaded


class Device:
    """A guard in C, and its two slots."""

    def __init__(self, library, *slots):
        self.slots = [bytearray(slot) for slot in slots]
        self.failing = set()  # callbacks that fail, having done nothing
        self.n_left, self.n_moved = None, 0  # the call after so many moves only so many bytes
        self._library = library
        self.memory = ctypes.create_string_buffer(4096)
        self._storage = Storage(CALLBACK(self._read), CALLBACK(self._write), None)

    def _moves(self, name, slot):
        assert slot in (0, 1)
        if self.n_left is not None:
            self.n_left -= 1
            if self.n_left < 0:
                self.n_left = None
                return self.n_moved
        return None if name in self.failing else len(self.slots[slot])

    def _read(self, _, slot, to):
        if (n := self._moves("read", slot)) is None:
            return 1
        ctypes.memmove(to, bytes(self.slots[slot]), n)
        return 0

    def _write(self, _, slot, source):
        if (n := self._moves("write", slot)) is None:
            return 1
        self.slots[slot][:n] = ctypes.string_at(source, n)
        return 0

    def _call(self, name, *arguments):
        return getattr(self._library, f"radabound_edge_{name}")(self.memory, *arguments)

    def init(self):
        return self._call("init", ctypes.byref(self._storage))

    def push(self, loss):
        return self._call("push", ctypes.c_uint32(loss))

    def push_bits(self, losses):
        bits = np.packbits(losses, bitorder="little").tobytes()
        return self._call("push_bits", bits, ctypes.c_uint32(len(losses)))

    def finish(self):
        count = ctypes.c_uint32(12345)
        return self._call("finish", ctypes.byref(count)), count.value

    def ask(self, losses):
        """The result of a row, and its count."""
        result = self.push_bits(losses)
        return self.finish() if result == OK else (result, 0)

    @property
    def halted(self):
        return self._call("halted")

    @property
    def complexity(self):
        return self._call("complexity")

    @property
    def budget(self):
        return self._call("budget")

    @property
    def stored(self):
        return EdgeState.from_file(bytes(self.slots[0] + self.slots[1]))


def new(n_samples=100, **options):
    return EdgeState.new(
        n_samples, **{"epsilon": 0.9, "delta": 0.1, "bound": "mclt", "seed": 7} | options
    )


@pytest.fixture
def device(libraries):
    """A function: a new guard of a state in both slots, or of these slots, before `init`."""

    def device(state, *slots):
        slots = slots or (state.to_bytes(), state.to_bytes())
        return Device(libraries[state.n_vectors], *slots)

    return device


def ready(device):
    assert device.init() == OK
    return device


# ---- the same answers --------------------------------------------------------------------------

# the first row is withheld, or all are answered; deltas next to 0 and 1; shares of one answer, of
# the rows of the test, one under and over, and of more than a device can give
EPSILONS = [1e-9, 0.03, 0.1, 0.3, 0.6, 0.999]
DELTAS = [1e-300, 1e-6, 0.1, 1 - 2**-53]
SHARES = [None, 1, 2, 39, 40, 41, 2**32 - 1, 2**32, 2**62]
AWKWARD = [
    *itertools.product([1, 9, 65, 1001], [1, 33], ["bernstein", "mclt"], EPSILONS, DELTAS, [None]),
    *itertools.product([1, 65], [3], ["fixed-sequence"], EPSILONS, DELTAS, SHARES[:3]),
    *itertools.product([1001], [32], ["fixed-sequence"], [0.06, 0.08], [0.1], SHARES),
]


def test_answers_and_halts_are_radabounds_at_awkward_parameters(device):
    rng = np.random.default_rng(18)
    ends = set()
    for m, n_vectors, bound, epsilon, delta, share in AWKWARD:
        options = {"epsilon": epsilon, "delta": delta, "bound": bound}
        if share is not None:
            options["max_queries"] = share
        state = new(m, n_vectors=n_vectors, **options)
        guard = guard_by_bound(judged=m, n_vectors=n_vectors, seed=7, **options)
        signs = np.asarray(SignMatrix(m, n_vectors, seed=7)) > 0
        here, rate = ready(device(state)), rng.random() / 2
        for number in range(42):
            # by chance, after the signs, and next to where a union bound answers whatever there is
            kinds = [rng.random(m) < rate, signs[number % n_vectors], np.arange(m) < number % 5]
            losses = kinds[2 if number % 3 == 1 else number % 7 == 6]
            result, count = here.ask(losses)
            try:
                answer = guard.query(losses)
            except HoldoutExhausted:
                assert (result, count) == (HALTED, 0)
                break
            assert (result, count / m) == (OK, answer.value)
            assert here.complexity == round(answer.complexity * state.cells)
        stored = here.stored
        assert (stored.n_answered, stored.halted) == (guard.n_answered, guard.halted)
        assert here.complexity == stored.complexity == round(guard.complexity * state.cells)
        assert here.budget == stored.budget == max(-1, round(guard.budget * state.cells))
        ends.add((bound, min(stored.n_answered, 2), stored.halted))
    wanted = itertools.product(["bernstein", "mclt", "fixed-sequence"], [0, 2], [True])
    assert ends >= {*wanted, ("mclt", 2, False), ("fixed-sequence", 2, False)}


def test_pieces_of_any_size_at_any_place_are_one_row(device):
    rng = np.random.default_rng(0)
    losses = rng.random(1001) < 0.4
    wanted = ready(device(new(1001)))
    assert wanted.ask(losses) == (OK, losses.sum())
    for n in (1, 3, 7, 8, 9, 31, 32, 33, 63, 64, 65, 500):
        here = ready(device(new(1001)))
        for first in range(0, 1001, n):
            assert here.push_bits(losses[first : first + n]) == OK
            assert here.push_bits(losses[:0]) == OK  # nothing is nothing
        assert here.finish() == (OK, losses.sum())
        assert here.slots == wanted.slots


def test_two_guards_in_turns_are_as_each_alone(device):
    rng = np.random.default_rng(1)
    rows = rng.random((2, 6, 100)) < 0.5
    states = [new(seed=1), new(seed=2)]
    alone = [ready(device(state)) for state in states]
    for guard, losses in zip(alone, rows, strict=True):
        assert {guard.ask(row)[0] for row in losses} <= {OK, HALTED}
    both = [ready(device(state)) for state in states]
    for number in range(6):
        for place in range(100):
            for guard, losses in zip(both, rows, strict=True):
                guard.push(int(losses[number, place]))
        for guard in both:
            guard.finish()
    assert [guard.slots for guard in both] == [guard.slots for guard in alone]


# ---- what each result says ---------------------------------------------------------------------


def test_without_a_state_everything_says_so(device):
    here = device(new(), b"\0" * 1008, b"\xff" * 1008)
    for result in (None, NO_STATE, STORAGE):
        here.failing = {"read"} if result == STORAGE else set()
        if result is not None:  # before, its memory is zero
            assert here.init() == result
        assert here.push(0) == here.push_bits(np.zeros(3, bool)) == NOT_READY
        assert here.finish() == (NOT_READY, 0)
        assert not here.halted  # though erased flash has ones there


def test_what_is_refused_has_changed_nothing(device):
    here = ready(device(new()))
    losses = np.arange(100) % 3 == 0
    assert here.push_bits(losses[:90]) == OK
    for refused, result in [
        *((lambda loss=loss: here.push(loss), BAD_LOSS) for loss in (2, 255, 256, 257, 2**32 - 1)),
        (lambda: here._call("push_bits", b"\xff", ctypes.c_uint32(3)), BAD_LOSS),
        (lambda: here.push_bits(losses[:11]), TOO_MANY),
        (lambda: here._call("push_bits", b"", ctypes.c_uint32(2**32 - 1)), TOO_MANY),
    ]:
        before = here.memory.raw
        assert refused() == result
        assert here.memory.raw == before
    assert here.push_bits(losses[90:]) == OK
    assert here.push(1) == here.push(2) == TOO_MANY
    assert here.finish() == (OK, losses.sum())


def test_a_row_that_is_cut_short_is_dropped_and_so_is_one_before_init(device):
    here = ready(device(new()))
    before = [bytes(slot) for slot in here.slots]
    assert here.finish() == (TOO_FEW, 0)
    here.push_bits(np.ones(99, bool))
    assert here.finish() == (TOO_FEW, 0)
    here.push_bits(np.ones(100, bool))
    assert here.init() == OK
    assert here.finish() == (TOO_FEW, 0) and here.slots == before
    assert here.ask(np.zeros(100, bool)) == (OK, 0)


def test_a_guard_that_has_halted_answers_nothing_for_good(device):
    here = ready(device(new(epsilon=0.3)))
    losses = np.asarray(SignMatrix(100, 32, seed=7)) > 0
    results = [here.ask(row) for row in losses]
    assert results[-1] == (HALTED, 0) and here.halted
    before = [bytes(slot) for slot in here.slots]
    for again in range(3):
        assert here.push(0) == here.push_bits(losses[0]) == here.push(2) == HALTED
        assert here.finish() == (HALTED, 0)
        assert here.slots == before and here.halted
        assert here.init() == OK, again


def test_a_storage_that_fails_shows_no_answer_and_init_goes_on_from_it(device):
    losses = np.arange(100) < 30
    here = ready(device(new()))
    for number in range(4):
        assert here.ask(losses) == (OK, 30)
        here.failing = {"write"}
        assert here.ask(losses) == (STORAGE, 0)
        assert here.push(0) == NOT_READY and here.finish() == (NOT_READY, 0)
        here.failing = {"read"}
        assert here.init() == STORAGE
        assert here.push(0) == NOT_READY
        here.failing = set()
        assert here.init() == OK and here.stored.n_answered == number + 1


@pytest.mark.parametrize("call", [0, 1, 2])
def test_each_read_of_init_may_fail(device, call):
    here = device(new())
    here.n_left, here.n_moved = call, None
    assert here.init() == STORAGE
    assert here.push(0) == NOT_READY
    assert here.init() == OK


@pytest.mark.parametrize("n_moved", [0, 1, 500, 1007])
def test_a_read_that_does_less_and_does_not_say_so_brings_no_state(device, n_moved):
    """What was in memory before, of the other slot or a write that failed, is not taken for it."""
    older, newer = new().to_bytes(), replace(new(), n_answered=1, largest=3).to_bytes()
    for slots in ((older, newer), (newer, older)):
        here = device(new(), *slots)
        here.n_left, here.n_moved = slots.index(older), n_moved
        assert here.init() == OK
        assert EdgeState.from_bytes(here.memory.raw).n_answered == 1
    here = ready(device(new()))
    here.failing = {"write"}
    assert here.ask(np.zeros(100, bool)) == (STORAGE, 0)
    here._moves = lambda name, slot: min(n_moved, 8)
    assert here.init() == NO_STATE


# ---- which slot is taken -----------------------------------------------------------------------


def test_no_damaged_byte_of_a_slot_is_accepted(device):
    new_state, late = new(n_vectors=1), replace(new(n_vectors=1), n_answered=1, largest=3)
    older, newer = new_state.to_bytes(), late.to_bytes()
    for place, bit in itertools.product(range(len(newer)), (1, 0x80)):
        damaged = bytearray(newer)
        damaged[place] ^= bit
        here = device(new_state, damaged, older)
        assert here.init() == OK  # from the other slot, that is
        assert EdgeState.from_bytes(here.memory.raw) == new_state
        here = device(new_state, damaged, damaged)
        assert here.init() == (OTHER_STATE if 728 <= place < 732 else NO_STATE)


def test_a_slot_that_was_torn_anywhere_is_taken_only_if_it_is_whole(device):
    whole = [
        replace(new(), n_answered=n, largest=n, maxima=32 * (n,), minima=32 * (-n,)).to_bytes()
        for n in (0, 1, 2)
    ]
    older, over, newer = whole  # as it is stored, what the slot held before, what is written
    for place, rest in itertools.product(range(0, 1009, 4), (b"\xff" * 1008, over)):
        torn = newer[:place] + rest[place:]
        here = device(new(), torn, older)
        assert here.init() == OK
        age = EdgeState.from_bytes(here.memory.raw).n_answered
        assert age == (whole.index(torn) if torn in whole else 0)


@pytest.mark.parametrize(
    ("other", "ages"),
    [
        ({"seed": 8}, [0, 0]),
        ({"epsilon": 0.8}, [0, 1]),  # of one seed, as a seed for reproduction may be
        ({"delta": 0.2}, [3, 1]),
        ({"n_samples": 101}, [5, 5]),
        ({"bound": "fixed-sequence"}, [0, 1]),
        ({"bound": "bernstein"}, [9, 0]),
        ({"bound": "fixed-sequence", "epsilon": 0.9, "max_queries": 3}, [2, 3]),
        ({}, [4, 4]),  # copies of one that went apart
    ],
)
def test_slots_of_two_guards_are_refused(device, other, ages):
    pair = [
        replace(state, n_answered=age, largest=largest)
        for state, age, largest in zip((new(), new(**other)), ages, (50, 40), strict=True)
    ]
    for slots in (pair, pair[::-1]):
        content = [state.to_bytes() for state in slots]
        here = device(new(), *content)
        assert here.init() == OTHER_STATE
        assert here.push(0) == NOT_READY
        with pytest.raises(ValueError, match="the slots are of two guards"):
            EdgeState.from_file(b"".join(content))


def test_of_two_slots_of_one_age_neither_can_be_the_halted_one(device):
    halted = replace(new(), n_answered=3, halted=True)
    answered = replace(new(), n_answered=4)
    for slots in ((halted, answered), (answered, halted)):
        assert device(new(), *(state.to_bytes() for state in slots)).init() == OTHER_STATE


@pytest.mark.parametrize("n_vectors", [1, 33])
def test_a_state_for_other_vectors_is_told_apart(device, n_vectors):
    slot = new(n_vectors=n_vectors).to_bytes().ljust(1008, b"\xff")[:1008]
    assert device(new(), slot, slot).init() == OTHER_STATE
    assert device(new(), slot, bytes(1008)).init() == OTHER_STATE


def test_counters_end_before_they_wrap(device):
    last = replace(new(), n_answered=2**32 - 4, largest=100)
    here = ready(device(new(), last.to_bytes(), replace(last, n_answered=2**32 - 5).to_bytes()))
    row = np.zeros(100, bool)
    assert here.ask(row) == here.ask(row) == (OK, 0)
    assert here.ask(row) == (HALTED, 0)
    stored = here.stored
    assert (stored.n_answered, stored.halted) == (2**32 - 2, True)
    assert here.init() == OK and here.halted and here.push(0) == HALTED


def test_numbers_that_no_guard_stores_are_refused(device):
    for fields in ({"n_samples": 0}, {"n_samples": 2**31}, {"largest": 101},
                   {"n_answered": 2**32 - 1}, {"halted": 2}):  # fmt: skip
        slot = replace(new(), **fields).to_bytes()
        assert device(new(), slot, slot).init() == NO_STATE


# ---- what is told ------------------------------------------------------------------------------


@pytest.mark.parametrize("n_before", [0, 5])
def test_a_withheld_count_is_nowhere_and_nothing_is_priced_by_it(device, n_before):
    """The budget falls with the largest count: at the withheld one it would tell it."""
    m, count = 4000, 1893
    state = new(m, epsilon=0.02, bound="fixed-sequence", max_queries=10**9)
    withheld = np.random.default_rng(3).permutation(m) < count
    here = ready(device(state))
    for _ in range(n_before):
        assert here.ask(np.arange(m) < 100) == (OK, 100)
    budget = here.budget
    assert here.ask(withheld) == (HALTED, 0)
    assert here.budget == here.stored.budget == budget
    assert replace(state, largest=count).budget != budget
    assert here.stored.largest == (100 if n_before else 0)
    for content in (here.memory.raw, *here.slots, repr(here.stored).encode()):
        numbers = {number for at in range(4) for number in
                   struct.unpack_from(f"<{(len(content) - at) // 4}I", content, at)}  # fmt: skip
        assert not numbers & {count, m - count}
        assert str(count).encode() not in content
