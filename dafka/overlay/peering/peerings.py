"""All connections of a node: handshakes, then pings and goodbyes, and the peers.

The caller opens and accepts connections, gives each a number, cuts what arrives into messages and carries out
the outputs. Where libbroker leaves something open, this is stricter: a handshake ends after some seconds; a
peer that nothing is heard of is sent a ping, which libbroker answers too, and is lost without an answer;
nothing that came from a peer can pass for a local event of this node.

Goodbye is a ping with a payload that begins with BYE. The node that says it closes the connection when the
answer is there: everything that was sent before has then arrived.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from dafka.overlay import limits
from dafka.overlay.peering import handshake
from dafka.overlay.peering.gate import Decision, Gate
from dafka.overlay.peering.handshake import VERSIONS, Decide, Ended, Established, Handshake, Say
from dafka.overlay.peering.outputs import (
    Close,
    NewFilter,
    Output,
    PeerDown,
    PeerUp,
    Pong,
    Received,
    ReceivedRouted,
    Refused,
    Send,
)
from dafka.overlay.wire.codes import ErrorCode
from dafka.overlay.wire.envelope import (
    LOCAL,
    PING,
    PONG,
    ROUTING_UPDATE,
    decode_envelope,
    encode_envelope,
    ping,
    pong,
    read_filter,
)
from dafka.overlay.wire.frames import frame
from dafka.overlay.wire.handshake import WITH_ROUTING, Announcement
from dafka.overlay.wire.primitives import NOBODY
from dafka.protocol.errors import MalformedMessage

BYE = b"BYE"
_GOODBYE_OCTETS = len(BYE) + 8
_NEVER = float("inf")


class _Connection:
    """``heard`` is when something came last; ``deadline`` when the handshake or a goodbye ends by itself."""

    def __init__(self, number: int, handshake: Handshake, now: float) -> None:
        self.number = number
        self.handshake = handshake
        self.peer: bytes | None = None
        self.version = 1
        self.heard = now
        self.pinged = False
        self.deadline = now + limits.HANDSHAKE_SECONDS
        self.goodbye: bytes | None = None
        self.said_goodbye = False


class Peerings:
    """The connections of the node ``me``. ``announce`` says what new peers of a version are told."""

    def __init__(
        self, me: bytes, announce: Callable[[int], Announcement], versions: tuple[int, int] = VERSIONS
    ) -> None:
        self.me = me
        self.discarded: Counter[str] = Counter()
        """Messages of peers that were not taken, by cause."""
        self.peers: dict[bytes, int] = {}
        """The connection of every peer."""
        self._announce = announce
        self._versions = versions
        self._gate = Gate()
        self._connections: dict[int, _Connection] = {}
        self._goodbyes = 0
        self._shutting_down = False
        self._ticked = float("-inf")

    def connected(self, now: float, number: int, connector: bool) -> list[Output]:
        """There is a new connection, which this side opened (``connector``) or accepted."""
        connection = _Connection(number, Handshake(self.me, connector, self._announce, self._versions), now)
        self._connections[number] = connection
        if self._shutting_down:
            return self._carry(now, connection, self._refuse_for_shutdown(connection))
        outputs: list[Output] = []
        if len(self._connections) > limits.MOST_CONNECTIONS:
            oldest = self._oldest_handshake(now)
            if oldest is None:
                steps = connection.handshake.refuse(ErrorCode.UNSPECIFIED, "too many connections")
                return self._carry(now, connection, steps)
            outputs = self._drop(oldest, ErrorCode.PEER_TIMEOUT, "no handshake yet, and others wait")
        return outputs + self._carry(now, connection, connection.handshake.start())

    def received(self, now: float, number: int, message: bytes) -> list[Output]:
        """A message, without its length."""
        connection = self._connections.get(number)
        if connection is None:
            return []
        connection.heard = now
        connection.pinged = False
        if connection.peer is None:
            return self._carry(now, connection, connection.handshake.receive(message))
        try:
            if connection.version >= WITH_ROUTING:
                return self._hear_routed(connection, connection.peer, message)
            return self._hear(connection, connection.peer, message)
        except MalformedMessage as error:
            self.discarded[error.cause] += 1
            return []

    def hear(self, now: float, number: int) -> bytes | None:
        """Something came on a connection; the peer there, if it speaks version 2."""
        connection = self._connections.get(number)
        if connection is None:
            return None
        connection.heard = now
        connection.pinged = False
        return connection.peer if connection.version >= WITH_ROUTING else None

    def peer_at(self, number: int) -> bytes | None:
        """The peer at the other end of a connection, if it is one."""
        connection = self._connections.get(number)
        return None if connection is None else connection.peer

    def drop(self, peer: bytes, error: MalformedMessage) -> list[Output]:
        """A peer is left at once, because of what it did."""
        connection = self._connection_of(peer)
        return [] if connection is None else self.malformed(connection.heard, connection.number, error)

    def malformed(self, now: float, number: int, error: MalformedMessage) -> list[Output]:
        """The octets on a connection cannot be cut into messages."""
        connection = self._connections.get(number)
        if connection is None:
            return []
        self.discarded[error.cause] += 1
        return self._drop(connection, ErrorCode.INVALID_MESSAGE, str(error))

    def disconnected(self, now: float, number: int) -> list[Output]:
        """The connection is gone."""
        connection = self._connections.get(number)
        if connection is None:
            return []
        text = "closed in the handshake" if connection.peer is None else ""
        return self._drop(connection, ErrorCode.PEER_DISCONNECT_DURING_HANDSHAKE, text)

    def send(self, peer: bytes, octets: bytes) -> list[Send]:
        """Send whole messages to a peer. Does nothing if it has gone, or is being left."""
        connection = self._connection_of(peer)
        if connection is None or connection.goodbye is not None:
            return []
        return [Send(connection.number, octets)]

    def ping(self, peer: bytes, payload: bytes) -> list[Send]:
        """Ask a peer for a :class:`Pong` with this payload, which is not to be empty or to begin with BYE."""
        connection = self._connection_of(peer)
        if connection is None or connection.goodbye is not None:
            return []
        return [self._ping(connection, peer, payload)]

    def unpeer(self, now: float, peer: bytes) -> list[Output]:
        """Say goodbye. A :class:`PeerDown` follows when the peer has answered, or does not."""
        connection = self._connection_of(peer)
        if connection is None or connection.goodbye is not None:
            return []
        self._goodbyes += 1
        connection.goodbye = BYE + self._goodbyes.to_bytes(8, "big")
        connection.deadline = now + limits.GOODBYE_SECONDS
        return [self._ping(connection, peer, connection.goodbye)]

    def shut_down(self, now: float) -> list[Output]:
        """Say goodbye to all peers, and refuse new ones."""
        self._shutting_down = True
        outputs: list[Output] = []
        for connection in list(self._connections.values()):
            if connection.peer is not None:
                outputs += self.unpeer(now, connection.peer)
            elif connection.number in self._connections:
                outputs += self._carry(now, connection, self._refuse_for_shutdown(connection))
        return outputs

    def tick(self, now: float) -> list[Output]:
        """Ping silent peers, and give up those that are silent for too long. To be called a few times a
        second."""
        stalled, self._ticked = now - self._ticked, now
        if limits.STALLED_SECONDS < stalled < _NEVER:
            # This process was stopped: messages that its peers have sent meanwhile are still to be read.
            for connection in self._connections.values():
                connection.heard = min(now, connection.heard + stalled)
                if connection.deadline < _NEVER:  # it may have begun behind the pause
                    late = connection.deadline + stalled
                    connection.deadline = min(late, now + limits.HANDSHAKE_SECONDS)
            return []
        outputs: list[Output] = []
        for connection in list(self._connections.values()):
            if connection.number not in self._connections:
                continue
            if now >= connection.deadline:
                outputs += self._time_out(now, connection)
            elif connection.peer is None:
                continue
            elif now - connection.heard >= limits.LOST_SECONDS:
                outputs += self._drop(connection, ErrorCode.PEER_TIMEOUT, "silent")
            elif now - connection.heard >= limits.SILENT_SECONDS and not connection.pinged:
                outputs += self._prove(connection)
        return outputs

    # -- the handshake ------------------------------------------------------------------------------

    def _oldest_handshake(self, now: float) -> _Connection | None:
        """The one that makes room for somebody else: strangers who say nothing would keep peers out."""
        for connection in self._connections.values():  # the oldest first
            if connection.peer is None:
                had = now - (connection.deadline - limits.HANDSHAKE_SECONDS)
                return connection if had >= limits.HANDSHAKE_LEAST_SECONDS else None
        return None

    def _carry(self, now: float, connection: _Connection, steps: list[handshake.Output]) -> list[Output]:
        outputs: list[Output] = []
        for step in steps:
            match step:
                case Say(octets):
                    outputs.append(Send(connection.number, octets))
                case Decide(peer):
                    outputs += self._decide(now, connection, peer)
                case Established():
                    outputs += self._establish(now, connection, step)
                case Ended(peer, code, description, by_peer):
                    redundant = code == ErrorCode.REDUNDANT_CONNECTION
                    redundant = redundant and (not by_peer or self._has_another(connection, peer))
                    outputs.append(Refused(connection.number, peer, code, description, redundant))
                    outputs += self._forget(now, connection)
        return outputs

    def _decide(self, now: float, connection: _Connection, peer: bytes) -> list[Output]:
        talk = connection.handshake
        decision = self._gate.ask(connection.number, peer)
        if decision is Decision.WAIT:
            return []
        if decision is Decision.PASS:
            return self._carry(now, connection, talk.go_on())
        if talk.is_originator:
            steps = talk.refuse(ErrorCode.REDUNDANT_CONNECTION, "redundant connection")
            return self._carry(now, connection, steps)
        # The originator wants this one: the one before is dead at its end. It has to prove that it lives.
        outputs = self._carry(now, connection, talk.refuse(ErrorCode.LOGIC_ERROR, "already connected"))
        return outputs + self._doubt(now, self._connections[self.peers[peer]])

    def _establish(self, now: float, connection: _Connection, done: Established) -> list[Output]:
        connection.peer, connection.version = done.peer, done.version
        connection.deadline = _NEVER
        self.peers[done.peer] = connection.number
        up = PeerUp(connection.number, done.peer, done.version, done.announced, done.heard)
        return [up, *self._resume(now, self._gate.established(done.peer))]

    def _resume(self, now: float, waiting: list[int]) -> list[Output]:
        outputs: list[Output] = []
        for number in waiting:
            connection = self._connections.get(number)
            if connection is not None and connection.handshake.peer is not None:
                outputs += self._decide(now, connection, connection.handshake.peer)
        return outputs

    def _has_another(self, connection: _Connection, peer: bytes | None) -> bool:
        """Whether another connection leads to the same node."""
        others = (other for other in self._connections.values() if other is not connection)
        return peer is not None and any(other.handshake.peer == peer for other in others)

    def _refuse_for_shutdown(self, connection: _Connection) -> list[handshake.Output]:
        return connection.handshake.refuse(ErrorCode.SHUTTING_DOWN, "shutting down")

    # -- peers --------------------------------------------------------------------------------------

    def _connection_of(self, peer: bytes) -> _Connection | None:
        number = self.peers.get(peer)
        return None if number is None else self._connections[number]

    def _hear(self, connection: _Connection, peer: bytes, message: bytes) -> list[Output]:
        envelope = decode_envelope(message)
        if envelope.kind == PING:
            return self._hear_ping(connection, envelope.payload, encode_envelope(pong(self.me, envelope)))
        if envelope.kind == PONG:
            return self._hear_pong(connection, peer, envelope.payload)
        if envelope.kind == ROUTING_UPDATE:
            return [NewFilter(peer, read_filter(envelope))]
        if envelope.sender in (NOBODY, self.me):
            raise MalformedMessage("sender", "a message that claims to be this node's own")
        if envelope.topic.startswith(LOCAL):
            raise MalformedMessage("local-topic", f"{envelope.topic[:100]!r} is for this node's own events")
        return [Received(peer, envelope)]

    def _hear_routed(self, connection: _Connection, peer: bytes, message: bytes) -> list[Output]:
        if message[0] == PING:
            return self._hear_ping(connection, message[1:], frame(bytes((PONG,)) + message[1:]))
        if message[0] == PONG:
            return self._hear_pong(connection, peer, message[1:])
        return [ReceivedRouted(peer, message)]

    def _hear_ping(self, connection: _Connection, payload: bytes, answer: bytes) -> list[Output]:
        if payload.startswith(BYE) and len(payload) == _GOODBYE_OCTETS:
            connection.said_goodbye = True
        return [Send(connection.number, answer)]

    def _hear_pong(self, connection: _Connection, peer: bytes, payload: bytes) -> list[Output]:
        if payload != connection.goodbye:
            return [Pong(peer, payload)] if payload else []
        return self._drop(connection, ErrorCode.NONE, "")

    def _prove(self, connection: _Connection) -> list[Output]:
        assert connection.peer is not None
        connection.pinged = True
        return [self._ping(connection, connection.peer, b"")]

    def _doubt(self, now: float, connection: _Connection) -> list[Output]:
        """Find out soon whether a connection lives."""
        if connection.goodbye is not None:
            return []
        connection.heard = min(connection.heard, now - limits.LOST_SECONDS + limits.GOODBYE_SECONDS)
        return self._prove(connection)

    def _ping(self, connection: _Connection, peer: bytes, payload: bytes) -> Send:
        if connection.version >= WITH_ROUTING:
            return Send(connection.number, frame(bytes((PING,)) + payload))
        return Send(connection.number, encode_envelope(ping(self.me, peer, payload)))

    # -- ends ---------------------------------------------------------------------------------------

    def _time_out(self, now: float, connection: _Connection) -> list[Output]:
        if connection.peer is not None:
            return self._drop(connection, ErrorCode.NONE, "")
        steps = connection.handshake.refuse(ErrorCode.PEER_TIMEOUT, "the handshake took too long")
        return self._carry(now, connection, steps)

    def _drop(self, connection: _Connection, code: ErrorCode, description: str) -> list[Output]:
        if connection.peer is None:
            peer = connection.handshake.peer
            refused = Refused(connection.number, peer, code, description, redundant=False)
            return [refused, *self._forget(connection.heard, connection)]
        return self._forget(connection.heard, connection, description)

    def _forget(self, now: float, connection: _Connection, reason: str = "") -> list[Output]:
        del self._connections[connection.number]
        outputs: list[Output] = [Close(connection.number)]
        peer = connection.peer
        if peer is not None:
            del self.peers[peer]
            removed = connection.goodbye is not None
            outputs.append(PeerDown(connection.number, peer, removed, connection.said_goodbye, reason))
        known = peer or connection.handshake.peer
        if known is not None:
            outputs += self._resume(now, self._gate.left(connection.number, known))
        return outputs
