"""Runs the AutoML recipes of docs/integrations.md on 900 held-out digits, and makes their pictures.

    python docs/automl_reports.py [tool ...]

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

ROOT = Path(__file__).parents[1]
PAGE, IMAGES, BUILD = ROOT / "docs/integrations.md", ROOT / "docs/images", ROOT / "build/automl"

# the heading of a recipe: what it imports, what installs that, and the picture in the page
TOOLS = {
    "FLAML": ("flaml", ["flaml[automl]"], "report_flaml.png"),
    "TPOT": ("tpot", ["tpot"], "report_tpot.png"),
    "mljar-supervised": ("supervised", ["mljar-supervised"], None),
    "AutoGluon": ("autogluon", ["autogluon.tabular"], "report_autogluon.png"),
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
{shared}

def main():
{body}

if __name__ == "__main__":
    main()
"""

AFTER = """
if len(sys.argv) > 1:
    declared.report().plot().savefig(sys.argv[1])
"""


def recipe(heading):
    """The code below a heading of the page."""
    (code,) = re.findall(rf"^### {heading}\n\n```python\n(.*?)```", PAGE.read_text(), re.S | re.M)
    return code


def shared():
    """What all recipes import."""
    (code,) = re.findall(r"and this:\n\n```python\n(.*?)```", PAGE.read_text(), re.S)
    return code


def program(body):
    """One that finds the data, and what all recipes import."""
    return PROGRAM.format(data=DATA, shared=shared(), body=textwrap.indent(body, "    "))


def script(heading, before="", after=AFTER):
    """A program that runs a recipe, with what comes before and after it."""
    return program(before + recipe(heading) + after)


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
