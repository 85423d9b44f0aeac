"""What the boosting hooks share: a holdout that is asked about a growing ensemble."""

from __future__ import annotations

from typing import Any

import numpy as np

from radabound_fast._checks import check_count
from radabound_fast._exhausted import HoldoutExhausted
from radabound_fast.integrations._owner import check_holdout


class Rounds:
    """Asks every so many rounds, and remembers the best round that was answered."""

    def __init__(self, holdout: Any, every: int, classes: Any) -> None:
        self.holdout = check_holdout(holdout=holdout)
        self.every = check_count(every=every)
        self.classes = np.array(holdout.classes if classes is None else classes)
        self.best_round: int | None = None
        self.best_error = np.inf

    def is_due(self, round_: int) -> bool:
        """Whether this round, the first of which is 0, is one to ask about."""
        return (round_ + 1) % self.every == 0

    def ask(self, round_: int, scores: Any) -> bool:
        """Whether the holdout still answers, given probabilities (m,) or (m, n_classes).

        Raises HoldoutExhausted if the very first answer is withheld: then no round is best.
        """
        codes = scores.argmax(axis=1) if scores.ndim == 2 else (scores > 0.5).astype(np.intp)
        try:
            error = self.holdout.query(self.classes[codes]).value
        except HoldoutExhausted:
            if self.best_round is None:
                raise
            return False
        if error < self.best_error:
            self.best_round, self.best_error = round_, error
        return True
