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
from typing import TYPE_CHECKING, Any

from radabound_fast._checks import check_count, counted, read_as
from radabound_fast._extras import needs
from radabound_fast.bounds import PAPER_BOUNDS
from radabound_fast.cli import options
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
_NAMES = {kind.__name__: name for name, kind in GUARDS.items()}
_ON_A_GRID = {
    GuessAndCheck: "which answers in the guess or a bin",
    Ladder: "whose answers are multiples of --step",
    ConfirmedSearch: "whose search scores may tell all that they can",
    Gate: "which answers in verdicts",
}
_OPTIONS = (
    "epsilon", "delta", "bound", "n_vectors", "max_queries", "step", "allow_reruns",
    "confirm_share", *options.CONDITIONS,
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
    options.add_one(parser, "labels", required=True, help="the m labels")
    options.add(parser, "header")
    tokens = "a line `name token [limits]` each; it may change meanwhile"
    options.add_one(parser, "tokens", required=True, help=tokens)
    host = "address to listen on (default: 127.0.0.1, for a reverse proxy on this machine)"
    options.add_one(parser, "host", default="127.0.0.1", help=host)
    options.add_one(parser, "port", default=8000, help="0: a free one (default: 8000)")
    options.add(parser, max_body="octets (default: 16,777,216)")
    survive = "what answers survive (default: power)"
    options.add_one(parser, "durability", default="power", help=survive)
    guard = parser.add_argument_group("the guard, where FILE is made")
    guard.add_argument("--guard", choices=GUARDS, help="needed where FILE is made")
    options.add(
        guard,
        epsilon="the error tolerated; not of declared-search and ladder",
        delta="probability of failure",
        bound=f"of radabound: {', '.join(PAPER_BOUNDS)} (default: bernstein)",
        n_vectors="sign vectors of radabound and fixed-sequence (default: 32)",
        max_queries="of ladder and fixed-sequence",
        space_size="of declared-search: keys are whole numbers below it",
        space="of declared-search: names with lists, or with intervals {from, to, step}",
    )
    options.add(
        guard,
        allow_reruns="of declared-search",
        step="of ladder",
        round="of radabound, fixed-sequence and declared-search: answer in multiples of STEP, with "
        "intervals that are widened by what that hides",
        confirm_share="of confirmed-search: the share of the rows that is kept for the end",
    )
    options.add(parser, finalists="of confirmed-search: how many a team may name (default: 1)")
    guard.add_argument(
        "--gate", dest="guard", action="store_const", const="gate", help="short for --guard gate"
    )
    options.add(guard, *options.CONDITIONS)
    metric = parser.add_argument_group(
        "of declared-search and fixed-sequence; FILE has all but the baseline afterwards"
    )
    options.add(metric, *options.OF_PREDICTIONS)


def _serve(args: argparse.Namespace) -> int:
    with needs("serve"):
        from radabound_fast.service.app import MAX_BODY
        from radabound_fast.service.server import listen, make_server, run
        from radabound_fast.service.tokens import Tokens

    if not 0 <= args.port < 2**16:
        raise ValueError(f"--port must be in [0, 65535], got {args.port}")
    max_body = MAX_BODY if args.max_body is None else check_count(max_body=args.max_body)
    tokens = Tokens(args.tokens)
    labels = options.labels_of(args)
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
        # what failed and why, which no reply tells, and a halt; the library itself logs nowhere
        logger, handler = logging.getLogger("radabound_fast"), logging.StreamHandler()
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
        level = logger.level
        logger.addHandler(handler)
        logger.setLevel(logging.INFO)
        try:
            run(server, listener)
        finally:
            logger.removeHandler(handler)
            logger.setLevel(level)
    return options.OK


def _warn(what: str) -> None:
    print(f"radabound serve: {what}", file=sys.stderr, flush=True)


def _guard_of(args: argparse.Namespace) -> tuple[str, bool]:
    """The name of the guard to serve, and whether it is in the database."""
    path = args.database
    name = args.guard or ("confirmed-search" if args.confirm_share is not None else None)
    if os.path.exists(path):
        with contextlib.closing(open_any(path)) as record:
            stored = record.description["kind"]
        if stored not in _NAMES:
            raise ValueError(
                f"{path} holds a {stored:.50}, which is not served: {', '.join(_NAMES)} are"
            )
        if name not in (None, _NAMES[stored]):
            raise ValueError(f"--guard must be that of {path}, a {stored}, got {name}")
        return _NAMES[stored], True
    if name is None:
        raise ValueError(
            f"{path} is not there: to make it give --guard, one of {', '.join(GUARDS)} "
            "(for teams that see scores and are not trusted: confirmed-search; what each tells of "
            "the labels: SECURITY.md)"
        )
    return name, False


def _open(args: argparse.Namespace, labels: Any, tokens: Tokens) -> Guard:
    path, (name, is_stored) = args.database, _guard_of(args)
    kind = GUARDS[name]
    tokens.check_fits(kind)
    takes = set(inspect.signature(kind.open).parameters)
    if kind is not Gate:
        takes -= {"release"}  # whose verdicts it is the choice of
    left_out = f"{{}} must be left out with {name}"
    others = (*_OPTIONS, "space", "space_size", "baseline")
    options.check_absent(
        args, (one for one in others if one.removesuffix("_size") not in takes), left_out
    )
    if kind is not ConfirmedSearch:
        options.check_absent(args, ("finalists",), left_out)
    if kind in _ON_A_GRID:
        options.check_absent(args, ("round",), f"{left_out}, {_ON_A_GRID[kind]}")
    parameters = options.values(args, *_OPTIONS)
    if args.round is not None:
        with read_as(step="--round"):
            parameters["release"] = Rounded(args.round)
    if (space := options.declared_space(args)) is not None:
        parameters["space"] = space
    of_kind = inspect.signature(kind).parameters
    needed = [one for one in (*_OPTIONS, "space") if one in of_kind]
    needed = [one for one in needed if of_kind[one].default is inspect.Parameter.empty]
    if (parameters or not is_stored) and not parameters.keys() >= set(needed):
        must = " and ".join(f"--{one}" for one in needed)
        must = must.replace("--space", "--space-size or --space")
        if is_stored:
            raise ValueError(
                f"{path} has its parameters: give {must} as it was made with, or no parameter"
            )
        raise ValueError(f"{path} is not there: to make it for {name} give {must}")
    what, baseline = options.judged(args, labels)
    if baseline is not None:
        parameters["baseline"] = baseline
    try:
        with read_as(release="--release" if args.round is None else "--round"):
            guard: Any = kind.open(path, what, durability=args.durability, **parameters)
    except TypeError as error:
        raise ValueError(str(error)) from None
    if kind is ConfirmedSearch:
        from radabound_fast.service.competition import Competition

        guard = Competition(guard, 1 if args.finalists is None else args.finalists)
    opened: Guard = guard
    return opened
