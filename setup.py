"""The one extension: every C source of the two lower floors, and the Cython one on top of them."""

import sys
from glob import glob

import numpy
from setuptools import Extension, setup

FLOORS = ("src/kernels", "src/scan", "src/extension")


def files(*endings: str) -> list[str]:
    return sorted(
        path for floor in FLOORS for ending in endings for path in glob(f"{floor}/*{ending}")
    )


setup(
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
            # a call from one file to another is direct, and no other library's name is taken
            extra_compile_args=[] if sys.platform == "win32" else ["-fvisibility=hidden"],
        )
    ]
)
