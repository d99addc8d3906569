"""Several towers at once, each of which may go and come back."""

from __future__ import annotations

from dafka import Consumer, Producer, Tower

QUICK = {"beacon_interval": 0.1, "beacon_timeout": 0.5}


def test_nodes_with_two_towers_go_on_when_one_dies_and_use_it_again_when_it_comes_back():
    """Nodes that share any tower meet, whatever becomes of the others."""
    one, other = Tower(), Tower()
    lost, kept = one.addresses, other.addresses
    # Different settings, or they would share an endpoint and need no tower.
    with (
        other,
        Producer("hello", tower=[one, other], min_stores=0, high_water_mark=1001, **QUICK) as producer,
        Consumer(
            ["hello"], tower=[lost, kept], offset_reset="earliest", high_water_mark=1002, **QUICK
        ) as first,
    ):
        producer.send(b"both towers")
        assert next(first).value == b"both towers"
        one.close()

        producer.send(b"one tower")
        assert next(first).value == b"one tower"
        with Consumer(["hello"], tower=kept, offset_reset="earliest", high_water_mark=1003, **QUICK) as late:
            assert [next(late).value for _ in range(2)] == [b"both towers", b"one tower"]
            # Longer than the timeout after which a silent peer is left.
            assert first.poll(timeout=1.0) == []
            assert first.metrics()["endpoint_peers"] == 2

        with (
            Tower(*lost),
            Consumer(["hello"], tower=lost, offset_reset="earliest", high_water_mark=1004, **QUICK) as back,
        ):
            assert [next(back).value for _ in range(2)] == [b"both towers", b"one tower"]
