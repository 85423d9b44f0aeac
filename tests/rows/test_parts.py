"""How many rows are kept for the end: halves are rounded up, and both parts have one."""

import numpy as np
import pytest

from radabound_fast.rows.parts import draw_part, size_of_part


@pytest.mark.parametrize(
    ("n_rows", "share", "size"),
    [
        (101, 0.5, 51), (103, 0.5, 52), (100, 0.5, 50), (7, 0.33, 2), (7, 0.36, 3), (10, 0.25, 3),
        (10, 0.01, 1), (10, 0.99, 9), (2, 0.5, 1), (4000, 0.2, 800),
    ],
)  # fmt: skip
def test_known_numbers(n_rows, share, size):
    assert size_of_part(n_rows, share) == size
    for seed in range(3):
        assert np.count_nonzero(draw_part(n_rows, share, seed)) == size
