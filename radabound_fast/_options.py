"""Options that several subcommands have, declared once."""

from __future__ import annotations

import argparse
from typing import Any

from radabound_fast.bounds import BOUNDS

_OPTIONS: dict[str, dict[str, Any]] = {
    "n_samples": {"type": int, "metavar": "M", "help": "the holdout"},
    "epsilon": {"type": float, "help": "the error tolerated"},
    "delta": {"type": float, "required": True, "help": "probability of failure"},
    "n_vectors": {"type": int, "metavar": "L", "help": "sign vectors (default: 32)"},
    "bound": {"metavar": "NAME", "help": ", ".join(BOUNDS)},
    "estimator": {"metavar": "NAME", "help": "plain or half-range"},
    "max_queries": {
        "type": int,
        "metavar": "K",
        "help": "of a sequence in a fixed order: how many share delta alike",
    },
    "space_size": {"type": int, "metavar": "N", "help": "configurations in a declared space"},
    "seed": {"type": int, "help": "of the signs, for reproduction (default: drawn)"},
}


def add_option(
    parser: argparse.ArgumentParser | argparse._ArgumentGroup, name: str, **changes: Any
) -> None:
    """Add the option of this name, of which ``changes`` are the subcommand's own.

    What is not given is None, and the library's default is taken.
    """
    parser.add_argument(f"--{name.replace('_', '-')}", **(_OPTIONS[name] | changes))


def given(args: argparse.Namespace, *names: str) -> dict[str, Any]:
    """Those of the options that were given."""
    return {name: value for name in names if (value := getattr(args, name)) is not None}
