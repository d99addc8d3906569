"""A peer: it floods subscriptions, publishes along paths that it chooses, and passes on what others publish.

Source routing: a message carries the tree of the hops that it still has to take, and for each whether it is a
receiver. A node delivers to its own subscribers if it is one, and gives each next hop the branch that begins
there. So a message takes finitely many hops in any topology, whatever the nodes on its way believe in. A
leaf, a peer of version 1, is the last hop behind the node that speaks for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from dafka.overlay.filters import Filter
from dafka.overlay.limits import MOST_ROUTES
from dafka.overlay.routing import multipath
from dafka.overlay.routing.flooding import Flooding
from dafka.overlay.routing.outputs import Deliver, DeliverMany, Output, Relay, Tell, ToLeaf
from dafka.overlay.wire.frames import LENGTH, Run
from dafka.overlay.wire.handshake import Announcement
from dafka.overlay.wire.marks import has_room
from dafka.overlay.wire.routed import (
    ADDRESSED,
    DATA,
    Inquiry,
    Revocation,
    Routed,
    Subscription,
    Withdrawal,
    cargo,
    decode_routed,
    height_of,
    leads_through,
    split_branches,
    way,
)
from dafka.protocol.errors import MalformedMessage

_pack = LENGTH.pack

_Route = list[tuple[bytes, int, bytes, int]]
"""First hops, whether they are receivers, how a message begins there, and how far it goes on behind. A hop
occurs again when there are too many receivers behind it for one message."""


class Peer:
    """The node ``me`` among its peers, direct ones and those behind them."""

    def __init__(self, me: bytes, time: int, filter: Filter = ()) -> None:
        self.me = me
        self.flooding = Flooding(me, time, filter)
        self.lost = 0
        """Branches that could not be taken, because the next hop was gone."""
        self._routes: dict[tuple[bytes, bytes, bool], _Route] = {}  # see _route
        self._routes_of = -1
        self._heights: dict[bytes, int] = {}

    @property
    def peers(self) -> list[bytes]:
        """All reachable peers."""
        known = self.flooding.table.peers.items()
        return [*[peer for peer, one in known if one.paths], *self.flooding.leaves]

    def is_reachable(self, peer: bytes) -> bool:
        known = self.flooding.table.peers.get(peer)
        return (known is not None and bool(known.paths)) or peer in self.flooding.leaves

    @property
    def announcement(self) -> Announcement:
        return self.flooding.announcement

    def subscribe(self, filter: Filter) -> list[Output]:
        """This node wants these topics from now on, and no others."""
        return self.flooding.subscribe(filter)

    def link_up(self, neighbour: bytes, announced: Announcement, heard: Announcement) -> list[Output]:
        """The handshake with a neighbour is over, with the announcements that it was told and that it
        told."""
        return self.flooding.link_up(neighbour, announced, heard)

    def link_down(self, neighbour: bytes) -> list[Output]:
        """A neighbour is gone."""
        return self.flooding.link_down(neighbour)

    def leave(self) -> list[Output]:
        """This node has said goodbye to all neighbours, and tells them nothing more."""
        return self.flooding.leave()

    def receive(self, neighbour: bytes, octets: bytes) -> list[Output]:
        """A message of a neighbour. Raises :class:`MalformedMessage`."""
        if not self.flooding.is_neighbour(neighbour):
            return []
        message = decode_routed(octets)
        if isinstance(message, Routed):
            return self.pass_on(message, [message.payload])
        match message:
            case Subscription():
                return self.flooding.hear_subscription(neighbour, message)
            case Withdrawal():
                return self.flooding.hear_withdrawal(neighbour, message)
            case Revocation():
                return self.flooding.hear_revocation(neighbour, message)
            case Inquiry():
                return self.flooding.hear_inquiry(neighbour, message)

    def publish(
        self, topic: bytes, payload: bytes, kind: int = DATA, leaf: bytes | None = None
    ) -> list[Output]:
        """Send to every reachable peer whose filter lets the topic pass.

        ``leaf`` is who publishes, if not this node.
        """
        return self.publish_many(topic, [payload], kind, leaf)

    def publish_many(
        self, topic: bytes, payloads: list[bytes], kind: int = DATA, leaf: bytes | None = None
    ) -> list[Output]:
        """Several messages on one topic."""
        publisher = self.me if leaf is None else leaf
        if not self.flooding.leaves.islands:
            route = self._route(topic, publisher)
            return self._send(route, publisher, topic, payloads, kind) if route else []
        outputs: list[Output] = []
        for is_passed_on, run in groupby(payloads, has_room if kind == DATA else _never):
            route = self._route(topic, publisher, is_passed_on)
            outputs += self._send(route, publisher, topic, list(run), kind) if route else []
        return outputs

    def first_hops(self, topic: bytes) -> Iterator[tuple[bytes, int]]:
        """Which neighbours and leaves a message on this topic goes to, and its height there."""
        return ((hop, height) for hop, _, _, height in self._route(topic, self.me))

    def fan_out(self, topic: bytes) -> int:
        """How many neighbours and leaves a message on this topic goes to."""
        return len(self._route(topic, self.me))

    def is_wanted(self, topic: bytes, peer: bytes | None = None) -> bool:
        """Whether somebody gets what this node publishes on a topic; ``peer``: whether that one does."""
        if peer is None:
            return bool(self._route(topic, self.me))
        known = self.flooding.table.peers.get(peer)
        leaves = self.flooding.leaves
        filter = known.filter if known is not None else leaves.filter(peer) if peer in leaves else ()
        return topic.startswith(filter) and self._hops_to(peer) is not None

    def height(self, branches: bytes) -> int:
        """How many hops a way has, at most. Raises :class:`MalformedMessage`."""
        if not branches:
            return 0
        height = self._heights.get(branches)
        if height is None:
            if len(self._heights) >= MOST_ROUTES:
                self._heights.clear()
            height = self._heights[branches] = height_of(branches)
        return height

    def publish_to(
        self, receiver: bytes, topic: bytes, payload: bytes, kind: int = DATA, leaf: bytes | None = None
    ) -> list[Output]:
        """Send to one peer, whatever its filter is. Nothing happens if it is unreachable."""
        hops = (receiver,) if self.flooding.is_leaf(receiver) else self._hops_to(receiver)
        publisher = self.me if leaf is None else leaf
        if hops is None:
            return []
        return self._send(_begin([hops], ADDRESSED), publisher, topic, [payload], kind)

    def _send(
        self, route: _Route, publisher: bytes, topic: bytes, payloads: list[bytes], kind: int
    ) -> list[Output]:
        rest = cargo(kind, publisher, topic, b"")
        outputs: list[Output] = []
        runs: dict[bytes, Run] = {}  # neighbours behind whom a message goes the same way get the same octets
        for hop, deliver, begin, height in route:
            if not self.flooding.is_neighbour(hop):
                one = deliver == ADDRESSED
                outputs += [ToLeaf(hop, publisher, kind, topic, payload, one) for payload in payloads]
                continue
            run = runs.get(begin)
            if run is None:
                head = begin + rest
                size = len(head)
                run = Run([_pack(size + len(payload)) + head + payload for payload in payloads])
                runs[begin] = run
            outputs.append(Relay(hop, height, run) if kind == DATA else Tell(hop, run.octets))
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

    def _route(self, topic: bytes, publisher: bytes, is_passed_on: bool = False) -> _Route:
        """``is_passed_on``: by the leaves of an island; else it is addressed to each of them."""
        if self._routes_of != self.flooding.changes or len(self._routes) >= MOST_ROUTES:
            self._routes.clear()
            self._routes_of = self.flooding.changes
        route = self._routes.get((topic, publisher, is_passed_on))
        if route is None:
            peers = self.flooding.table.peers
            wanting = [peer for peer, known in peers.items() if topic.startswith(known.filter)]
            leaves = self.flooding.leaves.wanting(topic, publisher, is_passed_on)
            wanting += [leaf for leaf in leaves if leaf not in peers]
            hops = [found for one in wanting if (found := self._hops_to(one)) is not None]
            route = self._routes[topic, publisher, is_passed_on] = _begin(hops)
        return route

    def pass_on(self, message: Routed, payloads: list[bytes]) -> list[Output]:
        """Messages that go the same way: they differ in their payloads, ``message`` is the first of them."""
        kind, deliver, publisher, branches, topic, _ = message
        if publisher == self.me or leads_through(branches, self.me):
            raise MalformedMessage("loop", "a way that leads through here again")
        outputs: list[Output] = []
        if deliver and len(payloads) == 1:
            outputs.append(Deliver(publisher, kind, topic, payloads[0]))
        elif deliver:
            outputs.append(DeliverMany(publisher, topic, payloads))
        if branches:
            route: _Route = []
            for hop, delivers, behind in split_branches(branches):
                is_leaf = delivers and hop != publisher and self.flooding.is_leaf(hop)
                if is_leaf or self.flooding.is_neighbour(hop):
                    route.append((hop, delivers, way(delivers, behind), self.height(behind)))
                else:
                    self.lost += len(payloads)
            outputs += self._send(route, publisher, topic, payloads, kind)
        return outputs


def _begin(paths: list[multipath.Hops], receivers: int = True) -> _Route:
    last = way(receivers, b"")
    return [
        (hop, node.deliver, way(node.deliver, multipath.encode(node)), multipath.height(node))
        if node.branches
        else (hop, node.deliver, last, 0)
        for tree in multipath.join(paths, receivers)
        for hop, node in tree.branches.items()
    ]


def _never(payload: bytes) -> bool:
    return False
