"""Clients reach the end of a partition whose last values are damaged, if the broker skips those."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import closing

import confluent_kafka
import pytest
from broker.clients import Client
from broker.damaged import LARGE, harm_last
from kafka import KafkaConsumer, TopicPartition
from timing import until

from compat.kafka import KafkaConsumer as DafkaConsumer
from dafka import Broker

WHOLE = [b"a", b"b"]
PLACE = TopicPartition("t", 0)


@pytest.fixture
def broker(tmp_path) -> Iterator[Broker]:
    """A listening broker whose topic "t" has lost the last two of its four values."""
    with Broker(tmp_path) as whole:
        client = Client(whole)
        client.create("t")
        for letter in (b"a", b"b", b"c", b"d"):
            client.produce("t", letter + LARGE)
    harm_last(tmp_path, 2)
    with Broker(tmp_path, on_damage="skip", listen="127.0.0.1:0") as running:
        yield running


@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
@pytest.mark.parametrize("consumer_class", [KafkaConsumer, DafkaConsumer])
def test_kafka_python_and_our_consumer_reach_the_end(broker, consumer_class, isolation):
    options = {"auto_offset_reset": "earliest", "group_id": "g", "enable_auto_commit": False}
    servers = broker.bootstrap_servers
    seen: list[bytes] = []
    with closing(consumer_class(bootstrap_servers=servers, isolation_level=isolation, **options)) as consumer:
        consumer.assign([PLACE])

        def at_the_end() -> bool:
            for records in consumer.poll(100).values():
                seen.extend(record.value[:1] for record in records)
            return consumer.position(PLACE) == 4

        until(at_the_end)
        assert seen == WHOLE
        consumer.commit()
    assert Client(broker).call("fetch_offsets", "g", [PLACE])[PLACE].offset == 4


def test_librdkafka_reaches_the_end_and_reads_newer_records(broker):
    settings = {"bootstrap.servers": broker.bootstrap_servers, "group.id": "g", "enable.partition.eof": True}
    with closing(confluent_kafka.Consumer(settings)) as consumer:
        consumer.assign([confluent_kafka.TopicPartition("t", 0, 0)])
        seen: list[bytes] = []

        def at_the_end() -> bool:
            record = consumer.poll(0.1)
            if record is not None and record.error() is None:
                seen.append(record.value()[:1])
                return False
            return record is not None and record.error().code() == confluent_kafka.KafkaError._PARTITION_EOF

        until(at_the_end)
        assert seen == WHOLE
        assert Client(broker).produce("t", b"e").base_offset == 4
        record = until(lambda: consumer.poll(0.1))
        assert (record.error(), record.offset(), record.value()) == (None, 4, b"e")


@pytest.mark.skipif(shutil.which("kcat") is None, reason="there is no kcat here")
def test_kcat_stops_at_the_end(broker):
    command = ["kcat", "-C", "-e", "-b", broker.bootstrap_servers, "-t", "t", "-f", "%o "]
    done = subprocess.run(command, capture_output=True, timeout=200, check=True)
    assert done.stdout.split() == [b"0", b"1"]
