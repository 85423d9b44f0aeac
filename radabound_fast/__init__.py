"""Says for every model whether its score on a reused holdout can still be trusted.

`Holdout` keeps the labels and takes predictions; `RadaBound` takes losses.  Both answer a mean
while they can vouch for it and raise `HoldoutExhausted` when the holdout is spent.
"""

from typing import Any

from radabound_fast import bounds, mechanisms, spaces
from radabound_fast._answers import Answers, RadaBoundAnswers
from radabound_fast._exhausted import HoldoutExhausted
from radabound_fast._kernel import Answer, RadaBoundAnswer
from radabound_fast.guard import RadaBound
from radabound_fast.holdout import Holdout
from radabound_fast.packing import pack_losses
from radabound_fast.planning import Plan, plan
from radabound_fast.rademacher import RademacherAverage
from radabound_fast.signs import SignMatrix

__all__ = [
    "Answer",
    "Answers",
    "Holdout",
    "HoldoutExhausted",
    "Plan",
    "RadaBound",
    "RadaBoundAnswer",
    "RadaBoundAnswers",
    "RademacherAverage",
    "SignMatrix",
    "bounds",
    "mechanisms",
    "pack_losses",
    "plan",
    "spaces",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":  # the metadata is the one place that holds it, and slow to read
        from importlib.metadata import version

        return version("radabound_fast")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
