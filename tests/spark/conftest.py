"""One Spark session for all tests of it, and a broker that other processes reach for each test."""

from __future__ import annotations

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed; scripts/environment spark does that")

from types import SimpleNamespace

from pyspark.sql.types import StringType, StructField, StructType
from spark.frames import create

from dafka import Broker
from dafka.spark import session
from dafka.spark import sink as sinks
from dafka.spark.cluster import cluster
from dafka.spark.java import JavaMissingError
from dafka.spark.options import write_options
from dafka.spark.sink import StreamSink


def pytest_collection_modifyitems(items):
    """What uses the session goes to one worker of pytest -n, and may take its time."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.xdist_group("spark"))
            item.add_marker(pytest.mark.timeout(2000))


@pytest.fixture(scope="session")
def spark(tmp_path_factory):
    folder = tmp_path_factory.mktemp("spark")
    conf = {
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.local.dir": str(folder / "local"),
        "spark.log.level": "OFF",
        # Java's second compiler would take a core from the tests beside these.
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.sql.streaming.numRecentProgressUpdates": "1000",
    }
    try:
        started = session("tests", conf=conf)
    except JavaMissingError as error:
        pytest.skip(str(error))
    yield started
    started.stop()


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
    """Makes this the process of a task: what Spark says about it."""

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
