"""Metrics with their options, as a `Holdout` is made with them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from typing import Any, ClassVar

from radabound_fast._checks import check_choice, shown

from ._table import METRICS

# by name; dataclasses are those alone that have options of their own, as each takes long to make
_CHOICES: dict[str, type[MetricChoice]] = {}


@dataclass(frozen=True)
class MetricChoice:
    """A metric and its options.

    ``Holdout(y_true, metric="roc_auc")`` is ``Holdout(y_true, metric=RocAuc())``: a name is enough
    where all options have defaults.
    """

    name: ClassVar[str]  # a key of `METRICS`; scikit-learn's name where it has one
    _described: ClassVar[str] = ""  # the options that several classes share

    def __init_subclass__(cls) -> None:
        if "name" in vars(cls):
            _CHOICES[cls.name] = cls
            cls.__doc__ = f"{cls.__doc__}{cls._described}"

    @property
    def options(self) -> dict[str, Any]:
        """The options that are not None, by name."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in values.items() if value is not None}


class Error(MetricChoice):
    """The share of wrong predictions."""

    name: ClassVar[str] = "error"


class Accuracy(MetricChoice):
    """The share of right predictions."""

    name: ClassVar[str] = "accuracy"


class BalancedAccuracy(MetricChoice):
    """The mean of the classes' recalls."""

    name: ClassVar[str] = "balanced_accuracy"


@dataclass(frozen=True)
class _TwoClasses(MetricChoice):
    """A metric of two classes."""

    pos_label: Any = None
    _described: ClassVar[str] = """

    Parameters
    ----------
    pos_label : object, optional
        The positive class, which scores, and a single column of probabilities, are of; 1 by default
        if the classes are 0 and 1, or -1 and 1.
    """


class Precision(_TwoClasses):
    """The share of right predictions among those of the positive class."""

    name: ClassVar[str] = "precision"


class Recall(_TwoClasses):
    """The share of right predictions among the rows of the positive class."""

    name: ClassVar[str] = "recall"


class Specificity(_TwoClasses):
    """The share of right predictions among the rows of the negative class."""

    name: ClassVar[str] = "specificity"


class F1(_TwoClasses):
    """The harmonic mean of precision and recall."""

    name: ClassVar[str] = "f1"


class RocAuc(_TwoClasses):
    """The area under the ROC curve, of scores; ties count one half."""

    name: ClassVar[str] = "roc_auc"


@dataclass(frozen=True)
class Cost(MetricChoice):
    """The mean cost of predicted classes.

    Parameters
    ----------
    costs : array_like, shape (n_classes, n_classes)
        ``costs[i][j]`` of predicting class j where class i is true, in order of the classes; a
        frame whose columns or rows are named as the classes is put in their order.
    """

    costs: Any
    name: ClassVar[str] = "mean_cost"


@dataclass(frozen=True)
class LogLoss(MetricChoice):
    """The negative mean log loss, of probabilities.

    Parameters
    ----------
    clip : float
        In (0, 0.5): smaller probabilities of the true class count as this, since the logarithm of
        0 has no limit.
    pos_label : object, optional
        The class that a single column of probabilities is of; 1 by default if the classes are 0
        and 1, or -1 and 1.
    """

    clip: float
    pos_label: Any = None
    name: ClassVar[str] = "neg_log_loss"


class BrierScore(_TwoClasses):
    """The negative mean Brier score, of probabilities."""

    name: ClassVar[str] = "neg_brier_score"


@dataclass(frozen=True)
class _OfNumbers(MetricChoice):
    """A metric of numbers."""

    y_range: tuple[float, float]
    _described: ClassVar[str] = """

    Parameters
    ----------
    y_range : (float, float)
        The range in which all labels and predictions lie, those of the population too.
    """


class AbsoluteError(_OfNumbers):
    """The negative mean absolute error, of numbers."""

    name: ClassVar[str] = "neg_mean_absolute_error"


class SquaredError(_OfNumbers):
    """The negative mean squared error, of numbers."""

    name: ClassVar[str] = "neg_mean_squared_error"


# what other tools call them
_SYNONYMS = {
    other: known
    for known, others in {
        "error": "error_rate zero_one_loss 0-1 misclassification",
        "accuracy": "acc accuracy_score",
        "balanced_accuracy": "bac balanced_acc balanced_accuracy_score",
        "precision": "ppv precision_score",
        "recall": "tpr sensitivity recall_score",
        "specificity": "tnr",
        "f1": "f1_score",
        "mean_cost": "cost",
        "roc_auc": "auc auroc roc-auc rocauc roc_auc_score",
        "neg_log_loss": "log_loss logloss cross_entropy",
        "neg_brier_score": "brier brier_score brier_score_loss",
        "neg_mean_absolute_error": "mae mean_absolute_error absolute_error",
        "neg_mean_squared_error": "mse mean_squared_error squared_error",
    }.items()
    for other in others.split()
}


def as_choice(metric: Any) -> MetricChoice:
    """The metric that a name or an object stands for.

    TypeError, ValueError: neither is it, or it is the name of a metric that needs an option.
    """
    if isinstance(metric, MetricChoice):
        return metric
    if isinstance(metric, type) and issubclass(metric, MetricChoice):
        raise TypeError(f"metric must be a name or an object, got the class {metric.__name__}")
    return choice_of(metric, {})


def choice_of(metric: Any, options: Mapping[str, Any]) -> MetricChoice:
    """The metric of a name, with options by name.

    TypeError, ValueError: no such metric, an option that it does not have, or one missing that it
    needs.
    """
    try:
        name = check_choice(METRICS, metric=metric)
    except ValueError as error:
        known = _SYNONYMS.get(metric.lower()) if isinstance(metric, str) else None
        if known is None:
            raise
        raise ValueError(f"{error}: write {known!r}") from None
    choice = _CHOICES[name]
    has = [field.name for field in fields(choice)]
    for option, value in options.items():
        if option not in has:
            raise TypeError(
                f"{option} must be left out with metric={name!r}, which has "
                f"{', '.join(has) or 'none'}, got {shown(value)}"
            )
    for field in fields(choice):
        if field.default is MISSING and field.name not in options:
            raise TypeError(
                f"{field.name} must be given with metric={name!r}: "
                f"metrics.{choice.__name__}({field.name}=...)"
            )
    return choice(**options)
