"""A streaming query in a process of its own, to be killed: parquet or dafka, BROKER, FOLDER."""

from __future__ import annotations

import sys

from dafka.spark import session

QUIET = {
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "OFF",
    # Java without its second compiler: the query is over before that pays.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}


def main(sink, servers, folder):
    spark = session("archiving", conf=QUIET)
    options = {
        "kafka.bootstrap.servers": servers,
        "subscribe": "flights",
        "startingOffsets": "earliest",
        "maxOffsetsPerTrigger": "300",
    }
    rows = spark.readStream.format("dafka").options(**options).load()
    if sink == "parquet":
        rows = rows.selectExpr("partition", "offset", "cast(value as string) as value")
        target = {"path": f"{folder}/out"}
    else:
        rows = rows.select("key", "value")
        target = {"kafka.bootstrap.servers": servers, "topic": "out", "exactlyOnce": "true"}
    writer = rows.writeStream.format(sink).options(**target)
    writer = writer.option("checkpointLocation", f"{folder}/checkpoint")
    query = writer.trigger(processingTime="0 seconds").start()
    query.awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
