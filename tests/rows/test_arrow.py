"""The Arrow C interface at its edges: structures made by hand, sound and broken, and who owns them.

A producer hands over structs with a `release` function each.  Whoever takes one calls it exactly
once, when nobody reads the memory any more; one whose `release` is NULL has been taken already.
"""

import ctypes
import gc
import re

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from radabound_fast import RadaBound, pack_losses
from radabound_fast.rows.packing import as_values

pointer, integer = ctypes.c_void_p, ctypes.c_int64
Release = ctypes.CFUNCTYPE(None, pointer)
Get = ctypes.CFUNCTYPE(ctypes.c_int, pointer, pointer)


class Schema(ctypes.Structure):
    _fields_ = [
        *((name, ctypes.c_char_p) for name in ("format", "name", "metadata")),
        *((name, integer) for name in ("flags", "n_children")),
        *((name, pointer) for name in ("children", "dictionary", "release", "private_data")),
    ]


class Array(ctypes.Structure):
    _fields_ = [
        *((name, integer) for name in ("length", "null_count", "offset")),
        *((name, integer) for name in ("n_buffers", "n_children")),
        ("buffers", ctypes.POINTER(pointer)),
        *((name, pointer) for name in ("children", "dictionary", "release", "private_data")),
    ]


class Stream(ctypes.Structure):
    _fields_ = [
        (name, pointer)
        for name in ("get_schema", "get_next", "get_last_error", "release", "private_data")
    ]


VALUES = np.array([0.25, 0.5, 0.75])
# what C code would keep: a release may be called after the test that made the column
KEPT = []


def capsule(struct, name):
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, [pointer, ctypes.c_char_p, pointer]
    return new(ctypes.addressof(struct), name, None)


class Column:
    """A column of numbers whose structs are ours to look at, and to break."""

    names = (b"arrow_schema", b"arrow_array")

    def __init__(self, values, *, format=b"g", length=None, buffers=None):
        KEPT.append(self)
        self.released = []  # the kinds of structs, one for each call
        self.memory = None if values is None else values.copy()
        self.callbacks = {kind: Release(self.release(kind)) for kind in (Schema, Array, Stream)}
        address = None if values is None else self.memory.ctypes.data
        self.buffers = (pointer * 2)(None, address) if buffers is None else buffers
        self.schema = Schema(format=format, release=self.address(Schema))
        self.array = Array(
            length=len(values) if length is None else length,
            n_buffers=2,
            buffers=self.buffers,
            release=self.address(Array),
        )

    def address(self, kind):
        return ctypes.cast(self.callbacks[kind], pointer).value

    def release(self, kind):
        def release(struct):
            self.released.append(kind)
            kind.from_address(struct).release = None
            if kind is Array and self.memory is not None:
                self.memory[:] = 0  # as memory that belongs to somebody else by now

        return release

    def __arrow_c_array__(self, requested_schema=None):
        structs = (self.schema, self.array)
        return tuple(capsule(s, name) for s, name in zip(structs, self.names, strict=True))


class Chunks:
    """A stream of columns, the first of which gives the schema."""

    def __init__(self, *columns, fails_after=None):
        KEPT.append(self)
        self.columns, self.given, self.fails_after = columns, 0, fails_after
        self.keep = Get(self.get_schema), Get(self.get_next), Release(self.release)
        get_schema, get_next, release = (ctypes.cast(f, pointer).value for f in self.keep)
        self.stream = Stream(get_schema=get_schema, get_next=get_next, release=release)

    def get_schema(self, _, out):
        ctypes.memmove(out, ctypes.addressof(self.columns[0].schema), ctypes.sizeof(Schema))
        return 0

    def get_next(self, _, out):
        if self.given == self.fails_after:
            return 5
        end = Array()
        struct = self.columns[self.given].array if self.given < len(self.columns) else end
        ctypes.memmove(out, ctypes.addressof(struct), ctypes.sizeof(Array))
        self.given += 1
        return 0

    def release(self, _):
        pytest.fail("a stream is its capsule's to release")

    def __arrow_c_stream__(self, requested_schema=None):
        return capsule(self.stream, b"arrow_array_stream")


def refusal_of(column):
    """The one line with which the column is refused, by whatever takes losses."""
    guard = RadaBound(3, epsilon=0.5, delta=0.1, bound="mclt")
    with pytest.raises(ValueError) as caught:
        guard.query(column)
    assert guard.n_answered == 0
    message = str(caught.value)
    assert "\n" not in message
    return message


# ---- who owns what ------------------------------------------------------------------------


@pytest.mark.thorough
def test_an_array_outlives_its_producer_and_is_released_once_when_nobody_reads_it():
    column = Column(VALUES)
    released = column.released
    values = as_values(column)
    assert_array_equal(values, VALUES)
    part = values[1:]
    del values
    gc.collect()
    assert Array not in released
    assert_array_equal(part, VALUES[1:])  # read in place, and not yet overwritten
    del part
    gc.collect()
    assert released.count(Array) == 1


def test_bits_are_released_once_they_are_packed():
    column = Column(np.array([0b101], np.uint8), format=b"b", length=3)
    assert pack_losses(column).words.tolist() == [0b101]
    gc.collect()
    assert column.released.count(Array) == 1


def test_every_chunk_of_a_stream_is_released_once_and_its_schema_too():
    columns = [Column(VALUES), Column(VALUES[::-1])]
    values = as_values(Chunks(*columns))
    assert_array_equal(values, [0.25, 0.5, 0.75, 0.75, 0.5, 0.25])
    del values
    gc.collect()
    assert columns[0].released.count(Schema) == 1
    assert [column.released.count(Array) for column in columns] == [1, 1]


@pytest.mark.parametrize("fails_after", [0, 1])
def test_a_stream_that_breaks_off_has_released_what_it_gave(fails_after):
    column = Column(VALUES)
    message = refusal_of(Chunks(column, Column(VALUES), fails_after=fails_after))
    assert message == f"an Arrow stream broke off at chunk {fails_after + 1}"
    gc.collect()
    assert column.released.count(Schema) == 1
    assert column.released.count(Array) == fails_after


def test_a_column_that_is_refused_is_released_once():
    column = Column(VALUES)
    column.array.n_buffers = 3
    refusal_of(column)
    gc.collect()
    assert column.released.count(Array) == 1


def test_what_is_no_column_of_numbers_stays_with_its_producer():
    column = Column(VALUES, format=b"u")
    with pytest.raises(TypeError, match="must be real numbers"):  # NumPy makes an object of it
        as_values([column])
    assert column.released == []


def test_an_empty_column_needs_no_values():
    column = Column(None, length=0)
    with pytest.raises(ValueError, match="losses must not be empty"):
        as_values(column)


# ---- what is broken -----------------------------------------------------------------------


def test_a_column_is_taken_once():
    column = Column(VALUES)
    as_values(column)
    assert refusal_of(column) == "an Arrow array must not be released already"


def test_a_schema_that_is_released_is_refused():
    column = Column(VALUES)
    column.schema.release = None
    assert refusal_of(column) == "an Arrow schema must not be released already"
    assert refusal_of(Chunks(column)) == "an Arrow schema must not be released already"


def test_a_stream_that_is_released_is_refused():
    chunks = Chunks(Column(VALUES))
    chunks.stream.release = None
    assert refusal_of(chunks) == "an Arrow stream must not be released already"


@pytest.mark.parametrize("function", ["get_schema", "get_next"])
def test_a_stream_without_its_functions_is_refused(function):
    chunks = Chunks(Column(VALUES))
    setattr(chunks.stream, function, None)
    assert "must have its two functions, got a null pointer" in refusal_of(chunks)


def test_a_schema_without_a_format_is_refused():
    column = Column(VALUES)
    column.schema.format = None
    assert refusal_of(column) == "an Arrow schema must have a format, got a null pointer"


@pytest.mark.thorough
@pytest.mark.parametrize("as_stream", [False, True])
@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("length", -1, "an offset of at least 0, and below 2**59 together, got -1 and 0"),
        ("offset", -1, "got 3 and -1"),
        ("length", 2**63 - 1, f"got {2**63 - 1} and 0"),
        ("offset", 2**63 - 1, f"got 3 and {2**63 - 1}"),
        ("null_count", -2, "must have a number of nulls in [-1, 3], got -2"),
        ("null_count", 4, "must have a number of nulls in [-1, 3], got 4"),
        ("null_count", 1, "must say which of its values are null, 1 in number, got a null pointer"),
        ("n_buffers", 1, "must have 2 buffers and no children, got 1 and 0"),
        ("n_buffers", -1, "got -1 and 0"),
        ("n_children", 1, "got 2 and 1"),
        ("buffers", None, "must have its values, got a null pointer"),
    ],
)
def test_an_array_that_cannot_be_is_refused_before_any_of_it_is_read(
    field, value, message, as_stream
):
    column = Column(VALUES)
    setattr(column.array, field, value)
    assert re.search(re.escape(message), refusal_of(Chunks(column) if as_stream else column))
    gc.collect()
    assert column.released.count(Array) == 1


@pytest.mark.parametrize("format", [b"g", b"b"])
def test_values_that_are_nowhere_are_refused(format):
    column = Column(None, format=format, length=3)
    assert "must have its values, got a null pointer" in refusal_of(column)


def test_an_unknown_number_of_nulls_is_counted():
    valid = np.array([0b101], np.uint8)
    buffers = (pointer * 2)(valid.ctypes.data, VALUES.ctypes.data)
    column = Column(VALUES, buffers=buffers)
    column.array.null_count = -1
    assert "must have no missing values, got one at sample 1" in refusal_of(column)


@pytest.mark.parametrize("kind", ["array", "stream"])
def test_another_capsule_is_refused(kind):
    class Other:
        pass

    made = capsule(Schema(), b"something else")
    setattr(Other, f"__arrow_c_{kind}__", lambda self: (made, made) if kind == "array" else made)
    with pytest.raises(ValueError, match="PyCapsule"):
        as_values(Other())
