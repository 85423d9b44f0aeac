"""The Ladder, with a step and without, against a plain reading of its definition."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from radabound_fast import HoldoutExhausted, Ladder


def losses_with_mean(mean, n_samples=4000):
    return np.arange(n_samples) < round(mean * n_samples)


def falling_losses(seed, n_samples, n_rows):
    """Random 0-1 rows whose means fall from about .9 to .1."""
    rates = np.linspace(0.9, 0.1, n_rows)[:, np.newaxis]
    return np.random.default_rng(seed).random((n_rows, n_samples)) < rates


def test_a_ladder_repeats_the_best_until_a_step_is_gained():
    ladder = Ladder(4000, 0.05, delta=0.1)
    means = [0.5, 0.46, 0.451, 0.449, 0.3975, 0.3725, 0.9, 0.33]
    answers = ladder.query_many([losses_with_mean(mean) for mean in means])
    grid = [10, 10, 10, 9, 8, 8, 8, 7]  # .449 -> .45, .3975 -> .40, .33 -> .35
    assert answers.values.tolist() == [0.05 * multiple for multiple in grid]
    assert answers.updated.tolist() == [True, False, False, True, True, False, False, True]
    assert ladder.n_updates == 4
    assert not ladder.halted


def test_the_same_losses_again_are_no_improvement():
    ladder = Ladder(200, delta=0.1)
    losses = losses_with_mean(0.5, 200)
    # other losses of the same mean improve no more than the same ones
    assert ladder.query_many([losses, losses, ~losses]).updated.tolist() == [True, False, False]


@pytest.mark.parametrize("step", [0.3, 0.05, 0.003])
def test_the_ledger_of_a_ladder_is_its_code_and_never_shrinks(step):
    levels = math.floor(1 / step + 0.5) + 1
    rng = np.random.default_rng(14)
    # a long fall, which uses up nearly all levels, then chance
    means = [max(0.0, 1 - 1.01 * step * i) for i in range(levels)] + rng.random(50).tolist()
    ladder = Ladder(4000, step, delta=0.1)
    answers = ladder.query_many([losses_with_mean(mean) for mean in means])
    widths, updates = [], 0
    for t, updated in enumerate(answers.updated.tolist(), start=1):
        count = (
            2
            if t == 1
            else (
                t
                * (t + 1)
                * updates
                * (updates + 1)
                * math.comb(t - 2, updates - 1)
                * math.comb(levels, updates)
            )
        )
        widths.append(step + math.sqrt((math.log(2 / 0.1) + math.log(count)) / 8000))
        updates += updated
    np.testing.assert_allclose(answers.half_widths, np.maximum.accumulate(widths), rtol=1e-12)
    if step == 0.05:
        assert np.any(np.diff(widths) < 0)  # else the maximum would be put to no test


@pytest.mark.parametrize(("step", "k"), [(0.3, 1), (0.05, 10), (0.003, 1000)])
def test_a_ladder_of_k_queries_counts_its_transcripts_and_refuses_the_next(step, k):
    levels = math.floor(1 / step + 0.5) + 1
    transcripts = math.comb(k + levels - 1, levels)
    half_width = step + math.sqrt((math.log(2 / 0.1) + math.log(transcripts)) / 8000)
    ladder = Ladder(4000, step, delta=0.1, max_queries=k)
    answers = ladder.query_many(np.ones((k, 4000), dtype=bool))
    np.testing.assert_allclose(answers.half_widths, half_width, rtol=1e-12)
    assert (answers.n_answered, answers.halted) == (k, False)
    with pytest.raises(HoldoutExhausted, match="max_queries"):
        ladder.query(np.ones(4000))
    assert ladder.halted


# in the last byte and word of the packed best: one sample, one under full, full, and others
@pytest.mark.parametrize("n_samples", [1, 63, 64, 200, 4000])
def test_the_parameter_free_ladder_follows_its_definition(n_samples):
    losses = falling_losses(15, n_samples, n_rows=60)
    answers = Ladder(n_samples, delta=0.1).query_many(losses)
    best, best_losses, expected = math.inf, None, []
    for row in losses:
        mean = Fraction(int(row.sum()), n_samples)
        if best_losses is None:
            improves = True
        else:
            # mean < best - sd / sqrt(m), squared, in integers
            difference = [int(x) - int(y) for x, y in zip(row, best_losses, strict=True)]
            squares = Fraction(sum(d * d for d in difference), n_samples)
            variance = squares - Fraction(sum(difference), n_samples) ** 2
            improves = best > mean and (best - mean) ** 2 > variance / n_samples
        if improves:
            best, best_losses = mean, row
        expected.append(float(best))
    assert answers.values.tolist() == expected
    assert np.isnan(answers.half_widths).all()


def test_a_parameter_free_ladder_compares_real_valued_losses_with_bits():
    rng = np.random.default_rng(12)
    bits = rng.random(40_000) < 0.5
    real = np.clip(bits - rng.random(40_000) / 4, 0, 1)
    for first, second in ((bits, real), (real + 0.0, real / 2), (np.ones(40_000), bits)):
        ladder = Ladder(40_000, delta=0.1)
        best = ladder.query(first).value
        difference = np.rint(second * 2.0**24) / 2**24 - np.rint(first * 2.0**24) / 2**24
        margin = math.sqrt(np.mean((difference - difference.mean()) ** 2) / 40_000)
        mean = np.mean(np.rint(second * 2.0**24)) / 2**24
        assert abs(best - mean - margin) > 1e-9  # else rounding decides
        assert ladder.query(second).updated == (mean < best - margin)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"step": 0.0}, ValueError, "step"),
        ({"step": 1.0}, ValueError, "step"),
        ({"delta": 1.5}, ValueError, "delta"),
        ({"max_queries": 0}, ValueError, "max_queries"),
        ({"max_queries": 2.0}, TypeError, "max_queries"),
    ],
)
def test_a_bad_parameter_is_named(arguments, error, message):
    with pytest.raises(error, match=f"{message} must be"):
        Ladder(**{"n_samples": 100, "step": 0.1, "delta": 0.1} | arguments)
