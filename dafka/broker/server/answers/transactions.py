"""Answers about idempotent and transactional producers."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from math import inf
from typing import Any

from kafka.errors import (
    InvalidProducerEpochError,
    InvalidRequestError,
    ProducerFencedError,
    UnknownError,
    UnknownTopicOrPartitionError,
    UnsupportedVersionError,
)
from kafka.protocol.admin.transactions import (
    DescribeProducersResponse,
    DescribeTransactionsResponse,
    ListTransactionsResponse,
)
from kafka.protocol.producer.transaction import (
    AddOffsetsToTxnResponse,
    AddPartitionsToTxnResponse,
    EndTxnResponse,
    InitProducerIdResponse,
    TxnOffsetCommitResponse,
    WriteTxnMarkersResponse,
)

from dafka.broker.codec.errors import coordinator_code, error_code, error_message
from dafka.broker.groups.patterns import InvalidRegularExpressionError, matching
from dafka.broker.interface.broker import BrokerInterface, CommittedOffset, Error, TopicPartition
from dafka.broker.interface.transactions import NO_EPOCH, NO_PRODUCER_ID, ListedTransaction, Writes
from dafka.broker.server.answers.naming import as_asked, as_named, by_topic, in_two, not_there, version_of
from dafka.broker.server.context import Context

log = logging.getLogger(__name__)

_Added = AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult
_Committed = TxnOffsetCommitResponse.TxnOffsetCommitResponseTopic
_Marked = WriteTxnMarkersResponse.WritableTxnMarkerResult
_Producers = DescribeProducersResponse.TopicResponse
_State = DescribeTransactionsResponse.TransactionState

_BATCHED = 4  # AddPartitionsToTxn of several transactions
_RAISING = 5  # EndTxn that raises the epoch
_ABORTABLE, _ADDING = 4, 5  # kinds of TxnOffsetCommit (Writes)

STATES = frozenset(
    {
        "Empty",
        "Ongoing",
        "PrepareCommit",
        "PrepareAbort",
        "CompleteCommit",
        "CompleteAbort",
        "Dead",
        "PrepareEpochFence",
    }
)


def init_producer_id(broker: BrokerInterface, request: Any, context: Context) -> Any:
    if (request.producer_id == -1) != (request.producer_epoch == -1):
        return InitProducerIdResponse(
            throttle_time_ms=0,
            error_code=InvalidRequestError.errno,
            producer_id=-1,
            producer_epoch=-1,
        )
    identity = broker.init_producer_id(
        request.transactional_id,
        request.transaction_timeout_ms / 1000,
        request.producer_id,
        request.producer_epoch,
    )
    alone = request.transactional_id is None  # of no coordinator
    return InitProducerIdResponse(
        throttle_time_ms=0,
        error_code=error_code(identity.error) if alone else _code(identity.error, request, 4),
        producer_id=identity.producer_id,
        producer_epoch=identity.epoch,
    )


def add_partitions_to_txn(broker: BrokerInterface, request: Any, context: Context) -> Any:
    """Up to version 3, those for clients, there is one transaction; behind them brokers ask about several."""
    if version_of(request) >= _BATCHED:
        results = []
        for one in request.transactions:
            errors = _add(broker, one)
            if UnsupportedVersionError in errors.values():  # that of the whole answer, as in Kafka
                return AddPartitionsToTxnResponse(
                    throttle_time_ms=0, error_code=UnsupportedVersionError.errno, results_by_transaction=[]
                )
            results.append(
                AddPartitionsToTxnResponse.AddPartitionsToTxnResult(
                    transactional_id=one.transactional_id,
                    topic_results=_added(errors, request, one.topics, one.verify_only),
                )
            )
        return AddPartitionsToTxnResponse(throttle_time_ms=0, error_code=0, results_by_transaction=results)
    wanted = [(topic.name, number) for topic in request.v3_and_below_topics for number in topic.partitions]
    errors = broker.add_partitions_to_transaction(
        request.v3_and_below_transactional_id,
        request.v3_and_below_producer_id,
        request.v3_and_below_producer_epoch,
        wanted,
    )
    return AddPartitionsToTxnResponse(
        throttle_time_ms=0, results_by_topic_v3_and_below=_added(errors, request, request.v3_and_below_topics)
    )


def _add(broker: BrokerInterface, one: Any) -> dict[TopicPartition, Error | None]:
    wanted = [(topic.name, number) for topic in one.topics for number in topic.partitions]
    return broker.add_partitions_to_transaction(
        one.transactional_id,
        one.producer_id,
        one.producer_epoch,
        wanted,
        verify_only=one.verify_only,
        raising=True,
    )


def _added(
    errors: Mapping[TopicPartition, Error | None],
    request: Any,
    topics: Sequence[Any],
    verify_only: bool = False,
) -> list[Any]:
    """As in Kafka, each partition once if they are looked at one by one, otherwise as it was asked."""
    single = verify_only or UnknownTopicOrPartitionError in errors.values()
    found = (
        by_topic(errors).items()
        if single
        else as_asked([(topic.name, topic.partitions) for topic in topics], errors)
    )
    return [
        _Added(
            name=name,
            results_by_partition=[
                _Added.AddPartitionsToTxnPartitionResult(
                    partition_index=number, partition_error_code=_code(error, request, 2)
                )
                for number, error in partitions
            ],
        )
        for name, partitions in found
    ]


def add_offsets_to_txn(broker: BrokerInterface, request: Any, context: Context) -> Any:
    error = broker.add_offsets_to_transaction(
        request.transactional_id, request.producer_id, request.producer_epoch, request.group_id
    )
    return AddOffsetsToTxnResponse(throttle_time_ms=0, error_code=_code(error, request, 2))


def end_txn(broker: BrokerInterface, request: Any, context: Context) -> Any:
    who = request.transactional_id, request.producer_id, request.producer_epoch
    if version_of(request) < _RAISING:
        error = broker.end_transaction(*who, request.committed)
        return EndTxnResponse(throttle_time_ms=0, error_code=_code(error, request, 2))
    error, producer_id, epoch = broker.end_transaction_with_epoch(*who, request.committed)
    return EndTxnResponse(
        throttle_time_ms=0,
        error_code=_code(error, request, 2),
        producer_id=producer_id,
        producer_epoch=epoch,
    )


def write_txn_markers(broker: BrokerInterface, request: Any, context: Context) -> Any:
    """There is one coordinator of all transactions, so its epoch is not looked at.

    As in Kafka there is one answer for each producer, none of a marker for no partition; and where one of
    them is nobody's, the answer to all is that something is wrong.
    """
    found: dict[int, dict[TopicPartition, Error | None]] = {}
    for marker in request.markers:
        wanted = [(topic.name, number) for topic in marker.topics for number in topic.partition_indexes]
        who = marker.producer_id, marker.producer_epoch
        errors = broker.write_markers(
            *who, marker.transaction_result, wanted, marker.transaction_version or 0
        )
        if (NO_PRODUCER_ID in who or NO_EPOCH in who) and UnknownError in errors.values():
            found = {
                one.producer_id: {
                    (topic.name, number): UnknownError
                    for topic in one.topics
                    for number in topic.partition_indexes
                }
                for one in request.markers
            }
            break
        if errors:
            found.setdefault(marker.producer_id, {}).update(errors)
    results = []
    for producer_id, errors in found.items():
        topics = [
            _Marked.WritableTxnMarkerTopicResult(
                name=name,
                partitions=[
                    _Marked.WritableTxnMarkerTopicResult.WritableTxnMarkerPartitionResult(
                        partition_index=number, error_code=error_code(error)
                    )
                    for number, error in partitions
                ],
            )
            for name, partitions in by_topic(errors).items()
        ]
        results.append(_Marked(producer_id=producer_id, topics=topics))
    return WriteTxnMarkersResponse(markers=results)


def _code(error: Error | None, request: Any, fenced_since: int) -> int:
    """The error code. Before version ``fenced_since`` clients know no PRODUCER_FENCED, and handle
    INVALID_PRODUCER_EPOCH in its place."""
    fenced = error is ProducerFencedError and version_of(request) < fenced_since
    return coordinator_code(InvalidProducerEpochError if fenced else error)


def txn_offset_commit(broker: BrokerInterface, request: Any, context: Context) -> Any:
    offsets = {
        (topic.name, one.partition_index): CommittedOffset(
            one.committed_offset, one.committed_metadata or "", one.committed_leader_epoch
        )
        for topic in request.topics
        for one in topic.partitions
    }
    errors = broker.commit_transaction_offsets(
        request.transactional_id,
        request.producer_id,
        request.producer_epoch,
        request.group_id,
        offsets,
        generation=request.generation_id,
        member_id=request.member_id,
        instance_id=request.group_instance_id,
        writes=_writes(version_of(request)),
    )
    asked = [(topic.name, [one.partition_index for one in topic.partitions]) for topic in request.topics]
    return TxnOffsetCommitResponse(
        throttle_time_ms=0,
        topics=[
            _Committed(
                name=name,
                partitions=[
                    _Committed.TxnOffsetCommitResponsePartition(
                        partition_index=number, error_code=coordinator_code(error)
                    )
                    for number, error in partitions
                ],
            )
            for name, partitions in in_two(
                as_asked(asked, errors),
                lambda error: error is UnknownTopicOrPartitionError,
                not_there(broker, {name for name, numbers in asked if not numbers}),
            )
        ],
    )


def _writes(version: int) -> Writes:
    if version >= _ADDING:
        return Writes.ADDING
    return Writes.ABORTABLE if version >= _ABORTABLE else Writes.ANNOUNCED


def describe_producers(broker: BrokerInterface, request: Any, context: Context) -> Any:
    asked = [(topic.name, topic.partition_indexes) for topic in request.topics]
    wanted = [(name, number) for name, numbers in asked for number in numbers]
    partition_class = _Producers.PartitionResponse
    return DescribeProducersResponse(
        throttle_time_ms=0,
        topics=[
            _Producers(
                name=name,
                partitions=[
                    partition_class(
                        partition_index=number,
                        error_code=error_code(described.error),
                        error_message=error_message(described.error),
                        active_producers=[
                            partition_class.ProducerState(
                                producer_id=one.producer_id,
                                producer_epoch=one.epoch,
                                last_sequence=one.last_sequence,
                                last_timestamp=one.last_timestamp,
                                coordinator_epoch=one.coordinator_epoch,
                                current_txn_start_offset=one.transaction_start,
                            )
                            for one in sorted(described.producers)
                        ],
                    )
                    for number, described in partitions
                ],
            )
            for name, partitions in as_asked(asked, broker.describe_producers(wanted))
        ],
    )


_UNKNOWN: dict[str, Any] = {
    "transaction_state": "",
    "transaction_timeout_ms": 0,
    "transaction_start_time_ms": 0,
    "producer_id": 0,
    "producer_epoch": 0,
    "topics": [],
}
"""As Kafka describes a transaction that there is not: these are no values of it."""


def describe_transactions(broker: BrokerInterface, request: Any, context: Context) -> Any:
    described = broker.describe_transactions(request.transactional_ids)
    return DescribeTransactionsResponse(
        throttle_time_ms=0,
        transaction_states=[
            _State(error_code=error_code(one.error), transactional_id=name, **_UNKNOWN)
            if one.error is not None
            else _State(
                error_code=0,
                transactional_id=name,
                transaction_state=one.state,
                transaction_timeout_ms=round(one.timeout * 1000),
                transaction_start_time_ms=round(one.started * 1000) if one.started >= 0 else -1,
                producer_id=one.producer_id,
                producer_epoch=one.epoch,
                topics=[
                    _State.TopicData(topic=topic, partitions=[number for number, _ in partitions])
                    for topic, partitions in by_topic(dict.fromkeys(one.partitions)).items()
                ],
            )
            for name, one in ((each, described[each]) for each in as_named(request.transactional_ids))
        ],
    )


def list_transactions(broker: BrokerInterface, request: Any, context: Context) -> Any:
    states = request.state_filters or ()
    known = [state for state in states if state in STATES]
    listed: Sequence[ListedTransaction] = ()
    error: Error | None = None
    if known or not states:
        listed = broker.list_transactions(known, request.producer_id_filters or ())
    if request.transactional_id_pattern:
        try:
            names = {one.transactional_id for one in listed}
            names = set(matching(request.transactional_id_pattern, names))
            listed = [one for one in listed if one.transactional_id in names]
        except (InvalidRegularExpressionError, UnsupportedVersionError) as refused:
            log.warning("ListTransactions is refused: %s", refused)
            listed, error = (), type(refused)
    if request.duration_filter >= 0:
        listed = _running(broker, listed, request.duration_filter / 1000)
    return ListTransactionsResponse(
        throttle_time_ms=0,
        error_code=error_code(error),
        unknown_state_filters=[state for state in dict.fromkeys(states) if state not in STATES],
        transaction_states=[
            ListTransactionsResponse.TransactionState(
                transactional_id=one.transactional_id,
                producer_id=one.producer_id,
                transaction_state=one.state,
            )
            for one in listed
        ],
    )


def _running(
    broker: BrokerInterface, listed: Sequence[ListedTransaction], seconds: float
) -> list[ListedTransaction]:
    """The transactions that began longer ago, also those that have ended since and those that never began."""
    described = broker.describe_transactions([one.transactional_id for one in listed])
    latest = broker.time() - seconds
    started = {name: one.started for name, one in described.items()}
    return [one for one in listed if started.get(one.transactional_id, inf) < latest]
