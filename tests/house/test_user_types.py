"""A user's script under two type checkers: right as it is, and every misspelt name is found."""

import ast
import copy
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "every_guard.py"
# modules whose names are not ours
FOREIGN = ("np.", "rng.", "block.values.")

pytestmark = pytest.mark.skipif(not EXAMPLE.exists(), reason="examples are not beside the tests")


class Misspelling(ast.NodeTransformer):
    """After each statement one copy of it for each attribute of ours, with that one misspelt."""

    def __init__(self):
        self.n_copies = 0

    def visit_simple(self, statement):
        ours = [
            node
            for node in ast.walk(statement.value)
            if isinstance(node, ast.Attribute) and not ast.unparse(node).startswith(FOREIGN)
        ]
        copies = []
        for place in range(len(ours)):
            copied = copy.deepcopy(statement.value)
            node = [
                node
                for node in ast.walk(copied)
                if isinstance(node, ast.Attribute) and not ast.unparse(node).startswith(FOREIGN)
            ][place]
            node.attr += node.attr[-1]
            target = ast.Name(f"wrong_{self.n_copies}", ast.Store())
            copies.append(ast.Assign([target], copied, lineno=0))
            self.n_copies += 1
        return [statement, *copies]

    visit_Expr = visit_Assign = visit_simple


def misspelt(text):
    """The script with its misspelt statements, and the numbers of their lines."""
    transformer = Misspelling()
    found = ast.unparse(ast.fix_missing_locations(transformer.visit(ast.parse(text)))) + "\n"
    lines = [n for n, line in enumerate(found.splitlines(), 1) if "wrong_" in line]
    assert len(lines) == transformer.n_copies
    return found, lines


def mypy(path):
    command = [sys.executable, "-m", "mypy", "--strict", "--no-incremental", str(path)]
    found = subprocess.run(command, cwd=path.parent, capture_output=True, text=True, check=False)
    return [line for line in found.stdout.splitlines() if line.startswith(path.name + ":")]


def pyright(path):
    if shutil.which("pyright", path=str(Path(sys.executable).parent)) is None:
        pytest.skip("pyright is not installed")
    command = [sys.executable, "-m", "pyright", "--pythonpath", sys.executable, str(path)]
    found = subprocess.run(command, cwd=path.parent, capture_output=True, text=True, check=False)
    return re.findall(r"^.*:\d+:\d+ - error: .*$", found.stdout, re.M)


@pytest.mark.thorough
@pytest.mark.parametrize("checker", [mypy, pyright])
def test_a_script_is_right_and_its_misspelt_names_are_found(checker, tmp_path):
    right = EXAMPLE.read_text(encoding="utf-8")
    wrong, expected = misspelt(right)
    (tmp_path / "right.py").write_text(right)
    (tmp_path / "wrong.py").write_text(wrong)
    assert checker(tmp_path / "right.py") == []
    assert len(expected) > 30
    found = {int(re.search(r":(\d+):", error).group(1)) for error in checker(tmp_path / "wrong.py")}
    assert sorted(found) == expected
