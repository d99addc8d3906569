"""The tower: tells every node where the others are. No records pass through it.

"When a tower receives a node beacon it SHALL publish an appropriate tower beacon consisting of 3 message
frames" (46/DAFKA, Node Discovery and Presence). The one decision in it: a node may leave its host empty,
because it does not know how others see it. Then the address its connection comes from counts, and the
tower's own interface in place of loopback or of no address at all: a node on the tower's
machine reaches it through loopback, but nodes elsewhere cannot follow it there.
"""

from __future__ import annotations

import re

from dafka.protocol.beacons import NodeBeacon, TowerBeacon

_LOOPBACK = re.compile(rb"127\.\d+\.\d+\.\d+|::1")
_MAPPED = b"::ffff:"  # how a dual-stack socket shows an IPv4 address
_HOST = re.compile(rb"[A-Za-z0-9._:%\-]+|\[[A-Za-z0-9._:%\-]+\]")


class TowerRole:
    """``interface``: this machine's address as other machines know it."""

    def __init__(self, interface: bytes = b"127.0.0.1") -> None:
        self._interface = interface

    def receive(self, beacon: NodeBeacon, peer_address: str) -> TowerBeacon | None:
        """The message to publish for a beacon that came from ``peer_address`` (empty if unknown).

        None when there is no host that anybody could connect to.
        """
        host = beacon.host
        if not host:
            host = peer_address.encode("ascii", "replace").removeprefix(_MAPPED)
            if not host or _LOOPBACK.fullmatch(host):
                host = self._interface
        if not _HOST.fullmatch(host):
            return None
        if b":" in host and not host.startswith(b"["):
            host = b"[" + host + b"]"
        return TowerBeacon(beacon.address, b"tcp://%s:%d" % (host, beacon.port))
