"""Spark sessions with the format ``dafka``: on this machine by default, small, and on loopback."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

from pyspark.sql import SparkSession

from dafka.spark.java import find_java
from dafka.spark.source import register

_SMALL = {"spark.sql.shuffle.partitions": "2", "spark.sql.session.timeZone": "UTC"}
_LOCAL = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    **_SMALL,
}


def is_submitted() -> bool:
    """Whether ``spark-submit`` has started this process, and Java already."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def session(name: str, master: str | None = None, conf: Mapping[str, str] | None = None) -> SparkSession:
    """A session that knows the format ``dafka``.

    Under ``spark-submit`` it is the one that was submitted, with its master and memory. Otherwise one is
    started in this process: on two cores, small, on loopback; or as a client of the cluster that ``master``
    names. ``conf`` goes before all of that. Raises :class:`dafka.spark.java.JavaMissingError`.
    """
    builder = SparkSession.builder.appName(name)
    submitted = is_submitted()
    if not submitted:
        os.environ["JAVA_HOME"] = find_java()
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        builder = builder.master(master or "local[2]").config("spark.driver.memory", "1g")
        if master is None or master.startswith("local"):
            os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
            for option, value in _LOCAL.items():
                builder = builder.config(option, value)
    elif master is not None:
        builder = builder.master(master)
    for option, value in (conf or {}).items():
        builder = builder.config(option, value)
    spark = builder.getOrCreate()
    if submitted and str(spark.sparkContext.master).startswith("local"):
        given = spark.sparkContext.getConf()
        for option, value in _SMALL.items():
            if not given.contains(option):
                spark.conf.set(option, value)
    register(spark)
    return spark
