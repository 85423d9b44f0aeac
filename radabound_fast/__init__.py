"""Says how far every score on a reused holdout set can be trusted.

A guard is made on what it judges: labels, a `Holdout` with a metric, or a number of rows whose
losses it is asked about.  `DeclaredSearch` gives an interval for every score of a search over a
space that was declared beforehand; the other guards answer until the holdout is spent, and then
raise `HoldoutExhausted`.
"""

from importlib import import_module
from typing import Any

# the module of each public name, imported when the name is first used; __init__.pyi tells type
# checkers the same.  None: the name is a module.
_HOMES = {
    "Answer": "_kernels.guard",
    "Answers": "guards.answers",
    "ConfirmedSearch": "guards.confirmed.search",
    "DeclaredSearch": "guards.declared.search",
    "FixedSequence": "guards.fixed_sequence",
    "Gate": "guards.gate.gate",
    "GatePlan": "planning",
    "GuessAndCheck": "guards.guess_and_check",
    "Holdout": "holdout",
    "HoldoutExhausted": "guards.answers",
    "Ladder": "guards.ladder",
    "Losses": "holdout",
    "ModelPool": "pool.model_pool",
    "PackedLosses": "_kernels.rows",
    "Plan": "planning",
    "RadaBound": "guards.radabound",
    "RademacherAverage": "rows.signs",
    "Rounded": "rows.rounded",
    "SearchPlan": "planning",
    "SignMatrix": "rows.signs",
    "bounds": None,
    "metrics": None,
    "pack_losses": "rows.packing",
    "plan": "planning",
    "spaces": None,
}

__all__ = list(_HOMES)


def __getattr__(name: str) -> Any:
    if name == "__version__":  # the metadata is the one place that holds it, and slow to read
        from importlib.metadata import version

        return version("radabound_fast")
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = _HOMES[name]
    module = import_module(f"{__name__}.{home or name}")
    globals()[name] = getattr(module, name) if home else module
    return globals()[name]


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
