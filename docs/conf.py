"""Sphinx: `make docs` builds site/ and takes every warning for an error.

A page loads nothing from another host, so that it looks the same without a network.
"""

import re
import shutil
from html.parser import HTMLParser
from importlib.metadata import version as installed_version
from importlib.util import find_spec
from pathlib import Path

from docutils import nodes
from math_core import LatexToMathML
from sphinx.util import logging

HERE = Path(__file__).parent
WARN = logging.getLogger(__name__).warning

# Sphinx reads below this folder alone
shutil.copytree(
    HERE.parent / "examples",
    HERE / "notebooks",
    ignore=lambda folder, names: [name for name in names if not name.endswith(".ipynb")],
    dirs_exist_ok=True,
)

project = "radabound_fast"
version = release = installed_version("radabound_fast")
extensions = ["sphinx.ext.autodoc", "sphinx.ext.viewcode", "numpydoc", "myst_nb"]

myst_enable_extensions = ["amsmath", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
# its text is made by `make bench`
exclude_patterns = (
    [] if (HERE.parent / "benchmarks" / "RESULTS.md").exists() else ["performance.md"]
)
nb_execution_mode = "off"  # the tests run them; the outputs shown are those of a run
nb_ipywidgets_js = {}  # there are none, and their scripts come from elsewhere

default_role = "py:obj"
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # shapes and dtypes are in the docstrings
numpydoc_show_class_members = False

html_theme = "furo"
html_title = "radabound_fast"
html_show_copyright = False
html_static_path = ["_static"]
html_css_files = ["math.css", "code.css"]
html_math_renderer = "mathml"

# ---- formulas, as MathML that the browser sets in a font of the site's own -------------------

# a package whose wheel holds STIX Two Math, under the SIL Open Font License
FONT = Path(find_spec("ziamath").origin).parent / "fonts" / "STIXTwoMath-Regular.ttf"
FORMULAS = LatexToMathML()
# the font's prime is high and small as it stands: as a superscript it would be twice so
LETTER = r"(<m[in]>[^<]*</m[in]>)"
PRIMES = [
    (rf"<msup>{LETTER}<mo>′</mo></msup>", r"<mrow>\1<mo>′</mo></mrow>"),
    (rf"<msubsup>{LETTER * 2}<mo>′</mo></msubsup>", r"<mrow><msub>\1\2</msub><mo>′</mo></mrow>"),
]


def as_mathml(translator, node):
    """Write a formula where the translator is, in a line or as a block."""
    block = isinstance(node, nodes.math_block)
    try:
        formula = FORMULAS.convert_with_local_state(node.astext(), displaystyle=block)
    except Exception as error:
        WARN("%s: %s", error, node.astext(), location=node)
        raise nodes.SkipNode from error
    for scripts, line in PRIMES:
        formula = re.sub(scripts, line, formula)
    translator.body.append(f'<div class="math">{formula}</div>' if block else formula)
    raise nodes.SkipNode


# ---- what a page loads -----------------------------------------------------------------------

LOADED_BY = {"script": "src", "img": "src", "iframe": "src", "source": "src", "embed": "src"}
LOADED_LINKS = {"stylesheet", "icon", "preload", "prefetch", "preconnect", "dns-prefetch"}
ELSEWHERE = re.compile(r"(?:[a-z]+:)?//", re.IGNORECASE)
IN_CSS = re.compile(r"""(?:url\(|@import)\s*["']?((?:https?:)?//[^"')\s]+)""", re.IGNORECASE)


class Loads(HTMLParser):
    """What the elements of a page load from other hosts."""

    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attributes):
        given = {name: value or "" for name, value in attributes}
        loaded = given.get(LOADED_BY.get(tag, ""), "")
        if tag == "link" and LOADED_LINKS & set(given.get("rel", "").split()):
            loaded = given.get("href", "")
        if ELSEWHERE.match(loaded):
            self.found.append(loaded)


def check_loads(app, error):
    """Warn if a page or a style sheet of the site loads anything from another host."""
    if error is not None or app.builder.format != "html":
        return
    for path in sorted(Path(app.outdir).rglob("*")):
        text = path.read_text("utf-8") if path.suffix in (".html", ".css") else ""
        parser = Loads()
        if path.suffix == ".html":
            parser.feed(text)
        for name in parser.found + IN_CSS.findall(text):
            WARN("%s loads %s", path.relative_to(app.outdir), name)


def add_font(app, error):
    if error is None and app.builder.format == "html":
        shutil.copy(FONT, Path(app.outdir) / "_static")


def link_to_pages(app, page, source):
    """In a checkout the links to the notebooks lead to examples/, and here to their pages."""
    source[0] = re.sub(r"\]\(\.\./examples/(\w+\.ipynb)\)", r"](notebooks/\1)", source[0])


def setup(app):
    app.add_html_math_renderer("mathml", (as_mathml, None), (as_mathml, None))
    app.connect("build-finished", add_font)
    app.connect("source-read", link_to_pages)
    app.connect("build-finished", check_loads)
