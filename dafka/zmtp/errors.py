"""Errors of peers. Each ends its connection; receivers count it by ``cause``."""

from __future__ import annotations

from dafka.protocol.errors import MalformedMessage


class ProtocolError(MalformedMessage):
    """A peer that does not follow ZMTP, or exceeds a limit."""


class GreetingError(ProtocolError):
    """A greeting of another protocol, or of a version that is not spoken."""


class HandshakeError(ProtocolError):
    """A handshake with a wrong command, mechanism or socket type."""


class RefusedError(ProtocolError):
    """The peer has refused the handshake with an ERROR command."""


class FramingError(ProtocolError):
    """An invalid frame."""


class TooLargeError(ProtocolError):
    """A message, a command or a set of subscriptions beyond its limit."""
