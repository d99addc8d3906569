"""Between the overlay and the peers of version 1, libbroker's nodes, that are connected to this node.

They are leaves of the overlay: listed by this node, see :mod:`dafka.overlay.routing.leaves`. The node that
speaks for one tells it everything that the others want, as its own filter, and publishes in the overlay what
it sends. The other nodes that it is connected to tell it an empty filter. The node that is to speak for a new
one waits a moment first, if there are neighbours: another node may speak already, and its word is still on
the way.

libbroker passes on data to all its peers but the one it came from, whatever way it has come. So data goes out
with a mark, and what comes in with a mark is not taken: nothing circulates. Data that takes no mark, and
commands, are addressed to the leaf; libbroker passes nothing on that has an address.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from dafka.overlay.filters import Filter
from dafka.overlay.gateway.aliases import Aliases, ends
from dafka.overlay.gateway.ways_round import WaysRound, probe, probed
from dafka.overlay.limits import SETTLE_SECONDS, TELLING, TOLD_AT_LEAST
from dafka.overlay.routing.outputs import Deliver, Output, ToLeaf
from dafka.overlay.routing.peer import Peer
from dafka.overlay.values.checking import takes_long
from dafka.overlay.wire.commands import QUERIES
from dafka.overlay.wire.envelope import COMMAND, LOCAL, Envelope, encode_envelope, routing_update
from dafka.overlay.wire.handshake import Announcement
from dafka.overlay.wire.leaves import Leaf, fitting
from dafka.overlay.wire.marks import is_marked, marked
from dafka.overlay.wire.primitives import NOBODY
from dafka.overlay.wire.zeek import is_value_fast
from dafka.protocol.errors import MalformedMessage


class Say(NamedTuple):
    """Send an envelope to a peer of version 1."""

    leaf: bytes
    envelope: Envelope


class _Leaf:
    """``since`` is when it came; None until the next look at the clock."""

    def __init__(self, filter: Filter, told: Filter, is_settled: bool) -> None:
        self.filter = filter
        self.told = told
        self.told_at = (False, -1)  # whether this node spoke for it, and the changes of the demand
        self.since: float | None = None
        self.is_settled = is_settled
        self.ways_round = WaysRound()


class Gateway:
    """The leaves of the node whose place among the peers is ``peer``.

    A node that speaks version 1 only passes nothing on: it tells what it wants itself, as libbroker does.
    """

    def __init__(self, me: bytes, peer: Peer, passes_on: bool = True) -> None:
        self.me = me
        self.discarded: Counter[str] = Counter()
        """Messages of leaves, and for them, that were not taken, by cause."""
        self._peer = peer
        self._passes_on = passes_on
        self._leaves: dict[bytes, _Leaf] = {}
        self._aliases = Aliases(me)
        self.is_listed = True
        """Whether the others know of all leaves, and of what they want, as it is now."""
        self._now = 0.0

    def __contains__(self, leaf: bytes) -> bool:
        return leaf in self._leaves

    @property
    def announcement(self) -> Announcement:
        """The announcement for new leaves in their handshake."""
        flooding = self._peer.flooding
        if not self._passes_on:
            return Announcement(flooding.filter)
        return Announcement() if flooding.neighbours else Announcement(flooding.demand.without(()))

    def up(self, leaf: bytes, announced: Announcement, heard: Announcement) -> list[Output | Say]:
        """There is a new leaf, with the announcements that it was told and that it told."""
        is_alone = not self._peer.flooding.neighbours
        self._leaves[leaf] = _Leaf(heard.filter, announced.filter, is_alone)
        self.is_listed = False
        return [*self.list_anew(), *self._tell(leaf)]

    def down(self, leaf: bytes) -> None:
        """A leaf is gone. :meth:`list_anew` is to be called then, once where several are."""
        del self._leaves[leaf]
        self.is_listed = False

    def wants(self, leaf: bytes, filter: Filter) -> list[Output]:
        """A leaf has told its whole filter anew."""
        self._leaves[leaf].filter = filter
        self.is_listed = False
        return self.list_anew()

    def hear(self, leaf: bytes, envelope: Envelope) -> list[Output | Say]:
        """Data or a command of a leaf."""
        kind, _, receiver, topic, payload, _ = envelope
        if kind == COMMAND:
            try:
                return self._hear_command(leaf, receiver, topic, payload)
            except MalformedMessage as error:
                self.discarded[error.cause] += 1
                return []
        if self._passes_on and is_marked(payload):
            self.discarded["echo"] += 1
            self._leaves[leaf].ways_round.echo(topic)
            return [*self._probe(leaf)]
        if self._passes_on and not takes_long(payload) and not is_value_fast(payload):
            self.discarded["undecodable"] += 1
            return []
        return self._take(Deliver(leaf, kind, topic, payload), receiver)

    def encode(self, message: ToLeaf, encoded: dict[tuple[bytes, bytes], bytes]) -> bytes | None:
        """A message of the overlay as a leaf gets it; None if it gets none.

        A message that all leaves get alike is kept in ``encoded``, by its topic and payload.
        """
        same = None if message.is_addressed or message.kind == COMMAND else (message.topic, message.payload)
        if same in encoded and self._wants(message.leaf, message.topic):
            return encoded[same]
        envelope = self._envelope(message)
        if envelope is None:
            return None
        octets = encode_envelope(envelope)
        if same is not None and envelope.receiver == NOBODY:
            encoded[same] = octets
        return octets

    def _wants(self, leaf: bytes, topic: bytes) -> bool:
        """Whether a leaf wants a topic: where the list has no room for its filter, it seems to want all."""
        known = self._leaves.get(leaf)
        return known is not None and (not self._passes_on or topic.startswith(known.filter))

    def _envelope(self, message: ToLeaf) -> Envelope | None:
        leaf, _, kind, topic, payload, is_addressed = message
        if topic.startswith(LOCAL):
            self.discarded["local-topic"] += 1
            return None
        if kind == COMMAND and topic.endswith(QUERIES):
            return None  # no node of libbroker would understand it
        if not self._passes_on:
            return Envelope(kind, self.me, leaf if is_addressed else NOBODY, topic, payload)
        if kind == COMMAND:
            try:
                return Envelope(kind, self.me, leaf, topic, self._aliases.outwards(payload))
            except MalformedMessage as error:
                self.discarded[error.cause] += 1
                return None
        if is_addressed:
            return Envelope(kind, self.me, leaf, topic, payload)
        if not self._wants(leaf, topic):
            return None
        passed_on = marked(payload)
        if passed_on is None:
            return Envelope(kind, self.me, leaf, topic, payload)
        return Envelope(kind, self.me, NOBODY, topic, passed_on)

    def tick(self, now: float) -> list[Output | Say]:
        """To be called a few times a second."""
        self._now = now
        outputs: list[Output | Say] = []
        for leaf, known in self._leaves.items():
            known.since = now if known.since is None else known.since
            known.is_settled = known.is_settled or now - known.since >= SETTLE_SECONDS
            if known.ways_round.forget(now):
                self.is_listed = False
            outputs += self._probe(leaf)
        return [*outputs, *self.list_anew(), *self.tell()]

    def tell(self) -> list[Say]:
        """Tell leaves what the overlay wants, if that has changed. A long list waits for the next turn."""
        outputs: list[Say] = []
        demand, looked_at = self._peer.flooding.demand, 0
        for leaf, known in list(self._leaves.items()):
            if known.told_at != (self._speaks_for(leaf), demand.changes):
                if looked_at > TELLING:
                    break
                looked_at += max(len(demand), TOLD_AT_LEAST)
                outputs += self._tell(leaf)
                self._leaves[leaf] = self._leaves.pop(leaf)  # the others come first the next time
        return outputs

    # -- within -------------------------------------------------------------------------------------

    def _speaks_for(self, leaf: bytes) -> bool:
        return self._leaves[leaf].is_settled and self._peer.flooding.leaves.speaker(leaf) == self.me

    def list_anew(self) -> list[Output]:
        """Tell the others of the leaves, if those are not :attr:`is_listed`."""
        if self.is_listed:
            return []
        self.is_listed = True
        leaves = [Leaf(leaf, known.filter, known.ways_round.beside) for leaf, known in self._leaves.items()]
        return self._peer.flooding.list_leaves(fitting(leaves))

    def _tell(self, leaf: bytes) -> list[Say]:
        known, flooding, speaks = self._leaves[leaf], self._peer.flooding, self._speaks_for(leaf)
        known.told_at = speaks, flooding.demand.changes
        filter: Filter = ()
        if not self._passes_on:
            filter = flooding.filter
        elif speaks:
            filter = flooding.leaves.others(leaf)
        if filter == known.told:
            return []
        known.told = filter
        return [Say(leaf, routing_update(self.me, leaf, filter))]

    def _hear_command(self, leaf: bytes, receiver: bytes, topic: bytes, payload: bytes) -> list[Output | Say]:
        other = probed(*ends(payload))
        if other is not None:
            if other != leaf and other in self._peer.flooding.leaves:
                is_new = self._leaves[leaf].ways_round.came_out(self._now, other)
                self.is_listed = self.is_listed and not is_new
            return [*self.list_anew()]
        payload, endpoint = self._aliases.inwards(payload)
        if receiver == self.me and endpoint is not None:
            return [*self._peer.publish_to(endpoint, topic, payload, COMMAND, leaf)]
        return self._take(Deliver(leaf, COMMAND, topic, payload), receiver)

    def _take(self, message: Deliver, receiver: bytes) -> list[Output | Say]:
        leaf, kind, topic, payload = message
        if receiver == self.me:
            return [message]
        if receiver != NOBODY:
            self.discarded["receiver"] += 1
            return []
        flooding = self._peer.flooding
        mine: list[Output | Say] = [message] if topic.startswith(flooding.filter) else []
        if not self._passes_on:
            return mine
        if not self._speaks_for(leaf) or flooding.leaves.is_covered(leaf, topic):
            self.discarded["spoken-for"] += 1
            return []
        return [*mine, *self._peer.publish(topic, payload, kind, leaf)]

    def _probe(self, leaf: bytes) -> list[Say]:
        is_beside = len(self._peer.flooding.leaves.island(leaf)) > 1
        topic = self._leaves[leaf].ways_round.due(self._now, is_beside)
        if topic is None:
            return []
        return [Say(leaf, Envelope(COMMAND, self.me, NOBODY, topic, probe(leaf, self.me)))]
