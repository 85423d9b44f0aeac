"""`open` of every guard: a database is made, or compared with what is given and taken up."""

from __future__ import annotations

import os
from inspect import Parameter, signature
from typing import TYPE_CHECKING, Any

from radabound_fast.guards.release import release_from
from radabound_fast.holdout import Holdout, Losses, as_judged

if TYPE_CHECKING:
    from radabound_fast.store import Durability, Path

# an argument of `open` that was left out: as in the database, or as the constructor's default
AS_STORED: Any = type("AsStored", (), {"__repr__": lambda _: "as stored"})()

# parts of a description that guards are not compared by: results do not depend on them
_NOT_COMPARED = ("kind", "parameters", "secret", "signs")
_WEIGHED = "metric, its options, classes, weights and groups must be those"
# parts that are secret, or too long to be shown
_NOT_SHOWN = {"metric": _WEIGHED, "weighting": _WEIGHED, "row_ids": "row_ids must be those"} | {
    name: f"{name} must be that" for name in ("seed", "rows", "baseline", "slices")
}


def open_guard(
    cls: Any,
    path: Path,
    judged: Any,
    holdout_id: str | None,
    durability: Durability,
    **arguments: Any,
) -> Any:
    """Open the guard in a database, made now if there is none: what each guard's `open` does.

    A guard has a `_description`, what never changes of it as JSON: its kind, parameters, and what
    it judges.  `_of_file` makes the guard of a database, if it is the one that is opened.
    """
    from radabound_fast import store  # which guards in memory do without

    opening = Opening(cls, path, judged, holdout_id, arguments)
    guard: Any = None
    new: Any = None
    if opening.can_make and not os.path.exists(path):
        guard = cls(opening.apart(), **opening.arguments)
        new = guard._description() | {"holdout": opening.identity(os.urandom(16).hex())}
    record: Any
    if cls._record_kind == "Ledger":
        begins = None if guard is None else (new, guard._shared.progress())
        record = store.open_ledger(path, durability, begins)
    else:
        record = store.open_record(getattr(store, cls._record_kind), path, durability, new)
    try:
        opening.check_kind(cls.kind, record.description)
        if guard is None or not same_json(new, record.description):  # or another was faster
            guard = cls._of_file(record.description, opening)
        guard._keep_in(record)
    except BaseException:
        record.close()
        raise
    guard._holdout = guard._holdout.apart() if opening.holdout is None else opening.holdout
    guard._holdout.note_guard(record.path)
    return guard


def check_same(name: str, mine: dict[str, Any], stored: dict[str, Any]) -> None:
    """ValueError unless a guard's description is that with which its database was made."""
    from radabound_fast.spaces.space import same_description  # which loads much

    theirs = stored | stored["parameters"]
    for part, value in (mine["parameters"] | mine).items():
        same = same_description if part == "space" else same_json
        if part in _NOT_COMPARED or same(value, theirs.get(part)):
            continue
        if part in _NOT_SHOWN:
            raise ValueError(f"{_NOT_SHOWN[part]} with which {name} was made")
        wanted = theirs.get(part)
        if part == "release":
            wanted, value = release_from(wanted), release_from(value)
        raise ValueError(
            f"{part} must be {wanted!r:.200}, with which {name} was made, got {value!r:.200}"
        )


def same_json(value: Any, other: Any) -> bool:
    """Whether both are written alike: 1, 1.0 and true are not."""
    import json  # which few guards need

    return json.dumps(value, sort_keys=True) == json.dumps(other, sort_keys=True)


class Opening:
    """The arguments of `open`: what is judged, how the database knows it again, and parameters.

    `holdout` is None for losses, as many a row as the file says; `holdout_id` names one without
    labels.  `arguments` are those of the constructor.  Where none that it needs is among them, not
    `has_needed`, they are those of the database; so is whatever was `AS_STORED`.
    """

    def __init__(
        self, cls: Any, path: Path, judged: Any, holdout_id: str | None, arguments: dict[str, Any]
    ) -> None:
        self.name = os.fsdecode(path)
        takes = signature(cls.__init__).parameters
        needed = [name for name in arguments if takes[name].default is Parameter.empty]
        self.arguments = {name: one for name, one in arguments.items() if one is not AS_STORED}
        self.has_needed = any(arguments[name] is not None for name in needed)
        self.can_make = self.has_needed if needed else judged is not None
        self.holdout = None if judged is None else as_judged(judged)
        self.has_named_metric = isinstance(judged, (Holdout, Losses))
        self._labels = None if self.holdout is None else self.holdout.labels
        self._holdout_id = holdout_id
        if self._labels is not None and holdout_id is not None:
            raise TypeError("holdout_id must be left out beside labels, which tell whose it is")

    def apart(self) -> Holdout | Losses:
        """What is judged, for a guard that is not yet known to be a new one."""
        if self.holdout is None:
            raise TypeError("judged must be given with parameters of a new guard")
        return self.holdout.apart()

    def identity(self, salt: str) -> str | None:
        """What a database stores of the holdout: a salted hash of its labels, or its name."""
        return self._holdout_id if self._labels is None else self._labels.fingerprint(salt)

    def check_kind(self, kind: str, description: dict[str, Any]) -> None:
        """ValueError unless the database was made for such a guard on this holdout."""
        if description["kind"] != kind:
            raise ValueError(
                f"{self.name} must hold a {kind}, it holds a {description['kind']:.50}"
            )
        stored = description["holdout"]
        if self.identity((stored or "").partition("$")[0]) not in (None, stored):
            raise ValueError(f"{self.name} was made for another holdout, or for none by name")

    def as_stored(self, metric: dict[str, Any] | None, n_samples: int) -> Holdout | Losses:
        """What a guard of a database judges; labels without a metric have the stored one."""
        if metric is not None and isinstance(self.holdout, Holdout) and not self.has_named_metric:
            self.holdout = self.holdout.with_metric(metric["name"], metric["options"])
        return Losses(n_samples) if self.holdout is None else self.holdout.apart()
