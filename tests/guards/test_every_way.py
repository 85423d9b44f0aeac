"""One law: every way of feeding rows to a guard gives what the definition gives row by row.

A stream is a guard and rows for it; a way hands the rows over.  Guards that count signed sums are
compared with rows/reference.py, whose rule is the bound's own predicate in floats; the others with
their own `query`, row by row, whose definitions have tests of their own.
"""

import functools
import itertools
import math
import pickle
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from support import coins, falling_losses, one_by_one, query_many, state_of

from radabound_fast import (
    DeclaredSearch,
    FixedSequence,
    GuessAndCheck,
    Holdout,
    Ladder,
    Losses,
    PackedLosses,
    RadaBound,
    pack_losses,
)
from radabound_fast.experiments.thresholdout import Thresholdout
from radabound_fast.rows import reference

SEED = 8


class Stream(NamedTuple):
    kind: Any
    parameters: dict[str, Any]
    rows: Any  # losses, bool or float, shape (k, m)
    brought: Any = None  # a guess or a key a row
    about: Any = None  # weights and groups

    @property
    def m(self):
        return self.rows.shape[1]

    @property
    def signed(self):
        """Whether the guard counts signed sums."""
        return "seed" in self.parameters and self.kind is not Thresholdout

    @property
    def defined(self):
        """Whether reference.py has it: weighted rows that are real are rounded once more."""
        return self.signed and (self.about is None or self.rows.dtype == bool)

    def judged(self, labels=None):
        about = self.about or {}
        if labels is not None:
            return Holdout(labels, classes=[0, 1], **about)
        return Losses(self.m, **about)

    def make(self, labels=None):
        return self.kind(self.judged(labels), **self.parameters)

    def brought_by(self, part):
        return None if self.brought is None else self.brought[part]


# ---- streams -------------------------------------------------------------------------------------


def rising(seed, k, m, top=0.4):
    """Each row errs where the one before it does, and at a few samples more."""
    return coins(seed, 1, m, 1.0) & (
        np.random.default_rng(seed).random(m) < np.linspace(0.01, top, k)[:, np.newaxis]
    )


def still(seed, k, m, movers=()):
    """Thirty rows over and over, so that no extreme moves, but for a few rows of their own."""
    rows = coins(seed, 30, m)[np.arange(k) % 30]
    for number, row in enumerate(movers):
        rows[row] = np.random.default_rng([seed, row]).random(m) < 0.4 + 0.1 * number
    return rows


def halted(row, m=2000):
    """Still rows, and one that errs where most signs are +1."""
    rows = still(6, 700, m)
    rows[row] = reference.signs(SEED, 32, m).sum(axis=0) > 0
    return rows


def real(seed, k, m):
    return np.random.default_rng(seed).random((k, m)) * coins(seed, k, m, 0.5)


def late(seed, k, m):
    """Floats of 0 and 1, until one comes that is neither."""
    rows = coins(seed, k, m).astype(np.float64)
    rows[2 * k // 3 :, -1] = 0.3
    return rows


def paper(rows, epsilon, bound="mclt", **parameters):
    given = {"epsilon": epsilon, "delta": 0.1, "bound": bound, "seed": SEED}
    return Stream(RadaBound, given | parameters, rows)


def sequence(rows, epsilon, *, about=None, **parameters):
    given = {"epsilon": epsilon, "delta": 0.1, "seed": SEED}
    return Stream(FixedSequence, given | parameters, rows, about=about)


def union(rows, epsilon, **parameters):
    given = {"epsilon": epsilon, "delta": 0.1, "n_vectors": 0}
    return Stream(FixedSequence, given | parameters, rows)


def search(rows, **parameters):
    return Stream(
        DeclaredSearch, {"space": 1000, "delta": 0.1} | parameters, rows, range(len(rows))
    )


def guessed(kind, m, n_rows=40, **parameters):
    rows, guesses = falling_losses(m, m, n_rows)
    return Stream(kind, parameters, rows, guesses if kind.needs else None)


def weights(m):
    rng = np.random.default_rng(71)
    return {"sample_weight": rng.integers(1, 8, m), "groups": rng.integers(0, max(1, m // 3), m)}


def in_groups(m):
    return {"groups": weights(m)["groups"]}


# Sizes: one sample; one under a word, a word and one over it; past a tile of the scanner.  Rows:
# past its chunks and blocks of up to 512, with a halt before, at and after their ends; and, where
# a whole guard is slow, a few.
STREAMS = {
    **{f"{b}, {e}": paper(coins(3, 150, 500), 0.12, b, estimator=e)
       for b in ("bernstein", "bernstein-split", "mclt") for e in ("plain", "half-range")},
    **{f"mclt, m {m}": paper(coins(m, 700, m), 0.9, n_vectors=17) for m in (1, 63, 64, 65, 4097)},
    "mclt halts at once": paper(coins(4, 9, 100, 0.5), 0.05),
    **{f"mclt halts at {row}": paper(halted(row), 0.12) for row in (0, 255, 256, 511, 512, 513)},
    "mclt, still rows": paper(still(6, 1300, 900, [60, 300, 301, 511, 512, 640, 1100]), 0.9),
    "mclt, generated signs": paper(coins(7, 300, 5000), 0.05, signs="generated"),
    "mclt, real": paper(real(8, 200, 333), 0.2),
    "mclt, real late": paper(late(9, 200, 65), 0.5),
    "bernstein, many vectors": paper(coins(10, 300, 130), 0.3, "bernstein", n_vectors=70),
    "sequence by its union part": sequence(coins(11, 200, 500, 0.5), 0.083, n_vectors=256),
    "sequence by its signs": sequence(still(12, 400, 500, range(0, 400, 17)), 0.09,
                                      max_queries=10**9),
    "sequence, rising means": sequence(rising(13, 300, 500), 0.075, n_vectors=256),
    "sequence, shared": sequence(coins(14, 200, 500, 0.01), 0.035, max_queries=120),
    "sequence, real": sequence(0.3 * real(15, 300, 500), 0.075, max_queries=250),
    "sequence, real late": sequence(late(16, 120, 385), 0.12),
    "sequence, nothing": sequence(coins(17, 9, 500), 0.02),
    **{f"sequence, weights, m {m}": sequence(coins(m, 30, m), 0.9, about=weights(m), n_vectors=9)
       for m in (63, 64, 65, 331)},
    **{f"sequence, {name} alone": sequence(coins(18, 30, 65), 0.9, about={name: own}, n_vectors=9)
       for name, own in weights(65).items()},
    "sequence, weights, a halt": sequence(coins(18, 200, 300), 0.25, about=weights(300),
                                          n_vectors=9),
    "sequence, groups, real": sequence(real(19, 40, 200), 0.5, about=in_groups(200)),
    **{f"union, m {m}": union(coins(m, 40, m), 0.17) for m in (1, 63, 64, 200)},
    "union, real": union(real(20, 40, 4000), 0.05),
    **{f"search, m {m}": search(coins(m, 9, m)) for m in (1, 7, 8, 9, 63, 64, 65, 4001)},
    "search, real": search(real(21, 9, 333)),
    "search, one side": search(coins(22, 60, 1000), two_sided=False, allow_reruns=True),
    **{f"guesses, m {m}": guessed(GuessAndCheck, m, epsilon=0.2, delta=0.1)
       for m in (1, 63, 64, 200, 4000)},
    "guesses, Hoeffding": guessed(GuessAndCheck, 200, epsilon=0.2, delta=0.1, low_error=False),
    **{f"ladder, m {m}": guessed(Ladder, m, step=0.01, delta=0.1) for m in (1, 63, 64, 200)},
    "ladder of 15": guessed(Ladder, 200, step=0.01, delta=0.1, max_queries=15),
    **{f"thresholdout, m {m}": guessed(Thresholdout, m, threshold=0.1, noise=0.02, budget=5, seed=3)
       for m in (63, 200)},
}  # fmt: skip


# ---- what is expected ----------------------------------------------------------------------------


def rule_of(guard, stream):
    """The rule of the guard's bound, asked once a row: no integers, nothing incremental."""
    rows = np.rint(stream.rows * 2.0**24).astype(np.int64)
    w = (stream.about or {}).get("sample_weight", np.ones(stream.m, np.int64))
    means = (rows * w).sum(axis=1) / (w.sum() * 2**24)
    row, given = guard.rule.bound, {"two_sided": guard.two_sided}
    shared = (guard.n_groups, guard.n_vectors, guard.epsilon, guard.delta)
    seen = itertools.count()

    def admits(complexity):
        number = next(seen)
        if row.log_tail is not None:
            sides = math.log(2) if guard.two_sided else 0.0
            tail = row.log_tail(guard.epsilon - 2 * complexity, *shared[:2])
            return tail + sides <= math.log(guard.threshold)
        by_union = guard.rule.free.stage(number)
        declared = stream.rows.dtype == bool and stream.about is None
        if declared:
            count = round(means[number] * stream.m)
            passes = min(count, stream.m - count) <= by_union.low_count
        else:
            passes = min(means[number], 1 - means[number]) <= by_union.low_mean
        largest = means[: number + 1].max()
        return passes or row.admits(complexity, *shared, largest_mean=largest, **given)

    return admits


@functools.cache
def expected(name):
    """Values, and complexities with that of a withheld row; else the answers of `query`."""
    stream = STREAMS[name]
    guard = stream.make()
    if not stream.defined:
        found = one_by_one(guard, stream.rows, stream.brought)
        return [one.to_dict() for one in found], None
    about = stream.about or {}
    groups = about.get("groups")
    if groups is not None:
        _, groups = np.unique(groups, return_inverse=True)
    admits = rule_of(guard, stream)
    in_units = reference.radabound(
        reference.signs(SEED, guard.n_vectors, guard.n_groups),
        np.rint(stream.rows * 2.0**24).astype(np.int64),
        lambda complexity: admits(complexity / 2**24),
        guard.estimator == "half-range",
        about.get("sample_weight"),
        groups,
    )
    values, complexities = (found / 2**24 for found in in_units)  # exact
    return values, complexities


# ---- ways ----------------------------------------------------------------------------------------


def labels_of(stream):
    return np.random.default_rng(1).integers(0, 2, stream.m)


def parts_of(rows):
    """Slices of awkward sizes: none and one row among them."""
    edges = [edge for edge in (0, 1, 1, 8, 40, 127, 300, 812) if edge < len(rows)]
    return [slice(start, stop) for start, stop in itertools.pairwise([*edges, len(rows)])]


def loop(stream, guard, rows, **options):
    """Blocks in a for loop."""
    answers = []
    for part in parts_of(rows):
        if not guard.halted:
            answers += query_many(guard, rows[part], stream.brought_by(part), **options)
    return answers


def packed(stream):
    return pack_losses(stream.rows)


def each_packed(stream):
    words = pack_losses(stream.rows).words
    return [PackedLosses(row, stream.m) for row in words]


def predicted(stream):
    return labels_of(stream) ^ stream.rows


def part_of(block, start, stop):
    """Some samples of a block; words from `start` on, a multiple of 64."""
    if isinstance(block, PackedLosses):
        return PackedLosses(block.words[:, start // 64 : -(-stop // 64)], stop - start)
    return block[:, start:stop]


def by_partials(stream, guard, rows, cuts=()):
    """Blocks counted elsewhere, at all samples or at parts of them that are added up."""
    task = pickle.loads(pickle.dumps(guard.task()))
    blocks = [rows[part] for part in parts_of(rows)]
    spans = list(itertools.pairwise([0, *(cut for cut in cuts if cut < stream.m), stream.m]))

    def counted(block):
        return sum(task.reduce(part_of(block, *span), start=span[0]) for span in spans)

    return list(guard.take(map(counted, blocks), fetch=blocks.__getitem__))


def in_a_database(stream, path, labels=None):
    """Two owners of one database take turns."""
    opened = [
        stream.kind.open(path, stream.judged(labels), durability="process", **stream.parameters)
        for _ in "12"
    ]
    rows, answers = stream.rows if labels is None else predicted(stream), []
    for turn, start in enumerate(range(0, len(rows), 90)):
        part, guard = slice(start, start + 90), opened[turn % 2]
        if not guard.halted:
            answers += query_many(guard, rows[part], stream.brought_by(part))
    opened[0].close()
    return opened[1], answers


def once(stream, guard, rows, **options):
    return list(query_many(guard, rows, stream.brought, **options))


# name: what makes the guard, then (stream, guard) -> answers
LOSSES = {
    "query": lambda s, g: one_by_one(g, s.rows, s.brought),
    "query_many": lambda s, g: once(s, g, s.rows),
    "blocks": lambda s, g: loop(s, g, s.rows),
    "by columns": lambda s, g: once(s, g, np.asfortranarray(s.rows)),
}
BITS = {
    "integers": lambda s, g: once(s, g, s.rows.astype(">i4")),
    "packed, one by one": lambda s, g: one_by_one(g, each_packed(s), s.brought),
    "packed": lambda s, g: once(s, g, packed(s)),
    "packed blocks": lambda s, g: loop(s, g, packed(s)),
}
PREDICTED = {
    "predictions, one by one": lambda s, g: one_by_one(g, predicted(s), s.brought),
    "predictions": lambda s, g: once(s, g, predicted(s).astype(np.int8)),
    "predictions, blocks": lambda s, g: loop(s, g, predicted(s).astype(float)),
    "packed losses of labels": lambda s, g: once(s, g, packed(s)),
}
SIGNED = {
    "with a trace": lambda s, g: once(s, g, s.rows, trace=True),
    "threads": lambda s, g: once(s, g, s.rows, trace=True, n_threads=2),
}
SIGNED_BITS = {
    "packed in threads": lambda s, g: loop(s, g, packed(s), trace=True, n_threads=3),
}
COUNTED = {
    "partials": lambda s, g: by_partials(s, g, s.rows),
    "partials of samples": lambda s, g: by_partials(s, g, s.rows, (64, 448)),
}
COUNTED_BITS = {
    "packed partials": lambda s, g: by_partials(s, g, packed(s), (64, 448)),
}
COUNTED_PREDICTIONS = {
    "partials of predictions": lambda s, g: by_partials(s, g, predicted(s), (64, 448)),
}


def ways_of(stream):
    bits, plain = stream.rows.dtype == bool, stream.about is None
    labelled = bits and stream.m > 1
    yield from LOSSES
    yield from BITS if bits else ()
    yield from ["opened"]
    if stream.signed:
        yield from SIGNED
        yield from SIGNED_BITS if bits else ()
        yield from COUNTED if plain else ()
        yield from COUNTED_BITS if bits and plain else ()
    if labelled:
        yield from PREDICTED
        yield from ["predictions, opened"]
        yield from COUNTED_PREDICTIONS if stream.signed and plain else ()


WITH_LOSSES = LOSSES | BITS | SIGNED | SIGNED_BITS | COUNTED | COUNTED_BITS
WITH_LABELS = PREDICTED | COUNTED_PREDICTIONS


def fed(stream, way, folder):
    if way.endswith("opened"):
        labels = labels_of(stream) if way.startswith("predictions") else None
        return in_a_database(stream, folder / "guard.db", labels)
    guard = stream.make(labels_of(stream) if way in WITH_LABELS else None)
    return guard, (WITH_LABELS | WITH_LOSSES)[way](stream, guard)


@functools.cache
def left_by_query(name):
    """What a loop of `query` leaves."""
    stream = STREAMS[name]
    guard = stream.make()
    one_by_one(guard, stream.rows, stream.brought)
    return left(guard)


def left(guard):
    return repr(list(guard.answers)) if isinstance(guard, DeclaredSearch) else state_of(guard)


def assert_law(name, way, folder):
    stream = STREAMS[name]
    told, complexities = expected(name)
    guard, answers = fed(stream, way, folder)
    assert len(answers) == len(told) == guard.n_answered
    assert [answer.number for answer in answers] == list(range(1, len(told) + 1))
    assert guard.halted == (len(told) < len(stream.rows))
    assert left(guard) == left_by_query(name)
    if complexities is None:
        without = {"complexity": None, "delta_prime": None}  # nan in a block without a trace
        assert repr([answer.to_dict() | without for answer in answers]) == repr(
            [one | without for one in told]
        )
        return
    assert_array_equal([answer.value for answer in answers], told)
    assert guard.complexity == complexities[-1]
    if "one" in way or way == "query" or way in SIGNED | SIGNED_BITS:
        assert_array_equal([answer.complexity for answer in answers], complexities[: len(told)])


ON_KERNELS, OTHERS = [], []
for name, stream in STREAMS.items():
    for way in ways_of(stream):
        counts = stream.signed or stream.kind is DeclaredSearch
        which = ON_KERNELS if counts and not way.endswith("opened") else OTHERS
        which.append(pytest.param(name, way, id=f"{name}: {way}"))


@pytest.mark.parametrize(("name", "way"), ON_KERNELS)
def test_every_way_is_row_by_row_on_every_kernel(kernel, name, way, tmp_path):
    assert_law(name, way, tmp_path)


@pytest.mark.parametrize(("name", "way"), OTHERS)
def test_every_way_is_row_by_row(name, way, tmp_path):
    assert_law(name, way, tmp_path)


def test_the_streams_end_in_every_way():
    """Never; at the first row, within the first rows of a scan, and past its blocks."""
    ends = [(len(expected(name)[0]), len(s.rows)) for name, s in STREAMS.items() if s.signed]
    assert any(n == k for n, k in ends) and any(n == 0 for n, _ in ends)
    assert any(0 < n < 512 < k for n, k in ends) and any(512 < n < k for n, k in ends)
