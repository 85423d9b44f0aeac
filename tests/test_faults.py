"""Faults of disks, files and processes lose no answer (`make faults` tries them many times)."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

if not hasattr(os, "fork"):
    pytest.skip("the faults are tried with fork and kill -9", allow_module_level=True)

FOLDER = Path(__file__).with_name("faults")
PAGE = Path(__file__).parents[1] / "docs" / "reliability.md"

sys.path.insert(0, str(FOLDER))
from try_faults import FAULTS  # noqa: E402

sys.path.remove(str(FOLDER))


def run(*arguments):
    """In a process of its own: pytest's has threads and files that a fork would copy."""
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True)


@pytest.mark.parametrize("name", [fault.name for fault in FAULTS])
def test_nothing_is_lost(name):
    done = run(FOLDER / "try_faults.py", "--quick", name)
    assert done.returncode == 0, done.stdout + done.stderr
    assert " 0 lost" in done.stdout


@pytest.mark.slow
def test_nothing_is_lost_in_many_trials():
    done = run(FOLDER / "try_faults.py", "")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("kind", ["radabound", "thresholdout"])
def test_a_ledger_that_forgets_one_commit_in_twenty_is_found_out(kind):
    # 200 kills meet some thousand calls: the chance that none is forgotten is nil
    code = f"""
import random, sys
sys.path.insert(0, {str(FOLDER)!r})
import kills, try_faults
from radabound_fast.store import Ledger

def commit(self, progress, whole=Ledger.commit):
    self.rollback() if random.random() < 0.05 else whole(self, progress)

Ledger.commit = commit
fault = next(fault for fault in try_faults.FAULTS if fault.run is kills.kill_{kind})
print(try_faults.tried(fault, 200).lost)
"""
    done = run("-c", code)
    assert "do not explain" in done.stdout, done.stdout + done.stderr


@pytest.mark.source
def test_the_page_tells_of_every_fault_and_of_no_loss():
    page = PAGE.read_text(encoding="utf-8")
    for fault in FAULTS:
        row = next(line for line in page.splitlines() if line.startswith(f"| {fault.name}"))
        times, lost = (row.split("|")[column].strip().replace(",", "") for column in (2, 4))
        assert int(times) >= fault.times
        assert lost == "0", row
