"""When a broker joins the mesh: at its start, or when somebody asks for its own tower."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from broker.clients import Client, batch
from timing import until

from dafka import Broker, Consumer, Producer, Tower
from dafka.broker.interface.errors import BrokerStoppedError


def is_there(broker: Broker) -> bool:
    """Whether the broker has a node on the mesh."""
    return Client(broker).core._presence._node is not None


def test_a_broker_with_a_tower_of_its_own_joins_when_that_is_asked_for(broker: Broker):
    assert not is_there(broker)
    assert isinstance(broker.tower, Tower)
    assert is_there(broker)


def test_a_broker_that_was_given_a_tower_joins_at_once():
    with Tower() as tower, Broker(tower=tower) as broker:
        assert is_there(broker)
        assert broker.tower is tower


def test_a_client_over_tcp_has_no_use_for_the_mesh(broker: Broker):
    client = Client(broker)
    client.create("t")
    client.produce("t", b"one")
    assert client.values("t") == [b"one"]
    assert not is_there(broker)


def test_records_committed_before_are_there_for_nodes_that_join(broker: Broker):
    client = Client(broker)
    for topic in ("t", "gone"):
        client.create(topic)
        client.produce(topic, b"one")
    client.call("delete_topics", ["gone"])
    with Consumer(["t"], offset_reset="earliest", tower=broker.tower) as consumer:
        client.produce("t", b"two")
        assert [next(consumer).value for _ in range(2)] == [b"one", b"two"]


def test_nodes_get_a_copy_of_what_is_in_a_client_s_request(broker: Broker):
    client = Client(broker)
    client.create("t")
    values = [bytes([number]) * 200_000 for number in range(5)]
    with Consumer(["t"], offset_reset="earliest", tower=broker.tower) as consumer:
        for value in values:
            request = bytearray(batch(value))
            client.call("produce", {("t", 0): [memoryview(request)]})
            request.clear()  # which nobody may do while there is a view
        assert [next(consumer).value for _ in values] == values


def test_records_of_native_producers_come_in_from_then_on(broker: Broker):
    client = Client(broker)
    client.create("before")
    with Producer("native", tower=broker.tower) as producer:
        producer.send(b"one")
        producer.flush(100)
        until(lambda: client.call("metadata", ["native"], False).topics["native"].partitions)
        numbers = range(len(client.partitions("native")))
        assert [client.values("native", partition=number) for number in numbers][-1] == [b"one"]


def test_its_metrics_count_records_committed_before_and_after(broker: Broker):
    client = Client(broker)
    client.create("t")
    client.produce("t", b"one", b"two")
    before = broker.metrics()
    client.produce("t", b"three")
    after = broker.metrics()
    assert (before["records_in"], after["records_in"]) == (2, 3)
    assert 0 < before["bytes_in"] < after["bytes_in"]


def test_threads_that_ask_at_once_are_told_of_one_tower(broker: Broker):
    with ThreadPoolExecutor(8) as threads:
        towers = list(threads.map(lambda _: broker.tower, range(32)))
    assert len({id(tower) for tower in towers}) == 1


def test_a_stopped_broker_has_no_tower(tmp_path: Path):
    broker = Broker(tmp_path).start()
    core = Client(broker).core
    broker.stop()
    with pytest.raises(BrokerStoppedError):
        _ = broker.tower
    with pytest.raises(BrokerStoppedError):
        _ = core.node
    with broker.start():
        assert not is_there(broker)
        assert isinstance(broker.tower, Tower)
