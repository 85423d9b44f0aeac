"""The C and Cython sources: floors, calls that go downwards, and no circle.

``python tests/house/test_sources.py`` prints who includes whom.
"""

import re
import shutil
import subprocess
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SRC, KERNELS = ROOT / "src", ROOT / "radabound_fast" / "_kernels"
# each with those that it may include; what a small machine takes knows nothing of rows and threads
FLOORS = {
    "src/kernels": {"src/kernels"},
    "src/scan": {"src/kernels", "src/scan"},
    "src/gains": {"src/kernels", "src/gains"},
    "radabound_fast/_kernels": {"src/kernels", "src/scan", "src/gains", "radabound_fast/_kernels"},
    "src/edge": {"src/kernels", "src/edge"},
}
pytestmark = pytest.mark.source

# what the compiler includes, what Cython declares, and what it cimports
INCLUDE = re.compile(r'^\s*(?:#\s*include|cdef extern from)\s*"([^"]+)"', re.M)
CIMPORT = re.compile(r"^from radabound_fast\._kernels\.(\w+) cimport", re.M)


def graph():
    """For each source the sources that it includes; a .pxd is a part of its .pyx."""
    found = {}
    for floor in FLOORS:
        for path in sorted((ROOT / floor).iterdir()):
            if path.suffix not in (".c", ".h", ".pyx", ".pxd"):
                continue
            text = path.read_text(encoding="utf-8")
            there = [
                next(p for p in (path.parent / n, SRC / n, ROOT / n) if p.exists())
                for n in INCLUDE.findall(text)
            ] + [KERNELS / f"{name}.pxd" for name in CIMPORT.findall(text)]
            file = whole(path)
            found.setdefault(file, set()).update(whole(p) for p in there)
    return {file: sorted(included - {file}) for file, included in found.items()}


def whole(path):
    """A path below the root; the .pyx in place of its .pxd."""
    module = path.with_suffix(".pyx")
    return (module if path.suffix == ".pxd" and module.exists() else path).relative_to(ROOT)


def reached(files, start):
    """All that a file includes, and what those include."""
    seen, ahead = set(), [start]
    while ahead:
        file = ahead.pop()
        if file not in seen:
            seen.add(file)
            ahead += files[file]
    return seen


def test_no_file_includes_one_of_a_floor_above():
    for file, included in graph().items():
        for other in included:
            assert other.parent.as_posix() in FLOORS[file.parent.as_posix()], (file, other)


def test_there_is_no_circle():
    try:
        TopologicalSorter(graph()).prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(map(str, error.args[1])))


def test_a_circle_and_a_call_upwards_would_be_seen():
    files = graph()
    assert len(files) > 40
    kernels, scan, edge = (Path("src") / floor for floor in ("kernels", "scan", "edge"))
    rows, guard = (Path("radabound_fast/_kernels") / name for name in ("rows.pyx", "guard.pyx"))
    assert kernels / "cpu.h" in files[kernels / "extremes.h"]
    assert scan / "scan.h" in files[rows.with_name("c_sources.pxd")]
    assert kernels / "sign_stream.h" in files[edge / "radabound_edge.c"]
    assert {rows, rows.with_name("support.pyx")} <= set(files[guard])
    with pytest.raises(CycleError):
        TopologicalSorter(files | {kernels / "cpu.h": [scan / "scan.h"]}).prepare()
    with pytest.raises(CycleError):
        TopologicalSorter(files | {rows: [guard]}).prepare()


def test_instruction_sets_are_listed_in_one_file():
    """Only the table names kernels of several instruction sets."""
    names = {file.stem.rpartition("_")[2] for file in graph() if "/signed_sums_" in str(file)}
    assert len(names) >= 4
    for file in graph():
        text = (ROOT / file).read_text(encoding="utf-8")
        rows = set(re.findall(r"&kernel_(\w+)", text))
        assert len(rows) <= 1 or file == Path("src/kernels/dispatch.c"), file
        assert not re.search(rf'"({"|".join(names)})"', text) or file.suffix == ".c", file


@pytest.mark.parametrize("flag", ["-ffast-math", "-Ofast", "-ffinite-math-only"])
def test_a_build_that_cannot_see_nan_is_refused_by_every_file(flag):
    files = graph()
    for file in files:
        if file.suffix in (".c", ".pyx") and file.name != "support.pyx":  # which computes nothing
            assert Path("src/kernels/cpu.h") in reached(files, file), file
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    command = [compiler, f"-I{SRC}", "-fsyntax-only", SRC / "kernels" / "cpu.c"]
    assert subprocess.run(command, check=False).returncode == 0
    done = subprocess.run([*command, flag], capture_output=True, text=True, check=False)
    assert done.returncode != 0 and "cannot be built with -ffast-math" in done.stderr


if __name__ == "__main__":
    for file, included in graph().items():
        if included:
            print(f"{file!s:40} {' '.join(map(str, included))}")
