"""Share sessions of a group whose name is empty, and of none, request by request, beside Apache Kafka."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest
from broker.server.client import WireClient
from broker.server.share_samples import share_acknowledge, share_fetch
from clients.servers import Server
from kafka.protocol.metadata import MetadataRequest
from timing import until

MEMBER = "AAAAAAAAAAAAAAAAAAAAAA"
FAILED, UNKNOWN_PARTITION, INVALID_REQUEST, NO_SESSION, WRONG_EPOCH = -1, 3, 42, 122, 123


@pytest.fixture
def wire(server: Server) -> Iterator[WireClient]:
    with WireClient(server) as wire:
        yield wire


@pytest.fixture
def topic_id(wire: WireClient, topic: str) -> UUID:
    asked = MetadataRequest.MetadataRequestTopic(name=topic, topic_id=UUID(int=0))
    found: UUID = (
        wire.ask(MetadataRequest(topics=[asked], allow_auto_topic_creation=False), 12).topics[0].topic_id
    )
    return found


def test_a_group_with_an_empty_name_has_sessions_in_which_nothing_can_be_read(
    wire: WireClient, topic_id: UUID
) -> None:
    def fetch(epoch: int, **more: Any) -> tuple[int, list[int]]:
        request = share_fetch(topic_id, epoch, group_id="", member_id=MEMBER, max_wait_ms=200, **more)
        answer = wire.ask(request, 2)
        return answer.error_code, [one.error_code for topic in answer.responses for one in topic.partitions]

    def acknowledge(epoch: int) -> tuple[int, list[int]]:
        request = share_acknowledge(topic_id, epoch)
        request.group_id, request.member_id = "", MEMBER
        answer = wire.ask(request, 2)
        return answer.error_code, [one.error_code for topic in answer.responses for one in topic.partitions]

    until(lambda: fetch(0) == (0, [FAILED]), "topics are known to all")
    assert [fetch(1), fetch(1), fetch(2, topics=[])] == [(0, [FAILED]), (WRONG_EPOCH, []), (0, [FAILED])]
    assert [acknowledge(3), acknowledge(0)] == [(0, [UNKNOWN_PARTITION]), (WRONG_EPOCH, [])]
    assert [fetch(-1, topics=[]), fetch(-1, topics=[])] == [(0, []), (NO_SESSION, [])]


def test_a_request_without_a_group_is_invalid(wire: WireClient, topic_id: UUID) -> None:
    acknowledged = share_acknowledge(topic_id, 1)
    acknowledged.group_id = None
    for request in (share_fetch(topic_id, group_id=None), acknowledged):
        assert wire.ask(request, 2).error_code == INVALID_REQUEST
