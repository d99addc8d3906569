"""The messages of the handshake. Each begins with an octet that names its type.

Version 2 adds to the filters of originator_syn and responder_syn_ack the sender's logical times, and the
peers of version 1 behind it.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from dafka.overlay.wire import primitives
from dafka.overlay.wire.frames import frame
from dafka.overlay.wire.leaves import Leaf, encode_leaves, read_leaves
from dafka.overlay.wire.primitives import Reader
from dafka.protocol.errors import MalformedMessage

MAGIC = 0x5A45454B  # "ZEEK"
HELLO, PROBE, VERSION_SELECT, DROP_CONN, ORIGINATOR_SYN, RESPONDER_SYN_ACK, ORIGINATOR_ACK = range(6, 13)
LIBBROKER, WITH_ROUTING = 1, 2
"""The versions of the protocol: libbroker's, and that among our own nodes."""

_MAGIC = struct.Struct(">BI")
_TIMES = struct.Struct(">QQ")


class Hello(NamedTuple):
    sender: bytes
    lowest: int
    highest: int


class Probe(NamedTuple):
    pass


class VersionSelect(NamedTuple):
    sender: bytes
    version: int


class DropConn(NamedTuple):
    """Why a connection is closed. ``code`` is an :class:`~dafka.overlay.wire.codes.ErrorCode`, or unknown."""

    sender: bytes
    code: int
    description: bytes


class Announcement(NamedTuple):
    """A node's announcement: its filter; in version 2 also when it set that, its clock and leaves."""

    filter: tuple[bytes, ...] = ()
    time: int = 0
    clock: int = 0
    leaves: tuple[Leaf, ...] = ()


class OriginatorSyn(NamedTuple):
    announcement: Announcement


class ResponderSynAck(NamedTuple):
    announcement: Announcement


class OriginatorAck(NamedTuple):
    pass


HandshakeMessage = Hello | Probe | VersionSelect | DropConn | OriginatorSyn | ResponderSynAck | OriginatorAck


class WrongMagic(MalformedMessage):
    """Somebody speaks another protocol."""


def encode_handshake(message: HandshakeMessage, version: int = LIBBROKER) -> bytes:
    """A message with its length. ``version`` is the one that was selected."""
    match message:
        case Hello(sender, lowest, highest):
            return frame(_MAGIC.pack(HELLO, MAGIC) + sender + bytes((lowest, highest)))
        case Probe():
            return frame(_MAGIC.pack(PROBE, MAGIC))
        case VersionSelect(sender, selected):
            return frame(_MAGIC.pack(VERSION_SELECT, MAGIC) + sender + bytes((selected,)))
        case DropConn(sender, code, description):
            octets = _MAGIC.pack(DROP_CONN, MAGIC) + sender + bytes((code,))
            return frame(octets + primitives.string(description))
        case OriginatorSyn(announcement):
            return frame(bytes((ORIGINATOR_SYN,)) + _announcement(announcement, version))
        case ResponderSynAck(announcement):
            return frame(bytes((RESPONDER_SYN_ACK,)) + _announcement(announcement, version))
        case OriginatorAck():
            return frame(bytes((ORIGINATOR_ACK,)))


def decode_handshake(message: bytes, version: int = LIBBROKER) -> HandshakeMessage:
    """A message without its length. Octets behind it are not looked at, as libbroker does it.

    Raises :class:`MalformedMessage`, and its subclass :class:`WrongMagic`.
    """
    kind = message[0] if message else 0
    reader = Reader(message, 1)
    name = _NAMES.get(kind)
    if name is None:
        raise MalformedMessage("message-type", "invalid message type tag")
    try:
        return _decode(kind, reader, version)
    except WrongMagic:
        raise
    except MalformedMessage as error:
        raise MalformedMessage(error.cause, f"failed to parse {name}") from error


def _decode(kind: int, reader: Reader, version: int) -> HandshakeMessage:
    if kind == ORIGINATOR_SYN:
        return OriginatorSyn(_read_announcement(reader, version))
    if kind == RESPONDER_SYN_ACK:
        return ResponderSynAck(_read_announcement(reader, version))
    if kind == ORIGINATOR_ACK:
        return OriginatorAck()
    magic = reader.number(4)
    message: HandshakeMessage
    if kind == HELLO:
        message = Hello(reader.identity(), reader.number(1), reader.number(1))
    elif kind == VERSION_SELECT:
        message = VersionSelect(reader.identity(), reader.number(1))
    elif kind == DROP_CONN:
        message = DropConn(reader.identity(), reader.number(1), reader.string())
    else:
        message = Probe()
    if magic != MAGIC:
        raise WrongMagic("magic", "wrong magic number")
    return message


def _announcement(announcement: Announcement, version: int) -> bytes:
    octets = primitives.prefixes(announcement.filter)
    if version < WITH_ROUTING:
        return octets
    return octets + _TIMES.pack(announcement.time, announcement.clock) + encode_leaves(announcement.leaves)


def _read_announcement(reader: Reader, version: int) -> Announcement:
    filter = reader.prefixes()
    if version < WITH_ROUTING:
        return Announcement(filter)
    return Announcement(filter, reader.number(8), reader.number(8), read_leaves(reader))


_NAMES = {
    HELLO: "hello_msg",
    PROBE: "probe_msg",
    VERSION_SELECT: "version_select_msg",
    DROP_CONN: "drop_conn_msg",
    ORIGINATOR_SYN: "originator_syn_msg",
    RESPONDER_SYN_ACK: "responder_syn_ack_msg",
    ORIGINATOR_ACK: "originator_ack_msg",
}
