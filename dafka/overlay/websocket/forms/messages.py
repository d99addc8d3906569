"""The messages of ``/v1/messages/json``: subscriptions, the acknowledgement, data, errors."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from dafka.overlay.limits import FILTER_OCTETS, MOST_PREFIXES
from dafka.overlay.values.containers import Value, octets_of
from dafka.overlay.websocket import limits
from dafka.overlay.websocket.errors import DuplicateElement, InvalidForm, MalformedJson
from dafka.overlay.websocket.forms.reading import text_of, value_of
from dafka.overlay.websocket.forms.text import parsed, parsed_leniently, parsed_slowly
from dafka.overlay.websocket.forms.writing import octets, string, written
from dafka.overlay.wire.envelope import LOCAL

FAILED = "deserialization_failed"


class Subscriptions(NamedTuple):
    """A client's first message."""

    prefixes: tuple[bytes, ...]


class Ack(NamedTuple):
    """A server's first message: the id of its endpoint, and its version."""

    endpoint: str
    version: str


class Data(NamedTuple):
    """A value on a topic, in both directions."""

    topic: bytes
    value: Value


class Failure(NamedTuple):
    """The error of a server about a message that it could not take."""

    code: str
    context: str


ServerMessage = Ack | Data | Failure


def read_subscriptions(text: str) -> Subscriptions | Failure:
    """A client's first message."""
    try:
        form = _parsed(text)
    except MalformedJson as error:
        return Failure(FAILED, f"the first message contained malformed JSON -> {error}")
    except InvalidForm:
        form = None
    if type(form) is not list or not all(type(prefix) is str for prefix in form):
        return Failure(FAILED, "the first message must be a JSON array of topic prefixes")
    if len(form) > MOST_PREFIXES:
        return Failure(FAILED, f"{len(form)} topic prefixes, at most {MOST_PREFIXES} are taken")
    try:
        prefixes = tuple([octets_of(text_of(prefix)) for prefix in form])
    except InvalidForm as error:
        return Failure(FAILED, f"a topic prefix in the first message: {error}")
    if sum(map(len, prefixes)) > FILTER_OCTETS:
        return Failure(FAILED, f"topic prefixes of more than {FILTER_OCTETS} octets")
    return Subscriptions(prefixes)


def read_input(number: int, text: str) -> Data | Failure:
    """A client's later message, its ``number``-th."""
    try:
        form = _parsed(text)
        if type(form) is not dict:
            return Failure(FAILED, f"input #{number} expected a JSON object")
        topic = form.get("topic", "")
        if type(topic) is not str:
            raise InvalidForm("a topic that is not a string")
        data = Data(octets_of(text_of(topic)), value_of(form))
    except MalformedJson as error:
        return Failure(FAILED, f"input #{number} contained malformed JSON -> {error}")
    except DuplicateElement:
        why = f'{FAILED}("failed to parse data")'
        return Failure(FAILED, f"input #{number} caused an internal error -> {why}")
    except InvalidForm:
        return Failure(FAILED, f"input #{number} contained invalid data")
    if data.topic.startswith(LOCAL):
        return Failure("invalid_data", f"input #{number} is on {LOCAL.decode()}, where no client may publish")
    return data


def read_from_server(text: str) -> ServerMessage:
    """A server's message. Raises InvalidForm, MalformedJson."""
    form = parsed_leniently(text)
    if type(form) is not dict:
        raise InvalidForm("a server's message is an object")
    kind = form.get("type")
    if kind == "data-message":
        return Data(octets_of(text_of(_text(form, "topic"))), value_of(form))
    if kind == "error":
        return Failure(_text(form, "code"), _text(form, "context"))
    if kind == "ack":
        return Ack(_text(form, "endpoint"), _text(form, "version"))
    raise InvalidForm(f"a server's message of type {str(kind)[:40]!r}")


def subscriptions_octets(prefixes: Iterable[str | bytes]) -> bytes:
    """A client's first message."""
    return octets(f"[{','.join(map(string, prefixes))}]")


def data_octets(topic: str | bytes, value: Any, most: int | None = None) -> bytes:
    """A value on a topic. Raises InvalidValue, and TooManyPieces for more pieces than ``most``."""
    return octets(f'{{"type":"data-message","topic":{string(topic)},{written(value, most)}}}')


def ack_octets(ack: Ack) -> bytes:
    """A server's first message."""
    return octets(f'{{"type":"ack","endpoint":{string(ack.endpoint)},"version":{string(ack.version)}}}')


def failure_octets(failure: Failure) -> bytes:
    """The error in a client's message."""
    return octets(f'{{"type":"error","code":{string(failure.code)},"context":{string(failure.context)}}}')


def _parsed(text: str) -> Any:
    return parsed(text) if len(text) <= limits.DIRECT_OCTETS else parsed_slowly(text)


def _text(form: dict[str, Any], name: str) -> str:
    text = form.get(name, "")
    if type(text) is not str:
        raise InvalidForm(f"{name} that is not a string")
    return text
