"""How much of a score leaves a guard, where that is a choice."""

from __future__ import annotations

from typing import Any, Literal

from radabound_fast._checks import shown
from radabound_fast.holdout import Holdout, Losses
from radabound_fast.rows.rounded import Rounded

Release = Literal["interval"] | Rounded


def rounding(release: Any, holdout: Holdout | Losses) -> Rounded | None:
    """Return the grid on which a guard answers; None: values are released as they are.

    ValueError: `release` is neither, or losses are judged.
    """
    if not isinstance(release, Rounded):
        if release != "interval":
            raise ValueError(f"release must be 'interval' or a Rounded, got {shown(release)}")
        return None
    if isinstance(holdout, Losses):
        raise ValueError(
            "release must be 'interval' where losses are judged: whoever brings them knows their "
            f"mean, got {release!r}"
        )
    return release


def tolerance_before(rounded: Rounded | None, epsilon: float) -> float:
    """Return how near a score must be known, for its rounded value to be within epsilon.

    ValueError: the step is not below 2 epsilon.
    """
    if rounded is None:
        return epsilon
    if rounded.step >= 2.0 * epsilon:
        raise ValueError(
            f"release must have a step below 2 epsilon = {2.0 * epsilon:g}, got {rounded!r}"
        )
    from fractions import Fraction  # which is slow to import

    return float(Fraction(repr(epsilon)) - Fraction(repr(rounded.step)) / 2)


def described(release: Any) -> Any:
    """Return a release as a JSON value, which `release_from` reads."""
    return {"step": release.step} if isinstance(release, Rounded) else release


def release_from(stored: Any) -> Any:
    """Return the release that `described` described."""
    return Rounded(stored["step"]) if isinstance(stored, dict) else stored


def rounding_sentence(rounded: Rounded | None) -> str:
    """Return what a guarantee adds where answers are rounded; else nothing."""
    if rounded is None:
        return ""
    return (
        f" Answers are rounded to multiples of {rounded.step:g}, and intervals are widened by what "
        "that hides (Result 35)."
    )
