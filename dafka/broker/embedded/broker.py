"""The embedded broker: the broker interface on a log and a node of the mesh, in one process. Hub side.

Everything durable goes through one writer, so that produce calls, the records of native producers, committed
offsets and changes of topics share transactions. After a commit the leaders publish and answer, and fetches
that wait for a partition that has grown are woken.
"""

from __future__ import annotations

import base64
import math
import os
import uuid
from collections.abc import Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING

import gevent
import gevent.event
from kafka.errors import (
    KafkaStorageError,
)

from dafka.broker.embedded.admin import AdminCalls
from dafka.broker.embedded.cleaner import Upkeep
from dafka.broker.embedded.coordinated import CoordinatedCalls
from dafka.broker.embedded.expiry import Expiry, Search
from dafka.broker.embedded.orphaned import forget_gone
from dafka.broker.embedded.records import RecordCalls
from dafka.broker.embedded.topics import TopicCalls
from dafka.broker.embedded.truncated import forget_lost
from dafka.broker.groups.coordinator import Coordinator
from dafka.broker.groups.offsets import GroupOffsets
from dafka.broker.groups.offsets_expiry import OffsetExpiry
from dafka.broker.groups.times import GroupTimes
from dafka.broker.interface.broker import (
    BrokerInterface,
    Error,
)
from dafka.broker.interface.errors import BrokerStoppedError
from dafka.broker.limits import (
    EXPIRATION_INTERVAL,
    OFFSETS_CHECK_INTERVAL,
    OFFSETS_RETENTION,
)
from dafka.broker.records.leader import Leaders
from dafka.broker.records.leader_epochs import LeaderEpochs
from dafka.broker.records.presence import Presence
from dafka.broker.records.producer_state import ProducerStates
from dafka.broker.topics.config_table import ConfigTable
from dafka.broker.topics.table import TopicTable
from dafka.broker.transactions.coordinator import TransactionCoordinator
from dafka.commit.retention import CHECK_INTERVAL, NO_RETENTION, Retention
from dafka.commit.writer import Writer
from dafka.hub.hub import Hub
from dafka.hub.turns import Pace
from dafka.log import Durability, Log, LogClosedError, LogError, LogPartition, OnDamage
from dafka.log.boot import boot_id
from dafka.log.repeating import bounded_logger
from dafka.mesh.address import new_address
from dafka.mesh.options import EndpointOptions

if TYPE_CHECKING:
    from dafka.broker.records.node import BrokerNode

log = bounded_logger(__name__)

NODE_ID = 0
IDENTITY = "broker"  # the table of what this broker is called


class EmbeddedBroker(TopicCalls, RecordCalls, CoordinatedCalls, AdminCalls, BrokerInterface):
    """A broker on the folder ``path``, running from construction on.

    ``mesh`` says where it joins the mesh, which it does now or, if it is ``alone`` there, when :attr:`node`
    is first asked for. ``host`` and ``port`` are what clients are told. Raises the log's errors; see
    :class:`dafka.Broker`.
    """

    _node_id = NODE_ID

    def __init__(
        self,
        hub: Hub,
        path: str | os.PathLike[str],
        mesh: Callable[[], EndpointOptions],
        host: str,
        port: int,
        *,
        alone: bool = False,
        default_partitions: int = 1,
        auto_create_topics: bool = True,
        durability: Durability = "process",
        on_damage: OnDamage = "raise",
        retention: Retention = NO_RETENTION,
        retention_check_interval: float = CHECK_INTERVAL,
        offsets_retention: float | None = OFFSETS_RETENTION,
    ) -> None:
        super().__init__()
        self.hub = hub
        self.host = host
        self.port = port
        self._auto_create = auto_create_topics
        self._stopping = False
        self._stopped = gevent.event.Event()
        self._strangers: set[LogPartition] = set()
        self.log = Log(path, durability=durability, on_damage=on_damage, pause=Pace().rest)
        self._writer = Writer(hub, self.log)
        with ExitStack() as undo:
            undo.callback(self.log.close)
            undo.callback(self._writer.close)
            self.cluster_id, address = self._identity()
            self._epochs = LeaderEpochs(self.log, self._writer, boot_id())
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
            self._groups = Coordinator(hub, self._offsets, times, self._stopped_error)
            self._writer.on_commit(self._committed)
            self._topics.adopt(self.log.partitions())
            self._presence = Presence(lambda: self._new_node(mesh, address))
            undo.callback(self._presence.close)
            if not alone:
                self._presence.join()
            forget_lost(self.log, self._writer, self._topics, self._epochs)
            self._producers = ProducerStates(self.log, self._writer)
            self._transactions = TransactionCoordinator(
                hub,
                self.log,
                self._writer,
                self._topics,
                self._producers,
                self._offsets,
                self._groups,
            )
            self._leaders = Leaders(
                self._writer,
                self._presence,
                self._producers,
                self._epochs,
                self._transactions.check_write,
                self._settled,
            )
            self._transactions.start(self._leaders)
            undo.callback(self._transactions.close)
            self._upkeep = Upkeep(
                hub,
                self.log,
                self._writer,
                self._topics,
                self._configs,
                self._presence,
                self._producers,
                retention_check_interval,
            )
            self._expiry = Expiry(hub, self._searches(times, offsets_retention))
            undo.pop_all()  # it runs

    @property
    def node(self) -> BrokerNode:
        """Its node on the mesh, which it joins now at the latest. From any thread; raises OSError."""
        return self.hub.run(self._presence.join)

    def _new_node(self, mesh: Callable[[], EndpointOptions], address: bytes) -> BrokerNode:
        # Here, because they bring ZeroMQ along.
        from dafka.broker.records.node import BrokerNode
        from dafka.mesh.endpoint import Endpoint

        self._check()
        endpoint = Endpoint.shared(self.hub, mesh())
        return BrokerNode(self.hub, endpoint, self.log, self._writer, address, self._topics)

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
        retention = math.inf if offsets_retention is None else offsets_retention
        offsets = OffsetExpiry(self._offsets, self._groups, times, retention)
        return [
            Search("rows of topics that are gone", gone, often, at_start=True),
            Search("leaders of deleted topics", deleted.forget_old, often, lambda: deleted.crowded),
            Search("producers", producers.forget_old, often, lambda: producers.crowded),
            Search("transactional ids", transactions.forget_old, often, lambda: transactions.crowded),
            Search("committed offsets", offsets.forget_old, min(OFFSETS_CHECK_INTERVAL, max(retention, 1.0))),
        ]

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
            self._groups.close()
            self._transactions.close()
            self._expiry.close()
            while self._pending_bytes:
                self._less_pending.clear()
                self._less_pending.wait()
        finally:  # also if the caller is interrupted: the folder must not stay locked
            with ExitStack() as rest:  # each of them, whatever becomes of those before; the last one first
                rest.callback(self._stopped.set)
                rest.callback(self.log.close)
                rest.callback(self._writer.close)
                rest.callback(self._upkeep.close)
                rest.callback(self._presence.close)

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
                partition.wake()
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
