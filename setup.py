"""The C sources, compiled once, and the Cython modules of radabound_fast/_kernels on them."""

import gzip
import os
import shutil
import sys
import tarfile
from glob import glob

import numpy
from setuptools import Extension, setup
from setuptools.command.build_clib import build_clib
from setuptools.command.build_ext import build_ext
from setuptools.command.sdist import sdist

# "rows" has the table of the instruction sets, and with it all kernels; to link the rest of the
# library into the others adds no byte that they do not call
MODULES = ("support", "rows", "guard", "studentised", "search", "limits")
FOLDER = "radabound_fast/_kernels"
C_FOLDERS = ("src/kernels", "src/scan", "src/gains")
HEADERS = sorted(name for folder in (*C_FOLDERS, FOLDER) for name in glob(f"{folder}/*.h"))
SOURCES = sorted(name for folder in C_FOLDERS for name in glob(f"{folder}/*.c"))

DIRECTIVES = {
    "language_level": 3,
    "boundscheck": False,
    "wraparound": False,
    "initializedcheck": False,
    "cdivision": True,
    "freethreading_compatible": True,
    "auto_pickle": False,
    "autotestdict": False,
    "binding": False,
    "embedsignature": True,
    "embedsignature.format": "clinic",
}

FLAGS: list[str] = []
LINED_UP: list[str] = []
LINK_FLAGS: list[str] = []
if sys.platform != "win32":
    # else where the linker happens to put a kernel makes up to 6 % of its time
    LINED_UP.append("-falign-functions=64")
    # a call from one file to another is direct, and no other library's name is taken
    FLAGS.append("-fvisibility=hidden")
    # all kernels round alike, whether or not they have an instruction for a product and a sum
    FLAGS.append("-ffp-contract=off")
    given = os.environ.get("CFLAGS", "").split()
    if "-g" not in given:
        FLAGS.append("-g0")  # what debuggers want is six times the rest
        if sys.platform == "linux":
            LINK_FLAGS.append("-s")  # and the names of what nobody calls are a tenth of it
    if not any(flag.startswith("-O") for flag in given):
        # whatever Python was built with; the portable kernel is fastest so
        # (docs/evidence/platforms.md)
        FLAGS += ["-O2", "-ftree-vectorize"]


class BuildLibrary(build_clib):
    """Says what to install where there is no compiler."""

    def build_libraries(self, libraries: list) -> None:
        command = getattr(self.compiler, "compiler_so", None)  # Microsoft's is found otherwise
        if command and shutil.which(command[0]) is None:
            raise SystemExit(
                f"radabound_fast is compiled from C, and the compiler {command[0]!r} is not here: "
                "install one (Debian, Ubuntu: apt install gcc; Fedora: dnf install gcc; Alpine: "
                "apk add gcc musl-dev; macOS: xcode-select --install)"
            )
        for archive in glob(f"{self.build_clib}/*radabound_kernels.*"):
            os.remove(archive)  # it would keep what sources that are gone were compiled to
        super().build_libraries(libraries)


class BuildExt(build_ext):
    """Compiles the library first, and writes Cython's C where compiled things go."""

    def initialize_options(self) -> None:
        super().initialize_options()
        self.cython_c_in_temp = True
        self.cython_directives = DIRECTIVES

    def run(self) -> None:
        self.run_command("build_clib")
        super().run()


class Sdist(sdist):
    """Writes the same octets for the same files, whoever makes it, where and when."""

    def make_archive(self, base_name: str, *_: object, base_dir: str, **__: object) -> str:
        # without one the first second that a zip archive can hold, which a wheel is
        second = int(os.environ.get("SOURCE_DATE_EPOCH", 315_532_800))

        def anonymous(member: tarfile.TarInfo) -> tarfile.TarInfo:
            member.uid = member.gid = 0
            member.uname = member.gname = ""
            member.mtime = second
            member.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
            return member

        name = f"{base_name}.tar.gz"
        self.mkpath(self.dist_dir)
        with (
            open(name, "wb") as file,
            gzip.GzipFile("", "wb", fileobj=file, mtime=second) as packed,
            tarfile.open(fileobj=packed, mode="w") as archive,
        ):
            archive.add(base_dir, filter=anonymous)
        return name


setup(
    cmdclass={"build_clib": BuildLibrary, "build_ext": BuildExt, "sdist": Sdist},
    libraries=[
        (
            "radabound_kernels",
            {
                "sources": SOURCES,
                "obj_deps": {"": HEADERS},
                "include_dirs": ["src"],
                "cflags": FLAGS + LINED_UP,
            },
        )
    ],
    ext_modules=[
        Extension(
            f"radabound_fast._kernels.{name}",
            sources=[f"{FOLDER}/{name}.pyx"],
            depends=[*HEADERS, *SOURCES, *sorted(glob(f"{FOLDER}/*.p*"))],
            include_dirs=["src", ".", numpy.get_include()],
            define_macros=[("NPY_NO_DEPRECATED_API", "NPY_1_22_API_VERSION")],
            extra_compile_args=FLAGS,
            extra_link_args=LINK_FLAGS,
        )
        for name in MODULES
    ],
)
