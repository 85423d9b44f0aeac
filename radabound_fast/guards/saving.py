"""Guards in a database that processes share."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Self

from radabound_fast._checks import check_seed
from radabound_fast._kernel import sealed
from radabound_fast._ownership import Owned
from radabound_fast.guards.log import hears_queries, note_halt

if TYPE_CHECKING:
    from radabound_fast._kernel import SharedState
    from radabound_fast.store import Description, Durability, Ledger, Path


class Saved(Owned):
    """Base class of a guard: JSON parameters that never change, and integers that do."""

    # arguments of which a file has a hash alone, its parameter "weighting"
    _given_again: ClassVar[tuple[str, ...]] = ()

    def __init__(self) -> None:
        super().__init__()
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

    def _check_open(self) -> None:
        """RuntimeError in a forked child, and once it was closed."""
        self._check_owner()
        if self._shared._retired:
            raise RuntimeError(f"this {type(self).__name__} is closed: open its database again")

    def _description(self) -> Description:
        """What never changes."""
        return {"kind": type(self).__name__, "parameters": self._parameters()}

    def _state(self) -> dict[str, Any]:
        """The same, and the progress."""
        return self._description() | {"progress": self._shared._progress()}

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
    def _stored(cls, name: str, ledger: Ledger, wanted: dict[str, Any], made: Self | None) -> Self:
        """The guard in a database, if its parameters are those that are wanted."""
        kind = ledger.description["kind"]
        if kind != cls.__name__:
            raise ValueError(f"{name} must hold a {cls.__name__}, it holds a {kind:.50}")
        progress = ledger.stored()  # which finds every accident
        guard = cls._as_stored(name, ledger.description["parameters"], wanted, made)
        guard._shared._resume(progress)
        guard._halt_is_known = guard._shared._halted
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
            arguments = dict(stored)
            if arguments.pop("weighting", None) is None or wanted:
                guard = cls(**arguments, **wanted)
                if same_json(guard._parameters(), stored):
                    return guard
            raise ValueError(_other_weights(name))
        if made is not None and same_json(made._parameters(), stored):
            return made
        if wanted.get("seed") is None and stored.get("seed") is not None:
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
            raise RuntimeError("this guard is in no database: share it as a database (open)")
        return self._ledger


def _other_weights(name: str) -> str:
    return f"sample_weight and groups must be those with which {name} was made"


def named(holdout_id: str | None) -> Callable[[str | None], bool]:
    """Whether what is stored is this name of a holdout; None: any is."""
    return lambda stored: holdout_id is None or holdout_id == stored


def check_made_for(
    name: str,
    description: dict[str, Any],
    same_holdout: Callable[[str | None], bool],
) -> None:
    """ValueError unless a database was made for this holdout."""
    if not same_holdout(description["holdout"]):
        raise ValueError(f"{name} was made for another holdout, or for none by name")


def same_json(value: Any, other: Any) -> bool:
    """Whether both are written alike: 1, 1.0 and true are not."""
    import json

    return json.dumps(value, sort_keys=True) == json.dumps(other, sort_keys=True)
