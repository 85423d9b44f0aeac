"""A search that overfits its holdout without a guard, and stops with one.

Will a flight from New York arrive more than 15 minutes late? A linear model of 161 weights is
tuned by random steps: whatever lowers the error on 1,000 held-out flights is kept. 40,000 flights
that nobody used tell what the kept models are worth.

    python examples/overfitting_search.py [picture.png]
"""

import sys

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import OneHotEncoder

from radabound_fast import HoldoutExhausted, RadaBound
from radabound_fast.experiments.demo import load_split
from radabound_fast.plots import search_figure

EPSILON, DELTA = 0.07, 0.1
N_QUERIES = 5000
TIMETABLE = [0, 2, 3, 7, 8, 9]  # month, weekday, hour, carrier, origin, destination


def load():
    """One-hot features and labels of three parts: to fit, to choose by, to learn the truth."""
    split = load_split()
    parts = [
        split.train,
        split.holdout.take(np.arange(1000)),
        split.fresh.take(np.arange(40_000)),
    ]
    encoder = OneHotEncoder().fit(np.vstack([part.features[:, TIMETABLE] for part in parts]))
    return [(encoder.transform(part.features[:, TIMETABLE]), part.late) for part in parts]


def search(ask, train, X_holdout):
    """Random steps, kept while the answers fall; each model that was the best so far."""
    model = LogisticRegression(max_iter=200).fit(*train)
    weights, intercept = model.coef_[0], model.intercept_[0]
    rng = np.random.default_rng(0)
    candidate, lowest = weights, np.inf
    for _ in range(N_QUERIES):
        try:
            error = ask(X_holdout @ candidate + intercept > 0)
        except HoldoutExhausted:
            return
        if error < lowest:
            weights, lowest = candidate, error
        yield lowest, (weights, intercept)
        candidate = weights + 0.2 * rng.standard_normal(len(weights))


def main(picture=None):
    train, (X_holdout, y_holdout), (X_fresh, y_fresh) = load()

    def truth(steps):
        errors = {id(w): np.mean((X_fresh @ w + b > 0) != y_fresh) for _, (w, b) in steps}
        return [errors[id(w)] for _, (w, _) in steps]

    def unguarded(predictions):
        return np.mean(predictions != y_holdout)

    steps = list(search(unguarded, train, X_holdout))
    scores, true = [score for score, _ in steps], truth(steps)
    print(
        f"no guard: error {scores[0]:.3f} -> {scores[-1]:.3f}, true {true[0]:.3f} -> {true[-1]:.3f}"
    )

    halts = {}
    for bound in ("bernstein", "mclt"):
        guard = RadaBound(y_holdout, epsilon=EPSILON, delta=DELTA, bound=bound, seed=0)
        told = list(search(lambda p, guard=guard: guard.query(p).value, train, X_holdout))
        halts[bound] = len(told) + 1 if guard.halted else None
        print(
            f"{bound}: error {told[0][0]:.3f} -> {told[-1][0]:.3f}, "
            f"true {true[0]:.3f} -> {truth(told)[-1]:.3f}, withheld answer {halts[bound]}"
        )

    if picture is not None:
        told = np.array(scores)
        figure = search_figure(
            scores,
            true,
            {f"± {100 * EPSILON:g} points": (told - EPSILON, told + EPSILON)},
            halts,
            title="The error on the holdout falls, the model gets worse",
            subtitle="161 weights, random steps; 1,000 held-out flights, truth from 40,000",
        )
        figure.savefig(picture, dpi=120)


if __name__ == "__main__":
    main(*sys.argv[1:])
