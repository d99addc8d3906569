"""spark.readStream and writeStream: triggers, limits, checkpoints, and what changes while a query runs."""

from __future__ import annotations

import json

import pytest
from ports import free_port
from pyspark.sql.functions import spark_partition_id
from spark.frames import create, first_line, produce, records, stream, values, wait_until, write_stream

from compat.kafka import KafkaAdminClient, KafkaProducer


def collected(query_frame, tmp_path, **trigger):
    """A query that keeps every row in Parquet, started."""
    writer = query_frame.writeStream.format("parquet").option("path", str(tmp_path / "out"))
    writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
    return writer.trigger(**(trigger or {"availableNow": True})).start()


def rows(spark, tmp_path):
    found = spark.read.schema("topic string, partition int, offset long").parquet(str(tmp_path / "out"))
    return sorted(map(tuple, found.collect()))


def wait_for_rows(spark, tmp_path, expected):
    """Look at the rows each time that a micro-batch is complete."""
    commits, seen = tmp_path / "checkpoint" / "commits", set()

    def found():
        complete = {path.name for path in commits.glob("*") if path.name.isdigit()}
        if complete <= seen:
            return False
        seen.update(complete)
        return rows(spark, tmp_path) == expected

    wait_until(found)


def positions(topic, counts):
    return sorted((topic, number, offset) for number, count in enumerate(counts) for offset in range(count))


def test_available_now_reads_what_is_there_and_ends(spark, broker, tmp_path):
    create(broker, "flights", 2)
    produce(broker, "flights", [b"x"] * 50, partition=[number % 2 for number in range(50)])
    read = stream(spark, broker, subscribe="flights", startingOffsets="earliest")
    query = collected(read, tmp_path)
    query.awaitTermination()
    assert rows(spark, tmp_path) == positions("flights", [25, 25])
    produce(broker, "flights", [b"x"] * 10, partition=0)
    collected(read, tmp_path).awaitTermination()
    assert rows(spark, tmp_path) == positions("flights", [35, 25])


def test_max_offsets_limit_each_batch_of_available_now(spark, broker, tmp_path):
    create(broker, "flights", 2)
    produce(broker, "flights", [b"x"] * 90, partition=[0] * 60 + [1] * 30)
    read = stream(spark, broker, subscribe="flights", startingOffsets="earliest", maxOffsetsPerTrigger="30")
    query = collected(read, tmp_path)
    query.awaitTermination()
    batches = [progress.numInputRows for progress in query.recentProgress if progress.numInputRows]
    assert batches == [30, 30, 30]
    assert rows(spark, tmp_path) == positions("flights", [60, 30])


def test_a_micro_batch_is_split_into_at_least_as_many_partitions_as_asked_for(spark, broker, tmp_path):
    create(broker, "flights", 1)
    produce(broker, "flights", [b"x"] * 100)
    read = stream(spark, broker, subscribe="flights", startingOffsets="earliest", minPartitions="4")
    tasks = []

    def offsets_by_task(batch, number):
        found = batch.select(spark_partition_id(), "offset").collect()
        tasks.append([[row[1] for row in found if row[0] == task] for task in range(4)])

    writer = read.writeStream.foreachBatch(offsets_by_task).option("checkpointLocation", str(tmp_path))
    writer.trigger(availableNow=True).start().awaitTermination()
    assert tasks == [[list(range(begin, begin + 25)) for begin in (0, 25, 50, 75)]]


def test_progress_reports_how_far_the_query_is_behind(spark, broker, tmp_path):
    create(broker, "flights", 1)
    produce(broker, "flights", [b"x"] * 40)
    read = stream(spark, broker, subscribe="flights", startingOffsets="earliest", maxOffsetsPerTrigger="10")
    query = collected(read, tmp_path)
    query.awaitTermination()
    sources = [progress.sources[0] for progress in query.recentProgress if progress.numInputRows]
    assert [json.loads(source.endOffset) for source in sources] == [
        {"flights": {"0": offset}} for offset in (10, 20, 30, 40)
    ]
    assert {source.latestOffset for source in sources} == {sources[0].latestOffset}
    assert json.loads(sources[0].latestOffset) == {"flights": {"0": 40}}


def test_a_new_query_begins_at_the_end_unless_told_otherwise(spark, broker, tmp_path):
    create(broker, "flights", 1)
    produce(broker, "flights", [b"old"] * 5)
    query = collected(stream(spark, broker, subscribe="flights"), tmp_path, processingTime="0 seconds")
    try:
        wait_until(lambda: query.lastProgress is not None)
        produce(broker, "flights", [b"new"] * 3)
        query.processAllAvailable()
    finally:
        query.stop()
    assert rows(spark, tmp_path) == [("flights", 0, offset) for offset in (5, 6, 7)]


def test_min_offsets_are_waited_for(spark, broker, tmp_path):
    create(broker, "flights", 1)
    produce(broker, "flights", [b"x"] * 5)
    read = stream(spark, broker, subscribe="flights", startingOffsets="earliest", minOffsetsPerTrigger="8")
    query = collected(read, tmp_path, processingTime="0 seconds")
    try:
        wait_until(lambda: len(query.recentProgress) >= 1)
        assert rows(spark, tmp_path) == []
        with KafkaProducer(bootstrap_servers=broker.bootstrap_servers, linger_ms=60_000) as producer:
            for _ in range(5):  # in one batch: eight of ten, read alone, would leave two behind for ever
                producer.send("flights", b"x")
        wait_for_rows(spark, tmp_path, positions("flights", [10]))
    finally:
        query.stop()


def test_new_partitions_and_topics_appear_in_a_running_query(spark, broker, tmp_path):
    create(broker, "flights-a", 1)
    produce(broker, "flights-a", [b"x"] * 3)
    read = stream(spark, broker, subscribePattern="flights-.*", startingOffsets="earliest")
    query = collected(read, tmp_path, processingTime="0 seconds")
    try:
        wait_for_rows(spark, tmp_path, positions("flights-a", [3]))
        with KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin:
            admin.create_partitions({"flights-a": 2})
        produce(broker, "flights-a", [b"x"] * 2, partition=1)
        create(broker, "flights-b", 1)
        produce(broker, "flights-b", [b"x"] * 4)
        expected = positions("flights-a", [3, 2]) + positions("flights-b", [4])
        wait_for_rows(spark, tmp_path, expected)
    finally:
        query.stop()


def test_a_restart_of_the_broker_is_survived(spark, broker, tmp_path):
    # The folder of this broker has to outlive it.
    from dafka import Broker

    # ... and its port must not be another's when it starts again.
    listen = f"127.0.0.1:{free_port()}"
    with Broker(tmp_path / "broker", listen=listen, default_partitions=2) as own:
        create(own, "flights", 2)
        produce(own, "flights", [b"x"] * 10, partition=[0, 1] * 5)
        read = stream(spark, own, subscribe="flights", startingOffsets="earliest")
        query = collected(read, tmp_path, processingTime="0 seconds")
        try:
            wait_for_rows(spark, tmp_path, positions("flights", [5, 5]))
            own.stop()
            own.start()
            produce(own, "flights", [b"x"] * 10, partition=[0, 1] * 5)
            wait_for_rows(spark, tmp_path, positions("flights", [10, 10]))
            assert query.exception() is None
        finally:
            query.stop()


def test_a_stream_is_written_to_a_topic(spark, broker, tmp_path):
    create(broker, "flights", 2)
    produce(
        broker,
        "flights",
        [b"%d" % number for number in range(100)],
        key=[b"%d" % (n % 9) for n in range(100)],
    )
    read = stream(spark, broker, subscribe="flights", startingOffsets="earliest", maxOffsetsPerTrigger="40")
    doubled = read.selectExpr("key", "cast(cast(cast(value as string) as int) * 2 as string) as value")
    query = write_stream(doubled, broker, tmp_path / "checkpoint", topic="doubled")
    query.trigger(availableNow=True).start().awaitTermination()
    assert sorted(int(value) for value in values(broker, "doubled")) == [2 * number for number in range(100)]
    keys = {int(record.value): record.key for record in records(broker, "doubled")}
    assert all(keys[2 * number] == b"%d" % (number % 9) for number in range(100))


def test_the_whole_result_is_written_each_time_in_complete_mode(spark, broker, tmp_path):
    create(broker, "flights", 1)
    read = stream(spark, broker, subscribe="flights", startingOffsets="earliest")
    counts = read.groupBy("key").count().selectExpr("key", "cast(count as string) as value")
    for key in (b"UA", b"AA"):
        produce(broker, "flights", [b"x"] * 2, key=key)
        query = write_stream(counts, broker, tmp_path / "checkpoint", topic="counts").outputMode("complete")
        query.trigger(availableNow=True).start().awaitTermination()
    found = [(record.key, record.value) for record in records(broker, "counts")]
    assert sorted(found) == [(b"AA", b"2"), (b"UA", b"2"), (b"UA", b"2")]


# -- records that are gone ----------------------------------------------------------------------


def delete_records(broker, topic, number, before):
    from dafka.broker import connect

    answer = connect(broker.bootstrap_servers, 10).call("delete_records", {(topic, number): before})
    assert answer[topic, number].error is None


@pytest.fixture
def behind(spark, broker, tmp_path):
    """A query that has read 10 of 30 records when the first 20 are deleted; called, it goes on."""
    create(broker, "flights", 1)
    produce(broker, "flights", [b"x"] * 10)
    collected(
        stream(spark, broker, subscribe="flights", startingOffsets="earliest"), tmp_path
    ).awaitTermination()
    produce(broker, "flights", [b"x"] * 20)
    delete_records(broker, "flights", 0, 20)

    def go_on(**options):
        query = collected(stream(spark, broker, subscribe="flights", **options), tmp_path)
        query.awaitTermination()
        return rows(spark, tmp_path)

    return go_on


def test_records_deleted_before_they_were_read_fail_the_query(behind):
    with pytest.raises(Exception) as caught:
        behind()
    assert "data lost in partition 0 of topic 'flights', offsets from 10 to 20" in str(caught.value)


def test_records_deleted_before_they_were_read_are_passed_over_if_wanted(behind):
    assert behind(failOnDataLoss="false") == [
        ("flights", 0, offset) for offset in [*range(10), *range(20, 30)]
    ]


# -- bad input ----------------------------------------------------------------------------------


def test_a_stream_has_no_ending_offsets(spark, broker, tmp_path):
    create(broker, "flights")
    with pytest.raises(Exception) as caught:
        collected(
            stream(spark, broker, subscribe="flights", endingOffsets="latest"), tmp_path
        ).awaitTermination()
    assert "endingOffsets is not valid in a streaming query" in first_line(caught.value)


def test_a_stream_of_a_topic_that_is_not_there_fails_with_the_reason(spark, broker, tmp_path):
    with pytest.raises(Exception) as caught:
        collected(stream(spark, broker, subscribe="no-such"), tmp_path).awaitTermination()
    assert "UnknownTopicError: topic 'no-such'" in first_line(caught.value)
