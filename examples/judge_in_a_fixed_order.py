"""The models and their order are fixed beforehand: each score within epsilon, until it halts."""

import numpy as np

from radabound_fast import FixedSequence

rng = np.random.default_rng(0)
y_true = rng.integers(0, 2, 4000)
models = np.where(rng.random((30, 4000)) < 0.2, 1 - y_true, y_true)

guard = FixedSequence(y_true, epsilon=0.05, delta=0.1)
answers = guard.query_many(models)
print(f"{len(answers)} of {len(models)} answered, halted: {answers.halted}")
print(
    f"the lowest upper limit: {answers.highs.min():.4f}; {guard.n_left():,} more will be answered"
)
