"""A team searches together, in many processes: one database counts every model once."""

import tempfile
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np

from radabound_fast import DeclaredSearch

SPACE = {"depth": range(1, 21)}
Y_TRUE = np.random.default_rng(0).integers(0, 2, 4000)


def try_depths(path: str, depths: list[int]) -> None:
    """What each process does: open the search, and ask."""
    search = DeclaredSearch.open(path, Y_TRUE, SPACE, delta=0.1)
    for depth in depths:
        wrong = np.random.default_rng(depth).random(4000) < 0.2
        search.query(np.where(wrong, 1 - Y_TRUE, Y_TRUE), key={"depth": depth})


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder, "search.db"))
        DeclaredSearch.open(path, Y_TRUE, SPACE, delta=0.1)
        with ProcessPoolExecutor(2) as pool:
            list(pool.map(try_depths, [path] * 2, [[1, 2, 3], [3, 4, 5]]))
        print(DeclaredSearch.open(path).report())
