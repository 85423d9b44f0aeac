"""What the commands write: whole or not at all, where they were asked to, and nowhere else."""

import errno
import io
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest
from support import waiting

from radabound_fast import cli
from radabound_fast.files import output as _output
from radabound_fast.files.output import whole_file, write_figure

AUDIT = ["audit", "--losses", "l.npy", "--epsilon", "0.2", "--delta", "0.1", "--bound", "mclt"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The working directory, with losses of which every one is answered."""
    monkeypatch.chdir(tmp_path)
    np.save("l.npy", np.random.default_rng(0).random((20, 1000)) < 0.1)
    return tmp_path


def names_in(folder):
    return sorted(path.name for path in folder.iterdir())


def write_in(path, text):
    with whole_file(path) as name:
        Path(name).write_text(text)


@pytest.mark.parametrize("kind", [str, os.fsencode, Path])
def test_a_file_appears_at_any_kind_of_path(folder, kind):
    write_in(kind("a.txt"), "first")
    write_in(kind(str(folder / "a.txt")), "second")
    assert Path("a.txt").read_text() == "second"
    assert names_in(folder) == ["a.txt", "l.npy"]


def test_a_new_file_has_the_permissions_of_any_and_an_old_one_keeps_its_own(folder):
    Path("other").touch()
    write_in("a.txt", "")
    assert Path("a.txt").stat().st_mode == Path("other").stat().st_mode
    Path("a.txt").chmod(0o600)
    write_in("a.txt", "")
    assert Path("a.txt").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("stop", [ValueError, KeyboardInterrupt, SystemExit])
def test_whatever_stops_the_writing_leaves_what_was_there(folder, stop):
    Path("a.txt").write_text("old")
    for name in ("a.txt", "b.txt"):
        with pytest.raises(stop), whole_file(name) as part:
            Path(part).write_text("half")
            raise stop
    assert names_in(folder) == ["a.txt", "l.npy"]
    assert Path("a.txt").read_text() == "old"


def test_nobody_can_guess_where_the_parts_are_written(folder):
    parts = []
    for _ in range(2):
        with whole_file("a.txt") as part:
            assert Path(part).parent.resolve() == folder and Path(part).name != "a.txt"
            parts.append(part)
    assert parts[0] != parts[1]


def test_a_link_is_never_written_through(folder):
    Path("victim").write_text("precious")
    for name in ("a.csv", "dangling.csv"):
        os.symlink("victim" if name == "a.csv" else "nowhere", name)
        with pytest.raises(ValueError, match=f"{name} is a symbolic link"):
            write_in(name, "")
    # where parts used to be written: as good a place for a link as any
    os.symlink("victim", "b.csv.part")
    write_in("b.csv", "new")
    assert Path("victim").read_text() == "precious" and not Path("nowhere").exists()
    assert not Path("b.csv").is_symlink()


def test_a_part_is_never_written_through_a_link_that_guessed_its_name(folder, monkeypatch):
    Path("victim").write_text("precious")
    monkeypatch.setattr(_output.secrets, "token_hex", lambda n: "guessed")
    os.symlink("victim", ".a.csv.guessed.part")
    with pytest.raises(FileExistsError):
        write_in("a.csv", "new")
    assert Path("victim").read_text() == "precious" and not Path("a.csv").exists()


def test_a_linked_folder_is_a_folder(folder):
    Path("real").mkdir()
    os.symlink("real", "linked")
    write_in("linked/a.csv", "new")
    assert Path("real/a.csv").read_text() == "new"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full here")
def test_devices_are_written_directly(folder):
    with pytest.raises(OSError) as caught:
        write_in("/dev/full", "x")
    assert caught.value.errno == errno.ENOSPC
    write_in(os.devnull, "x")


@pytest.mark.parametrize("option", ["--output", "--plot"])
def test_a_full_disk_is_named_and_leaves_nothing(folder, capsys, monkeypatch, option):
    if option == "--plot":
        pytest.importorskip("matplotlib", reason="the plot extra is not installed")
    name = f"a{'.png' if option == '--plot' else '.csv'}"
    builtin = open

    class Full(io.FileIO):
        """A file that takes a few bytes, and no more."""

        left = 10

        def write(self, data):
            self.left -= len(data)
            if self.left < 0:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return super().write(data)

    def opened(file, mode="r", *arguments, **options):
        if str(file).endswith(".part"):
            return Full(file, mode.replace("b", ""))
        return builtin(file, mode, *arguments, **options)

    monkeypatch.setattr("builtins.open", opened)
    assert cli.main([*AUDIT, "--quiet", option, name]) == 2
    monkeypatch.undo()
    out, err = capsys.readouterr()
    assert (out, err) == ("", f"radabound audit: {name}: No space left on device\n")
    assert names_in(folder) == ["l.npy"]


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("no/a.csv", "no/a.csv: its folder does not exist"),
        (".", ". is a folder"),
        ("link.csv", "link.csv is a symbolic link: name the file that it points to"),
    ],
)
def test_where_nothing_can_be_written_is_told_before_the_replay(
    folder, capsys, monkeypatch, target, message
):
    os.symlink("l.npy", "link.csv")
    monkeypatch.setattr(cli.audit, "Files", lambda *_: pytest.fail("a file was read"))
    assert cli.main([*AUDIT, "--output", target]) == 2
    assert capsys.readouterr() == ("", f"radabound audit: {message}\n")


def test_a_figure_is_written_whole(folder):
    pytest.importorskip("matplotlib", reason="the plot extra is not installed")
    from matplotlib.figure import Figure

    write_figure(b"a.png", Figure())
    assert Path("a.png").read_bytes().startswith(b"\x89PNG")
    assert names_in(folder) == ["a.png", "l.npy"]


# ---- signals ------------------------------------------------------------------------------


def started(folder, preexec_fn):
    process = waiting([*AUDIT, "--quiet", "--output", "a.csv"], cwd=folder, preexec_fn=preexec_fn)
    assert len(names_in(folder)) == 2  # the part is there
    return process


@pytest.mark.thorough
@pytest.mark.skipif(sys.platform == "win32", reason="Windows ends processes without a signal")
@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP", "SIGINT"])
def test_a_signal_ends_the_command_without_a_word_and_without_its_part_file(folder, name):
    process = started(folder, lambda: signal.signal(getattr(signal, name), signal.SIG_DFL))
    process.send_signal(getattr(signal, name))
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (128 + getattr(signal, name), "", "")
    assert names_in(folder) == ["l.npy"]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGHUP")
@pytest.mark.thorough
def test_a_signal_that_the_parent_has_ignored_stays_ignored(folder):
    process = started(folder, lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    process.send_signal(signal.SIGHUP)
    time.sleep(0.2)
    assert process.poll() is None
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert process.returncode == 143


def test_the_command_leaves_the_handlers_of_its_caller_alone(folder, capsys):
    before = signal.getsignal(signal.SIGTERM)
    try:
        for handler in (signal.SIG_DFL, signal.SIG_IGN, lambda *_: None):
            signal.signal(signal.SIGTERM, handler)
            assert cli.main([*AUDIT, "--quiet"]) == 0
            assert signal.getsignal(signal.SIGTERM) == handler
    finally:
        signal.signal(signal.SIGTERM, before)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full here")
@pytest.mark.parametrize("arguments", [["info"], AUDIT, [*AUDIT, "--json"]])
def test_a_report_that_finds_no_space_is_one_line(folder, arguments):
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "radabound_fast", *arguments],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
            check=False,
        )
    assert done.returncode == 2
    expected = f"radabound {arguments[0]}: output: No space left on device\n"
    assert done.stderr == expected, textwrap.shorten(done.stderr, 500)
