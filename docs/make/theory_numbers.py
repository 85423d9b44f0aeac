"""Make every number in theory.md again: ``python docs/make/theory_numbers.py``.

Prints name, value in the text, value recomputed.  Exits with 1 if one is off by more than its
tolerance or does not stand in the text, or if the text has a result that is not made here: a
decimal with a digit before the point, or a number with commas (inputs have neither).  What is
computed exactly must agree in every digit printed.  A simulation has a fixed seed; its tolerance,
four standard deviations of the difference of two simulations, lets NumPy change its generators.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq, minimize_scalar
from scipy.special import rel_entr
from scipy.stats import binom, multinomial, norm

from radabound_fast import bounds
from radabound_fast.bounds import BOUNDS
from radabound_fast.metrics._labels import Blocks

TEXT = Path(__file__).parents[1] / "explanation" / "theory.md"
M, DELTA, RUNS = 4000, 0.1, 200
NOMINAL = DELTA * (1 - DELTA)
Floats = NDArray[np.float32]


class Number(NamedTuple):
    """One number of the text; without a tolerance, half a unit of its last digit."""

    name: str
    text: str
    value: float
    tolerance: float | None = None

    def allowed(self) -> float:
        if self.tolerance is not None:
            return self.tolerance
        mantissa, _, exponent = self.text.replace(",", "").partition("e")
        decimals = len(mantissa.partition(".")[2])
        return 0.5000001 * 10.0 ** (int(exponent or 0) - decimals)

    def holds(self) -> bool:
        return abs(float(self.text.replace(",", "")) - self.value) <= self.allowed()


def results_in(text: str) -> set[str]:
    """Every number that looks like a result, up to the section that coverage_table.py makes."""
    body = text.partition("\n## Coverage by simulation\n")[0]
    return set(re.findall(r"(?<![\d.,])(-?\d+\.\d+(?:e-\d+)?|\d{1,3}(?:,\d{3})+)(?!\d|\.\d)", body))


def stands_in(text: str, number: Number) -> bool:
    pattern = rf"(?<![\d.,]){re.escape(number.text)}(?!\d|[.,]\d|e-)"
    return re.search(pattern, text) is not None


# ------------------------------------------------------------------ exact numbers


def misprints() -> Iterator[Number]:
    size = bounds.thresholdout_sample_size
    yield Number("Thresholdout, k = 10", "3,681,156", size(10, 1, 0.05, DELTA))
    many = 10**4, 10**4, 0.05, DELTA
    yield Number("Thresholdout, misprint", "8.7", size(*many) / size(*many, as_printed=True))


def shattering_tail(excess: float, n_vectors: int) -> float:
    """P(R - R~ > e) for one atom of mass 1/2 and a shattering class on the rest: no rounding.

    N of the M samples miss the atom; l M R~ is binomial (l N, 1/2).
    """
    n = np.arange(M + 1)
    below = math.ceil(n_vectors * M * (0.25 - excess)) - 1
    return float(binom.pmf(n, M, 0.5) @ binom.cdf(below, n_vectors * n, 0.5))


def two_atoms_miss(n_vectors: int, two_sided: bool) -> float:
    """P(Psi > 2 R~ + e) where Theorem 6 says .09, for atoms a and b of .4 and a shattering class.

    A sum over all (N_a, N_b) within 8 standard deviations; the signs, more than 400,000 of
    them, are taken as normal given the sample.
    """
    mass, spread = 0.4, 250
    excess = BOUNDS["mclt"].excess(math.log(NOMINAL), M, n_vectors)
    around = np.arange(int(M * mass) - spread, int(M * mass) + spread + 1)
    at_a, at_b = (grid.ravel() for grid in np.meshgrid(around, around))
    rest = M - at_a - at_b
    weight = multinomial.pmf(np.stack([at_a, at_b, rest], 1), M, [mass, mass, 1 - 2 * mass])
    gap = np.maximum(at_a, at_b) if two_sided else at_a
    noise = 2 * np.sqrt((rest / 4 + at_a) / n_vectors) / M
    return float(weight @ norm.sf((excess - (gap / M - mass)) / noise))


def counterexamples() -> Iterator[Number]:
    e, n = 0.00791, 256
    yield Number("Theorem 2, true tail", "0.0231", shattering_tail(e, n))

    def printed(n_vectors: int) -> float:
        return math.exp(bounds.rademacher_log_tail(e, M, n_vectors))

    yield Number("Theorem 2, printed", "4.5e-6", printed(n))
    true = [n for n in range(1, 257) if shattering_tail(e, n) <= printed(n)]
    yield Number("Theorem 2, wrong from l =", "44", max(true) + 1)
    for n, one, two in ((256, "0.060", "0.120"), (4096, "0.079", "0.158")):
        yield Number(f"mclt, one-sided, l = {n}", one, two_atoms_miss(n, False))
        yield Number(f"mclt, two-sided, l = {n}", two, two_atoms_miss(n, True))


def beyond() -> Iterator[Number]:
    """Deviation beyond 2 R~ at m = 4000, delta' = .09."""
    rows: dict[str, tuple[Callable[[float, int, int], float], str, str]] = {
        "mclt": (BOUNDS["mclt"].excess, "0.0162", "0.0122"),
        "bernstein": (BOUNDS["bernstein"].excess, "0.0269", "0.0204"),
        "bernstein-split": (BOUNDS["bernstein-split"].excess, "0.0363", "0.0258"),
        "McDiarmid": (bounds.mcdiarmid_excess, "0.0352", "0.0348"),
        "symmetrised": (bounds.symmetrised_excess, "0.0253", "0.0246"),
    }
    t = math.log(NOMINAL)
    for name, (excess, at_32, at_256) in rows.items():
        yield Number(f"{name}, l = 32", at_32, excess(t, M, 32))
        yield Number(f"{name}, l = 256", at_256, excess(t, M, 256))
    yield Number("symmetrised, l = 2^23", "0.0245", bounds.symmetrised_excess(t, M, 2**23))
    e, n = 0.05, 32
    yield Number("symmetrised, log tail", "-9.402", bounds.symmetrised_log_tail(e, M, n))
    yield Number("its closed form", "-9.412", -M * e * e / (1 + 2 / n))
    for c, vectors in ((1, "41"), (4, "23")):
        fits = [n for n in range(1, 200) if n - 4 * math.sqrt(n) <= 20 - 4 * c]
        yield Number(f"Theorem 4 follows up to, c = {c}", vectors, max(fits))
    for c, vectors in ((1, "109"), (4, "87")):
        fits = [n for n in range(1, 200) if math.sqrt(n / 20) <= 1 + math.sqrt(2 - c / 5)]
        yield Number(f"Theorem 3 follows up to, c = {c}", vectors, max(fits))


def split_width(complexity: float, m: int, n_vectors: int) -> float:
    return bounds.weighted_half_width(complexity, 1 / m, 1 / m, n_vectors, DELTA)


def loss_of_the_fixed_split(m: int, n_vectors: int) -> float:
    """How much wider the split of 3 : 1 is than the best, at the worst complexity."""

    def width(share: float, doubled: float) -> float:
        a = -math.log((1 - share) * DELTA) / m
        r = doubled + a + math.sqrt(a * a + 2 * a * (doubled + 1 / n_vectors))
        return r + math.sqrt(-math.log(share * DELTA / 2) / (2 * m))

    def loss(doubled: float) -> float:
        best = minimize_scalar(width, bounds=(0.01, 0.99), args=(doubled,), method="bounded").fun
        return split_width(doubled / 2, m, n_vectors) / best - 1

    return max(map(loss, np.linspace(0, 10 / math.sqrt(m), 101)))


def self_bounding() -> Iterator[Number]:
    ms = (500, 4000, 10**6)
    worst = max(loss_of_the_fixed_split(m, n) for m in ms for n in (32, 256))
    yield Number("loss by the split 3 : 1, %", "1.3", 100 * worst)

    def lead(doubled: float) -> float:
        symmetrised = doubled + bounds.symmetrised_excess(math.log(DELTA / 2), M, 256)
        return split_width(doubled / 2, M, 256) - symmetrised

    yield Number("2 R~ where symmetrised wins", "0.0171", brentq(lead, 0, 0.1))
    width = split_width(0.0, M, 256)
    yield Number("self-bounding at R~ = 0", "0.0240", width)
    width = bounds.low_error_half_width(0.0, 0.02, M, 256, DELTA)
    yield Number("low error at R~ = 0, mean .02", "0.0117", width)


def union() -> Iterator[Number]:
    rows = (
        (1000, 0.06, "66", "599", "119", "7"),
        (4000, 0.03, "66", "635", "127", "7"),
        (4000, 0.04, "18,110", "220,216", "44,043", "134"),
        (4000, 0.05, "24,258,259", "359,609,945", "71,921,989", "4,924"),
        (20_000, 0.015, "405", "4,388", "877", "19"),
        (100_000, 0.007, "901", "10,323", "2,064", "29"),
    )
    for m, epsilon, hoeffding, exact, inside, weighted in rows:
        where = f"{m}, {epsilon}"
        yield Number(f"union, {where}", hoeffding, bounds.union_queries(m, epsilon, DELTA))
        yield Number(f"exact, {where}", exact, bounds.binomial_queries(m, epsilon, DELTA))
        free = BOUNDS["fixed-sequence"].free(m, epsilon, DELTA)
        yield Number(f"fixed-sequence, {where}", inside, free.n_queries)
        queries = bounds.union_queries(m, epsilon, DELTA, flat=False)
        yield Number(f"1/(k(k+1)), {where}", weighted, queries)


def fixed_sequence() -> Iterator[Number]:
    row = BOUNDS["fixed-sequence"]
    queries = row.free(M, 0.046, DELTA).n_queries
    yield Number("fixed-sequence, 0.046", "3,091,984", queries)
    real = row.free(M, 0.04, DELTA).end_of(lambda stage: stage.low_mean == 0.5)
    yield Number("real-valued, 0.04", "127", real)
    afforded = bounds.union_queries(M, 0.04, DELTA / 5)
    shared = row.free(M, 0.04, DELTA, afforded)
    assert shared.end_of(lambda stage: stage.low_mean == 0.5) == afforded
    yield Number("real-valued, max_queries", "3,622", afforded)
    for m, rate, epsilon, before, now in (
        (4000, 0.02, 0.02, "0", "33,554,431"),
        (4000, 0.05, 0.03, "26", "268,435,455"),
        (20_000, 0.02, 0.008, "0", "67,108,863"),
        (1000, 0.02, 0.04, "0", "65,535"),
    ):
        free, count = row.free(m, epsilon, DELTA), round(rate * m)
        where = f"{m}, {rate}, {epsilon}"
        yield Number(f"before, {where}", before, bounds.union_queries(m, epsilon, 0.4 * DELTA))
        passes = free.end_of(lambda stage, count=count: stage.low_count >= count)
        yield Number(f"now, {where}", now, passes)
    yield Number(
        "the pool of the counterexample", "599", bounds.binomial_queries(1000, 0.06, DELTA)
    )
    width = bounds.low_error_half_width(0.0, 0.5, M, 256, 0.6 * DELTA)
    yield Number("low error at 3/5 of delta", "0.0259", width)
    low, high = bounds.kl_interval(0.02, 1, 0.004)
    yield Number("kl+(.02, .004)", "0.0352", high)
    yield Number("kl-(.02, .004)", "0.0099", low)
    yield Number("Hoeffding, b = .004", "0.0447", math.sqrt(0.004 / 2))


def intervals() -> Iterator[Number]:
    """How far the truth may lie above the mean: of a fixed sequence, then of a declared space."""
    free = BOUNDS["fixed-sequence"].free(M, 0.05, DELTA)
    shared = BOUNDS["fixed-sequence"].free(M, 0.05, DELTA, 1000)
    for k, of, texts in (
        (1, free, ("0.0205", "0.0168", "0.0064")),
        (10, free, ("0.0304", "0.0251", "0.0099")),
        (1000, free, ("0.0403", "0.0336", "0.0136")),
        (1000, shared, ("0.0338", "0.0280", "0.0111")),
        (10**6, free, ("0.0499", "0.0420", "0.0175")),
    ):
        for rate, text in zip((0.5, 0.2, 0.02), texts, strict=True):
            high = of.interval(rate, k, declared=True)[1]
            yield Number(f"interval, k = {k}, error {rate}", text, high - rate)
    for keys, m, *texts in (
        (10**3, 1000, "0.0704", "0.0527", "0.0232"),
        (10**3, 4000, "0.0352", "0.0255", "0.0100"),
        (10**3, 100_000, "0.0070", "0.0050", "0.0018"),
        (10**6, 1000, "0.0917", "0.0733", "0.0341"),
        (10**6, 4000, "0.0458", "0.0352", "0.0143"),
        (10**6, 100_000, "0.0092", "0.0068", "0.0025"),
        (10**12, 1000, "0.1237", "0.1047", "0.0529"),
        (10**12, 4000, "0.0619", "0.0499", "0.0213"),
        (10**12, 100_000, "0.0124", "0.0095", "0.0035"),
    ):
        width = bounds.union_half_width(1, m, DELTA, max_queries=keys)
        yield Number(f"{keys:.0e} keys, m = {m}", texts[0], width)
        for rate, text in zip((0.2, 0.02), texts[1:], strict=True):
            nats = math.log(2 * keys / DELTA)
            high = bounds.binomial_interval(round(rate * m), m, nats)[1]
            yield Number(f"{keys:.0e} keys, m = {m}, error {rate}", text, high - rate)


def adaptive() -> Iterator[Number]:
    yield Number("a failure, |j| = 1", "1.39", bounds.failure_code(1))

    def code(t: int, b: int) -> float:
        return bounds.guess_and_check_code(t, b, b * bounds.failure_code(1))

    yield Number("first failure of 1,000", "9.4", code(1001, 1) - code(1001, 0))
    yield Number("second failure", "8.3", code(1001, 2) - code(1001, 1))
    yield Number("fifth failure", "7.0", code(1001, 5) - code(1001, 4))
    for t, b, text in ((1, 0, "0.0234"), (1000, 0, "0.0468"), (1000, 5, "0.0846")):
        width = bounds.code_width(code(t, b), M, DELTA)
        yield Number(f"guess and check, t = {t}, b = {b}", text, width)
    # halting at tau = epsilon - width < epsilon / 10
    passes = sum(bounds.code_width(code(t, 0), M, DELTA) <= 0.045 for t in range(1, 1000))
    yield Number("passes at epsilon = .05", "520", passes)
    for queries, exact, bit, split in (
        (10, "0.101", "0.042", "0.081"),
        (100, "0.323", "0.101", "0.308"),
        (1000, "1.02", "0.298", "1.11"),
    ):
        pair = math.log(queries * (queries + 1))
        for name, text, values in (("exact means", exact, M + 1), ("one bit a query", bit, 2)):
            width = bounds.code_width((queries - 1) * math.log(values) + pair, M, DELTA)
            yield Number(f"{name}, k = {queries}", text, width)
        width = math.sqrt(math.log(2 * queries / DELTA) / (2 * M / queries))
        yield Number(f"sample splitting, k = {queries}", split, width)
    width = bounds.ladder_half_width(1000, M, 0.01, DELTA)
    yield Number("Ladder, k = 1000, eta = .01", "0.2153", width)
    printed = (1 / 0.01 + 2) * math.log(4 * 1000 / 0.01) + 1
    yield Number("Ladder, printed count", "0.4162", 0.01 + bounds.code_width(printed, M, DELTA))
    ledger = bounds.ladder_transcript_half_width(1000, 10, M, 0.01, DELTA)
    yield Number("Ladder, ledger, u = 10", "0.1226", ledger)


def conditional() -> Iterator[Number]:
    low, high = bounds.weighted_interval(0.9, [1 / 3600, 1 / 400], [3600, 400], math.log(20))
    yield Number("balanced accuracy, lower limit", "0.8741", low)
    yield Number("balanced accuracy, upper limit", "0.9229", high)
    low, high = bounds.balanced_interval([3240, 360], [3600, 400], math.log(20))
    yield Number("the same by class, lower limit", "0.8789", low)
    yield Number("the same by class, upper limit", "0.9181", high)
    hoeffding = math.sqrt(math.log(20) * (1 / 3600 + 1 / 400) / 8)
    yield Number("its half-width by Hoeffding", "0.0323", hoeffding)


def paired() -> Iterator[Number]:
    rows = (
        (0.02, "0.0038", "0.0092", "0.0129"),
        (0.05, "0.0059", "0.0141", "0.0195"),
        (0.20, "0.0118", "0.0278", "0.0381"),
    )
    for share, *texts in rows:
        half = round(share * M / 2)
        for n_keys, text in zip((1, 10**3, 10**6), texts, strict=True):
            high = bounds.paired_interval(half, half, M, math.log(2 * n_keys / DELTA))[1]
            yield Number(f"paired, {share:.0%}, {n_keys:,} keys", text, high)
    apart = 2 * math.sqrt(math.log(2e6 / DELTA) / (2 * M))
    yield Number("two scores apart, 10^6 keys", "0.0917", apart)


def delong_error(positive: Any, negative: Any) -> float:
    """The standard error of the AUC by DeLong, DeLong and Clarke-Pearson (1988)."""
    wins = positive[:, np.newaxis] > negative
    variances = (wins.mean(axis).var(ddof=1) / wins.shape[1 - axis] for axis in (0, 1))
    return math.sqrt(sum(variances))


def auc_blocks() -> Iterator[Number]:
    rows = (
        (200, 3800, "0.0597", "0.0369", "0.0179", "0.1641", "0.0958", "0.0578"),
        (400, 3600, "0.0407", "0.0226", "0.0130", "0.1083", "0.0809", "0.0420"),
        (1000, 3000, "0.0248", "0.0159", "0.0090", "0.0638", "0.0489", "0.0291"),
        (2000, 2000, "0.0172", "0.0153", "0.0078", "0.0433", "0.0418", "0.0252"),
    )
    for n_positive, n_negative, *texts in rows:
        is_positive = np.arange(n_positive + n_negative) >= n_negative
        negative, positive = (
            norm.ppf((np.arange(n) + 0.5) / n) + shift
            for n, shift in ((n_negative, 0.0), (n_positive, math.sqrt(2) * norm.ppf(0.9)))
        )
        area = float((positive[:, np.newaxis] > negative).mean())
        blocks = Blocks.of(is_positive)
        assert blocks is not None
        areas = blocks.areas(np.concatenate([negative, positive]))
        widths = []
        for nats in (math.log(2 / DELTA), math.log(2e6 / DELTA)):
            for low, high in (
                bounds.auc_interval(area, n_negative, n_positive, nats),
                bounds.betting_interval(areas, nats),
            ):
                widths.append(max(area - low, high - area))
            widths.append(norm.isf(math.exp(-nats)) * delong_error(positive, negative))
        for text, width in zip(texts, widths, strict=True):
            yield Number(f"AUC of {n_positive} and {n_negative}", text, width)


def kl_divergence(p: float, q: float) -> float:
    return float(rel_entr(p, q) + rel_entr(1 - p, 1 - q))


def maurer(n: int) -> float:
    """xi(n)."""
    c = np.arange(n + 1)
    return float(binom.pmf(c, n, c / n).sum())


def by_all_at_once(mean: float, m: int, k: int, nats: float) -> float:
    """The upper limit by Result 27 (c), for folds of equal size."""
    budget = k * (nats - math.log(2) + math.log(maurer(m // k))) / m
    return float(brentq(lambda q: kl_divergence(mean, q) - budget, mean, 1 - 1e-12))


def cross_validation() -> Iterator[Number]:
    nats = math.log(2e6 / DELTA)
    rows = (
        (100_000, 0.02, "0.0205", "0.0072", "0.0068"),
        (M, 0.02, "0.1025", "0.0479", "0.0459"),
        (M, 0.1, "0.1025", "0.0793", "0.0767"),
        (M, 0.2, "0.1025", "0.0977", "0.0936"),
        (M, 0.5, "0.1025", "0.1096", "0.1047"),
    )
    for m, mean, *texts in rows:
        highs = (
            bounds.weighted_cross_validation_interval(mean, m, 5, nats)[1],
            by_all_at_once(mean, m, 5, nats),
            bounds.cross_validation_interval(mean, m, 5, nats)[1],
        )
        for name, text, high in zip("acb", texts, highs, strict=True):
            yield Number(f"5 folds, {m} rows, {mean}, ({name})", text, high - mean)
    yield Number("rows", "100,000", 100_000)
    yield Number("xi(800)", "36.1", maurer(800))
    yield Number("its logarithm", "3.59", math.log(maurer(800)))
    # the mean of five |2 Bin(40, 1/2) - 40| / 80, which has one sign in all folds
    heads = np.arange(41)
    size = binom.pmf(heads, 40, 0.5) @ np.abs(heads / 40 - 0.5)
    variance = 1 / 160 / 5 + 4 / 5 * size**2
    yield Number("rows of a holdout worth five folds", "57", 1 / (4 * variance))


def histories() -> Iterator[Number]:
    rows = (
        (32, "3.4657", "4.1589", "9.3518", ("6.9315", "10.3655", "17.2881", "22.8124", "26.4526")),
        (
            None,
            "0.6931",
            "2.4849",
            "10.5866",
            ("10.4280", "13.8620", "20.7846", "26.3089", "29.9491"),
        ),
    )
    for n_candidates, first, second, tenth, last in rows:
        told = (([0, 0], first), ([0, 1], second), ([2, 7], tenth))
        told += tuple(([b, 31 - b], text) for b, text in zip((0, 1, 4, 8, 16), last, strict=True))
        for counts, text in told:
            nats = bounds.history_nats(counts, n_candidates=n_candidates)
            yield Number(f"nats after {counts}, H = {n_candidates}", text, nats)


def confirmation() -> Iterator[Number]:
    yield Number("normal quantile at .05", "1.645", norm.isf(0.05))
    outcomes = {"batch": 2, "log_outcomes": math.log(2001)}
    for text, low, high, n, options in (
        ("2.995732", ".132191", ".158586", 1, {}),
        ("5.298317", ".125338", ".166378", 10, {}),
        ("7.600902", ".120219", ".172493", 100, {}),
        ("3.688879", ".129848", ".161201", 1, {"n_batches": None}),
        ("12.388894", ".112138", ".182713", 1, {"n_batches": None, **outcomes}),
        ("11.290282", ".113785", ".180570", 1, {"n_batches": 2, **outcomes}),
    ):
        nats = bounds.confirmation_nats(n, DELTA, **options)
        limits = bounds.binomial_interval(290, 2000, nats)
        yield Number(f"confirmation of {n}, nats", text, nats)
        yield from (Number("its limits", *limit) for limit in zip((low, high), limits, strict=True))
    yield Number("bits of one of 101 values", "6.7", math.log2(101))
    for number in (1000, 2000, 4000, 10_001):  # models, rows and points, which the text counts
        yield Number("as it is said", f"{number:,}", number)


def exact_numbers() -> Iterator[Number]:
    """What needs no random numbers."""
    parts = (misprints, counterexamples, beyond, self_bounding, union, fixed_sequence, intervals)
    for part in (
        *parts, adaptive, histories, confirmation, conditional, auc_blocks, paired, cross_validation
    ):  # fmt: skip
        yield from part()


# ------------------------------------------------------------------ simulated numbers


def random_signs(random: np.random.Generator, *shape: int) -> Floats:
    """Fair signs; the last dimension a multiple of 8."""
    size = math.prod(shape) // 8
    bits = np.unpackbits(np.frombuffer(random.bytes(size), np.uint8)).astype(np.float32)
    return (2 * bits - 1).reshape(shape)


def plain(sums: Floats) -> Floats:
    """R~ after each query, by the printed estimator; sums has a row per query."""
    return np.maximum(np.maximum.accumulate(sums, 0), 0).mean(1) / M


def estimators() -> Iterator[Number]:
    """Standard deviation of the plain estimator over that of half-range, one vector each."""
    random = np.random.default_rng(2019)
    signs = random_signs(random, M, 8000)
    flips = np.cumsum(np.eye(M, dtype=np.int64)[random.integers(M, size=300)], 0) % 2
    classes = {
        "10 fair coins": ("2.7", random.random((10, M)) < 0.5),
        "300 fair coins": ("4.0", random.random((300, M)) < 0.5),
        "300 coins of .02": ("1.5", random.random((300, M)) < 0.02),
        "300 mutations": ("7.8", flips.astype(bool) ^ (random.random(M) < 0.5)),
    }
    for name, (text, losses) in classes.items():
        sums = losses.astype(np.float32) @ signs
        high, low = sums.max(0), sums.min(0)
        ratio = np.maximum(high, 0).std() / ((high - low) / 2).std()
        yield Number(f"plain / half-range, {name}", text, ratio, 0.09 * ratio)


def low_error() -> Iterator[Number]:
    """Half-widths for ten unrelated classifiers, the average over 20 samples."""
    random = np.random.default_rng(2019)
    for rate, old, new in (
        (0.01, "0.0301", "0.0183"),
        (0.02, "0.0325", "0.0223"),
        (0.05, "0.0371", "0.0300"),
        (0.5, "0.0528", "0.0529"),
    ):
        widths = []
        for _ in range(20):
            losses = (random.random((10, M)) < rate).astype(np.float32)
            sums = losses @ random_signs(random, M, 256)
            complexity = float((sums.max(0) - sums.min(0)).mean()) / (2 * M)
            largest = float(losses.mean(1).max())
            widths.append(
                (
                    split_width(complexity, M, 256),
                    bounds.low_error_half_width(complexity, largest, M, 256, DELTA),
                )
            )
        before, after = np.mean(widths, 0)
        yield Number(f"self-bounding, error {rate}", old, before, 5e-4)
        yield Number(f"low error, error {rate}", new, after, 5e-4)


def vote(random: np.random.Generator) -> tuple[Floats, Floats]:
    """Complexities and gaps: random classifiers of random labels, and a vote after every ten."""
    right = random_signs(random, 30, 10, M)
    weights = right.mean(2, keepdims=True)
    votes = np.cumsum((weights * right).sum(1), 0)
    right = np.concatenate([right, np.where(votes < 0, -1, 1)[:, None]], 1).reshape(-1, M)
    losses = ((1 - right) / 2).astype(np.float32)
    return plain(losses @ random_signs(random, M, 32)), np.abs(losses.mean(1) - 0.5)


def greedy(random: np.random.Generator) -> tuple[Floats, Floats]:
    """The paper's search over 500 features that are pure noise: 1,000 queries."""
    features = random.standard_normal((500, M), np.float32) * random_signs(random, M)
    signs = random_signs(random, M, 32)
    score, best = np.zeros(M, np.float32), 0.5
    sums, errors = [], []
    for feature in features:
        losses = (np.stack([score + feature, score - feature]) < 0).astype(np.float32)
        error = losses.mean(1)
        sums.append(losses @ signs)
        errors.append(error)
        if error.min() < best:
            best = error.min()
            score = score + feature if error[0] == best else score - feature
    return plain(np.concatenate(sums)), np.abs(np.concatenate(errors) - 0.5)


def climb(random: np.random.Generator) -> tuple[Floats, Floats]:
    """One classifier, flipped in one of 2,500 cells at a time; a flip that helps is kept."""
    cell = random.integers(2500, size=M)
    rows, starts = np.argsort(cell), np.searchsorted(np.sort(cell), np.arange(2501))
    signs = random_signs(random, M, 32)
    loss = random.integers(0, 2, M)
    total, count = loss @ signs, loss.sum()
    sums, counts = [total], [count]
    for flipped in random.integers(2500, size=1200):
        row = rows[starts[flipped] : starts[flipped + 1]]
        step = 1 - 2 * loss[row]
        sums.append(total + step @ signs[row])
        counts.append(count + step.sum())
        if counts[-1] < count:
            loss[row] ^= 1
            total, count = sums[-1], counts[-1]
    return plain(np.array(sums)), np.abs(np.array(counts) / M - 0.5)


Runs = list[tuple[Floats, Floats]]


def share_of_bad_runs(runs: Runs, epsilon: float, bound: str | None) -> float:
    """In how many runs a returned answer is off by more than epsilon; None never halts."""
    budget = BOUNDS[bound].budget(M, 32, epsilon, DELTA) if bound else math.inf
    return float(np.mean([np.any((r <= budget) & (gap > epsilon)) for r, gap in runs]))


def attacks() -> Iterator[Number]:
    cases = {
        vote: (
            ("mclt", 0.06, "0.92"),
            ("mclt", 0.07, "1.00"),
            ("bernstein", 0.07, "0.71"),
            ("bernstein", 0.08, "1.00"),
            (None, 0.05, "1.00"),
        ),
        greedy: (("mclt", 0.05, "0.32"), ("bernstein", 0.06, "0.07"), (None, 0.05, "0.57")),
        climb: (("mclt", 0.05, "1.00"), ("bernstein", 0.05, "1.00"), (None, 0.05, "1.00")),
    }
    for attack, rows in cases.items():
        random = np.random.default_rng(2019)
        runs = [attack(random) for _ in range(RUNS)]
        for bound, epsilon, text in rows:
            share = share_of_bad_runs(runs, epsilon, bound)
            error = 4 * math.sqrt(2 * max(share * (1 - share), 0.01) / RUNS)
            name = f"{attack.__name__}, {bound or 'never halting'}, {epsilon}"
            yield Number(name, text, share, error)
    passing = [(int(np.argmax(gap > 0.05)), r[np.argmax(gap > 0.05)]) for r, gap in runs]
    queries, complexity = np.mean(passing, 0)
    yield Number("climb, queries until off by .05", "490", queries, 30)
    yield Number("climb, 2 R~ there", "0.0123", 2 * complexity, 9e-4)


def order() -> Iterator[Number]:
    """Fixed models in an order that the answers choose: 25 coins, and their weighted vote."""
    random = np.random.default_rng(2019)
    misses, runs = 0, 20_000
    for _ in range(runs // 200):
        right = 2 * random.integers(0, 2, (200, 25, 1000), dtype=np.int8) - 1
        weights = np.where(right.mean(2) > 0, 1, -1)  # the mean loss is below 1/2
        votes = np.einsum("rk,rki->ri", weights, right)
        misses += int(np.sum(np.abs((votes < 0).mean(1) - 0.5) > 0.06))
    assert BOUNDS["fixed-sequence"].free(1000, 0.06, DELTA).n_queries >= 26
    error = 4 * math.sqrt(2 * 0.207 * 0.793 / runs)
    yield Number("an order chosen by the answers", "0.207", misses / runs, error)


def simulated_numbers() -> Iterator[Number]:
    """What comes from simulation; most of the running time."""
    for part in (estimators, low_error, attacks, order):
        yield from part()


def check(numbers: Iterable[Number]) -> tuple[list[Number], list[Number]]:
    """Print the numbers as they come; return them all, and those that fail."""
    text = TEXT.read_text(encoding="utf-8")
    made, failures = [], []
    for number in numbers:
        wrong = [] if number.holds() else ["DIFFERS"]
        wrong += [] if stands_in(text, number) else ["NOT IN THE TEXT"]
        print(f"{number.name:<36} {number.text:>12} {number.value:>16.9g}", *wrong)
        made.append(number)
        if wrong:
            failures.append(number)
    return made, failures


def main() -> int:
    print(f"{'name':<36} {'in the text':>12} {'recomputed':>16}")
    made, failures = check(chain(exact_numbers(), simulated_numbers()))
    text = TEXT.read_text(encoding="utf-8")
    unmade = sorted(results_in(text) - {number.text for number in made})
    if unmade:
        print("not made here:", *unmade)
    return 1 if failures or unmade else 0


if __name__ == "__main__":
    sys.exit(main())
