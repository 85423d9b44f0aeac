"""query_many on a cluster of two processes: the local result and state, bit for bit."""

import os
import signal
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

from radabound_fast import Holdout, HoldoutExhausted, RadaBound, reference
from radabound_fast.integrations import _shards
from radabound_fast.integrations.dask import query_many
from radabound_fast.mechanisms import Ladder

N_SAMPLES, N_VECTORS, SEED = 1000, 12, 5
# whole rows; shards at multiples of 64 of which the last is short; one word a shard
SHARDS = {"whole": -1, "three": (448, 512, 40), "words": (64,) * 15 + (40,)}


@pytest.fixture(scope="module")
def client():
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
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
    for name, column in expected._asdict().items():
        assert_array_equal(answers._asdict()[name], column)
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
    for epsilon, expected in [(0.2, []), (0.088, [20])]:
        fetched.clear()
        query_many(guard_of(epsilon=epsilon), da.from_array(losses, chunks=(20, -1)))
        assert fetched == expected


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
    assert answers.n_answered == 0 and not answers.halted and guard.n_queries == 0


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


@pytest.mark.parametrize("bad", [1.5, np.nan])
def test_a_value_that_is_no_loss_is_an_error_and_no_answer(client, bad):
    losses = losses_of("binary")
    losses[30, 500] = bad
    guard = guard_of(epsilon=0.2)
    with pytest.raises(ValueError, match=r"losses must be in \[0, 1\].*at row 10, sample 500"):
        query_many(guard, da.from_array(losses, chunks=(20, -1)))
    assert guard.n_queries == 20 and not guard.halted


@pytest.mark.parametrize(
    ("guard", "array", "error", "message"),
    [
        (Ladder(N_SAMPLES, step=0.1, delta=0.1), da.zeros((5, N_SAMPLES)), TypeError, "got Ladder"),
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
    assert guard.n_queries == 0


@pytest.mark.skipif(os.name == "nt", reason="there is no SIGKILL")
def test_a_worker_killed_on_the_way_changes_nothing(client):
    losses = losses_of("binary")

    def slow(block):
        time.sleep(0.05)
        return block

    array = da.from_array(losses, chunks=(5, -1)).map_blocks(slow, dtype=float, meta=losses[:0])
    here, there = guard_of(epsilon=0.12), guard_of(epsilon=0.12)
    workers = list(client.run(os.getpid).values())
    told = []
    run = threading.Thread(target=lambda: told.append(query_many(there, array, client=client)))
    run.start()
    while there.n_queries < 20:
        time.sleep(0.01)
    os.kill(workers[0], signal.SIGKILL)
    assert run.is_alive()  # the kill came on the way
    run.join(timeout=60)
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


# ---- what the workers do, without a cluster ------------------------------------------------


@pytest.mark.parametrize("kind", ["binary", "real", "mixed"])
@pytest.mark.parametrize("shards", [[1000], [448, 960, 1000], [64, 1000]])
def test_partial_sums_add_up_to_the_reference(kind, shards):
    losses = losses_of(kind, n_queries=60)
    parts, start = [], 0
    for stop in shards:
        rows = _shards.prepare(losses[:, start:stop])
        signs = (SEED, N_SAMPLES, N_VECTORS, len(shards) == 1)
        parts.append(_shards.partial_sums(rows, signs, start, whole=len(shards) == 1))
        start = stop
    sums = _shards.add_up(parts)
    units = np.rint(losses * 2.0**sums.shift).astype(np.int64)
    expected = reference.signed_sums(reference.signs(SEED, N_VECTORS, N_SAMPLES), units)
    assert sums.shift == (0 if kind == "binary" else 24)
    assert_array_equal(sums.maxima, expected.max(axis=0))
    assert_array_equal(sums.minima, expected.min(axis=0))
    assert_array_equal(sums.totals, units.sum(axis=1))


@pytest.mark.parametrize("kind", ["binary", "mixed"])
@pytest.mark.parametrize("dtype", [bool, np.int16, np.float32, np.float64])
def test_shards_join_to_the_rows_they_were_cut_from(kind, dtype, pack):
    """Floats stay floats even where all are 0 or 1: to the gate they are not declared."""
    losses = losses_of(kind, n_queries=60)
    if kind == "mixed" and dtype in (bool, np.int16):
        pytest.skip("real-valued losses are no integers")
    losses = losses.astype(dtype)
    cut = [_shards.prepare(losses[:, a:b]) for a, b in [(0, 448), (448, 960), (960, 1000)]]
    rows, packed = _shards.join(cut)
    assert packed == (dtype in (bool, np.int16))
    assert packed or rows.dtype.kind == "f"
    assert_array_equal(rows, pack(losses) if packed else losses)
