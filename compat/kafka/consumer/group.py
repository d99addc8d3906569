"""``KafkaConsumer``: kafka-python's consumer over a broker in this process, or over TCP.

Iterating hands out a *chunk*, the rows of (part of) one batch, through a C iterator; the only work for every
record is to note it as the last one. The partition's position follows from that record when it is wanted
(:meth:`KafkaConsumer._settle`), so every method that reads or changes positions settles first, and every
method that changes what is consumed drops the rest of the chunk: it is still in the buffer, and comes again
if the position still leads there.

It runs in the caller's thread and is not thread safe, as kafka-python's; only ``close`` may come from
another thread. Subscription state is kafka-python's ``SubscriptionState``. Batches are fetched by
:mod:`~compat.kafka.consumer._fetches`, turned into records by :mod:`~compat.kafka.consumer._records`,
positions found and committed by :mod:`~compat.kafka.consumer._offsets`, partitions assigned by
:mod:`~compat.kafka.consumer._group_member` or, by the broker, :mod:`~compat.kafka.consumer._assigned.member`,
or :mod:`~compat.kafka.consumer._standalone` without a group.
:mod:`~compat.kafka.consumer._polling` brings them together.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from time import monotonic
from typing import TYPE_CHECKING, Any, ClassVar

import kafka.consumer.group as _theirs
from kafka.consumer.fetcher import ConsumerRecord
from kafka.consumer.subscription_state import SubscriptionState
from kafka.errors import IllegalStateError
from kafka.future import Future
from kafka.protocol.consumer import OffsetResetStrategy
from kafka.structs import ConsumerGroupMetadata, OffsetAndMetadata, OffsetAndTimestamp, TopicPartition
from kafka.util import ensure_valid_topic_name

from compat.kafka._calls import Calls
from compat.kafka._client import Client, cut_off_in_child
from compat.kafka._metrics import ConsumerMetrics, add_fetch_totals, consumer_metrics, new_registry
from compat.kafka._mirror import counterpart_names
from compat.kafka._times import timeout_of
from compat.kafka.consumer._arguments import (
    check_assigned,
    check_partition,
    check_partitions,
    check_poll,
    check_seek,
    check_seek_to,
    check_times,
)
from compat.kafka.consumer._assigned.member import AssignedMember
from compat.kafka.consumer._config import adapt_to_version, check_config, read_config
from compat.kafka.consumer._fetches import Fetches
from compat.kafka.consumer._group_member import GroupMember
from compat.kafka.consumer._lookup import CLOSED, Lookup
from compat.kafka.consumer._membership import Membership
from compat.kafka.consumer._offsets import Positions
from compat.kafka.consumer._polling import Polling, behind
from compat.kafka.consumer._standalone import Standalone

if TYPE_CHECKING:
    from typing_extensions import Self

log = logging.getLogger(__name__)


class KafkaConsumer:
    """Reads records of topics of a broker. For one thread, but for ``close``.

    The configuration keys and their defaults are kafka-python's. Of those that describe a network connection
    ``bootstrap_servers``, ``bootstrap_timeout_ms``, ``request_timeout_ms`` and ``security_protocol`` matter:
    see :mod:`compat.kafka`.

    Raises:
        KafkaConfigurationError: unknown keys, or settings that contradict each other.
        KafkaTimeoutError: no broker at ``bootstrap_servers``.
        KafkaConnectionError: the folder of ``DAFKA_EMBEDDED`` cannot be opened, as when it is in use.
    """

    DEFAULT_CONFIG: ClassVar[dict[str, Any]] = dict(_theirs.KafkaConsumer.DEFAULT_CONFIG)
    DEFAULT_SESSION_TIMEOUT_MS_PRE_KIP_735 = _theirs.KafkaConsumer.DEFAULT_SESSION_TIMEOUT_MS_PRE_KIP_735

    def __init__(self, *topics: str, **configs: Any) -> None:
        self._closed = True  # until everything below has succeeded
        self.config = read_config(self.DEFAULT_CONFIG, configs)
        self._metrics = new_registry(self.config)
        self._client = Client(self.config, self.config["api_version"] is None)
        adapt_to_version(self.config, configs)
        check_config(self.config)
        self._subscription = SubscriptionState(self.config["auto_offset_reset"])
        figures = consumer_metrics(self._metrics, self.config, self._subscription)
        self._calls = Calls(self._client)
        self._fetches = Fetches(self._client, self._calls, self._subscription, self.config, figures)
        self._member = self._new_member(figures)
        self._positions = Positions(
            self._client, self._calls, self._subscription, self._member, self.config, figures
        )
        self._lookup = Lookup(self._client, self._calls, self._member, self._positions, self.config)
        add_fetch_totals(self._metrics, self.config, self._fetches)
        self._polling = Polling(
            self._client, self._subscription, self._fetches, self._member, self._positions
        )
        self._chunk: Iterator[ConsumerRecord] = iter(())
        self._chunk_state: Any = None  # the state of the chunk's partition
        self._last: ConsumerRecord | None = None  # the chunk's last record that was handed out
        self._closed = False
        cut_off_in_child(self)
        if topics:
            for topic in topics:
                ensure_valid_topic_name(topic)
            self._subscription.subscribe(topics=topics)

    def _new_member(self, figures: ConsumerMetrics | None) -> Membership:
        if self.config["group_id"] is None:
            return Standalone(self._calls, self._subscription, self.config)
        parts = self._client, self._calls, self._subscription, self.config, self._fetches.interrupt_here
        if self.config["group_protocol"] == "consumer":
            assigned = AssignedMember(*parts)
            following = assigned.session
            self._fetches.needed_elsewhere = lambda: following.called
            return assigned
        member = GroupMember(*parts)
        session = member.session
        session.metrics = figures
        self._fetches.needed_elsewhere = lambda: session.called
        return member

    # -- reading -----------------------------------------------------------------------------------

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> ConsumerRecord:
        for record in self._chunk:  # the quickest way to take one, or to find that there is none
            self._last = record
            return record
        self._begin_next_chunk()
        # Once more, and without a call: Ctrl-C is noticed after calls, and would lose a record that one took.
        for record in self._chunk:
            self._last = record
            return record
        raise AssertionError("a chunk without records")

    def _begin_next_chunk(self) -> None:
        """Have records at hand; raises StopIteration if there are none in time."""
        self._settle()
        if self._closed:
            self._client.hub.check()  # in a forked child: an error, and not the end of the records
            raise StopIteration("KafkaConsumer closed")
        timeout_ms = self.config["consumer_timeout_ms"]
        deadline = monotonic() + timeout_ms / 1000 if timeout_ms >= 0 else float("inf")
        taken = self._polling.next(deadline, self.config["max_poll_records"])
        if taken is None:
            raise StopIteration()
        partition, records = taken
        self._chunk_state = self._subscription.assignment[partition]
        self._chunk = iter(records)

    def poll(
        self, timeout_ms: float = 0, max_records: int | None = None, update_offsets: bool = True
    ) -> dict[TopicPartition, list[ConsumerRecord]]:
        """Records by partition, at most ``max_records`` (``max_poll_records``) of them.

        Waits up to ``timeout_ms`` for the first one. ``update_offsets=False`` leaves the positions.

        Raises:
            ValueError: a negative timeout, or ``max_records`` below 1.
            TypeError: ``max_records`` is not an int.
            IllegalStateError: the consumer is closed.
            NoOffsetForPartitionError, OffsetOutOfRangeError: with ``auto_offset_reset="none"``.
        """
        max_records = self.config["max_poll_records"] if max_records is None else max_records
        check_poll(timeout_ms, max_records)
        if self._closed:
            raise self._client.closed_error(CLOSED)
        self._drop_chunk()
        deadline = monotonic() + timeout_ms / 1000
        records: dict[TopicPartition, list[ConsumerRecord]] = {}
        before: dict[TopicPartition, OffsetAndMetadata] = {}
        returned = False
        try:
            while not self._closed:
                taken = self._polling.once(deadline, max_records)
                while taken is not None:
                    partition, rows = taken
                    state = self._subscription.assignment[partition]
                    before.setdefault(partition, state.position)
                    state.position = behind(rows[-1])
                    records.setdefault(partition, []).extend(rows)
                    max_records -= len(rows)
                    taken = self._polling.more(max_records)
                if records or monotonic() >= deadline:
                    break
            returned = update_offsets
            return records
        finally:
            # After an interruption (Ctrl-C), too: these records come again. The method that returns to the
            # program does it, because Ctrl-C between two methods of ours would lose them.
            if not returned:
                for partition, position in before.items():
                    self._subscription.assignment[partition].position = position

    def _settle(self) -> None:
        """Bring the position of the partition that is being iterated up to date."""
        last = self._last
        if last is not None:
            if self._chunk_state.has_valid_position:
                self._chunk_state.position = behind(last)
            self._last = None

    def _drop_chunk(self) -> None:
        self._settle()
        self._chunk = iter(())

    # -- subscribing and assigning -----------------------------------------------------------------

    def subscribe(self, topics: Any = (), pattern: str | None = None, listener: Any = None) -> None:
        """Read all partitions of the topics, or of those whose name matches the regular expression.

        Raises:
            IllegalStateError: both topics and pattern, or ``assign`` was used before.
            ValueError: neither, or an illegal topic name.
            TypeError: topics are not a sequence of strings, or the listener is not a rebalance listener.
        """
        self._drop_chunk()
        self._subscription.subscribe(topics=topics, pattern=pattern, listener=listener)
        self._member.changed()

    def subscription(self) -> set[str] | None:
        """The topics subscribed to; None without a subscription."""
        topics = self._subscription.subscription
        return None if topics is None else topics.copy()

    def unsubscribe(self) -> None:
        """End the subscription or assignment; positions are committed if commits are automatic.

        As in kafka-python no rebalance listener is told; Kafka's own consumer tells it "revoked".
        """
        self._drop_chunk()
        self._auto_commit_before_leaving()
        self._subscription.unsubscribe()
        self._member.leave(self.config["request_timeout_ms"])

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Read exactly these partitions; none ends the assignment.

        Raises:
            IllegalStateError: ``subscribe`` was used before.
        """
        if not partitions:
            self.unsubscribe()
            return
        self._drop_chunk()
        self._auto_commit_before_leaving()
        self._subscription.assign_from_user(partitions)
        for partition in partitions:
            ensure_valid_topic_name(partition.topic)

    def _auto_commit_before_leaving(self) -> None:
        self._check_open()
        if self._subscription.assignment:
            self._positions.auto_commit_now()

    def assignment(self) -> set[TopicPartition]:
        """The partitions that are read."""
        assigned: set[TopicPartition] = self._subscription.assigned_partitions()
        return assigned

    def group_metadata(self) -> ConsumerGroupMetadata:
        """A snapshot of this consumer's membership in its group."""
        return self._member.metadata()

    # -- positions ---------------------------------------------------------------------------------

    def position(self, partition: TopicPartition, timeout_ms: float | None = None) -> int | None:
        """The offset of the next record of the partition; None if it is not known within ``timeout_ms``.

        Raises:
            TypeError: not a TopicPartition.
            IllegalStateError: not assigned.
        """
        check_assigned(self._subscription, partition)
        self._settle()
        if self._subscription.assignment[partition].position is None:
            self._check_open()
        return self._positions.await_position(partition, timeout_of(timeout_ms))

    def highwater(self, partition: TopicPartition) -> int | None:
        """The offset behind the partition's last record, as of the last fetch; None before the first."""
        check_assigned(self._subscription, partition)
        highwater: int | None = self._subscription.assignment[partition].highwater
        return highwater

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """Continue at ``offset``.

        Raises:
            TypeError: not a TopicPartition.
            ValueError: not an int of 0 or more, or a partition that is not assigned.
        """
        check_seek(self._subscription, partition, offset)
        self._drop_chunk()
        self._subscription.assignment[partition].seek(offset)

    def seek_to_beginning(self, *partitions: TopicPartition) -> None:
        """Continue at the first record there is, in these or all partitions.

        Raises:
            TypeError: not TopicPartitions.
            ValueError: not assigned.
        """
        self._seek_to(OffsetResetStrategy.EARLIEST, partitions)

    def seek_to_end(self, *partitions: TopicPartition) -> None:
        """Continue behind the last record there is, in these or all partitions; raises as its sibling."""
        self._seek_to(OffsetResetStrategy.LATEST, partitions)

    def _seek_to(self, strategy: Any, partitions: tuple[TopicPartition, ...]) -> None:
        assigned = check_seek_to(self._subscription, partitions)
        self._drop_chunk()
        for partition in partitions or assigned:
            self._subscription.request_offset_reset(partition, strategy)

    def pause(self, *partitions: TopicPartition) -> None:
        """Return no records of these partitions until ``resume``."""
        check_partitions(partitions)
        self._drop_chunk()
        for partition in partitions:
            self._subscription.pause(partition)

    def paused(self) -> set[TopicPartition]:
        """The partitions that are paused."""
        paused: set[TopicPartition] = self._subscription.paused_partitions()
        return paused

    def resume(self, *partitions: TopicPartition) -> None:
        """Go on with partitions that were paused."""
        check_partitions(partitions)
        for partition in partitions:
            self._subscription.resume(partition)

    # -- committing --------------------------------------------------------------------------------

    def commit(
        self, offsets: dict[TopicPartition, OffsetAndMetadata] | None = None, timeout_ms: float | None = None
    ) -> None:
        """Commit these offsets, or the positions, for the group, and wait for it.

        Raises:
            IllegalStateError: no ``group_id``.
            TypeError: not ``{TopicPartition: OffsetAndMetadata}``.
            CommitFailedError: subscribed, but not (or no longer) a member of the group.
            RebalanceInProgressError: a rebalance is under way; poll and try again.
            FencedInstanceIdError: another consumer has joined with this ``group_instance_id``.
            KafkaTimeoutError: not within ``timeout_ms`` (default ``request_timeout_ms``).
        """
        self._positions.commit(self._offsets_to_commit(offsets), timeout_of(timeout_ms))

    def commit_async(self, offsets: Any = None, callback: Any = None) -> Future:
        """Commit without waiting; a later poll or commit calls ``callback(offsets, None or exception)``."""
        return self._positions.commit_async(self._offsets_to_commit(offsets), callback)

    def _offsets_to_commit(self, offsets: Any) -> Any:
        self._check_group()
        self._check_open()
        self._settle()
        return self._subscription.all_consumed_offsets() if offsets is None else offsets

    def committed(
        self, partition: TopicPartition, metadata: bool = False, timeout_ms: float | None = None
    ) -> int | OffsetAndMetadata | None:
        """The offset the group has committed, with its metadata if asked; None if there is none.

        Raises:
            IllegalStateError: no ``group_id``.
            TypeError: not a TopicPartition.
            KafkaTimeoutError: the broker did not say within ``timeout_ms``.
        """
        self._check_group()
        check_partition(partition)
        found = self._lookup.committed(partition, timeout_of(timeout_ms))
        return found if metadata or found is None else found.offset

    def _check_group(self) -> None:
        if self.config["group_id"] is None:
            raise IllegalStateError("Requires group_id")

    # -- about topics and offsets --------------------------------------------------------------------

    def topics(self) -> set[str]:
        """The names of all topics."""
        return set(self._lookup.topics())

    def partitions_for_topic(self, topic: str) -> set[int]:
        """The numbers of a topic's partitions; empty if there is no such topic."""
        return set(self._lookup.partitions(topic))

    def beginning_offsets(
        self, partitions: Iterable[TopicPartition], timeout_ms: float | None = None
    ) -> dict[TopicPartition, int]:
        """The first offset there is of each partition.

        Raises:
            KafkaTimeoutError: a partition was not found within ``timeout_ms`` (``request_timeout_ms``).
        """
        return self._lookup.edges(partitions, OffsetResetStrategy.EARLIEST, timeout_of(timeout_ms))

    def end_offsets(
        self, partitions: Iterable[TopicPartition], timeout_ms: float | None = None
    ) -> dict[TopicPartition, int]:
        """The offset behind the last record of each partition; raises as ``beginning_offsets``."""
        return self._lookup.edges(partitions, OffsetResetStrategy.LATEST, timeout_of(timeout_ms))

    def offsets_for_times(
        self, timestamps: dict[TopicPartition, int], timeout_ms: float | None = None
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """The first record at or after a time in ms since the epoch, by partition; None if there is none.

        Raises:
            ValueError: a negative time.
            KafkaTimeoutError: a partition was not found within ``timeout_ms`` (``request_timeout_ms``).
        """
        return self._lookup.times(check_times(timestamps), timeout_of(timeout_ms))

    # -- connection and closing ----------------------------------------------------------------------

    def bootstrap_connected(self) -> bool:
        """Whether the broker can be called."""
        return self._client.connected()

    def bootstrap(self, timeout_ms: float | None = None, refresh: bool = False) -> None:
        """Nothing to do: the broker was found when the consumer was made."""
        timeout_of(timeout_ms)
        self._check_open()

    def _check_open(self) -> None:
        """Raise IllegalStateError after ``close``; while it closes, listeners may still commit."""
        self._client.check_open(CLOSED)

    def metrics(self, raw: bool = False) -> dict[Any, Any] | None:
        """Figures about this consumer, ``{group: {name: value}}``; None if metrics are not enabled."""
        return None if self._metrics is None else self._metrics.by_group(raw)

    def close(self, autocommit: bool = True, timeout_ms: float | None = None) -> None:
        """Commit positions (if commits are automatic and ``autocommit``), tell the listener, and end.

        May be called from another thread than the one that reads, whose wait it ends.
        """
        timeout_of(timeout_ms)
        if self._closed:
            return
        timeout_ms = self.config["request_timeout_ms"] if timeout_ms is None else timeout_ms
        self._drop_chunk()
        self._closed = True
        self._polling.stop()
        try:
            if autocommit:
                self._positions.auto_commit_and_wait(timeout_ms)
            self._member.close(timeout_ms)
        finally:
            self._client.close()
            if self._metrics is not None:
                self._metrics.close()
            for key in ("key_deserializer", "value_deserializer"):
                close = getattr(self.config[key], "close", None)
                if close is not None:
                    close()

    def _cut_off(self) -> None:
        self._closed = True
        self._chunk, self._last = iter(()), None

    def __enter__(self) -> KafkaConsumer:
        return self

    def __exit__(self, exc_type: Any, exc_val: Any, exc_tb: Any) -> None:
        # After an exception the last record may not have been processed: its offset is not committed.
        self.close(autocommit=exc_type is None)


__getattr__ = counterpart_names(__name__)
