"""Sphinx: `make docs` builds site/ and takes every warning for an error."""

import shutil
from importlib.metadata import version as installed_version
from pathlib import Path

HERE = Path(__file__).parent

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

default_role = "py:obj"
autodoc_member_order = "bysource"
autodoc_mock_imports = ["xgboost"]  # large, and in no extra
autodoc_typehints = "none"  # shapes and dtypes are in the docstrings
numpydoc_show_class_members = False

html_theme = "furo"
html_title = "radabound_fast"
html_show_copyright = False
