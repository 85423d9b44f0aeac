"""The demo's blind spot: one tree, and thresholds per route that are moved a little at a time.

Each step changes few predictions, so the complexity hardly grows while the gap does.  Here every
run has its own holdout, and the mechanisms that adapt are asked as the search goes.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from radabound_fast._extras import needs
from radabound_fast.experiments import data, searches
from radabound_fast.experiments.results import Row
from radabound_fast.experiments.runner import Task

with needs("reproduce"):
    from sklearn.model_selection import cross_val_predict
    from sklearn.tree import DecisionTreeClassifier

    from radabound_fast import demo

N_RUNS = 20
N_CANDIDATES = 2500
EPSILONS = (0.04, 0.1)


class Thresholds:
    """The demo's plain tree on one resample of the flights; guesses by cross-validation."""

    def __init__(self, rng: np.random.Generator) -> None:
        flights = data.all_flights()
        order = rng.permutation(len(flights.late))[: data.N_TRAIN + data.N_HOLDOUT + data.N_FRESH]
        training, holdout, fresh = (
            flights.take(rows)
            for rows in np.split(order, [data.N_TRAIN, data.N_TRAIN + data.N_HOLDOUT])
        )
        n_routes = int(flights.route.max()) + 1
        self._split = demo.Split(training, holdout, fresh, n_routes, np.unique(holdout.route))
        self._model = demo.plain_model(self._split)
        tree = DecisionTreeClassifier(min_samples_leaf=30, random_state=0)
        left_out = cross_val_predict(
            tree, training.features, training.late, cv=5, method="predict_proba"
        )
        self._left_out = left_out[:, 1]

    def first(self) -> demo.Model:
        return self._model

    def change(self, best: demo.Model, rng: np.random.Generator) -> demo.Model:
        return demo.with_moved_thresholds(best, self._split, rng)

    def question(self, candidate: demo.Model) -> searches.Question:
        training, holdout = self._split.train, self._split.holdout
        predicted = self._left_out > candidate.thresholds[training.route]
        return searches.Question(
            candidate.predict_holdout(self._split) != holdout.late,
            float(np.mean(predicted != training.late)),
            candidate.true_error(self._split),
        )


def tasks() -> list[Task]:
    """One cell per run."""
    return [Task("climb", f"{run:02}", partial(search, run)) for run in range(N_RUNS)]


def search(run: int) -> list[Row]:
    """One resample of the flights against every guard and mechanism."""
    rng = np.random.default_rng([run, 60])
    problem = Thresholds(rng)
    seed = int(rng.integers(2**62))
    rows = searches.against_all(problem, EPSILONS, N_CANDIDATES, seed)
    return [{"data": "flights", "run": run, **row} for row in rows]
