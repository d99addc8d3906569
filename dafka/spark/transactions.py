"""Exactly once: the transactions in which the tasks of a job or a micro-batch write.

Each task writes in a transaction of its own and leaves it open; attempts at the same task that may run at the
same time have different ones. When all have written, the driver aborts what other attempts and earlier runs
have left open and decides: for a streaming query it first notes the number of the micro-batch and its
transactions, durably, as an offset that the query's own group has committed at the broker, looks whether all
transactions are as their tasks left them, and then commits them one after the other. A query that died before
the note starts the micro-batch again, and one that died behind it finds the note: its tasks write nothing,
and the driver commits what is still open. So readers with ``isolation.level=read_committed`` see each record
of a micro-batch once.

A task of a run that was taken for dead may come late, and abort what the new run has written under the same
id. In front of the note the driver takes the note back when it looks; behind it, the task finds the note.

When a write fails, Spark lets other tasks of it run on for a while, and so it does with the slower of two
attempts at a task. So the driver notes at the broker that a write is over, then aborts what is open and shuts
out every task that has begun; one that begins later finds that note.

Assumption: a query that died between the note and the last commit is started again within the transactions'
timeout (``kafka.transaction.timeout.ms``). Otherwise the broker has aborted some of them, and the query fails
with an error that says so.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable
from hashlib import blake2b
from typing import Any, NamedTuple

from kafka.errors import IncompatibleBrokerVersion, TransactionalIdNotFoundError

from dafka.broker.interface.groups import CommittedOffset
from dafka.broker.interface.transactions import ListedTransaction, ProducerIdentity, TransactionDescription
from dafka.spark.cluster import Cluster, reason
from dafka.spark.errors import WriteError
from dafka.spark.option_values import TopicPartition

log = logging.getLogger(__name__)

_PREFIX = "dafka-spark"
_EMPTY, _ONGOING, _COMMITTED = "Empty", "Ongoing", "CompleteCommit"
_OPEN = (_ONGOING, "PrepareCommit")
_NOTE_LIMIT = 4000  # characters of metadata that a broker takes with a committed offset


class TaskTransaction(NamedTuple):
    """The transaction that a task has written in and left open."""

    name: str
    producer_id: int
    epoch: int


def transactional_id(job: str, task: int, attempt: int = 0) -> str:
    """The id of a task's transactions: the same in all micro-batches and runs of a query."""
    return f"{_PREFIX}-{job}-{task}" + (f".{attempt}" if attempt else "")


def begin(cluster: Cluster, name: str, timeout: float) -> ProducerIdentity:
    """Become the only writer of that id; a transaction left open by an earlier attempt is aborted. Raises
    WriteError."""
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


def check_open(cluster: Cluster, transactions: Collection[TaskTransaction]) -> None:
    """Raises WriteError if a transaction is not as its task left it, and can no longer be committed."""
    found = _described(cluster, [name for name, _, _ in transactions])
    if found is None:
        return
    for one in transactions:
        described = found[one.name]
        if described.state not in _OPEN or (described.producer_id, described.epoch) != one[1:]:
            raise WriteError(
                f"transaction {one.name} was aborted before it could be committed: the write took longer "
                "than kafka.transaction.timeout.ms, or the task has been run once more"
            )


def abandon(
    cluster: Cluster, job: str, timeout: float, begun: bool = False, but: Collection[TaskTransaction] = ()
) -> None:
    """Abort what tasks of a job have left open, and shut those out that still run; with ``begun`` also tasks
    that have a transaction's identity and have not written yet. Transactions in ``but`` stay.

    The job may also be a streaming query, of which nothing else is to be committed at the moment.
    """
    states = [_ONGOING, _EMPTY] if begun else [_ONGOING]
    try:
        listed: list[ListedTransaction] = cluster.call("list_transactions", states)
    except IncompatibleBrokerVersion:
        log.warning("the broker cannot list transactions; what is open of job %s ends by its timeout", job)
        return
    kept = {name for name, _, _ in but}
    for name in [one.transactional_id for one in listed]:
        if name.startswith(f"{_PREFIX}-{job}-") and name not in kept:
            begin(cluster, name, timeout)


def declare_over(cluster: Cluster, write: str, timeout: float) -> None:
    """Note that no task of a write, or of a run of a query, shall write any more."""
    begin(cluster, _mark(write), timeout)


def is_over(cluster: Cluster, write: str) -> bool:
    """Whether that was declared. A task that asks when it has begun is told, or shut out by abandon()."""
    mark = _mark(write)
    found = _described(cluster, [mark])
    return found is not None and found[mark].error is not TransactionalIdNotFoundError


def _mark(write: str) -> str:
    """A transactional id that only writes have that are over. Brokers keep such ids for days."""
    return f"{_PREFIX}-over-{write}"


def _described(cluster: Cluster, names: list[str]) -> dict[str, TransactionDescription] | None:
    """Transactions by their ids; None if the broker cannot describe any."""
    if not names:
        return {}
    try:
        found: dict[str, TransactionDescription] = cluster.settled(
            "describe_transactions", names, errors=lambda answer: [one.error for one in answer.values()]
        )
    except IncompatibleBrokerVersion:
        return None
    return found


class Note(NamedTuple):
    """The last decision: a micro-batch (-1: none yet), and the transactions to commit.

    ``names`` are their ids, ``digest`` is of those and of their producers.
    """

    batch: int = -1
    names: tuple[str, ...] = ()
    digest: str = ""


class Notes:
    """The notes of a streaming query on the broker: which micro-batch was decided to be committed last.

    They are offsets that the group ``dafka-spark-QUERY`` has committed for a partition that the query writes
    to; the offset is the number of the next micro-batch, the text beside it says which transactions belong to
    the one before.
    """

    def __init__(self, cluster: Cluster, query: str) -> None:
        self._cluster = cluster
        self._query = query
        self._group = f"{_PREFIX}-{query}"

    def last(self) -> Note:
        """The last decision."""
        found: dict[TopicPartition, CommittedOffset] = self._cluster.call("fetch_offsets", self._group)
        if not found:
            return Note()
        last = max(found.values(), key=lambda committed: committed.offset)
        tasks, _, digest = (last.metadata or "").partition(" ")
        return Note(last.offset - 1, tuple(f"{self._group}-{task}" for task in _tasks(tasks)), digest)

    def decide(self, batch: int, where: TopicPartition, transactions: Collection[TaskTransaction]) -> None:
        """Note that a micro-batch is to be committed. Raises WriteError if that is not durable."""
        tasks = [name.removeprefix(f"{self._group}-") for name, _, _ in transactions]
        text = f"{_text(tasks)} {_digest(transactions)}"
        if len(text) > _NOTE_LIMIT:
            raise WriteError("exactlyOnce: too many tasks write in one micro-batch; coalesce() the frame")
        answer: dict[TopicPartition, Any] = self._cluster.call(
            "commit_offsets", self._group, {where: CommittedOffset(batch + 1, text)}
        )
        if (error := answer[where]) is not None:
            raise WriteError(f"micro-batch {batch} of query {self._query} cannot be noted: {reason(error)}")

    def take_back(self, batch: int, where: TopicPartition) -> None:
        """A micro-batch is not to be committed, and nothing of it has been. Raises WriteError."""
        self.decide(batch - 1, where, ())

    def finish(self, batch: int) -> None:
        """Commit what a query that died had decided to commit. Raises WriteError if some of it is gone."""
        note = self.last()
        if note.batch != batch or not note.names:
            return
        found = _described(self._cluster, list(note.names))
        if found is None:
            raise WriteError("exactlyOnce: the broker cannot describe transactions, as Kafka can from 3.0 on")
        problem = f"micro-batch {batch} of query {self._query} was to be committed, and"
        for name, described in found.items():
            if described.error is not None:
                raise WriteError(f"{problem} transaction {name} is gone: {reason(described.error)}")
            if described.state not in (*_OPEN, _COMMITTED):
                raise WriteError(
                    f"{problem} transaction {name} has been aborted since: the query was away for longer "
                    "than kafka.transaction.timeout.ms"
                )
        transactions = [TaskTransaction(name, one.producer_id, one.epoch) for name, one in found.items()]
        if _digest(transactions) != note.digest:
            raise WriteError(f"{problem} another run of the query has written in its transactions since")
        end(self._cluster, [one for one in transactions if found[one.name].state in _OPEN], commit=True)


def _digest(transactions: Iterable[TaskTransaction]) -> str:
    """A digest that tells these transactions from later ones with the same ids."""
    lines = sorted(f"{name} {producer_id} {epoch}" for name, producer_id, epoch in transactions)
    return blake2b("\n".join(lines).encode(), digest_size=8).hexdigest()


def _text(tasks: Collection[str]) -> str:
    """First attempts as ranges, others one by one: 0-3,7-7,5.1."""
    pieces: list[list[int]] = []
    for number in sorted(int(task) for task in tasks if task.isdecimal()):
        if pieces and pieces[-1][1] == number - 1:
            pieces[-1][1] = number
        else:
            pieces.append([number, number])
    others = (task for task in tasks if not task.isdecimal())
    return ",".join([*(f"{first}-{last}" for first, last in pieces), *others])


def _tasks(text: str) -> list[str]:
    tasks: list[str] = []
    for piece in filter(None, text.split(",")):
        first, _, last = piece.partition("-")
        tasks += map(str, range(int(first), int(last) + 1)) if last else [piece]
    return tasks
