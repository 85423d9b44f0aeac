import numpy
from setuptools import Extension, setup

HEADERS = [
    "cpu.h",
    "packing.h",
    "scan.h",
    "signed_sums.h",
    "sliced.h",
    "sliced_plan.h",
    "tiles.h",
    "turn.h",
]
TEMPLATES = ["packing_bits.h", "packing_kinds.h", "packing_units.h", "sliced.inc.h", "units.inc.h"]
INCLUDES = [
    "_answer.pxi",
    "_arrow.pxi",
    "_extremes.pxi",
    "_one_row.pxi",
    "_packing.pxi",
    "_scan.pxi",
    "_signs.pxi",
    "_state.pxi",
    "_threads.pxi",
    "_turn.pxi",
    "_watched.pxi",
]
SOURCES = [
    "_kernel.pyx",
    "cpu.c",
    "dispatch.c",
    "scan.c",
    "settled.c",
    "blocks.c",
    "signed_sums_portable.c",
    "signed_sums_avx2.c",
    "signed_sums_avx512.c",
    "signed_sums_amx.c",
    "signed_sums_neon.c",
    "units_avx2.c",
    "units_avx512.c",
    "sliced_plan.c",
    "sliced_portable.c",
    "sliced_avx2.c",
    "sliced_avx512.c",
    "sliced_neon.c",
    "packing_portable.c",
    "packing_avx2.c",
    "packing_avx512.c",
    "packing_neon.c",
]

setup(
    ext_modules=[
        Extension(
            "radabound_fast._kernel",
            sources=[f"src/{name}" for name in SOURCES],
            depends=[f"src/{name}" for name in HEADERS + TEMPLATES + INCLUDES],
            # "." as well: without it the C API of _kernel.pxd is silently left out
            include_dirs=["src", ".", numpy.get_include()],
            define_macros=[("NPY_NO_DEPRECATED_API", "NPY_1_22_API_VERSION")],
        )
    ]
)
