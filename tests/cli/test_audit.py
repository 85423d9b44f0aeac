"""``radabound audit``: what the library answers, from files, on one line of shell."""

import contextlib
import json
import os
import re
from pathlib import Path

import numpy as np
import pytest

import radabound_fast
from radabound_fast import FixedSequence, pack_losses
from radabound_fast.bounds import PAPER_BOUNDS
from radabound_fast.files import reading as files
from radabound_fast.guards.by_bound import guard_by_bound

EPSILON, DELTA, SEED = 0.1, 0.1, 7
PARAMETERS = ["--epsilon", str(EPSILON), "--delta", str(DELTA), "--seed", str(SEED)]
BOUNDS = list(PAPER_BOUNDS)
# 1001 samples do not fill their last byte; 401 queries are not a whole number of blocks
N_QUERIES, N_SAMPLES = 401, 1001


@pytest.fixture(scope="module")
def labels():
    return np.random.default_rng(1).integers(0, 2, N_SAMPLES, dtype=np.uint8)


@pytest.fixture(scope="module")
def predictions(labels):
    """Random models that err on a third of the samples: they spend all three budgets."""
    wrong = np.random.default_rng(2).random((N_QUERIES, N_SAMPLES)) < 1 / 3
    return labels ^ wrong


@pytest.fixture
def folder(tmp_path, monkeypatch, labels, predictions):
    """The working directory, with ``labels.npy`` and ``predictions.npy``."""
    monkeypatch.chdir(tmp_path)
    np.save("labels.npy", labels)
    np.save("predictions.npy", predictions)
    return tmp_path


HEAD = ["bound", "query", "value", "low", "high", "complexity", "delta_prime"]
STANDARD = ["audit", "--labels", "labels.npy", "--predictions", "predictions.npy", *PARAMETERS]
PAPER = [part for bound in BOUNDS for part in ("--bound", bound)]


def expected(labels, predictions):
    """For each bound, the guard of the library, and its answers."""
    for bound in BOUNDS:
        guard = guard_by_bound(bound, labels, epsilon=EPSILON, delta=DELTA, seed=SEED)
        yield bound, guard, guard.query_many(predictions, trace=True)


def test_audit_says_how_many_were_answered_and_where_each_bound_halts(run, labels, predictions):
    code, out, err = run(*STANDARD, *PAPER)
    assert (code, err) == (3, "")
    assert "401 queries on 1,001 samples: epsilon 0.1, delta 0.1, 32 sign vectors, seed 7\n" in out
    for bound, _, answers in expected(labels, predictions):
        assert answers.halted
        (line,) = [line for line in out.splitlines() if line.startswith(f"{bound} ")]
        assert line.split()[1] == str(answers.n_answered)
        assert f"halted at query {answers.n_answered + 1}: complexity " in line


def test_audit_exits_with_0_when_all_queries_were_answered(run):
    code, out, err = run(*STANDARD, "--bound", "mclt", "--epsilon", "0.2")
    assert (code, err) == (0, "")
    (line,) = [line for line in out.splitlines() if line.startswith("mclt ")]
    assert re.fullmatch(
        r"mclt +401  all answered; the next may be withheld: complexity 0\.\d+, within its "
        r"budget of 0\.\d+",
        line,
    )


def fixed_sequence(run, n_queries, *arguments, dtype=int):
    """What audit says of fixed-sequence after so many coins on 1,001 samples."""
    losses = np.random.default_rng(4).integers(0, 2, (n_queries, N_SAMPLES))
    np.save("l.npy", losses.astype(dtype))
    asked = ["--losses", "l.npy", "--bound", "fixed-sequence", "--delta", 0.1, *arguments]
    code, out, _ = run("audit", *asked)
    (line,) = [line for line in out.splitlines() if line.startswith("fixed-sequence ")]
    return code, line.split(maxsplit=2)[2]


def test_what_is_said_to_be_left_is_answered_to_the_last_query(run):
    promised = FixedSequence([0, 1] * 500 + [1], epsilon=0.06, delta=0.1).n_left()
    assert 20 < promised < 400
    said = f"all answered; {promised - 6} more will be, whatever they are "
    said += f"({100 * (promised - 6) // promised} % of {promised})"
    assert fixed_sequence(run, 6, "--epsilon", 0.06) == (0, said)
    code, said = fixed_sequence(run, promised, "--epsilon", 0.06)
    assert (code, said.split(":")[0]) == (0, "all answered; the next may be withheld")
    code, said = fixed_sequence(run, promised + 1, "--epsilon", 0.06)
    assert code == 3
    assert said.startswith(f"halted at query {promised + 1}: the union bound has no more for it, ")
    assert said.endswith(", and 1,001 samples are too few for the complexity to vouch for any")


def test_a_promise_without_limit_is_told_in_words(run):
    code, said = fixed_sequence(run, 6, "--epsilon", 0.3)
    assert code == 0
    assert said == "all answered; so will be as many more as you like, whatever they are"


@pytest.mark.parametrize("dtype", [bool, np.uint8, np.int64, np.float16, np.float32, np.float64])
def test_as_many_are_said_to_be_left_as_losses_of_this_type_are_promised(run, dtype):
    """Floats may be any losses, though these are 0 and 1: fewer of them are answered."""
    declared = np.dtype(dtype).kind != "f"
    fresh = FixedSequence(N_SAMPLES, epsilon=0.08, delta=0.1)
    promised = fresh.n_left(binary=declared)
    assert promised < 1000 or declared
    said = f"all answered; {promised - 6:,} more will be, whatever they are "
    code, told = fixed_sequence(run, 6, "--epsilon", 0.08, dtype=dtype)
    assert code == 0 and told.startswith(said)


def test_audit_exits_with_3_as_soon_as_one_guard_halted_though_others_answered_all(run):
    chosen = ["--bound", "mclt", "--bound", "bernstein", "--epsilon", "0.13"]
    for order in (chosen, [*chosen[2:4], *chosen[:2], *chosen[4:]]):
        code, out, err = run(*STANDARD, *order)
        assert (code, err) == (3, "")
        assert out.count("all answered;") == 1 and out.count("halted at query") == 1


def test_a_holdout_too_small_for_one_answer_is_said_to_be(run):
    code, out, _ = run(*STANDARD, "--bound", "bernstein", "--epsilon", "0.01")
    assert code == 3
    assert "halted at query 1: 1,001 samples cannot vouch for any answer" in out


def test_json_is_complete(run, labels, predictions):
    code, out, err = run(*STANDARD, *PAPER, "--json")
    assert (code, err) == (3, "")
    outcome = json.loads(out)
    bounds = outcome.pop("bounds")
    assert outcome == {
        "version": radabound_fast.__version__,
        "file": "predictions.npy",
        "files": ["predictions.npy"],
        "labels": "labels.npy",
        "transpose": False,
        "packed": False,
        "bitorder": None,
        "header": None,
        "compared_as": "numbers",
        "n_samples": N_SAMPLES,
        "n_queries": N_QUERIES,
        "queries_counted_from": 1,
        "epsilon": EPSILON,
        "delta": DELTA,
        "n_vectors": 32,
        "seed": SEED,
        "seed_drawn": False,
        "state": None,
    }
    for each, (bound, guard, answers) in zip(bounds, expected(labels, predictions), strict=True):
        assert each == {
            "bound": bound,
            "estimator": "plain",
            "halted": True,
            "n_answered": answers.n_answered,
            "n_answered_before": 0,
            "halting_query": answers.n_answered + 1,
            "lowest_upper_limit": lowest_of(answers),
            "sentence": each["sentence"],
            "complexity": guard.complexity,
            "budget": guard.budget,
            "n_left": 0,
            "threshold": guard.threshold,
            "guarantee": guard.guarantee,
        }


def lowest_of(answers):
    """The first with the lowest upper limit."""
    lowest = answers[int(answers.highs.argmin())]
    fields = {name: getattr(lowest, name) for name in ("value", "low", "high", "half_width")}
    return {"query": lowest.number} | fields


def test_bounds_and_estimators_can_be_chosen(run):
    chosen = ["--bound", "fixed-sequence", "--bound", "mclt", "--bound", "mclt"]
    _, out, _ = run(*STANDARD, *chosen, "--estimator", "half-range", "--n-vectors", 64, "--json")
    outcome = json.loads(out)
    assert outcome["n_vectors"] == 64
    assert [(each["bound"], each["estimator"]) for each in outcome["bounds"]] == [
        ("fixed-sequence", "half-range"),
        ("mclt", "half-range"),
    ]


def save_csv(path, array, header=""):
    np.savetxt(path, array, fmt="%s", delimiter=",", header=header, comments="")


def write_parquet(path, rows):
    pa = pytest.importorskip("pyarrow", reason="the files extra is not installed")
    pq = pytest.importorskip("pyarrow.parquet")
    pq.write_table(pa.table({f"q{i}": row for i, row in enumerate(rows)}), path)


WORDS = np.array(["on time", "late"])
ROW = ",".join(map(str, range(N_SAMPLES)))
# how the predictions, or the losses, are written, and what else the command is told
LAYOUTS = {
    "p.npz": (lambda path, rows: np.savez(path, rows), []),
    "p.csv": (save_csv, []),
    "strings.csv": (lambda path, rows: save_csv(path, WORDS[rows]), []),
    "headers.csv": (lambda path, rows: save_csv(path, rows, ROW), ["--header", "yes"]),
    "p.parquet": (write_parquet, ["--transpose"]),
    "p.npy": (lambda path, rows: np.save(path, np.ascontiguousarray(rows.T)), ["--transpose"]),
    "bytes.npy": (lambda path, rows: np.save(path, np.packbits(rows, axis=1, bitorder="little")),
                  ["--packed", "little"]),
    "words.npy": (lambda path, rows: np.save(path, pack_losses(rows).words), ["--packed"]),
    "losses.npy": (lambda path, rows: np.save(path, rows), []),
    "float losses.npy": (lambda path, rows: np.save(path, rows.astype(float)), []),
    "packed losses.npy": (lambda path, rows: np.save(path, np.packbits(rows, axis=1)),
                          ["--packed", "big", "--n-samples", N_SAMPLES]),
}  # fmt: skip
LABELS = {
    "p.csv": lambda labels: save_csv("y.csv", labels),
    "strings.csv": lambda labels: save_csv("y.csv", WORDS[labels]),
    "headers.csv": lambda labels: save_csv("y.csv", labels, "0"),
}


@pytest.mark.parametrize("name", LAYOUTS)
# 1: a query at a time, so that every halt falls between blocks
@pytest.mark.parametrize("block_bytes", [1, 100_000, files.BLOCK_BYTES])
def test_every_layout_gives_the_same_outcome(
    run, monkeypatch, labels, predictions, name, block_bytes
):
    expected = json.loads(run(*STANDARD, *PAPER, "--json")[1])["bounds"]
    monkeypatch.setattr(files, "BLOCK_BYTES", block_bytes)
    (write, options), of_losses = LAYOUTS[name], "losses" in name
    write(name, predictions != labels if of_losses else predictions)
    what = ["--losses", name]
    if not of_losses:
        np.savez("y.npz", other=predictions, y=labels)
        LABELS.get(name, lambda labels: None)(labels)
        what = ["--labels", "y.csv" if name in LABELS else "y.npz:y", "--predictions", name]
    if name == "p.parquet":  # whose columns have names
        for each in filter(lambda each: each["lowest_upper_limit"], expected):
            query = each["lowest_upper_limit"]["query"]
            each["lowest_upper_limit"]["model"] = model = f"q{query - 1}"
            each["sentence"] = each["sentence"].replace(
                f"query {query:,} has", f"{model} (query {query:,}) has"
            )
    code, out, err = run("audit", *what, *options, *PAPER, *PARAMETERS, "--json")
    assert (code, err) == (3, "")
    out = out.replace(": mean loss ", ": error ") if of_losses else out
    assert json.loads(out)["bounds"] == expected


def test_the_file_is_read_once_for_all_bounds_and_no_further_than_the_last_halt(
    run, monkeypatch, labels, predictions
):
    read = []
    blocks = files.FileRows.blocks
    monkeypatch.setattr(files, "BLOCK_BYTES", N_SAMPLES)  # one query
    monkeypatch.setattr(
        files.FileRows, "blocks", lambda *rows: (read.append(len(b)) or b for b in blocks(*rows))
    )
    run(*STANDARD, *PAPER)
    last = max(answers.n_answered for _, _, answers in expected(labels, predictions))
    assert read == [1] * (last + 1)


def test_a_seed_that_was_drawn_is_printed_and_recorded(run):
    without = [*STANDARD[:-2], *PAPER]
    first, second = (json.loads(run(*without, "--json")[1]) for _ in range(2))
    assert first["seed_drawn"] and first["seed"] != second["seed"]
    again = json.loads(run(*without, "--seed", first["seed"], "--json")[1])
    assert not again["seed_drawn"] and again["bounds"] == first["bounds"]
    assert " (drawn)\n" in run(*without)[1]


def test_a_picture_is_drawn(run):
    pytest.importorskip("matplotlib", reason="the plot extra is not installed")
    assert run(*STANDARD, *PAPER, "--plot", "audit.png")[0] == 3
    assert Path("audit.png").read_bytes().startswith(b"\x89PNG\r\n\x1a\n")


def test_a_withheld_mean_is_nowhere(run):
    # query i has 300 + i losses of 1, so that every mean is another, in four digits
    order = np.random.default_rng(3).permuted(np.tile(np.arange(1009), (300, 1)), axis=1)
    np.save("l.npy", order < 300 + np.arange(1, 301)[:, None])
    code, out, err = run(
        "audit", "--losses", "l.npy", *PARAMETERS, "--bound", "mclt", "--json",
        "--output", "answers.csv",
    )  # fmt: skip
    assert (code, err) == (3, "")
    written = Path("answers.csv").read_text()
    halt = json.loads(out)["bounds"][0]["halting_query"]
    assert 5 < halt < 300
    answered, withheld = ((300 + query) / 1009 for query in (halt - 1, halt))
    assert f",{answered!r}," in written
    assert f"{withheld:.4f}"[1:] not in out + written
    assert written.count("\n") == halt  # a header, and the queries before it
    _, table, _ = run("audit", "--losses", "l.npy", *PARAMETERS, "--bound", "mclt")
    assert f"{withheld:.4f}"[1:] not in table


@pytest.fixture(scope="module")
def faulty(tmp_path_factory, labels, predictions):
    """A folder of files with one fault each, and of sound ones."""
    folder = tmp_path_factory.mktemp("faulty")
    with contextlib.chdir(folder):
        write_faulty(labels, predictions)
    return folder


def write_faulty(labels, predictions):
    np.save("labels.npy", labels)
    np.save("predictions.npy", predictions)
    np.save("column.npy", labels[:, None])
    np.save("two-d.npy", np.zeros((3, 4)))
    np.save("objects.npy", np.array([[None]], dtype=object))
    np.save("square.npy", np.zeros((N_SAMPLES, N_SAMPLES), dtype=np.uint8))
    np.save("transposed.npy", predictions.T)
    np.save("narrow.npy", predictions[:, 1:])
    np.save("packed.npy", np.full((3, 126), 255, dtype=np.uint8))
    Path("garbage.npy").write_bytes(b"hello")
    Path("truncated.npy").write_bytes(Path("predictions.npy").read_bytes()[:-1])
    np.savez("two.npz", a=predictions, b=predictions)
    for name, value in [("nan", np.nan), ("negative", -0.1), ("large", 1.5), ("inf", np.inf)]:
        losses = (predictions != labels).astype(float)
        losses[3, 5] = value
        np.save(f"{name}.npy", losses)
    np.save("complex.npy", predictions.astype(complex))
    np.save("gap.npy", np.where(np.arange(N_SAMPLES) == 5, np.nan, labels))
    scores = predictions.astype(float)
    scores[3, 5] = 0.73
    np.save("scores.npy", scores)
    classes = predictions.astype(int)
    classes[3, 5] = 2
    np.save("classes.npy", classes)
    np.save("words.npy", np.array(["yes", "no"])[predictions])
    save_csv("ragged.csv", predictions)
    with open("ragged.csv", "a") as file:
        file.write("1,0\n")


PREDICTIONS = ["--labels", "labels.npy", "--predictions"]
SOUND = [*PREDICTIONS, "predictions.npy"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "one of the arguments --predictions --losses is required"),
        (["--predictions", "predictions.npy"], "--labels must be given with --predictions"),
        (["--losses", "nan.npy", "--labels", "labels.npy"], "and only with them"),
        ([*SOUND, "--losses", "nan.npy"], "not allowed with argument"),
        ([*PREDICTIONS, "missing.npy"], "missing.npy: No such file or directory"),
        ([*PREDICTIONS, "predictions.txt"], "must end in .npy, .npz, .zarr, "),
        ([*PREDICTIONS, "garbage.npy"], "garbage.npy is not a readable .npy array"),
        ([*PREDICTIONS, "truncated.npy"], "truncated.npy is truncated"),
        ([*PREDICTIONS, "objects.npy"], "pickled Python objects, which are never loaded"),
        ([*PREDICTIONS, "two.npz"], "its keys: a, b"),
        ([*PREDICTIONS, "two.npz:c"], "no array is called 'c'"),
        ([*PREDICTIONS, "labels.npy"], "must be a matrix"),
        ([*PREDICTIONS, "narrow.npy"], "1,001 samples to a query, got 401 queries of 1,000"),
        ([*PREDICTIONS, "transposed.npy"], "transposed it would fit"),
        ([*SOUND, "--transpose"], "transposed it would fit"),
        ([*PREDICTIONS, "square.npy"], "is square, 1001 x 1001: say whether"),
        ([*PREDICTIONS, "ragged.csv"], "ragged.csv, line 402: must have 1,001 cells"),
        ([*PREDICTIONS, "scores.npy"], "scores.npy, queries 1 to 401 (rows 0 to 400): "),
        ([*PREDICTIONS, "classes.npy"], "classes.npy, queries 1 to 401 (rows 0 to 400): "),
        ([*PREDICTIONS, "words.npy"], "words.npy, queries 1 to 401 (rows 0 to 400): "),
        ([*SOUND, "--packed", "big"], "packed rows of 126 bytes"),
        ([*PREDICTIONS, "packed.npy", "--packed"], "holds bytes, which do not tell which bit is"),
        ([*PREDICTIONS, "packed.npy", "--packed", "big"], "no bit set past n_samples"),
        ([*PREDICTIONS, "packed.npy", "--packed", "lsb"], "invalid choice: 'lsb'"),
        ([*PREDICTIONS, "packed.npy", "--packed", "--transpose"], "cannot be transposed"),
        ([*SOUND, "--header", "no"], "--header is for .csv files"),
        ([*SOUND, "--n-samples", 1000], "--n-samples must be the number"),
        (["--labels", "column.npy", "--predictions", "predictions.npy"], "in one dimension"),
        (["--labels", "gap.npy", "--predictions", "predictions.npy"], "gap.npy: y_true must have"),
        (["--labels", "missing.npy", "--predictions", "predictions.npy"], "missing.npy: No such"),
        (["--losses", "nan.npy"], "nan.npy, queries 1 to 401 (rows 0 to 400): losses must be"),
        (["--losses", "negative.npy"], "negative.npy, queries 1 to 401 (rows 0 to 400): losses"),
        (["--losses", "large.npy"], "large.npy, queries 1 to 401 (rows 0 to 400): losses must be"),
        (["--losses", "inf.npy"], "inf.npy, queries 1 to 401 (rows 0 to 400): losses must be"),
        (["--losses", "complex.npy"], "must hold real numbers, bools or strings"),
        (["--losses", "words.npy"], "words.npy, queries 1 to 401 (rows 0 to 400): losses"),
        (["--losses", "packed.npy", "--packed"], "packed rows need n_samples"),
        (["--losses", "packed.npy", "--packed", "little", "--n-samples", 1001], "no bit set past"),
        (["--losses", "packed.npy", "--packed", "--n-samples", 0], "n_samples must be at least 1"),
        ([*SOUND, "--epsilon", 1.5], "epsilon must be in (0, 1), got 1.5"),
        ([*SOUND, "--epsilon", "nan"], "epsilon must be finite, got nan"),
        ([*SOUND, "--epsilon", "x"], "invalid float value: 'x'"),
        ([*SOUND, "--delta", 0], "delta must be in (0, 1), got 0.0"),
        ([*SOUND, "--n-vectors", 0], "n_vectors must be at least 1"),
        ([*SOUND, "--n-vectors", 2**31], "n_vectors must be at most"),
        ([*SOUND, "--seed", -1], "seed must be in [0, 2**64), got -1"),
        ([*SOUND, "--seed", 2**64], "seed must be in [0, 2**64)"),
        ([*SOUND, "--seed", 0.5], "must be a whole number, got '0.5'"),
        ([*SOUND, "--bound", "chernoff"], "'bernstein', 'bern"),
        ([*SOUND, "--estimator", "median"], "--estimator is for "),
        ([*SOUND, "--output", "no/answers.csv"], "folder does not exist"),
        ([*SOUND, "--plot", "audit.gif"], "--plot must end in .png"),
        ([*SOUND, "--colour"], "unrecognized arguments: --colour"),
    ],
)  # fmt: skip
def test_bad_input_is_one_line_on_stderr(refuse, monkeypatch, faulty, arguments, message):
    monkeypatch.chdir(faulty)
    refuse(message, "audit", *PARAMETERS, *arguments)


def test_a_bad_value_in_a_later_block_is_told_by_its_queries(refuse, monkeypatch, predictions):
    losses = np.zeros((N_QUERIES, N_SAMPLES))
    losses[399, 5] = np.nan
    np.save("l.npy", losses)
    monkeypatch.setattr(files, "BLOCK_BYTES", 100 * losses[0].nbytes)
    where = "l.npy, queries 301 to 400 (rows 0 to 99): losses must be in [0, 1], got nan at row 99"
    refuse(where, "audit", "--losses", "l.npy", *PARAMETERS, "--output", "answers.csv")
    assert not os.path.exists("answers.csv")
