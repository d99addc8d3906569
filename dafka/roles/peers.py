"""Who is there: a node's own beacon and the beacons of its peers.

"Each dafka node SHALL publish its presence at regular intervals to the tower(s)." "When a node discovers
another node, it SHALL connect this socket, to the other nodes publisher socket." "A node MAY disconnect its
subscriber socket if the peer has failed to respond within some time." (46/DAFKA, Node Discovery and
Interconnection Model.) As the C nodes do, a node also beacons at once when it hears of a new peer, so that
the two find each other in one round trip and not in one interval.
"""

from __future__ import annotations

from dafka.protocol.beacons import NodeBeacon, TowerBeacon
from dafka.roles.limits import PEERS
from dafka.roles.outputs import Connect, Disconnect, Output


class PeersRole:
    """The peers of one endpoint. Times in seconds."""

    def __init__(
        self, address: bytes, host: bytes, port: int, *, interval: float = 1.0, timeout: float = 4.0
    ) -> None:
        self._beacon = NodeBeacon(address, host, port)
        self._interval = interval
        self._timeout = timeout
        self._next_beacon = 0.0
        self._peers: dict[bytes, tuple[bytes, float]] = {}  # address -> endpoint, last heard

    @property
    def peers(self) -> dict[bytes, bytes]:
        """The endpoint of every known peer, by its address."""
        return {address: endpoint for address, (endpoint, _) in self._peers.items()}

    def start(self, now: float) -> list[Output]:
        """Say who is there: at the beginning, and whenever a tower welcomes a connection."""
        self._next_beacon = now + self._interval
        return [self._beacon]

    def beacon(self, now: float, beacon: TowerBeacon) -> list[Output]:
        """A tower tells of a node, perhaps of this one."""
        if beacon.address == self._beacon.address:
            return []
        known = self._peers.get(beacon.address)
        if known is None and len(self._peers) >= PEERS:
            return []
        self._peers[beacon.address] = (beacon.endpoint, now)
        if known is None:
            return [Connect(beacon.endpoint), *self.start(now)]
        if known[0] != beacon.endpoint:
            return [Disconnect(known[0]), Connect(beacon.endpoint)]
        return []

    def tick(self, now: float) -> list[Output]:
        """Beacon when it is time, and let go of peers that have not been heard of for the timeout."""
        outputs: list[Output] = []
        silent = [address for address, (_, heard) in self._peers.items() if now - heard > self._timeout]
        for address in silent:
            endpoint, _ = self._peers.pop(address)
            outputs.append(Disconnect(endpoint))
        if now >= self._next_beacon:
            outputs += self.start(now)
        return outputs
