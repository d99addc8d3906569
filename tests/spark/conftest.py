"""One Spark session for all tests of it, and a broker that other processes reach for each test."""

from __future__ import annotations

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed; scripts/environment spark does that")

from dafka import Broker
from dafka.spark import session
from dafka.spark.java import JavaMissingError


def pytest_collection_modifyitems(items):
    """What uses the session goes to one worker of pytest -n, and may take its time."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.xdist_group("spark"))
            item.add_marker(pytest.mark.timeout(400))


@pytest.fixture(scope="session")
def spark(tmp_path_factory):
    folder = tmp_path_factory.mktemp("spark")
    conf = {
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.local.dir": str(folder / "local"),
        "spark.log.level": "OFF",
        "spark.sql.streaming.numRecentProgressUpdates": "1000",
    }
    try:
        started = session("tests", conf=conf)
    except JavaMissingError as error:
        pytest.skip(str(error))
    yield started
    started.stop()


@pytest.fixture
def broker():
    with Broker(listen="127.0.0.1:0", default_partitions=3) as broker:
        yield broker
