"""Every guard once: made on what it judges, queried, and read."""

import numpy as np

from radabound_fast import (
    DeclaredSearch,
    FixedSequence,
    GuessAndCheck,
    Holdout,
    HoldoutExhausted,
    Ladder,
    Losses,
    RadaBound,
    metrics,
    pack_losses,
    plan,
    spaces,
)

rng = np.random.default_rng(0)
y_true = rng.integers(0, 2, 1000)
search = DeclaredSearch(Holdout(y_true, metric=metrics.RocAuc()), {"depth": [1, 2, 3]}, delta=0.1)
answer = search.query(rng.random(1000), key={"depth": 2})
print(answer.value, answer.low, answer.high, answer.half_width, answer.number, answer.nats)
block = search.query_many(rng.random((2, 1000)), keys=[{"depth": 1}, {"depth": 3}])
print(len(block), block.values.mean(), block.halted, block.n_answered, block[0].key)
print(search.report(), search.guarantee, search.halted, search.needs, search.n_left())
labels = DeclaredSearch(y_true, spaces.Grid({"depth": [1, 2]}), delta=0.1, baseline=1 - y_true)
print(labels.compare(y_true, 1 - y_true, key_a={"depth": 1}, key_b={"depth": 2}).gain_low)
guard = RadaBound(Losses(1000), epsilon=0.3, delta=0.1, seed=0)
try:
    print(
        guard.query(pack_losses(rng.random(1000) < 0.1)).complexity, guard.budget, guard.n_answered
    )
except HoldoutExhausted as spent:
    print(spent.n_answered)
print(FixedSequence(y_true, epsilon=0.2, delta=0.1).query(y_true).low)
print(GuessAndCheck(y_true, epsilon=0.2, delta=0.1).query(y_true, guess=0.1).passed)
print(Ladder(y_true, 0.01, delta=0.1).query(y_true).updated)
print(plan(4000, 0.05, 0.1, space_size=10**6).low)
