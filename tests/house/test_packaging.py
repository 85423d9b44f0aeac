"""What is built holds what it should, for the platforms that are named, under one version."""

import io
import os
import shutil
import subprocess
import sys
import tarfile
import tomllib
from importlib.metadata import distribution
from itertools import product
from pathlib import Path

import pytest

import radabound_fast

ROOT = Path(__file__).parents[2]
TEMPLATES = ("page.css", "page.html", "picture.html", "tables.html")
PYTHONS = ["cp311", "cp312", "cp313", "cp314", "cp314t"]
PLATFORMS = {
    "linux": [
        "manylinux_x86_64",
        "manylinux_aarch64",
        "musllinux_x86_64",
        "musllinux_aarch64",
    ],
    "macos": ["macosx_x86_64", "macosx_arm64"],
    "windows": ["win_amd64"],
}


@pytest.mark.source
@pytest.mark.parametrize("platform", PLATFORMS)
def test_cibuildwheel_is_told_these_wheels(platform):
    done = subprocess.run(
        [sys.executable, "-m", "cibuildwheel", "--platform", platform, "--print-build-identifiers"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    expected = {f"{python}-{tag}" for python, tag in product(PYTHONS, PLATFORMS[platform])}
    assert set(done.stdout.split()) == expected


def test_the_version_stands_in_the_metadata_alone():
    with open(ROOT / "pyproject.toml", "rb") as file:
        version = tomllib.load(file)["project"]["version"]
    assert radabound_fast.__version__ == version
    for path in Path(radabound_fast.__file__).parent.rglob("*.py"):
        assert version not in path.read_text(encoding="utf-8"), path


def test_an_installed_wheel_holds_modules_types_and_what_is_compiled_alone():
    if Path(radabound_fast.__file__).parent == ROOT / "radabound_fast":
        pytest.skip("the source tree is imported, not an installed wheel")
    files = [
        file for file in distribution("radabound_fast").files if file.parts[0] == "radabound_fast"
    ]
    files = [file for file in files if file.suffix != ".pyc"]
    compiled = {file.name.split(".")[0]: file for file in files if file.suffix in (".so", ".pyd")}
    assert set(compiled) == {
        "support", "rows", "guard", "studentised", "search", "limits"
    }  # fmt: skip
    assert {file.parent.name for file in compiled.values()} == {"_kernels"}
    others = {
        "/".join(file.parts[1:]) for file in files if file.suffix not in (".py", ".so", ".pyd")
    }
    assert others == {
        *(f"_kernels/{name}.pyi" for name in compiled),
        "_kernels/__init__.pxd",
        "__init__.pyi",
        "py.typed",
        *(f"service/templates/{name}" for name in TEMPLATES),
    }


@pytest.mark.source
@pytest.mark.thorough
def test_the_sdist_holds_what_is_under_version_control(tmp_path):
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if listed.returncode:
        pytest.skip("not in a git repository")
    tracked = set(listed.stdout.splitlines())
    for name in tracked:
        if (ROOT / name).is_file():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, tmp_path / name)
    built = subprocess.run(
        [sys.executable, "setup.py", "-q", "sdist"], cwd=tmp_path, capture_output=True, check=True
    )
    assert b"*****" not in built.stderr  # the box around what setuptools warns of
    (archive,) = (tmp_path / "dist").iterdir()
    with tarfile.open(archive) as sdist:
        held = {name.partition("/")[2] for name in sdist.getnames()}
    left_out = {name for name in tracked - held if not name.startswith((".ci/", ".github/"))}
    assert left_out == {".gitignore", ".pre-commit-config.yaml"}


@pytest.mark.source
@pytest.mark.thorough
def test_the_sdist_is_the_same_octets_whoever_makes_it_and_when(tmp_path, monkeypatch):
    def sdist(name, umask, hours, environment):
        clone = tmp_path / name
        cloned = subprocess.run(
            ["git", "clone", "-q", ROOT, clone], umask=umask, capture_output=True, check=False
        )
        if cloned.returncode:
            pytest.skip("not in a git repository")
        for path in clone.rglob("*"):
            os.utime(path, times=(3600 * hours, 3600 * hours))
        subprocess.run(
            [sys.executable, "setup.py", "-q", "sdist"], cwd=clone, umask=umask, check=True,
            capture_output=True, env=os.environ | environment,
        )  # fmt: skip
        (archive,) = (clone / "dist").iterdir()
        return archive.read_bytes()

    second = 1_000_000_000
    epoch = {"SOURCE_DATE_EPOCH": str(second)}
    made = sdist("a", 0o022, 490_000, epoch)
    assert sdist("b", 0o077, 90_000, epoch) == made
    with tarfile.open(fileobj=io.BytesIO(made)) as archive:
        assert {member.mtime for member in archive} == {second}
        assert {member.mode for member in archive} == {0o755, 0o644}
    monkeypatch.delenv("SOURCE_DATE_EPOCH", raising=False)
    assert sdist("c", 0o077, 90_000, {}) == sdist("d", 0o022, 490_000, {}) != made


@pytest.mark.source
def test_make_clean_removes_all_that_is_not_under_version_control():
    recipe = (ROOT / "Makefile").read_text(encoding="utf-8").partition("\nclean:\n")[2]
    removed = set(recipe.replace("radabound_fast/_kernels/", "").split())
    ignored = (ROOT / ".gitignore").read_text(encoding="utf-8").split()
    assert {pattern.removesuffix("/") for pattern in ignored} <= removed


@pytest.mark.source
def test_who_has_no_compiler_is_told_what_to_install(tmp_path):
    build = subprocess.run(
        [sys.executable, "setup.py", "-q", "build", "--build-base", str(tmp_path)],
        cwd=ROOT, capture_output=True, text=True, check=False,
        env=os.environ | {"CC": "no-such-compiler"},
    )  # fmt: skip
    assert build.returncode == 1
    (line,) = (line for line in build.stderr.splitlines() if "no-such-compiler" in line)
    assert line.startswith("radabound_fast is compiled from C") and "apt install gcc" in line
