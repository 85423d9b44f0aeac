"""Guards that count their answers: one owner, or one database that processes share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Self

from numpy.typing import NDArray

from radabound_fast._checks import check_seed
from radabound_fast._kernels.rows import PackedLosses, pack_rows
from radabound_fast._ownership import Owned
from radabound_fast.guards.base import Guard
from radabound_fast.guards.log import hears_queries, note_halt
from radabound_fast.guards.opening import Opening, check_same
from radabound_fast.guards.release import described, release_from
from radabound_fast.holdout import Holdout, as_judged
from radabound_fast.rows.packing import as_values, checked_words

if TYPE_CHECKING:
    from radabound_fast._kernels.support import SharedState
    from radabound_fast.store import Description, Ledger

# parameters of a database that are what is judged, and no arguments of the constructor
_OF_JUDGED = {"n_samples", "metric", "weighting"}


class HaltingGuard(Guard, Owned):
    """Base class of guards whose queries change them. A subclass sets `_shared`: their state."""

    _shared: SharedState
    _record_kind = "Ledger"
    _arguments: ClassVar[tuple[str, ...]]  # of the constructor, attributes of the same name
    _instead: ClassVar[str] = (
        "send predictions or packed losses (pack_losses) to the process that owns it, or share it "
        "as a database (open)"
    )

    def __init__(self, judged: Any) -> None:
        super().__init__()
        self._holdout = as_judged(judged)
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

    def _losses(self, y_pred: Any, ndim: int) -> tuple[NDArray[Any], bool]:
        """Losses of one row or several, and whether they are words of packed ones."""
        if isinstance(y_pred, PackedLosses):
            return checked_words(y_pred, self.n_samples, ndim), True
        if isinstance(self._holdout, Holdout):
            return pack_rows(*self._holdout.labels.match(y_pred, ndim=ndim)), True
        return as_values(y_pred, self.n_samples, ndim, "losses"), False

    def _note_halt(self, n_answered: int) -> None:
        """Log it once, in a process that did not open it halted."""
        if not self._halt_is_known:
            self._halt_is_known = True
            note_halt(self.kind, n_answered, self.n_samples)

    def _parameters(self) -> dict[str, Any]:
        """JSON values by name: the constructor's arguments, and what describes the holdout."""
        return {name: described(getattr(self, name)) for name in ("n_samples", *self._arguments)}

    @property
    def halted(self) -> bool:
        return self._shared.halted

    @property
    def _current(self) -> Any:
        """The state, after what other processes have committed to the database."""
        self._shared.refresh()
        return self._shared

    def _check_open(self) -> None:
        """RuntimeError in a forked child, and once it was closed."""
        self._check_owner()
        if self._shared.retired:
            raise RuntimeError(f"this {self.kind} is closed: open its database again")

    def _description(self) -> Description:
        return {"kind": self.kind, "parameters": self._parameters()}

    @property
    def parameters(self) -> dict[str, Any]:
        hidden = ("seed", "signs", "weighting", "metric")
        return {name: value for name, value in self._parameters().items() if name not in hidden}

    @classmethod
    def _of_file(cls, stored: Description, opening: Opening) -> Self:
        parameters = stored["parameters"]
        if opening.has_needed:
            arguments = dict(opening.arguments)
            if arguments.get("seed") is None and parameters.get("seed") is not None:
                arguments["seed"] = check_seed(parameters["seed"])
        else:
            own = parameters.keys() - _OF_JUDGED
            arguments = {name: release_from(parameters[name]) for name in own}
        if opening.holdout is None:
            if opening.has_needed:
                opening.apart()  # raises
            if parameters.get("metric") is not None:
                raise ValueError(
                    f"judged must be given: the labels that {opening.name} was made for"
                )
            if parameters.get("weighting") is not None:
                raise ValueError(
                    f"judged must be given, as {opening.name} has weights or groups: Losses(m, "
                    "sample_weight=, groups=)"
                )
        judged = opening.as_stored(parameters.get("metric"), parameters["n_samples"])
        guard = cls(judged, **arguments)
        check_same(opening.name, guard._description(), stored)
        return guard

    def _keep_in(self, record: Ledger) -> None:
        self._shared.resume(record.stored())
        self._halt_is_known = self._shared.has_halted
        self._record = record
        self._shared.keep_in(record)

    def close(self) -> None:
        """Let go of the database and answer nothing more; closing twice does nothing.

        RuntimeError: this guard is in no database, so that closing it would lose its count; or it
        is in the middle of a call on this very thread.
        """
        ledger = self._opened()
        self._check_owner()
        self._shared.retire()
        ledger.close()

    def __enter__(self) -> Self:
        self._opened()
        return self
