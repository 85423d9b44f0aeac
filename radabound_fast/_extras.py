"""Packages that only an extra installs: one way to ask for them, one message if one is missing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec


@contextmanager
def needs(extra: str) -> Iterator[None]:
    """What an extra installs is imported within; the ModuleNotFoundError names the extra.

    Within another `needs` the outer extra is the one named.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package in ("", "radabound_fast"):  # a fault of ours: no extra would mend it
            raise
        raise ModuleNotFoundError(
            f'{package} is not installed; from a clone of radabound_fast: pip install ".[{extra}]"',
            name=package,
        ) from error


def check_installed(extra: str, *packages: str) -> None:
    """Look for packages that are imported only after long work; errors are those of `needs`."""
    with needs(extra):
        for package in packages:
            if find_spec(package) is None:
                raise ModuleNotFoundError(name=package)
