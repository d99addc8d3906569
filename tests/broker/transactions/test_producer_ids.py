"""Producer ids: each is allotted only once."""

from __future__ import annotations

from broker.clients import Client
from broker.records.machine import Machine

from dafka import Broker


def test_no_producer_id_is_allotted_twice_even_after_restarts(tmp_path):
    seen: set[int] = set()
    for _ in range(3):
        with Broker(tmp_path) as broker:
            client = Client(broker)
            given = {client.call("init_producer_id", None, 60.0).producer_id for _ in range(600)}
        assert len(given) == 600 and not given & seen
        seen |= given


def test_no_producer_id_is_allotted_twice_when_a_power_cut_takes_what_was_noted_of_it(tmp_path, monkeypatch):
    machine = Machine(tmp_path, monkeypatch)
    seen: set[int] = set()
    for run in range(4):
        with Broker(machine.path) as broker:
            client = Client(broker)
            if not run:
                client.create("t")
                client.produce("t", b"value")
            given = {client.call("init_producer_id", None, 60.0).producer_id for _ in range(3)}
        assert len(given) == 3 and not given & seen
        seen |= given
        machine.power_cut()
