"""Optuna: one guard under many threads, an exact count, one halt, and no value after it."""

import doctest
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

from radabound_fast import Holdout, HoldoutExhausted, RadaBound
from radabound_fast.integrations import optuna as module
from radabound_fast.integrations.optuna import guarded_objective
from radabound_fast.mechanisms import GuessAndCheck

N_SAMPLES = 1000
LABELS = np.arange(N_SAMPLES) % 2
EXAMPLES = Path(__file__).parents[1] / "examples"


@pytest.fixture(autouse=True)
def quiet():
    optuna.logging.set_verbosity(optuna.logging.ERROR)


def holdout_of(**parameters):
    return Holdout(
        LABELS, **({"epsilon": 0.08, "delta": 0.1, "bound": "mclt", "seed": 1} | parameters)
    )


def noisy(trial):
    """Labels of which a share is flipped; no two trials take equally long."""
    rate = trial.suggest_float("rate", 0.1, 0.3)
    time.sleep(0.001 * (trial.number % 5))
    return LABELS ^ (np.random.default_rng(trial.number).random(N_SAMPLES) < rate)


def study_of():
    return optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))


@pytest.mark.parametrize("n_jobs", [1, 4])
def test_the_count_is_exact_and_after_the_halt_every_trial_is_pruned(n_jobs):
    holdout, study = holdout_of(), study_of()
    study.optimize(guarded_objective(holdout, noisy), n_trials=200, n_jobs=n_jobs)
    complete = study.get_trials(states=[TrialState.COMPLETE])
    pruned = study.get_trials(states=[TrialState.PRUNED])
    assert holdout.halted
    assert 0 < len(complete) == holdout.n_queries < 100
    assert len(complete) + len(pruned) == len(study.trials)
    # the one that was withheld, and those that ran beside it or began before the study stopped
    assert 1 <= len(pruned) <= 2 * n_jobs
    assert [trial.value for trial in pruned] == [None] * len(pruned)
    assert all(not trial.user_attrs for trial in pruned)


@pytest.mark.parametrize("n_jobs", [1, 4])
def test_every_answer_has_a_number_of_its_own(n_jobs):
    holdout, study = holdout_of(), study_of()
    study.optimize(guarded_objective(holdout, noisy), n_trials=200, n_jobs=n_jobs)
    complete = study.get_trials(states=[TrialState.COMPLETE])
    by_number = sorted(complete, key=lambda trial: trial.user_attrs["holdout_n_queries"])
    numbers = [trial.user_attrs["holdout_n_queries"] for trial in by_number]
    assert numbers == list(range(1, len(complete) + 1))
    # a second guard that is asked in this order says the same
    alone = holdout_of()
    for trial in by_number:
        flipped = np.random.default_rng(trial.number).random(N_SAMPLES) < trial.params["rate"]
        answer = alone.query(LABELS ^ flipped)
        assert trial.value == answer.value
        assert trial.user_attrs["holdout_complexity"] == answer.complexity
        assert trial.user_attrs["holdout_half_width"] == 0.08


def test_trials_that_start_after_the_halt_are_not_fitted():
    holdout, study = holdout_of(), study_of()
    objective = guarded_objective(holdout, noisy)
    study.optimize(objective, n_trials=200)
    n_trials = len(study.trials)

    def never(trial):
        raise AssertionError("fitted")

    with pytest.raises(HoldoutExhausted, match="had halted before"):
        guarded_objective(holdout, never)
    study.optimize(objective, n_trials=10)
    assert len(study.trials) == n_trials + 1
    assert study.trials[-1].state is TrialState.PRUNED and not study.trials[-1].params


def test_trials_that_were_running_at_the_halt_are_pruned():
    """Four trials are fitted together; a guard that answers none sees them one after another."""
    holdout, study = holdout_of(epsilon=0.01), study_of()
    together = threading.Barrier(4)

    def fits(trial):
        together.wait(timeout=30)
        return noisy(trial)

    study.optimize(guarded_objective(holdout, fits), n_trials=4, n_jobs=4)
    assert [trial.state for trial in study.trials] == [TrialState.PRUNED] * 4
    assert holdout.n_queries == 0


def test_ask_and_tell_prunes_without_a_loop_to_stop():
    study = study_of()
    objective = guarded_objective(holdout_of(epsilon=0.01), noisy)
    with pytest.raises(optuna.TrialPruned, match="withheld"):
        objective(study.ask())


def test_guesses_come_with_the_predictions():
    check = GuessAndCheck(N_SAMPLES, epsilon=0.2, delta=0.1)
    study = study_of()
    study.optimize(
        guarded_objective(
            Holdout(LABELS, check), lambda trial: (noisy(trial), trial.params["rate"]), guesses=True
        ),
        n_trials=5,
    )
    assert [trial.value for trial in study.trials] == [
        trial.params["rate"] for trial in study.trials
    ]
    assert "holdout_complexity" not in study.trials[0].user_attrs


def test_an_error_of_the_objective_is_the_caller_s_and_costs_nothing():
    holdout, study = holdout_of(), study_of()
    with pytest.raises(ValueError, match="y_pred must have length 1000"):
        study.optimize(guarded_objective(holdout, lambda trial: LABELS[1:]), n_trials=3)
    assert holdout.n_queries == 0


def test_a_guard_without_labels_is_refused():
    with pytest.raises(TypeError, match="holdout must be a Holdout.*got RadaBound"):
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


def test_the_example_in_the_docstring_is_true():
    assert doctest.testmod(module) == (0, 9)
