"""Spark's own Kafka source is looked for in the session, and then fetched in the versions that are known."""

from __future__ import annotations

from types import SimpleNamespace

import pyspark
import pytest
from py4j.protocol import Py4JError

from dafka.spark import kafka_package
from dafka.spark.errors import OptionError
from dafka.spark.kafka_package import FALLBACK, add_kafka_source, is_there

VERSION = pyspark.__version__


class Session:
    """A session to which the packages can be added that ``there`` accepts."""

    def __init__(self, there, loaded=False):
        self._there = there
        self._loaded = loaded
        self.asked = []
        utils = SimpleNamespace(classForName=self._class_for_name)
        jvm = SimpleNamespace(
            org=SimpleNamespace(
                apache=SimpleNamespace(spark=SimpleNamespace(util=SimpleNamespace(Utils=utils)))
            )
        )
        self.sparkContext = SimpleNamespace(_jvm=jvm)

    def _class_for_name(self, name, *_):
        assert name == kafka_package.PROVIDER
        if not self._loaded:
            raise Py4JError("ClassNotFoundException")

    def sql(self, statement):
        jar = statement.removeprefix("ADD JAR ivy://org.apache.spark:")
        self.asked.append(jar)
        if not self._there(jar):
            raise Py4JError("not found")


def test_a_session_that_has_the_source_fetches_nothing():
    session = Session(lambda jar: True, loaded=True)
    assert is_there(session)
    assert (add_kafka_source(session), session.asked) == ("present", [])


def test_the_version_of_pyspark_is_taken_first():
    session = Session(lambda jar: True)
    assert add_kafka_source(session) == VERSION
    assert session.asked == [f"spark-sql-kafka-0-10_2.13:{VERSION}?transitive=true"]


def test_without_the_package_for_tokens_an_older_one_serves():
    session = Session(lambda jar: "exclude=" in jar or jar.startswith("spark-token-provider"))
    assert add_kafka_source(session) == VERSION
    assert session.asked[-1] == "spark-token-provider-kafka-0-10_2.13:4.0.0?transitive=false"


def test_an_older_version_of_the_source_follows():
    session = Session(lambda jar: jar.startswith(f"spark-sql-kafka-0-10_2.13:{FALLBACK}"))
    assert add_kafka_source(session) == FALLBACK


def test_a_source_that_cannot_be_had_is_an_error_that_says_what_to_do():
    with pytest.raises(OptionError, match=rf"{VERSION} or {FALLBACK}\); with its jars at hand"):
        add_kafka_source(Session(lambda jar: False))
