"""Schemas of a registry, as they are needed.

It may be down, slow or hostile: an answer has an end in time and in octets, what fails is not asked for
again for a while, and one request asks only so often. All of it runs in the console's own thread, and waits
as green threads.
"""

from __future__ import annotations

import base64
import http.client
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Protocol
from urllib.parse import quote, urlsplit

import gevent
from gevent.lock import BoundedSemaphore

from dafka.console import limits
from dafka.console.decoding.avro import AvroSchema
from dafka.console.decoding.errors import DecodingError
from dafka.console.decoding.options import SchemaRegistry
from dafka.console.decoding.plain import parse_json
from dafka.console.decoding.protobuf import ProtobufSchema
from dafka.console.green_http import GreenConnection
from dafka.security.contexts import of_client
from dafka.security.tls import ClientTls

_AT_ONCE = 2  # schemas that are looked up
_NAMES_SHOWN = 100  # characters of what others have named


class Schema(Protocol):
    """A schema that decodes; ``kind`` is the name of its language."""

    kind: str

    def decode(self, content: bytes, message: str | None = None) -> tuple[str, Any]:
        """The name of what it is, and its value. Raises DecodingError."""


class JsonSchema:
    """JSON that is described by a schema. It is read, and not compared with the schema."""

    kind = "JSON Schema"

    def __init__(self, text: str) -> None:
        try:
            found = parse_json(text)
        except ValueError:
            found = None
        title = found.get("title") if isinstance(found, dict) else None
        self._name = title[:_NAMES_SHOWN] if isinstance(title, str) else ""

    def decode(self, content: bytes, message: str | None = None) -> tuple[str, Any]:
        try:
            return self._name, parse_json(content)
        except ValueError as error:
            raise DecodingError(f"it is not JSON: {error}") from None


class Registry:
    """The schemas of one registry. Belongs to the console's thread."""

    def __init__(self, options: SchemaRegistry) -> None:
        """Raises TlsError."""
        self._options = options
        self._asking = BoundedSemaphore(_AT_ONCE)
        self._known: OrderedDict[int, Schema] = OrderedDict()  # the one used longest ago first
        self._failed: OrderedDict[int, tuple[float, str]] = OrderedDict()  # until when, and why
        self._down: tuple[float, str] = (0.0, "")
        self._secured = urlsplit(options.url).scheme == "https"
        self._tls = of_client(options.tls or ClientTls()) if self._secured else None

    def knows(self, number: int) -> bool:
        """Whether :meth:`schema` answers without asking."""
        return number in self._known or self._refusal(number) is not None

    def schema(self, number: int) -> Schema:
        """The schema with this id; waits. Raises DecodingError."""
        found = self._kept(number)
        if found is not None:
            return found
        if not self._asking.acquire(timeout=limits.REGISTRY_SECONDS):
            raise DecodingError(f"schema {number}: the registry has too many questions to answer")
        try:
            found = self._kept(number)  # somebody else may have asked meanwhile
            if found is None:
                found = self._known[number] = self._look_up(number)
                while len(self._known) > limits.SCHEMAS:
                    self._known.popitem(last=False)
            return found
        finally:
            self._asking.release()

    def _kept(self, number: int) -> Schema | None:
        found = self._known.get(number)
        if found is not None:
            self._known.move_to_end(number)
            return found
        refusal = self._refusal(number)
        if refusal is not None:
            raise DecodingError(refusal)
        return None

    def _refusal(self, number: int) -> str | None:
        now = time.monotonic()
        for until, why in (self._down, self._failed.get(number, (0.0, ""))):
            if now < until:
                return why
        return None

    def _look_up(self, number: int) -> Schema:
        until = time.monotonic() + limits.REGISTRY_REST
        try:
            with gevent.Timeout(limits.REGISTRY_SECONDS):
                kind, text, references = self._fetch(number)
            return _schema(kind, text, references)
        except (OSError, http.client.HTTPException, gevent.Timeout) as error:
            words = f"schema {number}: the registry does not answer ({_why(error)})"
            self._down = until, words
            raise DecodingError(words) from None
        except Exception as error:  # of makers of schemas too, which are others': strangers wrote the schema
            words = f"schema {number}: {_words(error)}"
            self._failed[number] = until, words
            while len(self._failed) > limits.SCHEMAS:
                self._failed.popitem(last=False)
            raise DecodingError(words) from None

    def _fetch(self, number: int) -> tuple[str, str, list[tuple[str, str]]]:
        """The language and the text of a schema, and the texts of what it refers to, in order."""
        connection = self._connection()
        try:
            kind, text, named = _read(self._get(connection, f"/schemas/ids/{number}"))
            found: dict[tuple[str, int], tuple[str, str]] = {}
            self._gather(connection, named, found, 0)
            return kind, text, list(found.values())
        finally:
            connection.close()

    def _gather(
        self,
        connection: http.client.HTTPConnection,
        named: list[tuple[str, str, int]],
        found: dict[tuple[str, int], tuple[str, str]],
        depth: int,
    ) -> None:
        """Put the schemas that are named into ``found``, each behind those that it names itself."""
        for name, subject, version in named:
            if (subject, version) in found:
                continue
            if depth > limits.REFERENCES or len(found) >= limits.REFERENCES:
                raise DecodingError(f"it refers to more than {limits.REFERENCES} others, or to itself")
            path = f"/subjects/{quote(subject, safe='')}/versions/{version}"
            _, text, further = _read(self._get(connection, path))
            self._gather(connection, further, found, depth + 1)
            found[subject, version] = name, text

    def _get(self, connection: http.client.HTTPConnection, path: str) -> Any:
        headers = {"Accept": "application/vnd.schemaregistry.v1+json, application/json"}
        if self._options.user is not None:
            pair = f"{self._options.user}:{self._options.password}".encode()
            headers["Authorization"] = f"Basic {base64.b64encode(pair).decode()}"
        prefix = quote(urlsplit(self._options.url).path.rstrip("/"), safe="/%")
        connection.request("GET", prefix + path, headers=headers)
        with connection.getresponse() as response:  # which may have the connection for itself
            content = response.read(limits.SCHEMA_OCTETS + 1)
        if len(content) > limits.SCHEMA_OCTETS:
            raise DecodingError(f"the registry's answer has more than {limits.SCHEMA_OCTETS} octets")
        if response.status == 404:
            raise DecodingError("the registry has no such schema")
        if response.status != 200:
            raise DecodingError(f"the registry answers {response.status}")
        try:
            return parse_json(content)
        except ValueError as error:
            raise DecodingError(f"the registry's answer is not JSON: {error!s:.200}") from None

    def _connection(self) -> http.client.HTTPConnection:
        parts = urlsplit(self._options.url)
        port = parts.port or (443 if self._secured else 80)
        return GreenConnection(parts.hostname or "", port, limits.REGISTRY_SECONDS, self._tls)


def _read(answer: Any) -> tuple[str, str, list[tuple[str, str, int]]]:
    """Language, text and references in an answer. Raises DecodingError."""
    try:
        kind, text = answer.get("schemaType") or "AVRO", answer["schema"]
        named = [(one["name"], one["subject"], one["version"]) for one in answer.get("references") or ()]
    except (AttributeError, KeyError, TypeError):
        raise DecodingError("the registry's answer is not a schema") from None
    texts = [kind, text, *(one for name, subject, _ in named for one in (name, subject))]
    if not all(isinstance(one, str) for one in texts) or not all(type(one[2]) is int for one in named):
        raise DecodingError("the registry's answer is not a schema")
    return kind, text, named


def _schema(kind: str, text: str, references: list[tuple[str, str]]) -> Schema:
    makers: dict[str, Callable[[], Schema]] = {
        "AVRO": lambda: AvroSchema(text, [one for _, one in references]),
        "PROTOBUF": lambda: ProtobufSchema(text, references),
        "JSON": lambda: JsonSchema(text),
    }
    if kind not in makers:
        raise DecodingError(f"there is no decoder for schemas of the type {kind[:_NAMES_SHOWN]!r}")
    return makers[kind]()


def _words(error: Exception) -> str:
    return str(error) if isinstance(error, DecodingError) else f"it cannot be understood: {error!r:.300}"


def _why(error: BaseException) -> str:
    if isinstance(error, (gevent.Timeout, TimeoutError)):
        return f"within {limits.REGISTRY_SECONDS:g} s"
    return str(error.strerror if isinstance(error, OSError) and error.strerror else error)[:200] or "closed"
