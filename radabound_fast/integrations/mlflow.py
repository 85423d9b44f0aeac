"""MLflow: answers as metrics of the active run, one step each, and a report as its artifacts."""

from __future__ import annotations

import time
from collections.abc import Iterable
from itertools import islice
from typing import TYPE_CHECKING, Any

from radabound_fast._extras import needs
from radabound_fast.integrations._trackers import metrics_of_trial

if TYPE_CHECKING:
    from radabound_fast import Answer
    from radabound_fast.guards.report import Report
    from radabound_fast.service.client import RemoteReport

with needs("mlflow"):
    import mlflow
    from mlflow.entities import Metric

__all__ = ["log_answers", "log_report", "log_trial"]

_TOGETHER = 1000  # metrics that MLflow takes in one call


def log_answers(answers: Iterable[Answer]) -> None:
    """Log value, low, high and half-width of each answer; the step is its number.

    They are ``search.answers``, or what `query_many` of any guard returned.
    """
    now = int(1000 * time.time())
    metrics = (
        Metric(name, value, now, answer.number)
        for answer in answers
        for name, value in answer.as_metrics().items()
    )
    run = mlflow.active_run() or mlflow.start_run()
    while some := list(islice(metrics, _TOGETHER)):
        mlflow.MlflowClient().log_batch(run.info.run_id, metrics=some)


def log_trial(study: Any, trial: Any) -> None:
    """Log the answer of a trial; the step is the trial's number.

    It is a callback for ``study.optimize(guarded_objective(...), callbacks=[log_trial])``; a trial
    without an answer logs nothing.
    """
    if metrics := metrics_of_trial(trial):
        mlflow.log_metrics(metrics, step=trial.number)


def log_report(report: Report | RemoteReport) -> None:
    """Log ``search.report()`` as ``holdout.html`` and ``holdout.json``, its sentence as a tag."""
    mlflow.log_text(report.to_html(), "holdout.html")
    mlflow.log_text(report.to_json(), "holdout.json")
    mlflow.set_tag("holdout", str(report))
