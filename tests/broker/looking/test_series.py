"""Series of topics, partitions and groups, of a broker in this process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from kafka.structs import OffsetAndMetadata, TopicPartition

from compat.kafka import KafkaConsumer, KafkaProducer
from dafka import Broker
from dafka.broker import Connection, connect
from dafka.broker.interface.broker import TopicSpec
from dafka.broker.looking.series import LEFT_OUT, series_of


@pytest.fixture
def connection() -> Iterator[Connection]:
    with Broker() as broker:
        yield connect(broker.bootstrap_servers)


@pytest.fixture
def filled(connection: Connection) -> Connection:
    """Two topics, and a group that has read three of ten records."""
    connection.call("create_topics", {"orders": TopicSpec(2), "bills": TopicSpec(1)})
    address = ",".join(f"{host}:{port}" for host, port in connection.broker.addresses)  # type: ignore[attr-defined]
    with KafkaProducer(bootstrap_servers=address) as producer:
        for _ in range(10):
            producer.send("orders", b"one", partition=1)
    partition = TopicPartition("orders", 1)
    with closing(KafkaConsumer(bootstrap_servers=address, group_id="billing")) as consumer:
        consumer.commit({partition: OffsetAndMetadata(3, "", -1)})
    connection.call("delete_records", {("orders", 1): 2})
    return connection


def numbers(connection: Any, limit: int = 100) -> dict[str, dict[tuple[str, ...], float]]:
    return {one.name: dict(one.rows) for one in series_of(connection, limit)}


def test_partitions_and_groups_have_the_numbers_that_they_are_at(filled: Connection) -> None:
    found = numbers(filled)
    partition = ("orders", "1")
    assert found["kafka_controller_kafkacontroller_globaltopiccount"] == {(): 2}
    assert found["kafka_server_replicamanager_partitioncount"] == {(): 3}
    assert found["kafka_log_log_logstartoffset"] == {("bills", "0"): 0, ("orders", "0"): 0, partition: 2}
    assert found["kafka_log_log_logendoffset"][partition] == 10
    assert found["kafka_log_log_size"][partition] > 0
    assert found["kafka_consumergroup_current_offset"] == {("billing", *partition): 3}
    assert found["kafka_consumergroup_lag"] == {("billing", *partition): 7}
    assert found["kafka_coordinator_group_groupmetadatamanager_numgroups"] == {("classic", "Empty"): 1}
    assert set(found[LEFT_OUT].values()) == {0}
    (total,), (usable,) = (found[f"dafka_broker_disk_{what}_bytes"].values() for what in ("total", "usable"))
    assert 0 < usable <= total


def test_there_is_a_bound_and_what_is_beyond_it_is_told(filled: Connection) -> None:
    positions = {
        ("orders", number): filled.call("fetch_offsets", "billing")["orders", 1] for number in (0, 1)
    }
    filled.call("commit_offsets", "billing", positions)
    found = numbers(filled, limit=1)
    assert list(found["kafka_log_log_logendoffset"]) == [("bills", "0")]
    assert list(found["kafka_consumergroup_lag"]) == [("billing", "orders", "0")]
    assert found["kafka_server_replicamanager_partitioncount"] == {(): 3}
    assert found[LEFT_OUT] == {("partitions",): 2, ("groups",): 1}


def test_a_topic_that_goes_meanwhile_has_no_series(filled: Connection) -> None:
    class Racing:
        """Deletes the topic as soon as its name is known."""

        def call(self, method: str, *args: Any, **kwargs: Any) -> Any:
            answer = filled.call(method, *args, **kwargs)
            if method == "metadata":
                filled.call("delete_topics", ["orders"])
            return answer

    found = numbers(Racing())
    assert list(found["kafka_log_log_logendoffset"]) == [("bills", "0")]
    assert found["kafka_consumergroup_lag"] == {}


def test_an_empty_broker_has_numbers_too(connection: Connection) -> None:
    assert numbers(connection)["kafka_server_replicamanager_partitioncount"] == {(): 0}
