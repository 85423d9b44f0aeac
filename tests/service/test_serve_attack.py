"""What somebody who asks 2 m queries, each chosen by the answers before, learns of the labels.

SECURITY.md has these numbers.  An attacker knows the guard and its parameters, and so all that
is a function of the transcript; of the labels it sees answers alone.
"""

import contextlib

import numpy as np
import pytest

from radabound_fast import (
    DeclaredSearch,
    FixedSequence,
    GuessAndCheck,
    HoldoutExhausted,
    Ladder,
    RadaBound,
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


def test_they_do_so_over_a_service_too_in_one_call(tmp_path):
    pytest.importorskip("uvicorn", reason="the extra serve is not installed")
    from serving import in_thread

    guard = FixedSequence.open(tmp_path / "guard.db", Y, epsilon=0.1, delta=0.1)
    with in_thread(guard, tmp_path) as service:
        values = service.remote().query_many(np.vstack([np.zeros(M, int), np.eye(M, dtype=int)]))
        assert ((values.values[1:] < values.values[0]) == Y).all()


def edge_of(check, errors):
    """The guess whose tolerance reaches up to a mean of so many errors: fewer pass, more do not."""
    low, high = 0.0, 1.0
    for _ in range(40):
        guess = (low + high) / 2
        if guess + check._tolerance(guess, check.spent) < errors / M:
            low = guess
        else:
            high = guess
    return low


def by_the_edge(check, ask, base, errors):
    """GuessAndCheck: with a guess at the edge, one error more or less decides whether it passes.

    The attacker knows how often the base errs; then each query tells a label, up to the halt.
    """
    found = {}
    with contextlib.suppress(HoldoutExhausted, Spent):
        for i in range(M):
            answer = ask(flipped(base, i), guess=edge_of(check, errors))
            found[i] = 1 - int(base[i]) if answer.passed else int(base[i])
    return found


@pytest.mark.parametrize(("epsilon", "most"), [(0.05, 15), (0.1, 60)])
@pytest.mark.parametrize("error", [0.5, 0.1])
def test_guess_and_check_gives_away_a_few_labels_and_halts(error, epsilon, most):
    base = np.where(RNG.random(M) < error, 1 - Y, Y)
    check = GuessAndCheck(Y, epsilon=epsilon, delta=0.1)
    found = by_the_edge(check, Asked(check), base, int((base != Y).sum()))
    assert all(found[i] == Y[i] for i in found) and check.halted
    assert most / 4 < len(found) < most


def by_crossings(ask, worse, better):
    """Ladder: walk from one model to a better one; where the answer falls, one label shows."""
    found, row = {}, worse.copy()
    with contextlib.suppress(HoldoutExhausted, Spent):
        ask(row)
        for i in np.flatnonzero(worse != better).tolist():
            row[i] = better[i]
            if ask(row).updated:
                found[i] = int(row[i])
    return found


def test_the_ladder_gives_away_a_label_a_step_at_most():
    """From coins to a model that errs in a tenth: 2 m queries, and a label for every fall."""
    worse = RNG.integers(0, 2, M)
    better = np.where(RNG.random(M) < 0.1, 1 - Y, Y)
    ask = Asked(Ladder(Y, 0.01, delta=0.1))
    found = by_crossings(ask, worse, better)
    assert all(found[i] == Y[i] for i in found)
    assert 20 <= len(found) <= 1 / 0.01 + 1
    with contextlib.suppress(HoldoutExhausted, Spent):  # what differences tell beside: nothing
        told = {ask(flipped(better, i)).value for i in range(M)}
        assert len(told) == 1
