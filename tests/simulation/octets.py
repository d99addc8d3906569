"""Octets between two nodes: messages of one to the other go through ZMTP's state machines, torn apart.

Each pair has a connection, with its greeting, its handshake and its subscription. A message is encoded by the
mesh's own transport (:mod:`dafka.mesh.run_octets`), and read as there, in stretches of records. The octets
arrive in pieces of which chance decides: each octet by itself, two halves of any size, or pieces here and
there; the last piece may arrive with the next message, or a moment later. PINGs go between messages and have
to be answered.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

from dafka.mesh.run_octets import octets_of
from dafka.protocol.commands import Command
from dafka.protocol.framing import Framing
from dafka.protocol.runs import Run, RunReader
from dafka.protocol.stretches import Stretches
from dafka.zmtp.connection import Connection, Established, Messages, Options, Ping, Pong, Subscribe
from dafka.zmtp.errors import ProtocolError

from .rules import require

PIECES = 6  # that octets are torn into at most, unless each comes by itself
SINGLY = 600  # octets that may come one by one
MOST = 3  # messages cut at a time: often fewer than have arrived

_PUBLISHER = Options((b"XPUB",), accepts=True)
_SUBSCRIBER = Options((b"SUB",), accepts=False, make_taker=lambda: Stretches(RunReader()))


class OctetLink:
    """From a publisher to a subscriber. ``chance`` decides where octets are torn."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._publisher = Connection(_PUBLISHER)
        self._subscriber = Connection(_SUBSCRIBER)
        self._on_the_way = b""
        self._pings = 0
        try:
            self._meet()
        except ProtocolError as error:
            require(False, f"two nodes cannot meet: {error}")

    def carry(self, item: Run | Command, framing: Framing) -> list[Run | Command]:
        """What has arrived when these octets have, but for the last of them: :meth:`rest` brings those."""
        octets = b"".join(octets_of(item, framing)[1])
        if self._chance.random() < 0.1:
            octets = self._publisher.ping(context=b"sim") + octets
            self._pings += 1
        octets = self._on_the_way + octets
        kept = self._chance.choice([0, 0, 1, 2, self._chance.randrange(len(octets))])
        self._on_the_way = octets[len(octets) - kept :]
        return self._feed(octets[: len(octets) - kept])

    def rest(self) -> list[Run | Command]:
        """What has arrived when no octet is on the way any more."""
        octets, self._on_the_way = self._on_the_way, b""
        items = self._feed(octets)
        require(not self._subscriber.in_progress, "octets are left over when all messages have arrived")
        require(self._pings == 0, "a PING was not answered")
        return items

    # -- private --------------------------------------------------------------------------------

    def _meet(self) -> None:
        met: list[object] = []
        for _ in range(6):
            for one, other in ((self._publisher, self._subscriber), (self._subscriber, self._publisher)):
                for piece in self._pieces(one.take_output()):
                    met += other.receive(piece)
        for piece in self._pieces(self._subscriber.subscribe(b"")):
            met += self._publisher.receive(piece)
        kinds = [type(event) for event in met]
        require(kinds == [Established, Established, Subscribe], f"two nodes met like this: {met}")

    def _feed(self, octets: bytes) -> list[Run | Command]:
        items: list[Run | Command] = []
        try:
            for piece in self._pieces(octets):
                items += self._received(piece)
                while self._subscriber.pending:
                    items += self._received(b"")
                for answer in self._pieces(self._subscriber.take_output()):
                    for event in self._publisher.receive(answer):
                        require(isinstance(event, Pong), f"a subscriber says {event}")
                        self._pings = 0  # one PONG may be for several
        except ProtocolError as error:
            require(False, f"a node does not understand what another has sent: {error}")
        return items

    def _received(self, octets: bytes) -> list[Run | Command]:
        items: list[Run | Command] = []
        for event in self._subscriber.receive(octets, MOST):
            if isinstance(event, Ping):
                continue
            require(isinstance(event, Messages), f"a publisher says {event}")
            assert isinstance(event, Messages) and isinstance(self._subscriber.taker, Stretches)
            inbound = self._subscriber.taker.read(event.messages)
            require(not inbound.discarded, f"a node discards what another has sent: {inbound.discarded}")
            items += [*inbound.runs, *inbound.commands]
        return items

    def _pieces(self, octets: bytes) -> Iterator[bytes]:
        chance, size = self._chance, len(octets)
        if size <= SINGLY and chance.random() < 0.1:
            yield from (octets[place : place + 1] for place in range(size))
            return
        places = sorted(chance.randrange(size + 1) for _ in range(chance.randrange(PIECES))) if size else []
        for begin, end in zip([0, *places], [*places, size], strict=True):
            if begin < end:
                yield octets[begin:end]
