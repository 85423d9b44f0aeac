"""Optuna searches a tree for handwritten digits; the guard prunes what it cannot answer."""

import os

import optuna
import optunahub
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.tree import DecisionTreeClassifier

from radabound_fast import RadaBound

X, y = load_digits(return_X_y=True)
X_train, X_holdout, y_train, y_holdout = train_test_split(X, y, test_size=1000, random_state=0)
guard = RadaBound(y_holdout, epsilon=0.07, delta=0.1, bound="mclt", seed=0)


def fit_predict(trial):
    tree = DecisionTreeClassifier(
        max_depth=trial.suggest_int("max_depth", 2, 12),
        max_features=trial.suggest_int("max_features", 4, 64),
        random_state=trial.number,
    )
    return tree.fit(X_train, y_train).predict(X_holdout)


# from this folder's copy of the registry; load_module("pruners/radabound") takes the published one
registry = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
package = optunahub.load_local_module("pruners/radabound", registry_root=registry)

optuna.logging.set_verbosity(optuna.logging.WARNING)
study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=0))
study.optimize(package.guarded_objective(guard, fit_predict), n_trials=40, n_jobs=2)

states = [trial.state.name for trial in study.trials]
print(f"{states.count('COMPLETE')} trials answered, {states.count('PRUNED')} pruned")
print(f"best of the answered: error {study.best_value:.3f} +- {guard.epsilon}")
