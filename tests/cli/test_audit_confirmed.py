"""``radabound audit --confirm-share``: the best on some rows, confirmed on the others."""

import json
from pathlib import Path

import numpy as np
import pytest

from radabound_fast import ConfirmedSearch, Holdout, pack_losses
from radabound_fast.files import reading

M, K = 1000, 300
RNG = np.random.default_rng(7)
Y = RNG.integers(0, 2, M)
P = (Y ^ (RNG.random((K, M)) < RNG.uniform(0.1, 0.3, (K, 1)))).astype(np.uint8)
SHARE = ["--delta", "0.1", "--confirm-share", "0.4", "--seed", "5"]
PREDICTIONS = ["audit", "--predictions", "p.npy", "--labels", "y.npy"]
FILES = {
    "predictions": PREDICTIONS,
    "losses": ["audit", "--losses", "losses.npy", "--no-transpose"],
    "packed": ["audit", "--losses", "packed.npy", "--packed", "--n-samples", M],
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The working directory, with files whose blocks have forty rows."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(reading, "BLOCK_BYTES", 40 * M)
    np.save("y.npy", Y)
    np.save("p.npy", P)
    np.save("losses.npy", (P != Y).astype(np.uint8))
    np.save("packed.npy", pack_losses(P != Y).words)


@pytest.mark.parametrize("n", [1, 7])
@pytest.mark.parametrize("kind", FILES)
def test_it_is_the_search_that_the_library_would_make(run, kind, n):
    code, out, _ = run(*FILES[kind], *SHARE, "--finalists", n, "--json", "--output", "a.csv")
    told = json.loads(out)["confirmed"]
    search = ConfirmedSearch(Y, delta=0.1, confirm_share=0.4, seed=5)
    scores = search.score_many(P)
    best = np.argsort(scores, kind="stable")[:n]
    answers = search.confirm({f"query {k + 1}": P[k] for k in best})
    assert code == 0 and told["n_models"] == n and told["n_confirmation_rows"] == 400
    for name in ("name", "value", "low", "high", "search_value"):
        assert told["best"][name] == pytest.approx(getattr(answers.best, name))
    written = np.genfromtxt("a.csv", delimiter=",", skip_header=1)
    assert written.shape == (K, 2) and np.allclose(written[:, 1], scores)


def test_the_sentence_and_the_picture(run):
    code, out, _ = run(*PREDICTIONS, *SHARE, "--metric", "accuracy", "--plot", "f.png")
    search = ConfirmedSearch(Holdout(Y, metric="accuracy"), delta=0.1, confirm_share=0.4, seed=5)
    best = int(search.score_many(P).argmax())
    search.confirm({f"query {best + 1}": P[best]})
    assert code == 0 and str(search.report()) in out and "300 queries on 1,000 samples" in out
    assert Path("f.png").stat().st_size > 1000


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([*SHARE, "--space-size", 1000], "--space-size must be left out with --confirm-share"),
        ([*SHARE, "--epsilon", 0.1], "--epsilon must be left out with --confirm-share"),
        ([*SHARE, "--finalists", 0], "finalists must be at least 1"),
        ([*SHARE, "--confirm-share", 1], "--confirm-share must be below 1"),
        ([*SHARE[:2], "--finalists", 2], "--finalists must be given with --confirm-share"),
    ],
)
def test_bad_options_are_one_line(refuse, arguments, message):
    refuse(message, *PREDICTIONS, *arguments)
