"""The page: the best on top, what is left, what to do now; escaped, and for its viewer alone."""

import html.parser
import math
import re

import numpy as np
import pytest
from serving import A_DAY, in_thread, octets_of, serve

from radabound_fast import (
    ConfirmedSearch,
    DeclaredSearch,
    FixedSequence,
    Gate,
    GuessAndCheck,
    Holdout,
    Ladder,
    RadaBound,
)
from radabound_fast.service import page as page_module
from radabound_fast.service.competition import Competition

M = 1001
RNG = np.random.default_rng(7)
Y = RNG.integers(0, 2, M)
# the best is the fourth
ROWS = [np.where(RNG.random(M) < error, 1 - Y, Y) for error in (0.3, 0.25, 0.4, 0.1, 0.2, 0.3)]
FIXED = {"epsilon": 0.1, "delta": 0.1, "seed": 1}


class Page(html.parser.HTMLParser):
    """Tags of a page, those that are not closed, links, texts by the tag and class around them."""

    void = {"meta", "line", "circle", "br"}

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.links, self.texts = [], [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.links += [value for name, value in attrs if name in ("src", "href", "action")]
        self.links += [name for name, _ in attrs if name.startswith("on")]
        if tag not in self.void:
            self.open.append((tag, dict(attrs).get("class") or ""))

    def handle_endtag(self, tag):
        if tag not in self.void:
            assert self.open.pop()[0] == tag

    def handle_data(self, data):
        if data.strip() and self.open[-1][0] != "style":
            self.texts.append((*self.open[-1], " ".join(data.split())))

    def of(self, tag, kind=None):
        """The texts in tags of this name, and of this class."""
        return [text for t, k, text in self.texts if t == tag and kind in (None, *k.split())]

    @property
    def columns(self):
        return self.of("th")


def page_of(service, team="red"):
    status, headers, body = service.send("GET", "/", team=team)
    assert status == 200 and "default-src 'none'" in headers["content-security-policy"]
    return Page(body.decode())


GUARDS = {
    "RadaBound": (RadaBound, (Y,), {"epsilon": 0.08, "delta": 0.1, "bound": "mclt", "seed": 1}),
    "FixedSequence": (FixedSequence, (Y,), FIXED),
    "the union alone": (
        FixedSequence, (Holdout(Y, metric="accuracy"),), {"epsilon": 0.1, "delta": 0.1}),
    "DeclaredSearch": (DeclaredSearch, (Y, 80), {"delta": 0.1}),
    "of a mapping": (DeclaredSearch, (Y, {"depth": range(20)}), {"delta": 0.1}),
    "accuracy": (DeclaredSearch, (Holdout(Y, metric="accuracy"), 80), {"delta": 0.1}),
    "Ladder": (Ladder, (Y, 0.01), {"delta": 0.1, "max_queries": 6}),
    "GuessAndCheck": (GuessAndCheck, (Y,), {"epsilon": 0.1, "delta": 0.1}),
    "Gate": (Gate, (Y,), {"baseline": ROWS[0], "n_candidates": 6}),
    "ConfirmedSearch": (ConfirmedSearch, (Y,), {"delta": 0.1, "seed": 1}),
}  # fmt: skip


def opened(path, name):
    kind, judged, parameters = GUARDS[name]
    judged = [one.apart() if isinstance(one, Holdout) else one for one in judged]
    guard = kind.open(path, *judged, **parameters)
    return Competition(guard, 2) if kind is ConfirmedSearch else guard


def ask(service, name, row, number, team="red"):
    brought = {
        "DeclaredSearch": {"key": number}, "accuracy": {"key": number},
        "of a mapping": {"key": {"depth": number}},
        "GuessAndCheck": {"guess": float((row != Y).mean())},
        "ConfirmedSearch": {"finalist": f"m{number}"} if number < 2 else {},
    }.get(name, {})  # fmt: skip
    return service.post("/query", {"form": "bits"} | brought, octets_of(row), team)[1]


LEFT = {
    "RadaBound": "unknown: until the queries are too many or too complex",
    "FixedSequence": r"at least [\d,]+ answers, whatever is asked",
    "the union alone": r"unknown: until a score is not known to within 0\.1|at least .*",
    "DeclaredSearch": "74 of 80 configurations were not asked about; no halt",
    "of a mapping": "14 of 20 configurations were not asked about; no halt",
    "accuracy": "74 of 80 configurations were not asked about; no halt",
    "Ladder": "0 of 6 answers",
    "GuessAndCheck": "unknown: guesses that pass use little, and those that fail much",
    "Gate": "0 of 6 candidates",
    "ConfirmedSearch": "scores without limit; 2 finalists named, confirmed together at the end",
}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.thorough] * (name != "of a mapping"))
        for name in GUARDS
    ],
)
def test_the_page_of_every_guard(tmp_path, name):
    """Whole at every stage; the best on top, what is left in words, axes with names."""
    metric = "accuracy" if name in ("accuracy", "the union alone") else "error"
    better = "higher" if metric == "accuracy" else "lower"
    with in_thread(opened(tmp_path / "g.db", name), tmp_path) as service:
        empty = page_of(service)
        assert "Nothing was answered yet." in empty.of("p") and "svg" not in empty.tags
        replies = [ask(service, name, row, number) for number, row in enumerate(ROWS)]
        for viewer in ("red", "owner", "blue"):
            shown = page_of(service, viewer)
            assert shown.open == [] and shown.links == []
            assert not {"script", "link", "img", "iframe", "object", "form"} & set(shown.tags)
            assert re.fullmatch(LEFT[name], shown.of("b")[0])
            assert f"{better} is better. Seen as {viewer}." in shown.of("p")[0]
        shown = page_of(service)
        assert bool(shown.of("h2")[0] == "What now") == (name == "Gate")
        if name == "Gate":
            assert shown.of("p", "score") == ["candidate 4"]  # the last that passed
            assert shown.columns[:3] == ["Candidate", "Verdict", "Compared with"]
            return
        best = (min if better == "lower" else max)(reply["value"] for reply in replies)
        (score,) = shown.of("p", "score")
        assert float(score) == pytest.approx(best, abs=5e-5)
        (place,) = [text for text in shown.of("p") if text.startswith(("in the pop", "no inter"))]
        has_limits = replies[0]["low"] is not None
        assert place.startswith("in the population between") == has_limits
        assert shown.of("text", "axis") == [
            f"{metric} ({better} is better)", "number of the answer"] * 2  # fmt: skip
        columns = ["Score", *["Low", "High"] * has_limits]
        keyed = name in ("DeclaredSearch", "of a mapping", "accuracy")
        columns = ["Model", *columns, "Number"] if keyed else ["Number", *columns]
        assert shown.columns[: len(columns)] == columns


@pytest.mark.thorough
def test_the_best_is_the_viewers_and_outlives_the_service(tmp_path):
    path = tmp_path / "s.db"
    with in_thread(DeclaredSearch.open(path, Y, 80, delta=0.1), tmp_path) as service:
        service.remote("red").query_many(ROWS[:3], keys=[0, 1, 2])
        service.remote("blue").query_many(ROWS[3:], keys=[3, 4, 5])
        service.remote("blue").query(ROWS[0], key=6)
    search = DeclaredSearch.open(path, Y)
    of_red, of_all = search.answers[1], search.best
    assert of_all.key == 3 and search.answers[:3][1] == of_red
    with in_thread(search, tmp_path) as service:
        for team, best in (("red", of_red), ("blue", of_all), ("owner", of_all)):
            shown = page_of(service, team)
            assert shown.of("p", "score") == [f"{best.value:.4f}"]
            place = f"between {math.floor(best.low * 1e4) / 1e4:.4f} and "
            assert any(place in text for text in shown.of("p"))
            (model,) = shown.of("p", "wrap")[:1]
            assert model.startswith(f"{best.key}, answer {best.number}")
            assert ("asked by blue" in model) == (team == "owner")
        assert page_of(service, "small").of("p", "score") == []


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "advice", "left"),
    [
        ("RadaBound", "Report the best answer with its interval", "nothing: the next query is"),
        ("Ladder", "Report the best answer with its interval", "nothing: the next query is"),
        ("Gate", "No further candidate gets a verdict", "0 of 6 candidates"),
        ("ConfirmedSearch", "Report the finalists with their intervals", "scores on the search"),
    ],
)
def test_after_the_halt_it_says_what_to_do(tmp_path, name, advice, left):
    with in_thread(opened(tmp_path / "g.db", name), tmp_path) as service:
        rows = RNG.integers(0, 2, (40, M)) if name == "RadaBound" else [*ROWS, ROWS[0]]
        for number, row in enumerate(rows):
            ask(service, name, row, number)
        if name == "ConfirmedSearch":
            assert page_of(service).of("h2")[0] != "What now"
            report = service.remote("owner").end()
        shown = page_of(service)
        assert shown.of("h2")[0] == "What now" and [
            text for text in shown.of("p") if text.startswith(advice)
        ]
        assert shown.of("b")[0].startswith(left)
        state = "confirmed" if name == "ConfirmedSearch" else "halted"
        assert shown.of("span", "state") == [state]
        if name == "ConfirmedSearch":
            assert shown.of("p", "score") == [f"{report.best['value']:.4f}"]
            assert shown.of("p", "wrap")[0] == "red: m1"
            assert any(text.startswith("in the population between") for text in shown.of("p"))


@pytest.mark.thorough
def test_what_is_left_to_a_team_today(tmp_path):
    with serve(tmp_path, FixedSequence, Y, **FIXED) as service:
        service.remote("small").query_many(ROWS[:2])
        facts = page_of(service, "small").of("b")
        assert f"{A_DAY - 2} of {A_DAY} answers, until 00:00 UTC" in facts
        assert not [text for text in page_of(service, "red").of("b") if "UTC" in text]


HOSTILE = ("<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "{{ 7 * 7 }}", "</title>")


def holds_as_text(shown, told):
    assert shown.open == [] and shown.links == []
    assert not {"script", "img", "b onclick"} & set(shown.tags)
    texts = " ".join(text for _, _, text in shown.texts)
    assert all(one in texts for one in told) and "49" not in shown.of("td", "wrap")


def test_no_key_and_no_name_of_a_parameter_is_html(tmp_path):
    space = {'<b onclick="x">': list(HOSTILE)}
    (name,) = space
    with serve(tmp_path, DeclaredSearch, Y, space, delta=0.1) as service:
        service.remote().query_many(ROWS[:4], keys=[{name: one} for one in HOSTILE])
        holds_as_text(page_of(service, "owner"), [name, *HOSTILE])


@pytest.mark.thorough
def test_no_name_of_a_finalist_is_html(tmp_path):
    with in_thread(opened(tmp_path / "c.db", "ConfirmedSearch"), tmp_path) as service:
        for row, one in zip(ROWS, HOSTILE[:2], strict=False):
            service.post("/query", {"form": "bits", "finalist": one}, octets_of(row))
        service.remote("owner").end()
        holds_as_text(page_of(service, "owner"), HOSTILE[:2])


@pytest.mark.thorough
def test_long_calls_are_whole_pages(tmp_path):
    with serve(tmp_path, FixedSequence, Y, **FIXED) as service:
        service.remote("red").query_many(ROWS * 50)
        shown = page_of(service, "owner")
        assert shown.open == [] and shown.tags.count("svg") == 2
        assert "The last 240 answers, with the interval of each." in shown.of("p")
        assert "The last 15 answers" in shown.of("h2")


def test_it_reads_no_more_calls_than_it_shows(tmp_path, monkeypatch):
    """400 calls of 100,000 answers took a minute and gigabytes, in which nobody was answered."""

    read = []
    points = page_module._points
    monkeypatch.setattr(page_module, "_points", lambda call: read.append(call) or points(call))
    with serve(tmp_path, FixedSequence, Y, **FIXED) as service:
        for _ in range(5):
            service.remote("red").query_many(ROWS * 40)
        service.remote("blue").query(ROWS[0])
        page = service.send("GET", "/", team="owner")[2].decode()
        assert [call.n_answers for call in read] == [1, 240, 240]
        assert page.count("<title>") - 1 == 240 + 60 and "1,201: " in page


@pytest.mark.parametrize(
    ("kind", "parameters", "n_rows", "text"),
    [
        (
            RadaBound, FIXED | {"epsilon": 0.08, "bound": "mclt"}, 1,
            r">Complexity</span><b>0\.\d+, within its budget of 0\.\d+</b>",
        ),
        (
            FixedSequence, FIXED | {"epsilon": 0.15}, 300,
            r">Complexity</span><b>0\.\d+, beyond its budget of 0\.\d+: only the union bound ",
        ),
    ],
)  # fmt: skip
def test_it_shows_complexity_and_budget_to_the_owner_alone(
    tmp_path, kind, parameters, n_rows, text
):
    with serve(tmp_path, kind, Y, **parameters) as service:
        service.remote("red").query_many(RNG.integers(0, 2, (n_rows, M)))
        pages = {team: service.send("GET", "/", team=team)[2].decode() for team in ("red", "owner")}
        assert re.search(text, pages["owner"]) and "budget" not in pages["red"]


def test_it_does_not_tell_another_teams_last_guess(tmp_path):
    """It told how many such guesses are affordable, from which the guess can be computed."""
    with serve(tmp_path, GuessAndCheck, Y, epsilon=0.1, delta=0.1) as service:
        seen = []
        for guess in (0.5, 0.49, 0.01):
            service.remote("red").query(Y, guess=guess)
            page, state = service.send("GET", "/", team="blue")[2], service.get("/state", "blue")[1]
            page = re.sub(rb"Answers given</span><b>\d", b"", page)
            seen.append((page.split(b"Left</span>")[1], state["n_left"]))
        assert len(set(seen)) == 1
