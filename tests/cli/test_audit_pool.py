"""``radabound audit --pool`` says what `ModelPool` says of the rows of a file."""

import json

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from radabound_fast import ModelPool, pack_losses
from radabound_fast.files.reading import FileRows

M, K = 700, 30


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(2)
    y_true, hard = rng.integers(0, 2, M), rng.random(M)
    wrong = (hard + 0.3 * rng.random((K, M))) % 1 < np.linspace(0.15, 0.35, K)[:, np.newaxis]
    predictions = np.where(wrong, 1 - y_true, y_true).astype(np.uint8)
    np.save("y.npy", y_true)
    np.save("p.npy", predictions)
    np.save("b.npy", predictions[20])
    np.save("l.npy", wrong)
    np.save("w.npy", pack_losses(wrong).words)
    np.savetxt("p.csv", predictions, "%d", ",")
    (tmp_path / "keys.txt").write_text("".join(f"tree {i}\n" for i in range(K)))
    return tmp_path


def reported(**options):
    pool = ModelPool(np.load("y.npy"), seed=1, delta=0.1, **options)
    pool.add(np.load("p.npy"))
    return pool.report()


OF_PREDICTIONS = ("--labels", "y.npy", "--predictions")
WAYS = {
    "predictions": (*OF_PREDICTIONS, "p.npy"),
    "text": (*OF_PREDICTIONS, "p.csv", "--header", "no"),
    "losses": ("--losses", "l.npy"),
    "packed": ("--losses", "w.npy", "--packed", "--n-samples", M),
}
POOL = ("--delta", 0.1, "--pool", "--seed", 1)


@pytest.mark.parametrize("way", WAYS)
def test_it_says_what_a_pool_says(run, way):
    code, out, _ = run("audit", *WAYS[way], *POOL, "--json", "--threads", 2)
    told, expected = json.loads(out)["pool"], reported().as_json()
    assert code == 0
    if way in ("losses", "packed"):
        expected["metric"] = "mean loss"
    for name in ("metric", "level", "as_if", "n_may_be_best_by_bonferroni"):
        assert told[name] == expected[name]
    assert told["may_be_best"] == [f"query {place + 1}" for place in expected["may_be_best"]]
    assert told["best"]["name"] == f"query {expected['best']['name'] + 1}"


def test_the_table_and_the_sentence(run):
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    files = (*WAYS["predictions"], "--baseline", "b.npy", "--keys", "keys.txt")
    code, out, _ = run("audit", *files, *POOL, "--output", "out.parquet")
    assert code == 0
    report = reported(baseline=np.load("b.npy"))
    text = str(report).replace(f"model {report.best_set.best}", f"tree {report.best_set.best}")
    assert text in out
    table = pd.read_parquet("out.parquet")
    assert table["key"].tolist() == [f"tree {i}" for i in range(K)]
    assert table["query"].tolist() == list(range(1, K + 1))
    for name, column in report.columns().items():
        assert_array_equal(table[name].to_numpy(), column)
        assert table[name].dtype == column.dtype
    run("audit", *files, *POOL, "--quiet", "--output", "out.csv")
    assert_array_equal(pd.read_csv("out.csv")["better"], report.better.is_better)


@pytest.mark.parametrize("metric", ["error", "neg_brier_score"])
def test_a_file_is_read_twice_at_most(run, monkeypatch, metric):
    n_reads, read = [], FileRows.__iter__
    monkeypatch.setattr(FileRows, "__iter__", lambda rows: n_reads.append(1) or read(rows))
    np.save("p.npy", np.load("p.npy") * (1 if metric == "error" else 0.75))
    files = (*WAYS["predictions"], "--baseline", "b.npy", "--output", "out.csv")
    assert run("audit", *files, *POOL, "--metric", metric)[0] == 0
    assert len(n_reads) == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--epsilon", 0.1), "--epsilon must be left out with --pool"),
        (("--space-size", 99), "--space-size must be left out with --pool"),
        (("--confirm-share", 0.5), "--confirm-share must be left out with --pool"),
        (("--n-vectors", 10), "n_vectors must be at least 1000 with delta = 0.1, got 10"),
        (("--metric", "f1"), "metric must be a mean of losses in a pool"),
        (("--threads", 0), "threads must be at least 1"),
    ],
)
def test_options_that_do_not_fit(refuse, options, message):
    refuse(message, "audit", *WAYS["predictions"], *POOL, *options)


def test_a_bad_row_is_named(refuse):
    predictions = np.load("p.npy")
    predictions[17, 3] = 9
    np.save("p.npy", predictions)
    assert "p.npy: " in refuse("row 17, sample 3", "audit", *WAYS["predictions"], *POOL)
