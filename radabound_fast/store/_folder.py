"""What makes a rename or a link survive a power cut."""

from __future__ import annotations

import os
import sys


def sync_folder(folder: str) -> None:
    """Have what was renamed or linked in a folder on the disk when this returns."""
    if sys.platform == "win32":  # which cannot open a folder, and journals its renames
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
