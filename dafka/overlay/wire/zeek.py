"""Zeek's own messages, which are values: a vector of the format, the type and the content.

Elements that are there beyond what is known are left out.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from dafka.overlay.limits import CHECKED_AT_ONCE, MOST_NESTED
from dafka.overlay.values import Count, Enum, Timestamp, Value, decode, encode
from dafka.overlay.values.checking import SIZES, end_of, is_value, takes_long, work
from dafka.overlay.values.decoder import read
from dafka.overlay.values.types import STRING, VECTOR
from dafka.protocol.errors import MalformedMessage

EVENT, LOG_CREATE, LOG_WRITE, IDENTIFIER_UPDATE, BATCH = map(Count, range(1, 6))
NETWORK_TIME = Count(1)
"""The key of an event's metadata that Zeek itself uses; users' own begin at 200."""

_FORMAT = Count(1)
_count_at = struct.Struct(">Q").unpack_from


class Event(NamedTuple):
    name: str
    arguments: tuple[Value, ...] = ()
    metadata: tuple[tuple[Count, Value], ...] | None = None

    @property
    def network_time(self) -> Timestamp | None:
        for key, value in self.metadata or ():
            if key == NETWORK_TIME and isinstance(value, Timestamp):
                return value
        return None


class LogCreate(NamedTuple):
    stream: Enum
    writer: Enum
    writer_info: Value
    fields: Value


class LogWrite(NamedTuple):
    stream: Enum
    writer: Enum
    path: str
    row: str


class IdentifierUpdate(NamedTuple):
    name: str
    value: Value


class Batch(NamedTuple):
    messages: tuple[ZeekMessage, ...]


ZeekMessage = Event | LogCreate | LogWrite | IdentifierUpdate | Batch


def to_value(message: ZeekMessage) -> Value:
    """The value that stands for a message."""
    match message:
        case Event(name, arguments, None):
            return _FORMAT, EVENT, (name, arguments)
        case Event(name, arguments, metadata):
            return _FORMAT, EVENT, (name, arguments, metadata)
        case LogCreate():
            return _FORMAT, LOG_CREATE, tuple(message)
        case LogWrite():
            return _FORMAT, LOG_WRITE, tuple(message)
        case IdentifierUpdate():
            return _FORMAT, IDENTIFIER_UPDATE, tuple(message)
        case Batch(messages):
            return _FORMAT, BATCH, tuple(map(to_value, messages))


def from_value(value: Value, depth: int = 0) -> ZeekMessage:
    """The message that a value stands for. Raises :class:`MalformedMessage` if it stands for none."""
    if not isinstance(value, tuple) or len(value) < 3 or value[0] != 1:
        raise MalformedMessage("zeek-message", "no vector of format 1, type and content")
    kind, content = value[1], value[2]
    if not isinstance(kind, int) or not isinstance(content, tuple):
        raise MalformedMessage("zeek-message", "no vector of format 1, type and content")
    if kind == BATCH and depth < MOST_NESTED:
        return Batch(tuple([from_value(element, depth + 1) for element in content]))
    for wanted, kinds, make in _SHAPES:
        if kind == wanted and len(content) >= len(kinds) and all(map(isinstance, content, kinds)):
            return make(content)
    raise MalformedMessage("zeek-message", f"type {kind!s:.40} with content that does not belong to it")


class ValueReader:
    """Reads the values of a stream. Faster for an event that follows one of the same name and number of
    arguments: both begin with the same octets."""

    __slots__ = ("_last",)

    def __init__(self) -> None:
        self._last = b"", "", -1  # the beginning of the last event, its name, its number of arguments

    def read(self, payloads: Iterable[bytes]) -> list[Value]:
        """Their values, as ``decode`` reads them. Those that hold none are left out."""
        values: list[Value] = []
        head, name, count = self._last
        start, keep = len(head), values.append
        kind, format_, count_at = EVENT, _FORMAT, _count_at
        for octets in payloads:
            if count >= 0 and octets.startswith(head):
                arguments: list[Any] = []
                append, position, end = arguments.append, start, len(octets)
                try:
                    while position < end:
                        tag = octets[position]
                        if tag == 5:  # a string
                            size = octets[position + 1]
                            if size < 0x80:
                                begin = position + 2
                                position = begin + size
                                append(octets[begin:position].decode())
                                continue
                        elif tag == 2:  # a count
                            append(Count(count_at(octets, position + 1)[0]))
                            position += 9
                            continue
                        argument, position = read(octets, position, _EVENT_DEPTH)
                        append(argument)
                except (struct.error, IndexError, UnicodeDecodeError, MalformedMessage):
                    position = -1  # decode tells its value, or refuses it
                if position == end and len(arguments) == count:
                    keep((format_, kind, (name, tuple(arguments))))
                    continue
            try:
                value: Any = decode(octets)
            except MalformedMessage:
                continue
            keep(value)
            if octets.startswith(_EVENT_START):
                head, start, count = _beginning(octets)
                name = value[2][0] if count >= 0 else ""
                self._last = head, name, count
        return values


def _beginning(octets: bytes) -> tuple[bytes, int, int]:
    """The beginning of an event, which is a value: the octets up to its arguments, how many these are, and
    the number of arguments; that is -1 if it cannot be told from the octets alone."""
    if octets.startswith(_EVENT_START):
        size = octets[_NAME]
        end = _NAME + 1 + size  # of the name; behind it their tag and their number
        if size < 0x80 and octets[end] == VECTOR and octets[end + 1] < 0x80:
            return octets[: end + 2], end + 2, octets[end + 1]
    return b"", 0, -1


def is_value_fast(octets: bytes) -> bool:
    """As :func:`~dafka.overlay.values.checking.is_value`; faster for an event."""
    if octets.startswith(_EVENT_START):
        try:
            length = octets[_NAME]
            end = _NAME + 1 + length  # of the name, as above
            count = octets[end + 1]
            if octets[end] == VECTOR and length < 0x80 and count < 0x80:
                return end_of(octets, end + 2, _EVENT_DEPTH, count) == len(octets)
        except (IndexError, MalformedMessage):
            return False
    return is_value(octets)


def first_values(payloads: Sequence[bytes]) -> tuple[list[bytes], int]:
    """The values among the first payloads, and how many payloads were looked at: all, or as many as are no
    more work than CHECKED_AT_ONCE.

    It ends before one that takes long to check, unless that is the first: then the caller has checked it.
    Faster for an event that follows one of the same name with so many plain arguments.
    """
    values: list[bytes] = []
    keep, sizes = values.append, SIZES
    head, start, count = b"", 0, -1
    left = CHECKED_AT_ONCE
    for index, octets in enumerate(payloads):
        if count >= 0 and octets.startswith(head):
            position, missing = start, count
            try:
                while missing:
                    tag = octets[position]
                    size = sizes[tag]
                    if not size:
                        size = octets[position + 1] + 2
                        if tag != STRING or size > 0x81:
                            break
                    position += size
                    missing -= 1
            except IndexError:
                continue
            if not missing:
                if position == len(octets):
                    keep(octets)
                continue
        if takes_long(octets):
            if index:
                return values, index
            keep(octets)
            continue
        left -= work(octets)
        if left < 0 and index:
            return values, index
        if is_value_fast(octets):
            keep(octets)
            head, start, count = _beginning(octets)
    return values, len(payloads)


_EVENT_START = encode((_FORMAT, EVENT, ("", ())))[:-3]  # up to the tag of its name
_NAME = len(_EVENT_START)
_EVENT_DEPTH = 3  # in how many vectors an argument is


def _event(content: tuple[Any, ...]) -> Event:
    if len(content) == 2:
        return Event(*content)
    name, arguments, metadata = content[:3]
    if not isinstance(metadata, tuple) or not all(map(_is_metadata, metadata)):
        raise MalformedMessage("zeek-message", "an event whose metadata are not vectors of key and value")
    return Event(name, arguments, metadata)


def _is_metadata(pair: Any) -> bool:
    return isinstance(pair, tuple) and len(pair) == 2 and isinstance(pair[0], Count)


_SHAPES: list[tuple[Count, tuple[type, ...], Callable[[tuple[Any, ...]], ZeekMessage]]] = [
    (EVENT, (str, tuple), _event),
    (LOG_CREATE, (Enum, Enum, object, object), lambda content: LogCreate(*content[:4])),
    (LOG_WRITE, (Enum, Enum, str, str), lambda content: LogWrite(*content[:4])),
    (IDENTIFIER_UPDATE, (str, object), lambda content: IdentifierUpdate(*content[:2])),
]
