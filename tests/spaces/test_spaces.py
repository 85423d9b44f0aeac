"""Spaces: what a key is, what it costs, and that all weights together are at most 1."""

import enum
import itertools
import json
import math
import pickle
from collections import Counter

import numpy as np
import pytest

from radabound_fast import DeclaredSearch, spaces
from radabound_fast.spaces import (
    Choice,
    Grid,
    Improvements,
    InOrder,
    Prior,
    Steps,
    as_space,
    ensemble_of,
    epoch_of,
    subset_of,
    threshold_of,
)
from radabound_fast.spaces.reading import from_description


class Kernel(enum.Enum):
    LINEAR = 1
    RBF = 2


class Estimator:
    """As scikit-learn's: known by its class and parameters."""

    def __init__(self, depth):
        self.depth = depth

    def get_params(self, deep=True):
        return {"depth": self.depth}


class Halving:
    """A prior with a method and nothing else."""

    def nats(self, key):
        return math.inf if key < 1 else key * math.log(2)


def weight(space, keys):
    return math.fsum(math.exp(-space.nats(key)) for key in keys)


# ---- one value of a few -------------------------------------------------------------------------


@pytest.mark.parametrize("key", [3, 3.0, np.int8(3), np.uint64(3), np.float32(3), np.float64(3)])
@pytest.mark.parametrize("values", [5, range(5), [0, 1, 2, 3, 4], np.arange(5.0), Steps(0, 4, 1)])
def test_a_number_is_the_same_key_whatever_its_type(values, key):
    space = Choice(values)
    assert space.find(key) == (3, math.log(5))
    assert space.key_of(3) == 3


@pytest.mark.parametrize("key", [True, False, np.True_, "1", None, 1.5, 5, -1, math.nan, math.inf])
@pytest.mark.parametrize("values", [5, [0, 1, 2, 3, 4], Steps(0, 4, 1)])
def test_what_is_not_among_the_values_is_an_error_and_true_is_not_1(values, key):
    with pytest.raises(ValueError, match=r"^(key must be one of .*got |key must be finite)"):
        Choice(values).find(key)
    assert key not in Choice(values)


def test_true_and_1_are_two_values():
    space = Choice([True, 1, "1", None, "None", False, 0])
    assert [space.find(value)[0] for value in space] == [0, 1, 2, 3, 4, 5, 6]
    assert space.find(np.True_)[0] == 0 and space.find(1.0)[0] == 1


@pytest.mark.parametrize(
    ("value", "same"),
    [
        ((1, 2.0), [1.0, 2]),
        ({"a": (1,), 2: None}, {2.0: None, "a": [1]}),
        ({1, 2}, frozenset([2.0, 1.0])),
        (np.array([1, 2]), (1, 2)),
        (Kernel.RBF, Kernel(2)),
        (Estimator(3), Estimator(3.0)),
        (math.sqrt, pickle.loads(pickle.dumps(math.sqrt))),
        (Estimator, Estimator),
        (b"no".decode(), np.str_("no")),
    ],
)
def test_equal_values_of_any_kind_are_one_key(value, same):
    space = Choice([0, value, "other"])
    assert space.find(same)[0] == 1


@pytest.mark.parametrize(
    ("values", "error", "message"),
    [
        ([], ValueError, "lr must not be empty"),
        (range(0), ValueError, "lr must not be empty"),
        (0, TypeError, r"lr must be a sequence of values, got 0: \[0\] for one, range\(0\)"),
        (3, TypeError, r"or many; a list of keys is spaces.Choice\(list\)"),
        ([0.1, math.nan], ValueError, "lr must be finite, got nan"),
        ([0.1, math.inf], ValueError, "lr must be finite, got inf"),
        ([1, 2, 1.0], ValueError, "lr must have different values, got 1.0 at 0 and at 2"),
        (np.array([[1, 2]]), TypeError, "lr must be a sequence of values"),
        ("adam", TypeError, "lr must be a sequence of values, got 'adam'"),
        ({1, 2}, TypeError, "lr must be a sequence of values"),
        (0.5, TypeError, "lr must be a sequence of values, got 0.5"),
        (2.0, TypeError, "lr must be a sequence of values, got 2.0"),
        (True, TypeError, "lr must be a sequence of values, got True"),
        (None, TypeError, "lr must be a sequence of values, got None"),
        (iter([1]), TypeError, "lr must be a sequence of values"),
        ([object()], TypeError, "lr must be numbers, strings, None"),
        ([lambda x: x], TypeError, "lr must be something that has a name of its own"),
    ],
)
def test_what_no_finite_set_of_values_is_raises(values, error, message):
    with pytest.raises(error, match=message):
        Grid({"lr": values})


def test_a_continuous_distribution_says_what_to_give_instead():
    stats = pytest.importorskip("scipy.stats")
    with pytest.raises(TypeError, match=r"lr must have finitely many values.*Steps\(low, high"):
        Grid({"lr": stats.uniform(0, 1)})


def test_a_float_off_the_grid_is_told_the_nearest():
    with pytest.raises(ValueError, match=r"lr must be one of \[0.1, 0.2, 0.3\], got 0.25; the"):
        Grid({"lr": [0.1, 0.2, 0.3]}).find({"lr": 0.25})
    with pytest.raises(ValueError, match=r"got 0.1234; the nearest is 0.12$"):
        Choice(Steps(0, 1, 0.01)).find(0.1234)
    with pytest.raises(ValueError, match=r"got 7; the nearest is 4$"):
        Choice(5).find(7)


# an integer of 400 digits is no float, and is told like any other key that is not there
@pytest.mark.parametrize(
    "space",
    [
        Choice(5), Choice([0.1, 0.2]), Choice([1, "a", None, 0.5]), Choice(range(0, 100, 3)),
        Choice(Steps(0, 1, 0.1)), InOrder([0.1, 0.2]), epoch_of(5), threshold_of(5),
    ],
    ids=repr,
)  # fmt: skip
def test_a_key_that_no_float_holds_is_not_in_the_space(space):
    for key in (10**400, -(10**400), np.inf, np.nan):
        assert key not in space
        with pytest.raises((TypeError, ValueError), match="must be"):
            space.find(key)
    with pytest.raises(ValueError, match=r"lr must be one of .*got 0.1$|; the nearest is 1$"):
        Grid({"lr": [10**400, 1]}).find({"lr": 0.1})


def test_a_sum_of_many_steps_is_still_on_the_grid():
    steps, total = Steps(0, 100, 0.1), 0.0
    for i in range(len(steps)):
        assert steps.place(total) == i
        total += 0.1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, 1, 0), "step must be positive"),
        ((1, 0, 0.1), "high must be at least low = 1.0, got 0.0"),
        ((0, math.inf, 1), "high must be finite"),
        ((0, 1, 1e-17), r"step must leave fewer than 2\*\*53 values"),
    ],
)
def test_bad_steps_raise(arguments, message):
    with pytest.raises(ValueError, match=message):
        Steps(*arguments)


# ---- a grid -------------------------------------------------------------------------------------


@pytest.mark.parametrize("step", [*range(-7, 0), *range(1, 8), 2**40])
def test_a_range_has_as_many_keys_as_it_has_numbers(step):
    """Whether its step divides it or not, and when there are more than `len` can say."""
    for stop in range(-12, 13):
        numbers = range(0, stop, step)
        if not numbers:
            with pytest.raises(ValueError, match="must not be empty"):
                Choice(numbers)
            continue
        space = Choice(numbers)
        assert space.size == len(numbers)
        assert [space.find(key)[0] for key in numbers] == list(range(len(numbers)))
        assert space.nats(numbers[-1]) == math.log(len(numbers))
        long = Choice(range(0, (2**70 * step) + stop, step))
        assert long.size == 2**70 + len(numbers)


def test_a_grid_is_what_parameter_grid_takes_in_its_order():
    model_selection = pytest.importorskip("sklearn.model_selection")
    grids = [
        {"C": np.logspace(-2, 2, 5), "kernel": ["rbf", "linear"], "shrinking": [True, False]},
        {"C": [1], "kernel": ["poly"], "degree": range(2, 5)},
    ]
    for given in (grids, grids[0]):
        listed = list(model_selection.ParameterGrid(given))
        space = as_space(given)
        assert space.size == len(listed)
        assert list(space) == listed == [space[i] for i in range(len(listed))]
        assert [space.find(key)[0] for key in listed] == list(range(len(listed)))
        assert space[-1] == listed[-1]
        assert weight(space, listed) == pytest.approx(1)


def test_a_grid_of_grids_has_each_of_them():
    space = as_space([{"a": [1, 2]}, {"a": [2, 3], "b": [1]}, {"a": [5]}])
    assert space.size == 5
    assert space.find({"a": 5})[0] == 4 and space.find({"b": 1, "a": 2})[0] == 2
    with pytest.raises(ValueError, match="key must be in one of 2 grids, got {'a': 3}"):
        space.find({"a": 3})
    with pytest.raises(ValueError, match=r"key must have the names \['a'\] or \['a', 'b'\]"):
        space.find({"c": 3})


@pytest.mark.parametrize(
    ("key", "error", "message"),
    [
        ({"a": 1}, ValueError, r"key must have the names \['a', 'b'\], got \['a'\]"),
        ({"a": 1, "b": "x", "c": 0}, ValueError, r"got \['a', 'b', 'c'\]"),
        ({"a": True, "b": "x"}, ValueError, "a must be one of .*True and False are no numbers"),
        ({"a": 1, "b": object()}, TypeError, "b must be numbers, strings"),
        ([1, "x"], TypeError, "key must be a mapping of names to values"),
        (None, TypeError, "key must be a mapping of names to values, got None"),
    ],
)
def test_a_key_outside_a_grid_raises_and_says_which_value(key, error, message):
    with pytest.raises(error, match=message):
        as_space({"a": [1, 2], "b": ["x", "y"]}).find(key)


@pytest.mark.parametrize(
    ("space", "error", "message"),
    [
        ({}, ValueError, "space must not be empty"),
        ([], ValueError, "space must not be empty"),
        (0, ValueError, "space must be at least 1, got 0"),
        (-3, ValueError, "space must be at least 1"),
        (2.0, TypeError, "space must be an int"),
        (True, TypeError, "space must be an int"),
        ("grid", TypeError, "space must be an int"),
        ([1, 2], TypeError, r"a list of keys is spaces.Choice\(list\)"),
        ({1: [2]}, TypeError, "space must have names that are strings, got 1"),
        ([{"a": 0.1}], TypeError, "a must be a sequence of values, got 0.1"),
        (Halving, TypeError, "space must be an int|must have a method"),
    ],
)
def test_what_declares_no_space_raises(space, error, message):
    with pytest.raises(error, match=message):
        as_space(space)


# ---- an order, a product, a collection ----------------------------------------------------------


def test_places_in_an_order_have_weights_that_sum_to_1():
    space = InOrder()
    # 1 - 1/(n+1), telescoping
    assert weight(space, range(1, 1001)) == pytest.approx(1 - 1 / 1001)
    assert space.nats(1) == math.log(2) and space.size is None
    for wrong in (0, -1, 1.5, True, None, "1"):
        with pytest.raises(ValueError, match="key must be a place in the order, 1, 2, 3"):
            space.find(wrong)


def test_items_in_an_order_pay_by_their_rank():
    space = InOrder([{"lr": 0.3}, {"lr": 0.1}, {"lr": 0.2}])
    assert space.find({"lr": 0.1}) == (2, math.log(2) + math.log(3))
    assert space.key_of(2) == {"lr": 0.1} and space.size == 3


def test_a_product_asks_a_tuple_and_adds_the_nats():
    space = Grid({"depth": [2, 4, 8]}) * epoch_of(100) * InOrder()
    assert space.size is None
    nats = math.log(3) + math.log(100) + math.log(6)
    code, found = space.find(({"depth": 4}, 7, 2))
    assert found == pytest.approx(nats)
    assert space.key_of(code) == ({"depth": 4}, 7, 2)
    assert (3 * epoch_of(5)).size == 15
    for wrong in (({"depth": 4}, 7), {"depth": 4}, 5, ({"depth": 4}, 7, 2, 1)):
        with pytest.raises(ValueError, match="key must be a tuple of 3, one key of each of Grid"):
            space.find(wrong)
    with pytest.raises(ValueError, match=r"epoch must be one of range\(0, 100\), got 100"):
        space.find(({"depth": 4}, 100, 1))


def test_what_is_chosen_by_the_score_costs_its_logarithm():
    assert epoch_of(100).nats(99) == math.log(100)
    assert threshold_of(50).nats(0) == math.log(50)
    assert threshold_of([0.25, 0.5]).nats(0.5) == math.log(2)
    with pytest.raises(ValueError, match="threshold must be one of"):
        threshold_of(Steps(0, 1, 0.01)).find(0.123)


@pytest.mark.parametrize("size", [None, 0, 1, 2, 5])
def test_the_weights_of_all_subsets_sum_to_1(size):
    space = subset_of(5, size)
    sizes = range(6) if size is None else [size]
    keys = [key for s in sizes for key in itertools.combinations(range(5), s)]
    assert len(keys) == space.size
    assert len({space.find(key)[0] for key in keys}) == len(keys)
    assert weight(space, keys) == pytest.approx(1)


@pytest.mark.parametrize(("n", "size"), [(10**15, 3), (10**5, 2000), (10**4, 5000), (10**4, 9990)])
def test_subsets_of_many_members_cost_no_less_than_their_number_says(n, size):
    exact = math.log(math.comb(n, size))
    assert exact <= subset_of(n, size).nats(range(size)) <= exact * (1 + 1e-12)


def test_a_subset_has_no_order_and_no_repeats():
    space = subset_of(["month", "day", "hour"], 2)
    assert space.find({"day", "month"}) == space.find(np.array(["month", "day"]))
    assert space.key_of(space.find(["day", "month"])[0]) == ("month", "day")
    with pytest.raises(ValueError, match="key must have different members"):
        space.find(["day", "day"])
    with pytest.raises(ValueError, match="key must have 2 members, got 1"):
        space.find(["day"])
    with pytest.raises(ValueError, match="a member of key must be one of .*got 'year'"):
        space.find(["day", "year"])
    with pytest.raises(TypeError, match="key must be a collection, got 'day'"):
        space.find("day")
    with pytest.raises(ValueError, match=r"size must be in \[0, 3\]"):
        subset_of(3, 4)


@pytest.mark.parametrize("n_picks", [1, 2, 3, 4])
def test_the_weights_of_all_ensembles_sum_to_1(n_picks):
    """By the multinomial theorem, for equal weights and others."""
    for members, of in ((Choice(3), range(3)), (InOrder(["a", "b", "c"]), "abc")):
        space = ensemble_of(members, n_picks)
        keys = list(itertools.combinations_with_replacement(of, n_picks))
        total = weight(members, of) ** n_picks
        assert weight(space, keys) == pytest.approx(total)
        assert len(keys) == space.size
        assert all(space.nats(key) <= sum(map(members.nats, key)) + 1e-9 for key in keys)


def test_an_ensemble_has_no_order():
    space = ensemble_of({"depth": [1, 2]})
    one, two = {"depth": 1}, {"depth": 2}
    code, nats = space.find([two, one, two])
    assert (code, nats) == space.find([two, two, one])
    # 3 picks: ln 3*4; 3 orders of {2, 2, 1}
    assert nats == pytest.approx(3 * math.log(2) - math.log(3) + math.log(12))
    assert Counter(key["depth"] for key in space.key_of(code)) == {1: 1, 2: 2}
    with pytest.raises(ValueError, match="key must have at least 1 picks, got 0"):
        space.find([])
    with pytest.raises(ValueError, match="key must have 2 picks, got 1"):
        ensemble_of(5, 2).find([1])


# ---- a prior of one's own -----------------------------------------------------------------------


def test_an_object_that_says_nats_is_a_space():
    space = as_space(Halving())
    assert isinstance(space, Prior) and space.size is None
    assert space.nats(3) == pytest.approx(math.log(8))
    assert space.find(np.int64(3)) == space.find(3.0)
    with pytest.raises(ValueError, match="key must be in the space, got 0, of weight 0"):
        space.find(0)


@pytest.mark.thorough
def test_weights_that_sum_to_more_than_1_are_found_where_keys_are_listed():
    class Listed(Halving):
        def __iter__(self):
            return itertools.count(1)  # without end

    class TooMuch(Listed):
        def nats(self, key):
            return 0.5 * key

        def __len__(self):
            return 1000

    assert as_space(Listed()).nats(1) == math.log(2)
    with pytest.raises(ValueError, match="weights that sum to at most 1, got 1.19.* after 3 keys"):
        as_space(TooMuch())


@pytest.mark.parametrize("nats", [-0.1, math.nan, None, "1", True])
def test_nats_that_no_weight_has_raise(nats):
    class Wrong:
        def nats(self, key):
            return nats

    with pytest.raises(ValueError, match=r"nats\(key\) must be at least 0, that is ln\(1/w\), got"):
        as_space(Wrong()).find(1)


# ---- in another process -------------------------------------------------------------------------


def test_values_that_json_cannot_make_are_known_again():
    space = Grid({"model": [Estimator(1), Estimator(2)], "f": [math.sqrt, math.exp, Kernel.RBF]})
    again = from_description(json.loads(json.dumps(space.describe())))
    key = {"model": Estimator(2), "f": math.exp}
    assert again == space and again.find(key) == space.find(key)
    assert "Estimator" in repr(again)


def test_a_prior_of_ones_own_has_to_be_passed_again():
    with pytest.raises(ValueError, match="space must be passed again, since only its own code"):
        from_description(as_space(Halving()).describe())


def test_arrays_of_integers_are_found_at_once():
    space = as_space(1000)
    for dtype in (np.int64, np.uint8, np.int16):
        keys = np.array([5, 0, 99, 5], dtype)
        codes, nats = space.find_many(keys)
        assert codes.tolist() == [5, 0, 99, 5] and codes.dtype == np.int64
        assert (nats == math.log(1000)).all()
    with pytest.raises(ValueError, match=r"key must be one of range\(0, 1000\), got 1000"):
        space.find_many(np.array([3, 1000]))
    with pytest.raises(ValueError, match="got -1"):
        space.find_many(np.array([3, -1]))
    assert Choice(range(-5, 5)).find_many(np.array([-5, 4], np.int8))[0].tolist() == [0, 9]
    assert Choice(range(-300, 5)).find_many(np.array([-5, 4], np.int8))[0].tolist() == [295, 304]
    huge = Choice(range(2**63, 2**64))
    assert huge.find_many(np.array([2**63 + 3], np.uint64))[0] == [3]


def test_the_public_names_are_these():
    assert dir(spaces) == sorted(spaces.__all__)
    assert all(hasattr(spaces, name) for name in spaces.__all__)


# ---- what a search was shown ---------------------------------------------------------------


def shown_keys(n_levels, n):
    """Every key of n answers."""
    if n == 0:
        yield 0, ()
    for u in range(1, n + 1):
        for places in itertools.combinations(range(2, n + 1), u - 1):
            for levels in itertools.combinations(range(n_levels), u):
                yield n, tuple(zip((1, *places), levels[::-1], strict=True))


@pytest.mark.parametrize("n_levels", [1, 2, 5])
def test_the_keys_of_so_many_answers_weigh_no_more_than_their_number(n_levels):
    space = Improvements(n_levels)
    for n in range(8):
        keys = list(shown_keys(n_levels, n))
        assert len({space.find(key)[0] for key in keys}) == len(keys)
        assert weight(space, keys) <= 1 / ((n + 1) * (n + 2)) + 1e-12
        for key in keys:
            code, nats = space.find(key)
            again = space.key_of(json.loads(json.dumps(code)))
            assert again == key and space.find(again) == (code, nats)
    if n_levels == 5:  # 3 answers, 2 improvements at 2 places, a first level of 5, a fall by 3
        paid = space.nats((3, ((1, 4), (3, 1))))
        assert paid == pytest.approx(math.log(4 * 5 * 2 * 3 * 2 * 5 * 3 * 4))
    assert weight(space, shown_keys(n_levels, 1)) == pytest.approx(1 / 12)  # one improvement of 1


@pytest.mark.parametrize(
    "key",
    [
        3,
        (0,),
        (0, ((1, 2),)),
        (1, ()),
        (2, ((2, 3),)),
        (2, ((1, 3), (2, 3))),
        (2, ((1, 3), (2, 4))),
        (2, ((1, 3), (3, 2))),
        (2, ((1, 10),)),
        (2, ((1, -1),)),
        (2.5, ((1, 3),)),
        (True, ((1, 3),)),
        (-1, ()),
        (1, ((1, 3),), 5),
        {"n": 1},
        "ab",
        None,
    ],
)
def test_what_no_search_was_shown_is_no_key(key):
    with pytest.raises(ValueError, match="key must be how many answers were shown"):
        Improvements(10).find(key)


def test_improvements_have_a_number_of_levels():
    assert Improvements(10) != Improvements(11) and Improvements(10).size is None
    with pytest.raises(ValueError, match="n_levels must be"):
        Improvements(0)


def test_a_space_made_of_improvements_says_that_too():
    shows = "the best score so far on 11 levels"
    one = Improvements(11)
    made = [one, one * epoch_of(5), epoch_of(5) * one, ensemble_of(one), Prior(one)]
    made += [ensemble_of(one * epoch_of(5), 2) * Grid({"depth": [1, 2]}), one * one]
    assert [space.shows for space in made] == len(made) * [shows]
    assert (one * Improvements(7)).shows == f"{shows} and the best score so far on 7 levels"
    for space in (Choice(3), epoch_of(5) * Grid({"depth": [1, 2]}), ensemble_of(5), InOrder()):
        assert space.shows is None
    for space in made:
        guarantee = DeclaredSearch(100, space, delta=0.1).guarantee
        assert f"any search that sees of the holdout {shows}, and nothing else" in guarantee
        assert "looks at every score" not in guarantee


def nested(depth):
    made = 1
    for _ in range(depth):
        made = [made]
    return made


LOOP = []
LOOP.append(LOOP)


NO_KEYS = {
    "deep": nested(900),
    "deeper": nested(100_000),
    "a loop": LOOP,
    "text": "x" * 10**6,
    "bytes": b"x" * 10**6,
    "names": {str(i): i for i in range(9999)},
    "large": 10**400,
    "low": -(10**400),
    "digits": 10**5000,
    "nan": float("nan"),
    "an array": np.zeros(10**5),
}


@pytest.mark.parametrize("value", NO_KEYS.values(), ids=NO_KEYS)
def test_whatever_is_no_key_is_refused_in_a_line_or_two(value):
    declared = {
        "an int": (5, [value]),
        "a grid": ({"d": [1, 2], "z": [[1, [2]]]}, [value, {"d": 1, "z": value}, {"d": value}]),
        "steps": ({"s": Steps(0, 1, 0.1)}, [{"s": value}]),
        "an order": (InOrder(["a", "b"]), [value]),
        "a product": (
            as_space(5) * as_space({"d": [1, 2]}),
            [value, (value, {"d": 1}), (1, value)],
        ),
        "members": (subset_of(["a", "b"]), [value, [value]]),
        "improvements": (Improvements(10), [value, (2, value), (value, 3)]),
    }
    for name, (space, keys) in declared.items():
        search = DeclaredSearch(100, space, delta=0.1)
        for key in keys:
            with pytest.raises((TypeError, ValueError)) as refusal:
                search.query(np.zeros(100, bool), key=key)
            assert len(str(refusal.value)) < 500, name
            assert " must " in str(refusal.value), name
        assert search.n_answered == 0
