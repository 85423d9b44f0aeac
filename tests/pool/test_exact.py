"""McNemar's test is SciPy's binomial test, and Holm's step-down is what its name says."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import binomtest

from radabound_fast.pool.judging import sign_test
from radabound_fast.pool.limits import holm


def test_the_sign_test_is_the_binomial_test():
    plus, minus = np.divmod(np.arange(12 * 12), 12)
    expected = [
        binomtest(int(a), int(a + b), alternative="greater").pvalue if a + b else 1.0
        for a, b in zip(plus, minus, strict=True)
    ]
    found = sign_test(plus, minus)
    assert_allclose(found, expected, rtol=1e-8)
    assert (found >= np.array(expected) * (1 - 1e-12)).all()
    assert sign_test(3000, 2000) == pytest.approx(binomtest(3000, 5000, 0.5, "greater").pvalue)


@pytest.mark.parametrize(
    ("p_values", "rejected"),
    [
        ([], []),
        ([0.2], [0]),
        ([0.1], [1]),
        ([0.04, 0.03, 0.09], [1, 1, 1]),  # .03 <= .1/3, .04 <= .1/2, .09 <= .1
        ([0.04, 0.034, 0.09], [0, 0, 0]),  # the smallest is above .1/3, and ends it
        ([0.01, 0.06, 0.09], [1, 0, 0]),  # .09 would do, but .06 has ended it
        ([0.05, 0.01, 0.05, 0.5], [0, 1, 0, 0]),
        ([0.03, 0.01, 0.03, 0.5], [1, 1, 1, 0]),
    ],
)
def test_holm(p_values, rejected):
    assert holm(np.array(p_values), 0.1).tolist() == [bool(one) for one in rejected]
