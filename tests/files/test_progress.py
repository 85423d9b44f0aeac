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


# of what is done, in how many steps, the seconds of each, and the lines
@pytest.mark.parametrize(
    ("total", "what", "steps", "quiet", "lines"),
    [
        (4000, "models", [(300, 0), *[(300, 2)] * 9], False,
         ["1,200 of 4,000 models, 6 s", "2,100 of 4,000 models, 12 s",
          "3,000 of 4,000 models, 18 s"]),
        (2, "cells", [(1, 0), (1, 4.9)], False, []),  # what is done soon
        (None, "answers", [(1234, 60)], False, ["1,234 answers, 60 s"]),
        (2, "cells", [(1, 1000)], True, []),
    ],
)  # fmt: skip
def test_a_line_is_written_every_few_seconds(clock, capsys, total, what, steps, quiet, lines):
    with progress(total, what, quiet=quiet) as advance:
        for n, seconds in steps:
            clock.now += seconds
            advance(n)
    assert capsys.readouterr() == ("", "".join(f"{line}\n" for line in lines))


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
