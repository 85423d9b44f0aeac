"""What guards that live in a database share: whose holdout it is, and which parameters it holds."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from radabound_fast.holdout import Holdout, Losses, as_judged

if TYPE_CHECKING:
    from radabound_fast.rows.labels import Labels


def same_json(value: Any, other: Any) -> bool:
    """Whether both are written alike: 1, 1.0 and true are not."""
    import json  # which few guards need

    return json.dumps(value, sort_keys=True) == json.dumps(other, sort_keys=True)


class Judged:
    """The first argument of `open`: what is judged, and how the database knows it again.

    Parameters
    ----------
    judged : Holdout, Losses, array_like, int or None
        As the guard's constructor takes it; None: losses, as many a row as the file says.
    holdout_id : str or None
        A name for a holdout without labels.

    Raises
    ------
    TypeError, ValueError
        No such holdout, or a name beside labels.
    """

    def __init__(self, judged: Any, holdout_id: str | None) -> None:
        self.holdout = None if judged is None else as_judged(judged)
        self.has_named_metric = isinstance(judged, (Holdout, Losses))
        self._labels: Labels | None = None
        self._holdout_id = holdout_id
        if isinstance(self.holdout, Holdout):
            self._labels = self.holdout.labels
            if holdout_id is not None:
                raise TypeError("holdout_id must be left out beside labels, which tell whose it is")

    def apart(self) -> Holdout | Losses:
        """What is judged, for a guard that is not yet known to be a new one."""
        if self.holdout is None:
            raise TypeError("judged must be given with parameters of a new guard")
        return self.holdout.apart()

    def new_identity(self) -> str | None:
        """What a new database stores: a salted hash of the labels, or the name."""
        if self._labels is None:
            return self._holdout_id
        return self._labels.fingerprint(os.urandom(16).hex())

    def check_made_for(self, name: str, stored: str | None) -> None:
        """ValueError unless the database was made for this holdout."""
        if self._labels is None:
            same = self._holdout_id is None or self._holdout_id == stored
        else:
            same = stored is not None and stored == self._labels.fingerprint(
                stored.partition("$")[0]
            )
        if not same:
            raise ValueError(f"{name} was made for another holdout, or for none by name")

    def take_stored_metric(self, stored: dict[str, Any] | None) -> None:
        """Labels that came without a metric are measured as the database says."""
        if stored is not None and isinstance(self.holdout, Holdout) and not self.has_named_metric:
            self.holdout = self.holdout.with_metric(stored["name"], stored["options"])
