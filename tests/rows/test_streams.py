"""Answers block by block: together those of `query_many`, and never more at once than asked for."""

import subprocess
import sys

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from radabound_fast import (
    DeclaredSearch,
    GuessAndCheck,
    Holdout,
    HoldoutExhausted,
    Ladder,
    RadaBound,
)

M = 1000
RUNS = [("mclt", 0.088), ("mclt", 0.2), ("fixed-sequence", 0.057), ("fixed-sequence", 0.15)]


def guard_of(bound="mclt", epsilon=0.088):
    return RadaBound(M, epsilon=epsilon, delta=0.1, n_vectors=12, bound=bound, seed=5)


def losses_of(n_queries=150):
    rng = np.random.default_rng(17)
    base = rng.random(M) < 0.02
    return base ^ (rng.random((n_queries, M)) < 0.1)


class Slices:
    """Rows that tell which of them were read, as an array on disk might."""

    def __init__(self, rows):
        self.rows, self.shape, self.read = rows, rows.shape, []

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, part):
        self.read.append((part.start, part.stop))
        return self.rows[part]


def state_of(guard):
    return {name: np.asarray(value).tolist() for name, value in guard._state().items()}


def assert_same_together(blocks, expected, names):
    for name in names:
        joined = np.concatenate([getattr(block, name) for block in blocks])
        assert_array_equal(joined, getattr(expected, name))


@pytest.mark.parametrize("form", ["bits", "real", "packed", "predictions"])
@pytest.mark.parametrize(("bound", "epsilon"), RUNS)
@pytest.mark.parametrize("block", [1, 7, 50, 150, 10**6])
def test_a_stream_has_the_answers_of_query_many(pack, form, bound, epsilon, block):
    rows, asks = losses_of(), [guard_of(bound, epsilon) for _ in "12"]
    guards = asks
    many = "query_many"
    if form == "real":
        rows = rows * np.float32(0.75)
    if form == "packed":
        rows, many = pack(rows), "query_many_packed"
    if form == "predictions":
        asks = [Holdout(np.zeros(M, int), guard, classes=[0, 1]) for guard in guards]
    expected = getattr(asks[0], many)(rows, trace=True)
    blocks = list(getattr(asks[1], f"iter_{many}")(rows, block=block, trace=True, n_threads=2))
    names = ("values", "lows", "highs", "numbers", "complexities", "delta_primes")
    assert_same_together(blocks, expected, names)
    assert state_of(guards[0]) == state_of(guards[1])
    # a halt ends the stream with what was answered before it
    assert [each.halted for each in blocks] == [False] * (len(blocks) - 1) + [expected.halted]
    whole, rest = divmod(expected.n_answered, block)
    last = [rest] if rest or expected.halted else []
    assert [len(each) for each in blocks] == [block] * whole + last


def test_rows_are_read_when_they_are_asked_for_and_no_more():
    rows, guard = Slices(losses_of()), guard_of(epsilon=0.2)
    stream = guard.iter_query_many(rows, block=40)
    assert rows.read == [] and guard.n_answered == 0
    for n_blocks in (1, 2):
        assert len(next(stream)) == 40
        assert len(rows.read) == n_blocks and guard.n_answered == 40 * n_blocks
    assert len(list(stream)) == 2 and rows.read[-1] == (120, 150)
    halting = Slices(losses_of())
    last = list(guard_of().iter_query_many(halting, block=10))[-1]
    assert last.halted and halting.read[-1][1] == (last.number // 10 + 1) * 10


def test_rows_on_disk_are_read_from_there(tmp_path):
    np.save(tmp_path / "losses.npy", losses_of())
    rows = np.load(tmp_path / "losses.npy", mmap_mode="r")
    blocks = list(guard_of().iter_query_many(rows, block=16))
    assert_same_together(blocks, guard_of().query_many(losses_of()), ["values"])


@pytest.mark.parametrize("rows", [[], np.zeros((0, M))])
def test_no_rows_are_no_blocks(rows):
    assert list(guard_of().iter_query_many(rows, block=5)) == []


def test_a_list_is_rows_too():
    (answers,) = guard_of().iter_query_many([[0] * M, [True] * M], block=5)
    assert_array_equal(answers.values, [0, 1])


def test_a_spent_guard_refuses_the_first_block():
    guard = guard_of()
    assert guard.query_many(losses_of()).halted
    stream = guard.iter_query_many(losses_of(), block=5)
    with pytest.raises(HoldoutExhausted):
        next(stream)


def test_a_bad_block_changes_nothing_and_the_blocks_before_are_counted():
    rows, guard = losses_of().astype(np.float64), guard_of(epsilon=0.2)
    rows[25, 3] = 1.5
    stream = guard.iter_query_many(rows, block=10)
    assert [len(next(stream)) for _ in "12"] == [10, 10]
    with pytest.raises(ValueError, match=r"must be in \[0, 1\], got 1.5 at row 5, sample 3"):
        next(stream)
    assert guard.n_answered == 20
    rows[25, 3] = 1.0  # mended, it goes on where it was
    assert sum(len(answers) for answers in stream) == 130


def test_an_interrupted_block_is_asked_again(monkeypatch):
    guard = guard_of(epsilon=0.2)
    stream = guard.iter_query_many(losses_of(), block=100)
    with monkeypatch.context() as broken:

        def interrupted(*args, **options):
            raise KeyboardInterrupt

        broken.setattr(RadaBound, "query_many", interrupted)
        with pytest.raises(KeyboardInterrupt):
            next(stream)
    assert [len(answers) for answers in stream] == [100, 50] and guard.n_answered == 150


@pytest.mark.parametrize("block", [0, -1, 1.5, None, True])
def test_a_block_of_no_rows_is_refused_at_once(block):
    with pytest.raises((TypeError, ValueError), match="block must be"):
        guard_of().iter_query_many(losses_of(), block=block)


HALTS_IT = """
import sys, numpy as np
from radabound_fast import RadaBound
from radabound_fast import GuessAndCheck
with {kind}.open(sys.argv[1]) as guard:
    guard.query_many(np.random.default_rng(1).random((2000, 1000)) < 0.5, guesses=[0] * 2000)
    assert guard.halted
"""


@pytest.mark.parametrize("kind", [RadaBound, GuessAndCheck])
def test_a_halt_by_another_process_ends_the_stream(tmp_path, kind):
    path, labels = tmp_path / "guard.db", np.zeros(M, int)
    rows, guesses = losses_of(), np.full(150, 0.11)
    with kind.open(path, M, epsilon=0.12, delta=0.1) as guard:
        stream = Holdout(labels, guard, classes=[0, 1]).iter_query_many(
            rows, block=20, guesses=guesses
        )
        assert len(next(stream)) == 20
        code = HALTS_IT.format(kind=kind.__name__)
        subprocess.run([sys.executable, "-c", code, str(path)], check=True)
        (last,) = stream
        assert last.halted and len(last) == 0 and last.number == guard.n_answered >= 20


@pytest.mark.parametrize(
    ("rows", "shape"), [(None, "()"), (3, "()"), (iter([[0]]), "()"), (np.zeros(M), f"({M},)")]
)
def test_what_is_no_rows_is_refused_at_once_by_its_name(rows, shape):
    holdout = Holdout(np.zeros(M), guard_of())
    for name, ask in (
        ("losses", holdout.guard.iter_query_many),
        ("words", holdout.guard.iter_query_many_packed),
        ("Y_pred", holdout.iter_query_many),
    ):
        with pytest.raises(ValueError, match=f"^{name} must have two dimensions, got shape ") as e:
            ask(rows, block=5)
        assert str(e.value).endswith(shape)


# ---- other guards behind a holdout --------------------------------------------------------


def test_guesses_and_keys_go_along_with_their_rows():
    labels, rows = np.zeros(M, int), losses_of(30)
    guesses = rows.mean(axis=1) + 0.01
    here, there = (GuessAndCheck(M, epsilon=0.1, delta=0.1) for _ in "12")
    expected = Holdout(labels, here, classes=[0, 1]).query_many(rows, guesses=guesses)
    blocks = list(
        Holdout(labels, there, classes=[0, 1]).iter_query_many(rows, block=7, guesses=guesses)
    )
    assert_same_together(blocks, expected, ["values", "numbers"])
    assert there.n_answered == 30
    searches = [DeclaredSearch(M, {"depth": range(30)}, delta=0.1) for _ in "12"]
    keys, reruns = [{"depth": depth} for depth in range(30)], [1] * 30
    many, stream = (Holdout(labels, search, classes=[0, 1]) for search in searches)
    expected = many.query_many(rows, keys=keys, reruns=reruns)
    blocks = list(stream.iter_query_many(rows, block=7, keys=keys, reruns=reruns))
    assert_same_together(blocks, expected, ["values", "lows", "highs"])


@pytest.mark.parametrize("n_keys", [29, 31, 0])
def test_guesses_and_keys_that_are_not_one_a_row_are_refused_before_a_block_is_counted(n_keys):
    rows = losses_of(30)
    search = DeclaredSearch(Holdout(np.zeros(M, int), classes=[0, 1]), 99, delta=0.1)
    check = GuessAndCheck(Holdout(np.zeros(M, int), classes=[0, 1]), epsilon=0.1, delta=0.1)
    for name, holdout, values in (
        ("keys", search, range(n_keys)),
        ("reruns", search, [1] * n_keys),
        ("guesses", check, np.full(n_keys, 0.1)),
    ):
        along = {"keys": range(30)} | {name: values} if holdout is search else {name: values}
        with pytest.raises(ValueError, match=f"^{name} must be one a row, 30, got {n_keys}$"):
            holdout.iter_query_many(rows, block=7, **along)
        with pytest.raises(TypeError, match=f"^{name} must be a sequence, one a row, got 0.1$"):
            holdout.iter_query_many(rows, block=7, **along | {name: 0.1})
        assert holdout.n_answered == 0
    keys = (key for key in range(30))  # `query_many` takes such keys too
    assert sum(map(len, search.iter_query_many(rows, block=7, keys=keys))) == 30


def test_a_ladder_streams_as_well():
    here, there = (Ladder(np.zeros(M, int), step=0.05, delta=0.1) for _ in "12")
    rows = np.zeros((20, M), int)
    blocks = list(here.iter_query_many(rows, block=6))
    assert_same_together(blocks, there.query_many(rows), ["values", "numbers"])
