"""What a confirmed search came to: its sentence, JSON, table and picture."""

import json
import re

import numpy as np
import pytest
from support import holdout_of

from radabound_fast import ConfirmedSearch

M = 4000
RNG = np.random.default_rng(5)
LABELS = RNG.integers(0, 2, M)


def model(error):
    return LABELS ^ (RNG.random(M) < error)


def confirmed(metric="error", **options):
    search = ConfirmedSearch(holdout_of(LABELS, metric=metric), delta=0.1, seed=1, **options)
    search.confirm({"forest": model(0.2), "<b>stack</b>": model(0.1)})
    return search


@pytest.mark.parametrize("metric", ["error", "accuracy", "f1"])
def test_the_sentence_has_the_best_finalist_and_its_interval(metric):
    search = confirmed(metric)
    found = re.fullmatch(
        r"The best of 2 finalists is <b>stack</b>: (\w+) (\d\.\d{4}) on 2,000 rows that took no "
        r"part in the search, and between (\d\.\d{4}) and (\d\.\d{4}) in the population(?: \(.*\))?"
        r", with probability 0\.9, whatever the search did with other rows, if no finalist was "
        r"trained, tuned or chosen on these \(radabound_fast\.ConfirmedSearch\)\. On the 2,000 "
        r"search rows it was (\d\.\d{4})\.",
        str(search.report()),
    )
    name, value, low, high, in_search = found.groups()
    best = search.best
    assert name == metric and float(value) == pytest.approx(best.value, abs=5.1e-5)
    assert float(in_search) == pytest.approx(best.search_value, abs=5.1e-5)
    assert best.low - 1e-4 < float(low) <= best.low and best.high <= float(high) < best.high + 1e-4


def test_a_gain_is_told_as_the_direction_that_it_has():
    better = str(confirmed(baseline=model(0.3)).report())
    assert re.search(r"It errs less often than the baseline by 0\.\d+, .* between 0\.", better)
    worse = str(confirmed(baseline=model(0.02)).report())
    assert "It errs more often than the baseline by 0.0" in worse
    waiting = str(confirmed(baseline=model(0.3), n_batches=2).report())
    assert "baseline" not in waiting


def test_json_has_every_finalist_and_null_for_what_waits():
    search = confirmed(baseline=model(0.3), n_batches=None)
    told = json.loads(search.report().to_json(), parse_constant=pytest.fail)
    assert [one["name"] for one in told["answers"]] == ["forest", "<b>stack</b>"]
    assert told["answers"][0]["gain"] is None and told["best"]["name"] == "<b>stack</b>"
    assert told["n_search_rows"] + told["n_confirmation_rows"] == M and told["n_batches"] is None


def test_the_page_has_every_finalist_as_text():
    page = confirmed().report().to_html()
    assert "&lt;b&gt;stack&lt;/b&gt;" in page and "<b>stack" not in page
    assert "<th>search_value</th>" in page and "forest" in page and "<img" in page
    verdicts = ConfirmedSearch(LABELS, delta=0.1, confirm_share=1.0)
    verdicts.confirm({"a": model(0.1), "b": model(0.4)}, release="pass", at_most=0.2)
    page = verdicts.report().to_html()
    assert "<td>yes</td>" in page and "<td>no</td>" in page and "<td></td>" in page


@pytest.mark.parametrize("n", [1, 3, 40])
def test_the_picture_has_a_mark_a_finalist(n):
    search = ConfirmedSearch(LABELS, delta=0.1, seed=1)
    search.confirm({f"a rather long name of the finalist number {k}": model(0.1) for k in range(n)})
    figure = search.report().plot()
    (axes,) = figure.axes
    names = [tick.get_text() for tick in axes.get_yticklabels()]
    assert len(names) == min(n, 30) and names[0].endswith("…")
    marks, hollow = axes.collections[-2:]
    assert len(marks.get_offsets()) == len(hollow.get_offsets()) == min(n, 30)
    assert marks.get_offsets()[0][0] == search.best.value
    assert ("The only finalist" in str(search.report())) == (n == 1)


def test_there_is_no_report_of_nothing():
    search = ConfirmedSearch(LABELS, delta=0.1, n_batches=2)
    with pytest.raises(ValueError, match="nothing to report: no finalist"):
        search.report()
    search.confirm({"a": model(0.1)}, release="pass", at_most=0.2)
    with pytest.raises(ValueError, match="no interval was released yet"):
        search.report()
