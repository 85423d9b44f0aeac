"""A full disk, and a folder that cannot be written."""

from __future__ import annotations

import errno
import os
import random
import resource
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from trial import Count, Fault, contents, in_child

from radabound_fast import RadaBound

N_SAMPLES = 2000
PARAMETERS = {"n_samples": N_SAMPLES, "epsilon": 0.9, "delta": 0.1, "seed": 4}
DISK_BYTES = 2**22
NOBODY = 65534


class Disk(NamedTuple):
    """A folder whose space can be taken away, to the last few bytes, and given back."""

    folder: Path
    fill: Callable[[], None]
    clear: Callable[[], None]
    how: str


def small_disk(folder: Path) -> Disk:
    """A tmpfs, where a user may mount one; else files that may not grow."""
    mounted = folder / "disk"
    mounted.mkdir()
    if unshare_mounts() and mount_tmpfs(mounted):
        return Disk(mounted, lambda: fill(mounted), lambda: clear(mounted), "a small tmpfs")
    # which SQLite meets as an error of writing, not as a lack of space
    unlimited = resource.getrlimit(resource.RLIMIT_FSIZE)

    def limit() -> None:
        longest = max(path.stat().st_size for path in mounted.iterdir())
        soft = random.randrange(longest + 1)
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, unlimited[1]))

    def unlimit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, unlimited)

    return Disk(mounted, limit, unlimit, "RLIMIT_FSIZE: no tmpfs could be mounted here")
