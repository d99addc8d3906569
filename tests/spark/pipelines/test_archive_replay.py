"""archive and replay: topics to Parquet and back."""

from __future__ import annotations

import time
from datetime import date

import pytest
from spark.frames import create, produce, records

from dafka import Broker
from dafka.spark.errors import OptionError
from dafka.spark.pipelines.archive import RECORDS, SCHEMA, archive_topics
from dafka.spark.pipelines.replay import replay_records

DAY = 86_400_000


def fill(broker):
    """120 records in three partitions, on three days, with keys and headers; every tenth without a value."""
    create(broker, "flights", 3)
    numbers = range(120)
    produce(
        broker,
        "flights",
        [None if number % 10 == 0 else b"%d" % number for number in numbers],
        key=[b"key%d" % (number % 7) for number in numbers],
        headers=[[("number", b"%d" % number)] if number % 2 else [] for number in numbers],
        timestamp_ms=[1_600_000_000_000 + number % 3 * DAY for number in numbers],
    )
    return "flights"


@pytest.fixture
def flights(broker):
    return fill(broker)


@pytest.fixture(scope="module")
def archived(spark, tmp_path_factory):
    """The flights that were archived, and the folder of their archive."""
    folder = str(tmp_path_factory.mktemp("archived") / "archive")
    with Broker(listen="127.0.0.1:0") as broker:
        topic = fill(broker)
        archive_topics(spark, source(broker, subscribe=topic), folder)
        return records(broker, topic), folder


def source(broker, **options):
    return {"kafka.bootstrap.servers": broker.bootstrap_servers, "startingOffsets": "earliest", **options}


def target(broker, **options):
    return {"kafka.bootstrap.servers": broker.bootstrap_servers, **options}


def content(some):
    return sorted(
        (record.timestamp, record.key, record.value or b"", list(record.headers)) for record in some
    )


def by_key(some):
    found = {}
    for record in some:
        found.setdefault(record.key, []).append(record.value)
    return found


def test_topics_are_archived_by_topic_and_day_and_each_record_once(spark, broker, flights, tmp_path):
    folder = str(tmp_path / "archive")
    assert archive_topics(spark, source(broker, subscribe=flights), folder) == 120
    assert archive_topics(spark, source(broker, subscribe=flights), folder) == 0
    produce(broker, flights, [b"later"] * 5)
    assert archive_topics(spark, source(broker, subscribe=flights), folder) == 5
    rows = spark.read.schema(SCHEMA).parquet(f"{folder}/{RECORDS}").collect()
    assert len({(row.topic, row.partition, row.offset) for row in rows}) == len(rows) == 125
    assert {row.date for row in rows if row.timestamp.year == 2020} == {
        date(2020, 9, day) for day in (13, 14, 15)
    }


def test_archived_records_are_replayed_as_they_were(spark, broker, archived):
    before, folder = archived
    create(broker, "again", 5)
    assert replay_records(spark, folder, target(broker, topic="again")) == 120
    after = records(broker, "again")
    assert content(after) == content(before)
    assert by_key(after) == by_key(before)


def test_a_topic_that_has_records_does_not_get_them_twice_unless_that_is_wanted(spark, broker, archived):
    before, folder = archived
    create(broker, "flights", 3)
    assert replay_records(spark, folder, target(broker)) == 120  # it is empty
    with pytest.raises(OptionError, match=r"topic 'flights' at .* has records, and would have .* twice"):
        replay_records(spark, folder, target(broker))
    assert content(records(broker, "flights")) == content(before)
    assert replay_records(spark, folder, target(broker), where="partition = 0", append=True) > 0
    assert len(records(broker, "flights")) > 120


def test_records_can_go_to_the_partitions_they_came_from(spark, broker, archived):
    before, folder = archived
    create(broker, "again", 3)
    replay_records(spark, folder, target(broker, topic="again"), keep_partitions=True)
    assert [(one.partition, one.offset, one.key, one.value) for one in records(broker, "again")] == [
        (one.partition, one.offset, one.key, one.value) for one in before
    ]


def test_a_condition_and_a_rate_limit_the_replay(spark, broker, flights, tmp_path):
    folder = str(tmp_path / "archive")
    produce(broker, flights, [b"%d" % number for number in range(3000)])
    archive_topics(spark, source(broker, subscribe=flights), folder)
    started = time.monotonic()
    count = replay_records(
        spark, folder, target(broker, topic="again"), where="timestamp > timestamp'2021-01-01'", rate=1500
    )
    assert count == 3000
    assert time.monotonic() - started > 1  # the last thousand of each task waits for the ones before
    assert len(records(broker, "again")) == 3000


def test_a_rate_at_which_transactions_would_be_over_before_the_end_is_refused(spark, broker, archived):
    _, folder = archived
    once = target(broker, topic="again", exactlyOnce="true")
    with pytest.raises(OptionError, match=r"120 records at 0\.1 a second take 1200 s, longer than .*900 s"):
        replay_records(spark, folder, once, rate=0.1)
    assert replay_records(spark, folder, once, rate=10_000) == 120


@pytest.mark.parametrize("rate", [0, -1, float("nan")])
def test_a_rate_of_nothing_is_refused(spark, broker, archived, rate):
    _, folder = archived
    with pytest.raises(OptionError, match=f"a rate is more than 0 records a second, not {rate}"):
        replay_records(spark, folder, target(broker), rate=rate)
