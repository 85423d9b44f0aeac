"""Types of guard.pyx."""

from collections.abc import Callable
from typing import Any, ClassVar, Self, final

import numpy as np
from numpy.typing import NDArray
from typing_extensions import disjoint_base

from radabound_fast._kernels.rows import LabelRows, SignStore
from radabound_fast._kernels.support import SharedState
from radabound_fast.guards.halting import HaltingRule
from radabound_fast.rows.weighting import Units

def n_numbers(n_vectors: int) -> int: ...
def choose_thread_cells(cells: int | None = ...) -> None: ...

@disjoint_base
class Answer:
    @property
    def value(self) -> float: ...
    @property
    def low(self) -> float: ...
    @property
    def high(self) -> float: ...
    @property
    def half_width(self) -> float: ...
    @property
    def number(self) -> int: ...
    fields: ClassVar[tuple[str, ...]]
    def __float__(self) -> float: ...
    def to_dict(self) -> dict[str, Any]: ...
    def as_metrics(self, prefix: str = ...) -> dict[str, float]: ...

METRICS: tuple[str, ...]

@final
class RadaBoundAnswer(Answer):
    @property
    def complexity(self) -> float: ...
    @property
    def delta_prime(self) -> float: ...

def make_answer(
    value: float,
    complexity: float,
    number: int,
    rule: HaltingRule | tuple[float, float, float, float],
) -> RadaBoundAnswer: ...
def lay_out(
    maxima: NDArray[np.int64],
    minima: NDArray[np.int64],
    *,
    n_rows: int,
    unit_shift: int,
    largest: int,
    halted: bool = ...,
    started: bool = ...,
) -> NDArray[np.int64]: ...

@final
class GuardCore(SharedState):
    @property
    def signs(self) -> SignStore: ...
    def __new__(
        cls,
        signs: SignStore,
        *,
        half_range: bool = ...,
        price: Callable[[int, int, int], tuple[int, int, int, int, int, int, int]] | None = ...,
        rule: HaltingRule | None = ...,
        weighting: Units | None = ...,
    ) -> Self: ...
    @property
    def n_rows(self) -> int: ...
    @property
    def started(self) -> bool: ...
    @property
    def unit_shift(self) -> int: ...
    @property
    def budget(self) -> int: ...
    @property
    def largest(self) -> int: ...
    @property
    def cells(self) -> float: ...
    @property
    def complexity(self) -> float: ...
    @property
    def table_bytes(self) -> int: ...
    def free_tables(self) -> None: ...
    def extremes(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]: ...
    def adopt(
        self,
        progress: NDArray[np.int64],
        totals: NDArray[np.int64] | None = ...,
        *,
        may_be_real: bool = ...,
    ) -> tuple[int, float] | None: ...
    def query(
        self, values: Any, labels: Any = ..., *, packed: bool = ...
    ) -> RadaBoundAnswer | None: ...
    def query_many(
        self,
        values: Any,
        labels: Any = ...,
        *,
        packed: bool = ...,
        trace: bool = ...,
        n_threads: int = ...,
    ) -> Any: ...

@disjoint_base
class SignedQueries:
    _core: GuardCore
    _rows: LabelRows | None
    _finishes: bool
    def query(self, y_pred: Any) -> RadaBoundAnswer: ...

def extremes_of_rows(
    signs: SignStore, rows: Any, *, packed: bool
) -> tuple[NDArray[np.int64], NDArray[np.int64], int]: ...
