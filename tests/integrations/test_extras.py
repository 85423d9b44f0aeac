"""A package that an extra installs: if it is missing, one line names it and the extra."""

import doctest
import importlib
import re
import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path

import pytest

from radabound_fast import integrations
from radabound_fast._extras import check_installed, needs

# of each adapter, what it imports
ADAPTERS = {
    "joblib": ["joblib"],
    "sklearn": ["sklearn", "joblib"],
    "optuna": ["optuna"],
    "configspace": ["ConfigSpace"],
    "ray": [],  # its domains are known by what they have
    "lightgbm": ["lightgbm"],
    "metric": [],  # for any tool
    "xgboost": ["xgboost"],
    "mlflow": ["mlflow"],
    "wandb": ["wandb"],
    "tensorboard": [],  # a writer is known by its methods
}


def line(package, extra):
    return re.escape(
        f'{package} is not installed; from a clone of radabound_fast: pip install ".[{extra}]"'
    )


def test_a_missing_package_is_named_with_the_extra_that_installs_it():
    with pytest.raises(ModuleNotFoundError, match=line("anteater", "zoo")), needs("zoo"):
        import anteater.tongue  # noqa: F401


def test_the_extra_that_was_asked_for_is_named_and_not_one_that_it_is_made_of():
    with (
        pytest.raises(ModuleNotFoundError, match=line("anteater", "zoo")),
        needs("zoo"),
        needs("mammals"),
    ):
        import anteater  # noqa: F401


def test_a_module_of_ours_that_is_missing_is_no_extra():
    with pytest.raises(ModuleNotFoundError, match=r"^No module named 'radabound_fast.zoo'"):  # noqa: SIM117
        with needs("zoo"):
            import radabound_fast.zoo  # noqa: F401


def test_what_is_needed_later_is_looked_for_now():
    check_installed("zoo", "numpy", "scipy")
    with pytest.raises(ModuleNotFoundError, match=line("anteater", "zoo")):
        check_installed("zoo", "numpy", "anteater")


@pytest.mark.parametrize(
    ("adapter", "package"),
    [(adapter, package) for adapter, packages in ADAPTERS.items() for package in packages],
)
def test_an_adapter_without_its_tool_names_the_extra(monkeypatch, adapter, package):
    for name in list(sys.modules):
        # what is below a package is found without it
        if name.startswith(("radabound_fast.integrations.", f"{package}.")):
            monkeypatch.delitem(sys.modules, name)
    for other in ADAPTERS[adapter]:
        if other != package and not find_spec(other):
            pytest.skip(f"{other} is not installed")
    monkeypatch.setitem(sys.modules, package, None)  # as if it were not there
    with pytest.raises(ModuleNotFoundError, match=line(package, adapter)):
        importlib.import_module(f"radabound_fast.integrations.{adapter}")


@pytest.mark.parametrize("adapter", ["configspace", "joblib", "metric", "optuna", "ray", "sklearn"])
def test_examples_in_docstrings_of_adapters_are_true(adapter):
    for package in ADAPTERS[adapter]:
        pytest.importorskip(package)
    failed, tried = doctest.testmod(importlib.import_module(f"{integrations.__name__}.{adapter}"))
    assert failed == 0 and tried > 0


def test_every_adapter_is_looked_at():
    folder = Path(integrations.__file__).parent
    modules = {path.stem for path in folder.glob("*.py") if not path.stem.startswith("_")}
    assert modules == set(ADAPTERS)


@pytest.mark.source
def test_every_adapter_has_an_extra_of_its_name():
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    assert {name for name, packages in ADAPTERS.items() if packages} | {"ray"} <= set(
        project["optional-dependencies"]
    )
