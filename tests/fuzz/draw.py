"""From bytes to arguments: what a fuzzing target asks, and what plain Python makes of it.

A target is a module with `fuzz_one(data)`: nothing but `data` decides what it does, so that an
input that failed is a test.  When the bytes are used up every draw is the first choice.
"""

import functools
import importlib
import math

import numpy as np

REFUSALS = (ValueError, TypeError)
NUMBER_TYPES = "?bBhHiIqQefdg"  # as the packers read them, and longdouble
OTHER_TYPES = ("F", "D", "M8[s]", "m8[s]", "U3", "S3", "V2", "i4,f4", "O")


class Draw:
    """Choices, one after the other, out of some bytes."""

    def __init__(self, data):
        self._data, self._at = data, 0

    def bytes(self, n):
        """The next n, filled up with zeros."""
        taken = self._data[self._at : self._at + n]
        self._at += n
        return taken.ljust(n, b"\0")

    def integer(self, low, high):
        span = high - low + 1
        return low + int.from_bytes(self.bytes(-(-span.bit_length() // 8)), "little") % span

    def choice(self, options):
        return options[self.integer(0, len(options) - 1)]

    def one_in(self, n):
        return self.integer(0, n - 1) == n - 1

    def seeded(self):
        """Random numbers that cost four bytes."""
        return np.random.default_rng(self.integer(0, 2**32 - 1))


def _contents(draw, shape, dtype):
    """Numbers of that dtype: losses of 0 and 1, others in [0, 1], or any bytes."""
    way, rng = draw.integer(0, 7), draw.seeded()
    if way < 4:
        values = (rng.random(shape) < 0.3).astype(dtype)
    elif way < 6:
        values = rng.random(shape).astype(dtype)
    else:
        n_bytes = math.prod(shape) * dtype.itemsize
        values = np.frombuffer(rng.bytes(n_bytes), dtype).reshape(shape).copy()
    if dtype.kind == "b":  # other bytes than 0 and 1 are no bools, whatever NumPy makes of them
        return values.view(np.uint8) % 2 == 1
    if values.size and draw.one_in(4):  # one value of the fuzzer's own
        values.flat[draw.integer(0, values.size - 1)] = np.frombuffer(
            draw.bytes(dtype.itemsize), dtype
        )[0]
    return values


def _as_objects(draw, values):
    values = np.asarray(values).astype(object)
    if values.size and draw.one_in(2):
        odd = [None, "0", 0.5, 1 + 0j, float("nan"), 10**30, (), True, b"1", np.True_]
        odd = draw.choice([*odd, np.timedelta64(1, "s"), np.float16(0.1)])
        values.flat[draw.integer(0, values.size - 1)] = odd
    return values


def _laid_out(draw, values):
    """The same values at other addresses: strides of every sign, any alignment, one byte order."""
    way = draw.integer(0, 7) if values.ndim else 0
    if way == 1:
        return np.asfortranarray(values)
    if way == 2:
        return np.ascontiguousarray(values[..., ::-1])[..., ::-1]
    if way == 3:
        return np.repeat(values, 2, axis=-1)[..., ::2]
    if way == 4 and values.ndim == 2:
        return np.ascontiguousarray(values[::-1])[::-1]
    if way == 5 and not values.dtype.hasobject:
        memory = np.zeros(values.nbytes + 1, np.uint8)[1:]
        odd = memory.view(values.dtype).reshape(values.shape)
        odd[...] = values
        return odd
    if way == 6:
        return values.astype(values.dtype.newbyteorder("S"))
    if way == 7 and values.ndim == 2 and len(values):
        return np.broadcast_to(values[0], values.shape)
    return values


def _contained(draw, values):
    """In what a user may hold it."""
    way = draw.integer(0, 9)
    if way == 0:
        return values.tolist()
    if way == 1:
        mask = draw.seeded().random(values.shape) < draw.choice([0, 0, 0.5])
        return np.ma.MaskedArray(values, mask)
    if way == 2 and values.ndim:
        return tuple(values.tolist()) if values.ndim == 1 else [tuple(row) for row in values]
    if way == 3 and values.dtype.kind in "biufO" and values.dtype != np.longdouble:
        pandas = optional("pandas")
        if pandas is not None and values.ndim in (1, 2):
            native = values.astype(values.dtype.newbyteorder("="))
            return pandas.Series(native) if values.ndim == 1 else pandas.DataFrame(native)
    if way == 4 and values.ndim == 1 and values.dtype.kind in "biuf" and values.dtype.char != "g":
        arrow = optional("pyarrow")
        if arrow is not None:
            return arrow.array(values.astype(values.dtype.newbyteorder("=")))
    return values


@functools.cache
def optional(name):
    """A package that the library can do without."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def shape_of(draw, n_samples, ndim):
    """Mostly the right one."""
    shape = (n_samples,) if ndim == 1 else (draw.integer(0, 5), n_samples)
    if not draw.one_in(8):
        return shape
    return draw.choice([(), (0,), (n_samples + 1,), (2, n_samples), (1, 1, n_samples), (3, 0)])


def array_like(draw, shape):
    """Losses, or anything that somebody might pass for them."""
    if draw.one_in(8):
        dtype = np.dtype(draw.choice(OTHER_TYPES))
        values = np.zeros(shape, dtype)
        if dtype.kind == "O":
            values = _as_objects(draw, _contents(draw, shape, np.dtype(float)))
    else:
        values = _contents(draw, shape, np.dtype(draw.choice(NUMBER_TYPES)))
    return _contained(draw, _laid_out(draw, values))


# ---- plain Python -------------------------------------------------------------------------


def _is_loss(value):
    number = isinstance(value, (bool, int, float, np.bool_, np.integer, np.floating))
    return number and not isinstance(value, np.timedelta64) and 0 <= value <= 1


def plain_rows(values, ndim, n_samples=None):
    """Rows of losses, looked at value by value; None in place of a row that holds something else.

    None instead of all: no rows of numbers, or of another length.
    """
    if hasattr(values, "to_numpy") and not hasattr(values, "iloc"):  # an Arrow array
        values = values.to_pylist()
    if isinstance(values, np.ma.MaskedArray):
        mask = np.ma.getmaskarray(values)
        if mask.dtype != bool or mask.any():  # structured arrays have a mask a field
            return None
    try:
        values = np.asarray(values)
    except ValueError:
        return None
    if values.ndim != ndim or values.dtype.kind not in "biufO":
        return None
    if values.shape[-1] != (n_samples or values.shape[-1] or 1):
        return None
    rows = [list(row) for row in (values if ndim == 2 else [values])]
    return [row if all(map(_is_loss, row)) else None for row in rows]


def in_units(rows):
    """Losses as multiples of 2^-24, ties to even."""
    return np.array(
        [[int(np.rint(np.longdouble(value) * 2**24)) for value in row] for row in rows], np.int64
    )
