"""Make the pictures of docs/how-to/serve-a-holdout.md: ``python docs/make/serve_pages.py``.

A service is started, three teams ask it, and a real browser (Debian's chromium) shows its page: to
the owner in light, to a team in dark, on a phone, and after the halt.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from radabound_fast import HoldoutExhausted
from radabound_fast.service.client import RemoteGuard

IMAGES = Path(__file__).parents[1] / "images"
TEAMS = ("owner", "ada", "boole", "cantor")
M = 4000
# dark or light, and the window, of each picture
LIGHT, DARK = 1, 0
WIDE, PHONE = (960, 1240), (390, 1180)


def token_of(team: str) -> str:
    return f"{team}-token-0123456789"


@contextlib.contextmanager
def service(folder: Path, *options: str) -> Iterator[str]:
    """Where it listens."""
    np.save(folder / "y.npy", np.random.default_rng(1).integers(0, 2, M))
    (folder / "tokens.txt").write_text("".join(f"{team} {token_of(team)}\n" for team in TEAMS))
    (folder / "tokens.txt").chmod(0o600)
    command = [
        sys.executable, "-m", "radabound_fast", "serve", str(folder / "guard.db"), "--labels",
        str(folder / "y.npy"), "--tokens", str(folder / "tokens.txt"), "--port", "0", *options,
    ]  # fmt: skip
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield process.stdout.readline().split()[0]
    finally:
        process.terminate()
        process.communicate()


def ask(url: str, n_rows: int) -> None:
    """Teams ask about models that get better, and then no more."""
    rng, labels = np.random.default_rng(2), np.random.default_rng(1).integers(0, 2, M)
    teams = {team: RemoteGuard(url, token=token_of(team)) for team in TEAMS[1:]}
    for number in range(n_rows):
        name = TEAMS[1:][rng.integers(0, 3) if rng.random() < 0.5 else 0]
        error = 0.3 * 0.97 ** (number * (1 if name == "ada" else 0.7)) + 0.12 + rng.normal(0, 0.008)
        row = np.where(rng.random(M) < error, 1 - labels, labels)
        with contextlib.suppress(HoldoutExhausted):
            teams[name].query(row)


def photograph(url: str, name: str, team: str, scheme: int, size: tuple[int, int]) -> None:
    address = url.replace("://", f"://{team}:{token_of(team)}@")
    width, height = size
    with tempfile.TemporaryDirectory() as profile:
        subprocess.run(
            [
                "chromium", "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
                f"--user-data-dir={profile}", f"--window-size={width},{height}",
                f"--blink-settings=preferredColorScheme={scheme}",
                f"--screenshot={IMAGES / name}", address,
            ],
            check=True, capture_output=True, timeout=120,
        )  # fmt: skip


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        given = ("--guard", "fixed-sequence", "--epsilon", "0.03", "--delta", "0.1")
        with service(Path(folder), *given) as url:
            ask(url, 90)
            photograph(url, "serve.png", "owner", LIGHT, WIDE)
            photograph(url, "serve_dark.png", "ada", DARK, WIDE)
            photograph(url, "serve_phone.png", "owner", LIGHT, PHONE)
    with tempfile.TemporaryDirectory() as folder:
        given = ("--guard", "ladder", "--step", "0.01", "--delta", "0.1", "--max-queries", "80")
        with service(Path(folder), *given) as url:
            ask(url, 90)
            photograph(url, "serve_halted.png", "owner", DARK, PHONE)
    for path in sorted(IMAGES.glob("serve*.png")):
        print(path, os.path.getsize(path))


if __name__ == "__main__":
    main()
