"""The embedded broker: the broker interface on a log and a node of the mesh, in one process. Hub side.

Everything durable goes through one writer, so that produce calls, the records of native producers, committed
offsets and changes of topics share transactions. After a commit the leaders publish and answer, and fetches
that wait for a partition that has grown are woken.
"""

from __future__ import annotations

import base64
import logging
import math
import os
import uuid
from collections.abc import Callable, Iterable, Mapping, MutableMapping, Sequence
from contextlib import ExitStack
from functools import partial

import gevent
import gevent.event
from kafka.errors import (
    CorruptRecordError,
    InvalidConfigurationError,
    InvalidPartitionsError,
    InvalidRequiredAcksError,
    InvalidTopicError,
    KafkaStorageError,
    PolicyViolationError,
    UnknownTopicOrPartitionError,
    UnsupportedVersionError,
)

from dafka.broker.admin_calls import AdminCalls
from dafka.broker.admission import Turns, admit, recompresses
from dafka.broker.config_table import ConfigTable
from dafka.broker.configs import InvalidConfigError, check_configs
from dafka.broker.errors import BrokerStoppedError
from dafka.broker.expiry import Expiry, Search
from dafka.broker.fetching import Fetch
from dafka.broker.groups_calls import GroupCalls
from dafka.broker.groups_coordinator import Coordinator
from dafka.broker.groups_times import GroupTimes
from dafka.broker.interface import (
    EARLIEST,
    LATEST,
    MAX_TIMESTAMP,
    BrokerInterface,
    Error,
    Fetched,
    FetchFrom,
    ListedOffset,
    Metadata,
    PartitionMetadata,
    Produced,
    TopicMetadata,
    TopicPartition,
    TopicSpec,
)
from dafka.broker.leader import Leaders, Request, Share, check_batches
from dafka.broker.leftovers import forget_gone
from dafka.broker.limits import (
    EXPIRATION_INTERVAL,
    OFFSETS_CHECK_INTERVAL,
    OFFSETS_RETENTION,
    PARTITIONS_KEPT,
    PARTITIONS_PER_TOPIC,
    PENDING_BYTES,
)
from dafka.broker.node import BrokerNode
from dafka.broker.offsets import GroupOffsets
from dafka.broker.offsets_expiry import OffsetExpiry
from dafka.broker.producer_state import ProducerStates
from dafka.broker.retention import Upkeep
from dafka.broker.rows import Rows
from dafka.broker.topics import Partition, Topic, TopicTable, is_legal
from dafka.broker.transactions_calls import TransactionCalls
from dafka.broker.transactions_coordinator import TransactionCoordinator
from dafka.log import DamagedError, Durability, Log, LogClosedError, LogError, LogPartition, OnDamage
from dafka.mesh.address import new_address
from dafka.mesh.endpoint import Endpoint, EndpointOptions
from dafka.mesh.hub import Hub
from dafka.mesh.retention import CHECK_INTERVAL, NO_RETENTION, Retention
from dafka.mesh.writer import Writer

log = logging.getLogger(__name__)

NODE_ID = 0
IDENTITY = "broker"  # the table of what this broker is called
_LAST_TIMESTAMP = 2**63 - 1
_NO_ID = uuid.UUID(int=0)


class EmbeddedBroker(GroupCalls, AdminCalls, TransactionCalls, BrokerInterface):
    """A broker on the folder ``path``, on the mesh that ``options`` name, running from construction on.

    ``host`` and ``port`` are what clients are told. Raises the log's errors; see :class:`dafka.Broker`.
    """

    _node_id = NODE_ID

    def __init__(
        self,
        hub: Hub,
        path: str | os.PathLike[str],
        options: EndpointOptions,
        host: str,
        port: int,
        *,
        default_partitions: int = 1,
        auto_create_topics: bool = True,
        durability: Durability = "process",
        on_damage: OnDamage = "raise",
        retention: Retention = NO_RETENTION,
        retention_check_interval: float = CHECK_INTERVAL,
        offsets_retention: float | None = OFFSETS_RETENTION,
    ) -> None:
        self.hub = hub
        self.host = host
        self.port = port
        self._auto_create = auto_create_topics
        self._stopping = False
        self._stopped = gevent.event.Event()
        self._fetches: set[Fetch] = set()
        self._pending_bytes = 0
        self._less_pending = gevent.event.Event()
        self._strangers: set[LogPartition] = set()
        self._turns = Turns()
        self._entrance = Turns()
        self.log = Log(path, durability=durability, on_damage=on_damage)
        self._writer = Writer(hub, self.log)
        with ExitStack() as undo:
            undo.callback(self.log.close)
            undo.callback(self._writer.close)
            self.cluster_id, address = self._identity()
            self._topics = TopicTable(self.log, self._writer, default_partitions)
            static = {
                "advertised.listeners": f"PLAINTEXT://{host}:{port}",
                "auto.create.topics.enable": str(auto_create_topics).lower(),
                "listeners": f"PLAINTEXT://{host}:{port}",
                "log.dirs": self.log.path,
                "log.retention.check.interval.ms": str(max(1, int(1000 * retention_check_interval))),
                "num.partitions": str(default_partitions),
            }
            if retention.ms >= 0:
                static["log.retention.ms"] = str(retention.ms)
            if retention.bytes >= 0:
                static["log.retention.bytes"] = str(retention.bytes)
            static["offsets.retention.minutes"] = str(_minutes(offsets_retention))
            self._configs = ConfigTable(self.log, self._writer, NODE_ID, static)
            self._offsets = GroupOffsets(self.log, self._writer, self._topics)
            times = GroupTimes(self.log, self._writer)
            self._coordinator = Coordinator(hub, self._offsets, times, self._stopped_error)
            self._writer.on_commit(self._committed)
            self._topics.adopt(self.log.partitions())
            self.node = BrokerNode(
                hub, Endpoint.shared(hub, options), self.log, self._writer, address, self._topics
            )
            undo.callback(self.node.close)
            self._producers = ProducerStates(self.log, self._writer)
            self._transactions = TransactionCoordinator(
                hub,
                self.log,
                self._writer,
                self._topics,
                self._producers,
                self._offsets,
                self._coordinator,
            )
            self._leaders = Leaders(
                self._writer, self.node, self._producers, self._transactions.check_write, self._settled
            )
            self._transactions.start(self._leaders)
            undo.callback(self._transactions.close)
            self._upkeep = Upkeep(
                hub,
                self.log,
                self._writer,
                self._topics,
                self._configs,
                self.node,
                self._producers,
                retention_check_interval,
            )
            self._expiry = Expiry(hub, self._searches(times, offsets_retention))
            undo.pop_all()  # it runs

    def _identity(self) -> tuple[str, bytes]:
        """The cluster's id and the store's address, which are the same each time the folder is opened."""
        table = self.log.table(IDENTITY)
        if "cluster_id" not in table:
            cluster_id = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
            address = new_address().decode()
            rows = {(IDENTITY, "cluster_id"): cluster_id, (IDENTITY, "address"): address}
            self._writer.put_and_wait(rows)
        return str(table.get("cluster_id")), str(table.get("address")).encode()

    def _searches(self, times: GroupTimes, offsets_retention: float | None) -> list[Search]:
        def gone(pause: Callable[[], object]) -> int:
            return forget_gone(self.log, self._writer, self._topics, pause)

        deleted, producers, transactions = self._topics.deleted, self._producers, self._transactions
        often = EXPIRATION_INTERVAL
        searches = [
            Search("rows of topics that are gone", gone, often, at_start=True),
            Search("leaders of deleted topics", deleted.forget_old, often, lambda: deleted.crowded),
            Search("producers", producers.forget_old, often, lambda: producers.crowded),
            Search("transactional ids", transactions.forget_old, often, lambda: transactions.crowded),
        ]
        if offsets_retention is not None:
            expiry = OffsetExpiry(self._offsets, self._coordinator, times, offsets_retention)
            interval = min(OFFSETS_CHECK_INTERVAL, max(offsets_retention, 1.0))
            searches.append(Search("committed offsets", expiry.forget_old, interval))
        return searches

    # -- topics ---------------------------------------------------------------------------------

    def metadata(self, topics: Iterable[str] | None, create: bool = False) -> Metadata:
        self._check()
        if topics is None:
            found = {topic.name: _described(topic) for topic in self._topics}
        else:
            found = {name: self._describe(name, create and self._auto_create) for name in topics}
        return Metadata(self.cluster_id, NODE_ID, [(NODE_ID, self.host, self.port)], found)

    def _describe(self, name: str, create: bool) -> TopicMetadata:
        topic = self._topics.get(name)
        if topic is None and create:
            error = self.create_topics({name: TopicSpec()})[name]
            topic = self._topics.get(name)  # also if another caller was faster
            if topic is None and error is not None:
                return TopicMetadata(name, _NO_ID, error, [])
        if topic is None:
            error = UnknownTopicOrPartitionError if is_legal(name) else InvalidTopicError
            return TopicMetadata(name, _NO_ID, error, [])
        return _described(topic)

    def topic_names(self, ids: Iterable[uuid.UUID]) -> dict[uuid.UUID, str]:
        self._check()
        topics = {topic_id: self._topics.by_id(topic_id) for topic_id in ids}
        return {
            topic_id: topic.name
            for topic_id, topic in topics.items()
            if topic is not None and not topic.deleted
        }

    def create_topics(
        self,
        topics: Mapping[str, TopicSpec],
        *,
        validate_only: bool = False,
        details: MutableMapping[str, str] | None = None,
    ) -> dict[str, Error | None]:
        self._check()
        details = {} if details is None else details
        answers: dict[str, Error | None] = {}
        for name, spec in topics.items():
            try:
                answers[name] = self._create(name, spec, validate_only)
            except InvalidConfigError as error:
                log.warning("topic %r is not created: %s", name, error)
                answers[name], details[name] = InvalidConfigurationError, str(error)
            except LogError as error:
                answers[name] = self._storage_error("creating topic", name, error)
                details[name] = str(error)
            else:
                if answers[name] is not None:
                    details[name] = _why_not_created(name, spec, answers[name])
        return answers

    def _create(self, name: str, spec: TopicSpec, validate_only: bool) -> Error | None:
        if not is_legal(name):
            return InvalidTopicError
        check_configs(spec.configs)
        return self._topics.create(name, spec.partitions, spec.configs, validate_only=validate_only)

    def create_partitions(self, totals: Mapping[str, int]) -> dict[str, Error | None]:
        self._check()
        answers: dict[str, Error | None] = {}
        for name, total in totals.items():
            try:
                answers[name] = self._topics.extend(name, total)
            except LogError as error:
                answers[name] = self._storage_error("adding partitions to topic", name, error)
        return answers

    def delete_topics(self, names: Iterable[str]) -> dict[str, Error | None]:
        self._check()
        answers: dict[str, Error | None] = {}
        for name in names:
            topic = self._topics.get(name)
            if topic is None:
                answers[name] = UnknownTopicOrPartitionError
                continue
            try:
                deleted = self._topics.delete(topic, partial(self._rows_without, topic))
            except LogError as error:
                answers[name] = self._storage_error("deleting topic", name, error)
                continue
            answers[name] = None if deleted else UnknownTopicOrPartitionError
            if deleted:
                self._producers.forget(topic)
                self._transactions.forget(topic)
                self.node.forget(topic)
                self._upkeep.deleted(topic.partitions)
                for partition in topic.partitions:
                    _wake(partition)
        return answers

    def _rows_without(self, topic: Topic) -> Rows:
        """The rows that delete what groups and producers have of a topic."""
        return {**self._offsets.rows_without(topic), **self._producers.rows_without(topic)}

    # -- records --------------------------------------------------------------------------------

    def produce(
        self,
        batches: Mapping[TopicPartition, Sequence[bytes]],
        acks: int = -1,
        *,
        transactional_id: str | None = None,
    ) -> dict[TopicPartition, Produced]:
        self._check()
        with self._entrance.turn():  # in their order: one connection may have several under way
            while self._pending_bytes > PENDING_BYTES:
                self._less_pending.clear()
                self._less_pending.wait()
                self._check()
        request = Request(transactional_id)
        shares: list[tuple[Partition, Share]] = []
        for (name, number), contents in batches.items():
            partition = self._topics.partition(name, number)
            outcome: Share | Produced
            if partition is None:
                outcome = Produced(UnknownTopicOrPartitionError)
            elif not partition.writable:
                detail = f"only the native producer {partition.address!r} writes this partition"
                outcome = Produced(PolicyViolationError, detail=detail)
            elif acks not in (-1, 0, 1):
                outcome = Produced(InvalidRequiredAcksError, detail=f"acks is -1, 0 or 1, not {acks}")
            else:
                outcome = check_batches(contents, request)
                if isinstance(outcome, Share):
                    shares.append((partition, outcome))
                    continue
            request.answers[name, number] = outcome
        shares = self._admit(shares, request, acks)
        request.left = len(shares)
        for partition, share in shares:
            self._pending_bytes += share.size
            self._leaders.append(partition, share)
        if acks == 0:
            taken = {(partition.topic.name, partition.number): Produced(None) for partition, _ in shares}
            return {**taken, **request.answers}
        if request.left:
            request.ready.wait()
        return request.answers

    def _admit(
        self, shares: list[tuple[Partition, Share]], request: Request, acks: int
    ) -> list[tuple[Partition, Share]]:
        """The shares that their topics' configuration allows, as it wants them.

        No other green thread may run between this and the appending, for the sake of the order.
        """
        settings = [self._configs.settings(partition.topic) for partition, _ in shares]
        admitted = []
        with self._turns.turn(any(map(recompresses, settings))):
            for known, (partition, share) in zip(settings, shares, strict=True):
                refused = admit(known, share, acks)
                if refused is None:
                    admitted.append((partition, share))
                else:
                    request.answers[partition.topic.name, partition.number] = refused
        return admitted

    def _settled(self, size: int) -> None:
        self._pending_bytes -= size
        if self._pending_bytes <= PENDING_BYTES:
            self._less_pending.set()

    def fetch(
        self,
        partitions: Mapping[TopicPartition, FetchFrom],
        *,
        max_wait: float,
        min_bytes: int,
        max_bytes: int,
        read_committed: bool = False,
    ) -> dict[TopicPartition, Fetched]:
        self._check()
        fetch = Fetch(
            self.log, self._topics, self._producers, partitions, min_bytes, max_bytes, read_committed
        )
        self._fetches.add(fetch)
        try:
            return fetch.run(max_wait)
        finally:
            self._fetches.discard(fetch)
            self._check()

    def list_offsets(
        self, timestamps: Mapping[TopicPartition, int], *, read_committed: bool = False
    ) -> dict[TopicPartition, ListedOffset]:
        self._check()
        return {
            (name, number): self._list_offset(self._topics.partition(name, number), timestamp, read_committed)
            for (name, number), timestamp in timestamps.items()
        }

    def _list_offset(self, partition: Partition | None, timestamp: int, read_committed: bool) -> ListedOffset:
        if partition is None:
            return ListedOffset(UnknownTopicOrPartitionError)
        end = self._producers.last_stable_offset(partition) if read_committed else partition.high_watermark
        if timestamp == LATEST:
            return ListedOffset(None, end)
        if timestamp == EARLIEST:
            return ListedOffset(None, partition.log_start)
        if timestamp < 0 and timestamp != MAX_TIMESTAMP:
            return ListedOffset(UnsupportedVersionError)
        try:
            found = self._latest_time(partition) if timestamp < 0 else self._since(partition, timestamp)
        except DamagedError:
            return ListedOffset(CorruptRecordError)
        except LogError as error:
            return ListedOffset(
                self._storage_error("looking for a timestamp in", partition.topic.name, error)
            )
        if found is None or found[0] >= end:
            return ListedOffset(None)
        return ListedOffset(None, found[0], min(found[1], _LAST_TIMESTAMP))  # batches can say more

    def _since(self, partition: Partition, timestamp: int) -> tuple[int, int] | None:
        found = self.log.offset_for_timestamp(partition.stored, timestamp)
        if found is None or found[0] >= partition.floor:
            return found
        # Below the floor are a deleted topic's records. Only native partitions have one, and theirs rise
        # with time: the first record above it is the answer.
        rest = self.log.read_offsets(partition.stored, partition.floor, max_bytes=0)
        return (rest[0][0], rest[0][1]) if rest else None

    def _latest_time(self, partition: Partition) -> tuple[int, int] | None:
        """The first record with the partition's largest timestamp, by bisection over the timestamps."""
        found = self._since(partition, 0)
        low, high = (found[1] if found else 0), _LAST_TIMESTAMP
        while found is not None and low < high:
            middle = (low + high + 1) // 2
            later = self._since(partition, middle)
            if later is None:
                high = middle - 1
            else:
                found, low = later, max(middle, later[1])
        return found

    # -- life -----------------------------------------------------------------------------------

    @property
    def running(self) -> bool:
        """Whether calls are answered."""
        return not self._stopping

    def stop(self) -> None:
        """Commit what has been accepted, leave the mesh and close the log; waits as a green thread.

        Waiting calls end, and every later call, with BrokerStoppedError. A second call waits for the
        first one.
        """
        if self._stopping:
            self._stopped.wait()
            return
        self._stopping = True
        try:
            for fetch in list(self._fetches):
                fetch.abandon()
            self._coordinator.close()
            self._transactions.close()
            self._expiry.close()
            while self._pending_bytes:
                self._less_pending.clear()
                self._less_pending.wait()
        finally:  # also if the caller is interrupted: the folder must not stay locked
            self.node.close()
            self._upkeep.close()
            self._writer.close()
            self.log.close()
            self._stopped.set()

    def _check(self) -> None:
        if self._stopping:
            self.hub.check()
            raise self._stopped_error()

    def _stopped_error(self) -> BrokerStoppedError:
        return BrokerStoppedError(f"the broker {self.host}:{self.port} on {self.log.path} is stopped")

    def _storage_error(self, doing: str, name: str, error: LogError) -> Error:
        self._check()
        log.error("%s %r failed: %s", doing, name, error)
        return KafkaStorageError

    def _committed(self, grown: set[LogPartition]) -> None:
        """Listener of the writer: called in its green thread after each commit, must not wait."""
        for stored in grown:
            partition = self._topics.of_log(stored)
            if partition is not None:
                if partition.fetches:
                    _wake(partition)
            elif self._topics.wants(stored):
                if not self._strangers:
                    self.hub.spawn(self._adopt)
                self._strangers.add(stored)

    def _adopt(self) -> None:
        strangers, self._strangers = self._strangers, set()
        if self._stopping:
            return  # the next start finds them in the log
        try:
            for topic in self._topics.adopt(strangers):
                log.info("topic %r has %d partitions", topic.name, len(topic.partitions))
        except LogClosedError:
            pass
        except LogError as error:
            # Nothing is lost: the records are in the log, and their next commit brings them here again.
            log.error("native partitions could not be registered: %s", error)


def _minutes(seconds: float | None) -> int:
    return 2**31 - 1 if seconds is None else max(1, math.ceil(seconds / 60))


def _why_not_created(name: str, spec: TopicSpec, error: Error | None) -> str:
    if error is InvalidTopicError:
        return f"{name!r} cannot be the name of a topic: letters, digits, '.', '_' and '-', 249 at most"
    if error is InvalidPartitionsError:
        return f"a topic has 1 to {PARTITIONS_PER_TOPIC} partitions, not {spec.partitions}"
    if error is PolicyViolationError:
        return f"all topics together have {PARTITIONS_KEPT} partitions at most"
    return f"topic {name!r} exists"


def _described(topic: Topic) -> TopicMetadata:
    partitions = [
        PartitionMetadata(partition.number, partition.address.decode("latin-1"), partition.writable)
        for partition in topic.partitions
    ]
    return TopicMetadata(topic.name, topic.topic_id, None, partitions)


def _wake(partition: Partition) -> None:
    for fetch in list(partition.fetches):
        fetch.partition_grew(partition)
