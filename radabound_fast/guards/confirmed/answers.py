"""The answers of a `ConfirmedSearch`: one a finalist."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import nan
from typing import Any, NamedTuple, Self, overload

import numpy as np
from numpy.typing import NDArray

from radabound_fast.guards.answers import Answers, MeanAnswer
from radabound_fast.guards.declared.answers import Comparison

Number = float | None


class Finalist(NamedTuple):
    """What is known of a finalist, as the guard's events hold it; None: it was not released."""

    name: str
    number: int  # its place among all finalists
    batch: int  # in which it was confirmed
    nats: float  # what its interval was taken at
    search_value: Number = None  # the metric on the search rows
    value: tuple[Number, Number, Number] = (None, None, None)  # and its limits
    gain: Comparison | None = None  # over the baseline
    # over the other finalists of its batch, by their names
    over: dict[str, Comparison] = {}  # noqa: RUF012 a default that nobody changes
    passed: bool | None = None  # the verdict, with release="pass"
    # limits by the normal approximation, where the proved ones are much wider, or by the bootstrap,
    # and what these were taken at
    asymptotic: tuple[float, float] | None = None
    asymptotic_nats: Number = None


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class ConfirmedAnswer(MeanAnswer):
    """The answer for one finalist of a `ConfirmedSearch`.

    Attributes
    ----------
    value, low, high, half_width : float
        The metric on the confirmation rows, limits of the population's value, for all finalists of
        all batches at once, and the longer side.  nan where they are released at the end alone.
    number, name, batch : int, str, int
        The finalist's place among all, and the batch in which it was confirmed, from 1.
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
    asymptotic_gain_low, asymptotic_gain_high, asymptotic_nats : float or None
        The gain's limits at the bootstrap's level, and what the value's were taken at; None without
        it.  Limits are None too where fewer than 40 rows differ.
    over : dict of str to Comparison
        Gains over the other finalists of its batch that were released, by their names.
    """

    name: str
    batch: int
    nats: float
    search_value: Number
    gain: Number
    gain_low: Number
    gain_high: Number
    asymptotic_low: Number
    asymptotic_high: Number
    asymptotic_gain_low: Number
    asymptotic_gain_high: Number
    asymptotic_nats: Number
    passed: bool | None
    over: dict[str, Comparison]

    @classmethod
    def of(cls, finalist: Finalist, has_gains: bool) -> Self:
        """Return the answer for a finalist, whose search has a baseline or none."""
        fields = finalist._asdict()
        value, low, high = (nan if one is None else one for one in fields.pop("value"))
        asymptotic_low, asymptotic_high = fields.pop("asymptotic") or (None, None)
        unknown: Any = nan if has_gains else None
        gain = fields.pop("gain") or Comparison(unknown, unknown, unknown, unknown)
        return cls(
            **fields,
            value=value,
            low=low,
            high=high,
            half_width=max(value - low, high - value),
            gain=gain.gain,
            gain_low=gain.gain_low,
            gain_high=gain.gain_high,
            asymptotic_low=asymptotic_low,
            asymptotic_high=asymptotic_high,
            asymptotic_gain_low=gain.asymptotic_low,
            asymptotic_gain_high=gain.asymptotic_high,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return all fields by name, but for `over`; those that are None are left out.

        `search_value` is there in any case.
        """
        every = MeanAnswer.to_dict(self)
        del every["over"]
        return {k: value for k, value in every.items() if value is not None or k == "search_value"}

    def __hash__(self) -> int:
        return hash((self.name, self.number))


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
        """Return how much better finalist `a` is than `b` of its batch, by their names.

        The limits hold together with all intervals.

        Raises
        ------
        KeyError
            The search was not made with ``pairs=True``, or the pair is not of one batch, or its
            gain is released at the end alone.
        """
        over = self[a].over
        if b not in over:
            self[b]  # noqa: B018 raises where there is no such name
            raise KeyError(
                f"no gain of {a!r} over {b!r} was released: that takes pairs=True, and two "
                "different models of one batch, after the last of which all is released"
            )
        return over[b]

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
