"""A broker that other processes reach, for each test, and what Spark's tasks are told."""

from __future__ import annotations

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed; scripts/environment spark does that")

from types import SimpleNamespace

from pyspark.sql.types import StringType, StructField, StructType
from spark.frames import create

from dafka import Broker
from dafka.spark import sink as sinks
from dafka.spark.cluster import cluster
from dafka.spark.options import write_options
from dafka.spark.sink import StreamSink


@pytest.fixture
def broker():
    with Broker(listen="127.0.0.1:0", default_partitions=3) as broker:
        yield broker


@pytest.fixture
def brokers(broker):
    create(broker, "t", 1)
    return cluster(write_options({"bootstrap.servers": broker.bootstrap_servers}).access)


@pytest.fixture
def sink(brokers):
    """What Spark's driver has of a streaming query that writes to topic t."""
    options = write_options(
        {"bootstrap.servers": brokers.access.servers, "topic": "t", "exactlyOnce": "true"}
    )
    return StreamSink(options, StructType([StructField("value", StringType())]))


@pytest.fixture
def as_task(monkeypatch):
    """Makes this the process of a task, with Spark's attributes of one."""

    def become(task, attempt=0, batch=5, query="q", run="run"):
        said = {
            "sql.streaming.queryId": query,
            "spark.jobGroup.id": run,
            "streaming.sql.batchId": str(batch),
        }
        context = SimpleNamespace(
            partitionId=lambda: task, attemptNumber=lambda: attempt, getLocalProperty=said.get
        )
        monkeypatch.setattr(sinks, "_context", lambda: context)

    return become
