"""The guard that halts by a bound of this name, a key of ``bounds.BOUNDS``."""

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


def guard_by_bound(bound: str, judged: Any, **parameters: Any) -> SignedGuard:
    """Make a `FixedSequence` for "fixed-sequence", a `RadaBound` for a bound of the paper."""
    if check_choice(BOUNDS, bound=bound) in PAPER_BOUNDS:
        most = parameters.pop("max_queries", None)
        if most is not None:
            raise ValueError(f"max_queries must be left out with bound={bound!r}, got {most}")
        return RadaBound(judged, bound=bound, **parameters)
    return SignedSequence(judged, **parameters)


def open_by_bound(bound: str, path: Path, judged: Any, **parameters: Any) -> SignedGuard:
    """Open the guard of a database that halts by a bound; see `RadaBound.open`."""
    if check_choice(BOUNDS, bound=bound) in PAPER_BOUNDS:
        return RadaBound.open(path, judged, bound=bound, **parameters)
    guard = FixedSequence.open(path, judged, **parameters)
    if not isinstance(guard, SignedSequence):
        guard.close()
        raise ValueError(f"{os.fsdecode(path)} holds a guard without sign vectors")
    return guard
