"""One connection of ZMTP 2.0, 3.0 or 3.1 as a state machine: octets in, events and octets out.

It goes through a greeting, a handshake (3.x: the commands of a mechanism; 2.0: an identity) and then
traffic: messages, and between them commands. :meth:`Connection.receive` takes received octets and returns
events; :meth:`Connection.take_output` returns the octets of the connection itself: greeting, handshake, a
PONG. The user's messages are encoded by :mod:`dafka.zmtp.encoding`, and allowed from :class:`Established` on.

With CURVE what is sent behind the handshake, from :class:`Established` on, has to pass through
:attr:`Connection.sealer`; received octets are opened by themselves.

The side that connects has one socket type. The side that accepts may have several (``types``), and shows a
peer the first that talks to the peer's: the specification lets a server answer READY after reading the
client's.

An error of the peer is a :class:`~dafka.zmtp.errors.ProtocolError`. It is raised after the events in front of
it have been returned, however the octets were torn apart on their way. Then the connection is of no further
use; an ERROR command that :meth:`~Connection.take_output` still returns may be sent before it is closed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from dafka.zmtp import limits
from dafka.zmtp.commands import Command, decode_command, decode_reason, encode_command
from dafka.zmtp.cutting import Cutter, Frames, Taker
from dafka.zmtp.encoding import header
from dafka.zmtp.errors import HandshakeError, ProtocolError, RefusedError, TooLargeError
from dafka.zmtp.greeting import Greeting
from dafka.zmtp.mechanisms import MakeMechanism, NullClient, NullServer, Properties
from dafka.zmtp.socket_types import NUMBERS, PUBLISHERS, WITH_IDENTITY, name_of, shown_to

if TYPE_CHECKING:  # its cryptography is not always installed
    from dafka.zmtp.sealing import Opener, Sealer

PING_TENTHS = 10  # a PING's time to live is in tenths of seconds


class Established(NamedTuple):
    """The handshake is complete: messages may be sent."""

    socket_type: bytes  # the peer's
    shown_type: bytes  # ours, as the peer sees it
    identity: bytes  # the peer's; empty if it has none, or does not tell it
    version: tuple[int, int]
    properties: Properties  # the peer's metadata (3.x), by names in lower case
    key: bytes = b""  # the peer's long-term public key (CURVE)


class Messages(NamedTuple):
    """Messages, in order, each with at least one frame; and how many the connection's taker has taken."""

    messages: list[Frames]
    taken: int = 0


class Subscribe(NamedTuple):
    """To a publisher: the peer wants what begins with ``prefix``."""

    prefix: bytes


class Cancel(NamedTuple):
    """To a publisher: the peer takes one :class:`Subscribe` back."""

    prefix: bytes


class Ping(NamedTuple):
    """The peer asks whether we are there; answered by itself. Without octets for ``ttl`` seconds it is gone
    (0: it does not say)."""

    ttl: float


class Pong(NamedTuple):
    """The answer to a PING of ours."""

    context: bytes


Event = Established | Messages | Subscribe | Cancel | Ping | Pong


@dataclass(frozen=True)
class Options:
    """One side of a connection."""

    types: tuple[bytes, ...]
    """The socket type; of a side that accepts, each that it can show to a peer."""
    accepts: bool
    """Whether this side accepted the connection, or has connected."""
    identity: bytes = b""
    max_octets: int = limits.MESSAGE_OCTETS
    """Of a message that is received, over all of its frames."""
    prefer_2: bool = False
    """Speak ZMTP 2.0 with peers that can, to learn the identity of a PUSH, PULL or SUB socket
    (:mod:`dafka.zmtp.greeting`). Of a side that accepts, with NULL."""
    mechanism: MakeMechanism | None = None
    """None: NULL."""
    make_taker: Callable[[], Taker] | None = None
    """What makes a connection's :class:`~dafka.zmtp.cutting.Taker`, which is offered the messages behind the
    handshake. Not for publishers: their subscriptions are messages."""


class Connection:
    """A connection. Its greeting is in :meth:`take_output` from the beginning."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._error: ProtocolError | None = None
        self._peer_type = self._shown = b"" if options.accepts else options.types[0]
        self._pong: bytes | None = None
        make = options.mechanism or (NullServer if options.accepts else NullClient)
        self._mechanism = make(self._check)
        self._greeting: Greeting | None = Greeting(
            options.identity,
            self._mechanism.name,
            as_server=self._mechanism.as_server,
            own_type=None if options.accepts else NUMBERS[options.types[0]],
            prefer_2=options.prefer_2,
        )
        self._output = self._greeting.output
        self._version = (0, 0)
        self._cutter = Cutter(limits.HANDSHAKE_OCTETS, limits.HANDSHAKE_OCTETS)
        self.established: Established | None = None
        self.taker = None if options.make_taker is None else options.make_taker()
        self._opener: Opener | None = None

    @property
    def sealer(self) -> Sealer | None:
        """Seals all octets behind the handshake, as they are sent; None: they go as they are."""
        sealing = self._mechanism.sealing
        return None if sealing is None or self.established is None else sealing.sealer

    @property
    def is_welcome(self) -> bool:
        """Whether the peer may stay: its key may have been taken off a list."""
        return self._mechanism.is_welcome()

    @property
    def pending(self) -> bool:
        """Whether :meth:`receive` has more to return without further octets."""
        if self._error is not None:
            return True
        broken = self._opener is not None and self._opener.error is not None
        return broken or (self._cutter.pending and self._greeting is None)

    @property
    def held(self) -> int:
        """Octets kept of what was received: messages in progress, and what is pending."""
        return self._cutter.held if self._opener is None else self._cutter.held + self._opener.held

    @property
    def in_progress(self) -> bool:
        """Whether a message has arrived in part."""
        return self._cutter.in_progress or (self._opener is not None and self._opener.held > 0)

    @property
    def is_plain(self) -> bool:
        """Whether the next octets are those of messages and commands, and begin with one.

        A user who knows what they are may then leave out :meth:`receive`.
        """
        between = self.established is not None and self._error is None and not self._cutter.in_progress
        return between and self._opener is None

    def opens(self, octets: int) -> int:
        """The size of the long encrypted frame that so many further octets complete; 0: of none."""
        return 0 if self._opener is None else self._opener.completes(octets)

    def receive(self, octets: bytes, most: int = limits.CUT_MESSAGES) -> list[Event]:
        """Take octets that have arrived, none to go on with what is pending; about ``most`` messages at most.

        Raises ProtocolError.
        """
        if self._error is not None:
            raise self._error
        events: list[Event] = []
        try:
            self._receive(octets, events, most)
        except ProtocolError as error:
            self._error = error
            if self._greeting is None and self.established is None and not isinstance(error, RefusedError):
                reason = str(error).encode("ascii", "replace")[:255]
                if self._version > (2, 0):
                    self._output += encode_command(b"ERROR", bytes((len(reason),)) + reason)
            if not events:
                raise
        return events

    @property
    def has_output(self) -> bool:
        """Whether :meth:`take_output` has something."""
        return self._pong is not None or bool(self._output)

    def take_output(self) -> bytes:
        """The octets that the connection has to send now. A PONG answers all PINGs received since the last
        call."""
        if self._pong is not None:
            self._output += encode_command(b"PONG", self._pong)
            self._pong = None
        if not self._output:
            return b""
        octets = bytes(self._output)
        self._output.clear()
        return octets

    def ping(self, ttl: float = 0.0, context: bytes = b"") -> bytes:
        """A PING to be sent; without octets since 3.1 is not spoken. ``ttl``: seconds, up to 6553."""
        if self._version < (3, 1):
            return b""
        return encode_command(b"PING", int(ttl * PING_TENTHS).to_bytes(2, "big") + context)

    def subscribe(self, prefix: bytes) -> bytes:
        """A subscription to be sent."""
        if self._version >= (3, 1):
            return encode_command(b"SUBSCRIBE", prefix)
        return header(1 + len(prefix), False) + b"\x01" + prefix

    def cancel(self, prefix: bytes) -> bytes:
        """A cancellation to be sent."""
        if self._version >= (3, 1):
            return encode_command(b"CANCEL", prefix)
        return header(1 + len(prefix), False) + b"\x00" + prefix

    # -- greeting and handshake -----------------------------------------------------------------

    def _receive(self, octets: bytes, events: list[Event], most: int) -> None:
        if self._greeting is not None:
            rest = self._greeting.receive(octets)
            if rest is None:
                return
            self._begin_handshake(self._greeting)
            octets = rest
        if octets and self._opener is not None:
            octets = self._opener.open(octets)
        if octets:
            self._cutter.feed(octets)
        while self._cutter.pending and self.established is None:
            if self._version == (2, 0):
                self._take_identity(events)
            else:
                self._take_handshake(events)
            if self._opener is not None:
                return  # from now on octets are sealed, and nothing is to be sent before that is known
        if self.established is not None:
            self._take_traffic(events, most)
        if self._opener is not None and self._opener.error is not None and not self._cutter.pending:
            raise self._opener.error

    def _begin_handshake(self, greeting: Greeting) -> None:
        assert greeting.version is not None
        self._version = greeting.version
        self._greeting = None
        if self._version > (2, 0):
            if greeting.mechanism != self._mechanism.name:
                ours = self._mechanism.name.decode()
                raise HandshakeError("mechanism", f"{greeting.mechanism!r} instead of {ours}")
            self._output += self._mechanism.begin()
            return
        self._peer_type = name_of(greeting.socket_type)
        self._shown = shown_to(self._peer_type, self._options.types)
        if self._options.accepts:
            self._output.append(NUMBERS[self._shown])
        identity = self._options.identity
        self._output += header(len(identity), False) + identity

    def _check(self, peer: Properties) -> Properties:
        """Our properties by the peer's."""
        if peer:
            if b"socket-type" not in peer:
                raise HandshakeError("socket-type", "a READY without Socket-Type")
            self._peer_type = peer[b"socket-type"]
            self._shown = shown_to(self._peer_type, self._options.types)
        elif self._options.accepts:
            raise HandshakeError("socket-type", "a READY without properties")
        properties = {b"Socket-Type": self._shown}
        if self._shown in WITH_IDENTITY:
            properties[b"Identity"] = self._options.identity
        return properties

    def _take_handshake(self, events: list[Event]) -> None:
        try:
            messages, body = self._cutter.cut(1)
        except TooLargeError as error:
            raise TooLargeError("handshake-size", str(error)) from error
        if messages:
            raise HandshakeError("handshake", "a message in front of the end of the handshake")
        if body is None:
            return
        self._output += self._mechanism.receive(decode_command(body))
        peer = self._mechanism.peer
        if peer is not None:
            identity = peer.get(b"identity", peer.get(b"routing-id", b""))
            if len(identity) > limits.IDENTITY_OCTETS:
                raise TooLargeError("identity", f"an identity of {len(identity)} octets")
            self._establish(events, identity, peer)

    def _take_identity(self, events: list[Event]) -> None:
        self._cutter.max_octets = limits.IDENTITY_OCTETS
        try:
            messages, body = self._cutter.cut(1)
        except TooLargeError as error:
            raise TooLargeError("identity", str(error)) from error
        if body is not None:
            raise HandshakeError("handshake", "a command; there are none in ZMTP 2.0")
        if messages:
            if len(messages[0]) > 1:
                raise HandshakeError("identity", "an identity of several frames")
            self._establish(events, messages[0][0], {})

    def _establish(self, events: list[Event], identity: bytes, properties: Properties) -> None:
        self._cutter.max_octets = self._options.max_octets
        self._cutter.max_command = limits.COMMAND_OCTETS
        self._cutter.taker = self.taker
        key = self._mechanism.peer_key
        self.established = Established(self._peer_type, self._shown, identity, self._version, properties, key)
        events.append(self.established)
        if self._mechanism.sealing is not None:
            self._opener = self._mechanism.sealing.opener
            self._opener.max_octets = self._options.max_octets
            rest = self._opener.open(self._cutter.take_rest())
            if rest:
                self._cutter.feed(rest)

    # -- traffic --------------------------------------------------------------------------------

    def _take_traffic(self, events: list[Event], most: int) -> None:
        while self._cutter.pending and most > 0:
            messages, body = self._cutter.cut(most)
            taken = self._cutter.taken
            most -= len(messages) + taken + 1
            if messages or taken:
                if self._shown in PUBLISHERS:
                    self._take_subscriptions(messages, events)
                else:
                    events.append(tuple.__new__(Messages, (messages, taken)))  # a call less for a lone one
            if body is not None:
                self._take_command(decode_command(body), events)

    def _take_subscriptions(self, messages: list[Frames], events: list[Event]) -> None:
        """Subscriptions as ZMTP 2.0 and 3.0 have them: messages that begin with an octet 1 or 0."""
        for message in messages:
            first = message[0]
            if len(message) > 1 or first[:1] not in (b"\x00", b"\x01"):
                events.append(Messages([message]))
            elif first[0]:
                events.append(Subscribe(first[1:]))
            else:
                events.append(Cancel(first[1:]))

    def _take_command(self, command: Command, events: list[Event]) -> None:
        name, data = command
        if self._version == (2, 0):
            raise ProtocolError("command", "a command; there are none in ZMTP 2.0")
        if name == b"PING":
            if not 2 <= len(data) <= 2 + limits.PING_CONTEXT_OCTETS:
                raise ProtocolError("command", f"a PING with {len(data)} octets")
            self._pong = data[2:]
            events.append(Ping(int.from_bytes(data[:2], "big") / PING_TENTHS))
        elif name == b"PONG":
            events.append(Pong(data))
        elif name == b"SUBSCRIBE":
            if self._shown in PUBLISHERS:
                events.append(Subscribe(data))
        elif name == b"CANCEL":
            if self._shown in PUBLISHERS:
                events.append(Cancel(data))
        elif name == b"ERROR":
            raise RefusedError("refused", f"the peer reports an error: {decode_reason(data)}")
        # Others are of patterns and extensions that came later: ignored, as by ZeroMQ.
