"""What help() says of public names: every argument, there or where the docstring refers to."""

import inspect
import re
from collections.abc import Sequence

import pytest

import radabound_fast
from radabound_fast import bounds

FUNCTIONS = [name for name in bounds.__all__ if inspect.isfunction(getattr(bounds, name))]
# methods of a search that its service and its report call, and users do not
INTERNAL = {"answers_from", "intervals_of", "report_on"}
CODE = r"(?s)(`+)(.+?)\1"
REFERENCE = r"(?:[Tt]hose of|[Aa]s (?:for|in|by)|[Ss]ee)\s+(the constructor|the class|`[\w.]+`)"


def sections(doc):
    """The text of each section of a numpydoc docstring, by its title."""
    parts = re.split(r"(?m)^(\w+)\n-+\n", doc)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def headings(text):
    """The names that a section explains, as in ``epsilon, delta : float``."""
    lines = re.findall(r"(?m)^(\w+(?:, \w+)*)(?: :.*)?$", text)
    return [name for line in lines for name in line.split(", ")]


def parameters(function):
    try:
        names = inspect.signature(function).parameters
    except ValueError:  # a compiled class that nobody makes
        return []
    return [name for name in names if name not in ("self", "cls")]


def public():
    """Classes and functions at the top level and of bounds, and methods, each with its class."""
    homes = dict.fromkeys(bounds.__all__, bounds)
    homes |= dict.fromkeys(radabound_fast.__all__, radabound_fast)
    for name, home in homes.items():
        value = getattr(home, name)
        if not callable(value):
            continue
        yield pytest.param(value, value, id=name)
        for attribute in dir(value) if inspect.isclass(value) else ():
            method = getattr(value, attribute)
            ours = not attribute.startswith("_") and not hasattr(Sequence, attribute)
            if ours and callable(method) and attribute not in INTERNAL:
                yield pytest.param(method, value, id=f"{name}.{attribute}")


def explained(value, owner):
    """Names that a docstring explains: in a section, in code, or where it refers to another."""
    doc = inspect.getdoc(value) or ""
    names = {name for _, code in re.findall(CODE, doc) for name in re.findall(r"\w+", code)}
    for title in ("Parameters", "Attributes"):
        names.update(headings(sections(doc).get(title, "")))
    for reference in re.findall(REFERENCE, doc):
        names |= explained(*resolved(reference.strip("`"), owner))
    return names


def resolved(reference, owner):
    """What a reference leads to, and the class that it is of; None: elsewhere."""
    if reference in ("the class", "the constructor"):
        return owner, owner
    for home in (owner, radabound_fast, bounds):
        *path, last = reference.split(".")
        for part in path:
            home = getattr(home, part, None)
        if hasattr(home, last):
            return getattr(home, last), home if inspect.isclass(home) else owner
    return None, owner


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_bound_has_sections_with_all_its_parameters_and_its_result(name):
    function = getattr(bounds, name)
    parts = sections(inspect.getdoc(function))
    assert headings(parts.get("Parameters", "")) == parameters(function)
    assert parts.get("Returns")


@pytest.mark.parametrize(("value", "owner"), list(public()))
def test_a_public_name_explains_its_arguments(value, owner):
    assert not set(parameters(value)) - explained(value, owner)
