"""Spark's own Kafka source: added to a session that runs, from Maven Central.

It is not part of PySpark, and its package need not be there for every version of Spark. Versions tried with
PySpark 4.3.0: 4.2.0 reads and writes, batch and streaming; 4.0.0 does, but for streaming reads. Where a
version of the package is there without the small one that it needs for tokens, an older one of that serves.
"""

from __future__ import annotations

import pyspark
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from dafka.spark.errors import OptionError

_SOURCE = "org.apache.spark:spark-sql-kafka-0-10_2.13"
_TOKENS = "org.apache.spark:spark-token-provider-kafka-0-10_2.13"
_OLD_TOKENS = "4.0.0"
FALLBACK = "4.2.0"
PROVIDER = "org.apache.spark.sql.kafka010.KafkaSourceProvider"


def add_kafka_source(spark: SparkSession) -> str:
    """Make the format ``kafka`` known to a session; the version that was added, or ``present``.

    Raises OptionError where the package cannot be had.
    """
    if is_there(spark):
        return "present"
    for version in dict.fromkeys((pyspark.__version__, FALLBACK)):
        for jars in (
            [f"ivy://{_SOURCE}:{version}?transitive=true"],
            [
                f"ivy://{_SOURCE}:{version}?exclude={_TOKENS}&transitive=true",
                f"ivy://{_TOKENS}:{_OLD_TOKENS}?transitive=false",
            ],
        ):
            if all(_added(spark, jar) for jar in jars):
                return version
    raise OptionError(
        f"Spark's own Kafka source cannot be had from Maven Central ({_SOURCE}, {pyspark.__version__} or "
        f"{FALLBACK}); with its jars at hand, name them with --conf spark.jars=..."
    )


def is_there(spark: SparkSession) -> bool:
    """Whether the session has Spark's own Kafka source already, such as by ``spark.jars.packages``."""
    java = spark.sparkContext._jvm
    assert java is not None
    try:
        java.org.apache.spark.util.Utils.classForName(PROVIDER, False, False)
    except (Py4JError, PySparkException):
        return False
    return True


def _added(spark: SparkSession, jar: str) -> bool:
    try:
        spark.sql(f"ADD JAR {jar}")
    except (Py4JError, PySparkException):
        return False
    return True
