"""Ray Tune: a ``param_space`` as a space that is declared beforehand.

Ray is not imported: its domains are known by what they have.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from radabound_fast.spaces import Grid, PointSample, Steps
from radabound_fast.spaces.tokens import as_int


def space_of(param_space: Mapping[str, Any]) -> Grid:
    """The space of a ``param_space`` of finitely many values; a key is a trial's `flat` ``config``.

    Parameters
    ----------
    param_space : mapping
        Names to ``{"grid_search": [...]}``, ``tune.grid_search``, ``tune.choice``,
        ``tune.randint``, ``tune.lograndint``, the quantized ones (``tune.quniform``,
        ``tune.qrandint``, ...), constants, or mappings of them.

    Raises
    ------
    TypeError
        No mapping; a value that only code can make (``tune.sample_from``, a function).
    ValueError
        A domain is continuous or has no ends: see `points_of`, or write the line in the message.

    Examples
    --------
    >>> space = space_of({"lr": {"grid_search": [0.1, 0.01]}, "model": {"depth": 3}})
    >>> space.size, flat({"lr": 0.1, "model": {"depth": 3}}) in space
    (2, True)
    """
    _check_mapping(param_space)
    return Grid({name: _values_of(name, domain) for name, domain in flat(param_space).items()})


def flat(config: Mapping[str, Any]) -> dict[str, Any]:
    """The nested mappings of a `config` written as one, names joined by "/" as Ray does.

    Examples
    --------
    >>> flat({"lr": 0.1, "model": {"depth": 3, "loss": "log"}})
    {'lr': 0.1, 'model/depth': 3, 'model/loss': 'log'}
    """
    joined: dict[str, Any] = {}
    for name, value in config.items():
        if isinstance(value, Mapping) and "grid_search" not in value:
            joined |= {f"{name}/{inner}": one for inner, one in flat(value).items()}
        else:
            joined[name] = value
    return joined


def points_of(param_space: Mapping[str, Any], n: int, seed: int | None = None) -> PointSample:
    """Points of a ``param_space``, drawn beforehand; its domains may be continuous.

    ``points_of(...).nearest(config)`` is the point to train with; mappings stay nested.

    Parameters
    ----------
    param_space : mapping
        As for `space_of`, with any domain; the domains draw, and chance from a ``grid_search``.
    n, seed
        As for `spaces.PointSample`.

    Raises
    ------
    TypeError, ValueError
        As in `space_of` and `spaces.PointSample`.

    Examples
    --------
    >>> space = points_of({"lr": {"grid_search": [0.1, 0.01]}, "model": {"depth": 3}}, 5, seed=0)
    >>> space.nearest({"lr": 0.09, "model": {"depth": 3}})
    {'lr': 0.1, 'model': {'depth': 3}}
    """
    _check_mapping(param_space)
    return PointSample(lambda rng: _drawn(param_space, rng), n, seed)


def _drawn(param_space: Mapping[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    return {name: _value_of(name, domain, rng) for name, domain in param_space.items()}


def _value_of(name: str, domain: Any, rng: np.random.Generator) -> Any:
    if isinstance(domain, Mapping) and "grid_search" not in domain:
        return _drawn(domain, rng)
    if isinstance(domain, Mapping) or hasattr(domain, "categories"):
        values = _values_of(name, domain)
        return values[rng.integers(len(values))]
    _check_domain(name, domain)
    return domain.sample(random_state=rng) if hasattr(domain, "sampler") else domain


def _check_mapping(param_space: Any) -> None:
    if not isinstance(param_space, Mapping):
        raise TypeError(f"param_space must be a mapping of names to domains, got {param_space!r}")


def _check_domain(name: str, domain: Any) -> None:
    """TypeError for what only code can make, as ``tune.sample_from`` does."""
    if (hasattr(domain, "sampler") or callable(domain)) and not hasattr(domain, "lower"):
        raise TypeError(f"{name} must be a domain of values or numbers, got {domain!r}")


def _values_of(name: str, domain: Any) -> Any:
    if isinstance(domain, Mapping):
        return domain["grid_search"]
    if hasattr(domain, "categories"):
        return domain.categories
    if hasattr(domain, "lower") and hasattr(domain, "upper"):
        return _between(name, domain)
    _check_domain(name, domain)
    return [domain]


def _between(name: str, domain: Any) -> Any:
    """Numbers of a domain with a lower and an upper end."""
    low, high, q = domain.lower, domain.upper, getattr(domain.sampler, "q", None)
    whole = type(domain).__name__ == "Integer"
    if math.isfinite(low) and math.isfinite(high) and (whole or q is not None):
        if q is None:
            return range(as_int(low) or 0, as_int(high) or 0)  # without the upper end
        # the multiples of q up to the upper end: of qrandint(1, 10) Ray draws 1 to 9, FLAML 10 too
        first, last = -(-low // q), high // q
        return range(int(first) * q, int(last) * q + 1, q) if whole else Steps(low, high, q)
    inner = getattr(domain.sampler, "sampler", domain.sampler)
    words = f"{type(domain).__name__}({low}, {high}) without a step"
    if "Normal" in str(inner):  # five of ten thousand draws are not between these ends
        words = f"a normal distribution of mean {inner.mean:g} and deviation {inner.sd:g}"
        step = 0.05 * inner.sd if q is None else q
        ends = (step * round((inner.mean + side * 3.5 * inner.sd) / step) for side in (-1, 1))
        finite = "tune.quniform({:g}, {:g}, {:g})".format(*ends, step)
    elif "Log" in str(inner):
        finite = f"tune.choice(np.geomspace({low:g}, {high:g}, 101).tolist())"
    else:
        finite = f"tune.quniform({low:g}, {high:g}, {(high - low) / 100:g})"
    raise ValueError(
        f"{name} must have finitely many values, got {words}: draw points beforehand, "
        f'points_of(param_space, 10_000), or write "{name}": {finite}'
    )
