"""Points drawn beforehand, and the nearest of them, against sums written out."""

import math

import numpy as np
import pytest
from scipy.stats import kstest, loguniform, norm, randint, rankdata, uniform

from radabound_fast import DeclaredSearch
from radabound_fast.spaces import Choice, Grid, InOrder, PointSample, Steps, as_space
from radabound_fast.spaces.reading import from_description

PARAMETERS = {
    "rate": loguniform(1e-5, 1.0),
    "depth": range(1, 21),
    "loss": ["log", "exp", None],
    "fast": [True, False],
    "share": uniform(0.5, 0.5),
}


def squares(points, suggested):
    """The squared distance of every point, parameter by parameter: the documented one."""
    total = np.zeros(len(points))
    for name in {name for point in [*points, suggested] for name in point}:
        missing = object()
        column = [point.get(name, missing) for point in points]
        value = suggested.get(name, missing)
        numbers = np.array([type(one) in (int, float) for one in column])
        if type(value) in (int, float) and numbers.any():
            have = np.array([one for one, is_one in zip(column, numbers, strict=True) if is_one])
            shares = (rankdata(have) - 0.5) / len(have)  # ties have the middle of theirs
            order = np.argsort(have)
            place = np.interp(value, have[order], shares[order])
            total[numbers] += (shares - place) ** 2
            total[~numbers] += 1
        else:
            total += [
                one is not value and (type(one), one) != (type(value), value) for one in column
            ]
    return total


def test_the_nearest_point_is_that_of_the_least_sum_of_squares():
    space, rng = PointSample(PARAMETERS, 500, seed=1), np.random.default_rng(2)
    for _ in range(200):
        suggested = PointSample(PARAMETERS, 1, seed=int(rng.integers(2**32)))[0]
        nearest, distances = space.nearest(suggested), squares(space.values, suggested)
        assert distances[space.place(nearest)] == pytest.approx(distances.min(), abs=1e-12)
        assert nearest["loss"] == suggested["loss"] and nearest["fast"] is suggested["fast"]
    for point in space:
        assert space.nearest(point) == point


def drawn(rng):
    """A conditional space: a network has layers, each with a width, a tree has a depth."""
    if rng.random() < 0.5:
        return {"kind": "tree", "depth": int(rng.integers(1, 20))}
    n_layers = int(rng.integers(1, 4))
    widths = {f"width{i}": int(2 ** rng.uniform(3, 9)) for i in range(n_layers)}
    return {"kind": "network", "layers": n_layers, "rate": float(10 ** rng.uniform(-5, 0))} | widths


@pytest.mark.parametrize("n", [8, 30, 400])
def test_a_parameter_that_only_one_has_counts_as_another_category(n):
    space, rng = PointSample(drawn, n, seed=0), np.random.default_rng(5)
    for _ in range(200):
        suggested = drawn(rng)
        nearest, distances = space.nearest(suggested), squares(space.values, suggested)
        assert distances[space.place(nearest)] == pytest.approx(distances.min(), abs=1e-12)
        assert n < 400 or nearest.keys() == suggested.keys()


def test_a_branch_that_no_point_is_of_goes_to_the_nearest():
    space = PointSample(drawn, 400, seed=0)
    assert 200 < space.size < 300  # of trees there are 19
    assert space.nearest({"kind": "forest", "depth": 3}) == {"kind": "tree", "depth": 3}
    with pytest.raises(ValueError, match=r"params must have the names \['kind', 'layers', .*'C'\]"):
        space.nearest({"C": 1.0})


def test_a_scale_is_that_on_which_points_were_drawn():
    """Halfway between two numbers is halfway by their shares: in the middle of a logarithm."""
    space = PointSample({"rate": loguniform(1e-6, 1.0)}, 4000, seed=3)
    for rate in np.geomspace(1e-5, 0.1, 9):
        assert abs(math.log(space.nearest({"rate": rate})["rate"] / rate)) < 0.05
    bell = PointSample({"x": norm(5, 2)}, 4000, seed=3)
    assert bell.nearest({"x": 5.001})["x"] == pytest.approx(5, abs=0.05)
    assert bell.nearest({"x": 1e9})["x"] == max(point["x"] for point in bell)


@pytest.mark.parametrize(
    ("domain", "law"),
    [
        (loguniform(1e-3, 1e3), loguniform(1e-3, 1e3)),
        (uniform(2, 5), uniform(2, 5)),
        (norm(1, 3), norm(1, 3)),
    ],
)
def test_points_are_drawn_from_the_distribution(domain, law):
    """Kolmogorov and Smirnov, 2000 draws, seed 7: a correct program fails with chance 1e-6 each."""
    points = [point["x"] for point in PointSample({"x": domain}, 2000, seed=7)]
    assert kstest(points, law.cdf).pvalue > 1e-6


def test_each_of_several_mappings_and_each_value_is_as_likely():
    """4000 draws, seed 7: 5 standard deviations, so that a correct program fails with 1e-6."""
    several = [{"kind": ["a"], "x": uniform(0, 1)}, {"kind": ["b", "c"], "y": uniform(0, 1)}]
    kinds = [point["kind"] for point in PointSample(several, 4000, seed=7)]
    for kind, share in (("a", 0.5), ("b", 0.25), ("c", 0.25)):
        assert abs(kinds.count(kind) - 4000 * share) < 5 * math.sqrt(4000 * share * (1 - share))
    assert {frozenset(point) for point in PointSample(several, 9, seed=7)} == {
        frozenset(["kind", "x"]),
        frozenset(["kind", "y"]),
    }


def test_the_same_seed_draws_the_same_points_and_no_seed_others():
    one, same, other = (PointSample(PARAMETERS, 50, seed=seed) for seed in (4, 4, 5))
    assert one == same and hash(one) == hash(same) and one != other
    assert PointSample(PARAMETERS, 50) != PointSample(PARAMETERS, 50)
    again = from_description(one.describe())
    assert again == one and again.nearest({**one[7], "rate": 0.5}) == one.nearest(
        {**one[7], "rate": 0.5}
    )
    assert all(list(point) == list(PARAMETERS) for point in (*one, one.nearest(one[3])))


def test_points_of_finite_spaces_are_some_of_their_keys_each_once():
    grid = Grid({"a": range(10**9), "b": Steps(0, 1, 0.1)})
    for space in (
        grid,
        as_space(10**6),
        Choice(range(0, 2**80, 3)),
        Choice([*"abcdefgh"]),
    ):
        points = PointSample(space, 5, seed=0)
        assert points.size == 5 and all(point in space for point in points)
    # 64 draws are not all from one half of a space, but with chance 2**-63
    for size in (10**6, 2**62, 2**63, 2**80):
        places = [place * 2 // size for place in PointSample(as_space(size), 64, seed=0)]
        assert set(places) == {0, 1} and len(places) == 64
    assert PointSample(Grid({"a": [1, 2]}), 100, seed=0).size == 2  # all of it
    assert PointSample({"a": [1, 2]}, 100, seed=0).size == 2
    assert PointSample({"a": randint(0, 3)}, 100, seed=0).nearest({"a": 1.4}) == {"a": 1}


def test_a_point_costs_the_logarithm_of_their_number_and_a_grid_of_all():
    """Half-widths at an error of .2: a grid of seven parameters, 10,000 points, 200."""
    sizes = 19 * 10**13, 10_000, 200
    for m, widths in ((4000, [0.0545, 0.029, 0.0228]), (20_000, [0.0236, 0.0127, 0.01])):
        searches = [DeclaredSearch(m, size, delta=0.1) for size in sizes]
        highs = [one.interval_of_count(m // 5, key=0)[1] for one in searches]
        assert [round(high - 0.2, 4) for high in highs] == widths
    assert [round(math.log(size), 1) for size in sizes] == [32.9, 9.2, 5.3]
    space = PointSample(PARAMETERS, 10_000, seed=0)
    assert space.nats(space[17]) == math.log(10_000)


def test_a_search_trains_what_is_nearest_and_nothing_else_is_a_key():
    space = PointSample(PARAMETERS, 100, seed=0)
    search = DeclaredSearch(100, space, delta=0.1)
    suggested = {"rate": 0.01, "depth": 5, "loss": None, "fast": True, "share": 0.7}
    point = space.nearest(suggested)
    assert search.query(np.zeros(100, bool), key=point).key == point
    with pytest.raises(ValueError, match="key must be one of"):
        search.query(np.zeros(100, bool), key=suggested)
    assert search.n_answered == 1
    assert repr(space).startswith("PointSample(rate=") and repr(space).endswith(", and 99 more)")


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"more": 1}, ValueError, r"params must have the names \['rate', .*'more'\]"),
        ({"rate": math.nan}, ValueError, "params must be finite, got nan"),
        ({"rate": math.inf}, ValueError, "params must be finite, got inf"),
        ({"loss": object()}, TypeError, "params must be numbers, strings"),
    ],
)
def test_a_suggestion_that_is_near_nothing_raises(change, error, message):
    space = PointSample(PARAMETERS, 20, seed=0)
    with pytest.raises(error, match=message):
        space.nearest(space[0] | change)
    without = {name: value for name, value in space[0].items() if name != "rate"}
    with pytest.raises(ValueError, match="params must have the names"):
        space.nearest(without)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((5, 10), TypeError, "space must be a mapping of names to values or distributions"),
        (({}, 10), TypeError, "space must be a mapping"),
        (([], 10), TypeError, "space must be a mapping"),
        (({"a": 0.5}, 10), TypeError, "a must be a sequence of values, got 0.5"),
        (({"a": []}, 10), ValueError, "a must not be empty"),
        ((PARAMETERS, 0), ValueError, "n must be at least 1, got 0"),
        ((PARAMETERS, 2.5), TypeError, "n must be an integer"),
        ((PARAMETERS, 10, -1), ValueError, "seed must be in"),
        ((PARAMETERS, 10, "x"), TypeError, "seed must be an integer"),
        ((lambda rng: object(), 10), TypeError, "points must be numbers, strings"),
        ((lambda rng: {"x": math.nan}, 10), ValueError, "points must be finite, got nan"),
    ],
)
def test_what_no_points_can_be_drawn_from_raises(arguments, error, message):
    with pytest.raises(error, match=message):
        PointSample(*arguments)


def test_a_distribution_that_is_declared_as_a_grid_is_told_of_points():
    with pytest.raises(TypeError, match="or draw points beforehand: spaces.PointSample"):
        DeclaredSearch(100, PARAMETERS, delta=0.1)


# ---- the nearest of grids and others -----------------------------------------------------------


@pytest.mark.parametrize(
    ("space", "suggested", "nearest"),
    [
        (Choice([1, 10, 100]), 40, 10),
        (Choice([1, 10, 100]), -5, 1),
        (Choice([1, "a", None, True]), 7, 1),
        (Choice([1, "a", None, True]), True, True),
        (Choice(["a", "b"]), np.str_("b"), "b"),
        (Choice(range(0, 100, 7)), 11.0, 14),
        (Choice(range(10, 0, -3)), 5.4, 4),
        (as_space(5), 1e300, 4),
        (as_space(5), 2.5, 2),  # the first of equals, everywhere
        (as_space(5), 1.5, 1),
        (Choice(range(5, 0, -1)), 2.5, 3),
        (Choice([3, 1]), 2, 3),
        (Choice([{"x": 3}, {"x": 1}, {"x": 3.5}]), {"x": 2}, {"x": 3}),
        (Choice([{"k": "a"}, {"k": "b"}]), {"k": "c"}, {"k": "a"}),
        (Choice(Steps(0, 1, 0.1)), np.float32(0.3), 0.3),
        (InOrder([0.1, 0.2]), 0.19, 0.2),
        (InOrder(), 3.0, 3),
        (Choice([(1, "a"), (2, "b")]), (3, "a"), (1, "a")),
        (Choice([{"a": {"b": 1}}, {"a": {"b": 9}}]), {"a": {"b": 6}}, {"a": {"b": 9}}),
        (Grid({"n": [1, 5], "s": Steps(0, 1, 0.1)}), {"s": 0.34, "n": 2.9}, {"n": 1, "s": 0.3}),
        (Grid([{"n": [1]}, {"n": [9]}, {"m": [5]}]), {"n": 8}, {"n": 9}),
        (Grid([{"n": [1], "k": [0]}, {"n": [9], "k": ["b"]}]), {"n": 9, "k": 0}, {"n": 1, "k": 0}),
        (as_space(3) * {"n": [1, 5]}, (1.4, {"n": 4}), (1, {"n": 5})),
    ],
)  # fmt: skip
def test_the_nearest_key_of_other_spaces(space, suggested, nearest):
    found = space.nearest(suggested)
    assert found == nearest and type(found) is type(nearest) and found in space


@pytest.mark.parametrize(
    ("space", "suggested", "message"),
    [
        (Choice(["a", "b"]), "c", "key must be one of"),
        (Choice([1, 2]), "1", "key must be one of"),
        (Choice([1, 2]), True, "key must be one of .*True and False are no numbers"),
        (Choice([1, 2]), math.nan, "key must be one of"),
        (as_space(5), math.inf, "key must be one of"),
        (Choice(range(10**400, 10**400 + 5)), 3.5, "key must be one of"),
        (Grid({"n": [1, 5], "k": ["a"]}), {"n": 1, "k": "b"}, "k must be one of"),
        (Grid({"n": [1, 5], "k": ["a"]}), {"n": "1", "k": "a"}, "n must be one of"),
        (Grid({"n": [1, 5]}), {"m": 1}, r"params must have the names \['n'\], got \['m'\]"),
        (InOrder(), 2.5, "key must be a place in the order"),
        (as_space(3) * {"n": [1, 5]}, 1, "params must be a tuple of 2"),
    ],
)
def test_where_nothing_is_near_it_raises(space, suggested, message):
    with pytest.raises(ValueError, match=message):
        space.nearest(suggested)


def test_a_suggestion_for_a_grid_must_be_a_mapping():
    with pytest.raises(TypeError, match="params must be a mapping of names to values, got 5"):
        Grid({"n": [1]}).nearest(5)
