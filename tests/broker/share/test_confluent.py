"""A queue for confluent-kafka's ShareConsumer, which speaks to the listener as librdkafka does."""

from __future__ import annotations

from collections import Counter

import confluent_kafka
import pytest
from timing import until

from dafka.broker import connect
from dafka.broker.interface.admin import ConfigChange, ConfigOperation, Resource, ResourceType
from dafka.testing import TestBroker

JOBS = [b"%d" % number for number in range(100)]

pytestmark = pytest.mark.skipif(
    not hasattr(confluent_kafka, "ShareConsumer"), reason="this confluent-kafka has no ShareConsumer"
)


def test_two_consumers_of_a_group_get_each_record_once():
    with TestBroker(listen="127.0.0.1:0") as broker:
        broker.create_topic("jobs", 2)
        broker.preload("jobs", [(None, job) for job in JOBS])
        group = Resource(ResourceType.GROUP, "workers")
        earliest = ConfigChange("share.auto.offset.reset", ConfigOperation.SET, "earliest")
        connect(broker.bootstrap_servers).call("alter_configs", {group: [earliest]})
        configs = {"bootstrap.servers": broker.bootstrap_servers, "group.id": "workers"}
        consumers = [confluent_kafka.ShareConsumer(configs) for _ in range(2)]
        got: Counter[bytes] = Counter()
        try:
            for consumer in consumers:
                consumer.subscribe(["jobs"])

            def all_came() -> bool:
                for consumer in consumers:
                    for message in consumer.poll(0.1) or []:
                        assert message.error() is None
                        got[message.value()] += 1
                    consumer.commit_sync()
                return sum(got.values()) >= len(JOBS)

            until(all_came)
        finally:
            for consumer in consumers:
                consumer.close()
        assert got == Counter(JOBS)
        ends = {tuple(partition): offset for partition, offset in broker.end_offsets("jobs").items()}
        until(lambda: {tuple(one): at for one, at in broker.share_offsets("workers").items()} == ends)
