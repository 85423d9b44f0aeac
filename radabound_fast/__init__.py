"""Says for every model whether its score on a reused holdout can still be trusted.

`Holdout` keeps the labels and takes predictions; `RadaBound` takes losses.  Both answer a mean
while they can vouch for it and raise `HoldoutExhausted` when the holdout is spent.
"""

from importlib.metadata import version as _version

from radabound_fast import bounds
from radabound_fast._exhausted import HoldoutExhausted
from radabound_fast._kernel import Answer
from radabound_fast.guard import Answers, RadaBound
from radabound_fast.holdout import Holdout
from radabound_fast.packing import pack_losses
from radabound_fast.rademacher import RademacherAverage
from radabound_fast.signs import SignMatrix

__version__ = _version("radabound_fast")

__all__ = [
    "Answer",
    "Answers",
    "Holdout",
    "HoldoutExhausted",
    "RadaBound",
    "RademacherAverage",
    "SignMatrix",
    "bounds",
    "pack_losses",
]
