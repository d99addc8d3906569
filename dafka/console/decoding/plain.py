"""Decoded values as what JSON can hold, within bounds.

The decoders' own classes become text: octets Base64, times ISO 8601, decimals and numbers that JSON does not
have (NaN, the infinities) their names. Data may be hostile, so what they become is bounded in size and depth.
"""

from __future__ import annotations

import base64
import json
import math
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any
from uuid import UUID

from dafka.console import limits
from dafka.console.decoding.errors import DecodingError
from dafka.protocol.json_text import read_json

_ENCODER = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False)
_SPECIAL = {math.inf: "Infinity", -math.inf: "-Infinity"}


class Pairs(list[Any]):
    """An object of which the keys may be anything, as pairs."""


def plain(value: Any) -> Any:
    """The value for JSON. Raises DecodingError if it is too large or too deep."""
    return _Plain().of(value, 0)


def text_of(value: Any) -> str:
    """A plain value as JSON.

    It is written piece by piece, since at once no other thread would go on: a tenth of a second for 100 000
    numbers, in which the hub stands still.
    """
    return "".join(_ENCODER.iterencode(value))


def parse_json(content: bytes | str) -> Any:
    """JSON of which the parts are not too many. Raises ValueError.

    Very many lists at once bring Python to look through all objects of the process for garbage.
    """
    marks: tuple[Any, Any] = ("[", "{") if isinstance(content, str) else (b"[", b"{")
    if content.count(marks[0]) + content.count(marks[1]) > limits.DECODED_PARTS:
        raise ValueError(f"it has more than {limits.DECODED_PARTS} lists and objects")
    return read_json(content)


class _Plain:
    """The room that is left for one value."""

    def __init__(self) -> None:
        self._left = limits.DECODED_CHARACTERS

    def of(self, value: Any, depth: int) -> Any:
        if depth > limits.DECODED_DEPTH:
            raise DecodingError(f"it is deeper than {limits.DECODED_DEPTH} levels")
        if isinstance(value, dict):
            value = Pairs(value.items())
        if isinstance(value, Pairs):
            return {self._name(name, depth): self.of(one, depth + 1) for name, one in value}
        if isinstance(value, (list, tuple)):
            self._take(len(value))
            return [self.of(one, depth + 1) for one in value]
        found = _scalar(value)
        self._take(len(found) if isinstance(found, str) else 8)
        return found

    def _name(self, name: Any, depth: int) -> str:
        found = self.of(name, depth + 1)
        return found if isinstance(found, str) else text_of(found)

    def _take(self, size: int) -> None:
        self._left -= size
        if self._left < 0:
            raise DecodingError(f"decoded it has more than {limits.DECODED_CHARACTERS} characters")


def _scalar(value: Any) -> Any:
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else _SPECIAL.get(value, "NaN")
    if isinstance(value, str):
        return value
    if isinstance(value, (bytes, bytearray, memoryview)):
        return base64.b64encode(value).decode()
    if isinstance(value, (date, time)):  # a datetime is a date as well
        return value.isoformat()
    if isinstance(value, (Decimal, UUID, timedelta)):
        return str(value)
    if hasattr(value, "to_unix_nano"):  # MessagePack's times
        seconds, nanoseconds = divmod(value.to_unix_nano(), 10**9)
        try:
            return f"{datetime.fromtimestamp(seconds, timezone.utc):%Y-%m-%dT%H:%M:%S}.{nanoseconds:09d}Z"
        except (OverflowError, ValueError, OSError):
            return f"{seconds}.{nanoseconds:09d}"
    raise DecodingError(f"a {type(value).__name__} has no form in JSON")
