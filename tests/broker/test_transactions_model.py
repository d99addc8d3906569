"""Interleaved transactions next to a model that is a page long: lists of what was written, and by whom."""

from __future__ import annotations

import random
import shutil
import tempfile

import kafka.errors as errors
import pytest
from broker.clients import Client
from broker.transactional import Producer, everything, fetch, offset_of, visible

from dafka import Broker

PARTITIONS = 3


class Model:
    """Per partition the written records as [producer or None, value, state]; markers are records, too."""

    def __init__(self) -> None:
        self.records: list[list[list[object]]] = [[] for _ in range(PARTITIONS)]
        self.touched: dict[str, set[int]] = {}
        self.offsets: dict[str, int] = {}
        self.offset: int | None = None

    def write(self, partition: int, value: bytes, producer: str | None) -> int:
        self.records[partition].append([producer, value, "open" if producer else "committed"])
        return len(self.records[partition]) - 1

    def end(self, producer: str, commit: bool) -> None:
        for partition in self.touched.pop(producer):
            for record in self.records[partition]:
                if record[0] == producer and record[2] == "open":
                    record[2] = "committed" if commit else "aborted"
            self.records[partition].append([producer, None, "marker"])
        offset = self.offsets.pop(producer, None)
        if commit and offset is not None:
            self.offset = offset

    def stable(self, partition: int) -> int:
        states = [record[2] for record in self.records[partition]]
        return states.index("open") if "open" in states else len(states)

    def committed(self, partition: int, start: int) -> list[object]:
        known = self.records[partition][start : self.stable(partition)]
        return [value for _, value, state in known if state == "committed"]

    def everything(self, partition: int) -> list[object]:
        return [value for _, value, state in self.records[partition] if state != "marker"]


@pytest.mark.parametrize("seed", range(6))
def test_interleaved_transactions_are_what_the_model_says(seed):
    chance = random.Random(seed)
    folder = tempfile.mkdtemp(prefix="dafka-test-")
    broker = Broker(folder).start()
    try:
        client = Client(broker)
        client.create("t", PARTITIONS)
        model = Model()
        producers = {name: Producer(client, name) for name in "abcd"}
        for step in range(250):
            name = chance.choice("abcd")
            producer = producers[name]
            partition = chance.randrange(PARTITIONS)
            value = b"%d" % step
            action = chance.choices(
                ["send", "plain", "commit", "abort", "offset", "init", "again", "restart"],
                [40, 10, 12, 8, 8, 4, 5, 1],
            )[0]
            if action == "send":
                answer = producer.send(value, ("t", partition))
                model.touched.setdefault(name, set()).add(partition)
                assert answer.base_offset == model.write(partition, value, name)
            elif action == "plain":
                answer = client.produce("t", value, partition=partition)
                assert answer.base_offset == model.write(partition, value, None)
            elif action in ("commit", "abort"):
                open_one = name in model.touched
                error = producer.end(action == "commit")
                if open_one:
                    assert error is None
                    model.end(name, action == "commit")
                else:
                    assert error in (None, errors.InvalidTxnStateError)
            elif action == "offset":
                assert producer.send_offset(step) is None
                model.touched.setdefault(name, set())
                model.offsets[name] = step
            elif action == "init":
                producer.init()
                if name in model.touched:
                    model.end(name, False)
            elif action == "again" and name in model.touched and producer.sequences.get(("t", partition)):
                known = [
                    number
                    for number, record in enumerate(model.records[partition])
                    if record[0] == name and record[2] != "marker"
                ]
                if partition in model.touched[name]:
                    producer.sequences["t", partition] -= 1
                    repeated = producer.write(model.records[partition][known[-1]][1], ("t", partition))
                    assert repeated.base_offset == known[-1]
            elif action == "restart":
                broker.stop()
                broker.start()
                client = Client(broker)
                for each in producers.values():
                    each.client = client
            where = chance.randrange(len(model.records[partition]) + 1)
            fetched = fetch(client, where, partition)
            assert fetched.last_stable_offset == model.stable(partition)
            assert visible(fetched) == model.committed(partition, where)
            assert everything(client, partition) == model.everything(partition)
            assert offset_of(client) == model.offset
    finally:
        broker.stop()
        shutil.rmtree(folder)
