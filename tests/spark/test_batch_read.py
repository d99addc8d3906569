"""spark.read.format("dafka"): columns, ranges and filters, over a broker of this process."""

from __future__ import annotations

import json
from datetime import datetime, timezone

import pytest
from pyspark.errors import AnalysisException
from spark.frames import SECONDS, create, first_line, frame, produce, records

from compat.kafka import KafkaProducer

COLUMNS = ["key", "value", "topic", "partition", "offset", "timestamp", "timestampType"]


def test_columns_are_those_of_sparks_kafka_source(spark, broker):
    create(broker, "flights")
    schema = frame(spark, broker, subscribe="flights").schema
    assert [(field.name, field.dataType.simpleString()) for field in schema] == [
        ("key", "binary"),
        ("value", "binary"),
        ("topic", "string"),
        ("partition", "int"),
        ("offset", "bigint"),
        ("timestamp", "timestamp"),
        ("timestampType", "int"),
    ]
    with_headers = frame(spark, broker, subscribe="flights", includeHeaders="true").schema
    assert with_headers.fieldNames() == [*COLUMNS, "headers"]
    assert with_headers["headers"].dataType.simpleString() == "array<struct<key:string,value:binary>>"


def test_every_record_is_read_with_all_its_fields(spark, broker):
    create(broker, "flights")
    headers = [[("a", b"1"), ("b", b"\xff")], [], [("", b"")]]
    produce(
        broker,
        "flights",
        [b"one", None, b""],
        key=[b"UA", b"AA", b""],
        headers=headers,
        timestamp_ms=[1_500_000_000_123, 0, 1_600_000_000_000],
        partition=[0, 1, 2],
    )
    rows = frame(spark, broker, subscribe="flights", includeHeaders="true").orderBy("partition").collect()
    assert [
        (row.key, row.value, row.topic, row.partition, row.offset, row.timestampType) for row in rows
    ] == [
        (bytearray(b"UA"), bytearray(b"one"), "flights", 0, 0, 0),
        (bytearray(b"AA"), None, "flights", 1, 0, 0),
        (bytearray(b""), bytearray(b""), "flights", 2, 0, 0),
    ]
    stamps = [row.timestamp.astimezone(timezone.utc) for row in rows]
    assert stamps[0] == datetime(2017, 7, 14, 2, 40, 0, 123000, tzinfo=timezone.utc)
    assert stamps[1] == datetime(1970, 1, 1, tzinfo=timezone.utc)
    assert [None if row.headers is None else [tuple(header) for header in row.headers] for row in rows] == [
        [("a", bytearray(b"1")), ("b", bytearray(b"\xff"))],
        None,
        [("", bytearray(b""))],
    ]


def test_a_missing_key_is_null(spark, broker):
    produce(broker, "flights", [b"a"])
    assert [row.key for row in frame(spark, broker, subscribe="flights").collect()] == [None]


@pytest.mark.parametrize("compression", [None, "gzip", "lz4", "zstd", "snappy"])
def test_compressed_batches_are_read(spark, broker, compression):
    values = [b"%d" % number * 20 for number in range(500)]
    with KafkaProducer(bootstrap_servers=broker.bootstrap_servers, compression_type=compression) as producer:
        for value in values:
            producer.send("flights", value)
        producer.flush(timeout=SECONDS)
    read = frame(spark, broker, subscribe="flights").select("value").collect()
    assert sorted(bytes(row.value) for row in read) == sorted(values)


def test_offsets_and_order_are_the_brokers(spark, broker):
    create(broker, "flights")
    produce(
        broker,
        "flights",
        [b"%d" % number for number in range(1000)],
        key=[b"%d" % (n % 7) for n in range(1000)],
    )
    rows = frame(spark, broker, subscribe="flights").orderBy("partition", "offset").collect()
    assert [(row.partition, row.offset, bytes(row.value)) for row in rows] == [
        (record.partition, record.offset, record.value) for record in records(broker, "flights")
    ]


def test_topics_are_chosen_by_name_pattern_or_partition(spark, broker):
    for topic in ("flights-2012", "flights-2013", "weather"):
        create(broker, topic, 2)
        produce(broker, topic, [b"a", b"b"], partition=[0, 1])

    def read(**options):
        rows = frame(spark, broker, **options).select("topic", "partition").distinct().collect()
        return sorted(map(tuple, rows))

    assert read(subscribe="weather, flights-2012") == [
        ("flights-2012", 0),
        ("flights-2012", 1),
        ("weather", 0),
        ("weather", 1),
    ]
    assert read(subscribePattern=r"flights-\d+") == [
        ("flights-2012", 0),
        ("flights-2012", 1),
        ("flights-2013", 0),
        ("flights-2013", 1),
    ]
    assert read(assign=json.dumps({"weather": [1], "flights-2013": [0]})) == [
        ("flights-2013", 0),
        ("weather", 1),
    ]


def test_offsets_limit_what_is_read(spark, broker):
    create(broker, "flights", 2)
    produce(broker, "flights", [b"x"] * 20, partition=[number % 2 for number in range(20)])

    def read(**options):
        rows = frame(spark, broker, subscribe="flights", **options).orderBy("partition", "offset").collect()
        return [[row.offset for row in rows if row.partition == number] for number in (0, 1)]

    starting = json.dumps({"flights": {"0": 7, "1": -2}})
    ending = json.dumps({"flights": {"0": -1, "1": 2}})
    assert read(startingOffsets=starting, endingOffsets=ending) == [[7, 8, 9], [0, 1]]
    assert read(startingOffsets="earliest", endingOffsets="latest") == [list(range(10)), list(range(10))]


def test_timestamps_limit_what_is_read(spark, broker):
    create(broker, "flights", 2)
    stamps = [1_000_000 + number * 1000 for number in range(20)]
    produce(broker, "flights", [b"x"] * 20, partition=[n % 2 for n in range(20)], timestamp_ms=stamps)

    def read(**options):
        rows = frame(spark, broker, subscribe="flights", **options).collect()
        return sorted(round(row.timestamp.timestamp() * 1000) for row in rows)

    assert read(startingTimestamp="1005000", endingTimestamp="1008000") == stamps[5:8]
    by_partition = json.dumps({"flights": {"0": 1_010_000, "1": 1_017_000}})
    assert read(startingOffsetsByTimestamp=by_partition) == [*stamps[10:17:2], *stamps[17:]]


def test_ranges_are_split_for_more_tasks(spark, broker):
    create(broker, "flights", 2)
    produce(broker, "flights", [b"x"] * 300, partition=[0] * 200 + [1] * 100)
    whole = frame(spark, broker, subscribe="flights")
    assert whole.rdd.getNumPartitions() == 2
    split = frame(spark, broker, subscribe="flights", minPartitions="6")
    assert split.rdd.getNumPartitions() == 6
    bounded = frame(spark, broker, subscribe="flights", maxRecordsPerPartition="30")
    assert bounded.rdd.getNumPartitions() == 11
    for frames in (split, bounded):
        assert sorted(map(tuple, frames.select("partition", "offset").collect())) == [
            *((0, offset) for offset in range(200)),
            *((1, offset) for offset in range(100)),
        ]


def test_filters_on_topic_partition_and_offset_reach_the_source(spark, broker):
    create(broker, "flights")
    produce(broker, "flights", [b"x"] * 60, partition=[number % 3 for number in range(60)])
    read = frame(spark, broker, subscribe="flights").where("partition = 1 and offset >= 5 and offset < 8")
    assert read.rdd.getNumPartitions() == 1
    assert sorted(map(tuple, read.select("partition", "offset").collect())) == [(1, 5), (1, 6), (1, 7)]
    assert frame(spark, broker, subscribe="flights").where("topic like 'wea%'").count() == 0
    some = frame(spark, broker, subscribe="flights").where("offset in (3, 19) and partition <> 0")
    assert sorted(map(tuple, some.select("partition", "offset").collect())) == [
        (1, 3),
        (1, 19),
        (2, 3),
        (2, 19),
    ]


def test_filters_on_timestamps_leave_out_what_is_too_old_and_nothing_else(spark, broker):
    create(broker, "flights", 1)
    # Records need not come in the order of their times.
    stamps = [(number * 7919) % 1000 * 1000 for number in range(1000)]
    produce(broker, "flights", [b"x"] * 1000, timestamp_ms=stamps)
    read = frame(spark, broker, subscribe="flights").where("timestamp >= timestamp_millis(500000)")
    assert sorted(round(row.timestamp.timestamp() * 1000) for row in read.collect()) == sorted(
        stamp for stamp in stamps if stamp >= 500_000
    )
    one = frame(spark, broker, subscribe="flights").where("timestamp = timestamp_millis(500000)")
    assert one.count() == 1


def test_a_schema_may_choose_columns(spark, broker):
    produce(broker, "flights", [b"a", b"b"])
    reader = spark.read.format("dafka").option("bootstrap.servers", broker.bootstrap_servers)
    read = reader.option("subscribe", "flights").schema("offset long, value binary").load()
    assert read.columns == ["offset", "value"]
    assert sorted(bytes(row.value) for row in read.collect()) == [b"a", b"b"]


def test_an_empty_topic_is_an_empty_frame(spark, broker):
    create(broker, "flights")
    assert frame(spark, broker, subscribe="flights").collect() == []


# -- bad input ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"subscribe": "no-such"}, "UnknownTopicError: topic 'no-such'"),
        ({"subscribePattern": "no.such.*"}, "matches the pattern 'no.such.*'"),
        ({"subscribe": "flights", "startingofset": "earliest"}, "did you mean startingOffsets?"),
        ({"subscribe": "flights", "assign": '{"flights": [0]}'}, "exactly one of the options subscribe"),
        ({"subscribe": "flights", "startingOffsets": "latest"}, "startingOffsets=latest"),
        ({"subscribe": "flights", "startingOffsets": '{"flights": {"0": 99}}'}, "99 is out of range"),
        (
            {"subscribe": "flights", "minPartitions": "none"},
            "option minPartitions: expected a number, not 'none'",
        ),
        (
            {"subscribe": "flights", "bootstrap.servers": "127.0.0.1:1", "kafka.request.timeout.ms": "300"},
            "UnreachableError: no broker answers at 127.0.0.1:1",
        ),
    ],
)
def test_impossible_reads_are_an_analysis_exception_with_the_reason_first(spark, broker, options, reason):
    create(broker, "flights", 1)
    reader = spark.read.format("dafka")
    with pytest.raises(AnalysisException) as caught:
        reader.options(**{"bootstrap.servers": broker.bootstrap_servers, **options}).load().count()
    assert reason in first_line(caught.value)


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ("speed int", "there is no column 'speed' to read"),
        ("value string", "column value is binary, not string"),
    ],
)
def test_columns_that_are_not_there_are_named(spark, broker, schema, reason):
    create(broker, "flights", 1)
    reader = spark.read.format("dafka").schema(schema).option("bootstrap.servers", broker.bootstrap_servers)
    with pytest.raises(AnalysisException) as caught:
        reader.option("subscribe", "flights").load().count()
    assert reason in first_line(caught.value)
