"""Truncated partitions: rows about records that a power cut took are corrected.

With durability ``'process'`` partitions may be shorter after a power cut (:mod:`dafka.log.lost`). The lost
offsets are given again, in a new leader epoch. Before that the rows about the lost records are corrected:

- A producer whose last append is lost is forgotten. Otherwise its next batch would be taken for a duplicate
  of records that do not exist, or for a gap. A batch of an unknown producer is taken with any sequence.
  A producer whose open transaction has records left keeps its remaining appends: its next batch shows the
  gap and is refused, so the transaction is aborted and not committed in part.
- An aborted transaction that is lost is forgotten. Otherwise readers would skip new records of its producer
  at these offsets. If only the marker is lost, another one is written at the end of the partition.
- Checkpoints of positions behind the end are forgotten: the records that get the lost offsets may have other
  sizes.
- A group that has committed a lost offset continues at the end of the partition. Otherwise it would miss the
  new records up to the lost offset.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain
from typing import Any

import gevent.event

from dafka.broker.groups.offsets import OFFSETS
from dafka.broker.positions.checkpoints import rows_before
from dafka.broker.records.leader_epochs import LeaderEpochs
from dafka.broker.records.producer_row import NO_TRANSACTION, PRODUCERS, ProducerState, unpack
from dafka.broker.records.producer_state import row_name
from dafka.broker.records.transaction_index import AbortedIndex
from dafka.broker.topics.table import Partition, TopicTable
from dafka.commit.rows import Rows
from dafka.commit.writer import Numbered, Writer
from dafka.hub.turns import Pace, in_pieces
from dafka.log import LOST_TABLE, Log
from dafka.protocol.batch import with_offset
from dafka.protocol.batch_control import encode_marker

ROWS = 500  # that one round corrects


def forget_truncated(
    log: Log, writer: Writer, topics: TopicTable, epochs: LeaderEpochs, clock: Callable[[], float]
) -> None:
    """Carry this out for the partitions that the log says have lost records; waits as a green thread.

    Raises the log's errors; the next start does the rest.
    """
    pace = Pace()
    begins = dict(pace.over(log.table(LOST_TABLE).items()))
    if not begins:
        return
    stored = {}
    for partition in pace.over(log.partitions()):
        number = str(partition.number)
        if number in begins:
            stored[number] = partition
    for number, lost in begins.items():
        truncated = topics.of_log(stored[number]) if number in stored else None
        rows: Rows = {(LOST_TABLE, number): None}
        if truncated is not None:
            rows.update(rows_before(log, row_name(truncated), truncated.high_watermark))
        if truncated is None or not truncated.writable:
            writer.put_and_wait(rows)
        else:
            _forget(log, writer, truncated, lost, rows, epochs, clock)


def _forget(
    log: Log,
    writer: Writer,
    partition: Partition,
    lost: int,
    rows: Rows,
    epochs: LeaderEpochs,
    clock: Callable[[], float],
) -> None:
    """Correct the rows about a partition whose records from offset ``lost`` on are gone.

    Those of producers and groups go in rounds before the others, of which there may be very many: after
    a kill in between it is done again.
    """
    end = partition.high_watermark  # above ``lost`` if it has lost its first value
    name = row_name(partition)
    corrected = chain(_of_producers(log, name, lost), _of_groups(log, name, end))
    for some in in_pieces(corrected, ROWS):
        writer.put_and_wait(dict(some))
    index = AbortedIndex(log, name)
    gone, changed = index.cut(lost)
    rows.update(changed)
    unmarked = [transaction for transaction in gone if transaction.first < lost]
    history = epochs.begin(partition, rows)

    def number(sequence: int, offset: int) -> Numbered:
        now = int(clock() * 1000)
        markers = []
        for transaction in unmarked:
            marker = encode_marker(now, transaction.producer_id, 0, commit=False)
            markers.append(with_offset(marker, offset, epochs.current))
            stable = min(transaction.stable, end)
            rows.update(index.add(transaction._replace(last=offset, stable=stable)))
            offset += 1
        return Numbered(sequence, markers, offset)

    outcome = gevent.event.AsyncResult()
    writer.append_numbered(partition.stored, number, 0, partial(_tell, outcome), rows)
    outcome.get()
    partition.epochs = history or partition.epochs


def _of_producers(log: Log, name: str, lost: int) -> Iterator[tuple[tuple[str, str], bytes | None]]:
    """The rows of a partition's producers that change; pauses as a green thread."""
    for key, stored in Pace().over(log.table(PRODUCERS).items(name + "/")):
        rest = _without(unpack(stored), lost)
        if rest is None or rest.pack() != stored:
            yield (PRODUCERS, key), None if rest is None else rest.pack()


def _of_groups(log: Log, name: str, end: int) -> Iterator[tuple[tuple[str, str], list[Any]]]:
    """The same of the offsets that groups have committed."""
    offsets = log.table(OFFSETS)
    for key in Pace().over(offsets.unordered()):
        if key.endswith("/" + name):
            offset, *rest = offsets.get(key)
            if offset > end:
                yield (OFFSETS, key), [end, *rest]


def _without(state: ProducerState, lost: int) -> ProducerState | None:
    """A producer's state without its records from ``lost`` on; None if nothing is left."""
    appends = tuple(
        append._replace(records=min(append.records, lost - append.base_offset))
        for append in state.appends
        if append.base_offset < lost
    )
    if appends == state.appends and state.transaction_start < lost:
        return state
    if not NO_TRANSACTION < state.transaction_start < lost:
        return None
    return state._replace(appends=appends)


def _tell(outcome: gevent.event.AsyncResult, error: Exception | None) -> None:
    if error is None:
        outcome.set(None)
    else:
        outcome.set_exception(error)
