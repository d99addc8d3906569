"""The transactional part of a remote broker: each call goes to the transactional id's coordinator."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from kafka.errors import CoordinatorNotAvailableError, KafkaError, for_code
from kafka.protocol.admin import (
    DescribeProducersRequest,
    DescribeTransactionsRequest,
    ListTransactionsRequest,
)
from kafka.protocol.producer import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    EndTxnRequest,
    InitProducerIdRequest,
    TxnOffsetCommitRequest,
    WriteTxnMarkersRequest,
)

from dafka.broker.codec.errors import error_of
from dafka.broker.interface.groups import (
    NO_GENERATION,
    NO_MEMBER,
    CommittedOffset,
    Error,
    TopicPartition,
)
from dafka.broker.interface.outcome import Outcome
from dafka.broker.interface.transactions import (
    NO_EPOCH,
    NO_PRODUCER_ID,
    ActiveProducer,
    ListedTransaction,
    ProducerIdentity,
    ProducersOfPartition,
    TransactionDescription,
    TransactionInterface,
    Writes,
)
from dafka.broker.remote.cluster import TRANSACTION, Cluster
from dafka.broker.remote.coordinators import MOVED, ask_coordinator, unavailable
from dafka.broker.remote.group_offsets import ask_by_partition, committed_topics
from dafka.broker.remote.leaders import ask_leaders
from dafka.broker.remote.nodes import Node
from dafka.broker.remote.retrying import attempts

_RAISING = 5  # EndTxn that raises the epoch
_COMMITS = {Writes.ANNOUNCED: (0, 3), Writes.ABORTABLE: (4, 4), Writes.ADDING: (5, 5)}  # TxnOffsetCommit


class RemoteTransactions(TransactionInterface):
    """Transactions of a cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def init_producer_id(
        self,
        transactional_id: str | None,
        timeout: float,
        producer_id: int = NO_PRODUCER_ID,
        epoch: int = NO_EPOCH,
    ) -> ProducerIdentity:
        request = InitProducerIdRequest(
            transactional_id=transactional_id,
            transaction_timeout_ms=min(int(timeout * 1000), 2**31 - 1),
            producer_id=producer_id,
            producer_epoch=epoch,
        )
        lowest = 3 if producer_id != NO_PRODUCER_ID else 0
        try:
            if transactional_id is None:
                response = self._ask_any(request, lowest)
            else:
                response = self._ask(transactional_id, request, lowest=lowest)
        except KafkaError as error:
            return ProducerIdentity(unavailable(error))
        if response.error_code:
            return ProducerIdentity(error_of(response.error_code))
        return ProducerIdentity(None, response.producer_id, response.producer_epoch)

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
        if verify_only or raising:
            raise NotImplementedError("only brokers ask each other whether a partition was added")
        wanted = list(partitions)
        topics: dict[str, Any] = {}
        for name, number in wanted:
            topic = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name=name, partitions=[])
            topics.setdefault(name, topic).partitions.append(number)
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=transactional_id,
            v3_and_below_producer_id=producer_id,
            v3_and_below_producer_epoch=epoch,
            v3_and_below_topics=list(topics.values()),
        )

        def results(response: Any) -> dict[TopicPartition, int]:
            return {
                (topic.name, one.partition_index): one.partition_error_code
                for topic in response.results_by_topic_v3_and_below
                for one in topic.results_by_partition
            }

        try:
            response = self._ask(transactional_id, request, lambda response: results(response).values())
        except KafkaError as error:
            return dict.fromkeys(wanted, unavailable(error))
        found = results(response)
        return {one: error_of(found[one]) if one in found else CoordinatorNotAvailableError for one in wanted}

    def add_offsets_to_transaction(
        self, transactional_id: str, producer_id: int, epoch: int, group: str
    ) -> Error | None:
        request = AddOffsetsToTxnRequest(
            transactional_id=transactional_id, producer_id=producer_id, producer_epoch=epoch, group_id=group
        )
        return self._outcome(transactional_id, request)

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
        topic_class = TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic
        request = TxnOffsetCommitRequest(
            transactional_id=transactional_id,
            group_id=group,
            producer_id=producer_id,
            producer_epoch=epoch,
            generation_id=generation,
            member_id=member_id,
            group_instance_id=instance_id,
            topics=committed_topics(topic_class, topic_class.TxnOffsetCommitRequestPartition, offsets),
        )
        member = member_id != NO_MEMBER or instance_id is not None
        lowest, highest = _COMMITS[writes]
        return ask_by_partition(
            self._cluster, group, request, offsets, lowest=max(lowest, 3 if member else 0), highest=highest
        )

    def end_transaction(
        self, transactional_id: str, producer_id: int, epoch: int, commit: bool
    ) -> Error | None:
        request = EndTxnRequest(
            transactional_id=transactional_id,
            producer_id=producer_id,
            producer_epoch=epoch,
            committed=commit,
        )
        return self._outcome(transactional_id, request)

    def end_transaction_with_epoch(
        self, transactional_id: str, producer_id: int, epoch: int, commit: bool
    ) -> ProducerIdentity:
        request = EndTxnRequest(
            transactional_id=transactional_id,
            producer_id=producer_id,
            producer_epoch=epoch,
            committed=commit,
        )
        try:
            response = self._ask(transactional_id, request, lowest=_RAISING, highest=_RAISING)
        except KafkaError as error:
            return ProducerIdentity(unavailable(error))
        if response.error_code:
            return ProducerIdentity(error_of(response.error_code))
        return ProducerIdentity(None, response.producer_id, response.producer_epoch)

    def write_markers(
        self,
        producer_id: int,
        epoch: int,
        commit: bool,
        partitions: Iterable[TopicPartition],
        version: int = 0,
    ) -> dict[TopicPartition, Error | None]:
        marker_class = WriteTxnMarkersRequest.WritableTxnMarker

        def ask(node: Node, some: list[TopicPartition]) -> dict[TopicPartition, Outcome]:
            topics: dict[str, Any] = {}
            for name, number in some:
                topic = marker_class.WritableTxnMarkerTopic(name=name, partition_indexes=[])
                topics.setdefault(name, topic).partition_indexes.append(number)
            marker = marker_class(
                producer_id=producer_id,
                producer_epoch=epoch,
                transaction_result=commit,
                topics=list(topics.values()),
                coordinator_epoch=0,
                transaction_version=version,
            )
            response = self._cluster.ask(node, WriteTxnMarkersRequest(markers=[marker]), highest=1)
            return {
                (topic.name, one.partition_index): Outcome(error_of(one.error_code))
                for found in response.markers
                for topic in found.topics
                for one in topic.partitions
            }

        return {key: one.error for key, one in ask_leaders(self._cluster, partitions, ask, Outcome).items()}

    def describe_producers(
        self, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, ProducersOfPartition]:
        def ask(node: Node, some: list[TopicPartition]) -> dict[TopicPartition, ProducersOfPartition]:
            topics: dict[str, Any] = {}
            for name, number in some:
                topic = DescribeProducersRequest.TopicRequest(name=name, partition_indexes=[])
                topics.setdefault(name, topic).partition_indexes.append(number)
            response = self._cluster.ask(node, DescribeProducersRequest(topics=list(topics.values())))
            return {
                (topic.name, one.partition_index): ProducersOfPartition(
                    error_of(one.error_code), [_active(producer) for producer in one.active_producers or ()]
                )
                for topic in response.topics
                for one in topic.partitions
            }

        return ask_leaders(self._cluster, partitions, ask, ProducersOfPartition)

    def describe_transactions(self, transactional_ids: Iterable[str]) -> dict[str, TransactionDescription]:
        return {one: self._describe_transaction(one) for one in transactional_ids}

    def _describe_transaction(self, transactional_id: str) -> TransactionDescription:
        request = DescribeTransactionsRequest(transactional_ids=[transactional_id])
        try:
            response = self._ask(
                transactional_id,
                request,
                lambda response: [one.error_code for one in response.transaction_states],
            )
        except KafkaError as error:
            return TransactionDescription(unavailable(error))
        if not response.transaction_states:
            return TransactionDescription(CoordinatorNotAvailableError)
        found = response.transaction_states[0]
        if found.error_code:
            return TransactionDescription(error_of(found.error_code))
        started = found.transaction_start_time_ms
        return TransactionDescription(
            None,
            found.transaction_state,
            found.producer_id,
            found.producer_epoch,
            found.transaction_timeout_ms / 1000,
            started / 1000 if started >= 0 else -1.0,
            [(topic.topic, number) for topic in found.topics for number in topic.partitions],
        )

    def list_transactions(
        self, states: Iterable[str] = (), producer_ids: Iterable[int] = ()
    ) -> list[ListedTransaction]:
        """All transactional ids; each broker is asked for those it coordinates. Raises KafkaError."""
        request = ListTransactionsRequest(
            state_filters=list(states), producer_id_filters=list(producer_ids), duration_filter=-1
        )
        found = []
        for node in self._cluster.nodes:
            response = self._cluster.ask(node, request)
            if response.error_code:
                raise for_code(response.error_code)(f"listing the transactions of broker {node.node_id}")
            found += [
                ListedTransaction(one.transactional_id, one.producer_id, one.transaction_state)
                for one in response.transaction_states
            ]
        return found

    # -- inside ---------------------------------------------------------------------------------

    def _ask_any(self, request: Any, lowest: int) -> Any:
        for _ in attempts():
            response = self._cluster.ask_any(request, lowest=lowest)
            if not response.error_code or for_code(response.error_code) not in MOVED:
                break
        return response

    def _outcome(self, transactional_id: str, request: Any) -> Error | None:
        try:
            response = self._ask(transactional_id, request)
        except KafkaError as error:
            return unavailable(error)
        return error_of(response.error_code)

    def _ask(
        self,
        transactional_id: str,
        request: Any,
        errors: Callable[[Any], Iterable[int]] = lambda response: (response.error_code,),
        **options: Any,
    ) -> Any:
        return ask_coordinator(
            self._cluster, TRANSACTION, transactional_id, request, errors, wait=0.0, **options
        )


def _active(producer: Any) -> ActiveProducer:
    return ActiveProducer(
        producer.producer_id,
        producer.producer_epoch,
        producer.last_sequence,
        producer.last_timestamp,
        producer.coordinator_epoch,
        producer.current_txn_start_offset,
    )
