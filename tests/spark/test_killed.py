"""A streaming query that is killed and started again from its checkpoint loses and doubles nothing.

``DAFKA_SPARK_KILLS`` sets the number of kills; one by default, since each start of Spark takes long.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from spark.frames import create, frame, produce, wait_until

ROOT = Path(__file__).parents[2]
RECORDS = 1500  # of each run: five micro-batches, of which two are enough before the query is killed
RUNS = int(os.environ.get("DAFKA_SPARK_KILLS", "1")) + 1  # of the query; all but the last are killed


@pytest.fixture
def start(broker, tmp_path):
    """Starts the query in a process group of its own: Java and its Python workers die with it."""
    running = []

    def start(sink):
        program = [sys.executable, str(Path(__file__).with_name("archiving.py")), sink]
        running.append(
            subprocess.Popen(
                [*program, broker.bootstrap_servers, str(tmp_path)],
                env={**os.environ, "PYTHONPATH": str(ROOT)},
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        )
        return running[-1]

    yield start
    for process in running:
        kill(process)


def kill(process):
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait(200)


def committed(folder):
    """How many micro-batches are complete, by Spark's checkpoint."""
    commits = folder / "checkpoint" / "commits"
    return sum(path.name.isdigit() for path in commits.iterdir()) if commits.is_dir() else 0


def read_up_to(folder):
    """How many offsets the last micro-batch that was planned goes up to."""
    offsets = folder / "checkpoint" / "offsets"
    planned = (
        [int(path.name) for path in offsets.iterdir() if path.name.isdigit()] if offsets.is_dir() else []
    )
    if not planned:
        return 0
    last = (offsets / str(max(planned))).read_text().splitlines()[-1]
    return sum(json.loads(last)["flights"].values()) if last.startswith("{") else 0


def is_done(folder, sent):
    """Whether all that was sent has been planned, and all that was planned is committed."""
    planned, done = (
        {path.name for path in (folder / "checkpoint" / name).glob("*") if path.name.isdigit()}
        for name in ("offsets", "commits")
    )
    return read_up_to(folder) == sent and planned == done


def run_and_kill(broker, tmp_path, start):
    """Send numbers and run the query over them, RUNS times; how many numbers there are."""
    create(broker, "flights", 3)
    for run in range(RUNS):
        sent = (run + 1) * RECORDS
        produce(broker, "flights", [b"%d" % number for number in range(run * RECORDS, sent)])
        enough = committed(tmp_path) + 2
        query = start()
        if run < RUNS - 1:
            wait_until(lambda enough=enough: committed(tmp_path) >= enough, seconds=2000)
        else:
            wait_until(lambda sent=sent: is_done(tmp_path, sent), seconds=2000)
        kill(query)
    return RUNS * RECORDS


@pytest.mark.timeout(6000)
def test_a_killed_query_loses_and_doubles_nothing_in_parquet(spark, broker, tmp_path, start):
    sent = run_and_kill(broker, tmp_path, lambda: start("parquet"))
    found = spark.read.parquet(str(tmp_path / "out")).select("partition", "offset", "value").collect()
    assert sorted(int(row.value) for row in found) == list(range(sent))
    assert len({(row.partition, row.offset) for row in found}) == sent


@pytest.mark.timeout(6000)
def test_a_killed_query_loses_and_doubles_nothing_in_transactions(spark, broker, tmp_path, start):
    sent = run_and_kill(broker, tmp_path, lambda: start("dafka"))
    committed_only = {"kafka.isolation.level": "read_committed"}
    found = frame(spark, broker, subscribe="out", **committed_only).select("value").collect()
    assert sorted(int(bytes(row.value)) for row in found) == list(range(sent))
