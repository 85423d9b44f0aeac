"""``radabound serve``: a holdout as a service."""

from __future__ import annotations

import argparse
import contextlib
import inspect
import ipaddress
import logging
import os
import stat
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from radabound_fast._checks import check_count, counted, read_as
from radabound_fast._extras import needs
from radabound_fast.bounds import PAPER_BOUNDS
from radabound_fast.cli.options import (
    OF_PREDICTIONS,
    add_conditions,
    add_header,
    add_option,
    add_options,
    check_absent,
    declared_space,
    given,
    judged,
    labels_of,
)
from radabound_fast.guards.base import Guard
from radabound_fast.guards.confirmed.search import ConfirmedSearch
from radabound_fast.guards.declared.search import DeclaredSearch
from radabound_fast.guards.fixed_sequence import FixedSequence
from radabound_fast.guards.gate.gate import Gate
from radabound_fast.guards.guess_and_check import GuessAndCheck
from radabound_fast.guards.ladder import Ladder
from radabound_fast.guards.radabound import RadaBound
from radabound_fast.rows.rounded import Rounded
from radabound_fast.store import open_any

if TYPE_CHECKING:
    from radabound_fast.service.tokens import Tokens

GUARDS: dict[str, Any] = {
    "radabound": RadaBound,
    "guess-and-check": GuessAndCheck,
    "ladder": Ladder,
    "fixed-sequence": FixedSequence,
    "declared-search": DeclaredSearch,
    "confirmed-search": ConfirmedSearch,
    "gate": Gate,
}
_ON_A_GRID = {
    GuessAndCheck: "which answers in the guess or a bin",
    Ladder: "whose answers are multiples of --step",
    ConfirmedSearch: "whose search scores may tell all that they can",
    Gate: "which answers in verdicts",
}
_OF_GATE = ("margin", "total_margin", "at_least", "at_most", "n_candidates", "release")
_OPTIONS = (
    "epsilon", "delta", "bound", "n_vectors", "max_queries", "step", "allow_reruns",
    "confirm_share", *_OF_GATE,
)  # fmt: skip
_OTHERS = stat.S_IRGRP | stat.S_IWGRP | stat.S_IROTH | stat.S_IWOTH


def add_serve(commands: Any) -> None:
    parser = commands.add_parser(
        "serve",
        help="a holdout as a service: teams send predictions, the labels stay here",
        description="Own the labels and the guard in FILE, which is made if it is not there, and "
        "answer teams over HTTP. Exact means give away the labels to whoever asks for it "
        "(SECURITY.md): for teams that are not trusted take --confirm-share: they see scores "
        "on one part of the rows, and finalists are confirmed on the other at the end.",
    )
    parser.set_defaults(run=_serve, output=None)
    parser.add_argument("database", metavar="FILE", help="of the guard")
    add_option(parser, "labels", required=True, help="the m labels")
    add_header(parser)
    tokens = "a line `name token [limits]` each; it may change meanwhile"
    add_option(parser, "tokens", required=True, help=tokens)
    host = "address to listen on (default: 127.0.0.1, for a reverse proxy on this machine)"
    add_option(parser, "host", default="127.0.0.1", help=host)
    add_option(parser, "port", default=8000, help="0: a free one (default: 8000)")
    add_options(parser, max_body="octets (default: 16,777,216)")
    parser.add_argument(
        "--durability",
        choices=("power", "process"),
        default="power",
        help="what answers survive (default: power)",
    )
    guard = parser.add_argument_group("the guard, where FILE is made")
    guard.add_argument("--guard", choices=GUARDS, help="needed where FILE is made")
    add_options(
        guard,
        epsilon="the error tolerated; not of declared-search and ladder",
        delta="probability of failure",
        bound=f"of radabound: {', '.join(PAPER_BOUNDS)} (default: bernstein)",
        n_vectors="sign vectors of radabound and fixed-sequence (default: 32)",
        max_queries="of ladder and fixed-sequence",
        space_size="of declared-search: keys are whole numbers below it",
        space="of declared-search: names with lists, or with intervals {from, to, step}",
    )
    add_option(guard, "allow_reruns", default=None, help="of declared-search")
    add_options(
        guard,
        step="of ladder",
        round="of radabound, fixed-sequence and declared-search: answer in multiples of STEP, with "
        "intervals that are widened by what that hides",
        confirm_share="of confirmed-search: the share of the rows that is kept for the end",
    )
    add_options(parser, finalists="of confirmed-search: how many a team may name (default: 1)")
    guard.add_argument(
        "--gate", dest="guard", action="store_const", const="gate", help="short for --guard gate"
    )
    add_conditions(guard)
    metric = parser.add_argument_group(
        "of declared-search and fixed-sequence; FILE has all but the baseline afterwards"
    )
    add_options(metric, *OF_PREDICTIONS)


def _serve(args: argparse.Namespace) -> int:
    with needs("serve"):
        from radabound_fast.service.app import MAX_BODY
        from radabound_fast.service.server import listen, make_server, run
        from radabound_fast.service.tokens import Tokens

    if not 0 <= args.port < 2**16:
        raise ValueError(f"--port must be in [0, 65535], got {args.port}")
    max_body = MAX_BODY if args.max_body is None else check_count(max_body=args.max_body)
    tokens = Tokens(args.tokens)
    labels = labels_of(args)
    # before the guard: a database is not made for an address that is taken
    with listen(args.host, args.port) as listener:
        guard = _open(args, labels, tokens)
        host, port = listener.getsockname()[:2]
        where = f"http://{f'[{host}]' if ':' in host else host}:{port}"
        names = counted(len(tokens.teams), "name")
        print(
            f"{where} answers {names} with a {guard.kind}, and expects a reverse proxy in front "
            "(docs/how-to/serve-a-holdout.md)",
            flush=True,
        )
        if not ipaddress.ip_address(host).is_loopback:
            _warn("other machines can connect past that proxy, in clear: leave out --host")
        if guard.needs == "key" and (shared := tokens.warning_of_keys()):
            _warn(shared)
        if os.name == "posix" and os.stat(args.tokens).st_mode & _OTHERS:
            _warn(f"{args.tokens} can be read or written by others than its owner: chmod 600")
        server = make_server(guard, tokens, max_body=max_body)
        with _logging_to_stderr():
            run(server, listener)
    return 0


@contextlib.contextmanager
def _logging_to_stderr() -> Iterator[None]:
    """What failed and why, which no reply tells, and a halt; the library itself logs nowhere."""
    logger, handler = logging.getLogger("radabound_fast"), logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)


def _warn(what: str) -> None:
    print(f"radabound serve: {what}", file=sys.stderr, flush=True)


def _open(args: argparse.Namespace, labels: Any, tokens: Tokens) -> Guard:
    stored = _kind_of(args.database) if os.path.exists(args.database) else None
    if args.confirm_share is not None and args.guard is None:
        args.guard = "confirmed-search"
    wanted = GUARDS.get(args.guard or "")
    if stored is not None and wanted not in (None, stored):
        raise ValueError(
            f"--guard must be that of {args.database}, a {stored.__name__}, got {args.guard}"
        )
    kind = stored or wanted
    if kind is None:
        raise ValueError(
            f"{args.database} is not there: to make it give --guard, one of {', '.join(GUARDS)} "
            "(for teams that see scores and are not trusted: confirmed-search; what each tells of "
            "the labels: SECURITY.md)"
        )
    tokens.check_fits(kind)
    takes = set(inspect.signature(kind.open).parameters)
    if kind is not Gate:
        takes -= {"release"}  # whose verdicts it is the choice of
    left_out = f"{{}} must be left out with {_name_of(kind)}"
    others = (*_OPTIONS, "space", "space_size", "baseline")
    check_absent(args, (one for one in others if one.removesuffix("_size") not in takes), left_out)
    if kind is not ConfirmedSearch:
        check_absent(args, ("finalists",), left_out)
    if kind in _ON_A_GRID:
        check_absent(args, ("round",), f"{left_out}, {_ON_A_GRID[kind]}")
    parameters = given(args, *_OPTIONS)
    if args.round is not None:
        with read_as(step="--round"):
            parameters["release"] = Rounded(args.round)
    space = declared_space(args)
    if space is not None:
        parameters["space"] = space
    if stored is None or parameters:
        _check_complete(args.database, stored, kind, parameters)
    what, baseline = judged(args, labels)
    if baseline is not None:
        parameters["baseline"] = baseline
    try:
        with read_as(release="--release" if args.round is None else "--round"):
            guard: Any = kind.open(args.database, what, durability=args.durability, **parameters)
    except TypeError as error:
        raise ValueError(str(error)) from None
    if kind is ConfirmedSearch:
        from radabound_fast.service.competition import Competition

        guard = Competition(guard, 1 if args.finalists is None else args.finalists)
    opened: Guard = guard
    return opened


def _check_complete(path: str, stored: Any, kind: Any, parameters: dict[str, Any]) -> None:
    """ValueError unless all is given that a new one of this kind needs."""
    takes = inspect.signature(kind).parameters
    needed = [name for name in (*_OPTIONS, "space") if name in takes]
    needed = [name for name in needed if takes[name].default is inspect.Parameter.empty]
    if not parameters.keys() >= set(needed):
        must = " and ".join(f"--{name}" for name in needed)
        must = must.replace("--space", "--space-size or --space")
        if stored is not None:
            raise ValueError(
                f"{path} has its parameters: give {must} as it was made with, or no parameter"
            )
        raise ValueError(f"{path} is not there: to make it for {_name_of(kind)} give {must}")


def _name_of(kind: Any) -> str:
    return next(name for name, each in GUARDS.items() if each is kind)


def _kind_of(path: str) -> Any:
    """The class of the guard in a database."""
    with contextlib.closing(open_any(path)) as record:
        name = record.description["kind"]
    for kind in GUARDS.values():
        if kind.__name__ == name:
            return kind
    served = ", ".join(kind.__name__ for kind in GUARDS.values())
    raise ValueError(f"{path} holds a {name:.50}, which is not served: {served} are")
