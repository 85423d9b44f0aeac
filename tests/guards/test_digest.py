"""The report of a search that is read in steps is that of the search."""

import numpy as np
import pytest

from radabound_fast import DeclaredSearch, Holdout
from radabound_fast.guards.declared import digest
from radabound_fast.guards.declared.digest import Digest
from radabound_fast.metrics import METRICS

M = 60
Y = np.arange(M) % 2


def searched(path, metric, n, **options):
    """A search in a database that was asked about so many models, which get better and worse."""
    rng = np.random.default_rng(3)
    judged = Holdout(Y, metric=metric)
    if metric == "error":
        options["baseline"] = 1 - Y
    search = DeclaredSearch.open(path, judged, n, delta=0.1, durability="process", **options)
    rates = 0.3 + 0.2 * np.cos(np.arange(n) / 7)[:, np.newaxis]
    rows = Y ^ (rng.random((n, M)) < rates)
    if METRICS[metric].takes != "classes":
        rows = np.clip(0.8 * rows + 0.2 * rng.random((n, M)), 0, 1)
    search.query_many(rows, keys=rng.permutation(n))
    return search


def read(search):
    digest = Digest(search)
    while digest.step():
        pass
    return digest


@pytest.mark.parametrize("n", [1, 49, 50, 51, 130])
@pytest.mark.parametrize(
    "metric", [pytest.param("error", marks=pytest.mark.thorough), "balanced_accuracy"]
)
def test_a_report_in_steps_is_the_report(tmp_path, monkeypatch, metric, n):
    monkeypatch.setattr(digest, "STEP_ANSWERS", 50)
    search = searched(tmp_path / "s.db", metric, n)
    found, expected = read(search).report(), search.report()
    assert found.to_json() == expected.to_json() and str(found) == str(expected)
    assert found.to_markdown() == expected.to_markdown()


@pytest.mark.thorough
@pytest.mark.parametrize("two_sided", [True, False])
@pytest.mark.parametrize("metric", ["error", "roc_auc"])
def test_of_many_answers_it_keeps_the_best_and_an_even_sample(
    tmp_path, monkeypatch, metric, two_sided
):
    monkeypatch.setattr(digest, "STEP_ANSWERS", 64)
    monkeypatch.setattr(digest, "_N_SHOWN", 8)
    search = searched(tmp_path / "s.db", metric, 1000, two_sided=two_sided)
    found, expected = read(search).report(), search.report()
    assert str(found) == str(expected) and found.as_json() == expected.as_json()
    assert found.ranking(10) == expected.ranking(10)
    assert len(found.answers) <= 10 + 4 * 8 + 1
    numbers = found.answers.numbers
    assert numbers[0] == 1 and numbers[-1] == found.n_models == 1000
    assert np.diff(numbers).max() <= 2 * 1000 / 8 and (np.diff(numbers) > 0).all()
    whole = search.answers
    assert found.answers.values.tolist() == whole.values[numbers - 1].tolist()
    assert found.answers.keys == [whole.keys[number - 1] for number in numbers]
    figure = found.plot()
    texts = [text.get_text() for text in figure.axes[0].texts]
    assert f"{len(numbers):,} of them,\ntheir intervals" in texts
    assert f"the best:\nmodel {int(whole.ranks.argmin()) + 1:,}" in texts


def test_it_reads_on_where_it_was(tmp_path):
    search = searched(tmp_path / "s.db", "error", 20, allow_reruns=True)
    found = read(search)
    for n in range(3):
        search.query(Y, key=n, rerun=2)
        assert found.step() is False
        assert found.report().to_json() == search.report().to_json()


def test_nothing_has_no_report_and_without_a_database_there_are_no_steps(tmp_path):
    search = DeclaredSearch.open(tmp_path / "s.db", Y, 5, delta=0.1)
    with pytest.raises(ValueError, match="there is nothing to report"):
        read(search).report()
    with pytest.raises(ValueError, match="search must be opened from a database"):
        Digest(DeclaredSearch(Y, 5, delta=0.1))
