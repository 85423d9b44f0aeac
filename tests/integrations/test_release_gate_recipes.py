"""The recipes of `examples/release_gate`: their commands are run, with secrets of a test."""

from __future__ import annotations

import base64
import gzip
import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from radabound_fast import Gate

RECIPES = Path(__file__).parents[2] / "examples" / "release_gate"
RNG = np.random.default_rng(2)
Y = RNG.integers(0, 2, 1000)
PRODUCTION = Y ^ (RNG.random(1000) < 0.3)
CANDIDATES = {True: Y ^ (RNG.random(1000) < 0.1), False: Y ^ (RNG.random(1000) < 0.3)}

pytestmark = pytest.mark.source


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with a gate, whose commands find this Python's."""
    monkeypatch.chdir(tmp_path)
    np.save("labels.npy", Y)
    for name in ("GATE", "LABELS"):
        monkeypatch.setenv(
            name, str(tmp_path / {"GATE": "release.db", "LABELS": "labels.npy"}[name])
        )
    Gate.open("release.db", Y, baseline=PRODUCTION)
    command = tmp_path / "bin" / "radabound"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m radabound_fast "$@"\n')
    command.chmod(0o755)
    monkeypatch.setenv("PATH", f"{command.parent}{os.pathsep}{os.environ['PATH']}")
    return tmp_path


def recipe(name: str) -> Any:
    return pytest.importorskip("yaml").safe_load((RECIPES / name).read_text())


def bash(script: str) -> int:
    return subprocess.run(["bash", "-e", "-c", script], capture_output=True).returncode


@pytest.mark.parametrize("passes", CANDIDATES)
def test_github(folder: Path, monkeypatch: pytest.MonkeyPatch, passes: bool) -> None:
    steps = recipe("github.yml")["jobs"]["gate"]["steps"]
    (script,) = (step["run"] for step in steps if step.get("name") == "Ask the gate")
    packed = base64.b64encode(gzip.compress(Path("labels.npy").read_bytes())).decode()
    Path("labels.npy").unlink()
    monkeypatch.setenv("LABELS", packed)
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(folder / "summary.md"))
    np.save("candidate.npy", CANDIDATES[passes])
    assert bash(script) == (0 if passes else 1)
    assert Path("gate.xml").exists()
    assert ("Passed" if passes else "Not passed") in Path("summary.md").read_text()


def test_the_workflow_is_sound(tmp_path: Path) -> None:
    workflows = tmp_path / ".github" / "workflows"
    workflows.mkdir(parents=True)
    shutil.copy(RECIPES / "github.yml", workflows)
    for command in (["actionlint", str(workflows / "github.yml")], ["zizmor", "--offline", "."]):
        found = Path(sys.executable).with_name(command[0])
        if not found.exists():
            pytest.skip(f"{command[0]} is not installed")
        done = subprocess.run([found, *command[1:]], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("passes", CANDIDATES)
def test_gitlab(folder: Path, monkeypatch: pytest.MonkeyPatch, passes: bool) -> None:
    *_, copy, ask = recipe("gitlab-ci.yml")["release gate"]["script"]
    monkeypatch.setenv("GATE_FOLDER", str(folder))
    shutil.copy("labels.npy", "secret")
    monkeypatch.setenv("LABELS", str(folder / "secret"))
    np.save("candidate.npy", CANDIDATES[passes])
    assert bash(f"{copy}\n{ask}") == (0 if passes else 1)
    assert Path("gate.xml").exists()


@pytest.mark.parametrize("passes", CANDIDATES)
def test_pre_commit(folder: Path, passes: bool) -> None:
    ((hook,),) = (repo["hooks"] for repo in recipe("pre-commit-config.yaml")["repos"])
    np.save("predictions.npy", CANDIDATES[passes])
    assert bash(hook["entry"]) == (0 if passes else 1)


@pytest.mark.parametrize("passes", CANDIDATES)
@pytest.mark.thorough
def test_pytest(folder: Path, passes: bool) -> None:
    shutil.copy(RECIPES / "test_release.py", folder)
    np.save("predictions.npy", CANDIDATES[passes])
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_release.py"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == (0 if passes else 1)
    assert passes or "did not pass: these rows do not prove" in done.stdout


@pytest.mark.filterwarnings("default")  # MLflow has its own
@pytest.mark.thorough
def test_mlflow(folder: Path) -> None:
    mlflow = pytest.importorskip("mlflow", reason="mlflow is not installed")
    spec = importlib.util.spec_from_file_location("promote_mlflow", RECIPES / "promote_mlflow.py")
    assert spec is not None and spec.loader is not None
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    mlflow.set_tracking_uri(f"sqlite:///{folder / 'mlflow.db'}")

    class Fixed(mlflow.pyfunc.PythonModel):  # type: ignore[misc, name-defined, unused-ignore]
        def __init__(self, y_pred: Any) -> None:
            self.y_pred = y_pred

        def predict(self, context, model_input, params=None):  # type: ignore[no-untyped-def]
            return self.y_pred

    rows = np.zeros((1000, 1))
    client = mlflow.MlflowClient()
    for version, passes in enumerate((False, True), 1):
        with mlflow.start_run():
            mlflow.pyfunc.log_model(
                name="model", python_model=Fixed(CANDIDATES[passes]), registered_model_name="m"
            )
        assert example.promote("m", str(version), rows, Y, "release.db") == passes
        told = client.get_model_version("m", str(version)).tags["release_gate"]
        assert told == ("pass" if passes else "fail")
    assert client.get_model_version_by_alias("m", "production").version in (2, "2")
