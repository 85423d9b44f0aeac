"""The logger "radabound_fast": a line a halt (INFO), a line a call that was answered (DEBUG).

The second is of guards that were made while the logger's level let it through: a query takes a
quarter of a microsecond, in which the level is not read.  No line has a withheld value, a loss or a
label, nor the value of a search that is shown less than its scores.
"""

from __future__ import annotations

import sys
from typing import Any

_INFO, _DEBUG = 20, 10  # logging's


def _logger() -> Any:
    """None where nobody has loaded `logging`, so that nobody listens: it takes milliseconds."""
    logging: Any = sys.modules.get("logging")
    if not hasattr(logging, "NullHandler"):  # none, or in the middle of its import
        return None
    logger = logging.getLogger("radabound_fast")
    if not logger.handlers:
        logger.addHandler(logging.NullHandler())
    return logger


def hears_queries() -> bool:
    """Whether DEBUG lines are let through."""
    logger = _logger()
    return logger is not None and bool(logger.isEnabledFor(_DEBUG))


def _note(level: int, text: str, *values: Any) -> None:
    logger = _logger()
    if logger is not None:
        logger.log(level, text, *values)


def note_halt(kind: str, n_queries: int, n_samples: int) -> None:
    """A guard has halted."""
    answers = "answer" if n_queries == 1 else "answers"
    text = "%s of %d samples halted after %d %s: the next is withheld, and all after it"
    _note(_INFO, text, kind, n_samples, n_queries, answers)


def note_answer(kind: str, n_queries: int, value: float | None, key: str = "") -> None:
    """One query was answered, after which there are so many; None: nobody is to see the value."""
    shown = () if value is None else (value,)
    _note(_DEBUG, "%s answered query %d%s" + ": %.6g" * len(shown), kind, n_queries, key, *shown)


def note_answers(kind: str, n_answered: int, n_queries: int) -> None:
    """A block of queries was answered."""
    _note(_DEBUG, "%s answered %d queries in one call, %d in all", kind, n_answered, n_queries)
