"""query_many on a cluster of two processes: the local result and state, bit for bit."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from importlib.util import find_spec

import numpy as np
import pytest

if not find_spec("dask") or not find_spec("distributed"):
    pytest.skip("dask[distributed] is not installed", allow_module_level=True)

import dask.array as da
from distributed import Client, LocalCluster
from numpy.testing import assert_array_equal

from radabound_fast import Holdout, HoldoutExhausted, Ladder, RadaBound
from radabound_fast.integrations.dask import (
    iter_query_many,
    iter_query_many_packed,
    query_many,
    query_many_packed,
)
from radabound_fast.rows.partial import Partial

N_SAMPLES, N_VECTORS, SEED = 1000, 12, 5
# whole rows; shards at multiples of 64 of which the last is short; one word a shard
SHARDS = {"whole": -1, "three": (448, 512, 40), "words": (64,) * 15 + (40,)}


@contextlib.contextmanager
def port_taken(port):
    """Keep a port from others, unless somebody does already."""
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):
            stack.enter_context(socket.create_server(("", port)))
        yield


@pytest.fixture(scope="module")
def client():
    with (
        port_taken(8787),  # Dask's own, which need not be free
        LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address="127.0.0.1:0"
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


def guard_of(bound="mclt", epsilon=0.088):
    return RadaBound(
        N_SAMPLES, epsilon=epsilon, delta=0.1, n_vectors=N_VECTORS, bound=bound, seed=SEED
    )


def losses_of(kind, n_queries=200):
    rng = np.random.default_rng(17)
    base = rng.random(N_SAMPLES) < 0.02
    losses = (base ^ (rng.random((n_queries, N_SAMPLES)) < 0.1)).astype(np.float64)
    if kind == "real":
        losses[:, ::3] *= 0.25
    if kind == "mixed":  # the first real-valued loss comes late, and in one shard only
        losses[40:, 700] = 0.3
    return losses


def state_of(guard):
    return {name: np.asarray(value).tolist() for name, value in guard._state().items()}


def assert_same(answers, expected):
    for name in ("halted", "n_queries", "complexity", "delta_prime"):
        assert_array_equal(getattr(answers, name), getattr(expected, name))
    for name, column in expected.to_dict().items():
        assert_array_equal(answers.to_dict()[name], column)
    assert (np.broadcast_to(answers._declared, len(answers)) == expected._declared).all()
    assert answers.complexities is expected.complexities is None


# shards, kind, bound, epsilon, whether it halts; every value of each at least once
RUNS = [
    ("whole", "binary", "mclt", 0.088, True),
    ("whole", "real", "bernstein", 0.118, False),
    ("whole", "mixed", "fixed-sequence", 0.06, True),  # by its union part
    ("whole", "binary", "fixed-sequence", 0.15, False),
    ("three", "binary", "bernstein", 0.118, True),
    ("three", "mixed", "mclt", 0.088, True),
    ("three", "real", "fixed-sequence", 0.15, False),
    ("words", "binary", "mclt", 0.2, False),
]


@pytest.mark.parametrize(("shards", "kind", "bound", "epsilon", "halts"), RUNS)
def test_result_and_state_are_the_local_ones(client, shards, kind, bound, epsilon, halts):
    losses = losses_of(kind)
    here, there = guard_of(bound, epsilon), guard_of(bound, epsilon)
    expected = here.query_many(losses)
    array = da.from_array(losses, chunks=((40,) * 5, SHARDS[shards]))
    answers = query_many(there, array, client=client)
    assert_same(answers, expected)
    assert state_of(there) == state_of(here)
    assert answers.halted == halts


@pytest.mark.parametrize("dtype", [bool, np.int64, np.float32])
def test_dtypes_and_ragged_blocks(client, dtype):
    losses = losses_of("binary").astype(dtype)
    here, there = guard_of(), guard_of()
    rows = (1, 0, 13, 64, 65, 57)  # one row; none; more than fit one pass
    array = da.from_array(losses, chunks=((200,), -1)).rechunk((rows, (512, 488)))
    assert_same(query_many(there, array), here.query_many(losses))
    assert state_of(there) == state_of(here)


def test_blocks_that_stay_inside_the_budget_are_not_sent(client, monkeypatch):
    fetched = []
    query_packed = RadaBound.query_many_packed

    def counted(self, words, **options):
        fetched.append(len(words))
        return query_packed(self, words, **options)

    monkeypatch.setattr(RadaBound, "query_many_packed", counted)
    losses = losses_of("binary").astype(bool)
    runs = [
        ("mclt", 0.2, []),
        ("mclt", 0.088, [20]),
        ("fixed-sequence", 0.06, []),  # by its union part
        ("fixed-sequence", 0.04, [20]),
    ]
    for bound, epsilon, expected in runs:
        fetched.clear()
        guard = guard_of(bound, epsilon)
        query_many(guard, da.from_array(losses, chunks=(20, -1)))
        assert fetched == expected == [20] * guard.halted


def test_a_guard_goes_on_where_it_was(client):
    losses = losses_of("mixed")
    here, there = guard_of(epsilon=0.1), guard_of(epsilon=0.1)
    for part in (losses[:30], losses[30:50], losses[50:]):
        expected = here.query_many(part)
        answers = query_many(there, da.from_array(part, chunks=(7, 512)))
        assert_same(answers, expected)
        assert state_of(there) == state_of(here)


def test_no_rows_are_no_queries(client):
    guard = guard_of()
    answers = query_many(guard, da.zeros((0, N_SAMPLES), dtype=bool))
    assert answers.n_answered == 0 and not answers.halted and guard.n_answered == 0


def test_after_a_halt_nothing_is_asked(client):
    guard = guard_of()
    array = da.from_array(losses_of("binary"), chunks=(20, -1))
    assert query_many(guard, array).halted
    with pytest.raises(HoldoutExhausted):
        query_many(guard, array)


def test_a_halt_leaves_later_blocks_undone(client, tmp_path):
    losses = losses_of("binary")

    def traced(block, block_info=None):
        number = block_info[None]["chunk-location"][0]
        (tmp_path / str(number)).touch()
        return block

    array = da.from_array(losses, chunks=(5, -1)).map_blocks(traced, dtype=float, meta=losses[:0])
    answers = query_many(guard_of(), array, n_ahead=4)
    assert answers.halted
    # of 40 blocks the 16th halts; four were in work, and a batch of two more when one was done
    assert answers.n_answered // 5 == 15
    assert len(list(tmp_path.iterdir())) <= 16 + 4 + 2


@pytest.mark.parametrize("shards", ["whole", "three"])
def test_losses_that_lie_on_the_cluster_already_are_judged_there(client, shards):
    losses = losses_of("mixed")
    here, there = guard_of(), guard_of()
    array = da.from_array(losses, chunks=((40,) * 5, SHARDS[shards])).persist()
    assert_same(query_many(there, array), here.query_many(losses))
    assert state_of(there) == state_of(here)


@pytest.mark.parametrize("n_ahead", [1, 3, 1000])
def test_how_far_ahead_does_not_change_the_result(client, n_ahead):
    losses = losses_of("binary")
    here = guard_of()
    answers = query_many(guard_of(), da.from_array(losses, chunks=(20, -1)), n_ahead=n_ahead)
    assert_same(answers, here.query_many(losses))


# ---- packed losses, predictions --------------------------------------------------------------


@pytest.mark.parametrize("chunks", [-1, (7, 8, 1), 1])
@pytest.mark.parametrize(("bound", "epsilon"), [("mclt", 0.088), ("fixed-sequence", 0.15)])
def test_packed_losses_are_judged_as_the_local_ones(client, pack, chunks, bound, epsilon):
    words = pack(losses_of("binary"))
    here, there = guard_of(bound, epsilon), guard_of(bound, epsilon)
    array = da.from_array(words, chunks=(30, chunks))
    assert_same(query_many_packed(there, array), here.query_many_packed(words))
    assert state_of(there) == state_of(here)


def test_a_bit_past_the_last_sample_is_told_by_its_row(client, pack):
    words = pack(losses_of("binary"))
    words[47, -1] |= np.uint64(1 << 63)
    for chunks in (-1, (7, 8, 1)):
        guard = guard_of(epsilon=0.2)
        array = da.from_array(words, chunks=(30, chunks))
        message = "no bit set past n_samples = 1000, got one in row 47"
        with pytest.raises(ValueError, match=message):
            query_many_packed(guard, array)
        assert guard.n_answered == 30


@pytest.mark.parametrize("classes", [[0, 1], ["cat", "dog", "emu"]])
@pytest.mark.parametrize("shards", SHARDS)
def test_predictions_are_judged_as_the_local_ones(client, classes, shards):
    rng = np.random.default_rng(8)
    codes = rng.integers(0, len(classes), N_SAMPLES)
    wrong = losses_of("binary").astype(bool)
    predictions = np.array(classes)[(codes + wrong) % len(classes)]
    here, there = (Holdout(np.array(classes)[codes], guard_of()) for _ in "12")
    array = da.from_array(predictions, chunks=(40, SHARDS[shards]))
    answers = query_many(there, array)
    assert answers.halted
    assert_same(answers, here.query_many(predictions))
    assert state_of(there.guard) == state_of(here.guard)


def test_a_prediction_that_is_no_class_is_told_by_its_place_in_the_whole_array(client):
    predictions = losses_of("binary").astype(int)
    predictions[30, 500] = 7
    holdout = Holdout(np.zeros(N_SAMPLES, int), guard_of(epsilon=0.2), classes=[0, 1])
    array = da.from_array(predictions, chunks=(20, SHARDS["three"]))
    with pytest.raises(ValueError, match="known classes, got 7 at row 30, sample 500"):
        query_many(holdout, array)
    assert holdout.n_answered == 20


# ---- a stream of blocks ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bound", "epsilon", "halts"), [("mclt", 0.088, True), ("mclt", 0.2, False)]
)
def test_a_stream_has_the_answers_of_each_block_up_to_the_halt(client, pack, bound, epsilon, halts):
    losses = losses_of("binary").astype(bool)
    expected = guard_of(bound, epsilon).query_many(losses)
    for ask, rows in [(iter_query_many, losses), (iter_query_many_packed, pack(losses))]:
        blocks = list(ask(guard_of(bound, epsilon), da.from_array(rows, chunks=(30, -1))))
        assert [len(block) for block in blocks[:-1]] == [30] * (expected.n_answered // 30)
        assert [block.halted for block in blocks] == [False] * (len(blocks) - 1) + [halts]
        assert_array_equal(np.concatenate([block.values for block in blocks]), expected.values)
        assert_array_equal(np.concatenate([block.numbers for block in blocks]), expected.numbers)


def test_a_stream_begins_no_more_than_it_was_asked_for(client, tmp_path):
    losses = losses_of("binary")

    def traced(block, block_info=None):
        (tmp_path / str(block_info[None]["chunk-location"][0])).touch()
        return block

    def n_begun():
        before = -1
        while before != len(list(tmp_path.iterdir())):
            before = len(list(tmp_path.iterdir()))
            time.sleep(0.5)
        return before

    array = da.from_array(losses, chunks=(5, -1)).map_blocks(traced, dtype=float, meta=losses[:0])
    guard = guard_of(epsilon=0.2)
    stream = iter_query_many(guard, array, n_ahead=4)
    assert n_begun() == 0
    for n_taken in (1, 2, 3):
        assert len(next(stream)) == 5
        assert n_taken <= n_begun() <= n_taken + 4
    assert guard.n_answered == 15
    stream.close()
    assert guard.n_answered == 15 and n_begun() <= 7


def test_a_stream_of_a_spent_guard_is_refused_at_once(client):
    guard = guard_of()
    array = da.from_array(losses_of("binary"), chunks=(20, -1))
    assert list(iter_query_many(guard, array))[-1].halted
    with pytest.raises(HoldoutExhausted):
        iter_query_many(guard, array)


# ---- nothing that was counted is lost ------------------------------------------------------


def told_before(losses, **parameters):
    """The answers to these losses, asked of a guard alone."""
    return guard_of(**parameters).query_many(losses)


@pytest.mark.parametrize("shards", ["whole", "three"])
@pytest.mark.parametrize("bad", [1.5, np.nan])
def test_a_value_that_is_no_loss_is_told_by_its_place_in_the_whole_array(client, shards, bad):
    losses = losses_of("binary")
    losses[30, 500] = bad
    array = da.from_array(losses, chunks=(20, SHARDS[shards]))
    guard = guard_of(epsilon=0.2)
    place = f"losses must be in \\[0, 1\\], got {bad} at row 30, sample 500\n"
    with pytest.raises(ValueError, match=place) as caught:
        query_many(guard, array)
    assert guard.n_answered == 20 and not guard.halted
    assert_same(caught.value.answers, told_before(losses[:20], epsilon=0.2))
    # and where nobody knows how many rows a block has
    array = array[da.ones(len(losses), dtype=bool, chunks=20)]
    with pytest.raises(ValueError, match=place):
        query_many(guard_of(epsilon=0.2), array)


def test_an_error_in_a_worker_hands_over_what_was_counted(client):
    losses = losses_of("binary")

    def fails(block, block_info=None):
        if block_info[None]["chunk-location"][0] == 6:
            raise ZeroDivisionError("the seventh block")
        return block

    array = da.from_array(losses, chunks=(5, -1)).map_blocks(fails, dtype=float, meta=losses[:0])
    guard = guard_of(epsilon=0.2)
    with pytest.raises(ZeroDivisionError, match="the seventh block") as caught:
        query_many(guard, array)
    assert_same(caught.value.answers, told_before(losses[:30], epsilon=0.2))
    assert "the answers counted before it, 30, are its" in caught.value.__notes__[0]
    assert state_of(guard) == state_of(asked(losses[:30]))


def asked(losses):
    guard = guard_of(epsilon=0.2)
    guard.query_many(losses)
    return guard


@pytest.mark.parametrize("epsilon", [0.2, 0.088])  # adopted, or fetched and judged
def test_an_interrupt_hands_over_what_was_counted_and_nothing_else(client, monkeypatch, epsilon):
    """It comes in the guard's own work on the 12th block, when it knows more than it may tell."""
    losses, blocks = losses_of("binary"), []

    def interrupted(guard, partials, *, fetch, whole=RadaBound.take):
        blocks.append(1)
        if len(blocks) == 12:
            raise KeyboardInterrupt
        return whole(guard, partials, fetch=fetch)

    monkeypatch.setattr(RadaBound, "take", interrupted)
    with pytest.raises(KeyboardInterrupt) as caught:
        query_many(guard_of(epsilon=epsilon), da.from_array(losses, chunks=(5, -1)))
    assert_same(caught.value.answers, told_before(losses[:55], epsilon=epsilon))
    frame, held = caught.value.__traceback__, []
    while frame is not None:
        if "integrations" in frame.tb_frame.f_code.co_filename:
            held += frame.tb_frame.f_locals.values()
        frame = frame.tb_next
    assert held and not any(isinstance(value, Partial) for value in held)


HALTS_IT = """
import sys
import numpy as np
from radabound_fast import RadaBound
with RadaBound.open(sys.argv[1]) as guard:
    rng = np.random.default_rng(1)
    guard.query_many(rng.random((2000, guard.n_samples)) < 0.5)
    assert guard.halted
"""


@pytest.mark.parametrize("shards", ["whole", "three"])
def test_a_guard_that_another_process_halts_returns_what_was_answered(
    client, tmp_path, monkeypatch, shards
):
    losses, blocks = losses_of("binary"), []
    path = tmp_path / "guard.db"
    parameters = {"epsilon": 0.12, "delta": 0.1, "n_vectors": N_VECTORS, "bound": "mclt"}

    def after_another(guard, partials, *, fetch, whole=RadaBound.take):
        blocks.append(1)
        if len(blocks) == 4:
            subprocess.run([sys.executable, "-c", HALTS_IT, str(path)], check=True)
        return whole(guard, partials, fetch=fetch)

    monkeypatch.setattr(RadaBound, "take", after_another)
    with RadaBound.open(path, N_SAMPLES, seed=SEED, **parameters) as guard:
        answers = query_many(guard, da.from_array(losses, chunks=(20, SHARDS[shards])))
        assert_array_equal(answers.values, told_before(losses[:60], epsilon=0.12).values)
        assert answers.halted and answers.n_answered == 60
        assert answers.n_answered == guard.n_answered > 60
        assert answers.complexity == guard.complexity
        with pytest.raises(HoldoutExhausted, match="spent"):
            query_many(guard, da.from_array(losses, chunks=(20, -1)))


# ---- a first answer that is withheld -------------------------------------------------------


def test_a_guard_that_can_answer_nothing_says_what_would_work_before_any_work(client, tmp_path):
    def touched(block):
        (tmp_path / "touched").touch()
        return block

    losses = losses_of("binary")
    array = da.from_array(losses, chunks=(20, -1)).map_blocks(touched, meta=losses[:0])
    guard = guard_of(epsilon=0.01)
    with pytest.raises(HoldoutExhausted, match="guard can answer no query.*; mclt needs epsilon"):
        query_many(guard, array)
    assert not guard.halted and not (tmp_path / "touched").exists()


def test_a_first_answer_that_is_withheld_says_what_would_work(client):
    guard = next(  # enough for losses of little complexity, if for any
        guard
        for guard in (guard_of(epsilon=e) for e in np.arange(0.02, 1, 0.002))
        if guard.budget > 0
    )
    with pytest.raises(HoldoutExhausted, match="withheld the first answer; mclt needs") as caught:
        query_many(guard, da.from_array(losses_of("binary"), chunks=(20, -1)))
    assert guard.halted and caught.value.n_answered == 0


# ---- what cannot be asked ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("guard", "array", "error", "message"),
    [
        (Ladder(N_SAMPLES, step=0.1, delta=0.1), da.zeros((5, N_SAMPLES)), TypeError, "got Ladder"),
        (
            Ladder(np.arange(N_SAMPLES) % 2, step=0.1, delta=0.1),
            da.zeros((5, N_SAMPLES)),
            TypeError,
            "guard must be a RadaBound, or a Holdout with one, got Ladder",
        ),
        (guard_of(), np.zeros((5, N_SAMPLES)), TypeError, "must be a dask array, got ndarray"),
        (guard_of(), da.zeros((5, 999)), ValueError, r"losses must have shape \(k, 1000\)"),
        (guard_of(), da.zeros(N_SAMPLES), ValueError, r"losses must have shape \(k, 1000\)"),
        (
            guard_of(),
            da.zeros((5, N_SAMPLES), chunks=(5, 500)),
            ValueError,
            "losses must be cut along the samples at multiples of 64, got chunks",
        ),
    ],
)
def test_what_cannot_be_asked_is_refused(client, guard, array, error, message):
    with pytest.raises(error, match=message):
        query_many(guard, array)
    assert guard.n_answered == 0


@pytest.mark.skipif(os.name == "nt", reason="there is no SIGKILL")
def test_a_worker_killed_on_the_way_changes_nothing(client, tmp_path):
    losses, killed = losses_of("binary"), tmp_path / "killed"

    def slow(block, block_info=None):
        while block_info[None]["chunk-location"][0] >= 10 and not killed.exists():
            time.sleep(0.01)
        return block

    array = da.from_array(losses, chunks=(5, -1)).map_blocks(slow, dtype=float, meta=losses[:0])
    here, there = guard_of(epsilon=0.12), guard_of(epsilon=0.12)
    workers = list(client.run(os.getpid).values())
    told = []
    run = threading.Thread(target=lambda: told.append(query_many(there, array, client=client)))
    run.start()
    while there.n_answered < 20:
        time.sleep(0.01)
    os.kill(workers[0], signal.SIGKILL)
    killed.touch()
    run.join(timeout=120)
    assert workers[0] not in client.run(os.getpid).values()
    assert_same(told[0], here.query_many(losses))
    assert state_of(there) == state_of(here)


def candidate_losses(seed):
    return np.random.default_rng(seed).random(N_SAMPLES) < 0.2


@pytest.mark.skipif(not find_spec("joblib"), reason="joblib is not installed")
def test_joblib_fits_on_the_cluster_and_the_guard_stays_here(client):
    from joblib import parallel_config

    from radabound_fast.integrations.joblib import guarded_map

    told = []
    for backend in ("sequential", "dask"):
        holdout = Holdout(np.zeros(N_SAMPLES, bool), guard_of(epsilon=0.1), classes=[0, 1])
        with parallel_config(backend=backend):
            answers = list(guarded_map(holdout, candidate_losses, range(150)))
        assert holdout.halted
        told.append([(candidate, answer.value) for candidate, answer in answers])
    assert told[0] == told[1] and 0 < len(told[0]) < 150
