"""Draw docs/explanation/which-guard.svg, the decision tree: ``python docs/make/which_guard.py``.

One column, so that it can be read on a phone: questions in grey, guards in colour.
"""

from __future__ import annotations

from html import escape
from pathlib import Path

PICTURE = Path(__file__).parents[1] / "explanation" / "which-guard.svg"

# the question, in lines; then the guard for "yes", and what it says
TREE = [
    (
        ["Is a promise for the model at the end", "enough, not one for every score?"],
        "ConfirmedSearch",
        "an interval for each finalist; any search",
    ),
    (
        ["Can you write down all that may be", "tried, before any score is seen?"],
        "DeclaredSearch",
        "an interval for every score; never halts",
    ),
    (
        ["Can you fix the order of the models", "before any score is seen?"],
        "FixedSequence",
        "every score within epsilon, up to a halt",
    ),
    (
        ["Do you have a guess of each score", "that did not use the holdout?"],
        "GuessAndCheck",
        "every score within epsilon, up to a halt",
    ),
    (
        ["Can the search do with the best", "score so far, rounded?"],
        "DeclaredSearch over Improvements",
        "an interval for every score; never halts",
    ),
    (
        ["Do people compete for the best", "score alone?"],
        "Ladder",
        "the best score so far, within a half-width",
    ),
    (
        ["Do you release candidates, one after", "another, on one test set?"],
        "Gate",
        "for each candidate: passed or not",
    ),
]
LAST = ["No valid answer here: collect more data,", "or ask a smaller question."]

WIDTH, MARGIN, INDENT = 420, 12, 72
QUESTION, GUARD, GAP = 58, 56, 24  # heights
STEP = QUESTION + GAP + GUARD + GAP
INK, FAINT, LINE, PAPER, BLUE, PALE = "#1f2328", "#57606a", "#8c959f", "#fff", "#1a5fb4", "#e8f0fb"


def box(x: int, y: int, width: int, height: int, fill: str, stroke: str) -> str:
    return (
        f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="8" '
        f'fill="{fill}" stroke="{stroke}"/>'
    )


def text(x: int, y: int, words: str, size: int = 15, fill: str = INK, weight: str = "400") -> str:
    return (
        f'<text x="{x}" y="{y}" font-size="{size}" fill="{fill}" font-weight="{weight}">'
        f"{escape(words)}</text>"
    )


def arrow(path: str) -> str:
    return f'<path d="{path}" fill="none" stroke="{LINE}" stroke-width="1.5" marker-end="url(#a)"/>'


def branch(number: int, lines: list[str], guard: str, says: str) -> list[str]:
    """A question, its guard below to the right, and the two arrows that leave the question."""
    top = MARGIN + number * STEP
    below = top + QUESTION
    left, right = MARGIN + 24, MARGIN + INDENT
    guard_top = below + GAP
    return [
        box(MARGIN, top, WIDTH - 2 * MARGIN, QUESTION, "#f6f8fa", LINE),
        text(MARGIN + 12, top + 24, f"{number + 1}. {lines[0]}"),
        text(MARGIN + 30, top + 45, lines[1]),
        arrow(f"M {right + 24} {below} V {guard_top - 2}"),
        text(right + 34, below + 17, "yes", 14, FAINT),
        box(right, guard_top, WIDTH - MARGIN - right, GUARD, PALE, BLUE),
        text(right + 12, guard_top + 23, guard, 15, BLUE, "700"),
        text(right + 12, guard_top + 43, says, 14, INK),
        arrow(f"M {left} {below} V {top + STEP - 2}"),
        text(left + 8, below + 17, "no", 14, FAINT),
    ]


def picture() -> str:
    """Return the SVG."""
    top = MARGIN + len(TREE) * STEP
    height = top + QUESTION + MARGIN
    label = "; ".join(
        f"{number}. {' '.join(lines)} Yes: {guard}, {says}"
        for number, (lines, guard, says) in enumerate(TREE, 1)
    )
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
        f'viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(label)}" '
        'font-family="system-ui, -apple-system, Segoe UI, Roboto, Helvetica, Arial, sans-serif">',
        '<defs><marker id="a" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
        f'markerHeight="7" orient="auto"><path d="M0 0 8 4 0 8z" fill="{LINE}"/></marker></defs>',
        f'<rect width="{WIDTH}" height="{height}" rx="10" fill="{PAPER}"/>',
    ]
    for number, (lines, guard, says) in enumerate(TREE):
        parts += branch(number, lines, guard, says)
    parts += [
        box(MARGIN, top, WIDTH - 2 * MARGIN, QUESTION, "#f6f8fa", LINE),
        *(text(MARGIN + 12, top + 24 + 21 * row, line) for row, line in enumerate(LAST)),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


if __name__ == "__main__":
    PICTURE.write_text(picture(), encoding="utf-8")
