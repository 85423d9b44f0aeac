"""The guarantee of each configuration of a guard, in sentences.

The words are fixed: "fixed in advance" or "adaptive", "one-sided" or "two-sided",
"finite-sample" or "asymptotic", "proved" or "heuristic".
"""

from __future__ import annotations

from .free import Free

_ASSUMED = "Assumed: independent held-out examples of one law, and losses in [0, 1]."
_NEVER_ADAPTIVE = (
    "Never for an adaptive analyst: queries, or an order of queries, chosen after seeing earlier "
    "answers can make returned answers wrong by more than epsilon; DeclaredSearch, GuessAndCheck "
    "and Ladder stay valid there."
)


def nothing(n_samples: int, n_vectors: int, epsilon: float, delta: float) -> str:
    """The sentence for a configuration in which even a complexity of 0 is too large."""
    return (
        f"No query can be answered: n_samples={n_samples} with n_vectors={n_vectors} is too "
        f"small for epsilon={epsilon} and delta={delta}; the guard halts at the first query."
    )


def implied(source: str, n_vectors: int) -> str:
    """Status of a theorem of the paper that a proved bound implies at this number of vectors."""
    return (
        f"The printed proof of {source} has a gap, but at n_vectors={n_vectors} the theorem is "
        f"proved by way of the symmetrised bound (docs/explanation/theory.md). It is finite-sample"
    )


def unproved(source: str) -> str:
    """Status of a theorem of the paper with a gap in its proof, and no violation known."""
    return (
        f"The printed proof of {source} has a gap, so that it is not proved, though no "
        f"violation of it is known. It is finite-sample"
    )


def heuristic(source: str) -> str:
    """Status of a limit theorem used at finitely many samples."""
    return (
        f"It is a heuristic: {source} speaks of the limit of many samples, and simulated "
        f"failures on either side exceed it. It is asymptotic"
    )


def paper(
    source: str, standing: str, epsilon: float, delta: float, estimator: str, two_sided: bool
) -> str:
    """Guarantee of one of the paper's bounds: what is claimed, then what of it is proved."""
    sides = "two-sided (delta' is doubled)" if two_sided else "one-sided (errors of one sign only)"
    sentences = [
        f"The paper claims (Theorem 7 with {source}), for adaptive queries too: except with "
        f"probability {delta}, every returned mean is within {epsilon} of its expectation.",
        f"{standing}, {sides}, for queries fixed in advance and at a number of queries fixed "
        f"in advance, not at the halting time.",
    ]
    if estimator == "half-range":
        sentences.append("The paper's proof is for the plain estimator, not for half-range.")
    return " ".join([*sentences, _ASSUMED, _NEVER_ADAPTIVE])


def complexity_part(complexity: float, budget: float, *, halted: bool = False) -> str:
    """The complexity beside its budget: beyond it, only a union bound may still answer."""
    if complexity <= budget:
        return f"complexity {complexity:.4g}, within its budget of {budget:.4g}"
    over = f"complexity {complexity:.4g}, beyond its budget of {max(budget, 0.0):.4g}"
    return over if halted else f"{over}: only the union bound still answers"


def weighted_sequence(epsilon: float, delta: float, free: Free) -> str:
    """Guarantee of "fixed-sequence" for weighted means of independent rows or groups."""
    return (
        f"It is proved that, for queries in an order fixed in advance (before any score on this "
        f"holdout was seen), except with probability {delta}, every returned weighted mean is "
        f"within {epsilon} of its expectation given the weights and the groups' sizes: two-sided, "
        f"finite-sample, and up to a halting time that depends on the data. Weights (rounded to "
        f"about 2**-24 of the heaviest group's) must have been fixed in advance, and rows of "
        f"different groups be independent. Each answer is covered by the self-bounding bound for "
        f"weighted losses at 3/5 of delta or by the union bound at 2/5 of it "
        f"(docs/explanation/theory.md), which answers the first {free.n_queries:,} queries, "
        f"whatever their means. {_NEVER_ADAPTIVE}"
    )


def fixed_sequence(epsilon: float, delta: float, free: Free) -> str:
    """Guarantee of "fixed-sequence", of which every word is proved."""
    pool, never = "", _NEVER_ADAPTIVE
    if free.n_queries > 1:
        pool = (
            f", or in any order from a pool, fixed in advance, of at most {free.n_queries:,} whose "
            f"losses are declared 0 or 1"
        )
        never = _NEVER_ADAPTIVE.replace("analyst:", "analyst beyond such a pool:")
    if free.n_queries:
        union = f"answers the first {free.n_queries:,} queries, whatever their means"
    elif not free.answers_any:
        union = "answers none here"
    else:
        low = free.stage(0).low_count / free.n_samples
        union = f"answers means up to {low:.4g} or from {1.0 - low:.4g} at first"
    return (
        f"It is proved that, for queries in an order fixed in advance (before any score on this "
        f"holdout was seen){pool}, except with probability {delta}, every returned mean is within "
        f"{epsilon} of its expectation: two-sided, finite-sample, and up to a halting time that "
        f"depends on the data. Each answer is covered by the self-bounding bound at 3/5 of delta "
        f"or by the union bound at 2/5 of it (docs/explanation/theory.md). Of losses declared 0 or "
        f"1 (labels, bits, booleans, integers) the union bound {union}. {_ASSUMED} {never}"
    )
