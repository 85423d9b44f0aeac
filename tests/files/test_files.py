"""Predictions and losses from files: the same rows from every format, or one clear error."""

import io
import os
import sys
import zipfile

import numpy as np
import pytest
from support import write_rows

from radabound_fast import pack_losses
from radabound_fast.files import reading as files
from radabound_fast.files.place import SUFFIXES, split_key, stem_of

pa = pytest.importorskip("pyarrow", reason="the files extra is not installed")
pq = pytest.importorskip("pyarrow.parquet")
zarr = pytest.importorskip("zarr", reason="the zarr extra is not installed")

N_QUERIES, N_SAMPLES = 7, 5


def predictions(dtype):
    numbers = np.random.default_rng(0).integers(0, 2, (N_QUERIES, N_SAMPLES))
    if dtype == "str":
        return np.where(numbers, "late", "on time, or nearly")
    if np.dtype(dtype).kind == "f":
        return (numbers * np.float64(0.1)).astype(dtype)
    return numbers.astype(dtype)


def read(path, **options):
    return np.concatenate(list(files.open_losses(path, **options)))


def labels_in(path, like=None):
    """The labels in a file, read beside predictions that are `like` them."""
    beside = path.with_name("beside.npy")
    np.save(beside, np.zeros((1, 1)) if like is None else like[None])
    return files.open_predictions(path, beside)[0]


def read_predictions(path, labels, **options):
    """The predictions in a file, read beside these labels."""
    beside = path.with_name("beside.npy")
    np.save(beside, labels)
    return files.open_predictions(beside, path, **options)[1]


@pytest.fixture(params=SUFFIXES)
def suffix(request):
    return request.param


# one row to a block, blocks that do not divide the file, and the whole file in one
@pytest.mark.parametrize("block_bytes", [1, 2000, 1 << 20])
@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64", "float32", "float64", "str"])
@pytest.mark.parametrize("transpose", [False, True])
def test_every_format_gives_the_rows_that_were_written(
    tmp_path, monkeypatch, suffix, dtype, transpose, block_bytes
):
    monkeypatch.setattr(files, "BLOCK_BYTES", block_bytes)
    expected = predictions(dtype)
    path = write_rows(tmp_path / f"p{suffix}", expected.T if transpose else expected)
    labels = np.resize(np.unique(expected), N_SAMPLES)
    rows = read_predictions(path, labels, transpose=transpose)
    assert rows.shape == (N_QUERIES, N_SAMPLES)
    if not suffix.startswith(".csv") or dtype == "str":
        assert rows.dtype.kind == expected.dtype.kind
    blocks = list(rows)
    assert all(block.ndim == 2 and len(block) for block in blocks)
    np.testing.assert_array_equal(np.concatenate(blocks), expected)
    assert len(list(rows)) == len(blocks)  # and a second time
    if block_bytes == 1:
        assert len(blocks) == N_QUERIES


@pytest.mark.parametrize("suffix", [".npy", ".npz"])
@pytest.mark.parametrize("dtype", [">i4", "<f8", "S3", "float16"])
@pytest.mark.parametrize("transpose", [False, True])
def test_fortran_order_and_foreign_byte_order_change_nothing(tmp_path, suffix, dtype, transpose):
    expected = predictions("uint8").astype(dtype)
    stored = np.asfortranarray(expected.T if transpose else expected)
    path = write_rows(tmp_path / f"p{suffix}", stored)
    (block,) = files.open_losses(path, transpose=transpose)
    assert (block.dtype.kind, block.dtype.itemsize) == (expected.dtype.kind, expected.itemsize)
    np.testing.assert_array_equal(block, expected)


@pytest.mark.parametrize("dtype", ["bool", "int64", "float64", "str"])
def test_every_format_gives_the_labels_that_were_written(tmp_path, suffix, dtype):
    expected = predictions(dtype)[:, 0]
    column = expected if suffix in (".npy", ".npz", ".zarr") else expected[:, None]
    found = labels_in(write_rows(tmp_path / f"y{suffix}", column), like=expected)
    assert found.shape == expected.shape
    np.testing.assert_array_equal(found, expected)


def test_labels_may_stand_on_one_line_and_after_a_byte_order_mark(tmp_path):
    path = tmp_path / "y.csv"
    path.write_bytes(b"\xef\xbb\xbfyes,no,no\r\n\r\n")
    assert labels_in(path, like=np.array(["no", "no", "no"])).tolist() == ["yes", "no", "no"]


def test_an_array_of_several_is_chosen_by_its_key(tmp_path):
    path = tmp_path / "all.npz"
    np.savez(path, labels=np.array([1, 0]), predictions=np.array([[1, 1], [0, 0], [1, 0]]))
    labels, rows = files.open_predictions(f"{path}:labels", f"{path}:predictions")
    assert labels.tolist() == [1, 0]
    assert rows.shape == (3, 2)


def test_a_file_larger_than_memory_is_mapped(tmp_path):
    path = tmp_path / "p.npy"
    n_queries = 2**33  # 64 GB, of which the disk holds the first page
    with open(path, "wb") as file:
        header = {"descr": "|u1", "fortran_order": False, "shape": (n_queries, 8)}
        np.lib.format.write_array_header_1_0(file, header)
        file.truncate(file.tell() + 8 * n_queries)
    block = next(iter(files.open_losses(path)))
    assert block.nbytes == files.BLOCK_BYTES
    assert not block.flags.owndata and not block.any()


PACKED = np.random.default_rng(5).integers(0, 2, (3, 70)).astype(bool)


@pytest.mark.parametrize("n_samples", [8, 9, 64, 70])  # whole bytes, words, and neither
@pytest.mark.parametrize("kept", ["words", ">u8", "little", "big"])
@pytest.mark.parametrize("suffix", [".npy", ".npz", ".parquet"])
def test_packed_rows_are_words_whatever_they_are_kept_in(tmp_path, suffix, kept, n_samples):
    losses = PACKED[:, :n_samples]
    words, packed = pack_losses(losses).words, True
    stored = words
    if kept in ("little", "big"):
        stored, packed = np.packbits(losses, axis=1, bitorder=kept), kept
    elif kept == ">u8" and suffix != ".parquet":
        stored = words.astype(">u8")
    path = write_rows(tmp_path / f"p{suffix}", stored)
    found = read(path, packed=packed, n_samples=n_samples)
    assert found.dtype.kind == "u" and found.dtype.itemsize == 8
    np.testing.assert_array_equal(found, words)


def test_a_square_file_needs_a_choice(tmp_path, suffix):
    square = np.array([[1, 1], [0, 0]])
    path = write_rows(tmp_path / f"p{suffix}", square)
    with pytest.raises(ValueError, match="is square, 2 x 2: say whether"):
        files.open_losses(path, n_samples=2)
    np.testing.assert_array_equal(read(path, transpose=False), square)
    np.testing.assert_array_equal(read(path, transpose=True), square.T)


def test_a_missing_file_is_not_found(tmp_path, suffix):
    for opener in (files.open_losses, labels_in):
        with pytest.raises(FileNotFoundError, match="missing"):
            opener(tmp_path / f"missing{suffix}")


def error_of(function, *arguments, **options):
    """The one line that `function` complains with, without the folder."""
    with pytest.raises(ValueError) as caught:
        function(*arguments, **options)
    message = str(caught.value)
    assert "\n" not in message and len(message) < 300
    folder, name = os.path.split(arguments[0])
    assert message.startswith(os.path.join(folder, name))
    return message.replace(f"{folder}{os.sep}", "")


def zipped(content, name="p.npy"):
    """An archive of one member."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        if name is not None:
            archive.writestr(name, content)
    return file.getvalue()


def npy(*arrays):
    file = io.BytesIO()
    for array in arrays:
        np.save(file, array)
    return file.getvalue()


def header_of(shape):
    file = io.BytesIO()
    described = {"descr": "|u1", "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, described)
    return file.getvalue()


def damaged_archive():
    content = bytearray(zipped(npy(predictions("int64"))))
    content[content.index(b"\n") + 20] ^= 1  # in the data, which is stored as it is
    return bytes(content)


class Bomb:
    def __reduce__(self):
        return os._exit, (1,)


MANY = npy(predictions("int64"))
BYTES, WORDS = np.zeros((3, 2), np.uint8), np.zeros((3, 2), np.uint64)
OCTETS = {"packed": "big", "n_samples": 9}
ROWS = ": must not be blank, as others follow"
LABELS = "p{} must hold labels in one dimension, got shape {}"
HINT = "; if a first line is a header, say so (--header)"
# of a file: its suffix, what it holds, what opens it and how, and what it says
FAULTS = [
    (".npy", MANY + b"x", "losses", {}, "p.npy has 1 byte after its array"),
    # as appending to one file in a loop does
    (".npy", npy(BYTES, BYTES), "losses", {}, "p.npy has 134 bytes after its array"),
    (".npz", zipped(MANY[:-8]), "losses", {}, "p.npz is truncated: 272 of 280 bytes of data"),
    (".npz", zipped(MANY + b"x"), "losses", {}, "p.npz has 1 byte after its array"),
    (".npz", damaged_archive(), "losses", {},
     "p.npz is not a readable .npz file: Bad CRC-32 for file 'p.npy'"),
    (".npy", header_of((-2, 3)), "losses", {},
     "p.npy is not a readable .npy array: its shape is (-2, 3)"),
    (".npy", header_of((1,) * 100) + b"x", "losses", {},
     "p.npy is not a readable .npy array: its shape is (" + "1, " * 45 + "1..."),
    (".npy", np.lib.format.magic(3, 0), "losses", {},
     "p.npy is not a readable .npy array: format version (3, 0), must be (1, 0) or (2, 0)"),
    (".npz", {"a": BYTES, "b": BYTES}, "losses", {},
     "p.npz must hold one array, or say p.npz:key; its keys: a, b"),
    (".npz", {"a": BYTES, "b": BYTES}, "losses", {"key": "c"},
     "p.npz:c: no array is called 'c'; its keys: a, b"),
    (".npz", zipped(b"", None), "losses", {},
     "p.npz must hold one array, or say p.npz:key; its keys: none"),
    *((suffix, np.zeros(shape), "losses", {},
       f"p{suffix} must be a matrix, queries x samples, got shape {shape}")
      for suffix in (".npy", ".npz") for shape in ((), (4,), (2, 2, 2))),
    *((suffix, np.zeros(shape), "losses", {"transpose": transpose},
       f"p{suffix} must not be empty, got shape {shape[::-1] if transpose else shape}")
      for suffix, shape in ((".npy", (0, 4)), (".npy", (4, 0)), (".npz", (4, 0)),
                            (".parquet", (0, 4))) for transpose in (False, True)),
    (".csv", "\n\n", "losses", {}, "p.csv must not be empty, got shape (0, 0)"),
    *((suffix, np.zeros((3, 3)), "losses", {"n_samples": 4},
       f"p{suffix} must have 4 samples to a query, got 3 queries of 3") for suffix in SUFFIXES),
    *((suffix, np.zeros((4, 3)), "losses", {"n_samples": 4 - turned, "transpose": turned},
       f"p{suffix} must have {4 - turned} samples to a query, got {4 - turned} queries of "
       f"{3 + turned}; transposed it would fit")
      for suffix in SUFFIXES for turned in (False, True)),
    *((suffix, np.array([[Bomb(), Bomb()]], object), opener, {},
       f"p{suffix} holds pickled Python objects, which are never loaded")
      for suffix in (".npy", ".npz") for opener in ("open", "labels")),
    *((suffix, np.zeros((2, 3), dtype), opener, {},
       f"p{suffix} must hold real numbers, bools or strings, got {np.dtype(dtype)}")
      for suffix in (".npy", ".npz") for opener in ("open", "labels")
      for dtype in ("complex128", "M8[s]", "m8[s]", "V4", [("a", "i4")])),
    # packed rows
    (".npy", BYTES, "losses", OCTETS | {"n_samples": 8},
     "p.npy must have packed rows of 1 byte for 8 samples, got 2"),
    (".npy", BYTES, "losses", OCTETS | {"n_samples": 17},
     "p.npy must have packed rows of 3 bytes for 17 samples, got 2"),
    (".npy", WORDS, "losses", {"packed": True, "n_samples": 64},
     "p.npy must have packed rows of 1 word for 64 samples, got 2"),
    (".npy", BYTES.view(np.int8), "losses", OCTETS,
     "p.npy must hold packed rows, uint64 or uint8, got int8"),
    (".npy", BYTES, "losses", {"packed": True},
     "p.npy: packed rows need n_samples, since bits do not tell it"),
    (".npy", BYTES, "losses", OCTETS | {"transpose": True},
     "p.npy: packed rows cannot be transposed: bits lie along the samples"),
    (".npy", BYTES, "losses", {"packed": True, "n_samples": 16},
     "p.npy holds bytes, which do not tell which bit is first: say how numpy.packbits made them "
     "(bitorder='big', its default, --packed big; or 'little', --packed little)"),
    (".npy", WORDS, "losses", OCTETS,
     "p.npy holds words, whose bits have one order: leave bitorder out"),
    # labels
    (".npy", np.zeros((4, 1)), "labels", {}, LABELS.format(".npy", "(4, 1)")),
    (".parquet", np.zeros((4, 2)), "labels", {}, LABELS.format(".parquet", "(4, 2)")),
    (".csv", "1,2\n" * 4, "labels", {},
     "p.csv must hold labels in one column or one line, got shape (4, 2); an index column? pandas "
     "leaves it out with index=False"),
    (".csv", "\n\n", "labels", {},
     "p.csv must hold labels in one column or one line, got shape (0, 0)"),
    (".npy", np.zeros(0), "labels", {}, "p.npy must not be empty, got no labels"),
    (".csv", "yes,no,", "labels", {}, "p.csv: label 3 must not be empty"),
    # two samples too few are no header that was taken for one
    (".csv", "0,1,0\n1,1,0\n", "losses", {"n_samples": 4, "transpose": True},
     "p.csv must have 4 samples to a query, got 3 queries of 2"),
    (".csv", "yes\n\nno\nno\n", "labels", {}, f"p.csv, line 2{ROWS}"),
    (".csv", "1\n\n0\n0\n", "labels", {}, f"p.csv, line 2{ROWS}"),
    # cells of .csv files
    (".csv", "\n0,1,0\n", "losses", {}, f"p.csv, line 1{ROWS}"),
    (".csv", "0,1,0\n\n0,1,0\n", "losses", {}, f"p.csv, line 2{ROWS}"),
    (".csv", "0,1,0\r\n\r\n\r\n0,1,0\n", "losses", {}, f"p.csv, line 2{ROWS}"),
    (".csv", "0,1,0\n0,1,0\n0,1\n", "open", {},
     "p.csv, line 3: must have 3 cells, as the first line, got 2"),
    (".csv", '"0",1,"0"\n0,1\n', "losses", {},
     "p.csv, line 2: must have 3 cells, as the first line, got 2"),
    (".csv", "0,1\n0,1,0\n", "losses", {},
     "p.csv, line 2: must have 2 cells, as the first line, got 3"),
    (".csv", "a,b,c\n0,1,0\n", "losses", {},
     f"p.csv must hold numbers, got 'a' in line 1, cell 1{HINT}"),
    (".csv", "0,1,0\n0,,0\n", "losses", {}, "p.csv must hold numbers, got '' in line 2, cell 2"),
    (".csv", "0;1;0\n1;1;1\n", "losses", {"transpose": False},
     f"p.csv must hold numbers, got '0;1;0' in line 1, cell 1{HINT}"),
    (".csv", "0,1,0\n0,0_1,1\n", "losses", {},
     "p.csv must hold numbers, got '0_1' in line 2, cell 2"),
    *((".csv", content, opener, {}, f"p.csv is not a readable .csv file: {message}")
      for opener in ("open", "labels") for content, message in (
          (b"\x93NUMPY\x01\x00", "'utf-8' codec can't decode byte 0x93 in position 0: invalid "
           "start byte"),
          (b"1,2\n" + b"1" * 200_000, "field larger than field limit (131072)"),
          (b"1,0\n0,\x001\n", "it has a NUL character"),
          (b'1,"0\n0,1\n', "unexpected end of data"),
          (b'1,"0"1\n', "',' expected after '\"'"))),
    # columns of tables
    *((".parquet", pa.table(columns), "losses", {"transpose": transpose}, message)
      for transpose in (False, True) for columns, message in (
          ({"a": [1, 2, 3], "b": [1, None, 0]}, "p.parquet, column 'b': it has 1 missing value"),
          ({"a": [1, 2, 3], "b": ["x", "y", "z"]},
           "p.parquet must hold strings in all columns or in none"),
          ({"a": [{"b": 1}] * 3}, "p.parquet, column 'a': must hold real numbers, bools or strings,"
           " got struct<b: int64>"),
          ({"a": pa.array([1, 2, 3], pa.timestamp("ms"))},
           "p.parquet, column 'a': must hold real numbers, bools or strings, got timestamp[ms]"))),
    (".parquet", pa.Table.from_arrays([pa.array([1, 0, 1])] * 2, names=["a", "a"]), "losses", {},
     "p.parquet must have columns of different names"),
    # which NumPy would drop at the end of a string
    (".parquet", pa.table({"a": ["x", "x\0", "y"]}), "losses", {},
     "p.parquet must hold text, got a NUL character"),
]  # fmt: skip


@pytest.mark.parametrize(("suffix", "content", "opener", "options", "message"), FAULTS)
def test_a_fault_is_told_in_one_line(tmp_path, suffix, content, opener, options, message):
    path = tmp_path / f"p{suffix}"
    if isinstance(content, str):
        content = content.encode()
    if isinstance(content, bytes):
        path.write_bytes(content)
    elif isinstance(content, dict):
        np.savez(path, **content)
    elif isinstance(content, pa.Table):
        pq.write_table(content, path)
    else:
        write_rows(path, content)
    key, options = options.get("key"), {n: o for n, o in options.items() if n != "key"}
    # "open": before the first query
    function = {"losses": read, "open": files.open_losses, "labels": files.open_labels}[opener]
    assert error_of(function, path if key is None else f"{path}:{key}", **options) == message


def test_blank_lines_may_stand_at_the_end(tmp_path):
    path = tmp_path / "p.csv"
    path.write_bytes(b"0,1,0\n0,1,0\r\n\r\n\n")
    assert read(path, transpose=False).shape == (2, 3)


@pytest.mark.parametrize("content", [b"", b"0,1\n1,0\n1,1\n", b"\x93NUMPY", b"PK\x03\x04", b"PAR1"])
@pytest.mark.parametrize("suffix", [".npy", ".npz", ".parquet"])
def test_a_file_that_is_not_what_it_claims_is_refused(tmp_path, suffix, content):
    path = tmp_path / f"p{suffix}"
    path.write_bytes(content)
    kind = ".npy array" if suffix == ".npy" else f"{suffix} file"
    for opener in (files.open_losses, labels_in):
        assert error_of(opener, path).startswith(f"p{suffix} is not a readable {kind}: ")


@pytest.mark.parametrize("name", ["p.txt", "p", "p.npy.gz", "p.npy:key"])
def test_an_unknown_suffix_is_refused_with_the_known_ones(tmp_path, name):
    for opener in (files.open_losses, labels_in):
        message = error_of(opener, tmp_path / name)
        assert message == f"{name} must end in {', '.join(SUFFIXES)} or .npz:key"


@pytest.mark.parametrize("suffix", [".npy", ".npz", ".parquet"])
def test_every_truncation_is_refused(tmp_path, suffix):
    path = write_rows(tmp_path / f"p{suffix}", predictions("int64"))
    content = path.read_bytes()
    for length in range(0, len(content), 1 if len(content) < 1000 else 7):
        path.write_bytes(content[:length])
        error_of(read, path)


def with_header(header, data=bytes(48), version=(1, 0)):
    size = len(header).to_bytes(2 if version == (1, 0) else 4, "little")
    return np.lib.format.magic(*version) + size + header.encode() + data


def header(descr="'<f8'", order="False", shape="(2, 3)"):
    return f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}\n"


NESTED = "[" * 4000 + "]" * 4000
DAMAGED = {
    "4,000 minus signs": "-" * 4000 + "1",
    "a sum": "1+" * 4000 + "1",
    "a sum in a shape": header(shape="(" + "1+" * 2000 + "1, 3)"),
    "minus signs in a shape": header(shape="(" + "-" * 4000 + "2, 3)"),
    "nested brackets": NESTED,
    "nested parentheses in a shape": header(shape="(" * 4000 + ")" * 4000),
    "a nested descr": header(descr=NESTED),
    "more digits than Python reads": header(shape=f"({'9' * 5000}, 3)"),
    "a huge shape": header(shape=f"({2**62}, {2**62})"),
    "a shape past int64": header(shape=f"({2**63}, 0)"),
    "a hundred dimensions": header(shape=f"({'1, ' * 100})"),
    "huge strings": header(descr="'<U999999999'"),
    "an operator": header(shape="(2*1, 3)"),
    "a call": header(shape="__import__('os').getcwd()"),
    "another key": header().replace("}", "'more': (2, 3), }"),
    "a key too few": header().replace("'fortran_order': False, ", ""),
    "keys of another kind": header(descr="True", order="'<f8'"),
    "more after it": header() + "2",
    "no braces": "2, 3",
    "nothing": "",
    "an L alone": header(shape="(L, 3)"),
}


@pytest.mark.parametrize("damage", DAMAGED)
@pytest.mark.parametrize("version", [(1, 0), (2, 0)])
@pytest.mark.parametrize("suffix", [".npy", ".npz"])
def test_a_damaged_header_is_refused_in_one_line(tmp_path, suffix, version, damage):
    path, content = tmp_path / f"p{suffix}", with_header(DAMAGED[damage], version=version)
    path.write_bytes(content)
    if suffix == ".npz":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("p.npy", content)
    for opener in (files.open_losses, labels_in):
        error_of(opener, path)


@pytest.mark.thorough
@pytest.mark.parametrize("claimed", [10_001, 2**31, 2**32 - 1])
def test_a_header_that_claims_to_be_long_is_not_read(tmp_path, claimed):
    path = tmp_path / "p.npy"
    with open(path, "wb") as file:
        file.write(np.lib.format.magic(2, 0) + claimed.to_bytes(4, "little"))
        file.truncate(2**33)  # of which the disk holds the first page
    assert f"Header info length ({claimed}) is large" in error_of(files.open_losses, path)


@pytest.mark.parametrize(
    "text",
    [
        header(),
        "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3)}",
        '{"shape":(2,3),"fortran_order":False,"descr":"<f8"}   \n',
        "{ 'descr' : 'd' , 'fortran_order' : False , 'shape' : ( 2 , 3 , ) }",
    ],
)
def test_headers_of_other_writers_are_read(tmp_path, text):
    path = tmp_path / "p.npy"
    path.write_bytes(with_header(text, np.arange(6.0).tobytes()))
    assert read(path).tolist() == [[0, 1, 2], [3, 4, 5]]


def test_odd_archives_are_refused_in_one_line(tmp_path):
    path, sound = tmp_path / "p.npz", with_header(header())
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a\nb.npy", sound)
        for i in range(1000):
            archive.writestr(f"array-{i}.npy", sound)
    message = error_of(files.open_losses, path)
    assert "its keys: a b, array-0, " in message and message.endswith("...")
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("p.npy", sound)
    content = bytearray(path.read_bytes())
    for flags in (content.index(b"PK\x03\x04") + 6, content.index(b"PK\x01\x02") + 8):
        content[flags] |= 1  # encrypted
    path.write_bytes(content)
    assert "is not a readable .npz file: " in error_of(files.open_losses, path)


def test_a_pipe_is_no_file_to_read_twice(tmp_path):
    if not hasattr(os, "mkfifo"):
        pytest.skip("there are no named pipes here")
    for suffix in SUFFIXES:
        os.mkfifo(tmp_path / f"p{suffix}")
        expected = f"p{suffix} must be a regular file, since it is read twice"
        assert error_of(files.open_losses, tmp_path / f"p{suffix}") == expected


def test_a_path_may_be_bytes(tmp_path, suffix):
    losses = np.array([[0, 1, 1], [1, 0, 1]])
    path = os.fsencode(write_rows(tmp_path / f"\xe9{suffix}", losses))
    np.testing.assert_array_equal(read(path), losses)
    labels = os.fsencode(write_rows(tmp_path / "y.npy", losses[0]))
    found, rows = files.open_predictions(labels, path)
    assert found.tolist() == [0, 1, 1] and rows.shape == (2, 3)
    with pytest.raises(FileNotFoundError) as caught:
        files.open_losses(os.fsencode(tmp_path / f"missing{suffix}"))
    assert os.fsdecode(caught.value.filename).endswith(f"missing{suffix}")


# ---- columns of different dtypes --------------------------------------------------------------

BIG = 2**53
MIXED = {
    "float64": np.array([BIG, BIG, 1.5]),
    "int64": np.array([BIG + 1, BIG, -BIG - 1]),
    "uint64": np.array([2**64 - 1, BIG, BIG + 1], np.uint64),
    "int8": np.array([1, 0, -1], np.int8),
    "bool": np.array([True, False, True]),
    "float32": np.array([0.1, 1, 2], np.float32),
}


@pytest.mark.parametrize("transpose", [False, True])
@pytest.mark.parametrize("names", [["int64", "float64"], ["int64", "uint64"], list(MIXED)])
def test_a_column_of_parquet_does_not_depend_on_its_neighbours(tmp_path, names, transpose):
    path = tmp_path / "p.parquet"
    columns = {name: MIXED[name] for name in names}
    pq.write_table(pa.table(columns), path)
    exact = [column.tolist() for column in columns.values()]
    rows = read(path, transpose=transpose).tolist()
    assert rows == (exact if transpose else [list(row) for row in zip(*exact, strict=True)])


def test_what_one_dtype_holds_exactly_stays_an_array_of_it(tmp_path):
    path = tmp_path / "p.parquet"
    pq.write_table(pa.table({"a": np.array([BIG, -BIG, 0, 1]), "b": np.full(4, 0.5)}), path)
    assert read(path).dtype == np.float64


def test_categories_and_an_index_of_pandas_are_understood(tmp_path):
    pd = pytest.importorskip("pandas")
    path = tmp_path / "p.parquet"
    frame = pd.DataFrame({"a": ["x", "y", "x"], "b": ["y", "y", "x"]}, index=["i", "j", "k"])
    frame.astype("category").to_parquet(path)
    assert read(path, transpose=True).tolist() == [["x", "y", "x"], ["y", "y", "x"]]


def test_strings_of_every_width_and_categories_stand_side_by_side(tmp_path):
    path = tmp_path / "p.parquet"
    words = pa.array(["x", "yy", "x"])
    columns = [words, words.cast(pa.large_string()), words.dictionary_encode()]
    pq.write_table(pa.Table.from_arrays(columns, names=list("abc")), path)
    assert read(path, transpose=True).tolist() == [["x", "yy", "x"]] * 3
    assert read(path, transpose=False).tolist() == [["x"] * 3, ["yy"] * 3, ["x"] * 3]


@pytest.mark.parametrize("group", [1, 3, 50])
def test_row_groups_and_blocks_of_any_size_give_every_row_once(tmp_path, monkeypatch, group):
    rows = np.random.default_rng(0).integers(0, 100, (50, 4))
    path = tmp_path / "p.parquet"
    pq.write_table(pa.table(dict(zip("abcd", rows.T, strict=True))), path, row_group_size=group)
    for n_bytes in (1, 7 * rows[0].nbytes, 1 << 20):
        monkeypatch.setattr(files, "BLOCK_BYTES", n_bytes)
        np.testing.assert_array_equal(read(path), rows)
        np.testing.assert_array_equal(read(path, transpose=True), rows.T)


def test_without_pyarrow_the_error_names_the_extra(tmp_path, monkeypatch):
    path = write_rows(tmp_path / "p.parquet", np.zeros((2, 3)))
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.delitem(sys.modules, "radabound_fast.files.tables")
    with pytest.raises(ImportError, match=r'pyarrow is not installed.*pip install "\.\[files\]"'):
        files.open_losses(path)


@pytest.mark.parametrize("folder", ["", "d/", "of.npz:/", "a.npz:b/"])
@pytest.mark.parametrize(("file", "key"), [("p.npz", "a"), ("p.npz", "k"), ("p.NPZ", "k.npy")])
def test_the_key_is_what_follows_the_last_file_of_a_path(folder, file, key):
    assert split_key(f"{folder}{file}:{key}") == (f"{folder}{file}", key)


@pytest.mark.parametrize(
    ("name", "stem"),
    [("a/tree 1.NPY", "tree 1"), ("b.csv.gz", "b"), ("d/c.zarr/", "c"), ("c.zarr/key", "key"),
     ("of.npz:k", "of")],
)  # fmt: skip
def test_a_model_is_called_by_its_file_or_its_array(name, stem):
    assert stem_of(name) == stem
