"""What happened to a guard, event by event: in memory, or in a database that processes share.

An event is a JSON object, and octets beside it that are read when they are needed.  A guard decides
within a *turn*: it reads all events so far and appends its own, and nobody else does so in between.
What a turn appends is stored before the guard releases what it decided.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from radabound_fast.store.description import Damaged, text_of
from radabound_fast.store.record import Record
from radabound_fast.store.schema import EVENTS

T = TypeVar("T")
Event = dict[str, Any]


class Turn(Protocol):
    """The events of a guard while nobody else may add one."""

    @property
    def events(self) -> list[Event]:
        """All events so far, the first first."""

    def content(self, place: int) -> bytes:
        """Return the octets of the event at this place, from 0."""

    def append(self, event: Event, content: bytes = b"") -> None:
        """Add an event, and octets beside it."""


class Events(Protocol):
    """Where the events of a guard are: `EventList` or `EventRecord`."""

    def turn(self, work: Callable[[Turn], T]) -> T:
        """Return what `work` does; all of what it appends is stored, or nothing if it raises."""

    def read(self, work: Callable[[Turn], T]) -> T:
        """Return what `work` finds, which appends nothing: others may append meanwhile."""


class EventList:
    """Events in memory, shared by the threads of one process."""

    def __init__(self) -> None:
        self._stored: list[tuple[Event, bytes]] = []
        self._lock = threading.RLock()

    def turn(self, work: Callable[[Turn], T]) -> T:
        with self._lock:
            turn = _ListTurn(self._stored)
            done = work(turn)
            self._stored = turn.stored  # in one step, so that an interrupt leaves nothing half done
            return done

    def read(self, work: Callable[[Turn], T]) -> T:
        return work(_ListTurn(self._stored))


class _ListTurn:
    def __init__(self, stored: list[tuple[Event, bytes]]) -> None:
        self.stored = list(stored)

    @property
    def events(self) -> list[Event]:
        return [event for event, _ in self.stored]

    def content(self, place: int) -> bytes:
        return self.stored[place][1]

    def append(self, event: Event, content: bytes = b"") -> None:
        self.stored.append((event, content))


class EventRecord(Record):
    """Events in a database."""

    schema = EVENTS

    def turn(self, work: Callable[[Turn], T]) -> T:
        return self._do(lambda database: work(_DatabaseTurn(self, database)), "IMMEDIATE")

    def read(self, work: Callable[[Turn], T]) -> T:
        return self._do(lambda database: work(_DatabaseTurn(self, database)))

    def check_whole(self) -> None:
        super().check_whole()
        self.read(lambda turn: [turn.content(place) for place in range(len(turn.events))])

    def checksum(self, number: int, content: bytes) -> bytes:
        """Return the checksum of a part of an event, which depends on its number too."""
        return self._checksums.of(number.to_bytes(8, "little") + content)


class _DatabaseTurn:
    def __init__(self, record: EventRecord, database: sqlite3.Connection) -> None:
        self._record, self._database = record, database
        self.events: list[Event] = []
        rows = database.execute("SELECT rowid, event, event_checksum FROM event ORDER BY rowid")
        for place, (number, text, checksum) in enumerate(rows):
            self._check(number == place + 1, "an event is missing")
            self._check_sum(number, text.encode(), checksum)
            self.events.append(json.loads(text))

    def content(self, place: int) -> bytes:
        content, checksum = self._database.execute(
            "SELECT content, content_checksum FROM event WHERE rowid = ?", (place + 1,)
        ).fetchone()
        self._check_sum(place + 1, content, checksum)
        return bytes(content)

    def append(self, event: Event, content: bytes = b"") -> None:
        self.events.append(event)
        number, text = len(self.events), text_of(event)
        sums = (self._record.checksum(number, part) for part in (text.encode(), content))
        self._database.execute(
            "INSERT INTO event (rowid, event, content, event_checksum, content_checksum) "
            "VALUES (?, ?, ?, ?, ?)",
            (number, text, content, *sums),
        )

    def _check_sum(self, number: int, content: bytes, checksum: Any) -> None:
        self._check(
            self._record.checksum(number, content) == checksum,
            "the checksum of an event does not match",
        )

    def _check(self, holds: bool, what: str) -> None:
        if not holds:
            raise Damaged(f"{self._record.path} is damaged: {what}")
