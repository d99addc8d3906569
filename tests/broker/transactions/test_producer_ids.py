"""Producer ids: each is allotted only once."""

from __future__ import annotations

from broker.clients import Client

from dafka import Broker


def test_no_producer_id_is_allotted_twice_even_after_restarts(tmp_path):
    seen: set[int] = set()
    for _ in range(3):
        with Broker(tmp_path) as broker:
            client = Client(broker)
            given = {client.call("init_producer_id", None, 60.0).producer_id for _ in range(600)}
        assert len(given) == 600 and not given & seen
        seen |= given
