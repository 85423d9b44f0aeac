"""Make the tables of evidence/gains.md, in two minutes: ``python docs/make/gains_tables.py``.

Limits of gains (`bounds.paired_interval`) beside the normal approximation and beside Chernoff's
limits; how often they miss, and what they find.  All of it is sums over counts, without chance.
"""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from marked import fill
from numpy.typing import NDArray
from scipy.optimize import brentq, minimize_scalar
from scipy.signal import fftconvolve
from scipy.special import gammaln, ndtri_exp, xlogy

from radabound_fast.bounds import kl_interval, paired_interval

PAGE = Path(__file__).parents[1] / "evidence" / "gains.md"
NATS = (3.0, 5.3, 10.0, 17.0, 40.0)
Floats = NDArray[np.float64]
Limit = Callable[[int, int, int, float], float]


def exact(n_plus: int, n_minus: int, m: int, nats: float) -> float:
    """The lower limit of the library."""
    return float(paired_interval(n_plus, n_minus, m, nats)[0])


def chernoff(n_plus: int, n_minus: int, m: int, nats: float) -> float:
    """The lower limit by Chernoff's bounds, for the share s of rows that differ and for the gain.

    With the upper limit as well they are three events, each at 2/3 of the error of a side.  The
    least D with ``sup over b >= 0 of b mean - ln(1 - s + s cosh b + D sinh b) <= L/m``.
    """
    budget, mean = (nats + math.log(1.5)) / m, (n_plus - n_minus) / m
    share = kl_interval((n_plus + n_minus) / m, 1, budget)[1]

    def left(gain: float) -> float:
        def exponent(bet: float) -> float:
            return math.log1p(share * (math.cosh(bet) - 1) + gain * math.sinh(bet)) - bet * mean

        found = minimize_scalar(exponent, bounds=(0.0, 30.0), method="bounded")
        return budget + float(found.fun)

    edge = -share * (1 - 1e-12)
    return edge if left(edge) >= 0.0 else float(brentq(left, edge, mean))


def normal(n_plus: int, n_minus: int, m: int, nats: float) -> float:
    """The lower limit by the normal approximation."""
    mean = (n_plus - n_minus) / m
    return mean - (-ndtri_exp(-nats)) * math.sqrt((n_plus + n_minus) / m - mean**2) / math.sqrt(m)


# ---- widths --------------------------------------------------------------------------------------


def widths() -> str:
    rows = (
        (2000, 240, 160), (4000, 120, 80), (2000, 60, 40), (2000, 24, 16), (500, 20, 10),
        (2000, 6, 2),
    )  # fmt: skip
    lines = ["| m, n+, n- |" + "".join(f" {nats:g} |" for nats in NATS), "|---" * 6 + "|"]
    for m, plus, minus in rows:
        cells = []
        for nats in NATS:
            sides: list[list[float]] = []
            for n_plus, n_minus in ((plus, minus), (minus, plus)):
                mean = (n_plus - n_minus) / m
                ours, theirs, unit = (
                    mean - limit(n_plus, n_minus, m, nats) for limit in (exact, chernoff, normal)
                )
                sides.append([ours / unit, theirs / unit])
            (low, old_low), (high, old_high) = sides
            cells.append(f" {low:.2f} / {high:.2f} ({old_low:.2f} / {old_high:.2f}) |")
        lines.append(f"| {m:,}, {plus}, {minus} |" + "".join(cells))
    return "\n".join(lines)


def extremes() -> str:
    """The most and the least that the lower side is of Chernoff's, over many counts and nats."""
    found: list[tuple[float, str]] = []
    for m, n_differ, share, nats in itertools.product(
        (1, 10, 100, 1000, 10_000, 10**6),
        (0, 1, 3, 10, 30, 100, 300, 1000),
        (0.0, 0.3, 0.5, 0.7, 1.0),
        (2.0, *NATS),
    ):
        plus = round(share * n_differ)
        if n_differ > m or (n_differ == 0 and share > 0.0) or n_differ - plus == m:
            continue
        mean = (2 * plus - n_differ) / m
        ratio = (mean - exact(plus, n_differ - plus, m, nats)) / (
            mean - chernoff(plus, n_differ - plus, m, nats)
        )
        found.append((ratio, f"m = {m:,}, n+ = {plus}, n- = {n_differ - plus}, {nats:g} nats"))
    ratios = np.array([ratio for ratio, _ in found])
    least, most = min(found), max(found)
    return (
        f"Of {len(found):,} lower sides, m from 1 to 10^6, up to 1,000 rows that differ, and 2\n"
        f"to 40 nats, the exact one is {least[0]:.2f} ({least[1]})\nto {most[0]:.4f} ({most[1]}) "
        f"of Chernoff's, in the median {np.median(ratios):.2f}."
    )


# ---- misses --------------------------------------------------------------------------------------


def chances(m: int, p: float, q: float, most: int) -> Floats:
    """The probability of each n+ and n- up to `most` among m rows of one law."""
    plus, minus = np.meshgrid(np.arange(most + 1), np.arange(most + 1), indexing="ij")
    rest = np.maximum(m - plus - minus, 0)
    ways = gammaln(m + 1) - gammaln(plus + 1) - gammaln(minus + 1) - gammaln(rest + 1)
    terms = xlogy(plus, p) + xlogy(minus, q) + xlogy(rest, max(0.0, 1 - p - q))
    return np.where(plus + minus <= m, np.exp(ways + terms), 0.0)


def lower_limits(m: int, nats: float, most: int) -> Floats:
    plus, minus = np.meshgrid(np.arange(most + 1), np.arange(most + 1), indexing="ij")
    lows = np.full(plus.shape, -1.0)
    there = plus + minus <= m
    lows[there] = paired_interval(plus[there], minus[there], m, nats)[0]
    return lows


def misses() -> str:
    sizes, nats_tried = (5, 15, 30, 60), (1.5, 3.0, 5.3, 10.0, 17.0)
    lines = [
        "| m |" + "".join(f" {nats:g} |" for nats in nats_tried),
        "|---" * (1 + len(nats_tried)) + "|",
    ]
    for m in sizes:
        cells = []
        for nats in nats_tried:
            lows = lower_limits(m, nats, m)
            ends = np.unique(lows)
            ends = ends[:: 1 + len(ends) // 100] - 1e-9
            worst = 0.0
            for share in (0.001, 0.01, 0.03, *np.linspace(0.1, 1.0, 19)):
                for gain in ends[np.abs(ends) <= share]:
                    law = chances(m, (share + gain) / 2, (share - gain) / 2, m)
                    worst = max(worst, float(law[lows > gain].sum()))
            cells.append(f" {worst * math.exp(nats):.3f} |")
        lines.append(f"| {m} |" + "".join(cells))
    return "\n".join(lines)


def two_classes() -> str:
    """The share that the lower limit misses of rows of two laws, in fixed numbers."""
    cases = (
        # rows of the first class, the share of its rows that differ, the share of these that are +1
        (1000, 100, (0.3, 0.6), (0.05, 0.6)),
        (1000, 100, (0.3, 0.9), (0.05, 0.3)),
        (1000, 100, (0.6, 0.5), (0.02, 0.5)),
        (400, 200, (0.2, 0.5), (0.02, 0.5)),
        (400, 200, (0.1, 1.0), (0.1, 0.0)),
        (1000, 100, (1.0, 0.55), (0.0, 0.5)),
        (24, 11, (1.0, 0.53), (0.0, 0.5)),
    )
    lines = ["| rows of the classes | differ | of these +1 | 3 | 8 |", "|---|---|---|---|---|"]
    for m, n_first, *laws in cases:
        sizes, most = (n_first, m - n_first), min(m, 150)
        parts = [
            chances(size, share * up, share * (1 - up), most)
            for size, (share, up) in zip(sizes, laws, strict=True)
        ]
        law = fftconvolve(*parts)[: most + 1, : most + 1]
        gain = sum(
            size * share * (2 * up - 1) / m for size, (share, up) in zip(sizes, laws, strict=True)
        )
        cells = [
            f" {law[lower_limits(m, nats, most) > gain + 1e-12].sum() * math.exp(nats):.2f} |"
            for nats in (3.0, 8.0)
        ]
        (one, up), (other, up_other) = laws
        lines.append(
            f"| {sizes[0]}, {sizes[1]} | {one:g}, {other:g} | {up:g}, {up_other:g} |"
            + "".join(cells)
        )
    return "\n".join(lines)


# ---- what is found -------------------------------------------------------------------------------


def power(limit: Limit, m: int, gain: float, differ: float, nats: float) -> float:
    """How likely the limit shows a gain to be one."""
    p, q = (differ + gain) / 2, (differ - gain) / 2
    most = round(m * differ + 8 * math.sqrt(m * differ))
    law = chances(m, p, q, most)
    found = 0.0
    for n_differ in range(round(m * differ - 8 * math.sqrt(m * differ)), most + 1):
        least = bisect.bisect_left(
            range(n_differ + 1),
            True,
            lo=n_differ // 2,
            key=lambda plus: limit(plus, n_differ - plus, m, nats) > 0.0,
        )
        plus = np.arange(least, n_differ + 1)
        found += float(law[plus, n_differ - plus].sum())
    return found


def finds() -> str:
    m, differ, n_models, delta = 4000, 0.1, 300, 0.1
    nats = math.log(2 * n_models / delta)
    gains = (0.015, 0.02, 0.025, 0.03)
    lines = ["| limits |" + "".join(f" {gain:g} |" for gain in gains), "|---" * 5 + "|"]
    methods: dict[str, Any] = {"exact": exact, "Chernoff's": chernoff, "normal": normal}
    for name, limit in methods.items():
        cells = [f" {power(limit, m, gain, differ, nats):.2f} |" for gain in gains]
        lines.append(f"| {name} |" + "".join(cells))
    return "\n".join(lines)


if __name__ == "__main__":
    for part in (widths, extremes, misses, two_classes, finds):
        fill(PAGE, part.__name__.replace("_", " "), part())
