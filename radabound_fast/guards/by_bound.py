"""The guard that halts by a bound of this name."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from radabound_fast._checks import check_choice
from radabound_fast.bounds import BOUNDS, PAPER_BOUNDS
from radabound_fast.guards.fixed_sequence import FixedSequence, SignedSequence
from radabound_fast.guards.radabound import RadaBound
from radabound_fast.guards.signed import SignedGuard

if TYPE_CHECKING:
    from radabound_fast.store import Path


def guard_class(bound: str) -> type[RadaBound | SignedSequence]:
    """The class of guards that halt by this bound, a key of ``bounds.BOUNDS``."""
    check_choice(BOUNDS, bound=bound)
    return RadaBound if bound in PAPER_BOUNDS else SignedSequence


def guard_by_bound(bound: str, judged: Any, **parameters: Any) -> SignedGuard:
    """Make the guard that halts by a bound, a key of ``bounds.BOUNDS``.

    "fixed-sequence" makes a `FixedSequence`, the paper's bounds a `RadaBound`.
    """
    kind = guard_class(bound)
    if kind is RadaBound:
        return RadaBound(judged, bound=bound, **parameters)
    return SignedSequence(judged, **parameters)


def open_by_bound(bound: str, path: Path, judged: Any, **parameters: Any) -> SignedGuard:
    """Open the guard of a database that halts by a bound; see `RadaBound.open`."""
    if guard_class(bound) is RadaBound:
        return RadaBound.open(path, judged, bound=bound, **parameters)
    guard = FixedSequence.open(path, judged, **parameters)
    if not isinstance(guard, SignedSequence):
        guard.close()
        raise ValueError(f"{os.fsdecode(path)} holds a guard without sign vectors")
    return guard
