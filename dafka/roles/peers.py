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

Anybody may send beacons of nodes that there are not. Connecting to each of them again and again would take
more than what the others need. So few endpoints are tried at a time at which nobody has answered yet, and
those that have been tried for a while make room. A peer that was reached and let go, because its beacons were
lost among too many others, comes back at once.

The port of a node that has died may be the next one's of another mesh, whose records have no place in this
one: C nodes bind the first port that is free. So who was lost is connected to again when a tower has told of
it since then; while no tower is heard, at any time. The beacon of a successor on the port may come before the
loss is noticed, so its first one counts from the time on when who was lost was connected to.
"""

from __future__ import annotations

from dafka.protocol.beacons import NodeBeacon, TowerBeacon
from dafka.roles.limits import DEFAULT_LIMITS, Limits
from dafka.roles.outputs import Connect, Disconnect, Output


class PeersRole:
    """The peers of one endpoint.

    ``host`` is empty where only the tower can tell; ``interval`` between beacons and ``timeout`` of silent
    peers in seconds; ``tells_reached``: whether :meth:`reached` is called. If it is not, nobody counts as
    unreached, nor as reached.
    """

    def __init__(
        self,
        address: bytes,
        host: bytes,
        port: int,
        *,
        interval: float = 1.0,
        timeout: float = 4.0,
        tells_reached: bool = True,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        self.refused = 0
        """Beacons of peers that the table had no place for, or that came with too many others."""
        self._beacon = NodeBeacon(address, host, port)
        self._interval = interval
        self._timeout = timeout
        self._tells_reached = tells_reached
        self._limits = limits
        self._last_beacon = float("-inf")
        self._next_beacon = float("-inf")
        self._heard_anybody = float("-inf")
        self._newcomers_since = float("-inf")
        self._newcomers = 0  # new peers heard of since then
        self._peers: dict[bytes, tuple[bytes, float]] = {}  # endpoint, last heard; oldest first
        self._users: dict[bytes, int] = {}  # endpoint: peers that are to be reached there
        self._told: dict[bytes, float] = {}  # endpoint in use: when a tower has told of it last
        self._joined: dict[bytes, float] = {}  # endpoint in use: when its last peer turned up
        self._unreached: dict[bytes, float] = {}  # endpoint: since when nobody answers there; oldest first
        self._left: dict[bytes, None] = {}  # endpoints that were reached and let go; oldest first

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
        if known is not None and known[0] == beacon.endpoint:
            self._peers[beacon.address] = (beacon.endpoint, now)
            self._told[beacon.endpoint] = now
            return []
        outputs = self._make_room(now, beacon.endpoint)
        if outputs is None:
            self.refused += 1
            if known is not None:  # it has moved, and is looked for there at a later beacon
                self._peers[beacon.address] = (known[0], now)
            return []
        self._peers[beacon.address] = (beacon.endpoint, now)
        if known is not None:
            outputs += self._leave(known[0])
        outputs += self._join(now, beacon.endpoint)
        return outputs if known is not None else outputs + self._answer_newcomer(now)

    def reached(self, endpoint: bytes) -> None:
        """A connection to this endpoint of a peer was made."""
        self._unreached.pop(endpoint, None)

    def expected(self, now: float, endpoint: bytes, began: float, lost: float) -> bool:
        """Whether an endpoint is to be connected to again that was lost, or not reached, at the time
        ``lost``, by the attempt of the time ``began``."""
        if self._is_silence(now - self._heard_anybody):
            return True
        return endpoint in self._users and (self._told[endpoint] > lost or self._joined[endpoint] > began)

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

    def _make_room(self, now: float, endpoint: bytes) -> list[Output] | None:
        """Make room for another peer; None if there is none for now."""
        limits = self._limits
        if len(self._peers) >= limits.peers:
            return None
        if endpoint in self._left:
            return []
        if now - self._newcomers_since >= limits.newcomers_interval:
            self._newcomers_since, self._newcomers = now, 0
        self._newcomers += 1
        if self._newcomers > limits.newcomers:
            return None
        if endpoint in self._users or len(self._unreached) < limits.unreached:
            return []
        oldest, since = next(iter(self._unreached.items()))
        if now - since < limits.unreached_least:
            return None
        addresses = [address for address, (known, _) in self._peers.items() if known == oldest]
        for address in addresses:
            del self._peers[address]
        return [output for _ in addresses for output in self._leave(oldest)]

    def _note_tower(self, now: float) -> None:
        if self._is_silence(now - self._heard_anybody):
            self._peers = {address: (endpoint, now) for address, (endpoint, _) in self._peers.items()}
        self._heard_anybody = now

    def _is_silence(self, seconds: float) -> bool:
        """Whether towers that say nothing for so long are gone."""
        return seconds > max(self._timeout / 2, 2 * self._interval)

    def _answer_newcomer(self, now: float) -> list[Output]:
        earliest = self._last_beacon + self._limits.beacon_spacing
        if now >= earliest:
            return self.start(now)
        self._next_beacon = min(self._next_beacon, earliest)
        return []

    # A node that comes back has a new address and perhaps the endpoint of its predecessor. ZeroMQ would
    # connect twice, and one Disconnect would cut both off.

    def _join(self, now: float, endpoint: bytes) -> list[Output]:
        self._users[endpoint] = self._users.get(endpoint, 0) + 1
        self._told[endpoint] = self._joined[endpoint] = now
        if self._users[endpoint] > 1:
            return []
        if self._tells_reached:
            self._unreached[endpoint] = now
        self._left.pop(endpoint, None)
        return [Connect(endpoint)]

    def _leave(self, endpoint: bytes) -> list[Output]:
        self._users[endpoint] -= 1
        if self._users[endpoint]:
            return []
        del self._users[endpoint], self._told[endpoint], self._joined[endpoint]
        if self._unreached.pop(endpoint, None) is None and self._tells_reached:
            self._left[endpoint] = None
            if len(self._left) > self._limits.peers:
                del self._left[next(iter(self._left))]
        return [Disconnect(endpoint)]
