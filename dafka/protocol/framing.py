"""Commands <-> ZeroMQ frames, in both framings that exist.

Both open the first frame with the command's ID octet and the ZeroMQ topic, so the same subscriptions serve
both. ``libdafka`` (what C nodes send) goes on in that frame with NUL, the version and the fields;
``rfc46`` (what the specification says) ends it there and puts signature, ID, version and fields into a
second frame. The content, of the two commands that have one, is a frame of its own at the end. So the
number of frames tells the framing.

In ``libdafka`` nothing delimits the ZeroMQ topic but the NUL behind it, and topics may hold NULs. Where it
is an address its length is known; where it is the name of a Dafka topic the same name stands in the fields,
except in GET-HEADS, whose only field is an address.

Octets behind the last field are ignored: that is where we extend ``libdafka``, as its nodes do, too (ACK
with the store's address). In ``rfc46`` ACK has a field address of its own. The grammar does not say whose;
the partition's is the ZeroMQ topic already and in FETCH the field names the sender, so it is the store's.
A peer that puts the partition there is one that does not say which store it is.

The Java implementation's current revision writes a third one: as ``libdafka``, but without the version
and with the subject in front of the address. C nodes do not read it, and here it is malformed, as anything
else that is neither of the two.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from enum import Enum

from dafka.protocol.commands import (
    Ack,
    Claim,
    Command,
    ConsumerHello,
    DirectHead,
    DirectRecord,
    End,
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
STRING_OCTETS = 255  # at most, and of a ZeroMQ topic behind the ID
STRINGS_LIMIT = 65536  # topics in one CONSUMER-HELLO
# The largest sequence that is read. The wire has 64 bits; below this bound the sequences behind it still fit
# there and into a signed number, so that no caller has to check.
SEQUENCE_LIMIT = 1 << 62

_U32 = struct.Struct(">I")
_U64 = struct.Struct(">Q")


class Framing(Enum):
    """How commands are written. Both are always read."""

    LIBDAFKA = "libdafka"
    RFC46 = "rfc46"


def zmq_topic(command: Command) -> bytes:
    """The ZeroMQ topic that the command is published under, with its ID octet in front."""
    kind = type(command)
    topic: bytes = command[_TOPIC_FIELD[kind]]  # type: ignore[assignment]
    return _ID[kind] + topic


def encode(command: Command, framing: Framing = Framing.LIBDAFKA) -> list[bytes]:
    """The frames of a command. Raises ValueError for fields that do not fit the wire."""
    topic = zmq_topic(command)
    if len(topic) > 1 + STRING_OCTETS:
        octets = len(topic) - 1
        raise ValueError(f"a topic has at most {STRING_OCTETS} octets, not {octets}: {topic[1:41]!r}...")
    fields = _write_fields(command, framing)
    if framing is Framing.LIBDAFKA:
        frames = [topic + b"\0" + VERSION + fields]
    else:
        frames = [topic, SIGNATURE + topic[:1] + VERSION + fields]
    if isinstance(command, (Record, DirectRecord)):
        frames.append(command.content)
    return frames


def decode(frames: Sequence[bytes]) -> Command:
    """The command of a message in either framing. Raises :class:`MalformedMessage`.

    Its ``cause`` is one of ``empty``, ``unknown-id``, ``frame-count``, ``topic``, ``topic-mismatch``,
    ``signature``, ``id-mismatch``, ``version``, ``short-fields``, ``too-many-strings`` and ``sequence``.
    """
    if not frames or not frames[0]:
        raise MalformedMessage("empty", "no first frame")
    head = frames[0]
    kind = _KIND.get(head[:1])
    if kind is None:
        raise MalformedMessage("unknown-id", repr(head[:1]))
    content_frames = 1 if kind in (Record, DirectRecord) else 0
    rfc46 = len(frames) == 2 + content_frames
    if rfc46:
        topic, fields = _split_rfc46(head, frames[1])
    elif len(frames) == 1 + content_frames:
        topic, fields = _split_libdafka(kind, head)
    else:
        raise MalformedMessage("frame-count", f"{len(frames)} frames for {head[:1]!r}")
    if len(topic) > STRING_OCTETS:
        raise MalformedMessage("topic", f"{len(topic)} octets, at most {STRING_OCTETS} are allowed")
    return _read_fields(kind, topic, fields, frames[-1], rfc46)


def string(value: bytes) -> bytes:
    """A string field: one length octet and at most 255 octets. Raises ValueError for more."""
    if len(value) > STRING_OCTETS:
        raise ValueError(f"a string has at most {STRING_OCTETS} octets, not {len(value)}: {value[:40]!r}...")
    return bytes((len(value),)) + value


# -- fields -------------------------------------------------------------------------------------


def _write_fields(command: Command, framing: Framing) -> bytes:
    match command:
        case Record() | DirectRecord() | Head() | DirectHead():
            return string(command.address) + string(command.topic) + _sequence(command.sequence)
        case Trimmed():
            fields = string(command.address) + string(command.topic) + _sequence(command.sequence)
            return fields + (string(command.source) if command.source else b"")
        case Fetch():
            if not 0 <= command.count < 1 << 32:
                raise ValueError(f"a count of records is a number of 32 bits, not {command.count}")
            fields = string(command.address) + string(command.topic) + _sequence(command.sequence)
            return fields + _U32.pack(command.count)
        case Ack():
            fields = string(command.topic) + _sequence(command.sequence)
            if framing is Framing.RFC46:
                return string(command.store) + fields
            return fields + (string(command.store) if command.store else b"")
        case Claim():
            fields = string(command.address) + string(command.topic) + _sequence(command.sequence)
            return fields + bytes((command.numbering,))
        case End():
            fields = string(command.address) + string(command.topic) + _sequence(command.sequence)
            fields += string(command.store) + bytes((command.kind,)) + _sequence(command.offset)
            return fields + _sequence(command.first) + _U32.pack(command.count) + _U32.pack(command.checksum)
        case GetHeads() | StoreHello():
            return string(command.address)
        case ConsumerHello():
            count = len(command.topics)
            if count > STRINGS_LIMIT:
                raise ValueError(f"a CONSUMER-HELLO has at most {STRINGS_LIMIT} topics, not {count}")
            topics = b"".join([_U32.pack(len(topic)) + topic for topic in command.topics])
            return string(command.address) + _U32.pack(count) + topics


def _sequence(number: int) -> bytes:
    if not 0 <= number < 1 << 64:
        raise ValueError(f"a sequence is a number of 64 bits, not {number}")
    return _U64.pack(number)


def _read_fields(kind: type, topic: bytes, octets: bytes, content: bytes, rfc46: bool) -> Command:
    fields = _Fields(octets)
    if kind is Ack:
        store = fields.string() if rfc46 else b""
        subject, sequence = fields.string(), fields.sequence()
        if not rfc46:
            store = fields.appended_address()
        return Ack(topic, subject, sequence, store if store != topic else b"")
    address = fields.string()
    if kind is GetHeads:
        return GetHeads(topic, address)
    if kind is StoreHello:
        return StoreHello(topic, address)
    if kind is ConsumerHello:
        return ConsumerHello(topic, address, fields.strings())
    subject, sequence = fields.string(), fields.sequence()
    if kind in (Record, Head) and subject != topic:
        raise MalformedMessage("topic-mismatch", f"published under {topic!r}, subject {subject!r}")
    if kind is Record:
        return Record(address, subject, sequence, content)
    if kind is DirectRecord:
        return DirectRecord(topic, address, subject, sequence, content)
    if kind is Fetch:
        return Fetch(topic, address, subject, sequence, fields.u32())
    if kind is Claim:
        return Claim(topic, address, subject, sequence, bool(fields.take(1)[0]))
    if kind is End:
        store, messages = fields.string(), fields.take(1)[0]
        numbers = fields.sequence(), fields.sequence(), fields.u32(), fields.u32()
        return End(topic, address, subject, sequence, store, messages, *numbers)
    if kind is Head:
        return Head(address, subject, sequence)
    if kind is DirectHead:
        return DirectHead(topic, address, subject, sequence)
    return Trimmed(topic, address, subject, sequence, fields.appended_address())


class _Fields:
    """A cursor over the fields of one command."""

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
        return int.from_bytes(self.take(4), "big")

    def sequence(self) -> int:
        number = int.from_bytes(self.take(8), "big")
        if number > SEQUENCE_LIMIT:
            raise MalformedMessage("sequence", f"{number} is beyond {SEQUENCE_LIMIT}")
        return number

    def string(self) -> bytes:
        return self.take(self.take(1)[0])

    def appended_address(self) -> bytes:
        """The address behind the last field of the specification, if there is one: an addition of ours."""
        if self.left > ADDRESS_OCTETS and self.octets[self.position] == ADDRESS_OCTETS:
            return self.string()
        return b""

    def strings(self) -> tuple[bytes, ...]:
        count = self.u32()
        if count > STRINGS_LIMIT or count * 4 > self.left:
            raise MalformedMessage("too-many-strings", str(count))
        return tuple([self.take(self.u32()) for _ in range(count)])


# -- the first frame ----------------------------------------------------------------------------


_BEFORE_ADDRESS = b"\0" + VERSION + bytes((ADDRESS_OCTETS,))  # what ends a topic, and begins the fields


def _split_rfc46(head: bytes, second: bytes) -> tuple[bytes, bytes]:
    if second[:2] != SIGNATURE:
        raise MalformedMessage("signature", repr(second[:2]))
    if second[2:3] != head[:1]:
        raise MalformedMessage("id-mismatch", f"{second[2:3]!r} under {head[:1]!r}")
    if second[3:4] != VERSION:
        raise MalformedMessage("version", repr(second[3:4]))
    return head[1:], second[4:]


def _split_libdafka(kind: type, head: bytes) -> tuple[bytes, bytes]:
    if kind is Record or kind is Head:
        end = _named_topic_end(head)
    elif kind is GetHeads:
        end = _get_heads_topic_end(head)
    elif head[1 + ADDRESS_OCTETS : 2 + ADDRESS_OCTETS] == b"\0":
        end = 1 + ADDRESS_OCTETS
    else:
        end = head.find(b"\0", 1)
    if end < 1:
        raise MalformedMessage("topic", f"no NUL ends it: {head[:64]!r}")
    if head[end + 1 : end + 2] != VERSION:
        raise MalformedMessage("version", repr(head[end + 1 : end + 2]))
    return head[1:end], head[end + 2 :]


def _named_topic_end(head: bytes) -> int:
    """Where the topic of a RECORD or HEAD ends: at the first NUL behind which the version and an address are,
    and the fields repeat it."""
    stop = 2 + STRING_OCTETS
    end = first = head.find(b"\0", 1, stop)
    while end > 0:
        subject = head[1:end]
        at = end + len(_BEFORE_ADDRESS) + ADDRESS_OCTETS
        if (
            head.startswith(_BEFORE_ADDRESS, end)
            and head[at : at + 1] == bytes((len(subject),))
            and head.startswith(subject, at + 1)
        ):
            return end
        end = head.find(b"\0", end + 1, stop)
    return first  # malformed one way or another: let the fields say how


def _get_heads_topic_end(head: bytes) -> int:
    """Where the topic of a GET-HEADS ends: where just an address is left, else at the first NUL."""
    end = len(head) - len(_BEFORE_ADDRESS) - ADDRESS_OCTETS
    if end > 0 and head.startswith(_BEFORE_ADDRESS, end):
        return end
    return head.find(b"\0", 1)


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
    Claim: b"C",
    End: b"N",
}
_KIND: dict[bytes, type] = {octet: kind for kind, octet in _ID.items()}
# Which field of the tuple is the ZeroMQ topic: the topic's name for RECORD and HEAD, else the first field.
_TOPIC_FIELD: dict[type, int] = {kind: 1 if kind in (Record, Head) else 0 for kind in _ID}
