"""The same tests against this project's broker and, in the long form, against Apache Kafka."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterator

import pytest
from clients.adapters import CLIENTS
from clients.adapters.client import SECONDS, Client
from clients.servers import APACHE, DAFKA, Server, running
from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec
from timing import until

LONG = "DAFKA_TEST_APACHE_KAFKA"

MakeTopic = Callable[..., str]


def pytest_itemcollected(item: pytest.Item) -> None:
    """One worker of pytest -n has the broker, and a process of Java with it."""
    if "server" in getattr(item, "fixturenames", ()):
        item.add_marker(pytest.mark.xdist_group("clients"))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "server" in metafunc.fixturenames:
        metafunc.parametrize(
            "server",
            [
                DAFKA,
                pytest.param(
                    APACHE,
                    marks=pytest.mark.skipif(
                        not os.environ.get(LONG), reason=f"starts Apache Kafka; set {LONG}=1"
                    ),
                ),
            ],
            indirect=True,
            scope="session",
        )


@pytest.fixture(scope="session")
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    """A broker for all tests of the run; an error in its log fails the run."""
    with running(request.param) as server:
        yield server
    assert server.name != DAFKA or server.errors == []


@pytest.fixture
def servers(server: Server) -> str:
    """Its bootstrap address."""
    return server.bootstrap_servers


@pytest.fixture
def new_topic(servers: str) -> MakeTopic:
    """Makes a topic of a name that no other has: ``new_topic(partitions, **configs)``."""
    admin = AdminClient({"bootstrap.servers": servers})

    def make(partitions: int = 1, **configs: str) -> str:
        name = f"topic-{uuid.uuid4().hex[:12]}"
        settings = {key.replace("_", "."): value for key, value in configs.items()}
        (created,) = admin.create_topics([NewTopic(name, partitions, 1, config=settings)]).values()
        created.result(SECONDS)
        until(lambda: name in admin.list_topics(timeout=SECONDS).topics, name)
        until(lambda: _is_ready(admin, [TopicPartition(name, number) for number in range(partitions)]), name)
        return name

    return make


def _is_ready(admin: AdminClient, partitions: list[TopicPartition]) -> bool:
    """Apache Kafka names partitions before it leads them, and refuses requests for them meanwhile."""
    wanted = dict.fromkeys(partitions, OffsetSpec.latest())
    try:
        for future in admin.list_offsets(wanted, request_timeout=SECONDS).values():
            future.result(SECONDS)
    except KafkaException:
        return False
    return True


@pytest.fixture
def topic(new_topic: MakeTopic) -> str:
    """One of three partitions."""
    return new_topic(3)


@pytest.fixture(params=CLIENTS, ids=lambda client: client.name)
def client(request: pytest.FixtureRequest) -> Client:
    """Each of the clients; skips where one is missing."""
    return available(request.param)


def available(client: Client) -> Client:
    reason = client.missing()
    if reason is not None:
        pytest.skip(reason)
    return client
