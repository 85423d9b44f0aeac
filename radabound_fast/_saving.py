"""A guard that moves from process to process as a file: `save` retires it, `load` owns it."""

from __future__ import annotations

import os
from abc import abstractmethod
from typing import TYPE_CHECKING, Any, Self

from radabound_fast._ownership import Owned

if TYPE_CHECKING:
    from radabound_fast.store import Lock


class Saved(Owned):
    """Base class of a guard whose state fits in JSON values and int64 arrays."""

    def __init__(self) -> None:
        super().__init__()
        self._lock: Lock | None = None  # on the file it was loaded from

    @abstractmethod
    def _state(self) -> dict[str, Any]:
        """Everything that `_from_state` needs."""

    @classmethod
    @abstractmethod
    def _from_state(cls, state: dict[str, Any]) -> Self:
        """The guard whose state it was."""

    @abstractmethod
    def _retire(self, retired: bool) -> bool:
        """Answer nothing while retired; returns whether it was before."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the state to a file, whole or not at all, and retire this guard.

        From then on the file is the guard: load it to go on.  If it cannot be written this
        guard goes on as if nothing had happened.

        Raises
        ------
        RuntimeError
            This guard was saved before, or belongs to the parent of this process.
        ValueError
            `path` exists and this guard was not loaded from it.
        OSError
            The file cannot be written, or a live guard owns it.
        """
        from radabound_fast.store import save_state

        self._check_owner()
        if self._retire(True):
            raise RuntimeError("this guard was saved already and is retired")
        try:
            save_state(path, self._state(), lock=self._lock)
        except BaseException:
            self._retire(False)
            raise
        if self._lock is not None:
            self._lock.release()

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """The guard that `save` wrote, and nobody else's while it lives: it locks the file.

        What it answers is in the file only after the next `save`; see `radabound_fast.store`
        for what a crash in between costs.

        Raises
        ------
        OSError
            There is no such file, or a live guard owns it.
        ValueError
            It is not a saved guard, or was cut short or altered.
        """
        from radabound_fast.store import load_state

        state, lock = load_state(path)
        try:
            guard = cls._from_state(state)
        except BaseException:
            lock.release()
            raise
        guard._lock = lock
        return guard
