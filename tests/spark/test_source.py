"""What Spark calls, called without Spark: planning and reading with filters pushed down."""

from __future__ import annotations

import operator
from datetime import datetime, timedelta, timezone

import pytest
from pyspark.sql.datasource import EqualTo, GreaterThan, GreaterThanOrEqual, In, LessThan
from spark.frames import produce

from compat.kafka import KafkaAdminClient
from dafka.spark import SCHEMA, DafkaDataSource


def read(broker, *filters):
    """Topic, partition, offset and timestamp of what is read with these filters, and those left over."""
    options = {"bootstrap.servers": broker.bootstrap_servers, "subscribe": "t"}
    reader = DafkaDataSource(options).reader(SCHEMA)
    rest = reader.pushFilters(list(filters))
    batches = [batch for partition in reader.partitions() for batch in reader.read(partition)]
    columns = ["topic", "partition", "offset", "timestamp"]
    return [tuple(row.values()) for batch in batches for row in batch.select(columns).to_pylist()], rest


@pytest.fixture(params=["CreateTime", "LogAppendTime"])
def rows(request, broker):
    """All rows of a topic t of two partitions, in many batches; producers' times go to and fro."""
    with KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin:
        settings = {"configs": {"message.timestamp.type": request.param}}
        admin.create_topics({"t": {"num_partitions": 2, "replication_factor": 1, **settings}})
    for begin in range(0, 200, 20):
        stamps = [1000 + number * 7919 % 200 for number in range(begin, begin + 20)]
        produce(broker, "t", [b"x"] * 20, partition=[number % 2 for number in range(20)], timestamp_ms=stamps)
    found, _ = read(broker)
    assert len(found) == 200
    return found


@pytest.mark.parametrize("kind", [EqualTo, GreaterThan, GreaterThanOrEqual, LessThan])
def test_conditions_on_time_lose_no_row(broker, rows, kind):
    compare = {EqualTo: operator.eq, GreaterThan: operator.gt, GreaterThanOrEqual: operator.ge}
    holds = compare.get(kind, operator.lt)
    stamps = sorted(row[3] for row in rows)
    for place in (0, 3, 100, 198, 199):
        for microseconds in (-1, 0, 1, 999, 1000):
            limit = stamps[place] + timedelta(microseconds=microseconds)
            one = kind(("timestamp",), limit)
            found, rest = read(broker, one)
            assert rest == [one]
            assert [row for row in found if holds(row[3], limit)] == [
                row for row in rows if holds(row[3], limit)
            ]


def test_conditions_on_time_and_place_hold_together(broker, rows):
    limit = sorted(row[3] for row in rows)[150]
    filters = [
        In(("partition",), (1, 7)),
        GreaterThan(("offset",), 10),
        LessThan(("offset",), 90),
        GreaterThanOrEqual(("timestamp",), limit),
    ]
    found, rest = read(broker, *filters)
    assert rest == filters[3:]
    wanted = [row for row in rows if row[1] == 1 and 10 < row[2] < 90]
    assert set(found) <= set(wanted)
    assert [row for row in found if row[3] >= limit] == [row for row in wanted if row[3] >= limit]


def test_a_filter_for_times_after_all_records_reads_nothing(broker, rows):
    assert read(broker, GreaterThan(("timestamp",), datetime(9999, 12, 31, tzinfo=timezone.utc)))[0] == []
