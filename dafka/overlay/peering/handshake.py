"""One connection until its two nodes are peers.

The side that connected says hello, the side that listened sends a probe, which means nothing. The node with
the smaller id is the originator, independent of which side connected::

    originator listens       originator connected

    connector: hello         connector: hello
    version_select  <-       listener: hello
    originator_syn  <-       -> version_select
    -> responder_syn_ack     -> originator_syn
    originator_ack  <-       responder_syn_ack <-
                             -> originator_ack

Only the originator decides whether the connection is wanted, when it would select the version: there is one
connection for each pair of nodes. The responder decides a little later, to the same end; it disagrees only
when it has not noticed that the connection before is dead. Both ask by :class:`Decide` and go on with
:meth:`Handshake.go_on` or :meth:`Handshake.refuse`, now or later.

libbroker offers version 1 only, nodes of ours 1 and 2; the originator selects the highest that both have.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, auto
from typing import NamedTuple

from dafka.overlay.wire.codes import ErrorCode
from dafka.overlay.wire.handshake import (
    LIBBROKER,
    WITH_ROUTING,
    Announcement,
    DropConn,
    HandshakeMessage,
    Hello,
    OriginatorAck,
    OriginatorSyn,
    Probe,
    ResponderSynAck,
    VersionSelect,
    WrongMagic,
    decode_handshake,
    encode_handshake,
)
from dafka.protocol.errors import MalformedMessage

VERSIONS = (LIBBROKER, WITH_ROUTING)
"""The lowest and the highest that a node of ours speaks."""


class Say(NamedTuple):
    """Send these octets, whole messages with their lengths."""

    octets: bytes


class Decide(NamedTuple):
    """Is a connection with this peer wanted? The handshake waits for the answer."""

    peer: bytes


class Established(NamedTuple):
    """The two are peers. ``announced`` is what this node said about itself, ``heard`` what the peer said."""

    peer: bytes
    version: int
    announced: Announcement
    heard: Announcement


class Ended(NamedTuple):
    """Close the connection. ``peer`` is None as long as it has not said who it is."""

    peer: bytes | None
    code: int
    description: str
    by_peer: bool = False
    """Whether the other side refused, by drop_conn."""


Output = Say | Decide | Established | Ended


class _State(Enum):
    HELLO = auto()  # the listener waits for hello
    ANSWER = auto()  # the connector waits for hello or version_select
    VERSION = auto()  # the responder waits for version_select
    DECISION = auto()  # somebody decides whether the connection is wanted
    SYN = auto()
    SYN_ACK = auto()
    ACK = auto()
    OVER = auto()


def check_versions(versions: object) -> None:
    """Raise ValueError for what is no pair of the lowest and the highest version that a node speaks."""
    known = range(LIBBROKER, WITH_ROUTING + 1)
    if not isinstance(versions, tuple) or len(versions) != 2 or not all(type(one) is int for one in versions):
        raise ValueError(f"versions is a pair of numbers such as {VERSIONS}, not {versions!r:.100}")
    low, high = versions
    if low not in known or high not in known or low > high:
        raise ValueError(f"versions are from {LIBBROKER} to {WITH_ROUTING}, ascending, not {versions!r:.100}")


class Handshake:
    """Takes messages without their lengths. ``announce`` says what to tell a peer of a version."""

    def __init__(
        self,
        me: bytes,
        connector: bool,
        announce: Callable[[int], Announcement],
        versions: tuple[int, int] = VERSIONS,
    ) -> None:
        self.peer: bytes | None = None
        self.version = LIBBROKER
        self._me = me
        self._announce = announce
        self._versions = versions
        self._connector = connector
        self._state = _State.ANSWER if connector else _State.HELLO
        self._announced = Announcement()
        self._heard = Announcement()

    @property
    def is_over(self) -> bool:
        return self._state is _State.OVER

    @property
    def is_originator(self) -> bool:
        return self.peer is not None and self._me < self.peer

    def start(self) -> list[Output]:
        """The octets to send as soon as there is a connection."""
        return [self._hello() if self._connector else self._say(Probe())]

    def receive(self, octets: bytes) -> list[Output]:
        """A message from the other side."""
        if self._state is _State.OVER:
            return []
        try:
            message = decode_handshake(octets, self.version)
        except WrongMagic:
            return self.refuse(ErrorCode.WRONG_MAGIC_NUMBER, "wrong magic number")
        except MalformedMessage as error:
            return self.refuse(ErrorCode.INVALID_MESSAGE, str(error).partition(": ")[2])
        return self._react(message)

    def go_on(self) -> list[Output]:
        """The connection is wanted."""
        if self.is_originator:
            self._state = _State.SYN_ACK
            select = self._say(VersionSelect(self._me, self.version))
            self._announced = self._announce(self.version)
            return [select, self._say(OriginatorSyn(self._announced))]
        self._state = _State.ACK
        self._announced = self._announce(self.version)
        return [self._say(ResponderSynAck(self._announced))]

    def refuse(self, code: ErrorCode, description: str) -> list[Output]:
        """Say why the connection is closed, and close it."""
        drop = self._say(DropConn(self._me, code, description.encode()))
        return [drop, self._end(code, description)]

    def _react(self, message: HandshakeMessage) -> list[Output]:
        match message, self._state:
            case Probe(), _State.HELLO | _State.ANSWER | _State.VERSION | _State.DECISION:
                return []
            case DropConn(sender, code, description), _:
                self.peer = self.peer or sender
                return [self._end(code, description.decode("utf-8", "replace"), by_peer=True)]
            case Hello(sender, lowest, highest), _State.HELLO | _State.ANSWER:
                return self._hear_hello(sender, lowest, highest)
            case VersionSelect(sender, version), _State.ANSWER | _State.VERSION:
                return self._hear_version(sender, version)
            case OriginatorSyn(announcement), _State.SYN:
                assert self.peer is not None
                self._heard = announcement
                self._state = _State.DECISION
                return [Decide(self.peer)]
            case ResponderSynAck(announcement), _State.SYN_ACK:
                self._heard = announcement
                return [self._say(OriginatorAck()), self._establish()]
            case OriginatorAck(), _State.ACK:
                return [self._establish()]
        # libbroker too closes without a word here.
        name = type(message).__name__
        return [self._end(ErrorCode.UNEXPECTED_HANDSHAKE_MESSAGE, f"{name} is not what was waited for")]

    def _hear_hello(self, sender: bytes, lowest: int, highest: int) -> list[Output]:
        self.peer = sender
        if sender == self._me:
            return self.refuse(ErrorCode.PEER_INVALID, "both ends have the same id")
        version = min(highest, self._versions[1])
        if version < max(lowest, self._versions[0]):
            return self.refuse(ErrorCode.PEER_INCOMPATIBLE, "unsupported versions offered")
        if self.is_originator:
            self.version = version
            self._state = _State.DECISION
            return [Decide(sender)]
        # The originator selects the version. It knows ours already if we connected; libbroker repeats it too.
        self._state = _State.VERSION
        return [self._hello()]

    def _hear_version(self, sender: bytes, version: int) -> list[Output]:
        if (self.peer is not None and sender != self.peer) or sender >= self._me:
            self.peer = self.peer or sender
            return [self._end(ErrorCode.INVALID_HANDSHAKE_STATE, "the version is selected by the smaller id")]
        self.peer = sender
        if not self._versions[0] <= version <= self._versions[1]:
            return self.refuse(ErrorCode.PEER_INCOMPATIBLE, "unsupported version selected")
        self.version = version
        self._state = _State.SYN
        return []

    def _establish(self) -> Established:
        assert self.peer is not None
        self._state = _State.OVER
        return Established(self.peer, self.version, self._announced, self._heard)

    def _end(self, code: int, description: str, by_peer: bool = False) -> Ended:
        self._state = _State.OVER
        return Ended(self.peer, code, description, by_peer)

    def _hello(self) -> Say:
        return self._say(Hello(self._me, *self._versions))

    def _say(self, message: HandshakeMessage) -> Say:
        return Say(encode_handshake(message, self.version))
