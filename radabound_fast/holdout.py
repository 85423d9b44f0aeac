"""What a guard judges: labels and a metric (`Holdout`), or losses (`Losses`)."""

from __future__ import annotations

import sys
import warnings
from copy import copy
from types import FrameType
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from radabound_fast._checks import check_n_samples, shown
from radabound_fast._kernels.support import sealed
from radabound_fast._ownership import SetOnce
from radabound_fast.rows.labels import Labels
from radabound_fast.rows.weighting import Weighting

if TYPE_CHECKING:
    from radabound_fast.metrics import MetricChoice

_ATTRIBUTES = """n_samples weighting labels truth metric greater_is_better limits_of_metric takes
classes pos_label"""
_PACKAGE = __name__.partition(".")[0] + "."


def _n_frames_of_package() -> int:
    """How many frames there are from the caller's, itself included, to the first of a user."""
    frame: FrameType | None = sys._getframe(1)
    n_frames = 0
    while frame is not None and frame.f_globals.get("__name__", "").startswith(_PACKAGE):
        frame, n_frames = frame.f_back, n_frames + 1
    return n_frames


class _Judged(SetOnce):
    """The part that `Holdout` and `Losses` share: how rows count, and which guards there are."""

    _set_once = frozenset(_ATTRIBUTES.split())

    def __init__(self, n_samples: int, weighting: Weighting | None) -> None:
        self.n_samples: Final = n_samples
        self.weighting: Final = weighting
        # the first guards, in order; of one with a database its path
        self._guards: dict[object, None] = {}

    def note_guard(self, path: str | None) -> None:
        """Count a guard that was made on this, and warn once about a second one.

        `path` is the database of a guard that has one: opened twice it is one guard.
        """
        guard = object() if path is None else path
        if len(self._guards) > 1 or guard in self._guards:
            return
        self._guards[guard] = None
        if list(self._guards)[1:2] == [guard]:  # one of several threads made the second
            warnings.warn(
                "this holdout has a second guard: two guards do not know each other, so split "
                "delta between them, or share one guard (open)",
                stacklevel=_n_frames_of_package() + 1,
            )

    def apart(self) -> Self:
        """The same, as if no guard had been made on it."""
        other = copy(self)
        other._guards = {}
        return other


class Losses(_Judged):
    """A holdout whose guard is asked about losses, and never sees labels.

    Its `metric` is "mean loss"; less is better.  ``RadaBound(4000, ...)`` is short for
    ``RadaBound(Losses(4000), ...)``.

    Parameters
    ----------
    n_samples : int
        Held-out rows, m; 1 to 2**40.
    sample_weight : array_like of float, shape (n_samples,), optional
        How much each row counts, positive, and fixed before any score was seen.
    groups : array_like, shape (n_samples,), optional
        Rows of one group (patient, video) may depend on each other; rows of different groups are
        independent.

    Raises
    ------
    TypeError, ValueError
        An argument is of the wrong type or out of its range; the message says which and why.
    """

    def __init__(self, n_samples: int, *, sample_weight: Any = None, groups: Any = None) -> None:
        n_samples = check_n_samples(n_samples)
        super().__init__(n_samples, Weighting.of(n_samples, sample_weight, groups))

    metric: Final = "mean loss"
    greater_is_better: Final = False
    takes: Final = "losses"
    classes = pos_label = labels = None

    def part(self, rows: NDArray[np.bool_]) -> Losses:
        """Return the `rows`, bool of shape (n_samples,), as a holdout of their own."""
        weights, groups = _parts(self.weighting, rows)
        return Losses(int(rows.sum()), sample_weight=weights, groups=groups)

    def __repr__(self) -> str:
        weighted = "" if self.weighting is None else ", weighted"
        return f"Losses({self.n_samples}{weighted})"


class Holdout(_Judged):
    """Labels of held-out rows, and the metric that models are judged by.

    A guard is made on a holdout, and answers how good predictions are; the labels stay inside.
    ``DeclaredSearch(y_true, ...)`` is short for ``DeclaredSearch(Holdout(y_true), ...)``.

    Parameters
    ----------
    y_true : array_like, shape (n_samples,)
        The labels: bool, integer or float (one kind, compared by value), or strings, or other
        hashable objects.
    metric : str or object of `radabound_fast.metrics`, default "error"
        What is measured.  A name of `metrics.METRICS`, or an object that carries options, such as
        ``metrics.LogLoss(clip=1e-6)`` or ``metrics.F1(pos_label="yes")``.  "error" is the share of
        wrong predictions, and the one metric that every guard answers; the others need a
        `DeclaredSearch` or a `FixedSequence`.
    classes : array_like, optional
        What a prediction may be; by default the values in `y_true`.  Recall, specificity, balanced
        accuracy and AUC need a row of each.
    sample_weight : array_like of float, shape (n_samples,), optional
        For metrics that are means, over a `DeclaredSearch` or a `FixedSequence`: how much each row
        counts, positive, and fixed before any score was seen.  The population value is then that at
        these weights, given which rows weigh how much: docs/how-to/weights-and-groups.md.
    groups : array_like, shape (n_samples,), optional
        For the same: rows of one group (patient, video) may depend on each other.

    Attributes
    ----------
    n_samples : int
        Held-out rows, m.
    metric : str
        The metric's name.
    greater_is_better : bool
        Whether a larger value of it is better.
    limits_of_metric : tuple of float
        The least and the largest value that it can have.
    takes : {"classes", "scores", "probabilities", "numbers"}
        What a query brings.
    pos_label : object
        The positive class; None where the metric has none.
    labels, truth, weighting
        The labels, the labels as the metric wants them, and how much each row counts.

    Raises
    ------
    TypeError, ValueError
        An argument is of the wrong type or out of its range; the message says which and why.

    Warns
    -----
    UserWarning
        A second guard is made on one holdout: two guards do not know each other.

    Notes
    -----
    Predictions are compared with labels exactly, whatever their dtypes, and by position: a Series
    that has the index of `y_true` in another order is an error.  Probabilities in a frame whose
    columns are named as the classes are put in their order.  Values are scikit-learn's;
    docs/reference/metrics.md has the interval of each metric and what it is conditional on.

    Examples
    --------
    >>> import numpy as np
    >>> from radabound_fast import DeclaredSearch, Holdout
    >>> from radabound_fast.metrics import RocAuc
    >>> rng = np.random.default_rng(0)
    >>> y_true = rng.choice(["cat", "dog"], size=4000)
    >>> holdout = Holdout(y_true, metric=RocAuc(pos_label="dog"))
    >>> search = DeclaredSearch(holdout, {"depth": range(1, 11)}, delta=0.1)
    >>> scores = (y_true == "dog") + rng.normal(size=4000)
    >>> answer = search.query(scores, key={"depth": 3})
    >>> round(answer.value, 4), round(answer.low, 4), round(answer.high, 4)
    (0.7734, 0.7373, 0.7941)
    """

    @sealed
    def __init__(
        self,
        y_true: Any,
        *,
        metric: str | MetricChoice = "error",
        classes: Any = None,
        sample_weight: Any = None,
        groups: Any = None,
    ) -> None:
        from radabound_fast.metrics import Truth, as_choice  # which guards of losses do without

        labels = y_true if isinstance(y_true, Labels) else Labels(y_true, classes)
        labels.check_rows(sample_weight, name="sample_weight")
        labels.check_rows(groups, name="groups")
        super().__init__(labels.n_samples, Weighting.of(labels.n_samples, sample_weight, groups))
        self._choice = choice = as_choice(metric)
        self.labels: Final = labels
        self.truth: Final = Truth(labels, choice, self.weighting)
        self.metric: Final[str] = choice.name
        self.greater_is_better: Final = self.truth.row.greater_is_better
        self.limits_of_metric: Final = self.truth.ends
        self.takes: Final[str] = self.truth.row.takes
        self.pos_label: Final[Any] = (
            labels.classes[self.truth.options["pos_label"]] if self.truth.has_positive else None
        )

    @property
    def classes(self) -> list[Any] | None:
        """What a prediction may be, sorted; None where predictions are numbers in a range."""
        return None if self.takes == "numbers" else self.labels.classes

    def part(self, rows: NDArray[np.bool_]) -> Holdout:
        """Return `rows`, bool of shape (n_samples,), as a holdout with these classes and metric."""
        weights, groups = _parts(self.weighting, rows)
        labels, metric = self.labels[rows], self._choice
        return Holdout(labels, metric=metric, sample_weight=weights, groups=groups)

    def of_other_rows(self, y_true: Any) -> Holdout:
        """Return other rows, of labels `y_true`, under the same classes and metric, unweighted."""
        return Holdout(Labels(y_true, self.classes), metric=self._choice)

    def with_metric(self, metric: str, options: dict[str, Any]) -> Holdout:
        """Return these rows under another `metric` with its `options`, a dict.

        Its ``pos_label`` is a place among the classes.
        """
        from radabound_fast.metrics import choice_of

        named = dict(options)
        if "pos_label" in named:
            named["pos_label"] = self.labels.classes[named["pos_label"]]
        choice, counts = choice_of(metric, named), self.weighting
        weights, groups = (None, None) if counts is None else (counts.weights, counts.codes)
        return Holdout(self.labels, metric=choice, sample_weight=weights, groups=groups)

    def __repr__(self) -> str:
        metric = "" if self.metric == "error" else f", metric={self.metric!r}"
        return f"Holdout(n_samples={self.n_samples}{metric})"


def _parts(weighting: Weighting | None, rows: NDArray[np.bool_]) -> tuple[Any, Any]:
    """The weights and the groups of some rows; None where there are none."""
    if weighting is None:
        return None, None
    groups = None if weighting.is_of_rows else weighting.codes[rows]
    return None if weighting.weights is None else weighting.weights[rows], groups


def as_judged(judged: Any) -> Holdout | Losses:
    """What a guard's first argument stands for; TypeError or ValueError if it is none of these.

    Labels stand for ``Holdout(labels)``, a number of rows for ``Losses(number)``.
    """
    if isinstance(judged, (Holdout, Losses)):
        return judged
    if isinstance(judged, (int, float, np.generic)):
        return Losses(judged)  # type: ignore[arg-type]  # which says what is wrong with a float
    if isinstance(judged, (type, str)) or judged is None:
        raise TypeError(
            f"judged must be labels, a Holdout, Losses or the number of rows, got {shown(judged)}"
        )
    return Holdout(judged)
