"""Put the help texts of the command ``radabound`` into docs/reference/cli.md.

python docs/make/cli_reference.py
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from marked import fill

PAGE = Path(__file__).parents[1] / "reference" / "cli.md"
COMMANDS = (
    "plan", "audit", "confirm", "gate", "report", "serve", "backup", "edge", "demo", "reproduce",
    "info", "completion",
)  # fmt: skip
EDGE = ("new-state", "show", "header", "intervals")
LINES = {
    **{command: (command,) for command in COMMANDS},
    **{f"edge {part}": ("edge", part) for part in EDGE},
}


def help_of(*words: str) -> str:
    """Return what ``radabound WORDS --help`` prints, 90 columns wide."""
    done = subprocess.run(
        [sys.executable, "-m", "radabound_fast", *words, "--help"],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "COLUMNS": "90", "NO_COLOR": "1"},
    )
    return done.stdout.rstrip()


def options_in(text: str) -> set[str]:
    """Return the long options that a help text names."""
    return set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", text))


if __name__ == "__main__":
    for name, words in LINES.items():
        fill(PAGE, f"radabound {name}", f"```text\n{help_of(*words)}\n```")
