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
                name="bernstein",
                source="Theorem 4",
                proved=False,
                estimators=("plain", "half-range"),
                sides=(False, True),
                log_tail=bernstein_log_tail,
                excess=bernstein_excess,
                proved_up_to={"plain": 23, "half-range": 41},
            ),
            PaperBound(
                name="bernstein-split",
                source="Theorem 3",
                proved=False,
                estimators=("plain", "half-range"),
                sides=(False, True),
                log_tail=bernstein_split_log_tail,
                excess=bernstein_split_excess,
                proved_up_to={"plain": 87, "half-range": 109},
            ),
            PaperBound(
                name="mclt",
                source="Theorem 6",
                proved=False,
                estimators=("plain", "half-range"),
                sides=(False, True),
                log_tail=mclt_log_tail,
                excess=mclt_excess,
                proved_up_to={},
                asymptotic=True,
            ),
            FixedSequence(
                name="fixed-sequence",
                source="self-bounding and union bounds, docs/explanation/theory.md",
                proved=True,
                estimators=("half-range",),
                sides=(True,),
            ),
        )
    }
)

# the paper's, from the one that halts first to the one that halts last
PAPER_BOUNDS = ("bernstein-split", "bernstein", "mclt")
