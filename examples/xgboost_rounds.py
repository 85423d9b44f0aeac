"""How many rounds of boosting?  Asked of a guard that may answer only so often.

The trees depend on the training part alone, so the ensembles and their order are fixed before any
answer: what `FixedSequence` needs.  That holds for one run on one guard.
"""

import xgboost
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from radabound_fast import FixedSequence
from radabound_fast.integrations.xgboost import GuardedRounds

X, y = load_digits(return_X_y=True)
X_train, X_holdout, y_train, y_holdout = train_test_split(X, y, test_size=1000, random_state=0)
guard = FixedSequence(y_holdout, epsilon=0.06, delta=0.1, n_vectors=256, seed=0)

booster = xgboost.train(
    {"objective": "multi:softprob", "num_class": 10, "max_depth": 3, "nthread": 1},
    xgboost.DMatrix(X_train, y_train),
    num_boost_round=60,
    callbacks=[GuardedRounds(guard, X_holdout, every=5)],
)
error = float(booster.attr("best_score"))
print(f"{guard.n_answered} answered, halted: {guard.halted}")
print(f"best after {booster.best_iteration + 1} rounds: error {error:.3f} +- {guard.epsilon}")
