"""Series of topics, partitions and groups, of a broker in this process."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from typing import Any
from uuid import UUID

import pytest
from kafka.structs import OffsetAndMetadata, TopicPartition

from compat.kafka import KafkaConsumer, KafkaProducer
from dafka import Broker
from dafka.broker import Connection, connect
from dafka.broker.interface.groups import CommittedOffset, GroupType, ListedGroup
from dafka.broker.interface.records import ListedOffset
from dafka.broker.interface.topics import Metadata, PartitionMetadata, TopicMetadata, TopicSpec
from dafka.broker.looking.series import GROUPS, LEFT_OUT, ROWS, Series, SeriesCache, series_of


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


def test_the_cost_of_many_groups_and_partitions_has_a_bound() -> None:
    class Large:
        """10 000 groups, of which the first half keeps no offsets, and 100 000 partitions."""

        def __init__(self) -> None:
            self.calls: Counter[str] = Counter()
            self.asked_for: list[int] = []

        def call(self, method: str, *args: Any, **kwargs: Any) -> Any:
            self.calls[method] += 1
            if method == "metadata":
                partitions = [PartitionMetadata(number, "", True) for number in range(1000)]
                names = [f"t{number:03}" for number in range(100)]
                return Metadata(
                    "it", 0, [], {n: TopicMetadata(n, UUID(int=1), None, partitions) for n in names}
                )
            if method == "list_groups":
                return [
                    ListedGroup(f"g{n:05}", "consumer", "Empty", GroupType.CLASSIC) for n in range(10_000)
                ]
            if method == "fetch_offsets":
                return {} if args[0] < "g05000" else {("t000", 0): CommittedOffset(1)}
            if method == "log_directories":
                assert len(args[0]) <= 2
                return []
            assert method == "list_offsets"
            self.asked_for.append(len(args[0]))
            return {key: ListedOffset(None, 1) for key in args[0]}

    large = Large()
    found = numbers(large, ROWS)
    assert large.calls["fetch_offsets"] == GROUPS and max(large.asked_for) <= ROWS
    assert sum(large.calls.values()) < GROUPS + 10
    assert found["kafka_server_replicamanager_partitioncount"] == {(): 100_000}
    assert found[LEFT_OUT] == {("partitions",): 100_000 - ROWS, ("groups",): 10_000 - GROUPS}


def test_however_many_ask_no_more_than_a_twentieth_of_the_time_goes_into_it() -> None:
    now, found = 0.0, 0

    def find() -> list[Series]:
        nonlocal now, found
        now += 2.0
        found += 1
        return [Series("number", "", (), [((), found)])]

    cache = SeriesCache(find, lambda: now)
    while now < 400:
        (series,) = cache()
        assert series.rows == [((), found)]
        now += 0.25
    assert found == 10


def test_numbers_are_found_again_in_time_after_a_broker_was_slow_once() -> None:
    now, found = 0.0, 0

    def find() -> list[Series]:
        nonlocal now, found
        now += 30.0 if not found else 0.01
        found += 1
        return [Series("number", "", (), [((), found)])]

    cache = SeriesCache(find, lambda: now)
    cache()
    now += 61.0
    (series,) = cache()
    assert series.rows == [((), 2)]


def test_series_found_quickly_are_a_second_old_at_most() -> None:
    now, found = 0.0, 0

    def find() -> list[Series]:
        nonlocal found
        found += 1
        return []

    cache = SeriesCache(find, lambda: now)
    for later in (0.0, 0.9, 1.0, 1.5, 2.0):
        now = later
        cache()
    assert found == 3


def test_an_error_is_told_and_the_next_one_asks_again() -> None:
    answers: list[Any] = [ValueError("not now"), []]

    def find() -> list[Series]:
        answer = answers.pop(0)
        if isinstance(answer, ValueError):
            raise answer
        return list(answer)

    cache = SeriesCache(find)
    with pytest.raises(ValueError, match="not now"):
        cache()
    assert cache() == []
