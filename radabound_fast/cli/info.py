"""``radabound info``: the version, the kernels, and a self-check of them."""

from __future__ import annotations

import argparse
import platform
from typing import Any

import numpy as np

from radabound_fast import __version__
from radabound_fast._kernels.rows import active_kernel, kernels
from radabound_fast.cli.options import FAILED, OK
from radabound_fast.cli.selfcheck import agrees_with_reference


def add_info(commands: Any) -> None:
    parser = commands.add_parser(
        "info",
        help="the version, the kernels, and a self-check of them",
        description="List the kernels and compare those that run here with the reference. "
        "Exit code: 0 they agree, 1 one does not.",
    )
    parser.set_defaults(run=_info)


def _info(args: argparse.Namespace) -> int:
    chosen = active_kernel()
    print(f"radabound_fast {__version__}, NumPy {np.__version__}, {platform.platform()}")
    code = OK
    for name, supported in kernels():
        if not supported:
            state = "compiled; this CPU cannot run it"
        elif agrees_with_reference(name):
            state = "agrees with the reference"
        else:
            state, code = "DISAGREES with the reference: do not use, and report it", FAILED
        print(f"{'*' if name == chosen else ' '} {name:<10} {state}")
    print("* is in use")
    return code
