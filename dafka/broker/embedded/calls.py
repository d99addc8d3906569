"""Which part of the embedded broker answers which call. Hub side.

A call of a broker that is stopped ends with BrokerStoppedError, whatever it is.
"""

from __future__ import annotations

from collections.abc import Mapping

from kafka.errors import SecurityDisabledError

from dafka.broker.access.accounts import Accounts
from dafka.broker.access.acls import AclTable
from dafka.broker.embedded.admin import AdminCalls
from dafka.broker.embedded.features import FeatureTable
from dafka.broker.embedded.lifecycle import Lifecycle
from dafka.broker.embedded.records import RecordCalls
from dafka.broker.embedded.topics import TopicCalls
from dafka.broker.groups.consumer.coordinator import ConsumerGroups
from dafka.broker.groups.coordinator import Coordinator
from dafka.broker.groups.offsets import GroupOffsets
from dafka.broker.groups.streams.coordinator import StreamsGroups
from dafka.broker.interface.broker import BrokerInterface, Fetched, FetchFrom, TopicPartition
from dafka.broker.interface.part import Part
from dafka.broker.quotas.table import QuotaTable
from dafka.broker.share.calls import ShareCalls
from dafka.broker.share.persister import Persister
from dafka.broker.transactions.coordinator import TransactionCoordinator


@Part
def _by_topics(broker: EmbeddedCalls) -> TopicCalls:
    broker._lifecycle.check()
    return broker._topic_calls


@Part
def _by_records(broker: EmbeddedCalls) -> RecordCalls:
    broker._lifecycle.check()
    return broker._record_calls


@Part
def _by_groups(broker: EmbeddedCalls) -> Coordinator:
    broker._lifecycle.check()
    return broker._groups


@Part
def _by_offsets(broker: EmbeddedCalls) -> GroupOffsets:
    broker._lifecycle.check()
    return broker._offsets


@Part
def _by_consumer_groups(broker: EmbeddedCalls) -> ConsumerGroups:
    broker._lifecycle.check()
    return broker._consumer_groups


@Part
def _by_streams_groups(broker: EmbeddedCalls) -> StreamsGroups:
    broker._lifecycle.check()
    return broker._streams_groups


@Part
def _by_share(broker: EmbeddedCalls) -> ShareCalls:
    broker._lifecycle.check()
    return broker._share_calls


@Part
def _by_persister(broker: EmbeddedCalls) -> Persister:
    broker._lifecycle.check()
    return broker._persister


@Part
def _by_transactions(broker: EmbeddedCalls) -> TransactionCoordinator:
    broker._lifecycle.check()
    return broker._transactions


@Part
def _by_admin(broker: EmbeddedCalls) -> AdminCalls:
    broker._lifecycle.check()
    return broker._admin_calls


@Part
def _by_accounts(broker: EmbeddedCalls) -> Accounts:
    broker._lifecycle.check()
    return broker.accounts


@Part
def _by_acls(broker: EmbeddedCalls) -> AclTable:
    broker._lifecycle.check()
    if broker.acls is None:
        raise SecurityDisabledError("No Authorizer is configured.")
    return broker.acls


@Part
def _by_quotas(broker: EmbeddedCalls) -> QuotaTable:
    broker._lifecycle.check()
    return broker.quotas


@Part
def _by_features(broker: EmbeddedCalls) -> FeatureTable:
    broker._lifecycle.check()
    return broker._features


class EmbeddedCalls(BrokerInterface):
    """The calls of :class:`dafka.broker.embedded.broker.EmbeddedBroker`, which makes the parts."""

    accounts: Accounts
    acls: AclTable | None
    quotas: QuotaTable
    _lifecycle: Lifecycle
    _admin_calls: AdminCalls
    _consumer_groups: ConsumerGroups
    _features: FeatureTable
    _groups: Coordinator
    _offsets: GroupOffsets
    _record_calls: RecordCalls
    _share_calls: ShareCalls
    _persister: Persister
    _streams_groups: StreamsGroups
    _topic_calls: TopicCalls
    _transactions: TransactionCoordinator

    metadata = _by_topics.answers(TopicCalls.metadata)
    topic_names = _by_topics.answers(TopicCalls.topic_names)
    create_topics = _by_topics.answers(TopicCalls.create_topics)
    create_partitions = _by_topics.answers(TopicCalls.create_partitions)
    delete_topics = _by_topics.answers(TopicCalls.delete_topics)

    produce = _by_records.answers(RecordCalls.produce)

    def fetch(
        self,
        partitions: Mapping[TopicPartition, FetchFrom],
        *,
        max_wait: float,
        min_bytes: int,
        max_bytes: int,
        read_committed: bool = False,
        stored: bool = False,
        counted: bool = True,
    ) -> dict[TopicPartition, Fetched]:
        # Written out: for small fetches passing on arguments of any kind costs 7 %.
        self._lifecycle.check()
        return self._record_calls.fetch(
            partitions,
            max_wait=max_wait,
            min_bytes=min_bytes,
            max_bytes=max_bytes,
            read_committed=read_committed,
            stored=stored,
            counted=counted,
        )

    count_fetched = _by_records.answers(RecordCalls.count_fetched)

    watch = _by_records.answers(RecordCalls.watch)
    list_offsets = _by_records.answers(RecordCalls.list_offsets)
    epoch_ends = _by_records.answers(RecordCalls.epoch_ends)

    join_group = _by_groups.answers(Coordinator.join_group)
    sync_group = _by_groups.answers(Coordinator.sync_group)
    heartbeat = _by_groups.answers(Coordinator.heartbeat)
    leave_group = _by_groups.answers(Coordinator.leave_group)
    describe_groups = _by_groups.answers(Coordinator.describe_groups)
    list_groups = _by_groups.answers(Coordinator.list_groups)
    delete_groups = _by_groups.answers(Coordinator.delete_groups)
    commit_offsets = _by_groups.answers(Coordinator.commit_offsets)
    fetch_offsets = _by_groups.answers(Coordinator.fetch_offsets)
    unstable_offsets = _by_offsets.answers(GroupOffsets.unstable_offsets)
    delete_offsets = _by_groups.answers(Coordinator.delete_offsets)

    consumer_group_heartbeat = _by_consumer_groups.answers(ConsumerGroups.consumer_group_heartbeat)
    describe_consumer_groups = _by_consumer_groups.answers(ConsumerGroups.describe_consumer_groups)
    streams_group_heartbeat = _by_streams_groups.answers(StreamsGroups.streams_group_heartbeat)
    describe_streams_groups = _by_streams_groups.answers(StreamsGroups.describe_streams_groups)
    share_heartbeat = _by_share.answers(ShareCalls.share_heartbeat)
    share_fetch = _by_share.answers(ShareCalls.share_fetch)
    share_acknowledge = _by_share.answers(ShareCalls.share_acknowledge)
    describe_share_groups = _by_share.answers(ShareCalls.describe_share_groups)
    share_offsets = _by_share.answers(ShareCalls.share_offsets)
    share_standings = _by_share.answers(ShareCalls.share_standings)
    alter_share_offsets = _by_share.answers(ShareCalls.alter_share_offsets)
    delete_share_offsets = _by_share.answers(ShareCalls.delete_share_offsets)
    begin_share_states = _by_persister.answers(Persister.begin_share_states)
    read_share_states = _by_persister.answers(Persister.read_share_states)
    sum_up_share_states = _by_persister.answers(Persister.sum_up_share_states)
    write_share_states = _by_persister.answers(Persister.write_share_states)
    delete_share_states = _by_persister.answers(Persister.delete_share_states)
    forget_connection = _by_share.answers(ShareCalls.forget_connection)

    init_producer_id = _by_transactions.answers(TransactionCoordinator.init_producer_id)
    add_partitions_to_transaction = _by_transactions.answers(
        TransactionCoordinator.add_partitions_to_transaction
    )
    add_offsets_to_transaction = _by_transactions.answers(TransactionCoordinator.add_offsets_to_transaction)
    commit_transaction_offsets = _by_transactions.answers(TransactionCoordinator.commit_transaction_offsets)
    end_transaction = _by_transactions.answers(TransactionCoordinator.end_transaction)
    end_transaction_with_epoch = _by_transactions.answers(TransactionCoordinator.end_transaction_with_epoch)
    write_markers = _by_transactions.answers(TransactionCoordinator.write_markers)
    describe_producers = _by_transactions.answers(TransactionCoordinator.describe_producers)
    describe_transactions = _by_transactions.answers(TransactionCoordinator.describe_transactions)
    list_transactions = _by_transactions.answers(TransactionCoordinator.list_transactions)

    describe_configs = _by_admin.answers(AdminCalls.describe_configs)
    alter_configs = _by_admin.answers(AdminCalls.alter_configs)
    configured = _by_admin.answers(AdminCalls.configured)
    planned_configs = _by_admin.answers(AdminCalls.planned_configs)
    delete_records = _by_admin.answers(AdminCalls.delete_records)
    log_directories = _by_admin.answers(AdminCalls.log_directories)

    describe_accounts = _by_accounts.answers(Accounts.describe_accounts)
    alter_accounts = _by_accounts.answers(Accounts.alter_accounts)
    describe_acls = _by_acls.answers(AclTable.describe_acls)
    create_acls = _by_acls.answers(AclTable.create_acls)
    delete_acls = _by_acls.answers(AclTable.delete_acls)

    describe_quotas = _by_quotas.answers(QuotaTable.describe_quotas)
    alter_quotas = _by_quotas.answers(QuotaTable.alter_quotas)

    features = _by_features.answers(FeatureTable.features)
    update_features = _by_features.answers(FeatureTable.update_features)
