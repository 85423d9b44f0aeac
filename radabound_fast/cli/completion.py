"""``radabound completion``: what a shell needs to complete the command's options and files."""

from __future__ import annotations

import argparse
from typing import Any

from radabound_fast._extras import needs
from radabound_fast.cli.options import OK


def add_completion(commands: Any) -> None:
    parser = commands.add_parser(
        "completion",
        help="a script that has a shell complete commands, options and files",
        description='Print the script of a shell. For bash: eval "$(radabound completion bash)".',
    )
    parser.set_defaults(run=_completion)
    parser.add_argument("shell", choices=("bash", "zsh", "tcsh"), help="whose script to print")


def _completion(args: argparse.Namespace) -> int:
    with needs("completion"):
        import shtab

    from radabound_fast.cli import make_parser

    parser = make_parser()
    for action in parser.every_action():
        names = action.metavar if isinstance(action.metavar, tuple) else (action.metavar or "",)
        if any("FILE" in name for name in names):
            action.complete = shtab.FILE  # type: ignore[attr-defined]
        elif "DIR" in names:
            action.complete = shtab.DIRECTORY  # type: ignore[attr-defined]
    print(shtab.complete(parser, args.shell))
    return OK
