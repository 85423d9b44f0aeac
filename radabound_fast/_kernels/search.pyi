"""Types of search.pyx."""

from collections.abc import Hashable, Sequence
from typing import Any, Self, TypeVar, final

import numpy as np
from numpy.typing import NDArray

_Reals = TypeVar("_Reals", float, NDArray[np.float64])

def tail_over_first(c: _Reals, m: float | _Reals, odds: _Reals, terms: int) -> _Reals: ...

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
