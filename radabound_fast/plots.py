"""Figures, drawn from arrays: with experiments/figures.py the only importer of matplotlib.

Every function returns a `matplotlib.figure.Figure` made without pyplot, so that nothing
opens a window, touches global state or outlives the caller.  `title` and `subtitle` stand above the
axes, `metric` beside them.  A curve that is empty or not one-dimensional, and lengths that differ,
are a ValueError.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import TYPE_CHECKING, Any

import numpy as np

from radabound_fast._checks import counted
from radabound_fast._extras import needs

with needs("plot"):
    from matplotlib.colors import LinearSegmentedColormap
    from matplotlib.figure import Figure
    from matplotlib.ticker import (
        FixedLocator,
        FuncFormatter,
        LogLocator,
        MaxNLocator,
        NullLocator,
        StrMethodFormatter,
    )

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike, NDArray

INK, FAINT = "#222222", "#6b6b6b"
BLUE, RED = "#1b62c4", "#c62f2a"  # what the holdout says; what is true, or the limit
LIGHT_BLUE, PALE_BLUE = "#5b93dd", "#c3d9f5"
BAND, INNER_BAND, ALARM = "#e4e9e2", "#cdd8ca", "#f6b39f"
DASHED = (0, (5, 3))

_MOST_MARKS = 2000  # more models than this are drawn as a density, or spread over the axis
_LINE_HEIGHT = 0.055  # of a line of text, as a share of the height of the axes
_LETTER_WIDTH = 0.0115  # of an average letter, as a share of their width


def search_figure(
    holdout_error: ArrayLike,
    true_error: ArrayLike,
    bands: Mapping[str, tuple[ArrayLike, ArrayLike]],
    halts: Mapping[str, int | None],
    *,
    title: str,
    subtitle: str,
) -> Figure:
    """The best model of a search so far: its holdout error, its interval, and its true error.

    `holdout_error` and `true_error`, shape (n_queries,), in [0, 1], are after each query the lowest
    error rate on the holdout so far, and the true error rate of the model that had it.  `bands` are
    pairs (low, high) of such arrays, by name: where the true error is claimed to lie; wider ones
    first, and a band after another shows through from under it.  `halts` says for each guard which
    query (1 is the first) it withheld; None if it answered all.

    Where the truth leaves the last band, the gap is filled and the first query named.  A halt that
    is none of the queries is a ValueError.
    """
    holdout, truth = _curves(holdout_error=holdout_error, true_error=true_error)
    edges = {name: _curves(len(holdout), low=low, high=high) for name, (low, high) in bands.items()}
    what = "models judged by the same holdout"
    height = "share of wrong predictions"
    picture = _Picture(title, subtitle, len(holdout), what, height, with_halts=bool(halts))
    axes = picture.axes
    axes.yaxis.set_major_formatter(FuncFormatter(lambda share, _: f"{100 * share:g}%"))

    for (low, high), shade in zip(edges.values(), (BAND, INNER_BAND), strict=False):
        queries, below, above = _steps(low, high)
        axes.fill_between(queries, below, above, color=shade, linewidth=0)
    queries, blue, red, below, above = _steps(holdout, truth, low, high)
    axes.fill_between(queries, above, red, where=red > above, color=ALARM, linewidth=0)
    axes.fill_between(queries, red, below, where=red < below, color=ALARM, linewidth=0)
    axes.plot(queries, red, color=RED, linewidth=2.2)
    axes.plot(queries, blue, color=BLUE, linewidth=2.2)
    picture.pad()

    name = list(edges)[-1]
    outside = np.flatnonzero((truth < low) | (truth > high))
    if len(outside):
        first = outside[0]
        below = truth[first] < low[first]
        axes.annotate(
            f"the truth leaves\n{name}",
            (first + 1, truth[first]),
            xytext=(max(_share_of_width(axes, first + 1) - 0.17, 0.2), 0.05 if below else 0.95),
            textcoords="axes fraction",
            color=RED,
            fontsize=10,
            ha="center",
            va="center",
            arrowprops={"arrowstyle": "->", "color": RED},
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 2},
            zorder=5,
        )
    picture.name(truth[-1], "true error of\nthe best so far", RED)
    picture.name(holdout[-1], "its error on\nthe holdout", BLUE)
    for name, (_, high) in edges.items():
        picture.name(high[-1], name, FAINT)
    _mark_halts(axes, halts, len(holdout))
    return picture.finished()


def audit_figure(
    complexities: Mapping[str, ArrayLike],
    budgets: Mapping[str, float],
    halts: Mapping[str, int | None],
    *,
    without_signs: Mapping[str, int] | None = None,
) -> Figure:
    """Complexity against the number of queries, with each bound's budget and halt.

    `complexities` are of each bound after each query, the withheld one included, in units of loss;
    lengths may differ, and those that coincide, as of one estimator, are drawn as one.  `budgets`
    are the largest complexities at which a bound answers: a negative one (no query can be answered)
    has no line, nor has one beyond four times the largest complexity, which is named at the upper
    edge.  `halts` are as in `search_figure`; `without_signs` says for a bound that answers so many
    queries whatever their complexity how many.

    ValueError: no bound, other bounds in one of the three, or a halt that is none of the queries.
    """
    if not complexities or not complexities.keys() == budgets.keys() == halts.keys():
        raise ValueError(
            "complexities, budgets and halts must name the same bounds, at least one, got "
            f"{sorted(complexities)}, {sorted(budgets)}, {sorted(halts)}"
        )
    curves = {bound: _curves(complexities=curve)[0] for bound, curve in complexities.items()}
    n_queries = max(map(len, curves.values()))
    picture = _Picture(
        "How fast these queries use up the holdout",
        "A guard answers while the complexity (blue) is within its budget (dashed)",
        n_queries,
        "queries on the same holdout",
        "complexity of all queries so far",
        with_halts=True,
    )
    shared = _coinciding(curves)
    for shade, bounds in zip(cycle([BLUE, LIGHT_BLUE]), shared, strict=False):
        curve = curves[bounds[0]]
        picture.axes.plot(*_steps(curve), color=shade, linewidth=2.2)
        label = "complexity" if len(shared) == 1 else "for " + ",\n".join(bounds)
        picture.name(curve[-1], label, shade)
    # a budget far above the complexity would flatten everything else: its label says so
    sight = 4 * max(curve.max() for curve in curves.values())
    for bound, budget in budgets.items():
        free = (without_signs or {}).get(bound)
        after = f",\nafter the first {free:,}" if free else ""
        if budget > sight:
            picture.name(sight, f"{bound}: {budget:.2g} ↑{after}", RED)
        elif budget >= 0:
            picture.level(budget, bound + after, RED)
        elif free:
            picture.name(0.0, f"{bound}:\nthe first {free:,} only", RED)
    picture.pad()
    picture.axes.set_ylim(bottom=0)
    _mark_halts(picture.axes, halts, n_queries)
    return picture.finished()


def report_figure(
    values: ArrayLike,
    lows: ArrayLike,
    highs: ArrayLike,
    best: ArrayLike,
    *,
    numbers: ArrayLike | None = None,
    baseline: float | None = None,
    metric: str,
    title: str,
    subtitle: str,
) -> Figure:
    """The scores of a search in order, with their intervals, the best so far, and a baseline.

    `values`, `lows` and `highs`, shape (n_queries,), are of each answer; a side that an interval
    does not have ends at the value.  `best`, ints, is after each query the place (0 is the first)
    of the best answer so far.  `numbers` are, where these are some answers of more, the number of
    each, rising; the last is that of all.  `baseline` is a dashed line.

    More than 2,000 scores are drawn as a density, without their single intervals.  Scores far from
    all others, other than the best, are marked at the edge, and their number is told.
    """
    scores, low, high, place = _curves(values=values, lows=lows, highs=highs, best=best)
    n_shown = len(scores)
    (number,) = _curves(n_shown, numbers=np.arange(1, n_shown + 1) if numbers is None else numbers)
    place, number = place.astype(np.int64), number.astype(np.int64)
    last, n_models = place[-1], int(number[-1])
    what = "models, in the order asked"
    picture = _Picture(title, subtitle, n_models, what, metric, log=False)
    axes = picture.axes
    bottom, top = _sight(scores, low, high, last)
    seen = (scores >= bottom) & (scores <= top)
    axes.axhspan(low[last], high[last], color=BAND, linewidth=0)
    if n_shown > _MOST_MARKS:
        shades = LinearSegmentedColormap.from_list("models", [PALE_BLUE, LIGHT_BLUE])
        extent = (0.5, n_models + 0.5, bottom, top)
        axes.hexbin(number, scores, gridsize=(90, 36), extent=extent, mincnt=1, cmap=shades)
        picture.name(float(np.median(scores)), "models (darker:\nmore of them)", LIGHT_BLUE)
    else:
        thin = min(2.0, max(0.25, 230 / n_shown))  # so that they stay apart
        axes.vlines(number[seen], low[seen], high[seen], color=PALE_BLUE, linewidth=thin)
        axes.plot(number[seen], scores[seen], "o", color=LIGHT_BLUE, markersize=1 + 1.5 * thin)
        which = "each model,\nits interval"
        if n_shown < n_models:
            which = f"{n_shown:,} of them,\ntheir intervals"
        if n_models > 1:
            picture.name(float(np.clip(scores[-1], bottom, top)), which, LIGHT_BLUE)
    places, so_far = _steps(scores[place])
    queries = np.append(number, n_models + 1)[places.astype(np.int64) - 1]
    axes.plot(queries - 0.5, so_far, color=BLUE, linewidth=1.8)  # a model in the middle of its step
    axes.vlines(number[last], low[last], high[last], color=BLUE, linewidth=2.6, zorder=4)
    ring: dict[str, Any] = {"color": "white", "mec": BLUE, "mew": 2, "ms": 8, "zorder": 5}
    axes.plot([number[last]], scores[last], "o", clip_on=False, **ring)
    picture.name(scores[last], f"the best:\nmodel {number[last]:,}", BLUE)
    edge = high[last] if high[last] > scores[last] else low[last]
    picture.name(edge, "interval of\nthe best", FAINT)
    if baseline is not None and bottom <= baseline <= top:
        picture.level(baseline, "the baseline", INK)
    elif baseline is not None:
        end, arrow = (top, "↑") if baseline > top else (bottom, "↓")
        picture.name(end, f"the baseline {baseline:.3g} {arrow}", INK)
    for edge, mark, arrow in ((top, "^", "↑"), (bottom, "v", "↓")):
        beyond = scores > top if edge == top else scores < bottom
        if beyond.any():
            axes.plot(number[beyond], np.full(beyond.sum(), edge), mark, color=LIGHT_BLUE, ms=6)
            furthest = scores[beyond].max() if edge == top else scores[beyond].min()
            models = counted(int(beyond.sum()), "model")
            picture.name(edge, f"{models}\nto {furthest:.3g} {arrow}", LIGHT_BLUE)
    room = 0.06 * (top - bottom)
    axes.set_ylim(bottom - room, top + room)
    return picture.finished()


def finalists_figure(
    names: Sequence[str],
    values: ArrayLike,
    lows: ArrayLike,
    highs: ArrayLike,
    search_values: Sequence[float | None],
    *,
    metric: str,
    title: str,
    subtitle: str,
) -> Figure:
    """Finalists one below the other, with their intervals and their scores on the search rows.

    The first name is drawn on top, as the best; more than 30 are left out.  `search_values`, None
    where there is none, are drawn as hollow marks.
    """
    n_shown = min(len(names), 30)
    value, low, high = (each[:n_shown] for each in _curves(values=values, lows=lows, highs=highs))
    picture = _Picture(title, subtitle, n_shown, metric, log=False)
    figure, axes = picture.figure, picture.axes
    figure.set_size_inches(9, 2.6 + 0.32 * n_shown)
    axes.set_position((0.22, 0.9 / figure.get_figheight(), 0.74, 1 - 1.9 / figure.get_figheight()))
    for text, inches in zip(figure.texts, (0.38, 0.66), strict=True):
        text.set_y(1 - inches / figure.get_figheight())
    places = range(n_shown)
    colors = [BLUE if place == 0 else LIGHT_BLUE for place in places]
    axes.hlines(places, low, high, color=colors, linewidth=2.6)
    axes.scatter(value, places, color=colors, s=42, zorder=3, label="on the confirmation rows")
    scored = enumerate(search_values[:n_shown])
    known = {place: score for place, score in scored if score is not None}
    if known:
        hollow: dict[str, Any] = {"facecolors": "white", "edgecolors": FAINT, "zorder": 4}
        axes.scatter(list(known.values()), list(known), label="in the search", **hollow)
        axes.legend(loc="lower right", frameon=False, fontsize=9, labelcolor=INK)
    axes.set_yticks(
        places, [name if len(name) <= 24 else f"{name[:23]}…" for name in names[:n_shown]]
    )
    axes.set_ylim(n_shown - 0.3 + 0.7 * bool(known), -0.7)
    axes.autoscale(axis="x")
    axes.xaxis.set_major_locator(MaxNLocator(nbins=7, steps=[1, 2, 5, 10]))
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    return figure


def shares_figure(
    shares: Sequence[float],
    curves: Mapping[str, ArrayLike],
    *,
    level: float | None,
    level_name: str,
    title: str,
    subtitle: str,
) -> Figure:
    """The width of an interval against the share of the rows that is kept for the end.

    `curves` are a width a share, by what it is of; the last is drawn boldly.  `level`, named
    `level_name`, is a width of all rows, as a dashed line.
    """
    what, height = "share of the rows that is kept", "width of the interval"
    picture = _Picture(title, subtitle, 1, what, height, log=False)
    axes = picture.axes
    for place, (name, widths) in enumerate(curves.items()):
        (width,) = _curves(len(shares), widths=widths)
        color = BLUE if place == len(curves) - 1 else LIGHT_BLUE
        axes.plot(shares, width, color=color, linewidth=2.2)
        picture.name(float(width[-1]), name, color)
    if level is not None:
        picture.level(level, level_name, INK)
    axes.set_xlim(0, 1)
    axes.set_ylim(0, None)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=10))
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    return picture.finished()


def _sight(
    scores: NDArray[np.float64], low: NDArray[np.float64], high: NDArray[np.float64], best: int
) -> tuple[float, float]:
    """The least and the largest value to draw, so that a few bad models do not flatten the rest.

    Tukey's outer fences: models further from the quartiles than three times their distance, or
    than three half intervals, are left out; the best never is.
    """
    first, third = np.quantile(scores, [0.25, 0.75])
    fence = 3 * max(third - first, float(np.median(np.maximum(high - scores, scores - low))))
    seen = (scores >= first - fence) & (scores <= third + fence)
    seen[best] = True
    return float(low[seen].min()), float(high[seen].max())


def pool_figure(
    values: ArrayLike,
    lows: ArrayLike,
    highs: ArrayLike,
    may_be_best: ArrayLike,
    *,
    baseline: float | None = None,
    metric: str,
    title: str,
    subtitle: str,
) -> Figure:
    """The scores of a pool of models, the best first, with their intervals, and a baseline.

    All arrays have shape (n_models,); `may_be_best` says which models may be the best, `baseline`
    is a dashed line.  Of more than 2,000 models so many are drawn, spread over the axis.
    """
    arrays = {"values": values, "lows": lows, "highs": highs, "may_be_best": may_be_best}
    scores, low, high, may_be = _curves(**arrays)
    best = may_be > 0
    what = "models, the best on the holdout first"
    picture = _Picture(title, subtitle, len(scores), what, metric)
    axes = picture.axes
    places = np.arange(len(scores))
    if len(scores) > _MOST_MARKS:
        places = np.unique(np.geomspace(1, len(scores), 2 * _MOST_MARKS).astype(np.int64)) - 1
    thin = 2.0 if len(places) <= 500 else 0.8
    for which, line, mark in ((~best[places], BAND, LIGHT_BLUE), (best[places], INNER_BAND, BLUE)):
        shown = places[which]
        axes.vlines(shown + 1.0, low[shown], high[shown], color=line, linewidth=thin)
        axes.plot(shown + 1.0, scores[shown], "o", color=mark, markersize=1.6 * thin)
    if best[0]:
        picture.name(scores[0], "may be the best", BLUE)
    if not best[-1]:
        picture.name(scores[-1], "not the best", LIGHT_BLUE)
    if baseline is not None:
        picture.level(baseline, "the baseline", INK)
    axes.set_ylim(*_sight(scores, low, high, 0))
    return picture.finished()


def plan_figure(
    sizes: ArrayLike,
    searches: Mapping[int, ArrayLike],
    guesses: ArrayLike,
    *,
    n_samples: int,
    epsilon: float | None,
    subtitle: str,
) -> Figure:
    """Half-widths against the number of samples, `sizes`, which increase.

    `searches` has for each size of a declared space the half-width of every answer, `guesses` the
    smallest epsilon at which a thousand guesses that pass are answered.  In either, nan stands for
    none; a curve that is nan throughout is not drawn.  `n_samples` and `epsilon`, the holdout in
    question, are a dot.  No curve at all is a ValueError.
    """
    (across,) = _curves(sizes=sizes)
    title, height = "How far every answer may be from its truth", "half-width (log scale)"
    picture = _Picture(title, subtitle, int(across[-1]), "held-out samples", height)
    axes = picture.axes
    axes.set_xlim(across[0], across[-1])
    axes.set_yscale("log")
    named = [
        *((f"{_power(size)} keys", curve, BLUE) for size, curve in searches.items()),
        ("guess and check:\n1,000 that pass", guesses, INK),
    ]
    for name, values, shade in named:
        (curve,) = _curves(curves=values)
        if len(curve) != len(across):
            raise ValueError(f"curves must be as long as sizes, {len(across)}, got {len(curve)}")
        if np.isfinite(curve).any():
            dashed = DASHED if shade == INK else "solid"
            axes.plot(across, curve, color=shade, linewidth=1.8, linestyle=dashed)
            picture.name(curve[np.isfinite(curve)][-1], name, shade)
    if not picture.names:
        raise ValueError("curves must hold a half-width that is not nan, got none")
    if epsilon is not None:
        axes.plot([n_samples], [epsilon], "o", color=RED, markersize=7, zorder=5)
        text, dot = f"{counted(n_samples, 'sample')},\nepsilon {epsilon:g}", (n_samples, epsilon)
        axes.annotate(text, dot, (8, 8), textcoords="offset points", color=RED, fontsize=10)
    picture.pad()
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axes.yaxis.set_minor_locator(NullLocator())
    return picture.finished()


def gate_figure(
    lines: Mapping[int, Sequence[tuple[int, float]]], *, height: str, subtitle: str
) -> Figure:
    """What passes a release gate against the number of the candidate.

    `lines` has for each count of passes before pairs of a candidate's number and what is needed,
    which `height` names.  ValueError: no line.
    """
    if not any(lines.values()):
        raise ValueError("lines must hold a candidate that can pass, got none")
    last = max(candidate for line in lines.values() for candidate, _ in line)
    title = "What a release gate asks of a candidate"
    picture = _Picture(title, subtitle, last, "candidate", height)
    axes = picture.axes
    axes.set_xscale("log", base=2)
    axes.set_xlim(0.95, max(2, last))
    for passes, line in sorted(lines.items()):
        candidates, needed = zip(*line, strict=True)
        axes.plot(candidates, needed, color=BLUE, linewidth=1.8, marker="o", markersize=3)
        picture.name(needed[-1], counted(passes, "pass", "passes") + " before", BLUE)
    axes.set_ylim(bottom=0)
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:,g}"))
    return picture.finished()


def _power(number: int) -> str:
    """A number as text: 1,000 as a power of ten, 1,234 as it is."""
    digits = str(number)
    if number >= 1000 and set(digits[1:]) == {"0"} and digits[0] == "1":
        return f"$10^{{{len(digits) - 1}}}$"
    return f"{number:,}"


def _curves(length: int | None = None, /, **named: ArrayLike) -> list[NDArray[np.float64]]:
    """Arrays of this length, or of that of the first."""
    curves = []
    for name, values in named.items():
        curve = np.asarray(values, dtype=np.float64)
        if curve.ndim != 1 or not len(curve):
            raise ValueError(f"{name} must have shape (n_queries,), got {curve.shape}")
        length = length or len(curve)
        if len(curve) != length:
            raise ValueError(
                f"{name} must have a value for each of {length} queries, got {len(curve)}"
            )
        curves.append(curve)
    return curves


def _coinciding(curves: Mapping[str, NDArray[np.float64]]) -> list[list[str]]:
    """Groups of curves that coincide as far as each goes, the longest first."""
    groups: list[list[str]] = []
    for name in sorted(curves, key=lambda name: -len(curves[name])):
        curve = curves[name]
        for group in groups:
            if np.array_equal(curves[group[0]][: len(curve)], curve):
                group.append(name)
                break
        else:
            groups.append([name])
    return groups


class _Picture:
    """The style of all figures: one pair of axes, queries from left to right, named curves."""

    def __init__(
        self,
        title: str,
        subtitle: str,
        n_queries: int,
        what: str,
        height: str = "",
        *,
        log: bool = True,
        with_halts: bool = False,
    ) -> None:
        self.figure = figure = Figure(figsize=(9, 5.2), dpi=160, facecolor="white")
        self.axes = axes = figure.add_axes((0.085, 0.12, 0.735, 0.64 if with_halts else 0.72))
        self.names: list[tuple[float, str, str]] = []  # where, what, and in which color
        figure.text(0.018, 0.935, title, fontsize=15, fontweight="bold", color=INK)
        figure.text(0.018, 0.885, subtitle, fontsize=10.5, color=FAINT)
        if log:
            axes.set_xscale("log")
        axes.set_xlim(0.9 if log else 0.5, n_queries + (1 if log else 0.5))  # room for a bar at 1
        axes.set_xlabel(f"{what} (log scale)" if log else what, color=INK)
        axes.set_ylabel(height, color=INK)
        if n_queries < 10:
            axes.xaxis.set_major_locator(FixedLocator(range(1, n_queries + 1)))
        elif log:
            axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if n_queries < 100 else (1,)))
        else:
            axes.xaxis.set_major_locator(MaxNLocator(nbins=7, steps=[1, 2, 5, 10], integer=True))
        axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.yaxis.set_major_locator(MaxNLocator(nbins=7, steps=[1, 2, 5, 10]))
        axes.tick_params(colors=INK, labelsize=10)
        axes.spines[["top", "right"]].set_visible(False)
        axes.spines[["left", "bottom"]].set_color(FAINT)

    def name(self, value: float, text: str, color: str) -> None:
        """Name a curve where it ends."""
        self.names.append((value, text, color))

    def level(self, value: float, text: str, color: str) -> None:
        """Draw a dashed line, and name it."""
        self.axes.axhline(value, color=color, linewidth=1.4, linestyle=DASHED)
        self.name(value, text, color)

    def pad(self) -> None:
        """Leave room below and above what was drawn."""
        self.axes.margins(y=0.06)
        self.axes.autoscale(axis="y")
        self.axes.autoscale_view()  # at once: names are placed by the limits

    def finished(self) -> Figure:
        """The figure, with the names at the right, within the axes and without overlap."""
        axes, names = self.axes, sorted(self.names)
        to_axes = axes.transScale + axes.transLimits
        wanted = [min(max(to_axes.transform((1, name[0]))[1], 0.0), 1.0) for name in names]
        heights = [_LINE_HEIGHT * (1 + text.count("\n")) for _, text, _ in names]
        right: dict[str, Any] = {"fontsize": 10, "va": "center", "transform": axes.transAxes}
        for y, (_, text, color) in zip(_spread(wanted, heights), names, strict=True):
            axes.text(1.015, y, text, color=color, **right)
        return self.figure


def _steps(*curves: NDArray[np.float64]) -> list[NDArray[np.float64]]:
    """Corners of step curves, first their queries: query i reaches from i to i + 1.

    Queries at which no curve changes have no corner: millions draw as fast as thousands.
    """
    changes = np.flatnonzero(np.any(np.diff(curves) != 0, axis=0)) + 1
    first = np.concatenate([[0], changes])
    edges = np.concatenate([first, [len(curves[0])]]) + 1.0
    return [np.repeat(edges, 2)[1:-1], *(np.repeat(curve[first], 2) for curve in curves)]


def _mark_halts(axes: Axes, halts: Mapping[str, int | None], n_queries: int) -> None:
    """A bar where each bound halts, named above the axes; those that answered all come last."""
    for bound, halt in halts.items():
        if halt is not None and not 1 <= halt <= n_queries:
            raise ValueError(f"halts must be in [1, {n_queries}], got {halt} for {bound}")
    bars = sorted((halt, bound) for bound, halt in halts.items() if halt is not None)
    labels = [f"{bound}\nhalts at {halt:,}" for halt, bound in bars]
    feet = [_share_of_width(axes, halt) for halt, _ in bars]
    rest = [bound for bound, halt in halts.items() if halt is None]
    if rest:
        verb = "answers" if len(rest) == 1 else "answer"
        labels.append(f"{', '.join(rest)}\n{verb} all {n_queries:,}")
        feet.append(1.0)
    widths = [_LETTER_WIDTH * (3 + max(map(len, label.split("\n")))) for label in labels]
    heads = _spread(feet, widths, low=-0.09, high=1.2)
    for head, label in zip(heads, labels, strict=True):
        axes.text(head, 1.05, label, color=INK, fontsize=10, ha="center", transform=axes.transAxes)
    for head, foot, _ in zip(heads, feet, bars, strict=False):
        for xs, ys, width in (([foot, foot], [0, 1], 1.8), ([foot, head], [1, 1.04], 0.9)):
            axes.plot(xs, ys, color=INK, lw=width, clip_on=False, transform=axes.transAxes)


def _share_of_width(axes: Axes, query: float) -> float:
    left, right = np.log(axes.get_xlim())
    return float((np.log(query) - left) / (right - left))


def _spread(
    wanted: Sequence[float], sizes: Sequence[float], low: float = 0.0, high: float = 1.0
) -> list[float]:
    """Centres nearest to the wanted ones, in order, at which labels of these sizes fit."""
    centres = list(wanted)
    edge = low
    for i, size in enumerate(sizes):
        centres[i] = max(centres[i], edge + size / 2)
        edge = centres[i] + size / 2
    edge = high
    for i in reversed(range(len(sizes))):
        centres[i] = min(centres[i], edge - sizes[i] / 2)
        edge = centres[i] - sizes[i] / 2
    return centres
