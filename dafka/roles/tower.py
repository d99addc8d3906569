"""The tower's one decision: where the node that sent a beacon can be reached.

"When a tower receives a node beacon it SHALL publish an appropriate tower beacon" (46/DAFKA, Node Discovery
and Presence). A node that does not know its own host leaves it empty; then the address its connection comes
from counts, and the tower's own interface in place of loopback or of no address at all (wire/README).
"""

from __future__ import annotations

from dafka.protocol.beacons import NodeBeacon, TowerBeacon


class TowerRole:
    """``interface``: this machine's address as the other machines know it."""

    def __init__(self, interface: bytes) -> None:
        self._interface = interface

    def receive(self, beacon: NodeBeacon, peer_address: str) -> TowerBeacon:
        """The beacon to publish for a node's beacon that came from ``peer_address`` ("" if unknown)."""
        host = beacon.host
        if not host:
            peer = peer_address.encode()
            host = self._interface if peer in (b"", b"127.0.0.1", b"::1") else peer
        if b":" in host and not host.startswith(b"["):
            host = b"[" + host + b"]"
        return TowerBeacon(beacon.address, b"tcp://%s:%d" % (host, beacon.port))
