"""Losses of trees on a cluster: workers predict and reduce, the owner finds the halting query.

The same losses through the guard at once, on this machine, give the same answers.
"""

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.tree import DecisionTreeClassifier

from radabound_fast import RadaBound
from radabound_fast.integrations.dask import query_many

X, y = load_digits(return_X_y=True)
X_train, X_holdout, y_train, y_holdout = train_test_split(X, y, test_size=1000, random_state=0)


def losses_of(seeds):
    """One row a tree.  These workers hold the labels of the holdout, so they must be trusted."""
    rows = []
    for seed in seeds.ravel():
        tree = DecisionTreeClassifier(max_depth=8, max_features=16, random_state=seed)
        rows.append(tree.fit(X_train, y_train).predict(X_holdout) != y_holdout)
    return np.array(rows)


def guard():
    return RadaBound(len(y_holdout), epsilon=0.09, delta=0.1, bound="mclt", seed=0)


def main():
    seeds = da.arange(120, chunks=20)[:, np.newaxis]
    losses = seeds.map_blocks(
        losses_of, chunks=(20, len(y_holdout)), dtype=bool, meta=np.empty((0, 0), bool)
    )
    with (
        # the dashboard at any port that is free
        LocalCluster(2, threads_per_worker=1, dashboard_address="127.0.0.1:0") as cluster,
        Client(cluster) as client,
    ):
        answers = query_many(guard(), losses, client=client)
    here = guard().query_many(losses_of(np.arange(answers.n_answered + 1)))
    print(f"{answers.n_answered} of {losses.shape[0]} answered, halted: {answers.halted}")
    best = answers[int(answers.values.argmin())]
    print(f"lowest error {best.value:.3f}, in [{best.low:.3f}, {best.high:.3f}]")
    print(f"the same here: {np.array_equal(here.values, answers.values)}")


if __name__ == "__main__":  # the workers import this file
    main()
