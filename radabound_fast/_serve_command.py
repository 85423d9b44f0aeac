"""``radabound serve``: a holdout as a service."""

from __future__ import annotations

import argparse
import inspect
import json
import os
import stat
import sys
from inspect import Parameter
from typing import Any

from radabound_fast._checks import check_count, check_positive, counted
from radabound_fast._extras import needs
from radabound_fast._options import add_metric_options, metric_options
from radabound_fast.bounds import BOUNDS
from radabound_fast.files import open_labels
from radabound_fast.guard import RadaBound
from radabound_fast.holdout import Holdout
from radabound_fast.mechanisms import DeclaredSearch, GuessAndCheck, Ladder

MECHANISMS: dict[str, Any] = {
    "radabound": RadaBound,
    "guess-and-check": GuessAndCheck,
    "ladder": Ladder,
    "declared-search": DeclaredSearch,
}
# which option is which argument
_OPTIONS = {
    "epsilon": "epsilon",
    "delta": "delta",
    "bound": "bound",
    "n_vectors": "n_vectors",
    "max_queries": "max_queries",
    "step": "step",
    "space": "space",
    "reruns": "reruns",
}
_LOOPBACK = ("127.0.0.1", "::1", "localhost")


def add_serve(commands: Any) -> None:
    parser = commands.add_parser(
        "serve",
        help="a holdout as a service: teams send predictions, the labels stay here",
        description="Own the labels and the guard in FILE, which is made if it is not there, and "
        "answer teams over HTTP. Exact means give away the labels to whoever asks for it "
        "(SECURITY.md): for teams that are not trusted take guess-and-check or ladder.",
    )
    parser.set_defaults(run=_serve, output=None)
    parser.add_argument("database", metavar="FILE", help="of the guard")
    parser.add_argument("--labels", required=True, metavar="FILE", help="the m labels")
    parser.add_argument("--header", choices=("yes", "no"), help="of a .csv file of labels")
    parser.add_argument(
        "--tokens", required=True, metavar="FILE", help="a line `name token [answers a day]` each"
    )
    parser.add_argument("--host", default="127.0.0.1", help="(default: 127.0.0.1)")
    parser.add_argument("--port", type=int, default=8000, help="0: a free one (default: 8000)")
    parser.add_argument("--tls-cert", metavar="FILE", help="a certificate in PEM")
    parser.add_argument("--tls-key", metavar="FILE", help="its key")
    parser.add_argument("--max-body", type=int, metavar="N", help="octets (default: 16,777,216)")
    parser.add_argument(
        "--body-seconds", type=float, metavar="S", help="for a body to come (default: 20)"
    )
    parser.add_argument(
        "--durability", choices=("power", "process"), default="power",
        help="what answers survive (default: power)",
    )  # fmt: skip
    guard = parser.add_argument_group("the guard, where FILE is made")
    guard.add_argument(
        "--mechanism", choices=MECHANISMS, help="(default: that of FILE, or radabound)"
    )
    guard.add_argument("--epsilon", type=float, help="the error tolerated")
    guard.add_argument("--delta", type=float, help="probability of failure")
    guard.add_argument("--bound", choices=list(BOUNDS), help="of radabound (default: bernstein)")
    guard.add_argument(
        "--n-vectors", type=int, metavar="L", help="sign vectors of radabound (default: 32)"
    )
    guard.add_argument("--max-queries", type=int, metavar="K", help="of radabound and ladder")
    guard.add_argument("--step", type=float, help="of ladder")
    guard.add_argument(
        "--space", metavar="N|FILE.json", help="of declared-search: a number of keys, or a grid"
    )
    guard.add_argument("--reruns", action="store_true", default=None, help="of declared-search")
    add_metric_options(parser.add_argument_group("what is measured, of declared-search"))


def _serve(args: argparse.Namespace) -> int:
    with needs("serve"):
        from radabound_fast.service.app import MAX_BODY
        from radabound_fast.service.server import BODY_SECONDS, listening, run, server_of
        from radabound_fast.service.tokens import Tokens

    if (args.tls_cert is None) != (args.tls_key is None):
        raise ValueError("--tls-cert must be given with --tls-key")
    max_body = MAX_BODY if args.max_body is None else check_count(max_body=args.max_body)
    seconds = args.body_seconds
    seconds = BODY_SECONDS if seconds is None else check_positive(body_seconds=seconds)
    tokens = Tokens(args.tokens)
    labels = open_labels(args.labels, header={None: None, "yes": True, "no": False}[args.header])
    # before the guard: a database is not made for an address that is taken
    with listening(args.host, args.port) as listener:
        holdout = _open(args, labels)
        scheme = "http" if args.tls_cert is None else "https"
        host, port = listener.getsockname()[:2]
        where = f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}"
        names = counted(len(tokens.teams), "name")
        print(f"{where} answers {names} with a {type(holdout.guard).__name__}", flush=True)
        if scheme == "http" and args.host not in _LOOPBACK:
            _warn("tokens and answers go in clear: give --tls-cert, or put a proxy before it")
        if os.name == "posix" and os.stat(args.tokens).st_mode & (stat.S_IRGRP | stat.S_IROTH):
            _warn(f"{args.tokens} can be read by others than its owner: chmod 600")
        server = server_of(
            holdout, tokens, max_body=max_body, body_seconds=seconds,
            tls_cert=args.tls_cert, tls_key=args.tls_key,
        )  # fmt: skip
        run(server, listener)
    return 0


def _warn(what: str) -> None:
    print(f"radabound serve: {what}", file=sys.stderr, flush=True)


def _open(args: argparse.Namespace, labels: Any) -> Holdout:
    found = _kind_of(args.database) if os.path.exists(args.database) else None
    wanted = MECHANISMS.get(args.mechanism or "")
    if found is not None and wanted not in (None, found):
        raise ValueError(
            f"--mechanism must be that of {args.database}, a {found.__name__}, got {args.mechanism}"
        )
    kind = found or wanted or RadaBound
    given = {name: getattr(args, option) for option, name in _OPTIONS.items()}
    parameters = {name: value for name, value in given.items() if value is not None}
    if "space" in parameters:
        parameters["space"] = _space(args.space)
    _check_parameters(kind, parameters, None if found else args.database)
    measured = metric_options(args, labels)
    try:
        return Holdout.open(
            args.database, labels, kind, durability=args.durability, **measured, **parameters
        )
    except TypeError as error:
        raise ValueError(str(error)) from None


def _check_parameters(kind: Any, parameters: dict[str, Any], missing: str | None) -> None:
    """ValueError unless they are this mechanism's, and all that it needs if its file is missing."""
    mechanism = next(name for name, each in MECHANISMS.items() if each is kind)
    takes = inspect.signature(kind).parameters
    flags = {name: f"--{option.replace('_', '-')}" for option, name in _OPTIONS.items()}
    for name in parameters:
        if name not in takes:
            own = ", ".join(flag for each, flag in flags.items() if each in takes)
            raise ValueError(f"{flags[name]} is not for {mechanism}, which has {own}")
    if missing is None:
        return
    needed = [name for name in flags if name in takes and takes[name].default is Parameter.empty]
    if not parameters.keys() >= set(needed):
        must = " and ".join(flags[name] for name in needed)
        raise ValueError(f"{missing} is not there: to make it for {mechanism} give {must}")


def _kind_of(path: str) -> Any:
    """Of the guard in a database."""
    from radabound_fast.store import open_ledger

    try:
        ledger = open_ledger(path)
    except ValueError:
        return DeclaredSearch  # or nothing of ours, which it says
    try:
        name = ledger.description["kind"]
    finally:
        ledger.close()
    for kind in MECHANISMS.values():
        if kind.__name__ == name:
            return kind
    raise ValueError(f"{path} holds a {name:.50}, which is not served")


def _space(given: str) -> Any:
    if given.isascii() and given.isdecimal():
        return int(given)
    with open(given, encoding="utf-8") as file:
        try:
            return json.load(file)
        except ValueError as error:
            raise ValueError(
                f"{given} must be JSON, a mapping of names to lists: {error}"
            ) from None
