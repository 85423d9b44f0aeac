"""The recipes of docs/how-to/tools/ for AutoML, run by the tools themselves."""

import importlib.util
import re
import socket
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

pytestmark = [pytest.mark.source, pytest.mark.thorough]

SCRIPT = Path(__file__).parents[2] / "docs" / "make" / "automl_reports.py"
if not SCRIPT.exists() or not find_spec("sklearn"):
    pytest.skip("needs docs/ and scikit-learn", allow_module_level=True)

spec = importlib.util.spec_from_file_location("automl_reports", SCRIPT)
reports = importlib.util.module_from_spec(spec)
spec.loader.exec_module(reports)

SENTENCE = (
    r"The best of (\d+) (?:different )?models(?: \([\d,]+ queries\))? is .*: (error|accuracy) "
    r"(0\.\d+) on 900 held-out rows, and between"
)


def check(printed, least, quality):
    n_models, metric, value = re.search(SENTENCE, printed).groups()
    assert int(n_models) >= least
    assert abs((metric == "accuracy") - float(value)) < quality, printed


def skip_without(*packages):
    for package in packages:
        if not find_spec(package):
            pytest.skip(f"{package} is not installed")


# ---- tools of their own --------------------------------------------------------------------


def test_flaml_searches_with_keys():
    skip_without("flaml", "lightgbm")
    program = reports.script("flaml").replace("max_iter=100", "max_iter=25")
    check(reports.run(program), least=10, quality=0.1)


# the recipe up to its last call, and then a guard that halts, which is asked without keys
HALTS = """
from radabound_fast import RadaBound

for withheld in ("raise", "stop", "worst"):
    guard = RadaBound(y_holdout, epsilon=0.06, delta=0.1, bound="mclt", seed=0)
    metric, automl, ended = HoldoutMetric(guard, withheld=withheld), AutoML(), "to the end"
    try:
        automl.fit(
            X, y, X_val=X_holdout, y_val=y_holdout, metric=error, task="classification",
            estimator_list=["extra_tree"], max_iter=25, time_budget=-1, seed=0, verbose=0,
            custom_hp={"extra_tree": {
                name: {"domain": tune.choice(values), "init_value": values[0]}
                for name, values in grid.items()
            }},
            sample=False, retrain_full=False,
        )
    except BaseException as stop:
        ended = type(stop).__name__
    best = automl.best_loss < 0.2 and sorted(automl.best_config) == sorted(grid)
    print(withheld, ended, guard.halted, best)
"""


def test_a_halt_in_flaml_is_what_the_table_says():
    skip_without("flaml", "lightgbm")
    recipe = (
        reports.recipe("flaml").partition("automl = AutoML()")[0].replace(", key=others[5]", "")
    )
    assert reports.run(reports.program(recipe + HALTS)).splitlines() == [
        "raise HoldoutExhausted True True",
        "stop KeyboardInterrupt True True",
        "worst to the end True True",
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("tool", "least", "quality"),
    [
        ("tpot", 10, 0.1),
        ("mljar", 3, 0.1),
        ("autogluon", 5, 0.1),
        ("hyperopt", 10, 0.1),
        ("nevergrad", 10, 0.1),
        ("smac", 10, 0.1),
    ],
)
def test_a_tool_with_a_virtual_environment_of_its_own(tool, least, quality):
    module, requirements, _ = reports.TOOLS[tool]
    check(
        reports.run(reports.script(tool), reports.python_with(module, requirements)), least, quality
    )


# the network that is left is the one that was judged at the best epoch of the last parameters
NETWORKS = {
    "Keras": (["keras", "torch"], "model.predict(X_holdout, verbose=0).argmax(axis=1)"),
    "Lightning": (
        ["lightning"], "network.eval()(torch.tensor(X_holdout)).argmax(dim=1).numpy()"),
    "Hugging Face Trainer": (
        ["transformers", "accelerate"], "trainer.predict(held_out).predictions.argmax(axis=1)"),
}  # fmt: skip
BEFORE_NETWORKS = """
import logging, os, warnings
os.environ |= {"KERAS_BACKEND": "torch", "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
logging.disable(logging.WARNING)
warnings.simplefilter("ignore")
global X, X_holdout
X, X_holdout = (part.astype(np.float32) / 16 for part in (X, X_holdout))
folder = "checkpoints"
"""
AFTER_NETWORKS = """
asked = [answer for answer in declared.answers if answer.key[0] == params]
declared.query = lambda *_, **options: asked[0]  # the holdout may be predicted once more
print(np.mean({y_pred} != y_holdout) == min(answer.value for answer in asked))
print(len(asked) < 20, len(declared.answers), len(list(grid)))
"""


@pytest.mark.slow
@pytest.mark.parametrize("tool", NETWORKS)
def test_a_network_is_stopped_and_left_as_it_was_judged(tool):
    packages, y_pred = NETWORKS[tool]
    skip_without(*packages)
    after = AFTER_NETWORKS.format(y_pred=y_pred)
    printed = reports.run(reports.script(f"neural-networks#{tool}", BEFORE_NETWORKS, after))
    check(printed, least=12, quality=0.15)
    same, stopped = printed.splitlines()[-2:]
    assert same == "True" and int(stopped.split()[1]) > 12


def test_every_picture_is_in_its_page():
    for tool, (_, _, picture) in reports.TOOLS.items():
        page = (reports.PAGES / f"{tool}.md").read_text(encoding="utf-8")
        assert picture is None or f"](../../images/{picture})" in page
        assert picture is None or (reports.IMAGES / picture).exists()


# ---- scikit-learn --------------------------------------------------------------------------


def test_grid_search_with_a_scorer():
    printed = reports.run(reports.script("scikit-learn-searches#GridSearchCV", after=AFTER_GRID))
    check(printed, least=6, quality=0.25)
    assert printed.splitlines()[-1] == "True"


AFTER_GRID = """
best = search.cv_results_["mean_test_score"].max()
print(abs(best - (1 - min(declared.answers.values))) < 1e-12)
"""


SHARED = """
grid = {"max_depth": [2, 4, 8], "min_samples_leaf": [1, 4]}
model = DecisionTreeClassifier(random_state=0)
"""
AFTER_SHARED = """
again = DecisionTreeClassifier(random_state=0, **found.best_params_).fit(X, y)
error = 1 - found.best_score_
print(hasattr(found, "best_estimator_"), low < error < high)
print(round(900 * error) == (again.predict(X_holdout) != y_holdout).sum())
try:
    declared.report()
except ValueError as error:
    print(error)
"""


def test_a_search_in_memory_is_scored_by_workers_and_names_what_keeps_their_answers():
    printed = reports.run(reports.script("../share-a-search", SHARED, AFTER_SHARED))
    first, same, error = printed.splitlines()
    assert first.split() == ["False", "True"] and same == "True"
    assert error.startswith("there is nothing to report") and "DeclaredSearch.open(path" in error


# ---- what a key leaves out -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "left_out"),
    [("flaml", "criterion"), ("scikit-learn-searches#GridSearchCV", "min_samples_leaf")],
)
def test_a_recipe_refuses_a_tuned_parameter_that_the_space_lacks(name, left_out):
    """The tool tunes all of the recipe's grid, and one parameter of it is not declared."""
    skip_without(*(["flaml", "lightgbm"] if name == "flaml" else []))
    text = reports.recipe(name)
    lesser = f"{{name: grid[name] for name in grid if name != {left_out!r}}}"
    text = re.sub(
        r"DeclaredSearch\(y_holdout, (?:space_of\(grid\)|grid), delta=0.1\)",
        f"DeclaredSearch(y_holdout, {lesser}, delta=0.1)",
        text,
    )
    assert lesser in text
    with pytest.raises(RuntimeError, match=f"key must (have the names|say all).*{left_out}"):
        reports.run(reports.program(text.replace("max_iter=100", "max_iter=9")))


def test_make_scorer_in_two_processes_is_one_guard():
    after = "print(guard.n_answered, guard.halted, search.best_score_ < 0)"
    assert reports.run(
        reports.script("scikit-learn-searches#make_scorer", after=after)
    ).split() == ["8", "False", "True"]


HALVING = """
from sklearn.experimental import enable_halving_search_cv
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.model_selection import HalvingGridSearchCV, PredefinedSplit
from radabound_fast import DeclaredSearch
from radabound_fast.integrations.metric import HoldoutMetric

grid = {"max_depth": [2, 4, 8], "criterion": ["gini", "entropy"]}
space = grid | {"n_estimators": range(1, 28)}
split = PredefinedSplit(np.repeat([-1, 0], [len(y), len(y_holdout)]))
rows = np.vstack([X, X_holdout]), np.append(y, y_holdout)
for resource in ({"resource": "n_estimators", "min_resources": 3, "max_resources": 27}, {}):
    declared = DeclaredSearch(y_holdout, space, delta=0.1)
    search = HalvingGridSearchCV(
        ExtraTreesClassifier(random_state=0), grid, cv=split, refit=False, error_score="raise",
        scoring=HoldoutMetric(declared).scorer(), return_train_score=False, **resource,
    )
    try:
        search.fit(*rows)
        keys = [key["n_estimators"] for key in declared.answers.keys]
        print(len(keys), sorted(set(keys)) == sorted(search.n_resources_))
    except ValueError as error:
        print(error, declared.n_answered)
"""


def test_halving_asks_on_every_rung_and_by_samples_it_is_refused():
    told, refused = reports.run(reports.program(HALVING)).splitlines()
    n_asked, rungs = told.split()
    assert int(n_asked) > 6 and rungs == "True"
    assert refused.startswith("y_true must be the holdout's labels") and refused.endswith(" 0")


AFTER_PRUNING = """
states = [trial.state.name for trial in study.trials]
print(states.count("PRUNED") > 5, states.count("COMPLETE") > 2, study.best_value < 0.2)
epochs = [epoch for _, epoch in declared.answers.keys]
print(declared.n_answered == len(epochs), max(epochs) == 14)
"""
AFTER_OBJECTIVES = """
print(len(study.best_trials) > 1, min(trial.values[0] for trial in study.trials) < 0.3)
print(declared.n_answered == len({tuple(trial.params.values()) for trial in study.trials}))
print(all(trial.user_attrs["holdout_low"] <= trial.values[0] <= trial.user_attrs["holdout_high"]
          for trial in study.trials))
"""


@pytest.mark.parametrize(
    ("recipe", "after"),
    [
        ("optuna#Prune trials by their epochs", AFTER_PRUNING),
        ("optuna#Several objectives", AFTER_OBJECTIVES),
    ],
)
def test_a_study_that_prunes_or_has_several_objectives(recipe, after):
    skip_without("optuna")
    quiet = "import optuna\noptuna.logging.set_verbosity(optuna.logging.ERROR)\n"
    told = reports.run(reports.script(recipe, quiet, after)).split()
    assert "False" not in told and told.count("True") >= 4


AFTER_CATBOOST = """
print((best.predict(X_holdout).ravel() != y_holdout).mean() == declared.best.value)
print(best.tree_count_ == epoch + 1, declared.n_answered)
"""


@pytest.mark.slow  # CatBoost is 100 MB
def test_catboost_is_asked_about_its_rounds_after_training():
    skip_without("catboost")
    printed = reports.run(reports.script("boosting#CatBoost", after=AFTER_CATBOOST))
    check(printed, least=30, quality=0.15)
    assert printed.splitlines()[-2:] == ["True", "True 36"]


# ---- studies and clusters ------------------------------------------------------------------

OPTUNA_BEFORE = """
import optuna
from optuna.storages import GrpcStorageProxy, JournalStorage
from optuna.storages.journal import JournalFileBackend

optuna.logging.set_verbosity(optuna.logging.ERROR)
range_of_depths = {"max_depth": [4, 5, 6, 7, 8]}

def suggest(trial):
    depth = trial.suggest_int("max_depth", 4, 8)
    return DecisionTreeClassifier(max_depth=depth, random_state=0).fit(X, y).predict(X_holdout)

storage = STORAGE
"""
OPTUNA_AFTER = "print(len(study.trials), declared.n_answered, len(declared.answers.keys))"
OPTUNA_PAGE = "optuna#Optuna in several processes"

WORKERS = """
import subprocess, sys, time
from pathlib import Path

PORT = int(sys.argv[1])
if PORT:
    served = subprocess.Popen([sys.executable, "served.py", str(PORT)])
    import grpc
    grpc.channel_ready_future(grpc.insecure_channel(f"localhost:{PORT}")).result(timeout=60)
subprocess.run([sys.executable, "once.py"], check=True)
workers = [subprocess.Popen([sys.executable, "worker.py"], stdout=subprocess.PIPE, text=True)
           for _ in range(2)]
print([worker.communicate()[0].split() for worker in workers])
if PORT:
    served.terminate()
"""


def free_port():
    with socket.socket() as one:
        one.bind(("localhost", 0))
        return one.getsockname()[1]


JOURNAL = 'JournalStorage(JournalFileBackend("journal.log"))'
STORAGES = {
    "journal": JOURNAL,
    "grpc": 'GrpcStorageProxy(host="localhost", port=PORT)',
    "rdb": '"sqlite:///study.db"',
}


@pytest.mark.parametrize("kind", STORAGES)
def test_processes_share_an_optuna_study_and_one_record(kind, tmp_path):
    skip_without("optuna", *(["grpc"] if kind == "grpc" else []))
    port = free_port() if kind == "grpc" else 0
    storage = STORAGES[kind].replace("PORT", str(port))
    before = OPTUNA_BEFORE.replace("STORAGE", storage)
    (tmp_path / "once.py").write_text(reports.script(OPTUNA_PAGE, before, ""))
    (tmp_path / "worker.py").write_text(reports.script(f"{OPTUNA_PAGE}#2", before, OPTUNA_AFTER))
    (tmp_path / "served.py").write_text(
        "import sys\nfrom optuna.storages import JournalStorage, run_grpc_proxy_server\n"
        "from optuna.storages.journal import JournalFileBackend\n"
        f"run_grpc_proxy_server({JOURNAL}, host='localhost', port=int(sys.argv[1]))\n"
    )
    (tmp_path / "all.py").write_text(WORKERS)
    done = subprocess.run(
        [sys.executable, "all.py", str(port)],
        capture_output=True,
        text=True,
        timeout=300,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    counts = re.findall(r"'(\d+)', '(\d+)', '(\d+)'", done.stdout)
    assert len(counts) == 2, done.stdout + done.stderr
    # of the process that ended last
    n_trials, n_queries, n_keys = max([int(count) for count in told] for told in counts)
    assert n_trials == 10 and n_queries == n_keys
    assert 1 <= n_queries <= 5  # depths; the same one again is no other query


@pytest.mark.slow  # a cluster of two
@pytest.mark.parametrize("recipe", ["ray-tune", "ray-tune#Continuous parameters"])
def test_ray_tune_asks_with_its_configurations(recipe, tmp_path):
    skip_without("ray", "tensorboardX")
    before = (
        "import ray\nray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)\n"
        f"path = {str(tmp_path / 'ray.db')!r}\n"
    )
    after = "print(declared.n_answered)\nray.shutdown()"
    printed = reports.run(reports.script(recipe, before, after), timeout=300)
    check(printed, least=2, quality=0.5)
