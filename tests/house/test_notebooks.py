"""The tutorials run from top to bottom, and were committed after such a run."""

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOKS = sorted((Path(__file__).parents[2] / "docs" / "tutorials").glob("*.ipynb"))

pytestmark = [pytest.mark.data, pytest.mark.source, pytest.mark.thorough]


def test_there_are_five():
    assert [path.stem for path in NOTEBOOKS] == [
        "confirm_finalists",
        "guess_and_check",
        "random_search",
        "search_over_scores",
        "year_of_releases",
    ]


# the kernel is another process: what its client warns of is not ours
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path, tmp_path):
    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(tmp_path)}})
    client.execute()


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_shows_what_one_run_gave(path):
    cells = [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    outputs = [output for cell in cells for output in cell.outputs]
    assert {output.output_type for output in outputs} <= {
        "stream",
        "execute_result",
        "display_data",
    }
    assert any("image/png" in output.get("data", {}) for output in outputs)
