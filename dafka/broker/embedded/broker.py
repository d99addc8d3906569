"""The embedded broker: the broker interface on a log and a node of the mesh, in one process. Hub side.

Everything durable goes through one writer, so that produce calls, the records of native producers, committed
offsets and changes of topics share transactions. After a commit the leaders publish and answer, and fetches
that wait for a partition that has grown are woken.

:class:`EmbeddedBroker` makes the parts in the order in which they need each other. Which of them answers
which call stands in :mod:`dafka.broker.embedded.calls`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING

import gevent.event

from dafka.broker.access.accounts import Accounts
from dafka.broker.access.acls import AclTable
from dafka.broker.embedded.admin import AdminCalls
from dafka.broker.embedded.adoption import Adoption
from dafka.broker.embedded.calls import EmbeddedCalls
from dafka.broker.embedded.cleaner import LogCleaner
from dafka.broker.embedded.expiry import Expiry, Search
from dafka.broker.embedded.features import FeatureTable
from dafka.broker.embedded.identity import NODE_ID, identity
from dafka.broker.embedded.lifecycle import Lifecycle
from dafka.broker.embedded.orphaned import forget_orphaned
from dafka.broker.embedded.records import RecordCalls
from dafka.broker.embedded.topics import TopicCalls
from dafka.broker.embedded.traffic import Traffic
from dafka.broker.embedded.truncated import forget_truncated
from dafka.broker.groups.consumer.coordinator import ConsumerGroups
from dafka.broker.groups.consumer.migration import Policy
from dafka.broker.groups.coordinator import Coordinator
from dafka.broker.groups.kept_members import KeptMembers
from dafka.broker.groups.modern.topics import TableTopics
from dafka.broker.groups.offsets import GroupOffsets
from dafka.broker.groups.offsets_expiry import OffsetExpiry
from dafka.broker.groups.rebalance import Terms
from dafka.broker.groups.registry import Groups
from dafka.broker.groups.streams.coordinator import StreamsGroups
from dafka.broker.groups.streams.kept import KeptTopologies
from dafka.broker.groups.times import GroupTimes
from dafka.broker.interface.topics import Metadata, TopicMetadata
from dafka.broker.limits import (
    EXPIRATION_INTERVAL,
    GROUP_MAX_SIZE,
    INITIAL_DELAY,
    OFFSETS_CHECK_INTERVAL,
)
from dafka.broker.options import BrokerOptions
from dafka.broker.positions.positions import Positions
from dafka.broker.quotas.table import QuotaTable
from dafka.broker.records.leader import Leaders
from dafka.broker.records.leader_epochs import LeaderEpochs
from dafka.broker.records.pending import PendingAppends
from dafka.broker.records.presence import Presence
from dafka.broker.records.producer_state import ProducerStates
from dafka.broker.share.calls import ShareCalls
from dafka.broker.share.delivery import Deliveries
from dafka.broker.share.persister import Persister
from dafka.broker.share.settings import SettingsTable
from dafka.broker.share.states import States
from dafka.broker.topics.config_table import ConfigTable
from dafka.broker.topics.group_configs import REGEX_REFRESH, REGEX_REFRESH_MS
from dafka.broker.topics.table import TopicTable
from dafka.broker.transactions.coordinator import TransactionCoordinator
from dafka.broker.transactions.first_writes import FirstWrites
from dafka.broker.transactions.producer_ids import ProducerIds
from dafka.broker.transactions.table import TransactionTable
from dafka.broker.transactions.write_check import WriteCheck
from dafka.commit.writer import Writer
from dafka.hub.clock import Clock
from dafka.hub.hub import Hub
from dafka.hub.turns import Pace
from dafka.log import Log
from dafka.log.boot import boot_id
from dafka.mesh.options import EndpointOptions

if TYPE_CHECKING:
    from dafka.broker.records.node import BrokerNode


class EmbeddedBroker(EmbeddedCalls):
    """A broker on the folder ``path``, running from construction on.

    ``mesh`` says where it joins the mesh. It joins now if the options name a tower, and otherwise when
    :attr:`node` is first asked for. ``host`` and ``port`` are what clients are told. Raises the log's errors;
    see :class:`dafka.Broker`.
    """

    def __init__(
        self,
        hub: Hub,
        path: str | os.PathLike[str],
        options: BrokerOptions,
        mesh: Callable[[], EndpointOptions],
        host: str,
        port: int,
    ) -> None:
        self.hub = hub
        self.host = host
        self.port = port
        clock = options.clock
        self.time = clock.time
        self.log = Log(
            path,
            durability=options.durability,
            on_damage=options.on_damage,
            clock=clock.time,
            pause=Pace().rest,
        )
        self._lifecycle = Lifecycle(hub, f"{host}:{port} on {self.log.path}")
        self._stopped = gevent.event.Event()
        self._writer = Writer(hub, self.log)
        with ExitStack() as undo:
            undo.callback(self.log.close)
            undo.callback(self._writer.close)
            self.cluster_id, address = identity(self.log, self._writer)
            self._epochs = LeaderEpochs(self.log, self._writer, boot_id())
            self._topics = TopicTable(self.log, self._writer, options.default_partitions, clock.time)
            static = {
                **options.kafka_configs(),
                "advertised.listeners": f"PLAINTEXT://{host}:{port}",
                "listeners": f"PLAINTEXT://{host}:{port}",
                "log.dirs": self.log.path,
            }
            refresh = int(static.pop(REGEX_REFRESH, REGEX_REFRESH_MS)) / 1000
            self._features = FeatureTable(hub, self.log, self._writer, NODE_ID)
            self._configs = ConfigTable(self.log, self._writer, NODE_ID, static, self._features.is_elr_on)
            self.accounts = Accounts(hub, self.log, self._writer)
            acls = options.acls
            self.acls = None if acls is None else AclTable(hub, self.log, self._writer, acls)
            self.quotas = QuotaTable(hub, self.log, self._writer)
            self._offsets = GroupOffsets(self.log, self._writer, self._topics, clock.time)
            times = GroupTimes(self.log, self._writer, clock.time)
            kept_members = KeptMembers(hub, self.log, self._writer)
            groups = Groups(hub, times, kept_members, clock.monotonic, self._offsets.has_group)
            topics = TableTopics(self._topics)
            features = self._features
            policy = Policy.of(self._configs.broker_value("group.consumer.migration.policy"))
            self._consumer_groups = ConsumerGroups(
                hub,
                groups,
                topics,
                self._configs.of_group,
                partial(features.check_on, "group.version"),
                policy,
                self._group_size("group.consumer.max.size"),
                refresh,
            )
            self._groups = Coordinator(
                hub,
                self._offsets,
                groups,
                self._lifecycle.stopped_error,
                policy,
                self._classic_terms(),
                self._group_size("group.consumer.max.size"),
            )
            self._adoption = Adoption(hub, self._topics, self._lifecycle)
            self._writer.on_commit(self._adoption.committed)
            self._topics.adopt_stored()
            self._presence = Presence(lambda: self._new_node(mesh, address))
            undo.callback(self._presence.close)
            if options.tower is not None:
                self._presence.join()
            forget_truncated(self.log, self._writer, self._topics, self._epochs, clock.time)
            self._producers = ProducerStates(self.log, self._writer, clock.time)
            self._pending = PendingAppends()
            transactions = TransactionTable(self.log, self._writer, self._topics)
            self._leaders = Leaders(
                self._writer,
                self._presence,
                self._producers,
                self._epochs,
                WriteCheck(transactions, self._producers),
                self._pending,
                clock.time,
            )
            self._transactions = TransactionCoordinator(
                hub,
                ProducerIds(self.log, self._writer, self._epochs.current),
                self._writer,
                self._topics,
                transactions,
                self._producers,
                self._offsets,
                self._groups,
                self._leaders,
                partial(features.level, "transaction.version"),
                clock.time,
            )
            undo.callback(self._transactions.close)
            self._positions = Positions(
                hub,
                self.log,
                self._writer,
                self._topics,
                self._configs,
                self._producers,
                self._lifecycle.check,
            )
            self._log_cleaner = LogCleaner(
                hub,
                self.log,
                self._writer,
                self._topics,
                self._configs,
                self._presence,
                self._producers,
                self._positions,
                options.retention_check_interval,
                clock.time,
            )
            self._record_calls = RecordCalls(
                self.log,
                self._topics,
                self._configs,
                self._producers,
                self._epochs,
                self._leaders,
                self._pending,
                FirstWrites(transactions, self._transactions.contents),
                self._lifecycle,
                clock.time,
            )
            states = States(self.log, self._writer)
            settings = SettingsTable(self._configs)
            self._deliveries = Deliveries(
                hub,
                self._topics,
                self._producers,
                self._record_calls,
                states,
                settings,
                Clock(clock.time, lambda: groups.clock()),
            )
            check_shares_on = partial(features.check_on, "share.version")
            self._share_calls = ShareCalls(
                hub,
                groups,
                self._topics,
                self._epochs,
                states,
                settings,
                self._deliveries,
                self._lifecycle.check,
                check_shares_on,
            )
            self._persister = Persister(
                groups, self._topics, self._epochs, states, self._deliveries, check_shares_on
            )
            self._groups.on_delete(self._share_calls.forget_group)
            features.switched_off["share.version"] = self._share_calls.switched_off
            self._topic_calls = TopicCalls(
                hub,
                self._whole_metadata,
                options.auto_create_topics,
                self._topics,
                self._writer,
                self._offsets,
                self._share_calls,
                self._producers,
                self._epochs,
                self._transactions,
                self._presence,
                self._positions,
                self._log_cleaner,
                self._lifecycle,
            )
            self._streams_groups = StreamsGroups(
                hub,
                groups,
                topics,
                self._configs.of_group,
                self._topic_calls.create_topics,
                partial(features.check_on, "streams.version"),
                KeptTopologies(self.log, self._writer),
                self._group_size("group.streams.max.size"),
            )
            self._groups.on_delete(self._streams_groups.forget_group)
            if self._epochs.restored:
                kept_members.forget_others()  # those of the backup: clients join again
                self._epochs.forget_restored()
            else:
                groups.restore()
            self._admin_calls = AdminCalls(
                hub,
                self.log,
                self._topics,
                self._configs,
                self._features.is_elr_on,
                self._positions,
                self._log_cleaner,
                self._lifecycle,
            )
            searches = self._searches(times, options)
            self._expiry = Expiry(hub, searches, clock.monotonic)
            undo.pop_all()  # it runs

    def _group_size(self, setting: str) -> int:
        return min(int(self._configs.broker_value(setting)), GROUP_MAX_SIZE)

    def _classic_terms(self) -> Terms:
        def seconds(name: str) -> float:
            return int(self._configs.broker_value(name)) / 1000

        delay = seconds("group.initial.rebalance.delay.ms")
        return Terms(
            self._group_size("group.max.size"),
            None if delay == INITIAL_DELAY else delay,
            seconds("group.min.session.timeout.ms"),
            seconds("group.max.session.timeout.ms"),
        )

    @property
    def node(self) -> BrokerNode:
        """Its node on the mesh, which it joins now at the latest. From any thread; raises OSError."""
        # Imported in the caller's thread: loading ZeroMQ takes some 100 ms, too long for a turn of the hub.
        import dafka.broker.records.node  # noqa: F401

        return self.hub.run(self._presence.join)

    @property
    def joined(self) -> BrokerNode | None:
        """Its node, if it has joined the mesh."""
        return self._presence.joined

    @property
    def committed(self) -> tuple[int, int]:
        """Records and octets that were committed since the start."""
        return self._presence.committed

    @property
    def traffic(self) -> Traffic:
        """Octets that clients read, and the latencies of their calls."""
        return self._record_calls.traffic

    def _new_node(self, mesh: Callable[[], EndpointOptions], address: bytes) -> BrokerNode:
        # Here, because they bring ZeroMQ along.
        from dafka.broker.records.node import BrokerNode
        from dafka.mesh.endpoint import Endpoint

        self._lifecycle.check()
        endpoint = Endpoint.shared(self.hub, mesh())
        return BrokerNode(self.hub, endpoint, self.log, self._writer, address, self._topics)

    def _whole_metadata(self, topics: Mapping[str, TopicMetadata]) -> Metadata:
        return Metadata(self.cluster_id, NODE_ID, [(NODE_ID, self.host, self.port)], topics)

    def _searches(self, times: GroupTimes, options: BrokerOptions) -> list[Search]:
        def gone(pause: Callable[[], object]) -> int:
            return forget_orphaned(self.log, self._writer, self._topics, pause)

        deleted, producers, transactions = self._topics.deleted, self._producers, self._transactions
        often = EXPIRATION_INTERVAL
        retention = options.offsets_retention_seconds
        offsets = OffsetExpiry(self._offsets, self._groups, times, retention, options.clock.time)
        return [
            Search("rows of topics that are gone", gone, often, at_start=True),
            Search("leaders of deleted topics", deleted.forget_old, often, lambda: deleted.crowded),
            Search("producers", producers.forget_old, often, lambda: producers.crowded),
            Search("transactional ids", transactions.forget_old, often, lambda: transactions.crowded),
            Search(
                "committed offsets",
                offsets.forget_old,
                min(OFFSETS_CHECK_INTERVAL, max(retention, 1.0)),
            ),
        ]

    @property
    def positions(self) -> Positions:
        return self._positions

    # -- life -----------------------------------------------------------------------------------

    reached = True

    @property
    def write_failure(self) -> Exception | None:
        """Why nothing can be written any more; None while it can."""
        return self._writer.failure

    @property
    def addresses(self) -> tuple[tuple[str, int], ...]:
        return ((self.host, self.port),)

    @property
    def running(self) -> bool:
        return self._lifecycle.running

    def clock_moved(self) -> None:
        """Do what is due, after a test has set the clock forward; waits as a green thread until it is done.

        Waits for what is deleted, and for transactions that are aborted; members of groups are out of them.
        """
        self._groups.settle()
        self._deliveries.settle()
        self._transactions.settle()
        self._log_cleaner.look()
        self._expiry.look()

    def close(self) -> None:
        """Commit what has been accepted, leave the mesh and close the log. A second call waits for the first
        one."""
        if not self._lifecycle.running:
            self._stopped.wait()
            return
        self._lifecycle.stop()
        try:
            self._record_calls.abandon_fetches()
            self._groups.close()
            self._share_calls.close()
            self._transactions.close()
            self._expiry.close()
            self._pending.drain()
        finally:  # also if the caller is interrupted: the folder must not stay locked
            with ExitStack() as rest:  # each of them, whatever becomes of those before; the last one first
                rest.callback(self._stopped.set)
                rest.callback(self.log.close)
                rest.callback(self._writer.close)
                rest.callback(self._positions.close)
                rest.callback(self._log_cleaner.close)
                rest.callback(self._presence.close)
