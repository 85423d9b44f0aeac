"""The examples on the site's own pages are true (`make docs` builds it, without a warning)."""

import doctest
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"

pytestmark = pytest.mark.source


@pytest.mark.parametrize("page", ["index.md", "faq.md", "searches.md"])
def test_the_examples_of_a_page_are_true(page):
    blocks = re.findall(r"```python\n(>>> .*?)```", (DOCS / page).read_text(), re.S)
    assert blocks
    test = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, page, page, 0)
    assert doctest.DocTestRunner().run(test).failed == 0
