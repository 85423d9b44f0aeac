"""Make the tables of evidence/pools.md, in some minutes:

    python docs/make/pools.py

and with the argument "large" the times beside arch with 10,000 models, in ten minutes.

Seed 2028, delta = .1.  Pools of models that were trained on real data, or simulated, are judged on
samples of rows of which the truth of every model is known: its mean over the whole population.
arch is the package on PyPI.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from marked import fill
from scipy.special import ndtri
from sklearn.datasets import load_digits
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from radabound_fast import ModelPool, pack_losses
from radabound_fast.experiments import data
from radabound_fast.rows import reference

PAGE = Path(__file__).parents[1] / "evidence" / "pools.md"
SEED, DELTA = 2028, 0.1
RUNS = {200: 200, 1000: 200, 4000: 100}
N_TRAIN, N_POPULATION = 4000, 40_000
N_ARCH, ARCH_MODELS, ARCH_ROWS, ARCH_REPS = 24, 30, 500, 1000


class Pool(NamedTuple):
    """Losses of k models on all rows of a population, bool of shape (k, n), and the baseline's."""

    wrong: np.ndarray
    baseline: int


# ---- pools ---------------------------------------------------------------------------------------


def _fitted(
    table: data.Table, models: list[Any], rng: np.random.Generator, n_train: int = N_TRAIN
) -> Pool:
    """Models that know a third of the columns to nearly all of them."""
    order = rng.permutation(len(table.positive))[: n_train + N_POPULATION]
    train, rest = table.take(order[:n_train]), table.take(order[n_train:])
    n_columns, wrong = table.features.shape[1], []
    for model in models:
        n_known = int(rng.integers(n_columns // 3, n_columns))
        some = np.sort(rng.permutation(n_columns)[:n_known])
        model.fit(train.features[:, some], train.positive)
        wrong.append(model.predict(rest.features[:, some]) != rest.positive)
    return _with_median(np.array(wrong))


def _with_median(wrong: np.ndarray) -> Pool:
    return Pool(wrong, int(np.argsort(wrong.mean(axis=1))[len(wrong) // 2]))


def flights(rng: np.random.Generator) -> Pool:
    trees = [
        DecisionTreeClassifier(max_depth=depth, min_samples_leaf=leaf, random_state=0)
        for depth in range(2, 11)
        for leaf in (1, 5, 20, 50)
        for _ in range(10)
    ]
    lines = [
        make_pipeline(StandardScaler(), LogisticRegression(C=10.0**power)) for power in range(-4, 5)
    ]
    return _fitted(data.flights(), trees + lines, rng)


def low_error(rng: np.random.Generator) -> Pool:
    """Is a digit an 8?  1,297 digits are the population."""
    digits = load_digits()
    table = data.Table(digits.data.astype(np.float32), digits.target == 8)
    trees = [
        RandomForestClassifier(n_estimators=size, max_depth=depth, random_state=0)
        for depth in range(3, 11)
        for size in (3, 10)
        for _ in range(4)
    ]
    neighbours = [KNeighborsClassifier(n) for n in range(1, 12) for _ in range(4)]
    return _fitted(table, trees + neighbours, rng, n_train=500)


def rounds(rng: np.random.Generator) -> Pool:
    table = data.flights()
    order = rng.permutation(len(table.positive))[: N_TRAIN + N_POPULATION]
    train, rest = table.take(order[:N_TRAIN]), table.take(order[N_TRAIN:])
    model = HistGradientBoostingClassifier(max_iter=90, early_stopping=False, random_state=0)
    model.fit(train.features, train.positive)
    staged = model.staged_predict(rest.features)
    return _with_median(np.array([y_pred != rest.positive for y_pred in staged]))


def independent(rng: np.random.Generator) -> Pool:
    rates = np.linspace(0.1, 0.3, 100)[:, np.newaxis]
    return _with_median(rng.random((100, N_POPULATION)) < rates)


def unrelated(rng: np.random.Generator) -> Pool:
    rates = np.geomspace(0.008, 0.05, 100)[:, np.newaxis]
    return _with_median(rng.random((100, N_POPULATION)) < rates)


POOLS: dict[str, Callable[[np.random.Generator], Pool]] = {
    "flights: 360 trees, 9 regressions": flights,
    "digits, an 8 or not: 108 models": low_error,
    "flights: 90 rounds of boosting": rounds,
    "simulated: 100 independent, .1 to .3": independent,
    "simulated: 100 independent, .008 to .05": unrelated,
}


# ---- coverage and power --------------------------------------------------------------------------


def one_run(pool: Pool, n_samples: int, rng: np.random.Generator) -> list[float]:
    """What one sample of rows comes to: failures, and how much is found."""
    n = pool.wrong.shape[1]
    sample = pool.wrong[:, rng.integers(0, n, n_samples)]
    truths, k = pool.wrong.mean(axis=1), len(pool.wrong)
    gains = truths[pool.baseline] - truths
    base = sample[pool.baseline]
    made = ModelPool(n_samples, delta=DELTA, baseline=base, seed=int(rng.integers(2**63)))
    made.add(sample)
    report = made.report()
    found, better, best = report.intervals, report.better, report.best_set
    assert better is not None
    # what must not be done: the bootstrap's critical value times the standard error
    c = -ndtri(found.level / 2.0)
    half = c * np.sqrt(found.values * (1.0 - found.values) / n_samples)
    widths, proved = found.highs - found.lows, found.bonferroni_highs - found.bonferroni_lows
    return [
        bool((np.abs(found.values - truths) > half).any()),
        bool(((truths < found.lows) | (found.highs < truths)).any()),
        bool(((truths < found.bonferroni_lows) | (found.bonferroni_highs < truths)).any()),
        float((widths / proved).mean()),
        min(found.as_if, k),
        bool((better.is_better & (gains <= 0.0)).any()),
        bool((better.gain_lows > gains)[better.is_better].any()),
        float(better.is_better.sum()),
        float(better.bonferroni_is_better.sum()),
        not best.may_be_best[truths.argmin()],
        float(best.may_be_best.sum()),
        float(best.bonferroni_may_be_best.sum()),
    ]


def coverage() -> tuple[str, str]:
    """Two tables: of intervals, and of what is better and best."""
    intervals = [
        "| pool | m | c in a Wald interval | this pool's | Bonferroni | width over Bonferroni's |"
        " as if |",
        "|---|---|---|---|---|---|---|",
    ]
    choices = [
        "| pool | m | wrongly better | gain limits | better (Holm) | best missed | best set"
        " (Bonferroni) |",
        "|---|---|---|---|---|---|---|",
    ]
    for number, (name, make) in enumerate(POOLS.items()):
        pool = make(np.random.default_rng([SEED, number]))
        k = len(pool.wrong)
        for n_samples, n_runs in RUNS.items():
            rng = np.random.default_rng([SEED, number, n_samples])
            runs = np.array([one_run(pool, n_samples, rng) for _ in range(n_runs)])
            mean = runs.mean(axis=0)
            intervals.append(
                f"| {name} | {n_samples:,} | {mean[0]:.3f} | {mean[1]:.3f} | {mean[2]:.3f} |"
                f" {mean[3]:.2f} | {mean[4]:.0f} of {k} |"
            )
            choices.append(
                f"| {name} | {n_samples:,} | {mean[5]:.3f} | {mean[6]:.3f} | {mean[7]:.1f}"
                f" ({mean[8]:.1f}) | {mean[9]:.3f} | {mean[10]:.1f} ({mean[11]:.1f}) |"
            )
            print(intervals[-1], choices[-1], sep="\n", flush=True)
    return "\n".join(intervals), "\n".join(choices)


# ---- beside arch ---------------------------------------------------------------------------------


def cases() -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Losses of pools, bool of shape (k, m), and of a baseline: parts of the pools above."""
    pools = [
        make(np.random.default_rng([SEED, number])) for number, make in enumerate(POOLS.values())
    ]
    rng = np.random.default_rng([SEED, 99])
    for case in range(N_ARCH):
        pool = pools[case % len(pools)]
        rows = rng.integers(0, pool.wrong.shape[1], ARCH_ROWS)
        models = rng.permutation(len(pool.wrong))[:ARCH_MODELS]
        wrong, base = pool.wrong[models][:, rows], pool.wrong[pool.baseline, rows]
        wrong = np.unique(wrong, axis=0)  # arch fails on models that never differ
        yield wrong[(wrong != base).any(axis=1)], base


def beside_arch() -> str:
    """How often the same models are found, and which are not."""
    from arch.bootstrap import MCS, StepM

    lines = [
        "| pool | better: both, ours alone, StepM's alone |"
        " best set: both, ours alone, MCS's alone |",
        "|---|---|---|",
    ]
    totals, n_near = np.zeros((2, 3), int), 0
    for case, (wrong, base) in enumerate(cases()):
        pool = ModelPool(ARCH_ROWS, delta=DELTA, baseline=base, seed=case)
        pool.add(wrong)
        report = pool.report()
        better, best = report.better, report.best_set
        assert better is not None
        losses = wrong.T.astype(float)
        step = StepM(
            base.astype(float), losses, size=DELTA, block_size=1, reps=ARCH_REPS,
            bootstrap="circular", studentize=True, seed=case,
        )  # fmt: skip
        step.compute()
        mcs = MCS(losses, size=DELTA, block_size=1, reps=ARCH_REPS, method="max",
                  bootstrap="circular", seed=case)  # fmt: skip
        mcs.compute()
        pairs = [
            (set(better.better_names), {int(name) for name in step.superior_models}),
            (set(best.best_names), {int(name) for name in mcs.included}),
        ]
        n_near += sum((wrong[model] != base).sum() < 40 for model in pairs[0][1] - pairs[0][0])
        counts = np.array([[len(a & b), len(a - b), len(b - a)] for a, b in pairs])
        totals += counts
        name = list(POOLS)[case % len(POOLS)]
        shown = [", ".join(map(str, row)) for row in counts]
        lines.append(f"| {name} | {shown[0]} | {shown[1]} |")
        print(lines[-1], flush=True)
    shown = [", ".join(map(str, row)) for row in totals]
    lines.append(f"| **all {N_ARCH}** | **{shown[0]}** | **{shown[1]}** |")
    lines.append(
        f"\nOf the {totals[0, 2]} models that StepM alone finds, {n_near} differ from the baseline "
        "on fewer than 40 rows,\nwhere Bonferroni's level is taken here."
    )
    return "\n".join(lines)


# ---- time ----------------------------------------------------------------------------------------


TIMES = [
    "| 4,000 rows, 1,000 vectors or replications | models | seconds of CPU | over ours |",
    "|---|---|---|---|",
]


def seconds(work: Callable[[], Any], n_times: int = 1) -> float:
    best = np.inf
    for _ in range(n_times):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return best


def times() -> str:
    """The extremes of pools by this library and NumPy, and tests of all models beside arch's."""
    rng = np.random.default_rng(SEED)
    k, m = 10_000, 4000
    wrong = rng.random((k, m)) < rng.uniform(0.1, 0.3, (k, 1))
    signs, packed = reference.signs(1, 1000, m), pack_losses(wrong)

    def by_numpy() -> None:
        losses = wrong.astype(np.float32)
        means = losses.mean(axis=1, keepdims=True)
        sums = losses @ signs.T.astype(np.float32) - means * signs.sum(axis=1)
        np.abs(sums / np.sqrt(m * means * (1 - means))).max(axis=0)

    mine = seconds(lambda: ModelPool(m, seed=1).add(packed), 5)
    matmul = seconds(by_numpy, 2)
    lines = [
        *TIMES,
        f"| ModelPool.add, packed losses | {k:,} | {mine:.4f} | 1 |",
        f"| NumPy, a float32 product of matrices | {k:,} | {matmul:.2f} | {matmul / mine:.0f} |",
    ]
    return "\n".join([*lines, *_beside_spa(wrong[:1000], studentize=True)])


def large_times() -> str:
    """The same beside arch with 10,000 models, not studentised: minutes."""
    rng = np.random.default_rng(SEED)
    wrong = rng.random((10_000, 4000)) < rng.uniform(0.1, 0.3, (10_000, 1))
    return "\n".join([*TIMES, *_beside_spa(wrong, studentize=False)])


def _beside_spa(wrong: np.ndarray, *, studentize: bool) -> list[str]:
    """All models against the first of them, by this library and by arch, all replications run."""
    from arch.bootstrap import SPA

    k, m, packed = *wrong.shape, pack_losses(wrong)
    losses = wrong.T.astype(float)
    spa = SPA(losses[:, 0], losses, block_size=1, reps=1000, bootstrap="circular", seed=1,
              studentize=studentize)  # fmt: skip

    def ours() -> None:
        pool = ModelPool(m, seed=1, baseline=wrong[0])
        pool.add(packed)
        pool.better()

    mine, arch = seconds(ours, 5), seconds(spa.compute)
    name = f"arch {_version()}, SPA{'' if studentize else ', studentize=False'}"
    return [
        f"| ModelPool.add and better | {k:,} | {mine:.4f} | 1 |",
        f"| {name} | {k:,} | {arch:.0f} | {arch / mine:,.0f} |",
    ]


def _version() -> str:
    import arch

    return str(arch.__version__)


if __name__ == "__main__":
    parts = sys.argv[1:] or ["coverage", "arch", "times"]
    if "times" in parts:
        fill(PAGE, "times", times())
    if "large" in parts:
        fill(PAGE, "large", large_times())
    if "arch" in parts:
        fill(PAGE, "arch", beside_arch())
    if "coverage" in parts:
        intervals, choices = coverage()
        fill(PAGE, "intervals", intervals)
        fill(PAGE, "choices", choices)
