"""Types of limits.pyx."""

from typing import overload

import numpy as np
from numpy.typing import NDArray

@overload
def fold_limits(means: float, n_rows: float, nats: float) -> tuple[float, float]: ...
@overload
def fold_limits(
    means: NDArray[np.float64], n_rows: float, nats: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]: ...
def betting_limits(values: NDArray[np.float64], nats: float) -> tuple[int, float, float]: ...
def betting_capital(values: NDArray[np.float64], mu: float, nats: float) -> tuple[int, float]: ...
def weighted_limits(
    mean: float, weights: NDArray[np.float64], counts: NDArray[np.float64], nats: float
) -> tuple[float, float]: ...
