"""The guard in C answers what `RadaBound` answers: here, on 32-bit ARM, and on a microbit.

The microbit is QEMU's, and so is its flash.
"""

import fcntl
import itertools
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from support import needs

from radabound_fast import DeclaredSearch, HoldoutExhausted, SignMatrix
from radabound_fast.edge import EdgeState, margins_header
from radabound_fast.guards.by_bound import guard_by_bound

ROOT = Path(__file__).parents[2]
EDGE = ROOT / "examples" / "edge"
PAGE = ROOT / "docs" / "how-to" / "guard-a-microcontroller.md"
CUTS = ROOT / "tests" / "native" / "board" / "cuts.c"

pytestmark = pytest.mark.source

TOOLS = {
    "native": ["cc"],
    "armhf": ["arm-linux-gnueabihf-gcc", "qemu-arm"],
    "microbit": ["arm-none-eabi-gcc", "qemu-system-arm"],
}
# of the board and of POSIX
ANSWER = re.compile(
    r"(\d+): (?:mean [\d.]+ \()?(\d+)(?: of \d+\))?, complexity (\d+)(?: \(budget -?\d+\))?"
)
HALT = re.compile(r"halted after (\d+) answers, complexity (\d+)(?: \(budget -?\d+\))?")


def on_microbit(program, *arguments):
    """The process of QEMU that has run a program with these arguments."""
    given = "".join(f",arg={argument}" for argument in (program.name, *arguments))
    done = subprocess.run(
        ["qemu-system-arm", "-M", "microbit", "-nographic", "-monitor", "none", "-serial", "none"]
        + ["-semihosting-config", f"enable=on,target=native{given}", "-kernel", program],
        capture_output=True,
        text=True,
        timeout=120,
    )
    done.stdout = done.stderr  # where QEMU prints what a board does
    return done


def build(machine, out, n_vectors=32, extra=""):
    """make's target for one machine -> a function that runs it: state file, losses -> process."""
    needs("make", *TOOLS[machine])
    options = [f"OUT={out}", f"VECTORS={n_vectors}", "CFLAGS=-Os -Werror", f"EXTRA={extra}"]
    name = "guard_board" if machine == "microbit" else "guard_stream"
    program = out / f"{name}-{machine}"
    subprocess.run(["make", "-s", "-C", EDGE, *options, program], check=True)

    def run(state, losses):
        stream = np.packbits(losses, axis=1, bitorder="little").tobytes()
        if machine == "microbit":
            path = state.with_suffix(".losses")
            path.write_bytes(stream)
            return on_microbit(program, state, path)
        prefix = ["qemu-arm", "-L", "/usr/arm-linux-gnueabihf"] if machine == "armhf" else []
        done = subprocess.run([*prefix, program, state], input=stream, capture_output=True)
        done.stdout, done.stderr = done.stdout.decode(), done.stderr.decode()
        return done

    run.program = program
    return run


@pytest.fixture(scope="module", params=TOOLS)
def machine(request, tmp_path_factory):
    """n_vectors -> the program that runs with so many."""
    out, built = tmp_path_factory.mktemp("edge"), {}

    def program(n_vectors=32):
        if n_vectors not in built:
            folder = out / str(n_vectors)
            built[n_vectors] = build(request.param, folder, n_vectors)
        return built[n_vectors]

    return program


def rows(n_samples, seed):
    """Fifteen unsuspicious rows, then as many that the guard's own signs have chosen."""
    rng = np.random.default_rng([n_samples, seed % 2**32])
    losses = rng.random((30, n_samples)) < rng.random((30, 1)) / 2
    losses[15:] = np.asarray(SignMatrix(n_samples, 15, seed=seed)) > 0
    return losses


def judged(state, losses):
    """What the rule of a state says of some rows, in plain Python: answers, and the state then."""
    signs = np.asarray(SignMatrix(state.n_samples, state.n_vectors, seed=state.seed), np.int64)
    answers = []
    for row in losses:
        sums, total = (signs @ row).tolist(), int(row.sum())
        if state.n_answered == 0:
            state = replace(state, maxima=tuple(sums), minima=tuple(sums))
        state = replace(
            state,
            maxima=tuple(map(max, state.maxima, sums)),
            minima=tuple(map(min, state.minima, sums)),
        )
        priced = replace(state, largest=max(state.largest, total))
        free = min(total, state.n_samples - total) < state.free_below
        if not free and state.complexity > priced.budget:
            return answers, replace(state, halted=True)  # at the price before: this one tells it
        state = replace(priced, n_answered=state.n_answered + 1)
        answers.append((state.n_answered, total, state.complexity))
    return answers, state


def newest(path):
    """Of the two slots of a state file the bytes of that with the last row."""
    state = EdgeState.from_file(path.read_bytes())
    content, slot = path.read_bytes(), (state.n_answered + state.halted) % 2
    half = len(content) // 2
    return content[slot * half : (slot + 1) * half]


def answers_of(text):
    lines = text.splitlines()
    return [tuple(map(int, found.groups())) for found in map(ANSWER.fullmatch, lines) if found]


# odd sizes around a byte, a half, a word; vectors; epsilon so that rows 15.. break the bank
SIZES = [(1, 8), (31, 16), (63, 32), (64, 8), (65, 32), (1000, 16), (1025, 32), (4097, 32)]
CASES = [
    (m, n_vectors, bound, {"mclt": 0.3, "bernstein": 0.35, "fixed-sequence": 0.022}[bound])
    for (m, n_vectors), bound in itertools.product(SIZES, ["mclt", "bernstein", "fixed-sequence"])
]


def test_answers_halt_and_state_are_those_of_python_in_24_configurations(machine, tmp_path):
    assert len(CASES) == 24
    n_halts = n_answers = 0
    for n_samples, n_vectors, bound, epsilon in CASES:
        epsilon = epsilon if n_samples > 1000 else 0.9 if n_samples < 64 else 0.5
        seed = 2**64 - 1 if n_samples == 1025 else 7
        options = {"epsilon": epsilon, "delta": 0.1, "bound": bound, "seed": seed}
        if bound == "fixed-sequence":
            options["max_queries"] = 20
        new = EdgeState.new(n_samples, n_vectors=n_vectors, **options)
        losses = rows(n_samples, seed)
        answers, last = judged(new, losses)
        path = tmp_path / f"{n_samples}-{n_vectors}-{bound}"
        path.write_bytes(2 * new.to_bytes())
        done = machine(n_vectors)(path, losses)
        assert answers_of(done.stdout) == answers
        assert done.returncode == (3 if last.halted else 0), done.stderr
        assert newest(path) == last.to_bytes()
        assert (HALT.fullmatch(done.stdout.splitlines()[-1]) is not None) == last.halted
        n_halts, n_answers = n_halts + last.halted, n_answers + len(answers)
    assert n_halts > 10 and n_answers > 100  # both ends of the comparison took place


# the union bound ends before the signs do, or the other way round, or at once
RUNS = [
    *((m, n_vectors, bound, {}) for m, n_vectors, bound, _ in CASES),
    (1000, 32, "fixed-sequence", {"epsilon": 0.08}),
    (1000, 8, "fixed-sequence", {"epsilon": 0.08, "max_queries": 1}),
    (4000, 32, "fixed-sequence", {"epsilon": 0.035}),
    (4000, 16, "fixed-sequence", {"epsilon": 0.035, "max_queries": 2**62}),
    (4001, 32, "fixed-sequence", {"epsilon": 0.03, "max_queries": 37}),
    (3999, 1, "fixed-sequence", {"epsilon": 0.04, "delta": 0.9}),
    (4000, 32, "fixed-sequence", {"epsilon": 0.04, "delta": 1e-9}),
    (9973, 32, "fixed-sequence", {"epsilon": 0.03, "max_queries": 10**12}),
]


@pytest.mark.parametrize("case", RUNS, ids=lambda case: f"{case[2]}-{case[0]}-{case[1]}")
def test_the_rule_in_integers_answers_as_radabound_up_to_the_same_halt(case):
    n_samples, n_vectors, bound, options = case
    epsilon = 0.022 if n_samples > 1000 else 0.9 if n_samples < 64 else 0.5
    options = {"epsilon": epsilon, "delta": 0.1, "bound": bound, "seed": 7} | options
    guard = guard_by_bound(judged=n_samples, n_vectors=n_vectors, **options)
    new = EdgeState.new(n_samples, n_vectors=n_vectors, **options)
    # rows whose means rise, so that the budget falls, before those that the signs have chosen
    rng = np.random.default_rng(n_samples)
    rising = rng.random((120, n_samples)) < np.linspace(0.0, 0.6, 120)[:, None]
    losses = np.concatenate([rising, rows(n_samples, 7)])
    answers, last = judged(new, losses)
    for number, total, complexity in answers:
        answer = guard.query(losses[number - 1])
        assert (answer.number, answer.value) == (number, total / n_samples)
        assert round(answer.complexity * last.cells) == complexity
    if last.halted:
        with pytest.raises(HoldoutExhausted):
            guard.query(losses[len(answers)])
        assert round(guard.complexity * last.cells) == last.complexity


@pytest.mark.thorough
def test_the_power_may_fail_at_every_instant_of_a_write(tmp_path):
    """Before, within and after the erasing of a page and each of its words, in both slots."""
    wrapped = f"-Wl,--wrap=erase_page -Wl,--wrap=write_word {shlex.quote(str(CUTS))}"
    run = build("microbit", tmp_path, extra=wrapped)
    new = EdgeState.new(203, epsilon=0.8, delta=0.1, bound="mclt", seed=7)
    n_cuts = 2 * (3 + 2 * len(new.to_bytes()) // 4)
    rng = np.random.default_rng(1)
    losses = rng.random((n_cuts + 40, 203)) < 0.3
    losses[-30:] = np.asarray(SignMatrix(203, 30, seed=7)) > 0
    answers, last = judged(new, losses)
    assert last.halted and len(answers) > n_cuts + 10
    path = tmp_path / "state"
    path.write_bytes(2 * new.to_bytes())
    done = run(path, losses)
    assert done.returncode == 3 and newest(path) == last.to_bytes()
    shown = answers_of(done.stdout)
    # cut after its last word a write is whole, and the answer is counted that nobody saw; that
    # these are missing, and they alone, says that every cut took place
    missing = sorted(set(answers) - set(shown))
    assert len(missing) == 2 and missing[0][0] >= n_cuts - 4
    assert shown == [answer for answer in answers if answer not in missing]  # each once, in order


def test_a_row_of_ten_million_losses_is_a_stream_too(tmp_path):
    run = build("native", tmp_path)
    m = 10_000_003
    options = {"epsilon": 0.01, "delta": 0.1, "bound": "mclt", "seed": 3}
    state = tmp_path / "state"
    state.write_bytes(2 * EdgeState.new(m, **options).to_bytes())
    losses = np.random.default_rng(0).random((2, m)) < 0.25
    found = answers_of(run(state, losses).stdout)
    guard = guard_by_bound(judged=m, signs="generated", **options)
    answers = [guard.query(row) for row in losses]
    assert [total / m for _, total, _ in found] == [answer.value for answer in answers]
    cells = 32 * m
    assert [row[2] for row in found] == [round(answer.complexity * cells) for answer in answers]


PRINTED = """
#include "board.h"
#include "intervals.h"
int main(void)
{
    for (uint32_t count = 0; count <= RADABOUND_EDGE_INTERVAL_SAMPLES; count++) {
        uint32_t low, high;
        radabound_edge_interval(count, &low, &high);
        print_number(low);
        print(" ");
        print_number(high);
        print("\\n");
    }
    return 0;
}
"""


def test_the_microbit_looks_up_the_intervals_of_a_declared_search(tmp_path):
    needs(*TOOLS["microbit"])
    (tmp_path / "intervals.h").write_text(margins_header(1000, 80, 0.1))
    (tmp_path / "intervals.c").write_text(PRINTED)
    board, program = EDGE / "board", tmp_path / "intervals"
    sources = [
        tmp_path / "intervals.c",
        *(board / f"{name}.c" for name in ("startup", "semihosting")),
    ]
    flags = ["-mcpu=cortex-m0", "-mthumb", "-Os", "-Wall", "-Werror", "-ffreestanding", "-nostdlib"]
    flags += ["-fno-tree-loop-distribute-patterns", f"-I{board}", "-T", board / "board.ld"]
    subprocess.run(["arm-none-eabi-gcc", *flags, *sources, "-lgcc", "-o", program], check=True)
    done = on_microbit(program)
    found = np.array([line.split() for line in done.stdout.splitlines()], dtype=int)
    for count, (low, high) in enumerate(found.tolist()):
        search = DeclaredSearch(1000, 80, delta=0.1)  # a key has one model
        answer = search.query(np.arange(1000) < count, key=0)
        assert low <= Fraction(answer.low) * 1000 < low + 2
        assert high - 2 < Fraction(answer.high) * 1000 <= high
    assert len(found) == 1001


@pytest.fixture
def program(machine):
    return machine()


@pytest.fixture
def made(tmp_path):
    """A function that makes a state file, whose guard is halted by ``rows(1000, 7)``."""

    def made(n_samples=1000):
        path = tmp_path / "state"
        new = EdgeState.new(n_samples, epsilon=0.3, delta=0.1, bound="mclt", seed=7)
        path.write_bytes(2 * new.to_bytes())
        return path

    return made


@pytest.fixture
def native(tmp_path_factory):
    return build("native", tmp_path_factory.mktemp("native"))


def test_stopping_and_going_on_changes_nothing(native, made):
    losses = rows(1000, 7)
    whole = native(made(), losses)
    assert whole.returncode == 3
    state, parts = made(), ""
    for first in range(0, len(losses), 4):
        parts += native(state, losses[first : first + 4]).stdout
    assert parts.startswith(whole.stdout)
    again = set(parts[len(whole.stdout) :].splitlines())
    assert again == {whole.stdout.splitlines()[-1]}  # halted for good: no mean any more
    assert parts.count("mean") == whole.stdout.count("mean")


def test_a_torn_write_loses_no_answer_that_was_shown(native, made):
    losses, state = rows(1000, 7), made()
    n = len(state.read_bytes()) // 2
    native(state, losses[:4])
    before = state.read_bytes()
    shown = native(state, losses[4:5]).stdout
    after = state.read_bytes()
    newest = [i for i in (0, 1) if before[i * n : (i + 1) * n] != after[i * n : (i + 1) * n]]
    assert newest == [1]  # the fifth row; the fourth is still in the other slot
    for written in [0, 1, 8, 16, 24, 100, n - 4, n]:
        state.write_bytes(after[: n + written] + before[n + written :])
        torn = native(state, losses[4:5]).stdout
        # nothing of it counts, and the row is asked again, or all of it does
        assert torn.startswith("6:") if written == n else torn == shown


def test_a_damaged_state_is_refused_and_left_as_it_is(program, made):
    losses = rows(1000, 7)
    n = len(made().read_bytes()) // 2
    for place in [0, 8, 16, 60, 72, 300, n - 1]:
        state = made()
        content = bytearray(state.read_bytes())
        content[place] ^= 1
        content[n + place] ^= 1
        state.write_bytes(content)
        done = program(state, losses)
        assert done.returncode == 1 and done.stdout == ""
        assert state.read_bytes() == content


def test_one_damaged_slot_of_a_new_state_is_no_harm(program, made):
    losses = rows(1000, 7)
    wanted = program(made(), losses).stdout
    for slot in (0, 1):
        state = made()
        content = bytearray(state.read_bytes())
        content[slot * len(content) // 2 + 100] ^= 1
        state.write_bytes(content)
        assert program(state, losses).stdout == wanted


@pytest.mark.parametrize("n_vectors", [8, 31, 33])
def test_a_state_for_other_vectors_is_refused(native, tmp_path, n_vectors):
    state = tmp_path / "state"
    new = EdgeState.new(1000, epsilon=0.3, delta=0.1, bound="mclt", n_vectors=n_vectors)
    state.write_bytes(2 * new.to_bytes())
    done = native(state, rows(1000, 7))
    assert done.returncode == 1 and done.stdout == ""


@pytest.mark.parametrize(
    "end", [b"\0" * 124, b"\0" * 124 + b"\x01\0", pytest.param(None, id="bit")]
)
def test_a_row_that_is_not_whole_is_not_judged(native, made, tmp_path, end):
    n_samples = 1003 if end is None else 1000  # the last byte has room for a bit too many
    state = made(n_samples)
    native(state, rows(n_samples, 7)[:2])
    before = state.read_bytes()
    bad = b"\0" * 125 + b"\x08" if end is None else end
    n_whole = len(bad) // 125 if end is not None else 0
    bits = np.unpackbits(np.frombuffer(bad, np.uint8), bitorder="little")
    done = native(state, bits[None])
    assert done.returncode == 1 and "not whole" in done.stderr
    assert done.stdout.count("mean") == n_whole
    assert (state.read_bytes() == before) == (n_whole == 0)


def test_two_programs_cannot_share_a_state(native, made):
    with made().open("r+b") as held:
        fcntl.lockf(held, fcntl.LOCK_EX)
        done = native(Path(held.name), rows(1000, 7))
    assert done.returncode == 1 and "in use" in done.stderr and done.stdout == ""


@pytest.mark.parametrize("stream", ["stdin", "stdout", "stderr", "unreadable"])
def test_without_losses_or_a_place_for_answers_the_state_is_left_as_it_is(native, made, stream):
    """A closed stream's number is the state's: its bytes would be losses, and answers be in it."""
    state = made()
    before = state.read_bytes()
    folder = shlex.quote(str(EDGE))
    redirect = {"stdin": "<&-", "stdout": ">&-", "stderr": "2>&-", "unreadable": f"< {folder}"}
    command = ["sh", "-c", f'"$@" {redirect[stream]}', "sh", native.program, state]
    done = subprocess.run(command, input=bytes(1250), capture_output=True)
    assert (done.returncode, done.stdout) == (1, b"")
    assert state.read_bytes() == before


@pytest.mark.thorough
def test_the_commands_of_the_page_run_as_printed(tmp_path):
    needs("bash", *TOOLS["native"], *TOOLS["microbit"], "make")
    page = PAGE.read_text(encoding="utf-8").partition("## Packages")[0]
    page = page.replace("\\\n", "")  # lines that go on
    commands = re.findall(r"^    ((?:radabound|make|build/edge/\S+) .*)$", page, re.M)
    assert len(commands) == 6
    for folder in ("edge", "kernels"):
        shutil.copytree(ROOT / "src" / folder, tmp_path / "src" / folder)
    shutil.copytree(EDGE, tmp_path / "examples" / "edge")
    losses = np.random.default_rng(0).random((3, 4000)) < 0.21
    (tmp_path / "losses").write_bytes(np.packbits(losses, axis=1, bitorder="little").tobytes())
    radabound = f'radabound() {{ "{sys.executable}" -m radabound_fast "$@"; }}'
    script = "\n".join(["set -e", radabound, *commands])
    done = subprocess.run(["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("mean") == 3
    assert {"new_state.h", "intervals.h"} <= {path.name for path in tmp_path.iterdir()}


def test_what_the_page_shows_of_a_run_is_true(tmp_path):
    """The page's state with seed 0 and losses of a generator."""
    page = PAGE.read_text(encoding="utf-8")
    state = tmp_path / "guard.state"
    new = EdgeState.new(4000, epsilon=0.035, delta=0.1, bound="fixed-sequence", seed=0)
    state.write_bytes(2 * new.to_bytes())
    losses = np.random.default_rng(0).random((2000, 4000)) < 0.21
    first, second = build("native", tmp_path)(state, losses[:2]).stdout.splitlines()
    _, last = judged(new, losses)  # without a write to the disk for each row
    spent = f"{last.complexity} (budget {last.budget})"
    shown = [first, second, "...", f"halted after {last.n_answered} answers, complexity {spent}"]
    assert "".join(f"    {line}\n" for line in shown) in page
    found, budget = last.complexity / last.cells, last.budget / last.cells
    shown = f"complexity {found:.4g}, beyond its budget of {budget:.4g}"
    counts = f"(the device counts {last.complexity} and {last.budget})\n"
    assert f"    halted after {last.n_answered:,} answers, {shown} {counts}" in page


def test_the_program_of_the_page_compiles(tmp_path):
    needs("cc")
    page = PAGE.read_text(encoding="utf-8")
    first, statements = re.findall(r"```c\n(.*?)```", page, re.S)[0].split("\n\nif", 1)
    given = "#include <stddef.h>\nint read_slot(void *, int, void *), broken(void);\n"
    given += "int write_slot(void *, int, const void *), predict(const int *, uint32_t);\n"
    given += "extern int model, label[]; void report(uint32_t), stop_choosing(void);\n"
    text = f"#include <stdint.h>\n{given}{first}\nint use(void)\n{{\nif{statements}return 0;\n}}\n"
    (tmp_path / "use.c").write_text(text)
    command = ["cc", "-std=c99", "-Wall", "-Wextra", "-Werror", f"-I{ROOT / 'src' / 'edge'}"]
    subprocess.run([*command, "-c", "use.c"], cwd=tmp_path, check=True)


@pytest.mark.parametrize(
    ("largest", "kind"),
    [
        (0, "uint8_t"),
        (255, "uint8_t"),
        (256, "uint16_t"),
        (65535, "uint16_t"),
        (65536, "uint32_t"),
    ],
)
def test_a_table_of_margins_has_the_narrowest_integers_that_hold_it(monkeypatch, largest, kind):
    monkeypatch.setattr("radabound_fast.edge.state.margins", lambda *_: [0, largest, 0])
    assert f"static const {kind} radabound_edge_margins" in margins_header(2, 1, 0.1)
