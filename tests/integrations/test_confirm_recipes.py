"""The recipes of docs/how-to/tools/confirm.md, run by the tools themselves."""

import importlib.util
import re
from importlib.util import find_spec
from pathlib import Path

import pytest

pytestmark = [pytest.mark.source]

SCRIPT = Path(__file__).parents[2] / "docs" / "make" / "automl_reports.py"
if not SCRIPT.exists() or not find_spec("sklearn"):
    pytest.skip("needs docs/ and scikit-learn", allow_module_level=True)

spec = importlib.util.spec_from_file_location("automl_reports", SCRIPT)
reports = importlib.util.module_from_spec(spec)
spec.loader.exec_module(reports)

# what each imports, and what installs that where it is not beside this package
TOOLS = {
    "FLAML": ("flaml", None),
    "Optuna with pruning": ("optuna", None),
    "GridSearchCV with refit": ("sklearn", None),
    "LightGBM with early stopping": ("lightgbm", None),
    "XGBoost with early stopping": ("xgboost", None),
    "TPOT": ("tpot", ["tpot"]),
    "mljar-supervised": ("supervised", ["mljar-supervised"]),
    "AutoGluon": ("autogluon", ["autogluon.tabular"]),
    "CatBoost": ("catboost", ["catboost"]),
    "hyperopt": ("hyperopt", ["hyperopt"]),
    "SMAC3": ("smac", ["smac"]),
    "Ray Tune": ("ray", ["ray[tune]"]),
}
HERE = [name for name, (_, requirements) in TOOLS.items() if requirements is None]
ELSEWHERE = [name for name in TOOLS if name not in HERE]
NUMBER = r"(0(?:\.\d+)?)"
TOLD = rf"value={NUMBER}, low={NUMBER}, high={NUMBER}, number=1, .*search_value={NUMBER}"
AFTER = """
print(search.n_left(), int(search.confirmation_rows.sum()))
"""


def run(name, python=None):
    before = f"path = __import__('tempfile').mkdtemp()\n{reports.recipe('confirm')}"
    program = reports.script(f"confirm#{name}", before, AFTER)
    printed = reports.run(program, *([] if python is None else [python]))
    value, low, high, in_search = map(float, re.search(TOLD, printed).groups())
    assert low < value < high and value < 0.3 and in_search < 0.3
    assert printed.splitlines()[-1] == "0 450"


@pytest.mark.thorough
@pytest.mark.parametrize("name", HERE)
def test_a_tool_is_confirmed(name):
    pytest.importorskip(TOOLS[name][0])
    run(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", ELSEWHERE)
def test_a_tool_of_another_environment_is_confirmed(name):
    run(name, reports.python_with(*TOOLS[name]))


def test_every_recipe_is_run_and_adds_three_lines_at_most():
    """Of the split two lines, of the confirmation one."""
    text = (reports.PAGES / "confirm.md").read_text("utf-8")
    headings = re.findall(r"^## (.*)$", text, re.M)
    assert sorted(headings) == sorted(TOOLS)
    assert reports.recipe("confirm").count("\n") == 4  # an import, a blank line, and two
    for name in headings:
        recipe = reports.recipe(f"confirm#{name}")
        assert recipe.count("search.") == 1 and "search.confirm(" in recipe.splitlines()[-1]
        assert "y_holdout" not in recipe
