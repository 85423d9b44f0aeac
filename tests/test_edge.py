"""The guard in C of examples/edge answers what `RadaBound` answers, in less than 8 KB."""

import doctest
import fcntl
import importlib.util
import itertools
import platform
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from radabound_fast import HoldoutExhausted, RadaBound, SignMatrix
from radabound_fast._halting import HaltingRule
from radabound_fast.bounds import BOUNDS

ROOT = Path(__file__).parents[1]
EDGE = ROOT / "examples" / "edge"
PAGE = ROOT / "docs" / "edge.md"
N_VECTORS = 32

pytestmark = pytest.mark.source

ANSWER = re.compile(r"(\d+): mean ([\d.]+) \((\d+) of (\d+)\), complexity (\d+) of (-?\d+)")
HALT = re.compile(r"halted after (\d+) answers, complexity (\d+) of (-?\d+)")


@pytest.fixture(scope="module")
def new_state():
    spec = importlib.util.spec_from_file_location("new_state", EDGE / "new_state.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module", params=["native", "armhf"])
def build(request, tmp_path_factory):
    """make's targets for one machine -> the command that runs what was built."""
    tools = {"native": ["cc"], "armhf": ["arm-linux-gnueabihf-gcc", "qemu-arm"]}[request.param]
    for tool in ["make", *tools]:
        if shutil.which(tool) is None:
            pytest.skip(f"needs {tool}")
    out = tmp_path_factory.mktemp("edge")
    prefix = [] if request.param == "native" else ["qemu-arm", "-L", "/usr/arm-linux-gnueabihf"]

    def built(program):
        subprocess.run(
            ["make", "-s", "-C", EDGE, f"OUT={out}", "CFLAGS=-Os -Werror", out / program],
            check=True,
        )
        return [*prefix, str(out / program)]

    built.machine = request.param
    return built


@pytest.fixture(scope="module")
def program(build):
    return build(f"guard_stream-{build.machine}")


def run(program, state, stream):
    return subprocess.run([*program, state], input=stream, capture_output=True)


def pack(losses):
    return np.packbits(losses, axis=1, bitorder="little").tobytes()


def rows(n_samples, seed):
    """Fifteen unsuspicious rows, then as many that the guard's own signs have chosen."""
    rng = np.random.default_rng([n_samples, seed])
    losses = rng.random((30, n_samples)) < rng.random((30, 1)) / 2
    losses[0] = True  # the largest mean at once: what the C program is priced at
    losses[15:] = np.asarray(SignMatrix(n_samples, 15, seed=seed)) > 0
    return losses


CASES = [
    # odd sizes around a byte, a word and a tile of 1024; epsilon so that rows 15.. break the bank
    *itertools.product([1, 8, 63, 64, 65, 1000, 1023, 1024, 1025, 4097], ["mclt"], [0.3, 0.9]),
    (4097, "bernstein", 0.35),
    (4097, "bernstein-split", 0.4),
    (4097, "fixed-sequence", 0.022),
    (20000, "fixed-sequence", 0.0105),
]


@pytest.mark.parametrize("seed", [7, 2**64 - 1])
def test_answers_halt_and_complexity_are_those_of_radabound(program, new_state, tmp_path, seed):
    n_halts = n_answers = 0
    for n_samples, bound, epsilon in CASES:
        options = {"epsilon": epsilon, "delta": 0.1, "bound": bound, "seed": seed}
        if bound == "fixed-sequence":
            options["max_queries"] = 20
        guard = RadaBound(n_samples, n_vectors=N_VECTORS, signs="generated", **options)
        cells = (2 if guard.estimator == "half-range" else 1) * N_VECTORS * n_samples
        state = tmp_path / f"{n_samples}-{bound}-{epsilon}"
        state.write_bytes(new_state.state(n_samples, **options))
        losses = rows(n_samples, seed)
        result = run(program, state, pack(losses))
        lines = result.stdout.decode().splitlines()
        for k, row in enumerate(losses):
            try:
                answer = guard.query(row)
            except HoldoutExhausted as halt:
                n, complexity, budget = map(int, HALT.fullmatch(lines[k]).groups())
                assert (n, complexity) == (halt.n_queries, round(halt.complexity * cells))
                assert len(lines) == k + 1 and result.returncode == 3
                n_halts += 1
                break
            number, mean, total, m, complexity, budget = ANSWER.fullmatch(lines[k]).groups()
            assert int(number) == answer.n_queries
            assert int(total) / int(m) == answer.value and mean == f"{answer.value:.6f}"
            assert int(complexity) == round(answer.complexity * cells)
            n_answers += 1
        else:
            assert len(lines) == len(losses) and result.returncode == 0
        assert int(budget) == round(guard.budget * cells) or int(budget) < 0 > guard.budget
    assert n_halts > 10 and n_answers > 100  # both ends of the comparison took place


def test_the_integer_gate_is_that_of_the_kernel(new_state):
    for bound, m, n_vectors, epsilon in itertools.product(
        BOUNDS, [1, 63, 1000, 4097, 10**6, 10**9], [1, 9, 32], [0.01, 0.05, 0.3, 0.9]
    ):
        budget, half_range, ends, lows = new_state.gate(m, n_vectors, epsilon, 0.1, bound)
        rule = HaltingRule(m, n_vectors, epsilon, 0.1, bound, None, None, None)
        assert max(budget, -1) == rule.price(m, 0, 0)[0]
        assert half_range == (rule.estimator == "half-range")
        assert len(ends) == len(lows) == 16
        asked = 0
        for end, low in zip(ends, lows, strict=True):
            while asked < end:
                *_, n_priced, declared_low, declared_high, _, _ = rule.price(m, 0, asked)
                assert (declared_low, declared_high) == (low, m - low)
                asked = n_priced
            assert asked >= end  # a stage ends with one of the kernel's
        # after the last there is nothing, or there are too many to be kept
        assert min(ends) > 0 or rule.price(m, 0, asked)[3] == -1 or asked >= 2**62


def test_a_row_of_ten_million_losses_needs_no_more_memory(build, program, new_state, tmp_path):
    m = 10_000_003 if build.machine == "native" else 300_007
    options = {"epsilon": 0.01, "delta": 0.1, "bound": "mclt", "seed": 3}
    (tmp_path / "state").write_bytes(new_state.state(m, **options))
    packed = np.random.default_rng(0).integers(0, 256, size=(2, -(-m // 8)), dtype=np.uint8)
    packed[:, -1] &= 0b111
    result = run(program, tmp_path / "state", packed.tobytes())
    guard = RadaBound(m, signs="generated", **options)
    words = np.pad(packed, ((0, 0), (0, -packed.shape[1] % 8))).view("<u8")
    answers = [guard.query_packed(row) for row in words]
    found = [ANSWER.fullmatch(line).groups() for line in result.stdout.decode().splitlines()]
    assert [int(total) / m for _, _, total, *_ in found] == [a.value for a in answers]
    assert [int(row[4]) for row in found] == [round(a.complexity * N_VECTORS * m) for a in answers]


@pytest.fixture
def spent(new_state, tmp_path):
    """A state file, rows that halt its guard, and what one run over them prints."""

    def made():
        path = tmp_path / "state"
        path.write_bytes(new_state.state(1000, epsilon=0.3, delta=0.1, bound="mclt", seed=7))
        return path

    return made, rows(1000, 7)


def test_stopping_and_going_on_changes_nothing(program, spent):
    made, losses = spent
    whole = run(program, made(), pack(losses))
    assert whole.returncode == 3
    state, parts = made(), b""
    for first in range(0, len(losses), 4):
        parts += run(program, state, pack(losses[first : first + 4])).stdout
    assert parts.startswith(whole.stdout)
    again = set(parts[len(whole.stdout) :].splitlines())
    assert again == {whole.stdout.splitlines()[-1]}  # halted for good: no mean any more
    assert parts.count(b"mean") == whole.stdout.count(b"mean")


def test_a_torn_write_loses_no_answer_that_was_shown(program, spent):
    made, losses = spent
    state = made()
    n = len(state.read_bytes()) // 2
    run(program, state, pack(losses[:4]))
    before = state.read_bytes()
    shown = run(program, state, pack(losses[4:5])).stdout
    after = state.read_bytes()
    newest = [i for i in (0, 1) if before[i * n : (i + 1) * n] != after[i * n : (i + 1) * n]]
    assert newest == [1]  # the fifth row; the fourth is still in the other slot
    for written in [0, 1, 8, 16, 24, 100, n - 1]:
        state.write_bytes(after[:n] + after[n : n + written] + before[n + written :])
        torn = run(program, state, pack(losses[4:5])).stdout
        # either nothing of it counts, and the row is asked again, or all of it does
        assert torn == shown or (torn.startswith(b"6:") and written == n - 1)


def test_a_damaged_state_is_refused_and_left_as_it_is(program, spent):
    made, losses = spent
    state = made()
    n = len(state.read_bytes()) // 2
    for place in [0, 8, 16, 40, 60, n - 1]:
        content = bytearray(made().read_bytes())
        content[place] ^= 1
        content[n + place] ^= 1
        state.write_bytes(content)
        result = run(program, state, pack(losses))
        assert result.returncode == 1 and result.stdout == b"" and b"not whole" in result.stderr
        assert state.read_bytes() == content


@pytest.mark.parametrize(
    "end", [b"\0" * 124, b"\0" * 124 + b"\x01\0", pytest.param(None, id="bit")]
)
def test_a_row_that_is_not_whole_is_not_judged(program, new_state, tmp_path, end):
    state = tmp_path / "state"
    n_samples = 1003 if end is None else 1000  # the last byte has room for a bit too many
    state.write_bytes(new_state.state(n_samples, epsilon=0.3, delta=0.1, bound="mclt", seed=7))
    good = pack(rows(n_samples, 7)[:2])
    run(program, state, good)
    before = state.read_bytes()
    bad = b"\0" * 125 + b"\x08" if end is None else end
    n_whole = len(bad) // 125 if end is not None else 0
    result = run(program, state, bad)
    assert result.returncode == 1 and b"not whole" in result.stderr
    assert result.stdout.count(b"mean") == n_whole
    assert (state.read_bytes() == before) == (n_whole == 0)


def test_two_programs_cannot_share_a_state(program, spent):
    made, losses = spent
    with made().open("r+b") as held:
        fcntl.lockf(held, fcntl.LOCK_EX)
        result = run(program, held.name, pack(losses))
    assert result.returncode == 1 and b"in use" in result.stderr and result.stdout == b""


def test_the_example_of_the_page_is_true():
    (block,) = re.findall(r"```python\n(>>> .*?)```", PAGE.read_text(), re.S)
    test = doctest.DocTestParser().get_doctest(block, {}, "edge.md", "edge.md", 0)
    assert doctest.DocTestRunner().run(test).failed == 0


def documented(machine):
    """Bytes of static memory, stack and code, as docs/edge.md has them."""
    row = re.search(rf"^\| {machine} \|(.*)\|$", PAGE.read_text(), re.M)
    return [int(cell) for cell in row[1].split("|")]


def test_memory_is_below_8_kb_and_what_the_docs_say(build, spent):
    made, losses = spent
    size = {"native": "size", "armhf": "arm-linux-gnueabihf-size"}[build.machine]
    binary = build(f"guard_stream-{build.machine}")[-1]
    table = subprocess.run([size, binary], check=True, capture_output=True, text=True).stdout
    code, data, bss = map(int, table.splitlines()[1].split()[:3])
    painted = run(build(f"painted-{build.machine}"), made(), pack(losses))
    assert (
        painted.stdout
        == run([*build(f"guard_stream-{build.machine}")], made(), pack(losses)).stdout
    )
    stack = int(re.search(rb"stack (\d+)", painted.stderr)[1])
    assert data + bss < 8192 and stack < 8192
    if build.machine == "native" and platform.machine() != "x86_64":
        pytest.skip("the table has x86-64 and armhf")
    name = {"native": "x86-64", "armhf": "armhf"}[build.machine]
    for found, said in zip([data + bss, stack, code], documented(name), strict=True):
        assert abs(found - said) < said / 4  # other compilers, other C libraries
