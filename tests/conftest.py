"""Rules for all tests, and the fixtures of the package's own pytest plugin.

pytest finds the plugin by itself where the package is installed; the import is for where it is not.
"""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings
from timing import until

from dafka.log.repeating import forget_repeats
from dafka.mesh import options
from dafka.sockets import listening
from dafka.testing.plugin import (
    dafka_broker,
    dafka_broker_session,
    kafka_consumer_factory,
    kafka_producer,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["dafka_broker", "dafka_broker_session", "kafka_consumer_factory", "kafka_producer"]

# Deadlines and the check for slow examples would measure what else the machine is doing. More examples for
# each property: DAFKA_TEST_EXAMPLES, see .github/CONTRIBUTING.md.
EXAMPLES = int(os.environ.get("DAFKA_TEST_EXAMPLES", "30"))
settings.register_profile(
    "dafka", deadline=None, max_examples=EXAMPLES, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("dafka")

# The tests of the mesh over another transport than the default one: see .github/CONTRIBUTING.md.
options.TRANSPORT = os.environ.get("DAFKA_TEST_TRANSPORT", options.TRANSPORT)

# Ignored in what a shell runs in the background, and inherited: processes of tests are ended with Ctrl-C.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(wrapper=True, tryfirst=True)  # before pytest-xdist looks at the marks, after the shuffling
def pytest_collection_modifyitems(items: list[pytest.Item]) -> Generator[None, object, object]:
    """What uses Spark's session goes to one worker of pytest -n, and may take its time.

    Tests that may take longer than others begin first: at the end all workers have something to do.
    """
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.xdist_group("spark"))
            item.add_marker(pytest.mark.timeout(2000))
    result = yield
    items.sort(key=lambda item: item.get_closest_marker("timeout") is None)
    return result


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> object:
    """The scheduler of ``--dist loadgroup`` is one of ours."""
    if config.getvalue("dist") != "loadgroup":
        return None
    from scheduling import RunScheduling

    return RunScheduling(config, log)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """The collected tests stay until the end: the garbage collector does not go through them, neither while
    they become more and more, which takes a tenth of the time for it, nor later."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.fixture(autouse=True)
def _closed_sockets_are_let_go() -> Iterator[None]:
    """The hub lists its open sockets, for forked children: one that is closed has to leave the list.

    It leaves right behind its closing, in a thread that the test may have overtaken.
    """
    yield
    closed = _closed_sockets()
    try:
        if closed:
            until(lambda: not any(one in listening._open for one in closed), "closed sockets are let go")
    finally:
        for socket in closed:
            listening.forget(socket)


def _closed_sockets() -> list[Any]:
    return [socket for socket in list(listening._open) if socket._sock.fileno() < 0]


@pytest.fixture(autouse=True)
def _first_lines() -> None:
    """What a test logs is the first of its kind, whatever the tests before it have logged."""
    forget_repeats()


@pytest.fixture(scope="session")
def spark_python() -> Iterator[str]:
    """What Spark is told to start its workers with."""
    from spark.workers import interpreter

    with interpreter() as python:
        yield python


@pytest.fixture(scope="session")
def spark(spark_python: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """One Spark session for all tests of the run: starting Java and warming it up takes longest."""
    pytest.importorskip("pyspark", reason="PySpark is not installed; scripts/environment spark does that")
    from spark.starting import JAVA, PLAIN_PLANS

    from dafka.spark import session
    from dafka.spark.java import JavaMissingError

    folder = tmp_path_factory.mktemp("spark")
    conf = {
        **PLAIN_PLANS,
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.local.dir": str(folder / "local"),
        "spark.log.level": "OFF",
        "spark.driver.extraJavaOptions": JAVA,
        "spark.sql.streaming.numRecentProgressUpdates": "1000",
        # How often queries look for records when there were none: by default a hundred times a second.
        "spark.sql.streaming.pollingDelay": "100ms",
        # Seconds that its Python processes may take to connect, on a machine that is busy with others.
        "spark.python.authenticate.socketTimeout": "120s",
    }
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("PYSPARK_PYTHON", spark_python)
            started = session("tests", conf=conf)
    except JavaMissingError as error:
        pytest.skip(str(error))
    yield started
    started.stop()
