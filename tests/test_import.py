"""`import radabound_fast` loads NumPy and our extension, nothing heavy."""

import json
import subprocess
import sys

import pytest

PROBE = """
import json, sys
import radabound_fast
print(json.dumps(sorted({name.partition(".")[0] for name in sys.modules})))
"""


def test_importing_loads_no_optional_package():
    loaded = json.loads(
        subprocess.run(
            [sys.executable, "-c", PROBE], capture_output=True, text=True, check=True
        ).stdout
    )
    heavy = {
        "scipy",
        "matplotlib",
        "pandas",
        "pyarrow",
        "polars",
        "sklearn",
        "joblib",
        "tqdm",
        "optuna",
        "dask",
        "torch",
        "argparse",
        "sqlite3",
    }
    assert "numpy" in loaded
    assert not heavy & set(loaded)


def test_the_public_names_are_there():
    import radabound_fast

    for name in radabound_fast.__all__:
        assert getattr(radabound_fast, name).__doc__


def test_the_version_is_the_distribution_s():
    from importlib.metadata import version

    import radabound_fast

    assert radabound_fast.__version__ == version("radabound_fast")


def test_an_unknown_attribute_is_an_attribute_error():
    import radabound_fast

    with pytest.raises(AttributeError, match="no attribute 'radabund'"):
        _ = radabound_fast.radabund
