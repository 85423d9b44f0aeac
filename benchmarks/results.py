"""One CSV a machine and day: what was measured, and on what."""

from __future__ import annotations

import csv
import datetime
import platform
import re
from dataclasses import asdict, dataclass, fields
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np

from benchmarks.limit import limit_of
from benchmarks.race import Outcome
from radabound_fast._kernels.rows import active_kernel

FOLDER = Path(__file__).with_name("results")
CACHES = ["L1d", "L2"]  # bytes of each core's
LIBRARIES = ["radabound_fast", "numpy", "numkong", "simsimd", "faiss-cpu", "numba"]


@dataclass(frozen=True)
class Row:
    """A line of the CSV: a contestant of a race, or a goal.

    A contestant has ns_per_query and its ratio to ours, quartiles over the rounds; a goal has a
    ratio or another number, and the bound it should keep.
    """

    table: str
    contestant: str
    n_samples: int | str = ""
    n_vectors: int | str = ""
    n_rows: int | str = ""
    n_threads: int | str = ""
    ns_per_query: float | str = ""
    ratio: float | str = ""
    ratio_q1: float | str = ""
    ratio_q3: float | str = ""
    rounds: int | str = ""
    sense: str = ""
    bound: float | str = ""
    unit: str = ""
    met: str = ""


def race_rows(table: str, outcome: Outcome, over: str = "ours", **shape: int) -> list[Row]:
    """A row for each contestant."""
    rows = []
    for name in outcome.names:
        q1, ratio, q3 = np.quantile(outcome.ratios(name, over), [0.25, 0.5, 0.75])
        rows.append(
            Row(
                table,
                name,
                **shape,
                ns_per_query=outcome.median(name),
                ratio=float(ratio),
                ratio_q1=float(q1),
                ratio_q3=float(q3),
                rounds=len(outcome.times),
            )
        )
    return rows


def cpu_name() -> str:
    """As py-cpuinfo knows it, with what tells similar ones apart."""
    try:
        import cpuinfo
    except ImportError:
        return platform.processor() or platform.machine()
    found = cpuinfo.get_cpu_info()
    name = re.sub(r"\((R|TM)\)|CPU|Processor|@.*", "", found.get("brand_raw", "cpu"))
    return f"{' '.join(name.split())} family {found.get('family')} model {found.get('model')}"


def cache_sizes() -> dict[str, str]:
    """Bytes of the first core's caches, where Linux tells."""
    found = {}
    for cache in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*"):
        level, kind, size = (
            (cache / name).read_text().strip() for name in ("level", "type", "size")
        )
        name = f"L{level}{'d' if kind == 'Data' else ''}"
        if name in CACHES and size.endswith("K"):
            found[name] = str(int(size[:-1]) * 1024)
    return found


def machine() -> dict[str, str]:
    """What the numbers depend on."""
    limit = limit_of(active_kernel())
    found = {
        "cpu": cpu_name(),
        "date": datetime.date.today().isoformat(),
        "kernel": active_kernel(),
        "limit": limit.name if limit else "none",
        "python": platform.python_version(),
        "system": platform.system(),
    }
    found |= cache_sizes()
    for name in LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return found


def write(rows: list[Row]) -> Path:
    """Writes results/<cpu>-<date>.csv; the lines before its header say what machine it was."""
    about = machine()
    name = re.sub(r"[^a-z0-9]+", "-", about["cpu"].lower()).strip("-")
    path = FOLDER / f"{name}-{about['date']}.csv"
    FOLDER.mkdir(exist_ok=True)
    with path.open("w", newline="") as file:
        for key, value in about.items():
            file.write(f"# {key}: {value}\n")
        writer = csv.DictWriter(file, [f.name for f in fields(Row)], lineterminator="\n")
        writer.writeheader()
        for row in rows:
            writer.writerow(
                {k: f"{v:.5g}" if isinstance(v, float) else v for k, v in asdict(row).items()}
            )
    return path


def read(path: Path) -> tuple[dict[str, str], list[dict[str, str]]]:
    """The machine and the rows of a CSV."""
    with path.open(newline="") as file:
        lines = file.readlines()
    about = [line[2:].rstrip("\n").partition(": ") for line in lines if line.startswith("# ")]
    rows = list(csv.DictReader(line for line in lines if not line.startswith("# ")))
    return {key: value for key, _, value in about}, rows


def newest() -> list[Path]:
    """The last CSV of each machine, in the order of their names."""
    last = {re.sub(r"-\d{4}-\d\d-\d\d$", "", p.stem): p for p in sorted(FOLDER.glob("*.csv"))}
    return list(last.values())
