"""Labels that release gates need, and teams that climb on verdicts: docs/evidence/release-gates.md.

python docs/make/release_gate.py [--teams N]

The first table compares with ease.ml/ci (Renggli, Karlas, Ding, Liu, Schawinski, Wu and Zhang 2019,
MLSys), whose estimators are written here from their formulas: "Hoeffding" bounds both models apart,
as its published program does, and "Bennett" uses the disagreement, as its paper does at best.  The
second table counts what four rules let through where the truth is known.
"""

from __future__ import annotations

import argparse
import math
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from marked import fill
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.stats import binomtest

from radabound_fast import Gate, plan

PAGE = Path(__file__).parents[1] / "evidence" / "release-gates.md"
PICTURE = Path(__file__).parents[1] / "images" / "gate_shelf_life.png"

DISAGREEMENT = 0.1
PASSES = (0, 1, 4)

# ---- labels needed ------------------------------------------------------------------------------


def hoeffding(n_candidates: int, delta: float, tolerance: float) -> float:
    """Labels with which both error rates are within half the tolerance, at 2^H histories."""
    return 2 * (math.log(2 / delta) + n_candidates * math.log(2)) / tolerance**2


def bennett(n_candidates: int, delta: float, tolerance: float) -> float:
    """Labels with which the gain is within the tolerance, if so few rows differ."""
    u = tolerance / DISAGREEMENT
    rate = DISAGREEMENT * ((1 + u) * math.log1p(u) - u)
    return (math.log(2 / delta) + n_candidates * math.log(2)) / rate


def ours(n_candidates: int, delta: float, tolerance: float, n_passes: int) -> float:
    """Labels with which an observed gain of the tolerance passes as the last candidate."""
    made = plan(
        None, gate=True, disagreement=DISAGREEMENT, delta=delta, n_candidates=n_candidates,
        n_passes=n_passes, tolerance=tolerance,
    )  # fmt: skip
    return float(made.rows[-1]["samples"][n_passes])


def labels_table() -> str:
    head = ("candidates", "tolerance", "reliability", "Hoeffding", "Bennett")
    lines = [
        "| " + " | ".join(head) + " | " + " | ".join(f"`Gate`, {b} passes" for b in PASSES) + " |",
        "|---" * (len(head) + len(PASSES)) + "|",
    ]
    for n_candidates in (32, 128):
        for tolerance in (0.1, 0.05, 0.025, 0.01):
            for delta in (1e-2, 1e-3, 1e-4, 1e-5):
                asked = (n_candidates, delta, tolerance)
                needed = [hoeffding(*asked), bennett(*asked), *(ours(*asked, b) for b in PASSES)]
                cells = [str(n_candidates), f"{tolerance:g}", f"{1 - delta:.5g}"]
                cells += [f"{math.ceil(labels):,}" for labels in needed]
                lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


# ---- teams that climb ---------------------------------------------------------------------------

M, N_CANDIDATES, DELTA = 4000, 40, 0.05
ERROR = 0.2  # of the first model in production
Rows = NDArray[np.bool_]


class Model:
    """The losses of a model on the test set, and its true error."""

    def __init__(self, losses: Rows, error: float) -> None:
        self.losses, self.error = losses, error

    def changed(self, fixed: float, broken: float, rng: np.random.Generator) -> Model:
        """A model that is right on a share of these errors, and errs on a share of the others."""
        draws = rng.random(len(self.losses))
        losses = np.where(self.losses, draws >= fixed, draws < broken)
        return Model(losses, self.error * (1 - fixed) + (1 - self.error) * broken)


def candidates(production: Model, rng: np.random.Generator) -> Model:
    """The next idea: one in five is an improvement by .01 to .03, the others gain nothing.

    A share of .1 of the rows changes in either case.
    """
    gain = rng.uniform(0.01, 0.03) if rng.random() < 0.2 else 0.0
    fixed = (DISAGREEMENT + gain) / 2 / production.error
    broken = (DISAGREEMENT - gain) / 2 / (1 - production.error)
    return production.changed(min(1.0, fixed), broken, rng)


def counts_of(production: Model, candidate: Model) -> tuple[int, int]:
    before, after = production.losses, candidate.losses
    return int((before & ~after).sum()), int((after & ~before).sum())


def p_value(plus: int, minus: int) -> float:
    """Of McNemar's exact test that the candidate is no better, one-sided."""
    return float(binomtest(plus, plus + minus, alternative="greater").pvalue) if plus else 1.0


def threshold(_: Model) -> Callable[[Model, Model], bool]:
    return lambda production, candidate: candidate.losses.sum() < production.losses.sum()


def mcnemar(_: Model) -> Callable[[Model, Model], bool]:
    return lambda production, candidate: p_value(*counts_of(production, candidate)) <= DELTA


def holm(_: Model) -> Callable[[Model, Model], bool]:
    """Holm's procedure over the candidates so far, as a pipeline can run it: one after another."""
    found: list[float] = []

    def passes(production: Model, candidate: Model) -> bool:
        found.append(p_value(*counts_of(production, candidate)))
        ordered = sorted(found)
        n = len(ordered)
        for place, value in enumerate(ordered):
            if value > DELTA / (n - place):
                return found[-1] < value
        return True

    return passes


def ease_ml_ci(_: Model) -> Callable[[Model, Model], bool]:
    """The gain exceeds the tolerance that Bennett's estimator has for so many labels."""
    tolerance = brentq(lambda tolerance: bennett(N_CANDIDATES, DELTA, tolerance) - M, 1e-4, 1.0)

    def passes(production: Model, candidate: Model) -> bool:
        plus, minus = counts_of(production, candidate)
        return (plus - minus) / M > tolerance

    return passes


def gate(first: Model) -> Callable[[Model, Model], bool]:
    guard = Gate(M, baseline=first.losses, delta=DELTA, n_candidates=N_CANDIDATES)
    return lambda _, candidate: guard.query(candidate.losses).passed


RULES: dict[str, Callable[[Model], Callable[[Model, Model], bool]]] = {
    "the score is higher": threshold,
    "McNemar at 5 % each": mcnemar,
    "Holm over all so far": holm,
    "ease.ml/ci, Bennett": ease_ml_ci,
    "`Gate`": gate,
}


def runs(rule: str, n_teams: int) -> Iterator[Counter[str]]:
    """What each team's pipeline let through; a rejected idea that gains nothing is tried again."""
    for team in range(n_teams):
        rng = np.random.default_rng([927, team])
        production = Model(rng.random(M) < ERROR, ERROR)
        passes, count = RULES[rule](production), Counter[str]()
        for _ in range(N_CANDIDATES):
            candidate = candidates(production, rng)
            is_better = candidate.error < production.error
            count["real"] += is_better
            if passes(production, candidate):
                count["real passed" if is_better else "wrong"] += 1
                production = candidate
        count["error"] = round(1e6 * production.error)
        yield count


def teams_table(n_teams: int) -> str:
    lines = [
        "| rule | teams with a wrong pass | wrong passes a team | real improvements let through "
        "| true error at the end |",
        "|---|---|---|---|---|",
    ]
    for rule in RULES:
        told = list(runs(rule, n_teams))
        total: Counter[str] = sum(told, Counter())
        share = sum(one["wrong"] > 0 for one in told) / n_teams
        through = total["real passed"] / total["real"]
        lines.append(
            f"| {rule} | {100 * share:.1f} % | {total['wrong'] / n_teams:.2f} "
            f"| {100 * through:.0f} % | {total['error'] / n_teams / 1e6:.4f} |"
        )
    return "\n".join(lines)


def main(argv: Any = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--teams", type=int, default=1000)
    args = parser.parse_args(argv)
    fill(PAGE, "labels", labels_table())
    fill(PAGE, "teams", teams_table(args.teams))
    plan(4000, gate=True, disagreement=DISAGREEMENT).plot().savefig(PICTURE)


if __name__ == "__main__":
    main()
