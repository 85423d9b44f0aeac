"""The bounds a guard may halt by: one row each, and nothing else knows them by name."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from .bound import Bound
from .fixed_sequence import FixedSequence
from .paper import bernstein_excess, bernstein_log_tail, mclt_excess, mclt_log_tail
from .split import bernstein_split_excess, bernstein_split_log_tail
from .theorem7 import PaperBound

BOUNDS: Mapping[str, Bound] = MappingProxyType(
    {
        row.name: row
        for row in (
            PaperBound(
                "bernstein",
                "Theorem 4",
                bernstein_log_tail,
                bernstein_excess,
                {"plain": 23, "half-range": 41},
            ),
            PaperBound(
                "bernstein-split",
                "Theorem 3",
                bernstein_split_log_tail,
                bernstein_split_excess,
                {"plain": 87, "half-range": 109},
            ),
            PaperBound("mclt", "Theorem 6", mclt_log_tail, mclt_excess, {}),
            FixedSequence(),
        )
    }
)

# the paper's, from the one that halts first to the one that halts last
PAPER_BOUNDS = ("bernstein-split", "bernstein", "mclt")
