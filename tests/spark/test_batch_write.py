"""frame.write.format("dafka"): columns, partitions and what is refused."""

from __future__ import annotations

import pytest
from kafka.partitioner.default import murmur2
from pyspark.errors import AnalysisException
from spark.frames import create, first_line, frame, produce, records, values, write

ROWS = [(f"k{number % 17}", f"v{number}") for number in range(500)]


def test_rows_become_records(spark, broker):
    rows = spark.createDataFrame(
        [(b"k", b"v", "flights", [("a", b"1"), ("b", None)]), (None, b"", "flights", None)],
        "key binary, value binary, topic string, headers array<struct<key:string,value:binary>>",
    )
    write(rows, broker)
    found = sorted(records(broker, "flights"), key=lambda record: record.value)
    assert [(record.key, record.value, list(record.headers)) for record in found] == [
        (None, b"", []),
        (b"k", b"v", [("a", b"1"), ("b", None)]),
    ]


def test_strings_are_written_as_utf8(spark, broker):
    write(spark.createDataFrame([("é", "Zürich")], "key string, value string"), broker, topic="cities")
    assert [(record.key, record.value) for record in records(broker, "cities")] == [
        ("é".encode(), "Zürich".encode())
    ]


def test_keys_go_where_kafkas_clients_send_them(spark, broker):
    create(broker, "flights", 5)
    write(spark.createDataFrame(ROWS, "key string, value string"), broker, topic="flights")
    found = records(broker, "flights")
    assert len(found) == len(ROWS)
    assert {(record.key, record.partition) for record in found} == {
        (key.encode(), (murmur2(key.encode()) & 0x7FFFFFFF) % 5) for key, _ in ROWS
    }


def test_records_without_a_key_use_all_partitions(spark, broker):
    create(broker, "flights", 3)
    rows = spark.range(60_000).selectExpr("cast(id as string) as value").coalesce(1)
    write(rows, broker, topic="flights")
    found = records(broker, "flights")
    assert {record.partition for record in found} == {0, 1, 2}
    assert sorted(int(record.value) for record in found) == list(range(60_000))


def test_rows_of_one_partition_keep_their_order(spark, broker):
    create(broker, "flights", 3)
    rows = spark.range(30_000).selectExpr("cast(id % 50 as string) as key", "cast(id as string) as value")
    write(rows.coalesce(1), broker, topic="flights")
    by_partition = {}
    for record in records(broker, "flights"):
        by_partition.setdefault(record.partition, []).append(int(record.value))
    assert sum(map(len, by_partition.values())) == 30_000
    assert all(numbers == sorted(numbers) for numbers in by_partition.values())


def test_the_column_partition_decides(spark, broker):
    create(broker, "flights", 4)
    rows = spark.createDataFrame([("a", 3), ("b", 0), ("c", 3)], "value string, partition int")
    write(rows, broker, topic="flights")
    assert {(record.value, record.partition) for record in records(broker, "flights")} == {
        (b"a", 3),
        (b"b", 0),
        (b"c", 3),
    }


def test_the_option_topic_goes_before_the_column(spark, broker):
    write(spark.createDataFrame([("a", "there")], "value string, topic string"), broker, topic="here")
    assert values(broker, "here") == [b"a"]


def test_one_frame_may_go_to_several_topics(spark, broker):
    rows = spark.createDataFrame(
        [(f"{n}", f"topic-{n % 3}") for n in range(30)], "value string, topic string"
    )
    write(rows, broker)
    for number in range(3):
        assert sorted(int(value) for value in values(broker, f"topic-{number}")) == list(range(number, 30, 3))


def test_a_null_value_is_a_tombstone(spark, broker):
    write(spark.createDataFrame([("k", None)], "key string, value string"), broker, topic="flights")
    assert [(record.key, record.value) for record in records(broker, "flights")] == [(b"k", None)]


def test_a_frame_that_was_read_can_be_written(spark, broker):
    create(broker, "flights", 2)
    produce(broker, "flights", [b"a", b"b"], key=b"k", timestamp_ms=[1000, 2000])
    write(frame(spark, broker, subscribe="flights"), broker, topic="copy")
    assert [record.value for record in records(broker, "copy")] == [b"a", b"b"]
    assert all(record.timestamp > 2000 for record in records(broker, "copy"))
    write(frame(spark, broker, subscribe="flights"), broker, topic="replayed", includeTimestamp="true")
    assert [record.timestamp for record in records(broker, "replayed")] == [1000, 2000]


def test_records_are_compressed_if_wanted(spark, broker):
    rows = spark.range(2000).selectExpr("repeat('x', 200) as value")
    write(rows, broker, topic="flights", **{"kafka.compression.type": "gzip"})
    assert values(broker, "flights") == [b"x" * 200] * 2000


def test_large_records_have_batches_of_their_own(spark, broker):
    rows = spark.range(4).selectExpr("repeat('x', 900000) as value").coalesce(1)
    write(rows, broker, topic="flights")
    assert values(broker, "flights") == [b"x" * 900_000] * 4


# -- bad input ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("schema", "options", "reason"),
    [
        ("key string", {"topic": "t"}, "there is no column value to write; the frame has key"),
        ("value string", {}, "neither a column topic nor an option topic says where records go"),
        ("value int", {"topic": "t"}, "column value is int; it has to be string or binary"),
        ("key long, value string", {"topic": "t"}, "column key is bigint; it has to be string or binary"),
        ("value string, topic int", {}, "column topic is int; it has to be string"),
        ("value string, partition string", {"topic": "t"}, "column partition is string; it has to be int"),
        (
            "value string, headers string",
            {"topic": "t"},
            "column headers is string; it has to be array<struct<",
        ),
        (
            "value string",
            {"topic": "t", "includeTimestamp": "true"},
            "includeTimestamp needs a column timestamp",
        ),
        ("value string", {"topik": "t"}, "unknown option 'topik'; did you mean topic?"),
        ("value string", {"topic": "t", "kafka.acks": "2"}, "option kafka.acks: expected all, -1, 1 or 0"),
        ("value string", {"topic": "no/such"}, "UnknownTopicError: topic 'no/such'"),
        (
            "value string",
            {"topic": "t", "kafka.bootstrap.servers": "127.0.0.1:1", "kafka.request.timeout.ms": "300"},
            "UnreachableError: no broker answers at 127.0.0.1:1",
        ),
    ],
)
def test_frames_and_options_that_cannot_be_written_are_refused_before_anything_runs(
    spark, broker, schema, options, reason
):
    with pytest.raises(AnalysisException) as caught:
        write(spark.createDataFrame([], schema), broker, **options)
    assert reason in first_line(caught.value)


def test_topics_are_not_overwritten(spark, broker):
    rows = spark.createDataFrame([("a",)], "value string")
    with pytest.raises(AnalysisException) as caught:
        write(rows, broker, mode="overwrite", topic="t")
    assert "topics can only be appended to" in first_line(caught.value)


@pytest.mark.parametrize(
    ("row", "schema", "reason"),
    [
        (("v", None), "value string, topic string", "column topic is null in a row"),
        (
            ("v", "t", 7),
            "value string, topic string, partition int",
            "column partition is 7 in a row, and topic",
        ),
        (("v", "no/such"), "value string, topic string", "topic 'no/such'"),
        (
            ("v", "t", [(None, b"")]),
            "value string, topic string, headers array<struct<key:string,value:binary>>",
            "column headers holds a header whose key is null",
        ),
        (("x" * 3_000_000, "t"), "value string, topic string", "partition 0 of topic 't' took no records"),
    ],
)
def test_a_bad_row_fails_the_write_with_the_reason(spark, broker, row, schema, reason):
    create(broker, "t", 1)
    with pytest.raises(Exception) as caught:
        write(spark.createDataFrame([row], schema), broker)
    # PySpark's own first line says only that a Python worker has failed.
    assert reason in str(caught.value).splitlines()[1]
