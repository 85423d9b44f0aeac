"""Run the AutoML recipes of docs/how-to/tools/ on 900 held-out digits, and make their pictures.

    python docs/make/automl_reports.py [tool ...]

A tool that is not installed beside this package gets a virtual environment of its own, in
build/automl, which takes minutes once.
"""

import re
import subprocess
import sys
import tempfile
import textwrap
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES, IMAGES, BUILD = ROOT / "docs/how-to/tools", ROOT / "docs/images", ROOT / "build/automl"

# the page of a recipe: what it imports, what installs that, and its picture
TOOLS = {
    "flaml": ("flaml", ["flaml[automl]"], "report_flaml.png"),
    "tpot": ("tpot", ["tpot"], "report_tpot.png"),
    "mljar": ("supervised", ["mljar-supervised"], None),
    "hyperopt": ("hyperopt", ["hyperopt", "scikit-learn"], None),
    "nevergrad": ("nevergrad", ["nevergrad", "scikit-learn"], None),
    "smac": ("smac", ["smac", "ConfigSpace"], None),
    "autogluon": ("autogluon", ["autogluon.tabular"], "report_autogluon.png"),
}

DATA = """
import sys

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.tree import DecisionTreeClassifier

from radabound_fast import Holdout

X, y = load_digits(return_X_y=True)
X, X_holdout, y, y_holdout = train_test_split(X, y, test_size=900, random_state=0)
"""

# tools start processes, which load this file once more
PROGRAM = """{data}

def main():
{body}

if __name__ == "__main__":
    main()
"""

AFTER = """
if len(sys.argv) > 1:
    declared.report().plot().savefig(sys.argv[1])
"""


def recipes(name):
    """Return the programs of a page, or of a section of it: ``"optuna#In processes"``."""
    page, _, heading = name.partition("#")
    text = (PAGES / f"{page}.md").read_text("utf-8")
    if heading:
        text = text.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    return re.findall(r"^```python\n(?!>>>)(.*?)^```", text, re.S | re.M)


def recipe(name):
    """Return the first program of a page or a section, or the n-th: ``"optuna#In processes#2"``."""
    place, _, nth = name.rpartition("#")
    return recipes(place)[int(nth) - 1] if nth.isdecimal() else recipes(name)[0]


def program(body):
    """Return a program that loads the data and runs a recipe."""
    return PROGRAM.format(data=DATA, body=textwrap.indent(body, "    "))


def script(name, before="", after=AFTER):
    """Return a program that runs a recipe, with what comes before and after it."""
    return program(before + recipe(name) + after)


def python_with(module, requirements):
    """An interpreter that has the tool and this package."""
    if find_spec(module):
        return sys.executable
    python = BUILD / module / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(python.parents[1])], check=True)
        wanted = [*requirements, f"{ROOT}[plot]"]
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", *wanted], check=True)
    return str(python)


def run(text, python=sys.executable, arguments=(), timeout=900):
    """What the text of a program prints, in a folder of its own."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "recipe.py"
        path.write_text(text)
        done = subprocess.run(
            [python, str(path), *arguments],
            capture_output=True,
            text=True,
            timeout=timeout,
            cwd=folder,
        )
    if done.returncode:
        raise RuntimeError(done.stderr)
    return done.stdout


def main(*tools):
    for tool in tools or TOOLS:
        module, requirements, picture = TOOLS[tool]
        arguments = [str(IMAGES / picture)] if picture else []
        print(f"{tool}:", run(script(tool), python_with(module, requirements), arguments))


if __name__ == "__main__":
    main(*sys.argv[1:])
