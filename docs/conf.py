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
from pygments.lexers.special import TextLexer
from sphinx.pycode import ModuleAnalyzer
from sphinx.util import logging

HERE = Path(__file__).parent
REPOSITORY = "https://github.com/radabound-fast/radabound_fast"
WARN = logging.getLogger(__name__).warning

project = "radabound_fast"
version = release = installed_version("radabound_fast")
extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.viewcode",
    "numpydoc",
    "myst_nb",
    "sphinx_copybutton",
]

myst_enable_extensions = ["amsmath", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
# its text is made by `make bench`
exclude_patterns = (
    [] if (HERE.parent / "benchmarks" / "RESULTS.md").exists() else ["evidence/performance.md"]
)
nb_execution_mode = "off"  # the tests run them; the outputs shown are those of a run
nb_ipywidgets_js = {}  # there are none, and their scripts come from elsewhere

# what a copy button copies: input without its prompts, and no output
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
copybutton_line_continuation_character = "\\"
copybutton_selector = "div.highlight pre:not(div.cell_output pre)"

default_role = "py:obj"
autodoc_mock_imports = ["mlflow", "wandb"]  # trackers that the site is built without
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # shapes and dtypes are in the docstrings
numpydoc_show_class_members = False

html_theme = "furo"
html_title = f"radabound_fast {version}"
html_show_copyright = False
html_static_path = ["_static"]
html_css_files = ["math.css", "code.css", "narrow.css"]
html_theme_options = {
    "source_repository": REPOSITORY,
    "source_branch": "main",
    "source_directory": "docs/",
    "footer_icons": [{"name": "Repository", "url": REPOSITORY, "html": "Repository", "class": ""}],
}
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


def mend_backlinks(app, error):
    """Let links from sources to the reference name a class as its page does, or leave them out.

    A module's classes may be documented under its own name or as the package exports them; viewcode
    takes one of the two for all.
    """
    if error is not None or app.builder.format != "html":
        return
    modules = Path(app.outdir) / "_modules"
    for path in modules.rglob("*.html"):
        module = ".".join(path.relative_to(modules).with_suffix("").parts)

        def mended(link, path=path, module=module):
            page, _, anchor = link[1].partition("#")
            name = anchor.removeprefix(module + ".").removeprefix(project + ".")
            ids = (path.parent / page).read_text("utf-8")
            for known in (f"{project}.{name}", f"{module}.{name}"):
                if f'id="{known}"' in ids:
                    return link[0].replace(link[1], f"{page}#{known}")
            return ""

        text = path.read_text("utf-8")
        text = re.sub(r'<a class="viewcode-back" href="([^"]*)">[^<]*</a>', mended, text)
        path.write_text(text, "utf-8")


def add_font(app, error):
    if error is None and app.builder.format == "html":
        shutil.copy(FONT, Path(app.outdir) / "_static")


def link_to_sources(app, page, source):
    """A link out of docs/ leads to the repository, since it has no page on the site."""
    up = "../" * page.count("/") + "../"
    source[0] = re.sub(
        rf"\]\({re.escape(up)}(?!\.\.)([\w./-]+(?:#[\w-]+)?)\)",
        rf"]({REPOSITORY}/blob/main/\1)",
        source[0],
    )


def stub_of(app, name):
    """Show the stub of a compiled module where the source of others is."""
    module = Path(find_spec(name).origin)
    if module.suffix == ".py":
        return None
    stub = ModuleAnalyzer.for_string(
        module.with_name(name.rpartition(".")[2] + ".pyi").read_text(), name
    )
    return stub.code, stub.find_tags()


def setup(app):
    app.add_lexer("floors", TextLexer)  # of CONTRIBUTING.md
    app.add_html_math_renderer("mathml", (as_mathml, None), (as_mathml, None))
    app.connect("build-finished", add_font)
    app.connect("source-read", link_to_sources)
    app.connect("viewcode-find-source", stub_of)
    app.connect("build-finished", mend_backlinks)
    app.connect("build-finished", check_loads)
