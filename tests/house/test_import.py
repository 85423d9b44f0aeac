"""A program waits for what it uses: nothing heavy is imported before it is asked for."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import radabound_fast

# not for a guard either: some are slow to import, some may be missing
HEAVY = {
    "argparse",
    "dask",
    "decimal",
    "fractions",
    "joblib",
    "json",
    "matplotlib",
    "optuna",
    "pandas",
    "polars",
    "pyarrow",
    "scipy",
    "sklearn",
    "sqlite3",
    "torch",
    "tqdm",
}

GUARD = """
from radabound_fast import RadaBound
RadaBound(1000, epsilon=0.2, delta=0.1, bound='bernstein').query([0.0] * 1000).low
"""
HOLDOUT = """
from radabound_fast import Holdout, RadaBound
RadaBound(Holdout([0, 1] * 500), epsilon=0.2, delta=0.1).query([0] * 1000).low
"""
SEQUENCE = """
from radabound_fast import FixedSequence
FixedSequence(1000, epsilon=0.2, delta=0.1).query([0.0] * 1000).low
"""
USES = [GUARD, SEQUENCE, HOLDOUT]


def loaded_after(statements):
    """The modules of a fresh interpreter."""
    code = f"{statements}\nimport sys\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


@pytest.fixture(scope="module")
def at_start():
    return loaded_after("")


def test_importing_loads_neither_numpy_nor_the_extension(at_start):
    loaded = loaded_after("import radabound_fast") - at_start
    assert {name for name in loaded if name.startswith("radabound_fast")} == {
        "radabound_fast",
    }
    assert not (HEAVY | {"numpy"}) & loaded


@pytest.mark.parametrize("use", USES, ids=["bernstein", "fixed-sequence", "holdout"])
def test_a_guard_that_answers_has_loaded_no_more_than_it_needs(use, at_start):
    loaded = loaded_after(use) - at_start
    assert {"numpy", "radabound_fast.guards.signed"} <= loaded
    assert not HEAVY & loaded
    assert (
        not {
            f"radabound_fast.{name}"
            for name in [
                "cli",
                "planning",
                "plots",
                "guards.report",
                "store",
                "spaces",
                "guards.ladder",
            ]
        }
        & loaded
    )


def test_the_public_names_are_there_and_in_the_stub():
    package, found = "radabound_fast", radabound_fast
    assert set(found.__all__) <= set(dir(found))
    for name in found.__all__:
        assert getattr(found, name).__doc__
    stub = ast.parse(Path(found.__file__).with_suffix(".pyi").read_text())
    homes = {
        alias.asname: f"{node.module}.{alias.name}"
        for node in ast.walk(stub)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert homes == {
        name: f"{package}.{home}.{name}" if home else f"{package}.{name}"
        for name, home in found._HOMES.items()
    }


def test_the_version_is_the_distribution_s():
    from importlib.metadata import version

    assert radabound_fast.__version__ == version("radabound_fast")


def test_an_unknown_attribute_is_an_attribute_error():
    with pytest.raises(AttributeError, match="'radabound_fast' has no attribute 'radabund'"):
        _ = radabound_fast.radabund
