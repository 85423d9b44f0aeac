"""Check the links of the documentation; nothing is requested from another host.

    python docs/make/links.py          # all .md pages and notebooks of the repository
    python docs/make/links.py site     # the built site, links into module sources included

Prints each broken link, and exits with 1 if there is one.  A page of docs/ that the sources name
must exist, too.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("docs", "examples", "benchmarks", "tests")
# what backticks may name in the repository
TOP = (
    "docs",
    "examples",
    "benchmarks",
    "tests",
    "src",
    "radabound_fast",
    "recipe",
    ".ci",
    ".github",
)

FENCED = re.compile(r"^(?P<fence>`{3,}|:{3,})[^\n]*\n.*?^(?P=fence)[ \t]*$", re.S | re.M)
CODE = re.compile(r"(`+)(?!`)(.+?)(?<!`)\1(?!`)", re.S)
LINK = re.compile(r"\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)")
HEADING = re.compile(r"^(#{1,6})[ \t]+(.+?)[ \t]*$", re.M)
PATH = re.compile(rf"(?:{'|'.join(map(re.escape, TOP))})/[\w./-]*[\w/]")


# ---- pages of the repository -----------------------------------------------------------------


def pages() -> list[Path]:
    """Return the pages and notebooks of the repository."""
    found = [*ROOT.glob("*.md")]
    for folder in FOLDERS:
        found += [path for end in ("md", "ipynb") for path in (ROOT / folder).rglob(f"*.{end}")]
    return sorted(path for path in found if ".ipynb_checkpoints" not in path.parts)


@cache
def text_of(page: Path) -> str:
    """Return a page's Markdown; of a notebook that of its cells of text."""
    text = page.read_text(encoding="utf-8")
    if page.suffix != ".ipynb":
        return text
    cells = [cell for cell in json.loads(text)["cells"] if cell["cell_type"] == "markdown"]
    return "\n\n".join("".join(cell["source"]) for cell in cells)


def slug(heading: str) -> str:
    """Return the anchor that GitHub and MyST make of a heading."""
    words = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
    return re.sub(r"[^\w\- ]", "", words.lower()).strip().replace(" ", "-")


@cache
def anchors(page: Path) -> frozenset[str]:
    """Return the anchors of a page's headings."""
    seen: dict[str, int] = {}
    found = set()
    for _, heading in HEADING.findall(FENCED.sub("", text_of(page))):
        name = slug(heading)
        number = seen.get(name, 0)
        seen[name] = number + 1
        found.add(f"{name}-{number}" if number else name)
    return frozenset(found)


def broken_in(page: Path) -> Iterator[str]:
    """Yield the links of a page that lead nowhere, and the paths in backticks that do not exist."""
    text = FENCED.sub("", text_of(page))
    for target in LINK.findall(CODE.sub("", text)):
        parts = urlsplit(target)
        if parts.scheme or parts.netloc:
            if parts.scheme not in ("https", "mailto"):
                yield f"{target}: not https"
            continue
        there = (page.parent / unquote(parts.path)).resolve() if parts.path else page
        if not there.exists():
            yield f"{target}: no such file"
        elif (
            parts.fragment
            and there.suffix in (".md", ".ipynb")
            and parts.fragment not in anchors(there)
        ):
            yield f"{target}: no such heading"
    for _, code in CODE.findall(text):
        for path in PATH.findall(code):
            if "*" not in code and "{" not in code and not (ROOT / path).exists():
                yield f"`{path}`: no such file"


NAMED = re.compile(r"\bdocs/[\w./-]+\.(?:md|py|csv|png|svg|ipynb)\b")
SOURCES = ("py", "pyi", "pyx", "pxi", "pxd", "c", "h", "toml", "yaml", "yml")


def sources() -> list[Path]:
    """Return the files that are no pages, and may name one."""
    folders = [ROOT / name for name in TOP if (ROOT / name).is_dir()]
    found = [ROOT / "Makefile", *(path for path in (ROOT / ".ci").iterdir() if path.is_file())]
    found += ROOT.glob("*.toml")
    found += [path for folder in folders for end in SOURCES for path in folder.rglob(f"*.{end}")]
    return sorted(found)


def missing_from(source: Path) -> Iterator[str]:
    """Yield the pages and scripts of docs/ that a source file names and that do not exist."""
    for name in sorted(set(NAMED.findall(source.read_text(encoding="utf-8", errors="replace")))):
        if not (ROOT / name).exists():
            yield f"{name}: no such file"


# ---- the built site --------------------------------------------------------------------------


class Page(HTMLParser):
    """The ids and the local links of one page of the site."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id" or (tag == "a" and name == "name"):
                self.ids.add(value or "")
            elif name in ("href", "src") and value:
                self.links.add(value)


def broken_on(site: Path) -> Iterator[tuple[Path, str]]:
    """Yield pages of the site and their links that lead nowhere."""
    read = {path.resolve(): Page(path) for path in sorted(site.rglob("*.html"))}
    for path, page in read.items():
        for link in sorted(page.links):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            there = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if there.is_dir():
                there /= "index.html"
            fragment = unquote(parts.fragment)
            if not there.exists():
                yield path, f"{link}: no such file"
            elif fragment and there in read and fragment not in read[there].ids:
                yield path, f"{link}: no such anchor"


def main(*sites: str) -> int:
    if sites:
        found = [pair for site in sites for pair in broken_on(Path(site))]
    else:
        found = [(page, link) for page in pages() for link in broken_in(page)]
        found += [(source, name) for source in sources() for name in missing_from(source)]
    for path, link in found:
        print(f"{path.relative_to(ROOT) if path.is_relative_to(ROOT) else path}: {link}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
