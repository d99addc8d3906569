"""Lines of input as records: text with or without a key, or a JSON object."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable
from typing import Any, NamedTuple

from dafka.protocol.json_text import read_json

LARGEST_TIMESTAMP = 2**62  # that a batch of records holds; before 1970 they are negative

_FIELDS = {"key", "value", "headers", "partition", "timestamp"}
_IGNORED = {"topic", "offset"}  # printed by `consume --json` besides


class RowError(ValueError):
    """A line that is not a record."""


class NewRecord(NamedTuple):
    """A record that is to be sent. None: the producer chooses partition and time."""

    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]
    partition: int | None = None
    timestamp: int | None = None


Parse = Callable[[bytes], NewRecord]


def text_rows(key: bytes | None, separator: bytes | None, null: bytes | None) -> Parse:
    """Lines of text. ``separator`` stands between key and value; a value like ``null`` is null."""

    def parse(line: bytes) -> NewRecord:
        found, value = key, line
        if separator is not None:
            found, between, value = line.partition(separator)
            if not between:
                raise RowError(f"there is no {separator.decode(errors='backslashreplace')!r} in it")
        return NewRecord(found, None if null is not None and value == null else value, [])

    return parse


def json_row(line: bytes) -> NewRecord:
    """A JSON object: key, value, headers, partition and timestamp, each of which may be missing.

    Text stands for its octets in UTF-8, ``key_base64`` and ``value_base64`` for any others, and another value
    (a number, an object) for itself as JSON. Raises RowError.
    """
    try:
        row = read_json(line)
    except ValueError as error:
        raise RowError(f"it is not JSON: {error}") from error
    return row_of(row)


def row_of(row: Any) -> NewRecord:
    """The record that such an object is, read already. Raises RowError."""
    if not isinstance(row, dict):
        raise RowError("it is not a JSON object")
    known = _FIELDS | _IGNORED | {"key_base64", "value_base64"}
    if unknown := sorted(set(row) - known):
        raise RowError(f"{unknown[0]!r} is not a field: there are {', '.join(sorted(known))}")
    partition = _number(row, "partition", range(2**31))
    timestamp = _number(row, "timestamp", range(-LARGEST_TIMESTAMP, LARGEST_TIMESTAMP + 1))
    return NewRecord(_octets(row, "key"), _octets(row, "value"), _headers(row), partition, timestamp)


def octets(name: str, content: bytes | None) -> dict[str, Any]:
    """Octets as a field of JSON: text as text, anything else as Base64 under a name that says so."""
    if content is None:
        return {name: None}
    try:
        return {name: content.decode()}
    except UnicodeDecodeError:
        return {f"{name}_base64": base64.b64encode(content).decode()}


def _number(row: dict[str, Any], name: str, possible: range) -> int | None:
    value = row.get(name)
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or value not in possible:
        raise RowError(f"{name} is a number from {possible[0]} to {possible[-1]}, not {value!r}")
    return value


def _octets(row: dict[str, Any], name: str) -> bytes | None:
    encoded = row.get(f"{name}_base64")
    if encoded is not None:
        if name in row:
            raise RowError(f"{name} and {name}_base64 are the same field")
        try:
            return base64.b64decode(encoded, validate=True)
        except (binascii.Error, TypeError, ValueError) as error:
            raise RowError(f"{name}_base64 is not Base64: {error}") from error
    value = row.get(name)
    if value is None:
        return None
    text = value if isinstance(value, str) else json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise RowError(f"{name} is not text: {error.reason}") from error


def _headers(row: dict[str, Any]) -> list[tuple[str, bytes | None]]:
    given = row.get("headers") or []
    if isinstance(given, dict):
        given = [{"name": name, "value": value} for name, value in given.items()]
    if not isinstance(given, list):
        raise RowError("headers are a list of objects with name and value, or an object")
    found = []
    for one in given:
        if not isinstance(one, dict) or not isinstance(one.get("name"), str):
            raise RowError("a header is an object with name and value")
        _octets(one, "name")  # it is text
        found.append((one["name"], _octets(one, "value")))
    return found
