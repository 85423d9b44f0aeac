"""Target: what the command line reads, `open_losses` and `open_predictions`, on damaged files.

A fault of the file is a ValueError of one line that begins with the file's name; what is read
equals what NumPy, the csv module or pyarrow makes of it.
"""

import atexit
import csv
import functools
import io
import os
import tempfile
import warnings
import zipfile

import numpy as np
from damage import damaged
from draw import Draw, optional

from radabound_fast.files.reading import open_losses, open_predictions

FOLDER = tempfile.TemporaryDirectory()
atexit.register(FOLDER.cleanup)
SUFFIXES = (".npy", ".npz", ".csv", ".parquet")


@functools.cache
def good_files(suffix):
    """Some of each format."""
    bits = np.random.default_rng(0).random((4, 9)) < 0.5
    arrays = [
        bits,
        bits.astype(np.uint8),
        bits.astype(">i4"),
        np.asfortranarray(bits * 0.5),
        bits.astype("U2"),
        bits[0].astype(np.int64),
        bits[:0],
    ]
    files = []
    for array in arrays:
        file = io.BytesIO()
        if suffix == ".npy":
            np.save(file, array)
        elif suffix == ".npz":
            np.savez_compressed(file, losses=array, **({"b": bits} if array.ndim == 1 else {}))
        elif suffix == ".csv":
            np.savetxt(file, np.atleast_2d(array), delimiter=",", fmt="%s")
        elif optional("pyarrow") is not None:
            columns = {str(j): column for j, column in enumerate(np.atleast_2d(array).T)}
            table = optional("pyarrow").table(
                {
                    name: column.astype(column.dtype.newbyteorder("="))
                    for name, column in columns.items()
                }
            )
            optional("pyarrow.parquet").write_table(table, file)
        files.append(file.getvalue())
    return files


def plain_matrix(path, suffix, text, header):
    """What NumPy, the csv module or pyarrow reads; None: none of them has a say."""
    if suffix == ".npy":
        return np.load(path)
    if suffix == ".npz" and zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive, archive.open(archive.namelist()[0]) as file:
            return np.lib.format.read_array(file)
    if suffix == ".csv":
        with open(path, encoding="utf-8-sig", newline="") as file:
            rows = [row for row in csv.reader(file) if row]
        if header is not False and rows and rows[0][0] == "":
            return None  # maybe an index
        rows = rows[bool(header) :]
        return np.array(rows) if text else np.array([[float(cell) for cell in row] for row in rows])
    if suffix == ".parquet":
        with optional("pyarrow.parquet").ParquetFile(path) as file:
            return np.array([column.to_pylist() for column in file.read().columns]).T
    return None


def same(a, b):
    return a.shape == b.shape and all(
        x == y or x != x and y != y
        for x, y in zip(a.ravel().tolist(), b.ravel().tolist(), strict=True)
    )


def beside(array):
    """A sound file, for what is opened together with another."""
    path = os.path.join(FOLDER.name, "sound.npy")
    np.save(path, array)
    return path


def read(path, suffix, draw):
    """Reads it in one of the ways there are, and compares."""
    header = draw.choice([None, None, False, True])
    if draw.one_in(4):
        kind = draw.choice([np.uint8, "U1", np.float64])
        open_predictions(path, beside(np.ones((2, 9), kind)), labels_header=header)
        return
    transpose = draw.choice([None, False, True])
    packed = draw.choice([True, "little", "big"]) if draw.one_in(6) else None
    how = {"transpose": transpose, "packed": packed, "header": header}
    if draw.one_in(2):
        rows = open_losses(path, n_samples=draw.choice([None, 9, 4, 72]), **how)
    else:
        m, kind = draw.choice([9, 4, 72]), draw.choice([np.uint8, "U1", np.float64])
        labels = (np.arange(m) % 2).astype(kind)
        rows = open_predictions(beside(labels), path, **how)[1]
    blocks = list(rows)
    assert sum(map(len, blocks)) == rows.shape[0]
    if packed:
        return
    assert all(block.shape[1] == rows.shape[1] for block in blocks)
    wanted = plain_matrix(path, suffix, rows.dtype.kind == "U", header)
    if wanted is not None:
        assert same(np.concatenate(blocks), wanted.T if transpose else wanted)


def fuzz_one(data):
    draw = Draw(data)
    suffix = draw.choice(SUFFIXES)
    files = good_files(suffix)
    if draw.one_in(8):
        content = draw.bytes(draw.integer(0, 200))
    else:
        content = damaged(draw, draw.choice(files), files)
    path = os.path.join(FOLDER.name, "file" + suffix)
    with open(path, "wb") as file:
        file.write(content)
    try:
        with warnings.catch_warnings():  # NumPy's on headers that Python 2 wrote
            warnings.simplefilter("ignore", UserWarning)
            read(path, suffix, draw)
    except ValueError as error:
        message = str(error)
        assert "\n" not in message
        assert FOLDER.name in message, message
    with open(path, "rb") as file:
        assert file.read() == content
