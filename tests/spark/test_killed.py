"""Streaming queries that are killed and started again from their checkpoints lose and double nothing.

``DAFKA_SPARK_KILLS`` sets the number of kills; one by default, since each start of Spark takes long.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from spark.archiving import SINKS, start
from spark.frames import create, frame, produce, wait_until

from dafka import Broker

ROOT = Path(__file__).parents[2]
LIMIT = 250  # records of a micro-batch
RECORDS = 12 * LIMIT  # of each run; two micro-batches are enough before the queries are killed
KILLS = int(os.environ.get("DAFKA_SPARK_KILLS", "1"))

pytestmark = pytest.mark.timeout(6000)


def kill(process):
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait(200)


def committed(folder, sink):
    """How many micro-batches are complete, by Spark's checkpoint."""
    return sum(path.name.isdigit() for path in (folder / f"checkpoint-{sink}" / "commits").glob("*"))


def run_and_kill(broker, folder, python):
    """Start the queries in a process group of their own, with Java and its Python workers, and kill it."""
    enough = {sink: committed(folder, sink) + 2 for sink in SINKS}
    program = [sys.executable, str(ROOT / "tests" / "spark" / "archiving.py")]
    process = subprocess.Popen(
        [*program, broker.bootstrap_servers, str(folder), str(LIMIT)],
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests")]),
            "PYSPARK_PYTHON": python,
        },
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        wait_until(
            lambda: all(committed(folder, sink) >= enough[sink] for sink in SINKS) or process.poll(),
            seconds=2000,
        )
        assert process.poll() is None
    finally:
        kill(process)


@pytest.fixture(scope="module")
def killed(spark, spark_python, tmp_path_factory):
    """The broker, the folder and how many records there are, after the last run of the queries."""
    folder = tmp_path_factory.mktemp("killed")
    with Broker(listen="127.0.0.1:0") as broker:
        create(broker, "flights", 3)
        sent = 0
        for left in reversed(range(KILLS + 1)):
            produce(broker, "flights", [b"%d" % number for number in range(sent, sent + RECORDS)])
            sent += RECORDS
            if left:
                run_and_kill(broker, folder, spark_python)
        # The last time in the session of all tests: they read what there is, and end.
        for query in start(spark, broker.bootstrap_servers, folder, availableNow=True):
            query.awaitTermination()
        yield broker, folder, sent


def test_a_killed_query_loses_and_doubles_nothing_in_parquet(spark, killed):
    _, folder, sent = killed
    found = spark.read.parquet(str(folder / "out")).select("partition", "offset", "value").collect()
    assert sorted(int(row.value) for row in found) == list(range(sent))
    assert len({(row.partition, row.offset) for row in found}) == sent


def test_a_killed_query_loses_and_doubles_nothing_in_transactions(spark, killed):
    broker, _, sent = killed
    committed_only = {"kafka.isolation.level": "read_committed"}
    found = frame(spark, broker, subscribe="out", **committed_only).select("value").collect()
    assert sorted(int(bytes(row.value)) for row in found) == list(range(sent))
