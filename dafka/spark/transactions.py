"""Exactly once: the transactions in which the tasks of a job or a micro-batch write.

Each task writes in a transaction of its own and leaves it open. When all have written, the driver decides:
for a streaming query it first notes the number of the micro-batch, durably, as an offset that the query's own
group has committed at the broker, and then commits the transactions one after the other. A query that died
before the note starts the micro-batch again, and the transactions of the new attempt abort the old ones: each
task those of its own number when it begins, and the driver those of numbers that no longer have a task, with
its first commit. One that died behind it finds the note: its tasks write nothing, and the driver commits what
is still open. So who reads with ``isolation.level=read_committed`` sees each record of a micro-batch once.

When a write fails, Spark lets other tasks of it run on for a while. So a batch write is given up: the driver
notes that at the broker, then aborts what is open and shuts out every task that has begun; one that begins
later finds the note.

What it rests on: a query that died between the note and the last commit is started again within the
transactions' timeout (``kafka.transaction.timeout.ms``). If it is not, the broker has aborted some, and the
query fails saying so.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any, NamedTuple

from kafka.errors import IncompatibleBrokerVersion, TransactionalIdNotFoundError

from dafka.broker.groups_interface import CommittedOffset
from dafka.broker.transactions_interface import ListedTransaction, ProducerIdentity, TransactionDescription
from dafka.spark.cluster import Cluster, reason
from dafka.spark.errors import WriteError
from dafka.spark.options import TopicPartition

log = logging.getLogger(__name__)

_PREFIX = "dafka-spark"
_EMPTY, _ONGOING = "Empty", "Ongoing"
_OPEN = (_ONGOING, "PrepareCommit")
_NOTE_LIMIT = 4000  # characters that a broker takes beside a committed offset


class TaskTransaction(NamedTuple):
    """The transaction that a task has written in and left open."""

    name: str
    producer_id: int
    epoch: int


def transactional_id(job: str, task: int) -> str:
    """The id of a task's transactions: the same for all attempts at it, in all micro-batches."""
    return f"{_PREFIX}-{job}-{task}"


def begin(cluster: Cluster, name: str, timeout: float) -> ProducerIdentity:
    """Become the only writer of that id; what an earlier attempt left open is aborted. Raises WriteError."""
    identity: ProducerIdentity = cluster.settled(
        "init_producer_id", name, timeout, errors=lambda answer: [answer.error]
    )
    if identity.error is not None:
        raise WriteError(f"transaction {name}: {reason(identity.error)}")
    return identity


def end(cluster: Cluster, transactions: Iterable[TaskTransaction], commit: bool) -> None:
    """Commit or abort transactions. Raises WriteError if one could not be committed."""
    for name, producer_id, epoch in transactions:
        error = cluster.settled(
            "end_transaction", name, producer_id, epoch, commit, errors=lambda answer: [answer]
        )
        if error is not None and commit:
            raise WriteError(f"transaction {name} was not committed: {reason(error)}")


def abandon(cluster: Cluster, job: str, timeout: float, begun: bool = False) -> None:
    """Abort what tasks of a job have left open, and shut those out that still run; with ``begun`` also tasks
    that have a transaction's identity and have not written yet.

    The job may also be a streaming query, of which nothing is to be committed at the moment.
    """
    states = [_ONGOING, _EMPTY] if begun else [_ONGOING]
    try:
        listed: list[ListedTransaction] = cluster.call("list_transactions", states)
    except IncompatibleBrokerVersion:
        log.warning("the broker cannot list transactions; what is open of job %s ends by its timeout", job)
        return
    for name in [one.transactional_id for one in listed]:
        if name.startswith(f"{_PREFIX}-{job}-"):
            begin(cluster, name, timeout)


def give_up(cluster: Cluster, job: str, timeout: float) -> None:
    """:func:`abandon` a job of which no task shall write any more, not even one that begins only now."""
    begin(cluster, _mark(job), timeout)
    abandon(cluster, job, timeout, begun=True)


def given_up(cluster: Cluster, job: str) -> bool:
    """Whether a job was given up. A task that asks when it has begun is told, or shut out."""
    mark = _mark(job)
    try:
        described: dict[str, TransactionDescription] = cluster.settled(
            "describe_transactions", [mark], errors=lambda answer: [one.error for one in answer.values()]
        )
    except IncompatibleBrokerVersion:
        return False
    return described[mark].error is not TransactionalIdNotFoundError


def _mark(job: str) -> str:
    """A transactional id that only jobs have that were given up. Brokers keep such ids for days."""
    return f"{_PREFIX}-{job}-given-up"


class Note(NamedTuple):
    """What was decided last: a micro-batch (-1: none yet), and which of its tasks had a transaction."""

    batch: int = -1
    tasks: tuple[int, ...] = ()


class Notes:
    """The notes of a streaming query on the broker: which micro-batch was decided to be committed last.

    They are offsets that the group ``dafka-spark-QUERY`` has committed for a partition that the query writes
    to; the offset is the micro-batch's number, the text beside it says which tasks had a transaction.
    """

    def __init__(self, cluster: Cluster, query: str) -> None:
        self._cluster = cluster
        self._query = query
        self._group = f"{_PREFIX}-{query}"

    def last(self) -> Note:
        """What was decided last."""
        found: dict[TopicPartition, CommittedOffset] = self._cluster.call("fetch_offsets", self._group)
        note = Note()
        for committed in found.values():
            if committed.offset > note.batch:
                note = Note(committed.offset, tuple(_tasks(committed.metadata or "")))
        return note

    def decide(self, batch: int, where: TopicPartition, tasks: Iterable[int]) -> None:
        """Note that a micro-batch is to be committed. Raises WriteError if that is not durable."""
        text = _text(tasks)
        if len(text) > _NOTE_LIMIT:
            raise WriteError("exactlyOnce: too many tasks write in one micro-batch; coalesce() the frame")
        answer: dict[TopicPartition, Any] = self._cluster.call(
            "commit_offsets", self._group, {where: CommittedOffset(batch, text)}
        )
        if (error := answer[where]) is not None:
            raise WriteError(f"micro-batch {batch} of query {self._query} cannot be noted: {reason(error)}")

    def finish(self, batch: int) -> None:
        """Commit what a query that died had decided to commit. Raises WriteError if some of it is gone."""
        note = self.last()
        names = [transactional_id(self._query, task) for task in note.tasks if note.batch == batch]
        if not names:
            return
        found: dict[str, TransactionDescription] = self._cluster.call("describe_transactions", names)
        for name, described in found.items():
            if described.error is TransactionalIdNotFoundError:
                continue
            if described.error is not None:
                raise WriteError(f"transaction {name}: {reason(described.error)}")
            if described.state in _OPEN:
                end(
                    self._cluster,
                    [TaskTransaction(name, described.producer_id, described.epoch)],
                    commit=True,
                )
            elif described.state in ("CompleteAbort", "PrepareAbort", "PrepareEpochFence", "Dead"):
                raise WriteError(
                    f"micro-batch {batch} was to be committed and transaction {name} has been aborted "
                    "since: the "
                    "query was away for longer than kafka.transaction.timeout.ms"
                )


def _text(tasks: Iterable[int]) -> str:
    """Numbers as ranges: 0-3,7."""
    pieces: list[list[int]] = []
    for task in sorted(tasks):
        if pieces and pieces[-1][1] == task - 1:
            pieces[-1][1] = task
        else:
            pieces.append([task, task])
    return ",".join(f"{first}-{last}" for first, last in pieces)


def _tasks(text: str) -> list[int]:
    tasks: list[int] = []
    for piece in filter(None, text.split(",")):
        first, last = piece.split("-")
        tasks.extend(range(int(first), int(last) + 1))
    return tasks
