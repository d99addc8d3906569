"""Zeek's messages as objects, one for each record, and such objects as events again.

- An event: ``{"event": name, "args": [...]}``, with ``"ts"`` (seconds since 1970) if it carries the time of
  the network, and ``"metadata"`` if it carries more.
- A log write: the row with the names that the stream's log create has told, as in Zeek's own JSON logs.
  Fields that are not set are left out. Before a log create: ``{"stream", "path", "row": [...]}``.
- An identifier update: ``{"identifier": name, "value": ...}``.
- A batch: each of its messages by itself. A log create is remembered and makes no record.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from dafka.overlay.bridge.json_forms import clean, from_json, to_json
from dafka.overlay.bridge.limits import MOST_STREAMS
from dafka.overlay.bridge.log_rows import field_names, read_row
from dafka.overlay.values import Count, Value
from dafka.overlay.wire.zeek import (
    NETWORK_TIME,
    Batch,
    Event,
    IdentifierUpdate,
    LogCreate,
    LogWrite,
    ZeekMessage,
    from_value,
)
from dafka.protocol.errors import MalformedMessage

EVENT, LOG, IDENTIFIER, VALUE = "event", "log", "identifier", "value"


_OF_EVENTS = (Count(1), Count(1))  # the format and the type


class Object(NamedTuple):
    """The content of one record: a ``kind``, the event's name, the log's path or the identifier, and JSON."""

    kind: str
    name: str | None
    stream: str | None
    content: Any


class Objects:
    """Makes them. It remembers the names of the fields of each log stream."""

    def __init__(self) -> None:
        self._fields: dict[str, tuple[str, ...]] = {}

    def of(self, value: Value) -> Iterable[Object]:
        """The objects of a value that was published. Raises :class:`MalformedMessage` for a row that is
        damaged."""
        plain = _plain_event(value)  # the most frequent ones
        if plain is not None:
            return (plain,)
        try:
            message = from_value(value)
        except MalformedMessage:  # any other value that somebody has published
            return (Object(VALUE, None, None, to_json(value)),)
        return self._of(message)

    def _of(self, message: ZeekMessage) -> Iterator[Object]:
        match message:
            case Event(name):
                yield Object(EVENT, clean(name), None, _event(message))
            case LogWrite(stream, _, path, row):
                yield Object(LOG, clean(path), str(stream), self._log(str(stream), path, row))
            case LogCreate(stream, _, _, fields):
                if stream in self._fields or len(self._fields) < MOST_STREAMS:
                    self._fields[str(stream)] = field_names(fields)
            case IdentifierUpdate(name, value):
                content = {"identifier": clean(name), "value": to_json(value)}
                yield Object(IDENTIFIER, clean(name), None, content)
            case Batch(messages):
                for one in messages:
                    yield from self._of(one)

    def _log(self, stream: str, path: str, row: str) -> dict[str, Any]:
        values = read_row(row)
        names = self._fields.get(stream)
        if names is None or len(names) != len(values):
            return {"stream": stream, "path": clean(path), "row": values}
        return {name: value for name, value in zip(names, values, strict=True) if value is not None}


def _plain_event(value: Value) -> Object | None:
    """The object of an event without metadata."""
    if type(value) is not tuple or len(value) != 3 or type(value[1]) is not Count or value[:2] != _OF_EVENTS:
        return None
    content = value[2]
    if type(content) is not tuple or len(content) != 2:
        return None
    name, arguments = content
    if type(name) is not str or type(arguments) is not tuple:
        return None
    name = clean(name)
    return Object(EVENT, name, None, {"event": name, "args": to_json(arguments)})


def _event(event: Event) -> dict[str, Any]:
    content: dict[str, Any] = {"event": clean(event.name), "args": to_json(event.arguments)}
    if event.network_time is not None:
        content["ts"] = to_json(event.network_time)
    rest = [(key, value) for key, value in event.metadata or () if key != NETWORK_TIME]
    if rest:
        content["metadata"] = {str(int(key)): to_json(value) for key, value in rest}
    return content


def to_event(content: Any) -> Event | None:
    """The event that an object stands for; None for any other JSON.

    The arguments have the types that JSON has.
    """
    if not isinstance(content, Mapping):
        return None
    name, arguments = content.get("event"), content.get("args")
    if not isinstance(name, str) or not isinstance(arguments, list):
        return None
    metadata: list[tuple[Count, Value]] = []
    more = content.get("metadata")
    if isinstance(more, Mapping):
        metadata = [
            (Count(key), from_json(one)) for key, one in more.items() if key.isascii() and key.isdigit()
        ]
    return Event(name, tuple([from_json(one) for one in arguments]), tuple(metadata) or None)
