"""The recipes of docs/how-to/tools/ for Ray, Dask and Spark, run by the engines themselves.

A worker is killed in each: the answers are those of one process all the same.
"""

import os
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

pytestmark = [pytest.mark.source, pytest.mark.slow]

PAGES = Path(__file__).parents[2] / "docs" / "how-to" / "tools"
PACKAGES = {"ray": "ray", "dask": "distributed", "spark": "pyspark"}

# what every recipe's script begins with; a worker that comes to DEADLY for the first time dies
MODELS = """
import os, signal
import numpy as np
from radabound_fast import DeclaredSearch
from radabound_fast.guards.by_bound import guard_by_bound

M, N_MODELS, DEADLY, KILLED = 1000, 500, 321, {killed!r}
y_holdout = np.random.default_rng(0).integers(0, 2, M)
n_models = N_MODELS

def dies():
    if not os.path.exists(KILLED):
        open(KILLED, "w").close()
        os.kill(os.getpid(), signal.SIGKILL)

def predict(key):
    if key == DEADLY:
        dies()
    return y_holdout ^ (np.random.default_rng(key).random(M) < 0.1 + 0.1 * (key % 7))

def expected(n_best=10):
    search = DeclaredSearch(y_holdout, N_MODELS, delta=0.1, n_best=n_best)
    everything = DeclaredSearch(y_holdout, N_MODELS, delta=0.1)
    rows = np.stack([predict(key) for key in range(N_MODELS)])
    search.query_many(rows, keys=range(N_MODELS))
    assert everything.query_many(rows, keys=range(N_MODELS)).best.high == search.best.high
    return search

def compare(search):
    assert os.path.exists(KILLED), "no worker was killed"
    here = expected()
    assert str(search.report()) == str(here.report())
    assert search.report().to_json() == here.report().to_json()
    assert search.n_answered == N_MODELS
    print("the same", search.best.key)

def guards():
    return [guard_by_bound("{bound}", M, epsilon={epsilon}, delta=0.1, seed=0) for _ in "12"]

rng = np.random.default_rng(0)
LOSSES = (rng.random(M) < 0.02) ^ (rng.random((10, 20, M)) < 0.1)

def compare_in_order(query_many, given):
    there, here = guards()
    answers, in_order = query_many(there, given), here.query_many(LOSSES.reshape(-1, M))
    assert answers.halted == in_order.halted == {halts}
    assert (answers.values == in_order.values).all() and len(answers) == len(in_order)
    assert (there._core.progress() == here._core.progress()).all()
    print("the same", len(answers))
"""

START = {
    "ray": """
ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
""",
    "dask": """
import dask
from distributed import Client

dask.config.set({"distributed.scheduler.allowed-failures": 5})

def started():
    return Client(n_workers=2, threads_per_worker=1, dashboard_address=None)
""",
    "spark": """
from pyspark.sql import SparkSession

# two executors' worth of threads in one JVM; Python workers are processes, and a task has 4 tries
session = SparkSession.builder.master("local[2,4]").config("spark.ui.enabled", False)
session = session.config("spark.sql.execution.arrow.maxRecordsPerBatch", 50).getOrCreate()
session.sparkContext.setLogLevel("OFF")
""",
}
DECLARED = {
    "ray": "compare(search_all(y_holdout, N_MODELS, n_a_block=50))",
    "dask": """
if __name__ == "__main__":
    with started() as client:
        compare(search_all(client, y_holdout, N_MODELS, n_a_block=50))
""",
    # a shuffle puts the models into an order of its own; the worker dies at its second batch
    "spark": """
keys = session.range(N_MODELS).repartition(7)

def predicted(batches):
    for batch in batches:
        rows = [predict(key).astype("int8") for key in batch.column("id").to_pylist()]
        yield pa.RecordBatch.from_pydict({"key": batch.column("id"), "y_pred": rows})

compare(search_all(keys.mapInArrow(predicted, "key long, y_pred array<byte>"), y_holdout, N_MODELS))
""",
}
LONG_FORM = """
import pandas as pd

open(KILLED, "w").close()  # nobody is killed here
rows = np.stack([predict(key) for key in range(N_MODELS)])

labels = session.createDataFrame(pd.DataFrame({"row": range(M), "y_true": y_holdout}))
long = pd.DataFrame(
    {"key": np.repeat(np.arange(N_MODELS), M), "row": np.tile(np.arange(M), N_MODELS),
     "y_pred": rows.ravel()}
)
compare(search_counts(session.createDataFrame(long), labels, y_holdout, N_MODELS))
"""
IN_ORDER = {
    "ray": """
compare_in_order(query_many, [ray.put(block) for block in LOSSES])
""",
    "dask": """
import dask.array as da

if __name__ == "__main__":
    with started():
        given = da.from_array(LOSSES.reshape(-1, M), chunks=(20, 500)).persist()
        compare_in_order(query_many, given)
""",
    "spark": """
cuts = [(0, 448), (448, 960), (960, M)]
shards = [
    (i, np.arange(20 * i, 20 * i + 20), a, block[:, a:b])
    for i, block in enumerate(LOSSES) for a, b in cuts
]
np.random.default_rng(1).shuffle(shards)
compare_in_order(query_many, session.sparkContext.parallelize(shards, 4))
""",
}


def recipes(engine):
    """The blocks of code of a page, but for the line that is left to the reader."""
    text = (PAGES / f"{engine}.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, re.S)
    return [re.sub(r"^print\(search_all.*\n", "", block, flags=re.M) for block in blocks]


def run(engine, tmp_path, script, *, bound="mclt", epsilon=0.07, halts=True):
    if not find_spec(PACKAGES[engine]):
        pytest.skip(f"{PACKAGES[engine]} is not installed")
    if engine == "spark" and not shutil.which("java"):
        pytest.skip("Spark needs a Java runtime")
    path = tmp_path / "recipe.py"
    killed = str(tmp_path / "killed")
    models = MODELS.format(killed=killed, bound=bound, epsilon=epsilon, halts=halts)
    path.write_text(models + "\n".join(recipes(engine)) + START[engine] + script)
    done = subprocess.run(
        [sys.executable, str(path)],
        capture_output=True,
        text=True,
        timeout=400,
        cwd=tmp_path,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable, "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0"},
    )
    assert done.returncode == 0, done.stderr
    assert "the same" in done.stdout


@pytest.mark.parametrize("engine", PACKAGES)
def test_a_recipe_is_short(engine):
    assert all(5 < len(code.strip().splitlines()) <= 24 for code in recipes(engine))


@pytest.mark.parametrize("engine", PACKAGES)
def test_a_declared_space_is_searched_although_a_worker_is_killed(engine, tmp_path):
    run(engine, tmp_path, DECLARED[engine])


@pytest.mark.parametrize(
    ("bound", "epsilon", "halts"), [("mclt", 0.07, True), ("fixed-sequence", 0.07, False)]
)
@pytest.mark.parametrize("engine", PACKAGES)
def test_a_fixed_order_gives_the_answers_of_one_process(engine, bound, epsilon, halts, tmp_path):
    run(engine, tmp_path, IN_ORDER[engine], bound=bound, epsilon=epsilon, halts=halts)


def test_spark_counts_the_long_form_itself(tmp_path):
    run("spark", tmp_path, LONG_FORM)
