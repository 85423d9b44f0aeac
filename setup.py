"""The one extension: every C source of the two lower floors, and the Cython one on top of them."""

import os
import shutil
import sys
from glob import glob

import numpy
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

FLOORS = ("src/kernels", "src/scan", "src/extension")

FLAGS = []
if sys.platform != "win32":
    # a call from one file to another is direct, and no other library's name is taken
    FLAGS.append("-fvisibility=hidden")
    given = os.environ.get("CFLAGS", "").split()
    if "-g" not in given:
        FLAGS.append("-g0")  # what debuggers want is six times the rest
    if not any(flag.startswith("-O") for flag in given):
        # whatever Python was built with; the portable kernel is fastest so
        # (docs/evidence/platforms.md)
        FLAGS += ["-O2", "-ftree-vectorize"]


class BuildExt(build_ext):
    """Says what to install where there is no compiler."""

    def build_extensions(self) -> None:
        command = getattr(self.compiler, "compiler_so", None)  # Microsoft's is found otherwise
        if command and shutil.which(command[0]) is None:
            raise SystemExit(
                f"radabound_fast is compiled from C, and the compiler {command[0]!r} is not here: "
                "install one (Debian, Ubuntu: apt install gcc; Fedora: dnf install gcc; Alpine: "
                "apk add gcc musl-dev; macOS: xcode-select --install)"
            )
        super().build_extensions()


def files(*endings: str) -> list[str]:
    return sorted(
        path for floor in FLOORS for ending in endings for path in glob(f"{floor}/*{ending}")
    )


setup(
    cmdclass={"build_ext": BuildExt},
    ext_modules=[
        Extension(
            "radabound_fast._kernel",
            # not src/extension/*.c: that is what Cython writes
            sources=[
                "src/extension/_kernel.pyx",
                *sorted(glob("src/kernels/*.c")),
                *sorted(glob("src/scan/*.c")),
            ],
            depends=files(".h", ".pxi"),
            # "." as well: without it the C API of _kernel.pxd is silently left out
            include_dirs=["src", ".", numpy.get_include()],
            define_macros=[("NPY_NO_DEPRECATED_API", "NPY_1_22_API_VERSION")],
            extra_compile_args=FLAGS,
        )
    ],
)
