"""What an exception keeps of the library's frames: nothing that they worked on.

A traceback keeps the frames it went through, and they their variables: labels, losses, means.  So
whatever leaves the library has no variable in any frame of it, nor below.
"""

import gc
import itertools
import os
import sys
import traceback
from pathlib import Path

import numpy as np
import pytest
from support import query, query_many

from radabound_fast import (
    ConfirmedSearch,
    DeclaredSearch,
    FixedSequence,
    Gate,
    Holdout,
    HoldoutExhausted,
    Ladder,
    PackedLosses,
    RadaBound,
    RademacherAverage,
    SignMatrix,
    pack_losses,
)

M = 1000
LABELS = np.random.default_rng(0).integers(0, 2, M)
N_PLACES = 8  # of some hundred in a call


def in_tests(frame):
    return frame.f_code.co_filename.startswith(str(Path(__file__).parents[1]))


def frames_of(error, outer=None):
    """Every frame below those of the tests, of an exception and of what led to it."""
    seen, left = [outer, None], [error]
    while left:
        error = left.pop()
        if any(error is other for other in seen):
            continue
        seen.append(error)
        left += [error.__cause__, error.__context__]
        frames = (frame for frame, _ in traceback.walk_tb(error.__traceback__))
        yield from itertools.dropwhile(in_tests, frames)


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


@pytest.fixture(params=["losses", "predictions"])
def of(request):
    """What the guard is asked about, of losses."""
    return {"losses": lambda losses: losses, "predictions": lambda losses: LABELS ^ losses}[
        request.param
    ]


def judged_by(of):
    """What a guard is made on that is asked about `of(losses)`."""
    return M if (of(np.zeros(M, int)) == 0).all() else Holdout(LABELS)


@pytest.fixture(params=["in memory", "opened"])
def make(request, halting, of, tmp_path):
    """Makes the guard anew, and closes all in the end."""
    made = []

    def make():
        path = None if request.param == "in memory" else tmp_path / f"{len(made)}.db"
        made.append(halting.make(path, judged_by(of)))
        return made[-1]

    yield make
    for guard in made:
        if guard.database is not None:
            guard.close()


def misuse(guard, rows, guess, many):
    """Calls that fail before anything is counted."""
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
        pack_losses(rows[..., :-1]),
        PackedLosses(np.full((1, 16) if many else 16, 2**64 - 1, np.uint64), M),
    ):
        yield (
            lambda wrong=wrong: (
                query_many(guard, wrong, [guess]) if many else query(guard, wrong, guess)
            )
        )
    if guard.needs is not None:
        for wrong in (None, "half", 1.5, np.nan):
            yield (
                lambda wrong=wrong: (
                    query_many(guard, rows, [wrong]) if many else query(guard, rows, wrong)
                )
            )
        yield lambda: guard.query_many(rows) if many else guard.query(rows)
    yield (
        lambda: (
            query_many(guard, rows, [guess], no_such_option=1)
            if many
            else guard.query(rows, no_such_option=1)
        )
    )


@pytest.mark.parametrize("many", [False, True], ids=["one", "many"])
def test_no_failing_query_keeps_what_it_was_asked(halting, make, of, many):
    guard, (good, bad) = make(), map(of, halting.losses)
    first, second = halting.guesses

    def ask(rows, guess):
        if not many:
            return query(guard, rows, guess)
        answers = query_many(guard, rows[np.newaxis], [guess])
        return answers if len(answers) else query_many(guard, rows[np.newaxis], [guess])

    rows = good[np.newaxis] if many else good
    for call in misuse(guard, rows.astype(int), 0.5, many):
        assert_tells_nothing(failed(call))
    assert guard.n_answered == 0
    ask(good, first)
    for number in (1, 2):  # withheld, and halted before
        error = failed(lambda: ask(bad, second))
        assert isinstance(error, HoldoutExhausted) and guard.halted, number
        assert_tells_nothing(error)
    if guard.database is not None:
        guard.close()
        error = failed(lambda: ask(good, first))
        assert isinstance(error, RuntimeError) and "closed" in str(error)
        assert_tells_nothing(error)


@pytest.mark.thorough
def test_no_interrupted_query_keeps_what_it_was_asked(halting, make, of, interrupt_at):
    first, second = halting.guesses
    good, bad = map(of, halting.losses)
    calls = [
        lambda guard: query(guard, good, first),
        lambda guard: query(guard, bad, second),
        lambda guard: query_many(guard, np.array([good, bad]), [first, second]),
    ]

    def interrupted(call, number):
        """How many places were left, and the KeyboardInterrupt."""
        guard, caught = make(), None
        if call is calls[1]:
            query(guard, good, first)
        with interrupt_at(number) as interrupt:
            try:
                call(guard)
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
def test_no_query_of_a_forked_child_keeps_what_it_was_asked(halting, of):
    guard, losses = halting.make(judged=judged_by(of)), of(halting.losses[0])
    child = os.fork()
    if child == 0:
        status = 1
        try:
            for call in (
                lambda: query(guard, losses),
                lambda: query_many(guard, losses[np.newaxis], [0.5]),
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


def test_no_failing_commit_keeps_what_was_asked_or_is_stored(halting, of):
    guard, losses = halting.make(judged=judged_by(of)), of(halting.losses[0])
    guard._shared.keep_in(Full())
    first = halting.guesses[0]
    for call in (
        lambda: query(guard, losses, first),
        lambda: query_many(guard, losses[np.newaxis], [first]),
    ):
        error = failed(call)
        assert isinstance(error, OSError)
        assert_tells_nothing(error)


def test_no_failing_read_of_a_database_keeps_what_is_stored(halting, tmp_path):
    with halting.make(tmp_path / "guard.db") as guard:
        halting.query(guard, 0)
        with halting.make(tmp_path / "guard.db") as other:
            other.database.begin()
            other.database.commit(np.empty(0, np.int64))
            for read in (lambda: other.n_answered, lambda: other.halted):
                other.database.rollback()
                error = failed(read)
                assert isinstance(error, (ValueError, IndexError, TypeError)), error
                assert_tells_nothing(error, compiled=False)


def test_no_failing_open_keeps_what_is_stored(halting, tmp_path):
    kind, parameters, path = halting.kind, halting.parameters, tmp_path / "guard.db"
    assert_tells_nothing(failed(lambda: kind.open(tmp_path / "no" / "folder", M, **parameters)))
    with kind.open(path, LABELS, **parameters):
        for labels in (1 - LABELS, LABELS[1:], LABELS * 1j, Holdout(1 - LABELS)):
            for given in ({}, parameters):
                assert_tells_nothing(failed(lambda y=labels, g=given: kind.open(path, y, **g)))
    search = {"space": 9, "delta": 0.1}
    DeclaredSearch.open(tmp_path / "search.db", LABELS, **search)
    for labels in (1 - LABELS, LABELS[1:], LABELS * 1j, Holdout(LABELS, metric="accuracy")):
        for given in ({}, search):
            error = failed(lambda y=labels, g=given: DeclaredSearch.open(tmp_path / "search.db", y, **g))  # noqa: E501  # fmt: skip
            assert_tells_nothing(error)


@pytest.mark.parametrize(
    ("labels", "arguments"),
    [
        (LABELS * 1j, {}),
        (LABELS.reshape(2, -1), {}),
        (np.where(LABELS, np.nan, 0.5), {}),
        ([[label] for label in LABELS], {}),
        (LABELS, {"classes": [0]}),
        (LABELS, {"metric": "no such metric"}),
        (LABELS + 2, {"metric": "f1"}),
        (LABELS, {"sample_weight": LABELS}),
        (LABELS, {"groups": LABELS[1:]}),
    ],
)
def test_no_holdout_that_cannot_be_made_keeps_its_labels(labels, arguments):
    assert_tells_nothing(failed(lambda: Holdout(labels, **arguments)))


def test_no_guard_that_cannot_be_made_keeps_its_labels(halting):
    for labels in (LABELS * 1j, LABELS.reshape(2, -1)):
        assert_tells_nothing(failed(lambda y=labels: halting.make(judged=y)))
    if halting.kind is not FixedSequence:
        other = Holdout(LABELS, metric="accuracy")
        assert_tells_nothing(failed(lambda: halting.make(judged=other)))
    for given in ({"delta": 2.0}, {"threshold": -1.0}, {"n_vectors": 0.5}):
        if halting.parameters.keys() & given.keys():
            error = failed(lambda g=given: halting.kind(LABELS, **halting.parameters | g))
            assert_tells_nothing(error)


def test_no_search_and_no_average_keeps_what_it_was_given():
    good, bad = np.random.default_rng(1).random((2, M)) < np.array([[0.02], [0.5]])
    search, other = DeclaredSearch(M, 100, delta=0.1), DeclaredSearch(LABELS, 100, delta=0.1)
    scored = DeclaredSearch(Holdout(LABELS, metric="roc_auc"), 9, delta=0.1)
    search.query(good, key=1)
    other.query(LABELS ^ good, key=1)
    for call in (
        lambda: search.query(bad, key=1),
        lambda: search.query(bad, key=100),
        lambda: search.query(bad),
        lambda: search.query(bad[1:], key=2),
        lambda: search.query(pack_losses(bad), key=1),
        lambda: search.query_many(np.array([bad, bad]), keys=[2]),
        lambda: search.query_many(pack_losses([bad, good]), keys=[1, 2]),
        lambda: other.query(LABELS ^ bad, key=1),
        lambda: other.query(LABELS ^ bad),
        lambda: other.query(LABELS + 7, key=2),
        lambda: other.query_many((LABELS ^ bad)[np.newaxis], keys=[1]),
        lambda: other.compare(LABELS ^ bad, LABELS, key_a=1, key_b=2),
        lambda: other.compare(LABELS, LABELS + 7, key_a=2, key_b=3),
        lambda: other.roc_band(LABELS, key=2),
        lambda: scored.query(LABELS * np.nan, key=2),
        lambda: DeclaredSearch(LABELS, 0, delta=0.1),
        lambda: DeclaredSearch(LABELS, 9, delta=0.1, baseline=LABELS + 7),
        lambda: RademacherAverage(SignMatrix(M, seed=1)).update(good + 2),
        lambda: RademacherAverage(SignMatrix(M, seed=1)).update(pack_losses(good[1:])),
    ):
        assert_tells_nothing(failed(call))


def test_what_the_caller_was_handling_keeps_its_frames():
    def mine():
        kept = "mine"
        raise KeyError(kept)

    guard = RadaBound(LABELS, epsilon=0.1, delta=0.1, seed=1)
    try:
        mine()
    except KeyError as outer:
        error = failed(lambda: guard.query(LABELS[1:]))
        assert error.__context__ is outer
        assert outer.__traceback__.tb_next.tb_frame.f_locals == {"kept": "mine"}
        assert not any(frame.f_locals for frame in frames_of(error, outer))


def test_what_is_raised_within_has_its_lines_and_causes():
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

    guard = Ladder(LABELS, 0.1, delta=0.1, max_queries=1)
    guard.query(LABELS.view(Kept))
    error = failed(lambda: guard.query(LABELS.view(Kept)))
    assert isinstance(error, HoldoutExhausted)
    gc.collect()
    assert not [thing for thing in gc.get_objects() if isinstance(thing, Kept)]
    assert sys.getrefcount(error) < 5


WRONG = {"of a few rows": LABELS[:7], "another class": LABELS + 7, "nan": np.full(M, np.nan)}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
@pytest.mark.parametrize("kind", ["in memory", "opened"])
def test_gates_and_confirmations_tell_nothing(kind, wrong, tmp_path):
    if kind == "opened":
        gate = Gate.open(tmp_path / "gate.db", LABELS, baseline=1 - LABELS)
        search = ConfirmedSearch.open(tmp_path / "search.db", LABELS, delta=0.1, n_batches=None)
    else:
        gate = Gate(LABELS, baseline=1 - LABELS)
        search = ConfirmedSearch(LABELS, delta=0.1, n_batches=None)
    for ask in (
        lambda: gate.query(wrong),
        lambda: gate.query_many([LABELS, wrong]),
        gate.revoke,
        lambda: Gate(LABELS, baseline=wrong),
        lambda: Gate(LABELS, baseline=LABELS, slices={"a": wrong}),
        lambda: search.score(wrong),
        lambda: search.score_many([wrong]),
        lambda: search.confirm({"a": wrong}),
        lambda: search.nominate("a", wrong),
        lambda: search.repeated_rows(wrong),
        lambda: ConfirmedSearch(LABELS, delta=0.1, rows=wrong),
        lambda: ConfirmedSearch(LABELS, delta=0.1, baseline=wrong),
    ):
        assert_tells_nothing(failed(ask))
    gate.close_out()
    assert_tells_nothing(failed(lambda: gate.query(LABELS)))
    search.close_out()
    assert_tells_nothing(failed(lambda: search.confirm(LABELS)))
    assert_tells_nothing(failed(lambda: search.nominate("a", LABELS)))
