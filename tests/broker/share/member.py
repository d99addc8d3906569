"""A member of a share group that calls a broker's interface, in the process or over TCP."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

from dafka.broker.interface.share import (
    Acknowledged,
    AcknowledgeType,
    SharedRecords,
    ShareFetched,
    ShareFetchLimits,
    ShareHeartbeat,
    ShareHeartbeatAnswer,
    ShareRequest,
)

ACCEPT, RELEASE, REJECT = AcknowledgeType.ACCEPT, AcknowledgeType.RELEASE, AcknowledgeType.REJECT


class Member:
    """``call(method, ...)`` calls the broker."""

    def __init__(self, call: Callable[..., Any], group: str, *topics: str) -> None:
        self.call = call
        self.group = group
        self.topics = topics
        self.member_id = str(uuid.uuid4())
        self.epoch = self.session = 0
        self.places: list[tuple[uuid.UUID, int]] = []

    def heartbeat(self, epoch: int | None = None) -> ShareHeartbeatAnswer:
        sent = self.epoch if epoch is None else epoch
        topics = self.topics if sent == 0 else None
        beat = ShareHeartbeat(self.group, self.member_id, sent, topics)
        answer: ShareHeartbeatAnswer = self.call("share_heartbeat", beat)
        if answer.error is None:
            self.epoch = answer.member_epoch
            if answer.assignment is not None:
                self.places = [
                    (topic, number) for topic, numbers in answer.assignment.items() for number in numbers
                ]
        return answer

    def fetch(
        self,
        *acknowledged: tuple[int, int, int],
        records: int = 500,
        max_wait: float = 0.0,
        strict: bool = False,
        epoch: int | None = None,
        renew: bool = False,
        connection: object = None,
        max_bytes: int = 1 << 20,
    ) -> ShareFetched:
        request = self.request(acknowledged, epoch, renew)
        limits = ShareFetchLimits(max_wait, 1, max_bytes, records, records, strict)
        places = self.places if request.session_epoch == 0 else []
        answer: ShareFetched = self.call("share_fetch", request, places, [], limits, connection)
        if answer.error is None:
            self.session = max(request.session_epoch + 1, 0)
        return answer

    def acknowledge(self, *acknowledged: tuple[int, int, int], epoch: int | None = None) -> ShareFetched:
        request = self.request(acknowledged, epoch, False)
        answer: ShareFetched = self.call("share_acknowledge", request)
        if answer.error is None:
            self.session = max(request.session_epoch + 1, 0)
        return answer

    def request(
        self, acknowledged: tuple[tuple[int, int, int], ...], epoch: int | None, renew: bool
    ) -> ShareRequest:
        batches = [Acknowledged(first, last, [type_]) for first, last, type_ in acknowledged]
        sent = self.session if epoch is None else epoch
        given = {self.places[0]: batches} if batches else {}
        return ShareRequest(self.group, self.member_id, sent, given, renew)


def acquired(answer: ShareFetched) -> list[tuple[int, int, int]]:
    """(first, last, deliveries) of what was acquired, of all partitions."""
    assert answer.error is None, answer
    found = []
    for one in answer.partitions.values():
        assert one.error is None, one
        found += [tuple(part) for part in one.acquired]
    return found


def errors(answer: ShareFetched) -> list[Any]:
    """The errors of the acknowledgements."""
    assert answer.error is None, answer
    return [one.acknowledge_error for one in answer.partitions.values()]


def only(answer: ShareFetched) -> SharedRecords:
    """The answer about the only partition."""
    (one,) = answer.partitions.values()
    return one
