"""Fuzzing, counted: ``python tests/fuzz/run.py [--quick | --threads]`` from the root.

The C harness of tests/native over every kernel, then each Python target under atheris; the counts
go into docs/evidence/fuzzing.md.  --quick is the same in half a minute, and writes nothing;
--threads scans in threads under ThreadSanitizer instead.
"""

import argparse
import datetime
import os
import re
import subprocess
import sys
import time
from pathlib import Path

FUZZ = Path(__file__).resolve().parent
ROOT = FUZZ.parents[1]
sys.path.append(str(ROOT / "docs" / "make"))
from marked import fill  # noqa: E402

BUILD = ROOT / "build" / "fuzz"
TARGETS = sorted(path.stem.removesuffix("_fuzz") for path in FUZZ.glob("*_fuzz.py"))
ATHERIS_SECONDS = 60  # shared by the targets
FLOORS = ["src/kernels", "src/scan", "src/edge", "tests/native"]
ADDRESS = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]


def build(name, sanitizers):
    """The harness of tests/native, with sanitizers."""
    BUILD.mkdir(parents=True, exist_ok=True)
    sources = [path for floor in FLOORS for path in sorted((ROOT / floor).glob("*.c"))]
    flags = ["-std=c11", "-D_GNU_SOURCE", "-g", "-O1", "-Wall", "-Wextra", f"-I{ROOT / 'src'}"]
    command = [os.environ.get("CC", "gcc"), *flags, *sanitizers, "-o", BUILD / name, *sources]
    subprocess.run([*command, "-lpthread", "-lm"], check=True)
    return BUILD / name


def run_kernels(executions, seed):
    """Rows of the table: function, instruction set, executions; and how long it took."""
    harness = build("kernels", ADDRESS)
    began = time.monotonic()
    done = subprocess.run(
        [harness, "--executions", str(executions), "--seed", str(seed)],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    ).stdout
    print(done, end="")
    counts = re.findall(r"^(\S.*?) +(\w+) +(\d+) executions, 0 differences$", done, re.M)
    assert re.search(rf"^{executions} executions, 0 differences$", done, re.M)
    return [(name, row, int(n)) for name, row, n in counts], time.monotonic() - began


def run_target(name, seconds, seed):
    """Executions of one Python target; an input that makes it fail is left beside the harness."""
    found = BUILD / name
    found.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-P", FUZZ / "target.py", name, found]
    if (FUZZ / "corpus" / name).is_dir():
        command.append(FUZZ / "corpus" / name)
    options = [
        f"-max_total_time={seconds}",
        f"-seed={seed}",
        "-max_len=400",
        "-print_final_stats=1",
    ]
    done = subprocess.run(
        [*command, *options, f"-artifact_prefix={BUILD / name}-"],
        env={**os.environ, "PYTHONPATH": str(FUZZ)},
        stderr=subprocess.PIPE,
        text=True,
    )
    counted = re.search(r"number_of_executed_units: (\d+)", done.stderr)
    if done.returncode or counted is None:
        sys.exit(f"{done.stderr[-6000:]}\nthe target {name} failed")
    print(f"{name}: {counted[1]} executions, 0 failures", flush=True)
    return int(counted[1])


def write_page(kernels, kernel_seconds, targets, seconds, executions, seed):
    """The counts between the page's two markers; there are none unless all went well."""
    isas = list(dict.fromkeys(isa for _, isa, _ in kernels))
    of = {(function, isa): f"{n:,}" for function, isa, n in kernels}
    lines = [
        f"Last run: {datetime.date.today():%d %B %Y}, seed {seed}. {executions:,} executions of "
        f"the C harness in {kernel_seconds:.0f} s, {sum(targets.values()):,} of the Python targets "
        f"in {seconds * len(targets)} s; no crash and no difference.",
        "",
        f"| C: executions of | {' | '.join(isas)} |",
        f"| --- |{' ---: |' * len(isas)}",
    ]
    for function in sorted({function for function, _ in of}):
        counts = [of.get((function, isa), "no such row") for isa in isas]
        lines.append(f"| `{function}` | {' | '.join(counts)} |")
    lines += ["", "| Python target | executions |", "| --- | ---: |"]
    lines += [f"| `{name}` | {n:,} |" for name, n in targets.items()]
    fill(ROOT / "docs" / "evidence" / "fuzzing.md", "counts", "\n".join(lines))


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    kind = parser.add_mutually_exclusive_group()
    kind.add_argument("--quick", action="store_true", help="half a minute; writes nothing")
    kind.add_argument("--threads", action="store_true", help="ThreadSanitizer instead")
    parser.add_argument("--executions", type=int, default=1_000_000, help="of the C harness")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    if args.threads:
        harness = build("threads", ["-fsanitize=thread"])
        subprocess.run([harness, "--threads", "1", "--executions", "60"], check=True)
        return
    executions = 50_000 if args.quick else args.executions
    seconds = 1 if args.quick else ATHERIS_SECONDS // len(TARGETS)
    kernels, kernel_seconds = run_kernels(executions, args.seed)
    targets = {name: run_target(name, seconds, args.seed) for name in TARGETS}
    if not args.quick:
        write_page(kernels, kernel_seconds, targets, seconds, executions, args.seed)


if __name__ == "__main__":
    main()
