"""What the queries of a guard change: numbers, which are counted whole or not at all."""

from __future__ import annotations

import struct
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from radabound_fast._kernels.support import SharedState


class Progress(SharedState):
    """The number of answers, and a guard's own numbers.

    A subclass has these as class attributes, int or float, with the values that they begin with;
    their order is that in a database.  `SharedState` has the lock, and what a change is.
    """

    n_answered = 0  # answers given so far
    _names: ClassVar[tuple[str, ...]] = ("n_answered", "has_halted")
    _layout: ClassVar[struct.Struct] = struct.Struct("=qq")

    def __init_subclass__(cls) -> None:
        own = {name: type(value) for name, value in vars(cls).items() if name[0] != "_"}
        own = {name: kind for name, kind in own.items() if kind in (int, float)}
        cls._names = (*Progress._names, *own)
        kinds = ("q" if kind is int else "d" for kind in own.values())
        cls._layout = struct.Struct("=qq" + "".join(kinds))

    def _lay_out(self) -> NDArray[np.int64]:
        numbers = (getattr(self, name) for name in self._names)
        return np.frombuffer(self._layout.pack(*numbers), np.int64)

    def _take_over(self, progress: NDArray[np.int64]) -> None:
        if len(progress) != len(self._names):
            raise ValueError(f"the state must have {len(self._names)} numbers, got {len(progress)}")
        for name, number in zip(self._names, self._layout.unpack(progress.tobytes()), strict=True):
            setattr(self, name, number)
