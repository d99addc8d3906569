"""Planning: where queries begin and end, over a broker of this process and without Spark."""

from __future__ import annotations

import json
import logging

import pytest
from spark.frames import create, produce

from compat.kafka import KafkaAdminClient
from dafka.broker import connect
from dafka.spark import SCHEMA, DafkaDataSource
from dafka.spark.cluster import Cluster
from dafka.spark.errors import DataLossError, OffsetError, OptionError, UnknownTopicError, UnreachableError
from dafka.spark.options import read_options
from dafka.spark.planning import Planner, check_batch, check_streaming, from_json, to_json
from dafka.spark.ranges import OffsetRange


@pytest.fixture
def planner(broker):
    """Makes planners; the broker has a topic t with 10 and 20 records, a second apart from each other."""
    create(broker, "t", 2)
    produce(broker, "t", [b"x"] * 10, partition=0, timestamp_ms=[1000 * number for number in range(10)])
    produce(broker, "t", [b"x"] * 20, partition=1, timestamp_ms=[1000 * number for number in range(20)])

    def make(**options):
        given = {"subscribe": "t", "bootstrap.servers": broker.bootstrap_servers, **options}
        read = read_options({name: value for name, value in given.items() if value is not None})
        return Planner(Cluster(read.access), read)

    return make


def delete(broker, topic, number, before):
    connect(broker.bootstrap_servers, 10).call("delete_records", {(topic, number): before})


def drop(broker, topic):
    with KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin:
        admin.delete_topics([topic])


def test_a_batch_is_all_there_is_unless_options_say_otherwise(planner):
    assert planner().batch() == [OffsetRange("t", 0, 0, 10), OffsetRange("t", 1, 0, 20)]


def test_a_stream_begins_at_the_end_unless_options_say_otherwise(planner):
    assert planner().initial() == {("t", 0): 10, ("t", 1): 20}
    assert planner(startingOffsets="earliest").initial() == {("t", 0): 0, ("t", 1): 0}


def test_times_are_turned_into_offsets(planner):
    ranges = planner(startingTimestamp="4500", endingTimestamp="12000").batch()
    assert ranges == [OffsetRange("t", 0, 5, 10), OffsetRange("t", 1, 5, 12)]


def test_a_time_that_no_record_has_reached_is_an_error_or_the_end(planner):
    with pytest.raises(OffsetError, match="partition 0 of topic 't' has no record at or after 15000"):
        planner(startingTimestamp="15000").batch()
    late = planner(startingTimestamp="15000", startingOffsetsByTimestampStrategy="latest")
    assert late.batch() == [OffsetRange("t", 0, 10, 10), OffsetRange("t", 1, 15, 20)]


@pytest.mark.parametrize(
    ("offsets", "reason"),
    [
        ({"t": {"0": 5}}, "and not partition 1 of topic 't'"),
        ({"t": {"0": 5, "1": 5, "2": 5}}, "partition 2 of topic 't' is not among those that are read"),
        ({"t": {"0": 5, "1": 5}, "u": {"0": 0}}, "partition 0 of topic 'u' is not among those that are read"),
        ({"t": {"0": 11, "1": 5}}, "partition 0 of topic 't' ends at offset 10, 11 is out of range"),
    ],
)
def test_offsets_that_partitions_do_not_have_are_errors(planner, offsets, reason):
    with pytest.raises(OffsetError, match=reason):
        planner(startingOffsets=json.dumps(offsets)).batch()


def test_an_end_in_front_of_the_start_is_an_error(planner):
    offsets = {
        "startingOffsets": json.dumps({"t": {"0": 5, "1": 0}}),
        "endingOffsets": json.dumps({"t": {"0": 4, "1": -1}}),
    }
    with pytest.raises(OffsetError, match=r"startingOffsets \(5\) is behind endingOffsets \(4\)"):
        planner(**offsets).batch()


def test_offsets_that_were_deleted_are_data_loss(planner, broker):
    delete(broker, "t", 0, 6)
    offsets = json.dumps({"t": {"0": 4, "1": 0}})
    with pytest.raises(DataLossError, match=r"data lost in partition 0 of topic 't', offsets from 4 to 6"):
        planner(startingOffsets=offsets).batch()
    ranges = planner(startingOffsets=offsets, failOnDataLoss="false").batch()
    assert ranges == [OffsetRange("t", 0, 6, 10), OffsetRange("t", 1, 0, 20)]


def test_topics_and_partitions_that_are_not_there_are_named(planner):
    with pytest.raises(UnknownTopicError, match="topic 'nope'"):
        planner(subscribe="t,nope").batch()
    with pytest.raises(UnknownTopicError, match=r"topic 't' at .* has no partition 7"):
        planner(subscribe=None, assign='{"t": [0, 7]}').batch()


def test_a_broker_that_is_not_there_is_named(planner, unused_tcp_port):
    address = f"127.0.0.1:{unused_tcp_port}"
    with pytest.raises(UnreachableError, match=f"no broker answers at {address}"):
        planner(**{"bootstrap.servers": address, "kafka.request.timeout.ms": "300"}).batch()


@pytest.fixture
def unused_tcp_port():
    import socket

    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield bound.getsockname()[1]


def test_a_partition_that_is_gone_is_data_loss(planner, broker):
    start = {("t", 0): 10, ("t", 1): 20, ("gone", 0): 3}
    with pytest.raises(DataLossError, match="partition 0 of topic 'gone', offsets from 3 on"):
        planner().latest(start)
    assert planner(failOnDataLoss="false").latest(start) == {("t", 0): 10, ("t", 1): 20}


def test_a_topic_that_was_made_anew_is_data_loss(planner, broker):
    drop(broker, "t")
    create(broker, "t", 2)
    produce(broker, "t", [b"x"] * 3, partition=0)
    start = {("t", 0): 10, ("t", 1): 20}
    with pytest.raises(DataLossError, match="the partition ends before what was read already"):
        planner().latest(start)
    assert planner(failOnDataLoss="false").latest(start) == start


def test_a_topic_that_was_deleted_ends_a_stream_or_leaves_it_waiting(planner, broker):
    drop(broker, "t")
    with pytest.raises(UnknownTopicError, match="topic 't'"):
        planner().latest({("t", 0): 10})
    assert planner(failOnDataLoss="false").latest({("t", 0): 10}) == {}


def test_new_partitions_are_read_from_their_beginning(planner):
    ranges = planner().ranges({("t", 0): 4}, {("t", 0): 10, ("t", 1): 20})
    assert ranges == [OffsetRange("t", 0, 4, 10), OffsetRange("t", 1, 0, 20)]


def test_new_partitions_that_have_lost_their_beginning_are_data_loss(planner, broker):
    delete(broker, "t", 1, 6)
    start, end = {("t", 0): 4}, {("t", 0): 10, ("t", 1): 20}
    with pytest.raises(DataLossError, match=r"data lost in partition 1 of topic 't', offsets from 0 to 6"):
        planner().ranges(start, end)
    ranges = planner(failOnDataLoss="false").ranges(start, end)
    assert ranges == [OffsetRange("t", 0, 4, 10), OffsetRange("t", 1, 6, 20)]


def test_new_partitions_that_are_gone_when_their_micro_batch_runs_are_data_loss(planner, broker):
    start, end = {("t", 0): 4}, {("t", 0): 10, ("gone", 0): 7}
    with pytest.raises(DataLossError, match="partition 0 of topic 'gone', offsets from 0 to 7"):
        planner().ranges(start, end)
    assert planner(failOnDataLoss="false").ranges(start, end) == [OffsetRange("t", 0, 4, 10)]


def test_a_first_micro_batch_that_was_planned_before_its_query_was_killed_can_be_run(planner):
    """Spark asks a query that begins at the end for its first offsets once more."""
    planned = {("t", 0): 7, ("t", 1): 20}
    assert planner().ranges(planner().initial(), planned) == []


def test_available_now_continues_without_deleted_topics(planner, broker):
    """Trigger.AvailableNow: records that were read, and are gone, are a warning."""
    create(broker, "u", 1)
    options = {
        "bootstrap.servers": broker.bootstrap_servers,
        "subscribe": "t,u",
        "failOnDataLoss": "false",
        "maxOffsetsPerTrigger": "12",
    }
    reader = DafkaDataSource(options).streamReader(SCHEMA)
    drop(broker, "u")
    reader.prepareForTriggerAvailableNow()
    limit = reader.getDefaultReadLimit()
    first = reader.latestOffset({"t": {"0": 4, "1": 20}, "u": {"0": 3}}, limit)
    produce(broker, "t", [b"x"] * 10, partition=1)
    assert first == reader.latestOffset(first, limit) == {"t": {"0": 10, "1": 20}}


def test_offsets_are_stored_as_sparks_kafka_source_does():
    offsets = {("b", 10): 3, ("a", 0): 1, ("b", 2): 2}
    assert to_json(offsets) == {"a": {"0": 1}, "b": {"2": 2, "10": 3}}
    assert from_json(json.loads(json.dumps(to_json(offsets)))) == offsets
    with pytest.raises(OffsetError, match="offsets of another source"):
        from_json({"logOffset": 3})


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"startingOffsets": "latest"}, "startingOffsets=latest"),
        ({"startingOffsets": '{"t": {"0": -1}}'}, r"latest \(-1\) cannot be the start of a batch query"),
        ({"endingOffsets": "earliest"}, "endingOffsets=earliest"),
        ({"endingOffsets": '{"t": {"0": -2}}'}, r"earliest \(-2\) cannot be the end of a batch query"),
        (
            {"startingTimestamp": "5", "endingTimestamp": "4"},
            r"startingTimestamp \(5\) is after endingTimestamp",
        ),
        (
            {
                "startingOffsetsByTimestamp": '{"t": {"0": 4, "1": 6}}',
                "endingOffsetsByTimestamp": '{"t": {"0": 5, "1": 5}}',
            },
            r"startingOffsetsByTimestamp \(6\) is after endingOffsetsByTimestamp \(5\), partition 1 of",
        ),
        (
            {"startingTimestamp": "6", "endingOffsetsByTimestamp": '{"t": {"0": 7, "1": 5}}'},
            r"startingTimestamp \(6\) is after endingOffsetsByTimestamp \(5\), partition 1 of topic 't'",
        ),
    ],
)
def test_options_that_a_batch_query_cannot_have(options, reason):
    with pytest.raises(OptionError, match=reason):
        check_batch(read_options({"bootstrap.servers": "h:1", "subscribe": "t", **options}))


@pytest.mark.parametrize("option", ["minOffsetsPerTrigger", "maxOffsetsPerTrigger"])
def test_options_that_a_batch_query_ignores(option, caplog):
    with caplog.at_level(logging.WARNING):
        check_batch(read_options({"bootstrap.servers": "h:1", "subscribe": "t", option: "4"}))
    assert "a batch query has no triggers" in caplog.text


@pytest.mark.parametrize("option", ["endingOffsets", "endingTimestamp", "endingOffsetsByTimestamp"])
def test_options_that_a_streaming_query_cannot_have(option):
    value = {"endingOffsets": "latest", "endingTimestamp": "1"}.get(option, '{"t": {"0": 1}}')
    with pytest.raises(OptionError, match=f"{option} is not valid in a streaming query"):
        check_streaming(read_options({"bootstrap.servers": "h:1", "subscribe": "t", option: value}))


def test_patterns_do_not_mean_kafkas_own_topics(planner, broker):
    create(broker, "__consumer_offsets", 1)
    ranges = planner(subscribe=None, subscribePattern=".*").batch()
    assert {one.topic for one in ranges} == {"t"}
