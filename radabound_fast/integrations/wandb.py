"""Weights & Biases: answers as a chart of the active run, and a report as its artifact."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from radabound_fast._extras import needs
from radabound_fast._kernels.guard import METRICS
from radabound_fast.integrations._trackers import PREFIX, metrics_of_trial

if TYPE_CHECKING:
    from radabound_fast import Answer
    from radabound_fast.guards.report import Report
    from radabound_fast.service.client import RemoteReport

with needs("wandb"):
    import wandb

__all__ = ["log_answers", "log_report", "log_trial"]

_STEP = f"{PREFIX}step"  # the axis of the charts: other steps of a run are left alone


def log_answers(answers: Iterable[Answer]) -> None:
    """Log value, low, high and half-width of each answer, over its number.

    They are ``search.answers``, or what `query_many` of any guard returned.
    """
    run = _run()
    for answer in answers:
        run.log(answer.as_metrics() | {_STEP: answer.number})


def log_trial(study: Any, trial: Any) -> None:
    """Log the answer of a trial, over the trial's number.

    It is a callback for ``study.optimize(guarded_objective(...), callbacks=[log_trial])``; a trial
    without an answer logs nothing.
    """
    if metrics := metrics_of_trial(trial):
        _run().log(metrics | {_STEP: trial.number})


def log_report(report: Report | RemoteReport) -> None:
    """Log ``search.report()`` as an artifact and a panel, and its sentence in the summary."""
    run = _run()
    artifact = wandb.Artifact(f"holdout-{run.id}", type="report")
    for name, text in (("holdout.html", report.to_html()), ("holdout.json", report.to_json())):
        with artifact.new_file(name, encoding="utf-8") as file:
            file.write(text)
    run.log_artifact(artifact)
    run.log({"holdout": wandb.Html(report.to_html(), inject=False)})
    run.summary["holdout_sentence"] = str(report)


def _run() -> Any:
    """The active run, whose charts of answers have an axis of their own."""
    if wandb.run is None:
        raise RuntimeError("there must be an active run: call wandb.init() first")
    for name in METRICS:
        wandb.run.define_metric(f"{PREFIX}{name}", step_metric=_STEP)
    return wandb.run
