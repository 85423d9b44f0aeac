"""Trackers get the interval of every trial and the report, and nothing else."""

import importlib.util
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from radabound_fast import DeclaredSearch, RadaBound
from radabound_fast.integrations import tensorboard
from radabound_fast.spaces import Choice

SCRIPT = Path(__file__).parents[2] / "docs" / "make" / "automl_reports.py"
M = 400
Y = np.arange(M) % 2


class Writer:
    """What is written, by tag and step."""

    def __init__(self):
        self.scalars, self.texts = {}, {}

    def add_scalar(self, tag, value, step):
        self.scalars.setdefault(tag, {})[step] = value

    def add_text(self, tag, text):
        self.texts[tag] = text


TAGS = [f"holdout/{name}" for name in ("value", "low", "high", "half_width")]


def flipped(n):
    return np.where(np.arange(M) < n, 1 - Y, Y)


@pytest.mark.parametrize("baseline", [None, flipped(90)], ids=["alone", "baseline"])
def test_every_answer_is_a_step(baseline):
    search = DeclaredSearch(Y, 20, delta=0.1, baseline=baseline)
    search.query_many([flipped(20 * n) for n in range(5)], keys=range(5))
    writer = Writer()
    tensorboard.log_answers(writer, search.answers)
    gains = [f"holdout/{name}" for name in ("gain", "gain_low", "gain_high")]
    assert list(writer.scalars) == TAGS + (gains if baseline is not None else [])
    for tag, steps in writer.scalars.items():
        expected = {
            one.number: getattr(one, tag.removeprefix("holdout/")) for one in search.answers
        }
        assert steps == expected and list(steps) == [1, 2, 3, 4, 5]
    tensorboard.log_report(writer, search.report())
    (told,) = writer.texts.values()
    assert str(search.report()) in told and "| key |" in told


def test_answers_of_a_guard_that_halts_say_nothing_of_its_complexity():
    guard = RadaBound(Y, epsilon=0.4, delta=0.1, bound="mclt", seed=0)
    writer = Writer()
    tensorboard.log_answers(writer, guard.query_many([flipped(n) for n in (10, 50)]))
    assert list(writer.scalars) == TAGS


@pytest.mark.skipif(not find_spec("optuna"), reason="optuna is not installed")
@pytest.mark.parametrize("kind", ["search", "halting"])
def test_a_study_logs_the_trials_that_were_answered(kind):
    import optuna

    from radabound_fast.integrations.optuna import guarded_objective

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    if kind == "search":
        guard = DeclaredSearch(Y, {"n": range(0, 400, 20)}, delta=0.1)
    else:
        guard = RadaBound(Y, epsilon=0.105, delta=0.1, bound="mclt", seed=0)
    study, writer = optuna.create_study(), Writer()
    for n in range(0, 360, 30):  # the same trials in every run: when a guard halts depends on them
        study.enqueue_trial({"n": n // 20 * 20})

    def fit_predict(trial):
        if trial.number == 2:
            raise optuna.TrialPruned
        return flipped(trial.suggest_int("n", 0, 380, step=20))

    objective = guarded_objective(guard, fit_predict)
    study.optimize(objective, n_trials=12, callbacks=[tensorboard.log_trial(writer)])
    assert guard.halted == (kind == "halting") and guard.n_answered > 1
    assert list(writer.scalars) == TAGS
    for tag, steps in writer.scalars.items():
        name = tag.removeprefix("holdout/")
        assert steps == {number: getattr(answer, name) for number, answer in objective.answers}


def test_a_trial_of_another_study_logs_nothing():
    writer = Writer()
    for trial in (
        SimpleNamespace(values=[0.3], number=1, user_attrs={}),
        SimpleNamespace(values=None, number=1, user_attrs={"holdout_number": 1}),
    ):
        tensorboard.log_trial(writer)(None, trial)
    assert writer.scalars == {}


def test_markdown_of_a_report_has_no_html_and_no_cell_too_many():
    search = DeclaredSearch(M, Choice(["<b>|x|</b>", "plain"]), delta=0.1)
    search.query_many(np.zeros((2, M), bool), keys=list(search.space))
    card = search.report().to_markdown()
    rows = [line for line in card.splitlines() if line.startswith("|")]
    assert len(rows) == 4 and {row.count("|") for row in rows} == {rows[0].count("|")}
    assert "<b>" not in card and "&lt;b&gt;&#124;x" in card
    assert card.startswith("The best of 2 models") and search.guarantee in card


# ---- the recipes, by the trackers themselves -----------------------------------------------------

BEFORE = """
import json, os
import optuna
os.environ |= {"WANDB_SILENT": "true", "MPLBACKEND": "agg"}
from radabound_fast import DeclaredSearch
from radabound_fast.integrations.optuna import guarded_objective
from radabound_fast.integrations.sklearn import HoldoutSearchCV

optuna.logging.set_verbosity(optuna.logging.ERROR)
grid = {"max_depth": list(range(1, 9)), "max_features": [4, 16, 64]}
declared = DeclaredSearch(y_holdout, grid, delta=0.1)
other = DeclaredSearch(y_holdout, grid, delta=0.1)
tree = DecisionTreeClassifier(random_state=0)
study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))

def fit_predict(trial):
    params = {name: trial.suggest_categorical(name, grid[name]) for name in grid}
    return DecisionTreeClassifier(random_state=0, **params).fit(X, y).predict(X_holdout)

objective = guarded_objective(declared, fit_predict)
search = HoldoutSearchCV(tree, grid, guard=other).fit(X, y, X_holdout=X_holdout)
NAMES = ("value", "low", "high", "half_width")

def of_trials(name):
    return {number: getattr(answer, name) for number, answer in objective.answers}

def of_search(name):
    return {answer.number: getattr(answer, name) for answer in other.answers}
"""

RECIPES = {
    "MLflow": (
        ["mlflow", "sqlalchemy"],
        'import mlflow\nmlflow.set_tracking_uri("sqlite:///ml.db")\n',
        """
client = mlflow.MlflowClient()
runs = mlflow.search_runs(output_format="list", order_by=["attributes.start_time"])
""",
        """
for run, expected, report in zip(runs, (of_trials, of_search), (declared, other), strict=True):
    for name in NAMES:
        history = client.get_metric_history(run.info.run_id, "holdout_" + name)
        print({one.step: one.value for one in history} == expected(name))
    page = mlflow.artifacts.load_text(run.info.artifact_uri + "/holdout.html")
    told = json.loads(mlflow.artifacts.load_text(run.info.artifact_uri + "/holdout.json"))
    print(page == report.report().to_html(), len(told["answers"]) == report.n_answered)
    print(run.data.tags["holdout"] == str(report.report()))
""",
    ),
    "Weights & Biases": (
        ["wandb"],
        "",
        """
from pathlib import Path
from wandb.proto import wandb_internal_pb2

def records(path):
    # LevelDB's log: blocks of 32 KiB; a piece has a checksum, a length and a kind
    octets, place, parts = path.read_bytes(), 7, b""
    while place + 7 <= len(octets):
        if 2**15 - place % 2**15 < 7:
            place += 2**15 - place % 2**15
            continue
        length, kind = int.from_bytes(octets[place + 4 : place + 6], "little"), octets[place + 6]
        parts += octets[place + 7 : place + 7 + length]
        place += 7 + length
        if kind in (1, 4):  # a whole record, or the last of its pieces
            record = wandb_internal_pb2.Record()
            record.ParseFromString(parts)
            yield record
            parts = b""

found = sorted(Path("wandb").glob("offline-run-*/*.wandb"), key=lambda path: path.stat().st_mtime)
""",
        """
for path, expected in zip(found, (of_trials, of_search), strict=True):
    steps, kinds, summary = {name: {} for name in NAMES}, set(), {}
    for record in records(path):
        kinds.add(record.WhichOneof("record_type"))
        row = {item.key or item.nested_key[0]: json.loads(item.value_json)
               for item in record.history.item}
        summary |= {item.key: item.value_json for item in record.summary.update}
        for name in NAMES:
            if "holdout_" + name in row:
                steps[name][row["holdout_step"]] = row["holdout_" + name]
    print(all(steps[name] == expected(name) for name in NAMES))
    if expected is of_trials:
        sentence = json.loads(summary["holdout_sentence"])
        print("artifact" in kinds, sentence == str(declared.report()))
""",
    ),
    "TensorBoard": (
        ["torch", "tensorboard", "matplotlib"],
        "",
        """
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
""",
        """
for run, expected in (("flights", of_trials), ("grid", of_search)):
    read = EventAccumulator("runs/" + run).Reload()
    for name in NAMES:
        told = {one.step: one.value for one in read.Scalars("holdout/" + name)}
        expects = expected(name)
        print(told.keys() == expects.keys() and all(
            abs(told[step] - expects[step]) < 1e-6 for step in told))  # as float32
    if run == "flights":
        (text,) = read.Tensors("holdout/report/text_summary")
        print(str(declared.report()).encode() in text.tensor_proto.string_val[0])
        print(read.Images("holdout/report")[0].width > 300)
""",
    ),
    "Model cards": (
        ["skops", "huggingface_hub"],
        "study.optimize(objective, n_trials=20)\n",
        "",
        """
print(str(report)[:40] in card.render() and "Holdout evaluation" in card.render())
print(str(report)[:40] in hub_card.content and hub_card.data.license == "mit")
""",
    ),
}


@pytest.fixture(scope="module")
def reports():
    if not SCRIPT.exists():
        pytest.skip("needs docs/")
    spec = importlib.util.spec_from_file_location("automl_reports", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.source
@pytest.mark.slow  # the trackers are large
@pytest.mark.parametrize("tool", RECIPES)
def test_a_recipe_logs_every_trial_and_the_report(reports, tool):
    packages, before, read, after = RECIPES[tool]
    for package in ("optuna", "sklearn", *packages):
        if not find_spec(package):
            pytest.skip(f"{package} is not installed")
    text = "".join(reports.recipes(f"trackers#{tool}"))
    printed = reports.run(reports.program(BEFORE + before + text + read + after), timeout=300)
    told = [word for line in printed.splitlines() for word in line.split()]
    verdicts = [word for word in told if word in ("True", "False")]
    assert set(verdicts) == {"True"} and len(verdicts) >= 2, printed
