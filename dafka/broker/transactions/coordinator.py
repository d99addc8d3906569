"""The transaction coordinator: KIP-98's transactions on one log.

Kafka's coordinator writes its decision, sends markers to the leaders of all partitions, and writes that the
transaction is complete when all leaders have them, because each of these is a log of its own. Here all of
them share one log: decision, markers, committed offsets and completion are handed to the writer in this order
and without a pause, so they usually go into one round and one commit
(:mod:`dafka.broker.transactions.ending`). If they come into several rounds, the decision is durable first,
and the rest is written later, at the latest when the broker starts again.

Answers to clients:

- A producer is *fenced* by a newer epoch: another producer with its transactional id has called
  InitProducerId, or its transaction exceeded its timeout and was aborted. To recover from an error a producer
  calls InitProducerId with its current producer id and epoch (KIP-360); outdated ones are refused.
- While a change of a transactional id is being written, further calls for it get ConcurrentTransactionsError,
  and the client tries again.
- A batch is accepted only if its partition was added to the transaction; offsets only if their group was
  added, and only from a current member of the group (KIP-447).

KIP-890 has a second protocol (``transaction.version`` 2), which a client chooses by the versions of its
requests: Produce 12, TxnOffsetCommit 5, EndTxn 5 and above. Its first write to a partition or group adds it
(:mod:`dafka.broker.transactions.first_writes`), and each end raises the epoch
(:mod:`dafka.broker.transactions.epoch_ends`), so that nothing of an earlier transaction gets into a later
one, however late it comes. Clients of both kinds may use a transactional id one after the other.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from itertools import chain

from kafka.errors import (
    InvalidGroupIdError,
    InvalidRequestError,
    InvalidTopicError,
    InvalidTransactionTimeoutError,
    InvalidTxnStateError,
    OperationNotAttemptedError,
    TransactionalIdNotFoundError,
    UnknownTopicOrPartitionError,
)

from dafka.broker.groups.coordinator import Coordinator
from dafka.broker.groups.offsets import GroupOffsets, check_offsets
from dafka.broker.interface.groups import NO_GENERATION, NO_MEMBER, CommittedOffset, Error, TopicPartition
from dafka.broker.interface.transactions import (
    NO_EPOCH,
    NO_PRODUCER_ID,
    ListedTransaction,
    ProducerIdentity,
    ProducersOfPartition,
    TransactionDescription,
    TransactionInterface,
    Writes,
)
from dafka.broker.limits import (
    COMMIT_OFFSETS,
    TRANSACTION_TIMEOUT_MAX,
    TRANSACTIONAL_IDS_KEPT,
)
from dafka.broker.records.leader import Leaders
from dafka.broker.records.producer_state import ProducerStates, row_name
from dafka.broker.topics.table import Partition, Topic, TopicTable, is_legal
from dafka.broker.transactions.contents import Contents
from dafka.broker.transactions.ending import Ending
from dafka.broker.transactions.epoch_ends import RAISING, EpochEnds
from dafka.broker.transactions.identities import Identities
from dafka.broker.transactions.markers import Markers
from dafka.broker.transactions.producer_ids import ProducerIds
from dafka.broker.transactions.table import TransactionTable
from dafka.broker.transactions.timeouts import Timeouts
from dafka.broker.transactions.transaction import TRANSACTIONS, Decision, State, Transaction
from dafka.commit.rows import Rows
from dafka.commit.writer import Writer
from dafka.hub.completion import run_to_completion
from dafka.hub.hub import Hub
from dafka.hub.limits import PACE_ITEMS
from dafka.hub.turns import Pace, in_pieces, next_turn, out_of

_LISTED = 500  # transactional ids that are listed in one turn of the hub


class TransactionCoordinator(TransactionInterface):
    """The transactions of one broker. Hub side; methods wait as green threads."""

    def __init__(
        self,
        hub: Hub,
        ids: ProducerIds,
        writer: Writer,
        topics: TopicTable,
        table: TransactionTable,
        producers: ProducerStates,
        offsets: GroupOffsets,
        groups: Coordinator,
        leaders: Leaders,
        version: Callable[[], int],
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Complete the transactions that are already decided, and watch the timeouts of the others.

        ``version()`` is the level of the feature transaction.version.
        """
        self._hub = hub
        self._writer = writer
        self._topics = topics
        self._table = table
        self._producers = producers
        self._offsets = offsets
        self._version = version
        self._clock = clock
        self._ending = Ending(writer, leaders, offsets, table.become, clock)
        self._epochs = EpochEnds(ids, table, self._ending, version, clock)
        self._identities = Identities(ids, table, self._ending, self._fence, version, clock)
        self._markers = Markers(topics, producers, leaders)
        self._timeouts = Timeouts(hub, self._abort, clock)
        self.contents = Contents(hub, table, offsets, groups, self._timeouts, version, clock)
        offsets.withdraw = self._withdraw
        for transaction in table.in_use():
            for partition in Pace().over(list(transaction.partitions.values())):
                producers.reopen(partition, transaction.producer_id)
            for keys in in_pieces(Pace().over(transaction.offsets), PACE_ITEMS):
                offsets.hold(keys)
            if transaction.state is State.ONGOING:
                self._timeouts.watch(transaction)
            elif transaction.state.is_open:
                transaction.busy = True
                commit = transaction.state is State.PREPARE_COMMIT
                hub.spawn(self._ending.end, transaction, commit, transaction.decision)

    def settle(self) -> None:
        """Abort what is overdue, after a test has set the clock forward; waits as a green thread."""
        self._timeouts.settle()

    def close(self) -> None:
        """Stop watching timeouts."""
        self._timeouts.close()

    def _abort(self, transaction: Transaction) -> bool:
        """Abort a transaction that has exceeded its timeout; returns whether that is done."""
        return self._fence(transaction) is None

    def _fence(self, transaction: Transaction) -> Error | None:
        """Abort a transaction that the caller has marked as busy, though its producer has not asked for it.

        With transaction.version 2 that producer may still abort, too, and goes on; before it is fenced.
        """
        if self._version() >= RAISING:
            return self._epochs.abort(transaction)
        return self._ending.end(transaction, False, Decision(transaction.epoch + 1, NO_EPOCH))

    # -- identity -------------------------------------------------------------------------------

    def init_producer_id(
        self,
        transactional_id: str | None,
        timeout: float,
        producer_id: int = NO_PRODUCER_ID,
        epoch: int = NO_EPOCH,
    ) -> ProducerIdentity:
        if transactional_id is None:
            return self._identities.anonymous()
        if not isinstance(transactional_id, str) or not transactional_id:
            return ProducerIdentity(InvalidRequestError)
        if (producer_id == NO_PRODUCER_ID) != (epoch == NO_EPOCH):
            return ProducerIdentity(InvalidRequestError)
        if not 0 < timeout <= TRANSACTION_TIMEOUT_MAX:
            return ProducerIdentity(InvalidTransactionTimeoutError)
        return run_to_completion(
            self._hub, self._identities.give, transactional_id, timeout, producer_id, epoch
        )

    # -- partitions, groups and offsets -----------------------------------------------------------

    def add_partitions_to_transaction(
        self,
        transactional_id: str,
        producer_id: int,
        epoch: int,
        partitions: Iterable[TopicPartition],
        *,
        verify_only: bool = False,
        raising: bool = False,
    ) -> dict[TopicPartition, Error | None]:
        wanted = list(partitions)
        named: dict[str, Partition] = {}
        unknown: set[TopicPartition] = set()
        for key in Pace().over(wanted):
            partition = self._topics.partition(*key)
            if partition is None or not partition.writable:
                unknown.add(key)
            else:
                named[row_name(partition)] = partition
        if unknown:
            return {
                key: UnknownTopicOrPartitionError if key in unknown else OperationNotAttemptedError
                for key in wanted
            }
        if verify_only:
            error, added = self.contents.verify(transactional_id, producer_id, epoch, named)
        else:
            error, added = self.contents.add_partitions(transactional_id, producer_id, epoch, named, raising)
        answers: dict[TopicPartition, Error | None] = dict.fromkeys(wanted, error)
        answers.update(((one.topic.name, one.number), None) for one in Pace().over(added))
        return answers

    def add_offsets_to_transaction(
        self, transactional_id: str, producer_id: int, epoch: int, group: str
    ) -> Error | None:
        if not isinstance(group, str):
            return InvalidGroupIdError
        return self.contents.add_group(transactional_id, producer_id, epoch, group)

    def commit_transaction_offsets(
        self,
        transactional_id: str,
        producer_id: int,
        epoch: int,
        group: str,
        offsets: Mapping[TopicPartition, CommittedOffset],
        *,
        generation: int = NO_GENERATION,
        member_id: str = NO_MEMBER,
        instance_id: str | None = None,
        writes: Writes = Writes.ANNOUNCED,
    ) -> dict[TopicPartition, Error | None]:
        if len(offsets) > COMMIT_OFFSETS:
            check_offsets(offsets.values())  # before some are written
        # As in Kafka, partitions that are not there are nobody's business but the client's.
        pace = Pace()
        there = {key: one for key, one in pace.over(offsets.items()) if self._topics.partition(*key)}
        lost = {key: UnknownTopicOrPartitionError for key in pace.over(offsets) if key not in there}
        if not there or not isinstance(group, str) or not group:
            return {**lost, **dict.fromkeys(there, InvalidGroupIdError)}
        who = transactional_id, producer_id, epoch
        member = generation, member_id, instance_id
        return {**lost, **self.contents.commit_offsets(who, group, there, member, writes)}

    # -- the end --------------------------------------------------------------------------------

    def end_transaction(
        self, transactional_id: str, producer_id: int, epoch: int, commit: bool
    ) -> Error | None:
        return run_to_completion(self._hub, self._end_own, transactional_id, producer_id, epoch, commit)

    def _end_own(self, transactional_id: str, producer_id: int, epoch: int, commit: bool) -> Error | None:
        transaction = self._table.own(transactional_id, producer_id, epoch)
        if not isinstance(transaction, Transaction):
            return transaction
        if transaction.state is State.ONGOING:
            transaction.busy = True
            return self._ending.end(transaction, commit, Decision(epoch, transaction.last_epoch))
        ended = State.COMPLETE_COMMIT if commit else State.COMPLETE_ABORT
        return None if transaction.state is ended else InvalidTxnStateError

    def end_transaction_with_epoch(
        self, transactional_id: str, producer_id: int, epoch: int, commit: bool
    ) -> ProducerIdentity:
        return run_to_completion(self._hub, self._epochs.end, transactional_id, producer_id, epoch, commit)

    def write_markers(
        self,
        producer_id: int,
        epoch: int,
        commit: bool,
        partitions: Iterable[TopicPartition],
        version: int = 0,
    ) -> dict[TopicPartition, Error | None]:
        return self._markers.write(producer_id, epoch, commit, partitions, version)

    # -- describing --------------------------------------------------------------------------------

    def describe_producers(
        self, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, ProducersOfPartition]:
        answers = {}
        pace = Pace()
        for key in pace.over(partitions):
            partition = self._topics.partition(*key)
            if partition is None:
                error = UnknownTopicOrPartitionError if is_legal(key[0]) else InvalidTopicError
                answers[key] = ProducersOfPartition(error)
            else:
                producers = list(pace.over(self._producers.of_partition(partition)))
                answers[key] = ProducersOfPartition(None, producers)
        return answers

    def describe_transactions(self, transactional_ids: Iterable[str]) -> dict[str, TransactionDescription]:
        return {name: self._describe(name) for name in Pace().over(transactional_ids)}

    def _describe(self, transactional_id: str) -> TransactionDescription:
        if not transactional_id:
            return TransactionDescription(InvalidRequestError)
        found = self._table.get(transactional_id)
        if found is None or found.producer_id == NO_PRODUCER_ID:
            return TransactionDescription(TransactionalIdNotFoundError)
        return TransactionDescription(
            None,
            found.state.value,
            found.producer_id,
            found.epoch,
            found.timeout,
            found.started,
            found.names(),
        )

    def list_transactions(
        self, states: Iterable[str] = (), producer_ids: Iterable[int] = ()
    ) -> list[ListedTransaction]:
        wanted, producers = set(states), set(producer_ids)
        listed = []
        for count, (transactional_id, producer_id, state) in enumerate(self._table.all()):
            if (not wanted or state in wanted) and (not producers or producer_id in producers):
                listed.append(ListedTransaction(transactional_id, producer_id, state))
            if not count % _LISTED:
                next_turn()
        return listed

    def forget(self, topic: Topic) -> Rows:
        """Remove a deleted topic from all open transactions.

        Returns the rows that delete its rows; rows of unknown topics are ignored until then.
        """
        prefix, infix = f"{topic.topic_id.hex}/", f"/{topic.topic_id.hex}/"
        rows: Rows = {}
        pace = Pace()
        for transaction in self._table.in_use():
            if not transaction.state.is_open:
                continue
            for name in pace.over(chain.from_iterable(out_of(list(transaction.partitions), PACE_ITEMS))):
                if name.startswith(prefix) and transaction.partitions.pop(name, None) is not None:
                    rows.update(dict.fromkeys(transaction.partition_row(name)))
            for key in pace.over(chain.from_iterable(out_of(list(transaction.offsets), PACE_ITEMS))):
                if infix in key[-44:] and transaction.offsets.pop(key, None) is not None:
                    rows.update(dict.fromkeys(transaction.offset_row(key, [])))
                    self._offsets.release([key])
        return rows

    def _withdraw(self, keys: Iterable[str]) -> Rows:
        """Remove offsets from the open transactions; the rows that delete theirs. What is decided stays."""
        wanted = set(keys)
        rows: Rows = {}
        for transaction in Pace().over(self._table.in_use()):
            if transaction.state is State.ONGOING and transaction.offsets:
                found = [key for key in wanted if transaction.offsets.pop(key, None) is not None]
                for key in found:
                    rows.update(dict.fromkeys(transaction.offset_row(key, [])))
                self._offsets.release(found)
        return rows

    # -- bounds ---------------------------------------------------------------------------------

    @property
    def crowded(self) -> bool:
        """Whether there are more transactional ids than TRANSACTIONAL_IDS_KEPT."""
        return len(self._table) > TRANSACTIONAL_IDS_KEPT

    def forget_old(self, pause: Callable[[], object]) -> int:
        """Delete transactional ids that were not used for TRANSACTIONAL_ID_EXPIRATION, and the longest unused
        ones beyond TRANSACTIONAL_IDS_KEPT; returns their number. Calls ``pause`` now and then."""
        forgotten = 0
        for transaction in self._table.expired(self._clock(), pause):
            if self._table.write(transaction, {(TRANSACTIONS, transaction.transactional_id): None}) is None:
                self._table.discard(transaction)
                forgotten += 1
        return forgotten
