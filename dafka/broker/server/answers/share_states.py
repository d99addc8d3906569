"""Answers about the stored states of share groups, which brokers of Kafka ask each other for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from uuid import UUID

from dafka.broker.codec.errors import error_code, error_message
from dafka.broker.codec.messages.share_group import (
    DeleteShareGroupStateResponse,
    InitializeShareGroupStateResponse,
    ReadShareGroupStateResponse,
    ReadShareGroupStateSummaryResponse,
    WriteShareGroupStateResponse,
)
from dafka.broker.interface.broker import BrokerInterface, Error
from dafka.broker.interface.share import SharedState, SharePlace, StateWrite
from dafka.broker.server.answers.share import by_topic
from dafka.broker.server.context import Context
from dafka.hub.turns import Pace

_Begun = InitializeShareGroupStateResponse.InitializeStateResult
_Read = ReadShareGroupStateResponse.ReadStateResult
_Written = WriteShareGroupStateResponse.WriteStateResult
_Deleted = DeleteShareGroupStateResponse.DeleteStateResult
_SummedUp = ReadShareGroupStateSummaryResponse.ReadStateSummaryResult


def initialize_share_group_state(broker: BrokerInterface, request: Any, context: Context) -> Any:
    starts = {place: (one.state_epoch, one.start_offset) for place, one in _asked(request).items()}
    found = broker.begin_share_states(request.group_id, starts)
    return _answered(InitializeShareGroupStateResponse, found)


def read_share_group_state(broker: BrokerInterface, request: Any, context: Context) -> Any:
    places = {place: one.leader_epoch for place, one in _asked(request).items()}
    found = broker.read_share_states(request.group_id, places)
    return _answered(ReadShareGroupStateResponse, found)


def read_share_group_state_summary(broker: BrokerInterface, request: Any, context: Context) -> Any:
    found = broker.sum_up_share_states(request.group_id, list(_asked(request)))
    return _answered(ReadShareGroupStateSummaryResponse, found)


def write_share_group_state(broker: BrokerInterface, request: Any, context: Context) -> Any:
    writes = {
        place: StateWrite(
            one.state_epoch,
            one.leader_epoch,
            one.start_offset,
            [
                (run.first_offset, run.last_offset, run.delivery_state, run.delivery_count)
                for run in Pace().over(one.state_batches)
            ],
        )
        for place, one in _asked(request).items()
    }
    found = broker.write_share_states(request.group_id, writes)
    return _answered(WriteShareGroupStateResponse, found)


def delete_share_group_state(broker: BrokerInterface, request: Any, context: Context) -> Any:
    found = broker.delete_share_states(request.group_id, list(_asked(request)))
    return _answered(DeleteShareGroupStateResponse, found)


def refused_states(response_class: Any, request: Any, error: Error) -> Any:
    """An answer with this error for each partition."""
    return _answered(response_class, {place: SharedState(error) for place in _asked(request)})


def _asked(request: Any) -> dict[SharePlace, Any]:
    """The question for each partition; nothing for a group without a name, as in Kafka."""
    if not request.group_id:
        return {}
    pace = Pace()
    return {
        (topic.topic_id, one.partition): one
        for topic in request.topics
        for one in pace.over(topic.partitions)
    }


def _state(one: SharedState) -> dict[str, Any]:
    run_class = _Read.PartitionResult.StateBatch
    return {
        "state_epoch": one.state_epoch,
        "start_offset": one.start,
        "state_batches": [
            run_class(first_offset=first, last_offset=last, delivery_state=state, delivery_count=count)
            for first, last, state, count in Pace().over(one.runs)
        ],
    }


def _summary(one: SharedState) -> dict[str, Any]:
    return {
        "state_epoch": one.state_epoch,
        "leader_epoch": one.leader_epoch,
        "start_offset": one.start,
        "delivery_complete_count": one.finished,
    }


def _no_fields(one: SharedState) -> dict[str, Any]:
    return {}


_RESULTS: dict[Any, tuple[Any, Callable[[SharedState], dict[str, Any]]]] = {
    InitializeShareGroupStateResponse: (_Begun, _no_fields),
    ReadShareGroupStateResponse: (_Read, _state),
    WriteShareGroupStateResponse: (_Written, _no_fields),
    DeleteShareGroupStateResponse: (_Deleted, _no_fields),
    ReadShareGroupStateSummaryResponse: (_SummedUp, _summary),
}


def _answered(response_class: Any, found: Mapping[SharePlace, SharedState]) -> Any:
    result_class, fields = _RESULTS[response_class]
    topics: dict[UUID, list[tuple[int, SharedState]]] = by_topic(found)
    return response_class(
        results=[
            result_class(
                topic_id=topic,
                partitions=[
                    result_class.PartitionResult(
                        partition=number,
                        error_code=error_code(one.error),
                        error_message=error_message(one.error, one.detail),
                        **fields(one),
                    )
                    for number, one in some
                ],
            )
            for topic, some in topics.items()
        ]
    )
