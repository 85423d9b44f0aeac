"""Events of a guard: in memory and in a database they are the same; damage is found."""

from __future__ import annotations

import itertools
import sqlite3
import threading
from pathlib import Path

import pytest
from support import at_once

from radabound_fast.store.events import EventList, EventRecord, Events, Turn
from radabound_fast.store.opening import open_record

DESCRIPTION = {"kind": "of a test", "parameters": {"delta": 0.1}}


def record_at(path: Path) -> EventRecord:
    return open_record(EventRecord, path, "process", DESCRIPTION)


@pytest.fixture(params=["memory", "database"])
def events(request: pytest.FixtureRequest, tmp_path: Path) -> Events:
    return EventList() if request.param == "memory" else record_at(tmp_path / "a.db")


def append(turn: Turn, number: int) -> list[dict[str, object]]:
    before = list(turn.events)
    turn.append({"number": number, "what": "ü"}, bytes([number]) * number)
    return before


def test_a_turn_sees_what_earlier_ones_appended(events: Events) -> None:
    for number in range(4):
        before = events.turn(lambda turn, number=number: append(turn, number))
        assert [event["number"] for event in before] == list(range(number))
        assert events.read(lambda turn: turn.events) == [*before, {"number": number, "what": "ü"}]
    contents = events.turn(lambda turn: [turn.content(place) for place in range(4)])
    assert contents == [b"", b"\1", b"\2\2", b"\3\3\3"]


def test_a_turn_that_raises_appends_nothing(events: Events) -> None:
    def fail(turn: Turn) -> None:
        append(turn, 1)
        assert len(turn.events) == 1
        raise KeyError

    with pytest.raises(KeyError):
        events.turn(fail)
    assert events.turn(lambda turn: turn.events) == []


def test_threads_take_turns(events: Events) -> None:
    def count(_: int) -> None:
        for _ in range(20):
            events.turn(lambda turn: append(turn, len(turn.events) % 7))

    at_once(count, range(3))
    stored = events.turn(lambda turn: [event["number"] for event in turn.events])
    assert stored == [number % 7 for number in range(60)]


def test_another_thread_reads_when_a_transaction_is_over(tmp_path: Path) -> None:
    record = record_at(tmp_path / "a.db")
    seen: list[int] = []

    def look() -> None:
        seen.append(record.read(lambda turn: len(turn.events)))

    def work(_: sqlite3.Connection) -> threading.Thread:
        record.turn(lambda turn: append(turn, 1))
        other = threading.Thread(target=look)
        other.start()
        other.join(0.05)
        assert not seen
        return other

    record.transact(work).join()
    assert seen == [1]


def test_a_database_opened_again_has_its_events(tmp_path: Path) -> None:
    record_at(tmp_path / "a.db").turn(lambda turn: append(turn, 3))
    again = open_record(EventRecord, tmp_path / "a.db", "power")
    assert again.description == DESCRIPTION
    assert again.turn(lambda turn: (turn.events, turn.content(0))) == (
        [{"number": 3, "what": "ü"}],
        b"\3\3\3",
    )


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE event SET event = replace(event, '1', '0') WHERE rowid = 2",
        "UPDATE event SET content = x'05' WHERE rowid = 2",
        "DELETE FROM event WHERE rowid = 1",
        "UPDATE event SET (event, event_checksum) = "
        "(SELECT event, event_checksum FROM event WHERE rowid = 1) WHERE rowid = 2",
        "UPDATE guard SET description = replace(description, '0.1', '0.2')",
    ],
)
def test_damage_is_found(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "a.db"
    record = record_at(path)
    for number in range(3):
        record.turn(lambda turn, number=number: append(turn, number))
    database = sqlite3.connect(path)
    assert database.execute(damage).rowcount == 1
    database.commit()
    database.close()
    with pytest.raises(ValueError, match="is damaged"):
        again = open_record(EventRecord, path, "power")
        again.turn(lambda turn: list(itertools.starmap(turn.content, [(0,), (1,), (2,)])))
