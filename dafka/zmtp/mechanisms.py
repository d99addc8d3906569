"""Security mechanisms: the commands between the greeting and the first message of a ZMTP 3.x connection.

A mechanism is one side of a handshake. It is given the peer's commands, and what it answers goes out. The
metadata of both sides travel in its commands. ``properties`` are our own: of a server that shows each peer
another socket type, they are asked for once the peer's are known.

NULL and PLAIN leave messages as they are. CURVE (:mod:`dafka.zmtp.curve`) encrypts each frame: all octets
behind its handshake pass through a :class:`~dafka.zmtp.sealing.Sealing`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Protocol

from dafka.zmtp.commands import Command, decode_properties, decode_reason, encode_command, encode_properties
from dafka.zmtp.errors import HandshakeError, RefusedError

if TYPE_CHECKING:  # its cryptography is not always installed
    from dafka.zmtp.sealing import Sealing

Properties = Mapping[bytes, bytes]
Check = Callable[[Properties], Properties]
"""Our properties by the peer's (empty: not known yet); raises HandshakeError if it is not welcome."""


class Mechanism(Protocol):
    """One side of a handshake; ``peer`` are the properties of the other one, as soon as it is complete."""

    name: bytes
    as_server: bool
    peer: Properties | None
    peer_key: bytes
    """The peer's long-term public key; empty where there are none."""
    sealing: Sealing | None
    """What messages pass through behind the handshake."""

    def is_welcome(self) -> bool:
        """Whether a peer that has come in may stay."""

    def begin(self) -> bytes:
        """The first octets to send."""

    def receive(self, command: Command) -> bytes:
        """The answer to a command; raises HandshakeError or RefusedError."""


MakeMechanism = Callable[[Check], Mechanism]
"""What makes one side of a connection's handshake."""


class _Open:
    """The base of the mechanisms without keys."""

    peer_key = b""
    sealing: Sealing | None = None

    def is_welcome(self) -> bool:
        return True


class NullClient(_Open):
    """NULL, the side that connects: it says READY first."""

    name = b"NULL"
    as_server = False

    def __init__(self, check: Check) -> None:
        self.peer: Properties | None = None
        self._check = check

    def begin(self) -> bytes:
        return encode_command(b"READY", encode_properties(self._check({})))

    def receive(self, command: Command) -> bytes:
        peer = decode_properties(expected(command, b"READY"))
        self._check(peer)
        self.peer = peer
        return b""


class NullServer(_Open):
    """NULL, the side that accepts: its READY answers the peer's."""

    name = b"NULL"
    as_server = False  # by the specification: the field has no meaning with NULL

    def __init__(self, check: Check) -> None:
        self.peer: Properties | None = None
        self._check = check

    def begin(self) -> bytes:
        return b""

    def receive(self, command: Command) -> bytes:
        peer = decode_properties(expected(command, b"READY"))
        ready = encode_command(b"READY", encode_properties(self._check(peer)))
        self.peer = peer
        return ready


class PlainClient(_Open):
    """PLAIN, the side with a name and a password (24/ZMTP-PLAIN): HELLO, WELCOME, INITIATE, READY."""

    name = b"PLAIN"
    as_server = False

    def __init__(self, check: Check, username: bytes, password: bytes) -> None:
        if max(len(username), len(password)) > 255:
            raise ValueError("a user name and a password of PLAIN have at most 255 octets each")
        self.peer: Properties | None = None
        self._check = check
        self._hello = bytes((len(username),)) + username + bytes((len(password),)) + password
        self._welcomed = False

    def begin(self) -> bytes:
        return encode_command(b"HELLO", self._hello)

    def receive(self, command: Command) -> bytes:
        if not self._welcomed:
            expected(command, b"WELCOME")
            self._welcomed = True
            return encode_command(b"INITIATE", encode_properties(self._check({})))
        peer = decode_properties(expected(command, b"READY"))
        self._check(peer)
        self.peer = peer
        return b""


class PlainServer(_Open):
    """PLAIN, the side that asks for a name and a password; ``allows(username, password)`` decides."""

    name = b"PLAIN"
    as_server = True

    def __init__(self, check: Check, allows: Callable[[bytes, bytes], bool]) -> None:
        self.peer: Properties | None = None
        self._check = check
        self._allows = allows
        self._welcomed = False

    def begin(self) -> bytes:
        return b""

    def receive(self, command: Command) -> bytes:
        if not self._welcomed:
            hello = expected(command, b"HELLO")
            username, rest = _short(hello)
            password, rest = _short(rest)
            if rest:
                raise HandshakeError("handshake", "octets behind the password in a HELLO")
            if not self._allows(username, password):
                raise HandshakeError("password", f"user {username[:40]!r} is refused")
            self._welcomed = True
            return encode_command(b"WELCOME")
        peer = decode_properties(expected(command, b"INITIATE"))
        ready = encode_command(b"READY", encode_properties(self._check(peer)))
        self.peer = peer
        return ready


def expected(command: Command, name: bytes) -> bytes:
    """The data of a command with this name. Raises HandshakeError or RefusedError."""
    if command.name == b"ERROR":
        raise RefusedError("refused", f"the peer refuses the connection: {decode_reason(command.data)}")
    if command.name != name:
        raise HandshakeError("handshake", f"{command.name[:20]!r} instead of {name.decode()}")
    return command.data


def _short(data: bytes) -> tuple[bytes, bytes]:
    """A string with an octet for its length, and what follows it."""
    if not data or len(data) <= data[0]:
        raise HandshakeError("handshake", "a HELLO cut short")
    return data[1 : 1 + data[0]], data[1 + data[0] :]
