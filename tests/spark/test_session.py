"""Spark sessions: small and on loopback by default, and the submitted one under spark-submit."""

from __future__ import annotations

import os
from importlib import import_module
from types import SimpleNamespace

import pytest

module = import_module("dafka.spark.session")  # the package has a function of that name


class Builder:
    """Notes what a session is built with."""

    def __init__(self, given=()):
        self.name = self.master_name = None
        self.options = {}
        self.changed = {}
        context = SimpleNamespace(
            master="local[2]", getConf=lambda: SimpleNamespace(contains=lambda option: option in given)
        )
        self.spark = SimpleNamespace(sparkContext=context, conf=SimpleNamespace(set=self.changed.__setitem__))

    def appName(self, name):
        self.name = name
        return self

    def master(self, name):
        self.master_name = name
        return self

    def config(self, option, value):
        self.options[option] = value
        return self

    def getOrCreate(self):
        return self.spark


@pytest.fixture
def build(monkeypatch):
    """Builds a session, and notes its options."""
    monkeypatch.setattr(module, "find_java", lambda: "/java")
    registered = []
    monkeypatch.setattr(module, "register", registered.append)
    for name in ("JAVA_HOME", "PYSPARK_PYTHON", "SPARK_LOCAL_IP", "PYSPARK_GATEWAY_PORT"):
        monkeypatch.setenv(name, "")  # restored after the test
        monkeypatch.delenv(name)

    def build(*args, given=(), **keywords):
        builder = Builder(given)
        monkeypatch.setattr(module, "SparkSession", SimpleNamespace(builder=builder))
        assert module.session("name", *args, **keywords) is builder.spark
        assert registered == [builder.spark]
        return builder

    return build


def test_by_default_it_is_small_in_this_process_and_on_loopback(build):
    built = build()
    assert (built.name, built.master_name) == ("name", "local[2]")
    assert built.options["spark.driver.bindAddress"] == "127.0.0.1"
    assert built.options["spark.sql.shuffle.partitions"] == "2"
    assert (os.environ["JAVA_HOME"], os.environ["SPARK_LOCAL_IP"]) == ("/java", "127.0.0.1")


def test_a_client_of_a_cluster_is_not_bound_to_loopback(build):
    built = build("spark://cluster:7077")
    assert built.master_name == "spark://cluster:7077"
    assert "spark.driver.bindAddress" not in built.options
    assert "SPARK_LOCAL_IP" not in os.environ


def test_settings_of_the_program_go_before_the_defaults(build):
    built = build(conf={"spark.driver.memory": "4g", "spark.sql.shuffle.partitions": "8"})
    assert (built.options["spark.driver.memory"], built.options["spark.sql.shuffle.partitions"]) == (
        "4g",
        "8",
    )


def test_under_spark_submit_the_session_has_the_master_and_memory_that_were_submitted(build, monkeypatch):
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "5")
    built = build(given=["spark.sql.session.timeZone"])
    assert (built.master_name, built.options) == (None, {})
    assert "JAVA_HOME" not in os.environ
    assert built.changed == {"spark.sql.shuffle.partitions": "2"}  # on this machine, unless it was given
