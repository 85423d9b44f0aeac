"""How far long work has come: a line now and then where stderr is no terminal, and no word else."""

import threading

import pytest

from radabound_fast.files import progress as _progress
from radabound_fast.files.progress import progress


class Clock:
    def __init__(self):
        self.now = 100.0

    def monotonic(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(_progress, "time", clock)
    return clock


def test_a_line_is_written_every_few_seconds_and_not_for_every_step(clock, capsys):
    with progress(4000, "models", quiet=False) as advance:
        for _ in range(10):
            advance(300)
            clock.now += 2
    lines = [
        "1,200 of 4,000 models, 6 s",
        "2,100 of 4,000 models, 12 s",
        "3,000 of 4,000 models, 18 s",
    ]
    assert capsys.readouterr() == ("", "\n".join([*lines, ""]))


def test_what_is_done_soon_says_nothing(clock, capsys):
    with progress(2, "cells", quiet=False) as advance:
        advance(1)
        clock.now += 4.9
        advance(1)
    assert capsys.readouterr() == ("", "")


def test_of_work_without_end_it_says_what_is_done(clock, capsys):
    with progress(None, "answers", quiet=False) as advance:
        clock.now += 60
        advance(1234)
    assert capsys.readouterr().err == "1,234 answers, 60 s\n"


def test_quiet_says_nothing_however_long_it_takes(clock, capsys):
    with progress(2, "cells", quiet=True) as advance:
        clock.now += 1000
        advance(1)
    assert capsys.readouterr() == ("", "")


def test_threads_may_report_together(clock, capsys):
    with progress(8000, "models", quiet=False) as advance:
        threads = [
            threading.Thread(target=lambda: [advance(1) for _ in range(1000)]) for _ in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        clock.now += 10
        advance(0)
    assert capsys.readouterr().err == "8,000 of 8,000 models, 10 s\n"


def test_an_error_of_the_work_is_not_swallowed():
    with pytest.raises(ImportError, match="of the work"), progress(1, "cells", quiet=False):
        raise ImportError("of the work")
