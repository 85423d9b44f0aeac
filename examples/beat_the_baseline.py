"""Is the new model really better than the one in use, or was it lucky on this holdout?"""

import numpy as np

from radabound_fast import DeclaredSearch

rng = np.random.default_rng(0)
y_true = rng.integers(0, 2, 4000)
in_use = np.where(rng.random(4000) < 0.25, 1 - y_true, y_true)  # fixed before any score was seen

search = DeclaredSearch(y_true, {"depth": range(1, 21)}, delta=0.1, baseline=in_use)
for depth in (3, 7, 5):
    y_pred = np.where(rng.random(4000) < 0.2, 1 - y_true, y_true)
    answer = search.query(y_pred, key={"depth": depth})
    sure = "better" if answer.gain_low > 0 else "perhaps no better"
    print(
        f"depth {depth}: errs less often by {answer.gain_low:.4f} to {answer.gain_high:.4f}: {sure}"
    )
