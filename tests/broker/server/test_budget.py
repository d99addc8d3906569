"""The memory budget that all connections share."""

from __future__ import annotations

import pytest
from broker.clients import Client, batch
from broker.server.client import WireClient, encoded
from broker.server.samples import produce
from timing import until

from dafka import Broker
from dafka.broker.server import limits


def test_a_large_request_waits_until_others_leave_room(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(limits, "TOTAL_BYTES", 1)
    large = encoded(produce("topic", batch(bytes(500_000))), 9)
    with Broker(listen="127.0.0.1:0") as broker, WireClient(broker) as first, WireClient(broker) as second:
        Client(broker).create("topic")
        first.socket.sendall(large[:200_000])
        until(lambda: broker.metrics()["listener_held_bytes"] > 0)
        second.socket.sendall(large)
        until(lambda: broker.metrics()["listener_bytes_in"] > 100_000)
        first.socket.sendall(large[200_000:])
        for number, wire in enumerate((first, second)):
            answer = wire.receive(produce("topic"), 9, 1)
            assert answer.responses[0].partition_responses[0].base_offset == number
