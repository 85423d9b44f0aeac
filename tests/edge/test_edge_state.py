"""``radabound edge`` and `radabound_fast.edge`: states and tables for a guard in C."""

import contextlib
import functools
import itertools
import json
import os
import re
import struct
import subprocess
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from support import needs

from radabound_fast import DeclaredSearch
from radabound_fast.bounds import BOUNDS
from radabound_fast.edge import EdgeState, margins
from radabound_fast.edge import cubics as _pieces
from radabound_fast.edge.cubics import Piece
from radabound_fast.edge.state import _checksum
from radabound_fast.guards.halting import NO_LIMIT, HaltingRule

pytestmark = pytest.mark.thorough

SRC = Path(__file__).parents[2] / "src"
OPTIONS = ["--n-samples", "1000", "--epsilon", "0.3", "--delta", "0.1", "--bound", "mclt"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty one, in which the command runs."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def command(run):
    """Run ``radabound edge``: exit code, stdout, stderr."""
    return functools.partial(run, "edge")


def new(n_samples=1000, **options):
    return EdgeState.new(
        n_samples, **{"epsilon": 0.3, "delta": 0.1, "bound": "mclt", "seed": 7} | options
    )


# ---- the rule in integers ----------------------------------------------------------------------


@pytest.mark.parametrize("bound", BOUNDS)
def test_a_budget_is_that_of_the_halting_rule_at_every_count(bound):
    sizes = [1, 2, 63, 1000, 4097] if bound == "fixed-sequence" else [1, 63, 4097, 10**6, 10**9]
    for m, n_vectors, epsilon in itertools.product(sizes, [1, 9, 32], [0.01, 0.05, 0.3, 0.9]):
        state = new(m, n_vectors=n_vectors, epsilon=epsilon, bound=bound)
        rule = HaltingRule(m, n_vectors, epsilon, 0.1, bound, None, None, None)
        assert state.half_range == (rule.estimator == "half-range")
        assert state.pieces[0].first == 0 and len(state.pieces) <= 22
        assert list(state.pieces) == sorted(state.pieces)
        some = {0, 1, m // 7, m // 3, m - 1, m}
        for largest in range(m + 1) if bound == "fixed-sequence" else some:
            assert replace(state, largest=largest).budget == rule.price(largest, 0, 0)[0]


def test_the_pieces_of_a_budget_are_enough_for_large_holdouts():
    """Where they are many, and for the largest number of vectors of a device."""
    for m, n_vectors, epsilon in [(20_000, 32, 0.02), (4000, 256, 0.05)]:
        state = new(m, n_vectors=n_vectors, epsilon=epsilon, bound="fixed-sequence")
        rule = HaltingRule(m, n_vectors, epsilon, 0.1, "fixed-sequence", None, None, None)
        assert 8 < len(state.pieces) <= 22
        for largest in itertools.chain.from_iterable(
            (piece.first - 1, piece.first, piece.first + 1) for piece in state.pieces[1:]
        ):
            assert replace(state, largest=largest).budget == rule.price(largest, 0, 0)[0]
        assert rule.price(state.pieces[-1].first - 1, 0, 0)[0] > rule.price(m, 0, 0)[0]


@pytest.mark.slow
def test_a_budget_fits_the_state_up_to_the_sizes_that_the_page_says():
    page = (SRC.parent / "docs" / "reference" / "microcontroller.md").read_text(encoding="utf-8")
    said = "at delta .1 that of 100,000 samples does at epsilon .005, of 250,000 at .02, of a "
    assert said + "million at .1." in " ".join(page.split())
    for m, epsilon in [(100_000, 0.005), (250_000, 0.02), (10**6, 0.1)]:
        assert len(new(m, epsilon=epsilon, bound="fixed-sequence").pieces) <= 22
    with pytest.raises(ValueError, match="n_samples must be lower on a small machine"):
        new(400_000, epsilon=0.005, bound="fixed-sequence")


@pytest.mark.parametrize("falls_at", [1000, 1001, 10**6])
def test_a_function_that_falls_for_too_long_or_too_crookedly_has_no_pieces(falls_at):
    def step(place):
        return 5 if place < falls_at else 3

    pieces = _pieces.fitted(step, 2**30, 22, falling_to=1000)
    assert (None if pieces is None else [piece.first for piece in pieces]) == (
        [0, falls_at] if falls_at == 1000 else None
    )
    crooked = sorted(np.random.default_rng(0).integers(0, 10**6, 500).tolist(), reverse=True)
    assert _pieces.fitted(crooked.__getitem__, 500, 22) is None
    pieces = _pieces.fitted(crooked.__getitem__, 500, 501)
    assert [_pieces.value(pieces, 500, place) for place in range(500)] == crooked


@pytest.mark.parametrize("max_queries", [None, 1, 20, 10**6, 2**62])
def test_what_needs_no_signs_is_what_the_halting_rule_says(max_queries):
    for m, epsilon in itertools.product([1, 63, 1000, 4097], [0.02, 0.05, 0.3]):
        state = new(m, epsilon=epsilon, bound="fixed-sequence", max_queries=max_queries)
        rule = HaltingRule(m, 32, epsilon, 0.1, "fixed-sequence", None, None, max_queries)
        asked = 0
        while asked < 2**32 - 1:
            *_, end, low, high, _, _ = rule.price(m, 0, asked)
            for n_answered in {asked, (asked + end) // 2, end - 1}:
                if n_answered < 2**32 - 1:
                    below = replace(state, n_answered=n_answered).free_below
                    assert (low, high) == (below - 1, m - below + 1 if below else NO_LIMIT)
            asked = end


@pytest.mark.parametrize("bound", ["bernstein", "mclt", "bernstein-split"])
def test_bounds_of_the_paper_have_one_budget_and_nothing_free(bound):
    state = new(4000, bound=bound)
    assert len(state.pieces) == 1 and state.free_below == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_samples": 2**31}, "n_samples must be below 2**31 on a small machine, got 2147483648"),
        ({"epsilon": 1.5}, "epsilon must be in (0, 1), got 1.5"),
        ({"n_vectors": 0}, "n_vectors must be"),
        ({"bound": "exact"}, "bound must be"),
        (
            {"n_samples": 10**7, "epsilon": 0.01, "bound": "fixed-sequence"},
            "n_samples must be lower on a small machine with bound='fixed-sequence', whose state "
            "has no room for the budget at epsilon=0.01, got 10000000",
        ),
        (
            {"n_samples": 2**31 - 1, "n_vectors": 2**20, "epsilon": 0.9},
            "n_vectors must be lower on a small machine with n_samples=2147483647, whose state "
            "has no room for the budget, got 1048576",
        ),
        ({"bound": "fixed-sequence", "max_queries": 0}, "max_queries must be"),
        ({"bound": "fixed-sequence", "max_queries": 2**63}, "max_queries must be"),
        ({"seed": -1}, "seed must be"),
    ],
)
def test_a_bad_argument_is_refused_by_name(options, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        new(**options)


# ---- bytes -------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_vectors", [1, 8, 33])
@pytest.mark.parametrize("bound", BOUNDS)
def test_a_state_comes_back_from_its_bytes(bound, n_vectors):
    state = new(4000, bound=bound, n_vectors=n_vectors, epsilon=0.035)
    state = replace(
        state,
        n_answered=5,
        halted=True,
        largest=900,
        maxima=tuple(range(n_vectors)),
        minima=tuple(range(-n_vectors, 0)),
    )
    slot = state.to_bytes()
    assert len(slot) == 752 + 8 * n_vectors
    assert EdgeState.from_bytes(slot) == state


def test_neither_seed_nor_extremes_are_in_a_repr():
    state = replace(new(seed=2**63 + 12345), maxima=(777,) * 32)
    assert str(2**63 + 12345) not in repr(state) and "777" not in repr(state)


def test_every_damaged_byte_is_noticed():
    slot = new().to_bytes()
    for place in range(len(slot)):
        damaged = bytearray(slot)
        damaged[place] ^= 0x10
        with pytest.raises(ValueError, match="state"):
            EdgeState.from_bytes(bytes(damaged))


@pytest.mark.parametrize("length", [0, 1, 8, 100, 751, 752, 1007])
def test_a_slot_that_is_cut_short_is_refused(length):
    with pytest.raises(ValueError, match="state"):
        EdgeState.from_bytes(new().to_bytes()[:length])


def test_pages_of_flash_are_read_as_they_were_read_out():
    old, late = new(), replace(new(), n_answered=1, largest=3)
    pages = [state.to_bytes() + b"\xff" * (1024 - 1008) for state in (old, late)]
    assert EdgeState.from_file(b"".join(pages)) == late
    assert EdgeState.from_file(b"".join(reversed(pages))) == late


def test_the_newer_slot_counts_and_a_torn_one_does_not():
    old, late = new(), replace(new(), n_answered=1, largest=3)
    for content in (old.to_bytes() + late.to_bytes(), late.to_bytes() + old.to_bytes()):
        assert EdgeState.from_file(content) == late
    torn = late.to_bytes()[:300] + b"\xff" * 708
    assert EdgeState.from_file(old.to_bytes() + torn) == old
    assert EdgeState.from_file(torn + old.to_bytes()) == old
    for content in (torn + torn, old.to_bytes(), b""):  # the second has one slot only
        with pytest.raises(ValueError, match="neither half begins with the whole state"):
            EdgeState.from_file(content)


@pytest.mark.parametrize("swapped", [False, True])
def test_slots_of_guards_with_other_vectors_are_refused(swapped):
    """The halves are as long as the longer slot."""
    slots = [replace(new(), n_answered=9).to_bytes(), new(n_vectors=33).to_bytes()]
    halves = [slot.ljust(len(slots[1]), b"\xff") for slot in slots]
    with pytest.raises(ValueError, match="the slots are of two guards"):
        EdgeState.from_file(b"".join(halves[::-1] if swapped else halves))


# the last that a guard stores, and the first that none does
@pytest.mark.parametrize(
    ("last", "first"),
    [
        ({"n_samples": 1}, {"n_samples": 0}),
        ({"n_samples": 2**31 - 1}, {"n_samples": 2**31}),
        ({"largest": 1000}, {"largest": 1001}),
        ({"n_answered": 2**32 - 2}, {"n_answered": 2**32 - 1}),
        ({"halted": 1}, {"halted": 2}),
        ({"pieces": (Piece(0, 5, (0, 0, 0)),)}, {"pieces": (Piece(1, 5, (0, 0, 0)),)}),
    ],
    ids=str,
)
def test_numbers_that_no_guard_stores_are_refused_though_the_checksum_is_right(last, first):
    known = EdgeState.from_bytes(replace(new(), **last).to_bytes())
    for name, value in last.items():
        assert getattr(known, name) == value
    with pytest.raises(ValueError, match="not made by"):
        EdgeState.from_bytes(replace(new(), **first).to_bytes())


def test_a_forged_slot_is_refused_or_shown_whatever_it_says(command):
    rng = np.random.default_rng(5)
    kept = new(10, n_vectors=2).to_bytes()
    codes = []
    for _ in range(300):
        body = bytearray(kept[16:])
        for place in rng.integers(0, len(body), rng.integers(1, 9)):
            body[place] = rng.integers(256)
        body[-40:-36] = bytes([2 * (rng.random() < 0.9), 0, 0, 0])  # vectors, mostly
        Path("forged").write_bytes(2 * (kept[:8] + struct.pack("<Q", _checksum(body)) + body))
        code, out, error = command("show", "forged")
        assert (code, error.count("\n")) in ((0, 0), (2, 1))
        codes.append(code)
    assert {0, 2} == set(codes)


# ---- the command -------------------------------------------------------------------------------


def test_new_state_writes_both_slots_for_its_owner_alone(command):
    assert command("new-state", "guard.state", *OPTIONS, "--seed", "7") == (0, "", "")
    assert Path("guard.state").read_bytes() == 2 * new().to_bytes()
    if os.name == "posix":
        assert os.stat("guard.state").st_mode & 0o777 == 0o600


def test_new_state_draws_a_seed(command):
    command("new-state", "a", *OPTIONS)
    command("new-state", "b", *OPTIONS)
    seeds = {EdgeState.from_file(Path(name).read_bytes()).seed for name in "ab"}
    assert len(seeds) == 2


def test_new_state_never_writes_over_a_file(command):
    Path("guard.state").write_bytes(b"in use")
    code, out, error = command("new-state", "guard.state", *OPTIONS)
    assert (code, out) == (2, "") and error == "radabound edge: guard.state: File exists\n"
    assert Path("guard.state").read_bytes() == b"in use"


def test_new_state_makes_its_file_in_no_other_place(command):
    Path("folder").mkdir()
    Path("closed").mkdir(0o500)
    with contextlib.suppress(OSError):  # not everybody on Windows may make one
        Path("link").symlink_to("nowhere")
    before = sorted(Path.cwd().rglob("*"))
    places = ["folder", "missing/guard.state", "", "guard.state/"]
    places += ["link"] * Path("link").is_symlink()
    places += ["closed/guard.state"] * (os.name == "posix" and os.geteuid() != 0)
    for place in places:
        code, out, error = command("new-state", place, *OPTIONS)
        assert (code, out) == (2, "") and error.startswith(f"radabound edge: {place}: ")
        assert error.count("\n") == 1
    assert sorted(Path.cwd().rglob("*")) == before


def test_new_state_leaves_no_file_after_a_bad_argument(command):
    code, out, error = command("new-state", "guard.state", *OPTIONS, "--delta", "2")
    assert (code, out) == (2, "") and error == "radabound edge: delta must be in (0, 1), got 2.0\n"
    assert not Path("guard.state").exists()


def test_new_state_refuses_what_could_not_answer_a_first_row_and_says_what_could(command):
    poor = ["--n-samples", "200", "--epsilon", "0.03", "--delta", "0.1"]
    code, out, error = command("new-state", "guard.state", *poor)
    assert (code, out) == (2, "") and not Path("guard.state").exists()
    assert "the holdout cannot answer a first query; bernstein needs" in error
    assert error.count("\n") == 1


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_new_state_that_cannot_be_written_leaves_nothing(command, monkeypatch):
    opened = os.open
    monkeypatch.setattr(
        os, "open", lambda path, *rest: (os.close(opened(path, *rest)), opened("/dev/full", 1))[1]
    )
    code, out, error = command("new-state", "guard.state", *OPTIONS)
    monkeypatch.undo()
    assert code == 2 and "No space left" in error and not Path("guard.state").exists()


def test_show_says_what_was_spent_and_neither_seed_nor_count(command):
    state = replace(new(seed=987654321), n_answered=3, halted=True, largest=444, maxima=(99,) * 32)
    Path("guard.state").write_bytes(new(seed=987654321).to_bytes() + state.to_bytes())
    code, out, error = command("show", "guard.state")
    assert (code, error) == (0, "")
    lines = out.splitlines()
    assert lines[0] == "1,000 samples, epsilon 0.3, delta 0.1, mclt, 32 sign vectors"
    found, budget = 99 * 32 / state.cells, state.budget / state.cells
    assert lines[1] == (
        f"halted after 3 answers, complexity {found:.4g}, within its budget of {budget:.4g} "
        f"(the device counts {99 * 32} and {state.budget})"
    )
    assert lines[2] == state.guarantee
    code, told, _ = command("show", "guard.state", "--json")
    told_state = json.loads(told)
    assert told_state["halted"] is True and told_state["n_answered"] == 3
    assert told_state["complexity"] == 99 * 32 / state.cells
    for text in (out, told):
        assert "987654321" not in text and "444" not in text


@pytest.mark.parametrize("shape", ["whole", "cut", "a page too long"])
def test_show_says_where_only_one_slot_is_whole(command, shape):
    older, newer = new(seed=1), replace(new(seed=1), n_answered=1, maxima=(9,) * 32)
    slots = older.to_bytes() + newer.to_bytes()
    content = {"whole": slots, "cut": slots[:-1] + b"\xff", "a page too long": slots + bytes(64)}
    Path("guard.state").write_bytes(content[shape])
    _, out, _ = command("show", "guard.state")
    _, told, _ = command("show", "guard.state", "--json")
    assert ("one of the two slots is not whole" in out) == (shape != "whole")
    assert json.loads(told)["n_whole_slots"] == 1 + (shape == "whole")
    assert json.loads(told)["n_answered"] == (shape == "whole")


@pytest.mark.parametrize("content", [b"", b"radedge1", b"\xff" * 1136, None])
def test_show_refuses_what_is_no_state(command, content):
    if content is not None:
        Path("guard.state").write_bytes(content)
    code, out, error = command("show", "guard.state")
    assert (code, out) == (2, "") and error.startswith("radabound edge: guard.state: ")
    assert error.count("\n") == 1


def test_a_part_must_be_named(command):
    assert command() == (2, "", "radabound edge: the following arguments are required: PART\n")


def compiled(folder, text, *flags):
    """What a C program prints."""
    needs("cc")
    (folder / "main.c").write_text(text)
    strict = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", *flags]
    subprocess.run(["cc", *strict, "main.c", "-o", "main"], cwd=folder, check=True)
    return subprocess.run([folder / "main"], capture_output=True, check=True).stdout


@pytest.mark.source
def test_the_header_of_a_state_is_its_slot(command, tmp_path):
    Path("guard.state").write_bytes(2 * new().to_bytes())
    code, header, _ = command("header", "guard.state")
    assert code == 0
    Path("new_state.h").write_text(header)
    text = '#include "new_state.h"\n#include <stdio.h>\nint main(void) { return '
    text += "fwrite(radabound_edge_new_state, 1, sizeof radabound_edge_new_state, stdout) == 0; }"
    assert compiled(tmp_path, text, f"-I{SRC / 'edge'}") == new().to_bytes()
    with pytest.raises(subprocess.CalledProcessError):  # a build for other vectors
        compiled(tmp_path, text, f"-I{SRC / 'edge'}", "-DRADABOUND_EDGE_VECTORS=16")


PRICES = """
#include "new_state.h"
#include <stdio.h>
#include <string.h>
int main(void)
{
    static struct radabound_edge guard;
    memcpy(&guard.state, radabound_edge_new_state, sizeof guard.state);
    for (uint32_t *count = &guard.state.largest; *count <= guard.state.n_samples; ++*count) {
        const int64_t budget = radabound_edge_budget(&guard);
        fwrite(&budget, sizeof budget, 1, stdout);
    }
    return 0;
}
"""


@pytest.mark.source
@pytest.mark.parametrize(
    ("m", "epsilon", "delta"),
    [(1, 0.5, 0.1), (4000, 0.035, 0.1), (3001, 0.05, 0.7), (997, 0.06, 1e-6)],
)
def test_the_guard_in_c_has_the_budget_of_the_halting_rule_at_every_count(
    tmp_path, m, epsilon, delta
):
    state = new(m, epsilon=epsilon, delta=delta, bound="fixed-sequence")
    (tmp_path / "new_state.h").write_text(state.to_header())
    guard = [f"-I{SRC}", f"-I{SRC / 'edge'}", str(SRC / "edge" / "radabound_edge.c")]
    found = np.frombuffer(compiled(tmp_path, PRICES, *guard), "i8").tolist()
    rule = HaltingRule(m, 32, epsilon, delta, "fixed-sequence", None, None, None)
    assert found == [rule.price(largest, 0, 0)[0] for largest in range(m + 1)]


# ---- intervals ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("m", "size", "delta"), [(1, 1, 0.5), (7, 3, 0.1), (1000, 80, 0.1),
                                                  (4000, 10**6, 1e-6)])  # fmt: skip
def test_margins_hold_the_interval_of_a_declared_search_to_a_loss(m, size, delta):
    table = margins(m, size, delta)
    assert len(table) == m + 1
    for count in {0, 1, m // 5, m // 2, m - 1, m}:
        answer = DeclaredSearch(m, size, delta=delta).query(np.arange(m) < count, key=0)
        low, high = count - table[count], count + table[m - count]
        assert 0 <= low <= Fraction(answer.low) * m < low + 2
        assert high - 2 < Fraction(answer.high) * m <= high <= m


@pytest.mark.parametrize("m", [7, 1000, 100_000])
def test_the_table_in_c_looks_up_the_same_integers(command, tmp_path, m):
    code, header, _ = command("intervals", "--n-samples", str(m), "--space-size", "80",
                              "--delta", "0.1")  # fmt: skip
    assert code == 0
    Path("intervals.h").write_text(header)
    text = '#include "intervals.h"\n#include <stdio.h>\nint main(void) {\n'
    text += f"for (uint32_t c = 0; c <= {m}; c++) {{\nuint32_t both[2];\n"
    text += "radabound_edge_interval(c, both, both + 1);\nfwrite(both, 4, 2, stdout); }\n}\n"
    found = list(struct.iter_unpack("=2I", compiled(tmp_path, text)))
    table = margins(m, 80, 0.1)
    assert found == [(c - table[c], c + table[m - c]) for c in range(m + 1)]


def test_intervals_are_refused_where_a_table_would_be_too_long(command):
    code, out, error = command("intervals", "--n-samples", str(2**20 + 1), "--space-size", "80",
                               "--delta", "0.1")  # fmt: skip
    assert (code, out) == (2, "") and "n_samples must be" in error
