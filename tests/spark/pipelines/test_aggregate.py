"""aggregate: windows over JSON events."""

from __future__ import annotations

import json

import pytest
from spark.frames import create, produce, records

from dafka.spark.errors import OptionError
from dafka.spark.pipelines.aggregate import Aggregated, Windows, aggregate_topics

FLIGHTS = Windows(
    schema="at timestamp, origin string, delay int",
    time="at",
    size="1 hour",
    watermark="30 minutes",
    by=["origin"],
    sums=["delay"],
    means=["delay"],
)


def event(at, origin, delay):
    return json.dumps({"at": f"2024-03-01T{at}:00Z", "origin": origin, "delay": delay}).encode()


EVENTS = [
    event("08:05", "JFK", 10),
    event("08:50", "JFK", 20),
    event("08:10", "LGA", -5),
    event("09:30", "JFK", 7),
    event("23:00", "JFK", 0),  # closes the windows before it
]


def source(broker):
    servers = {"kafka.bootstrap.servers": broker.bootstrap_servers}
    return {**servers, "subscribe": "flights", "startingOffsets": "earliest"}


@pytest.fixture
def flights(broker):
    create(broker, "flights", 1)
    produce(broker, "flights", EVENTS)


def test_windows_go_to_a_topic_once_they_are_complete(spark, broker, flights, tmp_path):
    checkpoint = str(tmp_path / "checkpoint")
    done = aggregate_topics(spark, source(broker), FLIGHTS, checkpoint, topic="hours")
    assert done == (5, 1, "2024-03-01T22:30:00.000Z")  # that of 23:00 is open
    found = [(record.key, json.loads(record.value)) for record in records(broker, "hours")]
    assert sorted(
        (key, one["start"][11:13], one["count"], one["sum_delay"], one["mean_delay"]) for key, one in found
    ) == [
        (b"JFK", "08", 2, 30, 15.0),
        (b"JFK", "09", 1, 7, 7.0),
        (b"LGA", "08", 1, -5, -5.0),
    ]


def test_the_number_of_open_windows_is_logged():
    assert str(Aggregated(7, 0, "2024-03-01T22:30:00.000Z")) == "7 events read"
    assert str(Aggregated(7, 1, "2024-03-01T22:30:00.000Z")) == (
        "7 events read; 1 window is still open and not written: the checkpoint keeps what is counted until "
        "the watermark (now 2024-03-01T22:30:00.000Z) passes its end, which later events move"
    )
    assert "; 3 windows are still open" in str(Aggregated(7, 3, ""))


def test_windows_go_to_parquet(spark, broker, flights, tmp_path):
    folder, checkpoint = str(tmp_path / "windows"), str(tmp_path / "checkpoint")
    aggregate_topics(spark, source(broker), FLIGHTS, checkpoint, folder=folder)
    rows = spark.read.parquet(folder).collect()
    assert sorted((row.origin, row.start.hour, row["count"], row.sum_delay) for row in rows) == [
        ("JFK", 8, 2, 30),
        ("JFK", 9, 1, 7),
        ("LGA", 8, 1, -5),
    ]


def test_a_value_that_does_not_fit_the_schema_ends_the_query_or_is_left_out(spark, broker, flights, tmp_path):
    produce(broker, "flights", [b"no JSON"])
    with pytest.raises(Exception, match="MALFORMED_RECORD"):
        aggregate_topics(spark, source(broker), FLIGHTS, str(tmp_path / "a"), folder=str(tmp_path / "strict"))
    lenient = FLIGHTS._replace(skip_bad=True)
    aggregate_topics(spark, source(broker), lenient, str(tmp_path / "b"), folder=str(tmp_path / "lenient"))
    assert spark.read.parquet(str(tmp_path / "lenient")).count() == 3


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ({"time": "when"}, "the schema has no column 'when'; it has at, origin, delay"),
        ({"sums": ["distance"]}, "the schema has no column 'distance'"),
        ({"time": "origin"}, "column origin holds the time of an event: it has to be timestamp, not string"),
    ],
)
def test_columns_that_are_not_declared_are_refused(spark, broker, flights, tmp_path, wrong, reason):
    with pytest.raises(OptionError, match=reason):
        aggregate_topics(spark, source(broker), FLIGHTS._replace(**wrong), str(tmp_path / "c"), topic="t")
