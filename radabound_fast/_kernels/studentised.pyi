from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from typing_extensions import disjoint_base

from radabound_fast._kernels.rows import SignStore

@disjoint_base
class StudentisedScan:
    signs: SignStore
    def __new__(cls, signs: SignStore) -> Self: ...
    @property
    def n_lanes(self) -> int: ...
    def update(
        self,
        rows: NDArray[Any],
        into: Sequence[tuple[NDArray[np.float64], ...]],
        *,
        packed: bool,
        n_threads: int = ...,
    ) -> None: ...

def raise_maxima(
    maxima: NDArray[np.float64],
    sums: NDArray[np.float64],
    others: NDArray[np.float64],
    means: NDArray[np.float64],
    scales: NDArray[np.float64],
    sign_sums: NDArray[np.float64],
) -> None: ...
