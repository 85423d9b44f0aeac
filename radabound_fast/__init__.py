"""Says for every model whether its score on a reused holdout can still be trusted.

`Holdout` keeps the labels and takes predictions; `RadaBound` takes losses.  Both answer a mean
while they can vouch for it and raise `HoldoutExhausted` when the holdout is spent.
"""

from typing import Any

from radabound_fast._lazy import lazily

# __init__.pyi tells type checkers the same
_HOMES = {
    "Answer": "_kernel",
    "Answers": "guards.answers",
    "DeclaredSearch": "guards.declared_search",
    "FixedSequence": "guards.fixed_sequence",
    "GuessAndCheck": "guards.guess_and_check",
    "Holdout": "holdout",
    "HoldoutExhausted": "guards.exhausted",
    "Ladder": "guards.ladder",
    "Plan": "planning",
    "RadaBound": "guards.radabound",
    "RadaBoundAnswer": "_kernel",
    "RadaBoundAnswers": "guards.answers",
    "RademacherAverage": "rows.rademacher",
    "SignMatrix": "rows.signs",
    "bounds": None,
    "guards": None,
    "pack_losses": "rows.packing",
    "plan": "planning",
    "spaces": None,
}
_find, __dir__ = lazily(__name__, _HOMES)

__all__ = list(_HOMES)


def __getattr__(name: str) -> Any:
    if name == "__version__":  # the metadata is the one place that holds it, and slow to read
        from importlib.metadata import version

        return version("radabound_fast")
    return _find(name)
