"""What every adapter asks of the holdout before anything is fitted."""

from __future__ import annotations

from typing import Any

from radabound_fast._exhausted import HoldoutExhausted
from radabound_fast.holdout import Holdout


def check_holdout(**named: Any) -> Holdout:
    """A `Holdout` that still answers.

    Raises TypeError if it is no `Holdout`, HoldoutExhausted if it has halted.
    """
    ((name, holdout),) = named.items()
    if not isinstance(holdout, Holdout):
        raise TypeError(
            f"{name} must be a Holdout, which holds the labels, got {type(holdout).__name__}"
        )
    if holdout.halted:
        raise HoldoutExhausted(
            f"{name} had halted before: nothing is fitted",
            n_queries=holdout.n_queries,
            complexity=getattr(holdout, "complexity", None),
            threshold=getattr(holdout, "threshold", None),
        )
    return holdout
