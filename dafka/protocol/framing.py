"""Commands <-> ZeroMQ frames, in both framings that exist.

Both open the first frame with the command's ID octet and the ZeroMQ topic, so the same subscriptions serve
both. ``libdafka`` (what C and Java nodes send) goes on in that frame with NUL, the version and the fields;
``rfc46`` (what the specification says) ends it there and puts signature, ID, version and fields into a
second frame. Contents are a frame of their own at the end. A reader detects the framing: an ``rfc46``
command has a second frame that begins with the signature and repeats the ID, and a first frame that is not
a ``libdafka`` head.

A ZeroMQ topic is not delimited in the first frame of ``libdafka``: it ends at the last NUL that the fields
leave room for. Where the topic is an address its length is known; where it is the name of a Dafka topic the
same name stands in the fields, except in GET-HEADS, whose fields have a fixed length.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from enum import Enum

from dafka.protocol.commands import (
    Ack,
    Command,
    ConsumerHello,
    DirectHead,
    DirectRecord,
    Fetch,
    GetHeads,
    Head,
    Record,
    StoreHello,
    Trimmed,
)
from dafka.protocol.errors import MalformedMessage

VERSION = b"\x01"
SIGNATURE = b"\xaa\xa5"
ADDRESS_OCTETS = 32
STRING_OCTETS = 255
STRINGS_LIMIT = 65536  # topics in one CONSUMER-HELLO

_U32 = struct.Struct(">I")
_U64 = struct.Struct(">Q")


class Framing(Enum):
    """How commands are written. Both are always read."""

    LIBDAFKA = "libdafka"
    RFC46 = "rfc46"


def zmq_topic(command: Command) -> bytes:
    """What the command is published under: its ID octet and its ZeroMQ topic."""
    return _ID[type(command)] + command[_TOPIC_FIELD[type(command)]]  # type: ignore[operator]


def encode(command: Command, framing: Framing = Framing.LIBDAFKA) -> list[bytes]:
    """The frames of a command. Raises ValueError for fields that do not fit the wire."""
    topic = zmq_topic(command)
    fields = _write_fields(command, framing)
    if framing is Framing.LIBDAFKA:
        frames = [topic + b"\0" + VERSION + fields]
    else:
        frames = [topic, SIGNATURE + topic[:1] + VERSION + fields]
    if isinstance(command, (Record, DirectRecord)):
        frames.append(command.content)
    return frames


def decode(frames: Sequence[bytes]) -> Command:
    """The command of a message in either framing. Raises :class:`MalformedMessage`."""
    if not frames or not frames[0]:
        raise MalformedMessage("empty", "no first frame")
    head = frames[0]
    kind = _KIND.get(head[:1])
    if kind is None:
        raise MalformedMessage("unknown-id", repr(head[:1]))
    content_frames = 1 if kind in (Record, DirectRecord) else 0
    if len(frames) == 2 + content_frames:
        topic, fields = _split_rfc46(head, frames[1])
    elif len(frames) == 1 + content_frames:
        topic, fields = _split_libdafka(kind, head)
    else:
        raise MalformedMessage("frame-count", f"{len(frames)} frames for {head[:1]!r}")
    content = frames[-1] if content_frames else b""
    return _read_fields(kind, topic, fields, content, len(frames) == 2 + content_frames)


def string(value: bytes) -> bytes:
    """A string field: one length octet and at most 255 octets."""
    if len(value) > STRING_OCTETS:
        raise ValueError(
            f"a string on the wire has at most {STRING_OCTETS} octets, not {len(value)}: {value[:40]!r}..."
        )
    return bytes((len(value),)) + value


# -- fields -------------------------------------------------------------------------------------


def _write_fields(command: Command, framing: Framing) -> bytes:
    match command:
        case Record() | DirectRecord() | Head() | DirectHead() | Trimmed():
            return string(command.address) + string(command.topic) + _U64.pack(command.sequence)
        case Fetch():
            return (
                string(command.address)
                + string(command.topic)
                + _U64.pack(command.sequence)
                + _U32.pack(command.count)
            )
        case Ack():
            fields = string(command.topic) + _U64.pack(command.sequence)
            if framing is Framing.RFC46:
                # The field list says address, and the partition is the topic already: the sender's, then.
                return string(command.store) + fields
            return fields + (string(command.store) if command.store else b"")
        case GetHeads() | StoreHello():
            return string(command.address)
        case ConsumerHello():
            topics = b"".join(_U32.pack(len(topic)) + topic for topic in command.topics)
            return string(command.address) + _U32.pack(len(command.topics)) + topics


def _read_fields(kind: type, topic: bytes, fields: bytes, content: bytes, rfc46: bool) -> Command:
    reader = _Fields(fields)
    if kind is Ack:
        store = reader.string() if rfc46 else b""
        subject, sequence = reader.string(), reader.u64()
        if not rfc46 and reader.left > ADDRESS_OCTETS and reader.octets[reader.position] == ADDRESS_OCTETS:
            store = reader.string()
        return Ack(topic, subject, sequence, store)
    address = reader.string()
    if kind is GetHeads:
        return GetHeads(topic, address)
    if kind is StoreHello:
        return StoreHello(topic, address)
    if kind is ConsumerHello:
        return ConsumerHello(topic, address, reader.strings())
    subject, sequence = reader.string(), reader.u64()
    if kind in (Record, Head) and subject != topic:
        raise MalformedMessage("topic-mismatch", f"published under {topic!r}, subject {subject!r}")
    if kind is Record:
        return Record(address, subject, sequence, content)
    if kind is DirectRecord:
        return DirectRecord(topic, address, subject, sequence, content)
    if kind is Fetch:
        return Fetch(topic, address, subject, sequence, reader.u32())
    if kind is Head:
        return Head(address, subject, sequence)
    return (DirectHead if kind is DirectHead else Trimmed)(topic, address, subject, sequence)


class _Fields:
    """A cursor over the fields of one command; what stands behind the last one read is ignored."""

    def __init__(self, octets: bytes) -> None:
        self.octets = octets
        self.position = 0

    @property
    def left(self) -> int:
        return len(self.octets) - self.position

    def take(self, count: int) -> bytes:
        if count > self.left:
            raise MalformedMessage("short-fields", f"{count} octets wanted, {self.left} left")
        start = self.position
        self.position = start + count
        return self.octets[start : self.position]

    def u32(self) -> int:
        return int(_U32.unpack(self.take(4))[0])

    def u64(self) -> int:
        return int(_U64.unpack(self.take(8))[0])

    def string(self) -> bytes:
        return self.take(self.take(1)[0])

    def strings(self) -> tuple[bytes, ...]:
        count = self.u32()
        if count > STRINGS_LIMIT or count * 4 > self.left:
            raise MalformedMessage("too-many-strings", str(count))
        return tuple(self.take(self.u32()) for _ in range(count))


# -- the first frame ----------------------------------------------------------------------------


def _split_rfc46(head: bytes, second: bytes) -> tuple[bytes, bytes]:
    if second[:2] != SIGNATURE:
        raise MalformedMessage("signature", repr(second[:2]))
    if second[2:3] != head[:1]:
        raise MalformedMessage("id-mismatch", f"{second[2:3]!r} under {head[:1]!r}")
    if second[3:4] != VERSION:
        raise MalformedMessage("version", repr(second[3:4]))
    return head[1:], second[4:]


def _split_libdafka(kind: type, head: bytes) -> tuple[bytes, bytes]:
    if kind in (Record, Head):
        end = _named_topic_end(head)
    elif kind is GetHeads:
        # Fields: one string, an address. Whatever stands before it is the topic.
        end = len(head) - (2 + 1 + ADDRESS_OCTETS)
    else:
        end = 1 + ADDRESS_OCTETS
        if head[end : end + 1] != b"\0":
            end = head.find(b"\0", 1)
    if end < 1 or head[end : end + 1] != b"\0":
        raise MalformedMessage("topic", repr(head[:64]))
    if head[end + 1 : end + 2] != VERSION:
        raise MalformedMessage("version", repr(head[end + 1 : end + 2]))
    return head[1:end], head[end + 2 :]


def _named_topic_end(head: bytes) -> int:
    """Where the topic of a RECORD or HEAD ends: at the first NUL whose fields repeat the topic."""
    end = head.find(b"\0", 1)
    while end > 0:
        address_at = end + 2
        if address_at < len(head) and end <= STRING_OCTETS + 1:
            subject_at = address_at + 1 + head[address_at]
            if head[subject_at : subject_at + end] == bytes((end - 1,)) + head[1:end]:
                return end
        end = head.find(b"\0", end + 1)
    return head.find(b"\0", 1)  # malformed one way or another: let the fields say how


_ID: dict[type, bytes] = {
    Record: b"M",
    DirectRecord: b"D",
    Fetch: b"F",
    Ack: b"K",
    Head: b"H",
    DirectHead: b"E",
    GetHeads: b"G",
    ConsumerHello: b"W",
    StoreHello: b"L",
    Trimmed: b"T",
}
_KIND: dict[bytes, type] = {octet: kind for kind, octet in _ID.items()}
# Which field of the tuple is the ZeroMQ topic: the topic's name for RECORD and HEAD, else the first field.
_TOPIC_FIELD: dict[type, int] = {kind: 1 if kind in (Record, Head) else 0 for kind in _ID}
