"""Rights of the APIs about idempotent and transactional producers."""

from __future__ import annotations

from typing import Any

from kafka.errors import OperationNotAttemptedError
from kafka.protocol.admin.transactions import DescribeProducersResponse, DescribeTransactionsResponse
from kafka.protocol.producer.transaction import (
    AddPartitionsToTxnResponse,
    TxnOffsetCommitResponse,
    WriteTxnMarkersResponse,
)

from dafka.broker.codec.errors import error_code, error_message
from dafka.broker.interface.broker import Error
from dafka.broker.server.rights.asked import Asked, Items, all_or_each, each
from dafka.security.acls.terms import Operation, ResourceType

_Added = AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult
_Committed = TxnOffsetCommitResponse.TxnOffsetCommitResponseTopic
_Marked = WriteTxnMarkersResponse.WritableTxnMarkerResult
_Producers = DescribeProducersResponse.TopicResponse
_State = DescribeTransactionsResponse.TransactionState


_OF_CLIENTS = 3  # the last version of AddPartitionsToTxn for clients


def _name(topic: Any) -> str:
    return str(topic.name)


def init_producer_id(asked: Asked) -> Any:
    """A client that may write to any topic may also do so without duplicates."""
    transaction, idempotent = asked.needs
    name = asked.request.transactional_id
    if name is not None:
        if not asked.may(transaction, name):
            return asked.refused(transaction.error)
    elif not asked.rights.may_any(Operation.WRITE, ResourceType.TOPIC) and not asked.may(idempotent):
        return asked.refused(idempotent.error)
    return asked.answer()


def end_txn(asked: Asked) -> Any:
    """Needs the transactional id."""
    (need,) = asked.needs
    if not asked.may(need, asked.request.transactional_id):
        return asked.refused(need.error)
    return asked.answer()


def add_offsets_to_txn(asked: Asked) -> Any:
    """Needs the transactional id and the group."""
    transaction, group = asked.needs
    if not asked.may(transaction, asked.request.transactional_id):
        return asked.refused(transaction.error)
    if not asked.may(group, asked.request.group_id):
        return asked.refused(group.error)
    return asked.answer()


def _not_added(topic: Any, error: Error) -> Any:
    return _Added(
        name=topic.name,
        results_by_partition=[
            _Added.AddPartitionsToTxnPartitionResult(
                partition_index=number, partition_error_code=error_code(error)
            )
            for number in topic.partitions
        ],
    )


_partitions = Items("v3_and_below_topics", "results_by_topic_v3_and_below", _name, _not_added)


def add_partitions_to_txn(asked: Asked) -> Any:
    """All of them or none: with one that is refused the others are not attempted."""
    transaction, write, cluster = asked.needs
    if asked.version > _OF_CLIENTS:
        return asked.answer() if asked.may(cluster) else asked.refused(cluster.error)
    if not asked.may(transaction, asked.request.v3_and_below_transactional_id):
        return _partitions.all_refused(asked, transaction.error)
    refused = _partitions.split(asked, write)
    if not refused:
        return asked.answer()
    others = [_not_added(topic, OperationNotAttemptedError) for topic in asked.request.v3_and_below_topics]
    return AddPartitionsToTxnResponse(throttle_time_ms=0, results_by_topic_v3_and_below=[*others, *refused])


def write_txn_markers(asked: Asked) -> Any:
    """Refused for each partition, because the answer has no other error."""
    (need,) = asked.needs
    if asked.may(need):
        return asked.answer()
    code = error_code(need.error)
    topic_class = _Marked.WritableTxnMarkerTopicResult
    partition_class = topic_class.WritableTxnMarkerPartitionResult
    return WriteTxnMarkersResponse(
        markers=[
            _Marked(
                producer_id=marker.producer_id,
                topics=[
                    topic_class(
                        name=topic.name,
                        partitions=[
                            partition_class(partition_index=number, error_code=code)
                            for number in topic.partition_indexes
                        ],
                    )
                    for topic in marker.topics
                ],
            )
            for marker in asked.request.markers
        ]
    )


def _not_committed(topic: Any, error: Error) -> Any:
    return _Committed(
        name=topic.name,
        partitions=[
            _Committed.TxnOffsetCommitResponsePartition(
                partition_index=one.partition_index, error_code=error_code(error)
            )
            for one in topic.partitions
        ],
    )


txn_offset_commit = all_or_each(
    Items("topics", "topics", _name, _not_committed),
    [lambda request: str(request.transactional_id), lambda request: str(request.group_id)],
)


def _no_producers(topic: Any, error: Error) -> Any:
    return _Producers(
        name=topic.name,
        partitions=[
            _Producers.PartitionResponse(
                partition_index=number,
                error_code=error_code(error),
                error_message=error_message(error),
                active_producers=[],
            )
            for number in topic.partition_indexes
        ],
    )


describe_producers = each(Items("topics", "topics", _name, _no_producers))


def describe_transactions(asked: Asked) -> Any:
    """Topics that may not be described are left out."""
    transaction, topic_need = asked.needs
    request = asked.request
    names = request.transactional_ids
    allowed = asked.allowed(transaction, names)
    request.transactional_ids = [name for name in names if name in allowed]
    response = asked.answer()
    states = response.transaction_states
    seen = asked.allowed(topic_need, {topic.topic for state in states for topic in state.topics})
    for state in states:
        state.topics = [topic for topic in state.topics if topic.topic in seen]
    states.extend(
        _State(
            error_code=error_code(transaction.error),
            transactional_id=name,
            transaction_state="",
            transaction_timeout_ms=0,
            transaction_start_time_ms=0,
            producer_id=0,
            producer_epoch=0,
            topics=[],
        )
        for name in names
        if name not in allowed
    )
    return response


def list_transactions(asked: Asked) -> Any:
    """Only the transactional ids that may be described."""
    (need,) = asked.needs
    response = asked.answer()
    states = response.transaction_states
    seen = asked.allowed(need, (state.transactional_id for state in states))
    response.transaction_states = [state for state in states if state.transactional_id in seen]
    return response
