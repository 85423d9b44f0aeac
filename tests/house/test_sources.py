"""The C and Cython sources: floors, calls that go downwards, and no circle.

``python tests/house/test_sources.py`` prints who includes whom.
"""

import re
import shutil
import subprocess
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

SRC = Path(__file__).parents[2] / "src"
# each with those that it may include; what a small machine takes knows nothing of rows and threads
FLOORS = {
    "kernels": {"kernels"},
    "scan": {"kernels", "scan"},
    "extension": {"kernels", "scan", "extension"},
    "edge": {"kernels", "edge"},
}
pytestmark = pytest.mark.source

# what the compiler includes, what Cython declares, and what Cython includes
INCLUDE = re.compile(r'^\s*(?:#\s*include|cdef extern from|include)\s*"([^"]+)"', re.M)


def graph():
    """For each file of src the files of src that it includes."""
    files = [
        path
        for floor in FLOORS
        for path in sorted((SRC / floor).iterdir())
        if path.suffix in (".c", ".h", ".pyx", ".pxi") and path.name != "_kernel.c"
    ]
    found = {}
    for path in files:
        named = INCLUDE.findall(path.read_text(encoding="utf-8"))
        there = [next(p for p in (path.parent / n, SRC / n) if p.exists()) for n in named]
        found[path.relative_to(SRC)] = sorted({p.relative_to(SRC) for p in there})
    return found


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
            assert other.parts[0] in FLOORS[file.parts[0]], (file, other)


def test_there_is_no_circle():
    try:
        TopologicalSorter(graph()).prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(map(str, error.args[1])))


def test_a_circle_and_a_call_upwards_would_be_seen():
    files = graph()
    assert len(files) > 40
    assert Path("kernels/cpu.h") in files[Path("kernels/extremes.h")]
    assert Path("scan/scan.h") in files[Path("extension/_scan.pxi")]
    assert Path("kernels/sign_stream.h") in files[Path("edge/radabound_edge.c")]
    assert Path("extension/_core.pxi") in files[Path("extension/_kernel.pyx")]
    with pytest.raises(CycleError):
        TopologicalSorter(files | {Path("kernels/cpu.h"): [Path("scan/scan.h")]}).prepare()


def test_instruction_sets_are_listed_in_one_file():
    """Only the table names kernels of several instruction sets."""
    names = {file.stem.rpartition("_")[2] for file in graph() if "/signed_sums_" in str(file)}
    assert len(names) >= 4
    for file in graph():
        text = (SRC / file).read_text(encoding="utf-8")
        rows = set(re.findall(r"&kernel_(\w+)", text))
        assert len(rows) <= 1 or file == Path("kernels/dispatch.c"), file
        assert not re.search(rf'"({"|".join(names)})"', text) or file.suffix == ".c", file


@pytest.mark.parametrize("flag", ["-ffast-math", "-Ofast", "-ffinite-math-only"])
def test_a_build_that_cannot_see_nan_is_refused_by_every_file(flag):
    files = graph()
    for file in files:
        if file.suffix in (".c", ".pyx"):
            assert Path("kernels/cpu.h") in reached(files, file), file
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
            print(f"{file!s:36} {' '.join(map(str, included))}")
