"""Laws of the spaces of tools: membership, one code for equal values, weights of sum at most 1, and
points drawn beforehand."""

import copy
import itertools
import json
import math
import subprocess
import sys

import numpy as np
import pytest
from support import SCALARS, accepted, most_failures, with_scalars

from radabound_fast import DeclaredSearch
from radabound_fast.integrations import ray as ray_module
from radabound_fast.spaces import Grid

M = 400
LABELS = np.arange(M) % 2


@pytest.fixture
def optuna():
    optuna = pytest.importorskip("optuna")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return optuna


def fixed(trial_type, distributions, values):
    """A trial that was given these values, whatever its distributions say."""
    trial = trial_type(dict(values))
    for name, distribution in distributions.items():
        trial._suggested_params[name], trial._distributions[name] = values[name], distribution
    return trial


def distributions_of(optuna):
    d = optuna.distributions
    return {
        "n": d.IntDistribution(1, 3),
        "rate": d.FloatDistribution(0, 1, step=0.1),
        "a": d.CategoricalDistribution(["a", None, 7]),
    }


# ---- Optuna ------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_300_enqueued_values_outside_their_range_are_no_keys(optuna):
    from radabound_fast.integrations.optuna import TrialSpace, nats

    search, study = DeclaredSearch(M, TrialSpace(), delta=0.1), optuna.create_study()
    for value in (*range(11, 311), -1, 0.5, 3.0000001):
        study.enqueue_trial({"x": value})
        trial = study.ask()
        trial.suggest_int("x", 0, 10)
        with pytest.raises(ValueError, match=r"x must be one of range\(0, 11\), got"):
            nats(trial)
        with pytest.raises(ValueError, match=r"x must be one of range\(0, 11\), got"):
            search.query(np.zeros(M, bool), key=trial)
    assert search.n_answered == 0
    for value in (3, 3.0, np.int64(3)):  # one key
        study.enqueue_trial({"x": value})
        trial = study.ask()
        trial.suggest_int("x", 0, 10)
        answer = search.query(np.zeros(M, bool), key=trial)
        assert answer.key == {"x": 3} and nats(trial) == answer.nats == math.log(11)
    assert search.n_answered == 1


def test_weights_of_accepted_trials_never_exceed_1(optuna):
    """Every value that is enqueued, in live, fixed and stored trials."""
    from radabound_fast.integrations.optuna import TrialSpace, nats

    distributions = distributions_of(optuna)
    good = {"n": 2, "rate": 0.3, "a": "a"}
    values = [good | {name: one} for name in good for one in SCALARS]
    every = itertools.product([1, 2, 3], np.arange(11) * 0.1, ["a", None, 7])
    values += [dict(zip(good, key, strict=True)) for key in every]
    trials = [fixed(optuna.trial.FixedTrial, distributions, one) for one in values]
    found = accepted(TrialSpace(), trials)
    assert len(found) == 3 * 11 * 3
    assert math.fsum(math.exp(-cost) for cost, _ in found.values()) == pytest.approx(1)
    for code, (cost, same) in found.items():
        space = TrialSpace()
        assert {space.find(trial)[0] for trial in same} == {code}
        assert all(nats(trial) == cost for trial in same)
        assert space.find(same[0])[0] == code and list(space.key_of(code)) == list(good)
        assert "np." not in repr(space.key_of(code))
        assert space.key_of(json.loads(json.dumps(code))) == space.key_of(code)


def test_stored_trials_of_a_range_that_shrinks_are_refused_at_a_weight_of_1(optuna):
    from radabound_fast.integrations.optuna import TrialSpace

    space, kept = TrialSpace(), 0
    for low in range(200):
        distribution = optuna.distributions.IntDistribution(low, low + 9)
        trial = optuna.trial.create_trial(
            params={"x": low + 5}, distributions={"x": distribution}, value=0.0
        )
        kept += trial in space
    assert kept == 10
    with pytest.raises(ValueError, match="key must have a weight that leaves the sum at most 1"):
        space.find(trial)


def test_a_stored_trial_is_compared_with_the_tree_that_live_ones_have_shown(optuna):
    from radabound_fast.integrations.optuna import TrialSpace

    d = optuna.distributions
    space, study = TrialSpace(), optuna.create_study()
    live = study.ask()
    live.suggest_int("x", 0, 1), live.suggest_int("y", 0, 3)
    space.find(live)
    stored = {"params": live.params, "distributions": live.distributions, "value": 0.0}
    turned = {name: dict(reversed(stored[name].items())) for name in ("params", "distributions")}
    again = optuna.trial.create_trial(**stored | turned)
    assert space.find(again) == space.find(live)
    for name, low in (("x", -1), ("y", -1), ("z", 0)):
        changed = live.distributions | {name: d.IntDistribution(low, 9)}
        params = live.params | ({name: 5} if name == "z" else {})
        other = optuna.trial.create_trial(params=params, distributions=changed, value=0.0)
        with pytest.raises(ValueError, match="key must be a trial of one tree of choices"):
            space.find(other)


def test_a_model_is_trained_with_the_member_that_is_its_key(optuna):
    """Whatever raw float a step or an enqueued value has."""
    from radabound_fast.integrations.optuna import TrialSpace, guarded_objective, space_of

    step = optuna.distributions.FloatDistribution(-4, -1, step=0.1)
    for space in (space_of({"log": step}), TrialSpace()):
        seen = []

        def predict(trial, seen=seen):
            seen.append(trial.suggest_float("log", -4, -1, step=0.1))
            assert trial.params == {"log": seen[-1]} and trial.number >= 0
            return LABELS

        search = DeclaredSearch(LABELS, space, delta=0.1)
        study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
        for raw in (-4 + 24 * 0.1, -1.6, -1.6 + 1e-9):
            study.enqueue_trial({"log": raw})
        study.optimize(guarded_objective(search, predict), n_trials=30)
        assert seen[:3] == [-1.6] * 3 and all(len(repr(one)) <= 4 for one in seen)
        assert {key["log"] for key in search.answers.keys} == set(seen)
        assert "log=-1.6" in str(search.report())


def test_a_trial_may_be_of_any_of_several_grids(optuna):
    from radabound_fast.integrations.optuna import guarded_objective

    search = DeclaredSearch(LABELS, [{"n": [1]}, {"n": [2]}, {"n": [3], "m": [4]}], delta=0.1)
    study, seen = optuna.create_study(), []

    def predict(trial):
        seen.append(trial.suggest_int("n", 1, 3))
        if seen[-1] == 3:
            trial.suggest_int("m", 4, 4)
        return LABELS

    for n in (2, 3, 1):
        study.enqueue_trial({"n": n})
    study.optimize(guarded_objective(search, predict), n_trials=3)
    assert seen == [2, 3, 1] and search.answers.keys == [{"n": 2}, {"n": 3, "m": 4}, {"n": 1}]


def test_what_was_not_declared_is_refused_before_it_is_fitted(optuna):
    from radabound_fast.integrations.optuna import guarded_objective, points_of, space_of

    declared = {"n": optuna.distributions.IntDistribution(1, 3)}
    for space, message in (
        (space_of(declared), r"n must be one of range\(1, 4\), got|parameters that were declared"),
        (points_of(declared, 10, seed=0), "fit_predict must suggest the parameters that were decl"),
    ):
        fitted = []
        for suggest in (lambda t: t.suggest_int("m", 1, 3), lambda t: t.suggest_int("n", 5, 9)):

            def predict(trial, suggest=suggest, fitted=fitted):
                fitted.append(suggest(trial))
                return LABELS

            objective = guarded_objective(DeclaredSearch(LABELS, space, delta=0.1), predict)
            if isinstance(space, Grid) or "m" in suggest.__code__.co_consts:
                with pytest.raises(ValueError, match=message):
                    optuna.create_study().optimize(objective, n_trials=1)
                assert not fitted


@pytest.mark.parametrize(
    "storage", [None, pytest.param("sqlite:///points.db", marks=pytest.mark.thorough)]
)
def test_a_study_with_continuous_parameters_is_one_line(optuna, storage, tmp_path, monkeypatch):
    from radabound_fast.integrations.optuna import guarded_objective, points_of

    monkeypatch.chdir(tmp_path)
    d, trained = optuna.distributions, []
    declared = {
        "C": d.FloatDistribution(1e-4, 1e4, log=True),
        "n": d.IntDistribution(1, 500, log=True),
        "kernel": d.CategoricalDistribution(["rbf", "poly"]),
    }

    def predict(trial):
        C = trial.suggest_float("C", 1e-4, 1e4, log=True)
        point = {"C": C, "n": trial.suggest_int("n", 1, 500, log=True)}
        trained.append(point | {"kernel": trial.suggest_categorical("kernel", ["rbf", "poly"])})
        assert trial.params == trained[-1]
        trial.report(0.5, step=1)
        trial.set_user_attr("mine", bool(trial.should_prune()))
        rate = min(0.5, 0.1 + abs(math.log10(C)) / 10)
        return LABELS ^ (np.random.default_rng(len(trained)).random(M) < rate)

    space = points_of(declared, 300, seed=0)
    search = DeclaredSearch(LABELS, space, delta=0.1, allow_reruns=True)
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=0), storage=storage)
    study.optimize(guarded_objective(search, predict), n_trials=9, n_jobs=1 if storage else 2)
    assert search.n_answered == len(trained) == 9 and search.best.nats > math.log(300)
    assert all(point in space for point in trained)
    for trial in study.trials:
        assert trial.user_attrs["mine"] is False
        assert space.nearest(trial.params) == trial.user_attrs["holdout_key"]
    points = [point["n"] for point in space]
    assert all(type(n) is int and 1 <= n <= 500 for n in points) and np.median(points) < 60
    assert space == points_of(declared, 300, seed=0) != points_of(declared, 300, seed=1)


def suggest_tree(trial):
    if trial.suggest_categorical("model", ["svm", "net"]) == "svm":
        trial.suggest_float("C", 1e-3, 1e3, log=True)
        return
    for layer in range(trial.suggest_int("layers", 1, 3)):
        trial.suggest_float(f"drop{layer}", 0.0, 0.5)


def test_points_of_a_tree_of_choices_come_from_the_function_that_suggests(optuna):
    from radabound_fast.integrations.optuna import guarded_objective, points_of

    space, trained = points_of(suggest_tree, 200, seed=0), []

    def predict(trial):
        suggest_tree(trial)
        trained.append(trial.params)
        return LABELS

    search = DeclaredSearch(LABELS, space, delta=0.1)
    objective = guarded_objective(search, predict)
    optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=1)).optimize(objective, 40)
    assert len(trained) == 40 and all(params in space for params in trained)
    assert {params["model"] for params in trained} == {"svm", "net"}
    for trial in search.answers.keys:
        assert len(trial) == (2 if trial["model"] == "svm" else 2 + trial["layers"])


def test_points_of_a_study_and_bad_declarations(optuna):
    from radabound_fast.integrations.optuna import points_of

    study = optuna.create_study()
    with pytest.raises(ValueError, match="must have a trial that suggested something"):
        points_of(study, 10)
    study.ask().suggest_float("x", 0, 1)
    study.ask({"x": optuna.distributions.FloatDistribution(0, 1)})
    assert points_of(study, 10, seed=0).size == 10
    with pytest.raises(TypeError, match="x must be one of Optuna's distributions, got 0.1"):
        points_of({"x": 0.1}, 10)
    with pytest.raises(TypeError, match="must be a study, or a mapping of names to distributions"):
        points_of(5, 10)
    with pytest.raises(TypeError, match="see radabound_fast.integrations.optuna.points_of$"):
        from radabound_fast.spaces import PointSample

        PointSample({"x": optuna.distributions.FloatDistribution(0, 1)}, 10)


@pytest.mark.thorough
def test_intervals_hold_for_tpe_over_points_of_continuous_parameters(optuna):
    """Of 60 studies, seeds 0 to 59, each of 15 trials that look at the scores of 200 rows, at most
    20 may miss at delta .1; a correct program has more with chance 1e-6.  A model's truth is a
    function of its point, and its errors are drawn anew for each point of each study."""
    from radabound_fast.integrations.optuna import guarded_objective, points_of

    m, n_runs, missed = 200, 60, 0
    labels = np.arange(m) % 2
    declared = {"x": optuna.distributions.FloatDistribution(0, 1)}
    for seed in range(n_runs):
        space = points_of(declared, 50, seed=seed)

        def predict(trial, seed=seed):
            x = trial.suggest_float("x", 0, 1)
            rng = np.random.default_rng([seed, round(x * 2**40)])
            return labels ^ (rng.random(m) < 0.2 + 0.3 * x)

        search = DeclaredSearch(labels, space, delta=0.1)
        study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed))
        study.optimize(guarded_objective(search, predict), n_trials=15)
        missed += any(
            not answer.low <= 0.2 + 0.3 * answer.key["x"] <= answer.high
            for answer in search.answers
        )
    assert missed <= most_failures(n_runs, 0.1)


# ---- ConfigSpace -------------------------------------------------------------------------------


def configurations(cs, *continuous):
    space = cs.ConfigurationSpace(seed=0)
    n = cs.Integer("n", (1, 3))
    leaf = cs.OrdinalHyperparameter("leaf", [0.5, 1, 2])
    a = cs.Categorical("a", ["a", "b", 7, None])
    space.add(n, leaf, a, cs.Constant("seed", 1), *continuous)
    space.add(cs.EqualsCondition(leaf, n, 3), cs.ForbiddenEqualsClause(a, "b"))
    return space


def test_weights_of_accepted_configurations_never_exceed_1():
    cs = pytest.importorskip("ConfigSpace")
    from radabound_fast.integrations.configspace import space_of

    given = configurations(cs)
    space, key = space_of(given), {"n": 3, "leaf": 1, "a": "a", "seed": 1}
    keys = [one for some in (key, {"n": 1, "a": 7, "seed": 1}) for one in with_scalars(some)]
    keys += [dict(one) for one in given.sample_configuration(200)]
    found = accepted(space, keys)
    assert len(found) == (2 + 3) * 3
    assert math.fsum(math.exp(-cost) for cost, _ in found.values()) == pytest.approx(0.75)
    for code, (_, same) in found.items():
        assert space.key_of(code) == space.nearest(same[0]) == same[0]
        assert "np." not in repr(space.key_of(code))
        assert space.find(space.key_of(json.loads(json.dumps(code))))[0] == code
        turned = dict(reversed(same[0].items()))
        assert space.find(turned)[0] == code and space.key_of(code).keys() == turned.keys()
    free = cs.ConfigurationSpace({"n": (1, 3), "a": ["a", "b"]})
    assert space.size is None and space_of(free).size == 6
    free.add(cs.ForbiddenEqualsClause(free["a"], "b"))
    assert space_of(free).size is None
    for wrong in (True, 3.0000001, 2.5, "3", math.nan, 4, 0):
        with pytest.raises(ValueError, match=r"n must be one of range\(1, 4\), got"):
            space.find(key | {"n": wrong})


def test_points_of_a_configuration_space_keep_its_conditions():
    cs = pytest.importorskip("ConfigSpace")
    from radabound_fast.integrations.configspace import points_of, space_of

    given = configurations(cs, cs.Float("C", (1e-4, 1e4), log=True))
    with pytest.raises(
        ValueError, match="C must have finitely many values.*draw points beforehand"
    ):
        space_of(given)
    state = copy.deepcopy(given.random).get_state()[1].tolist()
    space = points_of(given, 300, seed=0)
    assert given.random.get_state()[1].tolist() == state  # the caller's, which is left alone
    assert space.size == 300 and space == points_of(given, 300, seed=0) != points_of(given, 300, 1)
    for point in space:
        assert ("leaf" in point) == (point["n"] == 3) and point["a"] != "b"
        assert "np." not in repr(point)
    for suggested in given.sample_configuration(100):
        nearest = space.nearest(suggested)
        assert nearest["a"] == suggested["a"] and ("leaf" in nearest) == ("leaf" in suggested)
    assert points_of(given, 1, seed=0).size == 1
    with pytest.raises(TypeError, match="configuration_space must be a ConfigurationSpace, got 5"):
        points_of(5, 10)


# ---- scikit-learn ------------------------------------------------------------------------------


def test_drawn_candidates_keep_the_order_in_which_they_were_declared():
    selection = pytest.importorskip("sklearn.model_selection")
    from scipy.stats import loguniform

    from radabound_fast.integrations.sklearn import space_of

    ranges = {"gamma": loguniform(1e-3, 1), "C": loguniform(0.1, 10)}
    sampler = selection.ParameterSampler(ranges, 20, random_state=0)
    space = space_of(sampler)
    assert all(list(key) == ["gamma", "C"] and key in space for key in space)
    found = accepted(space, [*sampler, *with_scalars(next(iter(sampler)))])
    assert len(found) == 20 and "np." not in repr(space[0])
    assert list(space_of({"b": [1], "a": [2]})[0]) == ["b", "a"]
    search = DeclaredSearch(M, space, delta=0.1)
    search.query(np.zeros(M, bool), key=dict(sorted(space[3].items())))
    assert str(search.report()).partition(" is gamma=")[2].partition(", ")[2].startswith("C=")
    assert "np." not in str(search.report()) + search.report().to_json()


def test_a_list_of_mappings_is_a_list_of_grids_everywhere():
    pytest.importorskip("sklearn")
    from sklearn.model_selection import GridSearchCV
    from sklearn.tree import DecisionTreeClassifier

    from radabound_fast.integrations.sklearn import HoldoutSearchCV, space_of

    grids = [{"max_depth": [1, 2], "criterion": ["gini"]}, {"max_depth": [3]}]
    tree, X = DecisionTreeClassifier(random_state=0), LABELS[:, np.newaxis]
    search = DeclaredSearch(LABELS, grids, delta=0.1)
    assert search.space == space_of(grids) == space_of(GridSearchCV(tree, grids))
    found = HoldoutSearchCV(tree, grids, guard=search).fit(X, LABELS, X_holdout=X)
    assert len(found.cv_results_["params"]) == search.n_answered == 3
    candidates = [{"max_depth": 1}, {"max_depth": 2}]
    for declare in (space_of, lambda given: DeclaredSearch(LABELS, given, delta=0.1)):
        with pytest.raises(TypeError, match=r"a list of keys is spaces.Choice\(list\)"):
            declare(candidates)
    from radabound_fast.spaces import Choice

    pool = DeclaredSearch(LABELS, Choice(candidates), delta=0.1)
    found = HoldoutSearchCV(tree, Choice(candidates), guard=pool).fit(X, LABELS, X_holdout=X)
    assert found.cv_results_["params"] == candidates and pool.n_answered == 2


# ---- Ray ---------------------------------------------------------------------------------------

tunes = pytest.mark.parametrize("module", ["ray.tune", "flaml.tune"])


@tunes
def test_what_a_domain_draws_is_in_its_space_with_both_ends(module):
    tune = pytest.importorskip(module)
    domains = {
        "a": tune.qrandint(1, 10), "b": tune.qrandint(5, 20, 5), "c": tune.randint(1, 10),
        "d": tune.qlograndint(1, 10, 1), "e": tune.quniform(0.1, 0.9, 0.1),
        "f": tune.lograndint(1, 10), "g": tune.choice([1, "a", None]),
    }  # fmt: skip
    space = ray_module.space_of(domains)
    assert space.size == 10 * 4 * 9 * 10 * 9 * 9 * 3
    drawn = [{name: one.sample() for name, one in domains.items()} for _ in range(500)]
    assert all(config in space for config in drawn)
    key = space.key_of(space.find(drawn[0])[0])
    assert key["a"] in range(1, 11) and len(repr(key["e"])) == 3
    assert drawn[0] | {"a": 10} in space and drawn[0] | {"c": 10} not in space


@tunes
@pytest.mark.parametrize(
    ("domain", "line"),
    [
        (("randn", 0, 1), "tune.quniform(-3.5, 3.5, 0.05)"),
        (("qrandn", 2, 0.5, 0.1), "tune.quniform(0.2, 3.8, 0.1)"),
        (("uniform", 0, 1), "tune.quniform(0, 1, 0.01)"),
        (("loguniform", 0.001, 1), "tune.choice(np.geomspace(0.001, 1, 101).tolist())"),
    ],
)
def test_a_domain_without_end_is_told_a_line_that_can_be_taken(module, domain, line):
    tune, (name, *arguments) = pytest.importorskip(module), domain
    domain = getattr(tune, name)(*arguments)
    with pytest.raises(ValueError, match="x must have finitely many values") as raised:
        ray_module.space_of({"x": domain})
    points = "draw points beforehand, points_of(param_space, 10_000), or write "
    assert str(raised.value).endswith(f'{points}"x": {line}') and "inf" not in line
    assert ray_module.space_of({"x": eval(line, {"tune": tune, "np": np})}).size >= 37
    sample = ray_module.points_of({"x": domain}, 200, seed=0)
    nested = ray_module.points_of({"m": {"x": domain, "seed": 7}}, 50, seed=0)
    assert all(type(point["m"]["x"]) in (int, float) for point in nested)
    assert sample.size > 20 and sample == ray_module.points_of({"x": domain}, 200, seed=0)


def test_points_of_a_param_space_stay_nested():
    space = ray_module.points_of(
        {"lr": {"grid_search": [0.1, 0.2]}, "model": {"depth": 3, "loss": "log"}}, 50, seed=0
    )
    assert space.size == 2
    assert space.nearest({"lr": 0.19, "model": {"loss": "log", "depth": 3}}) == {
        "lr": 0.2, "model": {"depth": 3, "loss": "log"},
    }  # fmt: skip
    with pytest.raises(TypeError, match="a must be a domain of values or numbers, got <function"):
        ray_module.points_of({"a": lambda spec: 1}, 5)
    with pytest.raises(TypeError, match="param_space must be a mapping of names to domains, got 5"):
        ray_module.points_of(5, 5)


# ---- candidates that workers train -------------------------------------------------------------


def test_a_worker_trains_the_member_that_a_candidate_stands_for():
    pytest.importorskip("joblib")
    from radabound_fast.integrations.joblib import guarded_map
    from radabound_fast.spaces import Steps

    trained = []

    def predict(params):
        trained.append(params)
        return LABELS

    search = DeclaredSearch(LABELS, {"s": Steps(0, 1, 0.1), "n": [1, 2]}, delta=0.1)
    given = [{"n": 1.0, "s": 3 * 0.1}, {"n": np.int64(2), "s": np.float32(0.3)}]
    told = list(guarded_map(search, predict, given))
    assert trained == [{"s": 0.3, "n": 1}, {"s": 0.3, "n": 2}] == [one.key for _, one in told]
    assert "np." not in repr(trained) and [candidate for candidate, _ in told] == given


# ---- another process ---------------------------------------------------------------------------

POINTS = """
import optuna
optuna.logging.set_verbosity(optuna.logging.ERROR)
from optuna.distributions import CategoricalDistribution, FloatDistribution
from radabound_fast.integrations.optuna import TrialSpace, points_of
space = points_of({"b": FloatDistribution(0, 1), "a": CategoricalDistribution([*"xyz"])}, 5, seed=3)
trial = optuna.trial.FixedTrial({"b": 0.5, "a": "y"})
trial.suggest_categorical("a", [*"xyz"]), trial.suggest_float("b", 0, 1, step=0.5)
print(space.values, TrialSpace().find(trial))
"""


@pytest.mark.thorough
def test_points_and_trials_are_the_same_under_another_hash_seed(optuna):
    told = {
        subprocess.run(
            [sys.executable, "-c", POINTS],
            env={**__import__("os").environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            timeout=120,
            check=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(told) == 1
