"""Zeek's own messages, which are values: a vector of the format, the type and the content.

Elements that are there beyond what is known are left out.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, NamedTuple

from dafka.overlay.errors import InvalidValue
from dafka.overlay.limits import MOST_NESTED
from dafka.overlay.values import Count, Enum, Timestamp, Value, decode, encode
from dafka.overlay.values.checking import end_of, is_value
from dafka.overlay.values.decoder import read_elements, text_of
from dafka.overlay.values.types import VECTOR
from dafka.protocol.errors import MalformedMessage

EVENT, LOG_CREATE, LOG_WRITE, IDENTIFIER_UPDATE, BATCH = map(Count, range(1, 6))
NETWORK_TIME = Count(1)
"""The key of an event's metadata that Zeek itself uses; users' own begin at 200."""

_FORMAT = Count(1)


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


def decode_fast(octets: bytes) -> Value:
    """As :func:`~dafka.overlay.values.decode`; faster for an event, whose beginning is always the same.

    Raises :class:`MalformedMessage`.
    """
    if octets.startswith(_EVENT_START):
        try:
            length = octets[_NAME]
            end = _NAME + 1 + length  # of the name; then the arguments' tag and their number
            count = octets[end + 1]
            if octets[end] == VECTOR and length < 0x80 and count < 0x80:
                arguments, position = read_elements(octets, end + 2, _EVENT_DEPTH, count)
                if position == len(octets):
                    return _FORMAT, EVENT, (text_of(octets[_NAME + 1 : end]), arguments)
        except (IndexError, struct.error, InvalidValue):
            pass  # decode says what is wrong
    return decode(octets)


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
