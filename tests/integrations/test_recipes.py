"""The recipes of docs/how-to/count-losses-elsewhere.md, run by the engines themselves."""

import os
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

pytestmark = [pytest.mark.source, pytest.mark.slow]

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "count-losses-elsewhere.md"

SAME = """
import numpy as np
from radabound_fast.guards.by_bound import guard_by_bound

def guards():
    return [guard_by_bound("{bound}", 1000, epsilon={epsilon}, delta=0.1, seed=0) for _ in "12"]

rng = np.random.default_rng(0)
LOSSES = (rng.random(1000) < 0.02) ^ (rng.random((10, 20, 1000)) < 0.1)
"""

COMPARED = """
there, here = guards()
answers, expected = query_many(there, given), here.query_many(LOSSES.reshape(-1, 1000))
assert answers.halted == expected.halted == {halts}
assert (answers.values == expected.values).all() and len(answers) == len(expected)
assert (there._core.progress() == here._core.progress()).all()
print("the same", len(answers))
"""

ENGINES = {
    "Ray": """
ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
given = [ray.put(block) for block in LOSSES]
{compared}
ray.shutdown()
""",
    "Dask": """
import dask.array as da
from distributed import Client
# over TCP everything that is sent is pickled, as between machines
client = Client(
    n_workers=2, threads_per_worker=1, processes=False, protocol="tcp://", dashboard_address=None
)
given = da.from_array(LOSSES.reshape(-1, 1000), chunks=(20, 500)).persist()
{compared}
client.close()
""",
    "Spark": """
from pyspark import SparkContext
context = SparkContext("local[2]", "recipe")
cuts = [(0, 448), (448, 960), (960, 1000)]
given = context.parallelize(
    [(i, a, block[:, a:b]) for i, block in enumerate(LOSSES) for a, b in cuts], 4
)
{compared}
context.stop()
""",
}


def recipe(engine):
    (code,) = re.findall(rf"## {engine}\n\n```python\n(.*?)```", PAGE.read_text(), re.S)
    return code


@pytest.mark.parametrize("engine", ENGINES)
def test_a_recipe_has_fifteen_lines_at_most(engine):
    assert 5 < len(recipe(engine).strip().splitlines()) <= 15


@pytest.mark.parametrize(
    ("bound", "epsilon", "halts"), [("mclt", 0.07, True), ("fixed-sequence", 0.07, False)]
)
@pytest.mark.parametrize("engine", ENGINES)
def test_a_recipe_gives_the_answers_of_one_process(engine, bound, epsilon, halts, tmp_path):
    package = {"Ray": "ray", "Dask": "distributed", "Spark": "pyspark"}[engine]
    if not find_spec(package):
        pytest.skip(f"{package} is not installed")
    if engine == "Spark" and not shutil.which("java"):
        pytest.skip("Spark needs a Java runtime")
    script = tmp_path / "recipe.py"
    compared = COMPARED.format(halts=halts)
    script.write_text(
        SAME.format(bound=bound, epsilon=epsilon)
        + recipe(engine)
        + ENGINES[engine].format(compared=compared)
    )
    done = subprocess.run(
        [sys.executable, str(script)],
        capture_output=True,
        text=True,
        timeout=300,
        cwd=tmp_path,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable},
    )
    assert done.returncode == 0, done.stderr
    assert "the same" in done.stdout
