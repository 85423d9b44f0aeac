"""The README's code runs as it stands, its commands exist, and its map names every file."""

import contextlib
import io
import re
import tomllib
from pathlib import Path

import pytest

from radabound_fast import plan

README = Path(__file__).parents[2] / "README.md"
ROOT = README.parent


def test_the_python_example_runs_and_prints_intervals():
    (example,) = re.findall(r"```python\n(.*?)```", README.read_text(), re.S)
    assert len(example.strip().splitlines()) <= 12
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(example, "README.md", "exec"), {})
    lines = printed.getvalue().splitlines()
    *lines, sentence = lines
    assert len(lines) == 3 and sentence.startswith("The best of 3 models is ")
    for line in lines:
        numbers = re.fullmatch(r"error (0\.\d{4}), true error (0\.\d{4}) to (0\.\d{4})", line)
        value, low, high = map(float, numbers.groups())
        assert low < min(value, 0.2) and max(value, 0.2) < high < low + 0.05


def test_a_million_configurations_have_intervals_less_than_twice_as_wide():
    few, many = (plan(4000, 0.05, 0.1, 32, 0.2, space_size=size) for size in (80, 10**6))
    assert 1.6 < (many.high - many.low) / (few.high - few.low) < 2


@pytest.mark.source
def test_the_commands_are_targets_of_the_makefile():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M))
    named = set(re.findall(r"^    make ([a-z-]+)", README.read_text(), re.M))
    assert named == {"demo", "test"} and named <= targets


@pytest.mark.source
def test_it_has_at_most_900_words():
    assert len(README.read_text(encoding="utf-8").split()) <= 900


@pytest.mark.source
def test_linked_files_exist():
    for target in re.findall(r"\]\(([^)#]+)\)", README.read_text()):
        assert (ROOT / target).exists(), target


@pytest.mark.source
def test_every_extra_is_named_where_people_look_for_it():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    tools = ROOT / "docs" / "how-to" / "tools" / "index.md"
    pages = (ROOT / "docs" / "index.md", tools, ROOT / "CONTRIBUTING.md")
    named = set().union(
        *(
            re.findall(r"\w+", words)
            for page in pages
            for words in re.findall(
                r"(?s)(?:Extras, as in|and so on:|The extras)(.*?\.)\s", page.read_text()
            )
        )
    )
    assert extras.keys() <= named, extras.keys() - named
