"""Names of columns and rows: classes are put in order, other orders of rows are refused."""

import itertools
import pickle

import numpy as np
import pytest
from support import GUARDS, holdout_of, query, query_many, search_of

from radabound_fast import ConfirmedSearch, DeclaredSearch, Gate, Holdout
from radabound_fast.metrics import Cost
from radabound_fast.rows.named import class_order

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")

M = 60
RNG = np.random.default_rng(4)
ANIMALS = ["cat", "dog", "emu"]
Y = np.append(ANIMALS, RNG.choice(ANIMALS, M - 3))
CHANCES = RNG.dirichlet([1, 1, 1], M)
FRAMES = {
    "pandas": lambda columns: pd.DataFrame(columns),
    "polars": lambda columns: pl.DataFrame(columns),
    "pyarrow": lambda columns: pa.table(columns),
}


def measured(**options):
    return search_of(Y, metric="neg_brier_score", **options)


def confirmed():
    return ConfirmedSearch(Holdout(Y, metric="neg_brier_score"), delta=0.1, seed=1)


# every way in which probabilities of classes come in
WAYS = {
    "score": lambda given: confirmed().score(given),
    "score_many": lambda given: confirmed().score_many([given])[0],
    "confirm": lambda given: confirmed().confirm({"a": given})[0].value,
    "query": lambda given: measured().query(given, key=0).value,
    "query_many": lambda given: measured().query_many([given], keys=[0]).values[0],
    "compare": lambda given: measured().compare(given, CHANCES, key_a=0, key_b=1).gain,
    "baseline": lambda given: measured(baseline=given).query(CHANCES, key=0).gain,
}


@pytest.mark.parametrize("kind", FRAMES)
@pytest.mark.parametrize("way", WAYS)
def test_columns_that_are_named_as_classes_are_put_in_order(way, kind):
    expected = WAYS[way](CHANCES)
    for order in itertools.permutations(range(3)):
        columns = {ANIMALS[place]: CHANCES[:, place] for place in order}
        assert WAYS[way](FRAMES[kind](columns)) == expected, order


@pytest.mark.parametrize("way", WAYS)
def test_columns_without_names_of_classes_go_by_position(way):
    named = {name: CHANCES[:, place] for place, name in enumerate("xyz")}
    for given in (pd.DataFrame(CHANCES), pd.DataFrame(named), pl.DataFrame(named)):
        assert WAYS[way](given) == WAYS[way](CHANCES)


def test_a_frame_with_a_row_a_model_has_samples_for_columns_whatever_they_are_called():
    """Sample numbers that are classes too, as row numbers and labels of 0 and 1 are."""
    y_true = RNG.integers(0, 2, M)
    expected = search_of(y_true, metric="neg_brier_score").query(CHANCES[:, 0], key=0).value
    for names in (INDEX - 3, RNG.permutation(M), [f"row {place}" for place in range(M)]):
        frame = pd.DataFrame([CHANCES[:, 0]] * 2, columns=names)
        search = search_of(y_true, metric="neg_brier_score")
        assert search.query_many(frame, keys=[0, 1]).values.tolist() == [expected] * 2


def test_a_column_beside_those_of_the_classes_is_not_dropped_in_silence():
    frame = pd.DataFrame(CHANCES, columns=ANIMALS).assign(label=1.0)
    for way, ask in WAYS.items():
        with pytest.raises(ValueError, match="must name each of the classes"):
            ask(frame)
            pytest.fail(way)
    with pytest.raises(ValueError, match="must name each of the classes"):
        class_order(["cat", "dog", "emu", "label"], ANIMALS, "y_pred")


@pytest.mark.parametrize("names", [["cat", "dog", "x"], ["cat", "cat", "dog"], [0, "cat", 2]])
@pytest.mark.parametrize("way", WAYS)
def test_columns_of_which_some_are_named_as_classes_are_refused(way, names):
    with pytest.raises(ValueError, match=r"must name each of the classes \['cat', 'dog', 'emu'\]"):
        WAYS[way](pd.DataFrame(CHANCES, columns=names))


# names, classes, where each class is; None: the names say nothing
@pytest.mark.parametrize(
    ("names", "classes", "expected"),
    [
        ([1, 0], [0, 1], [1, 0]),
        (["1", "0"], [0, 1], [1, 0]),
        (["1.0", "0.0"], [0, 1], [1, 0]),
        (["True", "False"], [0, 1], [1, 0]),
        ([True, False], [0, 1], [1, 0]),
        ([2, 1], ["1", "2"], [1, 0]),
        (["2.5", "1"], [1, 2.5], [1, 0]),
        (["1", 1], [1, "1"], [1, 0]),
        ([*"0123456789", "10"], sorted(map(str, range(11))), [0, 1, 10, *range(2, 10)]),
        (["0", "1"], [1, 2], None),  # numbered from 0, as columns without names are
        ([0, 1, 2], [1, 2, 3], None),
        (["no", "yes"], [0, 1], None),
        ([("a", 0), ("a", 1)], [0, 1], None),
        ([None, float("nan")], [0, 1], None),
    ],
)  # fmt: skip
def test_names_mean_classes_by_value_and_by_spelling(names, classes, expected):
    assert class_order(names, classes, "y_pred") == expected


def test_costs_in_a_frame_are_read_by_its_names():
    table = np.arange(9.0).reshape(3, 3)
    frame = pd.DataFrame(table, index=ANIMALS, columns=ANIMALS)
    expected = DeclaredSearch(Holdout(Y, metric=Cost(table)), 9, delta=0.1).query(Y[::-1], key=0)
    for rows, columns in itertools.product(itertools.permutations(ANIMALS), repeat=2):
        costs = Cost(frame.loc[list(rows), list(columns)])
        answer = DeclaredSearch(Holdout(Y, metric=costs), 9, delta=0.1).query(Y[::-1], key=0)
        assert answer == expected
    by_position = (frame.reset_index(drop=True), pd.DataFrame(table), pl.DataFrame(table))
    for costs in by_position:
        assert Holdout(Y, metric=Cost(costs)).truth.costs.tolist() == table.tolist()
    for wrong in (frame.rename(columns={"cat": "cow"}), frame.rename(index={"cat": "cow"})):
        with pytest.raises(ValueError, match="costs must name each of the classes"):
            Holdout(Y, metric=Cost(wrong))


@pytest.mark.parametrize("metric", ["roc_auc", "neg_brier_score"])
def test_a_column_of_another_class_is_no_score_of_the_positive_one(metric):
    y_true = np.append(["cat", "dog"], RNG.choice(["cat", "dog"], M - 2))
    search = search_of(y_true, metric=metric, pos_label="dog")
    chances = pl.DataFrame({"cat": CHANCES[:, 0], "dog": 1 - CHANCES[:, 0], "x": CHANCES[:, 1]})
    for frame in (chances, chances.to_pandas()):
        for name in ("dog", "x"):
            assert len(search.query_many([frame[name]], keys=[len(name)])) == 1
        for ask in (
            lambda column: search.query(column, key=2),
            lambda column: search.query_many([column], keys=[2]),
        ):
            with pytest.raises(ValueError, match="must be of the class 'dog', got the column of"):
                ask(frame["cat"])


# ---- rows -----------------------------------------------------------------------------------

INDEX = pd.Index(RNG.permutation(M) + 3)
ORDER = RNG.permutation(M)
LABELS = RNG.integers(0, 2, M)
IN_ORDER = "y_true, got the same index in another order"


@pytest.mark.parametrize("index", [INDEX, INDEX.map(str), INDEX // 2, pd.RangeIndex(M)])
@pytest.mark.parametrize("guard", GUARDS)
def test_rows_in_another_order_than_those_of_the_labels_are_refused(guard, index):
    y_true, y_pred = (pd.Series(one, index) for one in (LABELS, 1 - LABELS))
    asked = GUARDS[guard](y_true)
    for ask in (
        lambda: query(asked, y_pred.iloc[ORDER], 0),
        lambda: query_many(asked, [y_pred, y_pred.iloc[ORDER]], [0, 1]),
        lambda: query_many(asked, pd.DataFrame([1 - LABELS], columns=index[ORDER]), [0]),
    ):
        with pytest.raises(ValueError, match=IN_ORDER):
            ask()
    assert asked.n_answered == 0 and not asked.halted


@pytest.mark.parametrize(
    ("metric", "options", "given"),
    [
        ("roc_auc", {}, CHANCES[:, 0]),
        ("neg_brier_score", {}, CHANCES[:, 0]),
        ("neg_brier_score", {}, np.stack([CHANCES[:, 0], 1 - CHANCES[:, 0]], axis=1)),
        ("neg_mean_squared_error", {"y_range": (0, 1)}, CHANCES[:, 0]),
        ("mean_cost", {"costs": [[0, 1], [2, 0]]}, LABELS),
        ("f1", {}, LABELS),
    ],
)
def test_rows_in_another_order_are_refused_by_every_metric(metric, options, given):
    search = search_of(pd.Series(LABELS, INDEX), metric=metric, **options)
    rows = pd.DataFrame(given, INDEX) if given.ndim == 2 else pd.Series(given, INDEX)
    expected = search.query(given, key=0)
    assert search.query(rows, key=0) == expected
    for wrong in (rows.iloc[ORDER], [rows, rows.iloc[ORDER]]):
        with pytest.raises(ValueError, match=IN_ORDER):
            if isinstance(wrong, list):
                search.query_many(wrong, keys=[1, 2])
            else:
                search.query(wrong, key=1)
    assert search.n_answered == 1


def test_rows_that_do_not_name_the_labels_rows_go_by_position():
    search = DeclaredSearch(pd.Series(LABELS, INDEX), 9, delta=0.1)
    own, fresh = pd.Series(LABELS, INDEX), pd.Series(LABELS)
    for same in (LABELS, own, fresh, own.set_axis(INDEX + 9), pl.Series(LABELS)):
        assert search.query(same, key=0).value == 0.0
    # an index that nobody gave says nothing, though it may hold the labels' names
    mixed = DeclaredSearch(pd.Series(LABELS, ORDER), 9, delta=0.1)
    assert mixed.query(pd.Series(LABELS), key=0).value == 0.0
    by_array = DeclaredSearch(LABELS, 9, delta=0.1)
    assert by_array.query(own.set_axis(INDEX[::-1]), key=0).value == 0.0
    # who receives the labels compares by position: it may have no pandas
    assert pickle.loads(pickle.dumps(search)).query(own.iloc[ORDER], key=1).value > 0.0


@pytest.mark.parametrize("part", [slice(None), LABELS == 1])
def test_a_part_of_the_rows_is_in_the_order_of_the_labels_too(part):
    """Of a search that confirms on some rows, for all rows and for those alone."""
    y_true, mask = pd.Series(LABELS, INDEX), LABELS == 1
    mask[:9] = True
    rows = np.ones(M, np.bool_) if isinstance(part, slice) else mask
    y_pred = pd.Series(1 - LABELS, INDEX)[rows]
    search = ConfirmedSearch(Holdout(y_true), delta=0.1, rows=mask)
    with pytest.raises(ValueError, match=IN_ORDER):
        search.confirm({"a": y_pred.iloc[::-1]})
    assert search.confirm({"a": y_pred})[0].value == 1.0


@pytest.mark.parametrize(
    "make",
    [
        lambda y_true, mask: ConfirmedSearch(y_true, delta=0.1, rows=mask),
        lambda y_true, mask: Gate(y_true, delta=0.1, baseline=LABELS, slices={"a": mask}),
        lambda y_true, mask: Gate(y_true, delta=0.1, baseline=mask.astype(int)),
        lambda y_true, mask: DeclaredSearch(y_true, 9, delta=0.1, baseline=mask.astype(int)),
    ],
)
def test_rows_that_are_chosen_in_another_order_are_refused(make):
    y_true, mask = pd.Series(LABELS, INDEX), pd.Series(LABELS == 1, INDEX)
    assert make(y_true, mask) is not None
    with pytest.raises(ValueError, match=IN_ORDER):
        make(y_true, mask.iloc[ORDER])


@pytest.mark.parametrize("name", ["sample_weight", "groups"])
def test_weights_and_groups_in_another_order_are_refused(name):
    own = pd.Series(RNG.integers(1, 9, M), INDEX)
    y_true = pd.Series(LABELS, INDEX)
    assert holdout_of(y_true, **{name: own}).weighting is not None
    with pytest.raises(ValueError, match=f"{name} must have its rows in the order of {IN_ORDER}"):
        holdout_of(y_true, **{name: own.iloc[ORDER]})
