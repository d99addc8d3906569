"""Templates: how a rule names topics, keys and headers after the message that it carries.

``{name}`` stands for a field of the message, ``{value[id.orig_h]}`` for something inside one: a member of an
object, or an element of an array by its number. ``{path:other}`` is ``other`` where there is no such field.
Two braces are one. Nothing is evaluated.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from string import Formatter
from typing import Any, NamedTuple

from dafka.overlay.bridge.limits import MOST_TOPICS, TOPIC_CHARACTERS
from dafka.protocol.errors import DafkaError

Fields = Mapping[str, Any]

_NAME = re.compile(r"(\w+)((?:\[[^\[\]]+\])*)")
_INDEX = re.compile(r"\[([^\[\]]+)\]")
_SHORT = frozenset(("topic", "kind", "name", "stream"))  # fields that are texts, few of them different
_ILLEGAL = re.compile(r"[^A-Za-z0-9._-]")


class TemplateError(DafkaError, ValueError):
    """A template that cannot be read, or a field that a message does not have."""


class _Field(NamedTuple):
    name: str
    path: tuple[str, ...]
    default: str | None

    def __str__(self) -> str:
        return self.name + "".join(f"[{part}]" for part in self.path)


class Template:
    """A template that may use the fields ``known``. Raises :class:`TemplateError`."""

    def __init__(self, text: str, known: Collection[str]) -> None:
        if not isinstance(text, str):
            raise TemplateError(f"a template is a text, not {text!r:.100}")
        self.text = text
        self._parts: list[str | _Field] = []
        try:
            parts = list(Formatter().parse(text))
        except ValueError as error:
            raise TemplateError(f"template {text!r}: {error}") from error
        for literal, name, default, conversion in parts:
            if literal:
                self._parts.append(literal)
            if name is not None:
                self._parts.append(_field(text, name, default, conversion, known))
        fields = [part for part in self._parts if isinstance(part, _Field)]
        self.constant = None if fields else "".join(part for part in self._parts if isinstance(part, str))
        """The text, if the template has no fields."""
        self._short = {field.name for field in fields if not field.path and field.name in _SHORT}
        self._is_short = len(self._short) == len({field.name for field in fields})
        self._topics: dict[tuple[Any, ...], str] = {}

    def __repr__(self) -> str:
        return f"Template({self.text!r})"

    def render(self, fields: Fields, piece: Callable[[str], str] = str) -> str:
        """The text, with ``piece`` applied to what fields put in.

        Raises :class:`TemplateError` for a field without a value, and without a default.
        """
        return "".join(
            part if isinstance(part, str) else piece(self._text(part, fields)) for part in self._parts
        )

    def render_optional(self, fields: Fields) -> str | None:
        """The text; None if a field has no value."""
        try:
            return self.render(fields)
        except TemplateError:
            return None

    def render_topic(self, fields: Fields) -> str:
        """The text as a name of a Kafka topic: dots for the slashes between the parts of an overlay topic,
        and underscores for what else is not allowed in it. Raises :class:`TemplateError`."""
        if not self._is_short:
            return self._render_topic(fields)
        known = tuple([fields.get(name) for name in self._short])
        topic = self._topics.get(known)
        if topic is None:
            topic = self._render_topic(fields)
            if len(self._topics) >= MOST_TOPICS:
                self._topics.clear()
            self._topics[known] = topic
        return topic

    def _render_topic(self, fields: Fields) -> str:
        topic = _ILLEGAL.sub("_", self.render(fields, _dotted))
        if topic.strip(".") == "" or len(topic) > TOPIC_CHARACTERS:
            raise TemplateError(
                f"template {self.text!r} makes {topic[:300]!r}, which cannot be the name of a topic"
            )
        return topic

    def _text(self, field: _Field, fields: Fields) -> str:
        value: Any = fields.get(field.name)
        for part in field.path:
            value = _inside(value, part)
        if value is None:
            if field.default is None:
                raise TemplateError(f"template {self.text!r}: the message has no {field}")
            return field.default
        if type(value) is bytes:  # an endpoint's id has a text of its own
            return value.decode("utf-8", "backslashreplace")
        return ("true" if value else "false") if isinstance(value, bool) else str(value)


def _field(
    text: str, name: str, default: str | None, conversion: str | None, known: Collection[str]
) -> _Field:
    found = _NAME.fullmatch(name)
    if found is None or conversion:
        raise TemplateError(
            f"template {text!r}: {name!r} is not a field; fields look like {{topic}} or {{value[id]}}"
        )
    if found[1] not in known:
        raise TemplateError(
            f"template {text!r}: there is no field {found[1]!r}, only {', '.join(sorted(known))}"
        )
    return _Field(found[1], tuple(_INDEX.findall(found[2])), default or None)


def _inside(value: Any, part: str) -> Any:
    if isinstance(value, Mapping):
        return value.get(part)
    if isinstance(value, (list, tuple)) and part.isascii() and part.isdigit() and int(part) < len(value):
        return value[int(part)]
    return None


def _dotted(text: str) -> str:
    return text.strip("/").replace("/", ".")
