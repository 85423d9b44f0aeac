"""The page: budget left, scores with intervals, calls by team, the halt; one file, no script."""

from __future__ import annotations

import html
import math
import time
from collections.abc import Callable, Sequence
from itertools import count, takewhile

from radabound_fast._checks import counted
from radabound_fast.service.state import PageContent, Point
from radabound_fast.service.tokens import Team
from radabound_fast.spaces.messages import shown_key

_COLOURS = 6  # of teams; the others are grey
_LAST = 15  # answers in the table
# width, height, and how many answers, of the two pictures
_WIDE, _NARROW = (880, 300, 240), (360, 260, 60)
_LEFT, _RIGHT, _TOP, _BOTTOM = 54, 10, 12, 30

_STYLE = """
:root { color-scheme: light dark; --ground: #fcfcfa; --card: #ffffff; --ink: #1c2024;
  --soft: #5b6470; --line: #dcdfe3; --good: #1d7a46; --bad: #b3261e; --grey: #8a9099;
  --c0: #2563a8; --c1: #b4560f; --c2: #2f7d4f; --c3: #8b3fa0; --c4: #a32c4b; --c5: #5f6b12; }
@media (prefers-color-scheme: dark) { :root { --ground: #14171a; --card: #1c2024; --ink: #e8eaed;
  --soft: #a3abb5; --line: #343a41; --good: #63c98d; --bad: #f28b82; --grey: #8a9099;
  --c0: #7fb2ee; --c1: #f0a35e; --c2: #79cf9c; --c3: #d09be0; --c4: #f08aa5; --c5: #c3cf6c; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 960px; padding: 24px 20px 48px; background: var(--ground);
  color: var(--ink); font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans",
  sans-serif; }
h1 { font-size: 1.5rem; line-height: 1.25; margin: 0 0 2px; }
h2 { font-size: 1.05rem; margin: 32px 0 8px; }
p { margin: 0 0 8px; } .soft { color: var(--soft); }
.state { display: inline-block; border-radius: 99px; padding: 1px 12px; font-weight: 600;
  border: 1px solid currentColor; color: var(--good); }
.state.halted { color: var(--bad); }
.facts { display: grid; gap: 12px; margin: 20px 0 0;
  grid-template-columns: repeat(auto-fit, minmax(210px, 1fr)); }
.fact { background: var(--card); border: 1px solid var(--line); border-radius: 10px;
  padding: 12px 16px; }
.fact b { display: block; font-size: 1.15rem; font-weight: 600; }
.bar { height: 6px; border-radius: 3px; background: var(--line); margin-top: 8px;
  overflow: hidden; }
.bar i { display: block; height: 100%; background: var(--good); }
figure { margin: 0; background: var(--card); border: 1px solid var(--line); border-radius: 10px;
  padding: 12px; }
svg { display: block; width: 100%; height: auto; } .narrow { display: none; }
svg text { fill: var(--soft); font-size: 12px; font-family: inherit; }
svg .grid { stroke: var(--line); } figure p, figcaption { color: var(--soft); font-size: .875rem;
  margin: 0; } .team { white-space: nowrap; margin-right: 16px; }
.t0 { --c: var(--c0); } .t1 { --c: var(--c1); } .t2 { --c: var(--c2); } .t3 { --c: var(--c3); }
.t4 { --c: var(--c4); } .t5 { --c: var(--c5); } .tx { --c: var(--grey); }
.mark line { stroke: var(--c); stroke-width: 1.5; opacity: .45; } .mark circle { fill: var(--c); }
.key { display: inline-block; width: 10px; height: 10px; border-radius: 5px;
  background: var(--c); margin-right: 6px; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th { text-align: left; font-weight: 600; color: var(--soft); font-size: .875rem; }
th, td { padding: 6px 20px 6px 0; border-bottom: 1px solid var(--line); white-space: nowrap; }
th:last-child, td:last-child { padding-right: 0; }
td.wide { white-space: normal; overflow-wrap: anywhere; min-width: 8em; }
.n { text-align: right; }
@media (max-width: 620px) { .wide-only { display: none; } .narrow { display: block; }
  body { padding: 16px 14px 40px; } }
"""


def page(team: Team, content: PageContent) -> str:
    """HTML of the page for a team or the owner."""
    return "".join(
        [
            '<!doctype html><html lang="en"><head><meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            f"<title>Holdout of {content.n_samples:,} rows</title><style>{_STYLE}</style></head>"
            "<body>",
            _heading(team, content),
            _facts(team, content),
            _finalist_table(content),
            _verdict_table(team, content) if content.verdicts else _figure(team, content),
            _team_table(team, content),
            _answer_table(team, content),
            _footer(content),
            "</body></html>",
        ]
    )


def _heading(team: Team, content: PageContent) -> str:
    state = '<span class="state">answering</span>'
    if content.halted:
        state = '<span class="state halted">halted</span>'
    return (
        f"<h1>Holdout of {content.n_samples:,} rows</h1>"
        f'<p class="soft">{html.escape(content.kind)}, {html.escape(content.metric)}; seen as '
        f"{html.escape(team.name)}</p><p>{state}</p>"
    )


def _facts(team: Team, content: PageContent) -> str:
    facts = [("Answers given", f"{content.n_answered:,}", None), *content.left]
    cards = []
    for title, text, share in facts:
        bar = ""
        if share is not None:
            bar = f'<div class="bar"><i style="width:{100 * min(max(share, 0), 1):.1f}%"></i></div>'
        cards.append(
            f'<div class="fact"><span class="soft">{html.escape(title)}</span>'
            f"<b>{html.escape(text)}</b>{bar}</div>"
        )
    return f'<div class="facts">{"".join(cards)}</div>'


# ---- the picture -----------------------------------------------------------------------------


def _figure(team: Team, content: PageContent) -> str:
    whose = "Scores" if team.is_owner else "Your scores"
    if not content.points:
        return f'<h2>{whose}</h2><figure><p class="soft">Nothing was answered yet.</p></figure>'
    colour_of = _colours(content)
    legend = ""
    if team.is_owner and len(content.askers) > 1:
        legend = "".join(
            f'<span class="team {colour_of(name)}"><span class="key"></span>'
            f"{html.escape(name)}</span>"
            for name in content.askers
        )
    pictures = "".join(
        f'<div class="{kind}">{_picture(content.points[-most:], colour_of, width, height)}'
        f"<p>{_caption(team, content, most)}</p></div>"
        for kind, (width, height, most) in (("wide-only", _WIDE), ("narrow", _NARROW))
    )
    return f"<h2>{whose}</h2><figure>{pictures}<figcaption>{legend}</figcaption></figure>"


def _caption(team: Team, content: PageContent, most: int) -> str:
    n, whose = min(len(content.points), most), "" if team.is_owner else " of yours"
    n_all = content.askers[team.name].n_answers if not team.is_owner else content.n_answered
    which = f"Every answer{whose}" if n >= n_all else f"The last {counted(n, 'answer')}{whose}"
    return f"{which}, with the interval of each."


def _colours(content: PageContent) -> Callable[[str], str]:
    places = {name: place for place, name in enumerate(content.askers)}
    return lambda name: f"t{place}" if (place := places.get(name, 99)) < _COLOURS else "tx"


def _picture(points: list[Point], colour_of: Callable[[str], str], width: int, height: int) -> str:
    """A scatter plot of scores against the numbers of the answers."""
    ends = [end for point in points for end in (point.value, point.low, point.high)]
    ends = [end for end in ends if math.isfinite(end)]
    least, largest = min(ends), max(ends)
    room = 0.06 * (largest - least) or 0.01
    least, largest = least - room, largest + room
    first, last = points[0].number, points[-1].number

    def x(number: float) -> float:
        share = 0.5 if last == first else (number - first) / (last - first)
        return _LEFT + 8 + share * (width - _LEFT - _RIGHT - 16)

    def y(value: float) -> float:
        return _TOP + (largest - value) / (largest - least) * (height - _TOP - _BOTTOM)

    parts = []
    values, digits = _ticks(least, largest)
    for value in values:
        at = f"{y(value):.1f}"
        parts.append(
            f'<line class="grid" x1="{_LEFT}" x2="{width - _RIGHT}" y1="{at}" y2="{at}"/>'
            f'<text x="{_LEFT - 6}" y="{y(value) + 4:.1f}" text-anchor="end">'
            f"{value:.{digits}f}</text>"
        )
    for number in sorted({first, (first + last) // 2, last}):
        parts.append(
            f'<text x="{x(number):.1f}" y="{height - 8}" text-anchor="middle">{number:,}</text>'
        )
    radius = 3 if len(points) < 100 else 2
    for point in points:
        parts.append(_mark(point, colour_of(point.team), x(point.number), y, radius))
    title = f"{counted(len(points), 'score')} with intervals, from {least:.3f} to {largest:.3f}"
    return (
        f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="{title}">'
        f"{''.join(parts)}</svg>"
    )


def _mark(point: Point, colour: str, x: float, y: Callable[[float], float], radius: int) -> str:
    interval = ""
    if math.isfinite(point.low) and math.isfinite(point.high):
        interval = (
            f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{y(point.low):.1f}" y2="{y(point.high):.1f}"/>'
        )
    return (
        f'<g class="mark {colour}"><title>{html.escape(_tooltip(point))}</title>{interval}'
        f'<circle cx="{x:.1f}" cy="{y(point.value):.1f}" r="{radius}"/></g>'
    )


def _tooltip(point: Point) -> str:
    text = f"{point.number:,}: {point.value:.4f}"
    if math.isfinite(point.low) and math.isfinite(point.high):
        text += f", between {point.low:.4f} and {point.high:.4f}"
    return f"{text} ({point.team})"


def _ticks(least: float, largest: float) -> tuple[list[float], int]:
    """Three to seven round values in a range, and their digits."""
    rough = (largest - least) / 6
    power = math.floor(math.log10(rough))
    step = next(one for one in (1, 2, 5, 10) if one * 10.0**power >= rough) * 10.0**power
    first = math.ceil(least / step)
    values = takewhile(lambda value: value <= largest, (n * step for n in count(first)))
    return list(values), max(0, -math.floor(math.log10(step) + 1e-9))


# ---- tables ------------------------------------------------------------------------------------


def _finalist_table(content: PageContent) -> str:
    """The private board of a competition that has ended, the best on top."""
    if not content.finalists:
        return ""
    rows = [
        [
            html.escape(one.name),
            *map(_score, (one.value, one.low, one.high)),
            "&ndash;" if one.search_value is None else _score(one.search_value),
        ]
        for one in content.finalists
    ]
    names = ["Finalist", "Confirmed", "Low", "High", "Score before"]
    return f"<h2>Finalists, on rows kept for the end</h2>{_html_table(names, rows, (1, 2, 3, 4))}"


def _team_table(team: Team, content: PageContent) -> str:
    if not content.askers:
        return ""
    colour_of = _colours(content)
    rows = [
        [
            f'<span class="{colour_of(name)}"><span class="key"></span>{html.escape(name)}</span>',
            f"{asker.n_calls:,}", f"{asker.n_answers:,}", f"{asker.n_today:,}",
        ]
        for name, asker in content.askers.items()
    ]  # fmt: skip
    head = "Who asked how often" if team.is_owner else "How often you asked"
    names = ["Team", "Calls", "Answers", "Today (UTC)"]
    return f"<h2>{head}</h2>{_html_table(names, rows, numbers=(1, 2, 3))}"


def _answer_table(team: Team, content: PageContent) -> str:
    if not content.points:
        return ""
    keyed = any(point.key is not None for point in content.points)
    names = ["Number", "Score", "Low", "High", *["Team"] * team.is_owner, "When (UTC)"]
    names += ["Model"] * keyed
    rows = []
    for point in reversed(content.points[-_LAST:]):
        row = [f"{point.number:,}"]
        row += [_score(value) for value in (point.value, point.low, point.high)]
        row += [html.escape(point.team)] * team.is_owner
        row.append(_when(point.second))
        if keyed:
            row.append(html.escape(shown_key(point.key)))
        rows.append(row)
    last = f"The last {counted(len(rows), 'answer')}"
    return f"<h2>{last}</h2>{_html_table(names, rows, numbers=(0, 1, 2, 3))}"


def _verdict_table(team: Team, content: PageContent) -> str:
    names = ["Candidate", "Verdict", "Compared with", *["Team"] * team.is_owner, "When (UTC)"]
    rows = []
    for verdict in reversed(content.verdicts[-_LAST:]):
        other = {None: "&ndash;", 0: "the baseline"}.get(verdict.compared_with)
        row = [f"{verdict.number:,}", html.escape(verdict.verdict)]
        row.append(other or f"candidate {verdict.compared_with:,}")
        row += [html.escape(verdict.team)] * team.is_owner
        row.append(_when(verdict.second))
        rows.append(row)
    head = "Verdicts" if team.is_owner else "Your verdicts"
    return f"<h2>{head}</h2>{_html_table(names, rows, numbers=(0,))}"


def _when(second: int) -> str:
    return time.strftime("%b %d, %H:%M:%S", time.gmtime(second))


def _score(value: float) -> str:
    return f"{value:.4f}" if math.isfinite(value) else "&ndash;"


def _html_table(names: Sequence[str], rows: list[list[str]], numbers: tuple[int, ...]) -> str:
    def line(cells: Sequence[str], tag: str) -> str:
        kinds = ["n" if place in numbers else "" for place in range(len(cells))]
        if names[-1] == "Model" and tag == "td":
            kinds[-1] = "wide"
        return "".join(
            f'<{tag} class="{kind}">{cell}</{tag}>' for cell, kind in zip(cells, kinds, strict=True)
        )

    body = "".join(f"<tr>{line(row, 'td')}</tr>" for row in rows)
    return (
        f'<div class="scroll"><table><thead><tr>{line(names, "th")}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def _footer(content: PageContent) -> str:
    parameters = ", ".join(
        f"{name} = {value}"
        for name, value in content.parameters.items()
        if value is not None and name not in ("n_samples", "space")
    )
    return (
        f"<h2>What holds</h2><p>{html.escape(content.guarantee)}</p>"
        f'<p class="soft">{html.escape(parameters)}</p>'
    )
