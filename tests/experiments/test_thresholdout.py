"""Thresholdout: its rule, its budget and its noise."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from radabound_fast import HoldoutExhausted
from radabound_fast.bounds import thresholdout_sample_size
from radabound_fast.experiments.thresholdout import Thresholdout


def losses_with_mean(mean, n_samples=4000):
    return np.arange(n_samples) < round(mean * n_samples)


def test_thresholdout_answers_the_guess_until_the_holdout_disagrees_and_then_spends():
    holdout = Thresholdout(4000, threshold=0.1, noise=1e-6, budget=2, seed=0)
    losses = losses_with_mean(0.5)
    for guess, passed in ((0.45, True), (0.55, True), (0.3, False), (0.41, True), (0.7, False)):
        answer = holdout.query(losses, guess=guess)
        assert answer.passed == passed
        assert answer.value == guess if passed else abs(answer.value - 0.5) < 1e-4
        assert math.isnan(answer.half_width)
    assert holdout.spent == 2
    assert not holdout.halted
    with pytest.raises(HoldoutExhausted, match="budget of 2"):
        holdout.query(losses, guess=0.5)
    assert holdout.halted and holdout.spent == 2 and holdout.n_answered == 5


@pytest.mark.parametrize("n_samples", [1, 200])
def test_real_valued_losses_are_rounded_to_2_to_the_minus_24_and_averaged_exactly(n_samples):
    losses = np.random.default_rng(11).random(n_samples)
    losses[-4:] = [0.0, 1.0, 1.5 * 2**-24, 2.5 * 2**-24][-n_samples:]
    units = sum(round(Fraction(loss) * 2**24) for loss in losses.tolist())  # halves go to even
    # noise far below the last bit of the mean
    holdout = Thresholdout(n_samples, threshold=1e-9, noise=1e-300, budget=1, seed=0)
    assert holdout.query(losses, guess=0.9).value == units / 2**24 / n_samples


def test_thresholdout_repeats_itself_for_a_seed_and_not_without():
    losses = [losses_with_mean(0.5, 200)] * 40

    def values(seed):
        holdout = Thresholdout(200, threshold=0.05, noise=0.02, budget=40, seed=seed)
        return holdout.query_many(losses, guesses=[0.5] * 40).values.tolist()

    assert values(7) == values(7)
    assert values(7) != values(8)
    assert values(None) != values(None)


@pytest.mark.parametrize("seed", range(20))
def test_thresholdout_follows_figure_1_with_the_noise_of_its_seed(seed):
    threshold, sigma, budget = 0.1, 0.03, 30
    rng = np.random.default_rng([seed, 1])
    counts, guesses = rng.binomial(200, 0.5, 100), rng.uniform(0.3, 0.7, 100)
    noise = np.random.default_rng(seed)
    noisy_threshold = threshold + noise.laplace(scale=2 * sigma)
    values, spent = [], 0
    for mean, guess in zip((counts / 200).tolist(), guesses.tolist(), strict=True):
        if spent == budget:
            break
        if abs(mean - guess) > noisy_threshold + noise.laplace(scale=4 * sigma):
            spent += 1
            noisy_threshold = threshold + noise.laplace(scale=2 * sigma)
            values.append(mean + noise.laplace(scale=sigma))
        else:
            values.append(guess)
    holdout = Thresholdout(200, threshold=threshold, noise=sigma, budget=budget, seed=seed)
    answers = holdout.query_many(np.arange(200) < counts[:, np.newaxis], guesses=guesses)
    assert answers.values.tolist() == values
    assert (holdout.spent, answers.halted) == (spent, len(values) < 100)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"threshold": 0.0}, ValueError, "threshold"),
        ({"noise": -0.1}, ValueError, "noise"),
        ({"noise": math.inf}, ValueError, "noise"),
        ({"budget": 0}, ValueError, "budget"),
        ({"seed": -1}, ValueError, "seed"),
        ({"seed": 1.0}, TypeError, "seed"),
    ],
)
def test_a_bad_parameter_is_named(arguments, error, message):
    good = {"threshold": 0.1, "noise": 0.01, "budget": 5}
    with pytest.raises(error, match=f"{message} must be"):
        Thresholdout(100, **good | arguments)


def test_the_guarantee_names_the_size_that_the_theorem_needs_at_its_easiest():
    # T = 3 epsilon / 4, as many queries as answers of the holdout, delta near 1
    holdout = Thresholdout(4000, threshold=0.03, noise=0.001, budget=10, seed=1)
    needed = thresholdout_sample_size(10, 10, 0.04, 1 - 2**-53)
    assert f"needs more than {needed:.3g} samples" in holdout.guarantee
    assert (
        "half_width is nan: whether"
        in Thresholdout(int(needed) + 1, threshold=0.03, noise=0.001, budget=10, seed=1).guarantee
    )
