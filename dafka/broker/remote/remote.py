"""A broker in another process, or a cluster of Apache Kafka: the broker interface over TCP.

Connections, metadata and coordinators are kept here, for all clients of this process that use the same
addresses. Requests are repeated while leaders and coordinators move or load; errors that last are returned.
A broker that cannot be reached is an error of each thing asked for where the interface has one
(NetworkExceptionError, CoordinatorNotAvailableError), and KafkaConnectionError is raised where it has not;
both may be tried again.

**Produce is never repeated here when it might have been carried out.** If a connection ends between a
request and its answer the outcome is NetworkExceptionError or RequestTimedOutError, which are retriable:
the caller knows whether its batches carry an idempotent producer's sequence and may be sent again without
being stored twice. Batches that were refused because another broker leads by now are sent to that one.
"""

from __future__ import annotations

from collections.abc import Sequence
from ssl import SSLContext
from typing import Any

from dafka.broker.interface.broker import BrokerInterface
from dafka.broker.interface.part import Part
from dafka.broker.remote.access import RemoteAccess
from dafka.broker.remote.admin import RemoteAdmin
from dafka.broker.remote.cluster import Cluster
from dafka.broker.remote.consumer_groups import RemoteConsumerGroups
from dafka.broker.remote.features import RemoteFeatures
from dafka.broker.remote.groups import RemoteGroups
from dafka.broker.remote.limits import CONNECT_TIMEOUT, REQUEST_TIMEOUT
from dafka.broker.remote.quotas import RemoteQuotas
from dafka.broker.remote.records import RemoteRecords
from dafka.broker.remote.share import RemoteShare
from dafka.broker.remote.streams_groups import RemoteStreamsGroups
from dafka.broker.remote.topics import RemoteTopics
from dafka.broker.remote.transactions import RemoteTransactions
from dafka.hub.hub import Hub
from dafka.security.sasl.options import ClientSasl


@Part
def _topics(broker: Remote) -> RemoteTopics:
    return broker._topics


@Part
def _records(broker: Remote) -> RemoteRecords:
    return broker._records


@Part
def _groups(broker: Remote) -> RemoteGroups:
    return broker._groups


@Part
def _consumer_groups(broker: Remote) -> RemoteConsumerGroups:
    return broker._consumer_groups


@Part
def _streams_groups(broker: Remote) -> RemoteStreamsGroups:
    return broker._streams_groups


@Part
def _share(broker: Remote) -> RemoteShare:
    return broker._share


@Part
def _transactions(broker: Remote) -> RemoteTransactions:
    return broker._transactions


@Part
def _admin(broker: Remote) -> RemoteAdmin:
    return broker._admin


@Part
def _access(broker: Remote) -> RemoteAccess:
    return broker._access


@Part
def _quotas(broker: Remote) -> RemoteQuotas:
    return broker._quotas


@Part
def _features(broker: Remote) -> RemoteFeatures:
    return broker._features


class Remote(BrokerInterface):
    """The brokers behind ``addresses``, pairs of host and port that are tried until one answers.

    Nothing is opened before the first call, and calls after :meth:`close` open connections again.
    ``request_timeout``: seconds that an answer may take; ``connect_timeout``: a new connection.
    ``tls``: for brokers that are reached by TLS. ``sasl``: for those with accounts.
    """

    is_remote = True
    running = True

    def __init__(
        self,
        hub: Hub,
        addresses: Sequence[tuple[str, int]],
        request_timeout: float = REQUEST_TIMEOUT,
        connect_timeout: float = CONNECT_TIMEOUT,
        tls: SSLContext | None = None,
        sasl: ClientSasl | None = None,
    ) -> None:
        self.hub = hub
        self._addresses = tuple(addresses)
        self.cluster = Cluster(
            self._addresses, request_timeout, min(connect_timeout, request_timeout), tls, sasl
        )
        self._topics = RemoteTopics(self.cluster)
        self._records = RemoteRecords(self.cluster)
        self._groups = RemoteGroups(self.cluster)
        self._consumer_groups = RemoteConsumerGroups(self.cluster)
        self._streams_groups = RemoteStreamsGroups(self.cluster)
        self._share = RemoteShare(self.cluster)
        self._transactions = RemoteTransactions(self.cluster)
        self._admin = RemoteAdmin(self.cluster)
        self._access = RemoteAccess(self.cluster)
        self._quotas = RemoteQuotas(self.cluster)
        self._features = RemoteFeatures(self.cluster)

    def __repr__(self) -> str:
        return "<Remote " + ",".join(f"{host}:{port}" for host, port in self.addresses) + ">"

    @property
    def addresses(self) -> tuple[tuple[str, int], ...]:
        return self._addresses

    @property
    def reached(self) -> bool:
        return self.cluster.reached

    def send(self, request: Any, node: int | None = None) -> Any:
        lowest = getattr(request, "_min_version", None) or 0
        highest = getattr(request, "_max_version", None)
        if request.API_VERSION is not None:
            lowest = highest = request.API_VERSION
        if highest is None:
            highest = request.max_version
        if node is None:
            return self.cluster.ask_any(request, lowest=lowest, highest=highest)
        return self.cluster.ask(self.cluster.node(node), request, lowest=lowest, highest=highest)

    @property
    def controller_id(self) -> int:
        """The node id of the broker that administrative requests go to."""
        return self.cluster.controller().node_id

    def coordinator_id(self, kind: int, key: str) -> int:
        """The node id of the coordinator of a group (kind 0) or a transactional id (1).

        Raises KafkaError.
        """
        return self.cluster.coordinator(kind, key).node_id

    # -- life -----------------------------------------------------------------------------------

    def close(self) -> None:
        self._records.close()
        self.cluster.close()

    # -- calls ----------------------------------------------------------------------------------

    metadata = _topics.answers(RemoteTopics.metadata)
    create_topics = _topics.answers(RemoteTopics.create_topics)
    create_partitions = _topics.answers(RemoteTopics.create_partitions)
    delete_topics = _topics.answers(RemoteTopics.delete_topics)

    produce = _records.answers(RemoteRecords.produce)
    fetch = _records.answers(RemoteRecords.fetch)
    list_offsets = _records.answers(RemoteRecords.list_offsets)
    epoch_ends = _records.answers(RemoteRecords.epoch_ends)

    join_group = _groups.answers(RemoteGroups.join_group)
    sync_group = _groups.answers(RemoteGroups.sync_group)
    heartbeat = _groups.answers(RemoteGroups.heartbeat)
    leave_group = _groups.answers(RemoteGroups.leave_group)
    describe_groups = _groups.answers(RemoteGroups.describe_groups)
    list_groups = _groups.answers(RemoteGroups.list_groups)
    delete_groups = _groups.answers(RemoteGroups.delete_groups)
    commit_offsets = _groups.answers(RemoteGroups.commit_offsets)
    fetch_offsets = _groups.answers(RemoteGroups.fetch_offsets)
    delete_offsets = _groups.answers(RemoteGroups.delete_offsets)

    consumer_group_heartbeat = _consumer_groups.answers(RemoteConsumerGroups.consumer_group_heartbeat)
    describe_consumer_groups = _consumer_groups.answers(RemoteConsumerGroups.describe_consumer_groups)
    streams_group_heartbeat = _streams_groups.answers(RemoteStreamsGroups.streams_group_heartbeat)
    describe_streams_groups = _streams_groups.answers(RemoteStreamsGroups.describe_streams_groups)
    share_heartbeat = _share.answers(RemoteShare.share_heartbeat)
    share_fetch = _share.answers(RemoteShare.share_fetch)
    share_acknowledge = _share.answers(RemoteShare.share_acknowledge)
    describe_share_groups = _share.answers(RemoteShare.describe_share_groups)
    share_offsets = _share.answers(RemoteShare.share_offsets)
    share_standings = _share.answers(RemoteShare.share_standings)
    alter_share_offsets = _share.answers(RemoteShare.alter_share_offsets)
    delete_share_offsets = _share.answers(RemoteShare.delete_share_offsets)
    forget_connection = _share.answers(RemoteShare.forget_connection)

    init_producer_id = _transactions.answers(RemoteTransactions.init_producer_id)
    add_partitions_to_transaction = _transactions.answers(RemoteTransactions.add_partitions_to_transaction)
    add_offsets_to_transaction = _transactions.answers(RemoteTransactions.add_offsets_to_transaction)
    commit_transaction_offsets = _transactions.answers(RemoteTransactions.commit_transaction_offsets)
    end_transaction = _transactions.answers(RemoteTransactions.end_transaction)
    end_transaction_with_epoch = _transactions.answers(RemoteTransactions.end_transaction_with_epoch)
    write_markers = _transactions.answers(RemoteTransactions.write_markers)
    describe_producers = _transactions.answers(RemoteTransactions.describe_producers)
    describe_transactions = _transactions.answers(RemoteTransactions.describe_transactions)
    list_transactions = _transactions.answers(RemoteTransactions.list_transactions)

    describe_configs = _admin.answers(RemoteAdmin.describe_configs)
    alter_configs = _admin.answers(RemoteAdmin.alter_configs)
    delete_records = _admin.answers(RemoteAdmin.delete_records)
    log_directories = _admin.answers(RemoteAdmin.log_directories)

    describe_accounts = _access.answers(RemoteAccess.describe_accounts)
    alter_accounts = _access.answers(RemoteAccess.alter_accounts)
    describe_acls = _access.answers(RemoteAccess.describe_acls)
    create_acls = _access.answers(RemoteAccess.create_acls)
    delete_acls = _access.answers(RemoteAccess.delete_acls)

    describe_quotas = _quotas.answers(RemoteQuotas.describe_quotas)
    alter_quotas = _quotas.answers(RemoteQuotas.alter_quotas)

    features = _features.answers(RemoteFeatures.features)
    update_features = _features.answers(RemoteFeatures.update_features)
