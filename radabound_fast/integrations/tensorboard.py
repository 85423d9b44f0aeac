"""TensorBoard: answers as scalars of a writer, one step each, and a report as its text.

A writer is a ``SummaryWriter`` of PyTorch or tensorboardX, or a ``tensorboard.summary.Writer``;
it is known by its methods, so that none of them has to be installed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from radabound_fast.integrations._trackers import PREFIX, metrics_of_trial

if TYPE_CHECKING:
    from radabound_fast import Answer
    from radabound_fast.guards.report import Report
    from radabound_fast.service.client import RemoteReport

__all__ = ["log_answers", "log_report", "log_trial"]


def log_answers(writer: Any, answers: Iterable[Answer]) -> None:
    """Log value, low, high and half-width of each answer; the step is its number.

    They are ``search.answers``, or what `query_many` of any guard returned; the writer has
    ``add_scalar(tag, value, step)``.
    """
    for answer in answers:
        _log(writer, answer.as_metrics(), answer.number)


def log_trial(writer: Any) -> Callable[[Any, Any], None]:
    """Return a callback that logs the answer of a trial; the step is the trial's number.

    It is for ``study.optimize(guarded_objective(...), callbacks=[log_trial(writer)])``; a trial
    without an answer logs nothing.
    """

    def callback(study: Any, trial: Any) -> None:
        _log(writer, metrics_of_trial(trial), trial.number)

    return callback


def log_report(writer: Any, report: Report | RemoteReport) -> None:
    """Log ``search.report()``: sentence, table and guarantee as text, the picture as an image.

    The writer has ``add_text(tag, text)``, and ``add_figure`` for the picture.
    """
    writer.add_text("holdout/report", report.to_markdown())
    if hasattr(report, "plot") and hasattr(writer, "add_figure"):
        writer.add_figure("holdout/report", report.plot())


def _log(writer: Any, metrics: dict[str, float], step: int) -> None:
    for name, value in metrics.items():
        writer.add_scalar(f"holdout/{name.removeprefix(PREFIX)}", value, step)
