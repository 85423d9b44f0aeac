"""A blind spot: one tree, and thresholds per route that are moved a little at a time.

Each step changes few predictions, so the complexity hardly grows while the gap does.  Here every
run has its own holdout, and the guards that adapt are queried as the search goes.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from radabound_fast._extras import needs
from radabound_fast.experiments import data, searches
from radabound_fast.experiments.results import Row
from radabound_fast.experiments.runner import Task

with needs("reproduce"):
    from sklearn.model_selection import cross_val_predict
    from sklearn.tree import DecisionTreeClassifier


N_RUNS = 20
N_CANDIDATES = 2500
EPSILONS = (0.04, 0.1)


# (n_routes,): a flight is called late where the tree's score exceeds its route's
Moved = NDArray[np.float64]


class Thresholds:
    """A tree of common settings on one resample of the flights; guesses by cross-validation."""

    def __init__(self, rng: np.random.Generator) -> None:
        flights = data.all_flights()
        order = rng.permutation(len(flights.late))[: data.N_TRAIN + data.N_HOLDOUT + data.N_FRESH]
        self._parts = training, holdout, fresh = [
            flights.take(rows)
            for rows in np.split(order, [data.N_TRAIN, data.N_TRAIN + data.N_HOLDOUT])
        ]
        tree = DecisionTreeClassifier(min_samples_leaf=30, random_state=0)
        left_out = cross_val_predict(
            tree, training.features, training.late, cv=5, method="predict_proba"
        )
        tree.fit(training.features, training.late)
        self._scores = [left_out[:, 1]]
        self._scores += [tree.predict_proba(part.features)[:, 1] for part in (holdout, fresh)]
        self._n_routes = int(flights.route.max()) + 1
        # a route without held-out flights would ask the last question again
        self._routes = np.unique(holdout.route)

    def first(self) -> Moved:
        return np.full(self._n_routes, 0.5)

    def change(self, best: Moved, rng: np.random.Generator) -> Moved:
        """One to three thresholds take a random step."""
        thresholds = best.copy()
        moved = rng.choice(self._routes, size=rng.integers(1, 4), replace=False)
        steps = 0.15 * rng.standard_normal(len(moved))
        thresholds[moved] = np.clip(thresholds[moved] + steps, 0.05, 0.95)
        return thresholds

    def question(self, candidate: Moved) -> searches.Question:
        left_out, losses, fresh = (
            (scores > candidate[part.route]) != part.late
            for part, scores in zip(self._parts, self._scores, strict=True)
        )
        return searches.Question(losses, float(np.mean(left_out)), float(np.mean(fresh)))


def tasks() -> list[Task]:
    """One cell per run."""
    return [Task("climb", f"{run:02}", partial(search, run)) for run in range(N_RUNS)]


def search(run: int) -> list[Row]:
    """One resample of the flights against every guard."""
    rng = np.random.default_rng([run, 60])
    problem = Thresholds(rng)
    seed = int(rng.integers(2**62))
    rows = searches.against_all(problem, EPSILONS, N_CANDIDATES, seed)
    return [{"data": "flights", "run": run, **row} for row in rows]
