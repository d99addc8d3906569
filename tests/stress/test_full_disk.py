"""An idempotent producer of librdkafka whose messages time out while the disk is full."""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import confluent_kafka
import pytest
from broker.clients import Client
from timing import until

from dafka import Broker
from dafka.log import LogWriteError

PARTITIONS = 3


class History(NamedTuple):
    """What became of messages of a producer."""

    sent: int
    acknowledged: set[bytes]
    failed: set[bytes]
    stored: Counter[bytes]
    unanswered: int  # requests that the producer has given up before their answers came


@pytest.mark.timeout(900)
@pytest.mark.parametrize("share", [1.0, 0.7])
def test_nothing_is_stored_twice_nothing_acknowledged_is_lost_and_no_failure_is_stored(
    tmp_path: Path, share: float
) -> None:
    """``share`` of the rounds fail. A client that gives up some messages of a batch takes a new epoch for the
    others."""
    for attempt in range(8):
        found = history(tmp_path / str(attempt), share, attempt)
        # A request waits as long as its messages have left. If its answer has not come by then, on a busy
        # machine, the producer cannot know what is stored, and sends the rest again in its new epoch.
        if found.failed and not found.unanswered:
            break
    assert found.failed and not found.unanswered
    assert len(found.acknowledged) + len(found.failed) == found.sent
    assert set(found.stored.values()) == {1}
    assert found.stored.keys() == found.acknowledged


def history(folder: Path, share: float, attempt: int) -> History:
    """A producer writes before, during and after a time in which the disk is full."""
    chance = random.Random(attempt)
    patience = 2.0 * 1.3**attempt
    with Broker(folder, listen="127.0.0.1:0") as broker:
        client = Client(broker)
        client.create("t", PARTITIONS)
        storage = client.core.log._storage
        commit, full = storage.commit, [0.0]

        def sometimes(*rows: object) -> None:
            if chance.random() < full[0]:
                raise LogWriteError(client.core.log.path, "no space")
            commit(*rows)

        storage.commit = sometimes
        outcomes: dict[bool, set[bytes]] = {True: set(), False: set()}
        unanswered: list[int] = []

        def heard(statistics: str) -> None:
            unanswered.append(
                sum(node["req_timeouts"] for node in json.loads(statistics)["brokers"].values())
            )

        settings = {
            "bootstrap.servers": broker.bootstrap_servers,
            "enable.idempotence": True,
            "message.timeout.ms": int(1000 * patience),
            "retry.backoff.ms": 20,
            "batch.num.messages": 20,
            "log_level": 2,
            "statistics.interval.ms": 50,
            "stats_cb": heard,
        }
        producer = confluent_kafka.Producer(settings)
        sent = 0
        for seconds, failing in ((0.5, 0.0), (patience + 1.5, share), (0.5, 0.0)):
            full[0] = failing
            ends = time.monotonic() + seconds
            while time.monotonic() < ends:
                producer.produce(
                    "t",
                    b"%d" % sent,
                    partition=sent % PARTITIONS,
                    on_delivery=lambda error, message: outcomes[error is None].add(message.value()),
                )
                sent += 1
                producer.poll(0.002)
        assert producer.flush(100) == 0
        enough = len(unanswered) + 2  # the first one may have been written before
        until(lambda: producer.poll(0.1) or len(unanswered) >= enough, "no statistics")
        stored = Counter(
            value for number in range(PARTITIONS) for value in client.values("t", partition=number)
        )
    return History(sent, outcomes[True], outcomes[False], stored, unanswered[-1])
