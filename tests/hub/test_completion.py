"""Callers that are ended in the midst of a change: it is made in the log and in memory, or in neither."""

from __future__ import annotations

from collections.abc import Callable

import gevent
import pytest
from broker.clients import Client
from timing import until

from dafka import Broker
from dafka.broker.interface.admin import ConfigChange, ConfigOperation, Resource, ResourceType
from dafka.broker.interface.broker import TopicSpec
from dafka.hub.completion import run_to_completion
from dafka.hub.hub import get_hub


def interrupted(client: Client, method: str, *args: object) -> None:
    """Call a method, and end the caller when its change is on its way to the log."""

    def run() -> None:
        caller = gevent.spawn(getattr(client.core, method), *args)
        while not client.core._writer._waiting:
            gevent.sleep(0)
        caller.kill()

    client.connection.hub.run(run)


def retention_of(client: Client, topic: str) -> object:
    resource = Resource(ResourceType.TOPIC, topic)
    (entry,) = client.call("describe_configs", {resource: ["retention.ms"]})[resource].entries
    return entry.value


SET = {Resource(ResourceType.TOPIC, "t"): [ConfigChange("retention.ms", ConfigOperation.SET, "7200000")]}


@pytest.mark.parametrize(
    ("method", "argument", "done"),
    [
        ("create_topics", {"new": TopicSpec()}, lambda client: "new" in topics(client)),
        ("delete_topics", ["t"], lambda client: "t" not in topics(client)),
        ("create_partitions", {"t": 3}, lambda client: len(client.partitions("t")) == 3),
        ("alter_configs", SET, lambda client: retention_of(client, "t") == "7200000"),
    ],
)
def test_a_change_whose_caller_is_ended_is_the_same_before_and_after_a_restart(
    tmp_path, method: str, argument: object, done: Callable[[Client], bool]
):
    with Broker(tmp_path) as broker:
        client = Client(broker)
        client.create("t")
        interrupted(client, method, argument)
        until(lambda: done(client))
    with Broker(tmp_path) as broker:
        assert done(Client(broker))


def topics(client: Client) -> set[str]:
    return set(client.call("metadata", None).topics)


def test_the_caller_gets_what_the_call_returns_or_raises():
    hub = get_hub()
    assert hub.run(run_to_completion, hub, lambda one, *, two: (one, two), 1, two=2) == (1, 2)
    with pytest.raises(KeyError, match="x"):
        hub.run(run_to_completion, hub, {}.__getitem__, "x")
