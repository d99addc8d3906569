"""Avro, by a schema of the registry.

fastavro's decoder is compiled and trusts what it reads: a list may say that it has 2**60 members of no
octets, a value nested ten thousand times overruns the stack, and a decimal number of a megabyte takes a
minute. So data is walked over first, and counted.
"""

from __future__ import annotations

import io
from collections.abc import Iterable
from decimal import DecimalException
from typing import Any

from dafka.console import limits
from dafka.console.decoding.errors import DecodingError
from dafka.protocol.json_text import read_json

_LONGEST_NAME = 255
_FIXED = {"null": 0, "boolean": 1, "float": 4, "double": 8}


class AvroSchema:
    """A schema with what it refers to. Raises DecodingError."""

    kind = "Avro"

    def __init__(self, text: str, references: Iterable[str] = ()) -> None:
        """``references``: schemas of types that it names, each behind those that it names itself."""
        try:
            import fastavro
        except ImportError:
            raise DecodingError("Avro needs fastavro: pip install 'dafka[console]'") from None
        self._read = fastavro.schemaless_reader
        self._named: dict[str, Any] = {}
        try:
            for one in references:
                self._parse(one)
            self._schema = self._parse(text)
        except DecodingError:
            raise
        except Exception as error:  # fastavro raises what comes of wrong types as well
            raise DecodingError(f"its Avro schema cannot be understood: {error!r:.200}") from None
        self._name = str(self._schema.get("name", "")) if isinstance(self._schema, dict) else ""

    def decode(self, content: bytes, message: str | None = None) -> tuple[str, Any]:
        """The schema's name and the value. Raises DecodingError."""
        walk = _Walk(self._named, content)
        try:
            walk.over(self._schema, 0)
        except (IndexError, KeyError, TypeError, RecursionError):
            raise DecodingError("it is not of this Avro schema") from None
        if walk.position != len(content):
            raise DecodingError(f"it is not of this Avro schema: not {len(content)} octets")
        try:
            return self._name, self._read(io.BytesIO(content), self._schema, None)
        except (ArithmeticError, DecimalException, LookupError, ValueError, TypeError, EOFError) as error:
            raise DecodingError(f"it is not of this Avro schema: {error or type(error).__name__}") from None

    def _parse(self, text: str) -> Any:
        from fastavro import parse_schema

        found = read_json(text)
        _check(found, 0)
        return parse_schema(found, named_schemas=self._named)


def _check(schema: Any, depth: int) -> None:
    """Raise DecodingError for a schema that is too deep, or whose names are too long: each value has them."""
    if depth > limits.DECODED_DEPTH:
        raise DecodingError(f"its Avro schema is deeper than {limits.DECODED_DEPTH} levels")
    if isinstance(schema, dict):
        name = schema.get("name", "")
        symbols = schema.get("symbols", [])
        names = [name, *(symbols if isinstance(symbols, list) else [])]
        if any(isinstance(one, str) and len(one) > _LONGEST_NAME for one in names):
            raise DecodingError(f"its Avro schema has names of more than {_LONGEST_NAME} characters")
        schema = list(schema.values())
    if isinstance(schema, list):
        for one in schema:
            _check(one, depth + 1)


class _Walk:
    """Goes over data as its schema says, and counts. Raises DecodingError, and IndexError at its end."""

    def __init__(self, named: dict[str, Any], content: bytes) -> None:
        self._named = named
        self._content = content
        self._values = self._parts = 0
        self.position = 0

    def over(self, schema: Any, depth: int) -> None:
        self._values += 1
        if self._values > limits.DECODED_VALUES or self._parts > limits.DECODED_PARTS:
            raise DecodingError("it holds too many values")
        if depth > limits.DECODED_DEPTH:
            raise DecodingError(f"it is deeper than {limits.DECODED_DEPTH} levels")
        if isinstance(schema, list):
            self.over(schema[self._index(len(schema))], depth + 1)
            return
        kind = schema if isinstance(schema, str) else schema["type"]
        if not isinstance(kind, str):
            self.over(kind, depth + 1)
        elif kind in _FIXED:
            self._skip(_FIXED[kind])
        elif kind in ("int", "long"):
            self._number()
        elif kind in ("bytes", "string"):
            self._octets(schema, self._number())
        elif kind in ("array", "map"):
            self._blocks(schema["items" if kind == "array" else "values"], kind == "map", depth)
        elif kind in ("record", "error"):
            self._parts += 1
            for one in schema["fields"]:
                self.over(one["type"], depth + 1)
        elif kind == "enum":
            self._index(len(schema["symbols"]))
        elif kind == "fixed":
            self._octets(schema, schema["size"])
        else:
            self.over(self._named[kind], depth)

    def _blocks(self, items: Any, has_names: bool, depth: int) -> None:
        self._parts += 1
        while count := self._number():
            if count < 0:
                self._number()  # the octets of the block
            for _ in range(abs(count)):
                if has_names:
                    self._skip(self._number())
                self.over(items, depth + 1)

    def _index(self, count: int) -> int:
        index = self._number()
        if not 0 <= index < count:
            raise DecodingError("it is not of this Avro schema: an index is out of range")
        return index

    def _octets(self, schema: Any, count: int) -> None:
        is_number = isinstance(schema, dict) and schema.get("logicalType") == "decimal"
        if is_number and count > limits.DECODED_NUMBER:
            raise DecodingError(f"it holds a decimal number of more than {limits.DECODED_NUMBER} octets")
        self._skip(count)

    def _skip(self, octets: int) -> None:
        if octets < 0 or self.position + octets > len(self._content):
            raise DecodingError("it is not of this Avro schema: it ends too early")
        self.position += octets

    def _number(self) -> int:
        value = shift = 0
        while True:
            octet = self._content[self.position]
            self.position += 1
            value |= (octet & 0x7F) << shift
            if octet < 0x80:
                return (value >> 1) ^ -(value & 1)
            shift += 7
            if shift > 63:
                raise DecodingError("it is not of this Avro schema: a number is too long")
