from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from radabound_fast._kernels.rows import SignStore

class StudentisedScan:
    signs: SignStore
    def __init__(self, signs: SignStore) -> None: ...
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

__pyx_capi__: dict[str, object]
