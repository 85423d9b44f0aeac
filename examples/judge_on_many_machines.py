"""Workers judge their models and send 16 bytes for each; one search answers for all."""

from concurrent.futures import ProcessPoolExecutor, as_completed

import numpy as np

from radabound_fast import DeclaredSearch

N_MODELS, N_ROWS, N_A_BLOCK = 2_000, 1_000, 100


def predict(key, y_true):
    """Stand-in for a model of yours: it errs in .05 to .3 of the rows."""
    rng = np.random.default_rng(key)
    return y_true ^ (rng.random(N_ROWS) < rng.uniform(0.05, 0.3))


def judge(task, keys, y_true):
    """What a worker does, here in a process, else on Ray, Dask, Spark or a queue."""
    return task.reduce(np.stack([predict(key, y_true) for key in keys]), keys=keys)


if __name__ == "__main__":
    y_true = np.random.default_rng(0).integers(0, 2, N_ROWS)
    search = DeclaredSearch(y_true, N_MODELS, delta=0.1, n_best=10)
    keys = range(N_MODELS)
    with ProcessPoolExecutor(2) as pool:
        blocks = [keys[start : start + N_A_BLOCK] for start in keys[::N_A_BLOCK]]
        waiting = [pool.submit(judge, search.task(), block, y_true) for block in blocks]
        # in whatever order they come; a key that is missing or comes twice is an error
        search.take((done.result() for done in as_completed(waiting)), keys=keys)
    print(search.report())
