"""The conditions of a `Gate`: checked, described, and decided at a number of nats."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from radabound_fast._checks import check_bool, check_choice, check_count, check_delta, check_real
from radabound_fast.guards.candidates import Candidate, CandidateRows, Estimate
from radabound_fast.guards.gate.verdicts import VERDICTS
from radabound_fast.guards.release import described, release_from
from radabound_fast.rows.packing import as_array, check_shape
from radabound_fast.rows.parts import rows_of_text, text_of_rows
from radabound_fast.rows.rounded import Rounded

Slices = dict[str, NDArray[np.bool_]]
Stored = Callable[[int], Candidate]  # the candidates by number; 0 is the first baseline


@dataclass(frozen=True, eq=False)
class GateRules:
    """The conditions of a gate: `Gate`'s parameters, and whether candidates have a comparator."""

    delta: float
    margin: float | None
    total_margin: float | None
    at_least: float | None
    at_most: float | None
    slices: Slices
    slice_margin: float
    n_candidates: int | None
    promote: bool
    release: str | Rounded
    has_baseline: bool

    @classmethod
    def of(cls, n_samples: int, **arguments: Any) -> Self:
        """Check the arguments of a gate, by name; a ValueError too if they leave no condition."""
        if not isinstance(arguments["release"], Rounded):
            check_choice(VERDICTS, release=arguments["release"])
        for name in ("margin", "total_margin", "at_least", "at_most", "slice_margin"):
            if arguments[name] is not None or name == "slice_margin":
                arguments[name] = check_real(**{name: arguments[name]})
        if arguments["n_candidates"] is not None:
            arguments["n_candidates"] = check_count(n_candidates=arguments["n_candidates"])
        arguments["promote"] = check_bool(promote=arguments["promote"])
        arguments["slices"] = _slices_of(arguments["slices"], n_samples)
        return cls(**arguments | {"delta": check_delta(arguments["delta"])})

    def __post_init__(self) -> None:
        if self.slice_margin < 0.0:
            raise ValueError(f"slice_margin must not be negative, got {self.slice_margin!r}")
        if not self.has_baseline:
            gains = {"total_margin": self.total_margin, "slices": self.slices or None}
            for name, value in gains.items():
                if value is not None:  # 0.0 is a margin
                    raise ValueError(f"{name} must be left out without a baseline")
            if self.release == "three":
                raise ValueError("release must be 'pass' without a baseline, got 'three'")
        if self.release == "three" and self.margin is None:
            raise ValueError("margin must be a number with release='three', got None")
        if not self.claim("", ""):
            raise ValueError(
                "a gate needs a condition: give a baseline, at_least or at_most (with a baseline "
                "and margin=None too)"
            )

    def describe(self) -> dict[str, Any]:
        """Return the conditions as JSON values, which `from_description` reads."""
        return vars(self) | {
            "slices": [[name, text_of_rows(rows)] for name, rows in self.slices.items()],
            "release": described(self.release),
        }

    @classmethod
    def from_description(cls, stored: dict[str, Any], n_samples: int) -> Self:
        """Return the conditions that `describe` described."""
        slices = {name: rows_of_text(rows, n_samples) for name, rows in stored["slices"]}
        release = release_from(stored["release"])
        return cls(**stored | {"slices": slices, "release": release})

    @property
    def verdicts(self) -> tuple[str, ...]:
        """The verdicts that the gate can give."""
        return VERDICTS["three" if self.release == "three" else "pass"]

    def claim(self, metric: str, other: str) -> str:
        """Return in words what holds of a candidate that passes in comparison with another."""
        claims = []
        if self.has_baseline and self.margin is not None:
            claims.append(f"it is {_better(self.margin, other)} ({metric})")
        if self.total_margin is not None:
            claims.append(f"it is {_better(self.total_margin, 'the first baseline')}")
        if self.at_least is not None:
            claims.append(f"its {metric} is at least {self.at_least}")
        if self.at_most is not None:
            claims.append(f"its {metric} is at most {self.at_most}")
        if self.slices:
            worse = f"it is worse than {other} by more than {self.slice_margin:g}"
            claims.append(f"on no slice ({', '.join(self.slices)}) {worse}")
        return ", and ".join(claims)

    @property
    def n_estimates(self) -> int:
        """How many estimates of a candidate there are."""
        return 1 + self.has_baseline + (self.total_margin is not None) + len(self.slices)

    def nats_a_release(self, rows: CandidateRows) -> float:
        """Return what the value that is released of a candidate costs every later one."""
        assert isinstance(self.release, Rounded)
        ends = (-rows.span, rows.span) if self.has_baseline else rows.ends
        return math.log(self.release.n_values(*ends))

    def decide(self, estimates: dict[str, Estimate]) -> tuple[str, float | None]:
        """Return the verdict on a candidate with these estimates, and the value to release."""
        better = estimates.get("gain")
        if all(self._holds(name, estimate) for name, estimate in estimates.items()):
            verdict = self.verdicts[0]
        elif self.release != "three":
            verdict = self.verdicts[1]
        else:
            assert better is not None and self.margin is not None
            verdict = "worse" if better.high <= self.margin else "neither"
        if not isinstance(self.release, Rounded):
            return verdict, None
        return verdict, self.release.of((better or estimates["value"]).value)

    def estimates(
        self,
        rows: CandidateRows,
        candidate: Candidate,
        other: int | None,
        stored: Stored,
        nats: float,
    ) -> dict[str, Estimate]:
        """Return the estimates that the conditions are about, by name, against another's number."""
        estimates = {"value": rows.value(candidate, nats)}
        if other is None:
            return estimates
        production = stored(other)
        estimates["gain"] = rows.gain(production, candidate, nats)
        if self.total_margin is not None:
            first = production if other == 0 else stored(0)
            estimates["total gain"] = rows.gain(first, candidate, nats)
        for name, where in self.slices.items():
            estimates[f"gain on {name}"] = rows.gain(production, candidate, nats, where)
        return estimates

    def _holds(self, name: str, estimate: Estimate) -> bool:
        """Whether the condition on an estimate holds, by its limits."""
        if name == "value":
            is_enough = self.at_least is None or estimate.low >= self.at_least
            return is_enough and (self.at_most is None or estimate.high <= self.at_most)
        if name == "gain":
            return self.margin is None or estimate.low > self.margin
        if name == "total gain":
            assert self.total_margin is not None
            return estimate.low > self.total_margin
        return estimate.low >= -self.slice_margin


# those that are `Gate`'s parameters
CONDITIONS = {each.name for each in fields(GateRules)} - {"has_baseline"}


def _better(margin: float, other: str) -> str:
    if margin == 0.0:
        return f"better than {other}"
    if margin > 0.0:
        return f"better than {other} by more than {margin:g}"
    return f"worse than {other} by less than {-margin:g}, if at all"


def _slices_of(slices: Mapping[str, Any] | None, n_samples: int) -> Slices:
    if slices is None:
        return {}
    if not isinstance(slices, Mapping):
        raise TypeError(f"slices must be a mapping of names to rows, got {type(slices).__name__}")
    masks: Slices = {}
    for name, rows in slices.items():
        if not isinstance(name, str):
            raise TypeError(f"slices must have names that are strings, got {name!r:.50}")
        mask = as_array(rows, f"slices[{name!r}]")
        check_shape(mask, n_samples, 1, f"slices[{name!r}]")
        if mask.dtype != np.bool_:
            raise TypeError(f"slices[{name!r}] must be bool, one a row, got dtype {mask.dtype}")
        if not mask.any():
            raise ValueError(f"slices[{name!r}] must hold at least one row, got none")
        masks[name] = mask.copy()
    return masks
