"""What a search loses by training points drawn beforehand: docs/how-to/declare-a-space.md.

    python docs/make/points_against_suggestions.py [studies, 10 if left out]

TPE tunes a decision tree, 100 trials a study, by its errors on 4,000 rows. Printed is the error of
the best model on 20,000 rows that nobody used, with its standard error over the studies.
"""

import sys

import numpy as np
import optuna
from optuna.distributions import FloatDistribution, IntDistribution
from sklearn.datasets import make_classification
from sklearn.tree import DecisionTreeClassifier

from radabound_fast.integrations.optuna import points_of

DISTRIBUTIONS = {
    "min_samples_leaf": IntDistribution(1, 400, log=True),
    "max_leaf_nodes": IntDistribution(2, 500, log=True),
    "ccp_alpha": FloatDistribution(1e-6, 1e-1, log=True),
    "min_impurity_decrease": FloatDistribution(1e-7, 1e-2, log=True),
    "max_features": FloatDistribution(0.05, 1.0),
    "weight": FloatDistribution(0.3, 3.0, log=True),  # of the second class in training
    "threshold": FloatDistribution(0.2, 0.8),  # on the share of the second class in a leaf
}
X, Y = make_classification(
    26_000, 20, n_informative=8, n_clusters_per_class=4, flip_y=0.1, random_state=0
)
TRAIN, HOLDOUT, REST = slice(0, 2000), slice(2000, 6000), slice(6000, None)


def errors(params):
    """Shares of wrong predictions on the holdout and on the rest."""
    options = dict(params)
    weight, threshold = options.pop("weight"), options.pop("threshold")
    tree = DecisionTreeClassifier(random_state=0, class_weight={0: 1.0, 1: weight}, **options)
    tree.fit(X[TRAIN], Y[TRAIN])
    return [
        np.mean((tree.predict_proba(X[rows])[:, 1] > threshold) != Y[rows])
        for rows in (HOLDOUT, REST)
    ]


def best_of_study(seed, n_points):
    """Both errors of the model with the lowest holdout error."""
    space = None if n_points is None else points_of(DISTRIBUTIONS, n_points, seed=seed)
    study, told = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed)), []
    for _ in range(100):
        trial = study.ask(DISTRIBUTIONS)
        told.append(errors(trial.params if space is None else space.nearest(trial.params)))
        study.tell(trial, told[-1][0])
    return min(told)


def main(n_studies=10):
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    for name, n_points in (("suggestions", None), ("10,000 points", 10_000), ("200 points", 200)):
        true = np.array([best_of_study(seed, n_points)[1] for seed in range(n_studies)])
        spread = true.std(ddof=1) / len(true) ** 0.5
        print(f"{name}: true error {true.mean():.4f}, standard error {spread:.4f}", flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
