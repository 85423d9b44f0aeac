"""The mean losses of rows, for guards that need nothing else of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numpy.typing import NDArray

from radabound_fast._kernels.rows import PackedLosses, pack_rows, sums_of_rows
from radabound_fast.bounds import binomial_interval, kl_interval
from radabound_fast.holdout import Holdout, Losses
from radabound_fast.rows.packing import as_values, checked_words


def read_rows(y_pred: Any, holdout: Holdout | Losses, ndim: int) -> tuple[NDArray[Any], bool]:
    """Losses of one row or several, and whether they are words of packed ones."""
    if isinstance(y_pred, PackedLosses):
        return checked_words(y_pred, holdout.n_samples, ndim), True
    if isinstance(holdout, Holdout):
        return pack_rows(*holdout.labels.match(y_pred, ndim=ndim)), True
    return as_values(y_pred, holdout.n_samples, ndim, "losses"), False


class LossReader:
    """One row of losses or predictions, or several, checked and averaged when this is made.

    `means` are one float64 division each, of an exact sum; the losses are `binary` if they are 0 or
    1 by their type.
    """

    def __init__(self, y_pred: Any, holdout: Holdout | Losses, *, many: bool) -> None:
        n_samples, (values, packed) = (
            holdout.n_samples,
            read_rows(y_pred, holdout, 2 if many else 1),
        )
        rows = values if many else values[None]
        sums, shift = sums_of_rows(rows, n_samples, packed=packed)
        self.means: list[float] = (sums / (n_samples << shift)).tolist()
        self.binary = packed or values.dtype.kind != "f"
        self._n_samples = n_samples

    def judged(
        self, row: int, number: int, nats_of: Callable[[int], float]
    ) -> tuple[float, float, float]:
        """The mean of a row, query `number`, and its limits at the nats of that."""
        mean, m, nats = self.means[row], self._n_samples, nats_of(number)
        if self.binary:
            return mean, *binomial_interval(round(mean * m), m, nats)
        return mean, *kl_interval(mean, m, nats)
