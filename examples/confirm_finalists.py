"""Search freely on half of the held-out rows, and confirm the finalists on the others.

pip install ".[sklearn]" && python examples/confirm_finalists.py
"""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_digits
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.model_selection import train_test_split
from sklearn.tree import DecisionTreeClassifier

from radabound_fast import ConfirmedSearch


def main() -> None:
    X, y = load_digits(return_X_y=True)
    X, X_held, y, y_held = train_test_split(X, y, test_size=1000, random_state=0)
    search = ConfirmedSearch(y_held, delta=0.1, seed=0)
    rng = np.random.default_rng(0)
    models = [
        kind(max_depth=int(depth), random_state=int(seed)).fit(X, y)
        for kind in (DecisionTreeClassifier, ExtraTreesClassifier)
        for depth, seed in zip(rng.integers(2, 12, 10), rng.integers(2**31, size=10), strict=True)
    ]
    models.sort(key=lambda model: search.score(model.predict(X_held)))  # nothing is counted

    # what wins is trained again, on the search rows too, which are free
    free = search.search_rows
    again = models[0].fit(np.vstack([X, X_held[free]]), np.append(y, y_held[free]))
    finalists = {
        "winner, trained again": again.predict(X_held),
        "second": models[1].predict(X_held),
    }
    for answer in search.confirm(finalists):
        print(
            f"{answer.name}: error {answer.value:.3f}, true {answer.low:.3f} to {answer.high:.3f}"
        )
    print(search.report())


if __name__ == "__main__":
    main()
