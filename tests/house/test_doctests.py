"""The examples in docstrings are true."""

import doctest
import importlib
import pkgutil

import pytest

import radabound_fast

# what only needs NumPy and SciPy; the others' examples need packages or data
SKIPPED = ("integrations", "experiments", "demo", "plots", "__main__", "_kernels")

MODULES = [
    module.name
    for module in pkgutil.walk_packages(radabound_fast.__path__, "radabound_fast.")
    if not any(part in SKIPPED for part in module.name.split("."))
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings_are_true(name):
    module = importlib.import_module(name)
    assert doctest.testmod(module).failed == 0


def test_there_are_examples():
    finder = doctest.DocTestFinder(exclude_empty=True)
    found = [
        test
        for name in MODULES
        for test in finder.find(importlib.import_module(name))
        if test.examples
    ]
    assert len(found) >= 5
