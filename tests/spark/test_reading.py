"""Reading ranges: batches, gaps, what is gone, and transactions; without Spark."""

from __future__ import annotations

import logging

import pytest
from kafka.errors import TopicAuthorizationFailedError
from pyspark.sql.pandas.types import to_arrow_schema
from spark.frames import create, produce

from dafka.broker import connect
from dafka.broker.interface.records import Fetched
from dafka.protocol.batch import with_producer
from dafka.protocol.batch_writer import encode_batch
from dafka.spark import SCHEMA_WITH_HEADERS
from dafka.spark.cluster import Cluster
from dafka.spark.errors import DataLossError, ReadError
from dafka.spark.options import Access
from dafka.spark.ranges import OffsetRange
from dafka.spark.reading import ARROW_FIELDS, ROWS, RangeReader


@pytest.fixture
def brokers(broker):
    create(broker, "t", 1)
    return Cluster(Access(broker.bootstrap_servers))


def offsets(reader, start, end, topic="t"):
    return [
        offset
        for rows in reader.read(OffsetRange(topic, 0, start, end))
        for offset in rows.column(0).to_pylist()
    ]


def test_arrow_types_are_those_that_spark_expects():
    expected = to_arrow_schema(SCHEMA_WITH_HEADERS, timezone="UTC")
    assert {field.name: field.type for field in expected} == ARROW_FIELDS


def test_exactly_the_range_is_read(broker, brokers):
    produce(broker, "t", [b"%d" % number for number in range(5000)])
    reader = RangeReader(brokers, ["offset", "value"])
    for start, end in ((0, 5000), (17, 18), (999, 1001), (4321, 5000), (10, 10)):
        assert offsets(reader, start, end) == list(range(start, end))


def test_small_fetches_read_the_same(broker, brokers):
    produce(broker, "t", [b"x" * 500] * 2000)
    assert offsets(RangeReader(brokers, ["offset"], fetch_bytes=1), 100, 1900) == list(range(100, 1900))


def test_arrow_batches_are_of_a_bounded_size(broker, brokers):
    produce(broker, "t", [b"x"] * 150_000)
    sizes = [rows.num_rows for rows in RangeReader(brokers, ["offset"]).read(OffsetRange("t", 0, 0, 150_000))]
    assert sum(sizes) == 150_000
    assert len(sizes) > 1
    assert max(sizes) < 2 * ROWS


def test_records_that_were_deleted_are_reported(broker, brokers, caplog):
    produce(broker, "t", [b"x"] * 50)
    connect(broker.bootstrap_servers, 10).call("delete_records", {("t", 0): 20})
    with pytest.raises(
        DataLossError, match=r"partition 0 of topic 't', offsets from 5 to 20: these records were"
    ):
        offsets(RangeReader(brokers, ["offset"]), 5, 50)
    with caplog.at_level(logging.WARNING):
        assert offsets(RangeReader(brokers, ["offset"], fail_on_data_loss=False), 5, 50) == list(
            range(20, 50)
        )
    assert "offsets from 5 to 20" in caplog.text


def test_a_topic_that_is_gone_is_reported(brokers):
    with pytest.raises(DataLossError, match="the partition does not exist any more"):
        offsets(RangeReader(brokers, ["offset"]), 0, 5, topic="gone")
    assert offsets(RangeReader(brokers, ["offset"], fail_on_data_loss=False), 0, 5, topic="gone") == []


def test_an_end_that_the_partition_does_not_have_is_reported(broker, brokers):
    produce(broker, "t", [b"x"] * 5)
    with pytest.raises(DataLossError, match="offsets from 5 to 9"):
        offsets(RangeReader(brokers, ["offset"]), 0, 9)


def test_records_that_may_not_be_read_are_not_reported_as_lost(brokers, monkeypatch):
    refused = Fetched(TopicAuthorizationFailedError, -1, -1, [])
    monkeypatch.setattr(brokers, "fetch", lambda *asked: refused)
    for fails in (True, False):
        with pytest.raises(ReadError, match=r"partition 0 of topic 't' cannot be read at offset 3: .*author"):
            offsets(RangeReader(brokers, ["offset"], fail_on_data_loss=fails), 3, 5)


def test_whole_batches_that_are_too_old_are_passed_over(broker, brokers):
    for stamp in (1000, 5000, 2000):
        produce(broker, "t", [b"x"] * 10, timestamp_ms=stamp)
    assert offsets(RangeReader(brokers, ["offset"], min_timestamp=3000), 0, 30) == list(range(10, 20))


def test_markers_are_not_records_and_aborted_records_are_left_out_if_wanted(broker, brokers):
    connection = connect(broker.bootstrap_servers, 10)
    for number, commit in enumerate((True, False, True)):
        name = f"transaction-{number}"
        identity = connection.call("init_producer_id", name, 60)
        who = (name, identity.producer_id, identity.epoch)
        connection.call("add_partitions_to_transaction", *who, [("t", 0)])
        batch = encode_batch([(0, None, b"%d" % number, ())] * 3)
        batch = with_producer(batch, identity.producer_id, identity.epoch, 0, transactional=True)
        connection.call("produce", {("t", 0): [batch]}, -1, transactional_id=name)
        assert connection.call("end_transaction", *who, commit) is None
    every = [0, 1, 2, 4, 5, 6, 8, 9, 10]
    assert offsets(RangeReader(brokers, ["offset"]), 0, 12) == every
    committed = [0, 1, 2, 8, 9, 10]
    assert offsets(RangeReader(brokers, ["offset"], read_committed=True), 0, 12) == committed
    assert offsets(RangeReader(brokers, ["offset"], read_committed=True), 5, 10) == [8, 9]
