"""The files that the repository's host and its tools read: workflows, hooks, citation, links."""

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))

pytestmark = pytest.mark.source


def loaded(path):
    return pytest.importorskip("yaml").safe_load(path.read_text(encoding="utf-8"))


@pytest.fixture
def project():
    with open(ROOT / "pyproject.toml", "rb") as file:
        return tomllib.load(file)["project"]


def run(command, *arguments):
    """Run a linter that may be installed beside this Python, or anywhere."""
    beside = Path(sys.executable).with_name(command)
    found = str(beside) if beside.exists() else shutil.which(command)
    if found is None:
        pytest.skip(f"{command} is not installed")
    return subprocess.run([found, *arguments], cwd=ROOT, capture_output=True, text=True)


def test_zizmor_finds_nothing_in_the_workflows():
    done = run("zizmor", "--offline", "--persona", "auditor", ".github")
    assert done.returncode == 0, done.stdout + done.stderr


def test_actionlint_finds_nothing_in_the_workflows():
    done = run("actionlint", *map(str, WORKFLOWS))
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_may_read_alone_and_names_commits(path):
    workflow = loaded(path)
    assert workflow["permissions"] == {}
    for job in workflow["jobs"].values():
        assert job["permissions"] == {"contents": "read"} and job["timeout-minutes"] <= 120
    used = re.findall(r"uses: (\S+)", path.read_text(encoding="utf-8"))
    assert used and all(re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}", action) for action in used)


def test_a_workflow_runs_what_decides_whether_a_change_lands():
    (job,) = loaded(ROOT / ".github" / "workflows" / "ci.yml")["jobs"].values()
    assert job["steps"][-1]["run"] == "bash .ci/run"


def test_the_hooks_run_what_the_tests_lint():
    (repository,) = loaded(ROOT / ".pre-commit-config.yaml")["repos"]
    entries = [hook["entry"] for hook in repository["hooks"]]
    assert repository["repo"] == "local"
    assert entries == [
        ".venv/bin/ruff check",
        ".venv/bin/ruff format",
        ".venv/bin/mypy",
        ".venv/bin/python docs/make/links.py",
    ]
    assert (ROOT / "docs" / "make" / "links.py").exists()


def test_the_citation_is_of_this_project_and_of_the_paper(project):
    citation = loaded(ROOT / "CITATION.cff")
    assert citation["title"] == project["name"] and citation["license"] == project["license"]
    assert citation["repository-code"] == project["urls"]["Repository"]
    assert citation["keywords"] == project["keywords"]
    (paper,) = citation["references"]
    assert [author["family-names"] for author in paper["authors"]] == ["De Stefani", "Upfal"]
    assert paper["url"] == "https://arxiv.org/abs/1910.03493"


def test_links_of_the_metadata_and_of_the_site_lead_into_this_repository(project):
    repository = project["urls"]["Repository"]
    for url in project["urls"].values():
        assert url.startswith(repository)
        path = url.removeprefix(repository).removeprefix("/blob/main/")
        assert path in ("", "/issues") or (ROOT / path).exists()
    named = set(
        re.findall(r"https://github\.com/radabound[\w/-]*", (ROOT / "docs" / "conf.py").read_text())
    )
    assert named == {repository}


@pytest.mark.parametrize(
    "path", ["Makefile", ".ci/run", "recipe/recipe.yaml", "tests/native/try_pythons"]
)
def test_every_test_file_that_is_run_by_name_is_there(path):
    words = re.findall(r"[\w/{},]+/test_[\w/{},]+", (ROOT / path).read_text(encoding="utf-8"))
    assert words
    for word in words:
        names = subprocess.check_output(["bash", "-c", f"printf '%s ' {word}"], text=True).split()
        for name in names:
            assert (ROOT / "tests" / f"{name.removeprefix('tests/')}.py").exists(), (path, name)
