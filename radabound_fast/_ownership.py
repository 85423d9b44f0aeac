"""One owner per guard: a copy, a pickle or a forked child would spend what the original has not
counted, so that together they spend more than was proved to be safe.
"""

from __future__ import annotations

from typing import ClassVar, NoReturn, SupportsIndex

from radabound_fast._kernels.support import n_forks


class Owned:
    """Base class of whatever spends a holdout: belongs to the process that made it.

    A subclass calls ``self._check_owner()`` before it takes its lock: a fork may have copied that
    lock while it was held.
    """

    # what to do instead of copying
    _instead: ClassVar[str] = (
        "send predictions or packed losses (pack_losses) to the process that owns it"
    )

    def __init__(self) -> None:
        if hasattr(self, "_born"):  # vars(self) would make each later look-up of a method slower
            raise RuntimeError(
                f"this {type(self).__name__} has been made: __init__ once more would forget what "
                "it has counted"
            )
        self._born = n_forks()

    def _check_owner(self) -> None:
        if self._born != n_forks():
            raise RuntimeError(
                f"this {type(self).__name__} was made before os.fork and belongs to the parent: "
                f"the child would spend a budget that nobody counts; {self._instead}"
            )

    # copy.copy, copy.deepcopy and every pickle protocol ask here
    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise TypeError(
            f"a {type(self).__name__} cannot be copied or pickled: "
            f"the copy would spend a budget that nobody counts; {self._instead}"
        )
