"""Search rows and confirmation rows: how they are chosen, and what they must hold."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from radabound_fast._checks import counted
from radabound_fast.holdout import Holdout, Losses
from radabound_fast.metrics import COUNTED, MEANS, METRICS
from radabound_fast.rows.packing import as_array
from radabound_fast.rows.parts import draw_part

Mask = NDArray[np.bool_]

_LEAST_DELTA = 0.001  # of limits by the bootstrap


def confirmation_rows(
    holdout: Holdout | Losses, rows: Any, share: float, seed: int | None, stratify: bool
) -> Mask:
    """Check rows that were chosen elsewhere, or draw some with a seed; groups are kept whole.

    ValueError if a part would lack rows or classes that it needs, or if no limits are proved for
    stratified rows.
    """
    if seed is None:
        chosen = _chosen_rows(holdout, rows)
    else:
        weighting, groups = holdout.weighting, None
        if weighting is not None and not weighting.is_of_rows:
            groups = weighting.codes
        strata = _strata(holdout) if stratify else None
        chosen = draw_part(holdout.n_samples, share, seed, groups=groups, strata=strata)
    _check_classes(holdout, confirmation=chosen, search=~chosen)
    return chosen


def _strata(holdout: Holdout | Losses) -> NDArray[Any]:
    """The classes of the rows, where stratified rows have limits that are proved."""
    if not isinstance(holdout, Holdout) or holdout.takes == "numbers":
        raise ValueError("stratify must be False where there are no classes")
    by_betting = holdout.metric in MEANS and holdout.metric not in COUNTED
    if holdout.metric in ("precision", "f1") or by_betting or holdout.weighting is not None:
        what = "weights or groups" if holdout.weighting is not None else repr(holdout.metric)
        raise ValueError(f"stratify must be False with {what}: no limits are proved for that")
    return holdout.labels.codes


def _chosen_rows(holdout: Holdout | Losses, rows: Any) -> Mask:
    chosen, n_samples = as_array(rows, "rows"), holdout.n_samples
    if holdout.labels is not None:
        holdout.labels.check_rows(rows, name="rows")
    if chosen.dtype != np.bool_ or chosen.shape != (n_samples,):
        raise ValueError(
            f"rows must be a boolean array of shape ({n_samples},), True for rows that are kept "
            f"for the end, got dtype {chosen.dtype}, shape {chosen.shape}"
        )
    if not chosen.any():
        raise ValueError("rows must keep at least one row for the end, got none")
    if holdout.weighting is not None:
        codes = holdout.weighting.codes
        torn = np.intersect1d(codes[chosen], codes[~chosen])
        if len(torn):
            raise ValueError(
                f"rows must keep groups whole, got {counted(len(torn), 'group')} in both parts, "
                f"one of them that of row {int(np.argmax(codes == torn[0]))}"
            )
    return chosen.copy()


def check_gains(holdout: Holdout | Losses, stratify: bool, name: str) -> None:
    """ValueError where the gains that an argument of this name is for have no limits."""
    if not isinstance(holdout, Holdout) or holdout.metric not in MEANS:
        raise ValueError(
            f"{name} must be left out with {holdout.metric!r}: gains are of means of labelled "
            f"rows, {', '.join(MEANS)}"
        )
    if holdout.weighting is not None:
        raise ValueError(f"{name} must be left out beside sample_weight or groups")
    if stratify:
        raise ValueError(
            f"{name} must be left out with stratify=True: limits of gains are proved for "
            "independent rows"
        )


def check_bootstrap(
    holdout: Holdout | Losses, stratify: bool, n_batches: int | None, delta: float
) -> None:
    """ValueError where the bootstrap gives finalists no limits that hold at once."""
    if n_batches != 1:
        raise ValueError(f"n_batches must be 1 with limits='bootstrap', got {n_batches}")
    if delta < _LEAST_DELTA:
        raise ValueError(
            f"delta must be at least {_LEAST_DELTA} with limits='bootstrap', which takes 10 / "
            f"delta sign vectors or more, got {delta!r}"
        )
    if stratify:
        raise ValueError(
            "stratify must be False with limits='bootstrap', which is of independent rows"
        )
    if holdout.weighting is not None:
        raise ValueError("sample_weight and groups must be left out with limits='bootstrap'")
    if isinstance(holdout, Holdout) and holdout.metric not in MEANS:
        raise ValueError(
            f"metric must be a mean of losses with limits='bootstrap', {', '.join(MEANS)}, got "
            f"{holdout.metric!r}"
        )


def _check_classes(holdout: Holdout | Losses, **parts: Mask) -> None:
    """ValueError where a part lacks a class without which the metric says something else."""
    if not isinstance(holdout, Holdout):
        return
    row, codes = METRICS[holdout.metric], holdout.labels.codes
    if row.needs != "both classes" and row.name != "balanced_accuracy":
        return
    least = len(np.unique(codes))
    for name, part in parts.items():
        n_classes = len(np.unique(codes[part]))
        if part.any() and n_classes < least:
            raise ValueError(
                f"the {name} rows must hold all {least} classes with metric={row.name!r}, so at "
                f"least {least} rows, got {int(part.sum())} of "
                f"{counted(n_classes, 'class', 'classes')}: pass stratify=True, another share, or "
                "other rows"
            )


def warn_of_few(part: Holdout | Losses, nats: float) -> None:
    """Warn where even a flawless model has an interval over half of the metric's range or more.

    With n rows, all right, the exact limit at so many nats is ``1 - exp(-nats / n)``.
    """
    n_rows, of = part.n_samples, ""
    if isinstance(part, Holdout) and METRICS[part.metric].needs == "both classes":
        n_rows, of = int(np.bincount(part.labels.codes).min()), " of each class"
    elif part.weighting is not None:  # independent ones
        n_rows, of = int(part.weighting.counts.sum()), ", or groups of them,"
    least = math.ceil(nats / math.log(2))
    if n_rows < least:
        warnings.warn(
            f"confirmation rows must be at least {least}{of} to say anything with metric="
            f"{part.metric!r}, got {n_rows}: a flawless model would have an interval over half of "
            "the metric's range",
            stacklevel=4,
        )


def repeated_rows(X: Any, confirmation_rows: Mask) -> Mask:
    """Find confirmation rows whose features are those of a search row, and warn of them."""
    features = as_array(X, "X")
    if features.ndim != 2 or len(features) != len(confirmation_rows):
        raise ValueError(
            f"X must have shape ({len(confirmation_rows)}, n_features), got {features.shape}"
        )
    exact = features.dtype.kind != "O"  # by their octets nan is nan
    keys = [row.tobytes() if exact else repr(row.tolist()) for row in features]
    seen = {keys[place] for place in np.flatnonzero(~confirmation_rows)}
    repeated: Mask = confirmation_rows & np.array([key in seen for key in keys])
    if repeated.any():
        warnings.warn(
            f"{counted(int(repeated.sum()), 'confirmation row')} of "
            f"{int(confirmation_rows.sum()):,} repeat the features of a search row: pass "
            "equal rows as one group (Holdout(..., groups=...))",
            stacklevel=3,
        )
    return repeated
