"""One owner per guard: a copy, a pickle or a forked child would spend what the original has not
counted, so that together they spend more than was proved to be safe.  And attributes set once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, SupportsIndex

from radabound_fast._kernels.support import n_forks


class SetOnce:
    """Base class of what states a guarantee: the attributes that it rests on are set once."""

    _set_once: ClassVar[frozenset[str]]

    if not TYPE_CHECKING:  # a type checker would take every attribute for one that can be set

        def __setattr__(self, name: str, value: Any) -> None:
            if name in self._set_once and hasattr(self, name):
                raise AttributeError(
                    f"{name} of a {type(self).__name__} cannot be changed: make another one"
                )
            super().__setattr__(name, value)


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
