"""An idempotent producer of librdkafka whose messages time out while the disk is full."""

from __future__ import annotations

import random
import time
from collections import Counter

import confluent_kafka
import pytest
from broker.clients import Client

from dafka import Broker
from dafka.log import LogWriteError

PARTITIONS = 3


@pytest.mark.timeout(600)
@pytest.mark.parametrize("share", [1.0, 0.7])
def test_nothing_is_stored_twice_nothing_acknowledged_is_lost_and_no_failure_is_stored(
    tmp_path, monkeypatch, share: float
) -> None:
    """``share`` of the rounds fail. A client that gives up some messages of a batch takes a new epoch for the
    others."""
    chance = random.Random(1)
    with Broker(tmp_path, listen="127.0.0.1:0") as broker:
        client = Client(broker)
        client.create("t", PARTITIONS)
        storage = client.core.log._storage
        commit, full = storage.commit, [0.0]

        def sometimes(*rows: object) -> None:
            if chance.random() < full[0]:
                raise LogWriteError(client.core.log.path, "no space")
            commit(*rows)

        monkeypatch.setattr(storage, "commit", sometimes)
        outcomes: dict[bool, set[bytes]] = {True: set(), False: set()}
        settings = {
            "bootstrap.servers": broker.bootstrap_servers,
            "enable.idempotence": True,
            "message.timeout.ms": 2000,
            "retry.backoff.ms": 20,
            "batch.num.messages": 20,
            "log_level": 2,
        }
        producer = confluent_kafka.Producer(settings)
        sent = 0
        for seconds, failing in ((0.5, 0.0), (3.5, share), (0.5, 0.0)):
            full[0] = failing
            until = time.monotonic() + seconds
            while time.monotonic() < until:
                producer.produce(
                    "t",
                    b"%d" % sent,
                    partition=sent % PARTITIONS,
                    on_delivery=lambda error, message: outcomes[error is None].add(message.value()),
                )
                sent += 1
                producer.poll(0.002)
        assert producer.flush(100) == 0
        stored = Counter(
            value for number in range(PARTITIONS) for value in client.values("t", partition=number)
        )
    assert outcomes[False]
    assert sum(map(len, outcomes.values())) == sent
    assert set(stored.values()) == {1}
    assert stored.keys() == outcomes[True]
