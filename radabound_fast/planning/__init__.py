"""What a holdout affords, before any of it is spent: for guards, searches and release gates."""

from __future__ import annotations

from typing import Literal, overload

from radabound_fast._checks import shown
from radabound_fast.planning.gate import GatePlan, plan_gate
from radabound_fast.planning.guards import Plan, plan_guards
from radabound_fast.planning.searches import SearchPlan, plan_searches

__all__ = ["GatePlan", "Plan", "SearchPlan", "plan"]


@overload
def plan(
    n_samples: int,
    epsilon: float | None = None,
    delta: float | None = None,
    n_vectors: int = 32,
    error_rate: float = 0.25,
    *,
    space_size: int | None = None,
    max_queries: int | None = None,
    n_finalists: None = None,
    gate: Literal[False] = False,
) -> Plan: ...


@overload
def plan(
    n_samples: int | None,
    *,
    delta: float,
    n_finalists: int,
    error_rate: float = 0.25,
    space_size: int | None = None,
    width: float | None = None,
) -> SearchPlan: ...


@overload
def plan(
    n_samples: int | None,
    *,
    gate: Literal[True],
    disagreement: float,
    delta: float = 0.05,
    margin: float = 0.0,
    n_candidates: int | None = None,
    n_passes: int | None = None,
    tolerance: float | None = None,
) -> GatePlan: ...


def plan(
    n_samples: int | None,
    epsilon: float | None = None,
    delta: float | None = None,
    n_vectors: int = 32,
    error_rate: float = 0.25,
    *,
    space_size: int | None = None,
    max_queries: int | None = None,
    n_finalists: int | None = None,
    width: float | None = None,
    gate: bool = False,
    disagreement: float | None = None,
    margin: float = 0.0,
    n_candidates: int | None = None,
    n_passes: int | None = None,
    tolerance: float | None = None,
) -> Plan | SearchPlan | GatePlan:
    """Return what a holdout affords, before any of it is used.

    Parameters
    ----------
    n_samples : int or None
        m, the size of the holdout; 1 to 2**40.  None: how many labels are needed, for finalists
        with a `width`, or a gate with a `tolerance`.
    epsilon : float, optional
        The error tolerated, in (0, 1).  None: only the interval of a declared space of `space_size`
        keys, for which no error is fixed in advance, and no rows.
    delta : float
        The probability of failure, in (0, 1); of a gate 0.05 by default.
    n_vectors : int, default 32
        l, the number of sign vectors; 1 to 2**23.
    error_rate : float, default 0.25
        The mean loss to expect of a query, in [0, 1]; losses are 0 or 1.
    space_size : int, optional
        How many keys a `DeclaredSearch` has, at least 1.
    max_queries : int, optional
        The `max_queries` of a "fixed-sequence", at least 1.
    n_finalists : int, optional
        How many models a search will name at its end: the plan compares their confirmation on a
        part of the rows with a declared space and a fixed order of `space_size` models.
    width : float, optional
        For finalists without `n_samples`: how wide their intervals may be.
    gate : bool, default False
        Whether the plan is that of a release gate: what gain a candidate needs.
    disagreement : float
        For a gate: the share of rows on which the losses, 0 or 1, of candidate and production
        differ, in [0, 1].
    margin, n_candidates
        For a gate: as for `Gate`.
    n_passes : int, optional
        For a gate: candidates that passed before; by default 0, 1, 2, 4 and 8.
    tolerance : float, optional
        For a gate without `n_samples`: the gain that is to pass.

    Returns
    -------
    Plan; SearchPlan of finalists; GatePlan of a gate

    Raises
    ------
    TypeError, ValueError
        An argument is of the wrong type or out of its range; the message says which and why.

    Notes
    -----
    A first query of error rate p has an expected complexity of ``sqrt(p / (2 pi m))`` by the plain
    estimator, and 0 by half-range.  "fixed-sequence" answers `n_queries` by its union part, and
    goes on by its complexity.  The interval of "DeclaredSearch" is the exact binomial one, in
    between two counts where ``error_rate * n_samples`` is no integer.  "Ladder": the step is the
    best for as many queries.  "Thresholdout": queries at a budget of one answer from the holdout,
    by its Theorem 25.  What each guarantees is not the same: docs/explanation/theory.md.

    Examples
    --------
    >>> p = plan(4000, 0.04, 0.1, error_rate=0.02, space_size=10**6)
    >>> round(p.low, 4), round(p.high, 4), p.rows[0]["name"], p.rows[0]["first_query"]
    (0.0103, 0.0343, 'bernstein', True)
    >>> search = plan(4000, delta=0.1, space_size=10**6, n_finalists=3)
    >>> [(row["name"], round(row["width"], 3)) for row in search.rows if row["n_rows"] == 4000]
    [('ConfirmedSearch, share 1', 0.029), ('DeclaredSearch', 0.073), ('FixedSequence', 0.08)]
    >>> gate = plan(4000, gate=True, disagreement=0.1, n_candidates=8, n_passes=1)
    >>> {row["candidate"]: row["gains"][1] for row in gate.rows}
    {2: 0.014, 4: 0.0165, 8: 0.019}
    """
    of_gate = {
        "disagreement": disagreement,
        "n_candidates": n_candidates,
        "n_passes": n_passes,
        "tolerance": tolerance,
    }
    if gate:
        if disagreement is None:
            raise ValueError("disagreement must be given for a gate, got None")
        return plan_gate(n_samples, 0.05 if delta is None else delta, margin=margin, **of_gate)
    for name, value in of_gate.items():
        if value is not None:
            raise ValueError(f"{name} must be left out unless gate=True")
    if n_finalists is not None:
        for name, value in (("epsilon", epsilon), ("max_queries", max_queries)):
            if value is not None:
                raise ValueError(f"{name} must be left out beside n_finalists, got {shown(value)}")
        if delta is None:
            raise ValueError("delta must be given with n_finalists, got None")
        return plan_searches(n_samples, delta, error_rate, space_size, n_finalists, width)
    if width is not None:
        raise ValueError(f"width must be left out without n_finalists, got {shown(width)}")
    if n_samples is None or delta is None:
        raise ValueError("n_samples and delta must be given unless gate=True")
    return plan_guards(n_samples, epsilon, delta, n_vectors, error_rate, space_size, max_queries)
