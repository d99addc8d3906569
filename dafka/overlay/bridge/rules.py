"""The rules of a bridge: from the overlay into topics of Kafka, and back.

A message that has come from the overlay is never given back to it: its record has the header
``overlay.topic``, and records with that header are passed over. So nothing goes round, whatever the rules of
however many bridges.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from dafka.overlay.bridge.json_forms import dumps, from_json, loads
from dafka.overlay.bridge.templates import Template, TemplateError
from dafka.overlay.bridge.zeek_objects import VALUE, Object, Objects, to_event
from dafka.overlay.errors import InvalidValue
from dafka.overlay.values import Value, decode, encode
from dafka.overlay.values.containers import octets_of
from dafka.overlay.wire.zeek import to_value
from dafka.protocol.errors import DafkaError, MalformedMessage

ORIGIN = "overlay.topic"
"""The header of each record that a rule has written: the topic in the overlay."""

FORMS = ("json", "binary", "octets")
FROM_OVERLAY = ("topic", "sender", "kind", "name", "stream", "value")
FROM_KAFKA = ("topic", "partition", "offset", "timestamp", "key", "value", "header")

_NO_OBJECT = Object(VALUE, None, None, None)


class InvalidRule(DafkaError, ValueError):
    """A rule that makes no sense."""


class NotCarried(DafkaError, ValueError):
    """A message or record that a rule cannot carry; ``cause`` is a short word for counting."""

    def __init__(self, cause: str, detail: str) -> None:
        self.cause = cause
        super().__init__(f"{cause}: {detail}")


class NewRecord(NamedTuple):
    """A record to be written."""

    topic: str
    key: bytes | None
    value: bytes
    headers: tuple[tuple[str, bytes], ...]


class Record(NamedTuple):
    """A record that was read; ``timestamp`` in milliseconds."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]]


class ToKafka:
    """Messages of the overlay whose topic begins with ``prefix`` become records.

    Args:
        prefix: Of topics of the overlay, byte-wise as everywhere in Broker; "" is all of them.
        topic: Template of the topic in Kafka.
        key: Template of the key; a message without its fields gets none.
        headers: Names and templates; one without its fields is left out.
        form: ``json``: one JSON object a record for Zeek's messages, any JSON for other values.
            ``binary``: the value in Broker's own octets, which keep every type. ``octets``: a string
            as it is.

    Fields of templates are those of FROM_OVERLAY. Raises :class:`InvalidRule` and
    :class:`~dafka.overlay.bridge.templates.TemplateError`.
    """

    def __init__(
        self,
        prefix: str,
        topic: str,
        *,
        key: str | None = None,
        headers: Mapping[str, str] | None = None,
        form: str = "json",
    ) -> None:
        if headers is not None and not isinstance(headers, Mapping):
            raise InvalidRule(f"headers is a dict of names and templates or None, not {headers!r:.100}")
        if not isinstance(prefix, str):
            raise InvalidRule(f"prefix is a text, not {prefix!r:.100}")
        self.prefix = prefix
        self.form = _form(form)
        self._topic = Template(topic, FROM_OVERLAY)
        self._key = None if key is None else Template(key, FROM_OVERLAY)
        self._headers = [(name, Template(text, FROM_OVERLAY)) for name, text in (headers or {}).items()]
        self._objects = Objects()
        self._mark = "", (ORIGIN, b"")

    def records(self, topic: str, value: Value, sender: object = None) -> Iterator[NewRecord]:
        """The records of a message: one, or those of a batch. Raises :class:`NotCarried`."""
        if self._mark[0] != topic:
            self._mark = topic, (ORIGIN, topic.encode("utf-8", "surrogateescape"))
        mark = self._mark[1]
        try:
            for one in self._objects_of(value):
                kind, name, stream, content = one
                fields = {
                    "topic": topic,
                    "sender": sender,
                    "value": content,
                    "kind": kind,
                    "name": name,
                    "stream": stream,
                }
                key = None if self._key is None else self._key.render_optional(fields)
                yield NewRecord(
                    self._topic.render_topic(fields),
                    None if key is None else key.encode(),
                    self._octets(value, content),
                    (mark, *self._headers_of(fields)) if self._headers else (mark,),
                )
        except TemplateError as error:
            raise NotCarried("template", str(error)) from error
        except (MalformedMessage, InvalidValue, RecursionError) as error:
            raise NotCarried("value", f"message on {topic!r}: {error}") from error

    def _headers_of(self, fields: Mapping[str, Any]) -> Iterator[tuple[str, bytes]]:
        for name, template in self._headers:
            text = template.render_optional(fields)
            if text is not None:
                yield name, text.encode()

    def _objects_of(self, value: Value) -> Iterable[Object]:
        if self.form == "json":
            return self._objects.of(value)
        try:  # one record for the whole value; templates see the first object
            return [next(iter(self._objects.of(value)), _NO_OBJECT)]
        except (MalformedMessage, InvalidValue):
            return [_NO_OBJECT]

    def _octets(self, value: Value, content: Any) -> bytes:
        if self.form == "binary":
            return encode(value)
        if self.form == "octets":
            if type(value) is not str:
                raise NotCarried("value", f"{type(value).__name__} where the rule takes strings")
            return octets_of(value)
        return dumps(content)


class ToOverlay:
    """Records of topics that match ``pattern`` are published in the overlay.

    Args:
        pattern: Of names of topics, as in a shell: ``alerts.*``.
        topic: Template of the topic in the overlay.
        form: ``json``: an object that a ToKafka rule has made of an event is that event again, any other JSON
            the value that it stands for. ``binary``: Broker's own octets. ``octets``: a string.

    Fields of templates are those of FROM_KAFKA. Raises as :class:`ToKafka` does.
    """

    def __init__(self, pattern: str, topic: str, *, form: str = "json") -> None:
        if not isinstance(pattern, str):
            raise InvalidRule(f"pattern is a text, not {pattern!r:.100}")
        self.pattern = pattern
        self.form = _form(form)
        self._topic = Template(topic, FROM_KAFKA)

    def matches(self, topic: str) -> bool:
        """Whether records of this topic are carried."""
        return fnmatchcase(topic, self.pattern)

    def message(self, record: Record) -> tuple[str, Value] | None:
        """Topic and value of a record; None if it is not to be published. Raises :class:`NotCarried`."""
        name, partition, offset, timestamp, key, octets, pairs = record
        headers = dict(pairs)
        if ORIGIN in headers or octets is None:  # it came from there, or only deletes a key
            return None
        try:
            value, parsed = self._value(octets)
            if self._topic.constant is not None:
                return self._topic.constant, value
            fields = {
                "topic": name,
                "partition": partition,
                "offset": offset,
                "timestamp": timestamp,
                "key": key,
                "header": headers,
                "value": parsed,
            }
            return self._topic.render(fields), value
        except TemplateError as error:
            raise NotCarried("template", f"record {offset} of {name}-{partition}: {error}") from error
        except (InvalidValue, MalformedMessage) as error:
            raise NotCarried("value", f"record {offset} of {name}-{partition}: {error}") from error

    def _value(self, octets: bytes) -> tuple[Value, Any]:
        if self.form == "binary":
            value = decode(octets)
            return value, None
        if self.form == "octets":
            text = octets.decode("utf-8", "surrogateescape")
            return text, text
        parsed = loads(octets)
        event = to_event(parsed)
        return (from_json(parsed) if event is None else to_value(event)), parsed


def _form(form: str) -> str:
    if form not in FORMS:
        raise InvalidRule(f"form {form!r}: there are {', '.join(FORMS)}")
    return form
