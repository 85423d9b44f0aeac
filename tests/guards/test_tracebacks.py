"""What an exception keeps of the library's frames: nothing that they worked on.

A traceback keeps the frames it went through, and they their variables: labels, losses, means.  So
whatever leaves the library has no variable in any frame of it, nor below.
"""

import gc
import itertools
import os
import sys
import traceback

import numpy as np
import pytest

from radabound_fast import (
    DeclaredSearch,
    Holdout,
    HoldoutExhausted,
    Ladder,
    RadaBound,
    RademacherAverage,
    SignMatrix,
)

M = 1000
LABELS = np.random.default_rng(0).integers(0, 2, M)
N_PLACES = 8  # of some hundred in a call


def frames_of(error, outer=None):
    """Every frame below this file's, of an exception and of what led to it."""
    seen, left = [outer, None], [error]
    while left:
        error = left.pop()
        if any(error is other for other in seen):
            continue
        seen.append(error)
        left += [error.__cause__, error.__context__]
        frames = (frame for frame, _ in traceback.walk_tb(error.__traceback__))
        yield from itertools.dropwhile(lambda frame: frame.f_code.co_filename == __file__, frames)


def assert_tells_nothing(error, *, compiled=True):
    """No frame has a variable; the first may have its `self`, if it is no compiled one."""
    frames = list(frames_of(error))
    assert frames
    for frame in frames:
        held = dict(frame.f_locals)
        if not compiled:
            held.pop("self", None)
        assert not held, (frame.f_code.co_qualname, list(held))


def failed(ask):
    try:
        ask()
    except BaseException as error:
        return error
    pytest.fail("it did not fail")


@pytest.fixture(params=["in memory", "opened"])
def make(request, halting, tmp_path):
    """Makes the guard anew, and closes all in the end."""
    made = []

    def make():
        path = None if request.param == "in memory" else tmp_path / f"{len(made)}.db"
        made.append(halting.make(path))
        return made[-1]

    yield make
    for guard in made:
        if guard._ledger is not None:
            guard.close()


@pytest.fixture(params=["losses", "predictions"])
def asks(request):
    """Makes of a guard what is asked, and of losses what it is asked about."""
    if request.param == "losses":
        return lambda guard: guard, lambda losses: losses
    return lambda guard: Holdout(LABELS, guard), lambda losses: LABELS ^ losses


def misuse(asker, rows, guesses, many):
    """Calls that fail before anything is counted."""
    needs_guess = getattr(getattr(asker, "guard", asker), "_needs_guess", False)
    for wrong in (
        rows[..., :-1],
        rows[..., np.newaxis],
        rows + 2,
        rows.astype(object) * 1j,
        rows.astype(complex),
        np.where(rows == rows.max(), "emu", "ewe"),
        np.ma.masked_equal(rows, 1),
        [[None] * M] if many else [None] * M,
        [[0] * M, [1]] if many else [[0], [1, 0]],
        np.full(rows.shape, np.nan),
        np.longdouble(rows) * 1.5,
    ):
        yield (
            lambda wrong=wrong: (
                asker.query_many(wrong, guesses=guesses)
                if many
                else asker.query(wrong, guess=guesses)
            )
        )
    if needs_guess:
        for guess in (None, "half", 1.5, np.nan):
            yield (
                lambda guess=guess: (
                    asker.query_many(rows, guesses=[guess])
                    if many
                    else asker.query(rows, guess=guess)
                )
            )
    if many:
        yield lambda: asker.query_many(rows, guesses=guesses, no_such_option=1)


@pytest.mark.parametrize("many", [False, True], ids=["one", "many"])
def test_no_failing_query_keeps_what_it_was_asked(halting, make, asks, many, tmp_path):
    guard = make()
    asker, (good, bad) = asks[0](guard), map(asks[1], halting.losses)
    first, second = halting.guesses

    def ask(rows, guess):
        if many:
            answers = asker.query_many(rows[np.newaxis], guesses=[guess])
            return (
                answers
                if answers.n_answered
                else asker.query_many(rows[np.newaxis], guesses=[guess])
            )
        return asker.query(rows, guess=guess)

    rows = good[np.newaxis] if many else good
    for call in misuse(asker, rows.astype(int), [0.5] if many else 0.5, many):
        assert_tells_nothing(failed(call))
    assert guard.n_answered == 0
    ask(good, first)
    for number in (1, 2):  # withheld, and halted before
        error = failed(lambda: ask(bad, second))
        assert isinstance(error, HoldoutExhausted) and guard.halted, number
        assert_tells_nothing(error)
    if guard._ledger is not None:
        guard.close()
        error = failed(lambda: ask(good, first))
        assert isinstance(error, RuntimeError) and "is closed" in str(error)
        assert_tells_nothing(error)


def test_no_interrupted_query_keeps_what_it_was_asked(halting, make, asks, interrupt_at):
    first, second = halting.guesses
    good, bad = map(asks[1], halting.losses)
    calls = [
        lambda asker: asker.query(good, guess=first),
        lambda asker: asker.query(bad, guess=second),
        lambda asker: asker.query_many(np.array([good, bad]), guesses=[first, second]),
    ]

    def interrupted(call, number):
        """How many places were left, and the KeyboardInterrupt."""
        guard = make()
        asker, caught = asks[0](guard), None
        if call is calls[1]:
            asker.query(good, guess=first)
        with interrupt_at(number) as interrupt:
            try:
                call(asker)
            except HoldoutExhausted:
                pass
            except KeyboardInterrupt as error:
                caught = error
        return interrupt.left, caught

    n_broken = 0
    for call in calls:
        left, _ = interrupted(call, 10**6)
        for number in np.unique(np.linspace(0, 10**6 - left - 1, N_PLACES, dtype=int)).tolist():
            _, caught = interrupted(call, number)
            if caught is not None:
                assert_tells_nothing(caught)
                n_broken += 1
    assert n_broken > 10


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_no_query_of_a_forked_child_keeps_what_it_was_asked(halting, asks):
    asker, losses = asks[0](halting.make()), asks[1](halting.losses[0])
    child = os.fork()
    if child == 0:
        status = 1
        try:
            for call in (
                lambda: asker.query(losses, guess=0.5),
                lambda: asker.query_many(losses[np.newaxis], guesses=[0.5]),
            ):
                error = failed(call)
                assert "os.fork" in str(error)
                assert_tells_nothing(error)
            status = 0
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0


class Full:
    """A ledger on a disk that is full."""

    def begin(self):
        return None

    read = begin

    def commit(self, progress):
        raise OSError("no space left")

    def rollback(self):
        pass


def test_no_failing_commit_keeps_what_was_asked_or_is_stored(halting, asks):
    guard = halting.make()
    asker, losses = asks[0](guard), asks[1](halting.losses[0])
    guard._shared._keep(Full())
    first = halting.guesses[0]
    for call in (
        lambda: asker.query(losses, guess=first),
        lambda: asker.query_many(losses[np.newaxis], guesses=[first]),
    ):
        error = failed(call)
        assert isinstance(error, OSError)
        assert_tells_nothing(error)


def test_no_failing_read_of_a_database_keeps_what_is_stored(halting, tmp_path):
    with halting.make(tmp_path / "guard.db") as guard:
        guard.query(halting.losses[0], guess=halting.guesses[0])
        with halting.make(tmp_path / "guard.db") as other:
            other._ledger.begin()
            other._ledger.commit(np.empty(0, np.int64))
            for read in (lambda: other.n_answered, lambda: other.halted):
                other._ledger.rollback()
                error = failed(read)
                assert isinstance(error, (ValueError, IndexError, TypeError)), error
                assert_tells_nothing(error, compiled=False)


def test_no_failing_open_keeps_what_is_stored(halting, tmp_path):
    kind, parameters = halting.kind, halting.parameters
    damaged = tmp_path / "damaged.db"
    with halting.make(damaged) as guard:
        guard.query(halting.losses[0], guess=halting.guesses[0])
    blob = bytearray(damaged.read_bytes())
    blob[-1] ^= 1  # of the row, which lies at the end of its page
    damaged.write_bytes(blob)
    assert_tells_nothing(failed(lambda: kind.open(damaged)))
    assert_tells_nothing(failed(lambda: kind.open(tmp_path / "no" / "folder", M, **parameters)))
    with Holdout.open(tmp_path / "guard.db", LABELS, kind, **parameters):
        for labels in (1 - LABELS, LABELS[1:], LABELS * 1j):
            open_it = lambda labels=labels: Holdout.open(tmp_path / "guard.db", labels, kind)  # noqa: E731
            assert_tells_nothing(failed(open_it))


@pytest.mark.parametrize(
    ("labels", "arguments"),
    [
        (LABELS * 1j, {"epsilon": 0.1, "delta": 0.1}),
        (LABELS.reshape(2, -1), {"epsilon": 0.1, "delta": 0.1}),
        (np.where(LABELS, np.nan, 0.5), {"epsilon": 0.1, "delta": 0.1}),
        ([[label] for label in LABELS], {"epsilon": 0.1, "delta": 0.1}),
        (LABELS, {"epsilon": 2.0, "delta": 0.1}),
        (LABELS, {"classes": [0], "epsilon": 0.1, "delta": 0.1}),
        (LABELS, {"guard": Ladder}),
        (LABELS, {"guard": Ladder(M + 1, delta=0.1)}),
    ],
)
def test_no_holdout_that_cannot_be_made_keeps_its_labels(labels, arguments):
    assert_tells_nothing(failed(lambda: Holdout(labels, **arguments)))


def test_no_search_and_no_average_keeps_what_it_was_given():
    good, bad = np.random.default_rng(1).random((2, M)) < np.array([[0.02], [0.5]])
    search = DeclaredSearch(M, 100, delta=0.1)
    holdout = Holdout(LABELS, search)
    search.query(good, key=1)
    for call in (
        lambda: search.query(bad, key=1),
        lambda: search.query(bad, key=100),
        lambda: search.query(bad[1:], key=2),
        lambda: search.query_many(np.array([bad, bad]), keys=[2]),
        lambda: holdout.query(LABELS ^ bad, key=1),
        lambda: holdout.query(LABELS ^ bad),
        lambda: holdout.query(LABELS + 7, key=2),
        lambda: holdout.query_many((LABELS ^ bad)[np.newaxis], keys=[1]),
        lambda: RademacherAverage(SignMatrix(M, seed=1)).update(good + 2),
        lambda: RademacherAverage(SignMatrix(M, seed=1)).update_packed(good + 2),
    ):
        assert_tells_nothing(failed(call))


def test_what_the_caller_was_handling_keeps_its_frames():
    def mine():
        kept = "mine"
        raise KeyError(kept)

    holdout = RadaBound(LABELS, epsilon=0.1, delta=0.1, seed=1)
    try:
        mine()
    except KeyError as outer:
        error = failed(lambda: holdout.query(LABELS[1:]))
        assert error.__context__ is outer
        assert outer.__traceback__.tb_next.tb_frame.f_locals == {"kept": "mine"}
        assert not any(frame.f_locals for frame in frames_of(error, outer))


def test_what_is_raised_within_is_told_with_its_lines_and_its_causes():
    class Broken:
        def __array__(self, dtype=None, copy=None):
            raise RuntimeError("a tensor on another device")

    error = failed(lambda: RadaBound(M, epsilon=0.1, delta=0.1).query(Broken()))
    assert isinstance(error, TypeError) and isinstance(error.__cause__, RuntimeError)
    names = [frame.f_code.co_name for frame in frames_of(error)]
    assert "as_array" in names and "__array__" in names
    assert_tells_nothing(error)


def test_a_failed_query_keeps_nothing_alive():
    class Kept(np.ndarray):
        pass

    holdout = Ladder(LABELS, delta=0.1, max_queries=1)
    holdout.query(LABELS.view(Kept))
    error = failed(lambda: holdout.query(LABELS.view(Kept)))
    assert isinstance(error, HoldoutExhausted)
    gc.collect()
    assert not [thing for thing in gc.get_objects() if isinstance(thing, Kept)]
    assert sys.getrefcount(error) < 5
