"""Faults of disks, files and processes lose no answer (`make faults` tries them many times)."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.thorough

if not hasattr(os, "fork"):
    pytest.skip("the faults are tried with fork and kill -9", allow_module_level=True)

FOLDER = Path(__file__).parents[1] / "faults"
PAGE = Path(__file__).parents[2] / "docs" / "evidence" / "reliability.md"

sys.path.insert(0, str(FOLDER))
import kills  # noqa: E402
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


@pytest.mark.parametrize("ignored", ["SIGINT", "SIGTERM", "SIGALRM"])
def test_signals_that_the_parent_ignores_or_blocks_are_heeded(ignored):
    code = f"""
import os, signal, sys
sys.path.insert(0, {str(FOLDER)!r})
import signals
signals.heed()
try:
    os.kill(os.getpid(), signal.{ignored})
    print("ignored")
except KeyboardInterrupt:
    os._exit(3)
"""
    parent = f"""
import os, signal, sys
signal.signal(signal.{ignored}, signal.SIG_IGN)
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.{ignored}])
os.execv(sys.executable, [sys.executable, "-c", sys.argv[1]])
"""
    done = run("-c", parent, code)
    assert done.stdout == ""
    assert done.returncode == (3 if ignored == "SIGINT" else -getattr(signal, ignored))


@pytest.mark.parametrize("n_bytes", [0, 1, kills.LINE.size - 1])
def test_a_last_line_that_a_kill_has_torn_is_a_call_under_way(tmp_path, n_bytes):
    begun = kills.Line(kills.BEGUN, 5, 1, 0, 0.0, 0.0)
    released = kills.Line(kills.RELEASED, 4, 1, 9, 0.5, 0.25)
    told = kills.LINE.pack(*released) + kills.LINE.pack(*begun)
    torn = kills.LINE.pack(kills.RELEASED, 5, 1, 10, 0.5, 0.25)[:n_bytes]
    (tmp_path / "log").write_bytes(told + torn)
    assert kills.read_log(tmp_path / "log") == ([released], begun)
    assert kills.read_log(tmp_path / "none") == ([], None)


@pytest.mark.source
def test_the_page_tells_of_every_fault_and_of_no_loss():
    page = PAGE.read_text(encoding="utf-8")
    for fault in FAULTS:
        row = next(line for line in page.splitlines() if line.startswith(f"| {fault.name}"))
        times, lost = (row.split("|")[column].strip().replace(",", "") for column in (2, 4))
        assert int(times) >= fault.times
        assert lost == "0", row
