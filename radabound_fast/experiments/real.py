"""Real data: two searches on resampled holdouts, each queried through every guard.

A vote of pre-fitted trees is built member by member.  A climb moves the thresholds of one tree,
route by route: each step changes few predictions, so the complexity hardly grows while the gap
does.  Guesses are cross-validation errors on the training rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from radabound_fast._extras import needs
from radabound_fast.experiments import data, searches
from radabound_fast.experiments.runner import Row, Task

with needs("reproduce"):
    from sklearn.model_selection import cross_val_predict
    from sklearn.tree import DecisionTreeClassifier

N_RESAMPLES = 20  # of each data set, for either search
N_CANDIDATES = 1000
N_TREES = 60
EPSILONS = (0.05, 0.1)
N_MOVES = 2500
EPSILONS_OF_MOVES = (0.04, 0.1)

Scores = NDArray[np.float32]
Thresholds = NDArray[np.float64]  # (n_routes,): late where the tree's score exceeds its route's


def tasks(names: Sequence[str] = tuple(data.TABLES)) -> list[Task]:
    """One cell of votes per data set and resample."""
    return [
        Task("real", f"{name}-{resample:02}", partial(search, name, resample))
        for name in names
        for resample in range(N_RESAMPLES)
    ]


def search(name: str, resample: int) -> list[Row]:
    """One resample of a data set: the search for a vote, against every guard."""
    rng = np.random.default_rng([resample, 50, list(data.TABLES).index(name)])
    pool = Pool(data.TABLES[name](), rng)
    rows = searches.against_all(pool, EPSILONS, N_CANDIDATES, int(rng.integers(2**62)))
    return [{"data": name, "resample": resample, **row} for row in rows]


def climbs() -> list[Task]:
    """One cell per climb."""
    return [Task("climb", f"{run:02}", partial(climb, run)) for run in range(N_RESAMPLES)]


def climb(run: int) -> list[Row]:
    """One resample of the flights: the climb, against every guard."""
    rng = np.random.default_rng([run, 60])
    routes = Routes(rng)
    rows = searches.against_all(routes, EPSILONS_OF_MOVES, N_MOVES, int(rng.integers(2**62)))
    return [{"data": "flights", "run": run, **row} for row in rows]


def _scores(tree: Any, features: Sequence[Any], positive: Any) -> list[NDArray[np.float64]]:
    """The tree's probabilities on training rows, by cross-validation, and on the other parts."""
    left_out = cross_val_predict(tree, features[0], positive, cv=5, method="predict_proba")
    tree.fit(features[0], positive)
    return [left_out[:, 1], *(tree.predict_proba(rows)[:, 1] for rows in features[1:])]


class Votes(NamedTuple):
    """How a set of trees, counted with repeats, votes on each part of the data."""

    n_trees: int
    cross_validated: Scores  # sums of the trees' probabilities, on the training rows
    holdout: Scores
    fresh: Scores

    def with_tree(self, tree: Votes) -> Votes:
        both: Any = zip(self, tree, strict=True)
        return Votes(*(one + other for one, other in both))


class Pool:
    """The trees fitted on one resample."""

    def __init__(self, table: data.Table, rng: np.random.Generator) -> None:
        self._parts = data.split(table, rng)
        self.trees = [self._fit(rng) for _ in range(N_TREES)]

    def _fit(self, rng: np.random.Generator) -> Votes:
        """A tree of random settings on a random half of the features."""
        n_features = self._parts[0].features.shape[1]
        columns = rng.choice(n_features, size=-(-n_features // 2), replace=False)
        tree = DecisionTreeClassifier(
            max_depth=int(rng.integers(2, 13)),
            min_samples_leaf=int(rng.integers(5, 61)),
            random_state=int(rng.integers(2**31)),
        )
        features = [part.features[:, columns] for part in self._parts]
        scores = _scores(tree, features, self._parts[0].positive)
        return Votes(1, *(each.astype(np.float32) for each in scores))

    def first(self) -> Votes:
        return self.trees[0]

    def change(self, best: Votes, rng: np.random.Generator) -> Votes:
        return best.with_tree(self.trees[rng.integers(N_TREES)])

    def question(self, candidate: Votes) -> searches.Question:
        n_trees, *scores = candidate
        return searches.question_of(
            (summed > 0.5 * n_trees) != part.positive
            for summed, part in zip(scores, self._parts, strict=True)
        )


class Routes:
    """A tree of common settings on one resample of the flights."""

    def __init__(self, rng: np.random.Generator) -> None:
        flights = data.all_flights()
        self._parts = data.split(flights, rng)
        tree = DecisionTreeClassifier(min_samples_leaf=30, random_state=0)
        features = [part.features for part in self._parts]
        self._scores = _scores(tree, features, self._parts[0].late)
        self._n_routes = int(flights.route.max()) + 1
        # a route without held-out flights would ask the last question again
        self._routes = np.unique(self._parts[1].route)

    def first(self) -> Thresholds:
        return np.full(self._n_routes, 0.5)

    def change(self, best: Thresholds, rng: np.random.Generator) -> Thresholds:
        """One to three thresholds take a random step."""
        thresholds = best.copy()
        moved = rng.choice(self._routes, size=rng.integers(1, 4), replace=False)
        steps = 0.15 * rng.standard_normal(len(moved))
        thresholds[moved] = np.clip(thresholds[moved] + steps, 0.05, 0.95)
        return thresholds

    def question(self, candidate: Thresholds) -> searches.Question:
        return searches.question_of(
            (scores > candidate[part.route]) != part.late
            for scores, part in zip(self._scores, self._parts, strict=True)
        )
