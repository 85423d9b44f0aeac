"""Measure the table of costs in docs/reference/microcontroller.md:

    python docs/make/edge_costs.py

It needs make, arm-none-eabi-gcc and qemu-system-arm.  Sizes are those of a link with nothing but
the guard and what the compiler brings; QEMU counts instructions, not cycles.
"""

import re
import subprocess
import tempfile
from itertools import product
from pathlib import Path
from typing import NamedTuple

from marked import fill

from radabound_fast.edge import EdgeState

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "reference" / "microcontroller.md"
EDGE = ROOT / "examples" / "edge"

MACHINES = {"Cortex-M0": "microbit", "Cortex-M3": "mps2-an385", "Cortex-M4": "mps2-an386"}
MACHINES["Cortex-A7"] = "virt"
VECTORS = [8, 16, 32]


class Costs(NamedTuple):
    """Bytes of code, of the guard and of stack; instructions of a loss and of the end of a row."""

    code: int
    ram: int
    stack: int
    loss: int
    finish: int


def measure(cpu: str, n_vectors: int, out: Path) -> Costs:
    """The costs on one CPU; programs go to a folder."""
    machine = MACHINES[cpu]
    options = ["-s", "-C", EDGE, f"OUT={out}", f"VECTORS={n_vectors}"]
    names = [f"guard_library-{machine}", f"guard_costs-{machine}"]
    library, program = (out / name for name in names)
    _run(["make", *options, library, program])
    state = out / "state"
    new = EdgeState.new(4096, epsilon=0.3, delta=0.1, bound="mclt", n_vectors=n_vectors, seed=7)
    state.write_bytes(2 * new.to_bytes())
    size = _run(["arm-none-eabi-size", library]).stdout.splitlines()[1].split()
    (ram,) = re.findall(
        r"^\w+ (\w+) \w guard$", _run(["arm-none-eabi-nm", "-S", program]).stdout, re.M
    )
    emulator = [
        "qemu-system-arm",
        "-M",
        machine,
        "-icount",
        "shift=0",
        "-nographic",
        "-nic",
        "none",
    ]
    emulator += ["-cpu", "cortex-a7"] if machine == "virt" else []
    emulator += ["-monitor", "none", "-serial", "none", "-kernel", program, "-semihosting-config"]
    done = _run([*emulator, f"enable=on,target=native,arg=guard_costs,arg={state}"])
    found = {name: int(number) for name, number in re.findall(r"(\w+) (\d+)", done.stderr)}
    return Costs(int(size[0]), int(ram, 16), found["stack"], found["loss"], found["finish"])


def table() -> str:
    """All of them, in Markdown."""
    lines = [
        "| CPU | vectors | code | memory | stack | instructions a loss | and a row |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for cpu, n_vectors in product(MACHINES, VECTORS):
        with tempfile.TemporaryDirectory() as folder:
            costs = measure(cpu, n_vectors, Path(folder))
        lines.append(f"| {cpu} | {n_vectors} | {' | '.join(f'{n:,}' for n in costs)} |")
    return "\n".join(lines)


def documented() -> dict[tuple[str, int], Costs]:
    """What the page says."""
    found = re.findall(r"^\| (Cortex-\w+) \| (\d+) \|(.*)\|$", PAGE.read_text("utf-8"), re.M)
    return {
        (cpu, int(n_vectors)): Costs(*(int(n.replace(",", "")) for n in cells.split("|")))
        for cpu, n_vectors, cells in found
    }


def _run(command: list[str | Path]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=120)


if __name__ == "__main__":
    fill(PAGE, "costs", table())
