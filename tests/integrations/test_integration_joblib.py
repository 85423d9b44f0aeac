"""guarded_map: the same answers and the same halt, whoever fits and however fast."""

import contextlib
import itertools
import pickle
import re
import sys
import threading
import time
from importlib.util import find_spec

import numpy as np
import pytest

if not find_spec("joblib"):
    pytest.skip("joblib is not installed", allow_module_level=True)

from radabound_fast import DeclaredSearch, FixedSequence, GuessAndCheck, HoldoutExhausted, RadaBound
from radabound_fast.integrations import joblib as module
from radabound_fast.integrations.joblib import guarded_map

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


GIVEN = {"epsilon": 0.08, "delta": 0.1, "bound": "mclt", "seed": 1}


def guard_of(**parameters):
    return RadaBound(LABELS, **(GIVEN | parameters))


def noisy(candidate):
    """Labels with a fifth of them flipped; earlier candidates take longer."""
    time.sleep(0.002 * (candidate % 3 == 0))
    flipped = np.random.default_rng(candidate).random(N_SAMPLES) < 0.2
    return LABELS ^ flipped


def in_a_plain_loop(guard, candidates):
    told = []
    for candidate in candidates:
        try:
            told.append((candidate, guard.query(noisy(candidate)).value))
        except HoldoutExhausted:
            break
    return told


@pytest.mark.parametrize("engine", ENGINES)
def test_answers_and_halt_are_those_of_a_plain_loop(engine):
    alone, guard = guard_of(), guard_of()
    expected = in_a_plain_loop(alone, range(40))
    assert alone.halted and len(expected) == N_ANSWERED
    told = [
        (candidate, answer.value)
        for candidate, answer in guarded_map(guard, noisy, range(40), **engine)
    ]
    assert told == expected
    assert guard.halted and guard.n_answered == N_ANSWERED
    assert guard.complexity == alone.complexity


@pytest.mark.parametrize("engine", ENGINES)
def test_without_a_halt_every_candidate_is_answered_in_order(engine):
    guard = guard_of(epsilon=0.5)
    told = [candidate for candidate, _ in guarded_map(guard, noisy, range(30), **engine)]
    assert told == list(range(30))
    assert not guard.halted


def test_names_in_another_order_are_the_same_candidate():
    search = DeclaredSearch(LABELS, {"a": [1, 2], "b": [3, 4]}, delta=0.1)
    candidates = [{"a": 1, "b": 4}, {"b": 4, "a": 1}]
    told = list(guarded_map(search, lambda candidate: noisy(candidate["b"]), candidates))
    assert [candidate for candidate, _ in told] == candidates
    assert told[0][1] == told[1][1] and search.n_answered == 1


def test_a_halt_cancels_what_is_queued():
    fitted = []

    def slow(candidate):
        fitted.append(candidate)
        time.sleep(0.002)
        return noisy(candidate)

    engine = {"n_jobs": 2, "backend": "threading"}
    n_threads = threading.active_count()
    # they have no end: only what is cancelled ends
    assert len(list(guarded_map(guard_of(), slow, itertools.count(), **engine))) == N_ANSWERED
    n_fitted = len(fitted)
    in_time = time.monotonic() + 30
    while threading.active_count() > n_threads and time.monotonic() < in_time:
        time.sleep(0.01)
    assert threading.active_count() <= n_threads
    assert len(fitted) <= n_fitted + 2  # those that were at work


def test_closing_the_generator_stops_the_search():
    guard = guard_of(epsilon=0.5)
    search = guarded_map(guard, noisy, itertools.count(), n_jobs=2, backend="threading")
    assert next(search)[0] == 0
    search.close()
    assert guard.n_answered == 1 and not guard.halted


def test_candidates_may_have_no_end():
    guard = guard_of()
    assert len(list(guarded_map(guard, noisy, itertools.count()))) == N_ANSWERED


def test_a_spent_guard_is_refused_before_anything_is_fitted():
    guard = guard_of()
    list(guarded_map(guard, noisy, range(40)))

    with pytest.raises(HoldoutExhausted, match="had halted before"):
        guarded_map(guard, never, range(2))


def test_a_guard_without_labels_is_refused():
    guard = RadaBound(N_SAMPLES, epsilon=0.1, delta=0.1)
    with pytest.raises(TypeError, match="guard must be made on labels, got a RadaBound of losses"):
        guarded_map(guard, noisy, range(2))


def test_an_error_in_a_worker_reaches_the_caller_and_costs_nothing_more():
    def fails(candidate):
        if candidate == 2:
            raise ZeroDivisionError("the third")
        return noisy(candidate)

    guard = guard_of()
    with pytest.raises(ZeroDivisionError, match="the third"):
        list(guarded_map(guard, fails, range(5), n_jobs=2, backend="loky"))
    assert guard.n_answered <= 2 and not guard.halted


def test_a_worker_cannot_be_sent_the_guard():
    guard = guard_of()

    def peeks(candidate):
        return guard.query(noisy(candidate))

    with pytest.raises(Exception, match="pickle") as caught:
        list(guarded_map(guard, peeks, range(2), n_jobs=2, backend="loky"))
    assert "send predictions or packed losses (pack_losses) to the process" in repr(
        caught.value.__cause__
    )
    assert guard.n_answered == 0


def test_guesses_come_with_the_predictions():
    check = GuessAndCheck(LABELS, epsilon=0.1, delta=0.1)

    def guessed(candidate):
        return noisy(candidate), 0.2

    told = list(guarded_map(check, guessed, range(5), guesses=True))
    assert [answer.value for _, answer in told] == [0.2] * 5


def test_guesses_that_are_missing_are_asked_for_before_anything_is_counted():
    guard = GuessAndCheck(LABELS, epsilon=0.1, delta=0.1)
    with pytest.raises(ValueError, match="guesses must be True with GuessAndCheck"):
        guarded_map(guard, never, range(1))
    message = r"fit_predict must return \(predictions, guess\), got ndarray"
    with pytest.raises(TypeError, match=message):
        list(guarded_map(guard, noisy, range(1), guesses=True))
    assert guard.n_answered == 0


# ---- nothing that was counted is lost ------------------------------------------------------


@pytest.mark.thorough
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("error", [ZeroDivisionError, KeyboardInterrupt])
def test_an_error_on_the_way_hands_over_what_was_counted(engine, error):
    class Fails(RadaBound):
        """Stands for whatever interrupts this process: the 10th query."""

        def query(self, y_pred):
            if self.n_answered == 9:
                raise error("the tenth")
            return super().query(y_pred)

    expected = in_a_plain_loop(guard_of(), range(9))
    guard = Fails(LABELS, **GIVEN)
    with pytest.raises(error, match="the tenth") as caught:
        list(guarded_map(guard, noisy, range(40), **engine))
    told = [(candidate, answer.value) for candidate, answer in caught.value.answers]
    assert told == expected
    assert "the answers counted before it, 9, are its attribute" in caught.value.__notes__[0]


def test_an_error_of_the_bar_hands_over_the_answer_before_it(monkeypatch):
    @contextlib.contextmanager
    def fails(total, what, *, quiet):
        def advance(n):
            raise KeyboardInterrupt

        yield advance

    monkeypatch.setattr(module._progress, "progress", fails)
    with pytest.raises(KeyboardInterrupt) as caught:
        list(guarded_map(guard_of(), noisy, range(5), progress=True))
    assert [candidate for candidate, _ in caught.value.answers] == [0]


def test_a_generator_that_is_closed_raises_nothing():
    search = guarded_map(guard_of(), noisy, range(5))
    next(search)
    search.close()


# ---- a first answer that is withheld -------------------------------------------------------


def never(candidate):
    raise AssertionError("fitted")


def test_a_guard_that_can_answer_nothing_says_what_would_work_before_anything_is_fitted():
    guard = guard_of(epsilon=0.01)
    needs = "mclt needs epsilon [0-9.]+ with 1,000 samples or [0-9,]+ samples at epsilon 0.01"
    with pytest.raises(HoldoutExhausted, match=f"guard can answer no query.*; {needs}") as caught:
        guarded_map(guard, never, range(2))
    assert not guard.halted and caught.value.n_answered == 0
    with pytest.raises(HoldoutExhausted):  # the same in a plain loop
        guard.query(noisy(0))
    with pytest.raises(HoldoutExhausted, match=f"guard had halted before.*; {needs}"):
        guarded_map(guard, never, range(2))


# what is refused at first although others would be answered, and what would work
REFUSED_AT_FIRST = {
    "mclt": (lambda: guard_of(epsilon=0.042), "mclt needs epsilon 0.04499 with 1,000 samples"),
    "two-sided": (
        lambda: guard_of(epsilon=0.05, two_sided=True),
        "mclt needs more samples or a larger epsilon: see radabound_fast.plan",
    ),
    "guess": (
        lambda: GuessAndCheck(LABELS, epsilon=0.005, delta=0.01),
        "GuessAndCheck needs epsilon .* a first query of error rate 0.2",
    ),
    "fixed order": (
        lambda: FixedSequence(LABELS, epsilon=0.001, delta=0.1, n_vectors=0),
        "FixedSequence needs more samples or a larger epsilon",
    ),
}


@pytest.mark.parametrize("case", REFUSED_AT_FIRST)
def test_a_first_answer_that_is_withheld_says_what_would_work(case):
    make, needs = REFUSED_AT_FIRST[case]
    guard = make()
    assert guard.can_answer  # not refused before it is asked

    def fit_predict(candidate):
        return (noisy(candidate), 0.2) if guard.needs else noisy(candidate)

    guesses = guard.needs == "guess"
    with pytest.raises(
        HoldoutExhausted, match=f"guard withheld the first answer; {needs}"
    ) as caught:
        list(guarded_map(guard, fit_predict, range(5), guesses=guesses))
    assert guard.halted and caught.value.n_answered == 0 and caught.value.answers == []
    if case == "mclt":
        assert caught.value.complexity == guard.complexity > 0.0
        assert caught.value.threshold == guard.threshold < caught.value.delta_prime
    again = pickle.loads(pickle.dumps(caught.value))
    assert str(again) == str(caught.value) and vars(again) == vars(caught.value)


def test_what_needs_no_signs_is_answered_by_a_guard_whose_complexity_vouches_for_nothing():
    guard = FixedSequence(LABELS, epsilon=0.06, delta=0.1, n_vectors=8)
    assert guard.budget < 0 < guard.n_left()
    assert len(list(guarded_map(guard, noisy, [0]))) == 1


def test_a_first_guess_without_room_is_an_error_that_names_one_with_room_and_spends_nothing():
    check = GuessAndCheck(LABELS, epsilon=0.03, delta=0.01)
    with pytest.raises(ValueError, match=r"guess must be at most 0\.0\d+ .* got 0\.2"):
        list(guarded_map(check, lambda c: (noisy(c), 0.2), [0], guesses=True))
    assert not check.halted and check.affordable(0.02) > 0


def test_what_would_work_does_work_and_does_not_tell_the_mean():
    def flipped(share):
        return LABELS ^ (np.random.default_rng(3).random(N_SAMPLES) < share)

    messages = set()
    for share in (0.15, 0.45):
        with pytest.raises(HoldoutExhausted) as caught:
            list(guarded_map(guard_of(epsilon=0.04), flipped, [share]))
        messages.add(str(caught.value))
    assert len(messages) == 1
    epsilon = float(re.search(r"needs epsilon ([0-9.]+)", messages.pop())[1])
    assert guard_of(epsilon=epsilon).query(flipped(0.15)).number == 1


@pytest.mark.parametrize("tty", [False, True])
@pytest.mark.parametrize("total", ["of 40 ", ""])
def test_progress_counts_the_answers_with_and_without_a_terminal(monkeypatch, capsys, tty, total):
    if tty and not find_spec("tqdm"):
        pytest.skip("tqdm is not installed")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: tty)
    monkeypatch.setattr(module._progress, "SECONDS", 0.0)
    candidates = range(40) if total else iter(range(40))
    list(guarded_map(guard_of(), noisy, candidates, progress=True))
    told = capsys.readouterr().err
    if not tty:
        assert told.splitlines()[-1] == f"{N_ANSWERED} {total}answers, 0 s"
    else:
        # a bar that is gone at the end
        assert ("0/40 [" if total else "0 answers [") in told


@pytest.mark.slow  # Ray gives its own processes 30 s to start, whatever else the machine does
@pytest.mark.skipif(not find_spec("ray"), reason="ray is not installed")
@pytest.mark.filterwarnings("ignore")  # Ray's own, of many kinds
def test_ray_fits_and_the_guard_stays_here():
    import ray
    from joblib import parallel_config
    from ray.util.joblib import register_ray

    register_ray()
    ray.init(num_cpus=2, include_dashboard=False)
    try:
        guard = guard_of()
        with parallel_config(backend="ray"):
            told = list(guarded_map(guard, noisy, range(40), n_jobs=2))
    finally:
        ray.shutdown()
    assert len(told) == guard.n_answered == N_ANSWERED


@pytest.mark.skipif(not find_spec("distributed"), reason="dask[distributed] is not installed")
def test_dask_fits_and_the_guard_stays_here():
    from distributed import Client
    from joblib import parallel_config

    with Client(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None):
        guard = guard_of()
        with parallel_config(backend="dask"):
            answers = list(guarded_map(guard, noisy, range(40)))
    assert len(answers) == guard.n_answered == N_ANSWERED


@pytest.mark.skipif(not find_spec("hyperopt"), reason="hyperopt is not installed")
@pytest.mark.filterwarnings("ignore")  # hyperopt's own: it is old
def test_the_line_for_hyperopt_stops_its_search():
    from hyperopt import Trials, fmin, hp, rand

    guard, trials = guard_of(), Trials()

    def objective(candidate):
        try:
            return {"status": "ok", "loss": guard.query(noisy(int(candidate))).value}
        except HoldoutExhausted:
            return {"status": "fail"}

    fmin(
        objective,
        hp.quniform("candidate", 0, 1e6, 1),
        algo=rand.suggest,
        max_evals=200,
        trials=trials,
        early_stop_fn=lambda trials: (guard.halted, []),
        rstate=np.random.default_rng(0),
        show_progressbar=False,
    )
    assert guard.halted
    assert len(trials.trials) == guard.n_answered + 1
