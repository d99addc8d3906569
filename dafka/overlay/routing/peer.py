"""A peer: it floods subscriptions, publishes along paths that it chooses, and passes on what others publish.

Source routing: a message carries the tree of the hops that it still has to take, and for each whether it is a
receiver. A node delivers to its own subscribers if it is one, and gives each next hop the branch that begins
there. So a message takes finitely many hops in any topology, whatever the nodes on its way believe in. A
leaf, a peer of version 1, is the last hop behind the node that speaks for it.
"""

from __future__ import annotations

from dafka.overlay.filters import Filter
from dafka.overlay.limits import MOST_ROUTES
from dafka.overlay.routing import multipath
from dafka.overlay.routing.flooding import Flooding
from dafka.overlay.routing.outputs import Deliver, Output, Tell, ToLeaf
from dafka.overlay.wire.frames import frame
from dafka.overlay.wire.handshake import Announcement
from dafka.overlay.wire.routed import (
    ADDRESSED,
    DATA,
    Revocation,
    Routed,
    Subscription,
    Withdrawal,
    cargo,
    decode_routed,
    leads_through,
    split_branches,
    way,
)
from dafka.protocol.errors import MalformedMessage

_Route = list[tuple[bytes, int, bytes]]  # the first hops, whether they are receivers, how a message begins


class Peer:
    """The node ``me`` among its peers, direct ones and those behind them."""

    def __init__(self, me: bytes, time: int, filter: Filter = ()) -> None:
        self.me = me
        self.flooding = Flooding(me, time, filter)
        self.lost = 0
        """Branches that could not be taken, because the next hop was gone."""
        self._routes: dict[tuple[bytes, bytes], _Route] = {}  # by topic and publisher
        self._routes_of = -1

    @property
    def peers(self) -> list[bytes]:
        """Everybody who is reachable."""
        return [*self.flooding.table.peers, *self.flooding.leaves]

    def is_reachable(self, peer: bytes) -> bool:
        return peer in self.flooding.table.peers or peer in self.flooding.leaves

    @property
    def announcement(self) -> Announcement:
        return self.flooding.announcement

    def subscribe(self, filter: Filter) -> list[Output]:
        """This node wants these topics from now on, and no others."""
        return self.flooding.subscribe(filter)

    def link_up(self, neighbour: bytes, announced: Announcement, heard: Announcement) -> list[Output]:
        """The handshake with a neighbour is over: what it was told, and what it told."""
        return self.flooding.link_up(neighbour, announced, heard)

    def link_down(self, neighbour: bytes) -> list[Output]:
        """A neighbour is gone."""
        return self.flooding.link_down(neighbour)

    def receive(self, neighbour: bytes, octets: bytes) -> list[Output]:
        """A message of a neighbour. Raises :class:`MalformedMessage`."""
        if not self.flooding.is_neighbour(neighbour):
            return []
        message = decode_routed(octets)
        if isinstance(message, Routed):
            return self._pass_on(message)
        match message:
            case Subscription():
                return self.flooding.hear_subscription(neighbour, message)
            case Withdrawal():
                return self.flooding.hear_withdrawal(neighbour, message)
            case Revocation():
                return self.flooding.hear_revocation(neighbour, message)

    def publish(
        self, topic: bytes, payload: bytes, kind: int = DATA, leaf: bytes | None = None
    ) -> list[Output]:
        """Send to every reachable peer whose filter lets the topic pass.

        ``leaf`` is who publishes, if not this node.
        """
        publisher = self.me if leaf is None else leaf
        route = self._route(topic, publisher)
        return self._begin(route, publisher, topic, payload, kind) if route else []

    def publish_to(
        self, receiver: bytes, topic: bytes, payload: bytes, kind: int = DATA, leaf: bytes | None = None
    ) -> list[Output]:
        """Send to one peer, whatever its filter is. Nothing happens if it is unreachable."""
        hops = (receiver,) if self.flooding.is_leaf(receiver) else self._hops_to(receiver)
        publisher = self.me if leaf is None else leaf
        return [] if hops is None else self._begin(_begin([hops], ADDRESSED), publisher, topic, payload, kind)

    def _begin(
        self, route: _Route, publisher: bytes, topic: bytes, payload: bytes, kind: int
    ) -> list[Output]:
        rest = cargo(kind, publisher, topic, payload)
        outputs: list[Output] = []
        for hop, deliver, begin in route:
            if self.flooding.is_neighbour(hop):
                outputs.append(Tell(hop, frame(begin + rest)))
            else:
                outputs.append(ToLeaf(hop, publisher, kind, topic, payload, deliver == ADDRESSED))
        return outputs

    def _hops_to(self, receiver: bytes) -> multipath.Hops | None:
        peers, speaker = self.flooding.table.peers, receiver
        behind: multipath.Hops = ()
        if receiver not in peers:
            speaker, behind = self.flooding.leaves.speaker(receiver) or receiver, (receiver,)
            if speaker == self.me:
                return behind
        known = peers.get(speaker)
        path = None if known is None else known.best()
        return None if path is None else path.hops + behind

    def _route(self, topic: bytes, publisher: bytes) -> _Route:
        if self._routes_of != self.flooding.changes or len(self._routes) >= MOST_ROUTES:
            self._routes.clear()
            self._routes_of = self.flooding.changes
        route = self._routes.get((topic, publisher))
        if route is None:
            peers = self.flooding.table.peers
            wanting = [peer for peer, known in peers.items() if topic.startswith(known.filter)]
            wanting += [leaf for leaf in self.flooding.leaves.wanting(topic, publisher) if leaf not in peers]
            hops = [self._hops_to(one) for one in wanting]
            route = self._routes[topic, publisher] = _begin([one for one in hops if one is not None])
        return route

    def _pass_on(self, message: Routed) -> list[Output]:
        if message.publisher == self.me or leads_through(message.branches, self.me):
            raise MalformedMessage("loop", "a way that leads through here again")
        outputs: list[Output] = []
        if message.deliver:
            outputs.append(Deliver(message.publisher, message.kind, message.topic, message.payload))
        if message.branches:
            rest = cargo(message.kind, message.publisher, message.topic, message.payload)
            for hop, deliver, branches in split_branches(message.branches):
                if self.flooding.is_neighbour(hop):
                    outputs.append(Tell(hop, frame(way(deliver, branches) + rest)))
                elif deliver and hop != message.publisher and self.flooding.is_leaf(hop):
                    what = message.publisher, message.kind, message.topic, message.payload
                    outputs.append(ToLeaf(hop, *what, deliver == ADDRESSED))
                else:
                    self.lost += 1
        return outputs


def _begin(paths: list[multipath.Hops], receivers: int = True) -> _Route:
    tree = multipath.join(paths, receivers)
    return [
        (hop, node.deliver, way(node.deliver, multipath.encode(node))) for hop, node in tree.branches.items()
    ]
