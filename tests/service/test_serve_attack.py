"""What somebody who asks 2 m queries, each chosen by the answers before, learns of the labels.

SECURITY.md has these numbers: the bits that answers can carry, and the labels that they tell
somebody who brings a model whose error is known.  An attacker knows the guard and its parameters,
and so all that is a function of the transcript; of the labels it sees answers alone.
"""

import contextlib
import itertools
import math

import numpy as np
import pytest

from radabound_fast import (
    DeclaredSearch,
    FixedSequence,
    GuessAndCheck,
    Holdout,
    HoldoutExhausted,
    Ladder,
    RadaBound,
    Rounded,
)

M = 4000
RNG = np.random.default_rng(5)
Y = RNG.integers(0, 2, M)


class Spent(Exception):
    """The attacker has asked 2 m queries."""


class Asked:
    """A guard, and how many queries it got."""

    def __init__(self, guard):
        self.guard, self.n_asked = guard, 0

    def __call__(self, row, **named):
        self.n_asked += 1
        if self.n_asked > 2 * M:
            raise Spent
        return self.guard.query(row, **named)


def flipped(row, sample):
    other = row.copy()
    other[sample] = 1 - other[sample]
    return other


def by_differences(ask, named):
    """Exact means: the base, and the base but for one prediction, tell that label."""
    base = np.zeros(M, int)
    first = ask(base, **named(M)).value
    return {i: int(ask(flipped(base, i), **named(i)).value < first) for i in range(M)}


EXACT = {
    "RadaBound": (RadaBound, {"epsilon": 0.2, "delta": 0.1}, lambda _: {}),
    "FixedSequence": (FixedSequence, {"epsilon": 0.1, "delta": 0.1}, lambda _: {}),
    "without signs": (
        FixedSequence, {"epsilon": 0.1, "delta": 0.1, "n_vectors": 0}, lambda _: {},
    ),
    "DeclaredSearch": (
        DeclaredSearch, {"space": M + 1, "delta": 0.1}, lambda key: {"key": key},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", EXACT)
def test_exact_means_give_away_every_label(name):
    kind, parameters, named = EXACT[name]
    guard = kind(Y, **parameters)
    found = by_differences(Asked(guard), named)
    assert found == dict(enumerate(Y.tolist())) and not guard.halted


def by_the_edge_of_a_cell(ask, named):
    """Rounded means: walk until the answer changes; from there on one error more or less shows."""
    row = np.zeros(M, int)
    before = value = ask(row, **named(0)).value
    n_asked = 1
    while value == before:
        row[n_asked - 1] = 1
        value = ask(row, **named(n_asked)).value
        n_asked += 1
    found = {}
    for i in range(M):
        has_moved = ask(flipped(row, i), **named(n_asked + i)).value != value
        is_right = has_moved != (value > before)
        found[i] = int(row[i] if is_right else 1 - row[i])
    return found


@pytest.mark.thorough
@pytest.mark.parametrize("name", EXACT)
def test_rounded_means_give_away_every_label_in_a_few_queries_more(name):
    kind, parameters, named = EXACT[name]
    if "space" in parameters:
        parameters = parameters | {"space": 2 * M}
    asked = Asked(kind(Y, **parameters, release=Rounded(0.01)))
    found = by_the_edge_of_a_cell(asked, named)
    assert found == dict(enumerate(Y.tolist())) and not asked.guard.halted
    assert M + 1 < asked.n_asked < M + 1000
    assert math.log2(Rounded(0.01).n_values(0, 1)) == pytest.approx(6.66, abs=0.005)


@pytest.mark.thorough
def test_they_do_so_over_a_service_too_in_one_call(tmp_path):
    pytest.importorskip("uvicorn", reason="the extra serve is not installed")
    from serving import in_thread

    guard = FixedSequence.open(tmp_path / "guard.db", Y, epsilon=0.1, delta=0.1)
    with in_thread(guard, tmp_path) as service:
        values = service.remote().query_many(np.vstack([np.zeros(M, int), np.eye(M, dtype=int)]))
        assert ((values.values[1:] < values.values[0]) == Y).all()


def by_the_bits_of_a_score(search, a_key=40):
    """Predictions of (1 - 2^-i)/2 put label i into bit i of the score; those of 1/2 say nothing."""
    p = (1 - 2.0 ** -np.arange(1, a_key + 1)) / 2
    found = []
    for key in range(M // a_key):
        row = np.full(M, 0.5)
        row[key * a_key : (key + 1) * a_key] = p
        sum_of_losses = -M * search.query(row, key=key).value
        code = round((sum_of_losses - (M - a_key) / 4 - (p**2).sum()) * 2**a_key)
        found += [code >> (a_key - 1 - i) & 1 for i in range(a_key)]
    return np.array(found)


def test_a_real_valued_metric_tells_forty_labels_a_query_unless_it_is_rounded():
    options = {"space": M // 40, "delta": 0.1}
    search = DeclaredSearch(Holdout(Y, metric="neg_brier_score"), **options)
    assert (by_the_bits_of_a_score(search) == Y).all()
    search = DeclaredSearch(Holdout(Y, metric="neg_brier_score"), **options, release=Rounded(0.01))
    # all answers are the same, and so are the codes
    found = by_the_bits_of_a_score(search).reshape(-1, 40)
    assert (found == found[0]).all()
    assert {(a.value, a.low, a.high) for a in search.answers} == {(-0.25, -0.26, -0.24)}


# ---- mechanisms whose answers carry few bits ----------------------------------------------------

CERTAIN = 20  # bits: a correct program exceeds the bits of its answers by so many once in 2^20


def model_of(error, rng):
    """A model of known error, which the attacker has made without the holdout."""
    return np.where(rng.random(M) < error, 1 - Y, Y)


def surprise(found, model, error):
    """The bits that the found labels are, for whoever has the model and knows its error.

    If the answers are one of 2^b transcripts, labels of b + s bits or more are found with
    probability 2^-s at most: a transcript is no more probable than the labels that it tells.
    """
    chances = [1 - error if model[i] == label else error for i, label in found.items()]
    return -sum(map(math.log2, chances))


def edge_of(check, errors, upper):
    """The guess whose tolerance ends at a mean of so many errors: above it, or below it."""
    low, high = 0.0, 1.0
    for _ in range(40):
        guess = (low + high) / 2
        reach = check._tolerance(guess, check.spent)
        if guess + (reach if upper else -reach) < errors / M:
            low = guess
        else:
            high = guess
    return low


def by_the_edge(check, model, errors, upper):
    """GuessAndCheck: with a guess at the edge, one error more or less decides whether it passes.

    A query that differs from the model in one prediction tells that label.  At the lower edge the
    likely outcome, one error more, passes and costs little.
    """
    found, ask = {}, Asked(check)
    with contextlib.suppress(HoldoutExhausted, Spent):
        for i in range(M):
            answer = ask(flipped(model, i), guess=edge_of(check, errors, upper))
            found[i] = int(model[i] if answer.passed != upper else 1 - model[i])
    return found


def bits_of_guess_and_check(epsilon):
    """Prefixes whose code has room, by Kraft's inequality, and the outcomes of a last query."""
    check = GuessAndCheck(M, epsilon=epsilon, delta=0.1)

    def room(guess):
        low, high = 0.0, 1e4
        for _ in range(50):
            nats = (low + high) / 2
            low, high = (nats, high) if check._has_room(guess, nats) else (low, nats)
        return high

    nats = max(map(room, np.linspace(0, 1, 201).tolist()))
    # a pass, nothing, or one of the bins on both sides, each epsilon/5 wide or wider
    return nats / math.log(2) + math.log2(2 + 2 * math.ceil(5 / epsilon))


GUESSES = {
    # epsilon: bits that answers can carry, and labels found with a model of each error;
    # the limits are wide around the counts of 5 models, which SECURITY.md has
    0.05: (203, {0.1: (10, 200), 0.05: (40, 600), 0.02: (150, 1300), 0.01: (400, 2500)}),
    0.1: (414, {0.1: (80, 500), 0.05: (250, 1000), 0.02: (500, 2600), 0.01: (1000, 3900)}),
}


@pytest.mark.parametrize("epsilon", GUESSES)
@pytest.mark.parametrize(
    "error", [0.1, 0.05, *(pytest.param(e, marks=pytest.mark.thorough) for e in (0.02, 0.01))]
)
@pytest.mark.thorough
def test_guess_and_check_tells_many_labels_to_whoever_has_a_good_model(epsilon, error):
    bits, labels = GUESSES[epsilon]
    assert math.ceil(bits_of_guess_and_check(epsilon)) == bits
    least, most = labels[error]
    model = model_of(error, np.random.default_rng(5))
    check = GuessAndCheck(Y, epsilon=epsilon, delta=0.1)
    found = by_the_edge(check, model, int((model != Y).sum()), upper=False)
    assert all(found[i] == Y[i] for i in found)
    assert least < len(found) < most
    assert surprise(found, model, error) < bits + CERTAIN


@pytest.mark.parametrize("epsilon", GUESSES)
@pytest.mark.parametrize("error", [0.5, 0.1])
def test_where_the_likely_outcome_fails_guess_and_check_soon_halts(error, epsilon):
    model = model_of(error, RNG)
    check = GuessAndCheck(Y, epsilon=epsilon, delta=0.1)
    found = by_the_edge(check, model, int((model != Y).sum()), upper=True)
    assert all(found[i] == Y[i] for i in found) and check.halted
    assert 2 < len(found) < 60 and surprise(found, model, error) < GUESSES[epsilon][0] + CERTAIN


def by_the_walk(ladder, model):
    """Ladder: walk from the complement of a model to the model, one prediction at a time.

    Where the answer falls, that prediction is right; where it falls by a step after no more
    predictions than a step has errors, all of these are right.
    """
    walk = np.where(np.arange(M) < np.arange(M + 1)[:, None], model, 1 - model)
    falls = np.flatnonzero(ladder.query_many(walk).updated)[1:].tolist()
    found = {}
    for before, fall in itertools.pairwise([None, *falls]):
        whole = before is not None and fall - before == round(STEP * M)
        for i in range(before if whole else fall - 1, fall):
            found[i] = int(model[i])
    return found


STEP, LADDER_BITS = 0.01, 779
# labels found with a model of each error; wide around those of 30 models (SECURITY.md)
WALKS = {0.1: (20, 400), 0.05: (100, 1100), 0.02: (700, 2500), 0.01: (1300, 3500)}


@pytest.mark.parametrize("error", WALKS)
def test_a_ladder_tells_many_labels_to_whoever_has_a_good_model(error):
    grid = round(1 / STEP) + 1
    assert round(math.log2(math.comb(2 * M + grid - 1, grid))) == LADDER_BITS
    least, most = WALKS[error]
    model = model_of(error, np.random.default_rng(5))
    found = by_the_walk(Ladder(Y, STEP, delta=0.1), model)
    assert all(found[i] == Y[i] for i in found)
    assert least < len(found) < most
    assert surprise(found, model, error) < LADDER_BITS + CERTAIN
