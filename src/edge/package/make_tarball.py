"""The guard as a library of its own: ``python src/edge/package/make_tarball.py [FOLDER]``.

Writes FOLDER/radabound_edge-VERSION.tar.gz (dist by default); the same bytes for the same sources.
"""

import gzip
import io
import sys
import tarfile
import tomllib
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent
ROOT = PACKAGE.parents[2]
EXAMPLES = ROOT / "examples" / "edge"


def contents() -> dict[str, bytes]:
    """Names within the tarball, and what is in them."""
    found = {
        "LICENSE": ROOT / "LICENSE",
        "examples/posix/guard_stream.c": EXAMPLES / "guard_stream.c",
    }
    for path in PACKAGE.rglob("*"):
        if path.is_file() and path.suffix not in (".py", ".pyc"):
            found[path.relative_to(PACKAGE).as_posix()] = path
    for name in ("radabound_edge.h", "radabound_edge.c"):
        found[f"src/{name}"] = ROOT / "src" / "edge" / name
    for name in ("cpu.h", "sign_stream.h"):
        found[f"src/kernels/{name}"] = ROOT / "src" / "kernels" / name
    for path in (EXAMPLES / "board").iterdir():
        found[f"examples/board/{path.name}"] = path
    return {
        name: path.read_bytes().replace(b"@VERSION@", version().encode())
        for name, path in sorted(found.items())
    }


def version() -> str:
    with open(ROOT / "pyproject.toml", "rb") as file:
        return str(tomllib.load(file)["project"]["version"])


def make(folder: Path) -> Path:
    """Writes the tarball into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    name = f"radabound_edge-{version()}"
    path = folder / f"{name}.tar.gz"
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for member, content in contents().items():
            entry = tarfile.TarInfo(f"{name}/{member}")
            entry.size, entry.mode = len(content), 0o644
            archive.addfile(entry, io.BytesIO(content))
    path.write_bytes(gzip.compress(packed.getvalue(), mtime=0))
    return path


if __name__ == "__main__":
    print(make(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "dist"))
