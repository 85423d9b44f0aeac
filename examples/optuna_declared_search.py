"""A study of Optuna that looks at every score, and intervals that hold all the same.

Will a flight from New York arrive more than 15 minutes late? TPE tunes a decision tree by its
errors on 4,000 held-out flights, in a space of 51 million configurations that is declared before
the first trial. The 311,346 flights that nobody used tell what every trial is worth. Then the same
study again, with guess-and-check between TPE and the holdout.

    python examples/optuna_declared_search.py [number of trials, 300 if left out [picture.png]]
"""

import sys

import numpy as np
import optuna
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from sklearn.model_selection import cross_val_predict
from sklearn.tree import DecisionTreeClassifier

from radabound_fast import DeclaredSearch, GuessAndCheck, HoldoutExhausted
from radabound_fast.experiments.demo import load_split
from radabound_fast.integrations.optuna import space_of

DELTA = 0.1
N_TRAIN = 8_000  # flights to train on, beside the 4,000 of the demo
DISTRIBUTIONS = {
    "max_depth": IntDistribution(1, 20),
    "min_samples_leaf": IntDistribution(1, 100, log=True),
    "max_features": IntDistribution(1, 10),
    "criterion": CategoricalDistribution(["gini", "entropy"]),
    "weight": FloatDistribution(0.5, 2.0, step=0.05),  # of the late flights in training
    "threshold": FloatDistribution(0.3, 0.7, step=0.01),  # on the share of late flights in a leaf
}


def load():
    """Features and labels: to fit on, to choose by, and to learn the truth from."""
    split = load_split()
    X, y = split.fresh.features, split.fresh.late
    train = np.vstack([split.train.features, X[:N_TRAIN]]), np.append(split.train.late, y[:N_TRAIN])
    return train, (split.holdout.features, split.holdout.late), (X[N_TRAIN:], y[N_TRAIN:])


class LateTree:
    """A decision tree that calls a flight late where its leaf's share of late ones is large."""

    def __init__(self, train, weight, threshold, **parameters):
        self.threshold = threshold
        self.train = train
        self.tree = DecisionTreeClassifier(
            class_weight={False: 1.0, True: weight}, random_state=0, **parameters
        ).fit(*train)

    def predict(self, features):
        return self.tree.predict_proba(features)[:, 1] > self.threshold

    def guess(self):
        """Its error by cross-validation on the training part: what guess-and-check needs."""
        shares = cross_val_predict(self.tree, *self.train, cv=3, method="predict_proba")[:, 1]
        return float(np.mean((shares > self.threshold) != self.train[1]))


def study(train, n_trials, ask):
    """Every trial that was answered: its tree, its parameters, and the answer."""
    told = []
    tpe = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=0))
    for _ in range(n_trials):
        trial = tpe.ask(DISTRIBUTIONS)
        tree = LateTree(train, **trial.params)
        try:
            answer = ask(tree, trial.params)
        except HoldoutExhausted:
            break
        tpe.tell(trial, answer.value)
        told.append((tree, trial.params, answer))
    return told


def main(n_trials=300, picture=None):
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    train, (X, y), fresh = load()

    search = DeclaredSearch(y, space_of(DISTRIBUTIONS), delta=DELTA)
    told = study(train, n_trials, lambda tree, key: search.query(tree.predict(X), key=key))
    truths = np.array([np.mean(tree.predict(fresh[0]) != fresh[1]) for tree, _, _ in told])
    scores, lows, highs = np.array([(a.value, a.low, a.high) for _, _, a in told]).T
    best, n_inside = int(highs.argmin()), int(np.sum((lows <= truths) & (truths <= highs)))
    half_width, largest_gap = np.max(highs - scores), np.abs(scores - truths).max()
    print(f"""\
{len(told)} trials of TPE, {search.n_answered} different ones, in a space of {search.size:,}.

{search.report()}

Of {len(fresh[1]):,} other flights the best errs in {truths[best]:.1%}. There {n_inside} of
{len(told)} trials err as their intervals say. A score is off by up to {largest_gap:.1%}; the widest
interval is +-{half_width:.1%}.
""")

    if picture:
        search.report().plot().savefig(picture)

    check = GuessAndCheck(y, epsilon=half_width, delta=DELTA)
    told = study(train, n_trials, lambda tree, _: check.query(tree.predict(X), guess=tree.guess()))
    print(f"""\
The same study under guess-and-check, with the same +-{half_width:.1%} and guesses by 3-fold
cross-validation: {len(told)} trials answered, {check.failures} guesses failed, halted:
{check.halted}.""")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]), *sys.argv[2:])
