"""Optuna: one guard under many threads, an exact count, one halt, and no value after it."""

import threading
import time
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

if not find_spec("optuna"):
    pytest.skip("optuna is not installed", allow_module_level=True)

import optuna
from optuna.trial import TrialState

from radabound_fast import DeclaredSearch, GuessAndCheck, HoldoutExhausted, RadaBound
from radabound_fast.integrations import _trackers as trackers
from radabound_fast.integrations import optuna as module
from radabound_fast.integrations.optuna import guarded_objective

N_SAMPLES = 1000
LABELS = np.arange(N_SAMPLES) % 2
EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(autouse=True)
def quiet():
    optuna.logging.set_verbosity(optuna.logging.ERROR)


def guard_of(**parameters):
    given = {"epsilon": 0.08, "delta": 0.1, "bound": "mclt", "seed": 1} | parameters
    return RadaBound(LABELS, **given)


def noisy(trial):
    """Labels of which a share is flipped; no two trials take equally long."""
    rate = trial.suggest_float("rate", 0.1, 0.3)
    time.sleep(0.001 * (trial.number % 5))
    return LABELS ^ (np.random.default_rng(trial.number).random(N_SAMPLES) < rate)


def study_of():
    return optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))


@pytest.mark.parametrize("n_jobs", [1, 4])
def test_the_count_is_exact_and_after_the_halt_every_trial_is_pruned(n_jobs):
    guard, study = guard_of(), study_of()
    study.optimize(guarded_objective(guard, noisy), n_trials=200, n_jobs=n_jobs)
    complete = study.get_trials(states=[TrialState.COMPLETE])
    pruned = study.get_trials(states=[TrialState.PRUNED])
    assert guard.halted
    assert 0 < len(complete) == guard.n_answered < 100
    assert len(complete) + len(pruned) == len(study.trials)
    # the one that was withheld, and those that ran beside it or began before the study stopped
    assert 1 <= len(pruned) <= 2 * n_jobs
    assert [trial.value for trial in pruned] == [None] * len(pruned)
    assert all(not trial.user_attrs for trial in pruned)
    # every answer has a number of its own
    by_number = sorted(complete, key=lambda trial: trial.user_attrs["holdout_number"])
    numbers = [trial.user_attrs["holdout_number"] for trial in by_number]
    assert numbers == list(range(1, len(complete) + 1))
    # a second guard that is asked in this order says the same
    alone = guard_of()
    for trial in by_number:
        flipped = np.random.default_rng(trial.number).random(N_SAMPLES) < trial.params["rate"]
        answer = alone.query(LABELS ^ flipped)
        assert trial.value == answer.value
        assert trial.user_attrs["holdout_complexity"] == answer.complexity
        assert trial.user_attrs["holdout_half_width"] == 0.08


def test_trials_that_start_after_the_halt_are_not_fitted():
    guard, study = guard_of(), study_of()
    objective = guarded_objective(guard, noisy)
    study.optimize(objective, n_trials=200)
    n_trials = len(study.trials)

    def never(trial):
        raise AssertionError("fitted")

    with pytest.raises(HoldoutExhausted, match="had halted before"):
        guarded_objective(guard, never)
    study.optimize(objective, n_trials=10)
    assert len(study.trials) == n_trials + 1
    assert study.trials[-1].state is TrialState.PRUNED and not study.trials[-1].params


def test_trials_that_were_running_at_the_halt_are_pruned():
    """Four trials are fitted together; a guard that answers none of them sees them one by one."""
    guard, study = guard_of(epsilon=0.038), study_of()
    assert guard.query(LABELS).value == 0.0  # which adds no complexity
    together = threading.Barrier(4)

    def fits(trial):
        together.wait(timeout=30)  # so that any may come first
        return LABELS ^ (np.random.default_rng(trial.number).random(N_SAMPLES) < 0.3)

    study.optimize(guarded_objective(guard, fits), n_trials=4, n_jobs=4)
    assert [trial.state for trial in study.trials] == [TrialState.PRUNED] * 4
    assert guard.halted and guard.n_answered == 1


def test_ask_and_tell_prunes_without_a_loop_to_stop():
    study, guard = study_of(), guard_of()
    objective = guarded_objective(guard, noisy)
    with pytest.raises(optuna.TrialPruned, match="withheld"):
        for _ in range(200):
            trial = study.ask()
            study.tell(trial, objective(trial))
    assert len(objective.answers) == guard.n_answered > 0


# ---- a first answer that is withheld, and studies that are not asked -----------------------

NEEDS = "mclt needs epsilon [0-9.]+ with 1,000 samples"


def never(trial):
    raise AssertionError("fitted")


def test_a_guard_that_can_answer_nothing_says_what_would_work():
    with pytest.raises(HoldoutExhausted, match=f"guard can answer no query.*{NEEDS}"):
        guarded_objective(guard_of(epsilon=0.01), never)


@pytest.mark.parametrize("n_jobs", [1, 4])
def test_a_first_answer_that_is_withheld_ends_the_study_and_says_what_would_work(n_jobs):
    guard, study = guard_of(epsilon=0.036), study_of()
    objective = guarded_objective(guard, noisy)
    with pytest.raises(HoldoutExhausted, match=f"withheld the first answer; {NEEDS}"):
        study.optimize(objective, n_trials=200, n_jobs=n_jobs)
    assert {trial.state for trial in study.trials} == {TrialState.FAIL}
    assert len(study.trials) <= 3 * n_jobs
    assert guard.halted and objective.answers == []


@pytest.mark.parametrize(
    ("directions", "told"),
    [(["maximize"], "maximize"), (["maximize", "minimize"], "maximize, minimize")],
)
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_study_that_maximizes_an_error_is_refused_before_a_trial_is_fitted(
    directions, told, n_jobs
):
    guard, study = guard_of(), optuna.create_study(directions=directions)
    objective = guarded_objective(guard, never)
    with pytest.raises(ValueError, match=f"study must minimize objective 0.*got {told}$"):
        study.optimize(objective, n_trials=3, n_jobs=n_jobs)
    with pytest.raises(ValueError, match="study must minimize objective 0"):
        objective(study.ask())
    assert guard.n_answered == 0 and not guard.halted


@pytest.mark.parametrize("guessed", [False, True])
@pytest.mark.parametrize("others", [1, 2])
def test_the_guard_answers_objective_0_and_the_others_are_the_trial_s_own(guessed, others):
    guard = GuessAndCheck(LABELS, epsilon=0.3, delta=0.1) if guessed else guard_of(epsilon=0.3)
    study = optuna.create_study(directions=["minimize"] + others * ["maximize"])

    def fit_predict(trial):
        guess = (trial.params.get("rate", 0.2),) if guessed else ()
        return noisy(trial), *guess, *(float(trial.number + other) for other in range(others))

    objective = guarded_objective(guard, fit_predict, guesses=guessed)
    study.optimize(objective, n_trials=4)
    for (number, answer), trial in zip(objective.answers, study.trials, strict=True):
        assert trial.values == [answer.value, *(number + other for other in range(others))]
        assert trial.user_attrs["holdout_low"] == answer.low
        assert trackers.metrics_of_trial(trial)["holdout_value"] == answer.value
    assert guard.n_answered == 4


def test_other_objectives_that_are_missing_are_asked_for_before_the_guard_is():
    guard, study = guard_of(), optuna.create_study(directions=["minimize", "minimize"])
    for output in (LABELS, (LABELS,), (LABELS, 0.1, 0.2), [LABELS, 0.1]):
        with pytest.raises(TypeError, match="with 1 more for a study of 2 objectives, got"):
            study.optimize(guarded_objective(guard, lambda trial, told=output: told), n_trials=1)
    assert guard.n_answered == 0


def test_a_halt_in_a_study_of_two_objectives_prunes_and_stops():
    guard, study = guard_of(), optuna.create_study(directions=["minimize", "minimize"])
    study.optimize(guarded_objective(guard, lambda trial: (noisy(trial), 1.0)), n_trials=200)
    states = [trial.state for trial in study.trials]
    assert guard.halted and states == guard.n_answered * [TrialState.COMPLETE] + [TrialState.PRUNED]


def test_the_first_of_equals_is_the_best_trial():
    study = study_of()
    study.optimize(guarded_objective(guard_of(), lambda trial: LABELS), n_trials=5)
    assert study.best_trial.number == 0


def test_a_trial_with_fixed_parameters_needs_no_study():
    guard = guard_of()
    objective = guarded_objective(guard, noisy)
    trial = optuna.trial.FixedTrial({"rate": 0.2})
    assert objective(trial) == objective.answers[0][1].value
    with pytest.raises(optuna.TrialPruned):
        for seed in range(200):
            objective(optuna.trial.FixedTrial({"rate": 0.2}, number=seed))


def test_guesses_that_are_missing_are_asked_for_before_anything_is_fitted():
    guard = GuessAndCheck(LABELS, epsilon=0.2, delta=0.1)
    with pytest.raises(ValueError, match="guesses must be True with GuessAndCheck"):
        guarded_objective(guard, never)
    study = study_of()
    with pytest.raises(TypeError, match=r"must return \(predictions, guess\), got ndarray"):
        study.optimize(guarded_objective(guard, noisy, guesses=True), n_trials=1)
    assert guard.n_answered == 0


@pytest.mark.parametrize("space", ["grid", "tree"])
def test_parameters_in_another_order_are_the_same_key(space):
    distributions = {name: optuna.distributions.IntDistribution(0, 3) for name in "ab"}
    declared = module.space_of(distributions) if space == "grid" else module.TrialSpace()
    search, study = DeclaredSearch(LABELS, declared, delta=0.1), study_of()

    for _ in range(2):
        study.enqueue_trial({"b": 2, "a": 1})

    def suggested(trial):
        # a tree of live trials has an order, a grid has none
        names = "ba" if space == "grid" and trial.number else "ab"
        values = {name: trial.suggest_int(name, 0, 3) for name in names}
        return LABELS ^ (np.arange(N_SAMPLES) < 10 * (1 + values["a"] + 4 * values["b"]))

    study.optimize(guarded_objective(search, suggested), n_trials=2)
    assert search.answers.keys == [{"a": 1, "b": 2}] and len(study.trials) == 2


# ---- nothing that was counted is lost ------------------------------------------------------


@pytest.mark.parametrize("error", [ZeroDivisionError, KeyboardInterrupt])
def test_what_was_counted_is_on_the_objective_whatever_becomes_of_the_trial(monkeypatch, error):
    """The storage fails, or Ctrl-C comes, after the answer and before the value is stored."""
    guard, study = guard_of(), study_of()
    objective = guarded_objective(guard, noisy)

    def fails(trial, name, value):
        raise error

    study.optimize(objective, n_trials=3)
    monkeypatch.setattr(optuna.Trial, "set_user_attr", fails)
    with pytest.raises(error):
        study.optimize(objective, n_trials=3)
    assert guard.n_answered == 4
    assert [number for number, _ in objective.answers] == [0, 1, 2, 3]
    values = [answer.value for _, answer in objective.answers]
    assert values[:3] == [trial.value for trial in study.trials[:3]]


def test_guesses_come_with_the_predictions():
    check = GuessAndCheck(LABELS, epsilon=0.2, delta=0.1)
    study = study_of()
    study.optimize(
        guarded_objective(check, lambda trial: (noisy(trial), trial.params["rate"]), guesses=True),
        n_trials=5,
    )
    assert [trial.value for trial in study.trials] == [
        trial.params["rate"] for trial in study.trials
    ]
    assert "holdout_complexity" not in study.trials[0].user_attrs


def test_an_error_of_the_objective_is_the_caller_s_and_costs_nothing():
    guard, study = guard_of(), study_of()
    with pytest.raises(ValueError, match="y_pred must have length 1000"):
        study.optimize(guarded_objective(guard, lambda trial: LABELS[1:]), n_trials=3)
    assert guard.n_answered == 0


def test_a_guard_without_labels_is_refused():
    with pytest.raises(TypeError, match="guard must be made on labels, got a RadaBound of losses"):
        guarded_objective(RadaBound(N_SAMPLES, epsilon=0.1, delta=0.1), noisy)


@pytest.mark.source
@pytest.mark.skipif(not find_spec("optunahub"), reason="optunahub is not installed")
def test_optunahub_loads_the_package_folder_offline():
    import optunahub

    package = optunahub.load_local_module(
        "pruners/radabound", registry_root=str(EXAMPLES / "optunahub" / "package")
    )
    assert package.guarded_objective is guarded_objective
    folder = EXAMPLES / "optunahub" / "package" / "pruners" / "radabound"
    assert (folder / "README.md").read_text().startswith("---\nauthor:")
    assert (folder / "LICENSE").exists()
