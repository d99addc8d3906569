"""Two streaming queries over a topic, to Parquet and in transactions to another topic.

In a process of their own, to be killed: BROKER, FOLDER.
"""

from __future__ import annotations

import sys
from pathlib import Path

from spark.starting import JAVA

from dafka.spark import session

SINKS = ("parquet", "dafka")
QUIET = {
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "OFF",
    "spark.driver.extraJavaOptions": JAVA,
    # Seconds that its Python processes may take to connect, on a machine that is busy with others.
    "spark.python.authenticate.socketTimeout": "120s",
}


def start(spark, servers, folder, limit=None, **trigger):
    """The queries, by their sinks; ``limit`` is the records of a micro-batch."""
    broker = {"kafka.bootstrap.servers": servers}
    options = {**broker, "subscribe": "flights", "startingOffsets": "earliest"}
    if limit is not None:
        options["maxOffsetsPerTrigger"] = str(limit)
    rows = spark.readStream.format("dafka").options(**options).load()
    frames = {
        "parquet": rows.selectExpr("partition", "offset", "cast(value as string) as value"),
        "dafka": rows.select("key", "value"),
    }
    targets = {
        "parquet": {"path": f"{folder}/out"},
        "dafka": {**broker, "topic": "out", "exactlyOnce": "true"},
    }
    queries = []
    for sink in SINKS:
        writer = frames[sink].writeStream.format(sink).options(**targets[sink])
        writer = writer.option("checkpointLocation", str(Path(folder) / f"checkpoint-{sink}"))
        queries.append(writer.trigger(**trigger).start())
    return queries


def main(servers, folder, limit):
    spark = session("archiving", conf=QUIET)
    start(spark, servers, folder, int(limit), processingTime="0 seconds")
    spark.streams.awaitAnyTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
