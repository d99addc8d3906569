"""migrate: topics from one broker to another."""

from __future__ import annotations

import urllib.request

import pytest
from spark.frames import create, produce, records

from dafka import Broker
from dafka.spark.errors import OptionError, UnknownTopicError
from dafka.spark.kafka_package import add_kafka_source
from dafka.spark.pipelines.migrate import migrate_topics
from scripts.apache.jars import CENTRAL


@pytest.fixture
def other():
    with Broker(listen="127.0.0.1:0") as other:
        yield other


def sides(broker, other, **options):
    source = {"kafka.bootstrap.servers": broker.bootstrap_servers, "startingOffsets": "earliest", **options}
    return source, {"kafka.bootstrap.servers": other.bootstrap_servers}


def content(some):
    return [(one.partition, one.offset, one.timestamp, one.key, one.value, list(one.headers)) for one in some]


def test_topics_are_copied_with_partitions_keys_headers_and_timestamps(spark, broker, other, tmp_path):
    create(broker, "a", 3)
    create(broker, "b", 1)
    keys = [b"%d" % (number % 9) for number in range(90)]
    produce(
        broker, "a", keys, key=keys, headers=[[("h", key)] for key in keys], timestamp_ms=list(range(1, 91))
    )
    produce(broker, "b", [b"x"])
    source, target = sides(broker, other, subscribe="a,b")
    checkpoint = str(tmp_path / "checkpoint")
    assert migrate_topics(spark, source, target, checkpoint) == 91
    assert content(records(other, "a")) == content(records(broker, "a"))
    produce(broker, "b", [b"y"])
    assert migrate_topics(spark, source, target, checkpoint) == 1
    assert [record.value for record in records(other, "b")] == [b"x", b"y"]


def test_topics_that_are_not_there_are_named(spark, broker, other, tmp_path):
    with pytest.raises(UnknownTopicError, match="topic 'no-such'"):
        migrate_topics(spark, *sides(broker, other, subscribe="no-such"), str(tmp_path / "checkpoint"))


@pytest.fixture
def kafka_source(spark):
    """Spark's own Kafka source is there."""
    package = f"{CENTRAL}/org/apache/spark/spark-sql-kafka-0-10_2.13/maven-metadata.xml"
    try:
        urllib.request.urlopen(package, timeout=5).close()
    except OSError as error:
        pytest.skip(f"Maven Central cannot be reached: {error}")
    try:
        add_kafka_source(spark)
    except OptionError as error:
        pytest.skip(str(error))


def test_sparks_own_source_may_read(spark, kafka_source, broker, other, tmp_path):
    create(broker, "a", 2)
    produce(
        broker,
        "a",
        [b"x", None],
        key=b"k",
        headers=[[("h", b"1")]] * 2,
        timestamp_ms=[7, 8],
        partition=[0, 1],
    )
    source, target = sides(broker, other, subscribe="a")
    checkpoint = str(tmp_path / "checkpoint")
    assert migrate_topics(spark, source, target, checkpoint, from_format="kafka") == 2
    assert content(records(other, "a")) == content(records(broker, "a"))
