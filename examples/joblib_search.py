"""Two processes fit trees for handwritten digits; one guard judges them here, in order."""

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.tree import DecisionTreeClassifier

from radabound_fast import FixedSequence
from radabound_fast.integrations.joblib import guarded_map

X, y = load_digits(return_X_y=True)
X_train, X_holdout, y_train, y_holdout = train_test_split(X, y, test_size=1000, random_state=0)


def fit_predict(candidate):
    """Runs in a worker, which has no labels of the holdout to look at."""
    tree = DecisionTreeClassifier(max_depth=8, **candidate)
    return tree.fit(X_train, y_train).predict(X_holdout)


def main():
    rng = np.random.default_rng(0)
    candidates = [
        {"max_features": int(rng.integers(4, 64)), "random_state": number} for number in range(60)
    ]
    # all candidates and their order are fixed before any answer: what this guard needs
    guard = FixedSequence(y_holdout, epsilon=0.05, delta=0.1, n_vectors=256, seed=0)
    answers = list(guarded_map(guard, fit_predict, candidates, n_jobs=2))
    candidate, best = min(answers, key=lambda pair: pair[1].value)
    print(f"{len(answers)} of {len(candidates)} answered, halted: {guard.halted}")
    print(f"best: {candidate}, error {best.value:.3f} +- {best.half_width:.3f}")


if __name__ == "__main__":  # the workers import this file
    main()
