"""The metrics: one row each."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from numpy.typing import NDArray

from . import _classes, _losses, _predictions, _scores

if TYPE_CHECKING:
    from ._measure import Measure
    from ._truth import Truth

Array = NDArray[Any]
Limits = tuple[Any, Any]


class Metric(NamedTuple):
    """A row of `METRICS`."""

    name: str  # scikit-learn's, where it has one
    takes: str  # what it is asked with: classes, scores, probabilities or numbers
    greater_is_better: bool
    read: Callable[[Truth, Any, int], Array]  # y_pred of so many dimensions to rows, checked
    # what of each row the value rests on: counts, or losses; then value and limits of each row
    summary: Callable[[Truth, Array], Array]
    value: Callable[[Measure, Array], Array]
    interval: Callable[[Measure, Array, Any], Limits]
    keeps: str  # what is kept of a query: "errors" of each class, or the "limits"
    theorem: str  # of docs/explanation/theory.md, and its name
    # the one count that value and limits are functions of, if there is one: its column in the
    # summary, and its largest value
    one_count: Callable[[Measure], tuple[int, int]] | None = None
    # where errors are kept and there is no such count: how many values with limits there are
    n_outcomes: Callable[[Measure], int] | None = None
    # limits of the first row by the normal approximation, unless the proved are about as narrow
    asymptotic: Callable[[Truth, Array, float], tuple[float, float]] | None = None
    # of a mean over rows, which and how much each counts being fixed by the labels: how many rows
    # it is worth, and whether they all count the same
    n_effective: Callable[[Measure], float] | None = None
    counts_alike: bool = True
    conditional_on: str = ""  # what the coverage is conditional on, if on anything
    over: str = ""  # what the population's value is taken over, if not over all of it
    # of the labels: "", "two classes", "both classes" of two, "every class", or "numbers"
    needs: str = ""


_BINOMIAL, _BETTING = "Result 15: Clopper and Pearson", "Result 24: betting"

_of_errors = partial(Metric, takes="classes", read=_predictions.losses, keeps="errors")
_of_all = partial(
    _of_errors,
    summary=_classes.errors,
    theorem=_BINOMIAL,
    one_count=_classes.first_errors,
    n_effective=_classes.n_rows,
)
_of_each_class = partial(_of_errors, greater_is_better=True, summary=_classes.errors_by_class)
_of_two_classes = partial(_of_each_class, theorem="Result 21: Clopper and Pearson")
_mean = partial(
    Metric,
    keeps="limits",
    theorem=_BETTING,
    asymptotic=_losses.asymptotic,
    n_effective=_classes.n_rows,
)
_negative = partial(
    _mean,
    greater_is_better=True,
    value=_losses.negative_mean,
    interval=_losses.negative_interval,
    asymptotic=_losses.negative_asymptotic,
)
_of_probabilities = partial(_negative, takes="probabilities", read=_predictions.probabilities)
_of_numbers = partial(_negative, takes="numbers", read=_predictions.within_range, needs="numbers")

_ROWS = (
    _of_all(name="error", greater_is_better=False, **_classes.rate(_classes.wrong)),
    _of_all(name="accuracy", greater_is_better=True, **_classes.rate(_classes.right)),
    _of_each_class(
        name="balanced_accuracy",
        value=_classes.balanced_accuracy,
        interval=_classes.balanced_interval,
        asymptotic=_classes.balanced_asymptotic,
        n_outcomes=_classes.n_tables,
        n_effective=_classes.n_balanced,
        counts_alike=False,
        theorem="Result 23: Chernoff, or Clopper and Pearson by class",
        conditional_on="the labels",
        over="over the classes that the holdout has",
        needs="every class",
    ),
    _of_two_classes(
        name="precision",
        **_classes.rate(_classes.right_among_predicted),
        n_outcomes=_classes.n_ratios,
        conditional_on="which rows are predicted positive",
        needs="two classes",
    ),
    _of_two_classes(
        name="recall",
        **_classes.rate(_classes.right_positive),
        one_count=_classes.second_errors,
        n_effective=_classes.n_positive,
        conditional_on="the labels",
        needs="both classes",
    ),
    _of_two_classes(
        name="specificity",
        **_classes.rate(_classes.right),
        one_count=_classes.first_errors,
        n_effective=_classes.n_rows,
        conditional_on="the labels",
        needs="both classes",
    ),
    _of_two_classes(
        name="f1",
        value=_classes.f1,
        interval=_classes.f1_interval,
        n_outcomes=_classes.n_ratios,
        conditional_on="which rows are positive or predicted so",
        needs="two classes",
    ),
    _mean(
        name="mean_cost",
        takes="classes",
        greater_is_better=False,
        read=_predictions.codes,
        summary=_losses.costs,
        value=_losses.mean,
        interval=_losses.mean_interval,
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
        keeps="limits",
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
# means of losses, that may have a baseline, weights and groups; of the first two errors are counted
COUNTED = ("error", "accuracy")
MEANS = (*COUNTED, *(row.name for row in _ROWS if row.keeps == "limits" and row.n_effective))
# those that cross-validation has intervals for
FOLDED = tuple(row.name for row in _ROWS if row.n_effective is not None)
