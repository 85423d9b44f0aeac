"""The figures, in the style of `radabound_fast.plots`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from radabound_fast._extras import needs
from radabound_fast.experiments import attack, sample_sizes, searches, section5
from radabound_fast.experiments.runner import Row, column, grouped

with needs("reproduce"):
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter, StrMethodFormatter

    from radabound_fast.plots import ALARM, BLUE, DASHED, FAINT, INK, LIGHT_BLUE, RED

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BAND = "#dcefd8"  # green, as in the paper
# so that curves that coincide are all seen, the widest is drawn first; others are 2 points wide
WIDTHS = {"fixed-sequence": 7.5, "mclt": 5.5, "bernstein": 3.5, "bernstein-split": 1.6}
GREEN, LIGHT_GREEN, PALE_GREEN = "#1d7d46", "#57b27c", "#9bd4b1"
ORANGE, PURPLE, GREY = "#e08a1e", "#7b4fa3", "#8a8a8a"
SHADES = {
    "bernstein": BLUE,
    "bernstein-split": LIGHT_BLUE,
    "mclt": RED,
    "fixed-sequence": ORANGE,
    "guess and check": GREEN,
    "guess and check, guesses off by .005": GREEN,
    "guess and check, guesses off by .02": LIGHT_GREEN,
    "guess and check, attacker's guesses": PALE_GREEN,
    "Ladder, step .01": PURPLE,
    "Thresholdout": GREY,
    "no guard": INK,
}


def section5_figure(
    number: int, search: section5.Search, seed: int, lines: Sequence[Row]
) -> Figure:
    """One of Figures 1 to 6: one search above, all of them below; a column for each bound.

    `search` is the one that is shown, `seed` that of the signs that it is replayed under, and
    `lines` is ``section5.summary(number, ...)``.
    """
    setting = section5.FIGURES[number]
    signal = f"bias {setting.model.bias:g} in 50 features" if setting.model.bias else "no signal"
    figure, grid = _figure(
        (12, 9.9),
        f"Figure {number}: {signal}, features from N(0, {setting.model.variance:g}), "
        f"delta = {setting.delta:g}",
        "Top: the first search. Accuracy of the best classifier so far on the holdout (blue) and "
        "on fresh data (red, with green ± the epsilon of the\nnext bar; orange: outside it). A bar "
        f"where each epsilon halts the search. Below: {lines[0]['repeats']} searches.",
        *(3, 2),
        left=0.085,
        top=2.0,
        height_ratios=[1.8, 1, 1],
    )
    for panels, letter, bound in zip(grid.T, "ab", setting.epsilons, strict=True):
        own = [line for line in lines if line["bound"] == bound]
        panels[0].set_title(f"({letter}) {bound}", loc="left", fontsize=12, color=INK, pad=44)
        _draw_search(panels[0], number, bound, search, seed)
        _draw_halts(panels[1], own)
        _draw_shares(panels[2], own)
    return figure


def _draw_search(axes: Axes, number: int, bound: str, search: section5.Search, seed: int) -> None:
    n = section5.N_QUERIES
    queries = np.arange(1, n + 1)
    holdout, fresh = search.best_accuracies()
    start = 0
    labels: dict[int, list[str]] = {}
    epsilons = section5.FIGURES[number].epsilons[bound]
    for epsilon in epsilons:
        n_answered = section5.answered(search, number, bound, epsilon, seed)
        # up to the bar; the last epsilon's band goes on to the end
        end = n if epsilon == epsilons[-1] else max(start, min(n_answered + 1, n))
        part = slice(max(start - 1, 0), end)
        low, high = fresh[part] - epsilon, fresh[part] + epsilon
        filled: dict[str, Any] = {"step": "post", "linewidth": 0}
        axes.fill_between(queries[part], low, high, color=BAND, **filled)
        over = holdout[part] > high
        axes.fill_between(queries[part], high, holdout[part], where=over, color=ALARM, **filled)
        start = end
        labels.setdefault(n_answered, []).append(f"{epsilon:g}".lstrip("0"))
    axes.step(queries, fresh, where="post", color=RED, linewidth=1.8)
    axes.step(queries, holdout, where="post", color=BLUE, linewidth=1.8)
    for place, (n_answered, names) in enumerate(sorted(labels.items())):
        never = n_answered == n
        if not never:
            axes.axvline(n_answered + 1, color=INK, linewidth=1.2)
        axes.text(
            min(n_answered + 1, n),
            1.02 + 0.06 * (place % 3),
            ", ".join(names) + (" never" if never else ""),
            transform=axes.get_xaxis_transform(),
            ha="right" if never else "center",
            fontsize=9,
            color=INK,
        )
    axes.set_ylabel("accuracy", color=INK)
    axes.set_xlabel("queries (log scale)", color=INK, labelpad=1)
    _log(axes.xaxis)
    axes.set_xlim(0.9, n + 1)


def _draw_halts(axes: Axes, lines: Sequence[Row]) -> None:
    places = np.arange(len(lines))
    low, middle, high = (
        column(lines, f"halt_{name}") for name in ("lower_quartile", "median", "upper_quartile")
    )
    axes.vlines(places, low, high, color=LIGHT_BLUE, linewidth=7)
    axes.plot(places, middle, "o", color=BLUE, markersize=6)
    for place, line in zip(places, lines, strict=True):
        _beside(axes, f"{line['halt_median']:,}", place, float(line["halt_median"]), INK)
    _log(axes.yaxis)
    axes.set_ylim(0.9, 1.3 * section5.N_QUERIES)
    axes.set_ylabel("halting query:\nmedian, quartiles", color=INK)
    _name_epsilons(axes, lines)


def _draw_shares(axes: Axes, lines: Sequence[Row]) -> None:
    delta = float(lines[0]["delta"])
    for place, line in enumerate(lines):
        color = RED if line["passes_delta"] == "yes" else GREEN
        low, high = float(line["off_low"]), float(line["off_high"])
        axes.vlines(place, low, high, color=color, linewidth=1.6)
        axes.plot(place, float(line["off"]), "o", color=color, markersize=6)
        _beside(axes, f"{line['off']:.3f}", place, float(line["off"]), color)
    axes.axhline(delta, color=INK, linewidth=1.2, linestyle=DASHED)
    axes.text(-0.58, delta, f"delta = {delta:g}", va="bottom", fontsize=9, color=INK)
    axes.set_ylim(-0.02, max(0.3, 1.08 * max(column(lines, "off_high"))))
    axes.set_ylabel("share of searches told\nan error off by more\nthan epsilon", color=INK)
    axes.set_xlabel("epsilon (red: the share passes delta)", color=INK, labelpad=1)
    _name_epsilons(axes, lines)


def _beside(axes: Axes, text: str, place: Any, value: float, color: str) -> None:
    box = {"facecolor": "white", "edgecolor": "none", "pad": 0.5}
    near: dict[str, Any] = {"xytext": (8, -3), "textcoords": "offset points", "bbox": box}
    axes.annotate(text, (place, value), fontsize=9, color=color, **near)


def _name_epsilons(axes: Axes, lines: Sequence[Row]) -> None:
    axes.set_xticks(range(len(lines)), [f"{line['epsilon']:g}" for line in lines])
    axes.set_xlim(-0.6, len(lines) - 0.4)


def attack_figure(lines: Sequence[Row]) -> Figure:
    """Share of runs that are off against the number of classifiers, a panel for each epsilon.

    `lines` is ``attack.summary(...)``.
    """
    figure, grid = _figure(
        (12, 8),
        "The vote of k random classifiers, weighted by what was reported",
        f"m = {searches.N_SAMPLES:,}, delta = {searches.DELTA:g}, {lines[0]['repeats']} runs. "
        "Share of runs in which a returned answer was off by more than\nepsilon. A curve falls "
        "where the holdout is spent before the vote is asked. Where curves coincide, the wider "
        "ones show.",
        *(2, 3),
        bottom=0.17,
    )
    panels = dict(zip(attack.EPSILONS, grid.flat, strict=True))
    for tolerated, axes in panels.items():
        axes.axhline(searches.DELTA, color=INK, linewidth=1.2, linestyle=DASHED)
        axes.set_title(f"epsilon = {tolerated:g}", loc="left", fontsize=11, color=INK)
        axes.set_ylim(-0.04, 1.06)
        axes.set_xlabel("k (log scale)", color=INK, labelpad=1)
        _log(axes.xaxis)
    groups: dict[Any, list[Row]] = grouped(lines, "mechanism", "epsilon")
    curves = [(*key, runs) for key, runs in groups.items()]
    for mechanism, epsilon, runs in sorted(curves, key=lambda curve: -WIDTHS.get(curve[0], 2)):
        style = {"color": SHADES[mechanism], "linewidth": WIDTHS.get(mechanism, 2)}
        panels[epsilon].plot(column(runs, "k"), column(runs, "off"), label=mechanism, **style)
    _legend(figure, grid.flat[0], n_columns=4)
    return figure


def searches_figure(rows: Sequence[Row], title: str) -> Figure:
    """Gap between truth and report of the best candidate, a panel for each data set and epsilon.

    `rows` are those of the cells, with the columns data, epsilon, mechanism, told, truth, off,
    halted.
    """
    panels = grouped(rows, "epsilon", "data")
    epsilons, names = (list(dict.fromkeys(keys)) for keys in zip(*panels, strict=True))
    size = (12.4, 1.7 + 3.1 * len(names))
    figure, grid = _figure(
        size,
        title,
        "A dot for each holdout: how far the best candidate's true error lies above the error "
        "reported.\nRight: holdouts with an answer off by more than epsilon (dashed; red if more "
        "than delta = .1 of them), and holdouts spent.",
        *(len(names), len(epsilons)),
        left=1.9 / size[0],
        bottom=0.55 / size[1],
    )
    for row, name in zip(grid, names, strict=True):
        for axes, epsilon in zip(row, epsilons, strict=True):
            axes.set_title(f"{name}, epsilon = {epsilon:g}", loc="left", fontsize=11, color=INK)
            axes.axvline(100 * float(epsilon), color=INK, linewidth=1.2, linestyle=DASHED)
            axes.axvline(0, color=FAINT, linewidth=0.8)
            _draw_gaps(axes, panels[epsilon, name], labelled=axes is row[0])
    return figure


def _draw_gaps(axes: Axes, rows: Sequence[Row], *, labelled: bool) -> None:
    mechanisms = grouped(rows, "mechanism")
    for place, ((mechanism,), runs) in enumerate(mechanisms.items()):
        gaps = 100 * np.subtract(column(runs, "truth"), column(runs, "told"))
        heights = place + np.linspace(-0.22, 0.22, len(runs))
        axes.plot(gaps, heights, "o", color=SHADES[str(mechanism)], markersize=3, alpha=0.8)
        off, halted = sum(column(runs, "off")), sum(column(runs, "halted"))
        axes.text(
            1.01,
            place,
            f"{off:.0f} off, {halted:.0f} spent",
            transform=axes.get_yaxis_transform(),
            va="center",
            fontsize=8,
            color=RED if off > searches.DELTA * len(runs) else INK,
        )
    axes.set_yticks(
        range(len(mechanisms)), [str(name) if labelled else "" for (name,) in mechanisms]
    )
    axes.invert_yaxis()
    axes.set_xlabel("true error less error reported, points", color=INK, labelpad=1)


def sample_size_figure() -> Figure:
    """Section VI: samples needed against k, and against epsilon."""
    figure, grid = _figure(
        (12, 6),
        "Samples needed to answer k adaptive queries within epsilon",
        f"delta = {sample_sizes.DELTA:g}. Dashed: the 4,000 of Section V.",
        *(1, 2),
        bottom=0.24,
    )
    ks = np.unique(np.geomspace(10, 10_000, 40).round().astype(int)).tolist()
    epsilons = np.geomspace(0.02, 0.2, 40).tolist()
    left, right = grid[0]
    for axes, places, sizes in (
        (left, ks, [sample_sizes.needed(k, sample_sizes.EPSILON) for k in ks]),
        (right, epsilons, [sample_sizes.needed(1000, epsilon) for epsilon in epsilons]),
    ):
        for name, (label, style) in _SIZES.items():
            axes.plot(places, [size[name] for size in sizes], label=label, linewidth=2, **style)
        axes.axhline(section5.N_SAMPLES, color=INK, linewidth=1.2, linestyle=DASHED)
        axes.set_xscale("log")
        axes.set_yscale("log")
    left.set_title(f"epsilon = {sample_sizes.EPSILON:g}", loc="left", fontsize=11, color=INK)
    left.set_xlabel("k", color=INK)
    left.set_ylabel("samples", color=INK)
    _log(left.xaxis)
    right.set_title("k = 1,000", loc="left", fontsize=11, color=INK)
    right.set_xlabel("epsilon", color=INK)
    right.set_xticks([0.02, 0.05, 0.1, 0.2], ["0.02", "0.05", "0.1", "0.2"])
    right.xaxis.set_minor_formatter(FuncFormatter(lambda *_: ""))
    _legend(figure, left, n_columns=3)
    return figure


_SIZES: dict[str, tuple[str, dict[str, Any]]] = {
    "thresholdout_printed_B_k": ("Thresholdout, B = k, as printed", {"color": GREY, "ls": ":"}),
    "thresholdout_theorem_B_k": ("Thresholdout, B = k", {"color": GREY}),
    "thresholdout_theorem_B_1": ("Thresholdout, B = 1 (printed: the same)", {"color": INK}),
    "sample_splitting": ("new samples for each query", {"color": ORANGE}),
    "guess_and_check_all_fail": ("guess and check, all guesses fail", {"color": PALE_GREEN}),
    "ladder": ("Ladder (best score only)", {"color": PURPLE}),
    "guess_and_check_1_fails": ("guess and check, one fails", {"color": LIGHT_GREEN}),
    "guess_and_check_all_pass": ("guess and check, all pass", {"color": GREEN}),
}


def _figure(
    size: tuple[float, float],
    title: str,
    subtitle: str,
    n_rows: int,
    n_columns: int,
    *,
    left: float = 0.07,
    bottom: float = 0.08,
    top: float = 1.3,
    height_ratios: Sequence[float] | None = None,
) -> tuple[Figure, Any]:
    """Panels under a title, in one style; `top` in inches, other margins as shares."""
    figure = Figure(figsize=size, dpi=120, facecolor="white")
    inch = 1 / size[1]
    figure.text(0.012, 1 - 0.33 * inch, title, fontsize=15, fontweight="bold", color=INK)
    figure.text(0.012, 1 - 0.46 * inch, subtitle, fontsize=10, color=FAINT, va="top")
    grid = figure.subplots(
        n_rows,
        n_columns,
        squeeze=False,
        gridspec_kw={"height_ratios": height_ratios} if height_ratios else None,
    )
    figure.subplots_adjust(
        left=left, right=0.925, bottom=bottom, top=1 - top * inch, hspace=0.36, wspace=0.3
    )
    for axes in grid.flat:
        axes.tick_params(colors=INK, labelsize=9)
        axes.spines[["top", "right"]].set_visible(False)
        axes.spines[["left", "bottom"]].set_color(FAINT)
    return figure, grid


def _log(axis: Any) -> None:
    axis.axes.set(**{f"{axis.axis_name}scale": "log"})
    axis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    axis.set_minor_formatter(FuncFormatter(lambda *_: ""))


def _legend(figure: Figure, axes: Axes, n_columns: int) -> None:
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncols=n_columns, fontsize=9, frameon=False)
