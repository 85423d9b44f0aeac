"""What a search was asked: the compiled table does what a dict would."""

import copy
import gc
import os
import pickle
import threading
import weakref
import zlib

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from support import true_in_a_child

from radabound_fast._kernels.search import QueryTable

# one under, at and over each width of a cell, on both sides
EDGES = [0, 1, -1] + [
    s * 2**b + d for b in (7, 8, 15, 16, 31, 32, 62) for s in (1, -1) for d in (-1, 0, 1)
]
KINDS = ["array few", "array many", "array far", "tuples few", "mixed few"]


def rows_of(values, k):
    return list(zip(*(column.tolist() for column in values), strict=True)) or [()] * k


class Plain:
    """The same, as a dict."""

    def __init__(self):
        self.told = {}

    def add(self, codes, reruns, values):
        rows = rows_of(values, len(codes))
        told, numbers, odd, before = dict(self.told), [], [], []
        for row, query in enumerate(zip(codes, reruns.tolist(), strict=True)):
            there = told.setdefault(query, rows[row])
            numbers.append(len(told))
            if there != rows[row]:
                odd.append(row)
                before.append(there)
        if odd:
            return len(self.told), numbers, (odd, before)
        is_new = len(told) == len(self.told) + len(codes)
        self.told = told
        return len(told), None if is_new else numbers, None


def check_same(table, plain):
    codes, reruns, values = table.columns()
    listed = codes.tolist() if isinstance(codes, np.ndarray) else codes
    assert list(zip(listed, reruns.tolist(), strict=True)) == list(plain.told)
    assert rows_of(values, len(table)) == list(plain.told.values())


def codes_of(kind, rng, k):
    numbers = rng.integers(0, {"few": 30, "many": 10**5, "far": 2**63}[kind.split()[-1]], k)
    if kind.startswith("array"):
        return numbers
    if kind.startswith("tuples"):
        return [(int(number), "a") for number in numbers]
    return [int(n) if n % 3 else str(n) if n % 2 else -int(n) - 2**64 for n in numbers]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_values", [0, 1, 3])
def test_it_does_what_a_dict_would(kind, n_values):
    rng = np.random.default_rng(n_values)
    table, plain = QueryTable(n_values), Plain()
    n_odd = 0
    for _ in range(150):
        k = int(rng.choice([0, 1, 2, 15, 16, 17, 100]))
        codes = codes_of(kind, rng, k)
        reruns = rng.choice([1, 1, 2, 2**63 - 1], k)
        # mostly what the query stands for; now and then something else
        queries = zip(codes, reruns.tolist(), strict=True)
        own = np.array([zlib.crc32(repr(query).encode()) * 2**31 for query in queries], np.int64)
        odd = rng.random(k) < rng.choice([0.0, 0.02])
        width = 2 ** int(rng.choice([1, 7, 8, 15, 16, 31, 32, 62]))
        values = [(own >> 20 * shift) + odd * width for shift in range(n_values)]
        listed = codes.tolist() if isinstance(codes, np.ndarray) else codes
        n_queries, numbers, rows = plain.add(listed, reruns, values)
        told = table.add(codes, reruns, values)
        assert told[0] == n_queries
        if rows is None:
            assert (told[1] is None) == (numbers is None) and told[2] is None
            assert numbers is None or told[1].tolist() == numbers
        else:
            n_odd += 1
            assert told[2][0].tolist() == rows[0]
            assert list(zip(*told[2][1].tolist(), strict=True)) == rows[1]
        check_same(table, plain)
    assert n_odd > 3 or n_values == 0 or not kind.endswith("few")


@pytest.mark.parametrize("first", [0, 5, -3, 2**63 - 1, -(2**63)])
def test_values_of_every_width_come_back(first):
    table, plain = QueryTable(1), Plain()
    for number, value in enumerate([first, *EDGES, 2**63 - 1, -(2**63)]):
        code, column = np.array([number]), [np.array([value], np.int64)]
        assert table.add(code, np.array([1]), column) == (number + 1, None, None)
        plain.add([number], np.array([1]), column)
        check_same(table, plain)


def test_floats_and_fingerprints_come_back_as_they_were():
    table = QueryTable(2)
    reals, hashes = np.array([0.1, -0.0, np.inf]), np.array([0, 2**63, 2**64 - 1], np.uint64)
    table.add(np.arange(3), np.broadcast_to(np.int64(1), 3), [reals, hashes])
    assert table.add_one(3, 1, 1e-300, 2**64 - 2) == (4, None)
    found = table.columns()[2]
    assert found[0].view(np.float64).tobytes() == np.array([*reals, 1e-300]).tobytes()
    assert found[1].view(np.uint64).tolist() == [*hashes.tolist(), 2**64 - 2]


def test_one_by_one_is_as_all_at_once():
    one_by_one, at_once = QueryTable(2), QueryTable(2)
    codes = [3, 7, "a", ("b", 1), -1, 2**63, 0, 3, np.int64(7), True]
    values = [np.array([3, 7, 9, 1, 1, 1, 1, 3, 7, 5]), np.arange(10) // 10 + 0.5]
    at_once.add(codes, np.ones(10, np.int64), values)
    for code, whole, real in zip(codes, *(column.tolist() for column in values), strict=True):
        assert one_by_one.add_one(code, 1, whole, real)[1] is None
    assert at_once.columns()[0] == one_by_one.columns()[0] == [3, 7, "a", ("b", 1), -1, 2**63, 0, 1]
    assert (
        one_by_one.n_added == at_once.n_added == pickle.loads(pickle.dumps(at_once)).n_added == 10
    )
    assert one_by_one.add_one("a", 1, 8, 0.5) == (8, [9, np.float64(0.5).view(np.int64)])
    assert one_by_one.add_one("a", 2, 8, 0.5) == (9, None) and one_by_one.n_added == 11
    for one, other in zip(at_once.columns()[2], one_by_one.columns()[2], strict=True):
        assert_array_equal(one, other[:8])


def test_what_is_refused_leaves_nothing_not_even_a_name():
    table = QueryTable(1)
    table.add(["a", 5], np.array([1, 1]), [np.array([1, 2])])
    before = pickle.dumps(table)
    ones = np.array([1, 1, 1])
    assert table.add(["b", "a", 6], ones, [np.array([1, 2, 3])])[2][0].tolist() == [1]
    assert table.add(["b", "b", 6], ones, [np.array([1, 2, 3])])[2][0].tolist() == [1]
    with pytest.raises(TypeError, match="unhashable"):
        table.add(["c", [], 6], ones, [ones])
    with pytest.raises(ValueError, match="columns must be 3, got 4"):
        table.add(["c", "d", 6], ones, [ones, ones])
    with pytest.raises(ValueError, match="columns must be 3 numbers of 64 bits each"):
        table.add(["c", "d", 6], ones[:2], [ones])
    with pytest.raises(ValueError, match="columns must be 3 numbers of 64 bits each"):
        table.add(["c", "d", 6], ones, [ones.astype(np.int32)])
    with pytest.raises(ValueError, match="values must be 1, got 2"):
        table.add_one("c", 1, 2, 3)
    with pytest.raises(TypeError):
        table.add_one("c", 1, "2")
    with pytest.raises(TypeError, match="unhashable"):
        table.add_one([], 1, 2)
    assert pickle.dumps(table) == before and len(table) == table.n_added == 2


def test_copies_go_their_own_way():
    table = QueryTable(1)
    table.add(["a", 5], np.array([1, 2]), [np.array([1, 2])])
    for make in (
        lambda t: t.copy(),
        copy.copy,
        copy.deepcopy,
        lambda t: pickle.loads(pickle.dumps(t)),
    ):
        again = make(table)
        assert again.add_one("a", 1, 1) == (2, None) and again.add_one(5, 2, 3) == (2, [2])
        assert again.add_one("b", 1, 9) == (3, None) and len(table) == 2
        assert again.columns()[0] == ["a", 5, "b"]
    assert len(QueryTable(3).copy()) == 0


def test_keys_of_one_hash_are_told_apart():
    """2**16 codes in steps that a plain product would put into few slots."""
    table = QueryTable(0)
    for step in (2**16, 2**32, 2**47):
        codes = np.arange(2**16) * step
        table = QueryTable(0)
        assert table.add(codes, np.ones(2**16, np.int64), [])[0] == 2**16
        assert table.add(codes, np.ones(2**16, np.int64), [])[0] == 2**16
        assert_array_equal(table.columns()[0], codes)


def test_threads_add_each_query_once():
    table, failed = QueryTable(1), []
    codes = np.arange(2000)

    def ask(shift):
        try:
            for first in range(0, 2000, 50):
                some = (codes[first : first + 50] + shift) % 2000
                assert table.add(some, np.ones(50, np.int64), [some * 3])[2] is None
                assert table.add_one(f"{first}", 1, first)[1] is None
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=ask, args=(250 * n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed and len(table) == 2040
    named = dict(zip(table.columns()[0], table.columns()[2][0].tolist(), strict=True))
    assert all(
        value == (int(code) if isinstance(code, str) else 3 * code) for code, value in named.items()
    )


def test_its_memory_and_its_names_go_with_it():
    class Name(str):
        __slots__ = ("__weakref__",)

    table, name = QueryTable(1), Name("a")
    table.add_one(name, 1, 1)
    gone = weakref.ref(name)
    del name
    assert gone() is not None
    del table
    gc.collect()
    assert gone() is None


def test_a_key_that_shortens_the_list_which_it_is_in_does_no_harm():
    class Key:
        def __hash__(self):
            del keys[3:]
            return 1

    table, keys = QueryTable(0), ["a", Key(), 1]
    keys += map(str, range(5000))
    with pytest.raises(IndexError):
        table.add(keys, np.ones(5003, np.int64), [])
    assert pickle.dumps(table) == pickle.dumps(QueryTable(0))
    assert table.add(keys, np.ones(3, np.int64), []) == (3, None, None)


def test_without_memory_nothing_changes():
    """Each allocation of a call fails in turn, at all widths and while the table grows."""
    testing = pytest.importorskip("_testcapi")
    rng, n_failed = np.random.default_rng(0), 0
    table, plain = QueryTable(2), Plain()
    for width in (1, 7, 15, 31, 62) * 3:
        k = int(rng.choice([1, 2, 17, 50]))
        codes = rng.integers(0, 2**width, k)
        values = [codes // 2, codes * 3.0]
        one = int(codes[0]), 1, int(values[0][0]), float(values[1][0])
        listed = [int(code) if code % 2 else (int(code), "a") for code in codes]
        ones = np.ones(k, np.int64)
        calls = (table.add_one, one), (table.add, (codes, ones, values))
        for add, given in (*calls, (table.add, (listed, ones, values))):
            for n in range(1000):
                before, failed = pickle.dumps(table), False
                testing.set_nomemory(n, n + 1)
                try:
                    add(*given)
                except MemoryError:
                    failed = True
                finally:
                    testing.remove_mem_hooks()
                if not failed:
                    break
                n_failed += 1
                assert pickle.dumps(table) == before
                again = table.columns()
                assert table.add(*again)[0] == len(table) == len(again[0])
        for each in (codes.tolist(), listed):
            plain.add(each, ones, [values[0], values[1].view(np.int64)])
        check_same(table, plain)
    assert n_failed > 100


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_that_is_forked_in_the_middle_of_a_call_can_use_it():
    begun, forked = threading.Event(), threading.Event()

    class Key(str):
        __slots__ = ()

        def __hash__(self):
            begun.set()
            forked.wait(30)
            return 1

    table = QueryTable(0)
    thread = threading.Thread(target=table.add_one, args=(Key("a"), 1))
    thread.start()
    begun.wait(30)
    free = true_in_a_child(lambda: table.add_one(7, 1) == (1, None) and len(table.copy()) == 1)
    forked.set()
    thread.join()
    assert free
    assert table.columns()[0] == ["a"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_that_is_forked_by_a_key_is_still_in_the_middle_of_the_call():
    class Key(str):
        __slots__ = ()
        child = None

        def __hash__(self):
            if Key.child is None:
                Key.child = os.fork()
                if Key.child == 0:
                    with pytest.raises(RuntimeError, match="in the middle of a call"):
                        table.add_one(7, 1)
            return 1

    table, done = QueryTable(0), False
    try:
        answer = table.add_one(Key("a"), 1)
        done = Key.child != 0 or answer == (1, None) and table.add_one(7, 1) == (2, None)
    finally:
        if Key.child == 0:
            os._exit(0 if done else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(Key.child, 0)[1]) == 0
    assert answer == (1, None) and table.columns()[0] == ["a"]


@pytest.mark.parametrize(
    "codes",
    [
        np.array([-1, 5, -7]),
        np.array([2**63, 5, 2**64 - 1], np.uint64),
        np.array([3, 5, 2**40], ">i8"),
        np.array([3, 5, 70000, 9], "<i8")[:3],
        np.array(["x", 5, ("b", 2)], object),
        np.array([3, -5, 7], np.int32),
        np.array(["a", "", "b"]),
    ],
    ids=lambda codes: str(codes.dtype),
)
def test_codes_in_any_array_are_what_they_are_in_a_list(codes):
    table, ones = QueryTable(0), np.ones(3, np.int64)
    assert table.add(["a name", -2], ones[:2], []) == (2, None, None)
    assert table.add(codes, ones, []) == (5, None, None)
    assert table.add(codes.tolist(), ones, [])[0] == 5
    assert table.columns()[0] == ["a name", -2, *codes.tolist()]


def test_a_pickle_of_a_machine_of_the_other_byte_order_is_read():
    table = QueryTable(1)
    table.add(["a", 5, -3], np.array([1, 2, 3]), [np.array([7, 8, -(2**40)])])
    make, (n_added, names, *columns) = table.__reduce__()
    again = make(
        n_added, names, *(column.astype(column.dtype.newbyteorder()) for column in columns)
    )
    assert pickle.dumps(again) == pickle.dumps(table)
