"""Transcript codes: their weights sum to at most 1, counted out rather than trusted."""

import math
from itertools import combinations_with_replacement

import pytest

from radabound_fast import bounds


def test_failure_weights_sum_to_1_over_all_shifts_but_0():
    weights = [math.exp(-bounds.failure_code(j)) for j in range(-2000, 2001) if j]
    assert sum(weights) == pytest.approx(1.0 - 1.0 / 2001, rel=1e-12)
    assert math.exp(-bounds.failure_code(-3)) == pytest.approx(1.0 / 24.0, rel=1e-14)


def test_guess_and_check_weights_sum_to_pi_squared_over_6_less_1():
    # C(t-1, b) places for the failures, whose shifts together weigh 1
    total = sum(
        math.comb(t - 1, b) * math.exp(-bounds.guess_and_check_code(t, b, 0.0))
        for t in range(1, 200)
        for b in range(t)
    )
    # 1/(t (t+1)) for t, of which b < t uses all but 1/(t+1)
    assert total == pytest.approx(sum(1.0 / (t + 1) ** 2 for t in range(1, 200)), rel=1e-12)


@pytest.mark.parametrize("eta", [0.9, 0.5, 0.3])
def test_a_ladder_counts_the_transcripts_that_never_increase(eta):
    answers = {round(mean / eta) for mean in (i / 10_000 for i in range(10_001))}
    assert bounds.ladder_levels(eta) == len(answers)
    k = 6
    transcripts = sum(
        1 for t in range(1, k + 1) for _ in combinations_with_replacement(answers, t - 1)
    )
    deviation = bounds.ladder_half_width(k, 4000, eta, 0.1) - eta
    assert 2.0 * transcripts * math.exp(-2.0 * 4000 * deviation**2) == pytest.approx(0.1, rel=1e-9)


@pytest.mark.parametrize("eta", [0.9, 0.3, 0.05])
def test_ladder_ledger_weights_sum_to_less_than_1_over_all_prefixes(eta):
    levels = bounds.ladder_levels(eta)

    def weight(t, u):
        half_width = bounds.ladder_transcript_half_width(t, u, 4000, eta, 0.1) - eta
        return 2.0 * math.exp(-2.0 * 4000 * half_width**2) / 0.1

    total = weight(1, 0) + sum(
        math.comb(t - 2, u - 1) * math.comb(levels, u) * weight(t, u)
        for t in range(2, 300)
        for u in range(1, min(t - 1, levels) + 1)
    )
    assert 0.7 < total < 1.0


def test_codes_grow_with_queries_and_failures():
    codes = [bounds.guess_and_check_code(t, 0, 0.0) for t in range(1, 200)]
    assert codes == sorted(codes)
    paid = [b * bounds.failure_code(1) for b in range(100)]
    codes = [bounds.guess_and_check_code(1000, b, paid[b]) for b in range(100)]
    assert codes == sorted(codes)
