"""A space of a few points, drawn beforehand from one with more keys, or without end."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from radabound_fast._checks import check_count, check_seed
from radabound_fast.spaces.choice import Choice
from radabound_fast.spaces.grid import Grid
from radabound_fast.spaces.messages import shown_key
from radabound_fast.spaces.space import INT64
from radabound_fast.spaces.tokens import token_of
from radabound_fast.spaces.values import check_values, hint_for, len_of


class PointSample(Choice):
    """Points drawn beforehand, of equal weight: ln n nats each, however large the space is.

    An optimiser goes through the whole space; a model is trained with the point that is `nearest`
    to what it suggests, and that is its key.  So parameters may be continuous.

    Parameters
    ----------
    space : mapping, sequence of mappings, Grid, Choice, or callable
        Where points are drawn from.  A mapping has for every name a sequence of values, or a frozen
        distribution of `scipy.stats`, as in scikit-learn's `RandomizedSearchCV`; of several
        mappings each is as likely.  A callable gets a `numpy.random.Generator` and returns a point:
        a mapping of names to values, which may be nested and have other names in other points.  For
        Optuna, ConfigSpace and Ray see ``points_of`` in `radabound_fast.integrations`.
    n : int
        The number of points.  A point that is drawn twice is there once.
    seed : int, optional
        With the same seed the same points are drawn.  None: others each time.

    Raises
    ------
    TypeError, ValueError
        A space of none of these kinds; values that `Choice` rejects; a seed or an `n` out of range.

    Examples
    --------
    >>> from scipy.stats import loguniform
    >>> parameters = {"C": loguniform(1e-4, 1e4), "kernel": ["rbf", "linear"]}
    >>> space = PointSample(parameters, 10_000, seed=0)
    >>> point = space.nearest({"C": 1.0, "kernel": "rbf"})
    >>> point["kernel"], 0.99 < point["C"] < 1.01, round(space.nats(point), 2)
    ('rbf', True, 9.21)
    """

    def __init__(self, space: Any, n: int, seed: int | None = None) -> None:
        rng, n = np.random.default_rng(check_seed(seed)), check_count(n=n)
        points = {token_of(point, "points"): point for point in _drawn(space, n, rng)}
        super().__init__(list(points.values()))

    def __repr__(self) -> str:
        n_more = len(self.values) - 1
        more = f", and {n_more:,} more" if n_more else ""
        return f"PointSample({shown_key(self.values[0])}{more})"


def _drawn(space: Any, n: int, rng: np.random.Generator) -> Iterator[Any]:
    """So many points of a space, or all of it."""
    if isinstance(space, (Grid, Choice)):
        return map(space.__getitem__, _places(space.size, n, rng))
    if callable(space) and not hint_for(space):
        return (space(rng) for _ in range(n))
    mappings = [space] if isinstance(space, Mapping) else space
    if (
        not isinstance(mappings, (list, tuple))
        or not mappings
        or not all(isinstance(part, Mapping) and part for part in mappings)
    ):
        raise TypeError(
            "space must be a mapping of names to values or distributions, or several, a Grid, a "
            f"Choice, or a callable, got {space!r}{hint_for(space, 'points_of')}"
        )
    which = rng.integers(len(mappings), size=n)
    points = [
        _points_of(part, int(k), rng)
        for part, k in zip(mappings, np.bincount(which, minlength=len(mappings)), strict=True)
    ]
    return (next(points[part]) for part in which)


def _places(size: int, n: int, rng: np.random.Generator) -> Iterable[int]:
    """So many different places of a space, or all of it."""
    if n >= size:
        return range(size)
    if size < INT64:
        places: list[int] = rng.choice(size, n, replace=False).tolist()
        return places
    n_bytes = size.bit_length() // 8 + 9  # 64 bits more than needed, so that all are as likely
    return (int.from_bytes(rng.bytes(n_bytes)) % size for _ in range(n))


def _points_of(domains: Mapping[str, Any], n: int, rng: np.random.Generator) -> Iterator[Any]:
    columns = [_values_of(name, domain, n, rng) for name, domain in domains.items()]
    return (dict(zip(domains, values, strict=True)) for values in zip(*columns, strict=True))


def _values_of(name: str, domain: Any, n: int, rng: np.random.Generator) -> list[Any]:
    if hasattr(domain, "rvs"):
        return list(np.asarray(domain.rvs(size=n, random_state=rng)).tolist())
    hint = hint_for(domain, "points_of")
    if hint:
        raise TypeError(f"{name} must be values or a distribution of scipy, got {domain!r}{hint}")
    values = check_values(domain, name)
    return [values[place] for place in rng.integers(len_of(values), size=n).tolist()]
