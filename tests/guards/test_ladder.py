"""The Ladder against a plain reading of its definition."""

from __future__ import annotations

import math

import numpy as np
import pytest
from support import losses_with_mean

from radabound_fast import HoldoutExhausted, Ladder


def test_a_ladder_repeats_the_best_until_a_step_is_gained():
    ladder = Ladder(4000, 0.05, delta=0.1)
    means = [0.5, 0.46, 0.451, 0.449, 0.3975, 0.3725, 0.9, 0.33]
    answers = ladder.query_many([losses_with_mean(mean) for mean in means])
    grid = [10, 10, 10, 9, 8, 8, 8, 7]  # .449 -> .45, .3975 -> .40, .33 -> .35
    assert answers.values.tolist() == [0.05 * multiple for multiple in grid]
    assert answers.updated.tolist() == [True, False, False, True, True, False, False, True]
    assert ladder.n_updates == 4
    assert not ladder.halted


def test_a_gain_of_exactly_a_step_is_not_more_than_a_step():
    ladder = Ladder(64, 0.25, delta=0.1)
    rows = [losses_with_mean(mean, 64) for mean in (0.75, 0.5, 31 / 64)]
    assert ladder.query_many(rows).updated.tolist() == [True, False, True]


def test_the_same_losses_again_are_no_improvement():
    ladder = Ladder(200, 0.01, delta=0.1)
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
    # an answer is at most a step above the smallest mean so far, and half a step below it
    limits = answers.values - answers.half_widths, answers.values + answers.half_widths - step / 2
    np.testing.assert_allclose([answers.lows, answers.highs], np.clip(limits, 0, 1), rtol=1e-12)
    if step == 0.05:
        assert np.any(np.diff(widths) < 0)  # else the maximum would be put to no test


@pytest.mark.parametrize(("step", "k"), [(0.3, 1), (0.05, 10), (0.003, 1000)])
def test_a_ladder_of_k_queries_counts_transcripts_and_halts(step, k):
    levels = math.floor(1 / step + 0.5) + 1
    transcripts = math.comb(k + levels - 1, levels)
    half_width = step + math.sqrt((math.log(2 / 0.1) + math.log(transcripts)) / 8000)
    ladder = Ladder(4000, step, delta=0.1, max_queries=k)
    answers = ladder.query_many(np.ones((k, 4000), dtype=bool))
    np.testing.assert_allclose(answers.half_widths, half_width, rtol=1e-12)
    assert (len(answers), answers.halted) == (k, False)
    with pytest.raises(HoldoutExhausted, match="max_queries"):
        ladder.query(np.ones(4000))
    assert ladder.halted
