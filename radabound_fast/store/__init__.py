"""A guard's state on disk, in one of two ways.

================  =================================  =========================================
.                 `open`: a database                 `save` and `load`: a file
================  =================================  =========================================
owners            processes and threads that share   one process at a time, which locks it
                  one guard
written           before each answer is released     when `save` is called
a crash costs     at most an answer nobody saw:      **every answer given since the load is
                  counted, never forgotten           forgotten**
one query costs   a transaction                      nothing
================  =================================  =========================================

Both are checked against accidents by checksums, not against forgers: whoever can write a file
can write another.  Both hold the seed of the signs and are readable by their owner alone (mode
600).

Neither can tell an old copy of itself from the present one.  Whoever puts back a backup takes
back the queries since, and the guarantee no longer covers their answers: a restored guard is to
be written off, unless exactly the same queries are asked again, which restores the very same
state, since signs and sums are exact.

The database
------------
`Ledger` is SQLite in WAL mode with one row.  A query is counted, judged and committed in one
transaction, with the sums computed before it begins; the order of the queries is the order of
the commits.  ``durability="power"`` (``synchronous=FULL``) waits for the disk at every commit;
``durability="process"`` (``NORMAL``) survives ``kill -9`` but may lose the last answers in a
power cut.  Beside ``guard.db`` stand ``guard.db-wal`` and ``guard.db-shm`` while it is open, and
after a crash: they belong to it, and a copy of ``guard.db`` alone is an old copy.  Network file
systems lock too badly for this: keep it on a disk of the machine.  A child of ``os.fork`` may
not open a database that its parent had open, since the locks do not survive that: start workers
with ``spawn``.

The file
--------
`save` writes a new file beside the old one, flushes it and renames it, so after a crash at any
moment the path holds either the old state or the new one, whole.
"""

from radabound_fast.store.description import Description, Progress
from radabound_fast.store.file import StateFile, from_bytes, save_state, to_bytes
from radabound_fast.store.folder import Path
from radabound_fast.store.ledger import Durability, Ledger, open_ledger

__all__ = [
    "Description",
    "Durability",
    "Ledger",
    "Path",
    "Progress",
    "StateFile",
    "from_bytes",
    "open_ledger",
    "save_state",
    "to_bytes",
]
