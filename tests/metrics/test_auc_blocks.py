"""AUC by betting on blocks: which rows a block has, what is bet on, and coverage."""

import math

import numpy as np
import pytest
from scipy.special import ndtr
from support import most_failures, search_of

from radabound_fast import bounds
from radabound_fast.metrics._labels import Blocks

SIZES = ((400, 3600), (3600, 400), (1, 2), (30, 95), (1000, 1000), (1700, 1600), (757, 757))


@pytest.mark.parametrize(
    ("sizes", "n_rows"),
    [((3900, 100), 1), ((3600, 400), 2), ((500, 1000), 2), ((755, 755), 0), ((757, 757), 3),
     ((1, 1), 0), ((1, 2), 1), ((10**6, 10**6), 91)],
)  # fmt: skip
def test_numbers_of_labels_alone_say_how_many_rows_make_a_block(sizes, n_rows):
    assert bounds.auc_blocks(*sizes) == bounds.auc_blocks(*sizes[::-1]) == n_rows


@pytest.mark.parametrize(("n_negative", "n_positive"), SIZES)
def test_no_row_is_in_two_blocks_and_each_is_of_its_class(n_negative, n_positive):
    is_positive = np.random.default_rng(3).permutation(
        np.arange(n_negative + n_positive) < n_positive
    )
    blocks = Blocks.of(is_positive)
    assert is_positive[blocks.positive].all() and not is_positive[blocks.negative].any()
    used = np.concatenate([blocks.positive.ravel(), blocks.negative.ravel()])
    assert len(np.unique(used)) == len(used)
    rarer, other = sorted((n_negative, n_positive))
    size = bounds.auc_blocks(n_negative, n_positive)
    shapes = sorted([blocks.positive.shape, blocks.negative.shape])
    assert shapes == [(rarer // size, size), (rarer // size, size * (other // rarer))]
    # the other way round the rows are the same
    mirrored = Blocks.of(~is_positive)
    scores = np.random.default_rng(4).integers(0, 9, len(is_positive)).astype(float)
    np.testing.assert_array_equal(mirrored.areas(-scores), blocks.areas(scores))


def test_the_permutation_is_that_of_a_stream_that_stays():
    # as NumPy has made its numbers since 1.17
    order = np.argsort(np.random.PCG64(5904711382201936).random_raw(9)).tolist()
    blocks = Blocks.of(np.arange(9) < 3)
    assert blocks.positive.ravel().tolist() == [row for row in order if row < 3]
    assert blocks.negative.ravel().tolist() == [row for row in order if row >= 3]
    assert order == [8, 0, 1, 5, 3, 6, 4, 2, 7]


def test_areas_are_the_shares_of_pairs_with_ties_one_half():
    sklearn = pytest.importorskip("sklearn.metrics")
    is_positive = np.arange(5000) % 10 < 2
    scores = np.random.default_rng(5).integers(0, 5, 5000) + 1.0 * is_positive
    blocks = Blocks.of(is_positive)
    areas = blocks.areas(scores)
    for block in (0, 17, len(areas) - 1):
        rows = np.concatenate([blocks.positive[block], blocks.negative[block]])
        expected = sklearn.roc_auc_score(is_positive[rows], scores[rows])
        assert areas[block] == pytest.approx(expected, abs=1e-15)


@pytest.mark.parametrize("m", [40, 4000])
@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_an_answer_is_by_blocks_or_by_pairs_as_the_labels_say(m, share):
    rng = np.random.default_rng(6)
    y_true = (np.arange(m) < share * m).astype(int)
    scores = rng.normal(size=m) + 1.8 * y_true
    answer = search_of(y_true, 1000, metric="roc_auc").query(scores, key=1)
    nats = math.log(2e4)
    blocks = Blocks.of(y_true == 1)
    if blocks is None:
        low, high = bounds.auc_interval(answer.value, m // 2, m // 2, nats)
    else:
        low, high = bounds.betting_interval(blocks.areas(scores), nats)
        low, high = min(low, answer.value), max(high, answer.value)
    assert (answer.low, answer.high) == pytest.approx((low, high), abs=1e-12)
    assert (blocks is None) == (m == 40 and share == 0.5)


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize(
    ("sizes", "shift"),
    [((45, 5), 0.0), ((180, 20), 1.0), ((180, 20), 3.0)]
    + [
        pytest.param(sizes, 1.0, marks=pytest.mark.thorough)
        for sizes in ((1800, 200), (300, 900), (1500, 1500))
    ],
)
def test_an_interval_of_the_area_under_one_curve_holds_it(sizes, shift, ties):
    """400 runs, seed 33, delta .2; a file that is sorted by its labels; scores may have ties."""
    rng, missed = np.random.default_rng(33), 0
    y_true, truth = np.repeat([0, 1], sizes), float(ndtr(shift / math.sqrt(2)))
    if ties:
        of = [np.diff(ndtr(np.arange(-12.5, 16) - mean)) for mean in (0.0, shift)]
        truth = float(of[1] @ (np.cumsum(of[0]) - of[0] / 2))
    for _ in range(400):
        scores = rng.normal(size=len(y_true)) + shift * y_true
        search = search_of(y_true, 1, metric="roc_auc", delta=0.2)
        answer = search.query(np.rint(scores) if ties else scores, key=0)
        missed += not answer.low <= truth <= answer.high
    assert missed <= most_failures(400, 0.2)
