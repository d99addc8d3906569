"""Which host a tower tells everybody, for what a node says of itself and where it is seen from."""

from __future__ import annotations

import pytest

from dafka.protocol.beacons import NodeBeacon, TowerBeacon
from dafka.roles.tower import TowerRole

ADDRESS = b"A" * 32
INTERFACE = b"192.0.2.2"


@pytest.mark.parametrize(
    ("host", "peer", "endpoint"),
    [
        (b"192.0.2.7", "192.0.2.9", b"tcp://192.0.2.7:5000"),
        (b"127.0.0.1", "192.0.2.9", b"tcp://127.0.0.1:5000"),
        (b"node.example", "", b"tcp://node.example:5000"),
        (b"", "192.0.2.9", b"tcp://192.0.2.9:5000"),
        (b"", "127.0.0.1", b"tcp://192.0.2.2:5000"),
        (b"", "127.0.1.1", b"tcp://192.0.2.2:5000"),
        (b"", "::1", b"tcp://192.0.2.2:5000"),
        (b"", "", b"tcp://192.0.2.2:5000"),
        (b"", "::ffff:192.0.2.9", b"tcp://192.0.2.9:5000"),
        (b"", "::ffff:127.0.0.1", b"tcp://192.0.2.2:5000"),
        (b"", "2001:db8::1", b"tcp://[2001:db8::1]:5000"),
        (b"[2001:db8::1]", "", b"tcp://[2001:db8::1]:5000"),
    ],
)
def test_the_host_of_a_tower_beacon(host, peer, endpoint):
    beacon = TowerRole(INTERFACE).receive(NodeBeacon(ADDRESS, host, 5000), peer)
    assert beacon == TowerBeacon(ADDRESS, endpoint)


@pytest.mark.parametrize("host", [b"two words", b"a\0b", b"a/b", b"\xff", b"[half", b"*"])
def test_a_host_that_nobody_can_connect_to_is_not_told(host):
    assert TowerRole(INTERFACE).receive(NodeBeacon(ADDRESS, host, 5000), "192.0.2.9") is None
