"""The command ``radabound``: audit | confirm | gate | report | plan | serve | backup | edge | ...

A subcommand is two functions: one adds its parser to `commands` and says which function runs
it, the other takes the parsed arguments and returns the exit code.  Bad input is one line on
stderr and exit code 2, from whichever layer the error comes; a traceback is a bug of ours.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import re
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from types import FrameType
from typing import Any, NoReturn

from radabound_fast import __version__
from radabound_fast._extras import needs
from radabound_fast.cli.audit import add_audit
from radabound_fast.cli.confirm import add_confirm
from radabound_fast.cli.database import add_backup, add_report
from radabound_fast.cli.edge import add_edge
from radabound_fast.cli.experiments import add_demo, add_reproduce
from radabound_fast.cli.gate import add_gate
from radabound_fast.cli.info import add_info
from radabound_fast.cli.options import BAD_INPUT, INTERRUPTED, OK, PIPE_CLOSED
from radabound_fast.cli.plan import add_plan
from radabound_fast.cli.serve import add_serve


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``radabound`` with these arguments (None: the process's own); returns the exit code.

    0: done; 1: a self-check failed, or a candidate did not pass; 2: bad input; 3: a guard halted;
    130: interrupted; 141: nobody reads the output any more; 143: terminated.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a key may have what a terminal cannot show
            stream.reconfigure(errors="backslashreplace")
    try:
        with _stopping_cleanly():
            return _run(make_parser().parse_args(argv))
    except KeyboardInterrupt:  # wherever it comes, also while an error is reported
        return INTERRUPTED
    except _Stopped as stop:
        return 128 + stop.signal


class _Stopped(BaseException):
    """A signal that would have ended the process at once, and left files half written."""

    def __init__(self, number: int) -> None:
        self.signal = number


@contextlib.contextmanager
def _stopping_cleanly() -> Iterator[None]:
    """SIGTERM and SIGHUP end what runs within as Ctrl-C does, unless somebody else has them."""
    mine = []

    def stop(number: int, _: FrameType | None) -> None:
        raise _Stopped(number)

    try:
        if threading.current_thread() is threading.main_thread():
            for name in ("SIGTERM", "SIGHUP"):  # the second is not there on Windows
                number = getattr(signal, name, None)
                if number is not None and signal.getsignal(number) == signal.SIG_DFL:
                    mine.append(number)
                    signal.signal(number, stop)
        yield
    finally:
        for number in mine:
            signal.signal(number, signal.SIG_DFL)


def _run(args: argparse.Namespace) -> int:
    try:
        code: int = args.run(args)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader of a pipe has seen enough
        _drop_stdout()
        return PIPE_CLOSED
    except (OSError, ValueError, ImportError, MemoryError) as error:
        if isinstance(error.__cause__, (KeyboardInterrupt, _Stopped)):  # it broke into an import
            raise error.__cause__ from None
        print(f"radabound {args.command}: {_one_line(error)}", file=sys.stderr)
        try:
            sys.stdout.flush()
        except OSError:  # as on a full disk: it would be tried again at the end
            _drop_stdout()
        return BAD_INPUT
    return code


def _drop_stdout() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class Parser(argparse.ArgumentParser):
    """Reports a bad argument in one line, without the usage; -1e3 is a number to it."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._negative_number_matcher = re.compile(r"-\.?\d")  # as Python 3.14 has it

    def every_action(self) -> Iterator[argparse.Action]:
        """Options and arguments, those of subcommands too."""
        for action in self._actions:
            yield action
            for each in action.choices.values() if isinstance(action.choices, dict) else ():
                if isinstance(each, Parser):
                    yield from each.every_action()

    def error(self, message: str) -> NoReturn:
        self.exit(BAD_INPUT, f"{self.prog}: {message}\n")


def make_parser() -> Parser:
    """Make the parser of the command and all its subcommands."""
    parser = Parser(prog="radabound", description="Guard a holdout that judges many models.")
    parser.add_argument("--version", action="version", version=f"radabound {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for add in COMMANDS:
        add(commands)
    return parser


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

    parser = make_parser()
    for action in parser.every_action():
        names = action.metavar if isinstance(action.metavar, tuple) else (action.metavar or "",)
        if any("FILE" in name for name in names):
            action.complete = shtab.FILE  # type: ignore[attr-defined]
        elif "DIR" in names:
            action.complete = shtab.DIRECTORY  # type: ignore[attr-defined]
    print(shtab.complete(parser, args.shell))
    return OK


COMMANDS = (
    add_audit, add_confirm, add_gate, add_report, add_plan, add_serve, add_backup,
    add_edge, add_demo, add_reproduce, add_info,
    add_completion,
)  # fmt: skip


def _one_line(error: Exception) -> str:
    if isinstance(error, OSError) and error.filename is not None:
        return f"{os.fsdecode(error.filename)}: {error.strerror}"
    if isinstance(error, OSError) and error.strerror is not None:
        return f"output: {error.strerror}"  # of files we know the names
    return " ".join(str(error).split()) or "there is not enough memory"
