"""Recorded connections, played against a node of ours that takes the part of one side."""

from __future__ import annotations

import uuid

from overlay.vectors import Vector

from dafka.overlay.peering.outputs import Close, Output, PeerUp, Refused, Send
from dafka.overlay.peering.peerings import BYE, Peerings
from dafka.overlay.wire.envelope import DATA, PING, ROUTING_UPDATE, decode_envelope
from dafka.overlay.wire.frames import FrameReader
from dafka.overlay.wire.handshake import Announcement, Probe, encode_handshake
from dafka.protocol.errors import MalformedMessage

MOST = 16 * 1024 * 1024
LIBBROKER_ONLY = (1, 1)
PROBE = encode_handshake(Probe())


def identity(digit: str) -> bytes:
    """The ids of the recordings repeat a digit."""
    return uuid.UUID(f"{digit * 8}-{digit * 4}-4{digit * 3}-8{digit * 3}-{digit * 12}").bytes


class Side:
    """A node of ours, with any number of connections."""

    def __init__(self, me: bytes, filter: tuple[bytes, ...] = (), versions: tuple[int, int] = LIBBROKER_ONLY):
        self.filter = filter
        self.peerings = Peerings(me, lambda _: Announcement(self.filter), versions)
        self.sent: list[bytes] = []
        self.outputs: list[Output] = []
        self.closed: list[int] = []
        self._readers: dict[int, FrameReader] = {}

    @property
    def peers_up(self) -> list[PeerUp]:
        return [output for output in self.outputs if isinstance(output, PeerUp)]

    @property
    def refusals(self) -> list[Refused]:
        return [output for output in self.outputs if isinstance(output, Refused)]

    def connect(self, number: int, connector: bool, now: float = 0.0) -> None:
        self._readers[number] = FrameReader(MOST)
        self.carry(self.peerings.connected(now, number, connector))

    def knows(self, number: int) -> bool:
        return number in self._readers

    def hear(self, number: int, octets: bytes) -> None:
        self._readers[number].feed(octets)
        try:
            for message in self._readers[number].messages():
                self.carry(self.peerings.received(0.0, number, message))
        except MalformedMessage as error:
            self.carry(self.peerings.malformed(0.0, number, error))

    def carry(self, outputs: list[Output]) -> None:
        self.outputs += outputs
        for output in outputs:
            if isinstance(output, Send):
                self.sent += _messages(output.octets)
            elif isinstance(output, Close):
                self.closed.append(output.connection)

    def say(self, vector: Vector) -> None:
        """Let the node do of its own accord what led to a recorded message."""
        envelope = decode_envelope(vector.message)
        if envelope.kind == PING and envelope.payload.startswith(BYE):
            self.carry(self.peerings.unpeer(0.0, envelope.receiver))
        elif envelope.kind in (DATA, PING, ROUTING_UPDATE):
            (peer,) = self.peerings.peers
            self.carry(self.peerings.send(peer, vector.octets))


def play(side: Side, recording: list[Vector], connector: bool, ours: str) -> None:
    """Play a connection; ``ours`` is what the direction of a message of this side begins with.

    Every message of this side has to come, octet by octet and in order, but for the payload of a goodbye.
    """
    side.connect(1, connector)
    if (
        not any(one.direction.startswith(ours) and one.name.endswith("probe") for one in recording)
        and not connector
    ):
        assert side.sent.pop() == PROBE  # the listener of this recording was a plain socket that says none
    checked = 0
    for vector in recording:
        if not vector.octets:
            assert side.closed == [1], vector.name
        elif not vector.direction.startswith(ours):
            side.hear(1, _answering_our_goodbye(vector, side))
        else:
            if len(side.sent) <= checked:
                side.say(vector)
            assert side.sent[checked : checked + 1] == [_with_our_goodbye(vector, side, checked)], vector.name
            checked += 1
    assert side.sent[checked:] == []


def _answering_our_goodbye(vector: Vector, side: Side) -> bytes:
    if (
        vector.name.endswith("-pong")
        and vector.octets[-11:].startswith(BYE)
        and side.sent[-1][-11:].startswith(BYE)
    ):
        return vector.octets[:-8] + side.sent[-1][-8:]
    return vector.octets


def _with_our_goodbye(vector: Vector, side: Side, position: int) -> bytes:
    if "ttl=" not in vector.meaning or len(side.sent) <= position:
        return vector.octets
    envelope = decode_envelope(vector.message)
    if envelope.kind != PING or not envelope.payload.startswith(BYE):
        return vector.octets
    return vector.octets[:-8] + side.sent[position][-8:]


def _messages(octets: bytes) -> list[bytes]:
    messages = []
    while octets:
        end = 4 + int.from_bytes(octets[:4], "big")
        messages.append(octets[:end])
        octets = octets[end:]
    return messages
