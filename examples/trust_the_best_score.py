"""You tried many models on one holdout. How far can the best score be trusted?"""

import numpy as np

from radabound_fast import DeclaredSearch

rng = np.random.default_rng(0)
y_true = rng.integers(0, 2, 4000)
space = {"depth": range(1, 21), "leaf": [1, 3, 10, 30]}  # written down before any score is seen

search = DeclaredSearch(y_true, space, delta=0.1)  # the labels stay inside
for depth in (3, 7, 5):
    y_pred = np.where(rng.random(4000) < 0.2, 1 - y_true, y_true)  # your model's predictions
    search.query(y_pred, key={"depth": depth, "leaf": 10})

print(search.report())
