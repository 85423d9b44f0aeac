"""Guards that count their answers: one owner, or one database that processes share."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, ClassVar, Self

from radabound_fast._checks import check_seed
from radabound_fast._ownership import Owned
from radabound_fast.guards.base import Guard
from radabound_fast.guards.log import hears_queries, note_halt
from radabound_fast.guards.opening import Judged, same_json
from radabound_fast.guards.release import release_from
from radabound_fast.holdout import Holdout, Losses, as_judged

if TYPE_CHECKING:
    from radabound_fast._kernels.support import SharedState
    from radabound_fast.store import Description, Durability, Ledger, Path
    from radabound_fast.store.served import ServedDatabase

# parameters of a database that are what is judged, and no arguments of the constructor
_OF_JUDGED = ("n_samples", "metric", "weighting")


class HaltingGuard(Guard, Owned):
    """Base class of guards whose queries change them: JSON parameters, and integers that change.

    A subclass calls ``super().__init__(judged)`` first.
    """

    _instead: ClassVar[str] = (
        "send predictions or packed losses (pack_losses) to the process that owns it, or share it "
        "as a database (open)"
    )

    def __init__(self, judged: Any) -> None:
        super().__init__()
        self._holdout = as_judged(judged)
        self._ledger: Ledger | None = None  # the database it was opened from
        self._logs = hears_queries()
        self._halt_is_known = False

    def _check_metric(self) -> None:
        """ValueError for a metric other than the error rate, for guards that answer no other."""
        if isinstance(self._holdout, Holdout) and self._holdout.metric != "error":
            raise ValueError(
                f"metric must be 'error' for a {self.kind}, which answers error rates and mean "
                f"losses, got {self._holdout.metric!r}: DeclaredSearch answers every metric, and "
                "in an order fixed beforehand FixedSequence does"
            )

    def _note_halt(self, n_answered: int) -> None:
        """Log it once, in a process that did not open it halted."""
        if not self._halt_is_known:
            self._halt_is_known = True
            note_halt(self.kind, n_answered, self.n_samples)

    @property
    def _shared(self) -> SharedState:
        """What queries change."""
        raise NotImplementedError

    def _parameters(self) -> dict[str, Any]:
        """JSON values by name: the constructor's arguments, and what describes the holdout."""
        raise NotImplementedError

    def _check_open(self) -> None:
        """RuntimeError in a forked child, and once it was closed."""
        self._check_owner()
        if self._shared.retired:
            raise RuntimeError(f"this {self.kind} is closed: open its database again")

    def _description(self) -> Description:
        """What never changes."""
        return {"kind": self.kind, "parameters": self._parameters()}

    @property
    def parameters(self) -> dict[str, Any]:
        """The guard's parameters that may be shown to anybody: no seed, no counts of labels."""
        hidden = ("seed", "signs", "weighting", "metric")
        return {name: value for name, value in self._parameters().items() if name not in hidden}

    @property
    def database(self) -> Ledger | None:
        """The database that the guard was opened from, if it was."""
        return self._ledger

    # ---- a database that processes share ---------------------------------------------------

    @classmethod
    def _open(
        cls,
        path: Path,
        judged: Any,
        needed: dict[str, Any],
        others: dict[str, Any],
        durability: Durability,
        holdout_id: str | None,
    ) -> Self:
        """`open`; where nothing that a new guard needs is given, all is as in the file."""
        from radabound_fast.store import open_ledger

        name, new, made = os.fsdecode(path), None, None
        whose = Judged(judged, holdout_id)
        is_given = any(value is not None for value in needed.values())
        parameters = needed | others if is_given else None
        if parameters is not None and not os.path.exists(path):
            made = cls(whose.apart(), **parameters)
            state = made._description() | {"holdout": whose.new_identity()}
            new = state, made._shared.progress()
        ledger: Ledger | None = None
        try:
            ledger = open_ledger(path, durability, new)
            whose.check_made_for(name, ledger.description["holdout"])
            guard = cls._stored(name, ledger, whose, parameters, made)
            guard._ledger = ledger
            guard._shared.keep_in(ledger)
        except BaseException:
            if ledger is not None:
                ledger.close()
            raise
        if whose.holdout is not None:
            guard._holdout = whose.holdout
        guard._holdout.note_guard(ledger.path)
        return guard

    @classmethod
    def _stored(
        cls,
        name: str,
        ledger: Ledger,
        whose: Judged,
        wanted: dict[str, Any] | None,
        made: Self | None,
    ) -> Self:
        """The guard in a database, if its parameters are those that are wanted."""
        kind, stored = ledger.description["kind"], ledger.description["parameters"]
        if kind != cls.kind:
            raise ValueError(f"{name} must hold a {cls.kind}, it holds a {kind:.50}")
        progress = ledger.stored()
        if wanted is None:
            guard = cls._of_file(name, stored, whose)
        elif made is not None and same_json(made._parameters(), stored):
            guard = made
        else:
            if wanted.get("seed") is None and stored.get("seed") is not None:
                wanted = wanted | {"seed": check_seed(stored["seed"])}
            guard = cls(whose.apart(), **wanted)
        guard._check_is(name, stored)
        guard._shared.resume(progress)
        guard._halt_is_known = guard._shared.has_halted
        return guard

    @classmethod
    def _of_file(cls, name: str, stored: dict[str, Any], whose: Judged) -> Self:
        """A guard with the parameters of a file."""
        arguments = {key: value for key, value in stored.items() if key not in _OF_JUDGED}
        if "release" in arguments:
            arguments["release"] = release_from(arguments["release"])
        whose.take_stored_metric(stored.get("metric"))
        if whose.holdout is None:
            if stored.get("metric") is not None:
                raise ValueError(f"judged must be given: the labels that {name} was made for")
            if stored.get("weighting") is not None:
                raise ValueError(
                    f"judged must be given, as {name} has weights or groups: Losses(m, "
                    "sample_weight=, groups=)"
                )
            whose.holdout = Losses(stored["n_samples"])
        if whose.holdout.n_samples != stored.get("n_samples"):
            raise ValueError(_unlike("n_samples", stored, name, whose.holdout.n_samples))
        return cls(whose.apart(), **arguments)

    def _check_is(self, name: str, stored: dict[str, Any]) -> None:
        """ValueError unless these are the parameters that the database was made with."""
        for parameter, value in self._parameters().items():
            if parameter == "signs" or same_json(value, stored.get(parameter)):
                continue
            if parameter == "weighting":
                raise ValueError(
                    f"sample_weight and groups must be those with which {name} was made"
                )
            if parameter == "metric":
                raise ValueError(f"metric and its options must be those with which {name} was made")
            if parameter == "seed":  # the stored one must not be shown
                raise ValueError(f"seed must be the one that {name} holds, got {value}")
            raise ValueError(_unlike(parameter, stored, name, value))

    def share_transactions(self) -> ServedDatabase:
        """Have the calls of an opened guard committed together from now on, with a log of them."""
        from radabound_fast.store.served import ServedDatabase

        return ServedDatabase(self._opened())

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
        self._shared.retire()
        ledger.close()

    def __enter__(self) -> Self:
        self._opened()
        return self

    def _opened(self) -> Ledger:
        if self._ledger is None:
            raise RuntimeError("this guard is in no database: share it as a database (open)")
        return self._ledger


def _unlike(parameter: str, stored: dict[str, Any], name: str, value: Any) -> str:
    return (
        f"{parameter} must be {stored.get(parameter)!r:.200}, with which {name} was made, "
        f"got {value!r}"
    )
