"""The metrics: one row each."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from . import _classes, _losses, _predictions, _scores
from ._classes import Array, Limits, Sizes
from ._labels import MetricLabels

_BINOMIAL, _BY_CLASS = "Result 15: Clopper and Pearson", "Result 21: Clopper and Pearson"


class Metric(NamedTuple):
    """A row of `METRICS`."""

    name: str  # scikit-learn's, where it has one
    takes: str  # what predictions are: classes, scores, probabilities or numbers
    greater_is_better: bool
    read: Callable[[MetricLabels, Any, int], Array]  # y_pred of so many dimensions, checked
    # what of each row the value rests on: counts, losses or areas; then value and limits of each
    # row: of losses their mean, and its limits for losses in [0, 1]
    summary: Callable[[MetricLabels, Array], Array]
    value: Callable[[Sizes, Array], Array]
    interval: Callable[[Sizes, Array, Any], Limits]
    stores: str  # what is stored of a query: "errors" of each class, or the "limits"
    theorem: str  # of docs/explanation/theory.md, and its name
    # of a share of the rows of one class, or of all: which, in the summary and the sizes; value and
    # limits are functions of the errors there alone
    column: int | None = None
    # where errors are stored and it is no share: how many values with limits there are
    n_outcomes: Callable[[Sizes], int] | None = None
    # limits of the first row by the normal approximation, unless the proved are about as narrow
    asymptotic: Callable[[MetricLabels, Array, float], tuple[float, float]] | None = None
    is_mean: bool = False  # over all rows: there are weights, groups, folds, and gains
    # of another mean, to which rows count differently: how many rows it is worth
    n_effective: Callable[[Sizes], float] | None = None
    conditional_on: str = ""  # what the coverage is conditional on, if on anything
    over: str = ""  # what the population's value is taken over, if not over all of it
    # of the labels: "", "two classes", "both classes" of two, "every class", or "numbers"
    needs: str = ""

    @property
    def is_negative(self) -> bool:
        """Whether it is the negative mean of its losses."""
        return self.name.startswith("neg_")

    def signed(self, low: Any, high: Any) -> Limits:
        """Limits of the metric, given those of the mean of its losses."""
        return (-high, -low) if self.is_negative else (low, high)


def _share(name: str, column: int, is_right: bool, **others: Any) -> Metric:
    """A share of the rows that `column` counts."""
    return _of_errors(
        name=name,
        greater_is_better=is_right,
        column=column,
        value=partial(_classes.share, column, is_right),
        interval=partial(_classes.share_interval, column, is_right),
        **others,
    )


_of_errors = partial(Metric, takes="classes", read=_predictions.losses, stores="errors")
_of_all = partial(_share, column=0, summary=_classes.errors, is_mean=True, theorem=_BINOMIAL)
_of_each_class = partial(_of_errors, greater_is_better=True, summary=_classes.errors_by_class)
_of_one_class = partial(
    _share,
    is_right=True,
    summary=_classes.errors_by_class,
    theorem=_BY_CLASS,
    conditional_on="the labels",
    needs="both classes",
)
_mean = partial(
    Metric,
    stores="limits",
    theorem="Result 24: betting",
    value=_losses.mean,
    interval=_losses.mean_interval,
    is_mean=True,
)
_of_probabilities = partial(
    _mean, takes="probabilities", greater_is_better=True, read=_predictions.probabilities
)
_of_numbers = partial(
    _mean,
    takes="numbers",
    greater_is_better=True,
    read=_predictions.within_range,
    needs="numbers",
)

_ROWS = (
    _of_all("error", is_right=False),
    _of_all("accuracy", is_right=True),
    _of_each_class(
        name="balanced_accuracy",
        value=_classes.balanced_accuracy,
        interval=_classes.balanced_interval,
        asymptotic=_classes.balanced_asymptotic,
        n_outcomes=_classes.n_tables,
        n_effective=_classes.n_balanced,
        theorem="Result 23: Chernoff, or Clopper and Pearson by class",
        conditional_on="the labels",
        over="over the classes that the holdout has",
        needs="every class",
    ),
    _of_each_class(
        name="precision",
        value=_classes.precision,
        interval=_classes.precision_interval,
        n_outcomes=_classes.n_ratios,
        theorem=_BY_CLASS,
        conditional_on="which rows are predicted positive",
        needs="two classes",
    ),
    _of_one_class("recall", column=1),
    _of_one_class("specificity", column=0),
    _of_each_class(
        name="f1",
        value=_classes.f1,
        interval=_classes.f1_interval,
        n_outcomes=_classes.n_ratios,
        theorem=_BY_CLASS,
        conditional_on="which rows are positive or predicted so",
        needs="two classes",
    ),
    _mean(
        name="mean_cost",
        takes="classes",
        greater_is_better=False,
        read=_predictions.codes,
        summary=_losses.costs,
    ),
    Metric(
        name="roc_auc",
        takes="scores",
        greater_is_better=True,
        read=_predictions.scores,
        summary=_scores.areas,
        value=_scores.auc,
        interval=_scores.auc_interval,
        asymptotic=_scores.auc_asymptotic,
        stores="limits",
        theorem="Result 22: Hoeffding's pairs, or betting on blocks",
        conditional_on="the labels",
        needs="both classes",
    ),
    _of_probabilities(name="neg_log_loss", summary=_losses.log_losses),
    _of_probabilities(name="neg_brier_score", summary=_losses.brier_losses),
    _of_numbers(name="neg_mean_absolute_error", summary=_losses.absolute_errors),
    _of_numbers(name="neg_mean_squared_error", summary=_losses.squared_errors),
)

METRICS = {row.name: row for row in _ROWS}
# means over all rows, that may have a baseline, weights and groups; of the first two errors are
# counted
MEANS = tuple(row.name for row in _ROWS if row.is_mean)
COUNTED = MEANS[:2]
# those that cross-validation has intervals for: of means, and given the labels
FOLDED = tuple(
    row.name for row in _ROWS if row.is_mean or row.n_effective or row.column is not None
)
