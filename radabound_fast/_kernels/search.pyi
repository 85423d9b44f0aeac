"""Types of search.pyx."""

from collections.abc import Hashable, Sequence
from typing import Any, Self, final, overload

import numpy as np
from numpy.typing import NDArray

@overload
def tail_over_first(c: float, m: float, odds: float, terms: int) -> float: ...
@overload
def tail_over_first(
    c: NDArray[np.float64],
    m: float | NDArray[np.float64],
    odds: NDArray[np.float64],
    terms: int,
) -> NDArray[np.float64]: ...

@final
class QueryTable:
    @property
    def n_added(self) -> int: ...
    def __new__(cls, n_values: int) -> Self: ...
    def __len__(self) -> int: ...
    def add(
        self,
        codes: Sequence[Hashable] | NDArray[Any],
        reruns: NDArray[np.int64],
        values: list[NDArray[Any]],
    ) -> tuple[
        int, NDArray[np.int64] | None, tuple[NDArray[np.int64], NDArray[np.int64]] | None
    ]: ...
    def add_one(
        self, code: Hashable, rerun: int, *values: float
    ) -> tuple[int, list[int] | None]: ...
    def columns(
        self,
    ) -> tuple[list[Hashable] | NDArray[np.int64], NDArray[np.int64], list[NDArray[np.int64]]]: ...
    def copy(self) -> QueryTable: ...

def table_of_columns(
    n_added: int, names: Sequence[Hashable], *columns: NDArray[np.int64]
) -> QueryTable: ...
