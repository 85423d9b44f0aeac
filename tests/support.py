"""Helpers that test files of several folders share."""

import os
from pathlib import Path
from types import FrameType

import radabound_fast

# with a separator, so that a clone of any name, and tests inside it, are not taken for the package
PACKAGE = str(Path(radabound_fast.__file__).parent) + os.sep


def in_package(frame: FrameType) -> bool:
    """Whether the frame runs a Python file of the library."""
    return frame.f_code.co_filename.startswith(PACKAGE)
