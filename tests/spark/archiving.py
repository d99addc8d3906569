"""A streaming query into Parquet in a process of its own, to be killed: BROKER FOLDER."""

from __future__ import annotations

import sys

from dafka.spark import session


def main(servers, folder):
    spark = session("archiving", conf={"spark.ui.showConsoleProgress": "false", "spark.log.level": "OFF"})
    options = {
        "kafka.bootstrap.servers": servers,
        "subscribe": "flights",
        "startingOffsets": "earliest",
        "maxOffsetsPerTrigger": "300",
    }
    rows = spark.readStream.format("dafka").options(**options).load()
    query = (
        rows.selectExpr("partition", "offset", "cast(value as string) as value")
        .writeStream.format("parquet")
        .option("path", f"{folder}/out")
        .option("checkpointLocation", f"{folder}/checkpoint")
        .trigger(processingTime="0 seconds")
        .start()
    )
    query.awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
