"""Keys that are collections: some members of a list, or an ensemble of keys of a space."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from radabound_fast._checks import check_count, check_integer
from radabound_fast.spaces.choice import Choice
from radabound_fast.spaces.messages import quoted
from radabound_fast.spaces.space import Coded, Space, log_comb
from radabound_fast.spaces.values import described, shown


class Subset(Space):
    """Some members of a list, in any order; see `subset_of`."""

    def __init__(self, members: Any, size: int | None = None) -> None:
        self._members = Choice(members, name="a member of key")
        self._subset_size = None if size is None else check_integer(size=size)
        n = self._members.size
        if self._subset_size is not None and not 0 <= self._subset_size <= n:
            raise ValueError(f"size must be in [0, {n}], the number of members, got {size}")

    @property
    def size(self) -> int:
        n, s = self._members.size, self._subset_size
        return 2**n if s is None else math.comb(n, s)

    def find(self, key: Any) -> Coded:
        places = sorted(self._members.place(one) for one in _listed(key))
        if len(set(places)) < len(places):
            raise ValueError(f"key must have different members, got {quoted(key)}")
        n, s = self._members.size, len(places)
        if self._subset_size is None:
            return tuple(places), math.log(n + 1) + log_comb(n, s)
        if s != self._subset_size:
            raise ValueError(f"key must have {self._subset_size} members, got {s}")
        return tuple(places), log_comb(n, s)

    def key_of(self, code: Any) -> tuple[Any, ...]:
        return tuple(map(self._members.key_of, code))

    def describe(self) -> dict[str, Any]:
        members = described(self._members.values)
        return {"kind": "Subset", "members": members, "size": self._subset_size}

    def __repr__(self) -> str:
        return f"subset_of({shown(self._members.values)}, {self._subset_size})"


class Ensemble(Space):
    """Some keys of a space in any order, with repeats; see `ensemble_of`."""

    def __init__(self, space: Any, n_picks: int | None = None) -> None:
        from radabound_fast.spaces.reading import as_space  # which knows every kind of space

        self._space = as_space(space)
        self._n_picks = None if n_picks is None else check_count(n_picks=n_picks)

    @property
    def size(self) -> int | None:
        n, s = self._space.size, self._n_picks
        return None if n is None or s is None else math.comb(n + s - 1, s)

    def find(self, key: Any) -> Coded:
        picks = [self._space.find(pick) for pick in _listed(key)]
        s = len(picks)
        if s == 0 or self._n_picks not in (None, s):
            wanted = self._n_picks or "at least 1"
            raise ValueError(f"key must have {wanted} picks, got {s}")
        repeats = Counter(code for code, _ in picks)
        orders = math.lgamma(s + 1) - sum(math.lgamma(n + 1) for n in repeats.values())
        nats = sum(nats for _, nats in picks) - orders
        if self._n_picks is None:
            nats += math.log(s) + math.log(s + 1)
        return tuple(sorted(repeats.items(), key=repr)), max(nats, 0.0)

    def key_of(self, code: Any) -> tuple[Any, ...]:
        return tuple(self._space.key_of(one) for one, n in code for _ in range(n))

    def _parts_of(self) -> Sequence[Space]:
        return (self._space,)

    def describe(self) -> dict[str, Any]:
        return {"kind": "Ensemble", "space": self._space.describe(), "n_picks": self._n_picks}

    def __repr__(self) -> str:
        return f"ensemble_of({self._space!r}, {self._n_picks})"


def subset_of(members: Any, size: int | None = None) -> Subset:
    """The space of subsets that were chosen by scores: features, or models of a library.

    Parameters
    ----------
    members : int or sequence
        The n members, as `Choice` takes them.
    size : int, optional
        Number of members in a subset.  None: it was chosen by scores too, for ln(n + 1) nats more.

    Returns
    -------
    Subset
        Its keys are collections of different members in any order; ln C(n, size) nats.

    Examples
    --------
    >>> features = subset_of(["month", "day", "hour", "carrier"], 2)
    >>> round(features.nats({"hour", "day"}), 4), round(features.nats(["day", "hour"]), 4)
    (1.7918, 1.7918)
    """
    return Subset(members, size)


def ensemble_of(space: Any, n_picks: int | None = None) -> Ensemble:
    """The space of ensembles of keys of a space, picked one after another by their scores.

    Parameters
    ----------
    space : space
        Where each pick comes from, as `as_space` takes it.
    n_picks : int, optional
        s, the number of picks, repeats counted.  None: it was chosen by scores too, for
        ln s(s+1) nats more.

    Returns
    -------
    Ensemble
        Its keys are collections of s keys, in any order.

    Notes
    -----
    For an ensemble that is determined by its members and how often each occurs, such as a mean of
    their votes [1]_.  The picks in order have the product of their weights; there are
    ``s! / (c_1! c_2! ...)`` orders of members that occur c_1, c_2, ... times, all the same
    ensemble.  So their sum is a weight, by the multinomial theorem: never more than s ln N nats.

    References
    ----------
    .. [1] Caruana, Niculescu-Mizil, Crew, Ksikes (2004). Ensemble selection from libraries of
       models. ICML.

    Examples
    --------
    >>> ensemble = ensemble_of(1000, 5)
    >>> round(ensemble.nats([3, 3, 17, 256, 999]), 2), round(5 * math.log(1000), 2)
    (30.44, 34.54)
    """
    return Ensemble(space, n_picks)


def _listed(key: Any) -> list[Any]:
    if isinstance(key, (str, bytes, Mapping)) or not np.iterable(key):
        raise TypeError(f"key must be a collection, got {quoted(key)}")
    return list(key)
