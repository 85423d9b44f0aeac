"""Where a halting rule's budget is found, at the edge, whatever the guess; and limits in blocks."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from radabound_fast.guards.halting import HaltingRule, Limits, last_that_passes

NEAR = range(-1, 36)
FAR = [*range(-1, 3), *(2**k + rest for k in (10, 30, 61) for rest in (-1, 0, 1))]


class Edge:
    """Passes up to an edge, 0 and more alone, and counts how often it is asked."""

    def __init__(self, edge):
        self.edge, self.n_asked = edge, 0

    def __call__(self, value):
        assert value >= 0
        self.n_asked += 1
        return value <= self.edge


@pytest.mark.parametrize("starts", [range(-3, 40), FAR], ids=["near", "far"])
@pytest.mark.parametrize("edges", [NEAR, FAR], ids=["near", "far"])
def test_the_last_that_passes_is_found_from_every_start(edges, starts):
    for edge, start in itertools.product(edges, starts):
        passes = Edge(edge)
        assert last_that_passes(passes, start) == edge, start
        # twice there and back in doubled steps, and a few more
        assert passes.n_asked <= 4 * (abs(edge - max(start, 0)) + 1).bit_length() + 8


def test_limits_of_blocks_are_those_of_each_answer_at_its_own_price():
    """Weights fall at 2, 4, 8, ...: within a block, and between blocks of the same counts."""
    rule = HaltingRule(100, 8, 0.2, 0.1, "fixed-sequence")
    values, limits = np.array([0.1, 0.3, 0.1]), Limits(rule)
    for first in (1, 1, 4, 5, 7, 8):
        numbers = np.arange(first, first + 3)
        assert_array_equal(limits.of(values, numbers, True), rule.interval(values, numbers, True))


def test_a_mean_at_the_last_count_that_needs_no_signs_is_promised():
    rule = HaltingRule(1000, 8, 0.03, 0.1, "fixed-sequence")
    last = rule.free.stage(0).low_count
    assert 0 < last < 499
    for count in (last, 1000 - last):
        assert rule.free_left(0, count / 1000, True) > 0
    for count in (last + 1, 999 - last):
        assert rule.free_left(0, count / 1000, True) == 0
