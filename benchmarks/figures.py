"""The plots of RESULTS.md, as SVG."""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("svg")
from matplotlib import pyplot as plt  # noqa: E402

Rows = list[dict[str, str]]

# table, what is on the x axis, its label, title
FIGURES = {
    "samples": ("n_samples", "samples m", "32 vectors, blocks of queries"),
    "vectors": ("n_vectors", "vectors l", "m = 4000, blocks of queries"),
    "rows": ("n_rows", "queries in a call", "m = 4000, l = 256"),
    "threads": ("n_threads", "threads", "m = 4000"),
    "growth": ("", "", ""),
}
COLOURS = {
    "ours": "#0072B2",
    "ours, 8192 rows": "#56B4E9",
    "register-only limit": "#000000",
    "numkong": "#D55E00",
    "simsimd": "#E69F00",
    "faiss": "#009E73",
    "numba": "#CC79A7",
}
GROWTH = {"n_samples": "m", "n_vectors": "l", "n_rows": "k"}


def draw(rows: Rows, name: str, caches: dict[str, int], path: Path) -> Path | None:
    """Draws a figure; None if there is nothing to draw.  `caches`: their bytes, to mark edges."""
    with plt.rc_context({"svg.hashsalt": name, "svg.fonttype": "none", "font.size": 9}):
        figure = _growth(rows, caches) if name == "growth" else _throughput(rows, name)
        if figure is None:
            return None
        figure.savefig(path, metadata={"Date": None})
        plt.close(figure)
    return path


def _throughput(rows: Rows, name: str) -> plt.Figure | None:
    key, label, title = FIGURES[name]
    rows = [row for row in rows if row["table"] == name]
    lines: dict[str, list[tuple[float, float]]] = {}
    for row in rows:
        contestant = f"l = {row['n_vectors']}" if name == "threads" else row["contestant"]
        signs = int(row["n_samples"]) * int(row["n_vectors"])
        point = float(row[key]), signs / float(row["ns_per_query"])
        lines.setdefault(contestant, []).append(point)
    lines = {contestant: line for contestant, line in lines.items() if len(line) > 1}
    if not lines:
        return None
    figure, axes = plt.subplots(figsize=(6, 3.6), layout="constrained")
    for contestant, line in lines.items():
        ours = contestant.startswith("ours")
        limit = contestant == "register-only limit"
        axes.plot(
            *zip(*line, strict=True),
            label=contestant,
            color=COLOURS.get(contestant),
            linestyle="--" if limit else "-",
            linewidth=2.2 if ours else 1.2,
            marker=None if limit else "o",
            markersize=3,
        )
    axes.set_ylim(bottom=0)
    if name == "threads":
        axes.set_xticks(sorted({float(row[key]) for row in rows}))
    else:
        axes.set_xscale("log")
    axes.set(xlabel=label, ylabel="signed losses per ns", title=title)
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)
    return figure


def _growth(rows: Rows, caches: dict[str, int]) -> plt.Figure | None:
    """Picoseconds for a sign: a flat line is linear growth."""
    figure, axes = plt.subplots(1, 3, figsize=(9, 3), layout="constrained", sharey=True)
    drawn = 0
    for panel, (key, symbol) in zip(axes, GROWTH.items(), strict=True):
        line = [row for row in rows if row["table"] == f"growth of {key}"]
        if not line:
            continue
        drawn += 1
        signs = [_whole(row["n_vectors"], 8) * _whole(row["n_samples"], 64) for row in line]
        cost = [1000 * float(row["ns_per_query"]) / n for row, n in zip(line, signs, strict=True)]
        at = [float(row[key]) for row in line]
        panel.loglog(at, cost, "o-", color=COLOURS["ours"], markersize=3)
        panel.set(xlabel=symbol)
        panel.grid(alpha=0.3)
        fixed = [f"{s} = {line[-1][k]}" for k, s in GROWTH.items() if k != key]
        panel.set_title(", ".join(fixed), fontsize=9)
        other = _whole(line[-1]["n_vectors"], 8) if key == "n_samples" else 0
        bits = other or _whole(line[-1]["n_samples"], 64)
        for name, size in caches.items():
            if at[0] < 8 * size / bits < at[-1]:
                panel.axvline(8 * size / bits, color="grey", linestyle=":", linewidth=1)
                panel.text(8 * size / bits, max(cost), name, fontsize=7, color="grey", ha="right")
    axes[0].set_ylabel("ps a sign")
    if not drawn:
        plt.close(figure)
        return None
    return figure


def _whole(count: str, unit: int) -> int:
    """Rounded up to what the kernels work on."""
    return -(-int(count) // unit) * unit
