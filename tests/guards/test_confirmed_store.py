"""A confirmed search in a database: shared, counted before it is released, for its rows alone."""

import contextlib
import os
import pickle
import sqlite3
import sys
import warnings

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from support import at_once

from radabound_fast import ConfirmedSearch, DeclaredSearch, Holdout, HoldoutExhausted, Rounded

M = 200
Y = np.random.default_rng(1).integers(0, 2, M)


def model(error, seed):
    return Y ^ (np.random.default_rng(seed).random(M) < error)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "search.db"


def test_what_one_confirmed_every_other_knows(path):
    first = ConfirmedSearch.open(path, Y, delta=0.1)
    second = ConfirmedSearch.open(path, Y)
    assert_array_equal(first.confirmation_rows, second.confirmation_rows)
    answers = first.confirm({"a": model(0.1, 1), "b": model(0.2, 2)})
    assert list(second.answers) == list(answers) and second.halted
    assert second.confirm({"a": model(0.1, 1)})["a"] == answers["a"]
    with pytest.raises(HoldoutExhausted):
        second.confirm(model(0.3, 3))
    copied = pickle.loads(pickle.dumps(second))
    assert list(copied.answers) == list(answers)


def test_without_labels_it_is_read_and_no_more(path):
    accuracy = Holdout(Y, metric="accuracy")
    search = ConfirmedSearch.open(
        path, accuracy, delta=0.1, baseline=model(0.3, 7), pairs=True, limits="bootstrap"
    )
    answers = search.confirm({"a": model(0.1, 1), "b": model(0.2, 2)})
    reader = ConfirmedSearch.open(path)
    assert list(reader.answers) == list(answers) and reader.greater_is_better
    assert reader.best == search.best and reader.compare("a", "b") == search.compare("a", "b")
    assert reader.guarantee == search.guarantee and reader.parameters == search.parameters
    for call in (lambda: reader.confirm(Y), lambda: reader.score(Y), reader.close_out):
        with pytest.raises(TypeError, match="without its labels"):
            call()


def test_few_rows_are_warned_of_where_they_are_judged_and_not_where_they_are_read(path):
    accuracy = Holdout(np.arange(8) % 2, metric="accuracy")
    with pytest.warns(UserWarning, match="to say anything with metric='accuracy', got 4"):
        ConfirmedSearch.open(path, accuracy, delta=0.1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert ConfirmedSearch.open(path).n_left() == 1


@pytest.mark.parametrize("stratify", [False, True])
@pytest.mark.parametrize("n_batches", [1, 3, None])
def test_whoever_reads_it_knows_how_much_is_left(path, n_batches, stratify):
    options = {"n_batches": n_batches, "confirm_share": 1.0 if n_batches is None else 0.1}
    search = ConfirmedSearch.open(path, Y, delta=0.1, stratify=stratify, **options)
    search.confirm({"a": model(0.1, 1)})
    reader = ConfirmedSearch.open(path)
    assert (reader.n_left(), reader.outlook()) == (search.n_left(), search.outlook())
    assert_array_equal(reader.confirmation_rows, search.confirmation_rows)
    for name in ("halted", "n_answered", "guarantee", "parameters"):
        assert getattr(reader, name) == getattr(search, name), name


def test_of_two_that_make_the_file_at_once_the_slower_takes_what_is_there(path, monkeypatch):
    faster = ConfirmedSearch.open(path, Y, delta=0.1, seed=3, n_batches=2)
    answer = faster.confirm(model(0.1, 1))
    with monkeypatch.context() as patch:
        patch.setattr(os.path, "exists", lambda _: False)  # it was not there when it looked
        slower = ConfirmedSearch.open(path, Y, delta=0.1, seed=3, n_batches=2)
    assert slower.confirm(model(0.1, 1)) == answer and slower.n_left() == 1


@pytest.mark.parametrize("metric", ["error", "roc_auc", "neg_brier_score"])
def test_what_waits_is_found_again_at_the_end(path, metric):
    """Batches told on a grid, and verdicts, of one process; the end of another."""
    holdout = Holdout(Y, metric=metric)
    noise = {"error": 0, "roc_auc": np.arange(M) % 9 / 9}

    def make(error, seed):
        classes = model(error, seed)
        return classes + noise[metric] if metric in noise else 0.2 + 0.6 * classes

    options = {"delta": 0.1, "n_batches": None, "seed": 3}
    stored = ConfirmedSearch.open(path, holdout, **options)
    memory = ConfirmedSearch(holdout.apart(), **options)
    for search in (stored, memory):
        search.confirm({"a": make(0.1, 1)}, release=Rounded(0.01))
        search.confirm({"b": make(0.2, 2), "c": make(0.3, 3)}, release="pass", at_least=-0.5)
    ended = ConfirmedSearch.open(path, Holdout(Y, metric=metric)).close_out()
    assert list(ended) == list(memory.close_out())
    assert not np.isnan(ended.lows).any()


def test_the_file_holds_no_label_and_no_value_that_waits(path):
    """Before the end neither the labels, nor which predictions are wrong, nor counts of them."""
    y_true = np.random.default_rng(2).integers(0, 2, 4096)
    search = ConfirmedSearch.open(
        path, y_true, delta=0.1, n_batches=2, confirm_share=1.0, durability="process"
    )
    y_pred = np.random.default_rng(3).integers(0, 2, 4096)
    search.confirm({"a": y_pred}, release="pass", at_most=0.5)
    content = path.read_bytes()
    wrong = y_pred != y_true
    for secret in (y_true.astype(bool), wrong):
        for order in ("big", "little"):
            assert np.packbits(secret, bitorder=order).tobytes()[:64] not in content
        assert secret.astype(np.uint8).tobytes()[:64] not in content
    assert str(wrong.mean()).encode() not in content
    assert (os.stat(path).st_mode & 0o777) == 0o600 or sys.platform == "win32"


def test_the_file_holds_no_predictions_of_the_last_batch(path):
    ConfirmedSearch.open(path, Y, delta=0.1).confirm({"a": model(0.2, 1)})
    with contextlib.closing(sqlite3.connect(path)) as database:
        assert database.execute("SELECT max(length(content)) FROM event").fetchone() == (0,)


def test_the_file_keeps_rows_that_were_chosen_elsewhere(path):
    rows = np.arange(M) % 3 == 0
    made = ConfirmedSearch.open(path, Y, delta=0.1, rows=rows)
    answer = made.confirm({"a": model(0.2, 1)})
    for options in ({}, {"delta": 0.1}, {"rows": rows}):
        again = ConfirmedSearch.open(path, Y, **options)
        assert_array_equal(again.confirmation_rows, rows)
        assert list(again.confirm({"a": model(0.2, 1)})) == list(answer)
    unlabelled = ConfirmedSearch.open(path)
    assert_array_equal(unlabelled.confirmation_rows, rows)
    assert list(unlabelled.answers) == list(answer)
    for options in ({"rows": ~rows}, {"seed": 1}, {"rows": rows, "delta": 0.2}):
        with pytest.raises(ValueError, match=f"{list(options)[-1]} must be .*with which"):
            ConfirmedSearch.open(path, Y, **options)


def test_a_baseline_is_passed_each_time(path):
    rows, baseline = np.arange(M) < 100, model(0.3, 1)
    ConfirmedSearch.open(path, Y, delta=0.1, rows=rows, baseline=baseline)
    again = ConfirmedSearch.open(path, Y, rows=rows, baseline=baseline)
    assert_array_equal(again.confirmation_rows, rows)
    ConfirmedSearch.open(path, Y, baseline=baseline)
    with pytest.raises(ValueError, match="baseline must be that"):
        ConfirmedSearch.open(path, Y, rows=rows)
    with pytest.raises(ValueError, match="baseline must be that"):
        ConfirmedSearch.open(path, Y, rows=rows, baseline=model(0.3, 2))


def test_there_must_be_a_file_of_such_a_search_or_a_delta(path):
    with pytest.raises(FileNotFoundError):
        ConfirmedSearch.open(path, Y)
    DeclaredSearch.open(path, Y, 99, delta=0.1)
    with pytest.raises(ValueError, match="is not the database of"):
        ConfirmedSearch.open(path, Y, delta=0.1)


def test_losses_have_a_database_too(path):
    losses = np.random.default_rng(1).random(M)
    search = ConfirmedSearch.open(path, M, delta=0.1, n_batches=2, holdout_id="site 7")
    answer = search.confirm(losses)
    again = ConfirmedSearch.open(path, holdout_id="site 7")
    assert again.answers[0] == answer and np.isnan(answer.low)
    assert not np.isnan(again.close_out()[0].low)
    with pytest.raises(ValueError, match="another holdout"):
        ConfirmedSearch.open(path, holdout_id="site 8")


def test_threads_confirm_one_after_another(path):
    search = ConfirmedSearch.open(path, Y, delta=0.1, n_batches=None, durability="process")
    at_once(lambda name: search.confirm({name: model(0.2, ord(name))}), "abcdef")
    answers = search.answers
    assert sorted(answers.names) == list("abcdef")
    assert [answer.batch for answer in answers] == [1, 2, 3, 4, 5, 6]
    assert np.all(np.diff([answer.nats for answer in answers]) > 0)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_forked_child_scores_and_confirms_nothing():
    search = ConfirmedSearch(Y, delta=0.1)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            search.score(Y)
            search.confirm(Y)
            os.write(write, b"confirmed")
        except RuntimeError as error:
            os.write(write, str(error).encode())
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    os.close(write)
    assert b"is a copy" in os.read(read, 1000)
    os.close(read)
