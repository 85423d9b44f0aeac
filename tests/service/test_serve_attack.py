"""What somebody who asks 2 m queries, each chosen by the answers before, learns of the labels.

SECURITY.md has these numbers: the bits that answers can carry, and the labels that they tell
somebody who brings a model whose error is known.  The attacks are those of `make attacks`.
"""

import math

import numpy as np
import pytest
from attacks.labels import (
    ERRORS,
    EXACT,
    FEW_BITS,
    ROUNDED,
    STEP,
    M,
    by_a_cell,
    by_digits,
    by_the_edge,
    model_of,
)

from radabound_fast import DeclaredSearch, FixedSequence, GuessAndCheck, Holdout, RadaBound

Y = np.random.default_rng(5).integers(0, 2, M)


SLOW = (
    "`fixed-sequence`, without signs, `--round .01`",
    "`declared-search`, `--round .01`",
    "`declared-search` of `neg_brier_score`, `--round .01`",
)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.thorough] * (name in SLOW)) for name in EXACT]
)
def test_exact_answers_give_away_every_label(name):
    make, attack = EXACT[name]
    guard = make(Y)
    found = attack(guard)
    assert all(found[i] == Y[i] for i in found) and not guard.halted
    # of the rows that are kept apart none, and of all others every one
    assert len(found) == (M // 2 if "kept apart" in name else M)


def test_rounded_answers_carry_fewer_bits_and_no_digits():
    """log2 101 of a share of rows; of the attack by digits nothing is left but a constant."""
    assert math.log2(ROUNDED.n_values(0, 1)) == pytest.approx(6.66, abs=0.005)
    search = DeclaredSearch(
        Holdout(Y, metric="neg_brier_score"), M // 40, delta=0.1, release=ROUNDED
    )
    found = np.array(list(by_digits(search).values())).reshape(-1, 40)
    assert (found == found[0]).all()
    assert {(a.value, a.low, a.high) for a in search.answers} == {(-0.25, -0.26, -0.24)}


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(5))
def test_the_edge_of_a_cell_is_a_walk_of_a_few_hundred_queries_away(seed):
    y_true = np.random.default_rng(seed).integers(0, 2, M)
    guard = RadaBound(y_true, epsilon=0.2, delta=0.1, release=ROUNDED)
    found = by_a_cell(lambda row, _: guard.query(row).value)
    assert [found[i] for i in range(M)] == y_true.tolist()
    assert M + 2 <= guard.n_answered <= M + 1000


@pytest.mark.thorough
def test_they_do_so_over_a_service_too_in_one_call(tmp_path):
    from serving import serve

    with serve(tmp_path, FixedSequence, Y, epsilon=0.1, delta=0.1) as service:
        values = service.remote().query_many(np.vstack([np.zeros(M, int), np.eye(M, dtype=int)]))
        assert ((values.values[1:] < values.values[0]) == Y).all()


# ---- mechanisms whose answers carry few bits ----------------------------------------------------

CERTAIN = 20  # bits: a correct program exceeds the bits of its answers by so many once in 2^20


def surprise(found, model, error):
    """The bits that the found labels are, for whoever has the model and knows its error.

    If the answers are one of 2^b transcripts, labels of b + s bits or more are found with
    probability 2^-s at most: a transcript is no more probable than the labels that it tells.
    """
    chances = [1 - error if model[i] == label else error for i, label in found.items()]
    return -sum(map(math.log2, chances))


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


def bits_of_a_ladder():
    """Transcripts of 2 m queries: which of them lowered the answer, and to which step."""
    grid = round(1 / STEP) + 1
    return math.log2(math.comb(2 * M + grid - 1, grid))


@pytest.mark.thorough
def test_the_bits_that_answers_can_carry_are_those_of_the_table():
    bits = [bits_of_guess_and_check(0.05), bits_of_guess_and_check(0.1), bits_of_a_ladder()]
    assert [math.ceil(bits[0]), math.ceil(bits[1]), round(bits[2])] == [
        stated for stated, _ in FEW_BITS.values()
    ]


# labels found with a model of each error; wide around the counts of SECURITY.md
LABELS = dict(zip(FEW_BITS, [
    [(10, 200), (40, 600), (150, 1300), (400, 2500)],
    [(80, 500), (250, 1000), (500, 2600), (1000, 3900)],
    [(20, 400), (100, 1100), (700, 2500), (1300, 3500)],
], strict=True))  # fmt: skip


@pytest.mark.parametrize("name", FEW_BITS)
@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.thorough
def test_few_bits_tell_many_labels_to_whoever_has_a_good_model(name, error):
    bits, attack = FEW_BITS[name]
    least, most = LABELS[name][ERRORS.index(error)]
    model = model_of(Y, error, np.random.default_rng(5))
    found = attack(Y, model, int((model != Y).sum()))
    assert all(found[i] == Y[i] for i in found)
    assert least < len(found) < most
    assert surprise(found, model, error) < bits + CERTAIN


@pytest.mark.parametrize(("epsilon", "bits"), [(0.05, 203), (0.1, 414)])
@pytest.mark.parametrize("error", [0.5, 0.1])
def test_where_the_likely_outcome_fails_guess_and_check_soon_halts(error, epsilon, bits):
    model = model_of(Y, error, np.random.default_rng(6))
    check = GuessAndCheck(Y, epsilon=epsilon, delta=0.1)
    found = by_the_edge(check, model, int((model != Y).sum()), upper=True)
    assert all(found[i] == Y[i] for i in found) and check.halted
    assert 2 < len(found) < 60 and surprise(found, model, error) < bits + CERTAIN
