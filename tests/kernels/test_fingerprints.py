"""Which row it is: keyed hashes of rows, and with them the sums of bits."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from radabound_fast._kernels.rows import fingerprints, fingerprints_and_sums

# of SipHash-1-3 with the key 00 01 .. 0f, of the bytes 00 01 .. n-1, from a plain one in Python
# that gives the vectors of SipHash-2-4 in its paper, and with key 0 the ``hash`` of CPython
VECTORS = {0: "dcc40f055801acab", 1: "93ca577df39bf4c9", 15: "5699512a6dd820d3"}

KEY = b"0123456789abcdef"


def plain_sip_hash(row: bytes, key: bytes) -> int:
    """SipHash-1-3 as its paper has it (Aumasson and Bernstein, 2012)."""
    mask = 2**64 - 1
    first, second = int.from_bytes(key[:8], "little"), int.from_bytes(key[8:], "little")
    v = [
        first ^ 0x736F6D6570736575,
        second ^ 0x646F72616E646F6D,
        first ^ 0x6C7967656E657261,
        second ^ 0x7465646279746573,
    ]

    def rotated(x, bits):
        return (x << bits | x >> (64 - bits)) & mask

    def sip_round():
        for a, b, c, d, first_bits, second_bits in ((0, 1, 2, 3, 13, 16), (2, 1, 0, 3, 17, 21)):
            v[a] = (v[a] + v[b]) & mask
            v[c] = (v[c] + v[d]) & mask
            v[b] = rotated(v[b], first_bits) ^ v[a]
            v[d] = rotated(v[d], second_bits) ^ v[c]
            v[a] = rotated(v[a], 32)

    padded = row + bytes(7 - len(row) % 8) + bytes([len(row) % 256])
    for start in range(0, len(padded), 8):
        word = int.from_bytes(padded[start : start + 8], "little")
        v[3] ^= word
        sip_round()
        v[0] ^= word
    v[2] ^= 0xFF
    for _ in range(3):
        sip_round()
    return v[0] ^ v[1] ^ v[2] ^ v[3]


@pytest.mark.parametrize("n_bytes", VECTORS)
def test_fingerprints_are_sip_hashes(n_bytes):
    rows = np.arange(64, dtype=np.uint8)[np.newaxis]
    hashes = fingerprints(rows, n_bytes, bytes(range(16)))
    assert hashes.astype("<u8").tobytes().hex() == VECTORS[n_bytes]
    assert plain_sip_hash(bytes(range(n_bytes)), bytes(range(16))) == hashes[0]


# a word, a block of AVX2 and one of AVX-512, one under, at and over each; a length past 255
@pytest.mark.parametrize("n_bytes", [0, 1, 7, 8, 9, 31, 32, 33, 63, 64, 65, 127, 129, 257, 500])
def test_every_kernel_hashes_each_row_by_itself(kernel, n_bytes):
    rng = np.random.default_rng(n_bytes)
    # rows side by side are 2, 8 or 16; one under, at and over each, and twice as many
    for n_rows in (0, 1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 33):
        rows = rng.integers(0, 256, (2 * n_rows, n_bytes + 3), dtype=np.uint8)[::2]
        hashes = fingerprints(rows, n_bytes, KEY)
        wanted = [plain_sip_hash(row[:n_bytes].tobytes(), KEY) for row in rows]
        assert hashes.tolist() == wanted


def test_another_key_is_another_fingerprint(kernel):
    rows = np.random.default_rng(0).integers(0, 256, (20, 100), dtype=np.uint8)
    hashes = [fingerprints(rows, 81, key).tolist() for key in (KEY, KEY[::-1])]
    assert len({*hashes[0], *hashes[1]}) == 40


@pytest.mark.parametrize("wrong", ["key", "bytes", "strides", "shape", "number"])
def test_fingerprints_check_what_they_read(wrong):
    rows = np.zeros((2, 10), np.uint8)
    arguments = {
        "key": (rows, 10, b"short"),
        "bytes": (rows, 11, b"k" * 16),
        "strides": (rows[:, ::2], 5, b"k" * 16),
        "shape": (rows[0], 10, b"k" * 16),
        "number": (np.array(1), 1, b"k" * 16),
    }
    with pytest.raises(ValueError, match="rows must be contiguous"):
        fingerprints(*arguments[wrong])
    with pytest.raises(TypeError, match="got NoneType"):
        fingerprints(None, 1, KEY)
    with pytest.raises(TypeError, match="got NoneType"):
        fingerprints_and_sums(None, 1, KEY)


def test_rows_of_one_item_are_contiguous_however_they_lie(kernel):
    words = np.random.default_rng(0).integers(0, 2**64, (20, 1), np.uint64)
    hashes, sums = fingerprints_and_sums(words, 64, KEY)
    for column in (words.copy(order="F"), np.repeat(words, 3, axis=1)[:, 1:2], words[::-1][::-1]):
        again = fingerprints_and_sums(column, 64, KEY)
        assert_array_equal(again, (hashes, sums))
        assert_array_equal(fingerprints(column, 8, KEY), hashes)


# whole words and not, of whole bytes and not; 515 rows are more than are hashed between two looks
# at Ctrl-C
@pytest.mark.parametrize("n_samples", [1, 8, 63, 64, 65, 130, 256, 511, 513, 4000])
def test_sums_come_with_the_fingerprints(kernel, n_samples):
    rng = np.random.default_rng(n_samples)
    for n_rows in (0, 1, 8, 16, 17, 515):
        losses = rng.random((n_rows, n_samples)) < rng.random((n_rows, 1))
        words = np.zeros((n_rows, -(-n_samples // 64) * 64), np.bool_)
        words[:, :n_samples] = losses
        words = np.packbits(words, axis=1, bitorder="little").view("<u8")
        hashes, sums = fingerprints_and_sums(words, n_samples, KEY)
        assert_array_equal(sums, losses.sum(axis=1))
        assert_array_equal(hashes, fingerprints(words, -(-n_samples // 8), KEY))


@pytest.mark.parametrize("row", [0, 7, 16, 514])
def test_a_bit_past_the_end_is_found_in_any_row(kernel, row):
    for n_samples, bit in ((500, 500), (500, 511), (449, 449), (449, 470)):
        words = np.zeros((515, 8), np.uint64)
        words[row, bit // 64] = np.uint64(1) << np.uint64(bit % 64)
        message = f"words must have no bit set past n_samples = {n_samples}, got one in row {row}"
        with pytest.raises(ValueError, match=message):
            fingerprints_and_sums(words, n_samples, KEY)


@pytest.mark.parametrize(
    ("words", "n_samples"),
    [
        (np.zeros((2, 3), np.uint64), 128),
        (np.zeros((2, 3), np.uint64), 193),
        (np.zeros(3, np.uint64), 192),
        (np.zeros((2, 3), np.uint32), 192),
    ],
)
def test_words_of_another_shape_have_no_sums(words, n_samples):
    with pytest.raises(ValueError, match="words must be rows of n_samples bits"):
        fingerprints_and_sums(words, n_samples, KEY)
