"""A topic has octet positions, or it is compacted."""

from __future__ import annotations

from typing import Any

import pytest
from broker.clients import Client
from broker.damaged import LARGE
from broker.positions.configuring import ALL_BROKERS, THIS_BROKER, TOPIC, configure, create
from broker.positions.octets import Octets
from kafka.admin import ConfigResource, ConfigResourceType, KafkaAdminClient, NewTopic
from kafka.errors import (
    PolicyViolationError,
)
from timing import until

from dafka import Broker
from dafka.broker.interface.admin import ConfigChange, ConfigOperation, Resource
from dafka.protocol import raw

# -- compaction ---------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", ["compact", "compact,delete"])
def test_a_compacted_topic_has_no_positions(client: Client, policy: str) -> None:
    create(client, cleanup_policy=policy)
    with pytest.raises(PolicyViolationError, match=r"'t' is compacted .* ZPER"):
        Octets(client)
    assert configure(client, TOPIC, cleanup_policy="delete")[0] is None
    assert Octets(client).end == 0


@pytest.mark.parametrize("policy", ["compact", "compact,delete"])
def test_a_topic_with_positions_cannot_become_compacted(client: Client, policy: str) -> None:
    create(client)
    Octets(client)
    error, text = configure(client, TOPIC, cleanup_policy=policy)
    assert error is PolicyViolationError
    assert "'t' cannot be compacted (cleanup.policy)" in text
    assert "ZPER" in text
    assert configure(client, TOPIC, cleanup_policy="delete", retention_ms="5")[0] is None


def test_so_it_is_for_a_change_that_is_only_validated(client: Client) -> None:
    create(client)
    Octets(client)
    changes = {TOPIC: [ConfigChange("cleanup.policy", ConfigOperation.APPEND, "compact")]}
    assert client.call("alter_configs", changes, validate_only=True)[TOPIC].error is PolicyViolationError


def test_a_topic_created_again_may_be_compacted(client: Client) -> None:
    create(client)
    Octets(client)
    client.change("delete_topics", ["t"])
    create(client, cleanup_policy="compact")
    with pytest.raises(PolicyViolationError):
        Octets(client)


@pytest.mark.parametrize("resource", [ALL_BROKERS, THIS_BROKER])
def test_the_default_of_all_topics_cannot_become_compact_either(client: Client, resource: Resource) -> None:
    create(client)
    Octets(client)
    error, text = configure(client, resource, log_cleanup_policy="compact")
    assert error is PolicyViolationError
    assert "topic 't'" in text
    assert "log.cleanup.policy" in text
    assert configure(client, TOPIC, cleanup_policy="delete")[0] is None
    assert configure(client, resource, log_cleanup_policy="compact")[0] is None
    assert configure(client, TOPIC, cleanup_policy=None)[0] is PolicyViolationError


def test_a_default_that_hides_another_one_cannot_be_taken_away(client: Client) -> None:
    assert configure(client, ALL_BROKERS, log_cleanup_policy="compact")[0] is None
    assert configure(client, THIS_BROKER, log_cleanup_policy="delete")[0] is None
    create(client)
    Octets(client)
    assert configure(client, THIS_BROKER, log_cleanup_policy=None)[0] is PolicyViolationError
    assert configure(client, ALL_BROKERS, log_cleanup_policy="delete")[0] is None
    assert configure(client, THIS_BROKER, log_cleanup_policy=None)[0] is None


def test_a_topic_that_is_compacted_by_default_has_no_positions(client: Client) -> None:
    create(client)
    assert configure(client, ALL_BROKERS, log_cleanup_policy="compact")[0] is None
    with pytest.raises(PolicyViolationError):
        Octets(client)


def test_kafka_s_clients_are_told_by_name() -> None:
    with Broker(listen="127.0.0.1:0") as broker:
        client = Client(broker)
        admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)
        try:
            admin.create_topics(
                [NewTopic("t", 1, 1), NewTopic("c", 1, 1, topic_configs={"cleanup.policy": "compact"})]
            )
            Octets(client)
            with pytest.raises(PolicyViolationError):
                Octets(client, "c")
            wanted = ConfigResource(ConfigResourceType.TOPIC, "t", {"cleanup.policy": "compact"})
            (said,) = admin.alter_configs([wanted])["topic"].values()
            assert "ZPER" in str(said)
        finally:
            admin.close()


def test_compaction_that_is_under_way_ends_where_positions_begin(client: Client) -> None:
    """A step that has read its records already must not write them back."""
    create(client, cleanup_policy="compact", min_cleanable_dirty_ratio="0")
    core = client.core
    for number in range(8):
        client.call("produce", {("t", 0): [raw.encode_bulk([[b"k", b"%d" % number + LARGE]], 1000)]})
    core_writer, begun = core._writer, []
    write = core_writer._add

    def add(item: Any) -> Any:
        if item.rewrites and not begun:
            begun.append(True)
            core._topics.get("t").configs["cleanup.policy"] = "delete"
            core._topics.get("t").settings = None
            core.positions.open("t", 0)
        return write(item)

    core_writer._add = add
    client.connection.hub.run(core._log_cleaner.configured)
    until(lambda: begun)
    client.connection.hub.run(core._log_cleaner._cleaner.close)
    octets = Octets(client)
    assert octets.end == sum(2 + 1 + 9 + 1 + len(LARGE) for _ in range(8))
