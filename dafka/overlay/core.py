"""A node of the overlay: its connections and its place among the peers, joined.

Peers of version 2 are nodes of ours: they take part in the routing. Those of version 1 speak libbroker's
protocol: this node is their gateway to the overlay.

Data waits where somebody has no room for it (:mod:`dafka.overlay.flow`): ``full`` says which of this node's
subscribers have none for a topic.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from itertools import islice

from dafka.overlay.filters import Filter, announced
from dafka.overlay.flow import Flow, Grant, Pause, Resume, Room, TooSlow
from dafka.overlay.gateway.gateway import Gateway, Say
from dafka.overlay.limits import MESSAGE_COST
from dafka.overlay.peering import outputs as peering
from dafka.overlay.peering.handshake import VERSIONS
from dafka.overlay.peering.outputs import NewFilter, PeerDown, PeerUp, Pong, Received, ReceivedRouted
from dafka.overlay.peering.peerings import Peerings
from dafka.overlay.routing import outputs as routing
from dafka.overlay.routing.outputs import Deliver, DeliverMany, Discovered, Relay, Tell, ToLeaf, Unreachable
from dafka.overlay.routing.peer import Peer
from dafka.overlay.values.checking import takes_long
from dafka.overlay.wire.credit import CREDIT, Credit, decode_credit, encode_credit
from dafka.overlay.wire.envelope import LOCAL, Envelope, decode_envelope, encode_envelope
from dafka.overlay.wire.frames import LENGTH, Run
from dafka.overlay.wire.handshake import WITH_ROUTING, Announcement
from dafka.overlay.wire.routed import DATA, ROUTED, Routed, decode_routed
from dafka.overlay.wire.zeek import first_values
from dafka.protocol.errors import MalformedMessage

Output = (
    peering.Send
    | peering.Close
    | peering.Refused
    | PeerUp
    | PeerDown
    | Pong
    | Deliver
    | DeliverMany
    | Discovered
    | Unreachable
    | Pause
    | Resume
    | Room
)


def _nobody(topic: bytes) -> Iterable[Hashable]:
    return ()


class Core:
    """The node ``me``. ``time`` begins its logical clock, see :mod:`dafka.overlay.routing.flooding`."""

    def __init__(
        self,
        me: bytes,
        time: int,
        prefixes: Iterable[bytes] = (),
        versions: tuple[int, int] = VERSIONS,
        overflow: str = "wait",
    ) -> None:
        self.me = me
        self.flow = Flow(overflow)
        self.full: Callable[[bytes], Iterable[Hashable]] = _nobody
        """Which subscribers of this node have no room for a topic; :meth:`room` is to be told later."""
        self.peer = Peer(me, time, announced(prefixes, LOCAL))
        self.gateway = Gateway(me, self.peer, passes_on=versions[1] >= WITH_ROUTING)
        self.peerings = Peerings(me, self._announce, versions)
        self.discarded: Counter[str] = Counter()
        """Messages of peers that were not taken, by cause, besides those that the connections count."""
        self._pending: list[Output] = []

    @property
    def filters(self) -> dict[bytes, Filter]:
        """The prefixes that the known peers want, direct ones or not."""
        leaves = self.peer.flooding.leaves
        known = self.peer.flooding.table.peers.items()
        return {leaf: leaves.filter(leaf) for leaf in leaves} | {peer: one.filter for peer, one in known}

    @property
    def paths(self) -> dict[bytes, list[tuple[bytes, ...]]]:
        """The hops to each known peer of version 2, of the shortest path first."""
        known = self.peer.flooding.table.peers.items()
        return {peer: [path.hops for path in one.ranked] for peer, one in known}

    def connected(self, now: float, number: int, connector: bool) -> list[Output]:
        """There is a new connection, which this side opened (``connector``) or accepted."""
        return self._carry(self.peerings.connected(now, number, connector))

    def received(self, now: float, number: int, message: bytes) -> list[Output]:
        """A message, without its length."""
        return self.received_some(now, number, [message], 0)[0]

    def received_many(self, now: float, number: int, messages: list[bytes]) -> list[Output]:
        """Messages of one connection, in order."""
        outputs: list[Output] = []
        begin = 0
        while begin < len(messages):
            some, begin = self.received_some(now, number, messages, begin)
            outputs += some
        return outputs

    def received_some(
        self, now: float, number: int, messages: list[bytes], begin: int
    ) -> tuple[list[Output], int]:
        """The first message from ``begin`` on, with those data behind it that go the same way, and where the
        others begin. Messages that may be much work are handled alone: all that are not data, and data that
        :meth:`payload_to_check` is to be asked about first."""
        peer = self.peerings.hear(now, number)
        message = messages[begin]
        if peer is not None and message[0] == ROUTED and self.peer.flooding.is_neighbour(peer):
            try:
                first = decode_routed(message)
            except MalformedMessage as error:
                self.discarded[error.cause] += 1
                return [], begin + 1
            if isinstance(first, Routed) and first.kind == DATA:
                size = len(message) - len(first.payload)
                head, payloads = message[:size], [first.payload]
                for following in islice(messages, begin + 1, None):
                    # The head itself tells where it ends: a message that begins alike is read alike.
                    if not following.startswith(head):
                        break
                    payloads.append(following[size:])
                taken = payloads
                if self._enters(peer, first):
                    taken, looked_at = first_values(payloads)
                    del payloads[looked_at:]
                return self._pass_data(peer, head, first, payloads, taken), begin + len(payloads)
        return self._carry(self.peerings.received(now, number, message)), begin + 1

    def payload_to_check(self, number: int, message: bytes) -> bytes | None:
        """The payload that has to be a value before a message that takes long is :meth:`received`; if it is
        not, the message is :meth:`undecodable`.

        None if there is none to check: others are checked here, and those that came into the overlay
        elsewhere, there.
        """
        payload = self._entering(number, message) if takes_long(message) else None
        return payload if payload is not None and takes_long(payload) else None

    def _entering(self, number: int, message: bytes) -> bytes | None:
        peer = self.peerings.peer_at(number)
        try:
            if peer is None:
                return None
            if peer in self.gateway:
                envelope = decode_envelope(message)
                return envelope.payload if envelope.kind == DATA else None
            if message[0] == ROUTED:
                routed = decode_routed(message)
                if isinstance(routed, Routed) and self._enters(peer, routed):
                    return routed.payload
        except MalformedMessage:
            pass  # which is counted when it is received
        return None

    def undecodable(self, now: float, number: int, message: bytes) -> list[Output]:
        """A message whose payload is not a value, see :meth:`payload_to_check`: nobody gets it."""
        peer = self.peerings.hear(now, number)
        if peer is None:
            self.gateway.discarded["undecodable"] += 1
            return []
        if not self.peer.flooding.is_neighbour(peer):  # it was left meanwhile
            return []
        routed = decode_routed(message)
        assert isinstance(routed, Routed)
        head = message[: len(message) - len(routed.payload)]
        return self._pass_data(peer, head, routed, [routed.payload], [])

    def malformed(self, now: float, number: int, error: MalformedMessage) -> list[Output]:
        """The octets on a connection cannot be cut into messages."""
        return self._carry(self.peerings.malformed(now, number, error))

    def disconnected(self, now: float, number: int) -> list[Output]:
        """The connection is gone."""
        return self._carry(self.peerings.disconnected(now, number))

    def unpeer(self, now: float, peer: bytes) -> list[Output]:
        """Say goodbye to a direct peer. Paths over it are gone at once."""
        goodbye = self.peerings.unpeer(now, peer)
        return self._carry(goodbye) + self._leave(peer)

    def ping(self, peer: bytes, payload: bytes) -> list[Output]:
        """Ask a direct peer for a Pong: then everything is known that it had told before."""
        return list(self.peerings.ping(peer, payload))

    def shut_down(self, now: float) -> list[Output]:
        """Say goodbye to all peers, and refuse new ones."""
        outputs = self._carry(self.peerings.shut_down(now))
        return outputs + self._carry_routing(self.peer.leave())

    def tick(self, now: float) -> list[Output]:
        """To be called a few times a second."""
        for peer in self.flow.paused:
            self.peerings.hear(now, self.peerings.peers[peer])  # it cannot be silent while nobody reads it
        outputs = self._carry(self.peerings.tick(now))
        outputs += self._carry_routing(self.peer.flooding.ask_again())
        return outputs + self._carry_routing(self.gateway.tick(now))

    @property
    def is_behind(self) -> bool:
        """Whether :meth:`go_on` is to be called: very many peers have lost paths at once."""
        return self.peer.flooding.is_behind

    def go_on(self) -> list[Output]:
        """Some milliseconds of the work that is left. Other events meanwhile are right without it."""
        return self._carry_routing(self.peer.flooding.go_on())

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
        return self.publish_many(topic, [payload], kind)

    def publish_many(self, topic: bytes, payloads: list[bytes], kind: int = DATA) -> list[Output]:
        """Send messages on one topic. They wait here if they have to; then :meth:`is_blocked` is true."""
        if topic.startswith(LOCAL):
            return []
        return self._carry_routing(self.peer.publish_many(topic, payloads, kind))

    def is_wanted(self, topic: bytes, peer: bytes | None = None) -> bool:
        """Whether somebody gets what this node publishes on a topic; ``peer``: whether that one does."""
        return self.peer.is_wanted(topic, peer)

    @property
    def changes(self) -> int:
        """How often something has changed in what peers want, and in the ways to them."""
        return self.peer.flooding.changes

    def fan_out(self, topic: bytes) -> int:
        """How many neighbours get a message on this topic; 1 if nobody does."""
        return self.peer.fan_out(topic) or 1

    def is_blocked(self, topic: bytes) -> bool:
        """Whether publishers on this topic have to wait: a neighbour that gets it is too far behind."""
        is_full = self.flow.is_full
        return any(is_full(hop, height) for hop, height in self.peer.first_hops(topic))

    def room(self, blocker: Hashable) -> list[Output]:
        """One of those that ``full`` named has room again."""
        return self._grant(self.flow.room(blocker))

    def congested(self, peer: bytes) -> None:
        """The connection of a peer of version 1 takes nothing more, until :meth:`drained`."""
        if peer in self.gateway:
            self.flow.congested(peer)

    def drained(self, peer: bytes) -> list[Output]:
        """The connection of a peer of version 1 takes more."""
        return self._release(peer, *self.flow.drained(peer)) if peer in self.gateway else []

    def has_more(self, peer: bytes) -> bool:
        """Whether :meth:`drained` is to be called again, if the connection still has room."""
        return peer in self.gateway and self.flow.has_more(peer)

    def publish_to(self, receiver: bytes, topic: bytes, payload: bytes, kind: int = DATA) -> list[Output]:
        """Send to one peer, over as many hops as it takes."""
        return self._carry_routing(self.peer.publish_to(receiver, topic, payload, kind))

    def _leave(self, neighbour: bytes) -> list[Output]:
        outputs = self._carry_routing(self.peer.link_down(neighbour))
        return outputs + self._grant(self.flow.link_down(neighbour))

    def _announce(self, version: int) -> Announcement:
        # A connection may take the place of one whose end is among the outputs that are still to be carried
        # out. The clock must have risen for that end before it is told.
        for neighbour in self.peer.flooding.neighbours:
            if neighbour not in self.peerings.peers:
                outputs = self._leave(neighbour)
                self._pending = [*self._pending, *outputs]
        return self.peer.announcement if version >= WITH_ROUTING else self.gateway.announcement

    def _carry(self, steps: Sequence[peering.Output]) -> list[Output]:
        outputs, self._pending = self._pending, []
        for step in steps:
            if isinstance(step, ReceivedRouted):  # the most frequent one is looked for first
                outputs += self._hear(step.peer, step.message)
                continue
            match step:
                case PeerUp():
                    outputs += self._up(step)
                case PeerDown(_, peer):
                    outputs.append(step)
                    outputs += self._down(peer)
                case Received(peer, envelope):
                    outputs += self._hear_leaf(peer, envelope)
                case NewFilter(peer, filter):
                    outputs += self._carry_routing(self.gateway.wants(peer, filter))
                case _:
                    outputs.append(step)
        if not self.gateway.is_listed:
            outputs += self._carry_routing(self.gateway.list_anew())
        return outputs

    def _carry_routing(self, steps: Sequence[routing.Output | Say]) -> list[Output]:
        outputs: list[Output] = []
        encoded: dict[tuple[bytes, bytes], bytes] = {}  # for leaves
        for step in steps:
            if isinstance(step, Relay):
                outputs += self._send(step.neighbour, step.height, step.frames)
            elif isinstance(step, Tell):
                outputs += self._carry(self.peerings.send(step.neighbour, step.octets))
            elif isinstance(step, Say):
                outputs += self._carry(self.peerings.send(step.leaf, encode_envelope(step.envelope)))
            elif isinstance(step, ToLeaf):
                octets = self.gateway.encode(step, encoded)
                if octets is None:
                    continue
                if step.kind == DATA:
                    outputs += self._send(step.leaf, 0, Run([octets]))
                else:
                    outputs += self._carry(self.peerings.send(step.leaf, octets))
            else:
                outputs.append(step)
        return outputs

    # -- data, and room for it ----------------------------------------------------------------------

    def _send(self, neighbour: bytes, height: int, frames: Run) -> list[Output]:
        try:
            octets = self.flow.send(neighbour, height, frames)
        except TooSlow as error:
            return self._carry(self.peerings.drop(neighbour, MalformedMessage("too-slow", str(error))))
        return list(self.peerings.send(neighbour, octets)) if octets else []

    @staticmethod
    def _enters(neighbour: bytes, message: Routed) -> bool:
        """Whether this node is the first to pass it on: an invalid value is stopped here, as by libbroker.

        Subscribers of this node leave out invalid values themselves.
        """
        return message.publisher == neighbour and message.branches != b"" and message.kind == DATA

    def _pass_data(
        self, neighbour: bytes, head: bytes, first: Routed, payloads: list[bytes], taken: list[bytes]
    ) -> list[Output]:
        """Pass on those ``payloads`` that are ``taken``; all of them have used credit."""
        if len(taken) < len(payloads):
            self.discarded["undecodable"] += len(payloads) - len(taken)
        outputs: list[Output] = []
        blockers: list[Hashable] = []
        height = 0
        try:
            height = self.peer.height(first.branches)
            steps = self.peer.pass_on(first, taken) if taken else []
            outputs = self._carry_routing(steps)
            blockers = self._blockers(first.topic, steps)
        except MalformedMessage as error:
            self.discarded[error.cause] += 1
        each = len(head) + LENGTH.size + MESSAGE_COST
        cost = each * len(payloads) + sum(map(len, payloads))
        try:
            grant = self.flow.take(neighbour, height, cost, each + len(payloads[-1]), blockers)
        except MalformedMessage as error:
            return outputs + self._carry(self.peerings.drop(neighbour, error))
        return outputs if grant is None else outputs + self._grant([grant])

    def _hear_leaf(self, leaf: bytes, envelope: Envelope) -> list[Output]:
        steps = self.gateway.hear(leaf, envelope)
        outputs = self._carry_routing(steps)
        if envelope.kind == DATA and leaf in self.gateway:
            blockers = self._blockers(envelope.topic, steps)
            if blockers and self.flow.hold(leaf, blockers):
                outputs.append(Pause(self.peerings.peers[leaf]))
        return outputs

    def _blockers(self, topic: bytes, steps: Sequence[routing.Output | Say]) -> list[Hashable]:
        """The neighbours and subscribers without room for more of what was just passed on."""
        blockers: list[Hashable] = []
        for step in steps:
            if isinstance(step, Relay) and self.flow.is_full(step.neighbour, step.height):
                blockers.append((step.neighbour, step.height))
            elif isinstance(step, ToLeaf) and self.flow.is_full(step.leaf, 0):
                blockers.append((step.leaf, 0))
            elif isinstance(step, Deliver | DeliverMany):
                blockers += self.full(topic)
        return blockers

    def _release(self, neighbour: bytes, octets: bytes, grants: list[Grant]) -> list[Output]:
        outputs = self._carry(self.peerings.send(neighbour, octets)) if octets else []
        return outputs + self._grant(grants)

    def _grant(self, grants: list[Grant]) -> list[Output]:
        outputs: list[Output] = []
        for neighbour, height, octets in grants:
            if neighbour in self.gateway:
                number = self.peerings.peers.get(neighbour)
                if number is not None:  # None: it is gone, too, and its end is told next
                    outputs.append(Resume(number))
            else:
                credit = encode_credit(Credit(height, octets))
                outputs += self._carry(self.peerings.send(neighbour, credit))
        if self.flow.has_freed():
            outputs.append(Room())
        return outputs

    # -- peers come and go --------------------------------------------------------------------------

    def _up(self, up: PeerUp) -> list[Output]:
        self.flow.link_up(up.peer, is_plain=up.version < WITH_ROUTING)
        if up.version < WITH_ROUTING:
            outputs = self._carry_routing(self.gateway.up(up.peer, up.announced, up.heard))
            found = [one for one in outputs if isinstance(one, Discovered)]
            return [*found, up, *[one for one in outputs if not isinstance(one, Discovered)]]
        return [*self._carry_routing(self.peer.link_up(up.peer, up.announced, up.heard)), up]

    def _down(self, peer: bytes) -> list[Output]:
        grants = self.flow.link_down(peer)
        if peer in self.gateway:
            self.gateway.down(peer)
            return self._grant(grants)
        return self._carry_routing(self.peer.link_down(peer)) + self._grant(grants)

    def _hear(self, peer: bytes, message: bytes) -> list[Output]:
        try:
            if message[0] == CREDIT:
                return self._release(peer, *self.flow.credit(peer, *decode_credit(message)))
            return self._carry_routing(self.peer.receive(peer, message))
        except MalformedMessage as error:
            self.discarded[error.cause] += 1
            return []
