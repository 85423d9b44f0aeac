"""What a scikit-learn search goes through, as a space that is declared beforehand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from radabound_fast._checks import check_integer
from radabound_fast._extras import needs
from radabound_fast.spaces import Choice, Grid
from radabound_fast.spaces.tokens import token_of

with needs("sklearn"):
    from sklearn.model_selection import ParameterSampler


def space_of(search_or_candidates: Any) -> Grid | Choice:
    """The candidates of a search: a grid, or a list that is drawn beforehand.

    Parameters
    ----------
    search_or_candidates : search, ParameterGrid, ParameterSampler, mapping or list of mappings
        `GridSearchCV`, `HalvingGridSearchCV` and `ParameterGrid`: their grid.
        `RandomizedSearchCV`, `HalvingRandomSearchCV` and `ParameterSampler`: the candidates that
        they will draw, which are drawn here, so ``random_state`` must be an int.  A mapping or a
        list of them: grids, as everywhere in scikit-learn; a list of candidates is
        `spaces.Choice(list)`.

    Returns
    -------
    Grid or Choice
        A key is a dict of parameters, as in ``cv_results_["params"]``.

    Raises
    ------
    TypeError, ValueError
        None of these; no int for ``random_state`` or ``n_candidates``; values that stand there
        twice or have no form that another process would know.

    Notes
    -----
    A halving search trains a candidate anew on every rung, on more data: if the holdout is asked
    on each, declare ``space_of(search) * InOrder()`` and pass ``key=(params, rung)``.

    Examples
    --------
    >>> from sklearn.model_selection import ParameterSampler
    >>> from scipy.stats import loguniform
    >>> sampler = ParameterSampler({"C": loguniform(0.01, 100)}, n_iter=60, random_state=0)
    >>> space = space_of(sampler)
    >>> space.size, all(params in space for params in sampler)
    (60, True)
    """
    given = search_or_candidates
    if hasattr(given, "param_grid"):
        return Grid(given.param_grid)
    if hasattr(given, "param_distributions"):
        return _drawn(given)
    several = isinstance(given, (list, tuple)) and all(isinstance(one, Mapping) for one in given)
    if several or isinstance(given, Mapping):
        return Grid(given)
    raise TypeError(
        "search_or_candidates must be a search with a param_grid or param_distributions, or a grid "
        f"or several, got {given!r}"
    )


def _drawn(search: Any) -> Choice:
    """What will be drawn, each candidate once."""
    state = search.random_state
    if isinstance(state, bool) or not hasattr(type(state), "__index__"):
        raise ValueError(
            "random_state must be an int, so that the candidates are drawn before any score is "
            f"seen and are the same everywhere, got {state!r}"
        )
    if hasattr(search, "n_iter"):
        n_candidates = search.n_iter
    else:
        n_candidates = search.n_candidates
        if isinstance(n_candidates, str):
            raise ValueError(f"n_candidates must be an int to be declared, got {n_candidates!r}")
    sampler = ParameterSampler(
        search.param_distributions, check_integer(n_candidates=n_candidates), random_state=state
    )
    drawn = [_in_order(params, sampler.param_distributions) for params in sampler]
    return Choice(list({token_of(params, "candidates"): params for params in drawn}.values()))


def _in_order(params: dict[str, Any], distributions: list[Mapping[str, Any]]) -> dict[str, Any]:
    """Parameters in the order in which they were declared, where scikit-learn sorts them."""
    names = next(one for one in distributions if one.keys() == params.keys())
    return {name: params[name] for name in names}
