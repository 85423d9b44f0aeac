"""What trackers of experiments log of a trial of Optuna that a `GuardedObjective` has judged."""

from __future__ import annotations

from typing import Any

from radabound_fast._kernels.guard import METRICS

PREFIX = "holdout_"


def metrics_of_trial(trial: Any) -> dict[str, float]:
    """Return the metrics of a finished trial; none if it has no answer, which is objective 0."""
    if trial.values is None or f"{PREFIX}number" not in trial.user_attrs:
        return {}
    attributes = trial.user_attrs | {f"{PREFIX}value": trial.values[0]}
    names = [f"{PREFIX}{name}" for name in METRICS]
    return {name: float(attributes[name]) for name in names if name in attributes}
