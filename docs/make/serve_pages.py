"""Make the pictures of docs/how-to/serve-a-holdout.md: ``python docs/make/serve_pages.py``.

A service of each guard is started by its command, three teams ask it, and a real browser (Debian's
chromium) shows its page: to the owner in light, to a team in dark, on a phone, and after the halt.
``--all FOLDER`` writes the page of every guard there, in light and dark, on two screens.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from radabound_fast import HoldoutExhausted
from radabound_fast.service.client import RemoteGuard

IMAGES = Path(__file__).parents[1] / "images"
TEAMS = ("owner", "ada", "boole", "cantor")
M = 4000
LABELS = np.random.default_rng(1).integers(0, 2, M)
# the scheme and the window of each picture
LIGHT, DARK = 1, 0
WIDE, PHONE = (1280, 1500), (390, 1500)
GRID = {"depth": list(range(1, 21)), "leaf": [1, 3, 10, 30]}


def token_of(team: str) -> str:
    return f"{team}-token-0123456789"


def wrong_in(error: float, seed: int) -> np.ndarray:
    """Predictions that err in this share of the rows."""
    return np.where(np.random.default_rng(seed).random(M) < error, 1 - LABELS, LABELS)


# ---- what is asked -------------------------------------------------------------------------------

Brought = Callable[[int, np.ndarray], dict[str, Any]]


def nothing(number: int, row: np.ndarray) -> dict[str, Any]:
    return {}


def a_key(number: int, row: np.ndarray) -> dict[str, Any]:
    names = list(GRID)
    return {"key": {name: GRID[name][number // 4 ** (name == "depth") % len(GRID[name])]
                    for name in names}}  # fmt: skip


def a_guess(number: int, row: np.ndarray) -> dict[str, Any]:
    return {"guess": round(float((row != LABELS).mean()), 2)}


def a_finalist(number: int, row: np.ndarray) -> dict[str, Any]:
    return {"finalist": "stack"} if number % 9 == 8 else {}


class Scene(NamedTuple):
    """A service that was asked so many queries."""

    options: tuple[str, ...]
    n_rows: int
    brought: Brought = nothing
    ends: bool = False


SCENES = {
    "fixed": Scene(("--guard", "fixed-sequence", "--epsilon", ".03"), 90),
    "radabound_halted": Scene(("--guard", "radabound", "--epsilon", ".04", "--bound", "mclt"), 90),
    "search": Scene(("--guard", "declared-search", "--space", "grid.json"), 60, a_key),
    "search_rounded": Scene(
        ("--guard", "declared-search", "--space", "grid.json", "--round", ".01"), 60, a_key),
    "ladder": Scene(("--guard", "ladder", "--step", ".01", "--max-queries", "120"), 90),
    "ladder_halted": Scene(("--guard", "ladder", "--step", ".01", "--max-queries", "80"), 90),
    "guess": Scene(("--guard", "guess-and-check", "--epsilon", ".05"), 60, a_guess),
    "gate": Scene(("--gate", "--baseline", "baseline.npy"), 12),
    "gate_halted": Scene(("--gate", "--baseline", "baseline.npy", "--n-candidates", "8"), 12),
    # the first command of the page
    "confirm": Scene(("--confirm-share", "0.5"), 60, a_finalist),
    "confirm_ended": Scene(("--confirm-share", "0.5"), 60, a_finalist, ends=True),
}  # fmt: skip


@contextlib.contextmanager
def service(scene: Scene) -> Iterator[str]:
    """Where it listens."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        np.save(folder / "y.npy", LABELS)
        np.save(folder / "baseline.npy", wrong_in(0.45, 9))
        (folder / "grid.json").write_text(str(GRID).replace("'", '"'))
        (folder / "tokens.txt").write_text("".join(f"{team} {token_of(team)}\n" for team in TEAMS))
        (folder / "tokens.txt").chmod(0o600)
        command = [
            sys.executable, "-m", "radabound_fast", "serve", "guard.db", "--labels", "y.npy",
            "--tokens", "tokens.txt", "--delta", "0.1", "--port", "0", *scene.options,
        ]  # fmt: skip
        here = str(Path(__file__).parents[2])
        process = subprocess.Popen(
            command, cwd=folder, stdout=subprocess.PIPE, text=True,
            env=os.environ | {"PYTHONPATH": here},
        )  # fmt: skip
        try:
            assert process.stdout is not None
            url = process.stdout.readline().split()[0]
            ask(url, scene)
            yield url
        finally:
            process.terminate()
            process.communicate()


def ask(url: str, scene: Scene) -> None:
    """Teams ask about models that get better, and then no more."""
    rng = np.random.default_rng(2)
    teams = {team: RemoteGuard(url, token=token_of(team)) for team in TEAMS}
    for number in range(scene.n_rows):
        name = TEAMS[1:][rng.integers(0, 3) if rng.random() < 0.5 else 0]
        error = 0.3 * 0.97 ** (number * (1 if name == "ada" else 0.7)) + 0.12 + rng.normal(0, 0.008)
        row = wrong_in(error, 100 + number)
        with contextlib.suppress(HoldoutExhausted):
            teams[name].query(row, **scene.brought(number, row))
    if scene.ends:
        teams["owner"].end()


def photograph(url: str, path: Path, team: str, scheme: int, size: tuple[int, int]) -> None:
    """A picture of the page, cut below its end."""
    address = url.replace("://", f"://{team}:{token_of(team)}@")
    width, height = size
    with tempfile.TemporaryDirectory() as profile:
        subprocess.run(
            [
                "chromium", "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
                f"--user-data-dir={profile}", f"--window-size={width},{height}",
                f"--blink-settings=preferredColorScheme={scheme}",
                f"--screenshot={path}", address,
            ],
            check=True, capture_output=True, timeout=120,
        )  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--all", type=Path, metavar="FOLDER", help="the page of every guard")
    folder = parser.parse_args().all
    if folder is not None:
        for name, scene in SCENES.items():
            with service(scene) as url:
                photograph(url, folder / f"{name}.png", "owner", LIGHT, WIDE)
                photograph(url, folder / f"{name}_dark.png", "ada", DARK, WIDE)
                photograph(url, folder / f"{name}_phone.png", "owner", LIGHT, PHONE)
                photograph(url, folder / f"{name}_phone_dark.png", "ada", DARK, PHONE)
        return
    with service(SCENES["search"]) as url:
        photograph(url, IMAGES / "serve.png", "owner", LIGHT, (960, 1560))
        photograph(url, IMAGES / "serve_phone.png", "owner", LIGHT, PHONE)
    with service(SCENES["confirm"]) as url:
        photograph(url, IMAGES / "serve_dark.png", "ada", DARK, (960, 1500))
    with service(SCENES["confirm_ended"]) as url:
        photograph(url, IMAGES / "serve_confirmed.png", "owner", LIGHT, (960, 1000))
    with service(SCENES["ladder_halted"]) as url:
        photograph(url, IMAGES / "serve_halted.png", "owner", DARK, PHONE)
    for path in sorted(IMAGES.glob("serve*.png")):
        print(path, os.path.getsize(path))


if __name__ == "__main__":
    main()
