"""Peers: a node's own beacon, and which other nodes it is connected to.

"Each dafka node SHALL publish its presence at regular intervals to the tower(s)." "When a node discovers
another node, it SHALL connect this socket, to the other nodes publisher socket." "A node MAY disconnect its
subscriber socket if the peer has failed to respond within some time." (46/DAFKA, Node Discovery and
Presence, Interconnection Model.)

A node also beacons at once when it hears of a new peer, as C nodes do, so that the two find each other in
one round trip. A thousand nodes that start together would send a million such beacons; so there is a least
time between two, and one beacon answers all peers that turned up in it.

A tower tells a node its own beacon too. While not even that comes, it is the tower that is gone and not the
peers: silence is measured by the last beacon of anybody, and when a tower is heard again, after its return
or because this process was stopped, everyone's silence starts anew.
"""

from __future__ import annotations

from dafka.protocol.beacons import NodeBeacon, TowerBeacon
from dafka.roles.limits import DEFAULT_LIMITS, Limits
from dafka.roles.outputs import Connect, Disconnect, Output


class PeersRole:
    """The peers of one endpoint.

    ``host`` is empty where only the tower can tell; ``interval`` between beacons and ``timeout`` of silent
    peers in seconds.
    """

    def __init__(
        self,
        address: bytes,
        host: bytes,
        port: int,
        *,
        interval: float = 1.0,
        timeout: float = 4.0,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        self.refused = 0
        """Beacons of peers that the table had no place for, or that came with too many others."""
        self._beacon = NodeBeacon(address, host, port)
        self._interval = interval
        self._timeout = timeout
        self._limits = limits
        self._last_beacon = float("-inf")
        self._next_beacon = float("-inf")
        self._heard_anybody = float("-inf")
        self._newcomers_since = float("-inf")
        self._newcomers = 0  # new peers heard of since then
        self._peers: dict[bytes, tuple[bytes, float]] = {}  # endpoint, last heard; oldest first
        self._users: dict[bytes, int] = {}  # endpoint: peers that are reached there

    @property
    def peers(self) -> dict[bytes, bytes]:
        """The endpoint of every known peer, by its address."""
        return {address: endpoint for address, (endpoint, _) in self._peers.items()}

    def endpoint_of(self, address: bytes) -> bytes | None:
        """The endpoint of a peer."""
        known = self._peers.get(address)
        return None if known is None else known[0]

    def start(self, now: float) -> list[Output]:
        """Say who is here: at the beginning, and whenever a tower welcomes a connection."""
        self._last_beacon = now
        self._next_beacon = now + self._interval
        return [self._beacon]

    def beacon(self, now: float, beacon: TowerBeacon) -> list[Output]:
        """A tower tells where a node is; it may be this one."""
        self._note_tower(now)
        if beacon.address == self._beacon.address:
            return []
        known = self._peers.pop(beacon.address, None)
        if known is None and not self._takes_newcomer(now):
            self.refused += 1
            return []
        self._peers[beacon.address] = (beacon.endpoint, now)
        if known is None:
            return self._join(beacon.endpoint) + self._answer_newcomer(now)
        if known[0] != beacon.endpoint:
            return self._leave(known[0]) + self._join(beacon.endpoint)
        return []

    def tick(self, now: float) -> list[Output]:
        """Beacon when it is time, and let go of peers that have been silent for the timeout."""
        outputs: list[Output] = []
        while self._peers:
            address, (endpoint, heard) = next(iter(self._peers.items()))
            if self._heard_anybody - heard <= self._timeout:
                break
            del self._peers[address]
            outputs += self._leave(endpoint)
        if now >= self._next_beacon:
            outputs += self.start(now)
        return outputs

    def _takes_newcomer(self, now: float) -> bool:
        limits = self._limits
        if now - self._newcomers_since >= limits.newcomers_interval:
            self._newcomers_since, self._newcomers = now, 0
        self._newcomers += 1
        return self._newcomers <= limits.newcomers and len(self._peers) < limits.peers

    def _note_tower(self, now: float) -> None:
        silence = now - self._heard_anybody
        if silence > max(self._timeout / 2, 2 * self._interval):
            self._peers = {address: (endpoint, now) for address, (endpoint, _) in self._peers.items()}
        self._heard_anybody = now

    def _answer_newcomer(self, now: float) -> list[Output]:
        earliest = self._last_beacon + self._limits.beacon_spacing
        if now >= earliest:
            return self.start(now)
        self._next_beacon = min(self._next_beacon, earliest)
        return []

    # A node that comes back has a new address and perhaps the endpoint of its predecessor. ZeroMQ would
    # connect twice, and one Disconnect would cut both off.

    def _join(self, endpoint: bytes) -> list[Output]:
        self._users[endpoint] = self._users.get(endpoint, 0) + 1
        return [Connect(endpoint)] if self._users[endpoint] == 1 else []

    def _leave(self, endpoint: bytes) -> list[Output]:
        self._users[endpoint] -= 1
        if self._users[endpoint]:
            return []
        del self._users[endpoint]
        return [Disconnect(endpoint)]
