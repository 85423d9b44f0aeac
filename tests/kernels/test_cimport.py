"""A stranger's Cython module can cimport the kernel: compiled against the package, and run."""

import importlib.util
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import radabound_fast
from radabound_fast import SignMatrix, pack_losses
from radabound_fast.rows import reference

pytestmark = pytest.mark.thorough

STRANGER = """
# cython: language_level=3
from libc.stdint cimport int64_t, uint64_t
from radabound_fast._kernels cimport SignStore

def signed_sums(SignStore signs, const uint64_t[::1] words, int64_t[::1] counts):
    cdef int64_t total
    assert counts.shape[0] == signs.n_lanes()
    with nogil:
        total = signs.count(&words[0], &counts[0])
    return total
"""

SETUP = """
from setuptools import Extension, setup
setup(name="stranger", ext_modules=[Extension("stranger", ["stranger.pyx"])],
      script_args=["-q", "build_ext", "--inplace"])
"""


@pytest.fixture(scope="module")
def stranger(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stranger")
    (folder / "stranger.pyx").write_text(textwrap.dedent(STRANGER))
    (folder / "setup.py").write_text(SETUP)
    # Cython looks for .pxd files on sys.path, where an editable install is not
    environment = os.environ | {"PYTHONPATH": str(Path(radabound_fast.__file__).parents[1])}
    subprocess.run(
        [sys.executable, "setup.py"], cwd=folder, env=environment, check=True, capture_output=True
    )
    (path,) = folder.glob("stranger.*.so")
    spec = importlib.util.spec_from_file_location("stranger", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("n_samples", [1, 64, 1000, 5000])
def test_a_stranger_gets_the_same_sums(stranger, n_samples):
    losses = np.random.default_rng(0).integers(0, 2, size=n_samples, dtype=np.uint8)
    counts = np.empty(16, np.int64)
    total = stranger.signed_sums(
        SignMatrix(n_samples, 9, seed=3).store, pack_losses(losses).words, counts
    )
    assert total == losses.sum()
    expected = reference.signed_sums(reference.signs(3, 9, n_samples), losses[np.newaxis])[0]
    assert_array_equal(2 * counts[:9] - total, expected)


def test_a_bit_past_the_end_is_reported(stranger):
    words = np.array([1 << 63], np.uint64)
    assert stranger.signed_sums(SignMatrix(10, 1, seed=0).store, words, np.empty(8, np.int64)) == -1
