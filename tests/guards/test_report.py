"""What a search came to: its sentence, JSON, table and picture."""

import json
import math
import pickle
import re

import numpy as np
import pytest
from support import search_of

from radabound_fast import DeclaredSearch, Holdout, RadaBound
from radabound_fast.cli import main
from radabound_fast.spaces import Choice
from radabound_fast.spaces.messages import shown_key

M = 2000
RNG = np.random.default_rng(5)
LABELS = RNG.integers(0, 2, M)
BASELINE = LABELS ^ (RNG.random(M) < 0.25)
DEPTHS = range(1, 31)
PREDICTIONS = {
    depth: LABELS ^ (RNG.random(M) < 0.3 - 0.004 * depth + 0.02 * (depth % 3)) for depth in DEPTHS
}


def search_by_depth(**options):
    return search_of(LABELS, {"depth": DEPTHS}, **options)


def asked(search):
    for depth, predictions in PREDICTIONS.items():
        search.query(predictions, key={"depth": depth})
    return search


@pytest.mark.parametrize("metric", ["error", "accuracy", "f1"])
def test_the_sentence_has_the_best_model_and_its_interval(metric):
    search = asked(search_by_depth(metric=metric))
    report, best = search.report(), search.best
    assert report.best == best and report.metric == metric
    found = re.fullmatch(
        r"The best of 30 models is depth=(\d+): (\w+) (\d\.\d{4}) on 2,000 held-out rows, and "
        r"between (\d\.\d{4}) and (\d\.\d{4}) in the population, with probability 0\.9, however "
        r"the search used its scores, if its space of 30 configurations was declared before them "
        r"and no model was trained on these rows \(radabound_fast\.DeclaredSearch\)\.",
        str(report),
    )
    depth, name, value, low, high = found.groups()
    assert int(depth) == best.key["depth"] and name == metric
    assert float(value) == pytest.approx(best.value, abs=5.1e-5)
    assert best.low - 1e-4 < float(low) <= best.low and best.high <= float(high) < best.high + 1e-4


def test_one_side_alone_is_told_as_one_side():
    said = str(asked(search_by_depth(two_sided=False, baseline=BASELINE)).report())
    assert "and at most 0." in said and "in the population by at least 0." in said
    said = str(asked(search_by_depth(two_sided=False, metric="recall")).report())
    assert "and at least 0." in said and "at most" not in said


@pytest.mark.parametrize("two_sided", [True, False])
# the model is better, hardly better, as good, hardly worse, and wrong everywhere
@pytest.mark.parametrize("n_wrong", [100, 480, 500, 520, M])
@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, ("It errs less often", "It errs more often", "more often")),
        (
            {"metric": "mean_cost", "costs": [[0, 1], [1, 0]]},
            ("Its mean loss is lower", "Its mean loss is higher", "higher"),
        ),
    ],
)
def test_a_gain_over_the_baseline_is_told_in_its_direction(two_sided, n_wrong, options, words):
    """Its sentence, turned back into numbers, is the gain and its limits rounded outward."""
    wrong = np.arange(M)
    search = search_of(LABELS, 30, baseline=LABELS ^ (wrong < 500), two_sided=two_sided, **options)
    best = search.query(LABELS ^ (wrong >= M - n_wrong), key=0)
    said = str(search.report()).partition("DeclaredSearch). ")[2]
    better, worse, opposite = words
    direction = better if best.gain >= 0 else worse
    assert (best.gain >= 0) == (n_wrong <= 500)
    assert said.startswith(f"{direction} than ") and said.endswith(
        ", if the baseline was fixed before any holdout score was seen."
    )
    assert "baseline was fixed before" in search.guarantee
    numbers = [float(number) for number in re.findall(r"-?\d\.\d{4}", said)]
    sign = 1 if best.gain >= 0 else -1
    assert numbers[0] == pytest.approx(sign * best.gain, abs=5.1e-5) and numbers[0] >= 0
    if two_sided:
        assert " by between " in said
        ends = sorted([sign * best.gain_low, sign * best.gain_high])
        assert numbers[1] <= ends[0] < numbers[1] + 1e-4
        assert numbers[2] - 1e-4 < ends[1] <= numbers[2]
    elif best.gain_low >= 0:
        assert " in the population by at least " in said
        assert numbers[1] <= best.gain_low < numbers[1] + 1e-4
    else:
        turned = f" {opposite}" if best.gain >= 0 else ""
        assert f" in the population{turned} by at most " in said
        assert numbers[1] - 1e-4 < -best.gain_low <= numbers[1]
    assert search.report().baseline == 0.25


def test_a_model_asked_about_twice_is_told_as_one(tmp_path):
    search = search_by_depth()
    for depth in (1, 2, 1, 1, 2):
        search.query(PREDICTIONS[depth], key={"depth": depth})
    with pytest.raises(ValueError, match="one model"):
        search.query(PREDICTIONS[3], key={"depth": 1})  # which is no answer
    search.query_many([PREDICTIONS[1]] * 2, keys=[{"depth": 1}] * 2)
    report = search.report()
    assert str(report).startswith("The best of 2 different models (7 queries) is ")
    assert (report.n_models, report.n_queries) == (2, 7)
    again = pickle.loads(pickle.dumps(search))
    again.query(PREDICTIONS[1], key={"depth": 1})
    assert (search.n_queries, again.n_queries) == (7, 8)
    shared = DeclaredSearch.open(tmp_path / "s.db", LABELS, {"depth": DEPTHS}, delta=0.1)
    for depth, start in ((1, "1 model is depth=1: "), (2, "2 different models is depth=")):
        for _ in range(2):
            shared.query(PREDICTIONS[depth], key={"depth": depth})
        assert str(shared.report()).startswith(f"The best of {start}")


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ({"C": np.float64(1.56), "kind": np.str_("x")}, "C=1.56, kind='x'"),
        ({"rate": 0.1 + 0.2, "log": -1.5999999999999996}, "rate=0.3, log=-1.6"),
        ({"on": np.bool_(True), "n": np.int64(3), "none": None}, "on=True, n=3, none=None"),
        (({"depth": np.int64(4)}, np.float32(0.5)), "({'depth': 4}, 0.5)"),
        ([np.str_("a"), (np.int8(1),)], "['a', (1,)]"),
        (1e300, "1e+300"),
        ("x" * 500, "'" + "x" * 196 + "..."),
        ((10**5000,), "a value of type tuple"),
    ],
)
def test_a_key_is_shown_in_plain_values(key, said):
    assert shown_key(key) == said


@pytest.mark.parametrize(
    ("options", "value"),
    [
        ({"metric": "neg_mean_squared_error", "y_range": (0, 2)}, -0.25),
        ({"metric": "neg_mean_absolute_error", "y_range": (0, 2)}, -0.5),
        ({"metric": "neg_log_loss", "clip": 0.01}, -math.log(2)),
        ({"metric": "mean_cost", "costs": [[-1, -1], [-1, -0.5]]}, None),
        ({"metric": "accuracy"}, None),
    ],
)
@pytest.mark.parametrize("good", [True, False])
def test_a_baseline_has_its_value_and_a_gain_its_words(options, value, good):
    baseline = BASELINE if value is None else np.full(M, 0.5)
    search = search_of(LABELS, 3, baseline=baseline, **options)
    search.query(LABELS if good else 1 - LABELS, key=1)
    report = search.report()
    if value is None:  # as a model
        value = search_of(LABELS, 3, **options).query(BASELINE, key=0).value
    assert report.baseline == pytest.approx(value)
    said = " Its mean loss is lower" if report.best.gain >= 0 else " Its mean loss is higher"
    said += " than that of the baseline by "
    if options["metric"] == "accuracy":
        said = f" It errs {'less' if good else 'more'} often than the baseline by 0."
    assert said in str(report)


@pytest.mark.parametrize(
    "options", [{}, {"baseline": BASELINE}, {"n_folds": 5}, {"two_sided": False}]
)
def test_json_and_a_frame_have_every_answer(options):
    report = asked(search_by_depth(**options)).report()
    expected = [answer.to_dict() for answer in report.answers]
    told = json.loads(report.to_json())
    assert told["answers"] == expected and len(expected) == 30
    assert told["best"] == report.best.to_dict() and told["sentence"] == str(report)
    assert (told["n_samples"], told["n_models"], told["space_size"]) == (M, 30, 30)
    assert told["guarantee"] == report.guarantee and told["baseline"] == report.baseline
    gains = {"holdout_gain", "holdout_gain_low", "holdout_gain_high"}
    assert (gains <= set(report.best.as_metrics())) == ("baseline" in options)
    pytest.importorskip("pandas")
    frame = report.to_frame()
    assert frame.pop("param_depth").tolist() == list(DEPTHS)
    rows = [{name: told for name, told in row.items() if name != "key"} for row in expected]
    assert frame.to_dict("records") == rows


def test_a_frame_has_a_column_for_each_parameter_or_one_for_keys():
    pytest.importorskip("pandas")
    search = DeclaredSearch(M, [{"a": [1], "b": ["x"]}, {"c": [2]}], delta=0.1)
    for key in search.space:
        search.query(np.zeros(M, bool), key=key)
    frame = search.report().to_frame()
    assert frame[["param_a", "param_b", "param_c"]].isna().to_numpy().tolist() == [
        [False, False, True],
        [True, True, False],
    ]
    numbered = DeclaredSearch(M, 3, delta=0.1)
    numbered.query_many(np.zeros((2, M), bool), keys=[2, 0])
    assert numbered.report().to_frame()["key"].tolist() == [2, 0]


@pytest.mark.parametrize(
    ("space", "key", "told"),
    [
        ({"depth": [np.int64(3), np.int64(4)]}, {"depth": np.int64(4)}, {"depth": 4}),
        (Choice([(1, 2.5), (2, 2.5)]), (2, 2.5), [2, 2.5]),
    ],
)
def test_keys_are_told_as_json_has_them(space, key, told):
    search = DeclaredSearch(M, space, delta=0.1)
    search.query(np.zeros(M, bool), key=key)
    assert json.loads(search.report().to_json())["best"]["key"] == told


@pytest.mark.parametrize("metric", ["error", "accuracy"])
def test_the_ranking_is_by_the_limit_that_counts(metric):
    report = asked(search_by_depth(metric=metric)).report()
    ranked = report.ranking()
    assert ranked[0] == report.best and len(ranked) == 30 and report.ranking(7) == ranked[:7]
    limits = [each.high if metric == "error" else -each.low for each in ranked]
    assert limits == sorted(limits)


def test_html_has_sentence_table_and_picture_and_escapes_keys():
    search = DeclaredSearch(M, Choice([f"<b>{i}</b>" for i in range(30)]), delta=0.1)
    for i, losses in enumerate(PREDICTIONS.values()):
        search.query(losses ^ LABELS, key=f"<b>{i}</b>")
    shown, page = search.report()._repr_html_(), search.report().to_html()
    assert shown.count("<tr>") == 11 and "data:image/png;base64," in shown
    assert "<b>" not in shown and f"&lt;b&gt;{search.best.key[3:-4]}&lt;/b&gt;" in shown
    assert page.startswith("<!doctype html>") and page.count("<html") == page.count("</html>") == 1
    assert shown in page and "<title>mean loss of 30 models</title>" in page


def test_a_notebook_shows_cross_validations_and_reruns():
    folds = asked(search_by_depth(n_folds=5)).report()._repr_html_()
    assert "<th>truth_of</th>" in folds and "<td>the 5 fold models on average</td>" in folds
    search = search_by_depth(allow_reruns=True)
    search.query(LABELS, key={"depth": DEPTHS[0]})
    assert "<th>rerun</th>" not in search.report()._repr_html_()
    search.query(1 - LABELS, key={"depth": DEPTHS[0]}, rerun=2)  # which is not the best
    assert "<th>rerun</th>" in search.report()._repr_html_()


# errors of a thousandth, or of a million, are told as well as those of a class
@pytest.mark.parametrize("unit", [1e-12, 1e-3, 1.0, 1e6])
def test_numbers_are_told_from_their_limits_by_their_digits(unit):
    own = {"metric": "neg_mean_squared_error", "y_range": (0, unit)}
    rng = np.random.default_rng(1)
    y_true = unit * rng.random(M)
    search = search_of(y_true, 10, baseline=np.full(M, unit / 2), **own)
    search.query(np.clip(y_true + 0.1 * unit * rng.normal(size=M), 0, unit), key=0)
    report = search.report()
    best, numbers = report.best, r"(-?[\d.,]+)"
    score, gain = (
        [float(found.replace(",", "")) for found in re.search(told, str(report)).groups()]
        for told in (
            rf"error {numbers} on .* and between {numbers} and {numbers} in the population",
            rf"baseline by {numbers}, and in the population by between {numbers} and {numbers}, ",
        )
    )
    for told, low, value, high in (
        (score, best.low, best.value, best.high),
        (gain, best.gain_low, best.gain, best.gain_high),
    ):
        near = (high - low) / 10
        assert told[0] == pytest.approx(value, rel=0, abs=near)
        assert low - near <= told[1] <= low and high <= told[2] <= high + near
    cells = re.findall(r"<td>(.*?)</td>", report._repr_html_())
    assert float(cells[0].replace(",", "")) == pytest.approx(best.value, rel=0, abs=near)


def test_the_picture_of_a_cross_validation_says_whose_it_is():
    from matplotlib.text import Text

    for folds, whose in (({}, ""), ({"n_folds": 5}, " of the fold models")):
        parts = asked(search_by_depth(**folds)).report().plot().findobj(Text)
        said = " ".join(part.get_text() for part in parts)
        assert f"Every interval{whose} holds, with probability 0.9, however" in said


def test_nothing_is_less_than_zero_by_a_sign_alone():
    search = search_by_depth(metric="neg_brier_score")
    search.query(LABELS, key={"depth": DEPTHS[0]})
    assert "neg_brier_score 0.0000 on" in str(search.report())
    assert "-0.0000" not in search.report()._repr_html_()


@pytest.mark.parametrize("folds", [{}, {"n_folds": 5}])
def test_weights_and_groups_are_told_with_the_rows(folds):
    for options in ({"sample_weight": np.arange(1, M + 1)}, {"groups": np.arange(M) // 4}):
        said = str(asked(search_by_depth(**folds, **options)).report())
        assert "rows with weights or groups" in said
    assert "weights or groups" not in str(asked(search_by_depth(**folds)).report())


def test_the_picture_has_every_score_and_the_best_so_far():
    report = asked(search_by_depth(baseline=BASELINE)).report()
    answers, (axes,) = report.answers, report.plot().axes
    dots, best, ring, baseline = (line.get_xydata() for line in axes.lines)
    np.testing.assert_array_equal(dots, np.stack([np.arange(1, 31), answers.values], axis=1))
    assert ring.tolist() == [[report.best.number, report.best.value]]
    so_far = answers.values[[answers.highs[: n + 1].argmin() for n in range(30)]]
    assert best[-1, 1] == so_far[-1] == report.best.value
    assert set(best[:, 1]) == set(so_far) and set(baseline[:, 1]) == {report.baseline}


def test_a_report_needs_an_answer():
    search = search_by_depth()
    copied = pickle.loads(pickle.dumps(search))  # as to a worker
    copied.query(PREDICTIONS[1], key={"depth": 1})
    with pytest.raises(ValueError, match=r"nothing to report.*copies.*DeclaredSearch.open\(path"):
        search.report()


def test_the_command_reports_what_all_processes_asked(tmp_path, capsys):
    path = tmp_path / "search.db"
    judged = Holdout(LABELS, metric="accuracy")
    with DeclaredSearch.open(path, judged, {"depth": DEPTHS}, delta=0.1) as search:
        expected = asked(search).report()
    picture = tmp_path / "report.png"
    assert main(["report", str(path), "--plot", str(picture)]) == 0
    assert capsys.readouterr().out == f"{expected}\n"
    assert picture.read_bytes()[:4] == b"\x89PNG"
    assert main(["report", str(path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["sentence"] == str(expected)


@pytest.mark.parametrize("metric", ["error", "accuracy", "roc_auc"])
def test_a_search_is_read_without_its_labels_and_takes_no_query(tmp_path, metric):
    judged = Holdout(LABELS, metric=metric)
    search = asked(DeclaredSearch.open(tmp_path / "s.db", judged, {"depth": DEPTHS}, delta=0.1))
    found = DeclaredSearch.open(tmp_path / "s.db")
    assert str(found.report()) == str(search.report()) and found.best == search.best
    assert found.guarantee == search.guarantee and found.n_answered == 30
    for asking in (
        lambda: found.query(LABELS, key={"depth": 1}),
        lambda: found.query_many(LABELS[np.newaxis], keys=[{"depth": 1}]),
        lambda: found.compare(LABELS, LABELS, key_a={"depth": 1}, key_b={"depth": 2}),
    ):
        with pytest.raises(TypeError, match="needs"):
            asking()
    assert found.n_answered == 30


def test_the_command_says_in_a_line_what_is_no_search(tmp_path, capsys):
    RadaBound.open(tmp_path / "guard.db", M, epsilon=0.1, delta=0.1).close()
    DeclaredSearch.open(tmp_path / "empty.db", M, 10, delta=0.1).close()
    for name, said in [
        ("guard.db", "is not the database of a search"),
        ("empty.db", "nothing to report"),
        ("none.db", "No such file"),
    ]:
        assert main(["report", str(tmp_path / name)]) == 2
        error = capsys.readouterr().err
        assert said in error and error.count("\n") == 1


def test_of_many_equals_the_first_is_the_best_and_the_ranking_keeps_their_order():
    search = DeclaredSearch(M, 3000, delta=0.1)
    losses = np.zeros((3000, M), bool)
    losses[::2, :300] = losses[1::2, 300:600] = True  # different models of one error
    search.query_many(losses, keys=np.arange(3000)[::-1])
    report = search.report()
    assert report.best.key == 2999
    assert [answer.key for answer in report.ranking()] == list(range(2999, -1, -1))
    ranked = report.ranking(5)
    ranked.clear()  # which is the caller's
    assert len(report.ranking(5)) == 5


@pytest.mark.parametrize("metric", ["error", "accuracy"])
def test_limits_of_a_table_are_rounded_outward_as_those_of_the_sentence(metric):
    report = asked(search_by_depth(baseline=BASELINE, metric=metric)).report()
    page = report.to_html()
    names = re.findall(r"<th>(.*?)</th>", page)
    cells = np.reshape(re.findall(r"<td>(.*?)</td>", page), (-1, len(names)))
    for row, answer in zip(cells, report.ranking(10), strict=True):
        told = {name: cell for name, cell in zip(names, row, strict=True) if name != "key"}
        for low, high in (("low", "high"), ("gain_low", "gain_high")):
            assert float(told[low]) <= getattr(answer, low) < float(told[low]) + 1e-4
            assert float(told[high]) - 1e-4 < getattr(answer, high) <= float(told[high])
    best = dict(zip(names, cells[0], strict=True))
    assert f"between {best['low']} and {best['high']} in the population" in str(report)
