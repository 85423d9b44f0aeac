"""``radabound audit`` of a search over a declared space, and what it says of the best model."""

import csv
import json
import re
from pathlib import Path

import numpy as np
import pytest

from radabound_fast import DeclaredSearch, Holdout, pack_losses
from radabound_fast.bounds import BOUNDS
from radabound_fast.files import reading as files
from radabound_fast.guards.by_bound import guard_by_bound
from radabound_fast.metrics import choice_of

pq = pytest.importorskip("pyarrow.parquet", reason="the files extra is not installed")

M, K, SIZE, DELTA = 601, 90, 5000, 0.1  # 601 samples do not fill their last word
SEARCH = ["--space-size", SIZE, "--delta", DELTA]
PREDICTIONS = ["audit", "--labels", "y.npy", "--predictions", "p.npy", *SEARCH]
KEYS = [f'depth={i % 40}, "leaf"={i % 40}' for i in range(K)]  # 40 models, most of them twice


def made():
    rng = np.random.default_rng(5)
    labels = rng.integers(0, 2, M)
    wrong = rng.random((40, M)) < rng.uniform(0.1, 0.4, 40)[:, None]
    return labels, (labels ^ wrong)[np.arange(K) % 40]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The working directory, with files whose blocks have seven rows."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(files, "BLOCK_BYTES", 7 * M)
    labels, predictions = made()
    np.save("y.npy", labels.astype(np.int8))
    np.save("p.npy", predictions.astype(np.int8))
    Path("keys.txt").write_text("".join(f"{key}\n" for key in KEYS))
    return tmp_path


def asked(metric=None, predictions=None, **options):
    """What the library answers: each row a configuration of its own."""
    labels, classes = made()
    baseline = options.pop("baseline", None)
    holdout = Holdout(labels, metric=choice_of(metric or "error", options))
    search = DeclaredSearch(holdout, SIZE, delta=DELTA, baseline=baseline)
    rows = classes if predictions is None else predictions
    return search, search.query_many(rows, keys=range(len(rows)))


def table_of(name):
    with open(name, newline="") as file:
        return list(csv.DictReader(file))


def test_threads_change_nothing(run):
    outcomes = [run(*PREDICTIONS, "--json", "--threads", threads) for threads in (1, 3)]
    assert outcomes[0] == outcomes[1] and outcomes[0][0] == 0


def test_the_sentence_is_that_of_a_report(run):
    holdout, answers = asked()
    code, out, err = run(*PREDICTIONS)
    assert (code, err) == (0, "")
    best = int(answers.highs.argmin())
    assert f"\n{str(holdout.report()).replace(f'is key {best}:', f'is query {best + 1}:')}\n" in out
    assert f"{K} queries on {M} samples: delta 0.1, a declared space of 5,000 configurations" in out


def test_json_has_what_a_report_has(run):
    holdout, answers = asked()
    outcome = json.loads(run(*PREDICTIONS, "--json")[1])
    report, told = json.loads(holdout.report().to_json()), outcome.pop("search")
    best = told.pop("best")
    assert best.pop("query") == int(answers.highs.argmin()) + 1
    assert best == {name: report["best"][name] for name in best}
    assert {"value", "low", "high", "half_width"} < best.keys()
    same = [name for name in report if name not in ("version", "best", "sentence", "answers")]
    assert {name: told[name] for name in same} == {name: report[name] for name in same}
    assert told.keys() == {*same, "sentence", "note"} and told["sentence"] in run(*PREDICTIONS)[1]
    assert outcome["n_queries"] == K and outcome["file"] == "p.npy"


@pytest.mark.parametrize("name", ["a.csv", "a.parquet"])
@pytest.mark.parametrize("keys", [False, True])
def test_every_answer_is_in_the_file(run, name, keys):
    _, answers = asked()
    with_keys = ["--keys", "keys.txt"] if keys else []
    assert run(*PREDICTIONS, *with_keys, "--quiet", "--output", name) == (0, "", "")
    found = table_of(name) if name.endswith(".csv") else pq.read_table(name).to_pylist()
    assert list(found[0]) == [*(["key"] if keys else []), "query", "value", "low", "high"]
    if keys:
        assert [row["key"] for row in found] == KEYS
    columns = answers.values, answers.lows, answers.highs
    for query, row in enumerate(found):
        assert int(row["query"]) == query + 1
        told = [float(row[column]) for column in ("value", "low", "high")]
        assert told == [column[query] for column in columns]


@pytest.mark.parametrize("what", ["losses", "float losses", "packed", "packed predictions"])
def test_losses_and_packed_rows_have_the_same_scores(run, what):
    labels, predictions = made()
    losses = predictions != labels
    wanted = asked()[1]
    source = ["--losses", "l.npy"]
    if what == "losses":
        np.save("l.npy", losses)
    elif what == "float losses":
        np.save("l.npy", losses.astype(float))
        search = DeclaredSearch(M, SIZE, delta=DELTA)
        wanted = search.query_many(losses.astype(float), keys=range(K))
    elif what == "packed":
        np.save("l.npy", pack_losses(losses).words)
        source += ["--packed", "--n-samples", M]
    else:
        np.save("l.npy", pack_losses(predictions).words)
        source = ["--labels", "y.npy", "--predictions", "l.npy", "--packed"]
    code, out, _ = run("audit", *source, *SEARCH, "--output", "a.csv")
    assert code == 0 and ("error" if "predictions" in what else "mean loss") in out
    told = [[float(row[name]) for row in table_of("a.csv")] for name in ("value", "low", "high")]
    assert told == [column.tolist() for column in (wanted.values, wanted.lows, wanted.highs)]


def test_a_named_configuration_is_one_model_however_often_it_comes(run, refuse):
    outcome = json.loads(run(*PREDICTIONS, "--keys", "keys.txt", "--json")[1])["search"]
    best = int(asked()[1].highs.argmin())
    assert (outcome["n_models"], outcome["n_queries"], outcome["space_size"]) == (40, 90, SIZE)
    assert outcome["best"]["key"] == KEYS[best] and outcome["best"]["query"] == best + 1
    assert (
        f"The best of 40 different models (90 queries) is {KEYS[best]}: error "
        in outcome["sentence"]
    )
    # a row of another model under a key that was there, blocks earlier
    predictions = np.load("p.npy")
    predictions[45] ^= 1
    np.save("p.npy", predictions)
    err = refuse(f"{KEYS[5]!r}", *PREDICTIONS, "--keys", "keys.txt", "--output", "a.csv")
    assert "p.npy, queries 43 to 49" in err and not Path("a.csv").exists()


METRICS = {
    "accuracy": {},
    "balanced_accuracy": {},
    "f1": {"pos_label": 0},
    "roc_auc": {},
    "neg_log_loss": {"clip": 0.01},
    "neg_mean_squared_error": {"y_range": (-1.0, 2.0)},
}


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("suffix", [".npy", ".csv"])
def test_a_metric_is_that_of_the_holdout(run, metric, suffix):
    labels, rows = made()
    if METRICS[metric] or metric == "roc_auc":
        rows = np.random.default_rng(8).random((K, M)) * 0.5 + 0.5 * labels
    if metric == "f1":
        rows = made()[1]
    if suffix == ".npy":
        np.save("s.npy", rows)
    else:
        np.savetxt("s.csv", rows, fmt="%.18e" if rows.dtype.kind == "f" else "%d", delimiter=",")
        np.savetxt("y.csv", labels, fmt="%d", delimiter=",")
    holdout, answers = asked(metric, rows, **METRICS[metric])
    options = []
    for name, value in METRICS[metric].items():
        options += [f"--{name.replace('_', '-')}", *np.ravel(value).tolist()]
    options += ["--header", "no"] if suffix == ".csv" else []
    code, out, err = run(
        "audit", "--labels", f"y{suffix}", "--predictions", f"s{suffix}", *SEARCH,
        "--metric", metric, *options, "--output", "a.csv", "--json",
    )  # fmt: skip
    assert (code, err) == (0, "")
    told = json.loads(out)["search"]
    best = holdout.best
    assert told["metric"] == metric and told["best"]["query"] == best.key + 1
    assert told["best"]["value"] == best.value and told["best"]["low"] == best.low
    found = [[float(row[name]) for row in table_of("a.csv")] for name in ("value", "low", "high")]
    assert found == [column.tolist() for column in (answers.values, answers.lows, answers.highs)]


def test_text_labels_go_with_scores_in_numbers(run, refuse):
    labels, _ = made()
    np.save("y.npy", np.array(["cat", "dog"])[labels])
    np.save("s.npy", np.random.default_rng(8).random((K, M)) + 0.5 * labels)
    scores = ["audit", "--labels", "y.npy", "--predictions", "s.npy", *SEARCH, "--metric"]
    code, out, _ = run(*scores, "roc_auc", "--pos-label", "dog")
    assert code == 0 and "roc_auc 0." in out
    refuse("pos_label must be one of the classes", *scores, "roc_auc", "--pos-label", "cow")


def test_a_positive_label_may_be_an_integer_that_no_float_is(run, refuse):
    labels, predictions = made()
    for name, values in (("y.npy", labels), ("p.npy", predictions)):
        np.save(name, 2**53 + 1 + values)
    expected = asked("recall", pos_label=0)[0].report()
    code, out, _ = run(*PREDICTIONS, "--metric", "recall", "--pos-label", 2**53 + 1, "--json")
    assert code == 0
    assert json.loads(out)["search"]["best"]["value"] == expected.best.value
    for same in ("9007199254740994", "9007199254740994.0"):
        assert run(*PREDICTIONS, "--metric", "recall", "--pos-label", same)[0] == 0
    other = ["--metric", "recall", "--pos-label", 2**53]
    refuse("pos_label must be one of the classes", *PREDICTIONS, *other)


@pytest.mark.parametrize("text", [False, True])
def test_a_baseline_gives_every_answer_its_gain(run, refuse, text):
    labels, predictions = made()
    baseline = labels ^ (np.arange(M) % 4 == 0)
    holdout, answers = asked("accuracy", baseline=baseline)
    if text:
        names = np.array(["cat", "dog"])
        np.save("y.npy", names[labels])
        np.save("p.npy", names[predictions])
        np.save("b.npy", names[baseline])
    else:
        np.savetxt("b.csv", baseline, fmt="%d")
    with_baseline = ["--metric", "accuracy", "--baseline", "b.npy" if text else "b.csv"]
    code, out, _ = run(*PREDICTIONS, *with_baseline, "--output", "a.csv")
    assert code == 0 and str(holdout.report()).partition(". It errs")[2] in out
    found = table_of("a.csv")
    assert list(found[0])[-3:] == ["gain", "gain_low", "gain_high"]
    for name in ("gain", "gain_low", "gain_high"):
        assert [float(row[name]) for row in found] == getattr(answers, f"{name}s").tolist()
    refuse("keys.txt must end in", *PREDICTIONS, "--baseline", "keys.txt")


@pytest.mark.parametrize("first", [1, 2])  # as a header that counts the columns has it, and not
def test_costs_are_a_matrix_of_the_classes_without_a_header(run, refuse, first):
    Path("c.csv").write_text(f"0,{first}\n5,0\n")
    holdout, answers = asked("mean_cost", costs=[[0, first], [5, 0]])
    told = json.loads(run(*PREDICTIONS, "--metric", "mean_cost", "--costs", "c.csv", "--json")[1])
    best = holdout.best
    assert told["search"]["best"]["value"] == best.value
    assert told["search"]["best"]["high"] == best.high == answers.highs.min()
    Path("c.csv").write_text("a,b\n0,2\n5,0\n")
    refuse("c.csv", *PREDICTIONS, "--metric", "mean_cost", "--costs", "c.csv")


def test_a_picture_shows_all_scores(run):
    pytest.importorskip("matplotlib", reason="the plot extra is not installed")
    assert run(*PREDICTIONS, "--quiet", "--plot", "a.PNG") == (0, "", "")
    assert Path("a.PNG").read_bytes().startswith(b"\x89PNG\r\n\x1a\n")


def test_nothing_is_remembered_of_rows_that_have_no_names(run, monkeypatch):
    searches = []
    monkeypatch.setattr(
        "radabound_fast.cli.searching.DeclaredSearch",
        lambda *a, **o: searches.append(DeclaredSearch(*a, **o)) or searches[-1],
    )
    run(*PREDICTIONS)
    assert searches[0].n_best == 1 and len(searches[0].answers) == 1


GUARD = ["audit", "--labels", "y.npy", "--predictions", "p.npy", "--delta", DELTA]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (GUARD, "--epsilon must be given"),
        ([*GUARD, "--epsilon", 0.1, "--keys", "keys.txt"], "--keys is for a search over a decl"),
        ([*GUARD, "--epsilon", 0.1, "--metric", "f1"], "--metric is for a search over a declared"),
        ([*PREDICTIONS, "--epsilon", 0.1], "--epsilon is for a guard, which halts"),
        ([*PREDICTIONS, "--bound", "mclt"], "--bound is for a guard, which halts"),
        ([*PREDICTIONS, "--n-vectors", 32], "--n-vectors is for a guard, which halts"),
        ([*PREDICTIONS, "--threads", 0], "threads must be at least 1, got 0"),
        ([*PREDICTIONS, "--metric", "r2"], "metric must be one of 'error', "),
        ([*PREDICTIONS, "--metric", "roc_auc", "--packed"], "packed rows are of classes"),
        ([*PREDICTIONS, "--metric", "f1", "--pos-label", "x"], "--pos-label must be a number"),
        ([*PREDICTIONS, "--metric", "neg_log_loss"], "clip must be given"),
        ([*PREDICTIONS, "--space-size", 89], "--space-size must be at least the number of rows"),
        ([*PREDICTIONS, "--space-size", 39, "--keys", "keys.txt"], "number of different keys, 40"),
        ([*PREDICTIONS, "--space-size", 0], "space_size must be at least 1, got 0"),
        ([*PREDICTIONS, "--keys", "none.txt"], "none.txt: No such file"),
        ([*PREDICTIONS, "--keys", "short.txt"], "short.txt must have a line a row, 90, got 89"),
        ([*PREDICTIONS, "--keys", "empty.txt"], "empty.txt: line 3 must not be empty"),
        ([*PREDICTIONS, "--keys", "p.npy"], "p.npy must hold text in UTF-8"),
        ([*PREDICTIONS, "--keys", "keys.txt", "--output", "keys.txt"], "a file of its own"),
        (["audit", "--losses", "p.npy", *SEARCH, "--metric", "f1"], "--metric is for --predic"),
        ([*GUARD, "--epsilon", 0.1, "--max-queries", 9, "--bound", "mclt"], "--max-queries is"),
    ],
)
def test_what_does_not_fit_together_is_one_line_on_stderr(refuse, arguments, message):
    Path("short.txt").write_text("\n".join(KEYS[:89]))
    Path("empty.txt").write_text("\n".join(["a", "b", "", *KEYS[3:]]))
    refuse(message, *arguments)
    assert Path("keys.txt").read_text().count("\n") == K


# ---- the lowest upper limit of a guard ---------------------------------------------------------


@pytest.mark.parametrize(
    ("bound", "max_queries"), [*((bound, None) for bound in BOUNDS), ("fixed-sequence", 30)]
)
@pytest.mark.parametrize("dtype", [bool, float])
def test_a_guard_names_the_first_with_the_lowest_upper_limit(
    run, monkeypatch, bound, max_queries, dtype
):
    """Of means in few steps, so that many are equal; and up to 1, where limits are cut."""
    rng = np.random.default_rng(6)
    for level in (0.02, 0.5, 0.97):
        wrong = np.sort(rng.random((200, 40)) < level, axis=1).repeat(10, axis=1).astype(dtype)
        whole, told = answers_and_outcome(run, monkeypatch, wrong, 8, bound, max_queries, "--json")
        assert len(whole) > 20
        lowest = whole[int(whole.highs.argmin())]
        found = json.loads(told)["bounds"][0]["lowest_upper_limit"]
        assert found == {
            "query": lowest.number, "value": lowest.value, "low": lowest.low, "high": lowest.high,
            "half_width": lowest.half_width,
        }  # fmt: skip


def answers_and_outcome(run, monkeypatch, losses, n_rows, bound, max_queries, *options):
    """What the library answers, and what an audit in blocks of so many rows prints."""
    np.save("l.npy", losses)
    monkeypatch.setattr(files, "BLOCK_BYTES", n_rows * losses[0].nbytes)
    parameters = {"epsilon": 0.3, "delta": DELTA, "seed": 1}
    if max_queries is not None:
        parameters["max_queries"] = max_queries
    named = [word for name, value in parameters.items()
             for word in (f"--{name.replace('_', '-')}", value)]  # fmt: skip
    guard = guard_by_bound(bound, losses.shape[1], **parameters)
    out = run("audit", "--losses", "l.npy", "--bound", bound, *named, *options)[1]
    return guard.query_many(losses, trace=True), out


def test_each_sentence_says_what_its_interval_rests_on(run):
    said = {
        "fixed-sequence": "if the order of the models was fixed before any holdout score was seen "
        "and no model was trained on these rows",
        "mclt": "by a heuristic",
        "bernstein": "as the paper claims, which is not proved",
        "bernstein-split": "as the paper claims, which is not proved",
    }
    for bound, condition in said.items():
        code, out, _ = run(*GUARD, "--epsilon", 0.2, "--bound", bound)
        (line,) = [line for line in out.splitlines() if "has the lowest upper limit" in line]
        halt = " before the halt" if code == 3 else ""
        guard = "FixedSequence" if bound == "fixed-sequence" else "RadaBound"
        assert re.match(rf"Of [\d,]+ models{halt} query \d+ has .* limit: error 0\.", line)
        assert (
            f'with probability 0.9, {condition} (radabound_fast.{guard}, bound "{bound}", ' in line
        )
    (default,) = json.loads(run(*GUARD, "--epsilon", 0.2, "--json")[1])["bounds"]
    assert default["bound"] == "fixed-sequence"


def test_a_guard_that_answers_nothing_names_no_model(run):
    code, out, _ = run(*GUARD, "--epsilon", 0.001)
    assert code == 3 and "lowest upper limit" not in out
    (told,) = json.loads(run(*GUARD, "--epsilon", 0.001, "--json")[1])["bounds"]
    assert told["lowest_upper_limit"] is None and told["sentence"] is None


def test_of_a_guard_that_goes_on_it_is_a_model_of_this_run(run):
    rows = np.load("p.npy")
    state = [*GUARD, "--epsilon", 0.2, "--state", "g.db"]
    np.save("p.npy", rows[:40])
    run(*state)
    np.save("p.npy", rows[:60])
    _, out, _ = run(*state)
    assert re.search(r"\n\nOf 20 models of this run query \d+ has the lowest upper limit: ", out)
    _, out, _ = run(*state)
    assert "lowest upper limit" not in out and "60 queries were answered before." in out


@pytest.mark.parametrize(
    ("bound", "max_queries"), [("fixed-sequence", None), ("fixed-sequence", 40), ("mclt", None)]
)
@pytest.mark.parametrize("dtype", [bool, float])
def test_limits_that_are_looked_up_are_those_of_the_answers(
    run, monkeypatch, bound, max_queries, dtype
):
    """Blocks of 1, of 9, and of 200 rows: within one price of a query and over several."""
    rng = np.random.default_rng(11)
    rows = (rng.random((420, 300)) < rng.random((420, 1)) * 0.2).astype(dtype)
    for n in (1, 9, 200):
        output = ["--output", "a.csv"]
        whole, _ = answers_and_outcome(run, monkeypatch, rows, n, bound, max_queries, *output)
        assert len(whole) > 200
        found = table_of("a.csv")
        for name, expected in (("low", whole.lows), ("high", whole.highs), ("value", whole.values)):
            assert [float(row[name]) for row in found] == expected.tolist()
