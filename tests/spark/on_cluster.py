"""A program for spark-submit and a cluster, BROKER PROGRAM [ARGUMENT]...

It reads a topic, copies it, and says who has read. Then another program runs in the same cluster, so that the
processes in Java are started once for both.
"""

from __future__ import annotations

import json
import os
import runpy
import sys

import pyarrow as pa

from dafka.spark import session


def who_reads(batches):
    """The Python daemon of the executor, which each task's worker is a child of, and how many rows."""
    for batch in batches:
        yield pa.record_batch({"executor": pa.array([os.getppid()]), "rows": pa.array([batch.num_rows])})


def main(servers, program, *arguments):
    conf = {
        "spark.executor.memory": "512m",
        "spark.cores.max": "2",
        "spark.executor.cores": "1",
        "spark.scheduler.minRegisteredResourcesRatio": "1",
        "spark.scheduler.maxRegisteredResourcesWaitingTime": "600s",  # ends as soon as both are there
        # Seconds that its Python processes may take to connect, on a machine that is busy with others.
        "spark.python.authenticate.socketTimeout": "120s",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "OFF",
    }
    spark = session("on a cluster", conf=conf)
    options = {"kafka.bootstrap.servers": servers, "subscribe": "flights", "minPartitions": "12"}
    rows = spark.read.format("dafka").options(**options).load()
    readers = rows.mapInArrow(who_reads, "executor long, rows long").collect()
    rows.select("key", "value").write.format("dafka").mode("append").option(
        "kafka.bootstrap.servers", servers
    ).option("topic", "copy").save()
    print(json.dumps([list(row) for row in readers]), flush=True)
    sys.argv = [program, *arguments]
    runpy.run_path(program, run_name="__main__")


if __name__ == "__main__":
    main(*sys.argv[1:])
