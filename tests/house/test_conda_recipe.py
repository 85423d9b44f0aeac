"""The conda recipe says what pyproject.toml says, and rattler-build can render it."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RECIPE = ROOT / "recipe" / "recipe.yaml"

pytestmark = pytest.mark.source


@pytest.fixture
def pyproject():
    with open(ROOT / "pyproject.toml", "rb") as file:
        return tomllib.load(file)


@pytest.fixture
def recipe():
    return pytest.importorskip("yaml").safe_load(RECIPE.read_text(encoding="utf-8"))


def spelt(requirements):
    """As conda spells them: a blank before the version."""
    return {re.sub(r"(?<=\w)(?=[<>=])", " ", requirement) for requirement in requirements}


def test_its_requirements_are_those_of_the_metadata(recipe, pyproject):
    project, requirements = pyproject["project"], recipe["requirements"]
    assert set(requirements["run"]) == {"python"} | spelt(project["dependencies"])
    assert set(requirements["host"]) == {"python", "pip"} | spelt(
        pyproject["build-system"]["requires"]
    )
    lowest = project["requires-python"].removeprefix(">=")
    assert recipe["build"]["skip"] == f'match(python, "<{lowest}")'


def test_its_words_are_those_of_the_metadata(recipe, pyproject):
    project, about = pyproject["project"], recipe["about"]
    assert about["summary"] == project["description"] and about["license"] == project["license"]
    assert [about["license_file"]] == project["license-files"]
    scripts = [f"{name} = {target}" for name, target in project["scripts"].items()]
    assert recipe["build"]["python"]["entry_points"] == scripts
    for command in recipe["tests"][1]["script"]:
        for path in re.findall(r"tests/\w+\.py", command):
            assert (ROOT / path).exists()


def test_rattler_build_makes_a_package_of_it_for_each_python(pyproject):
    rattler_build = pytest.importorskip("rattler_build")
    platform = rattler_build.PlatformConfig(target_platform="linux-64", experimental=True)
    pythons = ["3.11.* *_cpython", "3.14.* *_cp314"]
    variants = {"python": pythons, "c_compiler": ["gcc"], "c_stdlib": ["sysroot"]}
    rendered = rattler_build.Stage0Recipe.from_file(str(RECIPE)).render(
        rattler_build.VariantConfig(variants | {"c_stdlib_version": ["2.17"]}),
        rattler_build.RenderConfig(platform=platform),
    )
    found = [variant.recipe.to_dict() for variant in rendered]
    assert [recipe["build"]["string"][:5] for recipe in found] == ["py311", "py314"]
    for recipe in found:
        assert recipe["package"]["version"] == pyproject["project"]["version"]
        assert recipe["requirements"]["build"] == ["gcc_linux-64", "sysroot_linux-64 2.17.*"]
