"""Databases that guards live in: SQLite files that processes and threads on one machine share.

There are three kinds.  A `Ledger` holds the state of a guard that counts its answers: what never
changes (its parameters, a name or a hash of the holdout) as JSON, and one row of integers that
every query changes.  A `SearchRecord` holds the queries of a `DeclaredSearch`; the intervals do
not rest on it.  An `EventRecord` holds what happened to a guard that decides by its whole history,
event by event.  `radabound serve` adds the log of its calls to either.

**What a crash costs.**  A query is counted, judged and committed in one transaction before its
answer is released.  Whenever a process dies, no released answer is forgotten; at most one answer
per process is counted that nobody saw.  The order of the queries is the order of the commits.

**Durability.**  With ``durability="power"`` each commit waits for the disk
(``synchronous=FULL``).  With ``durability="process"`` (``NORMAL``; of a search ``OFF``) commits
survive the death of processes, ``kill -9`` included, but a power cut may take the last answers
back, or the record of a search.

**WAL.**  A guard's database is in SQLite's WAL mode: a commit is appended to ``guard.db-wal``,
whose index is ``guard.db-shm``.  Both stand beside ``guard.db`` while it is open, and after a
crash.  They belong to it: the log holds answers that are nowhere else until SQLite writes them
back (a WAL checkpoint).  The last process to close the database does so and removes both.  A
search's database is open for the length of a query, and has no log between.

**Copies and backups.**  Copy a database when it is closed, or with `back_up` at any time; a copy of
``guard.db`` without its log is an old copy.  No file can tell an old copy of itself from the
present one.  Whoever restores a backup takes back the queries since, and the guarantee no longer
covers their answers: write a restored guard off, unless exactly the same queries are made again,
which restores the very same state.

**Where it may be.**  On a disk of the machine: network file systems lock too badly.  Under one
name: a second one (a hard link, a file mounted without its folder) would have a log of its own.
A child of ``os.fork`` may not open a database that its parent had open, since locks do not
survive that: start workers with ``spawn``.

**What is checked.**  Files are guarded against accidents, not against their owner: checksums,
SQLite's integrity check, and the format's version find what is cut short, altered or mixed up.
Whoever can write the file can also write another one.  It holds the seed of the signs, or the key
of the fingerprints, and is readable by its owner alone (mode 600).
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
