"""How readers see that records in front of them are gone."""

from __future__ import annotations

import kafka.errors as errors
import pytest
from broker.embedded.cleaning import (
    LARGE,
    configure,
    create,
    start_of,
    take,
)
from timing import until

from compat.kafka import KafkaConsumer, TopicPartition
from dafka import Consumer


def test_a_facade_consumer_below_the_beginning_follows_its_reset_policy(broker, client):
    create(client)
    for number in range(10):
        client.produce("t", b"%d" % number)
    client.call("delete_records", {("t", 0): 7})
    servers = broker.bootstrap_servers
    partition = TopicPartition("t", 0)
    with KafkaConsumer(bootstrap_servers=servers, auto_offset_reset="earliest") as consumer:
        consumer.assign([partition])
        consumer.seek(partition, 2)
        polled = until(lambda: consumer.poll(1000))
        assert [record.offset for record in polled[partition]] == [7, 8, 9]
    with KafkaConsumer(bootstrap_servers=servers, auto_offset_reset="none") as consumer:
        consumer.assign([partition])
        consumer.seek(partition, 2)
        with pytest.raises(errors.OffsetOutOfRangeError):
            until(lambda: consumer.poll(1000))


def test_a_facade_consumer_in_the_middle_goes_on_where_records_begin(broker, client):
    create(client)
    for number in range(10):
        client.produce("t", b"%d" % number)
    partition = TopicPartition("t", 0)
    consumer = KafkaConsumer(
        "t", group_id="g", bootstrap_servers=broker.bootstrap_servers, auto_offset_reset="earliest",
        max_poll_records=3,
    )  # fmt: skip
    with consumer:
        assert [record.offset for record in until(lambda: consumer.poll(1000))[partition]] == [0, 1, 2]
        consumer.commit()
        client.call("delete_records", {("t", 0): 8})
        seen: list[int] = []
        until(
            lambda: (
                seen.extend(record.offset for record in consumer.poll(1000).get(partition, []))
                or (seen and seen[-1] == 9)
            )
        )
    assert seen == list(range(3, 10)) or seen == [8, 9]  # records fetched before the deletion may come


def test_a_native_consumer_begins_at_the_first_record_there_is(broker, client):
    create(client)
    for _ in range(40):
        client.produce("t", LARGE)
    configure(client, retention_bytes=1_000_000)
    start = until(lambda: start_of(client))
    with Consumer(["t"], tower=broker.tower, offset_reset="earliest") as consumer:
        offsets = [record.offset for record in take(consumer, 40 - start)]
        assert offsets == list(range(start, 40))
        client.produce("t", b"more")
        assert take(consumer, 1)[0].value == b"more"


def test_a_native_consumer_that_was_behind_is_told_and_reports_the_gap(broker, client):
    create(client)
    for _ in range(40):
        client.produce("t", LARGE)
    address = client.partitions("t")[0][0]
    client.call("delete_records", {("t", 0): 30})
    with Consumer(["t"], tower=broker.tower, start={address: 5}) as consumer:
        assert [record.offset for record in take(consumer, 10)] == list(range(30, 40))
        assert [(gap.first, gap.next) for gap in consumer.gaps] == [(5, 30)]
