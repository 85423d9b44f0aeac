"""Real data: a search for the best vote of pre-fitted trees, on resampled holdouts.

Per resample a pool of trees is fitted to 4,000 rows, once.  The search then builds a vote member
by member, as forward ensemble selection does, and keeps a member that lowers the error on 4,000
held-out rows.  Guess and check and Thresholdout are given the cross-validation error of each
vote on the training rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from radabound_fast._extras import needs
from radabound_fast.experiments import data, searches
from radabound_fast.experiments.results import Row
from radabound_fast.experiments.runner import Task

with needs("reproduce"):
    from sklearn.model_selection import cross_val_predict
    from sklearn.tree import DecisionTreeClassifier

N_RESAMPLES = 20
N_CANDIDATES = 1000
N_TREES = 60
EPSILONS = (0.05, 0.1)

Scores = NDArray[np.float32]


class Votes(NamedTuple):
    """How a set of trees, counted with repeats, votes on each part of the data."""

    n_trees: int
    cross_validated: Scores  # sums of the trees' probabilities, on the training rows
    holdout: Scores
    fresh: Scores

    def with_tree(self, tree: Votes) -> Votes:
        return Votes(
            self.n_trees + tree.n_trees,
            self.cross_validated + tree.cross_validated,
            self.holdout + tree.holdout,
            self.fresh + tree.fresh,
        )


class Pool:
    """The trees fitted on one resample."""

    def __init__(self, table: data.Table, rng: np.random.Generator) -> None:
        self._parts = data.split(table, rng)
        self.trees = [self._fit(rng) for _ in range(N_TREES)]

    def _fit(self, rng: np.random.Generator) -> Votes:
        """A tree of random settings on a random half of the features."""
        training, holdout, fresh = self._parts
        n_features = training.features.shape[1]
        columns = rng.choice(n_features, size=-(-n_features // 2), replace=False)
        tree = DecisionTreeClassifier(
            max_depth=int(rng.integers(2, 13)),
            min_samples_leaf=int(rng.integers(5, 61)),
            random_state=int(rng.integers(2**31)),
        )
        rows = training.features[:, columns]
        left_out = cross_val_predict(tree, rows, training.positive, cv=5, method="predict_proba")
        tree.fit(rows, training.positive)
        return Votes(
            1,
            *(
                scores[:, 1].astype(np.float32)
                for scores in (
                    left_out,
                    tree.predict_proba(holdout.features[:, columns]),
                    tree.predict_proba(fresh.features[:, columns]),
                )
            ),
        )

    def first(self) -> Votes:
        return self.trees[0]

    def change(self, best: Votes, rng: np.random.Generator) -> Votes:
        return best.with_tree(self.trees[rng.integers(N_TREES)])

    def question(self, candidate: Votes) -> searches.Question:
        scores = (candidate.cross_validated, candidate.holdout, candidate.fresh)
        wrong = [
            (summed > 0.5 * candidate.n_trees) != part.positive
            for summed, part in zip(scores, self._parts, strict=True)
        ]
        return searches.Question(wrong[1], float(wrong[0].mean()), float(wrong[2].mean()))


def tasks(names: Sequence[str] = tuple(data.TABLES)) -> list[Task]:
    """One cell per data set and resample."""
    return [
        Task("real", f"{name}-{resample:02}", partial(search, name, resample))
        for name in names
        for resample in range(N_RESAMPLES)
    ]


def search(name: str, resample: int) -> list[Row]:
    """One resample of a data set against every guard."""
    rng = np.random.default_rng([resample, 50, list(data.TABLES).index(name)])
    pool = Pool(data.TABLES[name](), rng)
    seed = int(rng.integers(2**62))
    rows = searches.against_all(pool, EPSILONS, N_CANDIDATES, seed)
    return [{"data": name, "resample": resample, **row} for row in rows]
