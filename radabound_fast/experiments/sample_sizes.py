"""Section VI: how many samples Thresholdout needs, and how many the guards need."""

from __future__ import annotations

import math

from radabound_fast.bounds import (
    code_width,
    failure_code,
    guess_and_check_code,
    ladder_half_width,
    thresholdout_sample_size,
)
from radabound_fast.experiments.runner import Row

DELTA = 0.1
EPSILON = 0.05
N_QUERIES = (10, 100, 1000, 10_000)
EPSILONS = (0.02, 0.05, 0.1, 0.2)
# the smallest tolerance that guess and check works with is epsilon / 10
_GUESS_AND_CHECK = 0.9


def needed(k: int, epsilon: float) -> dict[str, float]:
    """Samples needed to answer k adaptive queries within epsilon, with probability 1 - `DELTA`.

    The numbers are not rounded.  Thresholdout has B = 1 or B = k, as printed in Section VI and as
    in Theorem 25 of Dwork et al.; guess and check has none, one or k failed guesses (each by one
    step); a Ladder has its best step.  "sample splitting" takes new samples for each query.
    """

    def of_code(code: float, width: float = epsilon) -> float:
        # a width is proportional to 1 / sqrt(m)
        return code_width(code, 1, DELTA) ** 2 / width**2

    def of_guesses(n_failures: int) -> float:
        code = guess_and_check_code(k, n_failures, n_failures * failure_code(1))
        return of_code(code, _GUESS_AND_CHECK * epsilon)

    def of_ladder(step: float) -> float:
        return (ladder_half_width(k, 1, step, DELTA) - step) ** 2 / (epsilon - step) ** 2

    return {
        "thresholdout_printed_B_1": thresholdout_sample_size(k, 1, epsilon, DELTA, as_printed=True),
        "thresholdout_theorem_B_1": thresholdout_sample_size(k, 1, epsilon, DELTA),
        "thresholdout_printed_B_k": thresholdout_sample_size(k, k, epsilon, DELTA, as_printed=True),
        "thresholdout_theorem_B_k": thresholdout_sample_size(k, k, epsilon, DELTA),
        "guess_and_check_all_pass": of_guesses(0),
        "guess_and_check_1_fails": of_guesses(1),
        "guess_and_check_all_fail": of_guesses(k - 1),
        "ladder": min(of_ladder(epsilon * percent / 100) for percent in range(1, 100)),
        "sample_splitting": k * of_code(math.log(k)),
    }


def table() -> list[Row]:
    """A row for each k at epsilon .05, and for each epsilon at 1,000 queries."""
    cells = [(k, EPSILON) for k in N_QUERIES] + [(1000, epsilon) for epsilon in EPSILONS]
    return [
        {
            "k": k,
            "epsilon": epsilon,
            "delta": DELTA,
            **{name: math.ceil(size) for name, size in needed(k, epsilon).items()},
        }
        for k, epsilon in dict.fromkeys(cells)
    ]
