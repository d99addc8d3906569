"""Dafka and Apache Spark: topics as batch and streaming frames of PySpark, with Kafka's columns and options.

    from dafka.spark import register

    register(spark)
    frame = spark.readStream.format("dafka").option("bootstrap.servers", "host:9092") \\
        .option("subscribe", "flights").load()
"""

from __future__ import annotations

import sys

try:
    from dafka.spark.session import session
    from dafka.spark.source import FORMAT, SCHEMA, SCHEMA_WITH_HEADERS, DafkaDataSource, register
except ModuleNotFoundError as error:
    missing = (error.name or "").partition(".")[0]
    if missing in ("", "dafka"):
        raise
    raise ModuleNotFoundError(
        f"dafka.spark runs on Apache Spark; {missing} is missing in {sys.executable}: "
        "pip install 'dafka[spark]'. If Spark has started this interpreter, set PYSPARK_PYTHON "
        "to the one that is meant",
        name=missing,
    ) from error

__all__ = ["FORMAT", "SCHEMA", "SCHEMA_WITH_HEADERS", "DafkaDataSource", "register", "session"]
