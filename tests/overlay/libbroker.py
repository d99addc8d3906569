"""A node of libbroker, as far as its peers can tell: the rules that were seen of how it passes messages on.

It tells its peers what it wants itself, and its filter only grows. Data and commands go as they are to every
other peer that wants the topic, or is the receiver; only the sender is written anew. Nothing stops a message
that goes round.
"""

from __future__ import annotations

from collections.abc import Iterable

from dafka.overlay.filters import reduced
from dafka.overlay.peering.outputs import (
    Close,
    NewFilter,
    Output,
    PeerDown,
    PeerUp,
    Received,
    Refused,
    Send,
)
from dafka.overlay.peering.peerings import Peerings
from dafka.overlay.routing.outputs import Deliver
from dafka.overlay.wire.envelope import DATA, Envelope, encode_envelope, routing_update
from dafka.overlay.wire.handshake import LIBBROKER, Announcement
from dafka.overlay.wire.primitives import NOBODY

Outputs = list[Send | Close | PeerUp | PeerDown | Refused | Deliver]


class Libbroker:
    """The node ``me``."""

    def __init__(self, me: bytes) -> None:
        self.me = me
        self.filter: tuple[bytes, ...] = ()
        self.filters: dict[bytes, tuple[bytes, ...]] = {}  # of its peers
        self.peerings = Peerings(me, lambda _: Announcement(self.filter), (LIBBROKER, LIBBROKER))

    def connected(self, now: float, number: int, connector: bool) -> Outputs:
        return self._carry(self.peerings.connected(now, number, connector))

    def received(self, now: float, number: int, message: bytes) -> Outputs:
        return self._carry(self.peerings.received(now, number, message))

    def disconnected(self, now: float, number: int) -> Outputs:
        return self._carry(self.peerings.disconnected(now, number))

    def tick(self, now: float) -> Outputs:
        return self._carry(self.peerings.tick(now))

    def unpeer(self, now: float, peer: bytes) -> Outputs:
        return self._carry(self.peerings.unpeer(now, peer))

    def subscribe(self, prefixes: Iterable[bytes]) -> Outputs:
        before, self.filter = self.filter, reduced([*self.filter, *prefixes])
        outputs: Outputs = []
        if self.filter != before:
            for peer in self.peerings.peers:
                outputs += self._send(peer, routing_update(self.me, peer, self.filter))
        return outputs

    def publish(self, topic: bytes, payload: bytes, kind: int = DATA) -> Outputs:
        return self._pass_on(Envelope(kind, self.me, NOBODY, topic, payload), None)

    def _carry(self, steps: list[Output]) -> Outputs:
        outputs: Outputs = []
        for step in steps:
            match step:
                case PeerUp(_, peer, _, announced, heard):
                    self.filters[peer] = heard.filter
                    outputs.append(step)
                    if announced.filter != self.filter:
                        outputs += self._send(peer, routing_update(self.me, peer, self.filter))
                case PeerDown(_, peer):
                    del self.filters[peer]
                    outputs.append(step)
                case NewFilter(peer, filter):
                    self.filters[peer] = filter
                case Received(peer, envelope):
                    outputs += self._hear(peer, envelope)
                case Send() | Close() | Refused():
                    outputs.append(step)
        return outputs

    def _hear(self, peer: bytes, envelope: Envelope) -> Outputs:
        outputs: Outputs = []
        is_mine = envelope.receiver in (NOBODY, self.me)
        if is_mine and envelope.kind == DATA and envelope.topic.startswith(self.filter):
            outputs.append(Deliver(peer, envelope.kind, envelope.topic, envelope.payload))
        return outputs + self._pass_on(envelope, peer)

    def _pass_on(self, envelope: Envelope, source: bytes | None) -> Outputs:
        outputs: Outputs = []
        for peer, filter in self.filters.items():
            wanted = envelope.receiver == NOBODY and envelope.topic.startswith(filter)
            if peer != source and (wanted or envelope.receiver == peer):
                outputs += self._send(peer, envelope._replace(sender=self.me))
        return outputs

    def _send(self, peer: bytes, envelope: Envelope) -> Outputs:
        return self._carry(self.peerings.send(peer, encode_envelope(envelope)))
