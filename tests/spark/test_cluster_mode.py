"""A program that spark-submit gives to a standalone cluster with executors in processes of their own.

The master and two workers are in the program's process; with ``DAFKA_SPARK_CLUSTER=1`` in three more, which
takes a minute.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from contextlib import ExitStack, suppress
from pathlib import Path

import pyarrow.parquet as pq
import pyspark
import pytest
from spark.frames import create, produce, values, wait_until
from spark.starting import JAVA

from dafka.spark.java import JavaMissingError, find_java
from dafka.spark.pipelines import archive

ROOT = Path(__file__).parents[2]
HOME = Path(pyspark.__file__).parent
RECORDS = 3000
LONG = "DAFKA_SPARK_CLUSTER"


def environment(java, home=HOME, python=sys.executable):
    return {
        **os.environ,
        "JAVA_HOME": java,
        "SPARK_HOME": str(home),
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": JAVA,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYTHONPATH": str(ROOT),
        "PYSPARK_PYTHON": python,
    }


def stop(process):
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait(200)


@pytest.fixture
def home(tmp_path):
    """A home of Spark for this test: its workers keep their folders in there."""
    home = tmp_path / "spark"
    home.mkdir()
    for entry in HOME.iterdir():
        (home / entry.name).symlink_to(entry)
    return home


@pytest.fixture
def master(tmp_path):
    """The address of a master that two workers have registered with, or will have."""
    try:
        java = find_java()
    except JavaMissingError as error:
        pytest.skip(str(error))
    if not os.environ.get(LONG):
        yield "local-cluster[2,1,1024]"
        return
    with ExitStack() as stack:

        def start(name, *arguments):
            log = tmp_path / f"{name}.log"
            command = [
                str(HOME / "bin" / "spark-class"),
                f"org.apache.spark.deploy.{arguments[0]}",
                *arguments[1:],
            ]
            with log.open("w") as file:
                process = subprocess.Popen(
                    [*command, "--host", "127.0.0.1", "--webui-port", "0"],
                    env=environment(java),
                    stdout=file,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
            stack.callback(stop, process)
            return log

        log = start("master", "master.Master", "--port", "0")
        found = lambda: re.search(r"Starting Spark master at (spark://\S+)", log.read_text())  # noqa: E731
        wait_until(found)
        address = found()[1]
        for number in range(2):
            folder = str(tmp_path / f"work-{number}")
            size = ("--cores", "1", "--memory", "1g", "--work-dir", folder)
            start(f"worker-{number}", "worker.Worker", *size, address)
        wait_until(lambda: log.read_text().count("Registering worker") == 2)
        yield address


@pytest.mark.timeout(3000)
def test_executors_of_a_cluster_read_and_write_in_parallel_and_spark_submit_runs_a_pipeline(
    master, broker, home, spark_python, tmp_path
):
    create(broker, "flights", 3)
    produce(broker, "flights", [b"%d" % number for number in range(RECORDS)])
    folder = str(tmp_path / "archive")
    source = ["--bootstrap-servers", broker.bootstrap_servers, "--topics", "flights"]
    done = subprocess.run(
        [
            *(str(home / "bin" / "spark-submit"), "--master", master, "--driver-java-options", JAVA),
            *("--conf", f"spark.executor.extraJavaOptions={JAVA}"),
            *(str(Path(__file__).with_name("on_cluster.py")), broker.bootstrap_servers),
            *(archive.__file__, folder, *source),
        ],
        env=environment(find_java(), home, spark_python),
        capture_output=True,
        text=True,
        timeout=2000,
    )
    assert done.returncode == 0, done.stdout + done.stderr  # Spark has Python's errors in the output
    said, archived = done.stdout.splitlines()[-2:]
    readers = json.loads(said)
    assert sum(rows for _, rows in readers) == RECORDS
    assert len({executor for executor, _ in readers}) == 2
    assert sorted(int(value) for value in values(broker, "copy")) == list(range(RECORDS))
    assert archived == f"{RECORDS} records written to {folder}"
    assert pq.read_table(f"{folder}/{archive.RECORDS}").num_rows == RECORDS
