"""The portable kernels as different compilers make them: times, into docs/evidence/platforms.md.

    python tests/native/compilers.py

For a quiet machine.  It needs gcc, clang, and of the extra `platforms` zig and wasmtime.
"""

import platform
import re
import subprocess
import sys
import tempfile
from datetime import date
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
sys.path.append(str(ROOT / "docs" / "make"))
from marked import fill  # noqa: E402

SOURCES = [*sorted(ROOT.glob("src/kernels/*.c")), HERE / "compilers" / "times.c"]
FLAGS = ["-std=c11", "-D_GNU_SOURCE", f"-I{ROOT / 'src'}", "-lm"]
ZIG = [sys.executable, "-m", "ziglang", "cc", "-target"]
WASI = [sys.executable, HERE / "run_wasi.py"]
# by its name in the table: the compiler, and what runs its program
BUILDS = {
    "gcc -O2": (["gcc", "-O2"], []),
    "gcc -O2 -ftree-vectorize": (["gcc", "-O2", "-ftree-vectorize"], []),
    "gcc -O3": (["gcc", "-O3"], []),
    "clang -O2": (["clang", "-O2"], []),
    "zig cc -O2": ([*ZIG, "x86_64-linux-gnu", "-O2"], []),
    "wasm32, zig cc -O2": ([*ZIG, "wasm32-wasi", "-O2"], WASI),
}
ROUNDS = 3  # in turns, so that what else the machine does hits all alike


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        programs = {name: Path(folder) / str(i) for i, name in enumerate(BUILDS)}
        for name, (compiler, _) in BUILDS.items():
            subprocess.run([*compiler, *SOURCES, *FLAGS, "-o", programs[name]], check=True)
        best: dict[tuple[str, str], float] = {}
        for _ in range(ROUNDS):
            for build, (_, runner) in BUILDS.items():
                told = subprocess.run(
                    [*runner, programs[build]], check=True, capture_output=True, text=True
                ).stdout
                for function, found in re.findall(r"^(.*): (\d+)$", told, re.M):
                    key = function, build
                    best[key] = min(best.get(key, float("inf")), float(found))
    versions = [
        subprocess.run([name, "--version"], check=True, capture_output=True, text=True)
        .stdout.partition("\n")[0]
        for name in ("gcc", "clang")
    ]  # fmt: skip
    lines = [
        f"Nanoseconds of a row of 4096 losses and 32 vectors; {date.today():%d %B %Y}, "
        f"{platform.machine()}; {'; '.join(versions)}.",
        "",
        f"| | {' | '.join(f'`{name}`' for name in BUILDS)} |",
        f"|---|{'---:|' * len(BUILDS)}",
    ]
    for function in dict.fromkeys(function for function, _ in best):
        cells = " | ".join(f"{best[function, build]:,.0f}" for build in BUILDS)
        lines.append(f"| {function} | {cells} |")
    print("\n".join(lines))
    fill(ROOT / "docs" / "evidence" / "platforms.md", "compilers", "\n".join(lines))


if __name__ == "__main__":
    main()
