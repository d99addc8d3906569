"""A broker with a topic, and share consumers of it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from compat.kafka import KafkaProducer
from compat.kafka.share import ShareConsumer
from dafka import Broker
from dafka.broker import connect
from dafka.broker.interface.admin import ConfigChange, Resource, ResourceType
from dafka.broker.interface.broker import TopicSpec

WAIT = 60_000


class Scene:
    """A broker with a topic, and share consumers of it."""

    def __init__(self, broker: Broker, remote: bool) -> None:
        self.servers = broker.bootstrap_servers
        self.connection = connect(self.servers, 60.0)
        self.remote = remote
        self.made: list[ShareConsumer] = []
        self.connection.call("create_topics", {"jobs": TopicSpec(1)})
        self.configure("g", share_auto_offset_reset="earliest")

    def configure(self, group: str, **settings: str) -> None:
        changes = [ConfigChange(name.replace("_", "."), 0, value) for name, value in settings.items()]
        self.connection.call("alter_configs", {Resource(ResourceType.GROUP, group): changes})

    def send(self, *values: bytes, topic: str = "jobs") -> None:
        with KafkaProducer(bootstrap_servers=self.servers) as producer:
            for value in values:
                producer.send(topic, value)

    def consumer(self, **configs: Any) -> ShareConsumer:
        options = {"group_id": "g", "bootstrap_servers": self.servers, "share_acquire_mode": "record_limit"}
        self.made.append(ShareConsumer("jobs", **{**options, **configs}))
        assert self.made[-1]._client.broker.is_remote is self.remote
        return self.made[-1]

    def lag(self) -> int:
        found = self.connection.call("share_offsets", "g", [("jobs", 0)])
        return int(found.partitions["jobs", 0].lag)


def values(records: dict[Any, list[Any]]) -> list[bytes]:
    return [record.value for some in records.values() for record in some]


def counts(records: dict[Any, list[Any]]) -> list[int]:
    return [record.delivery_count for some in records.values() for record in some]


def poll(consumer: ShareConsumer, **options: Any) -> dict[Any, list[Any]]:
    found = consumer.poll(WAIT, **options)
    assert found, "nothing came"
    return found


def until(condition: Callable[[], object]) -> None:
    ends = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < ends
        time.sleep(0.01)
