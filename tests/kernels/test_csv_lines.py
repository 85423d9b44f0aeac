"""Numbers in a CSV file: what the extension prints is what repr prints."""

import sys

import numpy as np
import pytest

from radabound_fast._kernel import Lines

INTEGERS = [0, 1, 9, 10, 99, 100, -1, -10, 10**18, 2**63 - 1, -(2**63)]
FLOATS = [
    *(0.0, -0.0, 1.0, 0.1, 1 / 3, -2 / 3, 1e16, 1e22, 123456789.0, 9007199254740993.0),
    *(sys.float_info.min, -sys.float_info.min, sys.float_info.max, 5e-324, -5e-324),
    *(-2.2250738585072014e-308, float("inf"), float("-inf"), float("nan")),
]


def expected(head, numbers, *columns):
    rows = zip(numbers.tolist(), *(column.tolist() for column in columns), strict=True)
    return "".join(
        f"{head}{number},{','.join(map(repr, told))}\n" for number, *told in rows
    ).encode()


def test_awkward_numbers_are_printed_as_repr_prints_them():
    floats = np.array(FLOATS)
    numbers = np.resize(np.array(INTEGERS), len(floats))
    assert Lines(2).of(b"a,", numbers, floats, floats[::-1].copy()) == expected(
        "a,", numbers, floats, floats[::-1]
    )
    assert Lines(0).of(b"", numbers) == "".join(f"{n}\n" for n in numbers.tolist()).encode()


@pytest.mark.parametrize("n_values", [1, 2, 4096, 100_000])  # one; few; as a table has; many more
def test_a_number_that_comes_again_is_printed_again_in_whatever_block(n_values):
    rng = np.random.default_rng(n_values)
    values, lines = rng.normal(size=n_values) * 10.0 ** rng.integers(-320, 300, n_values), Lines(3)
    for first in (1, 95, 10**9):
        columns = [values[rng.integers(0, n_values, 5000)] for _ in range(3)]
        numbers = np.arange(first, first + 5000)
        assert lines.of(b"b,", numbers, *columns) == expected("b,", numbers, *columns)


def test_columns_that_do_not_fit_are_refused():
    numbers, column = np.arange(3), np.zeros(3)
    for columns in ([column], [column, np.zeros(2)], [column] * 3):
        with pytest.raises(ValueError, match="columns must be"):
            Lines(2).of(b"", numbers, *columns)
    assert Lines(1).of(b"", np.arange(0), np.zeros(0)) == b""
