"""The audit of a search over a declared space, which never halts."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from radabound_fast._checks import counted
from radabound_fast.cli.auditing import Audit, Columns, Files
from radabound_fast.cli.spaces import keys_in, read_keys
from radabound_fast.guards.declared.answers import DeclaredSearchAnswers
from radabound_fast.guards.declared.search import DeclaredSearch
from radabound_fast.guards.report import Report
from radabound_fast.spaces import Space, as_space
from radabound_fast.spaces.choice import NamedKeys
from radabound_fast.spaces.messages import shortened, shown_key


class SearchAudit(Audit):
    """A search over a declared space, in memory or opened from a database.

    `keys` are those of every row, in the search's space.  Without them each row is a configuration
    of its own, whose key is its number.
    """

    def __init__(self, files: Files, space: Space) -> None:
        super().__init__(files)
        self.search, self.keys = self._opened(space)
        self._gains = ("gain", "gain_low", "gain_high") if self.search.is_paired else ()
        self._values = ("value", "low", "high", *self._gains)
        key = ["key"] if self.keys else []
        self.columns = (*key, *files.names_of(0, 0), "query", *self._values)
        self.n_before = self._n_rows = 0 if self.args.state is None else self._n_answered_before()
        self._may_be_hard = self.search.holdout.takes in ("scores", "probabilities")

    def _opened(self, space: Space) -> tuple[DeclaredSearch, Sequence[Any] | None]:
        """The search, and the keys of the rows."""
        args, n_rows, size = self.args, self.files.rows.shape[0], space.size
        name = "--space-size" if args.space is None else "the number of configurations in --space"
        keys: list[Any] | None = None if args.keys is None else read_keys(args.keys, n_rows)
        if size is None:
            raise ValueError(
                "--space must hold a number of configurations, got a space without end"
            )
        if keys is None and n_rows > size:
            raise ValueError(
                f"{name} must be at least the number of rows, {n_rows:,}, got {size:,}: if a "
                "configuration comes more than once, say with --keys which rows are of it"
            )
        if keys is None:
            space = as_space(size)  # a row is a configuration, and nobody knows which
        elif args.space is None:
            space = NamedKeys(size)
        else:
            keys = keys_in(space, args.keys, keys)
        what, baseline = self.files.judged()
        options: dict[str, Any] = {"delta": args.delta, "baseline": baseline}
        if args.state is None:
            # where no key comes again, and no picture shows all, one answer is enough
            n_best = 1 if keys is None and not args.plot else None
            search = DeclaredSearch(what, space, n_best=n_best, **options)
        else:
            search = DeclaredSearch.open(args.state, what, space, **options)
        if isinstance(space, NamedKeys):
            n_names = len({*(keys or ()), *search.answers.codes})
            if n_names > size:
                raise ValueError(
                    f"--space-size must be at least the number of different keys, {n_names:,}, got "
                    f"{size:,}"
                )
        return search, keys

    def _n_answered_before(self) -> int:
        """How many of the first rows the database has, each with all before it."""
        if self.keys is None:
            return self.search.n_answered
        answered, find = set(self.search.answers.codes), self.search.space.find
        each = enumerate(self.keys)
        return next((n for n, key in each if find(key)[0] not in answered), len(self.keys))

    def ask(self, rows: NDArray[Any]) -> Iterator[Columns]:
        self._look_for_classes(rows)
        first, search = self._n_rows, self.search
        numbers = np.arange(first, first + len(rows))
        keys = numbers if self.keys is None else self.keys[first : first + len(rows)]
        n_threads = self.files.n_threads
        answers: DeclaredSearchAnswers = search.query_many(rows, keys=keys, n_threads=n_threads)
        self._n_rows += len(rows)

        def columns() -> dict[str, Any]:
            named: dict[str, Any] = {}
            if self.keys is not None:
                named["key"] = [key if isinstance(key, str) else json.dumps(key) for key in keys]
            named |= self.files.names_of(first, len(rows)) | {"query": numbers + 1}
            return named | {name: getattr(answers, f"{name}s") for name in self._values}

        yield columns

    def _look_for_classes(self, rows: NDArray[Any]) -> None:
        """Note whether all scores or probabilities of each model are one of two values."""
        if self._may_be_hard:
            flat = rows.reshape(len(rows), -1)
            low, high = flat.min(axis=1, keepdims=True), flat.max(axis=1, keepdims=True)
            self._may_be_hard = bool(((flat == low) | (flat == high)).all())

    @property
    def note(self) -> str | None:
        """What is odd about the predictions."""
        if not (self._may_be_hard and self._n_rows > self.n_before):
            return None
        holdout = self.search.holdout
        return (
            "all predictions of a model are one of two values, as classes are; "
            f"{holdout.metric} is meant for {holdout.takes}, and says less of classes"
        )

    def head(self) -> str:
        size = counted(self.search.size or 0, "configuration")
        return f"delta {self.args.delta:g}, a declared space of {size}"

    def notes(self) -> list[str]:
        return super().notes() + ([f"Note: {self.note}."] if self.note else [])

    @cached_property
    def report(self) -> Report:
        """The report on all rows that were audited."""
        answers, name = self.search.answers, None
        if len(answers):
            key = answers.best.key
            name = shortened(key) if isinstance(key, str) else shown_key(key)
            name = self.files.name_of(int(key)) if self.keys is None else name
        return self.search.report_on(answers, n_queries=self._n_rows, name_of_best=name)

    def record(self) -> dict[str, Any]:
        report = self.report
        fields = report.as_json()
        own = ("number", "rerun") if self.keys else ("number", "rerun", "key")
        best = {name: value for name, value in fields["best"].items() if name not in own}
        query = self._query_of(report.best.key)
        model = {name: names[0] for name, names in self.files.names_of(query, 1).items()}
        best = {"query": query + 1} | model | best
        return {"state": self.args.state, "search": fields | {"note": self.note, "best": best}}

    def _query_of(self, key: Any) -> int:
        """The first row with a key."""
        if self.keys is None:
            return int(key)
        find = self.search.space.find
        code = find(key)[0]
        return next(n for n, each in enumerate(self.keys) if find(each)[0] == code)
