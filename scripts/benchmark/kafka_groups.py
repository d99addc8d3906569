"""Measurements of groups with librdkafka's members, at any broker in another process."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any

from kafka_clients import SECONDS, fill, new_topic
from processes import Figures

GATHERING = 240.0  # seconds that a group of many members has to become settled


class Ownership:
    """The member that reads each partition, and how long there was no such member."""

    def __init__(self) -> None:
        self.owners: dict[int, int] = {}
        self.unread = 0.0  # seconds, of all partitions together
        self._free_since: dict[int, float] = {}

    def assigned(self, member: int, partitions: Sequence[Any]) -> None:
        """``member`` begins to read these."""
        for one in partitions:
            self.owners[one.partition] = member
            since = self._free_since.pop(one.partition, None)
            if since is not None:
                self.unread += perf_counter() - since

    def revoked(self, member: int, partitions: Sequence[Any]) -> None:
        """``member`` has stopped to read these."""
        for one in partitions:
            if self.owners.get(one.partition) == member:
                del self.owners[one.partition]
                self._free_since[one.partition] = perf_counter()


def rebalance(*, servers: str, protocol: str, members: int, partitions: int) -> Figures:
    """One more member joins: seconds until all have their share; seconds a partition is unread, mean."""
    from confluent_kafka import Consumer

    topic = new_topic(servers, partitions)
    config = {
        "bootstrap.servers": servers,
        "group.id": f"group-{uuid.uuid4().hex[:8]}",
        "group.protocol": protocol,
        "enable.auto.commit": False,
    }
    ownership = Ownership()
    consumers: list[Any] = []

    def join() -> None:
        number, consumer = len(consumers), Consumer(config)
        consumer.subscribe(
            [topic],
            on_assign=lambda _, some: ownership.assigned(number, some),
            on_revoke=lambda _, some: ownership.revoked(number, some),
        )
        consumers.append(consumer)

    def is_shared_out() -> bool:
        counts = Counter(ownership.owners.values())
        least = partitions // len(consumers)
        return len(ownership.owners) == partitions and all(
            counts[number] >= least for number in range(len(consumers))
        )

    try:
        for _ in range(members):
            join()
        _poll_until(is_shared_out, consumers)
        ownership.unread = 0.0
        began = perf_counter()
        join()
        _poll_until(is_shared_out, consumers)
        return perf_counter() - began, ownership.unread / partitions
    finally:
        for consumer in consumers:
            consumer.close()


def _poll_until(is_so: Callable[[], bool], consumers: list[Any]) -> None:
    give_up = perf_counter() + GATHERING
    while not is_so():
        for consumer in consumers:
            consumer.poll(0.0005)
        if perf_counter() > give_up:
            raise TimeoutError(f"the group is not settled within {GATHERING} s")


def share(*, servers: str, size: int, count: int) -> Figures:
    """Records a second that one member of a share group reads and accepts, from the first one to the last."""
    from confluent_kafka import ShareConsumer

    from dafka.broker import connect
    from dafka.broker.interface.admin import ConfigChange, ConfigOperation, Resource, ResourceType

    topic, name = new_topic(servers, 1), f"group-{uuid.uuid4().hex[:8]}"
    fill(servers, topic, size, count)
    earliest = ConfigChange("share.auto.offset.reset", ConfigOperation.SET, "earliest")
    connect(servers).call("alter_configs", {Resource(ResourceType.GROUP, name): [earliest]})
    consumer = ShareConsumer({"bootstrap.servers": servers, "group.id": name})
    try:
        consumer.subscribe([topic])
        first = got = _take(consumer)
        began = perf_counter()
        while got < count:
            got += _take(consumer)
        consumer.commit_sync()
        return ((count - first) / (perf_counter() - began),)
    finally:
        consumer.close()


def _take(consumer: Any) -> int:
    """How many records came; those before are accepted with it."""
    some = consumer.poll(SECONDS)
    if not some:
        raise TimeoutError(f"nothing came for {SECONDS} s")
    return len(some)
