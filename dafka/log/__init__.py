"""Records on disk, for the mesh's stores and the broker's partition leaders; built on diskcache.

Theory of operation. A *write round* takes all that has arrived, for any number of partitions, and commits it
in one transaction (:meth:`Log.write`); waiting clients are answered after that. The messages that one
partition got in a round are one stored value, a *chunk*: a commit costs the same for one record and ten
thousand, and so does a value. The key of a chunk says which sequences, offsets and times it holds. Opening a
log reads the keys and builds an index of some 50 bytes a chunk; reading finds its chunk by bisection and
takes it from the tail in memory or from disk, where its CRC-32C is checked. Of a partition with many chunks
the greater part of the index stays on the disk, in blocks (``sealed.py``). Rounds of single messages would
leave too many chunks, so small neighbours are merged in the transaction that stores the newest
(``growth.py``).

Trimming, deleting and compacting are rounds, too (``changes.py``, ``compaction.py``). Their garbage on the
disk is deleted, and its space given back, in small steps between rounds; so is the copying of SQLite's WAL.
The owner of the log runs these steps (:class:`dafka.commit.writer.Writer` does).

Memory changes only after a commit, so it never shows what a crash can take back. A round that fails leaves
everything as it was. One process has a folder open at a time (``lock.py``).

Durability: ``'process'`` survives the death of the process at any instant; after a power loss partitions may
have lost their last messages, never some in the midst. ``'power'`` survives that, too, and costs a sync in
each commit.
"""

from __future__ import annotations

from dafka.log.changes import Rewrite, Trim
from dafka.log.compaction import Compacted, compact, dirty_bytes, dirty_since, tombstones_due
from dafka.log.errors import (
    AppendError,
    DamagedError,
    LogClosedError,
    LogError,
    LogForkedError,
    LogLockedError,
    LogOpenError,
    LogReadError,
    LogVersionError,
    LogWriteError,
    NotALogError,
    StaleRewriteError,
    TableValueError,
)
from dafka.log.growth import Append
from dafka.log.log import Durability, Log, OnDamage, TableValues
from dafka.log.partition import LogPartition
from dafka.log.round import WriteRound
from dafka.log.stored import StoredBatches
from dafka.log.table import LOST_TABLE, Table

__all__ = [
    "LOST_TABLE",
    "Append",
    "AppendError",
    "Compacted",
    "DamagedError",
    "Durability",
    "Log",
    "LogClosedError",
    "LogError",
    "LogForkedError",
    "LogLockedError",
    "LogOpenError",
    "LogPartition",
    "LogReadError",
    "LogVersionError",
    "LogWriteError",
    "NotALogError",
    "OnDamage",
    "Rewrite",
    "StaleRewriteError",
    "StoredBatches",
    "Table",
    "TableValueError",
    "TableValues",
    "Trim",
    "WriteRound",
    "compact",
    "dirty_bytes",
    "dirty_since",
    "tombstones_due",
]
