"""Databases that guards live in: SQLite files that processes and threads on one machine share.

There are three kinds.  A `Ledger` holds the state of a guard that counts its answers: what never
changes (its parameters, a name or a hash of the holdout) as JSON, and one row of integers that
every query changes.  A `SearchRecord` holds the queries of a `DeclaredSearch`; the intervals do
not rest on it.  An `EventRecord` holds what happened to a guard that decides by its whole history,
event by event.  `radabound serve` adds the log of its calls to either.

A query is counted, judged and committed in one transaction before its answer is released.  Whenever
a process dies, no released answer is forgotten; at most one answer per process is counted that
nobody saw.  A guard's database is in SQLite's WAL mode: it stays open, with its log and the log's
index beside it.  The others are open for the length of a transaction, and have no log between.

docs/how-to/store-a-guard.md says what a commit survives, how to copy a database, and what workers
and signal handlers may do; docs/reference/database.md what is in it, and what no file can protect
against.
"""

from radabound_fast.store.events import EventRecord
from radabound_fast.store.folder import Path
from radabound_fast.store.ledger import Durability, Ledger
from radabound_fast.store.opening import Database, back_up, open_any, open_ledger, open_record
from radabound_fast.store.record import SearchRecord
from radabound_fast.store.schema import Description, Progress

__all__ = [
    "Database",
    "Description",
    "Durability",
    "EventRecord",
    "Ledger",
    "Path",
    "Progress",
    "SearchRecord",
    "back_up",
    "open_any",
    "open_ledger",
    "open_record",
]
