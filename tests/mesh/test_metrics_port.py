"""Where nodes serve their metrics, as it is heard in a mesh."""

from __future__ import annotations

import time

import pytest

from dafka import Broker, Consumer, Producer, Store, Tower
from dafka.mesh.metrics_port import ID, announced
from dafka.mesh.observer import Observer
from dafka.mesh.options import mesh_options


def test_only_an_address_with_a_port_is_taken():
    address = b"0" * 32
    assert announced([ID + address + b":9100"]) == {address: 9100}
    for wrong in (b":0", b":65536", b":", b"", b":x", b":-1", b":999999999999", b"9100"):
        assert announced([ID + address + wrong]) == {}
    assert announced([b"W" + address + b":9100", ID]) == {}


def test_an_address_that_announces_two_ports_is_left_out():
    one, other = b"0" * 32, b"1" * 32
    assert announced([ID + one + b":22", ID + other + b":9100", ID + one + b":9100"]) == {other: 9100}


def test_numbers_that_are_no_ports_are_refused(tmp_path):
    with (
        Tower() as tower,
        Producer("t", tower=tower) as producer,
        Consumer(["t"], tower=tower) as consumer,
        Store(tmp_path, tower=tower) as store,
        Broker() as broker,
    ):
        for node in (producer, consumer, store, broker):
            for wrong in (None, "9090", 0, -1, 65536, 9090.0, float("nan"), True):
                with pytest.raises(ValueError, match="port is a number from 1 to 65535, not"):
                    node.announce_metrics(wrong)


def test_nodes_of_each_kind_tell_their_port_until_they_leave(tmp_path):
    elsewhere = {"beacon_interval": 0.2}  # an endpoint of its own, as in another process
    with (
        Tower() as tower,
        Store(tmp_path / "one", tower=tower, **elsewhere) as store,
        Producer("hello", tower=tower, **elsewhere) as producer,
        Consumer(["hello"], tower=tower, **elsewhere) as consumer,
        Observer([], options=mesh_options(tower)) as observer,
    ):
        for port, node in enumerate((store, producer, consumer), 9100):
            node.announce_metrics(port)

        def ports():
            found = dict(observer.seen().metrics)
            return sorted(found.values()), found

        deadline = time.monotonic() + 100
        while ports()[0] != [9100, 9101, 9102]:
            assert time.monotonic() < deadline, ports()
            time.sleep(0.02)
        found = ports()[1]
        assert found[store.address.encode()] == 9100 and found[producer.address.encode()] == 9101
        producer.announce_metrics(9103)
        store.close()
        while ports()[0] != [9102, 9103]:
            assert time.monotonic() < deadline, ports()
            time.sleep(0.02)
        assert consumer.gaps == []
