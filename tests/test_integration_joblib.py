"""guarded_map: the same answers and the same halt, whoever fits and however fast."""

import doctest
import itertools
import threading
import time
from importlib.util import find_spec

import numpy as np
import pytest

if not find_spec("joblib"):
    pytest.skip("joblib is not installed", allow_module_level=True)

from radabound_fast import Holdout, HoldoutExhausted, RadaBound
from radabound_fast.integrations import joblib as module
from radabound_fast.integrations.joblib import guarded_map
from radabound_fast.mechanisms import GuessAndCheck

N_SAMPLES = 1000
LABELS = np.arange(N_SAMPLES) % 2
# this many candidates of `noisy` are answered before the halt: the plain loop below says so
N_ANSWERED = 22

# where the candidates are fitted; multiprocessing gets them in blocks
ENGINES = [
    {"n_jobs": 1},
    {"n_jobs": 2, "backend": "loky"},
    {"n_jobs": 1, "backend": "threading"},
    {"n_jobs": 2, "backend": "threading"},
    pytest.param(
        {"n_jobs": 2, "backend": "multiprocessing"},
        marks=pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning"),
    ),
]


def holdout_of(**parameters):
    given = {"epsilon": 0.08, "delta": 0.1, "bound": "mclt", "seed": 1} | parameters
    return Holdout(LABELS, **given)


def noisy(candidate):
    """Labels with a fifth of them flipped; earlier candidates take longer."""
    time.sleep(0.002 * (candidate % 3 == 0))
    flipped = np.random.default_rng(candidate).random(N_SAMPLES) < 0.2
    return LABELS ^ flipped


def in_a_plain_loop(holdout, candidates):
    told = []
    for candidate in candidates:
        try:
            told.append((candidate, holdout.query(noisy(candidate)).value))
        except HoldoutExhausted:
            break
    return told


@pytest.mark.parametrize("engine", ENGINES)
def test_answers_and_halt_are_those_of_a_plain_loop(engine):
    alone, holdout = holdout_of(), holdout_of()
    expected = in_a_plain_loop(alone, range(40))
    assert alone.halted and len(expected) == N_ANSWERED
    told = [
        (candidate, answer.value)
        for candidate, answer in guarded_map(holdout, noisy, range(40), **engine)
    ]
    assert told == expected
    assert holdout.halted and holdout.n_queries == N_ANSWERED
    assert holdout.complexity == alone.complexity


@pytest.mark.parametrize("engine", ENGINES)
def test_without_a_halt_every_candidate_is_answered_in_order(engine):
    holdout = holdout_of(epsilon=0.5)
    told = [candidate for candidate, _ in guarded_map(holdout, noisy, range(30), **engine)]
    assert told == list(range(30))
    assert not holdout.halted


def test_a_halt_cancels_what_is_queued():
    fitted = []

    def slow(candidate):
        fitted.append(candidate)
        time.sleep(0.002)
        return noisy(candidate)

    engine = {"n_jobs": 2, "backend": "threading"}
    assert len(list(guarded_map(holdout_of(), slow, range(2000), **engine))) == N_ANSWERED
    assert len(fitted) < 200
    assert threading.active_count() < 20


def test_closing_the_generator_stops_the_search():
    holdout = holdout_of(epsilon=0.5)
    search = guarded_map(holdout, noisy, itertools.count(), n_jobs=2, backend="threading")
    assert next(search)[0] == 0
    search.close()
    assert holdout.n_queries == 1 and not holdout.halted


def test_candidates_may_have_no_end():
    holdout = holdout_of()
    assert len(list(guarded_map(holdout, noisy, itertools.count()))) == N_ANSWERED


def test_a_spent_holdout_is_refused_before_anything_is_fitted():
    holdout = holdout_of()
    list(guarded_map(holdout, noisy, range(40)))

    def never(candidate):
        raise AssertionError("fitted")

    with pytest.raises(HoldoutExhausted, match="had halted before"):
        guarded_map(holdout, never, range(2))


def test_a_guard_without_labels_is_refused():
    guard = RadaBound(N_SAMPLES, epsilon=0.1, delta=0.1)
    with pytest.raises(TypeError, match="holdout must be a Holdout.*got RadaBound"):
        guarded_map(guard, noisy, range(2))


def test_an_error_in_a_worker_reaches_the_caller_and_costs_nothing_more():
    def fails(candidate):
        if candidate == 2:
            raise ZeroDivisionError("the third")
        return noisy(candidate)

    holdout = holdout_of()
    with pytest.raises(ZeroDivisionError, match="the third"):
        list(guarded_map(holdout, fails, range(5), n_jobs=2, backend="loky"))
    assert holdout.n_queries <= 2 and not holdout.halted


def test_a_worker_cannot_be_sent_the_holdout():
    holdout = holdout_of()

    def peeks(candidate):
        return holdout.query(noisy(candidate))

    with pytest.raises(Exception, match="pickle") as caught:
        list(guarded_map(holdout, peeks, range(2), n_jobs=2, backend="loky"))
    assert "send predictions to the process that owns it" in repr(caught.value.__cause__)
    assert holdout.n_queries == 0


def test_guesses_come_with_the_predictions():
    check = GuessAndCheck(N_SAMPLES, epsilon=0.1, delta=0.1)

    def guessed(candidate):
        return noisy(candidate), 0.2

    told = list(guarded_map(Holdout(LABELS, check), guessed, range(5), guesses=True))
    assert [answer.value for _, answer in told] == [0.2] * 5
    with pytest.raises(ValueError, match="guess must be in"):
        list(guarded_map(Holdout(LABELS, check), noisy, range(1)))


@pytest.mark.skipif(not find_spec("tqdm"), reason="tqdm is not installed")
def test_a_bar_counts_the_answers(capsys):
    list(guarded_map(holdout_of(), noisy, range(40), progress=True))
    assert f"{N_ANSWERED}/40" in capsys.readouterr().err


@pytest.mark.skipif(not find_spec("ray"), reason="ray is not installed")
@pytest.mark.filterwarnings("ignore")  # Ray's own, of many kinds
def test_ray_fits_and_the_guard_stays_here():
    import ray
    from joblib import parallel_config
    from ray.util.joblib import register_ray

    register_ray()
    ray.init(num_cpus=2, include_dashboard=False)
    try:
        holdout = holdout_of()
        with parallel_config(backend="ray"):
            told = list(guarded_map(holdout, noisy, range(40), n_jobs=2))
    finally:
        ray.shutdown()
    assert len(told) == holdout.n_queries == N_ANSWERED


@pytest.mark.skipif(not find_spec("hyperopt"), reason="hyperopt is not installed")
@pytest.mark.filterwarnings("ignore")  # hyperopt's own: it is old
def test_the_line_for_hyperopt_stops_its_search():
    from hyperopt import Trials, fmin, hp, rand

    holdout, trials = holdout_of(), Trials()

    def objective(candidate):
        try:
            return {"status": "ok", "loss": holdout.query(noisy(int(candidate))).value}
        except HoldoutExhausted:
            return {"status": "fail"}

    fmin(
        objective,
        hp.quniform("candidate", 0, 1e6, 1),
        algo=rand.suggest,
        max_evals=200,
        trials=trials,
        early_stop_fn=lambda trials: (holdout.halted, []),
        rstate=np.random.default_rng(0),
        show_progressbar=False,
    )
    assert holdout.halted
    assert len(trials.trials) == holdout.n_queries + 1


def test_the_example_in_the_docstring_is_true():
    assert doctest.testmod(module) == (0, 5)
