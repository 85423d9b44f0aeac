"""Ray Tune: a ``param_space`` as a space that is declared beforehand.

Ray is not imported: its domains are known by what they have.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from radabound_fast.spaces import Grid, Steps
from radabound_fast.spaces.numbers import as_int


def space_of(param_space: Mapping[str, Any]) -> Grid:
    """The space of a ``param_space`` of finitely many values.

    Parameters
    ----------
    param_space : mapping
        Names to ``{"grid_search": [...]}``, ``tune.grid_search``, ``tune.choice``,
        ``tune.randint``, ``tune.lograndint``, the quantized ones (``tune.quniform``,
        ``tune.qrandint``, ...), or constants.  Mappings may be nested.

    Returns
    -------
    Grid
        A key is a trial's ``config``, with the names of nested mappings joined by "/", as Ray
        itself writes them: ``{"model/depth": 3}``.  `flat` makes it.

    Raises
    ------
    TypeError
        No mapping; a value that only code can make (``tune.sample_from``, a function).
    ValueError
        A domain is continuous; the message has the line with a step that would do.

    Examples
    --------
    >>> space = space_of({"lr": {"grid_search": [0.1, 0.01]}, "model": {"depth": 3}})
    >>> space.size, flat({"lr": 0.1, "model": {"depth": 3}}) in space
    (2, True)
    """
    if not isinstance(param_space, Mapping):
        raise TypeError(f"param_space must be a mapping of names to domains, got {param_space!r}")
    return Grid({name: _values_of(name, domain) for name, domain in flat(param_space).items()})


def flat(config: Mapping[str, Any]) -> dict[str, Any]:
    """A configuration with nested mappings written as one, names joined by "/".

    Parameters
    ----------
    config : mapping
        What a trainable is called with.

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


def _values_of(name: str, domain: Any) -> Any:
    if isinstance(domain, Mapping):
        return domain["grid_search"]
    if hasattr(domain, "categories"):
        return domain.categories
    if hasattr(domain, "lower") and hasattr(domain, "upper"):
        return _between(name, domain)
    if hasattr(domain, "sampler") or callable(domain):  # tune.sample_from
        raise TypeError(f"{name} must be a domain of finitely many values, got {domain!r}")
    return [domain]


def _between(name: str, domain: Any) -> Any:
    """Numbers of a domain with a lower and an upper end."""
    low, high, q = domain.lower, domain.upper, getattr(domain.sampler, "q", None)
    whole = type(domain).__name__ == "Integer"
    if whole and q in (None, 1):
        return range(as_int(low) or 0, as_int(high) or 0)  # without the upper end
    if q is not None:
        # the multiples of q up to the upper end, which quantized domains include
        first, last = -(-low // q), high // q
        return range(int(first) * q, int(last) * q + 1, q) if whole else Steps(low, high, q)
    line = f'"{name}": tune.quniform({low:g}, {high:g}, {(high - low) / 100:g})'
    if "Log" in str(domain.sampler):
        line = f'"{name}": tune.choice(np.geomspace({low:g}, {high:g}, 101).tolist())'
    raise ValueError(
        f"{name} must have finitely many values, got {type(domain).__name__}({low}, {high}) "
        f"without a step: write {line}"
    )
