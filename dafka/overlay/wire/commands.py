"""Messages between masters and clones of data stores: commands, in envelopes of the type command.

A command has a sequence number, a sender, a receiver and one of the contents below. Actions change a store,
the others are about the channels that carry actions. The last four are spoken among nodes of ours alone: they
go to masters on a topic that libbroker does not know, and the answers go to the sender.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, NamedTuple

from dafka.overlay.errors import InvalidValue
from dafka.overlay.limits import MOST_NACKED
from dafka.overlay.values import Table, Timespan, Value, encode
from dafka.overlay.values.decoder import read
from dafka.overlay.values.encoder import write, write_counted
from dafka.overlay.wire import primitives
from dafka.overlay.wire.primitives import NO_ENTITY, EntityId, Reader
from dafka.protocol.errors import MalformedMessage

QUERIES = b"/<$>/data/query"
"""The end of the topics on which only nodes of ours understand each other."""


class Put(NamedTuple):
    key: Value
    value: Value
    expiry: Timespan | None
    publisher: EntityId


class PutUnique(NamedTuple):
    key: Value
    value: Value
    expiry: Timespan | None
    caller: EntityId
    request: int
    publisher: EntityId


class PutUniqueResult(NamedTuple):
    inserted: bool
    caller: EntityId
    request: int
    publisher: EntityId


class Erase(NamedTuple):
    key: Value
    publisher: EntityId


class Expire(NamedTuple):
    key: Value
    publisher: EntityId


class Add(NamedTuple):
    """``begin_with`` is the tag of the type whose zero is there before the first addition."""

    key: Value
    value: Value
    begin_with: int
    expiry: Timespan | None
    publisher: EntityId


class Subtract(NamedTuple):
    key: Value
    value: Value
    expiry: Timespan | None
    publisher: EntityId


class Clear(NamedTuple):
    publisher: EntityId


class AttachWriter(NamedTuple):
    offset: int
    heartbeat_interval: int


class Keepalive(NamedTuple):
    sequence: int


class CumulativeAck(NamedTuple):
    sequence: int


class Nack(NamedTuple):
    sequences: tuple[int, ...]


class EncodedState:
    """A content of so many entries, which are ``encoded`` already, one after the other."""

    def __init__(self, count: int, encoded: bytes | bytearray) -> None:
        self._count = count
        number = bytearray()
        write_counted(count, number)
        self.octets = b"".join((number, encoded))

    def __len__(self) -> int:
        return self._count


class AckClone(NamedTuple):
    offset: int
    heartbeat_interval: int
    state: tuple[tuple[Value, Value], ...] | EncodedState
    """The content of the store, in any order; what is decoded is never encoded."""


class RetransmitFailed(NamedTuple):
    sequence: int


class Load(NamedTuple):
    """A clone wants the content in pieces: in its ``attempt`` with this number, from ``position`` on."""

    attempt: int
    position: int


class Piece(NamedTuple):
    """Entries as they were behind the event ``current``.

    The first event that the clone gets is the one behind ``offset``. It goes on with ``position``; 0: it has
    everything.
    """

    attempt: int
    offset: int
    heartbeat_interval: int
    current: int
    position: int
    state: tuple[tuple[Value, Value], ...]


class Query(NamedTuple):
    """A proxy asks the master, see :mod:`dafka.overlay.stores.queries`."""

    request: int
    operation: int
    arguments: Value


class Response(NamedTuple):
    """The answer to a query: an error code, 0 for none, and a value."""

    request: int
    code: int
    value: Value


Content = (
    Put
    | PutUnique
    | PutUniqueResult
    | Erase
    | Expire
    | Add
    | Subtract
    | Clear
    | AttachWriter
    | Keepalive
    | CumulativeAck
    | Nack
    | AckClone
    | RetransmitFailed
    | Load
    | Piece
    | Query
    | Response
)


class Command(NamedTuple):
    sequence: int
    sender: EntityId
    receiver: EntityId
    content: Content


def encode_command(command: Command) -> bytes:
    """The payload of an envelope. Raises :class:`~dafka.overlay.errors.InvalidValue`."""
    kind, fields = _KINDS[type(command.content)]
    octets = [
        _U64.pack(command.sequence),
        primitives.entity(command.sender),
        primitives.entity(command.receiver),
        bytes((kind,)),
    ]
    octets += [field.encode(content) for field, content in zip(fields, command.content, strict=True)]
    return b"".join(octets)


def decode_command(payload: bytes) -> Command:
    """Raises :class:`MalformedMessage`."""
    reader = Reader(payload)
    sequence, sender, receiver = reader.number(8), reader.entity(), reader.entity()
    kind = reader.number(1)
    if kind >= len(_CONTENTS):
        raise MalformedMessage("command", f"{kind} is not a kind of command")
    content, fields = _CONTENTS[kind]
    command = Command(sequence, sender, receiver, content(*[field.decode(reader) for field in fields]))
    if reader.left:
        raise MalformedMessage("trailing-octets", f"{reader.left} octets behind a command")
    return command


_U64 = struct.Struct(">Q")
_U16 = struct.Struct(">H")
_I64 = struct.Struct(">q")


class _Field(NamedTuple):
    encode: Callable[[Any], bytes]
    decode: Callable[[Reader], Any]


def _read_value(reader: Reader) -> Value:
    value, reader.position = read(reader.octets, reader.position)
    return value


def _flag(reader: Reader) -> bool:
    return reader.number(1) != 0


def _expiry(timespan: Timespan | None) -> bytes:
    return b"\x00" if timespan is None else b"\x01" + _I64.pack(timespan)


def _read_expiry(reader: Reader) -> Timespan | None:
    return Timespan(_I64.unpack(reader.take(8))[0]) if _flag(reader) else None


def _sequences(sequences: tuple[int, ...]) -> bytes:
    out = bytearray()
    write_counted(len(sequences), out)
    return bytes(out) + b"".join(map(_U64.pack, sequences))


def _read_sequences(reader: Reader) -> tuple[int, ...]:
    # Those that are missing behind these are asked for again when these are there.
    count = reader.counted(least=8)
    octets = reader.take(8 * count)
    return struct.unpack_from(f">{min(count, MOST_NACKED)}Q", octets)


def _state(state: tuple[tuple[Value, Value], ...] | EncodedState) -> bytes:
    if isinstance(state, EncodedState):
        return state.octets
    out = bytearray()
    write_counted(len(state), out)
    for key, value in state:
        write(key, out)
        write(value, out)
    return bytes(out)


def _read_state(reader: Reader) -> tuple[tuple[Value, Value], ...]:
    entries = [(_read_value(reader), _read_value(reader)) for _ in range(reader.counted(least=2))]
    try:
        Table(entries)
    except InvalidValue as error:
        raise MalformedMessage("duplicate-element", str(error)) from error
    return tuple(entries)


_value = _Field(encode, _read_value)
_optional = _Field(_expiry, _read_expiry)
_entity = _Field(primitives.entity, Reader.entity)
_u64 = _Field(_U64.pack, lambda reader: reader.number(8))
_u16 = _Field(_U16.pack, lambda reader: reader.number(2))
_u8 = _Field(lambda number: bytes((number,)), lambda reader: reader.number(1))
_bool = _Field(lambda flag: b"\x01" if flag else b"\x00", _flag)

_CONTENTS: list[tuple[Callable[..., Content], tuple[_Field, ...]]] = [
    (Put, (_value, _value, _optional, _entity)),
    (PutUnique, (_value, _value, _optional, _entity, _u64, _entity)),
    (PutUniqueResult, (_bool, _entity, _u64, _entity)),
    (Erase, (_value, _entity)),
    (Expire, (_value, _entity)),
    (Add, (_value, _value, _u8, _optional, _entity)),
    (Subtract, (_value, _value, _optional, _entity)),
    (Clear, (_entity,)),
    (AttachWriter, (_u64, _u16)),
    (Keepalive, (_u64,)),
    (CumulativeAck, (_u64,)),
    (Nack, (_Field(_sequences, _read_sequences),)),
    (AckClone, (_u64, _u16, _Field(_state, _read_state))),
    (RetransmitFailed, (_u64,)),
    (Load, (_u64, _u64)),
    (Piece, (_u64, _u64, _u16, _u64, _u64, _Field(_state, _read_state))),
    (Query, (_u64, _u8, _value)),
    (Response, (_u64, _u8, _value)),
]
_KINDS = {content: (kind, fields) for kind, (content, fields) in enumerate(_CONTENTS)}

__all__ = [
    "NO_ENTITY",
    "QUERIES",
    "AckClone",
    "Add",
    "AttachWriter",
    "Clear",
    "Command",
    "Content",
    "CumulativeAck",
    "EncodedState",
    "EntityId",
    "Erase",
    "Expire",
    "Keepalive",
    "Load",
    "Nack",
    "Piece",
    "Put",
    "PutUnique",
    "PutUniqueResult",
    "Query",
    "Response",
    "RetransmitFailed",
    "Subtract",
    "decode_command",
    "encode_command",
]
