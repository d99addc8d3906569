"""Orphaned rows: rows about topics that no longer exist.

Deleting a topic deletes its rows about groups, producers and positions. A commit of a group's offsets or the
marker of a transaction may be under way meanwhile and write a row after that, which no topic refers to. Such
rows are found and deleted here, at the broker's start and from time to time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from uuid import UUID

from dafka.broker.groups.offsets import OFFSETS
from dafka.broker.positions.checkpoints import POSITIONS
from dafka.broker.records.leader_epochs import EPOCHS
from dafka.broker.records.producer_row import PRODUCERS
from dafka.broker.records.transaction_index import ABORTED
from dafka.broker.share.states import SHARE, topic_of
from dafka.broker.topics.table import TopicTable
from dafka.broker.transactions.transaction import OPEN
from dafka.commit.rows import Rows
from dafka.commit.writer import Writer
from dafka.hub.limits import PACE_ITEMS
from dafka.log import Log

_ROWS = 250  # deleted in one round


def forget_orphaned(log: Log, writer: Writer, topics: TopicTable, pause: Callable[[], object]) -> int:
    """Delete the rows of topics that do not exist; how many. Calls ``pause`` now and then.

    Waits as a green thread for its commits, and raises what the log raises.
    """
    rows: Rows = {}
    deleted = 0
    for count, (table, key, topic_id) in enumerate(_rows(log)):
        if topics.by_id(topic_id) is None:
            rows[table, key] = None
        if len(rows) == _ROWS:
            writer.put_and_wait(rows)
            deleted += len(rows)
            rows = {}
        if not count % PACE_ITEMS:
            pause()
    if rows:
        writer.put_and_wait(rows)
    return deleted + len(rows)


def _rows(log: Log) -> Iterator[tuple[str, str, UUID]]:
    """(table, key, id of the topic) of all rows about a topic's groups, producers, epochs and positions."""
    for table in (PRODUCERS, ABORTED, EPOCHS, POSITIONS):
        for key in log.table(table):
            yield table, key, UUID(hex=key[:32])
    for key in log.table(OFFSETS):
        yield OFFSETS, key, _of_offset(key)
    for key in log.table(SHARE):
        yield SHARE, key, topic_of(key)
    for key in log.table(OPEN):
        _, kind, rest = key.split("/", 2)
        if kind == "p":
            yield OPEN, key, UUID(hex=rest[:32])
        elif kind == "o":
            yield OPEN, key, _of_offset(rest)


def _of_offset(key: str) -> UUID:
    """The topic of an offset's key, which ends with its id and the partition's number."""
    return UUID(hex=key.rpartition("/")[0][-32:])
