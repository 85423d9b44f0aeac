"""Predictions lie in many files: one command judges them all, and later goes on with new ones."""

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

rng = np.random.default_rng(0)
y_true = rng.integers(0, 2, 2000)
with tempfile.TemporaryDirectory() as folder:
    models = Path(folder, "models")
    models.mkdir()
    np.save(Path(folder, "y.npy"), y_true)
    audit = [sys.executable, "-m", "radabound_fast", "audit", "--delta", "0.1"]
    audit += ["--space-size", "1e6", "--labels", f"{folder}/y.npy", "--predictions", str(models)]
    for day in (1, 2):  # each day adds a file of 50 models
        wrong = rng.random((50, 2000)) < 0.2
        np.save(models / f"day-{day}.npy", np.where(wrong, 1 - y_true, y_true))
        subprocess.run([*audit, "--state", f"{folder}/search.db"], check=True)
