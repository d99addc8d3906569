"""Answers about the offsets of partitions: ListOffsets, OffsetForLeaderEpoch, DeleteRecords."""

from __future__ import annotations

from typing import Any

from kafka.errors import InvalidRequestError, UnknownError, UnsupportedVersionError
from kafka.protocol.admin.topics import DeleteRecordsResponse
from kafka.protocol.consumer.offsets import IsolationLevel, ListOffsetsResponse, OffsetForLeaderEpochResponse

from dafka.broker.codec.errors import error_code
from dafka.broker.interface.broker import (
    EARLIEST,
    MAX_TIMESTAMP,
    NO_EPOCH,
    BrokerInterface,
    ListedOffset,
    TopicPartition,
)
from dafka.broker.server.answers.naming import as_asked, by_topic, version_of
from dafka.broker.server.context import Context

EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING_UPLOAD = -4, -5, -6  # for tiered storage
_REMOTE = LATEST_TIERED, EARLIEST_PENDING_UPLOAD
# The first version with each special timestamp; earlier versions get UNSUPPORTED_VERSION.
_SINCE = {MAX_TIMESTAMP: 7, EARLIEST_LOCAL: 8, LATEST_TIERED: 9, EARLIEST_PENDING_UPLOAD: 11}

_LEVELS = IsolationLevel.READ_UNCOMMITTED, IsolationLevel.READ_COMMITTED

_Listed = ListOffsetsResponse.ListOffsetsTopicResponse
_Ended = OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult
_Deleted = DeleteRecordsResponse.DeleteRecordsTopicResult


def list_offsets(broker: BrokerInterface, request: Any, context: Context) -> Any:
    wanted: dict[TopicPartition, int] = {}
    leader_epochs: dict[TopicPartition, int] = {}
    answers: dict[TopicPartition, ListedOffset] = {}
    remote: set[TopicPartition] = set()
    version = version_of(request)
    known_level = request.isolation_level in _LEVELS
    for topic in request.topics:
        for one in topic.partitions:
            key = topic.name, one.partition_index
            if not known_level:
                answers[key] = ListedOffset(UnknownError)
            elif key in wanted or key in answers:
                wanted.pop(key, None)
                answers[key] = ListedOffset(InvalidRequestError)  # named twice
            elif version < _SINCE.get(one.timestamp, 0) or one.timestamp < EARLIEST_PENDING_UPLOAD:
                answers[key] = ListedOffset(UnsupportedVersionError)
            else:
                wanted[key] = EARLIEST if one.timestamp in (EARLIEST_LOCAL, *_REMOTE) else one.timestamp
                leader_epochs[key] = one.current_leader_epoch
                if one.timestamp in _REMOTE:
                    remote.add(key)
    if wanted:
        committed = request.isolation_level == IsolationLevel.READ_COMMITTED
        listed = broker.list_offsets(wanted, read_committed=committed, leader_epochs=leader_epochs)
        nothing = ListedOffset(None)  # no records are in remote storage
        answers.update(
            (key, nothing if key in remote and one.error is None else one) for key, one in listed.items()
        )
    return ListOffsetsResponse(
        throttle_time_ms=0,
        topics=[
            _Listed(
                name=name,
                partitions=[
                    _Listed.ListOffsetsPartitionResponse(
                        partition_index=number,
                        error_code=error_code(listed.error),
                        timestamp=listed.timestamp,
                        offset=listed.offset,
                        leader_epoch=listed.leader_epoch,
                    )
                    for number, listed in partitions
                ],
            )
            for name, partitions in (by_topic(answers).items() if known_level else _refused(request, answers))
        ],
    )


def _refused(request: Any, answers: dict[TopicPartition, ListedOffset]) -> Any:
    """A request refused as a whole is answered in its own order and with its repetitions; otherwise each
    partition once."""
    asked = [(topic.name, [one.partition_index for one in topic.partitions]) for topic in request.topics]
    return as_asked(asked, answers)


def offset_for_leader_epoch(broker: BrokerInterface, request: Any, context: Context) -> Any:
    asked = {(topic.topic, one.partition): one for topic in request.topics for one in topic.partitions}
    ends = broker.epoch_ends(
        {key: one.leader_epoch for key, one in asked.items()},
        leader_epochs={key: one.current_leader_epoch for key, one in asked.items()},
    )
    results = {
        key: _Ended.EpochEndOffset(
            error_code=error_code(found.error),
            partition=key[1],
            leader_epoch=found.leader_epoch if asked[key].leader_epoch != NO_EPOCH else -1,
            end_offset=found.end_offset if asked[key].leader_epoch != NO_EPOCH else -1,
        )
        for key, found in ends.items()
    }
    return OffsetForLeaderEpochResponse(
        throttle_time_ms=0,
        topics=[
            _Ended(topic=name, partitions=[result for _, result in partitions])
            for name, partitions in as_asked(
                [(topic.topic, [one.partition for one in topic.partitions]) for topic in request.topics],
                results,
            )
        ],
    )


def delete_records(broker: BrokerInterface, request: Any, context: Context) -> Any:
    wanted = {
        (topic.name, one.partition_index): one.offset for topic in request.topics for one in topic.partitions
    }
    deleted = broker.delete_records(wanted)
    return DeleteRecordsResponse(
        throttle_time_ms=0,
        topics=[
            _Deleted(
                name=name,
                partitions=[
                    _Deleted.DeleteRecordsPartitionResult(
                        partition_index=number,
                        low_watermark=one.low_watermark,
                        error_code=error_code(one.error),
                    )
                    for number, one in partitions
                ],
            )
            for name, partitions in by_topic(deleted).items()
        ],
    )
