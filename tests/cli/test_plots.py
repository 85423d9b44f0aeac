"""The figures: what is drawn is what was given, and every label can be read."""

import itertools
import subprocess
import sys

import numpy as np
import pytest
from matplotlib.collections import PolyCollection
from numpy.testing import assert_allclose, assert_array_equal

from radabound_fast.plots import audit_figure, report_figure, search_figure

HOLDOUT = [0.30, 0.28, 0.28, 0.20, 0.18]
TRUTH = [0.31, 0.27, 0.27, 0.26, 0.26]
HALTS = {"bernstein-split": 1, "bernstein": 3, "mclt": None}


def draw_search(holdout=HOLDOUT, truth=TRUTH, halts=HALTS, epsilon=0.07):
    told = np.array(holdout)
    bands = {"wide": (told - 0.1, told + 0.1), "narrow": (told - epsilon, told + epsilon)}
    return search_figure(holdout, truth, bands, halts, title="A title", subtitle="More")


def draw_audit(halts=HALTS, n_queries=5):
    curve = np.linspace(0.01, 0.02, n_queries)
    budgets = dict(zip(halts, np.linspace(0.012, 0.02, len(halts)), strict=True))
    return audit_figure(dict.fromkeys(halts, curve), budgets, halts)


def texts(figure):
    return [text.get_text() for text in (*figure.texts, *figure.axes[0].texts)]


def bars(figure):
    """The queries at which a bar spans the axes from bottom to top."""
    axes = figure.axes[0]
    upright = [
        line.get_xdata()[0]
        for line in axes.lines
        if line.get_transform() == axes.transAxes and list(line.get_ydata()) == [0, 1]
    ]
    to_query = axes.transAxes + axes.transData.inverted()
    return [to_query.transform((x, 0))[0] for x in upright]


def curve(figure, index):
    """One value per query, from a line of steps that reach from query i to i + 1 or further."""
    x, y = figure.axes[0].lines[index].get_data()
    assert_array_equal(x[2::2], x[1:-1:2])
    assert_array_equal(y[::2], y[1::2])
    return np.repeat(y[::2], (x[1::2] - x[::2]).astype(int))


@pytest.mark.parametrize("n_queries", [1, 3, 9])
def test_few_queries_have_a_tick_each(n_queries):
    figure = draw_audit({"mclt": None}, n_queries)
    assert figure.axes[0].get_xticks().tolist() == list(range(1, n_queries + 1))


def test_the_two_curves_are_the_errors_given():
    figure = draw_search()
    assert_array_equal(curve(figure, 0), TRUTH)
    assert_array_equal(curve(figure, 1), HOLDOUT)


def test_the_bands_are_those_given_the_wide_one_below():
    bands = [c for c in draw_search().axes[0].collections if isinstance(c, PolyCollection)]
    for band, width in zip(bands, (0.1, 0.07), strict=False):
        heights = band.get_paths()[0].vertices[:, 1]
        expected = np.concatenate([np.subtract(HOLDOUT, width), np.add(HOLDOUT, width)])
        assert_allclose(np.unique(heights.round(12)), np.unique(expected.round(12)))
    assert {"wide", "narrow"} <= set(texts(draw_search()))


def test_a_truth_outside_the_last_band_is_pointed_out_where_it_leaves():
    (note,) = [t for t in draw_search(epsilon=0.07).axes[0].texts if "leaves" in t.get_text()]
    assert note.get_text() == "the truth leaves\nnarrow"
    assert note.xy == (5, 0.26)


def test_a_truth_inside_is_not_pointed_out():
    assert not [text for text in texts(draw_search(epsilon=0.09)) if "leaves" in text]


@pytest.mark.parametrize("draw", [draw_search, draw_audit])
def test_a_bar_stands_at_every_halt_and_none_where_there_is_none(draw):
    figure = draw()
    assert_allclose(bars(figure), [1, 3])
    assert "bernstein-split\nhalts at 1" in texts(figure)
    assert "bernstein\nhalts at 3" in texts(figure)
    assert "mclt\nanswers all 5" in texts(figure)


def test_the_audit_shows_each_complexity_budget_and_no_negative_one():
    figure = audit_figure(
        {"bernstein-split": [0.01], "mclt": [0.01, 0.02, 0.021]},
        {"bernstein-split": -0.003, "mclt": 0.0205},
        {"bernstein-split": 1, "mclt": 3},
    )
    assert_array_equal(curve(figure, 0), [0.01, 0.02, 0.021])
    assert list(figure.axes[0].lines[1].get_ydata()) == [0.0205, 0.0205]
    assert "mclt" in texts(figure)
    assert "bernstein-split" not in texts(figure)


def test_complexities_that_differ_are_drawn_and_named_apart():
    complexities = {"mclt": [0.01, 0.02], "fixed-sequence": [0.0, 0.01, 0.01], "bernstein": [0.01]}
    figure = audit_figure(
        complexities, dict.fromkeys(complexities, 0.02), dict.fromkeys(complexities)
    )
    assert_array_equal(curve(figure, 0), complexities["fixed-sequence"])
    assert_array_equal(curve(figure, 1), complexities["mclt"])
    assert "for fixed-sequence" in texts(figure)
    assert "for mclt,\nbernstein" in texts(figure)


def test_a_budget_far_above_the_complexity_is_named_and_does_not_flatten_the_rest():
    curve = {"mclt": [0.01, 0.02], "fixed-sequence": [0.01, 0.02]}
    halts = {"mclt": None, "fixed-sequence": None}
    figure = audit_figure(curve, {"mclt": 0.08, "fixed-sequence": 1.0}, halts)
    assert "fixed-sequence: 1 ↑" in texts(figure)
    assert 0.08 < figure.axes[0].get_ylim()[1] < 0.1


def test_queries_answered_whatever_their_complexity_are_named_beside_the_budget():
    curve = {"mclt": [0.01, 0.02], "fixed-sequence": [0.01, 0.02], "other": [0.01, 0.02]}
    halts = {"mclt": None, "fixed-sequence": None, "other": 2}
    budgets = {"mclt": 0.03, "fixed-sequence": 0.004, "other": -0.1}
    free = {"fixed-sequence": 7244, "mclt": 0, "other": 1}
    figure = audit_figure(curve, budgets, halts, without_signs=free)
    assert "fixed-sequence,\nafter the first 7,244" in texts(figure)
    assert "other:\nthe first 1 only" in texts(figure)
    assert {"mclt", "mclt, fixed-sequence\nanswer all 2"} <= set(texts(figure))


# one query; all bars at one place, left and right; the awkward middle; none
CROWDED = [
    (1, [1, 1, 1, 1]),
    (5000, [1, 1, 1, 2]),
    (5000, [5000, 5000, 4999, 4998]),
    (5000, [60, 60, 70, None]),
    (5000, [None, None, None, None]),
    (10**5, [1, 99_999, 10**5, 10**5]),
]


@pytest.mark.parametrize("draw", [draw_search, draw_audit])
@pytest.mark.parametrize(("n_queries", "halts"), CROWDED)
def test_labels_neither_overlap_nor_leave_the_figure(draw, n_queries, halts):
    names = ["fixed-sequence", "bernstein-split", "bernstein", "mclt"]
    named = dict(zip(names, halts, strict=True))
    if draw is draw_search:
        figure = draw([0.2] * n_queries, [0.21] * n_queries, named, epsilon=0.05)
    else:
        figure = draw(named, n_queries)
    figure.draw_without_rendering()
    check_labels(figure)


def check_labels(figure):
    (axes,) = figure.axes
    artists = [*figure.texts, *axes.texts, axes.xaxis.label, axes.yaxis.label]
    boxes = {artist.get_text(): artist.get_window_extent() for artist in artists}
    for (one, box), (other, other_box) in itertools.combinations(boxes.items(), 2):
        assert not box.overlaps(other_box), (one, other)
    for text, box in boxes.items():
        assert figure.bbox.x0 <= box.x0 and box.x1 <= figure.bbox.x1, text
        assert figure.bbox.y0 <= box.y0 and box.y1 <= figure.bbox.y1, text


@pytest.mark.parametrize(
    ("draw", "arguments", "message"),
    [
        (draw_search, ([], [], {}), r"holdout_error must have shape \(n_queries,\), got \(0,\)"),
        (draw_search, ([[0.1]], [0.1], {}), r"holdout_error must have .*, got \(1, 1\)"),
        (draw_search, ([0.1], 0.1, {}), r"true_error must have shape \(n_queries,\), got \(\)"),
        (draw_search, ([0.1, 0.1], [0.1], {}), "true_error .* for each of 2 queries, got 1"),
        (draw_search, ([0.1], [0.1], {"mclt": 2}), r"halts must be in \[1, 1\], got 2 for mclt"),
        (draw_search, ([0.1], [0.1], {"mclt": 0}), r"halts must be in \[1, 1\], got 0 for mclt"),
        (audit_figure, ({}, {}, {}), "must name the same bounds"),
        (audit_figure, ({"a": [0.1]}, {"b": 0.1}, {"a": None}), "must name the same bounds"),
        (audit_figure, ({"a": []}, {"a": 0.1}, {"a": None}), "complexities must have shape"),
        (audit_figure, ({"a": [0.1]}, {"a": 0.1}, {"a": 2}), r"halts must be in \[1, 1\]"),
    ],
)
def test_bad_arguments_are_refused_by_name(draw, arguments, message):
    with pytest.raises(ValueError, match=message):
        draw(*arguments)


def test_a_figure_is_saved_without_pyplot(tmp_path):
    path = tmp_path / "audit.png"
    program = (
        "import sys\n"
        "from radabound_fast.plots import audit_figure\n"
        "audit_figure({'mclt': [0.1]}, {'mclt': 0.2}, {'mclt': None}).savefig(sys.argv[1])\n"
        "assert 'matplotlib.pyplot' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program, path], check=True)
    assert path.read_bytes().startswith(b"\x89PNG")


# ---- the scores of a search ----------------------------------------------------------------------


def draw_report(scores, half_width=0.03, **options):
    """The picture of errors in this order, all with one width."""
    values = np.asarray(scores, float)
    lowest = np.minimum.accumulate(values)
    best = np.array([np.flatnonzero(values == value)[0] for value in lowest])
    return report_figure(
        values,
        values - half_width,
        values + half_width,
        best,
        metric="error",
        title="A title",
        subtitle="More",
        **options,
    )


GOOD = 0.2 + 0.05 * np.sin(np.arange(40))


# a share of one bad model, of many, a first one that is the best so far, on the better side too
@pytest.mark.parametrize("bad", [{7: 1.0}, dict.fromkeys(range(0, 40, 8), 0.9), {0: 0.8, 1: 0.7}])
def test_a_bad_model_does_not_flatten_the_others(bad):
    scores = GOOD.copy()
    scores[list(bad)] = list(bad.values())
    figure = draw_report(scores, baseline=0.95)
    (axes,) = figure.axes
    bottom, top = axes.get_ylim()
    assert bottom <= scores.min() - 0.03 and scores[scores < 0.3].max() + 0.03 <= top < 0.4
    (marks,) = [line for line in axes.lines if line.get_marker() == "^"]
    assert list(marks.get_xdata() - 1) == list(bad) and marks.get_ydata().max() < top
    models = "1 model" if len(bad) == 1 else f"{len(bad)} models"
    assert {f"{models}\nto {max(bad.values()):.3g} ↑", "the baseline 0.95 ↑"} <= set(texts(figure))


def test_the_best_is_seen_however_far_it_is_from_the_others():
    scores = 0.8 + 0.1 * (GOOD - 0.2)
    scores[30] = 0.001
    (axes,) = draw_report(scores, half_width=0.001).axes
    assert axes.get_ylim()[0] <= 0.0
    assert "the best:\nmodel 31" in [text.get_text() for text in axes.texts]
    assert not [line for line in axes.lines if line.get_marker() in ("^", "v")]


@pytest.mark.parametrize(("n_models", "dense"), [(2000, False), (2001, True)])
def test_more_models_than_can_be_told_apart_are_a_density(n_models, dense):
    rng = np.random.default_rng(1)
    (axes,) = draw_report(0.2 + 0.1 * rng.random(n_models)).axes
    hexagons = [c for c in axes.collections if isinstance(c, PolyCollection) and len(c.get_array())]
    assert len(hexagons) == dense
    if dense:
        assert hexagons[0].get_array().sum() == n_models


# one; two; equals; a second digit; the last that are marked, and the first that are not
@pytest.mark.parametrize(
    "n_models", [1, 2, 8, 9, 40, 59, 2000, 2001, pytest.param(50_000, marks=pytest.mark.thorough)]
)
@pytest.mark.parametrize("spread", [0.0, 0.1])
def test_labels_of_a_report_neither_overlap_nor_leave_the_figure(n_models, spread):
    scores = 0.2 + spread * np.random.default_rng(2).random(n_models)
    figure = draw_report(scores, baseline=0.21)
    figure.draw_without_rendering()
    check_labels(figure)
    (axes,) = figure.axes
    assert axes.get_xscale() == "linear" and all(tick % 1 == 0 for tick in axes.get_xticks())
    assert axes.get_position().y1 > 0.83  # no empty strip below the title
