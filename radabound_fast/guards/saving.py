"""Guards on disk: shared as a database (`open`), or moved as a file (`save` and `load`)."""

from __future__ import annotations

import contextlib
import os
from abc import abstractmethod
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, ClassVar, Self

from radabound_fast._checks import check_seed
from radabound_fast._kernel import sealed
from radabound_fast._ownership import Owned
from radabound_fast.guards.log import hears_queries, note_halt

if TYPE_CHECKING:
    from radabound_fast._kernel import SharedState
    from radabound_fast.store import Durability, Ledger, Path, StateFile
    from radabound_fast.store.description import Description, Progress


class Saved(Owned):
    """Base class of a guard: JSON parameters that never change, and integers that do."""

    # arguments of which a file has a hash alone, its parameter "weighting"
    _given_again: ClassVar[tuple[str, ...]] = ()

    def __init__(self) -> None:
        super().__init__()
        self._file: StateFile | None = None  # that it was loaded from
        self._ledger: Ledger | None = None  # the database it was opened from
        self._logs = hears_queries()
        self._halt_is_known = False

    def _note_halt(self, n_queries: int, n_samples: int) -> None:
        """Once, in a process that did not find it halted."""
        if not self._halt_is_known:
            self._halt_is_known = True
            note_halt(type(self).__name__, n_queries, n_samples)

    @property
    @abstractmethod
    def _shared(self) -> SharedState:
        """What queries change."""

    @abstractmethod
    def _parameters(self) -> dict[str, Any]:
        """The constructor's arguments by name, JSON values; the seed is one."""

    @classmethod
    @abstractmethod
    def _most_numbers(cls, parameters: dict[str, Any]) -> int:
        """How many numbers a state has at most, under parameters that nobody has checked."""

    def _check_open(self) -> None:
        """RuntimeError in a forked child, and once it was saved or closed."""
        self._check_owner()
        if self._shared._retired:
            raise RuntimeError(
                f"this {type(self).__name__} is retired, saved or closed: load or open its file"
            )

    def _description(self) -> Description:
        """What never changes."""
        return {"kind": type(self).__name__, "parameters": self._parameters()}

    def _state(self) -> dict[str, Any]:
        """The same, and the progress."""
        return self._description() | {"progress": self._shared._progress()}

    # ---- a file that one process owns ------------------------------------------------------

    @sealed
    def save(self, path: Path) -> None:
        """Write the state to a file, whole or not at all, and retire this guard.

        From then on the file is the guard: load it to go on.  If it cannot be written this
        guard goes on as if nothing had happened.

        Raises
        ------
        RuntimeError
            This guard was saved before, lives in a database, belongs to the parent of this
            process, or is in the middle of a call on this very thread, as a signal handler or a
            destructor may find it.  Or the file that it was loaded from was moved away, replaced,
            or given a second name.
        ValueError
            `path` exists and this guard was not loaded from it.
        OSError
            The file cannot be written.
        """
        self._check_owner()
        if self._ledger is not None:
            raise RuntimeError("this guard was opened from a database, where all of it is already")
        if not self._shared._hand_over(lambda progress: self._write(path, progress)):
            raise RuntimeError("this guard was saved already and is retired")

    def _write(self, path: Path, progress: Progress) -> None:
        """To its file, which somebody else may then load; to a new one if it has none."""
        from radabound_fast.store import save_state
        from radabound_fast.store.folder import real_path

        file = self._file

        def retire() -> None:
            self._shared._retired = True
            if file is not None:
                file.release()

        if file is None or file.gone:
            save_state(path, self._description(), progress, retire)
        elif file.path == real_path(path):
            file.replace(self._description(), progress, retire)
        else:
            raise ValueError(
                f"path must be {file.path}, from which this guard was loaded and where its old "
                f"state would stay, got {os.fsdecode(path)}"
            )

    @classmethod
    @sealed
    def load(cls, path: Path, **again: Any) -> Self:
        """The guard that `save` wrote, and nobody else's while it lives: it locks the file.

        What it answers is in the file only after the next `save`; see `radabound_fast.store`
        for what a crash in between costs.  `open` loses nothing.

        Parameters
        ----------
        path : path
        **again
            `sample_weight` and `groups` of a guard that has them: the file has a hash of them.

        Raises
        ------
        OSError
            There is no such file, or a live guard owns it.
        ValueError
            It is not a saved guard of this kind, or was cut short or altered, or had other weights.
        RuntimeError
            The file has a second name (a hard link), or is mounted without its folder.
        """
        from radabound_fast.store import StateFile

        file: StateFile | None = None
        try:
            file = StateFile(path)
            guard = cls._stored(os.fsdecode(path), file, again)
            guard._file = file
        except BaseException:
            if file is not None:
                file.release()
            raise
        return guard

    @classmethod
    def _stored(
        cls,
        name: str,
        source: StateFile | Ledger,
        wanted: dict[str, Any] | None = None,
        made: Self | None = None,
    ) -> Self:
        """The guard in a file or a database, if its parameters are those that are wanted."""
        kind = source.description["kind"]
        if kind != cls.__name__:
            raise ValueError(f"{name} must hold a {cls.__name__}, it holds a {kind:.50}")
        parameters = source.description["parameters"]
        with faults_of(name):
            most = cls._most_numbers(parameters)
        progress = source.stored(most)  # which finds every accident
        guard = cls._as_stored(name, parameters, wanted or {}, made)
        with faults_of(name):
            guard._shared._resume(progress)
        guard._halt_is_known = guard._shared._halted
        return guard

    # ---- a database that processes share ---------------------------------------------------

    @classmethod
    @sealed
    def open(
        cls,
        path: Path,
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
            file, which must exist, but for `sample_weight` and `groups`, of which it has a hash.

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
        RuntimeError
            Whoever opened it next would not see this guard's answers: the file has a second name
            (a hard link), is mounted without its folder, or is open while one of the files beside
            it is gone.  Or the parent of this process had it open when it forked; or this very
            thread is in the middle of opening or making a file in the same folder.
        """
        wanted = dict(parameters)
        if n_samples is not None or parameters.keys() - set(cls._given_again):
            wanted["n_samples"] = n_samples

        return cls._open(path, wanted, durability, holdout_id, named(holdout_id))

    @classmethod
    def _open(
        cls,
        path: Path,
        parameters: dict[str, Any],
        durability: Durability,
        holdout: str | None,
        same_holdout: Callable[[str | None], bool],
    ) -> Self:
        """`open`, where `holdout` is stored in a new database and else compared with.

        Without "n_samples" among the parameters they are those of the file.
        """
        from radabound_fast.store import open_ledger

        name, new, made = os.fsdecode(path), None, None
        if "n_samples" in parameters and not os.path.exists(path):
            made = cls(**parameters)
            state = made._state() | {"holdout": holdout}
            new = state, state.pop("progress")
        ledger: Ledger | None = None
        try:
            ledger = open_ledger(path, durability, new)
            check_made_for(name, ledger.description, same_holdout)
            guard = cls._stored(name, ledger, parameters, made)
            guard._ledger = ledger
            guard._shared._keep(ledger)
        except BaseException:
            if ledger is not None:
                ledger.close()
            raise
        return guard

    @classmethod
    def _as_stored(
        cls,
        name: str,
        stored: dict[str, Any],
        wanted: dict[str, Any],
        made: Self | None,
    ) -> Self:
        """A guard with the stored parameters, if they are those that are wanted."""
        if "n_samples" not in wanted:
            if unknown := wanted.keys() - set(cls._given_again):
                raise TypeError(f"{sorted(unknown)} are parameters that {name} holds")
            with faults_of(name):
                arguments = dict(stored)
                weighting = arguments.pop("weighting", None)
                if weighting is None or wanted:
                    guard = cls(**arguments, **wanted)
                    if same_json(guard._parameters(), stored):
                        return guard
                if weighting is None and not wanted:
                    raise ValueError("its parameters are not as they were written")
            raise ValueError(_other_weights(name))
        if made is not None and same_json(made._parameters(), stored):
            return made
        if wanted.get("seed") is None and stored.get("seed") is not None:
            with faults_of(name):
                wanted = wanted | {"seed": check_seed(stored["seed"])}
        guard = cls(**wanted)
        for parameter, value in guard._parameters().items():
            if parameter == "signs" or same_json(value, stored.get(parameter)):
                continue
            if parameter == "weighting":
                raise ValueError(_other_weights(name))
            if parameter == "seed":  # the stored one is nobody's business
                raise ValueError(f"seed must be the one that {name} holds, got {value}")
            raise ValueError(
                f"{parameter} must be {stored.get(parameter)!r:.200}, with which {name} was made, "
                f"got {value!r}"
            )
        return guard

    def close(self) -> None:
        """Let go of the database and answer nothing more; closing twice does nothing.

        Raises
        ------
        RuntimeError
            This guard was not opened from a database, so that closing it would lose its count.
            Or it is in the middle of a call on this very thread: a signal handler that is to end
            the program raises `SystemExit`, and a ``with`` block closes the guard.
        """
        ledger = self._opened()
        self._check_owner()
        self._shared._retire()
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


# ---- what a right checksum covers ------------------------------------------------------------

_FAULTS = (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError)


@contextlib.contextmanager
def faults_of(name: str, what: str = "a guard's state") -> Iterator[None]:
    """Whatever is wrong with what was read, a forger wrote it: one error, which names the file."""
    try:
        yield
    except _FAULTS as error:
        raise ValueError(f"{name} does not hold {what}: {str(error):.300}") from None


def _other_weights(name: str) -> str:
    return f"sample_weight and groups must be those with which {name} was made"


def named(holdout_id: str | None) -> Callable[[str | None], bool]:
    """Whether what is stored is this name of a holdout; None: any is."""
    return lambda stored: holdout_id is None or holdout_id == stored


def check_made_for(
    name: str,
    description: dict[str, Any],
    same_holdout: Callable[[str | None], bool],
    what: str = "a guard's state",
) -> None:
    """ValueError unless a database was made for this holdout."""
    with faults_of(name, what):
        same = same_holdout(description["holdout"])
    if not same:
        raise ValueError(f"{name} was made for another holdout, or for none by name")


def same_json(value: Any, other: Any) -> bool:
    """Whether both are written alike: 1, 1.0 and true are not."""
    import json

    return json.dumps(value, sort_keys=True) == json.dumps(other, sort_keys=True)
