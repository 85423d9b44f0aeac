"""The examples on the site's own pages are true (`make docs` builds it, without a warning)."""

import doctest
import importlib
import re
from pathlib import Path

import numpy as np
import pytest

from radabound_fast import Holdout

DOCS = Path(__file__).parents[2] / "docs"

pytestmark = pytest.mark.source


def vote_chosen_by_the_scores(seed):
    """How far off the answer to a vote is, of 25 coins weighted by what was answered of them."""
    rng = np.random.default_rng([seed, 25])
    labels, coins = rng.integers(0, 2, 1000), rng.integers(0, 2, (25, 1000))
    given = {"epsilon": 0.06, "delta": 0.1, "bound": "fixed-sequence", "n_vectors": 64}
    holdout = Holdout(labels, **given)
    weights = np.where(holdout.query_many(coins).values < 0.5, 1, -1)
    return abs(holdout.query((weights @ (2 * coins - 1) > 0).astype(int)).value - 0.5)


def test_an_order_chosen_by_the_scores_breaks_a_fixed_sequence_as_the_page_says():
    """modes.md: a fifth of the runs.  1,000 runs, seeds 0 to 999; two other programs found 19.4
    and 22.9 %, so that a correct one is outside of these limits with a chance below 1e-6."""
    missed = np.mean([vote_chosen_by_the_scores(seed) > 0.06 for seed in range(1000)])
    assert 0.146 < missed < 0.3  # the first is delta's own binomial quantile at 1 - 1e-6


PAGES_WITH_EXAMPLES = ["index", "modes", "faq", "searches", "metrics", "scale"]


@pytest.mark.parametrize("page", [f"{name}.md" for name in PAGES_WITH_EXAMPLES])
def test_the_examples_of_a_page_are_true(page):
    blocks = re.findall(r"```python\n(>>> .*?)```", (DOCS / page).read_text(), re.S)
    assert blocks
    test = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, page, page, 0)
    assert doctest.DocTestRunner().run(test).failed == 0


ROOT = DOCS.parent
PAGES = [
    *sorted(ROOT.glob("*.md")),
    *sorted(DOCS.rglob("*.md")),
    *sorted(
        path for folder in ("examples", "benchmarks") for path in (ROOT / folder).rglob("*.md")
    ),
]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_files_of_the_checkout(page):
    links = re.findall(r"\]\(([^)\s#]+)[^)]*\)", page.read_text(encoding="utf-8"))
    dead = [
        link
        for link in links
        if not link.startswith(("http", "mailto:")) and not (page.parent / link).exists()
    ]
    assert dead == []


@pytest.mark.parametrize("module", ["", ".guards", ".spaces"])
def test_every_public_name_is_in_the_reference(module):
    public = importlib.import_module(f"radabound_fast{module}").__all__
    pages = "".join(page.read_text("utf-8") for page in (DOCS / "api").glob("*.md"))
    told = set(re.findall(r"\w+", pages))
    assert [name for name in public if name not in told and not name.startswith("__")] == []


def test_a_link_of_a_notebook_leads_to_its_page_on_the_site():
    examples = {path.name for path in (ROOT / "examples").glob("*.ipynb")}
    linked = {
        name
        for page in DOCS.glob("*.md")
        for name in re.findall(r"\]\(\.\./examples/([^)]*)\)", page.read_text(encoding="utf-8"))
    }
    pages = re.findall(r"^notebooks/(\w+)$", (DOCS / "index.md").read_text(), re.M)
    assert linked and linked <= examples and {f"{name}.ipynb" for name in pages} == examples


def imported(name, monkeypatch):
    monkeypatch.syspath_prepend(DOCS)
    return importlib.import_module(name)


def test_the_table_of_metrics_is_what_its_script_makes(monkeypatch):
    marked, script = (imported(name, monkeypatch) for name in ("marked", "metrics_table"))
    text = script.PAGE.read_text(encoding="utf-8")
    assert marked.replaced(text, "metrics", script.table()) == text


def test_a_page_is_filled_between_its_marks_alone(monkeypatch):
    marked = imported("marked", monkeypatch)
    page = "a\n<!-- x: made by y -->\nold\n<!-- end of x -->\nb\n"
    filled = "a\n<!-- x: made by y -->\n\nnew \\1\n\n<!-- end of x -->\nb\n"
    assert marked.replaced(page, "x", "new \\1") == filled
    assert marked.replaced(filled, "x", "new \\1") == filled
    for bad in ("", page.replace("end of x", "end"), page + page, page.replace("x:", "z:")):
        with pytest.raises(LookupError, match="one pair of marks for x, got"):
            marked.replaced(bad, "x", "new")


def test_every_page_that_says_what_made_a_part_of_it_can_be_filled(monkeypatch):
    marked = imported("marked", monkeypatch)
    names = []
    for path in DOCS.glob("*.md"):
        page = path.read_text(encoding="utf-8")
        for name in re.findall(r"^<!-- (\S+): made by ", page, re.M):
            assert "\n\nnew\n\n" in marked.replaced(page, name, "new"), (path.name, name)
            names.append(name)
    assert len(names) > 10
