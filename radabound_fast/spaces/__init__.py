"""Spaces of keys, declared before a search begins; an answer of `DeclaredSearch` pays for its key.

A key identifies the model of a query: the configuration that it was trained with, and whatever
else about it was chosen by its scores.  A space gives every key a weight w, fixed beforehand, and
the weights sum to at most 1; an answer costs ``nats = ln(1 / w)``.

===========================  ==================================  =================================
space                        a key                               nats
===========================  ==================================  =================================
`Choice`                     one of n values                     ln n
`PointSample`                one of n points drawn beforehand    ln n
`Grid`                       a value for every name              sum of ln n over the names
`InOrder`                    1, 2, 3, ..., or an item of a list  ln k(k+1) for the k-th
`Product`, ``a * b``         one key of each space               the sum of theirs
`epoch_of`, `threshold_of`   what was chosen by the score        ln n
`subset_of`                  s of n members                      ln C(n, s)
`ensemble_of`                s keys, as a greedy ensemble picks  the sum of theirs, or less
`Improvements`               what a search was shown before      about ln t(t+1) + 6 an improvement
anything with ``nats(key)``  what it says                        what it says
===========================  ==================================  =================================
"""

from radabound_fast.spaces.choice import Choice, InOrder, epoch_of, threshold_of
from radabound_fast.spaces.collection import ensemble_of, subset_of
from radabound_fast.spaces.grid import Grid
from radabound_fast.spaces.improvements import Improvements
from radabound_fast.spaces.point_sample import PointSample
from radabound_fast.spaces.prior import Prior
from radabound_fast.spaces.reading import as_space
from radabound_fast.spaces.space import Product, Space
from radabound_fast.spaces.values import Steps

__all__ = [
    "Choice",
    "Grid",
    "Improvements",
    "InOrder",
    "PointSample",
    "Prior",
    "Product",
    "Space",
    "Steps",
    "as_space",
    "ensemble_of",
    "epoch_of",
    "subset_of",
    "threshold_of",
]


def __dir__() -> list[str]:
    return sorted(__all__)
