"""Try the C sources on other platforms: compiled by zig, run where something here can run them.

    make platforms

Each row of the table in docs/evidence/platforms.md is one target: whether all sources compile
without a warning, and what the harness of this folder finds there, which compares every function
with plain loops.  Targets that cannot be run here are compiled alone, and the table says so.
"""

import argparse
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from datetime import date
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
sys.path.append(str(ROOT / "docs" / "make"))
from marked import fill  # noqa: E402

FLOORS = ("kernels", "scan", "gains", "edge")
SOURCES = [path for floor in FLOORS for path in ROOT.glob(f"src/{floor}/*.c")]
FLAGS = ["-std=c11", "-D_GNU_SOURCE", "-O2", "-ffp-contract=off", "-Wall", "-Wextra", "-Werror"]
FLAGS.append(f"-I{ROOT / 'src'}")
EXECUTIONS = 2000
WASI = [sys.executable, str(HERE / "run_wasi.py")]


@dataclass(frozen=True)
class Target:
    """A target of zig, and the command that runs its programs here; None: nothing does."""

    name: str
    shown: str
    runner: tuple[str, ...] | None = None

    def how(self) -> str:
        """What runs it, for people."""
        if self.runner is None:
            return "compiled only"
        if not self.runner:
            return "run on this machine"
        return "wasmtime" if list(self.runner) == WASI else self.runner[0]

    def is_runnable(self) -> bool:
        return self.runner is not None and (
            not self.runner or shutil.which(self.runner[0]) is not None
        )


TARGETS = [
    Target("x86_64-linux-gnu", "Linux, x86-64, glibc", ()),
    Target("x86_64-linux-musl", "Linux, x86-64, musl", ()),
    Target("x86-linux-musl", "Linux, 32-bit x86", ()),
    Target("aarch64-linux-musl", "Linux, ARM64", ("qemu-aarch64",)),
    Target("arm-linux-musleabihf", "Linux, 32-bit ARM", ("qemu-arm",)),
    Target("riscv64-linux-musl", "Linux, RISC-V", ("qemu-riscv64",)),
    Target("powerpc64le-linux-musl", "Linux, POWER, little endian", ("qemu-ppc64le",)),
    Target("s390x-linux-musl", "Linux, s390x, big endian", ("qemu-s390x",)),
    Target("wasm32-wasi", "WebAssembly, WASI", tuple(WASI)),
    Target("x86_64-windows-gnu", "Windows, x86-64, MinGW", ("wine",)),
    Target("aarch64-windows-gnu", "Windows, ARM64, MinGW"),
    Target("x86_64-macos", "macOS, x86-64"),
    Target("aarch64-macos", "macOS, ARM64"),
]


def zig(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "ziglang", *arguments], capture_output=True, text=True, check=False
    )


def tried(target: Target, folder: Path) -> tuple[str, str]:
    """What compiling and what running came to; SystemExit with what was printed if one failed."""
    program = folder / target.name
    made = zig(
        "cc", "-target", target.name, *FLAGS, *map(str, SOURCES), *map(str, HERE.glob("*.c")),
        "-lm", "-lpthread", "-o", str(program),
    )  # fmt: skip
    if made.returncode or made.stderr:
        raise SystemExit(f"{target.name} does not compile without a warning:\n{made.stderr}")
    if target.runner is None:
        return "yes", "not run"
    if not target.is_runnable():
        return "yes", f"not run: {target.runner[0]} is not here"
    done = subprocess.run(
        [*target.runner, str(program), "--executions", str(EXECUTIONS)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    counted = re.search(r"^(\d+) executions, 0 differences", done.stdout, re.M)
    if done.returncode or counted is None:
        raise SystemExit(f"{target.name} fails:\n{done.stdout}{done.stderr}")
    rows = dict.fromkeys(re.findall(r"^\w.*? (\w+) +\d+ executions", done.stdout, re.M))
    return "yes", f"{int(counted[1]):,} cases, 0 differences ({', '.join(rows)})"


def main() -> None:
    parser = argparse.ArgumentParser(description="Compile the C sources for other platforms.")
    parser.add_argument("words", nargs="*", help="of the names of the targets to try")
    words = parser.parse_args().words
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for target in TARGETS:
            if words and not any(word in target.name for word in words):
                continue
            compiles, ran = tried(target, Path(folder))
            print(f"{target.name}: compiles, {ran}", flush=True)
            how = target.how() if not ran.startswith("not run:") else "compiled only"
            rows.append(f"| {target.shown} | `{target.name}` | {compiles} | {ran} | {how} |")
    if words:
        return
    table = "\n".join(
        [
            f"Made by `make platforms` on {date.today():%d %B %Y}, with zig "
            f"{zig('version').stdout.strip()} on {platform.system()}, {platform.machine()}.",
            "",
            "| platform | target | compiles without a warning | C tests | run by |",
            "|---|---|---|---|---|",
            *rows,
        ]
    )
    fill(ROOT / "docs" / "evidence" / "platforms.md", "platforms", table)


if __name__ == "__main__":
    main()
