"""The answers of a `ConfirmedSearch`: one a finalist."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from radabound_fast._kernels.guard import Answer
from radabound_fast.guards.answers import Answers
from radabound_fast.guards.declared.answers import Comparison

_OPTIONAL = (
    "asymptotic_low",
    "asymptotic_high",
    "asymptotic_gain_low",
    "asymptotic_gain_high",
    "asymptotic_nats",
    "passed",
)


class Finalist(NamedTuple):
    """What is known of a finalist, as the guard's events hold it; None: it was not released.

    Attributes
    ----------
    name : str
    number, batch : int
        Its place among all finalists, and in which batch it was confirmed.
    nats : float
        What its interval was taken at.
    search_value : float or None
        The metric on the search rows.
    value : (value, low, high)
    gain : Comparison or None
        Over the baseline.
    over : dict of str to Comparison
        Gains over the other finalists of its batch, by their names.
    passed : bool or None
        The verdict, where one was asked for.
    asymptotic : (low, high) or None
        Of the value: by the normal approximation, where the proved limits are much wider, or by the
        bootstrap.
    asymptotic_nats : float or None
        What `asymptotic` was taken at by the bootstrap; None by the normal approximation.
    """

    name: str
    number: int
    batch: int
    nats: float
    search_value: float | None = None
    value: tuple[float | None, float | None, float | None] = (None, None, None)
    gain: Comparison | None = None
    over: dict[str, Comparison] = {}  # noqa: RUF012 a default that nobody changes
    passed: bool | None = None
    asymptotic: tuple[float, float] | None = None
    asymptotic_nats: float | None = None


class ConfirmedAnswer(Answer):
    """The answer for one finalist of a `ConfirmedSearch`.

    Attributes
    ----------
    value : float
        The metric on the confirmation rows.
    low, high : float
        Limits of the population's value, for all finalists of all batches at once.  nan, as
        `value`, where it is released at the end alone.
    half_width : float
        The longer side of the interval.
    number : int
        The finalist's place among all.
    name : str
    batch : int
        In which batch it was confirmed, from 1.
    nats : float
        What each limit was taken at: its error probability is at most exp(-nats).
    search_value : float or None
        The metric on the search rows; None where predictions for these were not passed.
    passed : bool or None
        With ``release="pass"``: whether the whole interval clears the bar.
    gain, gain_low, gain_high : float or None
        How much better than the baseline: how much less often it errs, or how much lower its mean
        loss is.  None without a baseline; nan where it is released at the end alone.
    asymptotic_low, asymptotic_high : float or None
        Limits by the normal approximation at the same nats, which nothing proves: by DeLong for the
        AUC, by Wilson for the balanced accuracy, and by the central limit theorem for weighted
        means and means of real numbers.  None for other metrics, whose proved limits are about as
        narrow; where losses do not vary; and where they are released at the end alone.  With
        ``limits="bootstrap"``: the proved kind of limits at the bootstrap's level, which hold for
        all finalists at once with probability about 1 - delta; None of a finalist with fewer than
        40 errors or 40 right rows, for which `low` and `high` stand in.
    asymptotic_gain_low, asymptotic_gain_high : float or None
        The gain's limits at the bootstrap's level; None without it, or where fewer than 40 rows
        differ.
    asymptotic_nats : float or None
        What each limit of the value was taken at by the bootstrap; None without it.
    """

    __slots__ = ("_finalist", "_has_gains")
    fields: ClassVar[tuple[str, ...]] = (*Answer.fields, "name", "batch", "nats", "search_value")

    def __init__(self, finalist: Finalist, has_gains: bool) -> None:
        self._finalist, self._has_gains = finalist, has_gains

    @property
    def value(self) -> float:
        return _number(self._finalist.value[0])

    @property
    def low(self) -> float:
        return _number(self._finalist.value[1])

    @property
    def high(self) -> float:
        return _number(self._finalist.value[2])

    @property
    def half_width(self) -> float:
        return max(self.value - self.low, self.high - self.value)

    @property
    def number(self) -> int:
        return self._finalist.number

    @property
    def name(self) -> str:
        return self._finalist.name

    @property
    def batch(self) -> int:
        return self._finalist.batch

    @property
    def nats(self) -> float:
        return self._finalist.nats

    @property
    def search_value(self) -> float | None:
        return self._finalist.search_value

    @property
    def passed(self) -> bool | None:
        return self._finalist.passed

    @property
    def gain(self) -> float | None:
        return self._gain(0)

    @property
    def gain_low(self) -> float | None:
        return self._gain(1)

    @property
    def gain_high(self) -> float | None:
        return self._gain(2)

    @property
    def asymptotic_low(self) -> float | None:
        return None if self._finalist.asymptotic is None else self._finalist.asymptotic[0]

    @property
    def asymptotic_high(self) -> float | None:
        return None if self._finalist.asymptotic is None else self._finalist.asymptotic[1]

    @property
    def asymptotic_gain_low(self) -> float | None:
        return None if self._finalist.gain is None else self._finalist.gain.asymptotic_low

    @property
    def asymptotic_gain_high(self) -> float | None:
        return None if self._finalist.gain is None else self._finalist.gain.asymptotic_high

    @property
    def asymptotic_nats(self) -> float | None:
        return self._finalist.asymptotic_nats

    def _gain(self, place: int) -> float | None:
        if not self._has_gains:
            return None
        return math.nan if self._finalist.gain is None else self._finalist.gain[place]

    @property
    def finalist(self) -> Finalist:
        """All that was released of the finalist."""
        return self._finalist

    def to_dict(self) -> dict[str, Any]:
        """Return all fields by name; of optional ones those that are there."""
        names = ["gain", "gain_low", "gain_high"] if self._has_gains else []
        names += [name for name in _OPTIONAL if getattr(self, name) is not None]
        return super().to_dict() | {name: getattr(self, name) for name in names}

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ConfirmedAnswer):
            return NotImplemented
        return bool(self.__reduce__() == other.__reduce__())

    def __hash__(self) -> int:
        return hash((self.name, self.number))

    def __reduce__(self) -> Any:
        return type(self), (self._finalist, self._has_gains)


class ConfirmedAnswers(Answers[ConfirmedAnswer]):
    """The answers for several finalists, by place or by name: ``answers["stack"]``.

    Attributes
    ----------
    values, lows, highs, half_widths, numbers, halted, n_answered
        As in `Answers`.
    names : list of str
    best : ConfirmedAnswer
        The answer with the lowest high; where a larger metric is better, with the highest low.
    """

    def __init__(
        self,
        answers: Iterable[ConfirmedAnswer],
        *,
        halted: bool,
        n_answered: int,
        greater_is_better: bool,
    ) -> None:
        super().__init__(list(answers), halted=halted, n_answered=n_answered)
        self._greater_is_better = greater_is_better

    @property
    def names(self) -> list[str]:
        return [answer.name for answer in self]

    @property
    def ranks(self) -> NDArray[np.float64]:
        """The limit that an answer is ranked by, better where smaller: its high, or -low."""
        return -self.lows if self._greater_is_better else self.highs

    @property
    def best(self) -> ConfirmedAnswer:
        ranks = self.ranks
        if np.isnan(ranks).all():
            raise ValueError("no interval was released yet: close_out() ends the search, and does")
        return self[int(np.nanargmin(ranks))]

    def compare(self, a: str, b: str) -> Comparison:
        """Return how much better one finalist is than another of its batch, with limits.

        Parameters
        ----------
        a, b : str
            Names.

        Returns
        -------
        Comparison
            Its limits hold together with all intervals.

        Raises
        ------
        KeyError
            The search was not made with ``pairs=True``, or the pair is not of one batch, or its
            gain is released at the end alone.
        """
        first = self[a].finalist
        if b not in first.over:
            self[b]  # noqa: B018 raises where there is no such name
            raise KeyError(
                f"no gain of {a!r} over {b!r} was released: that takes pairs=True, and finalists "
                "of one batch, after the last of which all is released"
            )
        return first.over[b]

    @overload
    def __getitem__(self, index: int | str) -> ConfirmedAnswer: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[ConfirmedAnswer]: ...
    def __getitem__(self, index: int | slice | str) -> ConfirmedAnswer | Sequence[ConfirmedAnswer]:
        if not isinstance(index, str):
            return super().__getitem__(index)
        for answer in self:
            if answer.name == index:
                return answer
        called = ", ".join(self.names) or "none so far"
        raise KeyError(f"no finalist is called {index!r}; there are: {called}")


def _number(value: float | None) -> float:
    return math.nan if value is None else value
