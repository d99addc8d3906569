"""The pytest plugin: fixtures for a broker inside the tests. pytest loads it by itself (``pytest11``).

=========================  ===============================================================================
``dafka_broker``           a :class:`~dafka.testing.TestBroker` for this test alone, empty; it listens, so its
                           ``bootstrap_servers`` is for every Kafka client, in any process
``dafka_broker_session``   one for the whole run (for each worker of pytest-xdist): topics stay from test to
                           test, so each test takes names of its own
``kafka_producer``         a ``KafkaProducer`` of ``dafka_broker``, flushed and closed after the test
``kafka_consumer_factory`` makes ``KafkaConsumer`` objects of ``dafka_broker``: its arguments are theirs;
                           they are closed after the test, before the broker stops
``dafka_chaos``            a :func:`~dafka.testing.chaos` broker for this test alone; the test runs with
                           several seeds, see :mod:`dafka.testing.seeds`
=========================  ===============================================================================

Every worker of pytest-xdist is a process with brokers of its own, on ports and in folders of their own, so
``pytest -n auto`` needs nothing.

Nothing but pytest is imported here: gevent, ZeroMQ and kafka-python come with the first fixture that is used.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from compat.kafka import KafkaConsumer, KafkaProducer
    from dafka.testing.broker import TestBroker
    from dafka.testing.torture.broker import chaos

CLOSE_TIMEOUT = 30.0  # seconds that a producer may take to send what the test left in it

CONSUMER_TIMEOUT_MS = 5000

# kafka-python 3.0 reads its messages in a way that Python 3.11 and 3.12 warn of: 218 warnings in each run.
_KAFKA_PYTHONS = (
    r"ignore:read_text is deprecated:DeprecationWarning:kafka\.",
    r"ignore:open_text is deprecated:DeprecationWarning:importlib\.resources\.",
)

_FOLDER = pytest.StashKey[str]()  # in which workers of pytest-xdist tell each other what failed


@pytest.fixture
def dafka_broker() -> Iterator[TestBroker]:
    """A Kafka broker for this test alone, empty: ``.bootstrap_servers`` is its address."""
    from dafka.testing.broker import TestBroker

    with TestBroker() as broker:
        yield broker


@pytest.fixture(scope="session")
def dafka_broker_session() -> Iterator[TestBroker]:
    """A Kafka broker for the whole run; topics stay from test to test."""
    from dafka.testing.broker import TestBroker

    with TestBroker() as broker:
        yield broker


@pytest.fixture
def kafka_producer(dafka_broker: TestBroker) -> Iterator[KafkaProducer]:
    """A KafkaProducer of ``dafka_broker`` with kafka-python's defaults."""
    from compat.kafka import KafkaProducer

    producer = KafkaProducer(bootstrap_servers=dafka_broker.bootstrap_servers)
    yield producer
    producer.close(CLOSE_TIMEOUT)


@pytest.fixture
def kafka_consumer_factory(dafka_broker: TestBroker) -> Iterator[Callable[..., KafkaConsumer]]:
    """Makes KafkaConsumers of ``dafka_broker``: ``kafka_consumer_factory("orders", group_id="billing")``.

    Two defaults are for tests: they start at the first record (``auto_offset_reset="earliest"``), and
    iterating ends when nothing has come for five seconds (``consumer_timeout_ms=5000``), so that a test
    whose record never comes fails instead of hanging.
    """
    from compat.kafka import KafkaConsumer

    with ExitStack() as consumers:

        def make(*topics: str, **config: Any) -> KafkaConsumer:
            config = {
                "bootstrap_servers": dafka_broker.bootstrap_servers,
                "auto_offset_reset": "earliest",
                "consumer_timeout_ms": CONSUMER_TIMEOUT_MS,
                **config,
            }
            consumer = KafkaConsumer(*topics, **config)
            consumers.callback(consumer.close)
            return consumer

        yield make


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Have a test that fails tell where a browser shows its brokers, if one does."""
    yield
    module = sys.modules.get("dafka.testing.broker")
    for broker in () if module is None else list(module.with_console):
        if broker.running:
            item.add_report_section("call", "dafka console", broker.console)


# -- chaos ------------------------------------------------------------------------------------------


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("dafka", "a Kafka that misbehaves (dafka.testing)")
    group.addoption(
        "--dafka-chaos-seeds",
        type=int,
        metavar="N",
        help="run each test with dafka_chaos with the seeds 0 to N - 1 (10)",
    )
    group.addoption(
        "--dafka-chaos-seed", type=int, metavar="SEED", help="run each test with dafka_chaos with this one"
    )
    group.addoption(
        "--dafka-chaos-shrink",
        action="store_true",
        help="run a test that failed again, with fewer and fewer faults, and print those that are enough",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "dafka_chaos(level=, rate=, weights=, plan=): what the broker of dafka_chaos does; with a "
        "plan, a list of Fault, the test runs once",
    )
    _filter_warnings(config)  # for those who name the plugin in a conftest


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> Iterator[None]:
    """Filter before conftests are loaded, around pytest's own wrapper: a conftest may import kafka."""
    _filter_warnings(early_config)
    yield


def _filter_warnings(config: pytest.Config) -> None:
    for line in _KAFKA_PYTHONS:
        if line not in config.getini("filterwarnings"):
            config.addinivalue_line("filterwarnings", line)


@pytest.fixture
def dafka_chaos(request: pytest.FixtureRequest) -> Iterator[chaos]:
    """A broker that misbehaves by a seed, for this test alone; the test runs with several seeds."""
    from dafka.testing import seeds

    with seeds.broker_of(request.node, getattr(request, "param", None)) as broker:
        yield broker


def _is_chaotic(item: pytest.Item) -> bool:
    return "dafka_chaos" in getattr(item, "fixturenames", ())


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "dafka_chaos" in metafunc.fixturenames:
        from dafka.testing import seeds

        seeds.parametrize(metafunc)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    if not _is_chaotic(item):
        return None
    from dafka.testing import seeds

    seeds.run(item, nextitem)
    return True


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    if _is_chaotic(item):
        from dafka.testing import seeds

        seeds.skip_after_failure(item)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[Any]) -> None:
    if _is_chaotic(item):
        from dafka.testing import seeds

        seeds.note_error(item, call)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Called in the process that distributes tests, once for each worker of pytest-xdist."""
    config = node.config
    if _FOLDER not in config.stash:
        import shutil
        from tempfile import gettempdir
        from uuid import uuid4

        config.stash[_FOLDER] = folder = f"{gettempdir()}/dafka-chaos-{uuid4().hex}"
        config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))
    node.workerinput["dafka_chaos"] = config.stash[_FOLDER]
