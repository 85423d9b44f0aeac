"""Data sets of many files: the answer of the whole, whatever the files, and where they lie."""

import contextlib
import functools
import http.server
import json
import os
import re
import threading
from pathlib import Path

import numpy as np
import pytest
from support import write_rows

from radabound_fast import DeclaredSearch, Holdout
from radabound_fast.files import reading as files
from radabound_fast.files.place import expanded
from radabound_fast.files.tables import table_in, table_source, values_of

pa = pytest.importorskip("pyarrow", reason="the files extra is not installed")
pq = pytest.importorskip("pyarrow.parquet")

K, M = 30, 90
RNG = np.random.default_rng(8)
LABELS = RNG.integers(0, 2, M)
PREDICTIONS = LABELS ^ (RNG.random((K, M)) < np.linspace(0.1, 0.4, K)[RNG.permutation(K), None])
NAMES = [f"model {i}" for i in range(K)]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("y.npy", LABELS)
    (tmp_path / "p").mkdir()
    return tmp_path


def table(columns):
    return pa.table(dict(zip(NAMES, columns, strict=False)))


def opened(paths, **options):
    return files.open_predictions("y.npy", paths, **options)[1]


def whole(rows):
    return np.concatenate(list(rows))


# ---- where files are -----------------------------------------------------------------------------


def test_files_come_in_the_order_of_their_names_numbers_by_value(folder):
    for name in ("part-10.npy", "part-2.npy", "sub/part-1.npy", "_SUCCESS", ".part-1.npy.crc",
                 "part-3.txt", "_old/part-0.npy"):  # fmt: skip
        Path("p", name).parent.mkdir(exist_ok=True)
        Path("p", name).write_bytes(b"")
    shown = ["p/part-2.npy", "p/part-10.npy", "p/sub/part-1.npy"]
    assert expanded(["p"]) == expanded(["p/"]) == shown
    assert expanded(["p/part-*.npy"]) == shown[:2]
    assert expanded(["p/**/*.npy"]) == shown
    assert expanded(["b.npy", "a.npy"]) == ["b.npy", "a.npy"]
    for empty in ("p/none-*.npy", "p/_old"):
        if empty == "p/_old":
            os.remove("p/_old/part-0.npy")
        with pytest.raises(ValueError, match=f"{empty.replace('*', '.')} must hold files that end"):
            expanded([empty])


KINDS = (".npy", ".npz", ".csv", ".parquet", ".arrow")


def write_arrow(written, path, rows=4):
    with pa.ipc.new_file(path, written.schema) as file:
        file.write_table(written, max_chunksize=rows)


@pytest.mark.parametrize("block_bytes", [1, 700, 1 << 20])
@pytest.mark.parametrize(
    "cuts", [[], [1], [7, 8, 29], pytest.param(list(range(1, K)), marks=pytest.mark.thorough)]
)
@pytest.mark.parametrize("suffix", KINDS)
def test_shards_are_the_rows_of_the_whole(folder, monkeypatch, suffix, cuts, block_bytes):
    monkeypatch.setattr(files, "BLOCK_BYTES", block_bytes)
    for number, rows in enumerate(np.split(PREDICTIONS, cuts)):
        write_rows(f"p/part-{number}{suffix}", rows)
    rows = opened("p")
    assert rows.shape == (K, M) and len(rows.parts) == len(cuts) + 1
    np.testing.assert_array_equal(whole(rows), PREDICTIONS)
    for first in (0, 1, 7, 8, 28, 29, K):  # at a seam, and one beside it
        rest = list(rows.blocks(first))
        assert sum(map(len, rest)) == K - first
        np.testing.assert_array_equal(np.concatenate([*rest, PREDICTIONS[:0]]), PREDICTIONS[first:])
    ends = np.cumsum([len(source) for source in np.split(PREDICTIONS, cuts)])
    for query in (0, 7, 8, 28, 29):
        part = int(np.searchsorted(ends, query, side="right"))
        assert rows.file_of(query) == f"p/part-{part}{suffix}"


def test_what_comes_before_is_not_read_again(folder, monkeypatch):
    for number, rows in enumerate(np.split(PREDICTIONS, 3)):
        np.save(f"p/{number}.npy", rows)
    rows = opened("p")
    rows.parts[0] = ("p/0.npy", rows.parts[0][1]._replace(blocks=lambda n: pytest.fail("read")))
    np.testing.assert_array_equal(np.concatenate(list(rows.blocks(10))), PREDICTIONS[10:])


@pytest.mark.parametrize("suffix", [".parquet", ".arrow"])
@pytest.mark.parametrize("block_bytes", [1, 1 << 20])
def test_tables_side_by_side_are_more_models_or_more_samples(
    folder, monkeypatch, suffix, block_bytes
):
    monkeypatch.setattr(files, "BLOCK_BYTES", block_bytes)
    write = pq.write_table if suffix == ".parquet" else write_arrow
    samples = np.split(PREDICTIONS, [40, 41], axis=1)
    for number, part in enumerate(samples):  # as Spark writes a table of m rows
        write(table(part), f"p/part-{number}{suffix}")
    rows = opened("p", transpose=True)
    assert rows.names == NAMES and rows.shape == (K, M)
    np.testing.assert_array_equal(whole(rows), PREDICTIONS)
    for path in Path("p").iterdir():
        path.unlink()
    for number, part in enumerate(np.split(np.arange(K), [11])):
        write(pa.table({NAMES[i]: PREDICTIONS[i] for i in part}), f"p/part-{number}{suffix}")
    rows = opened("p", transpose=True)
    assert rows.names == NAMES
    np.testing.assert_array_equal(whole(rows), PREDICTIONS)
    write(table(samples[0]), f"p/part-9{suffix}")
    with pytest.raises(ValueError, match="p must each have all 90 samples, or the same models and"):
        opened("p", transpose=True)


@pytest.mark.parametrize("block_bytes", [1, 200, 1 << 20])
def test_samples_are_put_together_whatever_the_chunks(folder, monkeypatch, block_bytes):
    zarr = pytest.importorskip("zarr")
    monkeypatch.setattr(files, "BLOCK_BYTES", block_bytes)
    paths = []
    for number, part in enumerate(np.split(PREDICTIONS.T.astype(np.uint8), [40, 41])):
        paths.append(f"p/{number}.zarr")
        zarr.create_array(paths[-1], data=part, chunks=(9, [4, 7, 30][number]))
    np.testing.assert_array_equal(whole(opened(paths, transpose=True)), PREDICTIONS)


def test_losses_without_labels_are_put_together_by_their_names(folder):
    losses = (PREDICTIONS != LABELS).astype(float)
    for number, part in enumerate(np.split(losses, 2, axis=1)):
        pq.write_table(table(part), f"p/{number}.parquet")
    np.testing.assert_array_equal(whole(files.open_losses("p", transpose=True)), losses)


# ---- cells that are rows -------------------------------------------------------------------------


def lists_of(rows, kind):
    flat = pa.array(rows.ravel())
    if kind == "fixed":
        return pa.FixedSizeListArray.from_arrays(flat, rows.shape[1])
    offsets = np.arange(len(rows) + 1) * rows.shape[1]
    make = pa.ListArray if kind == "list" else pa.LargeListArray
    return make.from_arrays(offsets.astype(np.int32 if kind == "list" else np.int64), flat)


@pytest.mark.parametrize("kind", ["fixed", "list", "large"])
@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize("dtype", [np.int64, np.uint8, np.float32, np.bool_])
def test_a_cell_may_hold_a_row(folder, kind, named, dtype):
    columns = {"model": NAMES} if named else {}
    columns["predictions"] = lists_of(PREDICTIONS.astype(dtype), kind)
    pq.write_table(pa.table(columns), "p/a.parquet", row_group_size=7)
    write_arrow(pa.table(columns).slice(0, 30), "p/b.arrow")
    rows = opened("p")
    np.testing.assert_array_equal(whole(rows), np.vstack([PREDICTIONS, PREDICTIONS]))
    assert rows.names == (NAMES * 2 if named else None)


@pytest.mark.parametrize("start", range(10))
def test_bools_may_begin_within_a_byte(start):
    bits = PREDICTIONS[0].astype(bool)
    for end in range(start + 1, 30):
        part = pa.array(bits).slice(start, end - start)
        np.testing.assert_array_equal(values_of("p", part), bits[start:end])


@pytest.mark.parametrize("transpose", [False, True])
def test_a_table_with_fewer_rows_than_it_says_is_refused(folder, transpose):
    pq.write_table(pa.table({"a": [0, 1, 1], "b": [1, 1, 0]}), "p/a.parquet")
    table = table_in("p/a.parquet")
    with pytest.raises(ValueError, match="is not a readable table: 3 of 4 rows"):
        list(table_source(table._replace(n_rows=4), transpose).blocks(9))


@pytest.mark.parametrize("bitorder", ["little", "big"])
def test_a_cell_may_hold_packed_bits(folder, bitorder):
    packed = np.packbits(PREDICTIONS, axis=1, bitorder=bitorder)
    cells = pa.array([row.tobytes() for row in packed], pa.binary(packed.shape[1]))
    pq.write_table(pa.table({"key": NAMES, "bits": cells}), "p/a.parquet")
    rows = files.open_losses("p", n_samples=M, packed=bitorder)
    found = np.unpackbits(whole(rows).view(np.uint8), axis=1, bitorder="little")[:, :M]
    np.testing.assert_array_equal(found, PREDICTIONS)
    assert rows.names == NAMES


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"a": [[1, 0], [1]]}, "column 'a': must hold lists of 2, got 1 in row 2"),
        ({"a": [[1, 0], None]}, "column 'a': it has 1 missing value"),
        ({"a": [[1, 0], [1, None]]}, "column 'a': it has 1 missing value"),
        ({"a": [[1, 0]] * 2, "b": [[1, 0]] * 2}, "must have one column of lists"),
        ({"a": [[1, 0]] * 2, "b": [1, 2]}, "must have one column of lists"),
        ({"a": [[1, 0]] * 2, "model": ["x", None]}, "column 'model': it has 1 missing value"),
    ],
)
def test_cells_that_are_no_rows_are_refused(folder, columns, message):
    pq.write_table(pa.table(columns), "p.parquet")
    with pytest.raises(ValueError, match="p.parquet") as caught:
        whole(files.open_losses("p.parquet", transpose=False))
    assert message in str(caught.value)


@pytest.mark.parametrize("above", [".cache", "_work", "plain/.hidden"])
def test_a_folder_may_lie_in_one_that_is_hidden(folder, above):
    """What is left out are hidden files and folders within the one that is named."""
    for part in ("a", "b", ".c", "sub/d", "_sub/e", ".sub/f"):
        path = Path(above, "data", f"{part}.npy")
        path.parent.mkdir(parents=True, exist_ok=True)
        np.save(path, PREDICTIONS)
    found = expanded([f"{above}/data"])
    assert found == [f"{above}/data/{part}.npy" for part in ("a", "b", "sub/d")]


# ---- the long form -------------------------------------------------------------------------------


def long_table(rows, models, order, value="prediction"):
    model, row = np.divmod(order, rows.shape[1])
    return pa.table({"model": [models[i] for i in model], "row": row, value: rows[model, row]})


@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".arrow"])
@pytest.mark.parametrize("group_bytes", [1, 2000, 1 << 20])  # one model at a time, a few, all
@pytest.mark.parametrize("sort", [True, False])
def test_the_long_form_is_the_matrix(folder, monkeypatch, suffix, group_bytes, sort):
    monkeypatch.setattr("radabound_fast.files.long._GROUP_BYTES", group_bytes)
    monkeypatch.setattr("radabound_fast.files.long._LINES", 400)
    order = np.arange(K * M) if sort else RNG.permutation(K * M)
    for number, part in enumerate(np.array_split(order, 3)):
        written = long_table(PREDICTIONS, NAMES, part)
        if suffix == ".csv":
            pytest.importorskip("pyarrow.csv").write_csv(written, f"p/{number}.csv")
        elif suffix == ".arrow":
            write_arrow(written, f"p/{number}.arrow", 900)  # more than are read at a time
        else:
            pq.write_table(written, f"p/{number}.parquet", row_group_size=500)
    rows = opened("p")
    met = list(dict.fromkeys((order // M).tolist()))  # in the order in which they are met
    assert rows.names == [NAMES[i] for i in met]
    np.testing.assert_array_equal(whole(rows), PREDICTIONS[met])


def test_the_long_form_has_text_and_losses_too(folder):
    words = np.array(["cat", "dog"])
    np.save("y.npy", words[LABELS])
    written = long_table(words[PREDICTIONS], NAMES, RNG.permutation(K * M))
    pq.write_table(written, "l.parquet")
    labels, rows = files.open_predictions("y.npy", "l.parquet")
    holdout = Holdout(labels)
    search = DeclaredSearch(holdout, K, delta=0.1)
    values = search.query_many(whole(rows), keys=np.arange(K)).values
    by_name = dict(zip(rows.names, values, strict=True))
    assert [by_name[name] for name in NAMES] == (PREDICTIONS != LABELS).mean(axis=1).tolist()
    losses = RNG.random((K, M))
    pq.write_table(long_table(losses, NAMES, np.arange(K * M), "loss"), "l.parquet")
    np.testing.assert_array_equal(whole(files.open_losses("l.parquet")), losses)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda order: order[1:], "must have a line for each of 30 models and each of 90 rows"),
        (lambda order: np.append(order, 5), "must have a line for each of 30 models"),
        (lambda order: np.append(order[1:], 5), "model 'model 0' has no line for row 0, and anot"),
    ],
)
def test_a_pair_that_is_missing_or_comes_twice_is_told(folder, change, message):
    pq.write_table(long_table(PREDICTIONS, NAMES, change(np.arange(K * M))), "l.parquet")
    with pytest.raises(ValueError, match=message):
        whole(opened("l.parquet"))


@pytest.mark.parametrize("order", [("0", "1"), ("1", "0")])
def test_strings_in_one_file_and_numbers_in_another_are_refused(folder, order):
    """As one array all would be strings, and no number a class."""
    half = K // 2 * M
    words = np.array(["cat", "dog"])[PREDICTIONS]
    first, second = (f"p/{name}.parquet" for name in order)
    pq.write_table(long_table(words, NAMES, np.arange(half)), first)
    pq.write_table(long_table(PREDICTIONS, NAMES, np.arange(half, K * M)), second)
    with pytest.raises(ValueError, match="the files must all hold strings or all numbers"):
        whole(opened("p"))


@pytest.mark.parametrize(
    ("row", "message"),
    [("90", "rows must be below 90"), ("-1", "rows must count from 0, got -1"),
     ("x", "line 3: row must be a whole number, got 'x'"), ("1.0", "line 3: row must be a whole")],
)  # fmt: skip
def test_a_row_that_is_none_is_told(folder, row, message):
    Path("l.csv").write_text(f"row,prediction,model\n0,1,a\n{row},0,a\n")
    with pytest.raises(ValueError, match=message):
        whole(opened("l.csv"))


# ---- probabilities of more than two classes ------------------------------------------------------

CLASSES = np.array(["bird", "cat", "dog"])
TRUTH = RNG.integers(0, 3, M)
PROBA = RNG.dirichlet(np.ones(3), (K, M))


@pytest.mark.parametrize("form", ["npy", "npz", "zarr", "lists", "named", "unnamed", "csv"])
@pytest.mark.parametrize("text", [False, True])
def test_probabilities_of_classes_are_those_of_each_model(run, folder, form, text):
    labels = CLASSES[TRUTH] if text else TRUTH
    np.save("y.npy", labels)
    columns = CLASSES if text else np.array(["0", "1", "2"])
    what = ["p"]
    if form in ("npy", "npz"):
        write_rows(f"p/a.{form}", PROBA)
    elif form == "zarr":
        pytest.importorskip("zarr").create_array("a.zarr", data=PROBA)
        what = ["a.zarr"]
    elif form == "lists":
        inner = pa.FixedSizeListArray.from_arrays(pa.array(PROBA.ravel()), 3)
        cells = pa.FixedSizeListArray.from_arrays(inner, M)
        pq.write_table(pa.table({"model": NAMES, "p": cells}), "p/a.parquet")
    elif form == "unnamed":
        what = []
        for name, proba in zip(NAMES, PROBA, strict=True):
            np.save(f"p/{name}.npy", proba)
            what.append(f"p/{name}.npy")
    else:
        for name, proba in zip(NAMES, PROBA, strict=True):
            shuffled = {columns[i]: proba[:, i] for i in (2, 0, 1)}
            if form == "csv":
                lines = [",".join(shuffled), *(",".join(map(repr, each)) for each in
                         np.stack(list(shuffled.values()), 1).tolist())]  # fmt: skip
                Path(f"p/{name}.csv").write_text("\n".join(lines))
            else:
                pq.write_table(pa.table(shuffled), f"p/{name}.parquet")
    search = DeclaredSearch(Holdout(labels, metric="neg_brier_score"), 1000, delta=0.1)
    answers = search.query_many(PROBA, keys=np.arange(K))
    options = ["--space-size", 1000, "--delta", 0.1, "--metric", "neg_brier_score"]
    header = ["--header", "predictions"] if form == "csv" else []
    code, out, err = run(
        *("audit", "--labels", "y.npy", "--predictions", *what), *options, *header, "--json"
    )
    assert (code, err) == (0, "")
    best = json.loads(out)["search"]["best"]
    first = int(answers.lows.argmax())
    assert (best["query"], best["value"], best["low"]) == (
        first + 1, answers.values[first], answers.lows[first],
    )  # fmt: skip
    assert best.get("model") == (None if form in ("npy", "npz", "zarr") else NAMES[first])


# ---- the command ---------------------------------------------------------------------------------

SEARCH = ["audit", "--labels", "y.npy", "--delta", "0.1", "--space-size", "1e3"]


@pytest.mark.parametrize("keyed", [False, True])
@pytest.mark.parametrize("kind", [["--space-size", "1e3"], ["--epsilon", "0.4", "--seed", "3"]])
def test_an_audit_of_shards_goes_on_where_it_stopped(run, folder, kind, keyed):
    """One answer: that of an audit of all rows at once."""
    is_search = kind[0] == "--space-size"
    if keyed and not is_search:
        pytest.skip("a guard has no keys")
    given = ["audit", "--labels", "y.npy", "--delta", "0.1", *kind]
    np.save("all.npy", PREDICTIONS)
    keys = ["--keys", "k.txt"] if keyed else []
    Path("k.txt").write_text("\n".join(NAMES))
    expected = json.loads(run(*given, "--predictions", "all.npy", *keys, "--json")[1])
    for number, part in enumerate(np.split(PREDICTIONS, [10, 11])):
        np.save(f"p/part-{number}.npy", part)
        Path("k.txt").write_text("\n".join(NAMES[: [10, 11, 30][number]]))
        code, out, err = run(
            *given, "--predictions", "p", *keys, "--state", "s.db", "--output", "a.csv", "--json"
        )
        assert (code, err) == (0, "")
        queries = [int(line.split(",")[is_search and keyed or not is_search])
                   for line in Path("a.csv").read_text().splitlines()[1:]]  # fmt: skip
        assert queries == list(range([1, 11, 12][number], [11, 12, 31][number]))
    told = json.loads(out)
    if is_search:
        del expected["search"]["n_queries"], told["search"]["n_queries"]
        assert told["search"] == expected["search"]
        assert run("report", "s.db")[0] == 0
    else:
        (found,), (wanted,) = told["bounds"], expected["bounds"]
        for name in ("n_answered", "complexity", "n_left", "halted"):
            assert found[name] == wanted[name], name


def test_models_are_called_by_their_columns(run, folder):
    pq.write_table(table(PREDICTIONS), "p/a.parquet")
    errors = (PREDICTIONS != LABELS).mean(axis=1)
    best = int(errors.argmin())
    given = [*SEARCH, "--predictions", "p", "--transpose", "--output", "a.csv"]
    code, out, _ = run(*given)
    assert code == 0 and f"is {NAMES[best]} (query {best + 1}): error {errors[best]:.4f}" in out
    lines = Path("a.csv").read_text().splitlines()
    assert lines[0].startswith('"model","query","value"')
    assert [line.split(",")[0].strip('"') for line in lines[1:]] == NAMES
    given[-2:] = ["--json"]
    assert json.loads(run(*given)[1])["search"]["best"]["model"] == NAMES[best]


def test_an_output_within_a_folder_that_is_read_is_refused(refuse, folder):
    np.save("p/a.npy", PREDICTIONS)
    outside = "--output must be outside the folder p, which is read"
    refuse(outside, *SEARCH, "--predictions", "p", "--output", "p/answers.csv")


@pytest.mark.parametrize("metric", ["roc_auc", "neg_brier_score"])
def test_hard_classes_are_noted_where_scores_are_meant(run, folder, metric):
    np.save("p.npy", PREDICTIONS)
    given = [*SEARCH, "--predictions", "p.npy", "--metric", metric]
    note = f"are one of two values, as classes are; {metric} is meant for "
    assert note in run(*given)[1] and note in json.loads(run(*given, "--json")[1])["search"]["note"]
    state = [*given, "--state", "s.db"]  # of which a second run answers nothing
    assert note in run(*state)[1] and note not in run(*state)[1]
    soft = np.clip(PREDICTIONS * 0.8 + 0.1 * RNG.random((K, M)), 0, 1)
    np.save("p.npy", np.vstack([PREDICTIONS[:-1], soft[:1]]))  # a single one
    assert note not in run(*given)[1]
    assert json.loads(run(*given, "--json")[1])["search"]["note"] is None


# ---- URLs ----------------------------------------------------------------------------------------


@pytest.fixture
def memory():
    system = pytest.importorskip("fsspec").filesystem("memory")
    yield system
    system.rm("/", recursive=True)


@pytest.mark.parametrize("suffix", KINDS)
@pytest.mark.parametrize("transpose", [False, True])
def test_a_url_is_read_as_a_path_is(folder, memory, suffix, transpose):
    for number, rows in enumerate(np.split(PREDICTIONS, [9])):
        written = f"p/part-{number}{suffix}"
        write_rows(written, rows.T if transpose else rows)
        memory.put(written, f"/bucket/set/part-{number}{suffix}")
    memory.put("y.npy", "/bucket/y.npy")
    for place in ("memory://bucket/set", "memory://bucket/set/*" + suffix):
        options = {"transpose": transpose}
        _, rows = files.open_predictions("memory://bucket/y.npy", place, **options)
        np.testing.assert_array_equal(whole(rows), PREDICTIONS)
    for place, message in [
        ("memory://bucket/none.npy", "memory://bucket/none.npy cannot be read: "),
        ("memory://bucket/none-*.npy", "must hold files that end in"),
        ("nothing://bucket/a.npy", "nothing://bucket/a.npy cannot be read: Protocol not known"),
    ]:
        with pytest.raises(ValueError, match="bucket") as caught:
            files.open_predictions("y.npy", place)
        assert message in str(caught.value)


@pytest.fixture(params=["s3", "gs"])
def system(request, monkeypatch):
    """What is in a server of this process: of S3, or of Google."""
    fsspec = pytest.importorskip("fsspec")
    if request.param == "s3":
        pytest.importorskip("s3fs")
        server = pytest.importorskip("moto.server").ThreadedMotoServer(port=0)
        server.start()
        host, port = server.get_host_and_port()
        reached = {"client_kwargs": {"endpoint_url": f"http://{host}:{port}"}}
        reached |= {"key": "x", "secret": "x"}
    else:
        # gcsfs, as it is imported: it would first ask one over TLS what a bucket is
        monkeypatch.setenv("GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT", "false")
        pytest.importorskip("gcsfs")
        emulator = pytest.importorskip("gcp_storage_emulator.server")
        server = emulator.create_server("127.0.0.1", 0, in_memory=True)
        server.start()
        port = server._api._httpd.server_port
        reached = {"token": "anon", "endpoint_url": f"http://127.0.0.1:{port}"}
    monkeypatch.setitem(fsspec.config.conf, request.param, reached)
    project = {"project": "x"} if request.param == "gs" else {}
    yield fsspec.filesystem(request.param, **project, **reached)
    server.stop()


def test_a_bucket_is_read(folder, system):
    scheme = "gs" if "gs" in system.protocol else "s3"
    system.mkdir("bucket")
    for suffix in (".npy", ".parquet") if scheme == "s3" else (".parquet",):
        for number, rows in enumerate(np.split(PREDICTIONS, [9])):
            write_rows(f"p/part-{number}{suffix}", rows)
            system.put(f"p/part-{number}{suffix}", f"bucket/{suffix[1:]}/part-{number}{suffix}")
        place = f"{scheme}://bucket/{suffix[1:]}"
        for files_of in (place, f"{place}/part-*{suffix}"):
            np.testing.assert_array_equal(whole(opened(files_of)), PREDICTIONS)
    with pytest.raises(ValueError, match=f"{scheme}://bucket/none.npy cannot be read: "):
        opened(f"{scheme}://bucket/none.npy")


class _Whole(http.server.SimpleHTTPRequestHandler):
    """Sends whole files, as Python's own server does, to whoever goes away in the middle too."""

    def log_message(self, *_):
        pass

    def copyfile(self, source, outputfile):
        with contextlib.suppress(ConnectionError):
            super().copyfile(source, outputfile)


class _Parts(_Whole):
    """Sends what is asked for of a file, as servers of data sets do."""

    def do_GET(self):
        asked = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        if asked is None or not os.path.isfile(path := self.translate_path(self.path)):
            super().do_GET()
            return
        first, last = map(int, asked.groups())
        content = Path(path).read_bytes()
        part = content[first : last + 1]
        self.send_response(206)
        self.send_header("Content-Range", f"bytes {first}-{first + len(part) - 1}/{len(content)}")
        self.send_header("Content-Length", str(len(part)))
        self.end_headers()
        with contextlib.suppress(ConnectionError):
            self.wfile.write(part)


@pytest.mark.thorough
@pytest.mark.parametrize("handler", [_Parts, _Whole])
def test_files_of_an_http_server_are_read(folder, handler):
    pytest.importorskip("aiohttp", reason="what fsspec reads http with is not installed")
    # more than fsspec reads ahead
    many = np.tile(PREDICTIONS.astype(np.int8), (6_000_000 // PREDICTIONS.size, 1))
    for suffix in (".npy", ".npz", ".csv", ".parquet"):
        write_rows(f"p/p{suffix}", PREDICTIONS)
    write_rows("p/many.npy", many)
    in_folder = functools.partial(handler, directory="p")
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), in_folder) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        url = f"http://127.0.0.1:{server.server_port}"
        try:
            for suffix in (".npy", ".npz", ".csv", ".parquet"):
                np.testing.assert_array_equal(whole(opened(f"{url}/p{suffix}")), PREDICTIONS)
            np.testing.assert_array_equal(whole(opened(f"{url}/many.npy")), many)
            np.testing.assert_array_equal(whole(opened(f"{url}/p*.npy")), PREDICTIONS)
            with pytest.raises(ValueError, match=f"{url}/none.npy cannot be read: "):
                opened(f"{url}/none.npy")
        finally:
            server.shutdown()
            thread.join()


# ---- wide tables ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["int64", "bool", "str", "mixed"])
def test_a_table_of_many_rows_is_read_whole_in_blocks_of_any_size(folder, kind):
    """Fewer rows than are decoded at a time, as many, and more; and the rows of several blocks."""
    numbers = np.random.default_rng(1).integers(0, 2, (9001, 3))
    table = {
        f"s{i}": column.astype(["int8", "bool", "float64"][i] if kind == "mixed" else kind)
        for i, column in enumerate(numbers.T)
    }
    pq.write_table(pa.table(table), "wide.parquet", row_group_size=5000)
    source = table_source(table_in("wide.parquet"), False)
    expected = numbers.astype(kind) if kind != "mixed" else numbers
    for n in (1000, 1024, 4095, 4096, 4097, 9001, 20_000):
        blocks = list(source.blocks(n))
        assert max(map(len, blocks)) <= n and all(block.flags.c_contiguous for block in blocks)
        np.testing.assert_array_equal(np.concatenate(blocks), expected)


# ---- several files -------------------------------------------------------------------------------


def test_files_that_are_named_come_in_their_own_order_and_their_list_is_not_kept(folder):
    for number, rows in enumerate(np.split(PREDICTIONS, 3)):
        np.save(f"p/{number}.npy", rows)
    paths = [f"p/{number}.npy" for number in (2, 1, 0)]
    rows = opened(paths)
    assert paths == ["p/2.npy", "p/1.npy", "p/0.npy"]
    paths.clear()
    np.testing.assert_array_equal(whole(rows), np.vstack(np.split(PREDICTIONS, 3)[::-1]))
    np.save("p/1.npy", PREDICTIONS[:, 1:])
    with pytest.raises(ValueError, match="p/1.npy must have 90 samples to a query, got 30"):
        opened("p")
    with pytest.raises(ValueError, match="p/1.npy must have queries as long as those of p/0.npy"):
        files.open_losses("p")


@pytest.mark.parametrize(
    "change",
    [["--delta", "0.11"], ["--space-size", "1001"], ["--metric", "accuracy"], ["--labels", "z.npy"],
     ["--baseline", "z.npy"], ["--keys", "k.txt"]],
    ids=lambda change: change[0],
)  # fmt: skip
def test_a_state_is_of_one_search(run, refuse, folder, change):
    """One argument at a time differs."""
    np.save("p.npy", PREDICTIONS)
    np.save("z.npy", np.append(1 - LABELS[:1], LABELS[1:]))
    Path("k.txt").write_text("\n".join(NAMES))
    options = {"--labels": "y.npy", "--delta": "0.1", "--space-size": "1e3"}
    audit = ["audit", "--predictions", "p.npy", "--state", "s.db"]
    same = [*audit, *(word for pair in options.items() for word in pair)]
    assert run(*same)[0] == 0 and "30 queries were answered before." in run(*same)[1]
    other = options | {change[0]: change[1]}
    refuse("s.db", *audit, *(word for pair in other.items() for word in pair))
    assert "30 queries were answered before." in run(*same)[1]
