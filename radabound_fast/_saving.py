"""Guards on disk: shared as a database (`open`), or moved as a file (`save` and `load`)."""

from __future__ import annotations

import contextlib
import os
from abc import abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self

from radabound_fast._kernel import sealed
from radabound_fast._ownership import Owned

if TYPE_CHECKING:
    from radabound_fast._kernel import SharedState
    from radabound_fast.store import Durability, Ledger, Lock


class Saved(Owned):
    """Base class of a guard: JSON parameters that never change, and integers that do."""

    def __init__(self) -> None:
        super().__init__()
        self._file_lock: Lock | None = None  # on the file it was loaded from
        self._ledger: Ledger | None = None  # the database it was opened from

    @property
    @abstractmethod
    def _shared(self) -> SharedState:
        """What queries change."""

    @abstractmethod
    def _parameters(self) -> dict[str, Any]:
        """The constructor's arguments by name, JSON values; the seed is one."""

    def _check_open(self) -> None:
        """RuntimeError in a forked child, and once it was saved or closed."""
        self._check_owner()
        if self._shared._retired:
            raise RuntimeError(
                f"this {type(self).__name__} is retired, saved or closed: load or open its file"
            )

    # ---- a file that one process owns ------------------------------------------------------

    def _state(self) -> dict[str, Any]:
        """Everything that `load` needs."""
        return {
            "kind": type(self).__name__,
            "parameters": self._parameters(),
            "progress": self._shared._progress(),
        }

    @sealed
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the state to a file, whole or not at all, and retire this guard.

        From then on the file is the guard: load it to go on.  If it cannot be written this
        guard goes on as if nothing had happened.

        Raises
        ------
        RuntimeError
            This guard was saved before, lives in a database, or belongs to the parent of this
            process.
        ValueError
            `path` exists and this guard was not loaded from it.
        OSError
            The file cannot be written, or a live guard owns it.
        """
        from radabound_fast.store import save_state

        self._check_owner()
        if self._ledger is not None:
            raise RuntimeError("this guard was opened from a database, where all of it is already")
        if self._shared._retire(True):
            raise RuntimeError("this guard was saved already and is retired")
        try:
            save_state(path, self._state(), lock=self._file_lock)
        except BaseException:
            self._shared._retire(False)
            raise
        if self._file_lock is not None:
            self._file_lock.release()

    @classmethod
    @sealed
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """The guard that `save` wrote, and nobody else's while it lives: it locks the file.

        What it answers is in the file only after the next `save`; see `radabound_fast.store`
        for what a crash in between costs.  `open` loses nothing.

        Raises
        ------
        OSError
            There is no such file, or a live guard owns it.
        ValueError
            It is not a saved guard of this kind, or was cut short or altered.
        """
        from radabound_fast.store import load_state

        state, lock = load_state(path)
        try:
            cls._check_kind(path, state.get("kind"))
            guard = cls(**state["parameters"])
            guard._shared._resume(state["progress"])
        except BaseException as error:
            lock.release()
            if isinstance(error, (LookupError, TypeError, AttributeError, OverflowError)):
                # the checksum is right and the contents are not: somebody wrote them
                raise ValueError(f"{os.fspath(path)} does not hold a guard's state") from error
            raise
        guard._file_lock = lock
        return guard

    @classmethod
    def _check_kind(cls, path: str | os.PathLike[str], kind: Any) -> None:
        if kind != cls.__name__:
            raise ValueError(f"{os.fspath(path)} must hold a {cls.__name__}, it holds a {kind}")

    # ---- a database that processes share ---------------------------------------------------

    @classmethod
    @sealed
    def open(
        cls,
        path: str | os.PathLike[str],
        n_samples: int | None = None,
        *,
        holdout_id: str | None = None,
        durability: Durability = "power",
        **parameters: Any,
    ) -> Self:
        """The guard that lives in a database, made now if there is none.

        Any number of processes and threads on one machine may open it: they are one guard.  An
        answer is released only after its count is committed, so no crash forgets one; once it
        has halted, every process is refused.  `query_many` commits once, at its end.

        Parameters
        ----------
        path : path
            Of the database; see `radabound_fast.store` for what stands beside it.
        n_samples : int
            m, the size of the holdout.
        holdout_id : str, optional
            A name for the holdout, such as a hash of its file.  One that was given when the
            database was made must be given again, or left out.
        durability : {"power", "process"}
            "power": every commit waits for the disk and survives a power cut.  "process":
            commits survive the death of processes, ``kill -9`` included, but a power cut may
            take the last answers back; that is faster.
        **parameters
            Of the guard, as for its constructor.  They must be those that the database was made
            with (``signs`` may differ: the results do not).  ``seed=None`` takes the seed that
            is there.  With neither `n_samples` nor parameters all of them are taken from the
            file, which must exist.

        Returns
        -------
        guard
            Close it with `close` or a ``with`` block; a dropped one closes itself.

        Raises
        ------
        FileNotFoundError
            There is no file and no parameters to make one.
        ValueError
            The database was made with other parameters, another seed or holdout, by a later
            format, or is damaged.  The file is left as it was.
        OSError
            It cannot be read and written.
        """
        known = None if n_samples is None and not parameters else {"n_samples": n_samples}
        wanted = None if known is None else known | parameters

        def same(stored: str | None) -> bool:
            return holdout_id is None or holdout_id == stored

        return cls._open(path, wanted, durability, holdout_id, same)

    @classmethod
    def _open(
        cls,
        path: str | os.PathLike[str],
        parameters: dict[str, Any] | None,
        durability: Durability,
        holdout: str | None,
        same_holdout: Callable[[str | None], bool],
    ) -> Self:
        """`open`, where `holdout` is stored in a new database and else compared with."""
        from radabound_fast.store import Ledger, create_database

        made: Self | None = None
        while True:
            try:
                ledger = Ledger(path, durability)
                break
            except FileNotFoundError:
                if parameters is None:
                    raise
                made = made or cls(**parameters)
                stored = {"kind": cls.__name__, "parameters": made._parameters()}
                with contextlib.suppress(FileExistsError):  # somebody else was faster
                    create_database(path, stored | {"holdout": holdout}, made._shared._progress())
        try:
            cls._check_kind(path, ledger.description["kind"])
            if not same_holdout(ledger.description["holdout"]):
                raise ValueError(
                    f"{os.fspath(path)} was made for another holdout, or for none by name"
                )
            guard = cls._as_stored(path, ledger.description["parameters"], parameters, made)
            progress = ledger.read()
            assert progress is not None  # nothing has been read before
            guard._shared._resume(progress)
        except BaseException:
            ledger.close()
            raise
        guard._ledger = ledger
        guard._shared._keep(ledger)
        return guard

    @classmethod
    def _as_stored(
        cls,
        path: str | os.PathLike[str],
        stored: dict[str, Any],
        wanted: dict[str, Any] | None,
        made: Self | None,
    ) -> Self:
        """A guard with the stored parameters, if they are those that are wanted."""
        if made is not None and made._parameters() == stored:
            return made
        wanted = dict(stored if wanted is None else wanted)
        if wanted.get("seed") is None and "seed" in stored:
            wanted["seed"] = stored["seed"]
        guard = cls(**wanted)
        for name, value in guard._parameters().items():
            if name == "seed" and value != stored[name]:  # the stored one is nobody's business
                raise ValueError(f"seed must be the one that {os.fspath(path)} holds, got {value}")
            if name != "signs" and value != stored[name]:
                raise ValueError(
                    f"{name} must be {stored[name]!r}, with which {os.fspath(path)} was made, "
                    f"got {value!r}"
                )
        return guard

    def close(self) -> None:
        """Let go of the database and answer nothing more; closing twice does nothing.

        Raises
        ------
        RuntimeError
            This guard was not opened from a database, so that closing it would lose its count.
        """
        ledger = self._opened()
        self._check_owner()
        self._shared._retire(True)
        ledger.close()

    def __enter__(self) -> Self:
        self._opened()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _opened(self) -> Ledger:
        if self._ledger is None:
            raise RuntimeError("this guard is in no database: save it to keep its count")
        return self._ledger
