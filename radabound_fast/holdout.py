"""Holdout: labels inside, predictions in, 0-1 losses to a guard."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, ClassVar, Self, SupportsIndex

from radabound_fast import _kernel
from radabound_fast._kernel import sealed
from radabound_fast._ownership import Owned
from radabound_fast._saving import Saved
from radabound_fast.guard import RadaBound
from radabound_fast.labels import Labels
from radabound_fast.mechanisms.declared_search import DeclaredSearch

if TYPE_CHECKING:
    from radabound_fast.store import Durability, Path


class Holdout(Owned, _kernel.PredictionQueries):
    """A holdout's labels, behind a guard: ask it how often predictions err.

    Parameters
    ----------
    y_true : array_like, shape (n_samples,)
        The labels: bool, integer or float (one kind, compared by value), or strings, or other
        hashable objects.
    guard : RadaBound or mechanism, optional
        What answers.  None builds ``RadaBound(n_samples, **parameters)``.
    classes : array_like, optional
        What a prediction may be; by default the values in `y_true`.
    **parameters
        Of `RadaBound`: epsilon, delta, n_vectors, bound, ...; not beside a guard.

    Raises
    ------
    TypeError, ValueError
        An argument is of the wrong type or out of its range; the message says which and why.

    Notes
    -----
    The loss of a prediction is 1 where it differs from the label and 0 where it does not; they
    are compared exactly.  `halted`, `n_queries`, `complexity`, `budget`, `threshold`,
    `guarantee` and `seed` are the guard's.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y_true = rng.choice(["cat", "dog"], size=4000)
    >>> holdout = Holdout(y_true, epsilon=0.05, delta=0.1, bound="mclt", seed=0)
    >>> answer = holdout.query(np.where(rng.random(4000) < 0.1, "cat", y_true))
    >>> 0.04 < answer.value < 0.06
    True
    """

    _instead: ClassVar[str] = (
        "send predictions to the process that owns it, as integrations.joblib.guarded_map does "
        "(in scikit-learn use integrations.sklearn.HoldoutSearchCV)"
    )
    _forwarded: ClassVar[frozenset[str]] = frozenset(
        [
            "halted",
            "n_queries",
            "complexity",
            "budget",
            "threshold",
            "guarantee",
            "seed",
        ]
    )

    @sealed
    def __init__(
        self, y_true: Any, guard: Any = None, *, classes: Any = None, **parameters: Any
    ) -> None:
        super().__init__()
        self._labels = y_true if isinstance(y_true, Labels) else Labels(y_true, classes)
        if guard is None:
            guard = RadaBound(self._labels.n_samples, **parameters)
        elif parameters:
            raise TypeError(
                f"parameters are those of a new guard, got a guard and {sorted(parameters)}"
            )
        if isinstance(guard, type) or not hasattr(guard, "query_packed"):
            raise TypeError(f"guard must be a RadaBound or a mechanism, got {guard!r}")
        if guard.n_samples != self._labels.n_samples:
            raise ValueError(
                f"guard must be for the {self._labels.n_samples} samples of y_true, "
                f"got one for {guard.n_samples}"
            )
        self._guard = guard
        self._rows = self._labels.rows
        self._asked = guard if type(guard) is RadaBound else None  # a subclass may see each query

    @classmethod
    @sealed
    def open(
        cls,
        path: Path,
        y_true: Any,
        guard: type[Saved | DeclaredSearch] = RadaBound,
        *,
        classes: Any = None,
        durability: Durability = "power",
        **parameters: Any,
    ) -> Self:
        """A holdout whose guard lives in a database, made now if there is none.

        Parameters
        ----------
        path, durability
            As for `RadaBound.open`.
        y_true, classes
            As for `Holdout`.  The database holds a salted hash of the labels, which shows
            whether a complete guess of them is right and nothing else, and opens only for the
            labels that it was made for.
        guard : type, default RadaBound
            `RadaBound` or a mechanism.
        **parameters
            Of the guard; none, to take those in the file.

        Returns
        -------
        Holdout
            Close it with `close` or a ``with`` block; a dropped one closes itself.

        Raises
        ------
        FileNotFoundError, ValueError, OSError
            As `RadaBound.open` does.
        """
        labels = Labels(y_true, classes)

        def same(stored: str | None) -> bool:
            return stored is not None and stored == labels.fingerprint(stored.partition("$")[0])

        wanted = {"n_samples": labels.n_samples} | parameters if parameters else None
        fingerprint = labels.fingerprint(os.urandom(16).hex())
        made = guard._open(path, wanted, durability, fingerprint, same)
        return cls(labels, made)

    def __reduce_ex__(self, protocol: SupportsIndex) -> Any:
        if isinstance(self._guard, DeclaredSearch):  # the labels go along
            return type(self), (self._labels, self._guard)
        return super().__reduce_ex__(protocol)

    def close(self) -> None:
        """Let go of the database and answer nothing more; closing twice does nothing."""
        self.guard.close()

    def __enter__(self) -> Self:
        self.guard.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def guard(self) -> Any:
        """What answers."""
        return self._guard

    @property
    def n_samples(self) -> int:
        """m, how many labels there are."""
        return self._labels.n_samples

    @property
    def classes(self) -> Any:
        """What a prediction may be, sorted."""
        return self._labels.classes

    # `query` is compiled; what it cannot answer comes here
    def _query(self, y_pred: Any, guess: float | None, key: Any, rerun: int) -> Any:
        if isinstance(self._guard, DeclaredSearch):
            words = _kernel.pack_rows(*self._labels.match(y_pred, ndim=1))
            return self._guard.query_packed(words, key=key, rerun=rerun)
        self._check_no_keys(key)
        self._check_owner()
        values, labels = self._labels.match(y_pred, ndim=1)
        if isinstance(self.guard, RadaBound):
            return self.guard._query_predictions(values, labels)
        return self.guard.query_packed(_kernel.pack_rows(values, labels), guess=guess)

    def _check_no_keys(self, keys: Any) -> None:
        if keys is not None:
            guard = type(self._guard).__name__
            raise TypeError(f"only a DeclaredSearch is asked by key, this guard is a {guard}")

    @sealed
    def query_many(
        self, Y_pred: Any, *, guesses: Any = None, keys: Any = None, **options: Any
    ) -> Any:
        """`query` for each row of predictions in order, up to the first that is withheld.

        Parameters
        ----------
        Y_pred : array_like, shape (k, n_samples)
            Predicted classes, one row per query.
        guesses : array_like of float, shape (k,), optional
            For mechanisms that need them.
        keys : sequence, length k, optional
            For a `DeclaredSearch`: which model each row is of.
        **options
            ``trace`` and ``n_threads`` of `RadaBound.query_many`, ``reruns`` of a `DeclaredSearch`;
            other mechanisms take none.

        Returns
        -------
        Answers
            The guard's.

        Raises
        ------
        HoldoutExhausted
            The guard had halted before this call.
        TypeError, ValueError
            Not predictions of these classes; nothing has changed.
        """
        if isinstance(self._guard, DeclaredSearch):
            words = _kernel.pack_rows(*self._labels.match(Y_pred, ndim=2))
            return self._guard.query_many_packed(words, keys=keys, **options)
        self._check_no_keys(keys)
        self._check_owner()
        values, labels = self._labels.match(Y_pred, ndim=2)
        if isinstance(self.guard, RadaBound):
            return self.guard._query_many_predictions(values, labels, **options)
        words = _kernel.pack_rows(values, labels)
        return self.guard.query_many_packed(words, guesses=guesses, **options)

    def n_left(self, mean: float | None = None) -> int:
        """How many queries more will be answered for certain: see `RadaBound.n_left`.

        Raises
        ------
        AttributeError
            The guard is a mechanism; `GuessAndCheck` has `affordable`.
        """
        self._check_owner()
        left: int = self.guard.n_left(mean, declared=True)
        return left

    def __getattr__(self, name: str) -> Any:
        if name in self._forwarded and "_guard" in self.__dict__:
            return getattr(self.guard, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __repr__(self) -> str:
        return f"Holdout(n_samples={self.n_samples}, guard={self.guard!r})"
