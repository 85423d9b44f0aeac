"""The guard in C as a library of its own: what is packed builds, links and runs by itself."""

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path

import pytest
from support import needs

from radabound_fast.edge import EdgeState

ROOT = Path(__file__).parents[2]
SRC = ROOT / "src"
GUARD = SRC / "edge" / "radabound_edge.c"
PAGE = ROOT / "docs" / "reference" / "microcontroller.md"

pytestmark = pytest.mark.source


def run(*command, **options):
    done = subprocess.run(
        list(map(str, command)), capture_output=True, text=True, timeout=120, **options
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def packed(tmp_path_factory):
    """The tarball, unpacked."""
    folder = tmp_path_factory.mktemp("package")
    name = run(sys.executable, SRC / "edge" / "package" / "make_tarball.py", folder).strip()
    with tarfile.open(name) as archive:
        archive.extractall(folder, filter="data")
    return folder / Path(name).name.removesuffix(".tar.gz")


def test_the_tarball_has_the_version_of_the_metadata_and_the_same_bytes_each_time(packed, tmp_path):
    with open(ROOT / "pyproject.toml", "rb") as file:
        version = tomllib.load(file)["project"]["version"]
    assert packed.name == f"radabound_edge-{version}"
    again = run(sys.executable, SRC / "edge" / "package" / "make_tarball.py", tmp_path).strip()
    assert Path(again).read_bytes() == (packed.parent / Path(again).name).read_bytes()
    for path in packed.rglob("*"):
        assert path.is_dir() or b"@VERSION@" not in path.read_bytes(), path
    for name in ("CMakeLists.txt", "library.properties", "idf_component.yml"):
        assert version in (packed / name).read_text()


def test_the_tarball_has_every_file_that_its_sources_include(packed):
    sources = [*(packed / "src").rglob("*.[ch]")]
    assert len(sources) == 4
    for path in sources:
        for name in re.findall(r'#include "(.*)"', path.read_text()):
            assert (path.parent / name).exists() or (packed / "src" / name).exists(), (path, name)


def test_the_commands_of_its_readme_build_the_examples(packed):
    text = (packed / "README.md").read_text().replace("\\\n", " ")
    commands = [line.split() for line in re.findall(r"^    (\S.*)$", text, re.M)]
    assert [command[0] for command in commands] == ["cc", "arm-none-eabi-gcc", "qemu-system-arm"]
    for command in commands[:2]:
        needs(command[0])
        run(*command, cwd=packed)
        assert (packed / command[-1]).exists()
        (packed / command[-1]).unlink()


CONSUMER = """
#include <radabound_edge.h>
#include <string.h>
static int nothing(void *context, int slot, void *bytes)
{
    (void)context; (void)slot;
    memset(bytes, 0xff, RADABOUND_EDGE_STATE_BYTES);
    return 0;
}
int main(void)
{
    static struct radabound_edge guard;
    const struct radabound_edge_storage storage = {nothing, 0, 0};
    return radabound_edge_init(&guard, &storage) != RADABOUND_EDGE_NO_STATE ||
           RADABOUND_EDGE_VECTORS != 16 || RADABOUND_EDGE_STATE_BYTES != 752 + 8 * 16;
}
"""


@pytest.mark.thorough
def test_cmake_installs_what_find_package_and_pkg_config_find(packed, tmp_path):
    needs("cmake", "cc", "pkg-config")
    build, prefix = tmp_path / "build", tmp_path / "prefix"
    run("cmake", "-S", packed, "-B", build, "-DRADABOUND_EDGE_VECTORS=16",
        f"-DCMAKE_INSTALL_PREFIX={prefix}", "-DCMAKE_INSTALL_LIBDIR=lib")  # fmt: skip
    run("cmake", "--build", build)
    run("cmake", "--install", build)
    consumer = tmp_path / "consumer"
    consumer.mkdir()
    (consumer / "main.c").write_text(CONSUMER)
    (consumer / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.16)\nproject(consumer C)\n"
        "find_package(radabound_edge REQUIRED)\nadd_executable(consumer main.c)\n"
        "target_link_libraries(consumer radabound::radabound_edge)\n"
    )
    run("cmake", "-S", consumer, "-B", consumer / "build", f"-DCMAKE_PREFIX_PATH={prefix}")
    run("cmake", "--build", consumer / "build")
    run(consumer / "build" / "consumer")
    where = os.environ | {"PKG_CONFIG_PATH": str(prefix / "lib" / "pkgconfig")}
    flags = run("pkg-config", "--cflags", "--libs", "radabound_edge", env=where)
    run("cc", consumer / "main.c", *flags.split(), "-o", consumer / "other")
    run(consumer / "other")


def test_zephyrs_build_is_told_sources_that_are_there(packed, tmp_path):
    """Zephyr's own functions are played by CMake's."""
    needs("cmake", "cc")
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.20)\nproject(zephyr C)\n"
        "set(CONFIG_RADABOUND_EDGE y)\nset(CONFIG_RADABOUND_EDGE_VECTORS 16)\n"
        "macro(zephyr_library)\n  add_library(module STATIC)\nendmacro()\n"
        "macro(zephyr_library_sources)\n  target_sources(module PRIVATE ${ARGN})\nendmacro()\n"
        "macro(zephyr_include_directories)\n  target_include_directories(module PUBLIC ${ARGN})\n"
        "endmacro()\nmacro(zephyr_compile_definitions)\n"
        "  target_compile_definitions(module PUBLIC ${ARGN})\nendmacro()\n"
        f'add_subdirectory("{packed}/zephyr" module)\n'
        "add_executable(application main.c)\ntarget_link_libraries(application module)\n"
    )
    (tmp_path / "main.c").write_text(CONSUMER)
    run("cmake", "-S", tmp_path, "-B", tmp_path / "build")
    run("cmake", "--build", tmp_path / "build")
    run(tmp_path / "build" / "application")
    yaml = pytest.importorskip("yaml")
    module = yaml.safe_load((packed / "zephyr" / "module.yml").read_text())["build"]
    assert (packed / module["cmake"] / "CMakeLists.txt").exists()
    assert (packed / module["kconfig"]).exists()
    assert set(yaml.safe_load((packed / "idf_component.yml").read_text())) == {
        "version", "description", "license",
    }  # fmt: skip


ARDUINO = """
#include <stdint.h>
#include <stdio.h>
struct {
    uint8_t bytes[4096];
    uint8_t read(int at) { return bytes[at]; }
    void update(int at, uint8_t byte) { bytes[at] = byte; }
} EEPROM;
struct {
    int next = -2;
    void begin(long) {}
    int available() { if (next == -2) next = getchar(); return next != EOF; }
    int read() { const int c = next; next = -2; return c; }
    void println(const char *text) { puts(text); }
    void println(uint32_t number) { printf("%lu\\n", (unsigned long)number); }
} Serial;
"""


def test_the_sketch_judges_what_arrives_and_its_library_compiles_as_arduino_does(packed, tmp_path):
    """Arduino compiles each source below src, with src to include from, and a sketch as C++."""
    needs("cc", "c++")
    flags = ["-Os", "-Wall", "-Wextra", "-Werror", f"-I{packed / 'src'}"]
    objects = []
    for path in (packed / "src").rglob("*.c"):
        objects.append(tmp_path / f"{path.stem}.o")
        run("cc", "-std=c11", *flags, "-c", path, "-o", objects[-1])
    (tmp_path / "EEPROM.h").write_text("")
    sketch = (packed / "examples" / "GuardCount" / "GuardCount.ino").read_text()
    new = EdgeState.new(10, epsilon=0.9, delta=0.1, bound="mclt", seed=1)
    array = ",".join(map(str, 2 * new.to_bytes()))
    main = f"int main() {{ static const uint8_t made[] = {{{array}}};\n"
    main += "for (unsigned i = 0; i < sizeof made; i++) EEPROM.bytes[i] = made[i];\n"
    main += "setup(); while (Serial.available()) loop(); }\n"
    (tmp_path / "sketch.cpp").write_text(ARDUINO + sketch + main)
    run("c++", "-std=c++11", *flags, f"-I{tmp_path}", tmp_path / "sketch.cpp", *objects,
        "-o", tmp_path / "sketch")  # fmt: skip
    told = run(tmp_path / "sketch", input="1100000001\n0000000000\n11\n11111111111\n1111111111\n")
    assert told.splitlines() == ["3", "0", "not judged", "not judged", "10"]
    properties = dict(
        line.split("=", 1) for line in (packed / "library.properties").read_text().splitlines()
    )
    wanted = "name version author maintainer sentence paragraph category architectures includes"
    assert set(properties) == set(wanted.split())


@pytest.mark.parametrize(
    ("compiler", "language", "standard"),
    [("gcc", "c", "c99"), ("clang", "c", "c99"), ("gcc", "c", "c11"), ("g++", "c++", "c++11"),
     ("clang++", "c++", "c++20"), ("avr-gcc", "c", "c99"), ("avr-gcc", "c++", "c++11")],
)  # fmt: skip
@pytest.mark.parametrize("n_vectors", [1, 32])
def test_it_compiles_without_a_warning(compiler, language, standard, n_vectors, tmp_path):
    needs(compiler)
    chip = ["-mmcu=atmega2560"] if compiler == "avr-gcc" else []  # whose int has 16 bits
    run(compiler, *chip, "-x", language, f"-std={standard}", "-pedantic-errors", "-Wall", "-Wextra",
        "-Wshadow", "-Wundef", "-Wconversion", "-Wsign-conversion", "-Werror", "-Os",
        f"-DRADABOUND_EDGE_VECTORS={n_vectors}",
        f"-I{SRC}", "-c", GUARD, "-o", tmp_path / "guard.o")  # fmt: skip


@pytest.mark.parametrize("machine", ["native", "Cortex-M0"])
def test_it_has_no_memory_of_its_own_and_calls_no_library(machine, tmp_path):
    compiler = {"native": ["gcc"], "Cortex-M0": ["arm-none-eabi-gcc", "-mcpu=cortex-m0", "-mthumb"]}
    needs(compiler[machine][0])
    run(*compiler[machine], "-std=c99", "-ffreestanding", "-Os", f"-I{SRC}", "-c", GUARD,
        "-o", tmp_path / "guard.o")  # fmt: skip
    symbols = run("nm" if machine == "native" else "arm-none-eabi-nm", tmp_path / "guard.o")
    kinds = re.findall(r"([A-Za-z]) (\S+)$", symbols, re.M)
    assert {kind for kind, _ in kinds} <= set("TtrRU$")  # code, constants, and what is called
    # multiplication in 64 bits, switches and shifts; no float
    called = {name for kind, name in kinds if kind == "U"}
    allowed = {"_GLOBAL_OFFSET_TABLE_", "__aeabi_lmul", "__aeabi_llsl", "__aeabi_llsr"}
    assert called <= allowed | {"memcpy", "memset"}


@pytest.mark.thorough
def test_misras_checker_reports_the_rules_that_the_page_gives_reasons_for(tmp_path):
    needs("cppcheck")
    guard = shutil.copy(GUARD, tmp_path)  # it leaves files beside what it reads
    version = run("cppcheck", "--version")
    command = ["cppcheck", "--addon=misra", "--std=c99", "--enable=style", "--quiet"]
    done = subprocess.run(
        [*command, f"-I{SRC}", f"-I{GUARD.parent}", "--template={file} {id}", guard],
        capture_output=True, text=True, check=True, timeout=120, cwd=tmp_path,
    )  # fmt: skip
    reported = set(re.findall(r"misra-c2012-([\d.]+)$", done.stderr, re.M))
    section = PAGE.read_text(encoding="utf-8").partition("## MISRA")[2]
    rows = re.findall(r"^\| ([\d., ]+) \|", section, re.M)
    documented = {rule for row in rows for rule in row.split(", ")}
    assert reported and reported <= documented
    if "2.10" in version:  # others know other rules
        assert reported == documented
    others = set(re.findall(r" (?!misra)(\w+)$", done.stderr, re.M))
    assert others <= {"unusedStructMember"}, others
