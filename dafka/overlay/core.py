"""A node of the overlay: its connections and its place among the peers, joined.

Peers of version 2 are nodes of ours: they take part in the routing. Those of version 1 speak libbroker's
protocol: this node is their gateway to the overlay.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from dafka.overlay.filters import Filter, announced
from dafka.overlay.gateway.gateway import Gateway, Say
from dafka.overlay.peering import outputs as peering
from dafka.overlay.peering.handshake import VERSIONS
from dafka.overlay.peering.outputs import NewFilter, PeerDown, PeerUp, Received, ReceivedRouted
from dafka.overlay.peering.peerings import Peerings
from dafka.overlay.routing import outputs as routing
from dafka.overlay.routing.outputs import Deliver, Discovered, Tell, ToLeaf, Unreachable
from dafka.overlay.routing.peer import Peer
from dafka.overlay.wire.envelope import LOCAL, encode_envelope
from dafka.overlay.wire.handshake import WITH_ROUTING, Announcement
from dafka.overlay.wire.routed import DATA
from dafka.protocol.errors import MalformedMessage

Output = (
    peering.Send | peering.Close | peering.Refused | PeerUp | PeerDown | Deliver | Discovered | Unreachable
)


class Core:
    """The node ``me``. ``time`` begins its logical clock, see :mod:`dafka.overlay.routing.flooding`."""

    def __init__(
        self, me: bytes, time: int, prefixes: Iterable[bytes] = (), versions: tuple[int, int] = VERSIONS
    ) -> None:
        self.me = me
        self.peer = Peer(me, time, announced(prefixes, LOCAL))
        self.gateway = Gateway(me, self.peer, passes_on=versions[1] >= WITH_ROUTING)
        self.peerings = Peerings(me, self._announce, versions)
        self.discarded: Counter[str] = Counter()
        """Messages of peers that were not taken, by cause, besides those that the connections count."""
        self._pending: list[Output] = []

    @property
    def filters(self) -> dict[bytes, Filter]:
        """What the known peers want, whether they are direct ones or not."""
        leaves = self.peer.flooding.leaves
        known = self.peer.flooding.table.peers.items()
        return {leaf: leaves.filter(leaf) for leaf in leaves} | {peer: one.filter for peer, one in known}

    def connected(self, now: float, number: int, connector: bool) -> list[Output]:
        """There is a new connection, which this side opened (``connector``) or accepted."""
        return self._carry(self.peerings.connected(now, number, connector))

    def received(self, now: float, number: int, message: bytes) -> list[Output]:
        """A message, without its length."""
        return self._carry(self.peerings.received(now, number, message))

    def malformed(self, now: float, number: int, error: MalformedMessage) -> list[Output]:
        """What arrives on a connection cannot be cut into messages."""
        return self._carry(self.peerings.malformed(now, number, error))

    def disconnected(self, now: float, number: int) -> list[Output]:
        """The connection is gone."""
        return self._carry(self.peerings.disconnected(now, number))

    def unpeer(self, now: float, peer: bytes) -> list[Output]:
        """Say goodbye to a direct peer. Paths over it are gone at once."""
        goodbye = self.peerings.unpeer(now, peer)
        return self._carry(goodbye) + self._carry_routing(self.peer.link_down(peer))

    def shut_down(self, now: float) -> list[Output]:
        """Say goodbye to everybody, and refuse whoever comes."""
        outputs = self._carry(self.peerings.shut_down(now))
        for neighbour in self.peer.flooding.neighbours:
            outputs += self._carry_routing(self.peer.link_down(neighbour))
        return outputs

    def tick(self, now: float) -> list[Output]:
        """To be called a few times a second."""
        outputs = self._carry(self.peerings.tick(now))
        return outputs + self._carry_routing(self.gateway.tick(now))

    def subscribe(self, prefixes: Iterable[bytes]) -> list[Output]:
        """The subscribers of this node want these topics from now on, and no others."""
        outputs = self._carry_routing(self.peer.subscribe(announced(prefixes, LOCAL)))
        return outputs + self._carry_routing(self.gateway.tell())

    def is_subscribed_elsewhere(self, prefix: bytes) -> bool:
        """Whether any other peer has exactly this prefix in its filter."""
        flooding = self.peer.flooding
        return flooding.demand.counts(prefix) > (prefix in flooding.filter)

    def publish(self, topic: bytes, payload: bytes, kind: int = DATA) -> list[Output]:
        """Send to every peer whose filter lets the topic pass."""
        if topic.startswith(LOCAL):
            return []
        return self._carry_routing(self.peer.publish(topic, payload, kind))

    def publish_to(self, receiver: bytes, topic: bytes, payload: bytes, kind: int = DATA) -> list[Output]:
        """Send to one peer, over as many hops as it takes."""
        return self._carry_routing(self.peer.publish_to(receiver, topic, payload, kind))

    def _announce(self, version: int) -> Announcement:
        # A connection may take the place of one whose end is among the outputs that are still to be carried
        # out. The clock must have risen for that end before it is told.
        for neighbour in self.peer.flooding.neighbours:
            if neighbour not in self.peerings.peers:
                outputs = self._carry_routing(self.peer.link_down(neighbour))
                self._pending = [*self._pending, *outputs]
        return self.peer.announcement if version >= WITH_ROUTING else self.gateway.announcement

    def _carry(self, steps: list[peering.Output]) -> list[Output]:
        outputs, self._pending = self._pending, []
        for step in steps:
            if isinstance(step, ReceivedRouted):  # what comes most is looked for first
                outputs += self._hear(step.peer, step.message)
                continue
            match step:
                case PeerUp():
                    outputs += self._up(step)
                case PeerDown(_, peer):
                    outputs.append(step)
                    outputs += self._down(peer)
                case Received(peer, envelope):
                    outputs += self._carry_routing(self.gateway.hear(peer, envelope))
                case NewFilter(peer, filter):
                    outputs += self._carry_routing(self.gateway.wants(peer, filter))
                case _:
                    outputs.append(step)
        return outputs

    def _carry_routing(self, steps: Sequence[routing.Output | Say]) -> list[Output]:
        outputs: list[Output] = []
        for step in steps:
            if isinstance(step, Tell):
                outputs += self._carry(self.peerings.send(step.neighbour, step.octets))
            elif isinstance(step, Say):
                outputs += self._carry(self.peerings.send(step.leaf, encode_envelope(step.envelope)))
            elif isinstance(step, ToLeaf):
                envelope = self.gateway.envelope(step)
                if envelope is not None:
                    outputs += self._carry(self.peerings.send(step.leaf, encode_envelope(envelope)))
            else:
                outputs.append(step)
        return outputs

    def _up(self, up: PeerUp) -> list[Output]:
        if up.version < WITH_ROUTING:
            outputs = self._carry_routing(self.gateway.up(up.peer, up.announced, up.heard))
            found = [one for one in outputs if isinstance(one, Discovered)]
            return [*found, up, *[one for one in outputs if not isinstance(one, Discovered)]]
        return [*self._carry_routing(self.peer.link_up(up.peer, up.announced, up.heard)), up]

    def _down(self, peer: bytes) -> list[Output]:
        if peer in self.gateway:
            return self._carry_routing(self.gateway.down(peer))
        return self._carry_routing(self.peer.link_down(peer))

    def _hear(self, peer: bytes, message: bytes) -> list[Output]:
        try:
            return self._carry_routing(self.peer.receive(peer, message))
        except MalformedMessage as error:
            self.discarded[error.cause] += 1
            return []
