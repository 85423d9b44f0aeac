"""mypy --strict finds nothing, and each compiled module is what its .pyi says."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CONFIG = str(ROOT / "pyproject.toml")

pytestmark = pytest.mark.source


def run(*command):
    return subprocess.run(
        [sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True, check=False
    )


def test_mypy_strict_is_clean():
    done = run("mypy", "--config-file", CONFIG)
    assert done.returncode == 0, done.stdout


@pytest.mark.thorough
def test_compiled_modules_match_their_stubs():
    done = run("mypy.stubtest", "radabound_fast._kernels", "--mypy-config-file", CONFIG)
    assert done.returncode == 0, done.stdout


def test_ruff_is_clean():
    done = run("ruff", "check")
    assert done.returncode == 0, done.stdout
