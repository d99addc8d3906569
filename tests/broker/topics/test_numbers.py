"""Numbers of partitions, by what is in a broker's folder."""

from __future__ import annotations

from pathlib import Path

from log.messages import ADDRESS

from dafka import Broker
from dafka.broker import connect
from dafka.broker.interface.broker import TopicSpec
from dafka.broker.topics.numbers import partition_numbers
from dafka.log import Log
from dafka.protocol.batch_writer import encode_batch


def test_numbers_are_those_that_clients_know(tmp_path: Path) -> None:
    with Broker(tmp_path) as broker:
        connection = connect(broker.bootstrap_servers)
        connection.call("create_topics", {"orders": TopicSpec(2), "gone": TopicSpec(1)})
        connection.call("create_partitions", {"orders": 3})
        for number in range(3):
            batch = encode_batch([(0, None, b"value", ())] * (number + 1))
            assert connection.call("produce", {("orders", number): [batch]})["orders", number].error is None
        connection.call("delete_topics", ["gone"])
    with Log(tmp_path) as log:
        numbers = partition_numbers(log)
        assert sorted(numbers.values()) == [0, 1, 2]
        for partition in log.partitions():
            assert partition.next_offset == numbers[partition.topic, partition.address] + 1


def test_partitions_of_native_producers_have_numbers_too(tmp_path: Path) -> None:
    with Log(tmp_path) as log:
        log.write([(log.partition(b"raw", ADDRESS), [b"one"])])
        assert partition_numbers(log) == {}  # it is a store's
    with Broker(tmp_path):
        pass  # takes them up
    with Log(tmp_path) as log:
        leaders = {key: number for key, number in partition_numbers(log).items() if key[1] != ADDRESS}
        assert list(leaders.values()) == [0]
        assert partition_numbers(log) == {**leaders, (b"raw", ADDRESS): 1}
