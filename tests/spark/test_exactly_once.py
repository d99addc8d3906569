"""exactlyOnce: a streaming query that writes in transactions, and is killed or has tasks that fail."""

from __future__ import annotations

import threading

import gevent
import pytest
from spark.frames import create, frame, produce, stream, write, write_stream

from dafka.broker.embedded.broker import EmbeddedBroker

COMMITTED = {"kafka.isolation.level": "read_committed"}


def committed(spark, broker, topic):
    rows = frame(spark, broker, subscribe=topic, **COMMITTED).select("value").collect()
    return sorted(int(bytes(row.value)) for row in rows)


def test_a_stream_is_written_in_transactions(spark, broker, tmp_path):
    create(broker, "flights", 2)
    produce(broker, "flights", [b"%d" % number for number in range(100)])
    read = stream(spark, broker, subscribe="flights", startingOffsets="earliest", maxOffsetsPerTrigger="40")
    writer = write_stream(read, broker, tmp_path / "checkpoint", topic="copy", exactlyOnce="true")
    writer.trigger(availableNow=True).start().awaitTermination()
    assert committed(spark, broker, "copy") == list(range(100))


def test_a_batch_is_written_in_transactions(spark, broker):
    rows = spark.range(1000).selectExpr("cast(id as string) as value").repartition(3)
    write(rows, broker, topic="numbers", exactlyOnce="true")
    assert committed(spark, broker, "numbers") == list(range(1000))


def test_nothing_of_a_batch_that_failed_is_seen(spark, broker):
    create(broker, "numbers", 1)
    bad = "if(id = 777, 5, 0) as partition"  # there is no partition 5
    rows = spark.range(1000).selectExpr("cast(id as string) as value", bad).repartition(3)
    with pytest.raises(Exception, match="column partition is 5"):
        write(rows, broker, topic="numbers", exactlyOnce="true")
    write(
        spark.range(3).selectExpr("cast(id as string) as value"), broker, topic="numbers", exactlyOnce="true"
    )
    assert committed(spark, broker, "numbers") == [0, 1, 2]


def test_less_than_all_acknowledgements_are_refused(spark, broker):
    rows = spark.range(1).selectExpr("cast(id as string) as value")
    with pytest.raises(Exception, match=r"exactlyOnce needs kafka\.acks=all, not 1"):
        write(rows, broker, topic="t", exactlyOnce="true", **{"kafka.acks": "1"})


def test_a_task_that_outlives_its_write_leaves_nothing_open(spark, broker, monkeypatch):
    create(broker, "numbers", 1)
    begin, begun, failed = EmbeddedBroker.init_producer_id, threading.Event(), threading.Event()

    def slow_for_task_1(calls, name, *arguments):
        if name.endswith("-1"):
            begun.set()
            while not failed.is_set():
                gevent.sleep(0.01)
        return begin(calls, name, *arguments)

    monkeypatch.setattr(EmbeddedBroker, "init_producer_id", slow_for_task_1)
    bad = "if(id = 0, 5, 0) as partition"  # task 0 fails: there is no partition 5
    rows = spark.range(0, 2, 1, 2).selectExpr("cast(id as string) as value", bad)
    with pytest.raises(Exception, match="column partition is 5"):
        write(rows, broker, topic="numbers", exactlyOnce="true")
    failed.set()
    assert begun.is_set()
    one = spark.range(2, 3).selectExpr("cast(id as string) as value")
    write(one, broker, topic="numbers", exactlyOnce="true")
    assert committed(spark, broker, "numbers") == [2]
