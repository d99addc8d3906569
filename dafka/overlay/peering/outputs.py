"""Outputs of a node's connections for its surroundings."""

from __future__ import annotations

from typing import NamedTuple

from dafka.overlay.wire.envelope import Envelope
from dafka.overlay.wire.handshake import Announcement


class Send(NamedTuple):
    """Write these octets to a connection, behind those before."""

    connection: int
    octets: bytes


class Close(NamedTuple):
    """Close a connection when what was to be sent is sent. Nothing more is heard of it."""

    connection: int


class PeerUp(NamedTuple):
    """The two are peers, in this version of the protocol."""

    connection: int
    peer: bytes
    version: int
    announced: Announcement
    heard: Announcement


class PeerDown(NamedTuple):
    """They no longer are. ``removed``: by this side, which said goodbye; else the peer is lost."""

    connection: int
    peer: bytes
    removed: bool
    said_goodbye: bool
    """Whether it was the peer who said goodbye."""
    reason: str = ""
    """The peer's fault, if that is why."""


class Refused(NamedTuple):
    """The handshake failed: this connection gets no peer. A :class:`Close` follows."""

    connection: int
    peer: bytes | None
    code: int
    description: str
    redundant: bool
    """The two are connected by another connection, or about to be: it need not be tried again."""


class NewFilter(NamedTuple):
    """A peer of version 1 told its whole filter anew."""

    peer: bytes
    filter: tuple[bytes, ...]


class Received(NamedTuple):
    """Data or a command from a peer of version 1."""

    peer: bytes
    envelope: Envelope


class Pong(NamedTuple):
    """A peer has answered a ping: everything that it had sent before has been heard."""

    peer: bytes
    payload: bytes


class ReceivedRouted(NamedTuple):
    """A message from a peer of version 2, as :mod:`dafka.overlay.wire.routed` reads it."""

    peer: bytes
    message: bytes


Output = Send | Close | PeerUp | PeerDown | Refused | NewFilter | Received | Pong | ReceivedRouted
