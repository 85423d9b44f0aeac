"""Metrics with their options, as a `Holdout` is made with them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from typing import Any, ClassVar

from radabound_fast._checks import check_choice, shown

# by name; dataclasses are those alone that have options of their own, as each takes long to make
_CHOICES: dict[str, type[MetricChoice]] = {}
_SYNONYMS: dict[str, str] = {}  # what other tools call them


@dataclass(frozen=True)
class MetricChoice:
    """A metric and its options.

    ``Holdout(y_true, metric="roc_auc")`` is ``Holdout(y_true, metric=RocAuc())``: a name is enough
    where all options have defaults.
    """

    name: ClassVar[str]  # a key of `METRICS`; scikit-learn's name where it has one
    _described: ClassVar[str] = ""  # the options that several classes share

    def __init_subclass__(cls, name: str = "", others: str = "") -> None:
        if name:
            cls.name, _CHOICES[name] = name, cls
            _SYNONYMS.update(dict.fromkeys(others.split(), name))
            cls.__doc__ = f"{cls.__doc__}{cls._described}"

    @property
    def options(self) -> dict[str, Any]:
        """The options that are not None, by name."""
        return {name: value for name, value in vars(self).items() if value is not None}


class Error(MetricChoice, name="error", others="error_rate zero_one_loss 0-1 misclassification"):
    """The share of wrong predictions."""


class Accuracy(MetricChoice, name="accuracy", others="acc accuracy_score"):
    """The share of right predictions."""


class BalancedAccuracy(
    MetricChoice, name="balanced_accuracy", others="bac balanced_acc balanced_accuracy_score"
):
    """The mean of the classes' recalls."""


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


class Precision(_TwoClasses, name="precision", others="ppv precision_score"):
    """The share of right predictions among those of the positive class."""


class Recall(_TwoClasses, name="recall", others="tpr sensitivity recall_score"):
    """The share of right predictions among the rows of the positive class."""


class Specificity(_TwoClasses, name="specificity", others="tnr"):
    """The share of right predictions among the rows of the negative class."""


class F1(_TwoClasses, name="f1", others="f1_score"):
    """The harmonic mean of precision and recall."""


@dataclass(frozen=True)
class Cost(MetricChoice, name="mean_cost", others="cost"):
    """The mean cost of predicted classes.

    Parameters
    ----------
    costs : array_like, shape (n_classes, n_classes)
        ``costs[i][j]`` of predicting class j where class i is true, in order of the classes; a
        frame whose columns or rows are named as the classes is put in their order.
    """

    costs: Any


class RocAuc(_TwoClasses, name="roc_auc", others="auc auroc roc-auc rocauc roc_auc_score"):
    """The area under the ROC curve, of scores; ties count one half."""


@dataclass(frozen=True)
class LogLoss(MetricChoice, name="neg_log_loss", others="log_loss logloss cross_entropy"):
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


class BrierScore(_TwoClasses, name="neg_brier_score", others="brier brier_score brier_score_loss"):
    """The negative mean Brier score, of probabilities."""


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


class AbsoluteError(
    _OfNumbers, name="neg_mean_absolute_error", others="mae mean_absolute_error absolute_error"
):
    """The negative mean absolute error, of numbers."""


class SquaredError(
    _OfNumbers, name="neg_mean_squared_error", others="mse mean_squared_error squared_error"
):
    """The negative mean squared error, of numbers."""


def as_choice(metric: Any) -> MetricChoice:
    """The metric that a name or an object stands for; the errors are those of `choice_of`."""
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
        name = check_choice(_CHOICES, metric=metric)
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
