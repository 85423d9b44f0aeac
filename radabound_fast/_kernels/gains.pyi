"""Types of gains.pyx."""

import numpy as np
from numpy.typing import NDArray

def gain_limits(cases: NDArray[np.float64], m: float) -> NDArray[np.float64]: ...
