"""What happened to a guard, event by event: in memory, or in a database that processes share.

An event is a JSON object, and octets beside it that are read when they are needed.  A guard decides
within a *turn*: it reads all events so far and appends its own, and nobody else does so in between.
What a turn appends is stored before the guard releases what it decided; nothing is, if it raises.
`read` is for what appends nothing: others may append meanwhile.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from radabound_fast.store.record import Record
from radabound_fast.store.schema import EVENTS, Damaged, text_of

T = TypeVar("T")
Event = dict[str, Any]


class EventList:
    """Events in memory, shared by the threads of one process; a turn is of a copy."""

    def __init__(self, stored: list[tuple[Event, bytes]] | None = None) -> None:
        self._stored = list(stored or ())
        self._lock = threading.RLock()

    def turn(self, work: Callable[[Turn], T]) -> T:
        with self._lock:
            mine = EventList(self._stored)
            done = work(mine)
            self._stored = mine._stored  # in one step: an interrupt leaves nothing half done
            return done

    def read(self, work: Callable[[Turn], T]) -> T:
        return work(EventList(self._stored))

    @property
    def events(self) -> list[Event]:
        """All events so far, the first first."""
        return [event for event, _ in self._stored]

    def content(self, place: int) -> bytes:
        """Return the octets of the event at this place, from 0."""
        return self._stored[place][1]

    def append(self, event: Event, content: bytes = b"") -> None:
        """Add an event, and octets beside it."""
        self._stored.append((event, content))


class EventRecord(Record):
    """Events in a database."""

    schema = EVENTS

    def turn(self, work: Callable[[Turn], T]) -> T:
        return self._do(lambda database: work(RecordTurn(self, database)), "IMMEDIATE")

    def read(self, work: Callable[[Turn], T]) -> T:
        return self._do(lambda database: work(RecordTurn(self, database)))

    def check_whole(self) -> None:
        super().check_whole()
        self.read(lambda turn: [turn.content(place) for place in range(len(turn.events))])

    def checksum(self, number: int, content: bytes) -> bytes:
        """Return the checksum of a part of an event, which depends on its number too."""
        return self._checksums.of(number.to_bytes(8, "little") + content)


class RecordTurn:
    """A turn of an `EventRecord`, with what one of an `EventList` has."""

    def __init__(self, record: EventRecord, database: sqlite3.Connection) -> None:
        self._record, self._database = record, database
        self.events: list[Event] = []
        rows = database.execute("SELECT rowid, event, event_checksum FROM event ORDER BY rowid")
        for place, (number, text, checksum) in enumerate(rows):
            if number != place + 1:
                raise Damaged(f"{record.path} is damaged: an event is missing")
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
        if self._record.checksum(number, content) != checksum:
            path = self._record.path
            raise Damaged(f"{path} is damaged: the checksum of an event does not match")


Turn = EventList | RecordTurn
Events = EventList | EventRecord
