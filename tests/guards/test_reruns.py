"""rerun="next": each training of a key is counted once, whoever asks and wherever it is kept."""

import copy
import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from support import search_of

from radabound_fast import DeclaredSearch
from radabound_fast.spaces import Choice

M = 400
Y = np.random.default_rng(0).integers(0, 2, M)


def trained(seed):
    """Predictions of one training, of a learner that tosses coins."""
    return Y ^ (np.random.default_rng(seed).random(M) < 0.2)


@pytest.fixture(params=["memory", "database"])
def opened(request, tmp_path):
    """Searches that are one: the same object, or two that opened one database."""
    given = {"delta": 0.1, "allow_reruns": True}
    if request.param == "memory":
        return [DeclaredSearch(Y, 9, **given)] * 2
    given["durability"] = "process"
    return [DeclaredSearch.open(tmp_path / "s.db", Y, 9, **given) for _ in range(2)]


def test_each_query_is_the_next_training_of_its_key(opened):
    one, other = opened
    keys = [3, 3, 5, 3, 5]
    answers = [
        (one, other)[seed % 2].query(trained(seed), key=key, rerun="next")
        for seed, key in enumerate(keys)
    ]
    assert [(answer.key, answer.rerun) for answer in answers] == [
        (3, 1), (3, 2), (5, 1), (3, 3), (5, 2),
    ]  # fmt: skip
    assert [answer.number for answer in answers] == [1, 2, 3, 4, 5]
    by_hand = DeclaredSearch(Y, 9, delta=0.1, allow_reruns=True)
    for seed, answer in enumerate(answers):
        expected = by_hand.query(trained(seed), key=answer.key, rerun=answer.rerun)
        assert expected.to_dict() == answer.to_dict()


def test_the_same_predictions_are_another_training_too(opened):
    one, other = opened
    told = [search.query(Y, key=1, rerun="next").rerun for search in (one, other, one)]
    assert told == [1, 2, 3]  # two models may err on the same rows


def test_threads_and_processes_count_each_training_once(opened):
    def ask(seed):
        opened[seed % 2].query(trained(seed), key=4, rerun="next")

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(ask, range(40)))
    assert sorted(opened[0].answers.reruns.tolist()) == list(range(1, 41))


def test_a_copy_counts_trainings_of_its_own():
    search = DeclaredSearch(Y, Choice(["a", "b"]), delta=0.1, allow_reruns=True)
    search.query(trained(0), key="a", rerun="next")
    apart = copy.copy(search)
    assert search.query(trained(1), key="a", rerun="next").rerun == 2
    assert apart.query(trained(2), key="a", rerun="next").rerun == 2


def test_limits_that_are_stored_are_those_of_the_training():
    own = {"metric": "roc_auc", "allow_reruns": True}
    search, by_hand = search_of(Y, 9, **own), search_of(Y, 9, **own)
    scores = np.random.default_rng(2).random((3, M)) + Y
    for rerun, row in enumerate(scores, 1):
        answer = search.query(row, key=0, rerun="next")
        assert answer.to_dict() == by_hand.query(row, key=0, rerun=rerun).to_dict()
    assert (np.diff(search.answers.nats) > 0).all()


def test_nothing_changes_by_an_error(opened):
    one, other = opened
    for bad in (Y[1:], Y + 7):
        with pytest.raises(ValueError, match="y_pred"):
            one.query(bad, key=2, rerun="next")
    with pytest.raises(ValueError, match="key must be"):
        one.query(Y, key=9, rerun="next")
    assert other.query(Y, key=2, rerun="next").rerun == 1 == one.n_answered


@pytest.mark.parametrize("rerun", ["next", "last", 0, 1.5, None])
def test_other_words_are_refused(rerun):
    with pytest.raises(ValueError, match="rerun must be 1 unless the search has allow_reruns=True"):
        DeclaredSearch(Y, 9, delta=0.1).query(Y, key=1, rerun=rerun)
    if rerun != "next":
        with pytest.raises((TypeError, ValueError), match="rerun must be"):
            search_of(Y, 9, allow_reruns=True).query(Y, key=1, rerun=rerun)


def test_the_error_of_a_second_model_has_the_answer_of_the_first(tmp_path):
    for search in (
        DeclaredSearch(Y, 9, delta=0.1),
        DeclaredSearch.open(tmp_path / "s.db", Y, 9, delta=0.1),
    ):
        first = search.query(trained(0), key=1)
        search.query(trained(5), key=2)
        with pytest.raises(ValueError, match="key must stand for one model") as caught:
            search.query(trained(1), key=1)
        told = caught.value.answer
        assert told.to_dict() == first.to_dict() | {"number": 2} and search.n_answered == 2
        assert str(first.value) not in str(caught.value)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_children_of_a_fork_share_the_count_of_a_database(tmp_path):
    given = {"delta": 0.1, "allow_reruns": True, "durability": "process"}
    search = DeclaredSearch.open(tmp_path / "s.db", Y, 9, **given)
    children = []
    for first in (0, 100):
        child = os.fork()
        if child == 0:
            status = 1
            try:
                for seed in range(first, first + 5):
                    search.query(trained(seed), key=4, rerun="next")
                status = 0
            finally:
                os._exit(status)
        children.append(child)
    assert [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children] == [0, 0]
    assert sorted(search.answers.reruns.tolist()) == list(range(1, 11))


@pytest.mark.parametrize("by_hand", [[5], [1, 2], [2, 1, 4], [1, 3, 2, 2]])
def test_next_is_the_first_that_was_not_queried(opened, by_hand):
    one, other = opened
    for rerun in by_hand:
        one.query(trained(rerun), key=1, rerun=rerun)
    free = [rerun for rerun in range(1, 9) if rerun not in by_hand][:3]
    told = [search.query(trained(9), key=1, rerun="next").rerun for search in (other, one, other)]
    assert told == free
