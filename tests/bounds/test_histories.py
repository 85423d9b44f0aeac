"""What a history of verdicts costs: known answers, and weights that sum to 1."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import pytest

from radabound_fast.bounds import gain_needed, history_nats, paired_interval


@pytest.mark.parametrize(
    ("passes", "before", "declared", "nats"),
    [
        (0, 0, 32, 3.4657),
        (0, 1, 32, 4.1589),
        (2, 9, 32, 9.3518),
        (0, 31, 32, 6.9315),
        (1, 31, 32, 10.3655),
        (4, 31, 32, 17.2881),
        (8, 31, 32, 22.8124),
        (16, 31, 32, 26.4526),
        (0, 0, None, 0.6931),
        (0, 1, None, 2.4849),
        (2, 9, None, 10.5866),
        (4, 31, None, 20.7846),
    ],
)
def test_known_answers(passes: int, before: int, declared: int | None, nats: float) -> None:
    told = history_nats([passes, before - passes], n_candidates=declared)
    assert told == pytest.approx(nats, abs=5e-5)


@pytest.mark.parametrize("n_verdicts", [1, 2, 3, 5])
@pytest.mark.parametrize("length", [0, 1, 4, 6])
def test_the_histories_of_one_length_weigh_1_together(n_verdicts: int, length: int) -> None:
    total, by_hand = 0.0, Fraction(0)
    for history in product(range(n_verdicts), repeat=length):
        counts = [history.count(kind) for kind in range(n_verdicts)]
        total += math.exp(-history_nats(counts, n_candidates=1 + length)) * (1 + length)
        weight = Fraction(math.factorial(n_verdicts - 1))
        by_hand += (
            weight
            * math.prod(map(math.factorial, counts))
            / math.factorial(length + n_verdicts - 1)
        )
    assert total == pytest.approx(1.0, rel=1e-12)
    assert by_hand == 1


def test_without_a_number_the_candidates_weigh_1_together() -> None:
    one_path = [math.exp(-history_nats([t])) for t in range(5000)]  # one verdict: w is 1
    assert sum(one_path) == pytest.approx(1.0 - 1.0 / 5001, rel=1e-12)


@pytest.mark.parametrize("disagreement", [0.0, 0.003, 0.1, 1.0])
@pytest.mark.parametrize("margin", [-0.02, 0.0, 0.01, 0.5])
def test_the_gain_needed_is_the_least_that_passes(disagreement: float, margin: float) -> None:
    m, nats = 1000, 6.0
    differ = round(disagreement * m)
    passing = [
        (2 * plus - differ) / m
        for plus in range(differ + 1)
        if paired_interval(plus, differ - plus, m, nats)[0] > margin
    ]
    assert gain_needed(m, disagreement, nats, margin=margin) == min(passing, default=math.inf)


@pytest.mark.parametrize("m", [7, 100, 1000])
def test_a_gain_is_needed_of_so_many_rows_as_the_share_is_of(m: int) -> None:
    for differ in range(0, m + 1, 1 + m // 100):  # 29 / 100 * 100 is below 29
        needed = gain_needed(m, differ / m, 3.0, margin=-2.0)
        assert needed == -differ / m


@pytest.mark.parametrize(("plus", "minus"), [(9, 1), (40, 20), (5, 12), (0, 0)])
def test_a_limit_at_the_margin_does_not_pass(plus: int, minus: int) -> None:
    m, nats = 400, 3.0
    limit = paired_interval(plus, minus, m, nats)[0]
    below = math.nextafter(limit, -math.inf)
    needed = [gain_needed(m, (plus + minus) / m, nats, margin=one) for one in (below, limit)]
    assert needed[0] == (plus - minus) / m < needed[1]
