"""Answers of random octets under the right correlation id: named errors, no hang, nothing that grows."""

from __future__ import annotations

import random
import sys
import time
import tracemalloc
from contextlib import suppress
from typing import Any

import pytest
from broker.remote.fake_broker import Body, FakeCluster
from kafka.errors import KafkaError

from dafka.broker.interface.admin import ConfigChange, Resource
from dafka.broker.interface.broker import CommittedOffset, FetchFrom, JoinRequest, LeavingMember, TopicSpec
from dafka.protocol.batch_writer import encode_batch

PARTITION = ("t", 0)
BATCH = encode_batch([(1000, None, b"v", ())])
OFFSETS = {PARTITION: CommittedOffset(1)}
WHO = ("tx", 1, 0)

CALLS: dict[str, Any] = {
    "metadata": lambda remote: remote.metadata(["t"]),
    "create_topics": lambda remote: remote.create_topics({"n": TopicSpec(1)}),
    "create_partitions": lambda remote: remote.create_partitions({"t": 2}),
    "delete_topics": lambda remote: remote.delete_topics(["t"]),
    "produce": lambda remote: remote.produce({PARTITION: [BATCH]}),
    "fetch": lambda remote: remote.fetch(
        {PARTITION: FetchFrom(0, 1000)}, max_wait=0.05, min_bytes=1, max_bytes=1000
    ),
    "list_offsets": lambda remote: remote.list_offsets({PARTITION: -1}),
    "epoch_ends": lambda remote: remote.epoch_ends({PARTITION: 0}),
    "join_group": lambda remote: remote.join_group("g", JoinRequest("", 1.0, 1.0, "consumer", [])),
    "sync_group": lambda remote: remote.sync_group("g", 1, "m"),
    "heartbeat": lambda remote: remote.heartbeat("g", 1, "m"),
    "leave_group": lambda remote: remote.leave_group("g", [LeavingMember("m")]),
    "describe_groups": lambda remote: remote.describe_groups(["g"]),
    "list_groups": lambda remote: remote.list_groups(),
    "delete_groups": lambda remote: remote.delete_groups(["g"]),
    "commit_offsets": lambda remote: remote.commit_offsets("g", OFFSETS),
    "fetch_offsets": lambda remote: remote.fetch_offsets("g"),
    "delete_offsets": lambda remote: remote.delete_offsets("g", [PARTITION]),
    "describe_configs": lambda remote: remote.describe_configs({Resource(2, "t"): None}),
    "alter_configs": lambda remote: remote.alter_configs({Resource(2, "t"): [ConfigChange("a", 0, "b")]}),
    "delete_records": lambda remote: remote.delete_records({PARTITION: 1}),
    "log_directories": lambda remote: remote.log_directories(["t"]),
    "init_producer_id": lambda remote: remote.init_producer_id("tx", 1.0),
    "add_partitions": lambda remote: remote.add_partitions_to_transaction(*WHO, [PARTITION]),
    "add_offsets": lambda remote: remote.add_offsets_to_transaction(*WHO, "g"),
    "commit_transaction_offsets": lambda remote: remote.commit_transaction_offsets(*WHO, "g", OFFSETS),
    "end_transaction": lambda remote: remote.end_transaction(*WHO, True),
    "describe_producers": lambda remote: remote.describe_producers([PARTITION]),
    "describe_transactions": lambda remote: remote.describe_transactions(["tx"]),
    "list_transactions": lambda remote: remote.list_transactions(),
}


class Garbled(FakeCluster):
    """A cluster whose brokers answer everything but what clients begin with by random octets."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.leaders = {"t": {0: 0}}
        self.random = random.Random(seed)
        answers = self.brokers[0].answers
        kept = {key: answers[key] for key in (3, 10, 18)}
        answers.update(dict.fromkeys(self.brokers[0].versions, self.garbage))
        answers.update(kept)

    def garbage(self, request: Any) -> Body:
        size = self.random.choice([0, 1, 3, 8, 40, 300])
        few = self.random.random() < 0.5  # small numbers get further into a decoder
        values = (0, 0, 0, 1, 2) if few else range(256)
        return Body(bytes(self.random.choice(values) for _ in range(size)))


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch):
    """What is asked again is asked again soon; there is nothing here that needs time to recover."""
    for name, module in [*sys.modules.items()]:
        if name.startswith("dafka.broker.remote.") and hasattr(module, "RETRY_BACKOFF"):
            monkeypatch.setattr(module, "RETRY_BACKOFF", 0.005)


@pytest.mark.parametrize("name", CALLS)
def test_an_answer_that_makes_no_sense_is_an_error_with_a_name(name, remote_to):
    for seed in range(4):
        with Garbled(seed) as cluster:
            if name == "metadata":
                cluster.brokers[0].answers[3] = cluster.garbage
            remote = remote_to(cluster.addresses, request_timeout=2.0)
            started = time.monotonic()
            with suppress(KafkaError):
                CALLS[name](remote)
            assert time.monotonic() - started < 100
            remote.close()


def test_memory_stays_flat(remote_to):
    with Garbled(0) as cluster:
        remote = remote_to(cluster.addresses, request_timeout=2.0)
        produce, list_offsets = CALLS["produce"], CALLS["list_offsets"]
        for _ in range(20):
            produce(remote)
        tracemalloc.start()
        try:
            before = tracemalloc.get_traced_memory()[0]
            for _ in range(100):
                produce(remote)
            list_offsets(remote)
            cluster.brokers[0].requests.clear()
            assert tracemalloc.get_traced_memory()[0] - before < 2_000_000
        finally:
            tracemalloc.stop()
