"""How often intervals of a cross-validation miss the truth of its fold models: real learners.

Rows are drawn, independently, from a population of 2,000 different points, so that the truth of
every fold model is known: its mean loss over all of them.  By Result 27 a run misses with
probability at most delta, so that a correct program has more misses than `most_failures` with
probability at most 1e-6 a test.
"""

import math

import numpy as np
import pytest
from support import most_failures, search_of

from radabound_fast import DeclaredSearch, bounds
from radabound_fast.spaces import Choice, Product, epoch_of

pytestmark = pytest.mark.thorough

pytest.importorskip("sklearn", reason="needs the extra sklearn")


class Population:
    def __init__(self, seed, n=2000):
        own = np.random.default_rng(seed)
        self.X = own.normal(size=(n, 6))
        chances = 1 / (1 + np.exp(-2 * self.X[:, 0] - 2 * self.X[:, 1] * self.X[:, 2] + 0.8))
        self.y = (own.random(n) < chances).astype(int)

    def draw(self, own, m):
        rows = own.integers(0, len(self.y), m)
        return self.X[rows], self.y[rows]


def learners():
    from sklearn.linear_model import LogisticRegression
    from sklearn.tree import DecisionTreeClassifier

    trees = [DecisionTreeClassifier(max_depth=d, random_state=0) for d in (1, 3, None)]
    return [*trees, LogisticRegression(C=0.1)]


def unequal_folds(m, own):
    """Of very different sizes, by chance."""
    sizes = np.array([0.05, 0.1, 0.2, 0.25, 0.4])
    return own.permutation(np.repeat(np.arange(5), np.rint(sizes * m).astype(int)))


def equal_folds(m, own):
    return own.permutation(np.arange(m) % 5)


def cross_validated(model, X, y, folds, population):
    """Out-of-fold predictions, and each fold model's on the whole population."""
    out_of_fold, everywhere = np.empty(len(y), int), np.empty((5, len(population.y)), int)
    for fold in range(5):
        there = folds == fold
        model.fit(X[~there], y[~there])
        out_of_fold[there] = model.predict(X[there])
        everywhere[fold] = model.predict(population.X)
    return out_of_fold, everywhere


@pytest.mark.parametrize(("m", "make_folds"), [(40, equal_folds), (200, unequal_folds)])
def test_no_interval_of_real_learners_misses_their_fold_models(m, make_folds):
    """60 runs, seed 62, of four learners, delta .3."""
    own, population, missed, nearest = np.random.default_rng(62), Population(0), 0, 0.0
    for _ in range(60):
        X, y = population.draw(own, m)
        folds = make_folds(m, own)
        search = search_of(y, 4, classes=[0, 1], delta=0.3, n_folds=5)
        misses = False
        for key, model in enumerate(learners()):
            out_of_fold, everywhere = cross_validated(model, X, y, folds, population)
            answer = search.query(out_of_fold, key=key)
            errors = (everywhere != population.y).mean(axis=1)
            truth = errors[folds].mean()  # of every row's model
            misses |= not answer.low <= truth <= answer.high
            nearest = max(nearest, abs(answer.value - truth) / answer.half_width)
        missed += misses
    assert missed <= most_failures(60, 0.3)
    assert nearest > 0.3  # the scores do vary


def test_stratified_folds_are_covered_given_the_labels():
    """40 runs, seed 63, delta .3: balanced accuracy and error, of the classes in the sample."""
    from sklearn.model_selection import StratifiedKFold

    own, population, missed = np.random.default_rng(63), Population(1), 0
    of_class = [population.y == label for label in (0, 1)]
    for run in range(40):
        X, y = population.draw(own, 100)
        folds, split = np.empty(100, int), StratifiedKFold(5, shuffle=True, random_state=run)
        for fold, (_, there) in enumerate(split.split(X, y)):
            folds[there] = fold
        misses = False
        for key, model in enumerate(learners()[:3]):
            out_of_fold, everywhere = cross_validated(model, X, y, folds, population)
            # how often each fold's model is right in each class
            right = np.array([(everywhere == population.y)[:, rows].mean(axis=1)
                              for rows in of_class])  # fmt: skip
            truths = {
                "balanced_accuracy": np.mean([right[c][folds[y == c]].mean() for c in (0, 1)]),
                "accuracy": right[y, folds].mean(),
                "recall": right[1][folds[y == 1]].mean(),
            }
            for name, truth in truths.items():
                search = search_of(y, 3, metric=name, classes=[0, 1], delta=0.3, n_folds=5)
                answer = search.query(out_of_fold, key=key)
                misses |= not answer.low <= truth <= answer.high
        missed += misses
    assert missed <= most_failures(40, 0.9)  # three searches, each with a delta of .3


@pytest.mark.parametrize("one_a_fold", [False, True])
def test_rounds_chosen_by_the_folds_are_part_of_the_key(one_a_fold):
    """30 runs, seed 64, delta .3: boosting stopped where its out-of-fold error is least."""
    from sklearn.ensemble import GradientBoostingClassifier

    own, population, missed, n_rounds, m = np.random.default_rng(64), Population(2), 0, 10, 60
    space = Product(Choice([0.1, 1.0]), *(5 if one_a_fold else 1) * [epoch_of(n_rounds)])
    for _ in range(30):
        X, y = population.draw(own, m)
        folds = equal_folds(m, own)
        search = DeclaredSearch(m, space, delta=0.3, n_folds=5)
        misses = False
        for rate in (0.1, 1.0):
            wrong, truths = np.empty((n_rounds, m), bool), np.empty((n_rounds, 5))
            for fold in range(5):
                there = folds == fold
                model = GradientBoostingClassifier(
                    n_estimators=n_rounds, learning_rate=rate, random_state=0
                ).fit(X[~there], y[~there])
                wrong[:, there] = np.array(list(model.staged_predict(X[there]))) != y[there]
                stages = np.array(list(model.staged_predict(population.X)))
                truths[:, fold] = (stages != population.y).mean(axis=1)
            if one_a_fold:
                best = np.array(
                    [wrong[:, folds == fold].mean(axis=1).argmin() for fold in range(5)]
                )
            else:
                best = np.full(5, wrong.mean(axis=1).argmin())
            key = rate, *(best if one_a_fold else best[:1]).tolist()
            answer = search.query(wrong[best[folds], np.arange(m)], key=key)
            assert answer.nats == pytest.approx(
                math.log(2) + (5 if one_a_fold else 1) * math.log(n_rounds)
            )
            truth = truths[best[folds], folds].mean()
            misses |= not answer.low <= truth <= answer.high
        missed += misses
    assert missed <= most_failures(30, 0.3)


def test_rows_of_all_folds_taken_for_independent_miss():
    """2,000 runs, seed 65, delta .2: the majority of the others, left out one by one.

    With as many ones as zeros every vote is wrong, whatever the truth, which is 1/2; that alone
    has probability .246 among ten coins.
    """
    own, m, missed, naive = np.random.default_rng(65), 10, 0, 0
    of_rows = math.sqrt(math.log(10) / (2 * m))
    for _ in range(2000):
        y = own.integers(0, 2, m)
        votes = (y.sum() - y) * 2 > m - 1
        answer = DeclaredSearch(m, 1, delta=0.2, n_folds=m).query(votes != y, key=0)
        missed += not answer.low <= 0.5 <= answer.high
        naive += abs(answer.value - 0.5) > of_rows
    assert missed <= most_failures(2000, 0.2)
    assert naive > most_failures(2000, 0.2)


def worst_case(own, m, k, n_runs):
    """Scores and truths where every fold's deviation has one sign: what theory calls worst.

    Fold j's model predicts x times the signs of the other folds' correlations of x with the label,
    both fair coins, so that all of its folds are lucky together or unlucky together.
    """
    heads = own.binomial(m // k, 0.5, (n_runs, k)) / (m // k)
    sign = np.where(heads >= 0.5, 1, -1).prod(axis=1)
    return 0.5 - sign * np.abs(heads - 0.5).mean(axis=1), np.full(n_runs, 0.5)


def one_of_two(own, m, k, n_runs):
    """Two models that err on different rows, .03 each: a fold takes one by the others' signs."""
    n, rate = m // k, 0.03
    first = own.binomial(n, rate, (n_runs, k))
    second = own.binomial(n - first, rate / (1 - rate))
    sign = np.where(first >= second, 1, -1)
    others = sign.prod(axis=1, keepdims=True) * sign
    errors = np.where(others > 0, first, second)
    return errors.sum(axis=1) / m, np.full(n_runs, rate)


@pytest.mark.parametrize("learner", [worst_case, one_of_two])
@pytest.mark.parametrize(("m", "k"), [(40, 2), (200, 5), (1000, 10)])
def test_learners_that_multiply_the_other_folds_are_covered(learner, m, k):
    """200,000 runs, seed 67, delta .3; the worst case's rows taken for independent miss."""
    scores, truths = learner(np.random.default_rng(67), m, k, 200_000)
    delta = 0.3
    lows, highs = bounds.cross_validation_interval(scores, m, k, math.log(2 / delta))
    missed = (lows > truths) | (highs < truths)
    assert missed.sum() <= most_failures(200_000, delta)
    if learner is worst_case and k > 2:
        lows, highs = bounds.kl_interval(scores, m, math.log(2 / delta))
        naive = (lows > truths) | (highs < truths)
        assert naive.sum() > most_failures(200_000, delta)
