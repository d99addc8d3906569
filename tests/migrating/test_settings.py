"""dafka migrate takes over every setting that the destination takes, and names the others."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kafka.errors import InvalidConfigurationError

from dafka import Broker
from dafka.broker import connect
from dafka.broker.interface.broker import TopicSpec
from dafka.broker.interface.outcome import Outcome
from dafka.migrating.checkpoint import Checkpoint
from dafka.migrating.servers import Side
from dafka.migrating.settings import finish, settings_of


class Picky:
    """A connection to a broker that refuses some settings, and with them all that come beside them."""

    def __init__(self, connection: Any, refused: set[str]) -> None:
        self._connection = connection
        self._refused = refused

    def call(self, method: str, *args: Any, **kwargs: Any) -> Any:
        if method == "alter_configs":
            for resource, changes in args[0].items():
                unknown = [change.name for change in changes if change.name in self._refused]
                if unknown:
                    return {resource: Outcome(InvalidConfigurationError, f"{unknown[0]} is unknown here")}
        return self._connection.call(method, *args, **kwargs)


@pytest.fixture
def source() -> Iterator[Side]:
    with Broker() as broker:
        yield Side("source", connect(broker.bootstrap_servers), "S")


@pytest.fixture
def destination() -> Iterator[Side]:
    with Broker() as broker:
        yield Side("destination", connect(broker.bootstrap_servers), "D")


@pytest.fixture
def checkpoint(tmp_path: Path) -> Iterator[Checkpoint]:
    checkpoint = Checkpoint(str(tmp_path / "checkpoint"), "S", "D")
    checkpoint.begin_topic("t", created=True)
    yield checkpoint
    checkpoint.close()


def create(side: Side, configs: dict[str, str]) -> None:
    assert side.connection.call("create_topics", {"t": TopicSpec(1, configs)})["t"].error is None


SETTINGS = {
    "compression.zstd.level": "7",
    "remote.log.copy.disable": "true",
    "message.timestamp.difference.max.ms": "10000",
    "retention.ms": "60000",
    "unclean.leader.election.enable": "true",
}


def test_every_setting_is_taken_over_in_place_of_those_of_the_copying(source, destination, checkpoint):
    create(source, SETTINGS)
    create(destination, {"cleanup.policy": "compact"})
    assert finish(source, destination, checkpoint, ["t"]) == []
    assert settings_of(destination, ["t"]) == {"t": SETTINGS}


def test_a_setting_that_the_destination_refuses_is_named_and_the_others_are_taken_over(
    source, destination, checkpoint
):
    create(source, SETTINGS)
    create(destination, {"cleanup.policy": "compact"})
    refused = {"compression.zstd.level", "retention.ms"}
    picky = destination._replace(connection=Picky(destination.connection, refused))
    assert finish(source, picky, checkpoint, ["t"]) == [
        "t: compression.zstd.level=7: compression.zstd.level is unknown here",
        "t: retention.ms=60000: retention.ms is unknown here",
    ]
    taken = {key: value for key, value in SETTINGS.items() if key not in refused}
    assert settings_of(destination, ["t"]) == {"t": taken}


def test_settings_about_the_sources_replicas_are_named(source, destination, checkpoint):
    create(source, {"min.insync.replicas": "2", "retention.ms": "60000"})
    create(destination, {})
    assert finish(source, destination, checkpoint, ["t"]) == [
        "t: min.insync.replicas=2: it is about replicas, which are not copied"
    ]
    assert settings_of(destination, ["t"]) == {"t": {"retention.ms": "60000"}}


def test_a_topic_that_was_there_before_keeps_its_own_settings(source, destination, checkpoint):
    checkpoint.begin_topic("t", created=False)
    create(source, SETTINGS)
    create(destination, {"retention.ms": "5"})
    assert finish(source, destination, checkpoint, ["t"]) == []
    assert settings_of(destination, ["t"]) == {"t": {"retention.ms": "5"}}
