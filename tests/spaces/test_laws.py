"""Laws of every space: weights of accepted keys sum to at most 1, equal values are one key, members
are the declared values, and neither order nor process nor the caller's objects matter."""

import contextlib
import copy
import itertools
import json
import math
import os
import pickle
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from support import SCALARS, accepted, with_scalars

from radabound_fast import DeclaredSearch
from radabound_fast.spaces import (
    Choice,
    Grid,
    Improvements,
    InOrder,
    PointSample,
    Prior,
    Product,
    Steps,
    as_space,
    ensemble_of,
    epoch_of,
    subset_of,
    threshold_of,
)
from radabound_fast.spaces.prior import AcceptedWeights
from radabound_fast.spaces.reading import from_description
from radabound_fast.spaces.space import same_description


class Listed:
    """A prior that lists its keys."""

    def nats(self, key):
        return key * math.log(2)

    def __iter__(self):
        return iter(range(1, 64))


class Pairs:
    """A prior that lists tuples."""

    def nats(self, key):
        return math.log(4)

    def __iter__(self):
        return itertools.product((1, 2), "ab")


class Unlisted:
    """A prior that says nothing of its keys, and is wrong about 0 and True."""

    def nats(self, key):
        return math.inf if abs(key) > 99 else abs(key) * math.log(2)


class Contained(Unlisted):
    """A prior without end that says what its keys are."""

    def __contains__(self, key):
        return isinstance(key, int) and key >= 1


class Words:
    """A prior over names."""

    def nats(self, key):
        return {"a": math.log(2), "b": math.log(4)}.get(key, math.inf)


class Anything:
    """A prior of anything, all of which is unlikely."""

    def nats(self, key):
        return 20.0


GRID = {"n": [3, 1, 2], "a": ["a", None, True], "s": Steps(0, 1, 0.1)}
KEY = {"n": 1, "a": "a", "s": 0.3}

# each space, and one of its keys
SPACES = {
    "int": (as_space(4), 3),
    "range": (Choice(range(1, 8, 2)), 3),
    "list": (Choice([1, "a", None, True, 0.5, (1, "a")]), "a"),
    "array": (Choice(np.arange(4.0)), 2.0),
    "dicts": (Choice([{"n": 1, "a": "a"}, {"n": 2}]), {"n": 1, "a": "a"}),
    "steps": (Choice(Steps(0, 1, 0.1)), 0.3),
    "grid": (Grid(GRID), KEY),
    "grids": (Grid([{"n": [1, 2]}, {"n": [2, 3], "a": ["a"]}, {"n": [1.0]}]), {"n": 3, "a": "a"}),
    "points": (PointSample(GRID, 20, seed=1), PointSample(GRID, 20, seed=1)[3]),
    "order": (InOrder(), 3),
    "items": (InOrder(["b", "a", 1]), "a"),
    "prior": (Prior(Listed()), 3),
    "pairs": (Prior(Pairs()), (2, "b")),
    "unlisted": (Prior(Unlisted()), 3),
    "contained": (Prior(Contained()), 3),
    "words": (Prior(Words()), "a"),
    "anything": (Prior(Anything()), {"a": [1, "b"]}),
    "space as prior": (Prior(Grid(GRID)), KEY),
    "epoch": (epoch_of(4), 3),
    "threshold": (threshold_of(Steps(0, 1, 0.5)), 0.5),
    "product": (Product(4, GRID, InOrder()), (3, KEY, 2)),
    "subset": (subset_of([1, 2, 3, "a"]), (1, "a")),
    "pair": (subset_of(4, 2), [0, 3]),
    "ensemble": (ensemble_of(4, 2), [1, 3]),
    "ensembles": (ensemble_of(Grid({"n": [1, 2]})), [{"n": 1}, {"n": 2}, {"n": 1}]),
    "improvements": (Improvements(4), (3, ((1, 3), (2, 1)))),
}

every_space = pytest.mark.parametrize(("space", "key"), SPACES.values(), ids=SPACES)


# ---- membership and weights ------------------------------------------------------------------


@every_space
def test_weights_of_accepted_keys_never_exceed_1(space, key):
    """Whatever is handed over, in this order and the other."""
    keys = with_scalars(key)
    if space.size is not None and isinstance(space, (Choice, Grid)):
        keys += list(space)
    for order in (keys, keys[::-1]):
        found = accepted(copy.deepcopy(space), order)
        assert math.fsum(math.exp(-nats) for nats, _ in found.values()) <= 1 + 1e-9
        # of a prior that lists nothing, keys that came before may have used up all weight
        assert order is not keys or any(key is one for _, same in found.values() for one in same)


@every_space
def test_what_is_no_key_is_refused_in_a_line_that_names_the_rule(space, key):
    if isinstance(space, Prior) and not isinstance(space.declared, (Grid, Listed)):
        return  # whose own code refuses
    for one in with_scalars(key):
        if one not in space:
            with pytest.raises((TypeError, ValueError), match=" must ") as refusal:
                space.find(one)
            assert len(str(refusal.value)) < 600


@every_space
def test_equal_numbers_are_one_key_and_nothing_else_is(space, key):
    """Of what is accepted: 1 and 1.0 share a code, and no key of a code differs from its member."""
    found = accepted(copy.deepcopy(space), with_scalars(key))
    one_of_each = {}
    for code, (_, same) in found.items():
        for one in same:
            if type(one) in (int, float):  # as text too, which is what a database compares
                assert one_of_each.setdefault(one, json.dumps(code)) == json.dumps(code)
            if isinstance(one, (bool, np.bool_, str)):
                assert type(space.key_of(code)) is type(one) or isinstance(one, np.generic)


@every_space
def test_members_are_what_was_declared_in_python_s_own_types(space, key):
    space = copy.deepcopy(space)
    for code, (nats, same) in accepted(space, with_scalars(key)).items():
        member = space.key_of(code)
        assert "np." not in repr(member) and "array" not in repr(member)
        assert space.find(member) == (code, nats)
        again = space.key_of(json.loads(json.dumps(code, allow_nan=False)))
        assert again == member and space.find(again)[0] == code
        for one in (member, *same):
            assert space.nearest(one) == member


@every_space
def test_a_block_of_keys_is_found_as_one_by_one(space, key):
    space = copy.deepcopy(space)
    keys = [one for _, same in accepted(space, with_scalars(key)).values() for one in same]
    pairs = [space.find(one) for one in keys]
    for given in (keys, tuple(keys), iter(keys)):
        codes, nats = space.find_many(given)
        assert list(codes) == [code for code, _ in pairs]
        assert nats.tolist() == [cost for _, cost in pairs]
    for wrong in (True, "1", math.nan, object()):
        if wrong not in space:
            with pytest.raises((TypeError, ValueError)):
                space.find_many([key, wrong])


@every_space
def test_neither_what_is_given_nor_what_is_returned_is_shared(space, key):
    space, given = copy.deepcopy(space), copy.deepcopy(key)
    code, described = space.find(given)[0], json.dumps(space.describe())
    assert given == key
    for _ in range(2):
        member = space.key_of(code)
        assert space.nearest(given) == member and given == key
        if isinstance(member, dict):
            member.clear()
        if isinstance(member, tuple) and isinstance(member[0], dict):
            member[0].clear()
    assert space.find(key)[0] == code and json.dumps(space.describe()) == described


@every_space
def test_a_space_is_the_same_after_json_and_after_pickle(space, key):
    space, made = copy.deepcopy(space), []
    if not isinstance(space, Prior) or isinstance(space.declared, Grid):
        made.append(pickle.loads(pickle.dumps(space)))
    if not isinstance(space, Prior):
        made.append(from_description(json.loads(json.dumps(space.describe(), allow_nan=False))))
    for again in made:
        assert again == space and hash(again) == hash(space) and again.size == space.size
        assert again.describe() == space.describe() and again.find(key) == space.find(key)
        assert isinstance(space, (Choice, Grid)) or repr(again) == repr(space)
    assert space != as_space(7)


def test_what_declared_a_space_may_change_afterwards():
    numbers, inner, array = [1, 2, 3], {"n": [1, 2]}, np.arange(3.0)
    grid, mapping = {"n": numbers, "x": array}, {"n": 1, "deep": {"m": [1]}}
    pool = [mapping, {"n": 2}]
    spaces = [Grid(grid), Grid([inner]), Choice(pool), InOrder(pool), subset_of(numbers)]
    spaces += [ensemble_of(inner), Choice(array), Product(inner, Choice(pool))]
    described = [json.dumps(space.describe()) for space in spaces]
    numbers.append(9)
    array[0] = 7
    mapping["n"], mapping["deep"]["m"][0] = 5, 6
    inner["n"].append(3)
    grid["more"] = [1]
    pool.clear()
    assert [json.dumps(space.describe()) for space in spaces] == described
    assert spaces[0][0] == {"n": 1, "x": 0.0} and spaces[2][0] == {"n": 1, "deep": {"m": [1]}}


def test_an_array_of_keys_is_neither_kept_nor_changed():
    search, keys = DeclaredSearch(10, 5, delta=0.1), np.array([3, 1, 4])
    answers = search.query_many(np.zeros((3, 10), bool), keys=keys)
    keys[:] = 0
    assert answers.keys == search.answers.keys == [3, 1, 4]


@pytest.mark.parametrize("keys", [[True, 2], (False, 1), [np.True_, 2], [1, 2.5], ["1", 2]])
def test_a_list_of_keys_with_one_that_is_none_is_refused(keys):
    search = DeclaredSearch(10, 5, delta=0.1)
    with pytest.raises(ValueError, match="key must be one of"):
        search.query_many(np.zeros((2, 10), bool), keys=keys)
    assert search.n_answered == 0


# ---- priors that cannot be listed ------------------------------------------------------------


def test_a_prior_that_lists_its_keys_has_these_alone():
    space = as_space(Listed())
    assert space.size == 63 and [space.find(key)[0] for key in (1, 63.0)] == [1, 63]
    for wrong in (0, 0.5, True, 64, 100, "1", None):
        with pytest.raises(ValueError, match="key must be one of the 63 that the space lists"):
            space.find(wrong)


def test_a_prior_returns_what_it_lists_and_codes_of_plain_types():
    class Functions(Words):
        def nats(self, key):
            return math.log(2)

        def __iter__(self):
            return iter([math.sqrt, math.exp])

    class Name(str):
        """A string of a tool's own."""

    space = as_space(Functions())
    assert [space.key_of(space.find(one)[0]) for one in space.declared] == list(space.declared)
    assert type(as_space(Words()).find(Name("a"))[0]) is str


def test_a_prior_without_end_has_the_keys_that_it_contains():
    space = as_space(Contained())
    assert [key in space for key in (3, 3.0, np.int64(3), 40)] == [True] * 4
    for wrong in (0, 0.5, 2.5, -1):
        with pytest.raises(ValueError, match="key must be in the space, got"):
            space.find(wrong)


def test_a_key_that_a_prior_lists_twice_or_at_weight_0_counts_once_or_not_at_all():
    class Twice:
        def nats(self, key):
            return math.inf if key == 3 else math.log(2)

        def __iter__(self):
            return iter([1, 1.0, np.int64(1), 3, 2])

    space = as_space(Twice())
    assert space.size == 2 and [key in space for key in (1, 2, 3)] == [True, True, False]


def test_a_prior_that_does_not_list_its_keys_has_their_weights_added_up():
    space = as_space(Unlisted())
    accepted_keys = [key for key in (2, 3, -2, 1, -1, 4, 0) if key in space]
    # 1/4 + 1/8 + 1/4, then 1/2 is too much, 1/16 is not, and 1 is
    assert accepted_keys == [2, 3, -2, 4]
    assert [space.nats(key) for key in (2, 2.0, -2)] == [2 * math.log(2)] * 3
    with pytest.raises(ValueError, match="got 1, with which the weights of 5 accepted keys sum to"):
        space.find(1)
    # a copy goes its own way from here
    again = pickle.loads(pickle.dumps(space))
    assert 1 not in again and 5 in again and 4 in again


def test_threads_together_accept_no_more_than_1():
    """Two keys of weight .6, each held up between the sum so far and its own weight."""
    both_are_there, accepted_keys, weights = threading.Barrier(2), [], AcceptedWeights()

    class HeldUp(float):
        def __neg__(self):
            with contextlib.suppress(threading.BrokenBarrierError):
                both_are_there.wait(0.2)  # where a lock lets only one in, it goes on alone
            return -float(self)

    def add(key):
        with contextlib.suppress(ValueError):
            weights.add(key, HeldUp(-math.log(0.6)), key)
            accepted_keys.append(key)

    threads = [threading.Thread(target=add, args=(key,)) for key in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(accepted_keys) == 1


# ---- order and processes ---------------------------------------------------------------------


def orders_of(key):
    """The same key in other orders, where it has one that does not count."""
    if isinstance(key, dict):
        return [dict(items) for items in itertools.permutations(key.items())]
    return [key]


@every_space
def test_the_order_of_names_does_not_count(space, key):
    code = space.find(key)[0]
    for again in orders_of(key):
        assert space.find(again)[0] == code and space.nearest(again) == space.key_of(code)


@pytest.mark.parametrize(
    ("space", "key"),
    [
        (SPACES["subset"][0], ("a", 1, 3)),
        (SPACES["ensembles"][0], ({"n": 1}, {"n": 2}, {"n": 1}, {"n": 1})),
        (
            ensemble_of(as_space(3) * {"n": [1, 2]}, 3),
            ((1, {"n": 2}), (2, {"n": 1}), (0, {"n": 1})),
        ),
    ],
)
def test_the_order_of_members_and_picks_does_not_count(space, key):
    found = {space.find(again) for again in itertools.permutations(key)}
    assert len(found) == 1


def test_names_come_back_in_the_order_in_which_they_were_declared(tmp_path):
    grid = {"rate": [0.1, 0.2], "depth": range(3), "a": ["x"]}
    key = {"a": "x", "depth": 2, "rate": 0.2}
    for space in (Grid(grid), Grid([{"b": [1]}, grid]), Product(3, grid), ensemble_of(grid, 1)):
        described = json.loads(json.dumps(space.describe()))
        for one in (space, from_description(described), pickle.loads(pickle.dumps(space))):
            given = {Product: (1, key), type(ensemble_of(2)): [key]}.get(type(space), key)
            member = one.key_of(one.find(given)[0])
            names = member if isinstance(member, dict) else member[-1]
            assert list(names) == ["rate", "depth", "a"]
    # a database has them in its maker's order, whoever opens it in another
    path, turned = tmp_path / "search.db", dict(reversed(grid.items()))
    made = DeclaredSearch.open(path, 10, grid, delta=0.1)
    assert list(made.query(np.zeros(10, bool), key=key).key) == ["rate", "depth", "a"]
    assert list(DeclaredSearch.open(path).answers.keys[0]) == ["rate", "depth", "a"]
    assert list(DeclaredSearch.open(path, 10, turned, delta=0.1).answers.keys[0]) == list(turned)
    assert Grid(grid) == Grid(turned) and hash(Grid(grid)) == hash(Grid(turned))
    assert not same_description(Grid(grid).describe(), Grid(grid | {"a": ["y"]}).describe())
    with pytest.raises(ValueError, match="space must be"):
        DeclaredSearch.open(path, 10, grid | {"a": ["y"]}, delta=0.1)


IN_ANOTHER_PROCESS = """
import json, sys
sys.path[:0] = sys.argv[1:]
from tests.spaces.test_laws import SPACES, told_of
print(json.dumps([told_of(space, key) for space, key in SPACES.values()]))
"""

SETS = Choice([frozenset("abc"), frozenset("abd"), {"k": frozenset("xyz"), "a": (1, 2)}])


def told_of(space, key):
    """What must be the same in every process."""
    sets = [
        SETS.describe(),
        SETS.find({"c", "b", "a"})[0],
        SETS.find({"a": [1, 2], "k": set("zyx")})[0],
    ]
    return json.loads(json.dumps([space.describe(), *space.find(key), sets]))


@pytest.mark.thorough
@pytest.mark.parametrize("hash_seed", ["1", "2"])
def test_codes_are_the_same_in_a_process_with_another_hash_seed(hash_seed):
    done = subprocess.run(
        [sys.executable, "-c", IN_ANOTHER_PROCESS, *map(str, Path(__file__).parents[1:3])],
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [told_of(space, key) for space, key in SPACES.values()]


# ---- the last of a range, and limits ---------------------------------------------------------


@pytest.mark.parametrize(
    ("low", "high", "step", "members"),
    [
        (0, 0.3, 0.1, [0.0, 0.1, 0.2, 0.3]),
        (0, 0.35, 0.1, [0.0, 0.1, 0.2, 0.3]),
        (0.1, 0.7, 0.2, [0.1, 0.3, 0.5, 0.7]),
        (-1.6, -1.3, 0.1, [-1.6, -1.5, -1.4, -1.3]),
        (1, 2.2, 0.3, [1.0, 1.3, 1.6, 1.9, 2.2]),
        (1e-3, 4e-3, 1e-3, [0.001, 0.002, 0.003, 0.004]),
        (5, 5, 0.1, [5.0]),
        (0, 1, 1 / 3, [0.0, 1 / 3, 2 / 3, 1.0]),
        (1e6, 1e6 + 2e-3, 1e-3, [1e6, 1000000.001, 1000000.002]),
    ],
)
def test_steps_end_where_they_say_and_are_the_decimals_that_people_write(low, high, step, members):
    steps = Steps(low, high, step)
    assert steps == Steps(low, high, step)
    assert list(steps) == steps[:] == members == [steps[i] for i in range(len(steps))]
    assert steps[-1] == members[-1]
    for place, member in enumerate(members):
        for raw in (member, low + place * step, math.nextafter(member, 9), member + 1e-7 * step):
            assert steps.place(raw) == place and Choice(steps).nearest(raw) == member
        assert steps.place(low + (place + 1 / 3) * step) is None
        assert steps.index(member) == place
    for outside in (low - step, high + step, low - 1e-3 * step, members[-1] + 1e-3 * step):
        assert steps.place(outside) is None
        assert Choice(steps).nearest(outside) in (members[0], members[-1])


@pytest.mark.parametrize(
    ("low", "step", "message"),
    [(1e16, 1.0, "step must be at least 32.0"), (1.0, 2e-15, "step must be at least 3.5")],
)
def test_steps_that_rounding_would_merge_raise(low, step, message):
    with pytest.raises(ValueError, match=message):
        Steps(low, low + 100 * step, step)


def test_every_step_down_to_the_smallest_is_a_key_of_its_own():
    low = 1.0
    steps = Steps(low, low + 1e-12, 16 * math.ulp(low + 1e-12))
    assert len(set(steps)) == len(steps) > 100
    assert [steps.place(one) for one in steps] == list(range(len(steps)))


@pytest.mark.parametrize("n", [1, 5, 2**63 - 1, 2**63, 2**63 + 1, 2**200])
def test_an_int_ends_exactly_at_its_size(n):
    space = as_space(n)
    for inside in (0, n - 1, float(n - 1) if float(n - 1) == n - 1 else 0):
        assert inside in space
    assert space.find(n - 1) == (n - 1, math.log(n)) and space.size == n  # never written out
    for outside in (n, n + 1, -1):
        assert outside not in space
        with pytest.raises(ValueError, match="key must be one of"):
            space.find_many([outside])
    assert np.array([n - 1])[0] in space


@pytest.mark.parametrize(
    "space",
    [Grid({"a": [1, 2, 3]}), Grid([{"a": [1]}, {"b": [1, 2]}]), Choice(["a", "b", "c"])],
)
def test_places_beyond_a_space_are_index_errors(space):
    assert space[-3] == space[0] and space[-1] == space[2] == list(space)[-1]
    for place in (3, -4, 10**30):
        with pytest.raises(IndexError):
            space[place]


@pytest.mark.parametrize("sizes", [(2**62, 2), (2**31, 2**32), (2**61, 5), (2**63, 2), (3**40, 2)])
def test_the_last_key_of_a_product_is_kept_at_and_beyond_64_bits(sizes):
    search, last = DeclaredSearch(8, Product(*sizes), delta=0.1), tuple(n - 1 for n in sizes)
    for key in (last, (0, 0), (last[0], 0)):
        assert search.query(np.zeros(8, bool), key=key).key == key
    assert search.answers.keys == [last, (0, 0), (last[0], 0)]
    assert search.query_many(np.zeros((2, 8), bool), keys=[last, (0, 1)]).keys == [last, (0, 1)]


def test_scalars_have_every_type_that_a_tool_hands_over():
    assert len({type(one) for one in SCALARS}) > 20
