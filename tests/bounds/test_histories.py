"""What a history of verdicts costs: weights that sum to 1, and the gain that it takes."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import pytest

from radabound_fast.bounds import gain_needed, history_nats, paired_interval


@pytest.mark.parametrize("n_verdicts", [1, 2, 3, 5])
@pytest.mark.parametrize("length", [0, 1, 4, 6])
def test_the_histories_of_one_length_weigh_1_together(n_verdicts: int, length: int) -> None:
    total = Fraction(0)
    for history in product(range(n_verdicts), repeat=length):
        counts = [history.count(kind) for kind in range(n_verdicts)]
        ways = math.factorial(n_verdicts - 1) * math.prod(map(math.factorial, counts))
        weight = Fraction(ways, math.factorial(length + n_verdicts - 1))
        nats = history_nats(counts, n_candidates=1 + length)
        assert nats == pytest.approx(math.log(1 + length) - math.log(weight), rel=1e-12)
        total += weight
    assert total == 1


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
