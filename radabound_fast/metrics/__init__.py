"""What a holdout measures: `METRICS`, a row a metric, by scikit-learn's names.

A row says what a metric takes, what it stores of predictions, its value, which is scikit-learn's,
and where the population's value lies, except with probability ``2 exp(-nats)``, for one model
fixed in advance on independent rows.  Under cross-validation the means among them have the limits
of Result 27.  `Truth` has the labels of one holdout, and reads predictions; `Measure` is what may
leave it: the metric and how many labels each class has, from which stored counts become values and
intervals.
"""

from ._choices import (
    F1,
    AbsoluteError,
    Accuracy,
    BalancedAccuracy,
    BrierScore,
    Cost,
    Error,
    LogLoss,
    MetricChoice,
    Precision,
    Recall,
    RocAuc,
    Specificity,
    SquaredError,
    as_choice,
    choice_of,
)
from ._measure import MeanLoss, Measure
from ._scores import RocBand, roc_band
from ._table import COUNTED, FOLDED, MEANS, METRICS, Metric
from ._truth import Truth, fingerprints_of
from ._values import read_counts

__all__ = [
    "AbsoluteError",
    "Accuracy",
    "BalancedAccuracy",
    "BrierScore",
    "COUNTED",
    "Cost",
    "Error",
    "F1",
    "FOLDED",
    "LogLoss",
    "MEANS",
    "METRICS",
    "MeanLoss",
    "Measure",
    "Metric",
    "MetricChoice",
    "Precision",
    "Recall",
    "RocAuc",
    "RocBand",
    "Specificity",
    "SquaredError",
    "Truth",
    "as_choice",
    "choice_of",
    "fingerprints_of",
    "read_counts",
    "roc_band",
]
