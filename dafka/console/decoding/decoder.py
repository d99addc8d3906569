"""Decodes keys and values for one request: by their first octets, or as the request says.

Data of a schema registry's clients begins with the octet 0 and the id of its schema in four octets. Octets
that are not text and begin like a map or a list of MessagePack are tried as that.
"""

from __future__ import annotations

import re
import time
from typing import Any, NamedTuple

from dafka.console import limits
from dafka.console.decoding.errors import DecodingError
from dafka.console.decoding.messagepack import decode_messagepack, may_be_messagepack
from dafka.console.decoding.plain import plain, text_of
from dafka.console.decoding.registry import Registry

CHOICE = "^(auto|none|msgpack|schema:[0-9]{1,10}(:[A-Za-z0-9_.]{0,255})?)$"
"""The choices for keys or values. ``schema:ID``: they are of this schema, without a beginning;
``schema:ID:MESSAGE`` names the message of a Protobuf schema."""

_CHOICE = re.compile(CHOICE)
_MAGIC = 0
_HEAD = 5  # octets of the magic one and the id


class Decoded(NamedTuple):
    """A value as JSON holds it. ``kind``: its format; ``schema``: its schema's id; ``name``: the type's."""

    kind: str
    value: Any
    schema: int | None = None
    name: str = ""

    @property
    def words(self) -> Any:
        """The operand for an expression: text and numbers as they are, anything else as JSON."""
        return text_of(self.value) if isinstance(self.value, (dict, list)) else self.value


class Decoder:
    """Decodes for one request. Belongs to the console's thread; waits for the registry."""

    def __init__(
        self, registry: Registry | None, key: str = "auto", value: str = "auto", seconds: float | None = None
    ) -> None:
        """``seconds``: that all of it may take, without the registry."""
        self._registry = registry
        self._choices = {"key": key, "value": value}
        self._seconds = seconds
        self._last: dict[str, tuple[bytes, Decoded | DecodingError | None]] = {}
        self._lookups, self._since = 0, time.monotonic()

    def decoded(self, field: str, content: bytes | None) -> Decoded | None:
        """The decoded ``"key"`` or ``"value"``; None if it is not decoded. Raises DecodingError."""
        if not content:
            return None
        last = self._last.get(field)
        if last is None or last[0] is not content:
            last = self._last[field] = content, self._outcome(field, content)
        if isinstance(last[1], DecodingError):
            raise last[1]
        return last[1]

    def found(self, field: str, content: bytes | None) -> Decoded | None:
        """The same; None if it cannot be decoded."""
        try:
            return self.decoded(field, content)
        except DecodingError:
            return None

    def shown(self, field: str, content: bytes | None, most: int) -> dict[str, Any]:
        """For a page: ``decoded`` with at most so many characters, ``note`` if it cannot be, or nothing."""
        try:
            found = self.decoded(field, content)
        except DecodingError as error:
            return {"note": str(error)}
        if found is None:
            return {}
        text = text_of(found.value)
        return {
            "decoded": {
                "as": found.kind,
                "schema": found.schema,
                "name": found.name,
                "text": text[:most],
                "cut": len(text) > most,
            }
        }

    def _outcome(self, field: str, content: bytes) -> Decoded | DecodingError | None:
        if self._seconds is not None and self._seconds <= 0:
            return DecodingError("not decoded: the records of this page have taken long enough")
        began = time.thread_time()
        try:
            found = self._decode(self._choices[field], content)
            return None if found is None else found._replace(value=plain(found.value))
        except DecodingError as error:
            return error
        except Exception as error:  # the decoders are others', and schemas and octets strangers'
            return DecodingError(f"it cannot be decoded: {error!r:.300}")
        finally:
            if self._seconds is not None:
                self._seconds -= time.thread_time() - began

    def _decode(self, choice: str, content: bytes) -> Decoded | None:
        if choice == "none":
            return None
        if choice == "auto":
            has_schema = self._registry is not None and content[0] == _MAGIC and len(content) >= _HEAD
            if not has_schema and not (may_be_messagepack(content) and not _is_text(content)):
                return None
        if len(content) > limits.DECODED_OCTETS:
            raise DecodingError(f"not decoded: it has more than {limits.DECODED_OCTETS} octets")
        if choice == "msgpack":
            return Decoded("MessagePack", decode_messagepack(content))
        if choice != "auto":
            _, number, *message = choice.split(":", 2)
            return self._by_schema(int(number), content, message[0] if message else "")
        if has_schema:
            return self._by_schema(int.from_bytes(content[1:_HEAD], "big"), content[_HEAD:], None)
        try:
            return Decoded("MessagePack", decode_messagepack(content))
        except DecodingError:
            return None  # it was a guess

    def _by_schema(self, number: int, content: bytes, message: str | None) -> Decoded:
        if self._registry is None:
            raise DecodingError("there is no schema registry: start the console with --schema-registry URL")
        if not self._registry.knows(number):
            now = time.monotonic()
            if now - self._since > 60:
                self._lookups, self._since = 0, now
            if self._lookups >= limits.LOOKUPS:
                raise DecodingError(f"schema {number} was not looked up: too many others were")
            self._lookups += 1
        schema = self._registry.schema(number)
        name, value = schema.decode(content, message)
        return Decoded(schema.kind, value, number, name)


def _is_text(content: bytes) -> bool:
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return True
