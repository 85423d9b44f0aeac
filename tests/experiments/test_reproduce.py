"""``radabound reproduce``: cells that are run once, and the files that come of them."""

import importlib
from pathlib import Path

import pytest
from support import needs_packages

needs_packages("joblib", "matplotlib", "pandas", "sklearn", "tqdm")

from radabound_fast import cli  # noqa: E402
from radabound_fast.experiments import runner, sample_sizes, section5  # noqa: E402

# ---- cells ---------------------------------------------------------------------------------


def logged(path, number):
    with open(path, "a") as stream:
        stream.write(f"{number}\n")
    return [{"number": number, "share": number / 4, "name": "a, b"}]


def interrupted():
    raise KeyboardInterrupt


def test_finished_cells_are_read_and_not_run_again(tmp_path):
    log = tmp_path / "log"

    def run(n):
        tasks = [runner.Task("quarters", f"{k}", lambda k=k: logged(log, k)) for k in range(n)]
        return runner.run(tasks, tmp_path, n_jobs=1, quiet=True)

    run(2)
    rows = run(4)
    assert log.read_text().split() == ["0", "1", "2", "3"]
    assert rows == {"quarters": [{"number": k, "share": k / 4, "name": "a, b"} for k in range(4)]}
    assert [type(value) for value in rows["quarters"][1].values()] == [int, float, str]


def test_a_cell_that_is_cut_short_leaves_nothing(tmp_path):
    task = runner.Task("cells", "0", interrupted)
    with pytest.raises(KeyboardInterrupt):
        runner.run([task], tmp_path, n_jobs=1, quiet=True)
    assert not list(tmp_path.rglob("*.csv"))


@pytest.mark.thorough
def test_two_processes_make_the_rows_of_one(tmp_path):
    tasks = section5.tasks([6], repeats=2)
    one = runner.run(tasks, tmp_path / "one", n_jobs=1, quiet=True)
    two = runner.run(tasks, tmp_path / "two", n_jobs=2, quiet=True)
    assert one == two


# ---- the command ---------------------------------------------------------------------------


def run_command(*arguments):
    try:
        return cli.main(["reproduce", *arguments])
    except SystemExit as stopped:  # what argparse raises for its own errors
        return stopped.code


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "--figure --table --attack --real --all"),
        (["--figure", "7"], "invalid choice: 7"),
        (["--figure", "one"], "must be a whole number, got 'one'"),
        (["--table", "v"], "invalid choice: 'v'"),
        (["--figure", "1", "--real"], "not allowed with argument"),
        (["--figure", "1", "--repeats", "0"], "--repeats must be at least 1, got 0"),
        (["--figure", "1", "--jobs", "-1"], "--jobs must be at least 1, got -1"),
        (["--table", "vi", "--output", "file"], "file"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(tmp_path, monkeypatch, capsys, arguments, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    assert run_command(*arguments) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1
    assert message in err
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_the_table_of_section_vi_is_written_as_csv_and_png(tmp_path):
    assert run_command("--table", "vi", "--output", str(tmp_path / "new")) == 0
    assert runner.read_csv(tmp_path / "new" / "table-vi.csv") == sample_sizes.table()
    assert (tmp_path / "new" / "table-vi.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.thorough
def test_a_figure_is_written_as_csv_and_png(tmp_path):
    assert run_command("--figure", "5", "--repeats", "2", "--output", str(tmp_path)) == 0
    lines = runner.read_csv(tmp_path / "figure-5.csv")
    assert {line["figure"] for line in lines} == {5} and len(lines) == 10
    assert {line["repeats"] for line in lines} == {2}
    assert (tmp_path / "figure-5.png").read_bytes().startswith(b"\x89PNG")
    assert len(list((tmp_path / "cells" / "figure-5").iterdir())) == 2


# ---- the page ------------------------------------------------------------------------------

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.source
@pytest.mark.skipif(not DOCS.exists(), reason="the source tree is not there")
def test_the_tables_of_the_page_are_those_of_its_files(monkeypatch):
    monkeypatch.syspath_prepend(DOCS / "make")
    marked, tables = map(importlib.import_module, ("marked", "reproduction_tables"))
    page = (DOCS / "evidence" / "reproduction.md").read_text(encoding="utf-8")
    for name, table in tables.TABLES.items():
        assert marked.replaced(page, name, table()) == page, name
